"""The loop over the steps of one simulation: what it records, and why it stops."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from robokit.errors import InvalidValue, MissingDependency
from robokit.sim.motion import ledger
from robokit.sim.motion.implicit_sweep import body_velocities
from robokit.sim.record import Trajectory
from robokit.sim.record.recorded import first_carried
from robokit.sim.run.energy_growth import EnergyWatch
from robokit.sim.run.run_inputs import RunInputs
from robokit.sim.run.run_results import LastStep, Records, trajectory_of
from robokit.sim.run.run_warnings import warn_of_length
from robokit.sim.starts.given_states import numbers
from robokit.sim.step.step_kernel import Program
from robokit.sim.stepping.contact_steps import ContactSteps, stepper
from robokit.sim.stepping.default_step import default_step
from robokit.stages import stage

Controller = Callable[[float, np.ndarray, np.ndarray], Any]

ITERATED = 50
"""Steps from which the loop inside the engine is faster than one call a step."""


@dataclass(frozen=True)
class Stop:
    """Why a run ended before its time.

    Attributes:
        time: when [s].
        reason: a clause that begins in lower case and has no full stop.
        remedy: what to do about it, likewise; may be empty.
        cause: the exception of a controller that failed.
    """

    time: float
    reason: str
    remedy: str = ""
    cause: Exception | None = None

    def __str__(self) -> str:
        """The message of the error."""
        if self.cause is not None:
            return self.reason
        return (
            f"stopped at t = {self.time:.6g} s: {self.reason}; {self.remedy}. The states before are in the "
            "error's .trajectory"
        )

    def summary(self) -> dict[str, Any]:
        """The same for :attr:`Trajectory.summary`, as sentences."""
        return {"time": self.time, "reason": _sentence(self.reason), "remedy": _sentence(self.remedy)}


def _finite(x: np.ndarray, zeros: np.ndarray) -> bool:
    return bool(x.dot(zeros) == 0.0) if x.size == zeros.size else bool(np.isfinite(x).all())


def _sentence(clause: str) -> str:
    return f"{clause[0].upper()}{clause[1:]}." if clause else ""


class Run:
    """A simulation while it runs.

    Attributes:
        records: the recorded states.
        done: steps taken.
        stop: why it ended before its time, or None.
        interrupted: whether Ctrl-C ended it.
    """

    def __init__(
        self,
        program: Program,
        q: np.ndarray,
        v: np.ndarray,
        dt: float,
        every: int,
        controller: Controller | None,
        inputs: RunInputs,
    ) -> None:
        self.program, self.dt, self.every, self.controller = program, dt, every, controller
        self.kernel = stepper(program)
        self.parameters = program.parameters(dt)
        self.inputs, self.change = inputs, 0
        self.given = [np.zeros(size) for _, size in program.given.inputs]
        self.controlled = controller is not None or inputs.by_function
        self.state = (q, v, np.zeros(program.entries), first_carried(program, q[None], v[None])[0])
        self.tau = np.zeros(program.robot.nv)
        self.zeros = [np.zeros(x.size) for x in self.state]
        # Whether single steps have a call of their own; else they are taken by the loop inside the engine.
        self.alone = not program.contact and (self.controlled or bool(self.given) or every < ITERATED)
        self.records = Records()
        self.watch = EnergyWatch(program, q)
        self.done = 0
        self.stop: Stop | None = None
        self.interrupted = False
        self.step_seconds = self.compile_seconds = 0.0

    def go(self, steps: int, progress: bool) -> None:
        """Take the steps."""
        started = time.perf_counter()
        self._compile()
        self.compile_seconds = time.perf_counter() - started
        warn_of_length(self.kernel.refused, self.program.robot.name)
        # A warning of NumPy says less than the error that follows a state that is not finite.
        with stepping(steps, progress) as bar, np.errstate(all="ignore"):
            self._take(steps, bar)
            self._look()

    def _compile(self) -> None:
        """Compile the loop over steps and the single step, so that no compiling counts as stepping."""
        self.kernel.iterate(*self._arguments(), steps=0)
        if self.alone:
            with np.errstate(all="ignore"), contextlib.suppress(InvalidValue, ArithmeticError):
                self.kernel(*self._arguments())

    def _take(self, steps: int, bar: Any) -> None:
        try:
            self._control()
            self.last = self._step_from_here()
            self._record()
            while self.done < steps and self.stop is None:
                before, started = self.done, time.perf_counter()
                try:
                    self._frame(min(self.every, steps - self.done))
                finally:
                    self.step_seconds += time.perf_counter() - started
                if len(self.records.steps) >= self.watch.due:
                    self._look()
                if bar is not None:
                    bar.update(self.done - before)
        except KeyboardInterrupt:
            self.interrupted = True
            self.records.cut()
            if not self.records.steps:  # in the controller's first call: the start is all there is
                self.last = self._step_from_here()
                self._record()

    def _arguments(self) -> tuple[np.ndarray, ...]:
        q, v, entries, carried = self.state
        return q, v, self.tau, entries, carried, self.parameters, *self.given

    def _frame(self, steps: int) -> None:
        """Steps up to the next record."""
        end = self.done + steps
        while self.done < end and self.stop is None:
            # The step that leads to a record is taken alone: the record has its contact force.
            few = 1 if self.controlled else min(max(end, self.done + 2) - 1, self.change) - self.done
            if few == 1:
                self.last = self._step_from_here()
            done, state = self._free(few, end - self.done - few <= 1)
            # The next step refuses what is not finite; a record must not get it, nor who looks at each state.
            self._accept(done, state, done == few, self.controlled or self.done + done == end)
            if self.stop is not None:
                return
            try:
                self._control()
            except Exception as failure:  # the user's code: whatever it is, keep what was computed
                if not self.controlled:
                    raise
                reason = f"the controller failed at t = {self.now:.6g} s: {type(failure).__name__}: {failure}"
                self.stop = Stop(self.now, reason, cause=failure)
        if self.stop is None or self.stop.cause is not None:
            self._record()

    def _free(self, steps: int, told: bool) -> tuple[int, Any]:
        """Steps with the same joint forces: how many were good, and the state after them.

        ``told``: whether a record needs that state.
        """
        if isinstance(self.kernel, ContactSteps):
            return self.kernel.iterate(*self._arguments(), steps=steps, told=told)
        if steps >= ITERATED or not self.alone:
            return self.kernel.iterate(*self._arguments(), steps=steps)
        q, v, entries, carried = self.state
        for k in range(steps):
            try:
                q, v, entries, carried = self.kernel(
                    q, v, self.tau, entries, carried, self.parameters, *self.given
                )
            except (InvalidValue, ArithmeticError):  # not finite; plain floats overflow, divide by 0
                return max(0, k - 1), (q, v, entries, carried)
        return steps, (q, v, entries, carried)

    def _accept(self, done: int, state: Any, whole: bool, look: bool) -> None:
        """Go on from a state if all its steps were good and, where that is looked at, it is finite."""
        self.done += done
        # 0 times what is not finite is NaN; numpy.isfinite takes four times as long.
        if whole and (not look or all(map(_finite, state, self.zeros))):
            self.state = state
            return
        what = f"the state is no longer finite ({self._step()}); {self._fastest(-1)}"
        self.stop = Stop(self.now, what, self._remedy())

    @property
    def now(self) -> float:
        """Time [s]."""
        return self.done * self.dt

    def _control(self) -> None:
        """What is given to the next step: the controller's forces, targets of actuators, pushes."""
        q, v, *_ = self.state
        if self.controller is not None:
            tau = self.controller(self.now, q.copy(), v.copy())
            self.tau = numbers("controller's tau", tau, len(self.tau))
        changed = self.controlled or self.done >= self.change
        if self.done >= self.change:
            self.given, self.change = self.inputs.at(self.done, q, v)
        if changed:
            self.records.inputs.add(self.done, self.tau, self.given)

    def _record(self) -> None:
        q, v, entries, carried = self.state
        if isinstance(self.kernel, ContactSteps) and not len(entries):  # a controller failed between records
            entries, carried = self.kernel.tell(self.dt)
        self.records.add(self.done, q, v, entries, self.tau, carried, self.given, self.last)

    def _step_from_here(self) -> LastStep:
        """The next step, as the record after it remembers it."""
        q, v, entries, carried = self.state
        return LastStep(q, v, entries[ledger.IMPULSE], self.tau, carried, self.given)

    # ---- reasons to stop -----------------------------------------------------------------------

    def _look(self) -> None:
        """Stop before the first recorded state whose energy cannot be explained."""
        records, energy = self.records, self.watch
        k = energy.look(records.q, records.v, records.entries)
        if k == len(records.steps):
            return
        self.done = records.steps[k]
        what = f"the energy has grown by {energy.made(k, records.entries[k]):.3g} J without a cause "
        what += f"({self._step()}); {self._fastest(k)}"
        self.stop = Stop(self.now, what, self._remedy())
        records.cut(k)
        self.done = records.steps[-1]

    def _step(self) -> str:
        return f"{self.program.name}, dt = {self.dt:g} s"

    def _fastest(self, k: int) -> str:
        """The body with the largest kinetic energy in record k, in words."""
        robot = self.program.robot
        tree, rows = robot.tree, robot.split_q(self.records.q[k].tolist())
        V = body_velocities(tree, tree.transforms(rows), robot.split_v(self.records.v[k].tolist()))
        energy = [0.5 * V[i].dot(tree.I[i] @ V[i]) for i in tree.outward()]
        if not np.any(energy):
            return f"in the state recorded before, at {self.dt * self.records.steps[k]:g} s, nothing moves"
        i = 1 + int(np.nanargmax(energy)) if np.isfinite(energy).any() else 1
        turning, speed = (float(np.linalg.norm(list(x))) for x in (V[i].ang, V[i].lin))
        return f"link {robot.body_name(i)!r} has most kinetic energy: {speed:.3g} m/s, {turning:.3g} rad/s"

    def _remedy(self) -> str:
        best = default_step(self.program.robot, self.program.contact)
        shorter = f"try dt = {best if best < self.dt else self.dt / 4.0:g}"
        return (
            f"the time step is too long, or the controller too stiff for it; {shorter}"
            if self.controlled
            else shorter
        )

    # ---- results -------------------------------------------------------------------------------

    def trajectory(self) -> Trajectory:
        """What was recorded."""
        n = len(self.records.steps)
        energy = self.watch.kinetic[:n], self.watch.potential[:n]
        found = trajectory_of(self.program, self.dt, self.records, energy if len(energy[0]) == n else None)
        found.tau = np.array(self.records.taus) if self.controller is not None else None
        seconds = self.step_seconds
        found.summary |= {
            "steps": self.done,
            "steps_per_second": self.done / seconds if self.done and seconds else 0.0,
            "compile_seconds": self.compile_seconds,
            "step_seconds": seconds,
            "interrupted": self.interrupted,
        }
        if self.stop is not None:
            found.summary["stopped"] = self.stop.summary()
        return found


@contextlib.contextmanager
def stepping(steps: int, progress: bool) -> Iterator[Any]:
    """A bar for so many steps if that is wanted, else None: then they are a stage like others.

    Raises:
        MissingDependency: tqdm is not installed.
    """
    if not progress:
        with stage("simulating"):
            yield None
        return
    try:
        from tqdm import tqdm
    except ImportError as error:
        raise MissingDependency("progress=True needs tqdm: pip install tqdm") from error
    with stage(""), tqdm(total=steps, unit="step", unit_scale=True, leave=False) as bar:
        yield bar
