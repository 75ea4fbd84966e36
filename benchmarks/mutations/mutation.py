"""A mistake, and helpers to change descriptions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from robokit.urdf.description import (
    InertialDescription,
    JointDescription,
    LinkDescription,
    Origin,
    RobotDescription,
)


@dataclass(frozen=True)
class Mutant:
    """A robot with one mistake.

    Attributes:
        element: name of the link or joint that has it; "" for the robot.
        b: the description with the mistake.
        a: the description without it, if it had to be written in another way first.
        extension: XML that is put before </robot> of b.
        base: what A's base is to be, for the mistakes over it.
    """

    element: str
    b: RobotDescription
    a: RobotDescription | None = None
    extension: str = ""
    base: str | None = None


Make = Callable[[RobotDescription, np.random.Generator], Iterator[Mutant]]


@dataclass(frozen=True)
class Mutation:
    """A mistake.

    Attributes:
        cause: code that the referee has to name.
        make: yields mutants, in random order, for each element that can have the mistake.
        mjcf: whether the mistake survives writing the robot as MJCF.
        kind: "inertia" if it is seen in masses and inertias alone.
    """

    cause: str
    make: Make
    mjcf: bool = True
    kind: str = ""


def shuffled(items: Any, rng: np.random.Generator) -> list[Any]:
    """The items in random order."""
    items = list(items)
    return [items[k] for k in rng.permutation(len(items))]


def with_link(robot: RobotDescription, name: str, **changes: Any) -> RobotDescription:
    """The robot with one link changed."""
    links = (link._replace(**changes) if link.name == name else link for link in robot.links)
    return robot._replace(links=tuple(links))


def with_joint(robot: RobotDescription, name: str, **changes: Any) -> RobotDescription:
    """The robot with one joint changed."""
    joints = (joint._replace(**changes) if joint.name == name else joint for joint in robot.joints)
    return robot._replace(joints=tuple(joints))


def massive(robot: RobotDescription) -> list[LinkDescription]:
    """Links with mass and inertia that are not the fixed frame of the robot."""
    return [
        k for k in robot.links if k.inertial is not None and k.inertial.mass > 0.0 and any(k.inertial.inertia)
    ]


def six(I: np.ndarray) -> tuple[float, float, float, float, float, float]:
    """ixx, ixy, ixz, iyy, iyz, izz."""
    return (*map(float, (I[0, 0], I[0, 1], I[0, 2], I[1, 1], I[1, 2], I[2, 2])),)  # type: ignore[return-value]


def full(numbers: tuple[float, ...]) -> np.ndarray:
    """The matrix of the six numbers."""
    a, b, c, d, e, f = numbers
    return np.array([[a, b, c], [b, d, e], [c, e, f]])


def angles(R: np.ndarray) -> tuple[float, float, float]:
    """Roll, pitch and yaw of a rotation."""
    pitch = math.asin(max(-1.0, min(1.0, -R[2, 0])))
    if abs(R[2, 0]) > 1.0 - 1e-12:
        return (
            math.atan2(-R[1, 2] * (1 if R[2, 0] > 0 else -1), R[1, 1]) if False else 0.0,
            pitch,
            math.atan2(-R[0, 1], R[1, 1]),
        )
    return (math.atan2(R[2, 1], R[2, 2]), pitch, math.atan2(R[1, 0], R[0, 0]))


def in_link_axes(
    own: InertialDescription, I: np.ndarray, com: Any = None, mass: float | None = None
) -> InertialDescription:
    """An inertial with this inertia in link axes, without a rotation of its own."""
    xyz = own.origin.xyz if com is None else tuple(map(float, com))
    return own._replace(
        mass=own.mass if mass is None else mass,
        inertia=six(I),
        origin=Origin(xyz, (0.0, 0.0, 0.0), None, own.origin.line),
    )


def differs(a: InertialDescription, b: InertialDescription) -> bool:
    """Whether two inertials differ by more than rounding."""
    A, B = a.matrix(), b.matrix()
    scale = max(np.abs(A).max(), np.abs(B).max(), 1e-300)
    size = math.sqrt(max(np.trace(A), 0.0) / max(a.mass, 1e-300)) + float(np.linalg.norm(a.origin.xyz))
    far = float(np.abs(np.subtract(a.origin.xyz, b.origin.xyz)).max())
    return bool(
        np.abs(A - B).max() > 1e-4 * scale
        or far > 1e-4 * size
        or abs(a.mass - b.mass) > 1e-4 * max(a.mass, b.mass)
    )


def movable(robot: RobotDescription) -> list[JointDescription]:
    """Revolute, continuous and prismatic joints."""
    return [j for j in robot.joints if j.type in ("revolute", "continuous", "prismatic")]
