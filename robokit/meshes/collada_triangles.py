"""The triangles of a COLLADA geometry: triangles, polylists and polygons, with their picture coordinates.

Counts are compared with the lists that they describe before triangles are made, and each list is read once,
however many primitives share it.

Source: COLLADA 1.4.1 specification, chapter 5 (geometry, polylist, polygons, triangles).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from robokit.meshes.collada_text import read_numbers
from robokit.meshes.surface import used_vertices
from robokit.meshes.untrusted import Budget

MOST_INPUTS = 64
"""Numbers that a corner of a polygon may have: its vertex, its normal, places in pictures."""


@dataclass(frozen=True)
class Triangles:
    """A primitive of a geometry.

    Attributes:
        vertices: (n, 3) in the geometry's frame and unit.
        faces: (m, 3).
        uv: (m, 3, 2) places of the corners in a picture, or None.
        material: the symbol of its material, or None.
    """

    vertices: np.ndarray
    faces: np.ndarray
    uv: np.ndarray | None
    material: str | None


class Geometries:
    """The geometries of a file.

    Args:
        by_id: id -> element of the file.
        budget: counts the primitives and their triangles.
    """

    def __init__(self, by_id: dict[str, Any], budget: Budget) -> None:
        self._by_id, self._budget = by_id, budget
        self._known: dict[Any, list[Triangles]] = {}
        self._positions: dict[Any, np.ndarray] = {}
        self._places: dict[Any, np.ndarray | None] = {}

    def triangles(self, geometry: Any) -> list[Triangles]:
        """The primitives of a geometry element that have triangles, counted each time.

        Raises:
            ValueError: a count, an offset or the number of a vertex does not fit the lists.
        """
        if geometry in self._known:
            for triangles in self._known[geometry]:
                self._budget.piece(len(triangles.faces))
        else:
            self._known[geometry] = list(self._primitives(geometry))
        return self._known[geometry]

    def _primitives(self, geometry: Any) -> Iterator[Triangles]:
        for kind in ("triangles", "polylist", "polygons"):
            for primitive in geometry.iter(kind):
                inputs = {given.get("semantic"): given for given in reversed(primitive.findall("input"))}
                offsets = [_offset(given) for given in primitive.findall("input")]
                stride = 1 + max(offsets, default=0)
                lists = [read_numbers(p, int) for p in primitive.findall("p")]
                if "VERTEX" not in inputs or not sum(map(len, lists)):
                    continue
                corners = np.concatenate(lists).reshape(-1, stride)
                if kind == "polylist":
                    corners = corners[_fans(read_numbers(primitive.find("vcount"), int), len(corners))]
                elif kind == "polygons":
                    corners = corners[_fans(np.array([len(p) // stride for p in lists]), len(corners))]
                elif len(corners) % 3:
                    raise ValueError(f"triangles have {len(corners):,} corners, no multiple of three")
                self._budget.piece(len(corners) // 3)
                vertices = self._vertices(self._source(inputs["VERTEX"]))
                at = corners[:, _offset(inputs["VERTEX"])].reshape(-1, 3)
                used, faces = used_vertices(at, len(vertices))
                uv = self._in_picture(inputs.get("TEXCOORD"), corners)
                if len(faces):
                    yield Triangles(vertices[used], faces, uv, primitive.get("material"))

    def _vertices(self, vertices: Any) -> np.ndarray:
        """The positions of a vertices element, (n, 3).

        Raises:
            ValueError: it has none.
        """
        if vertices not in self._positions:
            inputs = vertices.findall("input") if vertices is not None else []
            source = next((self._source(i) for i in inputs if i.get("semantic") == "POSITION"), None)
            if source is None:
                raise ValueError("a list of triangles has no positions")
            self._positions[vertices] = read_numbers(source.find("float_array")).reshape(-1, 3)
        return self._positions[vertices]

    def _in_picture(self, given: Any, corners: np.ndarray) -> np.ndarray | None:
        """Picture coordinates of corners (m, 3, 2), None where there are none that fit."""
        table = self._table(self._source(given)) if given is not None else None
        if table is None or not len(corners):
            return None
        at = corners[:, _offset(given)]
        if table.shape[1] < 2 or not 0 <= at.min() <= at.max() < len(table):
            return None
        return table[at, :2].reshape(-1, 3, 2)

    def _table(self, source: Any) -> np.ndarray | None:
        """The numbers of a source, one row each as its accessor says; None where there are none."""
        if source not in self._places:
            numbers = source.find("float_array") if source is not None else None
            accessor = source.find(".//accessor") if source is not None else None
            columns = int(accessor.get("stride", "1")) if accessor is not None else 2
            self._places[source] = None if numbers is None else read_numbers(numbers).reshape(-1, columns)
        return self._places[source]

    def _source(self, given: Any) -> Any:
        """The element that an input refers to, or None."""
        return self._by_id.get((given.get("source") or "").lstrip("#"))


def _offset(given: Any) -> int:
    """The place of an input among the numbers of a corner.

    Raises:
        ValueError: it is no such place.
    """
    offset = int(given.get("offset", "0"))
    if not 0 <= offset < MOST_INPUTS:
        raise ValueError(f"an input has the offset {offset}; accepted are 0 to {MOST_INPUTS - 1}")
    return offset


def _fans(sizes: np.ndarray, count: int) -> np.ndarray:
    """Polygons of consecutive corners cut into triangles about their first: numbers of corners, flat.

    Args:
        sizes: corners of each polygon.
        count: corners that there are.

    Raises:
        ValueError: the polygons have more corners than there are.
    """
    if len(sizes) and (sizes.min() < 0 or sizes.max() > count or sizes.sum() > count):
        raise ValueError(f"polygons ask for {sum(map(int, sizes)):,} corners, and there are {count:,}")
    triangles = np.maximum(sizes - 2, 0)
    polygon = np.repeat(np.arange(len(sizes)), triangles)
    k = np.arange(len(polygon)) - np.repeat(np.cumsum(triangles) - triangles, triangles)
    first = (np.cumsum(sizes) - sizes)[polygon]
    return np.stack([first, first + k + 1, first + k + 2], axis=1).reshape(-1)
