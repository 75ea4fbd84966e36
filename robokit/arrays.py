"""Real numbers from whatever a caller hands over: what NumPy would quietly reinterpret is refused.

NumPy turns text into numbers, drops imaginary parts with a warning and masks without one. Here each of
them is an error that names the argument.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from robokit.errors import ShapeError

_KINDS = {"c": "complex numbers", "O": "objects", "b": "booleans", "U": "text", "S": "bytes"}


def real_array(
    name: str,
    value: Any,
    accepted: str | tuple[int, ...],
    error: type[Exception] = ShapeError,
    dtype: str = "float64",
) -> np.ndarray:
    """An array of any shape, without a copy where none is needed.

    Args:
        name: of the argument, for messages.
        value: array, nested sequences or a number.
        accepted: the shapes that the caller takes, for messages: "(7,) or (B, 7)".
        error: class to raise.
        dtype: of the array that is returned.

    Raises:
        ShapeError, or the class given: not real numbers, masked, or a ragged sequence.
    """
    if isinstance(value, np.ndarray) and hasattr(value, "mask") and hasattr(value, "filled"):
        raise error(
            f"{name}: expected real numbers of shape {accepted}, got a masked array; "
            "fill it first, for example with .filled(0.0)"
        )
    try:
        array = np.asarray(value)
    except ValueError as problem:
        raise error(f"{name}: expected {accepted}, got a ragged sequence ({problem})") from None
    except TypeError as problem:
        raise error(f"{name}: expected {accepted}, got no array ({problem})") from None
    if array.dtype.kind not in "fiu":
        got = "None" if value is None else _KINDS.get(array.dtype.kind, str(array.dtype))
        if array.dtype.kind in "USO" and array.ndim == 0 and value is not None:
            got = f"{got}: {_short(value)}"
        raise error(f"{name}: expected real numbers of shape {accepted}, got {got}")
    if array.dtype == dtype:
        return array
    with np.errstate(over="ignore"):  # too large for single precision is infinite, and refused as such
        return array.astype(dtype, copy=False)


def _short(value: Any) -> str:
    words = repr(value)
    return words if len(words) <= 60 else f"{words[:57]}..."
