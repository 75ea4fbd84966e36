"""Loops, conditions and calls over numbers that may be known only later: JAX's words, with the same meaning.

    for_range(n, body, *start)          while_loop(test, body, *start, most=None)
    cond(condition, then, otherwise)    call(function, *arguments)
    vmap(function)(*sequences)          zeros(*shape)
    whole(x)                            solution(residual, unknown, *parameters)
    in_precision(double, single)

On plain numbers a loop is a loop of Python, and a debugger can step into it. While the engine records, what
is known then is unrolled or chosen as in Python, and what is not becomes part of the recorded program.

Scalars of NumPy are columns of a batch: a loop goes on until no row wants more, a branch runs where some row
needs it, and the rows that do not keep what they carry and what is theirs in memory. In JAX, counts and tests
that are traced are JAX's own loops. SymPy and CasADi have choices (``cond``) but no loops whose length is not
known.
"""

from __future__ import annotations

import importlib
import math
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from operator import is_
from types import CellType, FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from robokit.spatial import scalars

recorder = threading.local()
"""Its attribute ``now`` is what records in this thread: an object with the functions below.

``equations``, if set, is what notes solved equations of a straight line that will be differentiated;
``spoilt`` has what a :class:`Changed` has taken the place of: what holds it, the key, and what was there.
"""


ENDLESS = (
    "the function calls itself without end: what is known only later does not end a recursion, since both "
    "branches of cond are recorded; write a loop (while_loop)"
)
"""Told where Python's limit of recursion is reached while a function is recorded."""

OTHERWISE = (
    "%s does something else when it runs again: it reads what it has changed itself, such as an attribute, "
    "an entry, an iterator or a random number; while it is recorded it runs a few times, not once in each "
    "turn or call: %s"
)
"""Told where the second recording of what a user has written is not the first one."""

_rows = threading.local()
"""Its attribute ``on`` says which rows of NumPy's columns take part in what runs now, or under which recorded
condition it does; None for all."""

_closed = threading.local()
"""Its attribute ``depth`` is how many functions are around what runs now that must not write to memory made
before them, and ``error`` what is raised where they do."""


def for_range(count: Any, body: Callable[..., Any], *start: Any) -> Any:
    """What is carried after ``count`` turns of a loop.

    Args:
        count: of turns; below 1 there are none. A real number counts with its whole part, see :func:`whole`.
        body: called with the index, 0, 1, ..., and what is carried; returns what it carries on, in the same
            number, form and kind as it began: 0.0 is a real number, 0 a whole one. It may write to arrays.
        start: what is carried into the first turn: numbers, or tuples, lists and NumPy's arrays of them.

    Returns:
        one value where one is carried, else a tuple.
    """
    recording, count, start = getattr(recorder, "now", None), scalars.unboxed(count), _copied(start)
    if recording is not None:
        count = whole(count) if _is_real(count) else count
        return _one_or_all(recording.for_range(count, body, start))
    known = known_count(count)
    if known is None:
        turns = whole(count) if _of_jax(count) else count
        return _one_or_all(_foreign_loop(count, _Counted(turns, body), (0, *start), None)[1:])
    carried, most = start, known
    if isinstance(known, np.ndarray):
        most = int(known.max(initial=0))
    for k in range(most):
        with only(known > k if known is not most else None) as on:
            new = carried_on(body(k, *carried), start)
        carried = new if on is None else _rows_chosen(on, new, carried)
    return _one_or_all(carried)


def while_loop(
    test: Callable[..., Any], body: Callable[..., Any], *start: Any, most: int | None = None
) -> Any:
    """What is carried when a test no longer holds.

    Args:
        test: called with what is carried: whether there is another turn.
        body: as in :func:`for_range`, without an index.
        start: as in :func:`for_range`.
        most: turns at most, for loops that might not end otherwise.
    """
    recording, start = getattr(recorder, "now", None), _copied(start)
    if recording is not None:
        return _one_or_all(recording.while_loop(test, body, start, most))
    return _one_or_all(_while(_Loop(test, body), start, most))


def cond(condition: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
    """The value of one of two functions: of the first where the condition holds. The other one does not run.

    Args:
        condition: outcome of a comparison.
        then: called without arguments.
        otherwise: likewise; returns as many numbers in the same form.
    """
    recording, condition = getattr(recorder, "now", None), scalars.unboxed(condition)
    if isinstance(condition, int):
        return then() if scalars.holds(condition) else otherwise()
    if recording is not None:
        return recording.cond(condition, then, otherwise)
    check_truth(condition)
    if isinstance(condition, np.ndarray):
        return _cond_of_rows(condition, then, otherwise)
    known = known_truth(condition)
    if known is not None:
        return then() if known else otherwise()
    value, other = then(), otherwise()
    return chosen(condition, value, other, scalars.where)


def call(function: Callable[..., Any], *arguments: Any) -> Any:
    """``function(*arguments)``; a recorded program has the function's code once, however often it is called.

    Args:
        function: of numbers, arrays, and tuples and lists of them; it must not call itself. Two calls share
            code where the function and the objects that it closes over are the same, and its arguments are
            the same in number, form and kind. It does not run in Python for each of them: what else it
            reads, such as a global name, must not change in between, and memory (:func:`zeros`) is all that
            it may change. Or a compiled kernel (robokit.engine), which is called on its arrays, or on parts
            of arrays: those that it reads, then those that it writes.
        arguments: of the function, which gets lists and NumPy's arrays of numbers of its own. While it is
            recorded plain numbers among them are as unknown as the others, and are no limits of range().
    """
    recording = getattr(recorder, "now", None)
    if hasattr(function, "on_memory"):
        return recording.call(function, arguments) if recording else function.on_memory(*arguments)
    arguments = _copied(arguments)
    return recording.call(function, arguments) if recording else function(*arguments)


def vmap(function: Callable[..., Any]) -> Callable[..., list[Any]]:
    """A function of sequences: what a function gives for the first entries of all, the second...

    Machine code of one state may compute them in the lanes of a vector.

    Args:
        function: of numbers, and tuples and lists of them.
    """

    def mapped(*sequences: Sequence[Any]) -> list[Any]:
        if len({len(each) for each in sequences}) > 1:
            counts = ", ".join(str(len(each)) for each in sequences)
            raise ValueError(f"vmap: sequences of {counts} entries: they must be equally long")
        columns = list(map(_copied, zip(*sequences, strict=True)))
        recording = getattr(recorder, "now", None)
        if recording is None:
            return [function(*column) for column in columns]
        return recording.vmap(function, columns)

    return mapped


def zeros(*shape: Any, kind: str = "real") -> Any:
    """Memory of a state: an array of zeros, whose entries can be read and written.

    It is there until the loop's turn, the branch or the called function that it is made in is over.

    Args:
        shape: whole numbers.
        kind: of its entries, "real" or "integer".

    Raises:
        TypeError: a size is no whole number.
        ValueError: a size is below 0, there are 2^31 entries or more, or there is no such kind.
    """
    shape = tuple(map(scalars.unboxed, shape))
    for n in shape:
        if isinstance(n, float):
            raise TypeError(
                f"zeros: a size is a whole number, not {n!r}: whole(x) makes one of a real number"
            )
        if isinstance(n, int) and n < 0:
            raise ValueError(f"zeros: a size is below zero: {n}")
    if kind not in ("real", "integer"):
        raise ValueError(f'zeros: kind is "real" or "integer", not {kind!r}')
    recording = getattr(recorder, "now", None)
    if recording is not None:
        return recording.zeros(shape, kind)
    sizes = [int(np.max(n)) if isinstance(n, np.ndarray) else n for n in shape]  # of the rows, the largest
    if any(n < 0 for n in sizes):
        raise ValueError(f"zeros: a size is below 0: {', '.join(map(str, sizes))}")
    return Memory.of(sizes, kind)


def in_precision(double: float, single: float) -> Any:
    """A constant that depends on the numbers a recorded program computes with; on plain numbers the first.

    Args:
        double: its value in double precision.
        single: and in single precision; both of one sign.
    """
    recording = getattr(recorder, "now", None)
    return double if recording is None else recording.in_precision(double, single)


def solution(
    residual: Callable[..., Any], unknown: Any, *parameters: Any, solve: Callable[[Any], Any] | None = None
) -> Any:
    """The numbers that solve an equation, as they were found; their derivatives follow from the equation.

    They are found before, by iterations or otherwise, and nothing of that is differentiated. By the implicit
    function theorem the derivative along a direction of the parameters p is -(dr/du)^-1 (dr/dp) p', where r
    is the residual. It is as accurate as the solution, and not finite where dr/du is singular.

    Args:
        residual: called with the unknown and the parameters; returns as many numbers, which are 0 there. What
            else it uses counts as parameters, too. Of an array it returns an array that it makes by
            :func:`zeros`.
        unknown: numbers, tuples and lists of them; in loop kernels also an array (n,), which keeps its place.
        parameters: numbers, arrays, and tuples and lists of them.
        solve: gives the x of (dr/du) x = b for a b in the form of the unknown, for who has factors of that
            matrix already. Otherwise it is computed and factored where derivatives are asked for.

    Returns:
        the unknown.
    """
    now = getattr(recorder, "now", None)
    noted = getattr(recorder, "equations", None) if now is None else now
    return unknown if noted is None else noted.solution(residual, unknown, parameters, solve)


def whole(x: Any) -> Any:
    """The largest whole number that is not above x, for indices and counts.

    Raises:
        ValueError: x is NaN, or the whole number has more than 32 bits.
    """
    recording, x = getattr(recorder, "now", None), scalars.unboxed(x)
    if recording is not None and not isinstance(x, int | float):
        return recording.whole(x)
    if isinstance(x, np.ndarray):
        if not ((x >= -(2.0**31)) & (x < 2.0**31)).all():
            raise ValueError(f"whole: NaN, or beyond 32 bits, is no count and no index: {x}")
        return np.floor(x).astype(np.int64)
    if _of_jax(x):
        return scalars.floor(x).astype("int32")
    x = x.real if isinstance(x, complex) else x
    if not -(2.0**31) <= x < 2.0**31:
        raise ValueError(f"whole: NaN, or beyond 32 bits, is no count and no index: {x}")
    return math.floor(x)


class Memory(np.ndarray):
    """What :func:`zeros` gives on plain numbers: an array of objects, of which rows that are off keep theirs.

    A column of whole numbers as an index takes the entry of each row.
    """

    depth = 0

    @classmethod
    def of(cls, shape: Sequence[int], kind: str) -> Memory:
        """Zeros, "real" or "integer" ones."""
        found = np.empty(shape, object).view(cls)
        found.fill(0 if kind == "integer" else 0.0)
        found.depth = getattr(_closed, "depth", 0)
        return found

    def __array_finalize__(self, source: Any) -> None:
        self.depth = getattr(source, "depth", 0)

    def __getitem__(self, index: Any) -> Any:
        """An entry or a part."""
        columns = _columns(index)
        if columns is None:
            count_from_start(index)
            return super().__getitem__(index)
        found: Any = 0.0
        for one, rows in _one_by_one(index, columns):
            found = np.where(rows, super().__getitem__(one), found)
        return found

    def __setitem__(self, index: Any, value: Any) -> None:
        """Write an entry, or to a part."""
        if self.depth < getattr(_closed, "depth", 0):
            raise _closed.error
        count_from_start(index)
        columns, on = _columns(index), getattr(_rows, "on", None)
        places = [(index, on)]
        if columns is not None:
            found = _one_by_one(index, columns)
            places = [(one, rows if on is None else rows & on) for one, rows in found]
        for one, rows in places:
            before = super().__getitem__(one)
            if isinstance(before, Memory):
                raise IndexError("one element at a time: write a loop")
            super().__setitem__(one, value if rows is None else _kept(rows, value, before))


def count_from_start(index: Any) -> None:
    """Refuse a number below 0 as an index: one that is known only later would not count from the end.

    Raises IndexError: there is one; TypeError: there is a real number.
    """
    for i in index if isinstance(index, tuple) else (index,):
        if isinstance(i, float):
            raise TypeError(f"an index is a whole number, not {i}: whole(x) makes one of a real number")
        if isinstance(i, (int, np.integer)) and i < 0:
            raise IndexError(f"index out of range: {i} is below 0, and indices count from the start")


def _kept(on: Any, value: Any, before: Any) -> Any:
    """The value of an entry after some rows have written to it."""
    return (
        scalars.where(on, value, before)
        if isinstance(on, np.ndarray)
        else recorder.now.kept(on, value, before)
    )


def _columns(index: Any) -> list[np.ndarray] | None:
    """All indices as columns, if one of them is a column."""
    each = index if isinstance(index, tuple) else (index,)
    look = getattr(getattr(recorder, "now", None), "look", None)
    if look is not None:
        look(index)
    if not any(isinstance(i, np.ndarray) and i.ndim == 1 and i.dtype != object for i in each):
        return None
    return list(np.broadcast_arrays(*each))


def _one_by_one(index: Any, columns: list[np.ndarray]) -> Iterator[tuple[Any, np.ndarray]]:
    """Each entry that some row looks at, and which rows do."""
    for one in sorted(set(zip(*(c.tolist() for c in columns), strict=True))):
        rows = np.logical_and.reduce([c == i for c, i in zip(columns, one, strict=True)])
        yield (one if isinstance(index, tuple) else one[0]), rows


# -- what is carried ----------------------------------------------------------------------------------


def _copied(values: Any) -> Any:
    """Tuples, lists and NumPy's arrays of numbers as they are now: who changes them changes no others."""
    if isinstance(values, tuple | list):
        return like(values, list(map(_copied, values)))
    return values.copy() if isinstance(values, np.ndarray) and not isinstance(values, Memory) else values


def flat(values: Any) -> list[Any]:
    """The numbers of nested tuples and lists, in order."""
    if isinstance(values, tuple | list):
        return [x for each in values for x in flat(each)]
    return [values]


def like(pattern: Any, items: list[Any]) -> Any:
    """A tuple or list of the kind of another one."""
    return pattern._make(items) if hasattr(pattern, "_make") else type(pattern)(items)


def shaped_like(pattern: Any, numbers: Iterator[Any]) -> Any:
    """Numbers in the nested form of a pattern."""
    if isinstance(pattern, tuple | list):
        return like(pattern, [shaped_like(part, numbers) for part in pattern])
    return next(numbers)


def carried_on(returned: Any, start: tuple[Any, ...]) -> tuple[Any, ...]:
    """The values that a body returns, checked to be as many as it was given.

    Raises TypeError: it returned another number of them, or none.
    """
    found = () if returned is None else (returned,) if len(start) == 1 else returned
    if not isinstance(found, tuple | list) or len(flat(list(found))) != len(flat(list(start))):
        raise TypeError(
            f"the body of a loop carries {len(flat(list(start)))} numbers and returned "
            f"{'nothing' if returned is None else len(flat(returned))}: it must return what it carries on, "
            "in the form in which it began"
        )
    for old, new in zip(flat(list(start)), flat(list(found)), strict=True):
        if type(new) is not type(old) and {_kind(old), _kind(new)} == {"integer", "real"}:
            raise TypeError(
                f"the body of a loop carries a number that began as {old!r} and returned {new!r}: 0.0 is a "
                "real number and 0 a whole one, and it must stay what it was"
            )
    return tuple(found)


def chosen(condition: Any, a: Any, b: Any, where: Callable[[Any, Any, Any], Any]) -> Any:
    """The numbers of a where a condition holds, else those of b, in the form of a.

    Raises TypeError: they are not as many.
    """
    first, second = flat(() if a is None else a), flat(() if b is None else b)
    if len(first) != len(second):
        raise TypeError(
            f"the branches of cond return {len(first)} and {len(second)} numbers: they must return the same"
        )
    numbers = (x if x is y else where(condition, x, y) for x, y in zip(first, second, strict=True))
    return None if a is None else shaped_like(a, numbers)


def numbers(values: Any) -> list[Any]:
    """The numbers in nested tuples, lists, vectors and NumPy arrays, in order."""
    if isinstance(values, np.ndarray):
        return numbers(values.tolist())
    return [x for each in values for x in numbers(each)] if hasattr(values, "__iter__") else [values]


def shaped(pattern: Any, items: Sequence[Any]) -> Any:
    """Numbers in the form of a pattern: the inverse of :func:`numbers`.

    Raises TypeError: the pattern has something else than tuples, lists and NumPy arrays of numbers.
    """
    rest = iter(items)

    def filled(part: Any) -> Any:
        if isinstance(part, (tuple, list)):
            return like(part, [filled(each) for each in part])
        if isinstance(part, np.ndarray) and part.ndim:
            made = np.empty(part.shape, object)
            made.ravel()[:] = [next(rest) for _ in range(made.size)]
            return made
        if hasattr(part, "__iter__"):
            raise TypeError(
                "solution: the unknown must be numbers, in tuples, lists or NumPy arrays, or in a kernel "
                f"with loops one array, not {type(part).__name__}"
            )
        return next(rest)

    return filled(pattern)


def check_residuals(count: int, wanted: int) -> None:
    """Raise ValueError unless an equation has as many residuals as unknown numbers."""
    if count != wanted:
        raise ValueError(
            f"solution: the residual returns {count} numbers for {wanted} unknown ones; return as many as "
            "there are unknown"
        )


def _one_or_all(carried: tuple[Any, ...]) -> Any:
    return carried[0] if len(carried) == 1 else carried


# -- loops on plain numbers, columns and in other libraries ---------------------------------------------


class _Loop:
    """Test and body of a while_loop on what is carried, a tuple."""

    def __init__(self, test: Callable[..., Any], body: Callable[..., Any]) -> None:
        self.test, self._body = test, body

    def body(self, *carried: Any) -> tuple[Any, ...]:
        return carried_on(self._body(*carried), carried)


class _Counted:
    """Test and body of a for_range of ``count`` iterations on what is carried, its index first."""

    def __init__(self, count: Any, body: Callable[..., Any]) -> None:
        self.count, self._body = count, body

    def test(self, k: Any, *_: Any) -> Any:
        return k < self.count

    def body(self, k: Any, *carried: Any) -> tuple[Any, ...]:
        return (k + 1, *carried_on(self._body(k, *carried), carried))


def known_count(count: Any) -> Any:
    """A count of turns as a whole number, a column of them for a column; None where it is not known."""
    if isinstance(count, int):
        return int(count)
    if isinstance(count, float | complex | np.ndarray):
        return whole(count)
    if isinstance(count, str | bytes):
        raise TypeError(f"count: expected a number of turns, got {count!r}")
    try:
        return int(count)
    except Exception:  # of that library: a traced or a symbolic number
        return None


def _is_real(x: Any) -> bool:
    """Whether something is a real number: recorded (``ref``), dual (``tangents``) or a float."""
    return isinstance(x, float | np.floating) or hasattr(x, "ref") or hasattr(x, "tangents")


def _kind(x: Any) -> str:
    kind = getattr(getattr(x, "dtype", None), "kind", "b" if isinstance(x, bool) else "")
    if kind == "b":
        return "truth"
    return "integer" if isinstance(x, int) or kind in ("i", "u") else "real"


def check_truth(condition: Any) -> None:
    """Raise TypeError unless something may be the outcome of a comparison: it is no number."""
    if isinstance(condition, float | complex | np.floating) or hasattr(condition, "ref"):
        raise TypeError(
            f"a condition or test is the outcome of a comparison, such as x > 0.0, not {condition!r}"
        )


def known_truth(condition: Any) -> bool | None:
    """Whether a condition holds, None where that is not known; each library has its own error for that."""
    try:
        return scalars.holds(condition)
    except Exception:
        return None


@contextmanager
def only(rows: Any) -> Iterator[Any]:
    """While it lasts, other rows keep what is theirs in memory; None for all that take part already.

    ``rows``: truths, one each, or a recorded one. Yields the rows that take part.
    """
    before = getattr(_rows, "on", None)
    _rows.on = rows if before is None else before if rows is None else rows & before
    try:
        yield None if rows is None else _rows.on
    finally:
        _rows.on = before


@contextmanager
def closed(error: Exception) -> Iterator[None]:
    """While it lasts, memory made before cannot be written. ``error``: raised where it is."""
    before = getattr(_closed, "depth", 0), getattr(_closed, "error", None)
    _closed.depth, _closed.error = before[0] + 1, error
    try:
        yield
    finally:
        _closed.depth, _closed.error = before


class Changed:
    """What is left of a variable or an entry that the body of a loop or a branch of cond has changed.

    The body runs a few times while it is recorded, not in each turn, so nobody knows what plain Python would
    have there. It may be written anew, as scratch space is, and counted on; any other use is an error. When
    the recording is over, what was there before is put back.
    """

    __slots__ = ("_said",)
    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, said: str) -> None:
        self._said = said

    def __repr__(self) -> str:
        return self._said

    def __add__(self, other: Any) -> Changed:
        return self if isinstance(other, int | float) else self.refuse()

    __radd__ = __sub__ = __add__

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(self._said)

    def refuse(self, *_: Any) -> Any:
        """Raise TypeError: it is used."""
        raise TypeError(self._said)


_REFUSING = (
    "rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod pow rpow matmul rmatmul and rand or ror "
    "invert neg pos abs lt le gt ge eq ne bool float int index floor getitem setitem iter len contains call"
)
for _name in _REFUSING.split():
    setattr(Changed, f"__{_name}__", Changed.refuse)

_NAMES = ("sin", "cos", "sqrt", "atan2", "floor", "where")
scalars.register(Changed, SimpleNamespace(**dict.fromkeys(_NAMES, Changed.refuse)))


class Watch:
    """Finds what functions change around them that run once and stand for many runs, or for none.

    Watched are the variables that they close over, and the lists, dicts and arrays in these. More entries of
    a list or dict may be notes, or constants that are kept, and an array of numbers in place of None a
    constant that is computed when it is needed first.

    Args:
        what: they are, for the message.
        functions: of Python; of others nothing is known.
    """

    def __init__(self, what: str, *functions: Any) -> None:
        self.what = what
        self.held = [each for function in functions for each in held_by(function)]
        self._lengths: dict[int, int] = {}  # of the lists when they were looked at last

    def spoil(self) -> None:
        """Put a :class:`Changed` wherever something has changed.

        Asked once more, after a second run: what both have appended to a list would be there once for each
        turn. (What a run makes anew and appends cannot be used after it in any case.)

        Raises TypeError: entries are gone, or an array of numbers, which cannot hold it, has changed.
        """
        for name, holder, before in self.held:
            mark = Changed(
                f"{self.what} changes {name!r}, of the function around it, and what it leaves there is used: "
                "it runs while it is recorded, not in each turn, or where the condition holds; carry the "
                "value (for_range(n, body, start)), return it from both branches of cond, or write to "
                "memory (zeros)"
            )
            keys = _changes(holder, before, mark)
            if isinstance(holder, list):
                length = self._lengths.setdefault(id(holder), len(holder))
                both = zip(range(len(before), length), range(length, len(holder)), strict=False)
                keys += (k for pair in both if _is_same(*map(holder.__getitem__, pair)) for k in pair)
            for key in keys:
                new = isinstance(holder, list) and key >= len(before)
                was = holder[key] if new else before if isinstance(holder, CellType) else before[key]
                recorder.spoilt.append((holder, key, was))
                _put(holder, key, mark)


def _put(holder: Any, key: Any, content: Any) -> None:
    if isinstance(holder, CellType):
        holder.cell_contents = content
    else:
        holder[key] = content


def spoiling(*branches: Callable[[], Any]) -> Iterator[Callable[[], Any]]:
    """Functions that may not run: the same, after each of which what it has changed is spoilt."""

    def run(branch: Callable[[], Any]) -> Any:
        watch = Watch("a branch of cond", branch)
        returned = branch()
        watch.spoil()
        return returned

    return (partial(run, branch) for branch in branches)


def held_by(function: Any) -> Iterator[tuple[str, Any, Any]]:
    """The variables that a function closes over, and what is in them: name, what holds it, and its value."""
    cells = getattr(function, "__closure__", None) or ()
    yield from _inside("self", _entries(getattr(function, "__self__", None)), set())
    for name, cell in zip(function.__code__.co_freevars if cells else (), cells, strict=True):
        with suppress(ValueError):  # a name without a value yet
            yield name, cell, cell.cell_contents
            yield from _inside(name, _entries(cell.cell_contents), set())


def _entries(held: Any) -> Any:
    """The attributes of an object of a user's own class; anything else as it is."""
    own = isinstance(held, type | ModuleType | FunctionType | MethodType)
    own = own or type(held).__module__.startswith("robokit.")
    return held if own else getattr(held, "__dict__", held)


_HOLDERS = (list, dict, tuple, np.ndarray)


def _inside(name: str, held: Any, seen: set[int]) -> Iterator[tuple[str, Any, Any]]:
    """The same of lists, dicts and arrays in each other; memory may be written."""
    if id(held) in seen or not isinstance(held, _HOLDERS) or isinstance(held, Memory):
        return
    seen.add(id(held))
    if not isinstance(held, tuple):
        yield name, held, held.copy()
    for each in held.values() if isinstance(held, dict) else () if isinstance(held, np.ndarray) else held:
        if isinstance(each, _HOLDERS):
            yield from _inside(name, each, seen)


def _changes(holder: Any, before: Any, mark: Changed) -> list[Any]:
    """Keys of the entries that have changed; of a variable one, whatever it is."""
    if isinstance(holder, CellType):
        return [] if _is_same(holder.cell_contents, before) else [None]
    keys: Iterable[Any] = before
    if isinstance(holder, np.ndarray):
        if holder.tobytes() == before.tobytes():  # of objects their addresses
            return []
        keys = np.ndindex(before.shape) if holder.dtype == object else mark.refuse()
    elif isinstance(holder, list):
        if len(holder) >= len(before) and all(map(is_, holder, before)):
            return []
        keys = range(len(before))
    try:
        return [key for key in keys if not _is_same(holder[key], before[key])]
    except LookupError:
        return mark.refuse()


def _is_same(now: Any, before: Any) -> bool:
    """Whether two are one object or equal numbers, or the first is a constant that was not there yet."""
    if now is before:
        return True
    if before is None:
        return isinstance(now, np.ndarray) and now.dtype != object
    numbers = isinstance(now, float | int) and isinstance(before, float | int)
    return numbers and (now == before or (now != now and before != before))


@contextmanager
def recorded_by(now: Any) -> Iterator[None]:
    """While it lasts, the words of this thread are what an object does with them."""
    before = getattr(recorder, "now", None), getattr(_rows, "on", None), getattr(recorder, "spoilt", None)
    spoilt = list[tuple[Any, Any, Any]]()
    recorder.now, _rows.on, recorder.spoilt = now, None, spoilt
    try:
        yield
    finally:
        recorder.now, _rows.on, recorder.spoilt = before
        for holder, key, content in reversed(spoilt):
            with suppress(LookupError):  # an entry that is gone
                if isinstance(holder.cell_contents if isinstance(holder, CellType) else holder[key], Changed):
                    _put(holder, key, content)


def _while(loop: _Loop | _Counted, start: tuple[Any, ...], most: Any) -> tuple[Any, ...]:
    carried, turns, goes = start, 0, getattr(_rows, "on", None)
    goes = True if goes is None else goes
    while most is None or turns < most:
        wanted = loop.test(*carried)
        check_truth(wanted)
        if not isinstance(wanted, np.ndarray):
            known = known_truth(wanted)
            if known is None:
                return _foreign_loop(wanted, loop, carried, None if most is None else most - turns)
            wanted = known
        goes = wanted & goes
        if not np.any(goes):
            break
        with only(goes if isinstance(goes, np.ndarray) else None) as on:
            new = loop.body(*carried)
        carried = new if on is None else _rows_chosen(on, new, carried)
        turns += 1
    return carried


def _rows_chosen(on: np.ndarray, new: Any, old: Any) -> Any:
    return chosen(on, new, old, scalars.where)


def _cond_of_rows(condition: np.ndarray, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
    values = []
    for rows, branch in ((condition, then), (~condition, otherwise)):
        with only(rows) as on:
            if np.any(on):
                values.append(branch())
    if len(values) == 2:
        return _rows_chosen(condition, *values)
    return values[0] if values else otherwise()


def _foreign_loop(
    x: Any, loop: _Loop | _Counted, start: tuple[Any, ...], most: int | None
) -> tuple[Any, ...]:
    """A loop of the library that a number comes from. Raises TypeError: it has none."""
    if not _of_jax(x):
        raise TypeError(
            f"scalars of type {type(x).__name__} have no loops whose length is known only at run time: give "
            "for_range a count that is known, or choose with cond and where"
        )
    with closed(
        TypeError(
            "a loop of JAX cannot write to memory made before it: carry the numbers, or make the memory in it"
        )
    ):
        return _jax_loop(loop, start, most)


def _of_jax(x: Any) -> bool:
    return type(x).__module__.partition(".")[0] in ("jax", "jaxlib")


def _jax_loop(loop: _Loop | _Counted, start: tuple[Any, ...], most: int | None) -> tuple[Any, ...]:
    jnp, lax = importlib.import_module("jax.numpy"), importlib.import_module("jax.lax")
    begun = [jnp.asarray(x) for x in flat(start)]

    def test(carried: Any) -> Any:
        turns, numbers = carried
        goes = loop.test(*shaped_like(start, iter(numbers)))
        return goes if most is None else goes & (turns < most)

    def body(carried: Any) -> Any:
        turns, numbers = carried
        found = flat(loop.body(*shaped_like(start, iter(numbers))))
        for x, old in zip(found, begun, strict=True):
            if jnp.issubdtype(jnp.asarray(x).dtype, jnp.floating) > jnp.issubdtype(old.dtype, jnp.floating):
                raise TypeError(
                    "a loop carries a whole number and returned a real one: begin with 0.0, not 0"
                )
        return turns + 1, [jnp.asarray(x, old.dtype) for x, old in zip(found, begun, strict=True)]

    _, numbers = lax.while_loop(test, body, (0, begun))
    return tuple(shaped_like(start, iter(numbers)))


# Bounds of rounding, in the precision in which a recorded program computes
# -------------------------------------------------------------------------
#
# A bound is given as it is in double precision. In single precision rounding is 2^29 times as much, and so is
# what stands for it; an error of second order, or one whose square counts, goes with the root of that.

RATIO = 2.0**29  # rounding in single precision over that in double: 2^-24 and 2^-53


def rounding(bound: float, power: float = 1.0) -> Any:
    """A bound in double precision, and the same in single.

    ``bound``: in double precision; ``power``: of the rounding that it grows with.
    """
    return in_precision(bound, bound * RATIO**power)


def smallest() -> Any:
    """A number that is added to a divisor that may be 0; beside any other it changes nothing."""
    return in_precision(1e-300, 1e-36)
