"""The loop over the steps of one simulation: what it records, and why it stops.

A controller is asked about the middle of the step to come. A force that is held over a step is right to
second order if it is that of the step's middle, and to first order if it is that of its beginning. The
configuration there is q + dt/2 v, at which steps of "contact" let their forces act, too. The velocity goes on
as it has changed in the last two steps, by half of the smaller of the two changes, and not at all where they
differ in sign: what an impact did to it is over.

Source: B. van Leer, "Towards the ultimate conservative difference scheme" (1974): slopes by minmod.
"""

from __future__ import annotations

import bisect
import contextlib
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import uuid4

import numpy as np

from robokit.errors import MissingDependency
from robokit.model.robot import Robot
from robokit.sim.events import MOST_BYTES, Notes
from robokit.sim.motion import body_velocities
from robokit.sim.run_inputs import NEVER
from robokit.sim.run_results import EnergyWatch, Records, trajectory_of, warn_of_length
from robokit.sim.starts import numbers
from robokit.sim.step_kernel import Program
from robokit.sim.steppers import default_step, stepper
from robokit.sim.trajectory import Trajectory
from robokit.stages import stage

# ---- the middle of steps ----------------------------------------------------------------------------------

History = tuple[tuple[int, np.ndarray], ...]
"""Numbers of steps, ascending, and the velocities that they began with."""


class MiddleOfSteps:
    """Predicts the middle of steps.

    Attributes:
        history: what is known of the steps before, two of them at most besides the last that was asked for.
    """

    def __init__(self, robot: Robot, dt: float) -> None:
        """Of a robot; ``dt``: time step [s]."""
        self.dt, self.history = dt, History()
        single, self._others = [], []
        for joint in robot.joints:
            if joint.v_slice.stop - joint.v_slice.start == 1:
                single.append((joint.q_slice.start, joint.v_slice.start))
            else:
                self._others.append((robot.tree.joint[joint.body], joint.q_slice, joint.v_slice))
        self._q, self._v = np.array(single, dtype=int).reshape(-1, 2).T

    def __call__(self, step: int, q: np.ndarray, v: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """(t, q, v) in the middle of the step of that number, which begins with q and v."""
        known = dict(self.history)
        self.history = (*((k, w) for k, w in self.history if step - 3 < k < step), (step, v.copy()))
        half = 0.5 * self.dt
        middle = q.copy()
        middle[self._q] += half * v[self._v]
        for joint, at, dofs in self._others:
            middle[at] = joint.integrate(q[at].tolist(), (half * v[dofs]).tolist())
        t = (step + 0.5) * self.dt
        if step - 1 not in known or step - 2 not in known:
            return t, middle, v.copy()
        last, before = v - known[step - 1], known[step - 1] - known[step - 2]
        smaller = np.where(np.abs(last) < np.abs(before), last, before)
        return t, middle, v + np.where(last * before > 0.0, 0.5 * smaller, 0.0)


# ---- the loop ---------------------------------------------------------------------------------------------

Controller = Callable[[float, np.ndarray, np.ndarray], Any]


class Inputs(Protocol):
    """What is given to steps by actuators and pushes, see RunInputs."""

    @property
    def by_function(self) -> bool:
        """Whether it depends on the state."""

    @property
    def law(self) -> tuple[np.ndarray, ...] | None:
        """How targets become inputs, as in StepInputs."""

    def at(self, step: int, q: np.ndarray, v: np.ndarray) -> tuple[list[np.ndarray], int]:
        """The inputs of a step, and the next step at which they change."""


@dataclass(frozen=True)
class Stop:
    """Why a run ended before its time."""

    time: float  # when [s]
    reason: str  # a clause that begins in lower case and has no full stop
    remedy: str = ""  # what to do about it, likewise; may be empty
    cause: Exception | None = None  # the exception of a controller that failed

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


def _sentence(clause: str) -> str:
    return f"{clause[0].upper()}{clause[1:]}." if clause else ""


class Run:
    """A simulation while it runs.

    Attributes:
        records: the recorded states.
        done: steps taken.
        behind: how many of them the stepper does not count.
        path: of each restored state that led here the name of what follows, and its step.
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
        inputs: Inputs,
        alone: bool = False,
    ) -> None:
        """Set out from a state.

        Args:
            q, v: the start.
            dt: time step [s].
            every: steps between two records; 0 for none.
            controller: (t, q, v) -> joint forces, asked before every step about its middle; or None.
            inputs: of actuators and pushes.
            alone: whether the arrays of its steps are its own for good.
        """
        self.program, self.dt, self.every, self.controller = program, dt, every, controller
        self.stepper = stepper(program, dt, alone)
        self.inputs = inputs
        self.middle = MiddleOfSteps(program.robot, dt)
        self.controlled = controller is not None or inputs.by_function
        self.begin(q, v)
        self.control_every, self.end = 1, NEVER
        self.interrupted = False
        self.step_seconds = self.compile_seconds = 0.0

    def begin(self, q: np.ndarray, v: np.ndarray) -> None:
        """Set out anew."""
        program = self.program
        self.stepper.begin(q, v)
        self.stepper.forget_notes()
        self.middle.history = ()
        self.noted: list[Notes] = []
        self.first, self.dropped = 0, False
        self.stepper.noting = self.every > 0
        self.given = [np.zeros(size) for _, size in program.given.inputs]
        self.tau = self.commanded = np.zeros(program.robot.nv)
        self.records, self.watch = Records(), EnergyWatch(program, self.stepper.q.copy())
        self.done = self.change = 0
        self.behind = 0 - (self.stepper.taken or 0)
        self.path = [(uuid4().hex, 0)]
        self.last = self.stepper.impulse()
        self.stop: Stop | None = None

    def go_back(
        self,
        q: np.ndarray,
        v: np.ndarray,
        done: int,
        memory: np.ndarray,
        entries: np.ndarray,
        path: str,
    ) -> None:
        """Go on from a state, and forget what was recorded after it; all of it, where it is of another run.

        Args:
            q, v, done, memory, entries: the state.
            path: the last of ``path`` when it was.
        """
        known = next((k for k, (name, _) in enumerate(self.path) if name == path), None)
        if known is not None:
            left = self.path[known + 1][1] if known + 1 < len(self.path) else self.done
            known = known if done <= left else None
        self._gather()
        self.stepper.begin(q, v, memory, entries)
        self.stepper.forget_notes()
        records = self.records
        if known is None:
            self.records, self.noted, self.dropped, self.path = Records(), [], False, []
            self.watch = EnergyWatch(self.program, self.watch.start)
        else:
            while self.noted and self.noted[-1].steps > done:
                last = self.noted.pop().before(done)
                if len(last):
                    self.noted.append(last)
                    break
            records.cut(bisect.bisect_right(records.steps, done))
            records.inputs.cut(done)
            self.watch.cut(len(records.steps))
            del self.path[known + 1 :]
        self.path.append((uuid4().hex, done))
        self.done = self.first = done
        self.behind = done - (self.stepper.taken or 0)
        self.last = self.stepper.impulse()
        self.change, self.stop = 0, None

    def recount(self) -> None:
        """After an exception on the way, such as Ctrl-C: as many steps as the state has taken."""
        taken = self.stepper.taken
        if taken is not None:
            self.done = taken + self.behind

    @property
    def last_inputs(self) -> tuple[list[np.ndarray], list[Any]]:
        """Joint forces and other inputs of the last step."""
        tau, given = self._before if self._asked_at == self.done else (self.tau, self.given)
        return [tau], [given]

    def last_step(self) -> Notes | None:
        """Notes of the last step that was taken; None of none."""
        found = self.stepper.last()
        if found is not None:
            share = found.pop("share", np.ones(1))
            return Notes(self.done - 1 + np.cumsum(share) - share, share, found)
        if not self.noted or self.noted[-1].steps != self.done:
            return None
        return self.noted[-1].before(self.done, self.done - 1)

    def go(self, steps: int, progress: bool) -> None:
        """Take the steps."""
        started = time.perf_counter()
        self.stepper.take(0)  # so that no compiling counts as stepping
        self.compile_seconds = time.perf_counter() - started
        warn_of_length(self.stepper.refused, self.program.robot.name)
        # A warning of NumPy says less than the error that follows a state that is not finite.
        with stepping(steps, progress) as bar, np.errstate(all="ignore"):
            self._take(steps, bar)
            self._look()

    def _take(self, steps: int, bar: Any) -> None:
        self.end = steps
        try:
            self.control()
            self.record()
            while self.done < steps and self.stop is None:
                before, started = self.done, time.perf_counter()
                try:
                    self.until(min(self.done + self.every, steps))
                finally:
                    self.step_seconds += time.perf_counter() - started
                if bar is not None:
                    bar.update(self.done - before)
        except KeyboardInterrupt:
            self.interrupted = True
            self.records.cut()
            if not self.records.steps:  # in the controller's first call: the start is all there is
                self.give()
                self.record()

    def until(self, end: int) -> None:
        """Steps up to that number of them, with the records on the way."""
        while self.done < end and self.stop is None:
            mark, few = self.mark, min(end, self.next_stop) - self.done
            if self.done + few == mark:  # the step that leads to a record is taken alone: it has its force
                if few > 1:
                    self.advance(few - 1)
                    few = 1
                self.last = self.stepper.impulse()
            if self.stop is None:
                self.advance(few)
            if self.stop is not None:
                return
            try:
                self.control()
            except Exception as failure:  # the user's code: whatever it is, keep what was computed
                if not self.controlled:
                    raise
                reason = f"the controller failed at t = {self.now:.6g} s: {type(failure).__name__}: {failure}"
                self.stop = Stop(self.now, reason, cause=failure)
            if self.done == mark or self.stop is not None:
                self.record()
                if len(self.records.steps) >= self.watch.due:
                    self._look()

    @property
    def mark(self) -> float:
        """The step after which the next record is."""
        return min((self.done // self.every + 1) * self.every, self.end) if self.every else math.inf

    @property
    def next_stop(self) -> int:
        """The step at which something is to be done."""
        asked = math.inf
        if self.controller is not None:
            asked = (self.done // self.control_every + 1) * self.control_every
        return int(min(self.mark, self.change, asked))

    def advance(self, steps: int) -> None:
        """Steps with the same inputs; a state that is not finite stops the run."""
        if self.dropped:  # but for the last steps, of which the contacts may be asked
            self.stepper.forget_notes()
        try:
            done = self.stepper.take(steps)
        except BaseException:
            self.recount()
            raise
        self.done += done
        if done < steps:
            self.fail()

    def fail(self) -> None:
        """Stop: the state is no longer finite."""
        where = f"; {self._fastest(-1)}" if self.records.steps else ""
        what = f"the state is no longer finite ({self._step()}){where}"
        self.stop = Stop(self.now + self.dt, what, self._remedy())

    @property
    def now(self) -> float:
        """Time [s]."""
        return self.done * self.dt

    def control(self) -> None:
        """What is given to the next step: the controller's forces, targets of actuators, pushes.

        Functions are asked about the middle of the step that they act in; a controller that is asked at a
        rate of its own, about the state that there is, as a sampled one.
        """
        now = self.now, self.stepper.q, self.stepper.v
        self._before, self._asked_at = (self.tau, self.given), self.done
        changed = self.done >= self.change
        held = self.control_every == 1
        middle = self.middle(self.done, *now[1:]) if self.controlled and (held or changed) else now
        if self.controller is not None and self.done % self.control_every == 0:
            t, q, v = middle if held else now
            tau = self.controller(t, q.copy(), v.copy())
            self.commanded = self.tau = numbers("controller's tau", tau, len(self.tau))
            changed = True
        if self.done >= self.change:
            self.given, self.change = self.inputs.at(self.done, *middle[1:])
        if changed:
            self.give()

    def give(self) -> None:
        """Hand the inputs to the steps to come."""
        self.stepper.give(self.tau, self.given)
        if self.every:
            self.records.inputs.add(self.done, self.tau, self.given)

    def record(self) -> None:
        """Record the state."""
        own = self.stepper
        self.records.add(self.done, own.q.astype(float), own.v.astype(float), own.entries(), self.last)
        if not self.dropped and own.noted_bytes > MOST_BYTES:
            self.dropped, self.noted = True, []
            own.notes()

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
        energy.cut(k)
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

    def notes(self) -> Notes | None:
        """Notes of all steps up to the last record; None where there are too many."""
        self._gather()
        if not self.every or self.dropped:
            return None
        if len(self.noted) != 1:
            self.noted = [Notes.joined(self.noted) if self.noted else Notes.taken(self.stepper)]
        found, last = self.noted[0], self.records.steps[-1]
        return found if found.steps <= last else found.before(last)

    def _gather(self) -> None:
        """Take what the stepper has noted."""
        if self.every and not self.dropped:
            new, self.first = Notes.taken(self.stepper, self.first), self.done
            if len(new):
                self.noted.append(new)

    def trajectory(self) -> Trajectory:
        """What was recorded."""
        n = len(self.records.steps)
        energy = self.watch.kinetic[:n], self.watch.potential[:n]
        found = trajectory_of(
            self.program, self.dt, self.records, self.notes(), energy if len(energy[0]) == n else None
        )
        self.records.inputs.law = self.inputs.law
        if self.controller is not None:
            found.tau = self.records.inputs.rows(self.records.steps)[0]
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
