"""simulate: steps, records, and the reasons to stop or to warn."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from robokit.conventions import GRAVITY
from robokit.errors import MissingDependency, ShapeError, SimulationError
from robokit.model.builder_arguments import not_a_robot
from robokit.model.robot import Robot
from robokit.sim.ground import Ground
from robokit.sim.recorded import energies, momenta
from robokit.sim.run_arguments import check_quaternions, check_start, numbers, warn_of
from robokit.sim.setup import set_up
from robokit.sim.step import ledger
from robokit.sim.step.step_kernel import Program
from robokit.sim.trajectory import Energy, Trajectory

Controller = Callable[[float, np.ndarray, np.ndarray], Any]

ITERATED = 50
"""Steps from which the loop inside the engine is faster than one call a step."""


def simulate(
    robot: Robot,
    q0: Any = None,
    v0: Any = None,
    duration: float = 1.0,
    dt: float = 1e-3,
    ground: Ground | bool | None = None,
    controller: Controller | None = None,
    integrator: str | None = None,
    gravity: Sequence[float] | None = None,
    record_every: int | None = None,
    joint_damping: float | None = None,
    progress: bool = False,
) -> Trajectory:
    """Simulate a robot: passive or controlled motion, in free space or falling on a ground.

    Damping, dry friction and position limits of the description act on the joints. Mimic joints
    act where the robot was loaded with ``mimic="couple"``; self-collision and loop joints never do. Ctrl-C
    ends the simulation and returns what was computed, with ``summary["interrupted"]`` set.

    Args:
        robot: the robot.
        q0: configuration at the start, (nq,); neutral by default.
        v0: velocity at the start, (nv,); zero by default.
        duration: [s]; rounded to whole steps.
        dt: time step [s]; with a ground at most 4 ms.
        ground: ``rk.Ground(...)``, True for one with default values, None for none.
        controller: (t, q, v) -> joint forces (nv,) [N m | N], held over a step.
        integrator: "rkmk4" (default without a ground), "midpoint", "euler" or "contact" (default with a
            ground); see robokit.sim.step.integrators.
        gravity: (3,) in world axes [m/s^2]; the robot's own by default.
        record_every: steps between recorded states; by default those of about 5 ms. The last state is
            recorded always.
        joint_damping: for joints whose description has none [N m s/rad | N s/m]; by default 0.1 with a
            ground and none without. ``summary["default_damping"]`` says what was used.
        progress: show a progress bar.

    Returns:
        the trajectory.

    Raises:
        ShapeError: an argument of the wrong shape or content, or a start deep inside the ground.
        UnknownName: no such integrator, or a friction coefficient for a link that is not there.
        SingularInertia: a joint moves no inertia; the error names it.
        SimulationError: the state is no longer finite, or the controller failed on the way;
            ``.trajectory`` holds what was computed.

    Warns:
        UserWarning: a step too long for contact, deep penetration, unsettled contacts, loop joints.
    """
    if not isinstance(robot, Robot):
        raise not_a_robot(robot)
    if gravity is not None:
        robot = robot.with_gravity(gravity)
    if robot.samples is not None:
        raise ShapeError(
            f"robot: expected one, got {robot!r}; rk.rollout takes them all, robot.sample(k) is one of them"
        )
    q = numbers("q0", robot.neutral() if q0 is None else q0, robot.nq)
    v = numbers("v0", np.zeros(robot.nv) if v0 is None else v0, robot.nv)
    check_quaternions(robot, q)
    program, steps, every, said = set_up(robot, duration, dt, ground, integrator, record_every, joint_damping)
    if program.ground is not None and program.points is not None:
        check_start(robot, q, program.points, program.ground.height)

    run = Run(program, q, v, dt, every, controller)
    run.go(steps, progress)
    with np.errstate(all="ignore"):  # sums over the last finite states may not be
        trajectory = run.trajectory()
    trajectory.summary |= said
    if run.failure is not None:
        what = f"{type(run.failure).__name__}: {run.failure}"
        message = f"the controller failed at t = {run.done * dt:.6g} s: {what}"
        raise SimulationError(message, trajectory) from run.failure
    if run.broken_at is not None:
        raise SimulationError(
            f"the state is no longer finite at t = {run.broken_at:.6g} s ({program.name}, dt = {dt:g} s): "
            f"most likely the time step is too long{' or the controller too stiff' if controller else ''}; "
            f"try dt = {dt / 4:g}. The states before are in the error's .trajectory",
            trajectory,
        )
    warn_of(trajectory.summary)
    return trajectory


class Run:
    """The loop over the steps, and what it records."""

    def __init__(
        self,
        program: Program,
        q: np.ndarray,
        v: np.ndarray,
        dt: float,
        every: int,
        controller: Controller | None,
    ) -> None:
        self.program, self.dt, self.every, self.controller = program, dt, every, controller
        self.kernel = program.kernel()
        self.parameters = program.parameters(dt)
        self.state = (q, v, np.zeros(ledger.SIZE))
        self.tau = np.zeros(program.robot.nv)
        self.steps: list[int] = []
        self.q: list[np.ndarray] = []
        self.v: list[np.ndarray] = []
        self.entries: list[np.ndarray] = []
        self.taus: list[np.ndarray] = []
        self.done = 0
        self.broken_at: float | None = None
        self.failure: Exception | None = None
        self.interrupted = False
        self.seconds = self.build_seconds = 0.0

    def go(self, steps: int, progress: bool) -> None:
        """Take the steps."""
        started = time.perf_counter()
        self.kernel.iterate(*self._arguments(), steps=0)
        self.build_seconds = time.perf_counter() - started
        bar = progress_bar(steps) if progress else None
        started = time.perf_counter()
        # One NumPy warning says less than the error that follows a state that is not finite.
        with np.errstate(all="ignore"):
            try:
                self._record()
                while self.done < steps and self.broken_at is None and self.failure is None:
                    before = self.done
                    self._frame(min(self.every, steps - self.done))
                    if bar is not None:
                        bar.update(self.done - before)
            except KeyboardInterrupt:
                self.interrupted = True
                if not self.taus:  # in the controller's first call: the start is all there is
                    self._note()
            finally:
                self.seconds = time.perf_counter() - started
                if bar is not None:
                    bar.close()

    def _arguments(self) -> tuple[np.ndarray, ...]:
        q, v, entries = self.state
        return q, v, self.tau, entries, self.parameters

    def _frame(self, steps: int) -> None:
        """Steps up to the next record."""
        if self.controller is None:
            done, state = self._free(steps)
            self._accept(done, state, done == steps)
        else:
            for _ in range(steps):
                self._accept(*self._free(1), True)
                if self.broken_at is not None:
                    return
                try:
                    self._control()
                except Exception as failure:  # the user's code: whatever it is, keep what was computed
                    self.failure = failure
                    break
        if self.broken_at is None:
            self._record()

    def _free(self, steps: int) -> tuple[int, Any]:
        """Steps with the same joint forces: how many were good, and the state after them."""
        if steps >= ITERATED:
            return self.kernel.iterate(*self._arguments(), steps=steps)
        q, v, entries = self.state
        for k in range(steps):
            try:
                q, v, entries = self.kernel(q, v, self.tau, entries, self.parameters)
            except (ShapeError, ArithmeticError):  # not finite; plain floats overflow and divide by 0 instead
                return max(0, k - 1), (q, v, entries)
        return steps, (q, v, entries)

    def _accept(self, done: int, state: Any, whole: bool) -> None:
        self.done += done
        if whole and all(np.isfinite(x).all() for x in state):
            self.state = state
        else:
            self.broken_at = self.done * self.dt

    def _control(self) -> None:
        """The controller's forces for the next step."""
        q, v, _ = self.state
        assert self.controller is not None
        tau = self.controller(self.done * self.dt, q.copy(), v.copy())
        self.tau = numbers("controller's tau", tau, len(self.tau))

    def _record(self) -> None:
        if not self.steps and self.controller is not None:
            self._control()
        self._note()

    def _note(self) -> None:
        q, v, entries = self.state
        self.steps.append(self.done)
        self.q.append(q)
        self.v.append(v)
        self.entries.append(entries)
        self.taus.append(self.tau)

    def trajectory(self) -> Trajectory:
        """What was recorded."""
        # Ctrl-C may fall between two of these lists.
        n = min(len(self.steps), len(self.q), len(self.v), len(self.entries), len(self.taus))
        robot = self.program.robot
        t = self.dt * np.array(self.steps[:n], dtype=float)
        q, v, books = (np.array(x[:n]) for x in (self.q, self.v, self.entries))
        kinetic, potential = energies(robot, q, v)
        momentum = momenta(robot, q, v)
        dissipated = sum(books[:, ledger.AT[k]] for k in ("contact", "friction", "stops"))
        force = np.zeros((n, 3))
        force[1:] = np.diff(books[:, ledger.IMPULSE], axis=0)[:, 3:] / np.diff(t)[:, None]
        energy = Energy(kinetic, potential, np.asarray(dissipated), books[:, ledger.AT["work"]])
        found = Trajectory(
            t, q, v, energy, momentum, force, robot,
            np.array(self.taus[:n]) if self.controller is not None else None,
            self.program.ground, program=self.program,
        )  # fmt: skip
        found.summary = self._summary(found, books)
        return found

    def _summary(self, found: Trajectory, books: np.ndarray) -> dict[str, Any]:
        robot, energy = self.program.robot, found.energy
        # The robot's weight through a centimetre: less than that is nothing to measure errors by.
        least = 0.01 * robot.total_mass * float(np.linalg.norm(GRAVITY))
        summary: dict[str, Any] = {
            "robot": robot.name,
            "integrator": self.program.name,
            "dt": self.dt,
            "steps": self.done,
            "steps_per_second": self.done / self.seconds if self.done and self.seconds else 0.0,
            "build_seconds": self.build_seconds,
            "energy_balance": float(np.abs(energy.total - energy.total[0]).max()),
            "energy_exchanged": float(max(energy.kinetic.max(), np.ptp(energy.potential), least)),
            "interrupted": self.interrupted,
        }
        for k in ("contact", "friction", "stops"):
            summary[f"dissipated_by_{k}"] = float(books[-1, ledger.AT[k]])
        if robot.base == "floating":
            missing = found.momentum - found.momentum[0] - books[:, ledger.IMPULSE]
            missing[:, 3:] -= found.t[:, None] * robot.total_mass * robot.gravity
            size = np.abs(missing).max(axis=0)
            summary["momentum_balance_angular"] = float(size[:3].max())
            summary["momentum_balance_linear"] = float(size[3:].max())
            summary["momentum_corrected_angular"] = float(books[-1, ledger.AT["corrected_k"]])
            summary["momentum_corrected_linear"] = float(books[-1, ledger.AT["corrected_l"]])
        if self.program.points is not None:
            summary["contact_points"] = len(self.program.points)
            summary["deepest_penetration"] = float(books[-1, ledger.AT["depth"]])
            summary["contact_residual_largest"] = float(books[-1, ledger.AT["residual"]])
            summary["contact_residual_mean"] = float(books[-1, ledger.AT["residual_sum"]] / max(1, self.done))
        return summary


def progress_bar(steps: int) -> Any:
    """A bar for so many steps.

    Raises:
        MissingDependency: tqdm is not installed.
    """
    try:
        from tqdm import tqdm
    except ImportError as error:
        raise MissingDependency("progress=True needs tqdm: pip install tqdm") from error
    return tqdm(total=steps, unit="step", unit_scale=True, leave=False)
