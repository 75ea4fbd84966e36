"""Forward mode through loops, conditions, calls and arrays: dual numbers, one more kind of generic scalar.

A dual number is a value with its derivatives along some directions. Over the words of control_flow it is
carried as a tuple of them, and an array of such numbers is an array with an array of derivatives for each
direction. So the derivative of a function is a function again: it runs in plain Python, is recorded and
compiled by the recorder of loops, and is differentiated in turn. Whole numbers and outcomes of comparisons
have no derivatives.

Every derivation has a *level*; a number of an inner one is a constant for the outer ones, and the other way
round, so that derivatives of derivatives do not mix.

At kinks and jumps the derivative is the one of straight lines (passes/derivative.py): that of the branch
which is taken; that of ``floor`` is 0.

Source: A. Griewank, A. Walther, Evaluating Derivatives, SIAM 2008, section 3.1; on the levels J. Siskind,
B. Pearlmutter, Nesting forward-mode AD in a functional framework, 2008; on solved equations M. Blondel and
others, Efficient and modular implicit differentiation, 2022.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np

from robokit.engine.loops.record import Integer, identity
from robokit.engine.signature import FlatFunction
from robokit.engine.trace import scalar
from robokit.engine.trace.scalar import Number, Truth
from robokit.spatial import control_flow, elementary, linear
from robokit.spatial import scalars as generic
from robokit.spatial.control_flow import for_range, like, zeros
from robokit.spatial.scalars import where

_levels = itertools.count(1)


class Dual(Number):
    """A number and its derivatives along some directions.

    ``level``: of the derivation; an inner one has a larger number; ``value``: any scalar; ``tangents``: the
    derivative along each direction, scalars.
    """

    __slots__ = ("level", "tangents", "value")
    __hash__ = None  # type: ignore[assignment]
    leaves_powers, leaves_division = (np.ndarray, Integer), (np.ndarray,)

    def __init__(self, level: int, value: Any, tangents: Sequence[Any]) -> None:
        self.level, self.value, self.tangents = level, value, tuple(tangents)

    def __repr__(self) -> str:
        return f"Dual({self.value!r}, {', '.join(map(repr, self.tangents))})"

    def __add__(self, other: Any) -> Any:
        if other.__class__ is np.ndarray:
            return NotImplemented
        level, a, da, b, db = _aligned(self, other)
        if da is None or db is None:
            return Dual(level, a + b, da or db)
        return Dual(level, a + b, [x + y for x, y in zip(da, db, strict=True)])

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return NotImplemented if other.__class__ is np.ndarray else _difference(self, other)

    def __rsub__(self, other: Any) -> Any:
        return _difference(other, self)

    def __mul__(self, other: Any) -> Any:
        if other.__class__ is np.ndarray:
            return NotImplemented
        level, a, da, b, db = _aligned(self, other)
        return Dual(level, a * b, _combined(da, b, db, a))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return NotImplemented if other.__class__ is np.ndarray else _quotient(self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _quotient(other, self)

    def __neg__(self) -> Dual:
        return Dual(self.level, -self.value, [-d for d in self.tangents])

    def __abs__(self) -> Any:
        return self._function(abs(self.value), generic.where(self.value < 0.0, -1.0, 1.0))

    def __floor__(self) -> Any:
        return generic.floor(self.value)

    def __float__(self) -> float:
        raise TypeError(
            "a number with derivatives is no plain one: use the functions of robokit.spatial.scalars and "
            "robokit.spatial.elementary, and arrays that the function that is differentiated makes by zeros()"
        )

    __int__ = __float__  # type: ignore[assignment]

    def _function(self, value: Any, slope: Any) -> Dual:
        """A function of this number, whose derivative is known."""
        return Dual(self.level, value, [d * slope for d in self.tangents])


def _comparing(how: Callable[[Any, Any], Any]) -> Callable[[Dual, Any], Any]:
    return lambda a, b: how(a.value, _value_of(b))


for _how in (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne):
    setattr(Dual, f"__{_how.__name__}__", _comparing(_how))


def _aligned(a: Any, b: Any) -> tuple[int, Any, Any, Any, Any]:
    """The level of the inner one of two numbers, and there the value and derivatives of each."""
    level = max(x.level for x in (a, b) if x.__class__ is Dual)
    (a, da), (b, db) = (
        (x.value, x.tangents) if x.__class__ is Dual and x.level == level else (x, None) for x in (a, b)
    )
    return level, a, da, b, db


def _value_of(x: Any) -> Any:
    while x.__class__ is Dual:
        x = x.value
    return x


def _combined(da: Any, by_a: Any, db: Any, by_b: Any) -> list[Any]:
    """Derivatives of a function of two numbers, by its slopes."""
    if db is None:
        return [x * by_a for x in da]
    if da is None:
        return [y * by_b for y in db]
    return [x * by_a + y * by_b for x, y in zip(da, db, strict=True)]


def _difference(a: Any, b: Any) -> Dual:
    level, a, da, b, db = _aligned(a, b)
    if db is None:
        return Dual(level, a - b, da)
    if da is None:
        return Dual(level, a - b, [-y for y in db])
    return Dual(level, a - b, [x - y for x, y in zip(da, db, strict=True)])


def _quotient(a: Any, b: Any) -> Dual:
    level, a, da, b, db = _aligned(a, b)
    value = a / b
    one_over = value if isinstance(a, (int, float)) and a == 1 else 1.0 / b
    return Dual(level, value, _combined(da, one_over, db, None if db is None else -(one_over * value)))


def _sqrt(x: Dual) -> Dual:
    value = generic.sqrt(x.value)
    return x._function(value, 0.5 * linear.inverse(value))


def _where(condition: Any, a: Any, b: Any) -> Any:
    level, a, da, b, db = _aligned(a, b)
    count = len(da or db)
    pairs = zip(da or [0.0] * count, db or [0.0] * count, strict=True)
    return Dual(level, generic.where(condition, a, b), [generic.where(condition, x, y) for x, y in pairs])


FUNCTIONS = SimpleNamespace(
    sin=lambda x: x._function(generic.sin(x.value), generic.cos(x.value)),
    cos=lambda x: x._function(generic.cos(x.value), -generic.sin(x.value)),
    sqrt=_sqrt,
    floor=lambda x: generic.floor(x.value),
    where=_where,
    atan2=elementary.atan2,
)
generic.register(Dual, FUNCTIONS, outermost=True)
scalar.DEFERS.add(Dual)


class DualArray:
    """An array of dual numbers: one of values, and one of derivatives for each direction."""

    __slots__ = ("level", "tangents", "value")

    def __init__(self, level: int, value: Any, tangents: Sequence[Any]) -> None:
        self.level, self.value, self.tangents = level, value, tuple(tangents)

    @property
    def shape(self) -> tuple[Any, ...]:
        """Shape of the array."""
        return self.value.shape

    def reshape(self, *shape: Any) -> DualArray:
        """The same numbers in another shape."""
        tangents = [array.reshape(*shape) for array in self.tangents]
        return DualArray(self.level, self.value.reshape(*shape), tangents)

    def __len__(self) -> int:
        return len(self.value)

    def __iter__(self) -> Iterator[Any]:
        return (self[k] for k in range(len(self)))

    def __getitem__(self, index: Any) -> Any:
        value, tangents = self.value[index], [array[index] for array in self.tangents]
        if _is_array(value):
            return DualArray(self.level, value, tangents)
        return Dual(self.level, value, tangents) if tangents else value

    def __setitem__(self, index: Any, value: Any) -> None:
        own = value.__class__ is Dual and value.level == self.level
        self.value[index] = value.value if own and self.tangents else _still(value, self.level)
        for k, array in enumerate(self.tangents):
            array[index] = value.tangents[k] if own and value.tangents else 0.0


def _still(x: Any, level: int) -> Any:
    """Numbers and arrays without derivatives of a level."""
    if isinstance(x, (tuple, list)):
        return like(x, [_still(each, level) for each in x])
    if isinstance(x, np.ndarray) and any(each.__class__ is Dual for each in x.flat):
        return control_flow.shaped(x, [_still(each, level) for each in x.flat])
    if x.__class__ not in (Dual, DualArray):
        return x
    value = _still(x.value, level)
    return value if x.level == level else x.__class__(x.level, value, [_still(d, level) for d in x.tangents])


def _is_array(x: Any) -> bool:
    """Whether something is an array; one without dimensions that can be added, as in JAX, is a number."""
    number = getattr(x, "shape", None) == () and hasattr(x, "__add__")
    return hasattr(x, "__setitem__") and not isinstance(x, (list, tuple, dict)) and not number


def _has_array(x: Any) -> bool:
    """Whether there are arrays of a kernel in tuples and lists."""
    if isinstance(x, (tuple, list)):
        return any(map(_has_array, x))
    return _is_array(x) and not isinstance(x, np.ndarray)


def _is_real(x: Any) -> bool:
    """Whether something is a number that may have derivatives."""
    return not (x is None or isinstance(x, (bool, int, np.bool_, np.integer, Integer, Truth)) or _is_array(x))


@functools.cache
def _pairs(level: int, directions: int) -> tuple[type, type]:
    """Tuples that stand for dual numbers and for arrays of them, in what outer recorders see."""
    return type("Pair", (tuple,), {}), type("ArrayPair", (tuple,), {})


@contextmanager
def _recording(recorder: Any) -> Iterator[None]:
    before = getattr(control_flow.recorder, "now", None)
    control_flow.recorder.now = recorder
    try:
        yield
    finally:
        control_flow.recorder.now = before


class Derivation:
    """The words of control_flow over dual numbers of a level; what is around it is told pairs instead.

    ``level``: of its numbers. ``directions``: how many derivatives each has. With none, the level's numbers
    count as their values. ``outer``: what records around it, or None.
    """

    def __init__(self, directions: int, level: int | None = None) -> None:
        self.level = next(_levels) if level is None else level
        self.directions = directions
        self.outer = getattr(control_flow.recorder, "now", None)
        self.number: Any
        self.array: Any
        self.number, self.array = _pairs(self.level, directions)
        self.called: dict[Any, Callable[..., Any]] = {}

    def inside(self) -> Any:
        """A context in which the loops of this thread are recorded as dual numbers."""
        return _recording(self)

    def outside(self) -> Any:
        """A context in which the loops of this thread go to the enclosing recording."""
        return _recording(self.outer)

    # -- pairs --------------------------------------------------------------------------------------

    def lowered(self, x: Any, all_reals: bool = True) -> Any:
        """Numbers and arrays in the form of the enclosing recording: dual numbers become pairs.

        ``x``: numbers and arrays, and tuples and lists of them; ``all_reals``: whether real numbers without
        derivatives become pairs as well, so that numbers that get some later have the same form.
        """
        if isinstance(x, (tuple, list)):
            return like(x, [self.lowered(each, all_reals) for each in x])
        own = x.__class__ in (Dual, DualArray) and x.level == self.level
        if x.__class__ is DualArray and own:
            return self.array((x.value, *x.tangents))
        if not self.directions:
            return _still(x, self.level)
        if own:
            return self.number((x.value, *x.tangents))
        return self.number((x, *[0.0] * self.directions)) if all_reals and _is_real(x) else x

    def raised(self, x: Any) -> Any:
        """The dual numbers and arrays of a lowered form: the inverse of :meth:`lowered`."""
        if x.__class__ is self.number:
            return Dual(self.level, x[0], x[1:])
        if x.__class__ is self.array:
            return DualArray(self.level, x[0], x[1:])
        return like(x, [self.raised(each) for each in x]) if isinstance(x, (tuple, list)) else x

    def values(self, x: Any) -> Any:
        """The values of dual numbers and arrays, without derivatives."""
        return _still(x, self.level)

    # -- words --------------------------------------------------------------------------------------

    def for_range(self, count: Any, body: Callable[..., Any], start: tuple[Any, ...]) -> tuple[Any, ...]:
        """As :func:`robokit.spatial.control_flow.for_range`."""
        with self.outside():
            found = for_range(self.values(count), self._lowering(body), *self.lowered(start))
        return self.raised((found,) if len(start) == 1 else found)

    def while_loop(
        self, test: Callable[..., Any], body: Callable[..., Any], start: tuple[Any, ...], most: int | None
    ) -> tuple[Any, ...]:
        """As :func:`robokit.spatial.control_flow.while_loop`."""
        functions = self._lowering(test, all_reals=False), self._lowering(body)
        with self.outside():
            found = control_flow.while_loop(*functions, *self.lowered(start), most=most)
        return self.raised((found,) if len(start) == 1 else found)

    def cond(self, condition: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
        """As :func:`robokit.spatial.control_flow.cond`."""
        with self.outside():
            return self.raised(control_flow.cond(condition, *map(self._lowering, (then, otherwise))))

    def call(self, function: Any, arguments: tuple[Any, ...]) -> Any:
        """As :func:`robokit.spatial.control_flow.call`; of another kernel the function is differentiated."""
        if hasattr(function, "on_memory"):
            function, arguments = function.opened(*arguments)
        with self.outside():
            found = control_flow.call(self._of_pairs(function), *self.lowered(arguments, all_reals=False))
        return self.raised(found)

    def vmap(self, function: Callable[..., Any], columns: Sequence[tuple[Any, ...]]) -> list[Any]:
        """As :func:`robokit.spatial.control_flow.vmap`."""
        with self.outside():
            mapped = control_flow.vmap(self._of_pairs(function, all_reals=True))
            found = mapped(*([self.lowered(x) for x in row] for row in zip(*columns, strict=True)))
        return [self.raised(each) for each in found]

    def _lowering(self, function: Callable[..., Any], all_reals: bool = True) -> Callable[..., Any]:
        """A function of pairs that calls one of dual numbers."""

        def run(*arguments: Any) -> Any:
            with self.inside():
                return self.lowered(function(*self.raised(arguments)), all_reals)

        return run

    def _of_pairs(self, function: Callable[..., Any], all_reals: bool = False) -> Callable[..., Any]:
        """As :meth:`_lowering`, the same object for functions that do the same, whose code is then shared."""
        key = identity(function), all_reals
        return self.called.setdefault(key, self._lowering(function, all_reals))

    def zeros(self, shape: tuple[Any, ...], kind: str) -> Any:
        """As :func:`robokit.spatial.control_flow.zeros`."""
        with self.outside():
            value = zeros(*shape, kind=kind)
            if kind != "real":
                return value
            return DualArray(self.level, value, [zeros(*shape) for _ in range(self.directions)])

    def in_precision(self, double: float, single: float) -> Any:
        """As :func:`robokit.spatial.control_flow.in_precision`."""
        with self.outside():
            return control_flow.in_precision(double, single)

    def whole(self, x: Any) -> Any:
        """As :func:`robokit.spatial.control_flow.whole`."""
        with self.outside():
            return control_flow.whole(self.values(x))

    # -- solved equations ---------------------------------------------------------------------------

    def solution(
        self, residual: Callable[..., Any], unknown: Any, parameters: tuple[Any, ...], solve: Any
    ) -> Any:
        """As :func:`robokit.spatial.control_flow.solution`."""
        around = self._frozen(residual), self.values(unknown), *self.values(parameters)
        with self.outside():
            found = control_flow.solution(*around, solve=solve and self._frozen(solve))
        if not self.directions:
            return found
        made = _Solution(self, residual, found, parameters, solve)
        if _is_array(unknown) and not isinstance(unknown, np.ndarray):
            return made.array(unknown)
        if _has_array(unknown):
            raise TypeError("solution: the unknown must be numbers, in tuples and lists, or one array")
        return made.numbers()

    def _frozen(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function for which numbers of this level are constants."""

        def still(*arguments: Any) -> Any:
            with Derivation(0, self.level).inside():
                return self.values(function(*arguments))

        return still


def differentiated(
    function: Callable[..., None],
    sizes: Sequence[Any],
    arrays: Mapping[str, Any],
    tangents: Mapping[str, Sequence[Any]],
    directions: int,
) -> None:
    """Run a function that writes to arrays, which writes derivatives then as well.

    Args:
        function: of sizes and arrays.
        sizes: whole numbers.
        arrays: by name.
        tangents: of those that have derivatives, one array for each direction.
        directions: how many.
    """
    words = Derivation(directions)
    arguments = [DualArray(words.level, x, tangents[k]) if k in tangents else x for k, x in arrays.items()]
    with words.inside():
        function(*sizes, *arguments)


def fill(array: Any, value: float) -> None:
    """Write a number to all entries of an array."""

    def part(k: Any) -> None:
        if len(array.shape) == 1:
            array[k] = value
        else:
            fill(array[k], value)

    for_range(array.shape[0], part)


def jvp(function: Callable[..., Any], values: Sequence[Any], *directions: Sequence[Any]) -> tuple[Any, ...]:
    """A function's value, and its derivative along each of some directions.

    ``function``: of numbers and arrays, as those that are recorded; ``values``: its arguments: numbers and
    arrays; ``directions``: for each direction a number or an array like each argument; None where it does not
    change. Returns the value, and for each direction what is like it: numbers, arrays, tuples and lists of
    them.
    """
    words = Derivation(len(directions))
    arguments = []
    for x, tangents in zip(values, zip(*directions, strict=True), strict=True):
        if all(d is None for d in tangents):
            arguments.append(x)
        elif _is_array(x):
            arguments.append(DualArray(words.level, x, tangents))
        else:
            arguments.append(Dual(words.level, x, [0.0 if d is None else d for d in tangents]))
    with words.inside():
        found = function(*arguments)
    return words.values(found), *(_tangents(words, found, k) for k in range(len(directions)))


def _tangents(words: Derivation, x: Any, k: int) -> Any:
    """The derivatives along a direction: 0 of what has none."""
    if isinstance(x, (tuple, list)):
        return like(x, [_tangents(words, each, k) for each in x])
    if isinstance(x, np.ndarray):
        return control_flow.shaped(x, [_tangents(words, each, k) for each in x.flat])
    if x.__class__ in (Dual, DualArray) and x.level == words.level:
        return x.tangents[k]
    if _is_array(x):
        raise TypeError("an array that is returned has no derivatives: make it by zeros() in the function")
    return 0.0


class _Solution:
    """The derivatives of numbers that solve an equation: -(dr/du)^-1 times those of the residual.

    ``words``: the derivation; ``unknown``: the numbers, or the array, without derivatives of the level.
    """

    def __init__(
        self, words: Derivation, residual: Any, unknown: Any, parameters: tuple[Any, ...], solve: Any
    ) -> None:
        self.words, self.residual, self.unknown, self.parameters = words, residual, unknown, parameters
        self.solve = solve and words._frozen(solve)

    def changes(self) -> Any:
        """The residual where only the parameters change."""
        with self.words.inside():
            return self.residual(self.unknown, *self.parameters)

    def along(self, unknown: Any, *directions: Any) -> tuple[Any, ...]:
        """The derivatives of the residual along directions of the unknown."""
        still = self.words.values(self.parameters)
        none = [None] * len(still)
        function = self.words._frozen(self.residual)
        return jvp(function, (unknown, *still), *((d, *none) for d in directions))[1:]

    def numbers(self) -> Any:
        """Of numbers, how many is known."""
        words, flat = self.words, control_flow.numbers
        unknown = flat(self.unknown)
        count, residuals = len(unknown), flat(self.changes())
        control_flow.check_residuals(len(residuals), count)
        rates = [[_tangents(words, r, d) for r in residuals] for d in range(words.directions)]
        if self.solve is None:
            units = [[float(i == j) for i in range(count)] for j in range(count)]
            with words.outside():
                columns = self._columns(unknown, units)
                factors = linear.lu([list(row) for row in zip(*columns, strict=True)])
                found = [linear.lu_solve(factors, [-r for r in rate]) for rate in rates]
        else:
            found = [self._solved(unknown, rate) for rate in rates]
        made = [Dual(words.level, u, [x[i] for x in found]) for i, u in enumerate(unknown)]
        return control_flow.shaped(self.unknown, made)

    def _columns(self, unknown: list[Any], directions: list[list[Any]]) -> list[list[Any]]:
        """Derivatives of the residuals along directions of the unknown numbers."""

        def function(*numbers: Any) -> list[Any]:
            still = self.words.values(self.parameters)
            shaped = control_flow.shaped(self.unknown, list(numbers))
            return control_flow.numbers(self.words._frozen(self.residual)(shaped, *still))

        return [list(each) for each in jvp(function, unknown, *directions)[1:]]

    def _solved(self, unknown: list[Any], rate: list[Any]) -> list[Any]:
        """The derivatives along a direction, by the solver that was given; they solve an equation, too."""
        words, flat = self.words, control_flow.numbers

        def linear(x: Any) -> list[Any]:
            return [a + b for a, b in zip(self._columns(unknown, [flat(x)])[0], rate, strict=True)]

        with words.outside():
            raw = self.solve(control_flow.shaped(self.unknown, [-r for r in rate]))
            return flat(control_flow.solution(linear, raw, solve=self.solve))

    def array(self, whole: Any) -> Any:
        """Of an array whose size is known at run time: it keeps its place, its derivatives are written."""
        words, value = self.words, self.unknown
        if len(value.shape) != 1:
            raise TypeError(f"solution: an unknown array has one dimension, this one {len(value.shape)}")
        n, changes = value.shape[0], self.changes()
        if not _is_array(changes):
            raise TypeError("solution: the residual of an array is an array, made by zeros()")
        if whole.__class__ is not DualArray or whole.level != words.level:
            with words.outside():
                whole = DualArray(words.level, value, [zeros(n) for _ in range(words.directions)])
        moving = changes.__class__ is DualArray and changes.level == words.level
        for d in range(words.directions):
            self._write(whole.tangents[d], changes.tangents[d] if moving else None, n)
        if not moving:
            return whole
        with words.outside():
            if self.solve is None:
                self._by_factors(whole.tangents, n)
            else:
                for tangent, rate in zip(whole.tangents, changes.tangents, strict=True):
                    self._by_solver(tangent, rate, n)
        return whole

    def _write(self, tangent: Any, rate: Any, n: Any) -> None:
        """The right-hand side."""
        with self.words.outside():
            for_range(n, lambda i: tangent.__setitem__(i, 0.0 if rate is None else -rate[i]))

    def _by_factors(self, tangents: Sequence[Any], n: Any) -> None:
        J, exchanges, unit = zeros(n, n), zeros(n, kind="integer"), zeros(n)

        def column(j: Any) -> None:
            unit[j] = 1.0
            (rates,) = self.along(self.unknown, unit)
            for_range(n, lambda i: J.__setitem__((i, j), rates[i]))
            unit[j] = 0.0

        for_range(n, column)
        linear.lu_in_place(J, exchanges)
        for tangent in tangents:
            linear.lu_solve_in_place(J, exchanges, tangent)

    def _by_solver(self, tangent: Any, rate: Any, n: Any) -> None:
        raw = self.solve(tangent)
        for_range(n, lambda i: tangent.__setitem__(i, raw[i]))

        def linear(x: Any) -> Any:
            (rates,) = self.along(self.unknown, x)
            found = zeros(n)
            for_range(n, lambda i: found.__setitem__(i, rates[i] + rate[i]))
            return found

        control_flow.solution(linear, tangent, solve=self.solve)


def jacobian_with_loops(
    function: FlatFunction, arguments: Sequence[Sequence[Any]], of: Sequence[int]
) -> list[list[Any]]:
    """The derivatives of all outputs with respect to some inputs.

    ``function``: one sequence of scalars for each input -> one flat sequence for each output; ``arguments``:
    of it; ``of``: numbers of the inputs. Returns for each output and each of these inputs the matrix (scalars
    of the output) x (scalars of the input), row by row.
    """
    units = [(k, j) for k in of for j in range(len(arguments[k]))]
    values, *columns = _along(function, arguments, [{unit: 1.0} for unit in units])
    found = []
    for output, value in enumerate(values):
        for k in of:
            own = [column[output] for column, unit in zip(columns, units, strict=True) if unit[0] == k]
            found.append([column[i] for i in range(len(value)) for column in own])
    return found


def jacobian_by_loop(
    function: FlatFunction, arguments: Sequence[Sequence[Any]], of: Sequence[int], sizes: Sequence[int]
) -> list[list[Any]]:
    """The same in a loop over the directions, whose code is that of one.

    ``function``, ``arguments``, ``of``: as in :func:`jacobian_with_loops`; ``sizes``: scalars of each output.
    """
    units = [(k, j) for k in of for j in range(len(arguments[k]))]
    count = len(units)
    columns = zeros(sum(sizes) * count)

    def turn(direction: Any) -> None:
        seed = {unit: where(direction == i, 1.0, 0.0) for i, unit in enumerate(units)}
        found = [x for row in _along(function, arguments, [seed])[1] for x in row]
        for i, x in enumerate(found):
            columns[i * count + direction] = 1.0 * x

    for_range(count, turn)
    found, begin = [], 0
    for size in sizes:
        for k in of:
            own = [i for i, unit in enumerate(units) if unit[0] == k]
            found.append([columns[(begin + i) * count + j] for i in range(size) for j in own])
        begin += size
    return found


def along_with_loops(
    function: FlatFunction, arguments: Sequence[Sequence[Any]], direction: Sequence[Sequence[Any]]
) -> list[list[Any]]:
    """The derivative of all outputs along a direction of the first inputs."""
    seed = {(k, j): d for k, row in enumerate(direction) for j, d in enumerate(row)}
    return _along(function, arguments, [seed])[1]


def _along(
    function: FlatFunction, arguments: Sequence[Sequence[Any]], seeds: Sequence[dict[tuple[int, int], Any]]
) -> list[list[list[Any]]]:
    """The outputs, and for each direction their derivatives."""
    moving = sorted({place for seed in seeds for place in seed})

    def of_moving(*numbers: Any) -> list[list[Any]]:
        known = dict(zip(moving, numbers, strict=True))
        rows = []
        for k, row in enumerate(arguments):
            still = not any(place[0] == k for place in moving)
            rows.append(row if still else [known.get((k, j), x) for j, x in enumerate(row)])
        return [list(row) for row in function(*rows)]

    values = [arguments[k][j] for k, j in moving]
    directions = [[seed.get(place) for place in moving] for seed in seeds]
    return list(jvp(of_moving, values, *directions))
