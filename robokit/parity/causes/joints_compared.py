"""Joints of B beside those of A: kind, axis, limits, passive forces, mimic laws."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from robokit.model.geometry import Placement
from robokit.parity.causes.alignment import Alignment
from robokit.parity.causes.finding import Finding
from robokit.parity.causes.inertial_causes import CLEAR, ROUGH, number
from robokit.parity.causes.limit_causes import limit_causes, value_causes
from robokit.parity.causes.pairing import Pairing
from robokit.parity.sides.side import SideJoint
from robokit.urdf.description import InertialDescription

ANGLE = 1e-4
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
        for cause, text in _one(joint, other, R, pairing, tolerance, axis_also):
            also = tuple(axis_also) if cause.startswith("axis-") and cause != "axis-length" else ()
            yield Finding(cause, "joint", joint.name, _line(joint, cause), text, also)
        if joint.name not in placed and joint.kind == other.kind:
            for cause, text in _anchor(joint, other, maps[joint.child], tolerance, size):
                yield Finding(cause, "joint", joint.name, _line(joint, cause), text)
    yield from _extra(pairing)


def _line(joint: SideJoint, cause: str) -> int:
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


def _absent(joint: SideJoint, pairing: Pairing) -> Finding:
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


def _one(
    a: SideJoint, b: SideJoint, R: np.ndarray, pairing: Pairing, tolerance: float, also: list[str]
) -> Iterator[Found]:
    if a.kind != b.kind:
        yield "joint-type", f"{b.kind} in B, {a.kind} in A"
        return
    flipped = False
    if a.kind in ("revolute", "prismatic", "planar"):
        for found in _axis(a, R @ b.axis, pairing, tolerance, also):
            flipped = found[0] == "axis-flipped"
            if flipped and _negated(a, b, tolerance) and not _symmetric(a, tolerance):
                found = (found[0], found[1] + "; its limits are negated too: q of B is -q of A")
            yield found
    if a.written is not None and b.written is not None and a.written.has_axis:
        ours, theirs = math.hypot(*a.written.axis), math.hypot(*b.written.axis)
        if abs(theirs - ours) > 1e-3 * max(ours, theirs):
            text = (
                f"B's axis has length {number(theirs)} (its line {b.written.axis_line}), A's {number(ours)}"
            )
            yield "axis-length", f"{text}: not every reader normalises"
    if not (flipped and _negated(a, b, tolerance)):
        yield from limit_causes(a, b, pairing.b.side.format, tolerance)
    yield from value_causes(a, b, tolerance)
    if b.stiffness and not a.stiffness:
        yield "spring-added", f"B has a spring of {number(b.stiffness)} in it; A has none"


def _anchor(a: SideJoint, b: SideJoint, lay: Placement, tolerance: float, size: float) -> Iterator[Found]:
    """Whether B's joint turns about another line or point than A's, although B's child link is where A's is.

    Formats other than URDF place a joint apart from its child's frame. Lines that are not parallel are told
    by their axes.
    """
    off = lay.rotation @ b.anchor + lay.position - a.anchor
    if a.kind == "revolute":
        if float(np.linalg.norm(np.cross(lay.rotation @ b.axis, a.axis))) > ANGLE:
            return
        off = np.cross(off, a.axis)
    elif a.kind != "spherical":  # a slide is everywhere the same, and free bodies have no anchor
        return
    far = float(np.linalg.norm(off))
    if far <= 10 * tolerance * size:
        return
    if far <= ROUGH * size:
        yield "rounded", "B's anchor is A's rounded"
        return
    what = "an axis" if a.kind == "revolute" else "a point"
    yield (
        "origin-differs",
        f"B turns it about {what} {number(far * 1e3)} mm away from A's; no known cause fits",
    )


def _negated(a: SideJoint, b: SideJoint, tolerance: float) -> bool:
    if a.lower is None or b.lower is None or a.upper is None or b.upper is None:
        return False
    pairs = (-a.lower, b.upper), (-a.upper, b.lower)
    return all(x == y or abs(x - y) <= tolerance * max(1.0, abs(x)) for x, y in pairs)


def _symmetric(a: SideJoint, tolerance: float) -> bool:
    return a.lower is not None and a.upper is not None and abs(a.lower + a.upper) <= tolerance


def _axis(
    a: SideJoint, axis: np.ndarray, pairing: Pairing, tolerance: float, also: list[str]
) -> Iterator[Found]:
    """Why B's axis, turned into A's world, is not A's; other causes of the same go to ``also``."""
    off = float(np.linalg.norm(axis - a.axis))
    if off <= 10 * tolerance or (a.kind == "planar" and np.linalg.norm(axis + a.axis) <= 10 * tolerance):
        return
    line = a.written.axis_line if a.written else 0
    same: list[Found] = []
    for allowed in (10 * tolerance, ANGLE):
        if not same and (allowed < ANGLE or off > CLEAR * ANGLE):
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
    if off <= ANGLE:
        yield "rounded", "B's axis is A's rounded"
        return
    angle = math.degrees(math.acos(max(-1.0, min(1.0, float(axis @ a.axis)))))
    yield "axis-differs", f"B's axis is {number(angle)} deg from A's; no known cause fits"


def _axes(a: SideJoint, pairing: Pairing) -> Iterator[tuple[str, str, np.ndarray]]:
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
