"""What a robot is made of, by name: links, joints, joints that close loops, mimic couplings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from robokit.dataclass_tools import quickly_made
from robokit.model.geometry import Placement, Shape

MakeShapes = Callable[[], tuple[tuple[Shape, ...], tuple[Shape, ...]]]
"""Gives the visuals and the collisions of a link."""


@dataclass(frozen=True)
class Mimic:
    """The coupling of a mimic joint: q = multiplier * q(joint) + offset."""

    joint: str
    multiplier: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True)
class Safety:
    """Settings of a safety controller. They are kept and written; robokit does not use them.

    Attributes:
        soft_lower_limit, soft_upper_limit: where it begins to hold back [rad | m].
        k_position: its gain from position to velocity [1/s].
        k_velocity: its gain from velocity to effort [N m s/rad | N s/m].
    """

    soft_lower_limit: float = 0.0
    soft_upper_limit: float = 0.0
    k_position: float = 0.0
    k_velocity: float = 0.0


@dataclass(frozen=True)
class Calibration:
    """Where a calibration switch has its edges [rad | m], None where that is not known; kept and written.

    Attributes:
        rising, falling: positions of the edges.
        reference_position: what older files say instead.
    """

    rising: float | None = None
    falling: float | None = None
    reference_position: float | None = None


@quickly_made
@dataclass(frozen=True)
class Joint:
    """A joint of a robot.

    Attributes:
        name: as in the description; "floating_base" for the base's joint.
        kind: row of the joint table.
        body: the body it moves (the number i of the joint), or the body a fixed joint is folded into.
        q_slice: its place in q; empty for a fixed joint.
        v_slice: its place in v; empty for a fixed joint.
        axis: (3,) unit axis in joint coordinates.
        pitch: advance per angle of a helical joint [m/rad].
        lower: position limit [rad | m]; -inf where there is none.
        upper: position limit [rad | m]; inf where there is none.
        effort: effort limit as written [N m | N]; inf if there is none.
        velocity: velocity limit as written [rad/s | m/s]; inf if there is none.
        damping: [N m s/rad | N s/m].
        friction: Coulomb friction [N m | N].
        mimic: the coupling in the description, or None.
        parent_link: name of the link it hangs on.
        child_link: name of the link it moves.
        origin: placement of the joint frame in the parent link.
        safety: the description's data for a safety controller, or None.
        calibration: positions of calibration switches, or None.
        armature: inertia of the motors' rotors as the joint feels it, gear ratio squared included, for each
            of its velocities [kg m^2 | kg].
    """

    name: str
    kind: str
    body: int
    q_slice: slice
    v_slice: slice
    axis: np.ndarray
    pitch: float
    lower: float
    upper: float
    effort: float
    velocity: float
    damping: float
    friction: float
    mimic: Mimic | None
    parent_link: str
    child_link: str
    origin: Placement
    safety: Safety | None = None
    calibration: Calibration | None = None
    armature: float = 0.0


@quickly_made
@dataclass(frozen=True)
class Link:
    """A link: a frame fixed on a body, with its own mass, inertia and shapes.

    In a robot with samples (see :meth:`Robot.with_inertias`) mass, com and inertia may have a leading B.

    Attributes:
        name: as in the description.
        body: number of the body it belongs to.
        placement: of the link frame in the body frame.
        mass: [kg].
        com: (3,) centre of mass in the link frame [m].
        inertia: (3, 3) about the centre of mass, link axes [kg m^2].
        visuals: visual shapes, in the link frame.
        collisions: collision shapes, in the link frame.
    """

    name: str
    body: int
    placement: Placement
    mass: float
    com: np.ndarray
    inertia: np.ndarray
    visuals: tuple[Shape, ...] = ()
    collisions: tuple[Shape, ...] = ()

    @classmethod
    def with_shapes_later(cls, make: MakeShapes, **others: Any) -> Link:
        """A link whose visuals and collisions are made when one of the two is first used.

        Dynamics never look at them, and an importer spends a good part of its time on them.

        Args:
            make: gives both; it must not fail.
            others: all other attributes.
        """
        link = object.__new__(cls)
        link.__dict__.update(others, _make_shapes=make)
        return link

    def __getstate__(self) -> dict[str, Any]:
        """State for copies and other processes: with the shapes made."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


class _DeferredShapes:
    """Finds a link's visuals or collisions where they are not made yet; see ``Link.with_shapes_later``."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, link: Link | None, owner: type) -> tuple[Shape, ...]:
        # Not a data descriptor: where they are made, Python finds them in __dict__ by itself.
        if link is None:
            return ()
        own = link.__dict__
        make = own.get("_make_shapes")
        if make is not None:
            # Two threads that come first at the same time both make them, and get what was stored first.
            for name, shapes in zip(("visuals", "collisions"), make(), strict=True):
                own.setdefault(name, shapes)
            own.pop("_make_shapes", None)
        return own[self._name]


for _name in ("visuals", "collisions"):
    setattr(Link, _name, _DeferredShapes(_name))


@dataclass(frozen=True)
class LoopJoint:
    """A joint that closes a loop: a constraint without coordinates of its own.

    Attributes:
        name: as in the description.
        kind: row of the joint table, or "universal" or "distance".
        number: N+1..N_J.
        predecessor: name of the link p(i) belongs to.
        successor: name of the link s(i) belongs to.
        predecessor_placement: the joint's frame on the predecessor.
        successor_placement: the joint's frame on the successor.
        axis: (3,) unit axis in the joint's frame.
        pitch: advance per angle of a helical joint [m/rad].
        axis2: (3,) of a universal joint: unit axis in the joint's frame on the successor, perpendicular to
            ``axis``, which is that on the predecessor.
        length: of a distance joint: the distance between its two origins [m].
    """

    name: str
    kind: str
    number: int
    predecessor: str
    successor: str
    predecessor_placement: Placement
    successor_placement: Placement
    axis: np.ndarray
    pitch: float = 0.0
    axis2: np.ndarray | None = None
    length: float = 0.0
