"""The cause of a difference between the <inertial> of a link and the inertia that B has for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from robokit.parity.causes.inertial_candidates import Candidate, candidates
from robokit.parity.causes.rigid import Rigid, Slack
from robokit.urdf.description import InertialDescription

UNITS = {
    1e-3: "grams for kilograms, or millimetres for metres",
    1e3: "kilograms for grams, or metres for millimetres",
    1e-6: "mm^2 for m^2",
    1e6: "m^2 for mm^2",
    1e-9: "g mm^2 for kg m^2",
    1e9: "kg m^2 for g mm^2",
    0.45359237: "pounds for kilograms",
    1.0 / 0.45359237: "kilograms for pounds",
    1e-4: "cm^2 for m^2",
    1e4: "m^2 for cm^2",
}

WEAK = ("mass-scaled", "inertia-scaled", "mass-clamped", "inertia-clamped")
"""Causes with a number that is taken from B: they fit more easily than others."""

ROUGH = 1e-4
"""Relative difference up to which rounding is the cause that is named."""

Found = tuple[str, str]
"""Code of a cause, and the verdict."""


def number(x: float) -> str:
    """A number in four digits."""
    return f"{x:.4g}"


def factor(k: float) -> str:
    """A factor in words, with the mistake of units that it belongs to."""
    near = next((said for unit, said in UNITS.items() if abs(k / unit - 1.0) < 1e-6), "")
    return number(k) + (f" ({near})" if near else "")


def causes_of(
    own: InertialDescription | None,
    a: Rigid,
    b: Rigid,
    slack: Slack,
    shapes: Callable[[], Iterator[Candidate]],
    more: tuple[Candidate, ...] = (),
) -> list[Found]:
    """Every cause that turns the link's inertia into B's, the likeliest first; empty if there is none.

    Args:
        own: the inertial as A writes it, None if A has none.
        a, b: A's and B's body in the link's frame.
        slack: what counts as equal.
        shapes: candidates made of the link's shapes; called only if nothing else fits.
        more: candidates that come before the others, such as those of merged links.
    """
    found: list[Found] = []
    if own is None:
        found += _invented(b, slack)
    else:
        for candidate in (*more, *candidates(own)):
            if slack.same(candidate.body, b) and not slack.same(candidate.body, a):
                found.append((candidate.cause, candidate.text))
        found += scaled(a, b, slack)
        found += _clamped(a, b, slack)
    if not _exact(found):
        for shape in shapes():
            if slack.same(shape.body, b) and not slack.same(shape.body, a):
                found.append((shape.cause, shape.text))
    unique = list({cause: (cause, text) for cause, text in reversed(found)}.values())[::-1]
    # A round mass may be a bound, a round factor is a factor.
    plain = a.mass > 0.0 and _round(b.mass / a.mass)
    late = {"inertia-clamped": 1, "mass-clamped": 3 if plain else 1, "mass-scaled": 2, "inertia-scaled": 2}
    return sorted(unique, key=lambda f: late.get(f[0], 0))


def _exact(found: list[Found]) -> bool:
    return any(cause not in WEAK for cause, _ in found)


def _invented(b: Rigid, slack: Slack) -> list[Found]:
    one = Rigid(1.0, b.com, np.eye(3))
    if slack.same(one, b):
        return [("inertial-default", "B gives it 1 kg and 1 kg m^2; A has no inertial")]
    if slack.mass_same(one, b):
        return [("inertial-default", "B gives it a mass of 1 kg; A has no inertial")]
    return []


def scaled(a: Rigid, b: Rigid, slack: Slack) -> list[Found]:
    """Mass, inertia or both times a factor; empty if that is not the difference."""
    found: list[Found] = []
    if Slack(ROUGH, slack.mass, slack.length, slack.inertia).same(a, b):
        return found
    trace_a, trace_b = float(np.trace(a.inertia)), float(np.trace(b.inertia))
    if not slack.com_same(a, b) or a.mass <= 0.0 or b.mass <= 0.0:
        return found
    k = b.mass / a.mass
    h = trace_b / trace_a if trace_a > 0.0 and trace_b > 0.0 else 1.0
    if not slack.mass_same(a, b):
        if slack.inertia_same(Rigid(b.mass, b.com, k * a.inertia), b):
            found.append(("mass-scaled", f"B's mass and inertia are A's times {factor(k)}"))
        elif slack.inertia_same(a, b):
            found.append(
                (
                    "mass-scaled",
                    f"B's mass is A's times {factor(k)}: {number(b.mass)} for {number(a.mass)} kg; "
                    "the inertia is A's",
                )
            )
        elif slack.inertia_same(Rigid(b.mass, b.com, h * a.inertia), b):
            found.append(
                ("mass-scaled", f"B's mass is A's times {factor(k)}, its inertia A's times {factor(h)}")
            )
    elif not slack.inertia_same(a, b) and slack.inertia_same(Rigid(b.mass, b.com, h * a.inertia), b):
        found.append(("inertia-scaled", f"B's inertia is A's times {factor(h)}"))
    return found


def _clamped(a: Rigid, b: Rigid, slack: Slack) -> list[Found]:
    """Principal moments, or the mass, raised to a least value."""
    if not slack.com_same(a, b) and a.mass > slack.mass:
        return []
    moments, V = np.linalg.eigh(a.inertia)
    theirs = V.T @ b.inertia @ V
    scale = float(np.abs(b.inertia).max())
    if scale == 0.0 or float(np.abs(theirs - np.diag(np.diag(theirs))).max()) > slack.relative * scale:
        return []
    raised = np.diag(theirs) > moments + slack.relative * scale + slack.inertia
    kept = np.abs(np.diag(theirs) - moments) <= slack.relative * scale + slack.inertia
    bound = float(np.diag(theirs)[raised].max()) if raised.any() else 0.0
    level = np.abs(np.diag(theirs)[raised] - bound) <= slack.relative * scale
    # Raised moments all have the same value, and those that are kept are larger.
    if raised.any() and (raised | kept).all() and level.all() and (moments[kept] >= bound * (1 - 1e-9)).all():
        text = f"B's principal moments are A's raised to at least {number(bound)} kg m^2"
        if not slack.mass_same(a, b):
            text += f", its mass from {number(a.mass)} to {number(b.mass)} kg"
        return [("inertia-clamped", text)]
    if b.mass > a.mass > 0.0 and kept.all() and _round(b.mass):
        text = f"B's mass is A's raised to {number(b.mass)} kg; the inertia is A's"
        return [("mass-clamped", text)]
    return []


def _round(x: float) -> bool:
    """Whether a number has one or two significant digits, as bounds that people write have."""
    return float(f"{x:.1e}") == x or abs(float(f"{x:.1e}") / x - 1.0) < 1e-9


def undetermined(a: Rigid, b: Rigid, slack: Slack) -> Found:
    """A difference without a known cause: rounding if it is small, else which of the three differ."""
    rough = Slack(ROUGH, slack.mass, slack.length, slack.inertia)
    if rough.same(a, b):
        return "rounded", "B's mass, centre of mass or inertia is A's rounded"
    parts = []
    if not slack.mass_same(a, b):
        parts.append(f"mass {number(b.mass)} for {number(a.mass)} kg")
    if not slack.com_same(a, b):
        off = float(np.linalg.norm(b.com - a.com))
        parts.append(f"centre of mass {number(off * 1e3)} mm off")
    if not slack.inertia_same(a, b):
        off = float(np.abs(b.inertia - a.inertia).max() / max(np.abs(a.inertia).max(), 1e-300))
        parts.append(f"inertia off by {100 * off:.3g} %" if off < 1e6 else "inertia where A has none")
    cause = "mass-differs" if not slack.mass_same(a, b) else "inertia-differs"
    if slack.mass_same(a, b) and not slack.com_same(a, b):
        cause = "com-differs"
    return cause, "B has " + ", ".join(parts) + "; no known cause fits"
