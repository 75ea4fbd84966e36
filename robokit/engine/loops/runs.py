"""Runs a kernel with loops on many rows, through many steps, on several threads."""

from __future__ import annotations

import ctypes
import functools
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from robokit.engine.loops.environment import Environment, NoMachineCode
from robokit.engine.memory import address
from robokit.engine.run.batch_calls import PAYS_SECONDS
from robokit.engine.run.plain_python import SECONDS
from robokit.engine.run.rollout_calls import Record, RolloutRunner


class LoopRunner(RolloutRunner):
    """As :class:`RolloutRunner`: the arrays of the kernel are (steps or 1, rows or 1, ...) each.

    Those that it reads and writes are its state, which goes from step to step.
    """

    def __init__(self, kernel: Any, sizes: Mapping[str, int], dtype: str = "float64") -> None:
        """A kernel with loops (kernel.LoopKernel) for given sizes."""
        self.kernel, self.sizes, self.dtype = kernel, dict(sizes), dtype
        self.written = [k for k, a in enumerate(kernel.taken) if a.role != "in"]
        driver, lanes, self._spare = 0, 1, list[Environment]()
        try:
            self._spare.append(kernel.environment(sizes, dtype, many=True))
            lanes, driver = kernel.lanes(dtype), kernel.driver("batch", dtype)
        except NoMachineCode:
            pass
        feedback = list(enumerate(self.written))
        # No method, which would be a cycle of references: workspaces must not wait for the collector.
        plain = functools.partial(_rows, kernel, self.sizes, self.written)
        super().__init__(feedback, len(kernel.taken), plain, SECONDS, driver, 0, lanes, kernel)
        self.timed = not driver

    def workspace(self) -> Any:
        """An environment for one thread."""
        if not self._compiled:
            return None
        return (
            self._spare.pop() if self._spare else self.kernel.environment(self.sizes, self.dtype, many=True)
        )

    def run(self, arrays: Sequence[np.ndarray], memory: Any, rows: range, step: int, steps: int) -> None:
        """As :meth:`RolloutRunner.run`; raises what the kernel fails with."""
        super().run(arrays, memory, rows, step, steps)
        if memory is not None:
            self.kernel.looked_at(memory)

    def release(self, memory: Any) -> None:
        """Take a workspace back."""
        if memory is not None and memory.context:
            memory.context.status()
        self._spare.append(memory)

    def stopper(self, memory: Sequence[Any]) -> threading.Event:
        """An event that also ends the loops that other threads are in."""
        return _Stopper(memory)

    def roll(
        self,
        arrays: Sequence[np.ndarray],
        rows: int,
        marks: Sequence[int],
        record: Record,
        threads: int | None = None,
        progress: Callable[[int], Any] | None = None,
    ) -> tuple[int, bool]:
        """As :meth:`RolloutRunner.roll`. How long a step takes is measured on copies of a few rows first."""
        if not self.timed and rows * marks[-1] > self.lanes:
            few = min(rows, self.lanes)
            part = [np.array(a[:1, :few]) for a in arrays]
            memory = self.workspace()
            started = time.perf_counter()
            self.run(part, memory, range(few), 0, 1)
            self.seconds, self.timed = max(time.perf_counter() - started, 1e-7) / few, True
            self.release(memory)
        return super().roll(arrays, rows, marks, record, threads, progress)

    def once(self, arrays: Sequence[np.ndarray], rows: int) -> Callable[..., None]:
        """A call that runs the kernel once on rows of arrays, (1, rows or 1, ...) each, in place.

        Its argument is how many threads it takes; as many as pay if there is none.
        """
        words = self.words(arrays, 0)
        args, gaps, jumps = map(ctypes.addressof, words)

        def call(threads: int | None = None, _alive: Any = words) -> None:
            memory, done = self.workspace(), 0
            at = address(memory) if self._compiled else 0
            if not self.timed and rows:
                done, started = min(rows, self.lanes), time.perf_counter()
                self._run(args, gaps, at, 0, done, 1, jumps)
                self.kernel.looked_at(memory)
                self.seconds, self.timed = max(time.perf_counter() - started, 1e-7) / done, True
            left = rows - done
            if left * self.seconds < 2 * PAYS_SECONDS and self._compiled:
                if left:
                    self._run(args, gaps, at, done, rows, 1, jumps)
                    self.kernel.looked_at(memory)
                self.release(memory)
            else:
                self.release(memory)
                rest = [a[:, done:] if a.shape[1] > 1 else a for a in arrays]
                if self.roll(rest, left, (0, 1), lambda *_: None, threads)[1]:
                    raise KeyboardInterrupt

        return call


class _Stopper(threading.Event):
    """Set, it ends the calls that work with these environments."""

    def __init__(self, environments: Sequence[Environment | None]) -> None:
        super().__init__()
        self._environments = environments

    def set(self) -> None:
        """Set it."""
        super().set()
        for each in self._environments:
            if each is not None and each.context:
                each.context.stop()


def _rows(
    kernel: Any, sizes: Mapping[str, int], written: Sequence[int], arrays: list[np.ndarray], rows: int
) -> list[np.ndarray]:
    """One step by the plain function: what is written."""
    own = []
    for k, (a, x) in enumerate(zip(kernel.taken, arrays, strict=True)):
        each = x if a.shared or x.ndim > len(a.shape) else np.broadcast_to(x, (rows, *x.shape))
        own.append(np.array(each) if k in written else each)
    for row in range(rows):
        states = [x if a.shared else x[row, ...] for a, x in zip(kernel.taken, own, strict=True)]
        kernel.on_memory(*sizes.values(), *states)
    return [own[k] for k in written]
