"""What a parameter of a sweep may be: a number, or a distribution of numbers or words.

    Uniform(0.8, 1.2)          any number between two, equally likely
    Normal(1.0, 0.1)           the normal distribution; low= and high= cut it off
    Choice(["a", "b"])         one of these, with weights if some are likelier
    Grid(0.0, 0.3, 11)         evenly spaced numbers, or Grid([...]): one after the other, not at random
    Sobol(0.8, 1.2)            as Uniform, from a sequence that fills the space evenly

A row's number decides what it gets from a grid; several grids of a sweep make all combinations.
"""

from __future__ import annotations

import hashlib
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from robokit.arguments import real_number, whole_number
from robokit.dataclass_tools import frozen
from robokit.errors import ShapeError, WrongType, shown
from robokit.serialize import layout

# ==== random streams ==============================================================================
# Random numbers by row: a draw depends on the seed, the number of the row and the name of the parameter.
#
# No row leaves a state to the next: row k draws the same numbers in every chunk, and a parameter draws the
# same numbers whatever other parameters a sweep has.
#
# Source: J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, "Parallel random numbers: as easy as 1, 2, 3"
# (2011), Philox4x64-10; S. Joe, F. Y. Kuo, "Constructing Sobol sequences with better two-dimensional
# projections" (2008).

MULTIPLIERS = (np.uint64(0xD2E7470EE14C6C93), np.uint64(0xCA5A826395121157))
WEYL = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBB67AE8584CAA73B))
ROUNDS = 10
HALF = np.uint64(32)
LOW_HALF = np.uint64(0xFFFFFFFF)

SOBOL_BITS = 32  # binary digits of a coordinate of a Sobol point; there are 2^32 points
SHIFT_ROW = np.uint64(0xFFFFFFFFFFFFFFFF)  # the row that no sweep has: it draws the shift of a Sobol sequence

LARGEST_SEED = 2**64 - 1


def philox(counter: Sequence[np.ndarray], key: tuple[int, int]) -> list[np.ndarray]:
    """Four random words of 64 bits for each counter, which is four arrays of uint64; two words are the
    key.
    """
    c = [np.asarray(word, dtype=np.uint64) for word in counter]
    k = [np.uint64(word) for word in key]
    with np.errstate(over="ignore"):  # arithmetic modulo 2^64
        for _ in range(ROUNDS):
            high0, low0 = _product(MULTIPLIERS[0], c[0])
            high1, low1 = _product(MULTIPLIERS[1], c[2])
            c = [high1 ^ c[1] ^ k[0], low1, high0 ^ c[3] ^ k[1], low0]
            k = [word + step for word, step in zip(k, WEYL, strict=True)]
    return c


def _product(a: np.uint64, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """High and low half of the product of two words, of 128 bits."""
    a0, a1 = a & LOW_HALF, a >> HALF
    b0, b1 = b & LOW_HALF, b >> HALF
    low, cross = a0 * b0, a1 * b0
    middle = a0 * b1 + (low >> HALF)
    total = cross + (middle & LOW_HALF)
    return a1 * b1 + (middle >> HALF) + (total >> HALF), a * b


def random_words(seed: int, name: str, rows: np.ndarray, count: int = 1) -> np.ndarray:
    """Random words of 64 bits, (rows, count)."""
    blocks = np.arange(-(-count // 4), dtype=np.uint64)
    row = np.repeat(np.asarray(rows, dtype=np.uint64), len(blocks))
    block = np.tile(blocks, len(rows))
    own = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")  # of the parameter
    stream = np.full(len(row), own, dtype=np.uint64)
    found = philox([row, block, stream, np.zeros_like(row)], (seed, 0))
    return np.stack(found, axis=-1).reshape(len(rows), 4 * len(blocks))[:, :count]


def uniforms(seed: int, name: str, rows: np.ndarray, count: int = 1) -> np.ndarray:
    """Numbers between 0 and 1, both excluded, (rows, count)."""
    return _between(random_words(seed, name, rows, count) >> np.uint64(12), 52)


def _between(whole: np.ndarray, bits: int) -> np.ndarray:
    """(whole + 1/2) 2^-bits: exact, and never 0 or 1, for bits up to 52."""
    return (whole.astype(float) + 0.5) * 2.0**-bits


def sobol_points(seed: int, names: Sequence[str], first: int, last: int) -> np.ndarray:
    """Points first..last of a Sobol sequence with a dimension for each name, in (0, 1), (rows, names).

    The digits of each coordinate are flipped at random, the same ones in all points: a digital shift, which
    leaves the sequence as even as it was. Digits beyond the 32nd are drawn for each point.
    """
    from scipy.stats import qmc

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of numbers of points that are no power of two
        sequence = qmc.Sobol(max(1, len(names)), scramble=False, bits=SOBOL_BITS)
        if first:
            sequence.fast_forward(first)
        points = sequence.random(last - first)[:, : len(names)]
    whole = (points * 2.0**SOBOL_BITS).astype(np.uint64)
    rows = np.arange(first, last, dtype=np.uint64)
    for k, name in enumerate(names):
        shift = random_words(seed, name, np.array([SHIFT_ROW]))[0, 0] >> np.uint64(64 - SOBOL_BITS)
        rest = random_words(seed, name, rows)[:, 0] >> np.uint64(12 + SOBOL_BITS)
        whole[:, k] = ((whole[:, k] ^ shift) << np.uint64(52 - SOBOL_BITS)) | rest
    return _between(whole, 52)


# ---- the quantile of the normal distribution ---------------------------------------------------

LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
"""ln 2 = LN2_HIGH + LN2_LOW; the product of the first with an exponent is exact."""

SQRT_HALF = 0.7071067811865476
ATANH_TERMS = 12

CENTRAL = (
    (
        3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3, 1.3731693765509461125e4,
        4.5921953931549871457e4, 6.7265770927008700853e4, 3.3430575583588128105e4, 2.5090809287301226727e3,
    ),
    (
        1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3,
        2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4, 5.2264952788528545610e3,
    ),
)  # fmt: skip
MIDDLE = (
    (
        1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0,
        3.64784832476320460504e0, 1.27045825245236838258e0, 2.41780725177450611770e-1,
        2.27238449892691845833e-2, 7.74545014278341407640e-4,
    ),
    (
        1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
        1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4,
        1.05075007164441684324e-9,
    ),
)  # fmt: skip
FAR = (
    (
        6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0,
        2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
        2.71155556874348757815e-5, 2.01033439929228813265e-7,
    ),
    (
        1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
        7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7,
        2.04426310338993978564e-15,
    ),
)  # fmt: skip
"""Numerators and denominators of the rational functions of :func:`normal_quantile`."""


def logarithm(x: Any) -> np.ndarray:
    """Natural logarithm of normal numbers x = m 2^e > 0, by the series of 2 atanh((m - 1) / (m + 1))."""
    m, e = np.frexp(np.asarray(x, dtype=float))
    low = m < SQRT_HALF
    m, e = np.where(low, m + m, m), np.where(low, e - 1, e).astype(float)
    f = (m - 1.0) / (m + 1.0)
    series = _polynomial(tuple(1.0 / (2 * k + 1) for k in range(1, ATANH_TERMS)), f * f)
    return e * LN2_HIGH + (2.0 * f + (2.0 * f * (f * f) * series + e * LN2_LOW))


def normal_quantile(p: Any) -> np.ndarray:
    """The standard normal variable that is exceeded with probability 1 - p, 0 < p < 1.

    Source: M. J. Wichura, "Algorithm AS 241: the percentage points of the normal distribution" (1988); its
    relative error is about 1e-16.
    """
    p = np.asarray(p, dtype=float)
    q = p - 0.5
    central = np.abs(q) <= 0.425
    small = np.minimum(p, 1.0 - p)
    root = np.sqrt(-logarithm(np.where(central, 0.5, small)))
    inner = q * _ratio(CENTRAL, 0.180625 - np.where(central, q * q, 0.0))
    outer = np.where(root <= 5.0, _ratio(MIDDLE, root - 1.6), _ratio(FAR, root - 5.0))
    return np.where(central, inner, np.where(q < 0.0, -outer, outer))


def _ratio(coefficients: tuple[tuple[float, ...], tuple[float, ...]], x: np.ndarray) -> np.ndarray:
    return _polynomial(coefficients[0], x) / _polynomial(coefficients[1], x)


def _polynomial(coefficients: tuple[float, ...], x: np.ndarray) -> np.ndarray:
    """c_0 + c_1 x + c_2 x^2 + ... by Horner's rule."""
    total = np.full_like(x, coefficients[-1])
    for c in coefficients[-2::-1]:
        total = total * x + c
    return total


# ==== distributions ===============================================================================


# ---- what all distributions share --------------------------------------------------------------

Value = float | str


@frozen
class Distribution:
    """What all distributions share."""

    kind: ClassVar[str]  # its name in JSON
    drawn: ClassVar[bool] = True  # whether rows draw at random; else the row's number decides
    # name of the field with all values that there are; "" where there are too many to list
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


@frozen
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


@frozen
class Uniform(Distribution):
    """A uniform distribution between two bounds.

    Attributes:
        low, high: the bounds, in the unit of the parameter.
    """

    low: float
    high: float
    kind: ClassVar[str] = "uniform"

    def __post_init__(self) -> None:
        name = type(self).__name__
        for end in ("low", "high"):
            object.__setattr__(self, end, real_number(f"{name}({end}=...)", getattr(self, end)))
        if self.low > self.high:
            raise ShapeError(f"{name}: expected low <= high, got {self.low:g} and {self.high:g}")

    def at(self, u: np.ndarray) -> np.ndarray:
        """The values at uniformly distributed numbers between 0 and 1, (B,)."""
        return self.low + (self.high - self.low) * u

    def bounds(self) -> tuple[float, float]:
        """The smallest and the largest possible value."""
        return self.low, self.high


@frozen
class Sobol(Uniform):
    """A uniform distribution from a Sobol sequence: rows fill the range more evenly than random ones.

    All Sobol parameters of a sweep share one sequence, in which each is a dimension, so that their
    combinations are even, too. The rows fill the ranges most evenly if their number is a power of two.
    """

    kind: ClassVar[str] = "sobol"


@frozen
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
                f"Normal: almost nothing of mean {self.mean:g} and deviation {self.deviation:g} lies "
                f"between {low:g} and {high:g}; give other bounds"
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
        """The smallest and the largest possible value."""
        low = -math.inf if self.low is None else self.low
        return low, math.inf if self.high is None else self.high


@frozen
class Choice(Distribution):
    """One of several values, drawn at random.

    Attributes:
        options: numbers, or words such as names of links or robots.
        weights: relative probabilities, with any sum; None if all are equally likely.
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
    """Values in order: row k has the k-th one, and after the last one the first follows again.

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
        """The values with these numbers, counted from 0."""
        return value_array(self.points)[places]


def distribution(what: str, value: Any) -> Distribution:
    """What was given for a parameter, as a distribution; WrongType if it is none."""
    if isinstance(value, Distribution):
        return value
    if isinstance(value, str):
        return Constant(value)
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        hint = "a list of values is rk.Choice([...]) or rk.Grid([...])" if np.ndim(value) else ""
        raise WrongType(what, value, ACCEPTED, hint)
    return Constant(real_number(what, value))


def distribution_from_json(record: Mapping[str, Any]) -> Distribution:
    """The distribution of a record; raises LookupError, TypeError or ValueError for anything else."""
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


# ---- as text, for the command line -------------------------------------------------------------

SPELLINGS = (
    "0.5, 0:20, normal:1:0.1, normal:1:0.1:0.8:1.2, choice:a,b, grid:0:20:11, grid:1,2,5 or sobol:0:20"
)


def read_distribution(text: str, scale: float = 1.0) -> Distribution:
    """The distribution of a text as this module's docstring has them; ShapeError for anything else.

    ``scale`` multiplies its numbers: radians of a degree, where they are degrees.
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
