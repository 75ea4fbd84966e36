"""What NumPy's functions do with traced scalars, alone or in arrays of objects.

``np.sin(x)`` comes here by NumPy's protocol for other classes; ``np.sin(np.array([x, y]))`` looks for a
method of each entry with the function's name (:data:`METHODS`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from robokit.spatial import elementary, scalars

METHODS: dict[str, Callable[..., Any]] = {
    "sin": scalars.sin,
    "cos": scalars.cos,
    "sqrt": scalars.sqrt,
    "floor": scalars.floor,
    "tan": elementary.tan,
    "tanh": elementary.tanh,
    "exp": elementary.exp,
    "log": elementary.log,
    "arcsin": elementary.asin,
    "arccos": elementary.acos,
    "arctan": elementary.atan,
    "arctan2": elementary.atan2,
    "hypot": lambda x, y: scalars.sqrt(x * x + y * y),
}
"""Functions of NumPy that are a method of the entries of an array of objects."""

FUNCTIONS: dict[str, Callable[..., Any]] = METHODS | {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "power": operator.pow,
    "float_power": operator.pow,
    "negative": operator.neg,
    "positive": operator.pos,
    "absolute": abs,
    "fabs": abs,
    "square": lambda x: x * x,
    "reciprocal": lambda x: 1.0 / x,
    "deg2rad": lambda x: x * (np.pi / 180.0),
    "rad2deg": lambda x: x * (180.0 / np.pi),
    "maximum": scalars.maximum,
    "minimum": scalars.minimum,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "equal": operator.eq,
    "not_equal": operator.ne,
}
"""All that take a traced scalar."""


def of_numpy(_: Any, function: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
    """A function of NumPy on traced scalars, numbers and arrays of them: ``__array_ufunc__``.

    Raises:
        TypeError: it is none of :data:`FUNCTIONS`.
    """
    text = FUNCTIONS.get(function.__name__)
    if text is None or method != "__call__" or options:
        what = function.__name__ if method == "__call__" else f"{function.__name__}.{method}"
        raise TypeError(
            f"np.{what} takes no scalars that are known only later: use the functions of "
            "robokit.spatial.scalars and robokit.spatial.elementary"
        )
    if any(isinstance(x, np.ndarray) and x.ndim for x in inputs):
        return np.frompyfunc(text, function.nin, 1)(*map(_boxed, inputs))
    return text(*(x.item() if isinstance(x, np.ndarray | np.generic) else x for x in inputs))


def _boxed(x: Any) -> np.ndarray:
    """As an array of objects: NumPy would come back with anything else."""
    if isinstance(x, np.ndarray):
        return x.astype(object)
    box = np.empty((), object)
    box[()] = x
    return box
