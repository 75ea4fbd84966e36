"""The step of inverse kinematics as a kernel of a robot and of what is asked of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from robokit import arguments as check
from robokit.algorithms.pose_error import Frame
from robokit.dynamics.build import angle_bounds, quaternion_offsets, without_inertias
from robokit.dynamics.choices import link_frame
from robokit.dynamics.singular import check_mass
from robokit.engine import Kernel
from robokit.engine.run.rollout_calls import RolloutRunner
from robokit.ik.ik_problem import Problem
from robokit.ik.lm_step import ALPHA, step
from robokit.model.robot import Robot

Links = tuple[tuple[str, bool], ...]

WIDE = 1e9
"""Stands for no limit [rad | m]."""


class Solver:
    """A kernel, the problem whose step it computes, and what calls need to know of both.

    Attributes:
        problem: what is asked of the robot.
        kernel: of its step.
        plain: which of the problem's dofs have one plain coordinate, and
        places: where these stand in q.
        bounds: by ``limits``, lower and upper bounds of the problem's dofs.
        largest: largest magnitude of each coordinate in a q that is accepted, (nq,).
        spherical: where q holds the quaternions of the spherical joints that matter.
        quaternions: where q holds unit quaternions.
        usual: tolerance -> settings of calls without points and weights; the last one.
        state: at the start.
    """

    def __init__(self, robot: Robot, links: Links, com: bool, rest: bool) -> None:
        if com:
            check_mass(robot)
        bare = robot if com else without_inertias(robot)
        frames = [Frame(*link_frame(robot, link), turned) for link, turned in links]
        self.problem = Problem(bare, tuple(frames), com, rest)
        own, dofs = self.problem.coordinates, self.problem.dofs
        self.plain = np.array([i for i, k in enumerate(dofs) if k in own], int)
        self.places = np.array([own[k] for k in dofs if k in own], int)
        self.spherical = [j.q_slice for j in bare.joints if j.kind == "spherical" and j.v_slice.start in dofs]
        self.quaternions, bounds = quaternion_offsets(robot), angle_bounds(robot)
        self.largest = np.full(robot.nq, np.finfo(float).max)
        for k, most in bounds:
            self.largest[k] = most
        self.bounds = {limits: self._bounds(robot, limits) for limits in (True, False)}
        self._box = {limits: self._of_q(x) for limits, x in self.bounds.items()}
        fingerprint = robot.fingerprint if com else robot.fingerprint_without_inertias
        sizes = self.problem.sizes()
        self.kernel = Kernel.build(
            "inverse_kinematics",
            inputs=sizes,
            outputs=[("q", (robot.nq,)), ("state", (dict(sizes)["state"],))],
            text=lambda *flat: step(self.problem, *flat),
            key=fingerprint + repr((links, com, rest)).encode(),
            feedback={"q": "q", "state": "state"},
            quaternions=[(0, k) for k in self.quaternions],
            bounds=[(0, k, most) for k, most in bounds],
        )
        self._runner: RolloutRunner | None = None
        self.usual: dict[float, np.ndarray] = {}
        self.state = np.zeros(dict(sizes)["state"])
        self.state[:2] = ALPHA, 2.0

    def _bounds(self, robot: Robot, limits: bool) -> np.ndarray:
        """Lower, then upper bounds of the problem's dofs."""
        n = len(self.problem.dofs)
        bounds = np.repeat([-WIDE, WIDE], n)
        for joint in robot.joints if limits else ():
            if joint.v_slice.start in self.problem.coordinates:
                i = self.problem.dofs.index(joint.v_slice.start)
                bounds[[i, n + i]] = np.clip(robot.position_range(joint), -WIDE, WIDE)
        return bounds

    def _of_q(self, bounds: np.ndarray) -> np.ndarray:
        """The same for all of q, (2, nq): the largest numbers where there are none."""
        box = np.repeat(np.finfo(float).max * np.array([[-1.0], [1.0]]), len(self.largest), axis=1)
        box[:, self.places] = bounds.reshape(2, -1)[:, self.plain]
        return box

    def runner(self) -> RolloutRunner:
        """What takes steps with many rows."""
        if self._runner is None:
            self._runner = self.kernel.rollout_runner()
        return self._runner

    def configuration(self, name: str, given: Any) -> np.ndarray:
        """An argument (nq,) or (B, nq), checked.

        Raises:
            ShapeError: it is no configuration.
        """
        q = check.argument(name, given, self.problem.robot.nq)
        if self.quaternions or not (np.abs(q) <= self.largest).all():
            bounds = [(0, k, most) for k, most in enumerate(self.largest.tolist())]
            check.check_values([name], [q], [(0, k) for k in self.quaternions], bounds)
        return q

    def within(self, q: np.ndarray, limits: bool) -> np.ndarray:
        """A copy of q with the joints that matter brought to their limits."""
        low, high = self._box[limits]
        return np.minimum(np.maximum(q, low), high)

    def draw(self, count: int, rng: np.random.Generator) -> list[np.ndarray]:
        """Numbers for random starts: (count, plain joints) in 0..1, and (count, 4) a spherical joint."""
        quats = [rng.standard_normal((count, 4)) for _ in self.spherical]
        fractions = rng.random((count, len(self.places)))
        return [fractions, *(quat / np.linalg.norm(quat, axis=1, keepdims=True) for quat in quats)]

    def random(self, q: np.ndarray, limits: bool, drawn: list[np.ndarray]) -> np.ndarray:
        """The drawn starts for each row of q, (B count, nq): joints that matter anywhere within their limits.

        Where a joint can turn further than twice around: within half a turn of where it is. A floating base
        stays. All rows take the same numbers, so that a row of a batch starts where it would alone.
        """
        rows, q = len(q), np.repeat(q, len(drawn[0]), axis=0)
        now = q[:, self.places]
        low, high = self.bounds[limits].reshape(2, -1)[:, self.plain]
        narrow = high - low < 4.0 * np.pi
        low = np.where(narrow, low, np.maximum(low, now - np.pi))
        high = np.where(narrow, high, np.minimum(high, now + np.pi))
        q[:, self.places] = low + np.tile(drawn[0], (rows, 1)) * (high - low)
        for place, quat in zip(self.spherical, drawn[1:], strict=True):
            q[:, place] = np.tile(quat, (rows, 1))
        return q


def solver(robot: Robot, links: Links, com: bool, rest: bool) -> Solver:
    """The robot's solver for targets of these links, made at the first call.

    Args:
        robot: the robot.
        links: (name, whether its orientation has a target too) of each.
        com: whether the centre of mass has a target.
        rest: whether there is a rest configuration.
    """
    place: Any = ("inverse_kinematics", links, com, rest)
    found = robot.kernels.get(place)
    if found is None:
        found = robot.kernels.setdefault(place, Solver(robot, links, com, rest))
    return found
