"""What a kernel with loops works with when it runs: memory in lanes, and the table of other kernels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from robokit.engine.loops.linked import Link
from robokit.engine.loops.rows import ENVIRONMENT
from robokit.engine.memory import address, aligned
from robokit.engine.signature import ArrayOf


class NoMachineCode(Exception):
    """A kernel that is called has none."""


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
        keep: what must live as long.

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
        keep: Any = None,
    ) -> None:
        lengths = [math.prod(a.at(sizes)) for a in arrays]
        memory = [
            aligned(max(n, 1) * lanes, "int32" if a.kind == "integer" else dtype)
            if a.role == "work" or (whole and not a.shared)
            else None
            for a, n in zip(arrays, lengths, strict=True)
        ]
        table = list[int]()
        self._keep: list[Any] = [keep, memory]
        for link, own in links:
            found = link.kernel.linked(lanes, dtype, own)
            if found is None:
                raise NoMachineCode(link.kernel.name)
            table += found[:2]
            self._keep.append(found[2])
        parts = {
            "sizes": np.array(list(sizes.values()), np.int32),
            "lengths": np.array(lengths, np.int64),
            "places": np.array([0 if x is None else address(x) for x in memory], np.uint64),
            "links": np.array(table, np.uint64),
            "moves": np.array(moves, np.uint64),
        }
        self._keep.append(parts)
        self._words = np.array([address(parts[name]) for name in ENVIRONMENT], np.uint64)

    @property
    def __array_interface__(self) -> Any:
        """Of the words that machine code reads."""
        return self._words.__array_interface__
