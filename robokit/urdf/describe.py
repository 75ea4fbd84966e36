"""The description of a robot, as a URDF of it would have it: what :mod:`robokit.urdf.dump` writes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from robokit.model.geometry import Placement, Shape
from robokit.model.parts import Joint, Link, LoopJoint
from robokit.model.robot import Robot
from robokit.model.walks import joints_in_order
from robokit.spatial.sines import sine_and_cosine
from robokit.urdf.description import (
    JOINT_TYPES,
    CalibrationDescription,
    DynamicsDescription,
    InertialDescription,
    JointDescription,
    LimitDescription,
    LinkDescription,
    LoopDescription,
    MaterialDescription,
    MimicDescription,
    Origin,
    RobotDescription,
    SafetyDescription,
    ShapeDescription,
    Triple,
)

_EXACT = 1e-12  # largest error of a rotation written as roll, pitch, yaw that is rounding
_ROUNDING = 5e-16  # error for which angles of fifteen decimals are preferred
_STEPS = 4  # doubles beside a computed angle among which the one that was written is looked for


@dataclass
class Losses:
    """What a URDF cannot hold.

    Attributes:
        refused: reasons not to write.
        dropped: what is left out of the text.
    """

    refused: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)


def describe(robot: Robot, losses: Losses) -> RobotDescription:
    """The description; what does not fit into one goes to ``losses``."""
    materials: dict[tuple, MaterialDescription] = {}
    return RobotDescription(
        robot.name,
        tuple(_link(link, materials, losses) for link in robot.links),
        tuple(_joint(joint, losses) for joint in joints_in_order(robot)),
        tuple(materials.values()),
        robot.source,
        loops=tuple(_loop(loop, losses) for loop in robot.loop_joints),
    )


def _link(link: Link, materials: dict[tuple, MaterialDescription], losses: Losses) -> LinkDescription:
    where = f"link {link.name!r}"
    visuals = tuple(_shape(s, f"{where} visual", materials, losses) for s in link.visuals)
    collisions = tuple(_shape(s, f"{where} collision", materials, losses) for s in link.collisions)
    inertial = None
    I = link.inertia
    if link.mass or link.com.any() or I.any():
        six = tuple(float(I[i, j]) for i, j in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)))
        origin = Origin(tuple(link.com.tolist()))  # type: ignore[arg-type]
        inertial = InertialDescription(link.mass, six, origin)  # type: ignore[arg-type]
    return LinkDescription(link.name, inertial, visuals, collisions)


def _shape(
    shape: Shape, where: str, materials: dict[tuple, MaterialDescription], losses: Losses
) -> ShapeDescription:
    material, texture = None, shape.texture_filename or shape.texture
    if shape.rgba is not None or texture is not None:
        looks = (shape.rgba, texture)
        if looks not in materials:
            materials[looks] = MaterialDescription(f"material_{len(materials) + 1}", shape.rgba, texture)
        material = MaterialDescription(materials[looks].name)
    return ShapeDescription(shape.geometry, _origin(shape.placement, where, losses), shape.name, material)


def _joint(joint: Joint, losses: Losses) -> JointDescription:
    where, kind = f"joint {joint.name!r}", joint.kind
    if kind not in JOINT_TYPES:
        losses.refused.append(f"{where} is {kind}; URDF has {', '.join(JOINT_TYPES)}")
    ends = [joint.lower, joint.upper]
    bounded = [math.isfinite(x) for x in ends]
    if kind in ("revolute", "prismatic"):
        if any(bounded) != all(bounded):
            losses.refused.append(
                f"{where} has the limits {ends[0]:g} and {ends[1]:g}; URDF has no one-sided limit, give both"
            )
    elif any(bounded) and kind != "fixed":
        losses.dropped.append(f"the position limits of {where}, which is {kind}")
        bounded = [False, False]
    effort, velocity = (_finite(x) for x in (joint.effort, joint.velocity))
    limit = None
    if all(bounded) or effort is not None or velocity is not None:
        lower, upper = ends if all(bounded) else (None, None)
        limit = LimitDescription(lower, upper, effort, velocity)
    dynamics = None
    if joint.damping or joint.friction or joint.armature:
        dynamics = DynamicsDescription(joint.damping, joint.friction, armature=joint.armature)
    m = joint.mimic
    mimic = MimicDescription(m.joint, m.multiplier, m.offset) if m is not None else None
    s, c = joint.safety, joint.calibration
    safety = (
        SafetyDescription(s.soft_lower_limit, s.soft_upper_limit, s.k_position, s.k_velocity) if s else None
    )
    calibration = CalibrationDescription(c.rising, c.falling, c.reference_position) if c else None
    return JointDescription(
        joint.name,
        kind,
        joint.parent_link,
        joint.child_link,
        _origin(joint.origin, where, losses),
        _triple(joint.axis),
        limit,
        dynamics,
        safety,
        calibration,
        mimic,
    )


def _loop(loop: LoopJoint, losses: Losses) -> LoopDescription:
    where = f"loop joint {loop.name!r}"
    return LoopDescription(
        loop.name,
        loop.kind,
        loop.predecessor,
        loop.successor,
        _origin(loop.predecessor_placement, where, losses),
        _origin(loop.successor_placement, where, losses),
        _triple(loop.axis),
    )


def _finite(x: float) -> float | None:
    return x if math.isfinite(x) else None


def _triple(x: np.ndarray) -> Triple:
    return tuple(x.tolist())  # type: ignore[return-value]


def _origin(placement: Placement, where: str, losses: Losses) -> Origin:
    rpy = roll_pitch_yaw(placement.rotation)
    off = _error(rpy, placement.rotation)
    if not off < _EXACT:
        losses.dropped.append(f"{off:.1g} of a rotation of {where}, which is not orthonormal")
    return Origin(_triple(placement.position), rpy)


def roll_pitch_yaw(R: np.ndarray) -> Triple:
    """Angles [rad] with Rz(yaw) Ry(pitch) Rx(roll) = R, to rounding; at pitch = +-pi/2 one of many.

    Where angles near by give R to the last bit, they are the shortest such: those of a URDF are found again.
    """
    if np.array_equal(R, np.eye(3)):
        return (0.0, 0.0, 0.0)
    rows: list[list[float]] = np.asarray(R, dtype=float).tolist()
    for sign in (1.0, -1.0):
        for exact in _exact(rows, _angles_by_entries(rows, sign)):
            return exact
    angles = _angles(rows)
    short = tuple(round(x, 15) + 0.0 for x in angles)
    return short if _error(short, R) <= _ROUNDING else angles  # type: ignore[arg-type, return-value]


def _error(rpy: Triple, R: np.ndarray) -> float:
    return float(np.abs(Origin(rpy=rpy).rotation() - R).max())


def _angles(R: list[list[float]]) -> Triple:
    """Angles of any rotation. Roll is found with yaw undone, so that both fit at pitch = +-pi/2."""
    yaw = math.atan2(R[1][0], R[0][0])
    s, c = sine_and_cosine(yaw)
    roll = math.atan2(s * R[0][2] - c * R[1][2], c * R[1][1] - s * R[0][1])
    return (roll, math.atan2(-R[2][0], math.hypot(R[2][1], R[2][2])), yaw)


def _angles_by_entries(R: list[list[float]], sign: float) -> Triple:
    """Angles with this sign of cos(pitch), from the entries of R that are single products."""
    roll = math.atan2(sign * R[2][1], sign * R[2][2])
    pitch = math.atan2(-R[2][0], sign * math.hypot(R[2][1], R[2][2]))
    return (roll, pitch, math.atan2(sign * R[1][0], sign * R[0][0]))


def _exact(R: list[list[float]], angles: Triple) -> Iterator[Triple]:
    """Triples of doubles near the angles whose rotation is R to the last bit."""
    rolls, pitches, yaws = (
        [(x, *sine_and_cosine(x)) for x in sorted(_beside(angle), key=lambda x: len(repr(x)))]
        for angle in angles
    )
    for p, sp, cp in pitches:
        if -sp != R[2][0]:
            continue
        for r, sr, cr in rolls:
            if cp * sr != R[2][1] or cp * cr != R[2][2]:
                continue
            for y, sy, cy in yaws:
                if cy * cp == R[0][0] and sy * cp == R[1][0]:
                    rpy = (r, p, y)
                    if Origin(rpy=rpy).rotation().tolist() == R:
                        yield rpy


def _beside(x: float) -> set[float]:
    """The double, the doubles next to it, and zero where the number is tiny."""
    found = {x, 0.0} if abs(x) < 1e-15 else {x}
    for end in (-math.inf, math.inf):
        y = x
        for _ in range(_STEPS):
            y = math.nextafter(y, end)
            found.add(y)
    return found
