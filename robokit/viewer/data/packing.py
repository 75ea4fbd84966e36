"""Arrays as base64 text, as the page's JavaScript unpacks them (``floats`` and ``bits`` in util.js,
``inflated`` in recording.js).
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
        dtype: "<f4" or "<u2".
    """
    with np.errstate(over="ignore"):
        array = np.asarray(values).astype(dtype)
    return base64.b64encode(zlib.compress(array.tobytes(), 9)).decode("ascii")
