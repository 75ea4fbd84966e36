"""Values as JSON and back: dataclasses by their type hints, arrays to the bit.

    to_json      a value in what ``json.dumps`` takes
    from_json    the value again, checked against the type that it is to have
    layout       how a class is written that is not written field by field
    Format       the number of a file's format, and what makes newer content of older

A dataclass is an object with its fields. Fields with a default may be absent, as in files that are older than
they. An array of floats is its shape and the base64 of little-endian doubles; one of whole numbers or truth
values is nested lists; an infinity is "inf" or "-inf", since JSON has none.
"""

from __future__ import annotations

import base64
import math
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, field, fields, is_dataclass
from functools import cache
from typing import Any

import numpy as np

from robokit.arguments import real_number
from robokit.dataclass_tools import frozen
from robokit.errors import RobokitError, one_line, shown

INVALID_CONTENT = (AttributeError, LookupError, TypeError, ValueError, OverflowError, RecursionError)
"""What reading content that makes no sense may raise."""

INFINITIES = {"inf": math.inf, "-inf": -math.inf}

_LAYOUTS: dict[type, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {}


def layout(kind: type, write: Callable[[Any], dict[str, Any]], read: Callable[[Any], Any]) -> None:
    """Let a class, and those that are made of it, be written in another way than field by field.

    Called beside the class: or what its JSON is would depend on what has been imported. ``kind``: the class;
    ``write`` makes a JSON object of an instance; ``read`` makes an instance of such an object, or raises one
    of ``INVALID_CONTENT``.
    """
    _LAYOUTS[kind] = write, read


def to_json(value: Any) -> Any:
    """A value as JSON.

    ``value``: None, a truth value, number, text, array, dataclass, or a mapping or sequence of such. Raises
    TypeError: it is none of these.
    """
    for kind in type(value).__mro__:
        if kind in _LAYOUTS:
            return _LAYOUTS[kind][0](value)
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float) and not math.isnan(value):
        return value if math.isfinite(value) else {v: k for k, v in INFINITIES.items()}[value]
    if isinstance(value, np.ndarray):
        return array_to_json(value) if value.dtype.kind == "f" else value.tolist()
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: to_json(getattr(value, each.name)) for each in fields(value) if each.init}
    if isinstance(value, Mapping):
        return {str(key): to_json(each) for key, each in value.items()}
    if isinstance(value, Sequence):
        return [to_json(each) for each in value]
    raise TypeError(f"{shown(value)} cannot be written as JSON")


def from_json(kind: Any, content: Any, where: str = "") -> Any:
    """The value of a type that :func:`to_json` wrote.

    ``kind``: the type: a class, ``tuple[...]``, ``list[...]``, ``dict[...]``, ``Mapping[...]``, a union of
    such, a ``Literal``, or ``Any``; ``content``: what JSON holds; ``where``: its name in the file, for
    errors. Raises ValueError: it is none, or a class refuses its values; says what was found where.
    """
    try:
        return _read(kind, content, where)
    except INVALID_CONTENT as error:
        missing = isinstance(error, KeyError) and not isinstance(error, RobokitError)
        said = one_line(f"{error} is missing" if missing else str(error), 200)
        raise ValueError(said if said.startswith(where) else f"{where}: {said}") from error


def _read(kind: Any, content: Any, where: str) -> Any:
    if kind is Any or (kind is None and content is None):
        return content
    if kind in _LAYOUTS:
        _expect(isinstance(content, Mapping), "an object", content, where)
        return _LAYOUTS[kind][1](content)
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if isinstance(kind, types.UnionType) or origin is typing.Union:
        return None if content is None else _read_union(inner, content, where)
    if origin is typing.Literal:
        _expect(content in inner, f"one of {', '.join(map(repr, inner))}", content, where)
        return content
    if isinstance(kind, type) and is_dataclass(kind):
        return _read_fields(kind, content, where)
    if kind is np.ndarray:
        return _whole_numbers(content) if isinstance(content, list) else array_from_json(content)
    if origin in (list, tuple):
        _expect(isinstance(content, list | tuple), "a list", content, where)
        return _read_sequence(origin, inner, content, where)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        _expect(isinstance(content, Mapping), "an object", content, where)
        return {name: from_json(inner[1], each, f"{where}[{name!r}]") for name, each in content.items()}
    return _read_scalar(kind, content, where)


def _read_union(arms: tuple[Any, ...], content: Any, where: str) -> Any:
    """The first of several types that the content fits; whose error is told if none does."""
    arms = tuple(arm for arm in arms if arm is not types.NoneType)
    for arm in arms[:-1]:
        try:
            return _read(arm, content, where)
        except INVALID_CONTENT:
            continue
    return _read(arms[-1], content, where)


def _read_sequence(origin: type, inner: tuple[Any, ...], content: Sequence[Any], where: str) -> Any:
    if origin is tuple and inner[-1] is not Ellipsis:
        _expect(len(content) == len(inner), f"a list of {len(inner)}", content, where)
        kinds: Sequence[Any] = inner
    else:
        kinds = (inner[0],) * len(content)
    return origin(
        from_json(k, x, f"{where}[{i}]") for i, (k, x) in enumerate(zip(kinds, content, strict=True))
    )


def _read_scalar(kind: Any, content: Any, where: str) -> Any:
    if kind is float:
        return INFINITIES[content] if content in ("inf", "-inf") else real_number(where or "number", content)
    names = {bool: "true or false", int: "a whole number", str: "text"}
    _expect(kind in names, "a type that JSON has", kind, where)
    _expect(
        isinstance(content, kind) and (kind is bool) == isinstance(content, bool), names[kind], content, where
    )
    return content


@cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _read_fields(kind: Any, content: Any, where: str) -> Any:
    _expect(isinstance(content, Mapping), "an object", content, where)
    hints, values = _hints(kind), {}
    for each in fields(kind):
        name = f"{where}.{each.name}" if where else each.name
        if each.name in content:
            values[each.name] = from_json(hints[each.name], content[each.name], name)
        elif each.init and each.default is MISSING and each.default_factory is MISSING:
            raise ValueError(f"{name} is missing")
    return kind(**values)


def _expect(good: bool, what: str, content: Any, where: str) -> None:
    if not good:
        raise ValueError(
            f"{where}: expected {what}, got {shown(content)}"
            if where
            else f"expected {what}, got {shown(content)}"
        )


def array_to_json(x: np.ndarray) -> dict[str, Any]:
    """An array of doubles, to the bit."""
    bits = np.ascontiguousarray(x, dtype="<f8").tobytes()
    return {"shape": list(np.shape(x)), "float64": base64.b64encode(bits).decode("ascii")}


def array_from_json(content: Any) -> np.ndarray:
    """The array of :func:`array_to_json`; raises one of ``INVALID_CONTENT`` for anything else."""
    bits = base64.b64decode(content["float64"], validate=True)
    return np.frombuffer(bits, dtype="<f8").astype(float).reshape(content["shape"])


def _whole_numbers(content: list[Any]) -> np.ndarray:
    """An array of whole numbers or truth values from nested lists."""
    x = np.array(content)
    if x.size and x.dtype.kind not in "iub":
        raise ValueError(f"expected whole numbers in lists, got {shown(content)}")
    return x if x.size else x.astype(int)


@frozen
class Format:
    """The number of a file's format."""

    number: int  # that is written
    # number of an older format -> what makes of its content that of the next number
    upgrades: Mapping[int, Callable[[dict[str, Any]], dict[str, Any]]] = field(default_factory=dict)

    def upgraded(self, content: Mapping[str, Any]) -> dict[str, Any] | None:
        """Content of this format, or of one that can be made this one; None for others.

        Raises KeyError: the content has no number.
        """
        number, found = content["format"], dict(content)
        if type(number) is not int:  # True and 1.0 equal 1
            return None
        while number in self.upgrades:
            found = self.upgrades[number](found)
            number += 1
        return found | {"format": number} if number == self.number else None
