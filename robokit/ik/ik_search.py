"""The search: from one start, then from random ones where it did not lead to the targets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from robokit import arguments as check
from robokit.errors import ShapeError
from robokit.ik.ik_kernel import Solver, solver
from robokit.ik.ik_targets import Asked
from robokit.ik.lm_step import ALPHA, REACHED, RUNNING, STATE, Problem
from robokit.model.robot import Robot

WIDE = 1e9
"""Stands for no limit [rad | m]."""

FLAT = 1e-7
"""Slope over error at which nothing better is near."""

ROUGH = 1e-3
"""The same for the search with a posture, which the targets alone follow."""

ROWS = 1 << 14
"""Starts that are tried together."""

ROUND = 16
"""Random starts of one problem that are tried together."""


class Search:
    """A problem with its numbers, and the ways to run its kernel."""

    def __init__(
        self, robot: Robot, asked: Asked, limits: bool, tolerance: float, iterations: int, plain: bool
    ) -> None:
        self.robot, self.asked, self.iterations, self.plain = robot, asked, iterations, plain
        self.solver = solver(robot, asked.links, asked.com, False)
        problem = self.solver.problem
        self.places = problem.coordinates
        key = ("inverse kinematics limits", problem.dofs, limits)
        self.limits = robot.derived.get(key, lambda: _bounds(robot, problem, limits))
        counts = (asked.weights > 0.0).astype(float)
        self.settings = np.concatenate([[tolerance, FLAT], asked.points.ravel(), asked.weights, counts])
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
        values = [posture[self.places[k]] if k in self.places else 0.0 for k in dofs]
        rest = np.concatenate([values, np.broadcast_to(w, self.robot.nv)[dofs]])
        rough = self.settings.copy()
        rough[:2] = -1.0, ROUGH
        self.rest = solver(self.robot, self.asked.links, self.asked.com, True), rough, rest

    def within(self, q: np.ndarray) -> np.ndarray:
        """q with the joints that matter brought to their limits."""
        q, n = q.copy(), len(self.solver.problem.dofs)
        for i, k in enumerate(self.solver.problem.dofs):
            if k in self.places:
                place = self.places[k]
                q[..., place] = np.clip(q[..., place], self.limits[i], self.limits[n + i])
        return q

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
        state = self._state()
        for step in self._ways(by):
            for _ in range(self.iterations - int(state[3])):
                found = step(q, state, goals, self.limits, settings, *rest)
                if found is None:
                    break  # the fast way does not take these arguments: the next one says why
                q, state = found
                if state[2] != RUNNING:
                    return q, state
        return q, state

    def _ways(self, by: Solver) -> tuple[Callable[..., Any], ...]:
        return (by.kernel.python,) if self.plain else (lambda *x: by.kernel.fast(*x), by.kernel)

    def _state(self, *rows: int) -> np.ndarray:
        state = np.zeros((*rows, STATE + len(self.asked.parts)))
        state[..., 0], state[..., 1] = ALPHA, 2.0
        return state

    def run_many(self, q: np.ndarray, goals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """q and state of each row."""
        if self.rest is None:
            return self._loop_many(self.solver, q, goals, self.settings, ())
        first, rough, rest = self.rest
        q, before = self._loop_many(first, q, goals, rough, (rest,))
        q, state = self._loop_many(self.solver, q, goals, self.settings, ())
        state[:, 3] += before[:, 3]
        return q, state

    def _loop_many(
        self, by: Solver, q: np.ndarray, goals: np.ndarray, settings: np.ndarray, rest: tuple[np.ndarray, ...]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Rows that are done leave the batch when they are a quarter of it."""
        step = by.kernel.python if self.plain else by.kernel
        all_q, all_state = np.array(q), self._state(len(q))
        rows = np.arange(len(q))
        now_q, now_state, now_goals = all_q, all_state, goals
        for _ in range(self.iterations if len(q) else 0):
            now_q, now_state = step(now_q, now_state, now_goals, self.limits, settings, *rest)
            running = now_state[:, 2] == RUNNING
            left = int(running.sum())
            if left <= 0.75 * len(rows):
                all_q[rows], all_state[rows] = now_q, now_state
                if not left:
                    return all_q, all_state
                rows, now_q, now_state, now_goals = (x[running] for x in (rows, now_q, now_state, now_goals))
        all_q[rows], all_state[rows] = now_q, now_state
        return all_q, all_state

    # -- from more of them ------------------------------------------------------------------------

    def retry(
        self,
        q: np.ndarray,
        state: np.ndarray,
        start: np.ndarray,
        goals: np.ndarray,
        tried: np.ndarray,
        starts: int,
        rng: np.random.Generator,
    ) -> None:
        """Try random starts for the rows that have not reached their targets; write what is better."""
        left = np.flatnonzero(state[:, 2] != REACHED)
        while len(left):
            round_ = min(ROUND, starts - int(tried[left[0]]))
            if round_ <= 0:
                return
            for part in np.array_split(left, -(-len(left) * round_ // ROWS)):
                origin = start[part if len(start) > 1 else np.zeros(len(part), int)]
                wanted = goals[part if len(goals) > 1 else np.zeros(len(part), int)]
                given = self._random(np.repeat(origin, round_, axis=0), rng)
                new_q, new_state = self.run_many(given, np.repeat(wanted, round_, axis=0))
                new_q = new_q.reshape(len(part), round_, -1)
                new_state = new_state.reshape(len(part), round_, -1)
                best = self._best(origin, new_q, new_state)
                each = np.arange(len(part))
                new_q, new_state = new_q[each, best], new_state[each, best]
                better = (new_state[:, 2] == REACHED) | (
                    new_state[:, STATE:].max(axis=1) < state[part, STATE:].max(axis=1)
                )
                q[part[better]], state[part[better]] = new_q[better], new_state[better]
            tried[left] += round_
            left = left[state[left, 2] != REACHED]

    def _best(self, origin: np.ndarray, q: np.ndarray, state: np.ndarray) -> np.ndarray:
        """Which start of each row: the nearest of those that arrived, else the one with the least error."""
        places = list(self.places.values())
        far = np.linalg.norm((q - origin[:, None])[..., places], axis=-1)
        error = state[..., STATE:].max(axis=-1)
        return np.where(state[..., 2] == REACHED, far / (1.0 + far) - 2.0, error).argmin(axis=1)

    def _random(self, q: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Joints that matter somewhere within their limits; a floating base stays."""
        q, n = q.copy(), len(self.solver.problem.dofs)
        for i, k in enumerate(self.solver.problem.dofs):
            if k in self.places:
                place = self.places[k]
                low = np.maximum(self.limits[i], q[:, place] - np.pi)
                high = np.minimum(self.limits[n + i], q[:, place] + np.pi)
                if self.limits[n + i] - self.limits[i] < 4.0 * np.pi:
                    low, high = self.limits[i], self.limits[n + i]
                q[:, place] = rng.uniform(low, high, len(q))
        for joint in self.robot.joints:
            if joint.kind == "spherical" and joint.v_slice.start in self.solver.problem.dofs:
                quat = rng.standard_normal((len(q), 4))
                q[:, joint.q_slice] = quat / np.linalg.norm(quat, axis=1, keepdims=True)
        return q


def _bounds(robot: Robot, problem: Problem, limits: bool) -> np.ndarray:
    """Lower, then upper bounds of the problem's dofs."""
    low, high = np.full(len(problem.dofs), -WIDE), np.full(len(problem.dofs), WIDE)
    if limits:
        for joint in robot.joints:
            if joint.v_slice.start in problem.coordinates:
                i = problem.dofs.index(joint.v_slice.start)
                low[i], high[i] = np.clip(robot.position_range(joint), -WIDE, WIDE)
    return np.concatenate([low, high])
