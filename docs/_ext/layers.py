"""Places for the boxes of a layered graph, so that its arrows are short and cross little (after Sugiyama).

An arrow over several bands passes each band between as a point of its own. The order in a band is improved by
the mean of the neighbours; then boxes are pulled towards their neighbours as far as the order allows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

BETWEEN = 20.0
PASS = 6.0
SWEEPS = 24
PULLS = 80


@dataclass
class Spot:
    """A box, or the point where a long arrow passes a band.

    Attributes:
        band: from 0, the lowest.
        width: of the box.
        x: of its centre.
        above, below: spots that it is joined to by an arrow.
    """

    band: int
    width: float
    x: float = 0.0
    above: list[Spot] = field(default_factory=list)
    below: list[Spot] = field(default_factory=list)


def join(a: Spot, b: Spot) -> list[Spot]:
    """From a box down to another, with a new point in every band between."""
    way = [a, *(Spot(k, PASS) for k in range(a.band - 1, b.band, -1)), b]
    for upper, lower in pairwise(way):
        upper.below.append(lower)
        lower.above.append(upper)
    return way


def order(rows: list[list[Spot]]) -> None:
    """Order each band so that few arrows cross."""

    def number(row: list[Spot]) -> None:
        for k, spot in enumerate(row):
            spot.x = (k + 0.5) / len(row)

    def crossings() -> int:
        total = 0
        for row in rows:
            pairs = [(a.x, b.x) for a in row for b in a.below]
            total += sum((p[0] - q[0]) * (p[1] - q[1]) < 0 for k, p in enumerate(pairs) for q in pairs[:k])
        return total

    for row in rows:
        number(row)
    best, fewest = [list(row) for row in rows], crossings()
    for sweep in range(SWEEPS):
        upward = sweep % 2 == 0
        for row in rows if upward else reversed(rows):

            def pull(spot: Spot, upward: bool = upward) -> float:
                near = spot.below if upward else spot.above
                return sum(s.x for s in near) / len(near) if near else spot.x

            row.sort(key=pull)
            number(row)
        if (now := crossings()) < fewest:
            best, fewest = [list(row) for row in rows], now
    rows[:] = best


def needed_width(row: list[Spot]) -> float:
    """The width that a band takes at least."""
    return sum(spot.width for spot in row) + BETWEEN * (len(row) - 1)


def place(rows: list[list[Spot]], low: float, high: float) -> None:
    """Give each spot its x in [low, high]: towards the mean of its neighbours, in the band's order."""
    for row in rows:
        free = (high - low - sum(s.width for s in row)) / (len(row) + 1)
        x = low
        for spot in row:
            spot.x = x + free + spot.width / 2
            x = spot.x + spot.width / 2
    for sweep in range(PULLS):
        for row in rows if sweep % 2 else reversed(rows):
            want = []
            for spot in row:
                near = [*spot.above, *spot.below]
                mean = sum(s.x for s in near) / len(near) if near else spot.x
                # A point that an arrow passes yields to its neighbours: long arrows become straight.
                want.append(mean if spot.width == PASS else 0.5 * (mean + spot.x))
            _apart(row, want, low, high)
    spots = [spot for row in rows for spot in row]
    left = min(s.x - s.width / 2 for s in spots)
    right = max(s.x + s.width / 2 for s in spots)
    for spot in spots:
        spot.x += (low + high - left - right) / 2


def _apart(row: list[Spot], want: list[float], low: float, high: float) -> None:
    """Spots of a band as near to the wanted places as their widths allow, in their order."""
    widths = [spot.width for spot in row]
    both = zip(_rightward(widths, want, low), _leftward(widths, want, high), strict=True)
    # The mean of two rows without overlap has none either, but may leave the picture.
    mean = [(a + b) / 2 for a, b in both]
    for spot, x in zip(row, _leftward(widths, _rightward(widths, mean, low), high), strict=True):
        spot.x = x


def _rightward(widths: list[float], places: list[float], low: float) -> list[float]:
    """The places, each moved to the right as far as it must to be clear of those before it."""
    out = []
    for width, x in zip(widths, places, strict=True):
        out.append(max(x, low + width / 2))
        low = out[-1] + width / 2 + BETWEEN
    return out


def _leftward(widths: list[float], places: list[float], high: float) -> list[float]:
    """The same to the left."""
    mirrored = _rightward(widths[::-1], [-x for x in reversed(places)], -high)
    return [-x for x in reversed(mirrored)]
