"""Rows of a :class:`Simulation` that are stepped together, on the processor and on a card."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from robokit.engine.backend.llvm import processors
from robokit.engine.batch_calls import PAYS_SECONDS
from robokit.engine.cuda import driver
from robokit.engine.cuda.arrays import Library, View, column, common, library_of, seen_by
from robokit.engine.cuda.driver import Memory
from robokit.sim.contact_rows import SECONDS, ContactOnCard, ContactRunner
from robokit.sim.rollouts import runner_of
from robokit.sim.run_inputs import RunInputs
from robokit.sim.step_kernel import Program
from robokit.sim.steppers import ContactStepper, commands, first_carried

# ==== rows on the processor =======================================================================
# Many states of a robot through time, as their caller says: what a Simulation with a batch is made of.


class ManyStates:
    """Rows that are stepped together, in place.

    Attributes:
        rows: B.
        q, v: the states, (B, ...).
        failed: (B,) rows whose state is no longer finite.
        done: steps taken.
    """

    def __init__(
        self,
        program: Program,
        q: np.ndarray,
        v: np.ndarray,
        rows: int,
        dt: float,
        inputs: RunInputs,
        threads: int | None,
    ) -> None:
        """At the start.

        Args:
            q, v: starts, (B or 1, ...).
            rows: B.
            dt: time step [s].
            inputs: of actuators and pushes.
            threads: None for as many as pay.
        """
        self.rows = rows
        self.program, self.dt, self.inputs, self.threads = program, dt, inputs, threads
        self._start = [np.array(np.broadcast_to(x, (rows, x.shape[1]))) for x in (q, v)]
        self.q, self.v = (x.copy() for x in self._start)
        parameters = program.parameters(dt)
        given, self.change = self._at(0, rows)
        self.arrays = [
            self.q[None],
            self.v[None],
            np.zeros((1, rows, program.robot.nv)),
            np.zeros((1, rows, program.entries)),
            first_carried(program, self.q, self.v)[None],
            np.ascontiguousarray(parameters[None] if parameters.ndim == 2 else parameters[None, None]),
            *given,
        ]
        self.failed, self.done = np.zeros(rows, bool), 0
        self.runner = runner_of(program, dt)
        if isinstance(self.runner, ContactRunner):
            wanted = threads or max(1, min(processors(), int(rows * SECONDS / PAYS_SECONDS)))
            self.runner.divide(self.arrays, rows, wanted)

    def _at(self, step: int, rows: int) -> tuple[list[np.ndarray], int]:
        """Inputs of a step, (1, B, n) each, and the step at which they change."""
        found, change = self.inputs.at(step, self._start[0], self._start[1])
        each = (np.broadcast_to(x, (rows, x.shape[-1])) for x in found)
        return [np.array(x, order="C")[None] for x in each], change

    def step(self, tau: np.ndarray | None, u: np.ndarray | None, steps: int) -> None:
        """So many steps; none where it is interrupted.

        Args:
            tau: joint forces, (nv,) or (B, nv); None for none.
            u: what driven joints are given, (B, n); None for what they have.
        """
        before, done = self.state(), self.done
        try:
            self._go(tau, u, steps)
        except BaseException:  # Ctrl-C: threads have come to different steps
            self.restore(before, done)
            raise

    def _go(self, tau: np.ndarray | None, u: np.ndarray | None, steps: int) -> None:
        self.arrays[2][0] = 0.0 if tau is None else tau
        end = self.done + steps
        while self.done < end:
            if self.done >= self.change:
                given, self.change = self._at(self.done, len(self.q))
                self.arrays[6:] = given
            if u is not None:
                self.arrays[6][0] = u
            few = min(end, self.change) - self.done
            with np.errstate(all="ignore"):
                self._take(few)
            self.done += few

    def _take(self, steps: int) -> None:
        if isinstance(self.runner, ContactRunner):
            self.runner.advance(self.done, self.done + steps)
            self.failed[:] = ~self.runner.good
            return
        _, interrupted = self.runner.roll(self.arrays, len(self.q), [0, steps], lambda *_: None, self.threads)
        if interrupted:
            raise KeyboardInterrupt
        self.failed[:] = ~(np.isfinite(self.q).all(axis=1) & np.isfinite(self.v).all(axis=1))

    def reset(self, rows: np.ndarray, q: np.ndarray, v: np.ndarray) -> None:
        """Set some rows, by number, to states (n, ...): nothing was before."""
        self.q[rows], self.v[rows] = q, v
        self.arrays[3][0, rows] = 0.0
        self.arrays[4][0, rows] = first_carried(self.program, self.q, self.v)[rows]
        if isinstance(self.runner, ContactRunner):
            self.runner.reset(rows, q, v)
        self.failed[rows] = False

    def state(self) -> tuple[Any, ...]:
        """All that :meth:`restore` needs."""
        own = self.runner.state() if isinstance(self.runner, ContactRunner) else None
        return [x.copy() for x in (*self.arrays[:2], *self.arrays[3:5])], own

    def restore(self, state: tuple[Any, ...], done: int) -> None:
        """Go on from there."""
        arrays, own = state
        for x, old in zip((*self.arrays[:2], *self.arrays[3:5]), arrays, strict=True):
            x[...] = old
        if isinstance(self.runner, ContactRunner):
            self.runner.restore(own)
            self.failed[:] = ~self.runner.good
        else:
            self.failed[:] = ~(np.isfinite(self.q).all(axis=1) & np.isfinite(self.v).all(axis=1))
        self.done, self.change = done, 0


# ==== rows on a card ==============================================================================
# Many states of a robot on a card, as their caller says: what a Simulation with device="cuda" is made of.

Array = Any
"""Of NumPy, or on the card."""


class CardStates:
    """Rows that are stepped together on a card, with the methods of ManyStates.

    Attributes:
        rows: B.
        done: steps taken.
        library: whose arrays the states are seen as; None for plain views.
        memory: where they are seen, and what goes there.
    """

    def __init__(
        self,
        program: Program,
        q: np.ndarray,
        v: np.ndarray,
        rows: int,
        dt: float,
        inputs: RunInputs,
        number: int,
        library: Library | None,
    ) -> None:
        """At the start; arguments as of ManyStates, and the number of a card."""
        self.rows, self.done = rows, 0
        self.program, self.dt, self.inputs = program, dt, inputs
        self.card, self.dtype = driver.card(number), np.dtype(program.dtype)
        self._start = [np.array(np.broadcast_to(x, (rows, x.shape[1]))) for x in (q, v)]
        sizes = {
            name: x.shape[1] * rows * self.dtype.itemsize for name, x in zip("qv", self._start, strict=True)
        }
        self.memory = Memory(self.card, sizes)
        self._views = [
            View(self.card, self.memory[name], (rows, x.shape[1]), self.dtype, self.memory)
            for name, x in zip("qv", self._start, strict=True)
        ]
        self._arrays: dict[Any, Array] = {}
        self.library: Library | None = None
        self._seen_as(library)
        stream = self.stream()
        with self.memory.on(stream):
            self._steps: _Contact | _Passive = (_Contact if program.contact else _Passive)(self, number)
            self._steps.start(np.arange(rows), *self._start)
            self._tau: Array = None
            self._wanted: Array = None
            self.change = 0
            self._show(stream)

    def _seen_as(self, library: Library | None) -> None:
        """The first library that is seen is the one whose arrays the states are."""
        if self.library is None and library is not None:
            self.library = library
            self.memory.others.append(functools.partial(library.stream, self.card.number))

    @property
    def q(self) -> Array:
        """Configurations, (B, nq), the memory that each step writes."""
        return self._seen(0)

    @property
    def v(self) -> Array:
        """Velocities, (B, nv), likewise."""
        return self._seen(1)

    def _seen(self, k: int) -> Array:
        """A view as an array of the library, the same each time."""
        place = k, self.library
        if place not in self._arrays:
            self._arrays[place] = seen_by(self.library, self._views[k])
        return self._arrays[place]

    @property
    def failed(self) -> np.ndarray:
        """(B,) rows whose state is no longer finite, on the host; waits."""
        stream = self.stream()
        with self.memory.on(stream):  # the last step may have been on another
            self.card.synchronize(stream)
        return ~np.logical_and(*(np.isfinite(np.asarray(x)).all(axis=1) for x in self._views))

    def stream(self) -> int:
        """The caller's."""
        return 0 if self.library is None else self.library.stream(self.card.number)

    def step(self, tau: Array, u: Array, steps: int) -> None:
        """So many steps.

        Args:
            tau: joint forces, (nv,) or (B, nv); None for none.
            u: what driven joints are given, (B, n); None for what they have.
        """
        for x in (tau, u):
            self._seen_as(library_of(x))
        stream = self.stream()
        with self.memory.on(stream), self._steps.memory.on(stream):
            self._step(tau, u, steps, stream)

    def _step(self, tau: Array, u: Array, steps: int, stream: int) -> None:
        end = self.done + steps
        while self.done < end:
            now = self.done >= self.change
            if now:
                self._found, self.change = self.inputs.at(self.done, *self._start)
            if now or tau is not None or u is not None or self._tau is not None or self._wanted is not None:
                own = u if u is not None else self._found[0] if self.program.given.drives else None
                self._steps.give(tau, own, self._found, now, stream)
            self._tau, self._wanted = tau, u
            few = min(end, self.change) - self.done
            self._steps.take(few, stream)
            self.done += few
        self._show(stream)

    def _show(self, stream: int) -> None:
        """The states where the views look."""
        for k, name in enumerate("qv"):
            self._steps.show(name, (self._views[k].pointer, self.rows, 1), stream)

    def reset(self, rows: np.ndarray, q: np.ndarray, v: np.ndarray) -> None:
        """Set some rows, by number, to states (n, ...) of the host: nothing was before."""
        if len(rows):
            stream = self.stream()
            with self.memory.on(stream):
                self._steps.start(rows, q, v)
                self._show(stream)

    def state(self) -> Any:
        """All that :meth:`restore` needs, on the host."""
        stream = self.stream()
        with self.memory.on(stream):
            return self._steps.state(stream)

    def restore(self, state: Any, done: int) -> None:
        """Go on from there."""
        stream = self.stream()
        with self.memory.on(stream):
            self._steps.restore(state, stream)
            self.done, self.change = done, 0
            self._show(stream)


class _Contact:
    """Steps with contacts: engine/cuda/loops.py."""

    def __init__(self, own: CardStates, number: int) -> None:
        self.own, self.given = own, own.program.given
        state = ContactStepper(own.program, own.dt).state
        self.on = ContactOnCard(own.program, state, own.card, own.rows, own.dtype.name)
        own.memory.allocate({"zero": 8, "ones": 8, "notes": 8 * own.rows})
        own.card.fill(own.memory["zero"], 8, 0, own.stream())
        own.card.fill(own.memory["ones"], 8, 0xFF, own.stream())
        self._unforced = True

    @property
    def memory(self) -> Memory:
        """That of the states."""
        return self.on.loops.memory

    def start(self, rows: np.ndarray, q: np.ndarray, v: np.ndarray) -> None:
        """Begin rows, by number: nothing was before. It does not wait."""
        on, card, stream = self.on, self.own.card, self.own.stream()
        places = [np.ascontiguousarray(rows, np.int64)]
        places += [np.ascontiguousarray(x.T, self.own.dtype) for x in (q, v)]
        memory = [card.allocate(x.nbytes, stream) for x in places]
        for pointer, x in zip(memory, places, strict=True):
            card.write(pointer, x, stream)
        which = memory[0], len(rows)
        for a in on.kernel.taken:
            if a.role == "inout" and 0 not in a.at(on.sizes):
                blank = "ones" if a.name.endswith("_pair") else "zero"  # the bits of -1, a whole number
                on.loops.take(a.name, (self.own.memory[blank], 0, 0), stream, which=which)
        on.loops.take("status", (self.own.memory["zero"], 0, 0), stream, which=which)
        for name, pointer in zip("qv", memory[1:], strict=True):
            on.loops.take(name, (pointer, len(rows), 1), stream, which=which)
        for pointer in memory:
            card.free(pointer, stream)

    def give(self, tau: Array, u: Array, found: list[np.ndarray], now: bool, stream: int) -> None:
        """Inputs of the steps to come; ``now``: those of pushes and motions are others than before."""
        arrays, loops = self.on.arrays, self.on.loops
        rest = list(found)
        if self.given.drives:
            rest.pop(0)
        for on, name in ((self.given.places, "push_wrench"), (self.given.motions, "motion_values")):
            if on and now:
                loops.write(name, rest.pop(0).astype(float), stream)
        if library_of(tau) is None and library_of(u) is None:
            self._unforced = tau is None
            forces = np.zeros((1, self.own.program.robot.nv)) if tau is None else np.atleast_2d(tau)
            x = {"joint_forces": forces}
            if u is not None:
                x |= commands(arrays, np.asarray(u, float), forces)
            for name, each in x.items():
                if each.size:
                    loops.write(name, each, stream)
            return
        library, number = self.own.library, self.own.card.number
        assert library is not None
        driven = arrays["dof_row"][arrays["motor_dof"]]
        if tau is not None:
            self._unforced = False
        if u is None:
            loops.take("joint_forces", self._column(tau), stream)
            return
        command = u if library_of(u) else library.kept(np.asarray(u, self.own.dtype), number)
        if tau is None and not self._unforced:
            loops.take("joint_forces", (self.own.memory["zero"], 0, 0), stream)
            self._unforced = True
        elif tau is not None:
            tau = tau if library_of(tau) else library.kept(np.asarray(tau, self.own.dtype), number)
            command = command + library.picked(tau, driven, number)
            free = np.ones(self.own.program.robot.nv, self.own.dtype)
            free[driven] = 0.0
            self._held = tau * library.kept(free, number)
            loops.take("joint_forces", self._column(self._held), stream)
        self._command = command
        loops.take("motor_command", self._column(command), stream, part=(0, 2, len(driven)))

    def _column(self, x: Array) -> tuple[int, int, int]:
        found = column(self.own.library.seen(x), x.ndim - 1)  # type: ignore[union-attr]
        assert found is not None
        return found

    def take(self, steps: int, stream: int) -> None:
        self.on.steps(steps, stream)
        if not self.own.card.capturing(stream) and self._unsettled(stream):
            self.on.settle()

    def _unsettled(self, stream: int) -> bool:
        """Whether a row waits for more room, or has raised something; waits for the steps."""
        rows, place = self.own.rows, self.own.memory["notes"]
        self.on.loops.give("status", (place, rows, 1), stream)
        self.on.loops.give("needed", (place + 4 * rows, rows, 1), stream, part=(0, 1, 1))
        found = np.empty((2, rows), np.int32)
        self.own.card.read(found, place, stream)
        return bool((found[0] > 0).any() or found[1].any())

    def show(self, name: str, place: tuple[int, int, int], stream: int) -> None:
        self.on.loops.give(name, place, stream)

    def state(self, stream: int) -> Any:
        return self.on.kept(stream)

    def restore(self, state: Any, stream: int) -> None:
        self.on.put_back({name: x.copy() for name, x in state.items()}, stream)


class _Passive:
    """Steps of passive motion: engine/cuda/rollout.py."""

    def __init__(self, own: CardStates, number: int) -> None:
        self.own, self.on = own, runner_of(own.program, own.dt, number)
        program, rows = own.program, own.rows
        parameters = program.parameters(own.dt)
        given, _ = own.inputs.at(0, *own._start)
        self.arrays = [
            *(x[None].astype(own.dtype) for x in own._start),
            np.zeros((1, 1, program.robot.nv)),
            np.zeros((1, rows, program.entries)),
            first_carried(program, *own._start)[None],
            parameters[None] if parameters.ndim == 2 else parameters[None, None],
            *(np.atleast_2d(x)[None] for x in given),
        ]
        self.memory = self.on.memory
        self.on.begin(self.arrays, rows, own.stream())
        self._held: list[Array] = []
        self._unforced = True

    def start(self, rows: np.ndarray, q: np.ndarray, v: np.ndarray) -> None:
        stream = self.own.stream()
        self.on.look(self.arrays, None, stream)
        for k, x in ((0, q), (1, v), (3, 0.0), (4, first_carried(self.own.program, q, v))):
            self.arrays[k][0, rows] = x
            self.on.put(k, self.arrays[k][0], stream)

    def give(self, tau: Array, u: Array, found: list[np.ndarray], now: bool, stream: int) -> None:
        """Inputs of the steps to come; ``now``: those of pushes and motions are others than before."""
        inputs: list[Array] = [np.zeros((1, self.own.program.robot.nv)) if tau is None else tau]
        inputs += [u, *found[1:]] if self.own.program.given.drives else found
        unforced, self._unforced = self._unforced, tau is None
        self._held = []
        for k, x in zip((2, *range(6, 6 + len(inputs))), inputs, strict=False):
            library = library_of(x)
            if library is None:
                still = unforced and tau is None if k == 2 else not now and x is not u
                if not still:
                    self.on.put(k, np.atleast_2d(x), stream)
                continue
            place = column(library.seen(x), x.ndim - 1)
            assert place is not None
            self.on.columns[k] = place
            self._held.append(x)

    def take(self, steps: int, stream: int) -> None:
        self.on.steps(steps, None, stream)

    def show(self, name: str, place: tuple[int, int, int], stream: int) -> None:
        k = "qv".index(name)
        size = self.own.rows * self.on.sizes[k] * self.own.dtype.itemsize
        self.own.card.copy(place[0], self.on.columns[k][0], size, stream)

    def state(self, stream: int) -> Any:
        self.on.look(self.arrays, None, stream)
        return [self.arrays[k].copy() for k in (0, 1, 3, 4)]

    def restore(self, state: Any, stream: int) -> None:
        for k, x in zip((0, 1, 3, 4), state, strict=True):
            self.arrays[k][...] = x
            self.on.put(k, self.arrays[k][0], stream)


def wanted_on_card(wanted: Array, linear: tuple[np.ndarray, ...]) -> Array:
    """What driven joints are given for targets that are on a card; see DrivenJoints.linear."""
    found = common(["targets"], [wanted], None, None)
    assert found is not None
    library, number, dtype = found
    ahead, gain, limit, rest = (library.kept(np.asarray(x, dtype), number) for x in linear)
    return ahead + gain * library.clip(wanted, -limit, limit) + rest
