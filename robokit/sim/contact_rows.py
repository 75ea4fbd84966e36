"""Many rows through many steps of the kernel of contact/step.py, on several threads.

The machine code takes many steps of many rows in one call, without the GIL. Each thread has rows of its own,
in arrays of its own: where a row needs larger ones, those of the other threads stay as they are. Where that
pays, rows of a thread go in the lanes of vectors (contact/step_in_lanes.py).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from robokit.collision.fields import CANDIDATES
from robokit.contact.step_in_lanes import ARRAYS as LANE_ARRAYS
from robokit.contact.step_in_lanes import LANES, kind_of_lanes, lanes_kernel, may_go_in_lanes
from robokit.engine.backend.llvm import processors
from robokit.engine.batch_calls import BLOCK_SECONDS, PAYS_SECONDS, from_record_to_record
from robokit.engine.loops.kernel import LoopKernel
from robokit.sim.kernel_rows import KernelRows
from robokit.sim.rollout_measures import OwnMeasures
from robokit.sim.step_kernel import Program
from robokit.sim.steppers import (
    KEPT_BYTES,
    LARGEST,
    STEPS,
    SUMMED,
    ContactStepper,
    add_up,
    begins_with,
    blank,
    differ,
    enlarged,
    entries_of,
    row_numbers,
    scene_of,
    step_inputs,
    steps_taken,
)

# ---- rows in the lanes of vectors -------------------------------------------------------------------------

Arrays = Mapping[str, np.ndarray]

INPUTS = {a.name for a in LANE_ARRAYS if a.role == "in"}
FOUND_ANEW = {a.name for a in CANDIDATES}  # what a step hands on that no result depends on


class Lanes(KernelRows):
    """What takes steps of rows in lanes, by a kernel of contact/step_in_lanes.py.

    ``shared`` are arrays of a step, ``rows`` what each row has of its own, (rows, ...) each; ``sizes`` and
    ``dtype`` are of these arrays.
    """

    def __init__(
        self, kernel: LoopKernel, shared: Arrays, rows: Arrays, sizes: Mapping[str, int], dtype: str
    ) -> None:
        kernel.well = True  # lanes are for many steps
        own = {a.name for a in kernel.taken if not a.shared and a.name in rows}
        of_all = {
            name: x if name in own else x[0] for name, x in rows.items() if name in own or name in INPUTS
        }
        super().__init__(kernel, sizes, {**shared, **of_all}, own, dtype, "batch")

    def run(self, a: int, b: int, given: Arrays, steps: int, done: np.ndarray, memory: Any = None) -> None:
        """As the base class. Where rows took fewer steps, their state is not finite, or ``needed`` is set."""
        x, part = self.arrays, slice(a, b)
        before = x["ledger"][part, STEPS].copy()
        super().run(a, b, given, steps, done, memory)
        done[:] = x["ledger"][part, STEPS] - before
        finite = np.isfinite(x["q"][part]).all(axis=1) & np.isfinite(x["v"][part]).all(axis=1)
        x["needed"][part, 0] = finite & (done < steps)


# ---- rows on several threads ------------------------------------------------------------------------------

SECONDS = 3e-5  # of a step, roughly, before any is taken
SUMMED_STEPS = 1024
"""Steps after which sums in single precision go to those in double: a fixed number, since blocks are as long
as the clock says, and the last bits of a sum depend on its parts."""


class ContactRunner:
    """Rows of a program, divided among threads (as engine/batch_calls.py).

    ``in_lanes``: whether there are rows enough to go together.
    """

    def __init__(self, program: Program, dt: float) -> None:
        """Prepare it for rows of a program, in steps of dt [s]."""
        self.program, self.simulation = program, ContactStepper(program, dt)
        self.in_lanes = self._begun = False
        self._shares: list[_Share] = []

    @property
    def failed(self) -> dict[int, int]:
        """Of each row whose state did not stay finite, the step after which."""
        return {row: step for share in self._shares for row, step in share.failed.items()}

    def rest(self) -> None:
        """Release the runner: keep only the memory of a few rows, for others of the same program."""
        self._begun = False
        if sum(share.nbytes for share in self._shares) > KEPT_BYTES:
            self._shares = []

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
        stop = threading.Event()
        try:
            if not self._begun:
                self.begin(arrays, rows, threads, marks[-1])  # may compile
        except KeyboardInterrupt:
            return 1, True
        parts = [share.rows for share in self._shares]

        def take(number: int, first: int, last: int) -> bool:
            return self._shares[number].go(first, last, stop)

        return from_record_to_record(parts, marks, take, record, progress, stop)

    # ---- step by step ------------------------------------------------------------------------------------

    def begin(
        self, arrays: Sequence[np.ndarray], rows: int, threads: int | None = None, steps: int = 1
    ) -> None:
        """Set out with rows, divided among threads, for so many steps at a time; None for as many as pay."""
        if not threads:
            threads = max(1, min(processors(), int(rows * steps * SECONDS / PAYS_SECONDS)))
        simulation = self.simulation
        simulation.take(0)
        plain = simulation.refused is None and self.program.accuracy is None
        self.in_lanes = plain and rows >= LANES[simulation.dtype]
        size = max(1, -(-rows // (threads if simulation.refused is None else 1)))
        parts = [range(k, min(k + size, rows)) for k in range(0, rows, size)]
        if [share.rows for share in self._shares] != parts:
            self._shares = [_Share(self.program, simulation, self.in_lanes, part) for part in parts]
        for share in self._shares:
            share.begin(arrays)
        self._begun = True

    def reset(self, rows: np.ndarray, q: np.ndarray, v: np.ndarray) -> None:
        """Set some rows, by number, to states (n, ...): nothing was before."""
        for share in self._shares:
            own = (rows >= share.rows.start) & (rows < share.rows.stop)
            share.reset(rows[own] - share.rows.start, q[own], v[own])

    def net_contact_forces(self) -> np.ndarray:
        """Net contact force on each link in the last step, (rows, L, 3) [N]."""
        return np.concatenate([share.states["net_force"] for share in self._shares])

    def state(self) -> list[tuple[np.ndarray, dict[str, np.ndarray]]]:
        """All that :meth:`restore` needs, whatever threads there are: rows in their order, in parts."""
        return [share.state() for share in self._shares]

    def restore(self, state: list[tuple[np.ndarray, dict[str, np.ndarray]]]) -> None:
        """Continue all rows from a saved state."""
        for share in self._shares:
            first = 0
            for good, states in state:
                end = first + len(good)
                a, b = max(first, share.rows.start), min(end, share.rows.stop)
                if a < b:
                    to, of = (slice(a - at, b - at) for at in (share.rows.start, first))
                    share.restore(to, good[of], {name: x[of] for name, x in states.items()})
                first = end
            share.show()


class _Share:
    """The rows of one thread.

    ``rows``: which; ``states``: what steps read and write, and what else each row has of its own, (rows, ...)
    each.
    """

    def __init__(self, program: Program, simulation: ContactStepper, in_lanes: bool, rows: range) -> None:
        self.program, self.kernel, self.dtype = program, simulation.kernel, simulation.dtype
        self.rows, self._plain = rows, simulation.refused is not None
        self.failed: dict[int, int] = {}
        self.own_state = [a.name for a in self.kernel.taken if a.role == "inout"]  # what a step hands on
        self.own, self.seconds = OwnMeasures(self.program), SECONDS
        self.sizes, n = dict(simulation.sizes), len(rows)
        self.shared = {
            a.name: np.zeros_like(x) if a.role == "out" else x
            for a, x in ((a, simulation.arrays[a.name]) for a in self.kernel.taken)
        }
        each = {name: self.shared[name] for name in (*self.own_state, *["link_force"] * bool(self.own))}
        self.states = {name: np.zeros((n, *x.shape), x.dtype) for name, x in each.items()}
        if differ(self.program):
            scene, dt = scene_of(self.program), float(simulation.arrays["dt"][0])
            numbers = row_numbers(self.program, dt, scene, np.arange(rows.start, rows.stop))
            self.states |= {n: x.astype(self.dtype) if x.dtype.kind == "f" else x for n, x in numbers.items()}
        self.done = np.zeros(n, np.int64)
        self._in_lanes: LoopKernel | None = None
        inputs = {name: x for name, x in self.states.items() if name in INPUTS}
        reproducible = self.kernel.reproducible
        if in_lanes and not self.own and may_go_in_lanes(self.shared, inputs, reproducible):
            kind, wide = kind_of_lanes({**self.shared, **inputs}), LANES[self.dtype]
            self._in_lanes = lanes_kernel(kind, reproducible, wide)
        self._prepare()

    def begin(self, arrays: Sequence[np.ndarray]) -> None:
        """Set out from the states in inputs of the step, which the steps bring up to date."""
        if self._versions != self._newest or self._may_go_in_lanes != (self._lanes is not None):
            self._prepare()  # others had it, with the code of their time
        self.given, part = arrays, slice(self.rows.start, self.rows.stop)
        self.good = np.ones(len(self.rows), bool)
        self.sums = {name: self.states[name].astype(float, copy=False) for name in SUMMED}
        self.reset(slice(None), arrays[0][0, part], arrays[1][0, part])
        self.states["measured"][:] = arrays[3][0, part, self.program.sums :]
        self.good[:] = self._finite(slice(None))
        self.failed = {self.rows.start + int(k): 1 for k in np.flatnonzero(~self.good)}

    @property
    def nbytes(self) -> int:
        """Memory of its rows."""
        return sum(x.nbytes for x in self.states.values())

    def reset(self, rows: np.ndarray | slice, q: np.ndarray, v: np.ndarray) -> None:
        """Set some of its rows to states: nothing was before."""
        for name in self.own_state:
            self.states[name][rows] = blank(name)
        self.states["q"][rows], self.states["v"][rows], self.good[rows] = q, v, True
        for total in self.sums.values():
            total[rows] = 0.0

    def state(self) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """All that later steps depend on."""
        kept = (name for name in self.own_state if name not in FOUND_ANEW)
        return self.good.copy(), {name: self.states[name].copy() for name in kept}

    def restore(self, rows: slice, good: np.ndarray, states: dict[str, np.ndarray]) -> None:
        """Continue some rows of this share from a saved state."""
        taken = [a for a in self.kernel.taken if a.name in states]
        more = {
            str(a.shape[0]): states[a.name].shape[1]
            for a in taken
            if isinstance(a.shape[0], str) and states[a.name].shape[1] > self.sizes[a.shape[0]]
        }
        if more:
            self._make_room(more)
        self.good[rows] = good
        for name in FOUND_ANEW:
            self.states[name][rows] = 0
        for name, old in states.items():
            x = self.states[name]
            x[rows] = begins_with(old, (len(old), *x.shape[1:]), name)

    def _finite(self, part: slice) -> np.ndarray:
        q, v = (np.isfinite(self.states[name][part]).all(axis=1) for name in ("q", "v"))
        return np.asarray(q & v)

    def _prepare(self) -> None:
        """Addresses of all arrays and of code, and memory to work with, as they are now."""
        self._versions = self._newest
        arrays = {**self.shared, **self.states}
        own = arrays, self.states, self.dtype
        self._rows = KernelRows(self.kernel, self.sizes, *own, wanted=not self._plain)
        self._lanes: Lanes | None = None
        if self._in_lanes is not None and self._may_go_in_lanes:
            lanes = Lanes(self._in_lanes, self.shared, self.states, self.sizes, self.dtype)
            self._lanes = lanes if lanes.compiled else None

    @property
    def _may_go_in_lanes(self) -> bool:
        """Whether there is code of lanes, which is not waited for."""
        return self._in_lanes is not None and self._in_lanes.at_hand("batch", self.dtype)

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
        """Take steps first..last of all rows, with their results in the arrays; returns whether all were
        taken.
        """
        for a, b, step, steps in self._blocks(first, last):
            if stop.is_set():
                return False
            started = time.perf_counter(), time.thread_time()
            for start, end in _runs(self.good[a:b]):
                self._take(a + start, a + end, step, steps)
            if self.dtype != "float64" and (step + steps == last or (step + steps) % SUMMED_STEPS == 0):
                for name, total in self.sums.items():  # ledgers are in double precision
                    add_up(total[a:b], self.states[name][a:b], LARGEST.get(name, ()))
            self.seconds = (time.perf_counter() - started[0]) / ((b - a) * steps)
            if self._rows.compiled:  # code that steps had better run is compiled in a thread
                self._ran(time.thread_time() - started[1])
        self.show()
        return True

    def show(self) -> None:
        """Bring the inputs of the step, from which it set out, up to date."""
        part, x = slice(self.rows.start, self.rows.stop), self.states
        with np.errstate(over="ignore"):  # such rows fail
            self.given[0][0, part], self.given[1][0, part] = x["q"], x["v"]
        self.given[0][0, part][~self.good] = np.nan
        self.given[3][0, part] = entries_of(self.program, x | self.sums)

    def _blocks(self, first: int, last: int) -> Iterator[tuple[int, int, int, int]]:
        """Rows from, to, step and steps of blocks that are no longer than a wait for Ctrl-C may be."""
        n, at = len(self.rows), first
        while at < last:
            few = 1 if self.own else max(1, int(BLOCK_SECONDS / self.seconds))
            now, a = min(few, last - at, SUMMED_STEPS - at % SUMMED_STEPS), 0
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
        before = steps_taken(self.states)[part].copy()
        (self._lanes if self._lanes and b - a > 1 else self._rows).run(a, b, given, steps, done)
        short = np.flatnonzero(needed[part, 0])
        bad = (done < steps) | ~self._finite(part)
        bad[short] = False
        for k in np.flatnonzero(bad).tolist():
            self.good[a + k] = False
            self.failed[self.rows.start + a + k] = first + int(done[k])
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

    def _inputs(self, a: int, b: int, first: int, steps: int) -> dict[str, np.ndarray]:
        """What rows a..b are given in these steps, (steps or 1, rows or 1, ...) each."""
        at = slice(self.rows.start + a, self.rows.start + b)

        def cut(x: np.ndarray) -> np.ndarray:
            x = x[first : first + steps] if len(x) > 1 else x
            return np.array(x[:, at] if x.shape[1] > 1 else x, self.dtype)

        found = step_inputs(self.program, self.shared, cut(self.given[2]), map(cut, self.given[6:]))
        return {name: x.astype(self.dtype, copy=False) for name, x in found.items()}

    def _make_room(self, sizes: dict[str, int]) -> None:
        """Larger arrays, with what is in them."""
        self.sizes |= sizes
        for a in self.kernel.taken:
            old = self.states.get(a.name)
            if old is not None and old.shape[1:] != a.at(self.sizes):
                self.states[a.name] = begins_with(old, (len(old), *a.at(self.sizes)), a.name)
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
