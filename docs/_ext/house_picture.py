"""The floors of robokit as a picture: bands from the ground up, boxes for their parts, arrows for imports.

The floors and the imports are those of tests/house.py. Only the arrows that no others imply are drawn: A -> C
is left out beside A -> B -> C, until the reader points at A. The layout is the usual one of layered graphs
(Sugiyama): long arrows pass the bands between as points of their own, the order in each band is improved by
the mean of the neighbours, then boxes are pulled towards their neighbours. No Sphinx is needed here.
"""

from __future__ import annotations

import ast
import math
import sys
from collections import Counter
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests"))

import house  # noqa: E402  (the folder above must be on the path first)

WIDTH, MARGIN, GUTTER = 860.0, 14.0, 34.0
BOX, GAP = 42.0, 40.0
BETWEEN = 20.0
LETTER = 8.1
PASS = 6.0
SWEEPS = 24

Edge = tuple[str, str]


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


def imports_between(folder: str) -> Counter[Edge]:
    """How often each part of a folder imports each other."""
    count: Counter[Edge] = Counter()
    for each in house.imports(ROOT / "robokit"):
        if folder and not (_inside(each.source, folder) and _inside(each.target, folder)):
            continue
        edge = house.place(each.source, folder), house.place(each.target, folder)
        if edge[0] != edge[1]:
            count[edge] += 1
    return count


def _inside(module: str, folder: str) -> bool:
    return module == folder or module.startswith(folder + ".")


def not_implied(edges: set[Edge]) -> set[Edge]:
    """The edges that do not follow from a longer way along others."""
    after: dict[str, set[str]] = {}
    for source, target in edges:
        after.setdefault(source, set()).add(target)

    def reached(start: str) -> set[str]:
        seen: set[str] = set()
        todo = [start]
        while todo:
            new = after.get(todo.pop(), set()) - seen
            seen |= new
            todo += new
        return seen

    reach = {node: reached(node) for node in after}
    return {(a, b) for a, b in edges if not any(b in reach.get(m, ()) for m in after[a] - {b})}


def size(folder: str, part: str) -> str:
    """Files and lines of a part."""
    path = ROOT / "robokit" / folder / part
    files = sorted(path.rglob("*.py")) if path.is_dir() else [path.with_suffix(".py")]
    lines = sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)
    return f"{len(files)} files, {lines:,} lines" if path.is_dir() else f"{lines:,} lines"


def subject(folder: str, part: str) -> str:
    """The first line of a part's docstring."""
    path = ROOT / "robokit" / folder / part
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return text.partition("\n")[0]


def label(folder: str, part: str) -> str:
    """The name in a box."""
    return f"{folder or 'robokit'}/__init__" if part == "__init__" else part


def draw(folder: str = "") -> str:
    """The picture of a folder, "" for the whole package, as SVG."""
    bands = house.FLOORS[folder]
    count = imports_between(folder)
    spots: dict[str, Spot] = {}
    for k, parts in enumerate(bands):
        for part in parts:
            width = 22 + max(LETTER * len(label(folder, part)), 5.9 * len(size(folder, part)))
            spots[part] = Spot(k, width)
    drawn = sorted(not_implied(set(count)))
    down = [e for e in drawn if spots[e[0]].band > spots[e[1]].band]
    ways = {edge: _way(spots[edge[0]], spots[edge[1]]) for edge in down}
    rows: list[list[Spot]] = [[spots[part] for part in parts] for parts in bands]
    for way in ways.values():
        for spot in way[1:-1]:
            rows[spot.band].append(spot)
    _order(rows)
    _place(rows)

    height = len(bands) * (BOX + GAP) + MARGIN

    def top(band: int) -> float:
        return height - MARGIN / 2 - (band + 1) * (BOX + GAP) + GAP / 2

    out = []
    for k in range(len(bands)):
        y, shade = top(k) - GAP / 2, "band even" if k % 2 else "band"
        out.append(f'<rect class="{shade}" x="0" y="{y:.1f}" width="{WIDTH:.0f}" height="{BOX + GAP:.0f}"/>')
        out.append(f'<text class="floor" x="12" y="{y + (BOX + GAP) / 2 + 5:.1f}">{k + 1}</text>')
    for edge, number in sorted(count.items()):
        a, b = (spots[part] for part in edge)
        way = ways.get(edge, [a, b])
        kind = "up" if a.band <= b.band else "drawn" if edge in ways else "implied"
        names = " ".join((kind, f"from-{edge[0]}", f"to-{edge[1]}"))
        points = _points(way, top, edge, ways, spots)
        said = f"{edge[0]} imports {edge[1]}: {number} import{'s' if number > 1 else ''}"
        wide = 1.1 + 0.5 * math.log2(number)
        out.append(
            f'<g class="import {names}"><title>{escape(said)}</title>'
            f'<path d="{_curve(points)}" style="stroke-width:{wide:.1f}"/>'
            f'<path class="head" d="{_head(points[-1])}"/></g>'
        )
    for part, spot in spots.items():
        x, y = spot.x - spot.width / 2, top(spot.band)
        inner = (
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{spot.width:.1f}" height="{BOX:.0f}" rx="5"/>'
            f'<text class="name" x="{spot.x:.1f}" y="{y + 18:.1f}">{label(folder, part)}</text>'
            f'<text class="size" x="{spot.x:.1f}" y="{y + 33:.1f}">{size(folder, part)}</text>'
        )
        kind = "folder" if (ROOT / "robokit" / folder / part).is_dir() else "module"
        box = f'<g class="part {kind} at-{part}"><title>{escape(subject(folder, part))}</title>{inner}</g>'
        if kind == "folder":
            box = f'<a href="#{"-".join(filter(None, ("folder", folder, part)))}">{box}</a>'
        out.append(box)
    name = folder or "package"
    rules = "".join(
        f".house.{name}:has(.at-{part}:hover) .drawn:not(.from-{part}):not(.to-{part}){{opacity:.08}}"
        f".house.{name}:has(.at-{part}:hover) .from-{part}{{opacity:1}}"
        for part in spots
    )
    said = f"The floors of {'robokit' if not folder else 'robokit/' + folder}, lowest first: " + "; ".join(
        ", ".join(parts) for parts in bands
    )
    return (
        f'<svg class="house {name}" viewBox="0 0 {WIDTH:.0f} {height:.0f}" role="img" '
        f'aria-label="{escape(said)}"><style>{rules}</style>{"".join(out)}</svg>'
    )


def _way(a: Spot, b: Spot) -> list[Spot]:
    """From a box down to another, with a new point in every band between."""
    way = [a, *(Spot(k, PASS) for k in range(a.band - 1, b.band, -1)), b]
    for upper, lower in pairwise(way):
        upper.below.append(lower)
        lower.above.append(upper)
    return way


def _order(rows: list[list[Spot]]) -> None:
    """Order each band so that few arrows cross."""

    def number() -> None:
        for row in rows:
            for k, spot in enumerate(row):
                spot.x = (k + 0.5) / len(row)

    def crossings() -> int:
        total = 0
        for row in rows:
            pairs = [(a.x, b.x) for a in row for b in a.below]
            total += sum((p[0] - q[0]) * (p[1] - q[1]) < 0 for k, p in enumerate(pairs) for q in pairs[:k])
        return total

    number()
    best, fewest = [list(row) for row in rows], crossings()
    for sweep in range(SWEEPS):
        upward = sweep % 2 == 0
        for row in rows if upward else reversed(rows):

            def pull(spot: Spot, upward: bool = upward) -> float:
                near = spot.below if upward else spot.above
                return sum(s.x for s in near) / len(near) if near else spot.x

            row.sort(key=pull)
            for k, spot in enumerate(row):
                spot.x = (k + 0.5) / len(row)
        if (now := crossings()) < fewest:
            best, fewest = [list(row) for row in rows], now
    rows[:] = best


def _place(rows: list[list[Spot]]) -> None:
    """Give each spot its x: towards the mean of its neighbours, in the band's order, without overlap."""
    low, high = GUTTER, WIDTH - MARGIN
    for row in rows:
        free = (high - low - sum(s.width for s in row)) / (len(row) + 1)
        x = low
        for spot in row:
            spot.x = x + free + spot.width / 2
            x = spot.x + spot.width / 2
    for sweep in range(80):
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

    def gap(a: Spot, b: Spot) -> float:
        return a.width / 2 + b.width / 2 + BETWEEN

    left, right = list(want), list(want)
    for k, spot in enumerate(row):
        least = low + spot.width / 2 if k == 0 else left[k - 1] + gap(row[k - 1], spot)
        left[k] = max(want[k], least)
    for k in range(len(row) - 1, -1, -1):
        most = high - row[k].width / 2 if k == len(row) - 1 else right[k + 1] - gap(row[k], row[k + 1])
        right[k] = min(want[k], most)
    for k, spot in enumerate(row):
        spot.x = (left[k] + right[k]) / 2
    for k, spot in enumerate(
        row
    ):  # the mean of two orders without overlap has none, but may leave the picture
        least = low + spot.width / 2 if k == 0 else row[k - 1].x + gap(row[k - 1], spot)
        spot.x = max(spot.x, least)
    for k in range(len(row) - 1, -1, -1):
        most = high - row[k].width / 2 if k == len(row) - 1 else row[k + 1].x - gap(row[k], row[k + 1])
        row[k].x = min(row[k].x, most)


def _points(way, top, edge, ways, spots) -> list[tuple[float, float]]:  # type: ignore[no-untyped-def]
    """Where an arrow passes: bottom of its box, both ends of each band between, top of the box below."""
    a, b = way[0], way[-1]
    leaving = sorted((w[1].x, e) for e, w in ways.items() if e[0] == edge[0])
    coming = sorted((w[-2].x, e) for e, w in ways.items() if e[1] == edge[1])
    first = (_port(a, [e for _, e in leaving], edge), top(a.band) + BOX)
    last = (_port(b, [e for _, e in coming], edge), top(b.band))
    points = [first]
    for spot in way[1:-1]:
        points += [(spot.x, top(spot.band)), (spot.x, top(spot.band) + BOX)]
    return [*points, last]


def _port(spot: Spot, edges: list[Edge], edge: Edge) -> float:
    if edge not in edges:
        return spot.x
    step = min(14.0, (spot.width - 16) / len(edges))
    return spot.x + (edges.index(edge) - (len(edges) - 1) / 2) * step


def _curve(points: list[tuple[float, float]]) -> str:
    out = [f"M{points[0][0]:.1f} {points[0][1]:.1f}"]
    for (x0, y0), (x1, y1) in pairwise(points):
        bend = 0.5 * (y1 - y0)
        out.append(f"C{x0:.1f} {y0 + bend:.1f} {x1:.1f} {y1 - bend:.1f} {x1:.1f} {y1:.1f}")
    return "".join(out)


def _head(end: tuple[float, float]) -> str:
    x, y = end
    return f"M{x:.1f} {y:.1f}l-3.6 -7.5h7.2z"
