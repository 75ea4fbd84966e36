"""Functions of generic scalars: one name, dispatched on the scalar's type.

The algorithms are plain Python over whatever numbers they are given: floats, complex numbers
(complex-step derivatives), NumPy arrays (one scalar for a whole batch), the tracer's scalars, and
SymPy, CasADi or JAX expressions. Everything that is not an operator goes through this file.
"""

from __future__ import annotations

import cmath
import importlib
import math
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, TypeVar

import numpy as np

from robokit.spatial.sines import sine_and_cosine, sines_and_cosines

Scalar = Any
"""Anything with + - * / and the functions below."""

Item = TypeVar("Item")


def holds(condition: Any) -> bool:
    """Whether a known condition holds; in Python ``~True`` is -2, which counts as false here."""
    return bool(condition) and condition != -2


def _pick(condition: Any, a: Scalar, b: Scalar) -> Scalar:
    return a if holds(condition) else b


def _entry(table: Sequence[float], index: float) -> float:
    # A comparison with NaN is false: the first entry, as in machine code.
    last = len(table) - 1
    return float(table[0 if not index > 0.0 else last if index >= last else int(index)])


def _entries(table: np.ndarray, index: np.ndarray) -> np.ndarray:
    within = np.where(index > 0.0, np.minimum(index, len(table) - 1), 0.0)
    return np.asarray(table)[within.astype(np.intp)]


def _of_each(function: Callable[[Scalar], Scalar], x: np.ndarray) -> np.ndarray:
    return np.frompyfunc(function, 1, 1)(x)


_FLOAT = SimpleNamespace(
    sin=lambda x: sine_and_cosine(x)[0],
    cos=lambda x: sine_and_cosine(x)[1],
    sqrt=math.sqrt,
    atan2=math.atan2,
    floor=lambda x: float(math.floor(x)),
    where=_pick,
    lookup=_entry,
    maximum=max,
    minimum=min,
)
_COMPLEX = SimpleNamespace(
    sin=cmath.sin,
    cos=cmath.cos,
    sqrt=cmath.sqrt,
    floor=lambda x: complex(math.floor(x.real)),
    where=_pick,
    lookup=lambda table, index: _entry(table, index.real),
    library=cmath,
)
_NUMPY = SimpleNamespace(
    sin=lambda x: _of_each(sin, x) if x.dtype == object else sines_and_cosines(x)[0],
    cos=lambda x: _of_each(cos, x) if x.dtype == object else sines_and_cosines(x)[1],
    sqrt=lambda x: _of_each(sqrt, x) if x.dtype == object else np.sqrt(x),
    atan2=np.arctan2,
    floor=lambda x: _of_each(floor, x) if x.dtype == object else np.floor(x),
    where=np.where,
    lookup=_entries,
    maximum=np.maximum,
    minimum=np.minimum,
)

_TABLE: dict[type, Any] = {
    float: _FLOAT,
    int: _FLOAT,
    bool: _FLOAT,
    np.bool_: _NUMPY,
    np.float64: _FLOAT,
    np.float32: _NUMPY,
    complex: _COMPLEX,
    np.complex128: _COMPLEX,
    np.ndarray: _NUMPY,
}

_CONSTANT = (float, int, bool, np.bool_, np.float64)


OUTERMOST: set[type] = set()
"""Types that hold scalars of other types: where several types meet, theirs are the functions."""


def register(scalar_type: type, functions: Any, outermost: bool = False) -> None:
    """Give a scalar type its functions.

    Args:
        scalar_type: the type of the scalars.
        functions: an object with sin, cos, sqrt, atan2, floor, where, lookup, maximum, minimum (those
            that exist).
        outermost: whether they go before those of other types.
    """
    _TABLE[scalar_type] = functions
    if outermost:
        OUTERMOST.add(scalar_type)


_listener = threading.local()


def recording() -> bool:
    """Whether this thread records a function."""
    return getattr(_listener, "tell", None) is not None


def iteration_begins() -> None:
    """Tell whoever records that an iteration begins or the last one is over, as :func:`iterations` does."""
    if recording():
        _listener.tell()


def iterations(items: Sequence[Item]) -> Iterable[Item]:
    """The items of a loop over joints; whoever records the loop is told where iterations begin."""
    tell = getattr(_listener, "tell", None)
    return items if tell is None else _told(items, tell)


def _told(items: Sequence[Item], tell: Callable[[], None]) -> Iterator[Item]:
    for item in items:
        tell()
        yield item
    tell()


@contextmanager
def telling(tell: Callable[[], None]) -> Iterator[None]:
    """While it lasts, loops of this thread call this at beginnings and ends (:func:`iterations`)."""
    before = getattr(_listener, "tell", None)
    _listener.tell = tell
    try:
        yield
    finally:
        _listener.tell = before


_NAMES = ("sin", "cos", "sqrt", "floor", "atan2", "where", "maximum", "minimum")

_LIBRARIES: dict[str, tuple[str, dict[str, str]]] = {
    "sympy": ("sympy", {"where": "Piecewise", "maximum": "Max", "minimum": "Min"}),
    "casadi": ("casadi", {"where": "if_else", "maximum": "fmax", "minimum": "fmin"}),
    "jax": ("jax.numpy", {"atan2": "arctan2"}),
    "jaxlib": ("jax.numpy", {"atan2": "arctan2"}),
}
"""Package of a scalar's type -> the module with its functions, and those that have another name there."""


def _library(package: str) -> Any:
    """The functions of a library; SymPy takes the two branches of ``where`` as pairs."""
    module, own = _LIBRARIES[package]
    found = importlib.import_module(module)
    functions = SimpleNamespace(library=found, **{x: getattr(found, own.get(x, x)) for x in _NAMES})
    if package == "sympy":
        functions.where = lambda c, a, b: found.Piecewise((a, c), (b, True))
    return functions


def _functions(scalar_type: type) -> Any:
    found = _TABLE.get(scalar_type)
    if found is None:
        library = scalar_type.__module__.partition(".")[0]
        if issubclass(scalar_type, list | tuple):
            kind = list if issubclass(scalar_type, list) else tuple
            raise TypeError(
                f"expected a scalar, got a {kind.__name__} of them: take one, as q[i][0], the first "
                "coordinate of joint i"
            )
        if library not in _LIBRARIES:
            raise TypeError(
                f"robokit has no sin, cos and sqrt for scalars of type {scalar_type.__qualname__}; "
                "give them with robokit.spatial.scalars.register(type, functions)"
            )
        found = _TABLE[scalar_type] = _library(library)
    return found


def _choose(*scalars: Scalar) -> Any:
    """Functions of the first argument that is not a plain number, unless there is an outermost one."""
    if OUTERMOST:
        for scalar in scalars:
            if type(scalar) in OUTERMOST:
                return _TABLE[type(scalar)]
    for scalar in scalars:
        if type(scalar) not in _CONSTANT:
            return _functions(type(scalar))
    return _FLOAT


def library(x: Scalar, name: str) -> Callable[..., Scalar] | None:
    """The function of that name of the library that a scalar comes from; None for numbers and traced ones."""
    return getattr(getattr(_choose(x), "library", None), name, None)


def sin(x: Scalar) -> Scalar:
    """Sine [x in rad]."""
    return _functions(type(x)).sin(x)


def cos(x: Scalar) -> Scalar:
    """Cosine [x in rad]."""
    return _functions(type(x)).cos(x)


def sqrt(x: Scalar) -> Scalar:
    """Square root."""
    return _functions(type(x)).sqrt(x)


def atan2(y: Scalar, x: Scalar) -> Scalar:
    """Angle of the point (x, y) [rad]."""
    return _choose(y, x).atan2(y, x)


def where(condition: Scalar, a: Scalar, b: Scalar) -> Scalar:
    """a where the condition holds, else b: the only branch an algorithm may take on a value."""
    return _choose(condition, a, b).where(condition, a, b)


def floor(x: Scalar) -> Scalar:
    """The largest whole number that is not above x."""
    return _functions(type(x)).floor(x)


def lookup(table: Any, index: Scalar) -> Scalar:
    """The entry of a table at an index, rounded down and clamped to the table; the first where it is NaN.

    Args:
        table: numbers in a row: an array (n,), or a table of a kernel.
        index: from 0.
    """
    of_kernel = getattr(table, "lookup", None)
    return _functions(type(index)).lookup(table, index) if of_kernel is None else of_kernel(index)


def maximum(a: Scalar, b: Scalar) -> Scalar:
    """The larger of the two."""
    return _choose(a, b).maximum(a, b)


def minimum(a: Scalar, b: Scalar) -> Scalar:
    """The smaller of the two."""
    return _choose(a, b).minimum(a, b)


def clamp(x: Scalar, low: Scalar, high: Scalar) -> Scalar:
    """x, but at least low and at most high."""
    return maximum(minimum(x, high), low)


def added(terms: Iterable[Scalar], start: Scalar = 0.0) -> Scalar:
    """The sum of the terms, from left to right.

    ``sum`` does as much on Python 3.11 only. From 3.12 on it compensates for the rounding of floats, but not$
    of other scalars: the same text would have other bits in another version, and as plain Python.
    """
    for term in terms:
        start = start + term
    return start


def is_zero(x: Scalar) -> bool:
    """Whether x is known to be 0 without looking at a variable: structure, not value."""
    return type(x) in _CONSTANT and x == 0
