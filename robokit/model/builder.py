"""ModelBuilder: links and joints by name, in any order, become a Robot with a numbered tree."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from operator import add
from typing import Any, TypeVar

import numpy as np

from robokit.arguments import one_of
from robokit.conventions import FLOATING_BASE, SNAP, WORLD
from robokit.errors import Diagnostic, ModelError, UnknownName, WrongType
from robokit.model.geometry import Geometry, Placement, Shape, product_of_rows, turned_by_rows
from robokit.model.joints import JOINT_TABLE, LOOP_TABLE, NO_JOINT, JointModel, plane_axes
from robokit.model.parts import (
    Calibration,
    Joint,
    Link,
    LoopJoint,
    Mimic,
    Safety,
    Scene,
    checked_name,
    checked_placement,
    finite,
    finite_number,
    limit,
    limits,
    not_negative,
)
from robokit.model.robot import Robot, joints_in_order
from robokit.model.tree import Tree, depth_first
from robokit.spatial import Matrix3, RigidInertia, Symmetric3, Transform, Vector3

Part = TypeVar("Part", Link, Joint, LoopJoint)


class ModelBuilder:
    """Collects links and joints; :meth:`build` numbers them.

    Example:
        >>> builder = rk.ModelBuilder("pendulum").link("base")
        >>> builder = builder.link("rod", mass=1.0, com=(0, 0, -0.5), inertia=np.diag([0.1, 0.1, 0.01]))
        >>> robot = builder.joint("hinge", "revolute", "base", "rod", axis=(0, 1, 0)).build()
        >>> robot.joint_names
        ('hinge',)

    Links and joints have namespaces of their own. Joints may come before the links they name.

    Attributes:
        name: of the robot.
        source: what the robot comes from.
        scene: what is beside the robot, or None.
        base_armature: armature of the joint of a floating base, in each direction [kg m^2 and kg].
    """

    def __init__(self, name: str, source: str = "<code>") -> None:
        self.name, self.source = name, source
        self.scene: Scene | None = None
        self.base_armature = 0.0
        self._links: dict[str, Link] = {}
        self._joints: dict[str, Joint] = {}
        self._loops: dict[str, LoopJoint] = {}

    def link(
        self,
        name: str,
        mass: float = 0.0,
        com: Sequence[float] | np.ndarray = (0.0, 0.0, 0.0),
        inertia: Any = None,
        visuals: Shape | Geometry | Sequence[Shape | Geometry] = (),
        collisions: Shape | Geometry | Sequence[Shape | Geometry] = (),
    ) -> ModelBuilder:
        """Add a link.

        Args:
            name: unique among links.
            mass: [kg], not negative.
            com: (3,) centre of mass in the link frame [m].
            inertia: (3, 3) about the centre of mass, in link axes [kg m^2]; zero if None.
            visuals, collisions: shapes in the link frame, one or several; a geometry such as ``Box`` is one
                at its origin.

        Raises:
            ModelError: a name that is empty or taken, or an impossible mass, com or inertia.
            WrongType: a shape that is none.
        """
        name = checked_name("link", name)
        if name in self._links:
            raise ModelError(f"link {name!r} already exists; link names are unique")
        matrix = finite(f"inertia of link {name!r}", np.zeros((3, 3)) if inertia is None else inertia, (3, 3))
        (_, xy, xz), (yx, _, yz), (zx, zy, _) = matrix.tolist()
        if not (_alike(xy, yx) and _alike(xz, zx) and _alike(yz, zy)):
            raise ModelError(f"inertia of link {name!r} is not symmetric")
        mass = not_negative(f"mass of link {name!r}", mass)
        com = finite(f"com of link {name!r}", com, (3,))
        shapes = (_shapes(what, given) for what, given in (("visuals", visuals), ("collisions", collisions)))
        self._links[name] = Link(name, 0, _HERE, mass, com, matrix, *shapes)
        return self

    def joint(
        self,
        name: str,
        kind: str,
        parent: str,
        child: str,
        placement: Placement | None = None,
        axis: Sequence[float] | np.ndarray = (1.0, 0.0, 0.0),
        pitch: float = 0.0,
        lower: float | None = None,
        upper: float | None = None,
        effort: float | None = None,
        velocity: float | None = None,
        damping: float = 0.0,
        friction: float = 0.0,
        mimic: Mimic | None = None,
        safety: Safety | None = None,
        calibration: Calibration | None = None,
        armature: float = 0.0,
        axis2: Sequence[float] | np.ndarray | None = None,
    ) -> ModelBuilder:
        """Add a tree joint between two links.

        A universal joint is two revolute ones, ``<name>_1`` about ``axis`` and ``<name>_2`` about ``axis2``,
        with a link ``<name>_cross`` without mass between them: so each angle has a name, a coordinate and
        limits of its own, and both have the same reaction at the middle of the cross.

        Args:
            name: unique among joints.
            kind: revolute, continuous, prismatic, helical, cylindrical, planar, spherical, floating, fixed or
                universal.
            parent, child: link names.
            placement: the joint frame in the parent link; the child link's frame moves with it.
            axis: (3,) in joint coordinates, normalised here; the plane's normal for a planar joint.
            pitch: of a helical joint [m/rad].
            lower, upper: position limits [rad | m]; None for none. Revolute, prismatic, helical and universal
                joints have them.
            effort, velocity: limits [N m | N], [rad/s | m/s]; None for none.
            damping: [N m s/rad | N s/m]; friction: [N m | N].
            mimic: coupling to another joint.
            safety, calibration: stored with the joint; robokit does not use them.
            armature: inertia of the motors' rotors as the joint feels it, gear ratio squared included, for
                each of its velocities [kg m^2 | kg]; not negative.
            axis2: (3,) of a universal joint, that of the child, perpendicular to ``axis``, which is that of
                the parent; None takes the coordinate axis after it (y for x). Limits, damping, friction and
                armature apply to each of the two angles.

        Raises:
            ModelError: a name that is taken or empty, limits out of order or of several coordinates, a number
                that is not finite (limits may be infinite), or a placement with an improper rotation.
            UnknownName: no such kind.
            WrongType: a mimic, safety or calibration of another class.
        """
        name = checked_name("joint", name)
        if name in self._joints or name in self._loops:
            raise ModelError(f"joint {name!r} already exists; joint names are unique")
        if isinstance(kind, str) and kind == "distance":
            raise ModelError(f"joint {name!r}: a distance joint holds links of the tree; use loop_joint")
        kind = one_of("joint kind", kind, (*JOINT_TABLE, "universal"))
        for given, expected in ((mimic, Mimic), (safety, Safety), (calibration, Calibration)):
            if not isinstance(given, expected | None):
                what = f"{expected.__name__.lower()} of joint {name!r}"
                raise WrongType(what, given, f"a robokit.model.{expected.__name__}, or None")
        if kind == "universal":
            if mimic is not None:
                raise ModelError(f"joint {name!r}: a universal joint has two angles and follows no other")
            first = _axis(name, kind, axis)
            second = _second_axis(name, kind, first, axis2)
            assert second is not None
            cross = f"{name}_cross"
            own = lower, upper, effort, velocity, damping, friction, None, safety, calibration, armature
            self.link(cross)
            self.joint(f"{name}_1", "revolute", parent, cross, placement, first, 0.0, *own)
            return self.joint(f"{name}_2", "revolute", cross, child, None, second, 0.0, *own)
        _second_axis(name, kind, np.zeros(3), axis2)
        bounds = (
            *_range(name, kind, lower, upper),
            limit(f"effort limit of joint {name!r}", effort, math.inf),
            limit(f"velocity limit of joint {name!r}", velocity, math.inf),
        )
        self._joints[name] = new_joint(
            name,
            kind,
            parent,
            child,
            checked_placement(f"placement of joint {name!r}", placement),
            _axis(name, kind, axis),
            finite_number(f"pitch of joint {name!r}", pitch),
            bounds,
            finite_number(f"damping of joint {name!r}", damping),
            finite_number(f"friction of joint {name!r}", friction),
            mimic,
            safety,
            calibration,
            not_negative(f"armature of joint {name!r}", armature),
        )
        return self

    def loop_joint(
        self,
        name: str,
        kind: str,
        predecessor: str,
        successor: str,
        predecessor_placement: Placement | None = None,
        successor_placement: Placement | None = None,
        axis: Sequence[float] | np.ndarray = (1.0, 0.0, 0.0),
        pitch: float = 0.0,
        axis2: Sequence[float] | np.ndarray | None = None,
        length: float | None = None,
    ) -> ModelBuilder:
        """Add a joint that closes a loop between two links of the tree; it gets a number above N.

        Args:
            name: unique among joints.
            kind: of :meth:`joint`, "universal" (a cross: two axes that stay perpendicular) or "distance" (a
                rod without mass: two points that stay as far apart as they are).
            predecessor, successor: names of its links; "world", where no link has that name, is the world.
            predecessor_placement, successor_placement: the joint's frame on either link.
            axis: (3,) in that frame; of a universal joint the axis on the predecessor.
            pitch: of a helical joint [m/rad].
            axis2: (3,) of a universal joint, on the successor, perpendicular to ``axis``; None takes the
                coordinate axis after it (y for x).
            length: of a distance joint, between the origins of its frames [m].

        Raises:
            ModelError: a name that is empty or taken, a placement with an improper rotation, axes that are
                not perpendicular, or a length that is not positive.
            UnknownName: no such kind.
        """
        name = checked_name("loop joint", name)
        if name in self._joints or name in self._loops:
            raise ModelError(f"joint {name!r} already exists; joint names are unique")
        kind = one_of("joint kind", kind, LOOP_TABLE)
        axis = _axis(name, kind, axis)
        self._loops[name] = LoopJoint(
            name,
            kind,
            0,  # numbered at the end
            predecessor,
            successor,
            checked_placement(f"predecessor placement of loop joint {name!r}", predecessor_placement),
            checked_placement(f"successor placement of loop joint {name!r}", successor_placement),
            axis,
            finite_number(f"pitch of loop joint {name!r}", pitch),
            _second_axis(name, kind, axis, axis2),
            _length(name, kind, length),
        )
        return self

    def add(self, part: Link | Joint) -> None:
        """Add a link or joint that the importer has already checked."""
        if isinstance(part, Link):
            self._links[part.name] = part
        else:
            self._joints[part.name] = part

    def build(
        self,
        base: str = "fixed",
        diagnostics: Sequence[Diagnostic] = (),
        gravity: Sequence[float] | None = None,
    ) -> Robot:
        """Number the bodies depth first and fold fixed joints.

        Args:
            base: "fixed" makes the root link body 0; "floating" puts a 6-dof joint under it.
            diagnostics: findings of the importer, which become those of the robot.
            gravity: (3,) in world axes [m/s^2]; (0, 0, -9.81) if None.

        Raises:
            ModelError: gravity is not three numbers, there is no link or not exactly one root, a link has two
                parents, or joints form a cycle.
            UnknownName: a joint names a link that does not exist, or ``base`` is neither "fixed" nor
                "floating".
        """
        robot = assemble(
            self.name,
            self.source,
            self._links,
            self._joints,
            self._loops,
            base,
            diagnostics,
            gravity,
            self.base_armature,
        )
        scene = self.scene and self.scene.of_parts(
            {joint.name for joint in robot.body_joints}, {link.name: link.body for link in robot.links}
        )
        return robot if scene is None else replace(robot, scene=scene)

    @classmethod
    def from_robot(cls, robot: Robot) -> ModelBuilder:
        """A builder with the links and joints of a robot; ``build(robot.base)`` gives the same robot again.

        It does not contain the joint of a floating base, which ``build`` adds. Coupled mimic joints have
        coordinates of their own in it; ``couple`` removes them again.
        """
        builder = cls(robot.name, robot.source)
        builder.scene = robot.scene
        if robot.base == "floating":
            builder.base_armature = robot.body_joints[0].armature
        for link in robot.links:
            builder.link(link.name, link.mass, link.com, link.inertia, link.visuals, link.collisions)
        builder._joints = {joint.name: joint for joint in joints_in_order(robot)}
        builder._loops = {loop.name: loop for loop in robot.loop_joints}
        return builder

    def _include(self, other: ModelBuilder, prefix: str) -> None:
        """Add all of another builder; the prefix goes before its names, which nobody has yet."""
        for link in other._links.values():
            self._links[prefix + link.name] = replace(link, name=prefix + link.name)
        for joint in other._joints.values():
            mimic = joint.mimic and replace(joint.mimic, joint=prefix + joint.mimic.joint)
            parent, child = prefix + joint.parent_link, prefix + joint.child_link
            self._joints[prefix + joint.name] = replace(
                joint, name=prefix + joint.name, parent_link=parent, child_link=child, mimic=mimic
            )
        for loop in other._loops.values():
            predecessor, successor = (
                end if end == WORLD and WORLD not in other._links else prefix + end
                for end in (loop.predecessor, loop.successor)
            )
            self._loops[prefix + loop.name] = replace(
                loop, name=prefix + loop.name, predecessor=predecessor, successor=successor
            )


def _shapes(what: str, given: Any) -> tuple[Shape, ...]:
    """Shapes or geometries as shapes; WrongType for others."""
    several = (given,) if isinstance(given, Shape | Geometry) else given
    accepted = "shapes or geometries of robokit.model, such as [Shape(Box((1, 1, 1)), Placement())]"
    if not isinstance(several, Iterable) or isinstance(several, str):
        raise WrongType(what, given, accepted)
    found = []
    for each in several:
        if not isinstance(each, Shape | Geometry):
            raise WrongType(what, each, accepted)
        found.append(each if isinstance(each, Shape) else Shape(each))
    return tuple(found)


def _alike(a: float, b: float) -> bool:
    return a == b or abs(a - b) <= 1e-9 * min(abs(a), abs(b))


def _axis(name: str, kind: str, axis: Any) -> np.ndarray:
    array = finite(f"axis of joint {name!r}", axis, (3,))
    if LOOP_TABLE[kind].has_axis and not array.any():
        raise ModelError(f"axis of joint {name!r} is zero; a {kind} joint needs a direction")
    return unit_axis(kind, array.tolist())


PERPENDICULAR = 1e-6  # cosine of the angle of a cross's axes that is a right one: files round their axes


def _second_axis(name: str, kind: str, axis: np.ndarray, given: Any) -> np.ndarray | None:
    """The axis of a universal joint on its successor, exactly perpendicular to the first."""
    if kind != "universal":
        if given is not None:
            raise ModelError(f"axis2 of joint {name!r}: only a universal joint has one, this is {kind}")
        return None
    if given is None:
        return np.array([*plane_axes(Vector3(*axis.tolist()))[0]])
    second = _axis(name, kind, given)
    along = float(axis @ second)
    if abs(along) > PERPENDICULAR:
        raise ModelError(
            f"axis2 of joint {name!r} is at {math.degrees(math.acos(min(1.0, abs(along)))):.4g} degrees to "
            "its axis; those of a universal joint are perpendicular"
        )
    return unit_axis(kind, (second - along * axis).tolist())


def _length(name: str, kind: str, given: float | None) -> float:
    """The length of a distance joint; 0 of others."""
    if kind != "distance":
        if given is not None:
            raise ModelError(f"length of joint {name!r}: only a distance joint has one, this is {kind}")
        return 0.0
    if given is None:
        raise ModelError(f"length of joint {name!r} is missing; a distance joint needs one, in metres")
    length = finite_number(f"length of joint {name!r}", given)
    if length <= 0.0:
        raise ModelError(
            f"length of joint {name!r} is {length:g}; give one above 0, or a spherical joint that holds two "
            "points together"
        )
    return length


# ---- links and joints that are not numbered yet --------------------------------------------------

# Nearly all axes of joints are one of these, which are what snapping leaves of them. (-0.0 finds 0.0.)
_COORDINATE_AXES: dict[tuple[float, ...], tuple[float, ...]] = {
    axis: axis for s in (1.0, -1.0) for axis in ((s, 0.0, 0.0), (0.0, s, 0.0), (0.0, 0.0, s))
}


_HERE = Placement()  # of a link whose frame is its body's
_NONE = slice(0, 0)  # of a joint without coordinates


def _range(name: str, kind: str, lower: Any, upper: Any) -> tuple[float, float]:
    """Position limits of a joint, in order; joints of several coordinates have none."""
    low, high = limits(name, lower, upper)
    several = kind in ("cylindrical", "planar", "spherical", "floating")
    if several and (low > -math.inf or high < math.inf):
        raise ModelError(
            f"joint {name!r}: {kind} joints have no position limits, got lower={low:g}, upper={high:g}: "
            "leave them out, or chain revolute and prismatic joints, which have limits"
        )
    return low, high


def new_joint(
    name: str,
    kind: str,
    parent: str,
    child: str,
    placement: Placement,
    axis: np.ndarray | None = None,
    pitch: float = 0.0,
    bounds: tuple[float, float, float, float] = (-math.inf, math.inf, math.inf, math.inf),
    damping: float = 0.0,
    friction: float = 0.0,
    mimic: Mimic | None = None,
    *others: Any,
) -> Joint:
    """A joint that has no number and no coordinates yet; its values are checked, and an axis of None is x.

    ``bounds`` are lower, upper, effort and velocity; ``others`` safety, calibration and armature, if any.
    """
    axis = np.array([1.0, 0.0, 0.0]) if axis is None else axis
    ends = parent, child, placement
    return Joint(name, kind, 0, _NONE, _NONE, axis, pitch, *bounds, damping, friction, mimic, *ends, *others)


def _numbered(part: Part, **place: Any) -> Part:
    """A link or joint at its place in the tree; shapes of a link that are not made yet stay so.

    Its arrays can no longer be written to: the tree has their numbers, and would not follow.
    """
    placed: Part = object.__new__(type(part))
    placed.__dict__.update({name: _fixed(value) for name, value in (part.__dict__ | place).items()})
    return placed


def _fixed(value: Any) -> Any:
    """An array or placement that cannot be written to, a copy where it could be; anything else as it is."""
    if type(value) is np.ndarray and value.flags.writeable:
        value = value.copy()
        value.flags.writeable = False
    elif type(value) is Placement:
        placement = object.__new__(Placement)
        placement.__dict__.update({name: _fixed(array) for name, array in value.__dict__.items()})
        return placement
    return value


def snap(row: Iterable[float]) -> list[float]:
    """The numbers, with those within SNAP of 0 or +-1 made exact: zeros and ones cost no operations."""
    return [0.0 if abs(x) < SNAP else math.copysign(1.0, x) if abs(abs(x) - 1.0) < SNAP else x for x in row]


def unit_axis(kind: str, axis: Sequence[float]) -> np.ndarray:
    """The axis of a joint, normalised, (3,); the x axis for a kind of joint without an axis."""
    return np.array(unit_numbers(kind, axis))


def unit_numbers(kind: str, axis: Sequence[float]) -> Sequence[float]:
    """The axis of a joint, normalised, as three floats; the x axis for a kind of joint without an axis."""
    if not LOOP_TABLE[kind].has_axis:
        return (1.0, 0.0, 0.0)
    usual = _COORDINATE_AXES.get(tuple(axis))
    if usual is not None:
        return usual
    norm = math.hypot(*axis)
    if not 1e-300 < norm < math.inf:  # the length has lost its digits
        largest = max(map(abs, axis))
        return unit_numbers(kind, [x / largest for x in axis])
    # What snapping has left of a unit axis stays as it is, so that a robot written and read is the same.
    return snap([x / norm for x in axis] if abs(norm - 1.0) > SNAP else axis)


# ---- assembly ------------------------------------------------------------------------------------
# Checked links and joints become a Robot: bodies numbered depth first, fixed joints folded into their
# parents.
#
# Source: RBDA section 4.1 (regular numbering); seeds 003 (connectivity).

BASES = ("fixed", "floating")
_UPRIGHT = _HERE.rotation.tolist()
_IDENTITY = Matrix3.identity()


def assemble(
    name: str,
    source: str,
    links: Mapping[str, Link],
    joints: Mapping[str, Joint],
    loops: Mapping[str, LoopJoint],
    base: str,
    diagnostics: Sequence[Diagnostic],
    gravity: Sequence[float] | None,
    base_armature: float = 0.0,
) -> Robot:
    """Number the bodies and fold the fixed joints: what ``ModelBuilder.build`` does, with its errors.

    Links, joints and loops are not numbered yet, by name, in document order. ``diagnostics`` become those of
    the robot; ``gravity`` is (3,) in world axes [m/s^2], (0, 0, -9.81) if None.
    """
    one_of("base", base, BASES)
    order, incoming = _walk(name, links, joints, loops)
    bodies = _Bodies(order[0], base)
    if base == "floating":
        if FLOATING_BASE in joints:
            raise ModelError(f"the joint name {FLOATING_BASE!r} belongs to the floating base; rename it")
        bodies.add_floating_base(order[0], base_armature)
    for child in order[1:]:
        bodies.add(child, incoming[child])
    inertia, placed_links = _placed_links(links, bodies)
    frame, movable = bodies.frame, bodies.movable
    for loop in loops.values():
        if _body_at(frame, loop.predecessor) == _body_at(frame, loop.successor):
            ends = f"{loop.predecessor!r} and {loop.successor!r}"
            raise ModelError(f"loop joint {loop.name!r}: links {ends} are one body; it needs two")
    g = Tree.gravity if gravity is None else tuple(finite("gravity", gravity, (3,)).tolist())
    tree = Tree(
        parent=tuple(bodies.parent),
        loops=tuple((_body_at(frame, p.predecessor), _body_at(frame, p.successor)) for p in loops.values()),
        joint=tuple(bodies.models),
        XT=tuple(bodies.XT),
        I=inertia,
        gravity=g,  # type: ignore[arg-type]
        name=tuple(bodies.names),
        armature=_rotors(movable),
    )
    return Robot(
        name=name,
        base=base,
        tree=tree,
        joints=tuple(
            _numbered(d, body=i, q_slice=tree.q_slice[i], v_slice=tree.v_slice[i])
            for i, d in enumerate(movable, 1)
        ),
        links=placed_links,
        fixed_joints=tuple(
            _numbered(d, body=frame[d.child_link][0], q_slice=_NONE, v_slice=_NONE)
            for d in joints.values()
            if d.kind == "fixed"
        ),
        loop_joints=tuple(_numbered(d, number=tree.n + k) for k, d in enumerate(loops.values(), 1)),
        diagnostics=list(diagnostics),
        source=source,
    )


def _body_at(frame: Mapping[str, tuple[int, Placement]], end: str) -> int:
    """The body of a loop joint's end; of the world, where no link has its name, body 0."""
    return frame[end][0] if end in frame else 0


class _Bodies:
    """The numbered bodies: each movable joint opens one; a link behind a fixed joint joins its parent's.

    ``parent``, ``names``, ``models`` and ``XT`` go by body, as :class:`Tree` has them; ``frame`` by link, to
    its body and place on it; ``movable`` are the joints of bodies 1..N.
    """

    def __init__(self, root: str, base: str) -> None:
        self.parent = [-1]
        self.names = [WORLD if base == "floating" else root]
        self.models = [NO_JOINT]
        self.XT = [Transform.identity()]
        self.frame: dict[str, tuple[int, Placement]] = {root: (0, _HERE)}
        self.movable: list[Joint] = []
        self._known: dict[tuple, JointModel] = {}

    def add_floating_base(self, root: str, armature: float) -> None:
        """Body 1: the root link, carried by a joint of six degrees of freedom."""
        free = replace(new_joint(FLOATING_BASE, "floating", WORLD, root, _HERE), armature=armature)
        model = JointModel(JOINT_TABLE["floating"], Vector3(1.0, 0.0, 0.0))
        self._open(root, 0, free, model, Transform.identity())

    def add(self, child: str, joint: Joint) -> None:
        """The link ``child`` and the joint that carries it, after the link that it hangs on."""
        body, placement = self.frame[joint.parent_link]
        rows, shift = joint.origin.rotation.tolist(), joint.origin.position.tolist()
        if placement is not _HERE:
            R, p = placement.rotation.tolist(), placement.position.tolist()
            rows, shift = product_of_rows(R, rows), list(map(add, turned_by_rows(R, shift), p))
        rows = _UPRIGHT if rows == _UPRIGHT else [snap(row) for row in rows]
        shift = [0.0 if abs(x) < SNAP else x for x in shift]
        if joint.kind == "fixed":
            self.frame[child] = (body, Placement(np.array(rows), np.array(shift)))
            return
        key = (joint.kind, *joint.axis.tolist(), joint.pitch)
        if key not in self._known:  # most joints of a robot turn about the same few axes
            self._known[key] = JointModel(JOINT_TABLE[joint.kind], Vector3(*key[1:4]), joint.pitch)
        E = _IDENTITY if rows is _UPRIGHT else Matrix3(zip(*rows, strict=True))
        self._open(child, body, joint, self._known[key], Transform(E, Vector3(*shift)))

    def _open(self, child: str, parent: int, joint: Joint, model: JointModel, XT: Transform) -> None:
        self.frame[child] = (len(self.parent), _HERE)
        self.parent.append(parent)
        self.names.append(child)
        self.models.append(model)
        self.XT.append(XT)
        self.movable.append(joint)


def _placed_links(
    links: Mapping[str, Link], bodies: _Bodies
) -> tuple[tuple[RigidInertia, ...], tuple[Link, ...]]:
    """The inertia of each body, about its origin, and the links on their bodies."""
    inertia: list[RigidInertia | None] = [None] * len(bodies.parent)
    placed = []
    for link in links.values():
        body, placement = bodies.frame[link.name]
        own, before = _body_inertia(link, placement), inertia[body]
        total = own if before is None else before + own
        if not _is_finite(total):
            raise ModelError(
                f"link {link.name!r}: its mass {link.mass:g} kg and inertia are too large to be added to "
                f"those of body {bodies.names[body]!r}: the sum is not finite"
            )
        inertia[body] = total
        placed.append(_numbered(link, body=body, placement=placement))
    return tuple(RigidInertia.zero() if I is None else I for I in inertia), tuple(placed)


def _walk(
    model: str,
    links: Mapping[str, Link],
    joints: Mapping[str, Joint],
    loops: Mapping[str, LoopJoint],
) -> tuple[list[str], dict[str, Joint]]:
    """Links depth first from the root, and the joint that leads to each."""
    if not links:
        raise ModelError(f"model {model!r} has no link; add at least one")
    incoming: dict[str, Joint] = {}
    for joint in joints.values():
        for end in (joint.parent_link, joint.child_link):
            if end not in links:
                raise UnknownName("link", end, links, f"(joint {joint.name!r})")
        if joint.child_link in incoming:
            raise ModelError(
                f"link {joint.child_link!r} has two parents, joints {incoming[joint.child_link].name!r} and "
                f"{joint.name!r}; a loop is closed with loop_joint"
            )
        incoming[joint.child_link] = joint
    for loop in loops.values():
        for end in (loop.predecessor, loop.successor):
            if end not in links and end != WORLD:
                raise UnknownName("link", end, [*links, WORLD], f"(loop joint {loop.name!r})")
    roots = [name for name in links if name not in incoming]
    if len(roots) != 1:
        found = (
            f"{len(roots)} ({', '.join(map(repr, roots[:5]))})" if roots else "none: the joints form a cycle"
        )
        raise ModelError(f"model {model!r} needs one root link, found {found}")
    # Children in the order of the joints, as they were added.
    names = [roots[0], *incoming]
    number = {name: k for k, name in enumerate(names)}
    order = depth_first([-1, *(number[joint.parent_link] for joint in incoming.values())])
    if len(order) != len(links):
        lost = sorted(set(links) - {names[k] for k in order})
        raise ModelError(f"links {', '.join(map(repr, lost[:5]))} form a cycle that the root does not reach")
    return [names[k] for k in order], incoming


def _rotors(movable: Sequence[Joint]) -> tuple[tuple[float, ...], ...]:
    """The armature of each body's joint by dof; empty where no joint has any."""
    if not any(d.armature for d in movable):
        return ()
    return ((), *((d.armature,) * JOINT_TABLE[d.kind].nv for d in movable))


def _body_inertia(link: Link, placement: Placement) -> RigidInertia:
    c, Ic = link.com.tolist(), link.inertia.tolist()
    if placement is not _HERE:
        R, p = placement.rotation.tolist(), placement.position.tolist()
        c = map(add, turned_by_rows(R, c), p)
        Ic = product_of_rows(product_of_rows(R, Ic), tuple(zip(*R, strict=True)))
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = Ic
    # RigidInertia.about_com in plain floats, to the bit: a third of its time.
    m, (x, y, z) = link.mass, c
    hx, hy, hz = x * m, y * m, z * m
    sx, sy, sz = x * 0.5, y * 0.5, z * 0.5
    px, py, pz = hx * x, hy * y, hz * z
    about_frame = Symmetric3(
        xx + (py + pz),
        yy + (px + pz),
        zz + (px + py),
        xy - (hx * sy + hy * sx),
        xz - (hx * sz + hz * sx),
        yz - (hy * sz + hz * sy),
    )
    return RigidInertia(m, Vector3(hx, hy, hz), about_frame)


def _is_finite(inertia: RigidInertia) -> bool:
    """Whether all ten numbers are; their sum says so at once unless it overflows by itself."""
    h, I = inertia.h, inertia.Ibar
    total = inertia.m + h.x + h.y + h.z + I.xx + I.yy + I.zz + I.xy + I.xz + I.yz
    return math.isfinite(total) or all(map(math.isfinite, (inertia.m, *h, *I)))
