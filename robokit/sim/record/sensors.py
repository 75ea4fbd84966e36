"""What sensors on a robot would have measured in a run: IMU, contact wrench of a link, forces in a joint.

Each value is that of the step that led to a record, the step in which ``contacts.forces`` act; at the start
it is that of the first step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from robokit.algorithms.kinematics import forward_kinematics
from robokit.dataclass_tools import short_repr
from robokit.errors import UnknownName
from robokit.model.geometry import Placement
from robokit.model.robot import Robot
from robokit.sim.integrators import Held
from robokit.sim.motion import body_velocities
from robokit.sim.record.notes import Notes, StepInputs, of_held_forces
from robokit.sim.step_kernel import Program
from robokit.sim.stepping.energies import in_blocks
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
        program: Program,
        dt: float,
        notes: Notes,
        inputs: StepInputs,
        steps: np.ndarray,
        ends: Sequence[np.ndarray],
        contacts: Callable[[], Any],
        start: bool = False,
    ) -> None:
        """Prepare them.

        Args:
            dt: time step [s].
            notes: of these steps at least.
            inputs: of the steps.
            steps: numbers of the steps that are looked at, (T,).
            ends: q and v at their ends, (T, ...) each.
            contacts: gives the contact points of these steps, or None.
            start: whether the first of the values is that at the beginning of its step.
        """
        self._program, self._dt, self._contacts = program, dt, contacts
        self._notes, self._inputs, self._steps, self._ends = notes, inputs, steps, ends
        self._start = int(start)

    def imu(self, link: str) -> Imu:
        """Angular velocity and specific force at a link's origin.

        Raises:
            UnknownName: no such link.
        """
        robot, dt = self._program.robot, self._dt
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
        i, dofs, notes = found.body, found.v_slice, self._notes
        tau, given = self._inputs.rows(self._steps)
        if program.contact:
            acted = notes.arrays["joint"][:, dofs] * notes.share[:, None, None]
            edges = zip(notes.first(self._steps), notes.last(self._steps) + 1, strict=True)
            parts = np.array([acted[first:end].sum(axis=0) for first, end in edges])
            if i in program.given.motions:
                parts[..., 0] += tau[:, dofs]
            elif not any(drive.body == i for drive in program.given.drives):
                parts[..., 0] = tau[:, dofs]
            return JointForce(*(parts[..., k] for k in range(3)))
        size = dofs.stop - dofs.start
        q, v, carried = (notes.arrays[name][notes.first(self._steps)] for name in ("q", "v", "carried"))

        def parts_of(_: Any, _q: Any, _v: Any, _tau: Any, held: Held) -> Sequence[Any]:
            return [*held.given[i], *held.rub[i], *held.stops[i]]

        forces = of_held_forces(program, self._dt, parts_of, 3 * size, q, v, tau, carried, *given)
        return JointForce(forces[:, :size], forces[:, size : 2 * size], forces[:, 2 * size :])


def _moving(robot: Robot, body: int, placement: Placement, q: Any, v: Any) -> tuple[Any, Any, Any]:
    """(E of the body, its angular velocity in its axes, velocity of the link's origin in the world)."""
    rows = robot.split_q(q)
    V = body_velocities(robot.tree, robot.tree.transforms(rows), robot.split_v(v))[body]
    E = forward_kinematics(robot.tree, rows)[body].E
    return E, V.ang, E.transpose_apply(V.lin + V.ang.cross(Vector3(*placement.position.tolist())))


def _turned(R: list[list[float]], x: Vector3) -> Vector3:
    return Vector3(*(row[0] * x.x + row[1] * x.y + row[2] * x.z for row in R))
