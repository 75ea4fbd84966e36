"""Forces of constraints: operational space, constrained dynamics, impacts, reactions of all joints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from robokit.algorithms.constrained_dynamics import PROXIMAL
from robokit.algorithms.loop_constraints import constraint_rows
from robokit.arguments import one_of, real_array
from robokit.dataclass_tools import short_repr
from robokit.dynamics import choices
from robokit.dynamics.choices import on_card, on_device
from robokit.dynamics.equations_of_motion import aba
from robokit.dynamics.link_kinematics import LinkPoses, forward_kinematics
from robokit.dynamics.run import FExt, accelerations, body_forces, dtype_name, dtype_of, run, with_forces
from robokit.errors import DeviceError, ShapeError, UnknownName
from robokit.model.constraints import Contact, LoopModel, constraint_models, loop_models
from robokit.model.geometry import Placement
from robokit.model.parts import Joint, Link
from robokit.model.robot import Robot, check_robot
from robokit.spatial import Force, Matrix3, Vector3

__all__ = [
    "JointReactions",
    "OperationalSpaceInertia",
    "constrained_dynamics",
    "impact",
    "joint_reactions",
    "operational_space_inertia",
]

PROXIMAL_SINGLE = 1e-4  # the proximal share in single precision

SINGULAR = ("inertias", "the frames cannot move in some direction here; give a damping, such as 1e-6")
"""What is not finite in a singular pose, and what to do."""

UNBOUNDED = (
    "accelerations and forces",
    "v, tau or f_ext are too large, or proximal is too small for constraints that repeat one another",
)
"""The same for constraints."""

NO_GAINS = (0.0, 0.0)  # Baumgarte's gains by default: no stabilisation

_NO_GAINS = np.zeros(2)
_NO_GAINS.flags.writeable = False


class OperationalSpaceInertia(NamedTuple):
    """What :func:`operational_space_inertia` returns; m rows of J for all frames together.

    Attributes:
        inertia: Lambda, (m, m) or (B, m, m) [kg m^2 | kg m | kg].
        mobility: its inverse J H^-1 J^T, (m, m) or (B, m, m).
        inverse_jacobian: the dynamically consistent inverse H^-1 J^T Lambda, (nv, m) or (B, nv, m).
    """

    inertia: np.ndarray
    mobility: np.ndarray
    inverse_jacobian: np.ndarray

    def __repr__(self) -> str:
        return short_repr(self)


def operational_space_inertia(
    robot: Robot,
    q: Any,
    frames: Sequence[Any],
    damping: Any = 0.0,
    *,
    out: Any = None,
    engine: str | None = None,
    dtype: Any = None,
    reproducible: bool | None = None,
    device: Any = None,
) -> OperationalSpaceInertia:
    """The inertia that links show to forces from outside, all frames together.

    With the rows of J, [angular; linear] of a pose and linear of a position, in world axes at the point:
    Lambda = (J H^-1 J^T)^-1 and Jbar = H^-1 J^T Lambda. Forces F at the frames are joint forces J^T F; joint
    forces (1 - J^T Jbar^T) tau move none of the frames. J is :func:`link_jacobian`'s.

    Where the frames cannot move in some direction, Lambda is infinite: give a damping. Then
    Lambda = (mobility + damping S)^-1, with S the diagonal of typical mobilities of angles and of lengths,
    and a direction that cannot move weighs some 1 / damping times the others. ``mobility`` is never damped.

    Source: Khatib 1987; RBDA sections 6.5, 8.5.  Cost: O(n d^2 + m n d).

    Args:
        robot: the robot.
        q, engine, dtype, reproducible, device: as in :func:`rnea`.
        frames: names of links (their pose), :class:`Contact` objects or (link, at, "position" | "pose").
            Every list of frames has machine code of its own.
        damping: share of the typical mobility, (), (B,) or (B, 1); 1e-6 is a small one.
        out: three arrays to write to.

    Returns:
        (inertia, mobility, inverse_jacobian).

    Raises:
        UnknownName: no such link.
        ShapeError: the pose is singular and there is no damping, or the damping is negative.
        SingularInertia: a joint moves no inertia; the error names it.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("arm"))
        >>> q = robot.configuration(joints={"joint_4": -1.0})
        >>> found = rk.operational_space_inertia(robot, q, [rk.Contact(robot.link_names[-1])], damping=1e-6)
        >>> found.inertia.shape, found.inverse_jacobian.shape
        ((3, 3), (7, 3))
    """
    engine = engine if device is None else on_device(device, engine)
    check_robot(robot)
    dtype = dtype_of(dtype, out, q, damping)
    e = _share("damping", damping)
    key = ("operational_space_inertia", choices.frames(robot, frames))
    return OperationalSpaceInertia(
        *accelerations(robot, key, out, engine, dtype, reproducible, q, e, refusal=SINGULAR)
    )


def constrained_dynamics(
    robot: Robot,
    q: Any,
    v: Any,
    tau: Any,
    constraints: Sequence[Any] | None = None,
    stabilisation: Any = NO_GAINS,
    proximal: float | None = None,
    f_ext: FExt = None,
    *,
    out: Any = None,
    engine: str | None = None,
    dtype: Any = None,
    reproducible: bool | None = None,
    device: Any = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Forward dynamics with bilateral contacts and loop joints.

    H a + C = tau + J^T lambda and J a + J' v = -kp delta - kd J v, both ways: a contact can pull; C has
    the forces f_ext too. The rows of a contact are in world axes at its point, those of a loop joint in its
    frame on the predecessor. Constraints may repeat one another, as four corners of a foot do: the forces are
    then those of proximal iterations, which share the load among them. Where they contradict one another
    the accelerations are the nearest compromise, and J a + J' v says by how much. Without stabilisation the
    acceleration errors are zero and velocities drift apart slowly over many steps.

    Source: RBDA chapter 8.  Cost: O(n + m^2 d + m^3), m rows; O(n d^2) with coupled joints.

    Args:
        robot: the robot.
        q, v, f_ext, engine, dtype, reproducible, device: as in :func:`rnea`.
        tau: joint forces [N m | N], (nv,) or (B, nv).
        constraints: :class:`Contact` objects, or (link, at, "position" | "pose"), and names of loop joints;
            None for all loop joints of the robot. Every list of them has machine code of its own.
        stabilisation: Baumgarte's (kp, kd) [1/s^2, 1/s], (2,) or (B, 2); delta is how far a loop joint
            is from closed, and 0 for contacts, which are held where they are.
        proximal: share of the typical mobility that each iteration adds, 1e-8 (1e-4 in single precision).
        out: two arrays to write to.

    Returns:
        (a, lambda): accelerations [rad/s^2 | m/s^2], (nv,) or (B, nv), and the forces on the links by row
        [N m | N], (m,) or (B, m): 3 for a position [f], 6 for a pose [n; f], 6 less its degrees of freedom
        for a loop joint.

    Raises:
        UnknownName: no such link or loop joint.
        ShapeError: no constraint at all, or a gain below zero.
        SingularInertia: a joint moves no inertia; the error names it.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"), base="floating")
        >>> hold = rk.Contact("mount", kind="pose")
        >>> a, force = rk.constrained_dynamics(robot, robot.neutral(), np.zeros(8), np.zeros(8), [hold])
        >>> round(float(force[5]), 3), round(robot.total_mass * 9.81, 3)  # it carries the whole weight
        (41.202, 41.202)
    """
    engine = engine if device is None else on_device(device, engine)
    check_robot(robot)
    dtype = dtype_of(dtype, out, q, v, tau, f_ext, stabilisation, proximal)
    name, arguments = with_forces("constrained_dynamics", robot, q, f_ext, engine, reproducible)
    key = (name, choices.constraints(robot, constraints))
    gains = _NO_GAINS
    if stabilisation is not NO_GAINS:
        gains, here = stabilisation, not on_card(q, stabilisation)
        if here:
            gains = real_array("stabilisation", stabilisation, "(2,) or (B, 2)")
        if here and np.any(gains < 0.0):
            raise ShapeError(f"stabilisation: expected kp, kd >= 0, which close gaps, got {gains.min():.6g}")
    e = _proximal(proximal, dtype)
    state = (q, v, tau, gains, e, *arguments)
    return accelerations(robot, key, out, engine, dtype, reproducible, *state, refusal=UNBOUNDED)


def impact(
    robot: Robot,
    q: Any,
    v: Any,
    constraints: Sequence[Any] | None = None,
    restitution: Any = 0.0,
    proximal: float | None = None,
    *,
    out: Any = None,
    engine: str | None = None,
    dtype: Any = None,
    reproducible: bool | None = None,
    device: Any = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Velocities after an impact that stops the constraints: J v+ = -restitution J v-.

    H (v+ - v-) = J^T impulses. With restitution 0 the kinetic energy that is lost is that of the change,
    (v+ - v-)^T H (v+ - v-) / 2; with 1 none is lost.

    Source: RBDA section 11.7.  Cost: as in :func:`constrained_dynamics`.

    Args:
        robot: the robot.
        q, v, engine, dtype, reproducible, device: as in :func:`rnea`; v before the impact.
        constraints, proximal: as in :func:`constrained_dynamics`.
        restitution: 0 (all sticks) to 1 (all rebounds), (), (B,) or (B, 1), of all rows.
        out: two arrays to write to.

    Returns:
        (v, impulses): velocities after it [rad/s | m/s], (nv,) or (B, nv), and the impulses on the links by
        row [N m s | N s], (m,) or (B, m).

    Raises:
        UnknownName: no such link or loop joint.
        ShapeError: no constraint at all, or a restitution outside 0 to 1.
        SingularInertia: a joint moves no inertia; the error names it.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"), base="floating")
        >>> falling = np.array([0, 0, 0, 0, 0, -1.0, 0, 0])
        >>> v, impulse = rk.impact(robot, robot.neutral(), falling, [rk.Contact("lower", (0, 0, -0.55))])
        >>> round(float(impulse[2]), 3)  # [N s], upwards
        4.2
    """
    engine = engine if device is None else on_device(device, engine)
    check_robot(robot)
    key = ("impact", choices.constraints(robot, constraints))
    dtype = dtype_of(dtype, out, q, v, restitution, proximal)
    e = _share("restitution", restitution, most=1.0)
    state = (q, v, e, _proximal(proximal, dtype))
    return accelerations(robot, key, out, engine, dtype, reproducible, *state, refusal=UNBOUNDED)


_NONE = np.zeros(1)
_ALL = np.ones(1)
_DOUBLE, _SINGLE = np.array([PROXIMAL]), np.array([PROXIMAL_SINGLE])


def _share(name: str, value: Any, most: float = np.inf) -> np.ndarray:
    """A number from 0, or one for each state, as kernels take it."""
    if value.__class__ is float and (value == 0.0 or value == 1.0 <= most):
        return _ALL if value else _NONE
    if on_card(value):
        return value.reshape(-1, 1) if value.ndim else value.reshape(1)
    accepted = "(), (B,) or (B, 1)"
    array = real_array(name, value, accepted)
    if array.ndim > 2 or array.shape[1:] not in ((), (1,)):
        raise ShapeError(f"{name}: expected one number for each state, {accepted}, got shape {array.shape}")
    if not np.all((array >= 0.0) & (array <= most)):
        bound = f"from 0 to {most:g}" if most < np.inf else ">= 0"
        raise ShapeError(f"{name}: expected numbers {bound}, got {value!r}")
    # A single number is one of all states; a kernel takes those of a batch as rows.
    return array.reshape(1) if array.size == 1 and array.ndim < 2 else array.reshape(-1, 1)


def _proximal(value: float | None, dtype: Any) -> np.ndarray:
    if value is not None:
        return _share("proximal", value)
    return _SINGLE if dtype is not None and dtype_name(dtype) == "float32" else _DOUBLE


# ---- joint reactions: the six numbers that every joint passes on from its parent to its child -------------
#
# Machine code gives the wrench of each body's joint (algorithms/joint_reactions.py). A joint that was folded
# away because it is fixed carries what hangs below it: links of the same body, the joints of other bodies.

FRAMES = ("link", "world", "joint")
"""Axes of reactions: the child link's; the world's; the joint's frame on its parent."""


class JointReactions(Mapping[str, np.ndarray]):
    """What parents exert on children: ``reactions[joint]`` = [moment; force] [N m; N], (6,) or (B, 6).

    Attributes:
        joint_names: the n joints: those of the bodies in their order, fixed ones, loop joints.
        wrenches: all of them, (n, 6) or (B, n, 6); the others are views of it.
    """

    __slots__ = ("joint_names", "wrenches")

    def __init__(self, joint_names: tuple[str, ...], wrenches: np.ndarray) -> None:
        self.joint_names, self.wrenches = joint_names, wrenches

    @property
    def moment(self) -> np.ndarray:
        """(n, 3) or (B, n, 3) [N m]."""
        return self.wrenches[..., :3]

    @property
    def force(self) -> np.ndarray:
        """(n, 3) or (B, n, 3) [N]."""
        return self.wrenches[..., 3:]

    def __getitem__(self, joint: str) -> np.ndarray:
        if joint not in self.joint_names:
            raise UnknownName("joint", joint, self.joint_names)
        return self.wrenches[..., self.joint_names.index(joint), :]

    def __iter__(self) -> Iterator[str]:
        return iter(self.joint_names)

    def __len__(self) -> int:
        return len(self.joint_names)

    def __repr__(self) -> str:
        return f"<JointReactions of {len(self)} joints, wrenches {self.wrenches.shape}>"


def joint_reactions(
    robot: Robot,
    q: Any,
    v: Any,
    a: Any = None,
    f_ext: FExt = None,
    *,
    tau: Any = None,
    constraints: Sequence[Any] | None = None,
    frame: str = "link",
    engine: str | None = None,
    reproducible: bool | None = None,
    device: Any = None,
) -> JointReactions:
    """The wrench that each joint's parent exerts on its child, at the joint's origin.

    Give either the accelerations ``a`` or the joint forces ``tau``. With ``tau`` the robot moves as
    :func:`aba` says, or with loop joints and other constraints as :func:`constrained_dynamics` does; what
    these exert is part of the balance, and loop joints have reactions, too.

    A reaction has all six numbers: along the joint's axis what drives the joint (motor, friction, stop, less
    what turns the rotors), in the other directions what its bearing carries. Fixed joints have theirs, too,
    though their links move as one body. The joint's origin is the child link's, and of a loop joint that of
    its frame on the successor: on a prismatic joint it moves with the child. That of a floating base is what
    nothing exerts: zero where the motion is a true one.

    Source: RBDA table 5.1 and section 5.3 (f_i).  Cost: O(n).

    Args:
        robot: the robot.
        q, v, f_ext, engine, reproducible, device: as in :func:`rnea`. A wrench of ``f_ext`` by name acts on
            that link, a row of an array on the body's own link.
        a: accelerations [rad/s^2 | m/s^2], (nv,) or (B, nv).
        tau: joint forces [N m | N], (nv,) or (B, nv).
        constraints: as in :func:`constrained_dynamics`, with ``tau``; by default the robot's loop joints.
        frame: axes of both vectors: "link", the child link's (of a loop joint, its successor's); "world";
            "joint", those of the joint's frame on its parent (predecessor), which do not turn with the joint.

    Returns:
        ``reactions[joint]`` = [n; f] [N m; N], (6,) or (B, 6); all of them as .wrenches, .moment and .force.

    Raises:
        ShapeError: neither or both of a and tau, or a where loop joints or constraints need tau.
        UnknownName: no such link, constraint or frame.
        SingularInertia: with tau, a joint moves no inertia; the error names it.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> held = rk.joint_reactions(robot, q=[0.5, 0.2], v=[0, 0], a=[0, 0], frame="world")
        >>> held["upper_joint"].round(3)  # the weight; 7.257 N m about the axis, 0.343 across
        array([ 0.343,  7.257,  0.   , -0.   ,  0.   , 21.582])
        >>> free = rk.joint_reactions(robot, q=[0.5, 0.2], v=[0, 0], tau=[0, 0], frame="world")
        >>> free["upper_joint"].round(3)  # let go: nothing about the axis, and less to carry
        array([ 0.229, -0.   , -0.175,  8.109,  0.   , 16.608])
    """
    engine = engine if device is None else on_device(device, engine)
    check_robot(robot)
    if on_card(q, v, a, tau):
        raise DeviceError(
            'joint_reactions: expected NumPy\'s arrays, which device="cuda" copies; of arrays on a card '
            'there is rk.functions["body_reactions"], the wrench of each body\'s joint in its axes'
        )
    one_of("frame", frame, FRAMES)
    if (a is None) == (tau is None):
        both = "neither" if a is None else "both"
        raise ShapeError(f"a, tau: expected one of them, accelerations or joint forces; got {both}")
    how: dict[str, Any] = {"engine": engine, "reproducible": reproducible}
    wrenches = {} if f_ext is None else _on_links(robot, q, f_ext, how)
    loops: dict[str, np.ndarray] = {}
    if tau is None:
        if loop_models(robot) or constraints is not None:
            what = "loop joints" if constraints is None else "constraints"
            raise ShapeError(f"a: the forces of {what} follow from the joint forces; give tau instead of a")
    elif constraints is None and not loop_models(robot):
        a = aba(robot, q, v, tau, f_ext, **how)
    else:
        a, forces = constrained_dynamics(robot, q, v, tau, constraints, f_ext=f_ext, **how)
        loops = _of_constraints(robot, q, constraints, forces, wrenches)
    return reactions(robot, q, v, a, wrenches, loops, frame, **how)


def _on_links(robot: Robot, q: Any, f_ext: Any, how: dict[str, Any]) -> dict[str, np.ndarray]:
    """External forces by link in world axes about the world's origin, (6,) or (B, 6)."""
    in_bodies = body_forces(robot, q, f_ext, how["engine"], how["reproducible"])  # checks them
    if isinstance(f_ext, Mapping):
        return {link: np.asarray(x, dtype=float) for link, x in f_ext.items()}
    f = in_bodies.reshape(*in_bodies.shape[:-1], -1, 6)
    poses, found = forward_kinematics(robot, q, **how), {}
    for i in range(robot.nbodies + 1):
        if i or robot.base == "fixed":
            R, p = poses[robot.body_name(i)]
            found[robot.body_name(i)] = _moved(_turned(R, f[..., i, :]), p)
    return found


def _of_constraints(
    robot: Robot, q: Any, names: Sequence[Any] | None, forces: np.ndarray, wrenches: dict[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Forces of constraints by row: those of contacts are added to the wrenches on links, loops returned."""
    held = choices.constraints(robot, names)
    poses, loops, first = forward_kinematics(robot, q), {}, 0
    for constraint, model in zip(held, constraint_models(robot, held), strict=True):
        rows = forces[..., first : first + model.rows]
        first += model.rows
        if isinstance(constraint, Contact):
            R, p = poses[constraint.link]
            wrench = np.concatenate([np.zeros((*rows.shape[:-1], 3)), rows], axis=-1)[..., -6:]
            at = p + R @ np.array(constraint.at)
            wrenches[constraint.link] = wrenches.get(constraint.link, 0.0) + _moved(wrench, at)
        else:
            assert isinstance(model, LoopModel)
            loops[constraint] = _of_loop(robot, model, poses, rows)
    return loops


def _of_loop(robot: Robot, model: LoopModel, poses: LinkPoses, forces: np.ndarray) -> np.ndarray:
    """The wrench of a loop's rows on its successor, in axes and about the origin of its frame P."""
    loop = next(loop for loop in robot.loop_joints if loop.name == model.name)
    (R_P, p), (R_S, s) = (
        _placed(_pose(poses, link), on)
        for link, on in (
            (loop.predecessor, loop.predecessor_placement),
            (loop.successor, loop.successor_placement),
        )
    )
    to_P = np.swapaxes(R_P, -1, -2)
    R, r = np.moveaxis(to_P @ R_S, (-2, -1), (0, 1)), np.moveaxis((to_P @ (s - p)[..., None])[..., 0], -1, 0)
    total = Force.zero()
    for row, size in zip(constraint_rows(model, Matrix3(R), Vector3(*r)), forces.T, strict=True):
        total = total + row.f * size
    return np.stack(np.broadcast_arrays(*total), axis=-1)


# ---- from forces on links to reactions --------------------------------------------------------------------


class _Folded(NamedTuple):
    """What hangs below a fixed joint."""

    at: int  # place of the joint
    body: int  # that its links belong to
    inertia: np.ndarray  # of these, about the body's origin in its axes, (6, 6) or (B, 6, 6), angular first
    links: tuple[str, ...]  # their names
    joints: tuple[int, ...]  # places of the joints of other bodies on them


class _Layout(NamedTuple):
    """The order of the reactions: joints of bodies, then fixed joints."""

    names: tuple[str, ...]  # of the joints, loop joints at the end
    children: np.ndarray  # places of their links
    parents: np.ndarray  # places of their parents; one more than there are links for the world
    axes: np.ndarray  # of the joints on their parents, (n, 3, 3)
    folded: tuple[_Folded, ...]  # the fixed ones


def _layout(robot: Robot) -> _Layout:
    joints, places = (*robot.body_joints, *robot.fixed_joints), robot.link_index
    below: dict[str, list[tuple[int, Joint]]] = {}
    for at, joint in enumerate(joints):
        below.setdefault(joint.parent_link, []).append((at, joint))

    def folded(at: int, joint: Joint) -> _Folded:
        links, carried, queue = [], [], [joint.child_link]
        while queue:
            links.append(queue.pop())
            for k, other in below.get(links[-1], ()):
                if k < robot.nbodies:
                    carried.append(k)
                else:
                    queue.append(other.child_link)
        inertia = np.asarray(sum(_spatial_inertia(robot.link(link)) for link in links))
        return _Folded(at, robot.link(joint.child_link).body, inertia, tuple(links), tuple(carried))

    return _Layout(
        (*(joint.name for joint in joints), *(loop.name for loop in robot.loop_joints)),
        np.array([places[joint.child_link] for joint in joints], dtype=int),
        np.array([places.get(joint.parent_link, len(places)) for joint in joints], dtype=int),
        np.array([joint.origin.rotation for joint in joints]).reshape(-1, 3, 3),
        tuple(folded(at, joint) for at, joint in enumerate(joints) if at >= robot.nbodies),
    )


def _spatial_inertia(link: Link) -> np.ndarray:
    """Spatial inertia about the body's origin in its axes, (6, 6) or (B, 6, 6)."""
    R, m = link.placement.rotation, np.asarray(link.mass, dtype=float)
    # The matrix whose product with y is c cross y.
    c = -np.cross((link.com @ R.T + link.placement.position)[..., None, :], np.eye(3))
    mass = m[..., None, None]
    found = np.zeros((*np.broadcast_shapes(mass.shape[:-2], c.shape[:-2]), 6, 6))
    found[..., :3, :3] = R @ link.inertia @ R.T - mass * (c @ c)
    found[..., :3, 3:], found[..., 3:, :3] = mass * c, -mass * c
    found[..., 3:, 3:] = mass * np.eye(3)
    return found


def reactions(
    robot: Robot,
    q: Any,
    v: Any,
    a: Any,
    wrenches: Mapping[str, Any],
    loops: Mapping[str, np.ndarray],
    frame: str,
    engine: str | None = None,
    reproducible: bool | None = None,
) -> JointReactions:
    """Reactions of a motion under forces that are known, as of :func:`joint_reactions`.

    Args:
        wrenches: on links, [n; f] in world axes about the world's origin, (6,) or (B, 6).
        loops: on the successors of loop joints, in axes and about the origin of their frames on the
            predecessors, (6,) or (B, 6); one that is not there does not hold.
    """
    layout: _Layout = robot.derived.get("reactions", lambda: _layout(robot))
    poses, wrenches = forward_kinematics(robot, q, engine=engine, reproducible=reproducible), dict(wrenches)
    R, p = poses.rotation, poses.position
    ends = [_placed(_pose(poses, loop.predecessor), loop.predecessor_placement) for loop in robot.loop_joints]
    on_loops = [
        _turned(R_P, loops[loop.name]) if loop.name in loops else np.zeros(6)
        for loop, (R_P, _) in zip(robot.loop_joints, ends, strict=True)
    ]
    for loop, wrench, (_, o) in zip(robot.loop_joints, on_loops, ends, strict=True):
        for link, sign in ((loop.successor, 1.0), (loop.predecessor, -1.0)):
            if link in poses:  # or it is the world
                wrenches[link] = wrenches.get(link, 0.0) + sign * _moved(wrench, o)
    name, arguments = with_forces("body_reactions", robot, q, wrenches or None, engine, reproducible)
    f, V, A = run(robot, name, None, engine, None, reproducible, q, v, a, *arguments)
    batch, N = np.broadcast_shapes(f.shape[:-2], p.shape[:-2]), robot.nbodies
    found = np.zeros((*batch, len(layout.names), 6))
    turns = R[..., layout.children, :, :]
    found[..., :N, :] = _turned(turns[..., :N, :, :], f[..., 1:, :])
    for joint in layout.folded:
        found[..., joint.at, :] = _of_folded(robot, layout, joint, (R, p), (V, A), found, wrenches)
    first = len(layout.names) - len(on_loops)
    for k, (loop, wrench, (_, o)) in enumerate(zip(robot.loop_joints, on_loops, ends, strict=True), first):
        _, origin = _placed(_pose(poses, loop.successor), loop.successor_placement)
        found[..., k, :] = _moved(wrench, o - origin)
    if frame == "world":
        return JointReactions(layout.names, found)
    if frame == "joint":
        world = np.broadcast_to(np.eye(3), (*R.shape[:-3], 1, 3, 3))
        turns = np.concatenate([R, world], axis=-3)[..., layout.parents, :, :] @ layout.axes
        last = [R_P[..., None, :, :] for R_P, _ in ends]
    else:
        last = [_pose(poses, loop.successor)[0][..., None, :, :] for loop in robot.loop_joints]
    turns = np.concatenate([turns, *last], axis=-3)
    return JointReactions(layout.names, _turned(np.swapaxes(turns, -1, -2), found))


def _of_folded(
    robot: Robot,
    layout: _Layout,
    joint: _Folded,
    poses: tuple[np.ndarray, np.ndarray],
    motion: tuple[np.ndarray, np.ndarray],
    found: np.ndarray,
    wrenches: Mapping[str, Any],
) -> np.ndarray:
    """The reaction of a fixed joint in world axes at its origin, from those of moving joints in ``found``."""
    (R, p), (V, A) = poses, (x[..., joint.body, :] for x in motion)
    origin = p[..., layout.children[joint.at], :]
    momentum = (joint.inertia @ V[..., None])[..., 0]
    k, l, omega = momentum[..., :3], momentum[..., 3:], V[..., :3]
    turning = np.cross(omega, k) + np.cross(V[..., 3:], l)
    total = (joint.inertia @ A[..., None])[..., 0] + np.concatenate([turning, np.cross(omega, l)], axis=-1)
    if joint.body or robot.base == "fixed":
        at = robot.link_index[robot.body_name(joint.body)]
        total = _moved(_turned(R[..., at, :, :], total), p[..., at, :] - origin)
    for at in joint.joints:
        total = total + _moved(found[..., at, :], p[..., layout.children[at], :] - origin)
    for link in joint.links:
        if link in wrenches:
            total = total - _moved(wrenches[link], -origin)
    return np.asarray(total)


# ---- frames and wrenches ---------------------------------------------------------------------------------


def _pose(poses: LinkPoses, link: str) -> tuple[np.ndarray, np.ndarray]:
    """World pose of a link, or of the world itself where a loop ends there."""
    if link in poses:
        return poses[link]
    batch = poses.position.shape[:-2]
    return np.broadcast_to(np.eye(3), (*batch, 3, 3)), np.zeros((*batch, 3))


def _placed(pose: tuple[np.ndarray, np.ndarray], on: Placement) -> tuple[np.ndarray, np.ndarray]:
    """Axes and origin in the world of a frame on a link."""
    R, p = pose
    return R @ on.rotation, p + R @ on.position


def _turned(R: np.ndarray, wrench: np.ndarray) -> np.ndarray:
    """A wrench in other axes."""
    both = np.reshape(wrench, (*np.shape(wrench)[:-1], 2, 3)) @ np.swapaxes(R, -1, -2)
    return np.reshape(both, (*both.shape[:-2], 6))


def _moved(wrench: Any, r: np.ndarray) -> np.ndarray:
    """A wrench about another point, from which its own is seen at r."""
    wrench = np.asarray(wrench)
    moment = wrench[..., :3] + np.cross(r, wrench[..., 3:])
    force = np.broadcast_to(wrench[..., 3:], moment.shape)
    return np.concatenate([moment, force], axis=-1)
