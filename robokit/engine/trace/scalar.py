"""The tracer's scalars: they record operations instead of computing them.

Constants stay plain Python floats, and an operation on two floats never reaches this file, so folding is
what Python does anyway; here only the mixed cases are simplified: x*0 = 0, x*1 = x, x+0 = x, x-x = 0 and
their like. x*0 = 0 holds for finite x, which is all that a kernel lets in.

Sums and products are stored with the smaller node first and without signs (see graph.py), so a*b, b*a and
(-a)*(-b) are one node.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Collection
from types import SimpleNamespace
from typing import Any, NoReturn

import numpy as np
from numpy import ndarray

from robokit.engine.trace import ops
from robokit.engine.trace.graph import Graph
from robokit.spatial import elementary, scalars
from robokit.spatial import scalars as generic
from robokit.spatial.scalars import holds, register

# -- What NumPy's functions do with traced scalars, alone or in arrays of objects -------------------------
#
# ``np.sin(x)`` comes here by NumPy's protocol for other classes; ``np.sin(np.array([x, y]))`` looks for a
# method of each entry with the function's name (:data:`METHODS`).

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

NUMPY_FUNCTIONS: dict[str, Callable[..., Any]] = METHODS | {
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

    Raises TypeError: it is none of :data:`FUNCTIONS`.
    """
    operation = NUMPY_FUNCTIONS.get(function.__name__)
    if operation is None or method != "__call__" or options:
        what = function.__name__ if method == "__call__" else f"{function.__name__}.{method}"
        raise TypeError(
            f"np.{what} takes no scalars that are known only later: use the functions of "
            "robokit.spatial.scalars and robokit.spatial.elementary"
        )
    if any(isinstance(x, np.ndarray) and x.ndim for x in inputs):
        return scalars.of_each(operation, *inputs)
    return operation(*map(scalars.unboxed, inputs))


NO_BRANCH = (
    "no branch on a scalar's value, which is known only later: use where(condition, a, b), maximum and "
    "minimum of robokit.spatial.scalars, &, | and ~ instead of and, or and not, an array of [x > 0.0 for x "
    "in v] instead of v > 0.0 for an array v, and for branches and loops cond and while_loop of "
    "robokit.spatial.control_flow"
)
"""What is said where Python asks whether a scalar or a comparison is true."""

KEPT = (
    "this value was computed while another function, or this one for another robot or kernel, was recorded, "
    "and means nothing here: a function must not keep what it computes in a global, a cache or a default "
    "argument, but computes it anew from its arguments"
)
"""What is said where values of two recordings meet."""

DEFERS: set[type] = {ndarray}  # types that know themselves what to do with a scalar

_new = object.__new__  # without ``__init__``, which takes as long as all else that an operation needs


class Number:
    """Operators of a recorded number that follow from addition, multiplication and division."""

    __slots__ = ()
    __array_ufunc__ = of_numpy
    __hash__ = None  # type: ignore[assignment]  # == records a comparison, so no hash can agree with it

    # Types that know themselves what to do with such a number: as its power, and as what it is divided by.
    leaves_powers: Collection[type] = ()
    leaves_division: Collection[type] = ()

    def __pos__(self) -> Any:
        return self

    def __pow__(self, power: Any) -> Any:
        return NotImplemented if power.__class__ in self.leaves_powers else elementary.power(self, power)

    def __rpow__(self, base: Any) -> Any:
        return elementary.power(base, self)

    def __floordiv__(self: Any, other: Any) -> Any:
        return NotImplemented if other.__class__ in self.leaves_division else scalars.floor(self / other)

    def __rfloordiv__(self: Any, other: Any) -> Any:
        return scalars.floor(other / self)

    def __mod__(self: Any, other: Any) -> Any:
        return NotImplemented if other.__class__ in self.leaves_division else self - other * (self // other)

    def __rmod__(self: Any, other: Any) -> Any:
        return other - self * (other // self)

    def __bool__(self) -> NoReturn:
        raise TypeError(NO_BRANCH)


for _name, _method in METHODS.items():
    setattr(Number, _name, _method)


class Scalar(Number):
    """A number known only when the kernel runs: a graph, and a signed reference to one of its nodes."""

    __slots__ = ("graph", "ref")
    __hash__ = None  # type: ignore[assignment]
    leaves_powers = leaves_division = DEFERS

    def __init__(self, graph: Graph, ref: int) -> None:
        self.graph, self.ref = graph, ref

    def __repr__(self) -> str:
        return f"Scalar({'-' if self.ref < 0 else ''}#{abs(self.ref)})"

    def __format__(self, how: str) -> str:
        return repr(self)  # there are no digits to show

    def __add__(self, other: Any) -> Any:
        graph = self.graph
        if other.__class__ is Scalar:
            if other.graph is not graph:
                raise TypeError(KEPT)
            return _sum(graph, self.ref, other.ref)
        if other.__class__ is not float:
            if other.__class__ in DEFERS:
                return NotImplemented
            other = float(other)
        return self if other == 0.0 else _sum(graph, self.ref, graph.constant(other))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        graph = self.graph
        if other.__class__ is Scalar:
            if other.graph is not graph:
                raise TypeError(KEPT)
            return _sum(graph, self.ref, -other.ref)
        if other.__class__ is not float:
            if other.__class__ in DEFERS:
                return NotImplemented
            other = float(other)
        return self if other == 0.0 else _sum(graph, self.ref, graph.constant(-other))

    def __rsub__(self, other: Any) -> Any:
        return Scalar(self.graph, -self.ref) + other

    def __mul__(self, other: Any) -> Any:
        graph, a = self.graph, self.ref
        if other.__class__ is Scalar:
            if other.graph is not graph:
                raise TypeError(KEPT)
            b = other.ref
        else:
            if other.__class__ is not float:
                if other.__class__ in DEFERS:  # the array does it, entry by entry
                    return NotImplemented
                other = float(other)
            if other == 0.0:
                return 0.0
            if other == 1.0:
                return self
            if other == -1.0:
                return Scalar(graph, -a)
            b = graph.constant(other)
        sign = 1
        if a < 0:
            a, sign = -a, -1
        if b < 0:
            b, sign = -b, -sign
        node = (ops.MUL, a, b) if a < b else (ops.MUL, b, a)
        number = graph.add(node)
        found = _new(Scalar)
        found.graph, found.ref = graph, number if sign > 0 else -number
        return found

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        if other.__class__ is Scalar:
            return _quotient(self.graph, self.ref, reference(self.graph, other))
        if other.__class__ in DEFERS:
            return NotImplemented
        other = float(other)
        if self.graph.exact and math.frexp(other)[0] not in (0.5, -0.5):
            return _quotient(self.graph, self.ref, self.graph.constant(other))
        # One rounding more than a division by a constant, at a fifth of its cost.
        return self * (1.0 / other)

    def __rtruediv__(self, other: Any) -> Any:
        other = float(other)
        return 0.0 if other == 0.0 else _quotient(self.graph, self.graph.constant(other), self.ref)

    def __neg__(self) -> Scalar:
        found = _new(Scalar)
        found.graph, found.ref = self.graph, -self.ref
        return found

    def __abs__(self) -> Scalar:
        return _function(ops.ABS, self)

    def __floor__(self) -> Scalar:
        return floor(self)

    def __lt__(self, other: Any) -> Truth:
        return NotImplemented if other.__class__ in DEFERS else _compare(ops.LT, self, other)

    def __le__(self, other: Any) -> Truth:
        return NotImplemented if other.__class__ in DEFERS else _compare(ops.LE, self, other)

    def __gt__(self, other: Any) -> Truth:
        return NotImplemented if other.__class__ in DEFERS else _compare(ops.LT, other, self)

    def __ge__(self, other: Any) -> Truth:
        return NotImplemented if other.__class__ in DEFERS else _compare(ops.LE, other, self)

    def __eq__(self, other: object) -> Truth:  # type: ignore[override]
        return NotImplemented if other.__class__ in DEFERS else _compare(ops.EQ, self, other)

    def __ne__(self, other: object) -> Truth:  # type: ignore[override]
        return NotImplemented if other.__class__ in DEFERS else ~_compare(ops.EQ, self, other)

    def __float__(self) -> NoReturn:
        raise TypeError(
            "a traced scalar has no value yet: use the functions of "
            "robokit.spatial.scalars and robokit.spatial.elementary"
        )

    def __int__(self) -> NoReturn:
        raise TypeError(
            "a traced scalar has no value yet: floor(x) of robokit.spatial.scalars rounds down, and in a "
            "kernel with loops whole(x) of robokit.spatial.control_flow is an index and a count of for_range"
        )

    __index__ = __int__

    def __round__(self, digits: int | None = None) -> NoReturn:
        float(self)
        raise AssertionError


class Truth:
    """Outcome of a comparison, known only when the kernel runs; made for where()."""

    __slots__ = ("graph", "number")

    def __init__(self, graph: Graph, number: int) -> None:
        self.graph, self.number = graph, number

    def __repr__(self) -> str:
        return "a comparison, which where(condition, 1.0, 0.0) makes a number"

    def __and__(self, other: Truth | bool) -> Truth | bool:
        if not isinstance(other, Truth):
            return self if holds(other) else False
        return Truth(self.graph, self.graph.record(ops.AND, self.number, truth_of(self.graph, other)))

    def __or__(self, other: Truth | bool) -> Truth | bool:
        if not isinstance(other, Truth):
            return True if holds(other) else self
        return Truth(self.graph, self.graph.record(ops.OR, self.number, truth_of(self.graph, other)))

    __rand__, __ror__ = __and__, __or__

    def __invert__(self) -> Truth:
        return Truth(self.graph, self.graph.record(ops.NOT, self.number))

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, (Truth, bool)):
            return NotImplemented
        if isinstance(other, bool):
            return self if other else ~self
        both: Any = self & other
        return both | ~(self | other)  # type: ignore[operator]

    def __ne__(self, other: object) -> Any:
        same = self.__eq__(other)
        return same if same is NotImplemented else ~same

    def __xor__(self, other: Truth | bool) -> Any:
        return self != other

    __rxor__ = __xor__
    __hash__ = object.__hash__

    def __bool__(self) -> NoReturn:
        raise TypeError(NO_BRANCH)

    def __add__(self, other: Any = None) -> NoReturn:
        raise TypeError("a comparison is no number: where(condition, 1.0, 0.0) makes one of it")

    __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __neg__ = __add__
    __float__ = __add__


def _sum(graph: Graph, a: int, b: int) -> Any:
    """Sum of signed references; one node for a+b, b+a and their negatives."""
    if a == -b:
        return 0.0
    if (a > 0) == (b > 0):
        sign = 1
        if a < 0:
            a, b, sign = -a, -b, -1
        node = (ops.ADD, a, b) if a < b else (ops.ADD, b, a)
    else:
        if a < 0:
            a, b = b, -a
        else:
            b = -b
        node, sign = ((ops.SUB, a, b), 1) if a < b else ((ops.SUB, b, a), -1)
    number = graph.add(node)
    found = _new(Scalar)
    found.graph, found.ref = graph, number if sign > 0 else -number
    return found


def _quotient(graph: Graph, a: int, b: int) -> Any:
    if a == b:
        return 1.0
    if a == -b:
        return -1.0
    number = graph.record(ops.DIV, abs(a), abs(b))
    return Scalar(graph, number if (a < 0) == (b < 0) else -number)


def reference(graph: Graph, x: Any) -> int:
    """Signed reference to a traced or plain number. Raises TypeError: it is of another graph."""
    if type(x) is not Scalar:
        return graph.constant(float(x))
    if x.graph is not graph:
        raise TypeError(KEPT)
    return x.ref


def node_of(graph: Graph, x: Any) -> int:
    """Node that holds a traced or plain number as it is."""
    return graph.plain(reference(graph, x))


def truth_of(graph: Graph, x: Truth) -> int:
    """Node of a comparison. Raises TypeError: it is of another graph."""
    if x.graph is not graph:
        raise TypeError(KEPT)
    return x.number


def _compare(opcode: int, a: Any, b: Any) -> Truth:
    graph = a.graph if type(a) is Scalar else b.graph
    return Truth(graph, graph.record(opcode, node_of(graph, a), node_of(graph, b)))


def _function(opcode: int, x: Scalar) -> Scalar:
    """A function of one scalar; where it is odd or even, the sign stays outside."""
    parity = ops.OPERATIONS[opcode].parity
    if not parity:
        return Scalar(x.graph, x.graph.record(opcode, x.graph.plain(x.ref)))
    number = x.graph.record(opcode, abs(x.ref))
    return Scalar(x.graph, parity * number if x.ref < 0 else number)


def sqrt(x: Scalar) -> Scalar:
    """Square root of a traced scalar; NaN below 0."""
    return _function(ops.SQRT, x)


def sin(x: Scalar) -> Scalar:
    """Sine [x in rad]."""
    return _sine_and_cosine(x)[0]


def cos(x: Scalar) -> Scalar:
    """Cosine [x in rad]."""
    return _sine_and_cosine(x)[1]


def _sine_and_cosine(x: Scalar) -> tuple[Scalar, Scalar]:
    """Both are recorded, neighbours: they share one range reduction, and an unused one is dropped."""
    return _function(ops.SIN, x), _function(ops.COS, x)


def where(condition: Any, a: Any, b: Any, opcode: int = ops.SELECT) -> Any:
    """The first value where the condition holds, else the second; both are computed."""
    if not isinstance(condition, Truth):
        return a if holds(condition) else b
    if a.__class__ in generic.OUTERMOST or b.__class__ in generic.OUTERMOST:
        return generic.where(condition, a, b)
    graph = condition.graph
    first, second = reference(graph, a), reference(graph, b)
    if first == second:
        return a
    if first < 0 and second < 0:
        return Scalar(graph, -graph.record(opcode, condition.number, -first, -second))
    if opcode == ops.GUARD and first < 0 and graph.nodes[second][0] == ops.CONST:  # fallbacks are often 0
        return Scalar(graph, -graph.record(opcode, condition.number, -first, graph.plain(-second)))
    return Scalar(graph, graph.record(opcode, condition.number, graph.plain(first), graph.plain(second)))


def floor(x: Scalar) -> Scalar:
    """The largest whole number that is not above x."""
    return _function(ops.FLOOR, x)


FUNCTIONS = SimpleNamespace(sin=sin, cos=cos, sqrt=sqrt, floor=floor, where=where, atan2=elementary.atan2)

for _type in (Scalar, Truth):
    register(_type, FUNCTIONS)
