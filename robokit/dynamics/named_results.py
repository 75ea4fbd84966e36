"""Classes of results with several outputs: named tuples whose fields are the outputs of a function."""

from __future__ import annotations

from collections import namedtuple
from functools import cache
from typing import Any


@cache
def result_class(function: str, names: tuple[str, ...]) -> Any:
    """The named tuple of a function's outputs.

    No module has it by name, so that each result says how it is made again: it can be pickled and copied.

    Args:
        function: name of the function.
        names: of its outputs; what Python takes for no name becomes ``_0``, ``_1``, ...
    """

    def again(result: tuple[Any, ...]) -> tuple[Any, ...]:
        return _result, (function, names, tuple(result))

    made = namedtuple(f"{function}_result", names, rename=True)  # type: ignore[misc]
    setattr(made, "__reduce__", again)  # noqa: B010 - a method of its own, to the type checker
    return made


def _result(function: str, names: tuple[str, ...], values: tuple[Any, ...]) -> Any:
    return result_class(function, names)(*values)
