"""Loops, conditions and calls over numbers that may be known only later: JAX's words, with the same meaning.

    for_range(n, body, *start)          while_loop(test, body, *start, most=None)
    cond(condition, then, otherwise)    call(function, *arguments)
    vmap(function)(*sequences)          zeros(*shape)
    whole(x)                            solution(residual, unknown, *parameters)

On plain numbers a loop is a loop of Python, and a debugger can step into it. While the engine records, what
is known then is unrolled or chosen as in Python, and what is not becomes part of the recorded program.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from robokit.spatial.scalars import holds

recorder = threading.local()
"""Its attribute ``now`` is what records in this thread: an object with the functions below.

``equations``, if set, is what notes solved equations of a straight line that will be differentiated.
"""


def for_range(count: Any, body: Callable[..., Any], *start: Any) -> Any:
    """What is carried after ``count`` turns of a loop.

    Args:
        count: of turns; below 1 there are none.
        body: called with the index, 0, 1, ..., and what is carried; returns what it carries on, in the same
            number, form and kind as it began. It may write to arrays.
        start: what is carried into the first turn: numbers, or tuples and lists of them.

    Returns:
        one value where one is carried, else a tuple.
    """
    recording = getattr(recorder, "now", None)
    if recording is not None:
        return _one_or_all(recording.for_range(count, body, start))
    carried = start
    for k in range(count):
        carried = _as_tuple(body(k, *carried), start)
    return _one_or_all(carried)


def while_loop(
    test: Callable[..., Any], body: Callable[..., Any], *start: Any, most: int | None = None
) -> Any:
    """What is carried when a test no longer holds.

    Args:
        test: called with what is carried: whether there is another turn.
        body: as of :func:`for_range`, without an index.
        start: as of :func:`for_range`.
        most: turns at most, for loops that might not end otherwise.
    """
    recording = getattr(recorder, "now", None)
    if recording is not None:
        return _one_or_all(recording.while_loop(test, body, start, most))
    carried, turns = start, 0
    while holds(test(*carried)) and (most is None or turns < most):
        carried = _as_tuple(body(*carried), start)
        turns += 1
    return _one_or_all(carried)


def cond(condition: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
    """The value of one of two functions: of the first where the condition holds. The other one does not run.

    Args:
        condition: outcome of a comparison.
        then: called without arguments.
        otherwise: likewise; returns the same in number, form and kind.
    """
    recording = getattr(recorder, "now", None)
    if recording is None or isinstance(condition, (int, np.bool_)):
        return then() if holds(condition) else otherwise()
    return recording.cond(condition, then, otherwise)


def call(function: Callable[..., Any], *arguments: Any) -> Any:
    """``function(*arguments)``; a recorded program has the function's code once, however often it is called.

    Args:
        function: of numbers, arrays, and tuples and lists of them; it must not call itself. Two calls share
            code where the function and the objects that it closes over are the same, and its arguments are
            the same in number, form and kind. It runs in Python once for all of them: what else it reads,
            such as a list or a global name, must not change in between, and arrays are all that it may
            change. Or a compiled kernel (robokit.engine), which is called on its arrays, or on parts of
            arrays: those that it reads, then those that it writes.
        arguments: of the function. While it is recorded plain numbers among them are as unknown as the
            others, and are no limits of range().
    """
    recording = getattr(recorder, "now", None)
    if recording is not None:
        return recording.call(function, arguments)
    return getattr(function, "on_memory", function)(*arguments)


def vmap(function: Callable[..., Any]) -> Callable[..., list[Any]]:
    """A function of sequences: what a function gives for the first entries of all, the second...

    Machine code of one state may compute them in the lanes of a vector.

    Args:
        function: of numbers, and tuples and lists of them.
    """

    def mapped(*sequences: Sequence[Any]) -> list[Any]:
        columns = list(zip(*sequences, strict=True))
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
        ValueError: a size is below 0, there are 2^31 entries or more, or there is no such kind.
    """
    if kind not in ("real", "integer"):
        raise ValueError(f'zeros: kind is "real" or "integer", not {kind!r}')
    recording = getattr(recorder, "now", None)
    if recording is not None:
        return recording.zeros(shape, kind)
    found = np.empty(shape, object)
    found.fill(0 if kind == "integer" else 0.0)
    return found


def whole(x: Any) -> Any:
    """The largest whole number that is not above x, for indices and counts.

    Raises:
        ValueError: x is NaN, or the whole number has more than 32 bits.
    """
    recording = getattr(recorder, "now", None)
    if recording is not None and not isinstance(x, (int, float)):
        return recording.whole(x)
    if not -(2.0**31) <= x < 2.0**31:
        raise ValueError(f"whole: NaN, or beyond 32 bits: {x}")
    return math.floor(x)


def solution(
    residual: Callable[..., Any],
    unknown: Any,
    *parameters: Any,
    solve: Callable[[Any], Any] | None = None,
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


def numbers(values: Any) -> list[Any]:
    """The numbers of nested tuples, lists, vectors and NumPy arrays, in order."""
    if isinstance(values, np.ndarray):
        return numbers(values.tolist())
    return [x for each in values for x in numbers(each)] if hasattr(values, "__iter__") else [values]


def shaped(pattern: Any, items: Sequence[Any]) -> Any:
    """Numbers in the form of a pattern, the other way round than :func:`numbers`.

    Raises:
        TypeError: the pattern has something else than tuples, lists and NumPy arrays of numbers.
    """
    rest = iter(items)

    def like(part: Any) -> Any:
        if isinstance(part, (tuple, list)):
            found = [like(each) for each in part]
            return part._make(found) if hasattr(part, "_make") else type(part)(found)
        if isinstance(part, np.ndarray) and part.ndim:
            made = np.empty(part.shape, object)
            made.ravel()[:] = [next(rest) for _ in range(made.size)]
            return made
        if hasattr(part, "__iter__"):
            raise TypeError(
                "solution: the unknown is numbers, in tuples, lists or NumPy arrays, or in a kernel with "
                f"loops one array, not {type(part).__name__}"
            )
        return next(rest)

    return like(pattern)


def check_residuals(count: int, wanted: int) -> None:
    """Raise unless an equation has as many residuals as unknown numbers.

    Raises:
        ValueError: it has not.
    """
    if count != wanted:
        raise ValueError(
            f"solution: the residual returns {count} numbers for {wanted} unknown ones; return as many as "
            "there are unknown"
        )


def _as_tuple(returned: Any, start: tuple[Any, ...]) -> tuple[Any, ...]:
    """What a body carries on, one entry for each of those that it began with."""
    return (returned,) if len(start) == 1 else returned if start else ()


def _one_or_all(carried: tuple[Any, ...]) -> Any:
    return carried[0] if len(carried) == 1 else carried
