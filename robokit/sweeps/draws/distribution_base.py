"""What all distributions of a parameter share, and the one that has a single value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from robokit.arguments import real_number
from robokit.errors import ShapeError, WrongType

Value = float | str


@dataclass(frozen=True)
class Distribution:
    """What all distributions share."""

    kind: ClassVar[str]
    drawn: ClassVar[bool] = True
    """Whether rows draw at random; else the row's number decides."""

    def at(self, u: np.ndarray) -> np.ndarray:
        """The values at these numbers, which are even between 0 and 1, (B,)."""
        raise NotImplementedError

    def values(self) -> list[Value] | None:
        """All values that there are; None where there are too many to list."""
        return None

    def bounds(self) -> tuple[float, float]:
        """The smallest and the largest number that may come."""
        raise NotImplementedError

    def record(self) -> dict[str, Any]:
        """What is stored of it, for JSON."""
        return {"kind": self.kind} | {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True)
class Constant(Distribution):
    """The same value in every row."""

    value: Value
    kind: ClassVar[str] = "constant"
    drawn: ClassVar[bool] = False

    def at(self, u: np.ndarray) -> np.ndarray:
        """The values at numbers that are even between 0 and 1, (B,)."""
        return np.full(len(u), self.value, dtype=object if isinstance(self.value, str) else float)

    def values(self) -> list[Value] | None:
        """All values that there are."""
        return [self.value]

    def bounds(self) -> tuple[float, float]:
        """The smallest and the largest number that may come."""
        return ends_of([self.value])


def listed(name: str, given: Any) -> tuple[Value, ...]:
    """Values of one kind: finite numbers, or words."""
    if isinstance(given, str) or not isinstance(given, Sequence | np.ndarray) or np.ndim(given) != 1:
        raise WrongType(name, given, "a list of numbers, or one of words")
    if not len(given):
        raise ShapeError(f"{name}: expected at least one value, got none")
    if all(isinstance(x, str) for x in given):
        return tuple(str(x) for x in given)
    return tuple(real_number(f"{name}(...)[{k}]", x) for k, x in enumerate(given))


def as_array(values: Sequence[Value]) -> np.ndarray:
    """Numbers as floats, words as objects."""
    return np.array(values, dtype=object if isinstance(values[0], str) else float)


def ends_of(values: Sequence[Value]) -> tuple[float, float]:
    """The smallest and the largest of the numbers; NaN of words."""
    numbers = [x for x in values if not isinstance(x, str)]
    return (min(numbers), max(numbers)) if numbers else (math.nan, math.nan)
