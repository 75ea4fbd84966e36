"""Arrays in JSON, to the bit: their shape, and their numbers as base64 of little-endian doubles."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import numpy as np


def record_of_array(x: np.ndarray) -> dict[str, Any]:
    """An array of doubles, for JSON."""
    bits = np.ascontiguousarray(x, dtype="<f8").tobytes()
    return {"shape": list(np.shape(x)), "float64": base64.b64encode(bits).decode("ascii")}


def array_of_record(given: Mapping[str, Any]) -> np.ndarray:
    """What :func:`record_of_array` gave.

    Raises:
        LookupError, TypeError, ValueError: it is none.
    """
    bits = base64.b64decode(given["float64"], validate=True)
    return np.frombuffer(bits, dtype="<f8").astype(float).reshape(given["shape"])
