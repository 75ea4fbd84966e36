"""Arrays as base64 text, as the page's JavaScript unpacks them (``floats`` and ``bits`` in util.js,
``inflated`` and ``wholeNumbers`` in walk/program.js).
"""

from __future__ import annotations

import base64
import zlib

import numpy as np
from numpy.typing import ArrayLike


def base64_text(array: np.ndarray) -> str:
    """The bytes of an array in row order."""
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode("ascii")


def packed(values: ArrayLike) -> str:
    """Numbers as little-endian float32; what is too large for that becomes infinite."""
    with np.errstate(over="ignore"):
        return base64_text(np.asarray(values).astype("<f4"))


def packed_bits(pattern: np.ndarray) -> str:
    """A boolean matrix, eight entries a byte, the first in the highest bit."""
    return base64_text(np.packbits(pattern.reshape(-1)))


def deflated(values: ArrayLike, dtype: str) -> str:
    """Numbers as deflated text, for tables that the page unpacks only when they are asked for.

    Args:
        values: the numbers.
        dtype: "<f8" or "u1".
    """
    with np.errstate(over="ignore"):
        array = np.asarray(values).astype(dtype)
    return base64.b64encode(zlib.compress(array.tobytes(), 9)).decode("ascii")


def deflated_whole(values: ArrayLike) -> str:
    """Whole numbers as deflated text, the shortest where most are near 0 or repeat.

    Args:
        values: n, between -2^31 and 2^31; stored as 2 n, or -2 n - 1 below 0, all lowest bytes first, then
            all second ones and so on.
    """
    n = np.asarray(values, dtype=np.int64).reshape(-1)
    codes = np.where(n < 0, -2 * n - 1, 2 * n).astype("<u4")
    return deflated(codes.view("u1").reshape(-1, 4).T, "u1")
