"""Numbers of a joint that differ: limits, effort, velocity, damping, friction, rotor inertia."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator

from robokit.parity.causes.inertial_causes import CLEAR, ROUGH, ROUNDINGS, factor, number, unit_of
from robokit.parity.sides.side import SideJoint

DEGREES = 180.0 / math.pi

FAR = 1e6
"""A limit from which on a joint is unlimited [rad | m]."""

UNLIMITED = 1e3
"""Limits that are so many times A's are none."""

Found = tuple[str, str]


def near(x: float, y: float, tolerance: float) -> bool:
    """Whether two numbers agree, infinities with themselves."""
    finite = math.isfinite(x) and math.isfinite(y)
    return x == y or (finite and abs(x - y) <= tolerance * max(abs(x), abs(y)))


def limit_causes(a: SideJoint, b: SideJoint, format: str, tolerance: float) -> Iterator[Found]:
    """The cause of different position limits."""
    if a.lower is None or a.upper is None or b.lower is None or b.upper is None:
        return
    if format != "URDF":  # others write very large numbers for no limit
        a, b = (dataclasses.replace(x, lower=_far(x.lower), upper=_far(x.upper)) for x in (a, b))
    assert a.lower is not None and a.upper is not None and b.lower is not None and b.upper is not None
    ours, theirs = (a.lower, a.upper), (b.lower, b.upper)
    reach = max(abs(x) for x in (*ours, *theirs) if math.isfinite(x)) if _any_finite(ours, theirs) else 1.0

    def same(x: tuple[float, float], y: tuple[float, float], allowed: float = tolerance) -> bool:
        return all(p == q or abs(p - q) <= allowed * reach for p, q in zip(x, y, strict=True))

    if same(ours, theirs):
        return
    if a.lower == a.upper and not math.isfinite(b.lower) and format != "URDF":
        return  # MuJoCo takes no range of one position
    unit = "rad" if a.kind == "revolute" else "m"
    said = f"{number(b.lower)} .. {number(b.upper)} for {number(a.lower)} .. {number(a.upper)} {unit}"
    if same(ours, theirs, ROUGH):
        yield "rounded", f"B's limits are A's rounded: {said}"
        return
    causes = _range_cause, _range_factor  # any range is some factor of another: that comes last
    for cause, rounding in itertools.product(causes, ROUNDINGS):
        if rounding and same(ours, theirs, CLEAR * rounding):
            continue
        found = cause(ours, theirs, a.kind == "revolute", max(tolerance, rounding))
        if found is not None:
            yield found[0], f"{found[1]}: {said}"
            return
    which = [
        w
        for w, x, y in (("lower", a.lower, b.lower), ("upper", a.upper, b.upper))
        if not (x == y or abs(x - y) <= ROUGH * reach)
    ]
    yield "limits-differ", f"B's {' and '.join(which)} limit differ{'s' * (len(which) == 1)}: {said}"


Range = tuple[float, float]


def _range_cause(ours: Range, theirs: Range, turns: bool, tolerance: float) -> Found | None:
    """What makes B's range of A's; None if nothing known does."""

    def is_theirs(lower: float, upper: float) -> bool:
        reach = max((abs(x) for x in (lower, upper, *theirs) if math.isfinite(x)), default=1.0)
        pairs = zip((lower, upper), theirs, strict=True)
        return all(p == q or abs(p - q) <= tolerance * reach for p, q in pairs)

    lower, upper = ours
    unit = "rad" if turns else "m"
    if not any(map(math.isfinite, theirs)):
        return "limits-lost", "B has no limits"
    if not any(map(math.isfinite, ours)):
        return "limits-added", "B has limits, A has none"
    if theirs == (0.0, 0.0):
        return "limits-lost", "B's limits are zero, so that the joint cannot move"
    if turns and is_theirs(lower * DEGREES, upper * DEGREES):
        return "limits-degrees", "B's limits are A's in degrees, read as radians"
    if turns and is_theirs(lower / DEGREES, upper / DEGREES):
        return "limits-degrees", "B's limits are A's radians, read as degrees"
    if is_theirs(upper, lower):
        return "limits-swapped", "B's lower and upper limit are exchanged"
    if is_theirs(-upper, -lower):
        return "limits-negated", "B's limits are A's negated, but not its axis"
    if is_theirs(-lower, -upper):
        return "limits-swapped", "B's limits are A's with the signs exchanged"
    if not all(map(math.isfinite, (*ours, *theirs))):
        return None
    if turns and any(is_theirs(-k * math.pi, k * math.pi) for k in (1.0, 2.0, 4.0)):
        return "limits-lost", "B's limits are whole turns, a default"
    reach = max(map(abs, (*ours, *theirs)))
    if reach >= UNLIMITED * max(map(abs, ours)) and -theirs[0] == theirs[1]:
        return "limits-lost", "B's limits are so wide that they are none"
    shift = theirs[0] - lower
    if abs(theirs[1] - upper - shift) <= tolerance * reach:
        return "limits-shifted", f"B's limits are A's plus {number(shift)} {unit}"
    return None


def _range_factor(ours: Range, theirs: Range, _: bool, tolerance: float) -> Found | None:
    if not all(map(math.isfinite, (*ours, *theirs))):
        return None
    ratios = [y / x for x, y in zip(ours, theirs, strict=True) if x]
    zeros = all(y == 0.0 for x, y in zip(ours, theirs, strict=True) if not x)
    if zeros and ratios and all(near(ratios[0], ratio, 10 * tolerance) for ratio in ratios):
        k = ratios[0]
        if len(ratios) == 2 or unit_of(k):  # one number alone is any other number times something
            said = factor(k) if "metres" in unit_of(k) else number(k)
            return "limits-scaled", f"B's limits are A's times {said}"
    return None


def _far(x: float | None) -> float | None:
    return math.copysign(math.inf, x) if x is not None and abs(x) >= FAR else x


def _any_finite(*pairs: tuple[float, float]) -> bool:
    return any(math.isfinite(x) for pair in pairs for x in pair)


def value_causes(a: SideJoint, b: SideJoint, tolerance: float) -> Iterator[Found]:
    """The causes of different effort, velocity, damping, friction and armature."""
    turns = a.kind == "revolute"
    (least, effort), velocity = _efforts(a), _limit(a.velocity)
    (their_least, their_effort), their_velocity = _efforts(b), _limit(b.velocity)
    if (
        None not in (effort, velocity, their_effort, their_velocity)
        and not near(effort, velocity, tolerance)  # type: ignore[arg-type]
        and near(effort, their_velocity, tolerance)  # type: ignore[arg-type]
        and near(velocity, their_effort, tolerance)  # type: ignore[arg-type]
    ):
        yield "effort-velocity-swapped", "B's limits of effort and velocity are exchanged"
    else:
        yield from _effort((least, effort), (their_least, their_effort), tolerance)
        yield from _value("velocity", velocity, their_velocity, math.inf, turns, tolerance)
    pairs = (a.damping, b.damping), (a.friction, b.friction)
    if (
        None not in (*pairs[0], *pairs[1])
        and not near(a.damping, a.friction, tolerance)  # type: ignore[arg-type]
        and near(a.damping, b.friction, tolerance)  # type: ignore[arg-type]
        and near(a.friction, b.damping, tolerance)  # type: ignore[arg-type]
    ):
        yield "damping-friction-swapped", "B's damping and friction are exchanged"
    else:
        yield from _value("damping", *pairs[0], 0.0, turns, tolerance)
        yield from _value("friction", *pairs[1], 0.0, False, tolerance)
    yield from _value("armature", a.armature, b.armature, 0.0, False, tolerance)


Efforts = tuple[float | None, float | None]
"""The least and the largest effort, None where they are not known."""


def _efforts(joint: SideJoint) -> Efforts:
    least, most = joint.effort_lower, joint.effort
    if least is not None and (least or most):
        return least, most  # of a range only one end may be zero
    most = _limit(most)
    return None if most is None else -most, most


def _effort(a: Efforts, b: Efforts, tolerance: float) -> Iterator[Found]:
    """The causes of different ranges of effort: of both ends alike, or of either."""
    if None in (*a, *b):
        return
    (least, most), (their_least, their_most) = a, b
    assert least is not None and most is not None and their_least is not None and their_most is not None
    up, down = (
        list(_value("effort", x, y, math.inf, False, tolerance))
        for x, y in ((most, their_most), (-least, -their_least))
    )
    if not up and not down:
        return
    one_factor = near(their_least * most, their_most * least, tolerance)
    lost = math.isinf(their_most) and math.isinf(their_least)
    causes = [[cause for cause, _ in found] for found in (up, down)]
    if causes[0] == causes[1] and (one_factor or lost or causes[0] == ["rounded"]):
        yield from up
        return
    if {cause for cause, _ in (*up, *down)} == {"rounded"}:
        yield (*up, *down)[0]
        return
    ours, theirs = (f"{number(x)} .. {number(y)}" for x, y in ((least, most), (their_least, their_most)))
    yield "effort-range", f"B's range of effort is another: {theirs} for {ours}"


def _limit(x: float | None) -> float | None:
    """Exporters write 0 for an effort or velocity limit that they do not know."""
    return math.inf if x == 0.0 else x


def _value(
    what: str, a: float | None, b: float | None, none: float, angular: bool, tolerance: float
) -> Iterator[Found]:
    if a is None or b is None or near(a, b, tolerance):
        return
    name = {"effort": "limit of effort", "velocity": "limit of velocity", "armature": "rotor inertia"}.get(
        what, what
    )
    said = f"{number(b)} for {number(a)}"
    if b == none:
        yield f"{what}-lost", f"B has no {name}; A's is {number(a)}"
    elif a == none:
        yield f"{what}-added", f"B has a {name} of {number(b)}; A has none"
    elif angular and any(near(b, a * k, 10 * tolerance) for k in (DEGREES, 1.0 / DEGREES)):
        way = "in degrees, read as radians" if abs(b) > abs(a) else "in radians, read as degrees"
        yield f"{what}-degrees", f"B's {name} is A's {way}: {said}"
    elif near(a, b, ROUGH):
        yield "rounded", f"B's {name} is A's rounded: {said}"
    else:
        yield f"{what}-scaled", f"B's {name} is A's times {factor(b / a)}: {said}"
