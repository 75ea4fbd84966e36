"""The search: from one start, then from random ones where it did not lead to the targets."""

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
from robokit.errors import ShapeError
from robokit.ik.step import ALPHA, REACHED, RUNNING, STATE, Problem, step
from robokit.ik.targets import TargetArrays
from robokit.model.robot import Robot

STATIONARY_TOLERANCE = 1e-5
"""Gradient over error below which there is no better configuration nearby."""

POSTURE_TOLERANCE = 1e-3
"""The same bound for the search with a posture, whose optimum the targets alone decide."""

ROW_STEPS_BETWEEN_CHECKS, MAX_STEPS_BETWEEN_CHECKS = 2048, 8
"""Rows times steps between two looks at who is done, and at most so many steps: a look costs some 20 us."""

MAX_ROWS = 1 << 14
"""Starts that are tried together."""

STARTS_TOGETHER = 16
"""Random starts of one problem that are tried together."""


class Search:
    """A problem with its numbers, and the ways to run its kernel."""

    def __init__(
        self,
        robot: Robot,
        arrays: TargetArrays,
        limits: bool,
        tolerance: float,
        iterations: int,
        in_python: bool,
    ) -> None:
        self.robot, self.arrays, self.iterations, self.in_python = robot, arrays, iterations, in_python
        self.limits, self.solver = limits, solver(robot, arrays.links, arrays.com, False)
        self.bounds = self.solver.bounds[limits]
        defaults = self.solver.default_settings
        settings = defaults.get(tolerance) if arrays.is_default else None
        if settings is None:
            settings = np.array(
                [tolerance, STATIONARY_TOLERANCE, *arrays.points, *arrays.weights, *arrays.counts]
            )
            if arrays.is_default:
                defaults.clear()
                defaults[tolerance] = settings
        self.settings, self.state = settings, self.solver.state
        self.rest: tuple[Solver, np.ndarray, np.ndarray] | None = None

    def prefer(self, posture: np.ndarray, weight: Any) -> None:
        """Draw the joints to a posture."""
        if posture.ndim != 1:
            raise ShapeError(f"posture: expected shape ({self.robot.nq},), got {posture.shape}")
        w = check.real_array("posture_weight", weight, f"a number or ({self.robot.nv},)")
        if w.shape not in ((), (self.robot.nv,)) or not (np.isfinite(w).all() and (w >= 0.0).all()):
            raise ShapeError(
                f"posture_weight: expected a number or ({self.robot.nv},), all finite and >= 0, got {weight}"
            )
        dofs = list(self.solver.problem.dofs)
        values = np.zeros(len(dofs))
        values[self.solver.scalar_dofs] = posture[self.solver.scalar_places]
        rest = np.concatenate([values, np.broadcast_to(w, self.robot.nv)[dofs]])
        rough = self.settings.copy()
        rough[:2] = -1.0, POSTURE_TOLERANCE
        self.rest = solver(self.robot, self.arrays.links, self.arrays.com, True), rough, rest

    # -- from one start ---------------------------------------------------------------------------

    def run(self, q: np.ndarray, goals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """q and state of one problem."""
        before = 0.0
        if self.rest is not None:
            first, rough, rest = self.rest
            q, state = self._loop(first, q, goals, rough, (rest,))
            before = state[3]
        q, state = self._loop(self.solver, q, goals, self.settings, ())
        state[3] += before
        return q, state

    def _loop(
        self, by: Solver, q: np.ndarray, goals: np.ndarray, settings: np.ndarray, rest: tuple[np.ndarray, ...]
    ) -> tuple[np.ndarray, np.ndarray]:
        kernel, state, same = by.kernel, self.state, (goals, self.bounds, settings, *rest)
        step = kernel.python if self.in_python else kernel.fast
        for _ in range(self.iterations):
            found = step(q, state, *same)
            if found is None:  # arguments that the fast way does not take
                found = kernel(q, state, *same)
            elif state is self.state and not self.in_python:
                step = kernel.fast  # the kernel has existed since its first call
            q, state = found
            if state[2] != RUNNING:
                break
        return q, state

    def run_many(self, q: np.ndarray, goals: np.ndarray, group: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """q and state of each row.

        Args:
            q: start of each row.
            goals: of each row.
            group: so many rows in turn are starts of one problem, which is done when one has arrived.
        """
        if self.rest is None:
            return self._loop_many(self.solver, q, goals, self.settings, (), group)
        first, rough, rest = self.rest
        q, before = self._loop_many(first, q, goals, rough, (rest,), group)
        q, state = self._loop_many(self.solver, q, goals, self.settings, (), group)
        state[:, 3] += before[:, 3]
        return q, state

    def _loop_many(
        self,
        by: Solver,
        q: np.ndarray,
        goals: np.ndarray,
        settings: np.ndarray,
        rest: tuple[np.ndarray, ...],
        group: int,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Rows that are done leave the batch when they are a quarter of it."""
        all_q, all_state = np.array(q), np.tile(self.state, (len(q), 1))
        rows, taken = np.arange(len(q)), 0
        now_q, now_state, now_goals = all_q.copy(), all_state.copy(), np.ascontiguousarray(goals)
        while len(rows) and taken < self.iterations:
            steps = min(
                max(1, ROW_STEPS_BETWEEN_CHECKS // len(rows)),
                MAX_STEPS_BETWEEN_CHECKS,
                self.iterations - taken,
            )
            self._advance(by, steps, now_q, now_state, now_goals, settings, *rest)
            taken += steps
            running = now_state[:, 2] == RUNNING
            if group > 1 and (arrived := rows[now_state[:, 2] == REACHED]).size:
                running &= ~np.isin(rows // group, arrived // group)
            if np.count_nonzero(running) <= 0.75 * len(rows):
                all_q[rows], all_state[rows] = now_q, now_state
                rows, now_q, now_state, now_goals = (x[running] for x in (rows, now_q, now_state, now_goals))
        all_q[rows], all_state[rows] = now_q, now_state
        return all_q, all_state

    def _advance(self, by: Solver, steps: int, q: np.ndarray, state: np.ndarray, *others: np.ndarray) -> None:
        """Take steps with all rows, in place."""
        goals, *same = others
        if self.in_python:
            for _ in range(steps):
                q[...], state[...] = by.kernel.python(q, state, goals, self.bounds, *same)
            return
        inputs = [x[None] for x in (q, state, goals)] + [x[None, None] for x in (self.bounds, *same)]
        if by.runner().roll(inputs, len(q), (0, steps), lambda *_: None)[1]:
            raise KeyboardInterrupt

    # -- from more of them ------------------------------------------------------------------------

    def retry(
        self,
        q: np.ndarray,
        state: np.ndarray,
        start: np.ndarray,
        goals: np.ndarray,
        starts: int,
        rng: np.random.Generator,
    ) -> np.ndarray:
        """Try random starts for the rows that have not reached their targets; write what is better.

        Args:
            q: of all rows, (B, nq).
            state: of all rows.
            start: (B, nq) or (1, nq).
            goals: (B, G) or (1, G).
            starts: to try, the first one included.
            rng: random generator.

        Returns:
            the starts that were tried, (B,).
        """
        tried = np.ones(len(q), int)
        left = np.flatnonzero(state[:, 2] != REACHED)
        while len(left):
            several = min(STARTS_TOGETHER, starts - int(tried[left[0]]))
            if several <= 0:
                break
            drawn = self.solver.draw(several, rng)
            for part in np.array_split(left, -(-len(left) * several // MAX_ROWS)):
                first, wanted = (x[part if len(x) > 1 else part * 0] for x in (start, goals))
                first = self.solver.random(first, self.limits, drawn)
                found = self.run_many(first, np.repeat(wanted, several, axis=0), several)
                new_q, new_state = (x.reshape(len(part), several, -1) for x in found)
                met, error = new_state[..., 2] == REACHED, new_state[..., STATE:].max(axis=-1)
                best = np.where(met, new_state[..., 3] - 1e9, error).argmin(axis=1)
                each = np.arange(len(part)), best
                better = met[each] | (error[each] < state[part, STATE:].max(axis=1))
                q[part[better]], state[part[better]] = new_q[each][better], new_state[each][better]
            tried[left] += several
            left = left[state[left, 2] != REACHED]
        return tried


# ---- the kernel --------------------------------------------------------------------------------

Links = tuple[tuple[str, bool], ...]

NO_LIMIT = 1e9
"""Stands for no limit [rad | m]."""


class Solver:
    """A kernel, the problem whose step it computes, and what calls need to know of both.

    Attributes:
        problem: what is arrays of the robot.
        kernel: of its step.
        scalar_dofs: which of the problem's dofs have a joint of one coordinate.
        scalar_places: where these stand in q.
        bounds: by ``limits``, lower and upper bounds of the problem's dofs.
        largest: largest magnitude of each coordinate in a q that is accepted, (nq,).
        spherical: where q holds the quaternions of the spherical joints that matter.
        quaternions: where q holds unit quaternions.
        default_settings: tolerance -> settings of calls without points and weights; the last one.
        state: at the start.
    """

    def __init__(self, robot: Robot, links: Links, com: bool, rest: bool) -> None:
        if com:
            check_mass(robot)
        bare = robot if com else without_inertias(robot)
        frames = [Frame(*link_frame(robot, link), turned) for link, turned in links]
        self.problem = Problem(bare, tuple(frames), com, rest)
        own, dofs = self.problem.coordinates, self.problem.dofs
        self.scalar_dofs = np.array([i for i, k in enumerate(dofs) if k in own], int)
        self.scalar_places = np.array([own[k] for k in dofs if k in own], int)
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
        self.default_settings: dict[float, np.ndarray] = {}
        self.state = np.zeros(dict(sizes)["state"])
        self.state[:2] = ALPHA, 2.0

    def _bounds(self, robot: Robot, limits: bool) -> np.ndarray:
        """Lower, then upper bounds of the problem's dofs."""
        n = len(self.problem.dofs)
        bounds = np.repeat([-NO_LIMIT, NO_LIMIT], n)
        for joint in robot.joints if limits else ():
            if joint.v_slice.start in self.problem.coordinates:
                i = self.problem.dofs.index(joint.v_slice.start)
                bounds[[i, n + i]] = np.clip(robot.position_range(joint), -NO_LIMIT, NO_LIMIT)
        return bounds

    def _of_q(self, bounds: np.ndarray) -> np.ndarray:
        """Bounds of all of q, (2, nq); the largest numbers where there is no limit."""
        box = np.repeat(np.finfo(float).max * np.array([[-1.0], [1.0]]), len(self.largest), axis=1)
        box[:, self.scalar_places] = bounds.reshape(2, -1)[:, self.scalar_dofs]
        return box

    def runner(self) -> RolloutRunner:
        """The kernel's runner for many rows."""
        if self._runner is None:
            self._runner = self.kernel.rollout_runner()
        return self._runner

    def configuration(self, name: str, values: Any) -> np.ndarray:
        """An argument (nq,) or (B, nq), checked.

        Raises:
            ShapeError: it is no configuration.
        """
        q = check.argument(name, values, self.problem.robot.nq)
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
        fractions = rng.random((count, len(self.scalar_places)))
        return [fractions, *(quat / np.linalg.norm(quat, axis=1, keepdims=True) for quat in quats)]

    def random(self, q: np.ndarray, limits: bool, drawn: list[np.ndarray]) -> np.ndarray:
        """The drawn starts for each row of q, (B count, nq): joints that matter anywhere within their limits.

        Where a joint can turn further than twice around: within half a turn of where it is. A floating base
        stays. All rows take the same numbers, so that a row of a batch starts where it would alone.
        """
        rows, q = len(q), np.repeat(q, len(drawn[0]), axis=0)
        now = q[:, self.scalar_places]
        low, high = self.bounds[limits].reshape(2, -1)[:, self.scalar_dofs]
        narrow = high - low < 4.0 * np.pi
        low = np.where(narrow, low, np.maximum(low, now - np.pi))
        high = np.where(narrow, high, np.minimum(high, now + np.pi))
        q[:, self.scalar_places] = low + np.tile(drawn[0], (rows, 1)) * (high - low)
        for place, quat in zip(self.spherical, drawn[1:], strict=True):
            q[:, place] = np.tile(quat, (rows, 1))
        return q


def solver(robot: Robot, links: Links, com: bool, rest: bool) -> Solver:
    """The robot's solver for targets of these links, made at the first call.

    Args:
        links: (name, whether its orientation has a target too) of each.
        com: whether the centre of mass has a target.
        rest: whether there is a rest configuration.
    """
    place: Any = ("inverse_kinematics", links, com, rest)
    found = robot.kernels.get(place)
    if found is None:
        found = robot.kernels.setdefault(place, Solver(robot, links, com, rest))
    return found
