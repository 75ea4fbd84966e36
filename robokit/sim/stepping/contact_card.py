"""Rows through steps on a card, by the kernel of contact/step.py: a row a thread."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from robokit.contact.step import ADDED, card_kernel
from robokit.engine.cuda.loop_code import NOT_FINITE
from robokit.engine.cuda.loops import Loops
from robokit.errors import DeviceError
from robokit.sim.contact_state import ContactState, enlarged
from robokit.sim.step.step_kernel import Program
from robokit.sim.stepping.contact_rows import commands, entries_of
from robokit.sim.stepping.step_numbers import differ, row_numbers, scene_of

GIVEN = ("joint_forces", "motor_command", "push_wrench", "motion_values")
"""Inputs that may change from step to step."""

PLACES = {"n_contacts": 48, "n_near": 96, "n_constraints": 48}
"""For what a step finds, at first. Where a row needs more the code is made again."""

HELD_BYTES = 1 << 30
"""Of inputs that change with the steps, of one launch."""


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
        **options: Any,
    ) -> None:
        self.program, self.arrays, self.card, self.rows, self.dtype = program, state.arrays, card, rows, dtype
        self.kernel = card_kernel(state.kernel.reproducible, program.springs.functions)
        self.options, self.steps_held = options, steps
        self.own = self._numbers_of_rows()
        self.sizes = {**state.sizes, **{n: max(state.sizes[n], k) for n, k in PLACES.items()}}
        self.sizes["n_constraints"] += 2 * self.sizes["n_loops"] + self.sizes["n_springs"]
        self._make()

    def _numbers_of_rows(self) -> dict[str, np.ndarray]:
        """Inputs in which rows differ, (rows, ...) each."""
        if not differ(self.program):
            return {}
        dt = float(self.arrays["dt"][0])
        return row_numbers(self.program, dt, scene_of(self.program), np.arange(self.rows))

    def _make(self) -> None:
        where = []
        for a in self.kernel.arrays:
            changes, own = a.name in GIVEN, a.role != "in" or a.name in self.own
            where.append("work" if a.role == "work" else "given" if changes else "tile" if own else "shared")
        fixed = zip(self.kernel.arrays, where, strict=True)
        shared = {a.name: self.arrays[a.name] for a, base in fixed if base == "shared"}
        contents = {a.name: shared[a.name] for a in self.kernel.arrays if a.name in shared and a.kind == "integer"}
        self.loops = Loops(
            self.card, self.kernel, self.sizes, where, self.dtype, shared, self.rows, contents,
            self.steps_held, finite=("q", "v"), stop="needed", **self.options,
        )  # fmt: skip
        for name, x in self.own.items():
            if name not in GIVEN:
                self.loops.write(name, x)
        for name in GIVEN:
            if self.arrays[name].size:
                self.loops.write(name, self.arrays[name][None])
        for a in self.kernel.taken:
            if a.name.endswith("_pair") and a.role == "inout":
                self.loops.write(a.name, np.full((1, *a.at(self.sizes)), -1))

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
            self._enlarge(enlarged(self.sizes, needed[short].max(axis=0)))
            self.loops.run(count, stream, changing, resumed=True)

    def _enlarge(self, sizes: dict[str, int]) -> None:
        """Larger arrays, with what is in them."""
        old = self.loops
        kept = {name: old.read(name) for name in (*self.handed_on, "status", "taken", "goal")}
        self.sizes |= sizes
        given = old.memory["given"], old.jump
        self._make()
        self.card.copy(self.loops.memory["given"], given[0], self.steps_held * given[1])
        for name, x in kept.items():
            if name == "needed":
                x[:, 0] = 0
            if name in self.loops.places:
                a = self.loops.places[name][0]
                new = np.full((self.rows, *a.at(self.sizes)), -1 if name.endswith("_pair") else 0, x.dtype)
                new[:, : x.shape[1]] = x
                x = new
            self.loops.write(name, x)
        self.card.synchronize()
