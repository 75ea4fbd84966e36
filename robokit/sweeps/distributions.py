"""What a parameter of a sweep may be: a number, or a distribution of numbers or words.

    Uniform(0.8, 1.2)          any number between two, equally likely
    Normal(1.0, 0.1)           the normal distribution; low= and high= cut it off
    Choice(["a", "b"])         one of these, with weights if some are likelier
    Grid(0.0, 0.3, 11)         evenly spaced numbers, or Grid([...]): one after the other, not at random
    Sobol(0.8, 1.2)            as Uniform, from a sequence that fills the space evenly

A row's number decides what it gets from a grid; several grids of a sweep make all combinations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from robokit.arguments import real_number, whole_number
from robokit.errors import ShapeError, WrongType, shown
from robokit.serialize import layout
from robokit.sweeps.random_streams import normal_quantile

# ---- what all distributions share --------------------------------------------------------------

Value = float | str


@dataclass(frozen=True)
class Distribution:
    """What all distributions share.

    Attributes:
        kind: its name in JSON.
        drawn: whether rows draw at random; else the row's number decides.
        _values_field: name of the field with all values that there are; "" where there are too many to list.
    """

    kind: ClassVar[str]
    drawn: ClassVar[bool] = True
    _values_field: ClassVar[str] = ""

    def at(self, u: np.ndarray) -> np.ndarray:
        """The values at uniformly distributed numbers between 0 and 1, (B,)."""
        raise NotImplementedError

    def values(self) -> list[Value] | None:
        """All values that there are; None where there are too many to list."""
        if not self._values_field:
            return None
        values = getattr(self, self._values_field)
        return list(values) if isinstance(values, tuple) else [values]

    def bounds(self) -> tuple[float, float]:
        """The smallest and the largest number that may come; NaN of words."""
        numbers = [x for x in self.values() or () if not isinstance(x, str)]
        return (min(numbers), max(numbers)) if numbers else (math.nan, math.nan)

    def record(self) -> dict[str, Any]:
        """What is stored of it, for JSON."""
        return {"kind": self.kind} | {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True)
class Constant(Distribution):
    """The same value in every row."""

    value: Value
    kind: ClassVar[str] = "constant"
    drawn: ClassVar[bool] = False
    _values_field: ClassVar[str] = "value"

    def at(self, u: np.ndarray) -> np.ndarray:
        """The values at uniformly distributed numbers between 0 and 1, (B,)."""
        return np.full(len(u), self.value, dtype=object if isinstance(self.value, str) else float)


def value_list(name: str, values: Any) -> tuple[Value, ...]:
    """Values of one kind: finite numbers, or words."""
    if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray) or np.ndim(values) != 1:
        raise WrongType(name, values, "a list of numbers, or one of words")
    if not len(values):
        raise ShapeError(f"{name}: expected at least one value, got none")
    if all(isinstance(x, str) for x in values):
        return tuple(str(x) for x in values)
    return tuple(real_number(f"{name}(...)[{k}]", x) for k, x in enumerate(values))


def value_array(values: Sequence[Value]) -> np.ndarray:
    """Numbers as floats, words as objects."""
    return np.array(values, dtype=object if isinstance(values[0], str) else float)


# ---- the distributions -------------------------------------------------------------------------

ACCEPTED = (
    "a number, rk.Uniform(low, high), rk.Normal(mean, deviation), rk.Choice([...]), "
    "rk.Grid(low, high, count) or rk.Sobol(low, high)"
)


@dataclass(frozen=True)
class Uniform(Distribution):
    """Any number between two, equally likely.

    Attributes:
        low, high: the two; the unit is the parameter's.
    """

    low: float
    high: float
    kind: ClassVar[str] = "uniform"

    def __post_init__(self) -> None:
        _set_range(self, type(self).__name__)

    def at(self, u: np.ndarray) -> np.ndarray:
        """The values at uniformly distributed numbers between 0 and 1, (B,)."""
        return self.low + (self.high - self.low) * u

    def bounds(self) -> tuple[float, float]:
        """The smallest and the largest number that may come."""
        return self.low, self.high


@dataclass(frozen=True)
class Sobol(Uniform):
    """Any number between two, from a Sobol sequence: rows fill the range more evenly than at random.

    All Sobol parameters of a sweep share one sequence, in which each is a dimension, so that their
    combinations are even, too. A number of rows that is a power of two is the most even.
    """

    kind: ClassVar[str] = "sobol"


@dataclass(frozen=True)
class Normal(Distribution):
    """The normal distribution.

    Attributes:
        mean: its mean.
        deviation: its standard deviation.
        low, high: bounds of a truncated distribution; None for none.
    """

    mean: float
    deviation: float
    low: float | None = None
    high: float | None = None
    kind: ClassVar[str] = "normal"
    shares: tuple[float, float] | None = None
    """Probability below low and below high of the whole distribution; computed where it is not given."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", real_number("Normal(mean=...)", self.mean))
        object.__setattr__(self, "deviation", real_number("Normal(deviation=...)", self.deviation, least=0.0))
        for name in ("low", "high"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, real_number(f"Normal({name}=...)", getattr(self, name)))
        low, high = self.bounds()
        if not low < high:
            raise ShapeError(f"Normal: expected low < high, got {low:g} and {high:g}")
        if self.shares is None:
            object.__setattr__(self, "shares", (self._below(low), self._below(high)))
        assert self.shares is not None
        if not self.shares[1] - self.shares[0] > 1e-9 and self.deviation > 0.0:
            raise ShapeError(
                f"Normal: next to nothing of mean {self.mean:g} and deviation {self.deviation:g} lies "
                f"between {low:g} and {high:g}; take other ends"
            )

    def _below(self, x: float) -> float:
        if math.isinf(x) or self.deviation == 0.0:
            return 0.0 if x < self.mean else 1.0
        return 0.5 * math.erfc((self.mean - x) / (self.deviation * math.sqrt(2.0)))

    def at(self, u: np.ndarray) -> np.ndarray:
        """The values at uniformly distributed numbers between 0 and 1, (B,)."""
        assert self.shares is not None
        p = self.shares[0] + (self.shares[1] - self.shares[0]) * u
        p = np.minimum(np.maximum(p, 2.0**-60), 1.0 - 2.0**-53)
        found = self.mean + self.deviation * normal_quantile(p)
        low, high = self.bounds()
        return np.minimum(np.maximum(found, low), high)

    def bounds(self) -> tuple[float, float]:
        """The smallest and the largest number that may come."""
        low = -math.inf if self.low is None else self.low
        return low, math.inf if self.high is None else self.high


@dataclass(frozen=True)
class Choice(Distribution):
    """One of several values, drawn at random.

    Attributes:
        options: numbers, or words such as names of links or robots.
        weights: how likely each is, of any sum; None for equally.
    """

    options: tuple[Value, ...]
    weights: tuple[float, ...] | None = None
    kind: ClassVar[str] = "choice"
    _values_field: ClassVar[str] = "options"

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", value_list("Choice", self.options))
        if self.weights is None:
            return
        if isinstance(self.weights, str) or not isinstance(self.weights, Sequence | np.ndarray):
            raise WrongType("Choice(weights=...)", self.weights, "a list of numbers")
        weights = tuple(real_number("Choice(weights=...)", x, least=0.0) for x in self.weights)
        if len(weights) != len(self.options) or not sum(weights) > 0.0:
            raise ShapeError(
                f"Choice(weights=...): expected {len(self.options)} numbers >= 0, not all 0, "
                f"got {shown(self.weights)}"
            )
        object.__setattr__(self, "weights", weights)

    def at(self, u: np.ndarray) -> np.ndarray:
        """The values at uniformly distributed numbers between 0 and 1, (B,)."""
        n = len(self.options)
        if self.weights is None:
            place = np.minimum((u * n).astype(int), n - 1)
        else:
            ends, total = [], 0.0
            for w in self.weights:  # one after the other: the order of a sum is part of its bits
                total += w
                ends.append(total)
            place = np.searchsorted(np.array(ends) / total, u, side="right")
            place = np.minimum(place, max(k for k, w in enumerate(self.weights) if w > 0.0))
        return value_array(self.options)[place]


@dataclass(frozen=True, init=False)
class Grid(Distribution):
    """Values in order: row k has the k-th one, and after the last the first again.

    Several grids of a sweep form all combinations; the last one changes fastest.

    Attributes:
        points: the values.
    """

    points: tuple[Value, ...]
    kind: ClassVar[str] = "grid"
    drawn: ClassVar[bool] = False
    _values_field: ClassVar[str] = "points"

    def __init__(self, low: Any, high: float | None = None, count: int | None = None) -> None:
        """Evenly spaced values, or those of a list.

        Args:
            low, high: the first and the last value; or a list of values instead of the first.
            count: number of values.
        """
        if high is None and count is None:
            object.__setattr__(self, "points", value_list("Grid", low))
            return
        if high is None or count is None:
            raise ShapeError("Grid: expected Grid(low, high, count) or Grid([value, ...])")
        first, last = real_number("Grid(low=...)", low), real_number("Grid(high=...)", high)
        n = whole_number("Grid(count=...)", count, 1)
        points = [first + (last - first) * (k / (n - 1)) for k in range(n - 1)] + [last]
        object.__setattr__(self, "points", tuple(points if n > 1 else [first]))

    def at_places(self, places: np.ndarray) -> np.ndarray:
        """The values of these numbers, from 0."""
        return value_array(self.points)[places]


def distribution(what: str, value: Any) -> Distribution:
    """What was given for a parameter, as a distribution.

    Raises:
        WrongType: it is none.
    """
    if isinstance(value, Distribution):
        return value
    if isinstance(value, str):
        return Constant(value)
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        hint = "a list of values is rk.Choice([...]) or rk.Grid([...])" if np.ndim(value) else ""
        raise WrongType(what, value, ACCEPTED, hint)
    return Constant(real_number(what, value))


def distribution_from_json(record: Mapping[str, Any]) -> Distribution:
    """The distribution of a record.

    Raises:
        LookupError, TypeError, ValueError: it is none.
    """
    fields_ = dict(record)
    kind = fields_.pop("kind")
    if kind == "grid":
        return Grid(fields_["points"])
    if kind == "constant":
        return distribution("constant", fields_["value"])
    if kind == "normal":
        low, high = fields_["shares"]
        fields_["shares"] = (real_number("shares", low, least=0.0), real_number("shares", high, least=0.0))
    made = {cls.kind: cls for cls in (Uniform, Sobol, Normal, Choice)}[kind](**fields_)
    assert isinstance(made, Distribution)
    return made


layout(Distribution, Distribution.record, distribution_from_json)


def _set_range(dist: Any, name: str) -> None:
    for end in ("low", "high"):
        object.__setattr__(dist, end, real_number(f"{name}({end}=...)", getattr(dist, end)))
    if dist.low > dist.high:
        raise ShapeError(f"{name}: expected low <= high, got {dist.low:g} and {dist.high:g}")


# ---- as text, for the command line -------------------------------------------------------------

SPELLINGS = (
    "0.5, 0:20, normal:1:0.1, normal:1:0.1:0.8:1.2, choice:a,b, grid:0:20:11, grid:1,2,5 or sobol:0:20"
)


def read_distribution(text: str, scale: float = 1.0) -> Distribution:
    """The distribution of a text.

    Args:
        text: as in this module's docstring.
        scale: by which its numbers are multiplied: radians of a degree, where they are degrees.

    Raises:
        ShapeError: it is none; says how they are written.
    """
    kind, _, rest = text.partition(":")
    known: dict[str, tuple[Callable[..., Distribution], Sequence[int]]] = {
        "uniform": (Uniform, (2,)),
        "sobol": (Sobol, (2,)),
        "normal": (Normal, (2, 4)),
        "grid": (Grid, (3,)),
    }
    if kind == "choice" or (kind == "grid" and ":" not in rest):
        values = [_read_value(x, scale) for x in rest.split(",")] if rest else []
        if not values or "" in values:
            raise _refusal(text)
        return (Choice if kind == "choice" else Grid)(values)  # type: ignore[arg-type]
    if kind in known:
        made, counts = known[kind]
        numbers = _numbers(text, rest)
        if len(numbers) not in counts:
            raise _refusal(text)
        if kind == "grid":
            if numbers[2] != int(numbers[2]):
                raise _refusal(text)
            return Grid(scale * numbers[0], scale * numbers[1], int(numbers[2]))
        return made(*(scale * x for x in numbers))
    if ":" in text:
        numbers = _numbers(text, text)
        if len(numbers) != 2:
            raise _refusal(text)
        if numbers[0] > numbers[1]:
            raise ShapeError(
                f"expected the smaller number first, as in {numbers[1]:g}:{numbers[0]:g}, got {text}"
            )
        return Uniform(scale * numbers[0], scale * numbers[1])
    value = _read_value(text, scale)
    if not text or "," in text:
        raise _refusal(text)
    return Constant(value)


def _read_value(text: str, scale: float) -> Any:
    """A number, or the word that it is."""
    try:
        return scale * float(text)
    except ValueError:
        return text.strip()


def _numbers(text: str, part: str) -> list[float]:
    try:
        return [float(x) for x in part.split(":")]
    except ValueError:
        raise _refusal(text) from None


def _refusal(text: str) -> ShapeError:
    return ShapeError(f"expected values such as {SPELLINGS}, got {shown(text)}")


def distribution_text(dist: Distribution, scale: float = 1.0) -> str:
    """A distribution in words, its numbers divided by a scale: "0 to 20", "normal, 1 with deviation 0.1"."""

    def n(x: Any) -> str:
        return x if isinstance(x, str) else f"{x / scale:.4g}"

    if isinstance(dist, Uniform):
        return f"{n(dist.low)} to {n(dist.high)}" + (" (Sobol)" if isinstance(dist, Sobol) else "")
    if isinstance(dist, Normal):
        ends = [word + n(x) for word, x in (("from ", dist.low), ("to ", dist.high)) if x is not None]
        return f"{n(dist.mean)} with deviation {n(dist.deviation)}" + "".join(f", {x}" for x in ends)
    values = dist.values() or []
    words = ", ".join(n(x) for x in values[:4]) + (f", ... {n(values[-1])}" if len(values) > 4 else "")
    return f"one of {words}" if isinstance(dist, Choice) else words
