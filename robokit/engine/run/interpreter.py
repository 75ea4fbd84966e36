"""A function and its derivatives along many directions, interpreted: long ones run without a compilation.

For each state the bytecode (passes/bytecode.py) runs once on plain numbers and leaves a tape. Tangents
along WIDTH directions at a time go through the tape, on several threads where there are more
directions. The machine code is that of the interpreter, the same for all robots.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Sequence

import numpy as np

from robokit import disk_cache
from robokit.engine.backend import llvm
from robokit.engine.backend.cpu import processors
from robokit.engine.emit.interpreter import ENTRY, WIDTH, interpreter_module
from robokit.engine.memory import address, aligned
from robokit.engine.passes.bytecode import Bytecode
from robokit.engine.run.batch_calls import PAYS_SECONDS, in_threads

SECONDS = 5e-9
"""Time of an entry of a tape along WIDTH directions, about."""


@functools.cache
def _interpreter() -> llvm.Loaded:
    """The interpreter's code.

    Raises:
        CompilerMissing: there can be none.
    """
    text = interpreter_module()
    name = disk_cache.digest(llvm.identity(), text)
    found = disk_cache.load(name)
    if found is None:
        found = {"kernel": "tape", "part": "interpreter"}, llvm.assemble(text)
        disk_cache.store(name, *found)
    return llvm.Loaded(found[1])


class Interpreter:
    """Bytecode, ready to run."""

    def __init__(self, bytecode: Bytecode) -> None:
        """Load the interpreter.

        Raises:
            CompilerMissing: no machine code can run here.
        """
        self.bytecode, self._code = bytecode, _interpreter()
        pointer, integer = ctypes.c_void_p, ctypes.c_int64
        self._values = ctypes.CFUNCTYPE(integer, *[pointer] * 5)(self._code.address("tape_values"))
        self._slopes = ctypes.CFUNCTYPE(None, pointer, integer, *[pointer] * 2)(
            self._code.address("tape_slopes")
        )
        places, entries = map(int, bytecode.sizes)
        self._places = places
        self._numbers = np.zeros(places)
        self._tape = aligned((entries + 1) * ENTRY // 8)
        self._free: list[np.ndarray] = []
        self._lock = threading.Lock()
        self._inputs = [np.flatnonzero(bytecode.inputs[:, 0] == k) for k in range(1 + _most(bytecode.inputs))]

    @property
    def instructions(self) -> int:
        """Of the list."""
        return len(self.bytecode.code)

    def __call__(
        self, arguments: Sequence[np.ndarray], tables: Sequence[np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        """The scalars of the outputs, (m,), and their derivatives along each direction, (m, directions).

        Args:
            arguments: of one state, (n,) each.
            tables: (n,) each, in double precision.
        """
        with self._lock:
            return self._run(arguments, tables)

    def _run(
        self, arguments: Sequence[np.ndarray], tables: Sequence[np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        bytecode, numbers = self.bytecode, self._numbers
        numbers[: len(bytecode.constants)] = bytecode.constants
        for rows, x in zip(self._inputs, arguments, strict=False):
            numbers[bytecode.inputs[rows, 2]] = x[bytecode.inputs[rows, 1]]
        where = (ctypes.c_void_p * (1 + len(tables)))(*map(address, tables))
        sizes = (ctypes.c_int64 * (1 + len(tables)))(*map(len, tables))
        tape = address(self._tape)
        entries = self._values(address(bytecode.code), address(numbers), where, sizes, tape)
        found = np.zeros((len(bytecode.slopes), len(bytecode.seeds)))
        starts = range(0, len(bytecode.seeds), WIDTH)
        seconds = SECONDS * entries * len(starts)
        shares = max(1, min(int(seconds / PAYS_SECONDS), processors()))
        share = max(1, -(-len(starts) // shares))
        parts = [starts[first : first + share] for first in range(0, len(starts), share)]
        in_threads(lambda part: self._part(entries, part, found), parts, threading.Event())
        return numbers[bytecode.results], found

    def _part(self, entries: int, starts: range, found: np.ndarray) -> None:
        """Derivatives along the directions that begin at these."""
        bytecode, places = self.bytecode, self._places
        try:
            memory = self._free.pop()
        except IndexError:
            memory = aligned(places * WIDTH + places // 8 + 1)
            memory[:WIDTH] = 0.0  # the row of place 0
        rows = memory[: places * WIDTH].reshape(places, WIDTH)
        flags = memory[places * WIDTH :].view(np.uint8)
        for start in starts:
            flags[:places] = 0
            seeds = bytecode.seeds[start : start + WIDTH]
            moved = seeds[seeds > 0]
            rows[moved] = 0.0
            rows[moved, np.flatnonzero(seeds)] = 1.0
            flags[moved] = 1
            self._slopes(address(self._tape), entries, address(rows), address(flags))
            lines = np.flatnonzero(flags[bytecode.slopes])
            found[lines, start : start + WIDTH] = rows[bytecode.slopes[lines], : len(seeds)]
        self._free.append(memory)


def _most(inputs: np.ndarray) -> int:
    """The largest number of an input, -1 where none is read."""
    return int(inputs[:, 0].max(initial=-1))
