"""Distributions as text, for the command line.

0:20                  any number between the two, equally likely; also uniform:0:20
normal:1:0.1          mean and standard deviation; normal:1:0.1:0.8:1.2 is cut off at 0.8 and 1.2
choice:a,b,c          one of these
grid:0:20:11          eleven evenly spaced numbers, one after the other; also grid:0,5,20
sobol:0:20            as 0:20, spread evenly
0.5                   this number in every row
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from robokit.errors import ShapeError, shown
from robokit.sweeps.draws.distributions import Choice, Constant, Distribution, Grid, Normal, Sobol, Uniform

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
        values = [_value(x, scale) for x in rest.split(",")] if rest else []
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
    value = _value(text, scale)
    if not text or "," in text:
        raise _refusal(text)
    return Constant(value)


def _value(text: str, scale: float) -> Any:
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


def spelled(given: Distribution, scale: float = 1.0) -> str:
    """A distribution in words, its numbers divided by a scale: "0 to 20", "normal, 1 with deviation 0.1"."""

    def n(x: Any) -> str:
        return x if isinstance(x, str) else f"{x / scale:.4g}"

    if isinstance(given, Uniform):
        return f"{n(given.low)} to {n(given.high)}" + (" (Sobol)" if isinstance(given, Sobol) else "")
    if isinstance(given, Normal):
        ends = [word + n(x) for word, x in (("from ", given.low), ("to ", given.high)) if x is not None]
        return f"{n(given.mean)} with deviation {n(given.deviation)}" + "".join(f", {x}" for x in ends)
    values = given.values() or []
    words = ", ".join(n(x) for x in values[:4]) + (f", ... {n(values[-1])}" if len(values) > 4 else "")
    return f"one of {words}" if isinstance(given, Choice) else words
