"""Memory that machine code works in and returns: aligned arrays, and a pool of buffers for large results."""

from __future__ import annotations

import ctypes
import math
import os
import sys
import threading
import weakref
from collections import deque
from typing import Any

import numpy as np

from robokit.errors import ShapeError, shown
from robokit.interpreter import at_fork

LINE_BYTES = 64  # of the processor's caches


def aligned(size: int, dtype: str = "float64") -> np.ndarray:
    """So many uninitialised numbers, where a cache line begins: no vector of a row lies across two lines."""
    bytes_each = np.dtype(dtype).itemsize
    block = np.empty(size + LINE_BYTES // bytes_each, dtype)
    start = -(address(block) // bytes_each) % (LINE_BYTES // bytes_each)
    return block[start : start + size]


def address(array: Any) -> int:
    """Where the data of an array, or of what has its interface, begins."""
    if _IS_HELD and array.__class__ is np.ndarray:
        held: int = _held(id(array) + ARRAY_DATA).value
        return held
    place: int = array.__array_interface__["data"][0]
    return place


ARRAY_DATA = 16
"""Where an array object holds its data's address, in 64-bit CPython with the GIL.

It is part of NumPy's ABI. To read it takes an eighth of the time of `__array_interface__` or `.ctypes.data`.
"""

_held = ctypes.c_uint64.from_address


def _is_held() -> bool:
    """Whether array objects of this process hold it there: tried on live ones."""
    if sys.implementation.name != "cpython" or np.ndarray.__basicsize__ < ARRAY_DATA + 8:
        return False
    arrays = (np.zeros(7), np.zeros((3, 4))[1:, ::2], np.frombuffer(b"read only", np.uint8))
    return all(_held(id(a) + ARRAY_DATA).value == a.__array_interface__["data"][0] for a in arrays)


_IS_HELD = _is_held()


# -- The buffer pool -------------------------------------------------------------------------------------
#
# Memory of large results that have died, kept for the next ones.
#
# The system hands out memory by pages, and fills each with zeros when it is first touched: for the mass
# matrices of thousands of states that takes several times as long as to compute them. So the memory of a
# large result is not given back when the result dies, but kept for one of about its size.
#
# - A result lends its memory from a block: ``result.base`` is a :class:`Loan`, whose death brings the block
#   back. A view of the result, or anything else that reads it, keeps the result, and so the loan. A block to
#   which anything else still refers is never lent again.
# - No more than a limit is kept (:func:`set_limit`, or the environment variable ``ROBOKIT_KEPT_MEMORY``
#   [MB], 0 for nothing), and no block for longer than :data:`TURNS` loans of others: what is not asked for
#   goes back to the system.
# - A forked child starts with nothing kept; its parent's results stay valid there.


LARGE = 1 << 20  # bytes below which results are new arrays: the allocator keeps small memory itself
VARIABLE = "ROBOKIT_KEPT_MEMORY"  # environment variable with the limit [MB]
DEFAULT_LIMIT = 256 << 20  # most bytes that are kept where nobody says otherwise
WASTE = 1.25  # a block may be this much larger than the result that it is lent to
TURNS = 64  # a block that was passed over by so many loans goes back to the system


def limit_of_the_environment() -> int:
    """The limit [bytes] that the environment asks for."""
    try:
        return max(0, int(float(os.environ.get(VARIABLE, "")) * 1e6))
    except (ValueError, OverflowError):
        return DEFAULT_LIMIT


class Loan:
    """What a result's ``base`` is: as long as it lives, the block is not lent again."""

    __slots__ = ("__array_interface__", "__weakref__", "block")

    def __init__(self, block: np.ndarray, shape: tuple[int, ...], dtype: str) -> None:
        """A part of a block, from a cache line's beginning on, as NumPy finds it."""
        self.block = block
        first = address(block)
        self.__array_interface__ = {
            "data": (first + -first % LINE_BYTES, False),
            "shape": shape,
            "typestr": np.dtype(dtype).str,
            "version": 3,
        }


class BufferPool:
    """Blocks of memory: those lent, and those that are free."""

    def __init__(self, limit: int) -> None:
        """Nothing yet. ``limit``: most bytes that are kept free."""
        self.limit = limit
        self._lock = threading.Lock()
        self._lent: dict[int, tuple[weakref.ref[Loan], np.ndarray]] = {}
        # A result may die in the middle of a loan, on the same thread: this takes no lock.
        self._back: deque[np.ndarray] = deque()
        self._free: list[tuple[int, np.ndarray]] = []  # the loan before which it came back, and the block
        self._loans = 0

    def array(self, shape: tuple[int, ...], dtype: str) -> np.ndarray:
        """An array of undefined numbers, which begins at a cache line."""
        size = math.prod(shape) * np.dtype(dtype).itemsize
        with self._lock:
            self._loans += 1
            self._sort_in()
            block = self._taken(size)
        if block is None:
            block = self._new(size + LINE_BYTES)
        loan = Loan(block, shape, dtype)
        place = id(loan)
        kept = weakref.ref(self)

        def died(_: Any) -> None:
            alive = kept()
            if alive is not None:
                alive._back.append(alive._lent.pop(place)[1])
                if alive._lock.acquire(blocking=False):  # else whoever has it, or comes next, sorts it in
                    try:
                        alive._sort_in()
                    finally:
                        alive._lock.release()

        self._lent[place] = weakref.ref(loan, died), block
        return np.asarray(loan)

    def free(self) -> int:
        """Bytes that are kept and not lent."""
        with self._lock:
            self._sort_in()
            return sum(block.nbytes for _, block in self._free)

    def let_go(self) -> None:
        """Give what is above the limit back to the system."""
        with self._lock:
            self._sort_in()

    def _new(self, size: int) -> np.ndarray:
        try:
            return np.empty(size, np.uint8)
        except MemoryError:
            with self._lock:
                self._free.clear()
            return np.empty(size, np.uint8)

    def _taken(self, size: int) -> np.ndarray | None:
        """The free block that fits best, the one that came back last of equal ones."""
        best = -1
        for k, (_, block) in enumerate(self._free):
            room = block.nbytes - LINE_BYTES
            if size <= room <= WASTE * size and (best < 0 or block.nbytes <= self._free[best][1].nbytes):
                best = k
        if best < 0:
            return None
        block = self._free.pop(best)[1]
        # Somebody may have gone to the block through result.base: then it stays theirs.
        return block if sys.getrefcount(block) == _ALONE else None

    def _sort_in(self) -> None:
        """Take what came back; give what nobody asked for, and what is above the limit, to the system."""
        while self._back:
            self._free.append((self._loans, self._back.popleft()))
        self._free = [(since, block) for since, block in self._free if self._loans - since <= TURNS]
        total = sum(block.nbytes for _, block in self._free)
        while self._free and total > self.limit:
            total -= self._free.pop(0)[1].nbytes


def _references_of_one() -> int:
    """What sys.getrefcount says of an object that a function alone holds."""
    block = np.empty(0, np.uint8)
    return sys.getrefcount(block)


_ALONE = _references_of_one()

_kept = BufferPool(limit_of_the_environment())


def result_array(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """An array of undefined numbers for a result, where a cache line begins; a large one from the pool."""
    size = math.prod(shape)
    if size * 4 < LARGE:  # of either kind of number
        return aligned(size, dtype).reshape(shape)
    return _kept.array(shape, dtype)


def limit() -> int:
    """Most bytes that are kept for large results."""
    return _kept.limit


def set_limit(size: int) -> None:
    """Keep at most so many bytes of the memory of large results that have died, 0 for none.

    ``size``: [bytes]. Raises ShapeError: not a number of bytes.
    """
    if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size < 0:
        raise ShapeError(f"size: expected a number of bytes, 0 or more, got {shown(size)}")
    _kept.limit = int(size)
    _kept.let_go()


def _start_anew() -> None:
    """In a forked child: pages are the parent's until they are written, and a lock may be held for ever."""
    global _kept
    _kept = BufferPool(_kept.limit)


at_fork(after_in_child=_start_anew)
