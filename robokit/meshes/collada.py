"""COLLADA files (.dae): what robot meshes use of the format, and no more.

Scene nodes with their transforms, the triangles that they show, and the diffuse colour or picture of each
material. Skins and animations are left out. trimesh reads the format only with a further package, and
leaves the unit of length to its caller.

The up axis is ignored here, as RViz, MoveIt, coal and classic Gazebo ignore it: the placements in robot
descriptions were chosen in those programs. A description for which the axis counts (the iCub of
example-robot-data) shows its parts turned by 90 degrees, here as in those programs; the importer's
``mesh_up_axis="apply"`` turns the shapes that such meshes belong to.

Source: COLLADA 1.4.1 specification, chapter 5 (scenes; geometry, polylist, polygons, triangles).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from robokit.dataclass_tools import frozen
from robokit.meshes.surface import Picture, Surface, compose, used_vertices
from robokit.meshes.untrusted import (
    LARGEST_COORDINATE,
    Budget,
    check_tags,
    head_of,
    picture_beside,
    shortened,
)
from robokit.model.geometry import RGBA

HEAD_BYTES = 1 << 16  # bytes in which the element <asset> is looked for: it is the first of a document

_UP_AXIS = re.compile(rb"<(?:[\w.-]+:)?up_axis>\s*([XYZ])_UP\s*<")

TO_Z_UP = {
    "X": ((0.0, -1.0, 0.0), (0.0, 0.0, -1.0), (1.0, 0.0, 0.0)),
    "Y": ((1.0, 0.0, 0.0), (0.0, 0.0, -1.0), (0.0, 1.0, 0.0)),
}
"""Up axis -> rotation of a file's coordinates into those with z up: right to x, up to z, towards the viewer
to -y. Source: COLLADA 1.4.1, chapter 5, <up_axis>."""


def up_axis(path: Path | None) -> str:
    """The axis that a COLLADA file says is up, "X", "Y" or "Z"; "Z" of one that does not say, and of others.

    (The specification's default is Y. Exporters of robots write the element wherever they mean it.)
    """
    if path is None or path.suffix.lower() != ".dae":
        return "Z"
    said = _UP_AXIS.search(head_of(path, HEAD_BYTES).replace(b"\0", b""))
    return said[1].decode() if said else "Z"


@frozen
class _Looks:
    """How a material looks."""

    rgba: RGBA | None = None  # diffuse colour, None where it has none or a picture
    picture: Picture | None = None  # the picture that its diffuse colour is taken from, or None
    missing: str = ""  # name of the picture that was not found, or ""


@frozen
class _Place:
    """A scene node, read once however often it is placed."""

    matrix: np.ndarray  # (4, 4) of its frame in the frame above
    # the geometries that it shows, each with its material of each symbol
    instances: list[tuple[Any, dict[str | None, Any]]]
    below: list[Any]  # the nodes in its frame


def read_collada(path: Path, content: bytes, budget: Budget) -> Iterator[Surface]:
    """The surfaces of a COLLADA file: one for each list of triangles and place of the scene.

    ``budget`` counts what is made of the content; pictures are looked for beside the path. Raises ValueError
    for text that is no COLLADA, or counts that do not fit it.
    """
    root = parse_collada(content)
    by_id: dict[str, Any] = {str(element.get("id")): element for element in root.iter() if element.get("id")}
    instance = root.find("scene/instance_visual_scene")
    shown = _target(by_id, instance.get("url")) if instance is not None else root.find(".//visual_scene")
    unit = root.find("asset/unit")
    scale = _metres(unit.get("meter", "1")) if unit is not None else 1.0
    document = _Document(by_id, path.parent, budget)
    nodes = shown.findall("node") if shown is not None else []
    todo = [(node, np.diag([scale, scale, scale, 1.0])) for node in reversed(nodes)]
    while todo:
        node, above = todo.pop()
        place = document.place(node)
        matrix = compose(above, place.matrix)
        for geometry, materials in place.instances:
            budget.place()
            for triangles in document.triangles(geometry):
                looks = document.looks(materials.get(triangles.material))
                yield _surface(triangles, looks).transform(matrix)
        for child in reversed(place.below):
            budget.place()
            todo.append((child, matrix))


def _metres(text: str) -> float:
    """Metres in the file's unit of length."""
    try:
        scale = float(text)
    except ValueError:
        scale = math.nan
    if not 1.0 / LARGEST_COORDINATE <= scale <= LARGEST_COORDINATE:
        raise ValueError(
            f"its unit of length is meter={shortened(text)!r}; accepted are {1.0 / LARGEST_COORDINATE:g} to "
            f"{LARGEST_COORDINATE:g}"
        )
    return scale


class _Document:
    """Nodes and materials of a file, each read once."""

    def __init__(self, by_id: dict[str, Any], folder: Path, budget: Budget) -> None:
        self._by_id, self._folder = by_id, folder
        self._geometries = Geometries(by_id, budget)
        self._places: dict[Any, _Place] = {}
        self._looks: dict[Any, _Looks] = {None: _Looks()}

    def place(self, node: Any) -> _Place:
        """What a node element says."""
        if node not in self._places:
            shown = []
            for instance in node.findall("instance_geometry"):
                bound = instance.iter("instance_material")
                materials = {each.get("symbol"): self._target(each, "target") for each in bound}
                shown.append((self._target(instance), materials))
            named = map(self._target, node.findall("instance_node"))
            below = [target for target in named if target is not None] + node.findall("node")
            self._places[node] = _Place(_transform(node), shown, below)
        return self._places[node]

    def triangles(self, geometry: Any) -> list[Triangles]:
        """The triangles of a geometry element, none of None."""
        return self._geometries.triangles(geometry) if geometry is not None else []

    def looks(self, material: Any) -> _Looks:
        """How a material element looks; None is no material."""
        if material not in self._looks:
            instance = material.find("instance_effect")
            effect = self._target(instance) if instance is not None else None
            if effect not in self._looks:
                picture, missing = picture_beside(self._folder, _picture_name(effect, self._by_id))
                self._looks[effect] = _Looks(_diffuse(effect), picture, missing)
            self._looks[material] = self._looks[effect]
        return self._looks[material]

    def _target(self, instance: Any, attribute: str = "url") -> Any:
        return _target(self._by_id, instance.get(attribute))


def _surface(triangles: Triangles, looks: _Looks) -> Surface:
    """Triangles with their looks; pictures cover only what has places in them."""
    if triangles.uv is None:
        return Surface(triangles.vertices, triangles.faces, looks.rgba)
    uv = triangles.uv if looks.picture is not None else None
    return Surface(triangles.vertices, triangles.faces, looks.rgba, None, uv, looks.picture, looks.missing)


@np.errstate(all="ignore")
def _transform(node: Any) -> np.ndarray:
    """The product of a node's matrix, translate, rotate and scale elements, (4, 4)."""
    total = np.eye(4)
    for element in node:
        step = np.eye(4)
        if element.tag == "matrix":
            step = read_numbers(element).reshape(4, 4)
        elif element.tag == "translate":
            step[:3, 3] = read_numbers(element)
        elif element.tag == "scale":
            step[:3, :3] = np.diag(read_numbers(element))
        elif element.tag == "rotate":
            x, y, z, degrees = read_numbers(element)
            axis = np.array([x, y, z]) / max(float(np.linalg.norm([x, y, z])), 1e-12)
            cross = np.cross(np.eye(3), axis)
            angle = np.radians(degrees)
            step[:3, :3] = np.eye(3) + np.sin(angle) * cross + (1.0 - np.cos(angle)) * cross @ cross
        else:
            continue
        total = total @ step
    return total


def _diffuse(effect: Any) -> RGBA | None:
    """The diffuse colour of an effect, None where it has none or is a picture."""
    colour = effect.find(".//diffuse/color") if effect is not None else None
    if colour is None:
        return None
    red, green, blue, alpha = np.clip(np.append(read_numbers(colour), 1.0)[:4], 0.0, 1.0)
    return float(red), float(green), float(blue), float(alpha)


def _picture_name(effect: Any, by_id: dict[str, Any]) -> str | None:
    """The name of the picture that an effect's diffuse colour is taken from, None where there is none."""
    used = effect.find(".//diffuse/texture") if effect is not None else None
    name = used.get("texture") if used is not None else None
    for kind in ("sampler2D/source", "surface/init_from"):  # two steps, each a named parameter of the effect
        parameter = next((p for p in effect.iter("newparam") if p.get("sid") == name), None) if name else None
        step = parameter.find(kind) if parameter is not None else None
        if step is not None and step.text:
            name = step.text.strip()
    image = by_id.get(name or "")
    source = image.find("init_from") if image is not None and image.tag == "image" else None
    return source.text.strip() if source is not None and source.text else None


def _target(by_id: dict[str, Any], url: str | None) -> Any:
    """The element that a local reference (#id) names, or None."""
    return by_id.get((url or "").lstrip("#"))


# ---- geometries ----------------------------------------------------------------------------------
# Triangles, polylists and polygons, with their places in pictures. Counts are compared with the lists that
# they describe before triangles are made, and each list is read once, however many primitives share it.

MOST_INPUTS = 64  # numbers that a corner of a polygon may have: its vertex, its normal, places in pictures


@frozen
class Triangles:
    """A primitive of a geometry."""

    vertices: np.ndarray  # (n, 3) in the geometry's frame and unit
    faces: np.ndarray  # (m, 3)
    uv: np.ndarray | None  # (m, 3, 2) places of the corners in a picture, or None
    material: str | None  # the symbol of its material, or None


class Geometries:
    """The geometries of a file, of its elements by id; the budget counts primitives and triangles."""

    def __init__(self, by_id: dict[str, Any], budget: Budget) -> None:
        self._by_id, self._budget = by_id, budget
        self._known: dict[Any, list[Triangles]] = {}
        self._positions: dict[Any, np.ndarray] = {}
        self._places: dict[Any, np.ndarray | None] = {}

    def triangles(self, geometry: Any) -> list[Triangles]:
        """The primitives of a geometry element that have triangles, counted each time.

        Raises ValueError where a count, an offset or the number of a vertex does not fit the lists.
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
                    raise ValueError(f"triangles have {len(corners):,} corners, not a multiple of three")
                self._budget.piece(len(corners) // 3)
                vertices = self._vertices(self._source(inputs["VERTEX"]))
                at = corners[:, _offset(inputs["VERTEX"])].reshape(-1, 3)
                used, faces = used_vertices(at, len(vertices))
                uv = self._in_picture(inputs.get("TEXCOORD"), corners)
                if len(faces):
                    yield Triangles(vertices[used], faces, uv, primitive.get("material"))

    def _vertices(self, vertices: Any) -> np.ndarray:
        """The positions of a vertices element, (n, 3); ValueError if it has none."""
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
    """The place of an input among the numbers of a corner; ValueError for what is none."""
    offset = int(given.get("offset", "0"))
    if not 0 <= offset < MOST_INPUTS:
        raise ValueError(f"an input has the offset {offset}; accepted are 0 to {MOST_INPUTS - 1}")
    return offset


def _fans(sizes: np.ndarray, count: int) -> np.ndarray:
    """Polygons of consecutive corners cut into triangles about their first: numbers of corners, flat.

    Raises ValueError if polygons of these sizes have more than ``count`` corners.
    """
    if len(sizes) and (sizes.min() < 0 or sizes.max() > count or sizes.sum() > count):
        raise ValueError(f"polygons ask for {sum(map(int, sizes)):,} corners, and there are {count:,}")
    triangles = np.maximum(sizes - 2, 0)
    polygon = np.repeat(np.arange(len(sizes)), triangles)
    k = np.arange(len(polygon)) - np.repeat(np.cumsum(triangles) - triangles, triangles)
    first = (np.cumsum(sizes) - sizes)[polygon]
    return np.stack([first, first + k + 1, first + k + 2], axis=1).reshape(-1)


# ---- text ----------------------------------------------------------------------------------------
# Parsed without entities; and its lists of numbers.

CHUNK_CHARACTERS = 1 << 20
"""Characters of a list of numbers that are taken apart at once: as strings they need thirty times as much."""

_SPACE = re.compile(r"\s")
_ENCODING = re.compile(rb"<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([A-Za-z0-9._-]{1,40})[\"']")
_OTHER_ENCODINGS = re.compile(r"iso-8859-\d+|windows-125\d|cp125\d|gbk|gb2312|gb18030|shift_jis|euc-(jp|kr)")


def parse_collada(content: bytes) -> Any:
    """The root element of a file, with tags freed of their namespace.

    Raises ValueError for no COLLADA, a DOCTYPE or too many elements, lxml.etree.XMLSyntaxError for no XML.
    """
    from lxml import etree

    text = _utf8(content)
    # Parsers expand entities in attributes whatever their options say, so no file may define any.
    if b"<!DOCTYPE" in text:
        raise ValueError("it has a DOCTYPE, which COLLADA does not use and which is not read")
    check_tags(text.count(b"<"), "tags")
    # Lists of vertices are longer than the 10 MB that XML readers take unless told otherwise.
    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=True,
        remove_comments=True,
        remove_pis=True,
        encoding="utf-8",
    )
    root = etree.fromstring(text, parser)
    for element in root.iter(etree.Element):
        if element.tag[0] == "{":
            element.tag = element.tag.partition("}")[2]
    if root.tag != "COLLADA":
        raise ValueError(f"its root is <{str(root.tag)[:40]}>; a COLLADA document begins with <COLLADA>")
    return root


def _utf8(content: bytes) -> bytes:
    """The text in UTF-8, in which a DOCTYPE cannot hide behind another encoding."""
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return content.decode("utf-16").encode()
    declared = _ENCODING.match(content[:400].lstrip())
    name = declared[1].decode().lower() if declared else "utf-8"
    if _OTHER_ENCODINGS.fullmatch(name):
        return content.decode(name).encode()
    return content


def read_numbers(element: Any, kind: type = float) -> np.ndarray:
    """The numbers in an element's text, flat, none of None; ValueError for what is not of the kind."""
    text = (element.text or "") if element is not None else ""
    parts: list[np.ndarray] = []
    start = 0
    while start < len(text):
        space = _SPACE.search(text, start + CHUNK_CHARACTERS)
        end = space.start() if space else len(text)
        words = text[start:end].split()
        try:
            parts.append(np.array(words, dtype=kind))
        except (ValueError, OverflowError) as problem:
            accepted = "whole numbers" if kind is int else "numbers"
            raise ValueError(f"<{element.tag}> holds something else than {accepted}: {problem}") from problem
        start = end
    return np.concatenate(parts) if parts else np.zeros(0, dtype=kind)
