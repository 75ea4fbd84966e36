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
from numpy import ndarray

# Sine and cosine in additions and multiplications: the same bits on every machine
# --------------------------------------------------------------------------------
#
# The C library's functions differ from release to release and from processor to processor, NumPy's besides
# from one place of an array to another. This is the computation that the engine writes as machine code
# (emit/ir.py says how it works and how exact it is), without fused multiply-adds, for Python's floats and
# NumPy's arrays. Its numbers are here for both.
#
# Of angles beyond 2^30 rad the functions of the C library and of NumPy are taken: kernels refuse them.

LIMIT = 2.0**30  # largest angle [rad]

MAGIC = 1.5 * 2.0**52
TWO_OVER_PI = 0.6366197723675814
Way = tuple[float, float, tuple[float, ...]]  # largest angle, the number that rounds, and the parts of pi/2

FAR: Way = (LIMIT, MAGIC, (1.570796251296997, 7.549789415861596e-08, 5.390302858158119e-15))
NEAR: Way = (2.0**20, MAGIC, (1.5707963267341256, 6.077100506506192e-11))
NEAR_FLOAT32: Way = (8192.0, 1.5 * 2.0**23, (1.5703125, 0.0004837512969970703, 7.549790126404332e-08))

SIN = (
    -0.16666666666666632,
    0.008333333333322413,
    -0.00019841269829807737,
    2.7557313691900135e-06,
    -2.505075811311583e-08,
    1.5896795552841927e-10,
)
COS = (
    0.0416666666666666,
    -0.0013888888888874125,
    2.4801587289482242e-05,
    -2.755731435234916e-07,
    2.087572327532008e-09,
    -1.135964790296927e-11,
)
SIN_FLOAT32 = (-0.16666654936659347, 0.008332177687744378, -0.00019517234893886887)
COS_FLOAT32 = (0.04166664685483267, -0.0013887366920632739, 2.4438380580700725e-05)


def sine_and_cosine(x: float) -> tuple[float, float]:
    """Sine and cosine of one angle [rad]. Raises ValueError: x is infinite."""
    if x == 0.0:  # most angles in descriptions are 0; the result below would be the same
        return 0.0, 1.0
    size = abs(x)
    if not size <= LIMIT:
        return math.sin(x), math.cos(x)
    _, shift, parts = NEAR if size <= NEAR[0] else FAR
    k = (shift + x * TWO_OVER_PI) - shift
    r = x
    for part in parts:
        r = r - k * part
    r2 = r * r
    r4 = r2 * r2
    a, b, c, d, e, f = SIN
    s = r + (r * r2) * ((a + r2 * b) + r4 * ((c + r2 * d) + r4 * (e + r2 * f)))
    a, b, c, d, e, f = COS
    co = (1.0 - r2 * 0.5) + r4 * ((a + r2 * b) + r4 * ((c + r2 * d) + r4 * (e + r2 * f)))
    quadrant = int(k) & 3
    if quadrant == 0:
        return s, co
    if quadrant == 1:
        return co, -s
    if quadrant == 2:
        return -s, -co
    return -co, s


def sines_and_cosines(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sines and cosines of an array, in its own precision, float64 or float32."""
    short = x.dtype == np.float32
    if not short and x.dtype != np.float64:
        x = np.asarray(x, float)
    size = np.abs(x)
    largest, shift, parts = NEAR_FLOAT32 if short else NEAR
    r, k = _reduced(x, shift, parts)
    if not (size <= largest).all():
        with np.errstate(all="ignore"):
            far, far_k = _reduced(x.astype(np.float64), FAR[1], FAR[2])
            near = size <= largest
            r, k = np.where(near, r, far.astype(x.dtype)), np.where(near, k, far_k)
    r2 = r * r
    r4 = r2 * r2
    sine = r + (r * r2) * _polynomial(SIN_FLOAT32 if short else SIN, r2, r4)
    cosine = (1.0 - r2 * 0.5) + r4 * _polynomial(COS_FLOAT32 if short else COS, r2, r4)
    with np.errstate(all="ignore"):
        quadrant = np.where(size <= LIMIT, k, 0.0).astype(np.int64) & 3
    odd = (quadrant & 1).astype(bool)
    s, c = np.where(odd, cosine, sine), np.where(odd, sine, cosine)
    s, c = np.where(quadrant >= 2, -s, s), np.where((quadrant == 1) | (quadrant == 2), -c, c)
    beyond = ~(size <= LIMIT)
    if beyond.any():
        with np.errstate(all="ignore"):
            s, c = np.where(beyond, np.sin(x), s), np.where(beyond, np.cos(x), c)
    return s, c


def _reduced(x: np.ndarray, shift: float, parts: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    """The remainder of x after whole quarter turns, and their number."""
    k = (shift + x * TWO_OVER_PI) - shift
    for part in parts:
        x = x - k * part
    return x, k


def _polynomial(c: Sequence[float], r2: np.ndarray, r4: np.ndarray) -> np.ndarray:
    """A polynomial, summed in the order of emit/ir.py."""
    pairs = [c[j] + r2 * c[j + 1] for j in range(0, len(c) - 1, 2)]
    total = pairs.pop() if len(c) % 2 == 0 else c[-1]
    while pairs:
        total = pairs.pop() + r4 * total
    return np.asarray(total)


Scalar = Any  # anything with + - * / and the functions below

Item = TypeVar("Item")


def holds(condition: Any) -> bool:
    """Whether a known condition holds; in Python ``~True`` is -2, which counts as false here."""
    return bool(condition) and condition != -2


def _pick(condition: Any, a: Scalar, b: Scalar) -> Scalar:
    return a if holds(condition) else b


def of_each(function: Callable[..., Scalar], *numbers: Any) -> Any:
    """What a function gives for the entries of arrays of objects; of arrays without axes a scalar."""
    with np.errstate(all="ignore"):  # as Python's numbers are: they warn of nothing
        return np.frompyfunc(function, len(numbers), 1)(*map(_boxed, numbers))


def _boxed(x: Any) -> np.ndarray:
    """As an array of objects: NumPy would come back with anything else."""
    if isinstance(x, np.ndarray):
        return x.astype(object)
    box = np.empty((), object)
    box[()] = unboxed(x)
    return box


def unboxed(x: Any) -> Any:
    """What is in a number of NumPy's, or in an array without axes; else x itself."""
    if not isinstance(x, np.generic | np.ndarray) or x.ndim:
        return x
    return float(x) if x.dtype.kind == "f" else x.item()  # .item() leaves a long double as it is


def _by_entry(function: Callable[..., Scalar], of_columns: Callable[..., Any]) -> Callable[..., Any]:
    """A function of NumPy that takes arrays of scalars, too."""

    def of(*numbers: Any) -> Any:
        objects = any(np.asarray(x).dtype == object for x in numbers)
        return of_each(function, *numbers) if objects else of_columns(*numbers)

    return of


_FLOAT = SimpleNamespace(
    sin=lambda x: sine_and_cosine(x)[0],
    cos=lambda x: sine_and_cosine(x)[1],
    sqrt=math.sqrt,
    atan2=math.atan2,
    floor=lambda x: float(math.floor(x)),
    where=_pick,
    maximum=max,
    minimum=min,
)
_COMPLEX = SimpleNamespace(
    sin=cmath.sin,
    cos=cmath.cos,
    sqrt=cmath.sqrt,
    floor=lambda x: complex(math.floor(x.real)),
    where=_pick,
    library=cmath,
)
_NUMPY = SimpleNamespace(
    sin=_by_entry(lambda x: sin(x), lambda x: sines_and_cosines(x)[0]),
    cos=_by_entry(lambda x: cos(x), lambda x: sines_and_cosines(x)[1]),
    sqrt=_by_entry(lambda x: sqrt(x), np.sqrt),
    atan2=_by_entry(lambda y, x: atan2(y, x), np.arctan2),
    floor=_by_entry(lambda x: floor(x), np.floor),
    where=_by_entry(lambda condition, a, b: where(condition, a, b), np.where),
    maximum=_by_entry(lambda a, b: maximum(a, b), np.maximum),
    minimum=_by_entry(lambda a, b: minimum(a, b), np.minimum),
)

_WHOLE, _REAL = ({np.dtype(x).type for x in np.typecodes[kind]} for kind in ("AllInteger", "Float"))
"""Types of NumPy's whole and real numbers."""

_TABLE: dict[type, Any] = dict.fromkeys(_WHOLE, _FLOAT) | dict.fromkeys(_REAL, _NUMPY)
_TABLE |= {
    float: _FLOAT,
    int: _FLOAT,
    bool: _FLOAT,
    np.bool_: _NUMPY,
    np.float64: _FLOAT,
    complex: _COMPLEX,
    np.complex128: _COMPLEX,
    np.ndarray: _NUMPY,
}

_CONSTANT = frozenset({float, int, bool, np.bool_, np.float64, *_WHOLE})


OUTERMOST: set[type] = set()
"""Types that hold scalars of other types: where several types meet, theirs are the functions."""


def register(scalar_type: type, functions: Any, outermost: bool = False) -> None:
    """Give a scalar type its functions.

    ``scalar_type``: the type of the scalars; ``functions``: an object with sin, cos, sqrt, atan2, floor,
    where (those that exist), and maximum and minimum if these are no choices by ``where``; ``outermost``:
    whether they go before those of other types.
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
    """Functions of the first argument that is not a plain number, unless there is an outermost one.

    Of arrays beside scalars of robokit's, which know of none, NumPy's functions.
    """
    found: Any = _FLOAT
    for scalar in scalars:
        kind = type(scalar)
        if kind not in _CONSTANT:
            if kind in OUTERMOST:
                return _TABLE[kind]
            if found is _FLOAT or (kind is ndarray and not hasattr(found, "library")):
                found = _functions(kind)
    return found


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


def maximum(a: Scalar, b: Scalar) -> Scalar:
    """The larger of the two."""
    own = getattr(_choose(a, b), "maximum", None)
    return where(a < b, b, a) if own is None else own(a, b)


def minimum(a: Scalar, b: Scalar) -> Scalar:
    """The smaller of the two."""
    own = getattr(_choose(a, b), "minimum", None)
    return where(b < a, b, a) if own is None else own(a, b)


def clamp(x: Scalar, low: Scalar, high: Scalar) -> Scalar:
    """x, but at least low and at most high."""
    return maximum(minimum(x, high), low)


def added(terms: Iterable[Scalar], start: Scalar = 0.0) -> Scalar:
    """The sum of the terms, from left to right.

    ``sum`` does as much on Python 3.11 only. From 3.12 on it compensates for the rounding of floats, but not
    of other scalars: the same function would have other bits in another version, and as plain Python.
    """
    for term in terms:
        start = start + term
    return start


def is_zero(x: Scalar) -> bool:
    """Whether x is known to be 0 without looking at a variable: structure, not value."""
    return type(x) in _CONSTANT and x == 0
