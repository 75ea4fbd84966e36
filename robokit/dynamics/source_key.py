"""What a user's function depends on, as a key for the cache: its code, constants, defaults, closure, globals.

Bytes that differ whenever the function may compute something else. Where something cannot be told apart by
its value (an open file, a class or a module of the user's) there is no key: the function is recorded anew in
each process, and its machine code is looked up by what was recorded.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from functools import partial
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from robokit.dynamics.function_objects import Function

KNOWN = ("robokit", "math", "cmath", "itertools", "functools", "operator", "numpy", "builtins", "collections")
"""Packages whose contents change with their version only, robokit's with its source, which keys contain."""


class _Unknown(Exception):
    """Something that has no key."""


def source_key(function: Any) -> bytes | None:
    """A key of all that a function depends on; None where there is none.

    Args:
        function: of Python.
    """
    parts = hashlib.sha256(sys.version.encode())
    parts.update(np.__version__.encode())
    try:
        for part in _parts(function, []):
            parts.update(len(part).to_bytes(8, "little"))
            parts.update(part)
    except _Unknown:
        return None
    return parts.digest()


def _parts(value: Any, open_: list[Any]) -> Iterator[bytes]:
    """The value's kind and content, piece by piece.

    Args:
        value: anything.
        open_: functions and containers that the value is a part of.
    """
    kind = type(value)
    yield kind.__qualname__.encode()
    if value is None or value is Ellipsis or kind in (bool, int, float, complex, str, bytes):
        yield repr(value).encode()
    elif isinstance(value, np.ndarray | np.generic) and value.dtype != object:
        yield repr((value.dtype.str, value.shape)).encode()
        yield value.tobytes()
    elif kind is ModuleType or isinstance(value, type | BuiltinFunctionType):
        yield _known(value).encode()
    elif isinstance(value, np.ufunc) and getattr(np, name := str(value.__name__), None) is value:
        yield name.encode()
    elif isinstance(value, Function) and value.row.source is not None:
        yield repr((value.name, value.row.derived)).encode() + value.row.source
    elif any(value is each for each in open_):
        yield b"again"  # a function that calls itself
    elif kind in (tuple, list):
        for each in value:
            yield from _parts(each, [*open_, value])
        yield b"end"
    elif kind in (set, frozenset):
        yield from sorted(b"".join(_parts(each, open_)) for each in value)
        yield b"end"
    elif kind is dict:
        for item in value.items():
            yield from _parts(item, [*open_, value])
        yield b"end"
    elif kind is partial:
        yield from _parts((value.func, value.args, value.keywords), [*open_, value])
    elif kind is FunctionType:
        yield from _function(value, [*open_, value])
    elif kind is CodeType:
        yield from _code(value, open_)
    else:
        raise _Unknown(kind.__qualname__)


def _known(value: Any) -> str:
    """The full name of a module, class or function of a known package."""
    name = value.__name__ if type(value) is ModuleType else getattr(value, "__module__", None) or ""
    if name.partition(".")[0] not in KNOWN:
        raise _Unknown(name)
    return f"{name}:{getattr(value, '__qualname__', '')}"


def _function(function: FunctionType, open_: list[Any]) -> Iterator[bytes]:
    if (function.__module__ or "").partition(".")[0] == "robokit":
        yield _known(function).encode()
    else:
        yield from _code(function.__code__, open_)
    yield from _parts((function.__defaults__, function.__kwdefaults__), open_)
    for cell in function.__closure__ or ():
        try:
            content = cell.cell_contents
        except ValueError:  # not filled yet
            raise _Unknown("closure") from None
        yield from _parts(content, open_)
    if (function.__module__ or "").partition(".")[0] != "robokit":
        for name in _names(function.__code__):
            if name in function.__globals__:
                yield name.encode()
                yield from _parts(function.__globals__[name], open_)


def _code(code: CodeType, open_: list[Any]) -> Iterator[bytes]:
    yield code.co_code
    yield repr((code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)).encode()
    yield repr((code.co_argcount, code.co_kwonlyargcount, code.co_flags)).encode()
    yield getattr(code, "co_exceptiontable", b"")
    yield from _parts(code.co_consts, open_)


def _names(code: CodeType) -> list[str]:
    """Names of globals and attributes in a function's code and in that of the functions inside it."""
    found = set(code.co_names)
    for each in code.co_consts:
        if type(each) is CodeType:
            found.update(_names(each))
    return sorted(found)
