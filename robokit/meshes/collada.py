"""The scene of a COLLADA (.dae) file: what robot meshes use of the format, and no more.

Scene nodes with their transforms, the triangles that they show, and the diffuse colour or picture of each
material. Skins and animations are left out. trimesh reads the format only with a further package, and
leaves the unit of length to its caller.

The up axis is ignored here, as RViz, MoveIt, coal and classic Gazebo ignore it: the placements in robot
descriptions were chosen in those programs. A description for which the axis counts (the iCub of
example-robot-data) shows its parts turned by 90 degrees, here as in those programs; the importer's
``mesh_up_axis="apply"`` turns the shapes that such meshes belong to.

Source: COLLADA 1.4.1 specification, chapter 5.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from robokit.meshes.collada_text import parse_collada, read_numbers
from robokit.meshes.collada_triangles import Geometries, Triangles
from robokit.meshes.companions import head_of, picture_beside, shortened
from robokit.meshes.surface import Picture, Surface, compose
from robokit.meshes.untrusted import FARTHEST, Budget
from robokit.model.geometry import RGBA

HEAD = 1 << 16
"""Bytes in which the element <asset> is looked for: it is the first of a document."""

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
    said = _UP_AXIS.search(head_of(path, HEAD).replace(b"\0", b""))
    return said[1].decode() if said else "Z"


@dataclass(frozen=True)
class _Looks:
    """How a material looks.

    Attributes:
        rgba: diffuse colour, None where it has none or a picture.
        picture: the picture that its diffuse colour is taken from, or None.
        missing: name of the picture that was not found, or "".
    """

    rgba: RGBA | None = None
    picture: Picture | None = None
    missing: str = ""


@dataclass(frozen=True)
class _Place:
    """A scene node, read once however often it is placed.

    Attributes:
        matrix: (4, 4) of its frame in the frame above.
        instances: the geometries that it shows, each with its material of each symbol.
        below: the nodes in its frame.
    """

    matrix: np.ndarray
    instances: list[tuple[Any, dict[str | None, Any]]]
    below: list[Any]


def read_collada(path: Path, content: bytes, budget: Budget) -> Iterator[Surface]:
    """The surfaces of a file.

    Args:
        path: of the file, for the pictures beside it.
        content: of the file.
        budget: counts what is made of it.

    Yields:
        One for each list of triangles and place of the scene.

    Raises:
        ValueError: text that is no COLLADA, or counts that do not fit it.
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
                yield _surface(triangles, looks).placed(matrix)
        for child in reversed(place.below):
            budget.place()
            todo.append((child, matrix))


def _metres(text: str) -> float:
    """Metres in the file's unit of length."""
    try:
        scale = float(text)
    except ValueError:
        scale = math.nan
    if not 1.0 / FARTHEST <= scale <= FARTHEST:
        raise ValueError(
            f"its unit of length is meter={shortened(text)!r}; accepted are {1.0 / FARTHEST:g} to "
            f"{FARTHEST:g}"
        )
    return scale


class _Document:
    """Nodes and materials of a file, each read once."""

    def __init__(self, by_id: dict[str, Any], folder: Path, budget: Budget) -> None:
        self._by_id, self._folder, self._budget = by_id, folder, budget
        self._geometries = Geometries(by_id, budget)
        self._places: dict[Any, _Place] = {}
        self._looks: dict[Any, _Looks] = {None: _Looks()}

    def place(self, node: Any) -> _Place:
        """What a node element says."""
        if node not in self._places:
            instances = node.findall("instance_geometry")
            shown = [(self._target(instance), self._materials(instance)) for instance in instances]
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

    def _materials(self, instance: Any) -> dict[str | None, Any]:
        bound = instance.iter("instance_material")
        return {each.get("symbol"): _target(self._by_id, each.get("target")) for each in bound}

    def _target(self, instance: Any) -> Any:
        return _target(self._by_id, instance.get("url"))


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
