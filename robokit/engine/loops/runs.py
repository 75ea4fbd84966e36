"""Runs a kernel with loops on many rows, through many steps, on several threads."""

from __future__ import annotations

import ctypes
import functools
import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from robokit import arguments as check
from robokit.engine.loops.environment import Environment, NoMachineCode
from robokit.engine.memory import address
from robokit.engine.run.batch_calls import BLOCK_SECONDS, PAYS_SECONDS
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
        self._spare.append(memory)

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


class Steps:
    """A kernel with loops as the step of a simulation: as a straight one with feedback (engine/kernel.py).

    Its state are the arrays that it reads and writes; others are given anew in each call.

    Args:
        kernel: the step, a kernel.LoopKernel.
        sizes: what its sizes are.

    Attributes:
        work: its work arrays by name, as the last step of one state left them.
        refused: why there is no machine code; None as long as there is, or may be.
    """

    def __init__(self, kernel: Any, sizes: Mapping[str, int]) -> None:
        self.kernel, self.sizes = kernel, dict(sizes)
        self.state = [k for k, a in enumerate(kernel.taken) if a.role == "inout"]
        self.refused: str | None = None
        self.work: dict[str, np.ndarray] = {}
        self._memory: list[np.ndarray] | None = None
        self._seconds = BLOCK_SECONDS

    def __call__(self, *arguments: Any) -> list[np.ndarray]:
        """The state after one step.

        Raises:
            InvalidValue: the state, or what is given with it, is not finite.
        """
        return self.iterate(*arguments, steps=1)[1]

    def iterate(self, *arguments: Any, steps: int) -> tuple[int, list[np.ndarray]]:
        """Steps with the same inputs: how many were taken, and the state after them.

        Fewer than `steps`: the state after the last of them is not finite.

        Raises:
            InvalidValue: the state, or what is given with it, is not finite.
        """
        memory = self._prepared()
        for x, new in zip(memory, arguments, strict=True):
            x[...] = new
        names = [a.name for a in self.kernel.taken]
        check.check_values(names, memory, ())
        done = 0
        while done < steps:
            block = max(1, min(int(BLOCK_SECONDS / self._seconds), steps - done))
            started = time.perf_counter()
            taken = self._run(block)
            self._seconds = max((time.perf_counter() - started) / block, 1e-7)
            done += taken
            if taken < block or not all(np.isfinite(memory[k]).all() for k in self.state):
                break
        return done, [memory[k].copy() for k in self.state]

    def rollout_runner(self) -> LoopRunner:
        """Takes many states through many steps."""
        found = LoopRunner(self.kernel, self.sizes)
        self.refused = self.kernel.refused
        return found

    def _prepared(self) -> list[np.ndarray]:
        """The arrays that the machine code of one state works on."""
        if self._memory is None:
            self._memory = [a.zeros(self.sizes) for a in self.kernel.taken]
            work = [a for a in self.kernel.arrays if a.role == "work"]
            try:
                environment = self.kernel.environment(self.sizes, "float64")
            except NoMachineCode:
                self.refused, self._run = self.kernel.refused, self._plain
                self.work = {a.name: a.zeros(self.sizes) for a in work}
                return self._memory
            held = zip(self.kernel.arrays, environment.memory, strict=True)
            self.work = {
                a.name: x.reshape(-1)[: math.prod(a.at(self.sizes))] for a, x in held if x is not None
            }
            driver = self.kernel.driver("single", "float64")
            function = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 2, ctypes.c_int64)(driver)
            pointers = np.array([address(x) for x in self._memory], np.uint64)
            given = address(pointers), address(environment)

            def run(passes: int, _alive: Any = (pointers, environment)) -> int:
                done = int(function(*given, passes))
                self.kernel.looked_at(environment)
                return done

            self._run = run
        return self._memory

    def _plain(self, passes: int) -> int:
        assert self._memory is not None
        for k in range(passes):
            self.kernel.on_memory(*self.sizes.values(), *self._memory, work=self.work)
            if not all(np.isfinite(self._memory[j]).all() for j in self.state):
                return k + 1
        return passes
