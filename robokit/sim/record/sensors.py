"""What sensors on a robot would have measured in a run: IMU, contact wrench of a link, forces in a joint.

Each value is that of the step that led to a record, the step in which ``contacts.forces`` act; at the start
it is that of the first step. It is computed with the text of the step in NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from robokit.algorithms.kinematics import forward_kinematics
from robokit.contact.fields import DAMPING, DRY, MOTOR, STOP
from robokit.dataclass_tools import short_repr
from robokit.errors import UnknownName
from robokit.model.geometry import Placement
from robokit.model.robot import Robot
from robokit.sim.motion.carried import Carried
from robokit.sim.motion.implicit_sweep import body_velocities
from robokit.sim.record.recorded import in_blocks
from robokit.sim.step.held_forces import held_forces
from robokit.sim.step.step_kernel import Program
from robokit.sim.stepping.contact_steps import ContactSteps
from robokit.spatial import Vector3


@dataclass(frozen=True)
class Imu:
    """What an inertial measurement unit at a link's origin measures, in the link's axes.

    Attributes:
        angular_velocity: (T, 3) at each record [rad/s].
        specific_force: (T, 3) acceleration minus gravity [m/s^2]: the change of the origin's velocity in the
            step before each record, over the step, in axes of the middle of the step. At rest it points up.
    """

    angular_velocity: np.ndarray
    specific_force: np.ndarray

    __repr__ = short_repr


@dataclass(frozen=True)
class JointForce:
    """Forces in a joint in the step before each record, (T, dofs of the joint) [N m | N].

    Attributes:
        actuator: of its actuator and the controller.
        friction: of damping and dry friction.
        stop: of its limits.
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
        program: Program,
        dt: float,
        q: np.ndarray,
        steps: Sequence[np.ndarray],
        contacts: Callable[[], Any],
    ) -> None:
        """Prepare them.

        Args:
            program: the step.
            dt: time step [s].
            q: configurations of the records, (T, nq).
            steps: from where the steps to them set out, and with what: q, v, tau, what is carried, inputs
                from actuators and pushes, (T, ...) each.
            contacts: gives the contact points of the run, or None.
        """
        self._program, self._dt, self._q, self._steps, self._contacts = program, dt, q, steps, contacts

    def imu(self, link: str) -> Imu:
        """Angular velocity and specific force at a link's origin.

        Raises:
            UnknownName: no such link.
        """
        robot, dt = self._program.robot, self._dt
        body, placement = robot.frame(link)
        entries = [0.0] * self._program.entries
        parameters = [float(x) for x in self._program.parameters(dt)]

        ends = _ends(self._program, dt, self._steps) if self._program.contact else ()

        def text(q: Any, v: Any, tau: Any, carried: Any, *inputs: Any) -> Sequence[Any]:
            after: Sequence[Any] = inputs[-2:]
            if not ends:
                after = self._program.text(q, v, tau, entries, carried, parameters, *inputs)
            (E, w, u), (E1, w1, u1) = (_moving(robot, body, placement, *x) for x in ((q, v), after[:2]))
            force = (u1 - u) * (1.0 / dt) - Vector3(*robot.gravity.tolist())
            R = placement.rotation.T.tolist()
            # The force is that of the middle of the step, and so are its axes.
            return [*_turned(R, w), *_turned(R, w1), *_turned(R, (E @ force + E1 @ force) * 0.5)]

        found = in_blocks(text, 9, *self._steps, *ends)
        return Imu(np.concatenate([found[:1, :3], found[1:, 3:6]]), found[:, 6:])

    def contact_wrench(self, link: str) -> np.ndarray:
        """Wrench of the ground on a link about its origin, in its axes, (T, 6) [N m; N].

        It is what a force sensor in a foot measures: the sum over the link's contact points, without
        torsional and rolling friction, which belong to no point.

        Raises:
            UnknownName: no such link.
        """
        robot = self._program.robot
        body, placement = robot.frame(link)
        contacts, q = self._contacts(), self._q
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
        """What acts in a joint: actuator and controller, damping and friction, stops.

        Raises:
            UnknownName: no such joint, or one that does not move.
        """
        program, robot = self._program, self._program.robot
        found = {one.name: one for one in robot.joints}.get(joint)
        if found is None:
            raise UnknownName("joint", joint, robot.joint_names, f"in robot {robot.name!r}")
        i, size = found.body, found.v_slice.stop - found.v_slice.start
        if program.contact:
            parts = _joint_rows(program, self._dt, self._steps, found.v_slice)
            return JointForce(*(parts[:, k] for k in range(3)))
        parameters = program.parameters(self._dt).tolist()

        def text(qs: Any, vs: Any, taus: Any, kept: Any, *inputs: Any) -> Sequence[Any]:
            rows = robot.split_q(qs), robot.split_v(vs), robot.split_tau(taus)
            p, carry = program.problem(parameters, inputs), Carried(program.layout, kept)
            held = held_forces(p, *rows, self._dt, carry)
            return [*held.given[i], *held.rub[i], *held.stops[i]]

        forces = in_blocks(text, 3 * size, *self._steps)
        return JointForce(forces[:, :size], forces[:, size : 2 * size], forces[:, 2 * size :])


def _joint_rows(program: Program, dt: float, steps: Sequence[np.ndarray], dofs: slice) -> np.ndarray:
    """Forces of actuators, of damping and friction, and of stops, as the steps of "contact" acted, (T, 3, n).

    A joint that no actuator drives has the force that is given to it.
    """
    taker = ContactSteps(program)
    part = {MOTOR: 0, DAMPING: 1, DRY: 1, STOP: 2}
    found = np.zeros((len(steps[0]), 3, dofs.stop - dofs.start))
    for out, (q, v, tau, carried, *given) in zip(found, zip(*steps, strict=True), strict=True):
        for simulation, _ in taker.parts(q, v, tau, carried, dt, *given):
            x = simulation.work
            own = [k for k in range(x["n_of"][1]) if dofs.start <= x["r_row"][k] < dofs.stop]
            for k in own:
                force = x["r_gain"][k] * x["r_g"][k] / dt
                out[part[int(x["r_kind"][k])], x["r_row"][k] - dofs.start] += force
        if not any(x["r_kind"][k] == MOTOR for k in own):
            out[0] = tau[dofs]
    return found


def _ends(program: Program, dt: float, steps: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """q and v after steps of "contact"."""
    taker, parameters, entries = ContactSteps(program), np.array([dt]), np.zeros(program.entries)
    found = [
        taker.iterate(*state, entries, carried, parameters, *given, steps=1)[1][:2]
        for *state, carried, given in ((*row[:4], row[4:]) for row in zip(*steps, strict=True))
    ]
    q, v = (np.array([row[k] for row in found]) for k in (0, 1))
    return q, v


def _moving(robot: Robot, body: int, placement: Placement, q: Any, v: Any) -> tuple[Any, Any, Any]:
    """(E of the body, its angular velocity in its axes, velocity of the link's origin in the world)."""
    rows = robot.split_q(q)
    V = body_velocities(robot.tree, robot.tree.transforms(rows), robot.split_v(v))[body]
    E = forward_kinematics(robot.tree, rows)[body].E
    return E, V.ang, E.transpose_apply(V.lin + V.ang.cross(Vector3(*placement.position.tolist())))


def _turned(R: list[list[float]], x: Vector3) -> Vector3:
    return Vector3(*(row[0] * x.x + row[1] * x.y + row[2] * x.z for row in R))
