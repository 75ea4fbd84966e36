"""Memory that machine code works in."""

from __future__ import annotations

from typing import Any

import numpy as np

LINE_BYTES = 64
"""Of the processor's caches."""


def aligned(size: int, dtype: str = "float64") -> np.ndarray:
    """So many uninitialised numbers, where a cache line begins: no vector of a row lies across two lines."""
    bytes_each = np.dtype(dtype).itemsize
    block = np.empty(size + LINE_BYTES // bytes_each, dtype)
    start = -(block.__array_interface__["data"][0] // bytes_each) % (LINE_BYTES // bytes_each)
    return block[start : start + size]


def address(array: Any) -> int:
    """Where the data of an array, or of what has its interface, begins.

    An array's `.ctypes.data` says the same in twenty times the time.
    """
    place: int = array.__array_interface__["data"][0]
    return place
