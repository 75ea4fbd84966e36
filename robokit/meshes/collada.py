"""The triangles and colours of a COLLADA (.dae) file: what robot meshes use of the format, and no more.

Scene nodes with their transforms, triangles, polylists and polygons, and the diffuse colour or picture of
each material. Skins and animations are left out. trimesh reads the format only with a further package, and
leaves the unit of length to its caller.

The up axis is ignored, as RViz, MoveIt, coal and Gazebo ignore it: the placements in robot descriptions
were tuned by eye in those programs. A description made where the axis counts (the iCub of
example-robot-data) shows its parts turned by 90 degrees, here as there.

Source: COLLADA 1.4.1 specification, chapter 5.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from robokit.meshes.companions import companion
from robokit.meshes.surface import Surface
from robokit.model.geometry import RGBA

MOST_NODES = 20_000
"""Scene nodes that are drawn; nodes that place each other could make any number of a short file."""

Primitive = tuple[np.ndarray, np.ndarray, np.ndarray | None, str | None]


def read_collada(path: Path) -> Iterator[Surface]:
    """The surfaces of a file.

    Args:
        path: the file on disk.

    Yields:
        One for each geometry and material that the scene shows.

    Raises:
        ValueError: text that is no COLLADA.
    """
    from lxml import etree

    # Meshes come from anywhere: no entities, no network. Long texts are fine: vertex lists pass 10 MB.
    parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True, remove_comments=True)
    root = etree.parse(str(path), parser).getroot()
    if etree.QName(root).localname != "COLLADA":
        raise ValueError("the file is no COLLADA document")
    for element in root.iter():
        if isinstance(element.tag, str):
            element.tag = etree.QName(element).localname
    by_id: dict[str, Any] = {str(element.get("id")): element for element in root.iter() if element.get("id")}
    unit = root.find("asset/unit")
    scale = float(unit.get("meter", "1")) if unit is not None else 1.0
    turn = np.diag([scale, scale, scale, 1.0])
    instance = root.find("scene/instance_visual_scene")
    shown = _target(by_id, instance.get("url")) if instance is not None else root.find(".//visual_scene")
    left = iter(range(MOST_NODES))
    for node in shown.findall("node") if shown is not None else ():
        yield from _surfaces(node, turn, by_id, path.parent, left)


def _surfaces(
    node: Any, above: np.ndarray, by_id: dict[str, Any], folder: Path, left: Iterator[int]
) -> Iterator[Surface]:
    """Those of a scene node and of the nodes below it; each node takes one of what is left."""
    if next(left, None) is None:
        raise ValueError(f"the scene has more than {MOST_NODES:,} nodes")
    matrix = above @ _transform(node)
    for instance in node.findall("instance_geometry"):
        geometry = _target(by_id, instance.get("url"))
        if geometry is None:
            continue
        materials = {
            bound.get("symbol"): _target(by_id, bound.get("target"))
            for bound in instance.iter("instance_material")
        }
        for vertices, faces, uv, symbol in _primitives(geometry, by_id):
            points = vertices @ matrix[:3, :3].T + matrix[:3, 3]
            if np.linalg.det(matrix[:3, :3]) < 0:
                faces, uv = faces[:, ::-1], None if uv is None else uv[:, ::-1]
            effect = _effect(materials.get(symbol), by_id)
            name = None if uv is None else _picture_name(effect, by_id)
            try:
                picture = None if name is None else companion(folder, name)
            except FileNotFoundError:
                yield Surface(points, faces, _diffuse(effect), missing=str(name))
                continue
            yield Surface(points, faces, _diffuse(effect), None, uv if picture else None, picture)
    for instance in node.findall("instance_node"):
        target = _target(by_id, instance.get("url"))
        if target is not None:
            yield from _surfaces(target, matrix, by_id, folder, left)
    for child in node.findall("node"):
        yield from _surfaces(child, matrix, by_id, folder, left)


def _transform(node: Any) -> np.ndarray:
    """The product of a node's matrix, translate, rotate and scale elements, (4, 4)."""
    total = np.eye(4)
    for element in node:
        step = np.eye(4)
        if element.tag == "matrix":
            step = _numbers(element).reshape(4, 4)
        elif element.tag == "translate":
            step[:3, 3] = _numbers(element)
        elif element.tag == "scale":
            step[:3, :3] = np.diag(_numbers(element))
        elif element.tag == "rotate":
            x, y, z, degrees = _numbers(element)
            axis = np.array([x, y, z]) / max(float(np.linalg.norm([x, y, z])), 1e-12)
            cross = np.cross(np.eye(3), axis)
            angle = np.radians(degrees)
            step[:3, :3] = np.eye(3) + np.sin(angle) * cross + (1.0 - np.cos(angle)) * cross @ cross
        else:
            continue
        total = total @ step
    return total


def _primitives(geometry: Any, by_id: dict[str, Any]) -> Iterator[Primitive]:
    """Vertices, faces, picture coordinates of their corners and material symbol of each primitive list."""
    for kind in ("triangles", "polylist", "polygons"):
        for primitive in geometry.iter(kind):
            inputs = primitive.findall("input")
            stride = 1 + max((int(given.get("offset", "0")) for given in inputs), default=0)
            vertex = next((given for given in inputs if given.get("semantic") == "VERTEX"), None)
            lists = [np.array(p.text.split(), dtype=np.int64) for p in primitive.findall("p") if p.text]
            if vertex is None or not lists:
                continue
            positions = _positions(_target(by_id, vertex.get("source")), by_id)
            sizes = None
            if kind == "polylist":
                sizes = _numbers(primitive.find("vcount")).astype(int)
            elif kind == "polygons":
                sizes = np.array([len(flat) // stride for flat in lists])
            corners = np.concatenate(lists).reshape(-1, stride)
            if sizes is not None:
                corners = corners[_fans(sizes)]
            faces = corners[:, int(vertex.get("offset", "0"))].reshape(-1, 3)
            uv = None
            for given in inputs:
                if given.get("semantic") == "TEXCOORD" and uv is None:
                    places = _columns(_target(by_id, given.get("source")))
                    at = corners[:, int(given.get("offset", "0"))]
                    if (
                        places is not None
                        and places.shape[1] >= 2
                        and 0 <= at.min() <= at.max() < len(places)
                    ):
                        uv = places[at, :2].reshape(-1, 3, 2)
            yield positions, faces, uv, primitive.get("material")


def _fans(sizes: np.ndarray) -> np.ndarray:
    """Polygons of consecutive corners cut into triangles about their first: numbers of corners, flat."""
    first = np.cumsum(sizes) - sizes
    triangles = [(a, a + i, a + i + 1) for a, n in zip(first, sizes, strict=True) for i in range(1, n - 1)]
    return np.array(triangles, dtype=np.int64).reshape(-1)


def _columns(source: Any) -> np.ndarray | None:
    """The numbers of a source, one row each, as its accessor says; None where there are none."""
    numbers = source.find("float_array") if source is not None else None
    accessor = source.find(".//accessor") if source is not None else None
    if numbers is None:
        return None
    stride = int(accessor.get("stride", "1")) if accessor is not None else 2
    return _numbers(numbers).reshape(-1, stride)


def _positions(vertices: Any, by_id: dict[str, Any]) -> np.ndarray:
    """The POSITION source behind a vertices element, (n, 3)."""
    given = next(item for item in vertices.findall("input") if item.get("semantic") == "POSITION")
    return _numbers(_target(by_id, given.get("source")).find("float_array")).reshape(-1, 3)


def _effect(material: Any, by_id: dict[str, Any]) -> Any:
    """The effect element of a material, or None."""
    instance = material.find("instance_effect") if material is not None else None
    return _target(by_id, instance.get("url")) if instance is not None else None


def _diffuse(effect: Any) -> RGBA | None:
    """The diffuse colour of an effect, None where it has none or is a picture."""
    colour = effect.find(".//diffuse/color") if effect is not None else None
    if colour is None:
        return None
    red, green, blue, alpha = np.clip(np.append(_numbers(colour), 1.0)[:4], 0.0, 1.0)
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


def _numbers(element: Any) -> np.ndarray:
    """The numbers in an element's text."""
    return np.array((element.text or "").split(), dtype=float)
