"""The cause of a difference between the <inertial> of a link and the inertia that B has for it."""

from __future__ import annotations

import math
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
    1e-7: "g cm^2 for kg m^2",
    1e7: "kg m^2 for g cm^2",
    0.0254: "inches for metres",
    1.0 / 0.0254: "metres for inches",
    0.45359237 * 0.0254**2: "lb in^2 for kg m^2",
    1.0 / (0.45359237 * 0.0254**2): "kg m^2 for lb in^2",
}

WEAK = ("mass-scaled", "inertia-scaled", "mass-clamped", "inertia-clamped")
"""Causes with a number that is taken from B: they fit more easily than others."""

ROUGH = 1e-4
"""Relative difference up to which rounding is the cause that is named."""

ROUGH_LENGTH = 1e-6
"""What rounding may move a body whose own size is smaller: origins of joints are rounded too [m]."""

ROUNDINGS = (0.0, 1e-5, ROUGH)
"""Roundings of B's numbers under which a cause is looked for: none, six digits, five digits."""

CLEAR = 20.0
"""How many times its rounding a difference has to be, for a cause to be named under that rounding."""

Found = tuple[str, str]
"""Code of a cause, and the verdict."""


def number(x: float) -> str:
    """A number in four digits."""
    return f"{x:.4g}"


def factor(k: float) -> str:
    """A factor in words, with the mistake of units that it belongs to."""
    near = unit_of(k)
    return number(k) + (f" ({near})" if near else "")


def unit_of(k: float) -> str:
    """The mistake of units that a factor belongs to, "" if there is none."""
    return next((said for unit, said in UNITS.items() if abs(k / unit - 1.0) < 1e-5), "")


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
    weak: list[Found] = []
    for rounding in ROUNDINGS:
        rougher = slack.rougher(rounding)
        if rounding and slack.rougher(CLEAR * rounding).same(a, b):
            break
        found = _causes_within(own, a, b, rougher, shapes, more)
        if _exact(found):
            return found
        weak = weak or found
    return weak


def _causes_within(
    own: InertialDescription | None,
    a: Rigid,
    b: Rigid,
    slack: Slack,
    shapes: Callable[[], Iterator[Candidate]],
    more: tuple[Candidate, ...],
) -> list[Found]:
    found: list[Found] = []
    if own is None:
        found += _invented(b, slack)
    else:
        for candidate in (*more, *candidates(own)):
            if slack.same(candidate.body, b) and not slack.same(candidate.body, a):
                found.append((candidate.cause, candidate.text))
        if not slack.rougher(ROUGH).same(a, b):
            found += [*scaled(a, b, slack), *defaults(a, b, slack), *_clamped(own, a, b, slack)]
    if not _exact(found):
        for shape in shapes():
            if slack.same(shape.body, b) and not slack.same(shape.body, a):
                found.append((shape.cause, shape.text))
    unique = list({cause: (cause, text) for cause, text in reversed(found)}.values())[::-1]
    # A round mass may be a bound, a round factor is a factor.
    plain = a.mass > 0.0 and _round(b.mass / a.mass)
    both = not slack.mass_same(a, b)
    late = {"inertial-default": 1, "inertia-clamped": 4 if both else 2, "mass-clamped": 4 if plain else 2}
    late |= {"mass-scaled": 3, "inertia-scaled": 3}
    if plain:
        late["inertial-default"] = 4
    return sorted(unique, key=lambda f: late.get(f[0], 0))


def _exact(found: list[Found]) -> bool:
    return any(cause not in WEAK for cause, _ in found)


def _invented(b: Rigid, slack: Slack) -> list[Found]:
    one = Rigid(1.0, b.com, np.eye(3))
    if slack.same(one, b):
        return [("inertial-default", "B gives it 1 kg and 1 kg m^2; A has no inertial")]
    # What is made up has no centre and no axes of its own; what has them is part of another body.
    plain = Rigid(b.mass, np.zeros(3), float(b.inertia[0, 0]) * np.eye(3))
    if b.mass <= 0.0 or not slack.same(plain, b):
        return []
    given = f"B gives it a mass of {number(b.mass)} kg; A has no inertial"
    if _power_of_ten(b.mass):
        return [("inertial-default", given)]
    return [("mass-clamped", given)] if _round(b.mass) else []


def scaled(a: Rigid, b: Rigid, slack: Slack) -> list[Found]:
    """Mass, inertia or both times a factor; empty if that is not the difference."""
    found: list[Found] = []
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
        elif min(abs(k - 1.0), abs(h - 1.0)) > ROUGH and slack.inertia_same(
            Rigid(b.mass, b.com, h * a.inertia), b
        ):
            found.append(
                ("mass-scaled", f"B's mass is A's times {factor(k)}, its inertia A's times {factor(h)}")
            )
    elif not slack.inertia_same(a, b) and slack.inertia_same(Rigid(b.mass, b.com, h * a.inertia), b):
        found.append(("inertia-scaled", f"B's inertia is A's times {factor(h)}"))
    return found


def defaults(a: Rigid, b: Rigid, slack: Slack) -> list[Found]:
    """A power of ten in the place of the mass, or as each moment of inertia."""
    if not slack.com_same(a, b):
        return []
    moment = float(b.inertia[0, 0])
    equal = moment > 0.0 and slack.inertia_same(Rigid(b.mass, b.com, moment * np.eye(3)), b)
    # A default has no digits; a mass or moment that A has already is none.
    whole = equal and _power_of_ten(moment) and not slack.inertia_same(a, b)
    mass = _power_of_ten(b.mass) and not slack.mass_same(a, b)
    if whole and mass:
        text = f"{number(b.mass)} kg and {number(moment)} kg m^2"
    elif whole and slack.mass_same(a, b):
        text = f"{number(moment)} kg m^2 about each axis"
    elif mass and slack.inertia_same(a, b):
        text = f"{number(b.mass)} kg; the inertia is A's"
    else:
        return []
    return [("inertial-default", f"B has a default in its place: {text}")]


def _power_of_ten(x: float) -> bool:
    return x > 0.0 and abs(x / 10.0 ** round(math.log10(x)) - 1.0) < 1e-7


def _clamped(own: InertialDescription, a: Rigid, b: Rigid, slack: Slack) -> list[Found]:
    """Principal moments, or the mass, raised to a least value."""
    if not slack.com_same(a, b) and a.mass > slack.mass:
        return []
    for axes, which in ((None, "principal moments"), (own.origin.rotation(), "moments of inertia")):
        text = _raised(a, b, slack, axes)
        if text:
            return [("inertia-clamped", f"B's {which} are A's raised to at least {text}")]
    kept = slack.inertia_same(a, b)
    if b.mass > a.mass and kept and _round(b.mass):
        before = "A's" if a.mass > 0.0 else "none in A,"
        return [("mass-clamped", f"B's mass is {before} raised to {number(b.mass)} kg; the inertia is A's")]
    return []


def _raised(a: Rigid, b: Rigid, slack: Slack, axes: np.ndarray | None) -> str:
    """The bound that moments about these axes were raised to, "" if they were not; None: principal axes."""
    scale = float(np.abs(b.inertia).max())
    if axes is None:
        moments, V = np.linalg.eigh(a.inertia)
        products = np.zeros((3, 3))
    else:
        V = axes
        moments = np.diag(V.T @ a.inertia @ V)
        products = V.T @ a.inertia @ V - np.diag(moments)
    theirs = V.T @ b.inertia @ V - products
    own = np.diag(theirs)
    allowed = slack.relative * scale
    if scale == 0.0 or float(np.abs(theirs - np.diag(own)).max()) > allowed:
        return ""
    raised = own > moments + max(allowed, ROUGH * scale) + slack.inertia
    kept = np.abs(own - moments) <= allowed + slack.inertia
    bound = float(own[raised].max()) if raised.any() else 0.0
    level = np.abs(own[raised] - bound) <= allowed
    # Raised moments all have the same value, and those that are kept are larger.
    if not (raised.any() and (raised | kept).all() and level.all()):
        return ""
    if not (moments[kept] >= bound * (1.0 - 1e-9) - allowed).all():
        return ""
    text = f"{number(bound)} kg m^2"
    if not slack.mass_same(a, b):
        text += f", its mass from {number(a.mass)} to {number(b.mass)} kg"
    return text


def _round(x: float) -> bool:
    """Whether a number has one or two significant digits, as bounds that people write have."""
    return float(f"{x:.1e}") == x or abs(float(f"{x:.1e}") / x - 1.0) < 1e-7


def undetermined(a: Rigid, b: Rigid, slack: Slack) -> Found:
    """A difference without a known cause: rounding if it is small, else which of the three differ."""
    rough = Slack(ROUGH, slack.mass, slack.length + ROUGH_LENGTH, slack.inertia)
    if rough.same(a, b):
        return "rounded", "B's mass, centre of mass or inertia is A's rounded"
    # Beside a clear difference, what is only rounded is not worth a word.
    apart = rough if not rough.same(a, b) else slack
    parts = []
    if not apart.mass_same(a, b):
        parts.append(f"mass {number(b.mass)} for {number(a.mass)} kg")
    if not apart.com_same(a, b):
        off = float(np.linalg.norm(b.com - a.com))
        parts.append(f"centre of mass {number(off * 1e3)} mm off")
    if not apart.inertia_same(a, b):
        off = float(np.abs(b.inertia - a.inertia).max() / max(np.abs(a.inertia).max(), 1e-300))
        parts.append(f"inertia off by {100 * off:.3g} %" if off < 1e6 else "inertia where A has none")
    cause = "mass-differs" if not apart.mass_same(a, b) else "inertia-differs"
    if apart.mass_same(a, b) and not apart.com_same(a, b):
        cause = "com-differs"
    return cause, "B has " + ", ".join(parts) + "; no known cause fits"
