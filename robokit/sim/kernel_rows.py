"""Kernels with loops on arrays that their caller holds: of one state, or of rows of states."""

from __future__ import annotations

import contextlib
import ctypes
import functools
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any

import numpy as np

from robokit.arguments import is_finite
from robokit.engine.loops.environment import NoMachineCode
from robokit.engine.loops.kernel import LoopKernel
from robokit.engine.maker import engine
from robokit.engine.memory import address

Arrays = Mapping[str, np.ndarray]


def on_arrays(
    kernel: LoopKernel, sizes: Mapping[str, int], arrays: Sequence[np.ndarray], compiled: bool = True
) -> Callable[[], Any]:
    """A call without arguments on contiguous arrays of one state, in place; in Python without code."""
    if compiled and engine() != "python":
        with contextlib.suppress(NoMachineCode):
            return kernel.single(sizes, arrays)
    return functools.partial(kernel.on_memory, *(sizes[n] for n in kernel.sizes), *arrays)


class KernelRows:
    """Rows of arrays on which a kernel runs in place, many steps of many rows in a call without the GIL.

    ``arrays``: by name; ``compiled``: whether there is machine code; ``memory``: the environment of the
    kernel that it has then.
    """

    def __init__(
        self,
        kernel: LoopKernel,
        sizes: Mapping[str, int],
        arrays: Arrays,
        own: Container[str],
        dtype: str = "float64",
        driver: str = "rows",
        wanted: bool = True,
    ) -> None:
        """Find the addresses of all arrays, contiguous ones, and of the code, as they are now.

        ``own`` names the arrays that each row has of its own, (rows, ...); the others are for all rows.
        ``driver`` is "rows" for one row after the other, "batch" for several in lanes (engine/loops/emit.py);
        ``wanted``: whether machine code is.
        """
        self.kernel, self.sizes, self.arrays = kernel, sizes, arrays
        self._own = [a.name in own for a in kernel.taken]
        held = [arrays[a.name] for a in kernel.taken]
        self._places = np.array([address(x) for x in held], np.int64)
        strides = (x.strides[0] if o else 0 for x, o in zip(held, self._own, strict=True))
        self._strides = np.array(list(strides), np.int64)
        self._number = {a.name: k for k, a in enumerate(kernel.taken)}
        self._counts = driver == "rows"
        try:
            if not wanted or engine() == "python":
                raise NoMachineCode("")
            self.memory = kernel.environment(sizes, dtype, many=not self._counts)
            words = [*[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 3, *[ctypes.c_void_p] * (1 + self._counts)]
            self._call: Any = ctypes.CFUNCTYPE(None, *words)(kernel.driver(driver, dtype))
        except NoMachineCode:
            self._call = None
            self._work = {a.name: a.zeros(sizes, dtype) for a in kernel.arrays if a.role == "work"}
        self.compiled = self._call is not None

    def run(self, a: int, b: int, given: Arrays, steps: int, done: np.ndarray, memory: Any = None) -> None:
        """Steps of rows a..b, with ``given`` inputs that differ by step or row, (steps or 1, rows or 1, ...)
        each, whatever their layout.

        ``done``, (b - a,), gets how many steps each row took, fewer where its state is not finite, or the
        kernel says that they are to be taken again; the driver "batch" gives no numbers. ``memory`` is an
        environment of the kernel for this thread.
        """
        if not self.compiled:
            self._by_python(a, b, given, steps, done)
            return
        places, strides = self._places + a * self._strides, self._strides.copy()
        jumps = np.zeros_like(strides)
        given = {name: np.ascontiguousarray(x) for name, x in given.items()}  # kept until the call is over
        for name, x in given.items():
            k = self._number[name]
            places[k] = address(x)
            strides[k], jumps[k] = (x.strides[m] if x.shape[m] > 1 else 0 for m in (1, 0))
        memory = self.memory if memory is None else memory
        more = [done] if self._counts else []
        self._call(*map(address, (places, strides, memory)), 0, b - a, steps, *map(address, (jumps, *more)))
        self.kernel.looked_at(memory)

    def _by_python(self, a: int, b: int, given: Arrays, steps: int, done: np.ndarray) -> None:
        taken, sizes = self.kernel.taken, [self.sizes[n] for n in self.kernel.sizes]
        for row in range(a, b):
            own = {x.name: self.arrays[x.name][row] for x, o in zip(taken, self._own, strict=True) if o}
            for step in range(steps):
                now = {n: x[min(step, len(x) - 1), min(row - a, x.shape[1] - 1)] for n, x in given.items()}
                held = {**self.arrays, **own, **now}
                self.kernel.on_memory(*sizes, *(held[x.name] for x in taken), work=self._work)
                done[row - a] = step + 1
                state = (held[x.name] for x in taken if x.role == "inout" and x.kind == "real")
                if not all(map(is_finite, state)):
                    break
