"""Rows of states on a card, a row a thread: of rollouts, and of a :class:`robokit.Simulation`.

Nothing else in this folder imports the modules of cards; a run on the processor does without this one.
"""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from threading import Event
from typing import Any

import numpy as np

from robokit.contact.step import ARRAYS
from robokit.contact.step_of_robot import FEW_TURNS, kernel_of_robot
from robokit.dataclass_tools import Recent
from robokit.engine.backend.llvm import CompilerMissing
from robokit.engine.batch_calls import from_record_to_record
from robokit.engine.cuda import driver
from robokit.engine.cuda.arrays import Library, View, column, common, library_of, seen_by
from robokit.engine.cuda.driver import Memory
from robokit.engine.cuda.loop_code import NOT_FINITE, NOTES
from robokit.engine.cuda.loops import Loops
from robokit.engine.loops.fields import KnownKernel
from robokit.engine.trace.graph import TraceTooLarge
from robokit.errors import DeviceError
from robokit.sim.rollout_measures import OwnMeasures
from robokit.sim.run_inputs import RunInputs
from robokit.sim.step_kernel import Program
from robokit.sim.steppers import (
    LARGEST,
    SUMMED,
    ContactState,
    add_up,
    begins_with,
    blank,
    contact_stepper,
    differ,
    enlarged,
    entries_of,
    first_carried,
    kernel_inputs,
    not_finite,
    row_numbers,
    scene_of,
    step_inputs,
)

# ==== steps with contacts: the kernel of contact/step.py ==========================================

GIVEN = ("joint_forces", "motor_command", "push_wrench", "motion_values")
"""Inputs that may change from step to step."""

PLACES = {"n_contacts": 48, "n_near": 96, "n_constraints": 48}
"""For what a step finds, at first. Where a row needs more the code is made again, with places for all rows of
the robot from then on."""

POLYGONS = 2048
"""Numbers that detection works with beside its memory: 29 for each corner of the largest face, of which hulls
have 64 at most."""

HELD_BYTES = 1 << 30  # of inputs that change with the steps, of one launch


KEPT = 16  # kernels that a process keeps, so that the next rollout of a robot need not write its code again

_kernels: Recent[KnownKernel] = Recent(KEPT)


def _kernel(
    arrays: Mapping[str, np.ndarray], sizes: Mapping[str, int], differ: set[str], *more: Any
) -> KnownKernel:
    """kernel_of_robot, made once for what it depends on."""
    told = hashlib.sha256()
    for name in sorted(arrays.keys() - differ):
        x = np.ascontiguousarray(arrays[name])
        told.update(f"{name} {x.dtype} {x.shape} ".encode() + x.tobytes())
    key = told.digest(), tuple(sizes.items()), frozenset(differ), *more
    return _kernels.get(key, lambda: kernel_of_robot(dict(arrays), sizes, differ, *more))


class ContactOnCard:
    """The states of many rows on a card, and their steps, which a CUDA graph may have: they never wait or
    allocate.

    ``state`` has the arrays of one row, ``dtype`` is of the numbers on the card, ``steps`` is how many may
    have inputs of their own; ``few`` is of kernel_of_robot, and other options are of engine.cuda.loops.Code.
    ``loops`` is the kernel with its memory, ``sizes`` those of its arrays.
    """

    def __init__(
        self,
        program: Program,
        state: ContactState,
        card: Any,
        rows: int,
        dtype: str,
        steps: int = 1,
        few: int = FEW_TURNS,
        **options: Any,
    ) -> None:
        self.program, self.card, self.rows, self.dtype = program, card, rows, dtype
        self.arrays = state.arrays
        self.reproducible = state.kernel.reproducible
        self.options, self.steps_held, self.few = options, steps, few
        self._last: tuple[int, int, bool] = (0, 0, False)
        self.own: dict[str, np.ndarray] = {}  # inputs in which rows differ, (rows, ...) each
        if differ(program):
            dt = float(self.arrays["dt"][0])
            self.own = row_numbers(program, dt, scene_of(program), np.arange(rows))
        steady = 2 * state.sizes["n_loops"] + state.sizes["n_springs"]  # constraints that every step has
        self._places = program.robot.derived.get(
            ("places of contacts on a card", steady),
            lambda: PLACES | {"n_constraints": PLACES["n_constraints"] + steady},
        )
        self.sizes = {**state.sizes, **{n: max(state.sizes[n], k) for n, k in self._places.items()}}
        self._make()

    def _make(self, stream: int = 0) -> None:
        differ = {*self.own, *GIVEN}
        more = self.reproducible, self.program.springs.functions
        self.kernel = _kernel(self.arrays, self.sizes, differ, *more, self.few)
        where = []
        for a in self.kernel.arrays:
            changes, own = a.name in GIVEN, a.role != "in" or a.name in self.own
            where.append("work" if a.role == "work" else "given" if changes else "tile" if own else "shared")
        fixed = zip(self.kernel.arrays, where, strict=True)
        known = {**self.arrays, **self.kernel.contents}
        shared = {a.name: known[a.name] for a, base in fixed if base == "shared"}
        contents = {
            a.name: shared[a.name] for a in self.kernel.arrays if a.name in shared and a.kind == "integer"
        }
        self.loops = Loops(
            self.card, self.kernel, self.sizes, where, self.dtype, shared, self.rows, contents,
            self.steps_held, finite=("q", "v"), stop="needed", unfinished="turns",
            heap=10 * self.sizes["n_near"] + POLYGONS, **self.options,
        )  # fmt: skip
        for name, x in self.own.items():
            if name not in GIVEN:
                self.loops.write(name, x, stream)
        for name in GIVEN:
            if self.arrays[name].size:
                self.loops.write(name, self.arrays[name][None], stream)
        for a in self.kernel.taken:
            if a.name.endswith("_pair") and a.role == "inout":
                self.loops.write(a.name, np.full((1, *a.at(self.sizes)), -1), stream)

    @property
    def handed_on(self) -> list[str]:
        """Names of the arrays that a step passes on to the next."""
        return [a.name for a in self.kernel.taken if a.role == "inout"]

    def start(self, q: np.ndarray, v: np.ndarray) -> None:
        """Start all rows at states of the host, (rows, ...), without history."""
        for a in self.kernel.taken:
            if a.role == "inout" and a.name not in ("q", "v"):
                self.loops.write(a.name, np.full((1, *a.at(self.sizes)), blank(a.name)))
        self.loops.write("q", q)
        self.loops.write("v", v)
        self.loops.write("status", np.zeros((1, 1)))

    def steps(self, count: int, stream: int = 0, changing: bool = False) -> None:
        """So many steps of all rows; ``changing``: each has inputs of its own."""
        self._last = count, stream, changing
        self.loops.run(count, stream, changing)

    def settle(self) -> None:
        """Make sure that all rows took their steps, with larger arrays for those that needed them.

        Waits for the card. Raises the error that Python would raise where a kernel has failed.
        """
        count, stream, changing = self._last
        while True:
            status = self.loops.read("status", stream)
            for each in set(status.tolist()) - {0, NOT_FINITE}:
                raise self.loops.failed(each)
            needed = self.loops.read("needed", stream)
            short = needed[:, 0] > 0
            if not short.any():
                return
            self._enlarge(enlarged(self.sizes, needed[short].max(axis=0)), self.kept(stream), stream)
            self.loops.run(count, stream, changing, resumed=True)

    def kept(self, stream: int = 0) -> dict[str, np.ndarray]:
        """All that :meth:`put_back` needs, on the host; waits."""
        return {name: self.loops.read(name, stream) for name in (*self.handed_on, *NOTES)}

    def put_back(self, kept: dict[str, np.ndarray], stream: int = 0) -> None:
        """Go on from there."""
        there = {str(a.shape[0]): kept[a.name].shape[1] for a in ARRAYS if a.name in kept}
        more = {name: n for name, n in there.items() if n > self.sizes.get(name, n)}
        if more:
            self._enlarge(more, kept, stream)
            return
        for name, x in kept.items():
            if name in self.loops.places:
                a = self.loops.places[name][0]
                x = begins_with(x, (self.rows, *a.at(self.sizes)), name)
            if x.size:
                self.loops.write(name, x, stream)

    def _enlarge(self, sizes: dict[str, int], kept: dict[str, np.ndarray], stream: int) -> None:
        """Larger arrays, with what is in them."""
        old = self.loops
        kept["needed"][:, 0] = 0
        self.sizes |= sizes
        self._places |= {n: max(k, self.sizes[n]) for n, k in self._places.items()}  # for rows to come, too
        self._make(stream)
        size = self.steps_held * old.jump
        with self.loops.memory.on(stream), old.memory.on(stream):
            self.card.copy(self.loops.memory["given"], old.memory["given"], size, stream)
        self.put_back(kept, stream)


class CardRunner:
    """Rows of a program on a card, which :meth:`roll` takes through steps as ContactRunner does.

    ``failed``: of each row whose state did not stay finite, the step after which; ``card``: on which;
    ``dtype``: of the numbers there.
    """

    def __init__(self, program: Program, dt: float, card: Any) -> None:
        """Prepare it for rows of a program; DeviceError where the card takes no such steps."""
        where = f'device="cuda:{card.number}"'
        if program.accuracy is not None:
            raise DeviceError(f'{where}: its steps are not divided; leave out accuracy=, or use device="cpu"')
        if OwnMeasures(program):
            raise DeviceError(f'{where}: measures of your own are functions of the CPU; use device="cpu"')
        self.program, self.card, self.dtype = program, card, program.dtype
        self.simulation = contact_stepper(program, dt, self)
        self.failed: dict[int, int] = {}
        self.given: Sequence[np.ndarray] = ()
        self._finite = np.zeros(0, bool)

    def roll(
        self,
        arrays: Sequence[np.ndarray],
        rows: int,
        marks: Sequence[int],
        record: Callable[[int, int, int], Any],
        threads: int | None = None,
        progress: Callable[[int], Any] | None = None,
    ) -> tuple[int, bool]:
        """See RolloutRunner.roll."""
        state, self.given = self.simulation, arrays
        changing = [x for x in (arrays[2], *arrays[6:]) if len(x) > 1]
        numbers = sum(state.arrays[name].size for name in GIVEN) * rows * np.dtype(self.dtype).itemsize
        held = max(1, min(max((len(x) for x in changing), default=1), HELD_BYTES // max(1, numbers)))
        self.rows = ContactOnCard(self.program, state, self.card, rows, self.dtype, held)
        self.rows.start(arrays[0][0], arrays[1][0])
        self.rows.loops.write("measured", arrays[3][0, :, self.program.sums :])
        self.sums: dict[str, np.ndarray] = {}
        self._look()
        return from_record_to_record([range(rows)], marks, self._advance, record, progress, Event())

    def _advance(self, _: int, first: int, last: int) -> bool:
        """Steps first..last of all rows; then the arrays have their states."""
        at = first
        while at < last:
            steps = min(last - at, self._put(at, last - at))
            self.rows.steps(steps, changing=self._changing)
            self.rows.settle()
            at += steps
        self._look()
        return True

    def _put(self, first: int, steps: int) -> int:
        """Write the inputs of the next steps; how many these are for."""
        tables = self.given[2], *self.given[6:]
        self._changing = any(len(x) > 1 for x in tables)
        if self._changing:
            steps = min(steps, self.rows.steps_held)
        for k in range(steps if self._changing else 1):
            tau, *given = (x[min(first + k, len(x) - 1)] for x in tables)
            for name, x in step_inputs(self.program, self.rows.arrays, tau, given).items():
                if x.size:
                    self.rows.loops.write(name, x, at=k)
        return steps

    def _look(self) -> None:
        """Copy the states from the card; a row that is no longer finite is not a number."""
        loops, x = self.rows.loops, {}
        for name in ("q", "v", *SUMMED, "measured"):
            x[name] = loops.read(name).astype(float)
        for name in SUMMED if self.dtype != "float64" else ():  # ledgers are in double precision
            total = self.sums.setdefault(name, np.zeros(x[name].shape))
            add_up(total, x[name], LARGEST.get(name, ()))
            x[name] = total.copy()
            if x[name].size:
                loops.write(name, np.zeros((1, *x[name].shape[1:])))
        self.given[0][0], self.given[1][0] = x["q"], x["v"]
        self._finite = ~not_finite(x["q"], x["v"])
        taken = loops.read("taken")
        for k in np.flatnonzero(~self._finite).tolist():
            self.failed.setdefault(k, int(taken[k]))
        self.given[0][0][~self._finite] = np.nan
        self.given[3][0] = entries_of(self.program, x)


def card_runner(program: Program, dt: float, number: int) -> Any:
    """What takes many rows of a program through steps of dt [s] on a card; DeviceError where nothing does."""
    card = driver.card(number)
    if program.contact:
        return CardRunner(program, dt, card)
    kernel = program.kernel()
    try:
        return driver.RolloutOnCard(kernel, card)
    except (CompilerMissing, TraceTooLarge) as error:
        raise DeviceError(
            f'device="cuda:{number}": {kernel.name} has no code for a card ({error}); use device="cpu"'
        ) from error


# ==== rows of a Simulation ========================================================================
# Many states of a robot on a card, as their caller says: what a Simulation with device="cuda" is made of.

Array = Any  # of NumPy, or on the card


class CardStates:
    """Rows that are stepped together on a card, with the methods of ManyStates.

    ``rows``: B; ``done``: steps taken; ``library``: whose arrays the states are seen as; None for plain
    views; ``memory``: where they are seen, and what goes there.
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

    def net_contact_forces(self) -> Array:
        """Net contact force on each link, (B, L, 3) [N]: memory that each step writes from now on."""
        if len(self._views) == 2:
            shape, stream = (self.rows, len(self.program.robot.links), 3), self.stream()
            size = math.prod(shape) * self.dtype.itemsize
            self.memory.allocate({"net_force": size})
            self._views.append(View(self.card, self.memory["net_force"], shape, self.dtype, self.memory))
            with self.memory.on(stream):
                self.card.fill(self.memory["net_force"], size, 0, stream)
                self._show(stream)
        return self._seen(2)

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
        return ~np.logical_and(*(np.isfinite(np.asarray(x)).all(axis=1) for x in self._views[:2]))

    def stream(self) -> int:
        """The caller's."""
        return 0 if self.library is None else self.library.stream(self.card.number)

    def step(self, tau: Array, u: Array, steps: int) -> None:
        """Take steps with joint forces tau, (nv,) or (B, nv), or None, and inputs u of driven joints, (B, n).

        None for u keeps the present inputs.
        """
        for x in (tau, u):
            self._seen_as(library_of(x))
        stream, end = self.stream(), self.done + steps
        with self.memory.on(stream), self._steps.memory.on(stream):
            while self.done < end:
                now = self.done >= self.change
                if now:
                    self._found, self.change = self.inputs.at(self.done, *self._start)
                if now or any(x is not None for x in (tau, u, self._tau, self._wanted)):
                    own = u if u is not None else self._found[0] if self.program.given.drives else None
                    self._steps.give(tau, own, self._found, now, stream)
                self._tau, self._wanted = tau, u
                few = min(end, self.change) - self.done
                self._steps.take(few, stream)
                self.done += few
            self._show(stream)

    def _show(self, stream: int) -> None:
        """The states where the views look."""
        for name, view in zip(self._steps.shown, self._views, strict=False):
            self._steps.show(name, (view.pointer, self.rows, 1), stream)

    def reset(self, rows: np.ndarray, q: np.ndarray, v: np.ndarray) -> None:
        """Set some rows, by number, to states (n, ...) of the host: nothing was before."""
        if len(rows):
            stream = self.stream()
            with self.memory.on(stream):
                self._steps.start(rows, q, v)
                self._show(stream)

    def state(self) -> Any:
        """The complete state for :meth:`restore`, on the host."""
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

    shown = "q", "v", "net_force"

    def __init__(self, own: CardStates, number: int) -> None:
        self.own = own
        state = contact_stepper(own.program, own.dt, self)
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
                bits = "ones" if blank(a.name) else "zero"  # of -1, a whole number
                on.loops.take(a.name, (self.own.memory[bits], 0, 0), stream, which=which)
        on.loops.take("status", (self.own.memory["zero"], 0, 0), stream, which=which)
        for name, pointer in zip("qv", memory[1:], strict=True):
            on.loops.take(name, (pointer, len(rows), 1), stream, which=which)
        for pointer in memory:
            card.free(pointer, stream)

    def give(self, tau: Array, u: Array, found: list[np.ndarray], now: bool, stream: int) -> None:
        """Set the inputs of the following steps; ``now``: whether pushes and motions have changed."""
        program, arrays, loops = self.own.program, self.on.arrays, self.on.loops
        there = library_of(tau) is not None or library_of(u) is not None
        forces = np.zeros((1, program.robot.nv)) if there or tau is None else np.atleast_2d(tau)
        given = found if there or u is None else [np.asarray(u, float), *found[1:]]
        for name, x in step_inputs(program, arrays, forces, given).items():
            if x.size and (now if name in ("push_wrench", "motion_values") else not there):
                loops.write(name, x, stream)
        if not there:
            self._unforced = tau is None
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
    """Steps of passive motion: engine/cuda/driver.py."""

    shown = "q", "v"

    def __init__(self, own: CardStates, number: int) -> None:
        self.own, self.on = own, card_runner(own.program, own.dt, number)
        program, rows = own.program, own.rows
        found, _ = own.inputs.at(0, *own._start)
        given = [np.atleast_2d(x)[None] for x in found]
        self.arrays = kernel_inputs(program, own._start[0], own._start[1], own.dt, None, given)
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
        """Set the inputs of the following steps; ``now``: whether pushes and motions have changed."""
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
