"""Masses and inertias: how the referee adds, moves and compares them, and what readers make of <inertial>.

A reader that goes wrong in a known way makes a known inertia of a link: the candidates. The causes of a
difference are those whose candidates B has.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from robokit.dataclass_tools import frozen
from robokit.formats.description import DescribedBody, DescribedShape, solid_of
from robokit.model.geometry import Placement
from robokit.urdf.description import InertialDescription


def steiner(mass: float, c: np.ndarray) -> np.ndarray:
    """Parallel-axis term of a point mass at c, (3, 3) [kg m^2]."""
    return np.asarray(mass * (float(c @ c) * np.eye(3) - np.outer(c, c)))


@frozen
class Rigid:
    """Mass [kg], centre of mass (3,) [m] and inertia about it (3, 3) [kg m^2], in the axes of some frame."""

    mass: float
    com: np.ndarray
    inertia: np.ndarray

    def at(self, pose: Placement) -> Rigid:
        """The same body in the frame in which its own frame has this pose."""
        R = pose.rotation
        return Rigid(self.mass, R @ self.com + pose.position, R @ self.inertia @ R.T)

    def __add__(self, other: Rigid) -> Rigid:
        return self._with(other, 1.0)

    def __sub__(self, other: Rigid) -> Rigid:
        return self._with(other, -1.0)

    def _with(self, other: Rigid, sign: float) -> Rigid:
        if other.mass == 0.0 and not other.inertia.any():
            return self
        mass = self.mass + sign * other.mass
        first = self.mass * self.com + sign * other.mass * other.com
        # About other.com, which is near both, so that little is lost by cancellation.
        o = other.com
        about = self.inertia + steiner(self.mass, self.com - o) + sign * other.inertia
        if abs(mass) <= 1e-12 * max(abs(self.mass), abs(other.mass)):
            return Rigid(0.0, np.zeros(3), about)
        com = first / mass
        return Rigid(mass, com, about - steiner(mass, com - o))

    @property
    def size(self) -> float:
        """A length of the body: radius of gyration plus distance of the centre of mass [m]."""
        if self.mass <= 0.0:
            return 0.0
        return math.sqrt(abs(float(np.trace(self.inertia))) / self.mass) + float(np.linalg.norm(self.com))


NO_MASS = Rigid(0.0, np.zeros(3), np.zeros((3, 3)))


LENGTH_TOLERANCE = 1e-9  # distance of two centres of mass that is none, however small the body is [m]


@frozen
class Slack:
    """What may differ between equal bodies: a relative part, and absolute parts from rounding."""

    relative: float
    mass: float = 0.0
    length: float = 0.0
    inertia: float = 0.0

    def rougher(self, relative: float) -> Slack:
        """The same with a larger relative part."""
        return replace(self, relative=max(relative, self.relative))

    def mass_same(self, a: Rigid, b: Rigid) -> bool:
        """Whether the masses agree."""
        return abs(a.mass - b.mass) <= self.relative * max(abs(a.mass), abs(b.mass)) + self.mass

    def com_same(self, a: Rigid, b: Rigid) -> bool:
        """Whether the centres of mass agree, measured by the size of the body."""
        if abs(a.mass) <= self.mass and abs(b.mass) <= self.mass:
            return True
        size = max(a.size, b.size)
        lever = self.mass / max(abs(a.mass), abs(b.mass), 1e-300) * size
        return (
            float(np.abs(a.com - b.com).max())
            <= self.relative * size + self.length + lever + LENGTH_TOLERANCE
        )

    def inertia_same(self, a: Rigid, b: Rigid) -> bool:
        """Whether the inertias about the centres of mass agree, measured by their largest entries."""
        scale = max(float(np.abs(a.inertia).max()), float(np.abs(b.inertia).max()))
        return float(np.abs(a.inertia - b.inertia).max()) <= self.relative * scale + self.inertia

    def same(self, a: Rigid, b: Rigid) -> bool:
        """Whether two bodies agree in everything."""
        return self.mass_same(a, b) and self.com_same(a, b) and self.inertia_same(a, b)

    def roundings(self, a: Rigid, b: Rigid) -> Iterator[Slack]:
        """Itself and rougher ones, for the roundings of files, as long as the bodies differ by more."""
        for rounding in ROUNDINGS:
            if rounding and self.rougher(CAUSE_THRESHOLD * rounding).same(a, b):
                return
            yield self.rougher(rounding)


# ---- What a reader makes of <inertial> if it goes wrong in a known way: a list of candidates for B's inertia

WATER = 1000.0  # density of Drake's ball, and default density of MuJoCo, PhysX and SDF [kg/m^3]


LENGTH_FACTORS = (1000.0, 0.001, 100.0, 0.01, 0.0254, 1.0 / 0.0254, 0.3048, 1.0 / 0.3048)
"""Factors between metres and other units: mm, cm, inches, feet."""


class Candidate(NamedTuple):
    """A cause, the verdict, and the body that the cause makes, in the link's frame."""

    cause: str
    text: str
    body: Rigid


def matrix(six: tuple[float, float, float, float, float, float]) -> np.ndarray:
    """The symmetric matrix of ixx, ixy, ixz, iyy, iyz, izz."""
    return InertialDescription(0.0, six).matrix()


def rotation(rpy: tuple[float, ...], order: str = "zyx") -> np.ndarray:
    """Product of the rotations about z, y, x in the order of the letters."""
    R = np.eye(3)
    for letter in order:
        k = "xyz".index(letter)
        c, s = math.cos(rpy[k]), math.sin(rpy[k])
        turn = np.eye(3)
        i, j = (k + 1) % 3, (k + 2) % 3
        turn[i, i], turn[i, j], turn[j, i], turn[j, j] = c, -s, s, c
        R = R @ turn
    return R


def candidates(own: InertialDescription) -> Iterator[Candidate]:
    """Everything that does not need B's numbers, the more usual causes first."""
    m, c, raw, R = own.mass, np.array(own.origin.xyz), matrix(own.inertia), own.origin.rotation()
    I, line = own.matrix(), own.origin.line

    def made(cause: str, text: str, com: np.ndarray, inertia: np.ndarray, mass: float = m) -> Candidate:
        return Candidate(cause, f"B's inertia is A's with {text}", Rigid(mass, com, inertia))

    where = f"the inertial rotation of line {line}"
    if own.origin.rotated:
        yield made("inertial-rotation-lost", f"{where} left out", c, raw)
        yield made("inertial-rotation-twice", f"{where} applied twice", c, R @ I @ R.T)
        yield made("inertial-rotation-inverted", f"{where} applied backwards", c, R.T @ raw @ R)
        half = R @ raw
        one = f"{where} applied from one side only (R I, not R I R^T)"
        yield made("inertial-rotation-one-sided", one, c, (half + half.T) / 2)
        yield made("inertial-rotation-one-sided", one, c, np.tril(half) + np.tril(half, -1).T)
        yield made("inertial-rotation-one-sided", one, c, np.triu(half) + np.triu(half, 1).T)
        for text, S in other_rotations(own.origin.rpy):
            yield made("inertial-rotation-convention", f"{where} {text}", c, S @ raw @ S.T)
        yield made("inertial-origin-turned", f"the centre of mass turned by {where}", R @ c, I)
        yield made("inertial-origin-turned", f"the centre of mass turned back by {where}", R.T @ c, I)
    if c.any():
        place, zero = f"the inertial origin of line {line}", np.zeros(3)
        yield made("inertial-origin-lost", f"{place} left out", zero, I)
        if own.origin.rotated:
            yield made("inertial-pose-lost", f"the whole inertial origin of line {line} left out", zero, raw)
        yield made("inertial-origin-twice", f"{place} applied twice", 2.0 * c, I)
        yield made("inertial-origin-twice", f"{place} applied twice", c + R @ c, R @ I @ R.T)
        yield made("inertial-origin-inverted", f"{place} negated", -c, I)
        for k in LENGTH_FACTORS:
            yield made("inertial-origin-units", f"{place} times {k:g}", k * c, I)
        moved = "moved from the centre of mass to the link's origin (parallel axes)"
        yield made("inertia-about-link-origin", f"its inertia {moved}", c, I + steiner(m, c))
        yield made("inertia-about-link-origin", f"its inertia {moved} and back again", c, I - steiner(m, c))
        yield made("inertia-about-link-origin", f"its inertia {moved}, twice", c, I + 2.0 * steiner(m, c))
        both = f"{place} left out, its inertia {moved}"
        yield made("inertia-about-link-origin", both, zero, I + steiner(m, c))
    yield from _products(own, m, c, I, R)
    for k, letter in enumerate("xyz"):
        mirror = np.eye(3)
        mirror[k, k] = -1.0
        yield made("inertial-mirrored", f"{letter} mirrored", mirror @ c, mirror @ I @ mirror)
        yield made("inertial-mirrored", f"{letter} of its centre of mass negated", mirror @ c, I)
    for S in _QUARTER_TURNS:
        yield made("inertial-axes", "x, y, z exchanged, as for y up", S @ c, S @ I @ S.T)
    yield from _replacement_candidates(m, c, I)


def _quarter_turns() -> list[np.ndarray]:
    """The rotations that take coordinate axes to coordinate axes, without the identity."""
    turns = []
    for order in itertools.permutations(range(3)):
        for signs in itertools.product((1.0, -1.0), repeat=3):
            S = np.eye(3)[list(order)] * np.array(signs)
            if np.linalg.det(S) > 0.0 and not np.array_equal(S, np.eye(3)):
                turns.append(S)
    return turns


_QUARTER_TURNS = _quarter_turns()


def other_rotations(rpy: tuple[float, ...]) -> Iterator[tuple[str, np.ndarray]]:
    """What roll, pitch and yaw become where a reader takes them for something else."""
    degrees, radians = math.pi / 180.0, 180.0 / math.pi
    yield "read as degrees", rotation(tuple(x * degrees for x in rpy))
    yield "in degrees, read as radians", rotation(tuple(x * radians for x in rpy))
    yield "read in the order x, y, z of moving axes", rotation(rpy, "xyz")
    yield "read as yaw, pitch, roll", rotation(rpy[::-1])
    for signs in itertools.product((1.0, -1.0), repeat=3):
        names = [n for n, s, x in zip(("roll", "pitch", "yaw"), signs, rpy, strict=True) if s < 0.0 and x]
        if len(names) == signs.count(-1.0) and names:  # as between left- and right-handed axes
            yield f"with {' and '.join(names)} negated", rotation(tuple(np.array(signs) * rpy))


def _products(
    own: InertialDescription, m: float, c: np.ndarray, I: np.ndarray, R: np.ndarray
) -> Iterator[Candidate]:
    xx, xy, xz, yy, yz, zz = own.inertia
    lost, negated = "the products of inertia left out", "the products of inertia negated"

    def made(cause: str, text: str, inertia: np.ndarray) -> Candidate:
        return Candidate(cause, f"B's inertia is A's with {text}", Rigid(m, c, inertia))

    yield made("products-sign", negated, R @ matrix((xx, -xy, -xz, yy, -yz, zz)) @ R.T)
    yield made("products-lost", lost, R @ matrix((xx, 0.0, 0.0, yy, 0.0, zz)) @ R.T)
    if own.origin.rotated:  # the same in the link's axes
        d = np.diag(np.diag(I))
        yield made("products-sign", negated, 2 * d - I)
        yield made("products-lost", lost, d)
    another = "its six numbers read in another order"
    for six in ((xx, yy, zz, xy, xz, yz), (xx, xy, xz, xy, yy, yz), (xx, yy, zz, xy, yz, xz)):
        yield made("inertia-order", another, R @ matrix(six) @ R.T)
    moments, V = np.linalg.eigh(I)
    if np.linalg.det(V) < 0:
        V[:, 0] = -V[:, 0]
    for order in itertools.permutations(range(3)):
        text = "B's inertia is A's principal moments along the link's axes: their rotation is left out"
        yield Candidate("principal-axes-lost", text, Rigid(m, c, np.diag(moments[list(order)])))
    for order in itertools.permutations(range(3)):
        for signs in itertools.product((1.0, -1.0), repeat=3):
            W = V[:, list(order)] * np.array(signs)
            if np.linalg.det(W) > 0:
                turned = W.T @ np.diag(moments[list(order)]) @ W
                text = "B's inertia is A's with the rotation of its principal axes inverted"
                yield Candidate("principal-axes-inverted", text, Rigid(m, c, turned))
    for frame, J in ((R, matrix(own.inertia)), *(((np.eye(3), I),) if own.origin.rotated else ())):
        for i, j, two in ((0, 1, "ixz and iyz"), (0, 2, "ixy and iyz"), (1, 2, "ixy and ixz")):
            one = J.copy()
            one[i, j] = one[j, i] = -J[i, j]
            name = "i" + "xyz"[i] + "xyz"[j]
            yield made("products-sign", f"its product {name} negated", frame @ one @ frame.T)
            rest = 2.0 * np.diag(np.diag(J)) - one
            yield made("products-sign", f"its products {two} negated, as if mirrored", frame @ rest @ frame.T)
    for x, y, z in itertools.permutations((xx, yy, zz)):
        for p, q, r in itertools.permutations((xy, xz, yz)):
            yield made("inertia-order", another, R @ matrix((x, p, q, y, r, z)) @ R.T)
    yield made("inertia-order", another, R @ matrix((xx, xy, yy, xz, yz, zz)) @ R.T)


def _replacement_candidates(m: float, c: np.ndarray, I: np.ndarray) -> Iterator[Candidate]:
    zero, none, one = np.zeros(3), np.zeros((3, 3)), np.eye(3)
    gone = "B leaves its inertial out: no mass, no inertia"
    yield Candidate("inertial-lost", gone, NO_MASS)
    yield Candidate("inertial-lost", gone, Rigid(0.0, c, none))
    point = "B leaves its inertia out; the mass is a point"
    yield Candidate("inertia-lost", point, Rigid(m, c, none))
    yield Candidate("inertia-lost", point, Rigid(m, zero, none))
    mean = float(np.trace(I)) / 3.0
    text = "B has the mean of A's principal moments about each axis (balanced)"
    yield Candidate("inertia-balanced", text, Rigid(m, c, mean * one))
    for mass, said in ((m, "of its mass"), (1.0, "of 1 kg")):
        if mass > 0.0:
            r = (3.0 * mass / (4.0 * math.pi * WATER)) ** (1.0 / 3.0)
            ball = 0.4 * mass * r * r * one
            text = f"B has the inertia of a ball of water {said} in its place"
            yield Candidate("inertia-ball", text, Rigid(mass, c, ball))
            yield Candidate("inertia-ball", text, Rigid(mass, zero, ball))
    for mass, moment, said in (
        (1.0, one, "1 kg and 1 kg m^2"),
        (1.0, none, "1 kg without inertia"),
        (m, one, "1 kg m^2 about each axis"),
    ):
        text = f"B has a default in its place: {said}"
        for com in (c, zero):
            yield Candidate("inertial-default", text, Rigid(mass, com, moment))


# ---- The cause of a difference between the <inertial> of a link and the inertia that B has for it

UNIT_FACTORS = {
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

WEAK_CAUSES = ("mass-scaled", "inertia-scaled", "mass-clamped", "inertia-clamped")
"""Causes with a number that is taken from B: they fit more easily than others."""

ROUNDING_TOLERANCE = 1e-4  # relative difference up to which rounding is the cause that is named
ROUNDING_LENGTH = 1e-6  # by which rounding may move small bodies: joints' origins are rounded [m]

ROUNDINGS = (0.0, 1e-5, ROUNDING_TOLERANCE)
"""Roundings of B's numbers under which a cause is looked for: none, six digits, five digits."""

CAUSE_THRESHOLD = 20.0  # times its rounding that a difference is, for a cause to be named under it
Found = tuple[str, str]  # code of a cause, and the verdict


def number(x: float) -> str:
    """A number in four digits."""
    return f"{x:.4g}"


def factor(k: float) -> str:
    """A factor in words, with the mistake of units that it belongs to."""
    near = unit_of(k)
    return number(k) + (f" ({near})" if near else "")


def unit_of(k: float) -> str:
    """The mistake of units that a factor belongs to, "" if there is none."""
    return next((said for unit, said in UNIT_FACTORS.items() if abs(k / unit - 1.0) < 1e-5), "")


def causes_of(
    own: InertialDescription | None,
    a: Rigid,
    b: Rigid,
    slack: Slack,
    shapes: Callable[[], Iterator[Candidate]],
    more: tuple[Candidate, ...] = (),
) -> list[Found]:
    """Every cause that turns the link's inertia into B's, the likeliest first; empty if there is none.

    ``own``: the inertial as A writes it, None if A has none; ``a``, ``b``: A's and B's body in the link's
    frame; ``shapes``: candidates made of the link's shapes; called only if nothing else fits; ``more``:
    candidates that come before the others, such as those of merged links.
    """
    weak: list[Found] = []
    for rougher in slack.roundings(a, b):
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
        found += _default_inertials(b, slack)
    else:
        for candidate in (*more, *candidates(own)):
            if slack.same(candidate.body, b) and not slack.same(candidate.body, a):
                found.append((candidate.cause, candidate.text))
        if not slack.rougher(ROUNDING_TOLERANCE).same(a, b):
            found += [*scale_causes(a, b, slack), *defaults(a, b, slack), *_clamp_causes(own, a, b, slack)]
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
    return any(cause not in WEAK_CAUSES for cause, _ in found)


def _default_inertials(b: Rigid, slack: Slack) -> list[Found]:
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


def scale_causes(a: Rigid, b: Rigid, slack: Slack) -> list[Found]:
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
            masses = f"{number(b.mass)} for {number(a.mass)} kg"
            found.append(("mass-scaled", f"B's mass is A's times {factor(k)}: {masses}; the inertia is A's"))
        elif min(abs(k - 1.0), abs(h - 1.0)) > ROUNDING_TOLERANCE and slack.inertia_same(
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


def _clamp_causes(own: InertialDescription, a: Rigid, b: Rigid, slack: Slack) -> list[Found]:
    """Principal moments, or the mass, raised to a least value."""
    if not slack.com_same(a, b) and a.mass > slack.mass:
        return []
    for axes, which in ((None, "principal moments"), (own.origin.rotation(), "moments of inertia")):
        text = _raised_bound(a, b, slack, axes)
        if text:
            return [("inertia-clamped", f"B's {which} are A's raised to at least {text}")]
    kept = slack.inertia_same(a, b)
    if b.mass > a.mass and kept and _round(b.mass):
        before = "A's" if a.mass > 0.0 else "none in A,"
        return [("mass-clamped", f"B's mass is {before} raised to {number(b.mass)} kg; the inertia is A's")]
    return []


def _raised_bound(a: Rigid, b: Rigid, slack: Slack, axes: np.ndarray | None) -> str:
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
    raised = own > moments + max(allowed, ROUNDING_TOLERANCE * scale) + slack.inertia
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


def unknown_cause(a: Rigid, b: Rigid, slack: Slack) -> Found:
    """The finding without a known cause: rounding if it is small, else which of the three differ."""
    rough = Slack(ROUNDING_TOLERANCE, slack.mass, slack.length + ROUNDING_LENGTH, slack.inertia)
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


# ---- Mass and inertia that a program computes from the shapes of a link, instead of reading <inertial>

DENSITIES = {
    1000.0: "MuJoCo's, PhysX's and SDF's default",
    200.0: "Genesis' default",
    100.0: "",
    1.0: "",
    2700.0: "aluminium",
    7850.0: "steel",
}
"""Densities that are tried [kg/m^3]."""

LARGEST_MESH_FILE = 8 << 20  # mesh files above this size are not read for a comparison [bytes]

Finder = Callable[[str], Path | None]


def shape_candidates(body: DescribedBody, a: Rigid, find: Finder) -> Iterator[Candidate]:
    """What the link's shapes would weigh, and A's mass and inertia ``a`` spread over them."""
    for what, shapes in (("collision", body.collisions), ("visual", body.visuals)):
        unit = _solid(shapes, find)
        if unit is None or unit.mass <= 0.0:
            continue
        for density, whose in DENSITIES.items():
            said = f"{density:g} kg/m^3" + (f" ({whose})" if whose else "")
            mass, inertia = density * unit.mass, density * unit.inertia
            text = f"is that of its {what} shapes at {said}"
            yield Candidate("mass-density", f"B's mass {text}", Rigid(mass, unit.com, inertia))
            yield Candidate("mass-density", f"B's mass {text}", Rigid(mass, a.com, inertia))
            yield Candidate(
                "mass-density", f"B's mass {text}, its inertia A's", Rigid(mass, a.com, a.inertia)
            )
        if a.mass > 0.0:
            text = f"B's inertia is that of its {what} shapes, with A's mass"
            inertia = a.mass / unit.mass * unit.inertia
            yield Candidate("inertia-from-shapes", text, Rigid(a.mass, unit.com, inertia))
            yield Candidate("inertia-from-shapes", text, Rigid(a.mass, a.com, inertia))


def _solid(shapes: Sequence[DescribedShape], find: Finder) -> Rigid | None:
    """The shapes at a density of 1 kg/m^3; None where one has no volume that could be computed."""
    total = NO_MASS
    for shape in shapes:
        if shape.kind == "mesh":
            path = find(shape.file)
            if path is None or path.stat().st_size > LARGEST_MESH_FILE:
                return None
            shape = replace(shape, path=path)
        found = solid_of(shape)
        if found is None:
            return None
        total = total + Rigid(*found).at(shape.pose)
    return total
