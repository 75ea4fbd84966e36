"""A kernel some of whose inputs are given once and for all."""

from __future__ import annotations

from typing import Any

import numpy as np

from robokit.engine.kernel import Kernel


class Bound:
    """A kernel of the first inputs only: the last ones are always the same arrays."""

    __slots__ = ("_kernel", "_last")

    def __init__(self, kernel: Kernel, *last: np.ndarray) -> None:
        self._kernel, self._last = kernel, last

    def fast(self, *arguments: Any) -> Any:
        """As :attr:`Kernel.fast`, without arrays to write to."""
        return self._kernel.fast(*arguments, *self._last)

    def few(self, *arguments: Any) -> Any:
        """As :attr:`Kernel.few`, without arrays to write to."""
        return self._kernel.few(*arguments, *self._last)

    def __call__(self, *arguments: Any, out: Any = None) -> Any:
        """As :meth:`Kernel.__call__`."""
        return self._kernel(*arguments, *self._last, out=out)

    def batch(self, *arguments: Any, out: Any = None, threads: int | None = None) -> Any:
        """As :meth:`Kernel.batch`."""
        return self._kernel.batch(*arguments, *self._last, out=out, threads=threads)

    def python(self, *arguments: Any, out: Any = None) -> Any:
        """As :meth:`Kernel.python`."""
        return self._kernel.python(*arguments, *self._last, out=out)

    def __getattr__(self, name: str) -> Any:
        """Everything else (counts, flops, sparsity, ...) is the kernel's."""
        return getattr(self._kernel, name)
