"""Links and joints as the builder keeps them until the robot is numbered."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from robokit.conventions import SNAP
from robokit.model.geometry import Placement, Shape
from robokit.model.joints import JOINT_TABLE
from robokit.model.parts import Calibration, MakeShapes, Mimic, Safety

# Nearly all axes of joints are one of these, which are what snapping leaves of them. (-0.0 finds 0.0.)
_COORDINATE_AXES: dict[tuple[float, ...], tuple[float, ...]] = {
    axis: axis for s in (1.0, -1.0) for axis in ((s, 0.0, 0.0), (0.0, s, 0.0), (0.0, 0.0, s))
}


@dataclass
class LinkDraft:
    """A link as :class:`ModelBuilder` keeps it: the arguments of ``link``, checked.

    Attributes:
        make_shapes: gives the shapes at their first use instead, or None.
    """

    name: str
    mass: float
    com: np.ndarray
    inertia: np.ndarray
    visuals: tuple[Shape, ...] = ()
    collisions: tuple[Shape, ...] = ()
    make_shapes: MakeShapes | None = None


@dataclass
class JointDraft:
    """A joint as :class:`ModelBuilder` keeps it: the arguments of ``joint``, checked; inf for no limit."""

    name: str
    kind: str
    parent: str
    child: str
    placement: Placement
    axis: np.ndarray
    pitch: float
    lower: float
    upper: float
    effort: float
    velocity: float
    damping: float
    friction: float
    mimic: Mimic | None
    safety: Safety | None = None
    calibration: Calibration | None = None
    armature: float = 0.0


@dataclass
class LoopDraft:
    """A loop joint as :class:`ModelBuilder` keeps it: the arguments of ``loop_joint``, checked."""

    name: str
    kind: str
    predecessor: str
    successor: str
    predecessor_placement: Placement
    successor_placement: Placement
    axis: np.ndarray
    pitch: float = 0.0


def snapped(row: Iterable[float]) -> list[float]:
    """The numbers, with those within SNAP of 0 or +-1 made exact: zeros and ones cost no operations."""
    return [0.0 if abs(x) < SNAP else math.copysign(1.0, x) if abs(abs(x) - 1.0) < SNAP else x for x in row]


def unit_axis(kind: str, axis: Sequence[float]) -> np.ndarray:
    """The axis of a joint, normalised, (3,); the x axis for a kind of joint without an axis."""
    return np.array(unit_numbers(kind, axis))


def unit_numbers(kind: str, axis: Sequence[float]) -> Sequence[float]:
    """The same axis in plain floats."""
    if not JOINT_TABLE[kind].has_axis:
        return (1.0, 0.0, 0.0)
    usual = _COORDINATE_AXES.get(tuple(axis))
    if usual is not None:
        return usual
    norm = math.hypot(*axis)
    if not 1e-300 < norm < math.inf:  # the length has lost its digits
        largest = max(map(abs, axis))
        return unit_numbers(kind, [x / largest for x in axis])
    # What snapping has left of a unit axis stays as it is, so that a robot written and read is the same.
    return snapped([x / norm for x in axis] if abs(norm - 1.0) > SNAP else axis)
