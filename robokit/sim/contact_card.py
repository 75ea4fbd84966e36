"""Rows through steps on a card, by the kernel of contact/step.py: a row a thread."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from robokit.contact.step import ARRAYS
from robokit.contact.step_of_robot import FEW_TURNS, kernel_of_robot
from robokit.dataclass_tools import Recent
from robokit.engine.cuda.loop_code import NOT_FINITE, NOTES
from robokit.engine.cuda.loops import Loops
from robokit.engine.loops.fields import KnownKernel
from robokit.errors import DeviceError
from robokit.sim.contact_rows import LARGEST, OwnMeasures, commands, entries_of
from robokit.sim.contact_state import ContactState, differ, enlarged, row_numbers, scene_of
from robokit.sim.step_kernel import Program

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
