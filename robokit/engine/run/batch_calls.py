"""Runs a batch kernel over many rows: blocks that Ctrl-C can interrupt, threads where they pay.

The machine code is called through ctypes, which releases the GIL, so Python threads are real threads
here. Each holds a workspace of its own. Rows are independent: the result does not depend on the division.
"""

from __future__ import annotations

import ctypes
import functools
import operator
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np

from robokit.engine.backend.cpu import last_cache, processors
from robokit.engine.memory import address, aligned
from robokit.interpreter import at_fork

BLOCK_SECONDS = 0.05
"""Longest time between two looks at Ctrl-C."""

PAYS_SECONDS = 200e-6
"""Work that a thread must have to be worth waking."""

PAST = 0.25
"""Outputs larger than this part of the last cache are written past it: other data need their place in it."""

NEAR = 12 * 2**20
"""Bytes of the largest outputs that are not, however large the last cache: a server's is shared by many
processors and about as slow to write as memory. There, a call and a sum over its result gain from here on.
"""

Words = ctypes.Array[Any]
Part = TypeVar("Part")
Answer = TypeVar("Answer")

_pool: ThreadPoolExecutor | None = None
_pool_lock = threading.Lock()


def thread_pool() -> ThreadPoolExecutor:
    """The threads that all batches share."""
    global _pool
    with _pool_lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(processors(), thread_name_prefix="robokit")
        return _pool


def _forget_threads() -> None:
    """In a forked child the threads of the parent do not exist."""
    global _pool, _pool_lock
    _pool, _pool_lock = None, threading.Lock()


at_fork(after_in_child=_forget_threads)


def in_threads(work: Callable[[Part], Answer], parts: Sequence[Part], stop: threading.Event) -> list[Answer]:
    """Do the parts of a work at the same time: the first in this thread, the others in those of the pool.

    Parts for which no thread can be had are done here, one after the other.

    Args:
        work: does one part, without the GIL; it ends early once ``stop`` is set.
        parts: in any order.
        stop: set when this is over: threads that still write must not outlive an interrupted caller.

    Returns:
        what the parts give, in any order.
    """
    own, futures = list(parts[:1]), list[Future[Answer]]()
    try:
        for k in range(1, len(parts)):
            try:
                futures.append(thread_pool().submit(work, parts[k]))
            except RuntimeError:  # no thread can be had: a limit is reached, or the program is ending
                own += parts[k:]
                break
        found = [work(part) for part in own]
        return [*found, *(future.result() for future in futures)]
    finally:
        stop.set()
        for future in futures:
            future.cancel() or future.exception()


class BatchRunner:
    """The batch driver of one kernel, ready to be called."""

    def __init__(self, driver: int, workspace: int, tile: int, seconds: float, keep: Any = None) -> None:
        """Wrap a driver.

        Args:
            driver: its address.
            workspace: size of its workspace [doubles].
            tile: rows that go together; blocks are multiples of it.
            seconds: time per row, roughly.
            keep: object that owns the code.
        """
        self._run = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 2)(driver)
        self._workspace, self._tile, self._seconds, self._keep = workspace, tile, seconds, keep
        self._free: list[np.ndarray] = []
        self.few = max(1, int(2 * PAYS_SECONDS / seconds))  # rows that no second thread is woken for

    def __call__(
        self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray], rows: int, threads: int | None
    ) -> int:
        """Run over all rows.

        Args:
            inputs: (rows, n) each, or (n,) for one row that serves the whole batch.
            outputs: (rows, ...) each.
            rows: how many.
            threads: at most so many; None for as many as pay.

        Returns:
            the status of all rows together.
        """
        arrays = (*inputs, *outputs)
        addresses = (ctypes.c_void_p * len(arrays))(*map(address, arrays))
        steps = [a.strides[0] if a.ndim == 2 else 0 for a in inputs] + [a.strides[0] for a in outputs]
        past = int(sum(a.nbytes for a in outputs) > min(PAST * last_cache(), NEAR))
        strides = (ctypes.c_int64 * (len(arrays) + 1))(*steps, past)
        shares = max(1, min(int(rows * self._seconds / PAYS_SECONDS), threads or processors(), processors()))
        if shares == 1:
            return self._rows(addresses, strides, 0, rows, None)
        share = -(-rows // (shares * self._tile)) * self._tile
        stop = threading.Event()
        parts = [(start, min(start + share, rows)) for start in range(0, rows, share)]

        def work(part: tuple[int, int], _keep: Any = arrays) -> int:
            return self._rows(addresses, strides, *part, stop)

        return functools.reduce(operator.or_, in_threads(work, parts, stop), 0)

    def _rows(
        self, addresses: Words, strides: Words, start: int, end: int, stop: threading.Event | None
    ) -> int:
        """Rows start..end in blocks; a set event ends it early."""
        block = max(self._tile, int(BLOCK_SECONDS / self._seconds) // self._tile * self._tile)
        try:
            workspace = self._free.pop()
        except IndexError:
            workspace = aligned(self._workspace)
        place = address(workspace)
        args, steps = ctypes.addressof(addresses), ctypes.addressof(strides)
        status = 0
        for first in range(start, end, block):
            if stop is not None and stop.is_set():
                break
            status |= self._run(args, steps, place, first, min(first + block, end))
        self._free.append(workspace)
        return status
