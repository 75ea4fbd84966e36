"""Joints of B beside those of A: kind, axis, limits, passive forces, mimic laws."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator

import numpy as np

from robokit.formats.description import DescribedJoint, Description, Law, Relation
from robokit.model.geometry import Placement
from robokit.parity.inertials import CAUSE_THRESHOLD, ROUNDING_TOLERANCE, ROUNDINGS, factor, number, unit_of
from robokit.parity.matching import Alignment, Pairing
from robokit.parity.verdict import Finding
from robokit.urdf.description import InertialDescription

AXIS_TOLERANCE = 1e-4
"""Angle between two axes that rounding of the file may make [rad]."""

Found = tuple[str, str]


def joint_findings(
    pairing: Pairing, alignment: Alignment, tolerance: float, size: float
) -> Iterator[Finding]:
    """One finding for each property of a joint that differs.

    Args:
        pairing, alignment: what belongs together, and where it is; joints whose misplacement is told there
            are not told again.
        tolerance: largest relative difference that counts as none.
        size: of the robot [m].
    """
    maps = alignment.maps
    placed = {finding.name for finding in alignment.findings}
    for joint in pairing.a.side.movable:
        other = pairing.joints.get(joint.name)
        if other is None:
            yield _absent(joint, pairing)
            continue
        R = maps[joint.child].rotation
        axis_also: list[str] = []
        for cause, text in _one_joint(joint, other, R, pairing, tolerance, axis_also):
            also = tuple(axis_also) if cause.startswith("axis-") and cause != "axis-length" else ()
            yield Finding(cause, "joint", joint.name, _line(joint, cause), text, also)
        if joint.name not in placed and joint.kind == other.kind:
            for cause, text in _anchor(joint, other, maps[joint.child], tolerance, size):
                yield Finding(cause, "joint", joint.name, _line(joint, cause), text)
    yield from _extra(pairing)


def _line(joint: DescribedJoint, cause: str) -> int:
    written = joint.written
    if written is None:
        return 0
    part = cause.split("-")[0]
    if part == "axis":
        return written.axis_line
    if part in ("limits", "effort", "velocity") and written.limit is not None:
        return written.limit.line
    if part in ("damping", "friction", "armature") and written.dynamics is not None:
        return written.dynamics.line
    if part == "mimic" and written.mimic is not None:
        return written.mimic.line
    return written.line


def _absent(joint: DescribedJoint, pairing: Pairing) -> Finding:
    line = joint.written.line if joint.written else 0
    child, parent = pairing.home.get(joint.child), pairing.home.get(joint.parent)
    if child is not None and parent is not None:
        groups = pairing.b.group
        if groups[child] == groups[parent]:
            return Finding("joint-welded", "joint", joint.name, line, f"B has it fixed; A's is {joint.kind}")
    return Finding("joint-missing", "joint", joint.name, line, "B has no such joint")


def _extra(pairing: Pairing) -> Iterator[Finding]:
    taken = {id(joint) for joint in pairing.joints.values()}
    links: dict[str, list[str]] = {}
    for each, body in pairing.home.items():
        links.setdefault(body, []).append(each)
    for joint in pairing.b.side.movable:
        if id(joint) in taken:
            continue
        link = next((name for name in links.get(joint.child, []) if name in pairing.direct), None)
        ours = pairing.a.into.get(link) if link is not None else None
        if ours is not None and not ours.moves:
            line = ours.written.line if ours.written else 0
            yield Finding("joint-freed", "joint", ours.name, line, f"fixed in A, {joint.kind} in B")
        else:
            yield Finding("joint-added", "joint", joint.name, 0, f"only B has it; it is {joint.kind}")


def _one_joint(
    a: DescribedJoint, b: DescribedJoint, R: np.ndarray, pairing: Pairing, tolerance: float, also: list[str]
) -> Iterator[Found]:
    if a.kind != b.kind:
        yield "joint-type", f"{b.kind} in B, {a.kind} in A"
        return
    flipped = False
    if a.kind in ("revolute", "prismatic", "planar"):
        for found in _axis(a, R @ b.axis, pairing, tolerance, also):
            flipped = found[0] == "axis-flipped"
            if flipped and _limits_are_negated(a, b, tolerance) and not _limits_are_symmetric(a, tolerance):
                found = (found[0], found[1] + "; its limits are negated too: q of B is -q of A")
            yield found
    if a.written is not None and b.written is not None and a.written.has_axis:
        ours, theirs = math.hypot(*a.written.axis), math.hypot(*b.written.axis)
        if abs(theirs - ours) > 1e-3 * max(ours, theirs):
            text = (
                f"B's axis has length {number(theirs)} (its line {b.written.axis_line}), A's {number(ours)}"
            )
            yield "axis-length", f"{text}: not every reader normalises"
    if not (flipped and _limits_are_negated(a, b, tolerance)):
        yield from limit_causes(a, b, pairing.b.side.format, tolerance)
    yield from value_causes(a, b, tolerance)
    if b.stiffness and not a.stiffness:
        yield "spring-added", f"B has a spring of {number(b.stiffness)} in it; A has none"


def _anchor(
    a: DescribedJoint, b: DescribedJoint, lay: Placement, tolerance: float, size: float
) -> Iterator[Found]:
    """Whether B's joint turns about another line or point than A's, although B's child link is where A's is.

    Formats other than URDF place a joint apart from its child's frame. Lines that are not parallel are told
    by their axes.
    """
    off = lay.rotation @ b.anchor + lay.position - a.anchor
    if a.kind == "revolute":
        if float(np.linalg.norm(np.cross(lay.rotation @ b.axis, a.axis))) > AXIS_TOLERANCE:
            return
        off = np.cross(off, a.axis)
    elif a.kind != "spherical":  # a slide is everywhere the same, and free bodies have no anchor
        return
    far = float(np.linalg.norm(off))
    if far <= 10 * tolerance * size:
        return
    if far <= ROUNDING_TOLERANCE * size:
        yield "rounded", "B's anchor is A's rounded"
        return
    what = "an axis" if a.kind == "revolute" else "a point"
    yield (
        "origin-differs",
        f"B turns it about {what} {number(far * 1e3)} mm away from A's; no known cause fits",
    )


def _limits_are_negated(a: DescribedJoint, b: DescribedJoint, tolerance: float) -> bool:
    if a.lower is None or b.lower is None or a.upper is None or b.upper is None:
        return False
    pairs = (-a.lower, b.upper), (-a.upper, b.lower)
    return all(x == y or abs(x - y) <= tolerance * max(1.0, abs(x)) for x, y in pairs)


def _limits_are_symmetric(a: DescribedJoint, tolerance: float) -> bool:
    return a.lower is not None and a.upper is not None and abs(a.lower + a.upper) <= tolerance


def _axis(
    a: DescribedJoint, axis: np.ndarray, pairing: Pairing, tolerance: float, also: list[str]
) -> Iterator[Found]:
    """Why B's axis, turned into A's world, is not A's; other causes of the same go to ``also``."""
    off = float(np.linalg.norm(axis - a.axis))
    if off <= 10 * tolerance or (a.kind == "planar" and np.linalg.norm(axis + a.axis) <= 10 * tolerance):
        return
    line = a.written.axis_line if a.written else 0
    same: list[Found] = []
    for allowed in (10 * tolerance, AXIS_TOLERANCE):
        if not same and (allowed < AXIS_TOLERANCE or off > CAUSE_THRESHOLD * AXIS_TOLERANCE):
            same = [
                (cause, text)
                for cause, text, candidate in _axes(a, pairing)
                if float(np.linalg.norm(axis - candidate)) <= allowed
            ]
    if same:
        cause, text = same[0]
        also += dict.fromkeys(other for other, _ in same[1:] if other != cause)
        yield cause, f"B's axis is A's of line {line} {text}" if cause != "axis-default" else text
        return
    if off <= AXIS_TOLERANCE:
        yield "rounded", "B's axis is A's rounded"
        return
    angle = math.degrees(math.acos(max(-1.0, min(1.0, float(axis @ a.axis)))))
    yield "axis-differs", f"B's axis is {number(angle)} deg from A's; no known cause fits"


def _axes(a: DescribedJoint, pairing: Pairing) -> Iterator[tuple[str, str, np.ndarray]]:
    yield "axis-flipped", "negated", -a.axis
    if a.written is None:
        return
    bodies = pairing.a.side.bodies
    child, parent = bodies[a.child].pose.rotation, bodies[a.parent].pose.rotation
    own = np.array(a.written.axis) / (math.hypot(*a.written.axis) or 1.0)
    yield "axis-frame", "taken in the parent's axes", parent @ own
    yield "axis-frame", "turned twice by the joint's origin", child @ parent.T @ child @ own
    yield "axis-frame", "taken in the world's axes", own
    for axis, whose in (((1, 0, 0), "URDF's"), ((0, 0, 1), "MJCF's, SDF's and many programs'")):
        text = (
            f"B's axis is {' '.join(map(str, axis))}, {whose} default, not that of line {a.written.axis_line}"
        )
        yield "axis-default", text, child @ np.array(axis, dtype=float)
    link = bodies[a.child].written
    if link is not None and link.inertial is not None:
        turned = _inertial_axes(link.inertial)
        yield "axis-frame", "turned by the link's inertial rotation", child @ turned @ own
        yield "axis-frame", "turned back by the link's inertial rotation", child @ turned.T @ own
    nearest = np.zeros(3)
    k = int(np.abs(own).argmax())
    nearest[k] = math.copysign(1.0, own[k])
    yield "axis-snapped", "moved to the nearest of x, y and z", child @ nearest
    for order in ((1, 2, 0), (2, 0, 1), (1, 0, 2), (0, 2, 1), (2, 1, 0)):
        letters = "".join("xyz"[i] for i in order)
        yield "axis-permuted", f"with x, y, z in the order {letters}", child @ own[list(order)]


def _inertial_axes(inertial: InertialDescription) -> np.ndarray:
    return np.asarray(inertial.origin.rotation())


# Numbers of a joint that differ: limits, effort, velocity, damping, friction, rotor inertia
# ------------------------------------------------------------------------------------------

DEGREES = 180.0 / math.pi

UNLIMITED_POSITION = 1e6
"""A limit from which on a joint is unlimited [rad | m]."""

UNLIMITED_RATIO = 1e3
"""Limits that are so many times A's are none."""


def near(x: float, y: float, tolerance: float) -> bool:
    """Whether two numbers agree, infinities with themselves."""
    finite = math.isfinite(x) and math.isfinite(y)
    return x == y or (finite and abs(x - y) <= tolerance * max(abs(x), abs(y)))


def limit_causes(a: DescribedJoint, b: DescribedJoint, format: str, tolerance: float) -> Iterator[Found]:
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
    if same(ours, theirs, ROUNDING_TOLERANCE):
        yield "rounded", f"B's limits are A's rounded: {said}"
        return
    causes = _range_cause, _range_factor  # any range is some factor of another: that comes last
    for cause, rounding in itertools.product(causes, ROUNDINGS):
        if rounding and same(ours, theirs, CAUSE_THRESHOLD * rounding):
            continue
        found = cause(ours, theirs, a.kind == "revolute", max(tolerance, rounding))
        if found is not None:
            yield found[0], f"{found[1]}: {said}"
            return
    which = [
        w
        for w, x, y in (("lower", a.lower, b.lower), ("upper", a.upper, b.upper))
        if not (x == y or abs(x - y) <= ROUNDING_TOLERANCE * reach)
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
    if reach >= UNLIMITED_RATIO * max(map(abs, ours)) and -theirs[0] == theirs[1]:
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
    return math.copysign(math.inf, x) if x is not None and abs(x) >= UNLIMITED_POSITION else x


def _any_finite(*pairs: tuple[float, float]) -> bool:
    return any(math.isfinite(x) for pair in pairs for x in pair)


def value_causes(a: DescribedJoint, b: DescribedJoint, tolerance: float) -> Iterator[Found]:
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
"""Least and largest effort, None where not known."""


def _efforts(joint: DescribedJoint) -> Efforts:
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
    elif near(a, b, ROUNDING_TOLERANCE):
        yield "rounded", f"B's {name} is A's rounded: {said}"
    else:
        yield f"{what}-scaled", f"B's {name} is A's times {factor(b / a)}: {said}"


# Mimic laws: dropped, changed, or at work together with an actuator
# ------------------------------------------------------------------


def mimic_findings(pairing: Pairing, tolerance: float) -> Iterator[Finding]:
    """One finding for each joint whose law differs, and each relation that only B has.

    Straight laws are linear equations between joints. A law is the same if it follows from the other side's
    equations, whichever of them is written, in which direction, through which other joints or tendon.
    """
    a, b = pairing.a.side, pairing.b.side
    back = {theirs.name: mine for mine, theirs in pairing.joints.items()}
    ours, theirs = Couplings(a, {}, tolerance), Couplings(b, back, tolerance)
    ends = {joint.name: joint for joint in a.joints}, {joint.name: joint for joint in b.joints}
    told = set()
    for joint in a.movable:
        other = pairing.joints.get(joint.name)
        if other is None or joint.laws is None or other.laws is None:
            continue
        line = joint.written.mimic.line if joint.written and joint.written.mimic else 0
        line = line or (joint.written.line if joint.written else 0)
        found = [*_driven_twice(joint, other)]
        curved = [law for law in other.laws if _law_of_leader(law, ends[1]).curve]
        if curved:
            found.append(("mimic-curved", f"B's law is no straight line: {_power_series(curved[0])}"))
        elif not (theirs.hold(ours.of(joint)) and ours.hold(theirs.of(other))):
            found += _one_law(joint, other, *ends, back, theirs.relations, tolerance)
        for cause, text in found:
            told.add(joint.name)
            yield Finding(cause, "joint", joint.name, line, text)
    for relation in b.relations:
        names = [back.get(name, name) for name in relation.factors]
        if not ours.hold([theirs.equation(relation.factors, relation.constant)]) and not told & set(names):
            text = f"{relation.name or 'a tendon'} of B couples {' and '.join(names)}; A does not"
            yield Finding("mimic-added", "joint", names[0], 0, text)


Equation = tuple[dict[str, float], float]
"""Factors of joints, by A's names, and the constant that the sum is."""


class Couplings:
    """The linear equations between the joints of a side.

    Args:
        side: the description.
        names: name of its joint -> name in A.
        tolerance: largest relative difference that counts as none.
    """

    def __init__(self, side: Description, names: dict[str, str], tolerance: float) -> None:
        self.names, self.tolerance, self.relations = names, tolerance, side.relations
        self.fixed = {joint.name for joint in side.joints if not joint.moves and joint.name}
        self.equations = [equation for joint in side.joints for equation in self.of(joint)]
        self.equations += [self.equation(each.factors, each.constant) for each in side.relations]

    def of(self, joint: DescribedJoint) -> list[Equation]:
        """The equations that the joint's straight laws are."""
        return [
            self.equation({joint.name: 1.0, law.leader: -law.multiplier}, law.offset)
            for law in joint.laws or ()
            if not law.curve
        ]

    def equation(self, factors: dict[str, float], constant: float) -> Equation:
        """An equation with A's names; fixed joints stand at zero."""
        kept = {n: x for n, x in factors.items() if n and x and n not in self.fixed}
        return {self.names.get(n, n): x for n, x in kept.items()}, constant

    def hold(self, equations: list[Equation]) -> bool:
        """Whether equations follow from those of this side."""
        return all(self._follows(*equation) for equation in equations)

    def _follows(self, factors: dict[str, float], constant: float) -> bool:
        names = sorted({name for equation in (*self.equations, (factors, 0.0)) for name in equation[0]})
        if not self.equations:
            return False
        rows = np.array([[own.get(name, 0.0) for name in names] for own, _ in self.equations])
        sums = np.array([sum_ for _, sum_ in self.equations])
        wanted = np.array([factors.get(name, 0.0) for name in names])
        weights = np.linalg.lstsq(rows.T, wanted, rcond=None)[0]
        off = np.abs(weights @ rows - wanted)
        ours = float(weights @ sums)
        # 2: an equation and its reverse are each within the tolerance of their own multiplier.
        straight = bool(
            (off <= 2.0 * self.tolerance * np.abs(wanted) + 1e-12 * np.abs(wanted).max(initial=0.0)).all()
        )
        return straight and abs(ours - constant) <= 2.0 * self.tolerance * max(abs(constant), 1e-6)


def _power_series(law: Law) -> str:
    terms = enumerate((law.offset, law.multiplier, *law.curve))
    return " + ".join(f"{number(x)} q^{k}" if k > 1 else f"{number(x)} q" if k else number(x)
                      for k, x in terms if x)  # fmt: skip


def _driven_twice(a: DescribedJoint, b: DescribedJoint) -> Iterator[Found]:
    assert b.laws is not None
    if a.laws and b.laws:
        if len(b.laws) > 1:
            yield "mimic-twice", f"B drives it twice: {len(b.laws)} mimic laws act on it"
        elif b.drives and not a.drives:
            yield "mimic-twice", "B drives it twice: by its mimic law and by an actuator"


def _one_law(
    a: DescribedJoint,
    b: DescribedJoint,
    ours: dict[str, DescribedJoint],
    theirs: dict[str, DescribedJoint],
    back: dict[str, str],
    relations: list[Relation],
    tolerance: float,
) -> Iterator[Found]:
    """Why laws that do not follow from each other differ."""
    assert a.laws is not None and b.laws is not None
    if not a.laws:
        law = b.laws[0]
        yield "mimic-added", f"B {_follows(law)}; A does not"
        return
    law = a.laws[0]
    direct = b.laws[0] if b.laws else _of_a_tendon(b.name, law.leader, relations, back)
    if direct is None:
        yield "mimic-dropped", f"B has no mimic law; in A it follows {law.leader!r}"
        return
    mine, his = _law_of_leader(law, ours), _law_of_leader(direct, theirs)
    leaders = {back.get(his.leader, his.leader), back.get(direct.leader, direct.leader)}
    if law.leader not in leaders and mine.leader not in leaders:
        yield "mimic-leader", f"B {_follows(direct)}; in A it follows {law.leader!r}"
        return
    same_leader = back.get(direct.leader, direct.leader) == law.leader
    other = direct if same_leader else his
    yield from _numbers(law if same_leader else mine, other.multiplier, other.offset, tolerance)


def _follows(law: Law) -> str:
    return f"makes it follow {law.leader!r}" if law.leader else f"holds it at {number(law.offset)}"


def _of_a_tendon(name: str, leader: str, relations: list[Relation], back: dict[str, str]) -> Law | None:
    """The law that a relation of two joints is, where one of them is the leader's counterpart."""
    for relation in relations:
        others = [n for n in relation.factors if n != name]
        own = relation.factors.get(name, 0.0)
        if own and len(others) == 1 and back.get(others[0], others[0]) == leader:
            return Law(others[0], -relation.factors[others[0]] / own, relation.constant / own)
    return None


def _numbers(law: Law, k: float, o: float, tolerance: float) -> Iterator[Found]:
    m, off = law.multiplier, law.offset
    if near(k, m, ROUNDING_TOLERANCE) and (near(o, off, ROUNDING_TOLERANCE) or abs(o - off) <= 1e-12):
        yield "rounded", "B's mimic law is A's rounded"
        return
    said = f"{number(k)} for {number(m)}"
    if not near(k, m, tolerance):
        if near(k, -m, tolerance):
            yield "mimic-multiplier", f"B's multiplier is A's negated: {said}"
        elif m and near(k, 1.0 / m, tolerance):
            yield "mimic-inverted", f"B's multiplier is the inverse of A's: {said}"
        elif near(k, m * m, tolerance):
            yield "mimic-twice", f"B applies the multiplier twice: {said}"
        elif near(k, 1.0, tolerance):
            yield "mimic-multiplier", f"B leaves the multiplier out: {said}"
        else:
            yield "mimic-multiplier", f"B's multiplier differs: {said}"
    if not near(o, off, tolerance) and abs(o - off) > 1e-12:
        said = f"{number(o)} for {number(off)}"
        if o == 0.0:
            yield "mimic-offset", f"B leaves the offset out: {said}"
        elif near(o, -off, tolerance):
            yield "mimic-offset", f"B's offset is A's negated: {said}"
        elif any(near(o, off * u, tolerance) for u in (180.0 / math.pi, math.pi / 180.0)):
            yield "mimic-offset", f"B's offset is A's with degrees for radians: {said}"
        else:
            yield "mimic-offset", f"B's offset differs: {said}"


def _law_of_leader(law: Law, joints: dict[str, DescribedJoint]) -> Law:
    """The law of the joint at the end of a chain of mimics; a constant where that joint is fixed."""
    seen = set()
    series = np.polynomial.Polynomial([law.offset, law.multiplier, *law.curve])
    leader = law.leader
    while leader in joints and leader not in seen:
        seen.add(leader)
        if not joints[leader].moves:
            leader = ""
            break
        further = joints[leader].laws
        if not further:
            break
        up = further[0]
        series = series(np.polynomial.Polynomial([up.offset, up.multiplier, *up.curve]))
        leader = up.leader
    offset, multiplier, *curve = (
        float(x) for x in [*series.trim().coef, 0.0, 0.0][: max(2, series.trim().degree() + 1)]
    )
    if not leader or not (multiplier or curve):
        return Law("", 0.0, offset)
    return Law(leader, multiplier, offset, tuple(curve))
