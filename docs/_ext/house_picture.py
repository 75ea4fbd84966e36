"""The floors of robokit as a picture: bands from the ground up, boxes for their parts, arrows for imports.

The floors and the imports are those of tests/house.py. Only the arrows that no others imply are drawn: A -> C
is left out beside A -> B -> C, until the reader points at A. layers.py places the boxes. No Sphinx is needed
here, so that the tests look at the same picture.
"""

from __future__ import annotations

import ast
import math
import sys
from collections import Counter
from functools import cache
from html import escape
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests"))

import house  # noqa: E402  (the folder above must be on the path first)
from layers import Spot, join, needed_width, order, place  # noqa: E402

LEAST_WIDTH, MARGIN, GUTTER = 860.0, 14.0, 34.0
BAND, BOX = 82.0, 42.0
NAME_LETTER, SIZE_LETTER = 8.1, 5.9

Edge = tuple[str, str]


@cache
def all_imports() -> list[house.Import]:
    """Those of the whole package, looked for once a build."""
    return list(house.imports(ROOT / "robokit"))


def imports_between(folder: str) -> Counter[Edge]:
    """How often each part of a folder imports each other."""
    count: Counter[Edge] = Counter()
    for each in all_imports():
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
    spots = {part: Spot(k, _width(folder, part)) for k, parts in enumerate(bands) for part in parts}
    drawn = (e for e in sorted(not_implied(set(count))) if spots[e[0]].band > spots[e[1]].band)
    ways = {edge: join(*(spots[part] for part in edge)) for edge in drawn}
    rows = [[spots[part] for part in parts] for parts in bands]
    for way in ways.values():
        for spot in way[1:-1]:
            rows[spot.band].append(spot)
    order(rows)
    width = max(LEAST_WIDTH, GUTTER + max(map(needed_width, rows)) + MARGIN)
    place(rows, GUTTER, width - MARGIN)

    height = len(bands) * BAND
    below = [_band(k, width, height) for k in range(len(bands))]
    arrows = [_arrow(edge, number, spots, ways, height) for edge, number in sorted(count.items())]
    boxes = [_box(folder, part, spot, height) for part, spot in spots.items()]
    name = folder or "package"
    said = f"The floors of {'/'.join(filter(None, ('robokit', folder)))}, lowest first: "
    said += "; ".join(", ".join(parts) for parts in bands)
    return (
        f'<svg class="house {name}" viewBox="0 0 {width:.0f} {height:.0f}" role="img" '
        f'aria-label="{escape(said)}"><style>{"".join(_rule(name, part) for part in spots)}</style>'
        f"{''.join([*below, *arrows, *boxes])}</svg>"
    )


def _width(folder: str, part: str) -> float:
    return 22 + max(NAME_LETTER * len(label(folder, part)), SIZE_LETTER * len(size(folder, part)))


def _top(band: int, height: float) -> float:
    """y of the upper edge of a band's boxes."""
    return height - (band + 1) * BAND + (BAND - BOX) / 2


def _band(k: int, width: float, height: float) -> str:
    y, shade = height - (k + 1) * BAND, "band even" if k % 2 else "band"
    return (
        f'<rect class="{shade}" x="0" y="{y:.1f}" width="{width:.0f}" height="{BAND:.0f}"/>'
        f'<text class="floor" x="12" y="{y + BAND / 2 + 5:.1f}">{k + 1}</text>'
    )


def _arrow(
    edge: Edge, number: int, spots: dict[str, Spot], ways: dict[Edge, list[Spot]], height: float
) -> str:
    """An import: wider where there are more, drawn at once or only when the reader points at its source."""
    source, target = edge
    if spots[source].band <= spots[target].band:
        kind = "up"  # against the floors: red
    else:
        kind = "drawn" if edge in ways else "implied"
    points = _points(edge, ways.get(edge, [spots[source], spots[target]]), ways, height)
    said = f"{source} imports {target}: {number} import{'s' if number > 1 else ''}"
    return (
        f'<g class="import {kind} from-{source} to-{target}"><title>{said}</title>'
        f'<path d="{_curve(points)}" style="stroke-width:{1.1 + 0.5 * math.log2(number):.1f}"/>'
        f'<path class="head" d="{_head(points[-1])}"/></g>'
    )


def _box(folder: str, part: str, spot: Spot, height: float) -> str:
    """A part: its name and size, what it is as a tooltip; a folder links to its paragraph."""
    x, y = spot.x - spot.width / 2, _top(spot.band, height)
    kind = "folder" if (ROOT / "robokit" / folder / part).is_dir() else "module"
    box = (
        f'<g class="part {kind} at-{part}"><title>{escape(subject(folder, part))}</title>'
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{spot.width:.1f}" height="{BOX:.0f}" rx="5"/>'
        f'<text class="name" x="{spot.x:.1f}" y="{y + 18:.1f}">{label(folder, part)}</text>'
        f'<text class="size" x="{spot.x:.1f}" y="{y + 33:.1f}">{size(folder, part)}</text></g>'
    )
    if kind == "module":
        return box
    paragraph = "-".join(filter(None, ("folder", folder, part))).replace("_", "-")
    return f'<a href="#{paragraph}">{box}</a>'


def _rule(name: str, part: str) -> str:
    """While the reader points at a part: its own imports, and no others but those of it."""
    pointed = f".house.{name}:has(.at-{part}:hover)"
    return (
        f"{pointed} .drawn:not(.from-{part}):not(.to-{part}){{opacity:.08}}"
        f"{pointed} .from-{part}{{opacity:1}}"
    )


def _points(
    edge: Edge, way: list[Spot], ways: dict[Edge, list[Spot]], height: float
) -> list[tuple[float, float]]:
    """Where an arrow passes: bottom of its box, both ends of each band between, top of the box below."""
    a, b = way[0], way[-1]
    leaving = sorted((w[1].x, e) for e, w in ways.items() if e[0] == edge[0])
    coming = sorted((w[-2].x, e) for e, w in ways.items() if e[1] == edge[1])
    first = (_port(a, [e for _, e in leaving], edge), _top(a.band, height) + BOX)
    last = (_port(b, [e for _, e in coming], edge), _top(b.band, height))
    points = [first]
    for spot in way[1:-1]:
        points += [(spot.x, _top(spot.band, height)), (spot.x, _top(spot.band, height) + BOX)]
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
