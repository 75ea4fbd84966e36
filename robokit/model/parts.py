"""What a robot is made of, by name: links, joints, loop joints, mimic couplings; and its scene."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import field, fields, replace
from typing import Any

import numpy as np

from robokit.arguments import real_array
from robokit.conventions import WORLD
from robokit.dataclass_tools import frozen
from robokit.errors import ModelError, shown
from robokit.model.geometry import Placement, Shape

# -- Checks of what parts are made of: every error names the link, the joint or the argument --------------

ORTHONORMAL = 1e-6  # what rotations typed with seven digits keep to


def checked_name(what: str, name: Any) -> str:
    """The name of a link or joint: a string that is not empty."""
    if not (isinstance(name, str) and name.strip()):
        raise ModelError(f"a {what} needs a name that is a string and not empty, got {shown(name)}")
    return name


def free_name(name: str, taken: set[str], ending: str = "_") -> str:
    """The name, with as many endings as make it a new one; it is taken from now on."""
    while name in taken:
        name += ending
    taken.add(name)
    return name


def finite(what: str, value: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Finite numbers of a shape, as a new array."""
    array = np.array(real_array(what, value, shape, ModelError))
    if array.shape != shape or not all(map(math.isfinite, array.ravel().tolist())):
        raise ModelError(f"{what}: expected finite numbers of shape {shape}, got {shown(value)}")
    return array


def finite_number(what: str, value: Any) -> float:
    """One finite number."""
    number = _number(what, value)
    if not math.isfinite(number):
        raise ModelError(f"{what} must be finite, got {number}")
    return number


def not_negative(what: str, value: Any) -> float:
    """One finite number from 0."""
    number = finite_number(what, value)
    if number < 0.0:
        raise ModelError(f"{what} must be finite and not negative, got {number}")
    return number


def limit(what: str, value: Any, absent: float) -> float:
    """A limit, which may be infinite; None becomes ``absent``."""
    number = absent if value is None else _number(what, value)
    if math.isnan(number):
        raise ModelError(f"{what} is not a number (nan); leave it out where there is no limit")
    return number


def limits(joint: str, lower: Any, upper: Any) -> tuple[float, float]:
    """Position limits in order."""
    low = limit(f"lower limit of joint {joint!r}", lower, -math.inf)
    high = limit(f"upper limit of joint {joint!r}", upper, math.inf)
    if low > high:
        raise ModelError(f"joint {joint!r}: the lower limit {low:g} is above the upper limit {high:g}")
    return low, high


def checked_placement(what: str, placement: Any) -> Placement:
    """A placement with a proper rotation; None is the identity."""
    if placement is None:
        return Placement()
    if not isinstance(placement, Placement):
        raise ModelError(f"{what}: expected a Placement(rotation, position), got {shown(placement)}")
    R = finite(f"rotation of the {what}", placement.rotation, (3, 3))
    p = finite(f"position of the {what}", placement.position, (3,))
    # Entry by entry: NumPy takes longer over a 3 x 3 matrix, and there are thousands.
    (a, b, c), (d, e, f), (g, h, i) = R.tolist()
    off = max(
        abs(a * a + d * d + g * g - 1.0),
        abs(b * b + e * e + h * h - 1.0),
        abs(c * c + f * f + i * i - 1.0),
        abs(a * b + d * e + g * h),
        abs(a * c + d * f + g * i),
        abs(b * c + e * f + h * i),
    )
    if off > ORTHONORMAL:
        raise ModelError(
            f"{what}: the rotation is not orthonormal; R^T R differs from 1 by {off:.2g}, "
            f"at most {ORTHONORMAL:g} passes"
        )
    if a * (e * i - f * h) + b * (f * g - d * i) + c * (d * h - e * g) < 0.0:
        raise ModelError(f"{what}: the rotation mirrors (its determinant is -1); a rotation has +1")
    return Placement(R, p)


def _number(what: str, value: Any) -> float:
    if type(value) is not float:
        array = real_array(what, value, "()", ModelError)  # as of arrays: no text, masks or imaginary parts
        if array.size != 1:
            raise ModelError(f"{what}: expected a number, got {shown(value)}")
        value = float(array.reshape(()))
    return value


MakeShapes = Callable[[], tuple[tuple[Shape, ...], tuple[Shape, ...]]]  # visuals and collisions


@frozen
class Mimic:
    """The coupling of a mimic joint: q = multiplier * q(joint) + offset."""

    joint: str
    multiplier: float = 1.0
    offset: float = 0.0


@frozen
class Safety:
    """Settings of a safety controller. They are stored and written; robokit does not use them.

    Attributes:
        soft_lower_limit, soft_upper_limit: positions at which it begins to limit the velocity [rad | m].
        k_position: its gain from position to velocity [1/s].
        k_velocity: its gain from velocity to effort [N m s/rad | N s/m].
    """

    soft_lower_limit: float = 0.0
    soft_upper_limit: float = 0.0
    k_position: float = 0.0
    k_velocity: float = 0.0


@frozen
class Calibration:
    """Positions of the edges of a calibration switch [rad | m], None if unknown; stored and written.

    Attributes:
        rising, falling: positions of the edges.
        reference_position: what older files have instead.
    """

    rising: float | None = None
    falling: float | None = None
    reference_position: float | None = None


@frozen
class Joint:
    """A joint of a robot.

    Attributes:
        name: as in the description; "floating_base" for the base's joint.
        kind: row of the joint table.
        body: number of the body it moves, which is the number i of the joint; of a fixed joint, the body that
            it is part of.
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
        parent_link: name of the link that carries it.
        child_link: name of the link it moves.
        origin: placement of the joint frame in the parent link.
        safety: settings of a safety controller in the description, or None.
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


@frozen
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
            make: function that returns both; it must not fail.
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


@frozen
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


# -- What a robot's file says beside the robot ------------------------------------------------------------


@frozen
class Scene:
    """Contents of a robot's file beside the robot itself: ``robot.scene``, or None.

    To simulate the robot in its scene, pass ``robot.scene.ground``, ``robot.scene.actuators`` and
    ``robot.scene.springs`` to :func:`robokit.simulate`. Only ``apart`` applies automatically.

    Attributes:
        ground: ``rk.Ground`` with the planes, height fields and solids of the file, or None.
        actuators: ``rk.Torque``, ``rk.PD`` and ``rk.Velocity`` with the file's gains; they hold the start
            until their targets are set (``dataclasses.replace(actuator, target=...)``).
        springs: ``rk.JointSpring`` and ``rk.Spring``, of joints and tendons.
        configurations: name -> joint name -> its coordinates; ``robot.configuration(name)`` gives q.
        apart: pairs of links whose bodies never collide.
        dt: time step of the file [s], or None.
    """

    ground: Any = None
    actuators: tuple[Any, ...] = ()
    springs: tuple[Any, ...] = ()
    configurations: Mapping[str, Mapping[str, tuple[float, ...]]] = field(default_factory=dict)
    apart: tuple[tuple[str, str], ...] = ()
    dt: float | None = None

    def __repr__(self) -> str:
        """What there is, in one line."""
        drives = ", ".join(type(one).__name__ for one in self.actuators) or "no actuators"
        named = ", ".join(map(repr, self.configurations)) or "none"
        ground = "a ground" if self.ground is not None else "no ground"
        step = "" if self.dt is None else f", dt {self.dt:g} s"
        apart = f"{len(self.apart)} pairs of links that never collide"
        springs = f", {len(self.springs)} springs" if self.springs else ""
        return f"<Scene: {ground}, {drives}{springs}, configurations: {named}, {apart}{step}>"

    def of_parts(self, joints: Collection[str], bodies: Mapping[str, int]) -> Scene:
        """The scene of a robot with these joints, and links on these bodies.

        Actuators and springs of others are left out, and springs between links of one body.
        """
        kept = tuple(found for one in self.actuators if (found := _of_joints(one, joints)) is not None)
        springs = tuple(one for one in self.springs if _is_there(one, joints, {WORLD: 0, **bodies}))
        if kept == self.actuators and springs == self.springs:
            return self
        return replace(self, actuators=kept, springs=springs)


def _is_there(spring: Any, joints: Collection[str], bodies: Mapping[str, int]) -> bool:
    if hasattr(spring, "joint"):
        return spring.joint in joints
    return spring.a in bodies and spring.b in bodies and bodies[spring.a] != bodies[spring.b]


def _of_joints(actuator: Any, names: Collection[str]) -> Any:
    """An actuator without the joints that are not there; None if none is left."""
    own = getattr(actuator, "joints", None)
    if own is None:
        return actuator
    joints = tuple(name for name in own if name in names)
    if joints == tuple(own):
        return actuator
    mappings = {
        name: {joint: x for joint, x in value.items() if joint in names}
        for name, value in vars(actuator).items()
        if isinstance(value, Mapping)
    }
    return replace(actuator, joints=joints, **mappings) if joints else None
