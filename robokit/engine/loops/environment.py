"""What a kernel with loops works with when it runs: memory in lanes, and the table of other kernels."""

from __future__ import annotations

import ctypes
import functools
import math
import os
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from robokit.engine.loops.emit import HEADER, STOPPED, TURNS
from robokit.engine.loops.linked import Link
from robokit.engine.loops.rows import ENVIRONMENT
from robokit.engine.memory import address, aligned
from robokit.engine.signature import ArrayOf

Blocks = list[tuple[int, np.ndarray]]
"""Address and memory of each block of a workspace."""


class NoMachineCode(Exception):
    """A kernel that is called has none."""


class Context:
    """What a call of machine code works with: where it says that it failed, and its workspace.

    The workspace is a list of blocks. A block begins with the address of the next one and of its own end;
    memory is taken from its start to its end, then from the next one, and given back in the opposite order.

    Attributes:
        address: of the status, the function that makes blocks, the first block, the turns of loops until the
            next look at the clock, the second of the last look, and the functions for time and for Ctrl-C.
    """

    def __init__(self) -> None:
        self._blocks: Blocks = []
        self._numbers = (ctypes.c_int64 * 7)()
        self._numbers[3], self._numbers[4] = TURNS, int(time.time())
        self._numbers[5:7] = [_clock(), _interrupted()]
        # No method and no cast, which are cycles of references: large memory must not wait for the collector.
        more = functools.partial(_add, self._blocks)
        self._more = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(more)
        self._numbers[1] = ctypes.c_void_p.from_buffer(self._more).value or 0
        self._numbers[2] = _add(self._blocks, None, FIRST_BLOCK) or 0
        self.address = ctypes.addressof(self._numbers)

    def used(self) -> int:
        """Whether the call that is over failed; the next one finds all of its memory in one block."""
        if len(self._blocks) > 1:
            size = sum(block.nbytes for _, block in self._blocks)
            self._blocks.clear()
            self._numbers[2] = _add(self._blocks, None, size) or 0
        return self._numbers[0]

    def stop(self) -> None:
        """Let the call that another thread is in end soon."""
        self._numbers[0] = STOPPED

    def status(self) -> int:
        """What failed; the next call begins anew."""
        found, self._numbers[0] = self._numbers[0], 0
        return found


@functools.cache
def _clock() -> int:
    """Address of the C library's function for the time in seconds."""
    library = ctypes.CDLL("ucrtbase" if os.name == "nt" else None)
    return ctypes.c_void_p.from_buffer(library["_time64" if os.name == "nt" else "time"]).value or 0


@functools.cache
def _callback() -> Any:
    # No Python runs in it, so nothing handles the signal before the call is over.
    return ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.pythonapi.PyOS_InterruptOccurred)


def _interrupted() -> int:
    """Address of a function that says whether Ctrl-C was pressed, to the main thread."""
    return ctypes.c_void_p.from_buffer(_callback()).value or 0


def _add(blocks: Blocks, after: int | None, size: int) -> int | None:
    """A new block after one, as large as all before it together; those that came after it are gone."""
    while blocks and blocks[-1][0] != after:
        blocks.pop()
    size = max(size, sum(block.nbytes for _, block in blocks)) + HEADER
    try:
        block = aligned(size + HEADER, "uint8")  # the first element is read, even where there is none
    except MemoryError:
        return None
    place = address(block)
    block[:16].view(np.int64)[:] = 0, place + size
    if blocks:
        blocks[-1][1][:8].view(np.int64)[0] = place
    blocks.append((place, block))
    return place


FIRST_BLOCK = 1 << 14
"""Bytes of the workspace that a call begins with."""


class Environment:
    """Memory of one kernel for one thread; its address is what machine code is given.

    Args:
        arrays: what the kernel takes.
        sizes: what its sizes are.
        lanes: states at once.
        dtype: of real numbers.
        links: kernels that it calls, and their sizes.
        moves: addresses of the functions between rows and lanes.
        whole: whether its arrays come in rows, and are moved to memory in lanes; else only work arrays have
            memory here.
        fails: whether a call may fail.
        keep: what must live as long.

    Attributes:
        context: where a call says that it failed, or None.
        links: environments of the kernels that it calls, and workspaces of straight ones.
        memory: of each array; None where it comes with the call.

    Raises:
        NoMachineCode: one of these has none.
    """

    def __init__(
        self,
        arrays: Sequence[ArrayOf],
        sizes: Mapping[str, int],
        lanes: int,
        dtype: str,
        links: Sequence[tuple[Link, Mapping[str, int]]],
        moves: Sequence[int] | np.ndarray = (),
        whole: bool = False,
        fails: bool = False,
        keep: Any = None,
    ) -> None:
        lengths = [math.prod(a.at(sizes)) for a in arrays]
        # Lanes that do not run read and write the first element of an array, or of an empty part at its end.
        memory = [
            aligned((n + 1) * lanes, "int32" if a.kind == "integer" else dtype)
            if a.role == "work" or (whole and not a.shared)
            else None
            for a, n in zip(arrays, lengths, strict=True)
        ]
        table = list[int]()
        self._keep: list[Any] = [keep]
        self.memory = memory
        self.links: list[Any] = []
        self.context = Context() if fails else None
        for link, own in links:
            found = link.kernel.linked(lanes, dtype, own)
            if found is None:
                raise NoMachineCode(link.kernel.name)
            table += found[:2]
            self.links.append(found[2])
        parts = {
            "sizes": np.array(list(sizes.values()), np.int32),
            "lengths": np.array(lengths, np.int64),
            "places": np.array([0 if x is None else address(x) for x in memory], np.uint64),
            "links": np.array(table, np.uint64),
            "moves": np.array(moves, np.uint64),
        }
        self._keep.append(parts)
        words = {name: address(part) for name, part in parts.items()}
        words["context"] = self.context.address if self.context else 0
        self._words = np.array([words[name] for name in ENVIRONMENT], np.uint64)

    @property
    def __array_interface__(self) -> Any:
        """Of the words that machine code reads."""
        return self._words.__array_interface__
