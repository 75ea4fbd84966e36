"""What sensors of a run would have measured, from its accelerations and the reactions of its joints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from robokit.algorithms.aba import aba
from robokit.algorithms.coupling import coupled_forward_dynamics, reduced_columns
from robokit.algorithms.kinematics import forward_kinematics
from robokit.algorithms.loop_dynamics import closed_loops, loop_dynamics
from robokit.dataclass_tools import frozen, short_repr
from robokit.dynamics.constrained import JointReactions, reactions
from robokit.dynamics.equations_of_motion import crba
from robokit.errors import UnknownName
from robokit.model.constraints import loop_models
from robokit.model.geometry import Placement
from robokit.model.robot import Robot
from robokit.sim.events import Notes, acted, mean_of_parts, of_held_forces
from robokit.sim.force_elements import JointSpring
from robokit.sim.integrators import Held, forces_outside
from robokit.sim.joint_forces import as_list
from robokit.sim.motion import body_velocities, state_poses
from robokit.sim.step_kernel import Program
from robokit.sim.steppers import in_blocks, scene_of
from robokit.spatial import Force, Vector3

# ==== motion of steps =============================================================================
# Accelerations of a run, what each of its joints passes on from its parent to its child, and loop joints.
#
# A step of "contact" is a kick: its forces act at the pose of its middle and change the velocity there. So
# the accelerations and reactions of a record are the means over the step that led to it, as contact forces
# are; an impact's are its impulse over the step. Those of the start are of the first step. In passive motion
# they are those of the record's own instant, with the forces that the next step begins with.
#
# Source: RBDA table 5.1 (the wrench of each joint) at the kick's pose, with its mean velocity and
# acceleration.


@frozen
class StepMotion:
    """Motion at T records, of R rows: one for each, or one for each part of a step that is divided."""

    # q, v, a: where forces act, (R, ...)
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    on_bodies: np.ndarray  # wrenches from outside about the bodies' origins, world axes, (R, N + 1, 6)
    # what of them acts on other links than the bodies' own, or on links that are fixed to the world, (R, 6)
    # by name about the world's origin
    on_links: dict[str, np.ndarray]
    loops: dict[str, np.ndarray]  # on the successors, in their frames on the predecessors, (R, 6) by name
    first: np.ndarray  # where the rows of each record begin, (T,)
    share: np.ndarray  # of each row in its record, (R,)

    def mean(self, x: np.ndarray) -> np.ndarray:
        """Of each record, of what is known of each row."""
        return mean_of_parts(x, self.first, self.share)

    def reactions(self, robot: Robot, frame: str) -> JointReactions:
        """Of all joints, (T, n, 6)."""
        _, p = state_poses(robot, self.q)
        total = self.on_bodies.copy()
        total[..., :3] += np.cross(p, total[..., 3:])
        wrenches: dict[str, Any] = {}
        for link, wrench in self.on_links.items():
            total[:, robot.link(link).body] -= wrench
            wrenches[link] = wrench
        for i in range(1, robot.nbodies + 1):
            if total[:, i].any():
                wrenches[robot.body_name(i)] = wrenches.get(robot.body_name(i), 0.0) + total[:, i]
        found = reactions(robot, self.q, self.v, self.a, wrenches, self.loops, frame)
        return JointReactions(found.joint_names, self.mean(found.wrenches))


def step_motion(notes: Notes, marks: Sequence[int], ends: tuple[np.ndarray, np.ndarray]) -> StepMotion:
    """The motion of records, from notes of the steps around them.

    ``marks`` counts the steps until each record; ``ends`` are q and v of the last one, (nq,) and (nv,).
    """
    if not notes.program.contact:
        return instants(notes, marks, ends)
    taken, begin = notes.parts(np.maximum(np.array(marks) - 1, marks[0]))
    a, loops = kicks(taken)
    on_links = _on_links(taken)
    x = taken.arrays
    return StepMotion(x["kick"], x["mean"], a, x["wrench"], on_links, loops, begin, taken.share)


def kicks(taken: Notes) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Accelerations (n, nv) in n steps with contact; by name the wrench [N m; N] of each loop joint on its
    successor, in its frame on the predecessor, (n, 6).
    """
    robot, x = taken.program.robot, taken.arrays
    mean, long = x["mean"], (taken.dt * taken.share)[:, None]
    a = (x["after"] - x["before"]) / long
    for joint in robot.joints:  # a base that floats has its velocity in axes that do not turn
        if joint.kind == "floating" and robot.tree.parent[joint.body] == 0:
            turn, go = (slice(joint.v_slice.start + k, joint.v_slice.start + k + 3) for k in (0, 3))
            a[:, go] += np.cross(mean[:, go], mean[:, turn])
    loops: dict[str, np.ndarray] = {}
    if taken.program.loops is None:
        return a, loops
    R, p = state_poses(robot, x["kick"])
    for k, model in enumerate(loop_models(robot)):
        E, r = np.array(model.Xp.E.rows, dtype=float), np.array([*model.Xp.r], dtype=float)
        n, f = x["loop"][:, k, :3], x["loop"][:, k, 3:]
        n = n + np.cross(p[:, model.s] - p[:, model.p] - R[:, model.p] @ r, f)
        to_P = E @ np.swapaxes(R[:, model.p], 1, 2)
        loops[model.name] = np.concatenate([np.einsum("tij,tj->ti", to_P, each) for each in (n, f)], axis=1)
    return _with_closing(taken, a, loops), loops


RIGID = 1e-8  # compliance of loops over the mobility of all that moves; two iterations leave its square


def _with_closing(taken: Notes, a: np.ndarray, loops: dict[str, np.ndarray]) -> np.ndarray:
    """Accelerations that loops allow, and what that takes added to their wrenches.

    A kick lets the mean of the velocities before and after it fit the loops, and the end of the step closes
    the rest (constraints/loops.py): its own change is right to first order alone. To second order it is

        H d = J^T g,    J (a + d) + J' v = 0,    of prescribed joints d = 0,

    by (H + J^T J / R) d = J^T (aim - J d) / R, which links without mass allow, too.
    """
    program, (q, v) = taken.program, (taken.arrays[name] for name in ("kick", "mean"))
    robot, models = program.robot, program.loops.models if program.loops is not None else ()
    tree, rows, speeds = robot.tree, robot.split_q(list(q.T)), robot.split_v(list(v.T))
    held = closed_loops(tree, models, tree.transforms(rows))

    def stacked(values: Sequence[Any]) -> np.ndarray:
        return np.stack([np.broadcast_to(x, len(q)) for x in values], axis=-1)

    full = [row for loop in held for row in loop.jacobian()]
    columns = full if tree.coupling is None else reduced_columns(tree, full)
    J = np.stack([stacked(row) for row in columns], axis=1)
    rate = stacked([x for loop in held for x in loop.velocity_product(speeds)])
    still = [joint.v_slice.start for joint in robot.joints if joint.body in program.given.motions]
    aim = np.concatenate([-(np.einsum("tmk,tk->tm", J, a) + rate), np.zeros((len(q), len(still)))], axis=1)
    J = np.concatenate([J, np.broadcast_to(np.eye(robot.nv)[still], (len(q), len(still), robot.nv))], axis=1)
    H, transposed = crba(robot, q), np.swapaxes(J, 1, 2)
    size = np.einsum("tmk,tmk->tm", J, J)[:, :, None]
    stiff = np.abs(H).max(axis=(1, 2), initial=0.0)[:, None, None] / (RIGID * np.where(size > 0.0, size, 1.0))
    A = H + transposed @ (stiff * J)
    d, g = np.zeros_like(a), np.zeros_like(aim)
    for _ in range(3):
        left = stiff * (aim[..., None] - J @ d[..., None])
        d = d + np.linalg.solve(A, transposed @ left)[..., 0]
        g = g + (stiff * (aim[..., None] - J @ d[..., None]))[..., 0]
    rest = iter(g.T)
    for model, loop in zip(models, held, strict=True):
        wrench = loop.wrench([next(rest) for _ in loop.rows])
        loops[model.name] = loops[model.name] + stacked([*wrench])
    return a + d


def _on_links(notes: Notes) -> dict[str, np.ndarray]:
    """Wrenches of contacts, springs and pushes on links that are folded into others or fixed to the world."""
    program, given = notes.program, notes.inputs.rows(notes.step)[1]
    robot, names = program.robot, scene_of(program).links
    folded = {joint.child_link for joint in robot.fixed_joints}
    found: dict[str, np.ndarray] = {}
    rows, x = (
        np.repeat(np.arange(len(notes)), np.diff(notes.arrays["end"], prepend=0)),
        notes.arrays["contact"],
    )
    for side, sign in ((0, -1.0), (1, 1.0)):
        for shape in np.unique(x[:, side]).astype(int).tolist():
            if names[shape] in folded:
                own = x[:, side] == shape
                place, force, moment = (x[own, k : k + 3] for k in (2, 5, 8))
                wrench = sign * np.concatenate([moment + np.cross(place, force), force], axis=1)
                np.add.at(found.setdefault(names[shape], np.zeros((len(notes), 6))), rows[own], wrench)
    _, p = state_poses(robot, notes.arrays["kick"])
    for k, ends in enumerate(_ends_of_springs(program)):
        if folded.isdisjoint(ends):
            continue
        wrench = notes.arrays["spring"][:, k].copy()
        wrench[:, :3] += np.cross(p[:, robot.frame(ends[1])[0]], wrench[:, 3:])
        for link, sign in zip(ends, (-1.0, 1.0), strict=True):
            if link in folded:
                found[link] = found.get(link, 0.0) + sign * wrench
    for link, wrench in _pushed_links(program, state_poses(robot, notes.arrays["kick"]), given).items():
        found[link] = found.get(link, 0.0) + wrench
    return found


def _ends_of_springs(program: Program) -> list[tuple[str, str]]:
    """The links of each spring, first and second as in the step."""
    robot, found = program.robot, []
    for each in program.springs.given:
        if isinstance(each, JointSpring):
            joint = robot.joint(each.joint)
            found.append((joint.parent_link, joint.child_link))
        else:
            found.append((each.a, each.b) if robot.frame(each.b)[0] else (each.b, each.a))
    return found


def instants(notes: Notes, marks: Sequence[int], ends: tuple[np.ndarray, np.ndarray] | None) -> StepMotion:
    """Of passive motion, at the records themselves; without the ends, the last is that of the step before."""
    program, robot, loops = notes.program, notes.program.robot, notes.program.loops
    steps = np.minimum(marks, max(marks[-1] - 1, marks[0]))
    tau, given = notes.inputs.rows(steps)
    q, v, carried = (notes.arrays[name][notes.first(steps)] for name in ("q", "v", "carried"))
    if ends is not None and marks[-1] > steps[-1]:
        q[-1], v[-1] = ends
    nv, N = robot.nv, robot.nbodies

    def motion(p: Any, qs: Any, vs: Any, taus: Any, held: Held) -> Sequence[Any]:
        total, (outside, _) = held.total, forces_outside(p, qs, taus)
        f_ext, wrenches = None if outside is None else as_list(outside), []
        if loops is not None:
            a, forces, system = loop_dynamics(p.tree, loops.models, qs, vs, total, loops.proximal, f_ext)
            rest = iter(forces)
            wrenches = [loop.wrench([next(rest) for _ in loop.rows]) for loop in system.loops]
        else:
            text = aba if p.tree.coupling is None else coupled_forward_dynamics
            a = text(p.tree, qs, vs, total, f_ext)
        on_bodies = f_ext or [Force.zero()] * (N + 1)
        return [*robot.join_v(a), *(x for f in (*on_bodies, *wrenches) for x in f)]

    names = [] if loops is None else [model.name for model in loops.models]
    width = nv + 6 * (N + 1 + len(names))
    columns = of_held_forces(notes, motion, width, q, v, tau, carried, *given)
    forces = columns[:, nv:].reshape(len(q), -1, 6)
    R, p = state_poses(robot, q)
    on_bodies = (forces[:, : N + 1].reshape(len(q), N + 1, 2, 3) @ np.swapaxes(R, -1, -2)).reshape(
        len(q), -1, 6
    )
    of_loops = {name: forces[:, N + 1 + k] for k, name in enumerate(names)}
    on_links = _pushed_links(program, (R, p), given)
    return StepMotion(
        q, v, columns[:, :nv], on_bodies, on_links, of_loops, np.arange(len(q)), np.ones(len(q))
    )


def _pushed_links(
    program: Program, poses: tuple[np.ndarray, np.ndarray], given: Sequence[np.ndarray]
) -> dict[str, np.ndarray]:
    """Wrenches of pushes on links that are folded into another's body, (R, 6) by name."""
    folded = {joint.child_link for joint in program.robot.fixed_joints}
    found: dict[str, np.ndarray] = {}
    pushed = program.given.links
    if folded.isdisjoint(pushed):
        return found
    (R, p), (_, places) = poses, program.given.split(program.given_numbers)
    pushes = given[1 if program.given.drives else 0].reshape(len(p), -1, 6)
    for k, (link, (body, at)) in enumerate(zip(pushed, places, strict=True)):
        place = np.zeros(3) if at is None else p[:, body] + R[:, body] @ np.array(at)
        if link in folded:
            wrench = pushes[:, k].copy()
            wrench[:, :3] += np.cross(place, wrench[:, 3:])
            found[link] = found.get(link, 0.0) + wrench
    return found


# ==== sensors =====================================================================================
# What sensors on a robot would have measured in a run: IMU, contact wrench of a link, forces in a joint.
#
# Each value is that of the step that led to a record, the step in which ``contacts.forces`` act; at the start
# it is that of the first step.


@frozen
class Imu:
    """Readings of an inertial measurement unit at a link's origin, in the link's axes.

    Attributes:
        angular_velocity: (T, 3) at each record [rad/s].
        specific_force: (T, 3) acceleration minus gravity [m/s^2]: the change of the origin's velocity in the
            step before each record, divided by the time step, in the link's axes in the middle of the step.
            At rest it points up.
    """

    angular_velocity: np.ndarray
    specific_force: np.ndarray

    __repr__ = short_repr


@frozen
class JointForce:
    """Forces in a joint in the step before each record, (T, dofs of the joint) [N m | N].

    Attributes:
        actuator: forces of the actuator and the controller.
        friction: forces of damping and dry friction.
        stop: forces of the joint limits.
    """

    actuator: np.ndarray
    friction: np.ndarray
    stop: np.ndarray

    __repr__ = short_repr

    @property
    def total(self) -> np.ndarray:
        """Their sum."""
        return self.actuator + self.friction + self.stop


class Sensors:
    """The sensors of a run."""

    def __init__(
        self,
        notes: Notes,
        steps: np.ndarray,
        ends: Sequence[np.ndarray],
        contacts: Callable[[], Any],
        start: bool = False,
    ) -> None:
        """Prepare them.

        Args:
            notes: of these steps at least.
            steps: numbers of the steps that are looked at, (T,).
            ends: q and v at their ends, (T, ...) each.
            contacts: gives the contact points of these steps, or None.
            start: whether the first of the values is that at the beginning of its step.
        """
        self._notes, self._steps, self._ends = notes, steps, ends
        self._program, self._contacts, self._start = notes.program, contacts, int(start)

    def imu(self, link: str) -> Imu:
        """Angular velocity and specific force at a link's origin.

        Raises:
            UnknownName: no such link.
        """
        robot, dt = self._program.robot, self._notes.dt
        body, placement = robot.frame(link)
        rows = self._notes.first(self._steps)
        before = (self._notes.arrays[name][rows] for name in ("q", "v"))

        def moved(q: Any, v: Any, q1: Any, v1: Any) -> Sequence[Any]:
            (E, w, u), (E1, w1, u1) = (_moving(robot, body, placement, *x) for x in ((q, v), (q1, v1)))
            force = (u1 - u) * (1.0 / dt) - Vector3(*robot.gravity.tolist())
            R = placement.rotation.T.tolist()
            # The force is that of the middle of the step, and so are its axes.
            return [*_turned(R, w), *_turned(R, w1), *_turned(R, (E @ force + E1 @ force) * 0.5)]

        found = in_blocks(moved, 9, *before, *self._ends)
        first = self._start
        return Imu(np.concatenate([found[:first, :3], found[first:, 3:6]]), found[:, 6:])

    def contact_wrench(self, link: str) -> np.ndarray:
        """Wrench of the ground and of fixed links on a link about its origin, in its axes, (T, 6) [N m; N].

        This is the reading of a force sensor in a foot: the sum over the link's contact points with the
        ground and with links that are fixed to the world, without torsional and rolling friction, which do
        not act at a point.

        Raises:
            UnknownName: no such link.
        """
        robot = self._program.robot
        body, placement = robot.frame(link)
        contacts, q = self._contacts(), self._ends[0]
        own = [] if contacts is None else [k for k, name in enumerate(contacts.links) if name == link]
        if not own:
            return np.zeros((len(q), 6))

        def text(qs: Any) -> Sequence[Any]:
            X = forward_kinematics(robot.tree, robot.split_q(qs))[body]
            return [*X.point(Vector3(*placement.position.tolist())), *(x for row in X.E.rows for x in row)]

        pose = in_blocks(text, 12, q)
        arms = contacts.points[:, own] - pose[:, None, :3]
        force = contacts.forces[:, own].sum(axis=1)
        moment = np.cross(arms, contacts.forces[:, own]).sum(axis=1)
        to_link = np.einsum("ji,tjk->tik", placement.rotation, pose[:, 3:].reshape(-1, 3, 3))
        return np.concatenate([np.einsum("tij,tj->ti", to_link, x) for x in (moment, force)], axis=1)

    def joint_force(self, joint: str) -> JointForce:
        """Forces in a joint: of actuator and controller, damping and friction, limits.

        Raises:
            UnknownName: no such joint, or one that does not move.
        """
        program, robot = self._program, self._program.robot
        found = {one.name: one for one in robot.joints}.get(joint)
        if found is None:
            raise UnknownName("joint", joint, robot.joint_names, f"in robot {robot.name!r}")
        i, dofs = found.body, found.v_slice
        tau = self._notes.inputs.rows(self._steps)[0][:, dofs]
        taken, begin = self._notes.parts(self._steps)
        forces = acted(taken)["joint"][:, dofs]
        parts = np.array(mean_of_parts(forces, begin, taken.share))
        if i in program.given.motions:
            parts[..., 0] += tau
        elif not any(drive.body == i for drive in program.given.drives):
            parts[..., 0] = tau
        return JointForce(*(parts[..., k] for k in range(3)))


def _moving(robot: Robot, body: int, placement: Placement, q: Any, v: Any) -> tuple[Any, Any, Any]:
    """(E of the body, its angular velocity in its axes, velocity of the link's origin in the world)."""
    rows = robot.split_q(q)
    V = body_velocities(robot.tree, robot.tree.transforms(rows), robot.split_v(v))[body]
    E = forward_kinematics(robot.tree, rows)[body].E
    return E, V.ang, E.transpose_apply(V.lin + V.ang.cross(Vector3(*placement.position.tolist())))


def _turned(R: list[list[float]], x: Vector3) -> Vector3:
    return Vector3(*(row[0] * x.x + row[1] * x.y + row[2] * x.z for row in R))
