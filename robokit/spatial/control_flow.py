"""Loops and conditions over numbers that may be known only later: JAX's words, with the same meaning.

On plain numbers a loop is a loop of Python, and a debugger can step into it. While the engine records, a loop
is recorded as one (engine/loops).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

recorder = threading.local()
"""Its attribute ``now`` is what records in this thread: an object with the functions below."""


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
        found = recording.for_range(count, body, start)
        return found[0] if len(start) == 1 else found
    carried: Any = start
    for k in range(count):
        carried = body(k, *carried)
        if len(start) == 1:
            carried = (carried,)
        elif not start:
            carried = ()
    return carried[0] if len(start) == 1 else carried


def while_loop(test: Callable[..., Any], body: Callable[..., Any], *start: Any) -> Any:
    """What is carried when a test no longer holds.

    Args:
        test: called with what is carried: whether there is another turn.
        body: as of :func:`for_range`, without an index.
        start: as of :func:`for_range`.
    """
    recording = getattr(recorder, "now", None)
    if recording is not None:
        found = recording.while_loop(test, body, start)
        return found[0] if len(start) == 1 else found
    carried: Any = start
    while test(*carried):
        carried = body(*carried)
        if len(start) == 1:
            carried = (carried,)
    return carried[0] if len(start) == 1 else carried


def cond(condition: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
    """The value of one of two functions: of the first where the condition holds. The other one does not run.

    Args:
        condition: outcome of a comparison.
        then: called without arguments.
        otherwise: likewise; returns the same in number, form and kind.
    """
    recording = getattr(recorder, "now", None)
    if recording is None or isinstance(condition, bool):
        return then() if condition else otherwise()
    return recording.cond(condition, then, otherwise)
