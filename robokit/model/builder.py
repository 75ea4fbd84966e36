"""ModelBuilder: links and joints by name, in any order, become a Robot with a numbered tree."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from robokit.conventions import FLOATING_BASE, SNAP, WORLD
from robokit.errors import Diagnostic, ModelError, UnknownName
from robokit.model.builder_arguments import (
    checked_name,
    checked_placement,
    finite,
    finite_number,
    limit,
    limits,
)
from robokit.model.geometry import Placement, Shape
from robokit.model.joints import JOINT_TABLE, NO_JOINT, JointModel
from robokit.model.parts import Calibration, Joint, Link, LoopJoint, Mimic, Safety
from robokit.model.robot import Robot
from robokit.model.tree import Tree, depth_first
from robokit.spatial import Matrix3, RigidInertia, Symmetric3, Transform, Vector3

BASES = ("fixed", "floating")
_HERE = Placement()  # of a link whose frame is its body's


@dataclass
class LinkDraft:
    """A link as :class:`ModelBuilder` keeps it: the arguments of ``link``, checked."""

    name: str
    mass: float
    com: np.ndarray
    inertia: np.ndarray
    visuals: tuple[Shape, ...]
    collisions: tuple[Shape, ...]


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


@dataclass
class _LoopDraft:
    name: str
    kind: str
    predecessor: str
    successor: str
    predecessor_placement: Placement
    successor_placement: Placement
    axis: np.ndarray


def snapped(row: Iterable[float]) -> list[float]:
    """Numbers within 1e-12 of 0 or +-1 made exactly that: zeros and ones are work that folds away."""
    return [0.0 if abs(x) < SNAP else math.copysign(1.0, x) if abs(abs(x) - 1.0) < SNAP else x for x in row]


def unit_axis(kind: str, axis: Sequence[float]) -> np.ndarray:
    """The axis of a joint, not zero, at length 1, (3,); x where its kind has none."""
    if not JOINT_TABLE[kind].has_axis:
        return np.array([1.0, 0.0, 0.0])
    norm = math.hypot(*axis)
    if not 1e-300 < norm < math.inf:  # the length has lost its digits
        largest = max(map(abs, axis))
        return unit_axis(kind, [x / largest for x in axis])
    # What snapping has left of a unit axis stays as it is, so that a robot written and read is the same.
    return np.array(snapped([x / norm for x in axis] if abs(norm - 1.0) > SNAP else axis))


class ModelBuilder:
    """Collects links and joints; :meth:`build` numbers them.

    Example:
        >>> b = ModelBuilder("pendulum")
        >>> b.link("base").link("rod", mass=1.0, com=(0, 0, -0.5), inertia=np.diag([0.1, 0.1, 0.01]))
        >>> b.joint("hinge", "revolute", "base", "rod", axis=(0, 1, 0))
        >>> robot = b.build()

    Links and joints have namespaces of their own. Joints may come before the links they name.
    """

    def __init__(self, name: str, source: str = "<code>") -> None:
        self.name, self.source = name, source
        self._links: dict[str, LinkDraft] = {}
        self._joints: dict[str, JointDraft] = {}
        self._loops: dict[str, _LoopDraft] = {}

    def link(
        self,
        name: str,
        mass: float = 0.0,
        com: Sequence[float] | np.ndarray = (0.0, 0.0, 0.0),
        inertia: Any = None,
        visuals: Sequence[Shape] = (),
        collisions: Sequence[Shape] = (),
    ) -> ModelBuilder:
        """Add a link.

        Args:
            name: unique among links.
            mass: [kg], not negative.
            com: (3,) centre of mass in the link frame [m].
            inertia: (3, 3) about the centre of mass, in link axes [kg m^2]; zero if None.
            visuals, collisions: shapes in the link frame.

        Raises:
            ModelError: a name that is taken or no name, or a mass, com or inertia that cannot be.
        """
        name = checked_name("link", name)
        if name in self._links:
            raise ModelError(f"link {name!r} is there already; link names are unique")
        matrix = finite(f"inertia of link {name!r}", np.zeros((3, 3)) if inertia is None else inertia, (3, 3))
        (_, xy, xz), (yx, _, yz), (zx, zy, _) = matrix.tolist()
        if not (_alike(xy, yx) and _alike(xz, zx) and _alike(yz, zy)):
            raise ModelError(f"inertia of link {name!r} is not symmetric")
        mass = finite_number(f"mass of link {name!r}", mass)
        if mass < 0.0:
            raise ModelError(f"mass of link {name!r} must be finite and not negative, got {mass}")
        self._links[name] = LinkDraft(
            name,
            mass,
            finite(f"com of link {name!r}", com, (3,)),
            matrix,
            tuple(visuals),
            tuple(collisions),
        )
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
    ) -> ModelBuilder:
        """Add a tree joint between two links.

        Args:
            name: unique among joints.
            kind: revolute, continuous, prismatic, helical, cylindrical, planar, spherical, floating or fixed.
            parent, child: link names.
            placement: the joint frame in the parent link; the child link's frame moves with it.
            axis: (3,) in joint coordinates, normalised here; the plane's normal for a planar joint.
            pitch: of a helical joint [m/rad].
            lower, upper: position limits [rad | m]; None for none.
            effort, velocity: limits [N m | N], [rad/s | m/s]; None for none.
            damping: [N m s/rad | N s/m]; friction: [N m | N].
            mimic: coupling to another joint.
            safety, calibration: kept for whoever has a safety controller or a calibration switch.

        Raises:
            ModelError: a name that is taken or no name, limits out of order, a number that is not finite
                (limits may be infinite), or a placement whose rotation is none.
            UnknownName: no such kind.
        """
        name = checked_name("joint", name)
        if name in self._joints or name in self._loops:
            raise ModelError(f"joint {name!r} is there already; joint names are unique")
        self._joints[name] = JointDraft(
            name,
            _kind(kind),
            parent,
            child,
            checked_placement(f"placement of joint {name!r}", placement),
            _axis(name, kind, axis),
            finite_number(f"pitch of joint {name!r}", pitch),
            *limits(name, lower, upper),
            limit(f"effort limit of joint {name!r}", effort, math.inf),
            limit(f"velocity limit of joint {name!r}", velocity, math.inf),
            finite_number(f"damping of joint {name!r}", damping),
            finite_number(f"friction of joint {name!r}", friction),
            mimic,
            safety,
            calibration,
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
    ) -> ModelBuilder:
        """Add a joint that closes a loop between two links of the tree; it gets a number above N.

        Raises:
            ModelError: a name that is taken or no name, or a placement whose rotation is none.
            UnknownName: no such kind.
        """
        name = checked_name("loop joint", name)
        if name in self._joints or name in self._loops:
            raise ModelError(f"joint {name!r} is there already; joint names are unique")
        self._loops[name] = _LoopDraft(
            name,
            _kind(kind),
            predecessor,
            successor,
            checked_placement(f"predecessor placement of loop joint {name!r}", predecessor_placement),
            checked_placement(f"successor placement of loop joint {name!r}", successor_placement),
            _axis(name, kind, axis),
        )
        return self

    def add(self, draft: LinkDraft | JointDraft) -> None:
        """Add a link or joint that has been checked already, as the importer does; nothing is asked again."""
        if isinstance(draft, LinkDraft):
            self._links[draft.name] = draft
        else:
            self._joints[draft.name] = draft

    def build(
        self,
        base: str = "fixed",
        diagnostics: Sequence[Diagnostic] = (),
        gravity: Sequence[float] | None = None,
    ) -> Robot:
        """Number the bodies depth first and fold fixed joints.

        Args:
            base: "fixed" makes the root link body 0; "floating" puts a 6-dof joint under it.
            diagnostics: findings that the robot carries along.
            gravity: (3,) in world axes [m/s^2]; (0, 0, -9.81) if None.

        Raises:
            ModelError: gravity that is not three numbers, no link, not one root, two parents, or a cycle.
            UnknownName: a joint names a link that is not there, or the base is neither of the two.
        """
        if base not in BASES:
            raise UnknownName("base", str(base), BASES)
        order, incoming = self._walk()
        root = order[0]

        # Bodies: each movable joint opens one; a link behind a fixed joint joins its parent's.
        parent = [-1]
        body_names = [WORLD if base == "floating" else root]
        models = [NO_JOINT]
        XT = [Transform.identity()]
        frame: dict[str, tuple[int, Placement]] = {}
        movable: list[JointDraft] = []
        known: dict[tuple, JointModel] = {}
        if base == "floating":
            if FLOATING_BASE in self._joints:
                raise ModelError(f"the joint name {FLOATING_BASE!r} belongs to the floating base; rename it")
            movable.append(
                JointDraft(
                    FLOATING_BASE,
                    "floating",
                    WORLD,
                    root,
                    Placement(),
                    np.array([1.0, 0, 0]),
                    0.0,
                    -math.inf,
                    math.inf,
                    math.inf,
                    math.inf,
                    0.0,
                    0.0,
                    None,
                )
            )
            parent.append(0)
            body_names.append(root)
            models.append(JointModel(JOINT_TABLE["floating"], Vector3(1.0, 0.0, 0.0)))
            XT.append(Transform.identity())
            frame[root] = (1, _HERE)
        else:
            frame[root] = (0, _HERE)
        for name in order[1:]:
            draft = incoming[name]
            body, placement = frame[draft.parent]
            here = draft.placement if placement is _HERE else placement @ draft.placement
            rows = [snapped(row) for row in here.rotation.tolist()]
            shift = [0.0 if abs(x) < SNAP else x for x in here.position.tolist()]
            if draft.kind == "fixed":
                frame[name] = (body, Placement(np.array(rows), np.array(shift)))
                continue
            movable.append(draft)
            parent.append(body)
            body_names.append(name)
            key = (draft.kind, *draft.axis.tolist(), draft.pitch)
            if key not in known:  # most joints of a robot turn about the same few axes
                known[key] = JointModel(JOINT_TABLE[draft.kind], Vector3(*key[1:4]), draft.pitch)
            models.append(known[key])
            XT.append(Transform(Matrix3(zip(*rows, strict=True)), Vector3(*shift)))
            frame[name] = (len(parent) - 1, _HERE)

        inertia: list[RigidInertia | None] = [None] * len(parent)
        links = []
        for link in self._links.values():
            body, placement = frame[link.name]
            own, before = _body_inertia(link, placement), inertia[body]
            inertia[body] = own if before is None else before + own
            links.append(
                Link(
                    link.name,
                    body,
                    placement,
                    link.mass,
                    link.com,
                    link.inertia,
                    link.visuals,
                    link.collisions,
                )
            )
        g = Tree.gravity if gravity is None else tuple(finite("gravity", gravity, (3,)).tolist())
        tree = Tree(
            parent=tuple(parent),
            loops=tuple((frame[p.predecessor][0], frame[p.successor][0]) for p in self._loops.values()),
            joint=tuple(models),
            XT=tuple(XT),
            I=tuple(RigidInertia.zero() if I is None else I for I in inertia),
            gravity=g,  # type: ignore[arg-type]
            name=tuple(body_names),
        )
        return Robot(
            name=self.name,
            base=base,
            tree=tree,
            joints=tuple(_joint(d, i, tree.q_slice[i], tree.v_slice[i]) for i, d in enumerate(movable, 1)),
            links=tuple(links),
            fixed_joints=tuple(
                _joint(d, frame[d.child][0], slice(0, 0), slice(0, 0))
                for d in self._joints.values()
                if d.kind == "fixed"
            ),
            loop_joints=tuple(
                LoopJoint(
                    d.name,
                    d.kind,
                    tree.n + k,
                    d.predecessor,
                    d.successor,
                    d.predecessor_placement,
                    d.successor_placement,
                    d.axis,
                )
                for k, d in enumerate(self._loops.values(), 1)
            ),
            diagnostics=list(diagnostics),
            source=self.source,
        )

    @classmethod
    def from_robot(cls, robot: Robot) -> ModelBuilder:
        """A builder with the links and joints of a robot; ``build(robot.base)`` gives the same robot again.

        The joint of a floating base is not in it; ``build`` adds it.
        """
        from robokit.model.unbuild import to_builder

        return to_builder(robot)

    def _walk(self) -> tuple[list[str], dict[str, JointDraft]]:
        """Links depth first from the root, and the joint that leads to each."""
        if not self._links:
            raise ModelError(f"model {self.name!r} has no link; add at least one")
        incoming: dict[str, JointDraft] = {}
        for joint in self._joints.values():
            for end in (joint.parent, joint.child):
                if end not in self._links:
                    raise UnknownName("link", end, self._links, f"(joint {joint.name!r})")
            if joint.child in incoming:
                raise ModelError(
                    f"link {joint.child!r} has two parents, joints {incoming[joint.child].name!r} and "
                    f"{joint.name!r}; a loop is closed with loop_joint"
                )
            incoming[joint.child] = joint
        for loop in self._loops.values():
            for end in (loop.predecessor, loop.successor):
                if end not in self._links:
                    raise UnknownName("link", end, self._links, f"(loop joint {loop.name!r})")
        roots = [name for name in self._links if name not in incoming]
        if len(roots) != 1:
            found = (
                f"{len(roots)} ({', '.join(map(repr, roots[:5]))})"
                if roots
                else "none: the joints form a cycle"
            )
            raise ModelError(f"model {self.name!r} needs one root link, found {found}")
        # Children in the order of the joints, as they were added.
        names = [roots[0], *incoming]
        number = {name: k for k, name in enumerate(names)}
        order = depth_first([-1, *(number[joint.parent] for joint in incoming.values())])
        if len(order) != len(self._links):
            lost = sorted(set(self._links) - {names[k] for k in order})
            raise ModelError(
                f"links {', '.join(map(repr, lost[:5]))} form a cycle that the root does not reach"
            )
        return [names[k] for k in order], incoming


def _alike(a: float, b: float) -> bool:
    return a == b or abs(a - b) <= 1e-9 * min(abs(a), abs(b))


def _joint(d: JointDraft, body: int, q_slice: slice, v_slice: slice) -> Joint:
    place = (d.name, d.kind, body, q_slice, v_slice, d.axis, d.pitch)
    bounds = (d.lower, d.upper, d.effort, d.velocity, d.damping, d.friction)
    return Joint(*place, *bounds, d.mimic, d.parent, d.child, d.placement, d.safety, d.calibration)


def _body_inertia(link: LinkDraft, placement: Placement) -> RigidInertia:
    c, Ic = link.com, link.inertia
    if placement is not _HERE:
        R = placement.rotation
        c, Ic = R @ c + placement.position, R @ Ic @ R.T
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = Ic.tolist()
    sym = Symmetric3(xx, yy, zz, xy, xz, yz)
    return RigidInertia.about_com(link.mass, Vector3(*c.tolist()), sym)


def _kind(kind: str) -> str:
    if kind not in JOINT_TABLE:
        raise UnknownName("joint kind", str(kind), JOINT_TABLE)
    return kind


def _axis(name: str, kind: str, axis: Any) -> np.ndarray:
    array = finite(f"axis of joint {name!r}", axis, (3,))
    if JOINT_TABLE[kind].has_axis and not array.any():
        raise ModelError(f"axis of joint {name!r} is zero; a {kind} joint needs a direction")
    return unit_axis(kind, array.tolist())
