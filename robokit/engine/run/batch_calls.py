"""Runs a batch kernel over many rows: blocks that Ctrl-C can interrupt, threads where they pay.

The machine code is called through ctypes, which releases the GIL, so Python threads are real threads
here. Each holds a workspace of its own. Rows are independent: the result does not depend on the division.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from robokit.engine.backend.cpu import last_cache, processors
from robokit.engine.memory import address, aligned
from robokit.forks import at_fork

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
        futures: list[Future[int]] = []
        status, own = 0, [(0, min(share, rows))]  # a share is whole tiles: it may be more than there is
        try:
            for start in range(share, rows, share):
                end = min(start + share, rows)
                try:
                    futures.append(
                        thread_pool().submit(self._rows, addresses, strides, start, end, stop, arrays)
                    )
                except RuntimeError:  # no thread can be had: a limit is reached, or the program is ending
                    own.append((start, rows))
                    break
            for start, end in own:
                status |= self._rows(addresses, strides, start, end, stop)
            for future in futures:
                status |= future.result()
        finally:  # an interrupted caller must not take the arrays away from threads that still write
            stop.set()
            for future in futures:
                future.cancel() or future.exception()
        return status

    def _rows(
        self,
        addresses: Words,
        strides: Words,
        start: int,
        end: int,
        stop: threading.Event | None,
        keep: Any = None,
    ) -> int:
        """Rows start..end in blocks; a set event ends it early. A thread keeps the arrays it writes to."""
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
