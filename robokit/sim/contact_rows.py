"""Many rows through many steps of the kernel of contact/step.py, on several threads or on a card.

The machine code takes many steps of many rows in one call, without the GIL. Each thread has rows of its own,
in arrays of its own: where a row needs larger ones, those of the other threads stay as they are. Where that
pays, rows of a thread go in the lanes of vectors (contact/step_in_lanes.py). On a card each row has a thread
of its own.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from robokit.contact import accounts
from robokit.contact.step import ARRAYS
from robokit.contact.step_in_lanes import ARRAYS as LANE_ARRAYS
from robokit.contact.step_in_lanes import LANES, kind_of_lanes, lanes_kernel, may_go_in_lanes
from robokit.contact.step_of_robot import FEW_TURNS, kernel_of_robot
from robokit.dataclass_tools import Recent
from robokit.engine.backend.llvm import processors
from robokit.engine.batch_calls import BLOCK_SECONDS, PAYS_SECONDS, in_threads
from robokit.engine.cuda.loop_code import NOT_FINITE, NOTES
from robokit.engine.cuda.loops import Loops
from robokit.engine.loops.environment import NoMachineCode
from robokit.engine.loops.fields import KnownKernel
from robokit.engine.loops.kernel import LoopKernel
from robokit.engine.memory import address
from robokit.errors import DeviceError
from robokit.sim.step_kernel import Happened, Kept, Program, Tracker
from robokit.sim.steppers import (
    STEPS,
    ContactState,
    commands,
    differ,
    enlarged,
    entries_of,
    row_numbers,
    scene_of,
    steps_taken,
)

# ---- measures of the user's own ---------------------------------------------------------------------------


class OwnMeasures:
    """Brings the numbers of a program's own measures up to date."""

    def __init__(self, program: Program) -> None:
        self.program, self.carried = program, np.zeros(program.layout.size)
        layout = program.measured
        self.trackers: list[tuple[Tracker, slice]] = [
            (each, layout.part(each)) for each in layout.trackers if not isinstance(each, Kept)
        ]
        self._kernel: Any = None

    def __bool__(self) -> bool:
        return bool(self.trackers)

    def after(
        self,
        numbers: np.ndarray,
        state: Sequence[np.ndarray],
        forces: np.ndarray,
        parameters: np.ndarray,
        more: Sequence[np.ndarray],
    ) -> None:
        """The numbers after a step, in place of those before; of one state, or of rows of states.

        Args:
            numbers: all that are measured, the monitor's as they are after the step.
            state: q and v after the step, and its joint forces.
            forces: on the links that can touch the ground, and on all, (L + 1, 3) [N].
            parameters: of the program.
            more: inputs of the step.
        """
        if self._kernel is None:
            self._kernel = self._built(forces.shape[-2] * forces.shape[-1])
        flat = forces.reshape(*forces.shape[:-2], -1)
        given = *state, numbers, flat, self.carried, parameters, *more
        new = self._kernel(*(np.ascontiguousarray(x, float) for x in given))
        numbers[...] = new[0] if isinstance(new, list | tuple) else new

    def _built(self, size: int) -> Any:
        trackers = self.trackers

        def text(bare: Program) -> Any:
            def after(
                q: Any, v: Any, tau: Any, numbers: Any, forces: Any, carried: Any, parameters: Any, *more: Any
            ) -> list[list[Any]]:
                p, out = bare.problem(parameters, more), list(numbers)
                taken = Happened(p, numbers[0] - 1.0, [], [], [], (q, v, tau), None, parameters, forces)
                for tracker, part in trackers:
                    out[part] = tracker.after(numbers[part], taken)
                return [out]

            return after

        n = self.program.measured.size
        return self.program.built(
            "own_measures",
            text,
            inputs=[("measured", n), ("forces", size)],
            outputs=[("measured_next", (n,))],
        )


# ---- rows in the lanes of vectors -------------------------------------------------------------------------

Arrays = Mapping[str, np.ndarray]

LANES_CALL = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 3, ctypes.c_void_p)
"""Of the driver "batch" (engine/loops/rows.py)."""

INPUTS = {a.name for a in LANE_ARRAYS if a.role == "in"}


def kernel_in_lanes(shared: Arrays, rows: Arrays, reproducible: bool, dtype: str) -> LoopKernel | None:
    """The kernel that takes steps of rows in lanes; None where they cannot go so.

    Args:
        shared, rows, reproducible, dtype: see :class:`Lanes`.
    """
    inputs = {name: x for name, x in rows.items() if name in INPUTS}
    if not may_go_in_lanes(shared, inputs):
        return None
    return lanes_kernel(kind_of_lanes({**shared, **inputs}), reproducible, LANES[dtype])


class Lanes:
    """What takes steps of rows in lanes.

    Args:
        kernel: from :func:`kernel_in_lanes`.
        shared: arrays of a step.
        rows: what each row has of its own, (rows, ...) each.
        sizes: of these arrays.
        dtype: of its numbers.

    Raises:
        NoMachineCode: there is none.
    """

    def __init__(
        self, kernel: LoopKernel, shared: Arrays, rows: Arrays, sizes: Mapping[str, int], dtype: str
    ) -> None:
        self.kernel, self.rows = kernel, rows
        self.kernel.well = True  # lanes are for many steps
        numbers = {**shared, **{name: x[0] for name, x in rows.items() if name in INPUTS}}
        own = [not a.shared and a.name in rows for a in self.kernel.taken]
        self._held = [
            rows[a.name] if one else numbers[a.name] for a, one in zip(self.kernel.taken, own, strict=True)
        ]
        self._places = np.array([address(x) for x in self._held], np.int64)
        self._strides = np.array(
            [x.strides[0] if one else 0 for x, one in zip(self._held, own, strict=True)], np.int64
        )
        self._number = {a.name: k for k, a in enumerate(self.kernel.taken)}
        self._environment = self.kernel.environment(sizes, dtype, many=True)
        self._call = LANES_CALL(self.kernel.driver("batch", dtype))

    def run(self, a: int, b: int, given: Arrays, steps: int, done: np.ndarray) -> None:
        """Steps of rows a..b.

        Args:
            a, b: rows.
            given: inputs, (steps or 1, rows or 1, ...) each.
            done: gets how many each row took. Where these are fewer, its state is not finite, or ``needed``
                says that they are to be taken again.
        """
        places, strides = self._places + a * self._strides, self._strides.copy()
        jumps = np.zeros_like(strides)
        for name, x in given.items():
            k = self._number[name]
            places[k] = address(x)
            strides[k], jumps[k] = (x.strides[m] if x.shape[m] > 1 else 0 for m in (1, 0))
        counts = self.rows["ledger"][a:b, STEPS]
        before = counts.copy()
        words = places, strides, self._environment
        self._call(*map(address, words), 0, b - a, steps, address(jumps))
        self.kernel.looked_at(self._environment)
        done[:] = counts - before
        finite = np.isfinite(self.rows["q"][a:b]).all(axis=1) & np.isfinite(self.rows["v"][a:b]).all(axis=1)
        self.rows["needed"][a:b, 0] = finite & (done < steps)


# ---- rows on several threads ------------------------------------------------------------------------------

LARGEST = [accounts.AT[name] for name in ("depth", "residual", "overlap", "most")]
"""Entries of a ledger that are no sums."""

SECONDS = 3e-5
"""Of a step, roughly, before any is taken."""

CALL = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 3, *[ctypes.c_void_p] * 2)
"""Of the driver "rows" (engine/loops/rows.py)."""


class ContactRunner:
    """Rows of a program, divided among threads (as engine/batch_calls.py).

    Attributes:
        failed: of each row whose state did not stay finite, the step after which.
        in_lanes: whether there are rows enough to go together.
    """

    def __init__(self, program: Program, simulation: Callable[[float], ContactState]) -> None:
        """Prepare it; ``simulation`` gives the arrays of steps of a length."""
        self.program, self.simulation = program, simulation
        self.failed: dict[int, int] = {}
        self.in_lanes = False
        self._shares: list[_Share] = []

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
        if not threads:
            threads = max(1, min(processors(), int(rows * marks[-1] * SECONDS / PAYS_SECONDS)))
        simulation, parts = self._parts(arrays, rows, threads)
        done, stop = [1] * len(parts), threading.Event()

        def go(number: int) -> None:
            share = self._shares[number]
            for k in range(1, len(marks)):
                if not share.go(marks[k - 1], marks[k], stop):
                    return
                record(k, share.rows.start, share.rows.stop)
                done[number] = k + 1
                if progress is not None and number == 0:
                    progress(marks[k] - marks[k - 1])

        interrupted = False
        try:
            self._shares = [_Share(self, simulation, arrays, part) for part in parts]  # may compile
            in_threads(go, range(len(parts)), stop)
        except KeyboardInterrupt:
            interrupted = True
        return min(done, default=len(marks)), interrupted

    # ---- step by step ------------------------------------------------------------------------------------

    def divide(self, arrays: Sequence[np.ndarray], rows: int, threads: int) -> None:
        """Divide rows among threads, before :meth:`advance`."""
        simulation, parts = self._parts(arrays, rows, threads)
        self._shares = [_Share(self, simulation, arrays, part) for part in parts]

    def _parts(
        self, arrays: Sequence[np.ndarray], rows: int, threads: int
    ) -> tuple[ContactState, list[range]]:
        """The arrays of a step, compiled, and the rows of each thread."""
        simulation = self.simulation(float(arrays[5].flat[0]))
        simulation.take(0)  # compiles it
        plain = simulation.refused is None and self.program.accuracy is None
        self.in_lanes = plain and rows >= LANES[simulation.dtype]
        size = max(1, -(-rows // (threads if simulation.refused is None else 1)))
        return simulation, [range(k, min(k + size, rows)) for k in range(0, rows, size)]

    def advance(self, first: int, last: int) -> None:
        """Steps first..last of all rows, in place."""
        stop = threading.Event()
        if len(self._shares) == 1:
            self._shares[0].go(first, last, stop)
        else:
            in_threads(lambda k: self._shares[k].go(first, last, stop), range(len(self._shares)), stop)

    @property
    def good(self) -> np.ndarray:
        """Rows whose state is finite, (rows,)."""
        return np.concatenate([share.good for share in self._shares])

    def reset(self, rows: np.ndarray, q: np.ndarray, v: np.ndarray) -> None:
        """Set some rows, by number, to states (n, ...): nothing was before."""
        for share in self._shares:
            own = (rows >= share.rows.start) & (rows < share.rows.stop)
            share.reset(rows[own] - share.rows.start, q[own], v[own])

    def state(self) -> list[tuple[np.ndarray, dict[str, np.ndarray]]]:
        """All that :meth:`restore` needs, whatever threads there are: rows in their order, in parts."""
        return [
            (share.good.copy(), {n: share.states[n].copy() for n in share.own_state})
            for share in self._shares
        ]

    def restore(self, state: list[tuple[np.ndarray, dict[str, np.ndarray]]]) -> None:
        """Go on from there."""
        for share in self._shares:
            first = 0
            for good, states in state:
                end = first + len(good)
                a, b = max(first, share.rows.start), min(end, share.rows.stop)
                if a < b:
                    to, of = (slice(a - at, b - at) for at in (share.rows.start, first))
                    share.restore(to, good[of], {name: x[of] for name, x in states.items()})
                first = end


class _Share:
    """The rows of one thread.

    Attributes:
        rows: which.
        states: what steps read and write, and what else each row has of its own, (rows, ...) each.
    """

    def __init__(
        self, runner: ContactRunner, simulation: ContactState, arrays: Sequence[np.ndarray], rows: range
    ) -> None:
        self.runner, self.rows, self.given, self.dtype = runner, rows, arrays, simulation.dtype
        self.program, self.kernel = runner.program, simulation.kernel
        self.own, self.seconds = OwnMeasures(self.program), SECONDS
        self.sizes, n = dict(simulation.sizes), len(rows)
        self.shared = {
            a.name: np.zeros_like(x) if a.role == "out" else x
            for a, x in ((a, simulation.arrays[a.name]) for a in self.kernel.taken)
        }
        each = [a.name for a in self.kernel.taken if a.role == "inout"] + ["link_force"] * bool(self.own)
        self.states = {name: np.repeat(self._empty(name)[None], n, axis=0) for name in each}
        part = slice(rows.start, rows.stop)
        self.states["q"][:], self.states["v"][:] = (x[0, part] for x in arrays[:2])
        self.states["measured"][:] = arrays[3][0, part, self.program.sums :]
        if differ(self.program):
            scene, dt = scene_of(self.program), float(simulation.arrays["dt"][0])
            numbers = row_numbers(self.program, dt, scene, np.arange(rows.start, rows.stop))
            self.states |= {n: x.astype(self.dtype) if x.dtype.kind == "f" else x for n, x in numbers.items()}
        own = self.dtype == "float64"
        self.sums = {name: x if own else x.astype(float) for name, x in self._summed()}
        self.done = np.zeros(n, np.int64)
        self.good = self._finite(slice(0, n))
        runner.failed |= {rows.start + int(k): 1 for k in np.flatnonzero(~self.good)}
        self._call: Any = None
        self._in_lanes: LoopKernel | None = None
        if runner.in_lanes and not self.own:
            self._in_lanes = kernel_in_lanes(self.shared, self.states, self.kernel.reproducible, self.dtype)
        self._prepare()

    @property
    def own_state(self) -> list[str]:
        """Names of what a step hands on."""
        return [a.name for a in self.kernel.taken if a.role == "inout"]

    def reset(self, rows: np.ndarray, q: np.ndarray, v: np.ndarray) -> None:
        """Set some of its rows to states: nothing was before."""
        for name in self.own_state:
            self.states[name][rows] = -1 if name.endswith("_pair") else 0
        self.states["q"][rows], self.states["v"][rows], self.good[rows] = q, v, True
        for total in self.sums.values():
            total[rows] = 0.0

    def restore(self, rows: slice, good: np.ndarray, states: dict[str, np.ndarray]) -> None:
        """Some of its rows go on from there."""
        taken = [a for a in self.kernel.taken if a.name in states]
        more = {
            str(a.shape[0]): states[a.name].shape[1]
            for a in taken
            if isinstance(a.shape[0], str) and states[a.name].shape[1] > self.sizes[a.shape[0]]
        }
        if more:
            self._make_room(more)
        self.good[rows] = good
        for name, old in states.items():
            x = self.states[name][rows]
            x[...] = -1 if name.endswith("_pair") else 0
            x[:, : old.shape[1]] = old

    def _empty(self, name: str) -> np.ndarray:
        """An array of one state before its first step."""
        x = np.zeros_like(self.shared[name])
        return x - 1 if name.endswith("_pair") else x

    def _finite(self, part: slice) -> np.ndarray:
        q, v = (np.isfinite(self.states[name][part]).all(axis=1) for name in ("q", "v"))
        return q & v

    def _prepare(self) -> None:
        """Addresses of all arrays and of code, and memory to work with, as they are now."""
        self._versions = self._newest
        held = [self.states.get(a.name, self.shared[a.name]) for a in self.kernel.taken]
        self._places = np.array([address(x) for x in held], np.int64)
        own = [a.name in self.states for a in self.kernel.taken]
        self._strides = np.array([x.strides[0] if o else 0 for x, o in zip(held, own, strict=True)], np.int64)
        self._number = {a.name: k for k, a in enumerate(self.kernel.taken)}
        try:
            if self.runner.simulation(float(self.shared["dt"][0])).refused is not None:
                raise NoMachineCode("")
            self._environment = self.kernel.environment(self.sizes, self.dtype)
            self._call = CALL(self.kernel.driver("rows", self.dtype))
        except NoMachineCode:
            work = [a for a in self.kernel.arrays if a.role == "work"]
            self._work = {a.name: a.zeros(self.sizes, self.dtype) for a in work}
        self._lanes: Lanes | None = None
        if self._in_lanes is not None and self._in_lanes.at_hand("batch", self.dtype):
            with contextlib.suppress(NoMachineCode):
                self._lanes = Lanes(self._in_lanes, self.shared, self.states, self.sizes, self.dtype)

    @property
    def _newest(self) -> list[int]:
        """Versions of the code that there is."""
        return [each.version for each in (self.kernel, self._in_lanes) if each is not None]

    def _ran(self, seconds: float) -> None:
        """Count how long steps have run one by one; code that they had better run is compiled in a thread."""
        if self._in_lanes is None:
            self.kernel.ran(seconds, 1, self.dtype)
        elif self._lanes is None:
            self._in_lanes.seconds += seconds
            if self._in_lanes.seconds >= self.kernel.seconds_to_compile(self.dtype):
                self._in_lanes.improve(LANES[self.dtype], self.dtype, "batch")
        if self._versions != self._newest:
            self._prepare()

    # ---- steps -------------------------------------------------------------------------------------------

    def go(self, first: int, last: int, stop: threading.Event) -> bool:
        """Steps first..last of all rows, and what they leave in the arrays; whether all were taken."""
        for a, b, step, steps in self._blocks(first, last):
            if stop.is_set():
                return False
            started = time.perf_counter(), time.thread_time()
            for start, end in _runs(self.good[a:b]):
                self._take(a + start, a + end, step, steps)
            self._add_up(slice(a, b))
            self.seconds = (time.perf_counter() - started[0]) / ((b - a) * steps)
            if self._call is not None:
                self._ran(time.thread_time() - started[1])
        part, x = slice(self.rows.start, self.rows.stop), self.states
        with np.errstate(over="ignore"):  # such rows fail
            self.given[0][0, part], self.given[1][0, part] = x["q"], x["v"]
        self.given[0][0, part][~self.good] = np.nan
        self.given[3][0, part] = entries_of(self.program, x | self.sums)
        return True

    def _summed(self) -> list[tuple[str, np.ndarray]]:
        return [(name, self.states[name]) for name in ("ledger", "outside_impulse", "motor_sums")]

    def _add_up(self, part: slice) -> None:
        """Ledgers are in double precision: sums over thousands of steps would lose digits in single."""
        for name, since in self._summed():
            total = self.sums[name][part]
            if since.dtype != total.dtype:
                top = np.maximum(total, since[part])
                with np.errstate(all="ignore"):
                    total += since[part]
                if name == "ledger":
                    total[:, LARGEST] = top[:, LARGEST]
                since[part] = 0.0

    def _blocks(self, first: int, last: int) -> Iterator[tuple[int, int, int, int]]:
        """Rows from, to, step and steps of blocks that are no longer than a wait for Ctrl-C may be."""
        n, at = len(self.rows), first
        while at < last:
            few = 1 if self.own else max(1, int(BLOCK_SECONDS / self.seconds))
            now, a = min(few, last - at), 0
            while a < n:
                wide = LANES[self.dtype] if self._lanes else 1  # better code may have come
                b = min(n, a + -(-max(1, int(BLOCK_SECONDS / (self.seconds * now))) // wide) * wide)
                yield a, b, at, now
                a = b
            at += now

    def _take(self, a: int, b: int, first: int, steps: int) -> None:
        """Steps of rows a..b, counted from the first of the share."""
        given, part = self._inputs(a, b, first, steps), slice(a, b)
        needed, done = self.states["needed"], self.done[part]
        before = steps_taken(self.states)[part]
        (self._run if self._call is not None else self._plain)(a, b, given, steps, done)
        short = np.flatnonzero(needed[part, 0])
        bad = (done < steps) | ~self._finite(part)
        bad[short] = False
        for k in np.flatnonzero(bad).tolist():
            self.good[a + k] = False
            self.runner.failed[self.rows.start + a + k] = first + int(done[k])
        if len(short):
            taken = steps_taken(self.states)[part] - before
            self._make_room(enlarged(self.sizes, needed[part][short].max(axis=0)))
            self.states["needed"][a + short] = 0
            # Rows that went in lanes have stopped together, and go on so.
            ends = np.flatnonzero((np.diff(short) > 1) | (np.diff(taken[short]) != 0.0)) + 1
            for some in np.split(short, ends):
                so_far = int(taken[some[0]])
                self._take(a + int(some[0]), a + int(some[-1]) + 1, first + so_far, steps - so_far)
        for start, end in _runs(~np.isin(np.arange(b - a), short)) if self.own else ():
            self._measure(a + start, a + end, first)

    def _run(self, a: int, b: int, given: dict[str, np.ndarray], steps: int, done: np.ndarray) -> None:
        """By machine code; ``done``: how often each row ran."""
        if self._lanes and b - a > 1:
            self._lanes.run(a, b, given, steps, done)
            return
        places, strides = self._places + a * self._strides, self._strides.copy()
        jumps = np.zeros_like(strides)
        for name, x in given.items():
            k = self._number[name]
            places[k], strides[k], jumps[k] = (
                address(x),
                *(x.strides[m] if x.shape[m] > 1 else 0 for m in (1, 0)),
            )
        words = places, strides, self._environment
        self._call(*map(address, words), 0, b - a, steps, address(jumps), address(done))
        self.kernel.looked_at(self._environment)

    def _plain(self, a: int, b: int, given: dict[str, np.ndarray], steps: int, done: np.ndarray) -> None:
        """By Python."""
        state = [a.name for a in self.kernel.taken if a.role == "inout" and a.kind == "real"]
        sizes = [self.sizes[n] for n in self.kernel.sizes]
        for row in range(a, b):
            for step in range(steps):
                now = {
                    name: x[min(step, len(x) - 1), min(row - a, x.shape[1] - 1)] for name, x in given.items()
                }
                now |= {name: x[row] for name, x in self.states.items() if name not in now}
                held = [now.get(name, self.shared[name]) for name in (a.name for a in self.kernel.taken)]
                self.kernel.on_memory(*sizes, *held, work=self._work)
                done[row - a] = step + 1
                if not all(np.isfinite(now[name]).all() for name in state):
                    break

    def _inputs(self, a: int, b: int, first: int, steps: int) -> dict[str, np.ndarray]:
        """What rows a..b are given in these steps, (steps or 1, rows or 1, ...) each."""
        at = slice(self.rows.start + a, self.rows.start + b)

        def cut(x: np.ndarray) -> np.ndarray:
            x = x[first : first + steps] if len(x) > 1 else x
            return np.array(x[:, at] if x.shape[1] > 1 else x, self.dtype)

        layout, rest = self.program.given, iter(self.given[6:])
        found = {"joint_forces": cut(self.given[2])}
        if layout.drives:
            u, tau = cut(next(rest)), found["joint_forces"]
            found |= {n: x.astype(self.dtype) for n, x in commands(self.shared, u, tau).items()}
        if layout.places:
            wrench = cut(next(rest))
            found["push_wrench"] = wrench.reshape(*wrench.shape[:2], -1, 6)
        if layout.motions:
            values = cut(next(rest))
            found["motion_values"] = values.reshape(*values.shape[:2], -1, 3)
        return found

    def _make_room(self, sizes: dict[str, int]) -> None:
        """Larger arrays, with what is in them."""
        self.sizes |= sizes
        for a in self.kernel.taken:
            old = self.states.get(a.name)
            if old is not None and old.shape[1:] != a.at(self.sizes):
                new = np.zeros((len(old), *a.at(self.sizes)), old.dtype)
                new[...] = -1 if a.name.endswith("_pair") else 0
                new[:, : old.shape[1]] = old
                self.states[a.name] = new
        self._prepare()

    def _measure(self, a: int, b: int, step: int) -> None:
        """The user's own measures after a step."""
        part, at, x = slice(a, b), slice(self.rows.start + a, self.rows.start + b), self.states
        now = [y[min(step, len(y) - 1)] for y in (self.given[2], *self.given[5:])]
        tau, parameters, *more = (y[at] if len(y) > 1 else y[0] for y in now)
        state = x["q"][part], x["v"][part], tau
        self.own.after(x["measured"][part], state, x["link_force"][part, :, :3], parameters, more)


def _runs(on: np.ndarray) -> list[tuple[int, int]]:
    """First and end of each run of rows that are on."""
    if on.all():
        return [(0, len(on))]
    edges = np.flatnonzero(np.diff(np.concatenate([[0], on.astype(np.int8), [0]])))
    return [(int(a), int(b)) for a, b in edges.reshape(-1, 2)]


# ==== rows on a card ============================================================================

GIVEN = ("joint_forces", "motor_command", "push_wrench", "motion_values")
"""Inputs that may change from step to step."""

PLACES = {"n_contacts": 48, "n_near": 96, "n_constraints": 48}
"""For what a step finds, at first. Where a row needs more the code is made again, with places for all rows of
the robot from then on."""

POLYGONS = 2048
"""Numbers that detection works with beside its memory: 29 for each corner of the largest face, of which hulls
have 64 at most."""

SUMMED = ("ledger", "outside_impulse", "motor_sums")
"""Sums over all steps."""

HELD_BYTES = 1 << 30
"""Of inputs that change with the steps, of one launch."""


KEPT = 16
"""Kernels that a process keeps, so that the next rollout of a robot need not write its code again."""

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
    """The states of many rows on a card, and their steps.

    Steps neither wait nor allocate, and may be part of a CUDA graph.

    Args:
        program: the step.
        state: arrays of steps of one row.
        card: driver.Card.
        rows: how many.
        dtype: of the numbers on the card.
        steps: of which there is place for inputs of their own.
        few: of kernel_of_robot.
        options: of engine.cuda.loops.Code.

    Attributes:
        loops: the kernel and its memory.
        sizes: of its arrays.
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
        self.own = self._numbers_of_rows()
        steady = 2 * state.sizes["n_loops"] + state.sizes["n_springs"]  # constraints that every step has
        self._places = program.robot.derived.get(
            ("places of contacts on a card", steady),
            lambda: PLACES | {"n_constraints": PLACES["n_constraints"] + steady},
        )
        self.sizes = {**state.sizes, **{n: max(state.sizes[n], k) for n, k in self._places.items()}}
        self._make()

    def _numbers_of_rows(self) -> dict[str, np.ndarray]:
        """Inputs in which rows differ, (rows, ...) each."""
        if not differ(self.program):
            return {}
        dt = float(self.arrays["dt"][0])
        return row_numbers(self.program, dt, scene_of(self.program), np.arange(self.rows))

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
        """Names of what a step hands on to the next."""
        return [a.name for a in self.kernel.taken if a.role == "inout"]

    def start(self, q: np.ndarray, v: np.ndarray, which: np.ndarray | None = None) -> None:
        """Begin rows, all or those of these numbers, at states of the host, (n, ...): nothing was before."""
        for a in self.kernel.taken:
            if a.role == "inout" and a.name not in ("q", "v"):
                empty = -1 if a.name.endswith("_pair") else 0
                self.loops.write(a.name, np.full((1, *a.at(self.sizes)), empty), which=which)
        self.loops.write("q", q, which=which)
        self.loops.write("v", v, which=which)
        self.loops.write("status", np.zeros((1, 1)), which=which)

    def steps(self, count: int, stream: int = 0, changing: bool = False) -> None:
        """So many steps of all rows.

        Args:
            count: how many.
            stream: on which.
            changing: whether each has inputs of its own.
        """
        self._last = count, stream, changing
        self.loops.run(count, stream, changing)

    def settle(self) -> None:
        """See that all rows took their steps; those that had no place for what they found do so now. Waits.

        Raises:
            DeviceError: a kernel failed as Python would.
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
                full = np.full((self.rows, *a.at(self.sizes)), -1 if name.endswith("_pair") else 0, x.dtype)
                full[:, : x.shape[1]] = x
                x = full
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
    """Rows of a program on a card, with the methods of ContactRunner.

    Attributes:
        failed: of each row whose state did not stay finite, the step after which.
        card: on which.
        dtype: of the numbers there.
    """

    def __init__(
        self, program: Program, simulation: Callable[[float], ContactState], card: Any, dtype: str
    ) -> None:
        """Prepare it; ``simulation`` gives the arrays of steps of a length.

        Raises:
            DeviceError: the card takes no such steps.
        """
        where = f'device="cuda:{card.number}"'
        if program.accuracy is not None:
            raise DeviceError(f'{where}: its steps are not divided; leave out accuracy=, or use device="cpu"')
        if OwnMeasures(program):
            raise DeviceError(f'{where}: measures of your own are functions of the CPU; use device="cpu"')
        self.program, self.simulation, self.card, self.dtype = program, simulation, card, dtype
        self.failed: dict[int, int] = {}
        self.given: Sequence[np.ndarray] = ()
        self._finite = np.zeros(0, bool)

    def _begin(self, arrays: Sequence[np.ndarray], rows: int) -> None:
        state = self.simulation(float(arrays[5].flat[0]))
        self.given = arrays
        changing = [x for x in (arrays[2], *arrays[6:]) if len(x) > 1]
        numbers = sum(state.arrays[name].size for name in GIVEN) * rows * np.dtype(self.dtype).itemsize
        held = max(1, min(max((len(x) for x in changing), default=1), HELD_BYTES // max(1, numbers)))
        self.rows = ContactOnCard(self.program, state, self.card, rows, self.dtype, held)
        self.rows.start(arrays[0][0], arrays[1][0])
        self.rows.loops.write("measured", arrays[3][0, :, self.program.sums :])
        self.sums: dict[str, np.ndarray] = {}
        self._look(0)

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
        self._begin(arrays, rows)
        for k in range(1, len(marks)):
            try:
                self.advance(marks[k - 1], marks[k])
            except KeyboardInterrupt:
                return k, True
            record(k, 0, rows)
            if progress is not None:
                progress(marks[k] - marks[k - 1])
        return len(marks), False

    def divide(self, arrays: Sequence[np.ndarray], rows: int, threads: int) -> None:
        """Take the rows, before :meth:`advance`."""
        self._begin(arrays, rows)

    def advance(self, first: int, last: int) -> None:
        """Steps first..last of all rows; then the arrays have their states."""
        at = first
        while at < last:
            steps = min(last - at, self._put(at, last - at))
            self.rows.steps(steps, changing=self._changing)
            self.rows.settle()
            at += steps
        self._look(last)

    def _put(self, first: int, steps: int) -> int:
        """Write the inputs of the next steps; how many these are for."""
        layout, rest = self.program.given, iter(self.given[6:])
        tau, found = self.given[2], dict[str, np.ndarray]()
        tables = {"tau": tau}
        if layout.drives:
            tables["u"] = next(rest)
        if layout.places:
            tables["push_wrench"] = next(rest)
        if layout.motions:
            tables["motion_values"] = next(rest)
        self._changing = any(len(x) > 1 for x in tables.values())
        if self._changing:
            steps = min(steps, self.rows.steps_held)
        for k in range(steps if self._changing else 1):
            now = {name: x[min(first + k, len(x) - 1)] for name, x in tables.items()}
            found = {"joint_forces": now["tau"]}
            if "u" in now:
                found |= commands(self.rows.arrays, now["u"], now["tau"])
            found |= {name: now[name] for name in ("push_wrench", "motion_values") if name in now}
            for name, x in found.items():
                if x.size:
                    self.rows.loops.write(name, x, at=k)
        return steps

    def _look(self, step: int) -> None:
        """Copy the states from the card; a row that is no longer finite is not a number."""
        loops, x = self.rows.loops, {}
        for name in ("q", "v", *SUMMED, "measured"):
            x[name] = loops.read(name).astype(float)
        if self.dtype != "float64":
            self._add_up(x)
        self.given[0][0], self.given[1][0] = x["q"], x["v"]
        self._finite = np.isfinite(x["q"]).all(axis=1) & np.isfinite(x["v"]).all(axis=1)
        taken = loops.read("taken")
        for k in np.flatnonzero(~self._finite).tolist():
            self.failed.setdefault(k, int(taken[k]))
        self.given[0][0][~self._finite] = np.nan
        self.given[3][0] = entries_of(self.program, x)

    def _add_up(self, x: dict[str, np.ndarray]) -> None:
        """Ledgers are in double precision: sums over thousands of steps would lose digits in single."""
        for name in SUMMED:
            before = self.sums.get(name)
            if before is not None:
                top = np.maximum(before, x[name])
                x[name] += before
                if name == "ledger":
                    x[name][:, LARGEST] = top[:, LARGEST]
            self.sums[name] = x[name].copy()
            if x[name].size:
                self.rows.loops.write(name, np.zeros((1, *x[name].shape[1:])))

    @property
    def good(self) -> np.ndarray:
        """Rows whose state is finite, (rows,)."""
        return self._finite

    def reset(self, rows: np.ndarray, q: np.ndarray, v: np.ndarray) -> None:
        """Set some rows, by number, to states (n, ...): nothing was before."""
        self.rows.start(q, v, rows)
        for total in self.sums.values():
            total[rows] = 0.0
        self._finite[rows] = True

    def state(self) -> list[tuple[np.ndarray, dict[str, np.ndarray]]]:
        """All that :meth:`restore` needs."""
        return [(self._finite.copy(), self.rows.kept())]

    def restore(self, state: list[tuple[np.ndarray, dict[str, np.ndarray]]]) -> None:
        """Go on from there."""
        ((finite, kept),) = state
        self._finite = finite.copy()
        self.rows.put_back({name: x.copy() for name, x in kept.items()})
