"""The triangles and colours of a COLLADA (.dae) file: what robot meshes use of the format, and no more.

Scene nodes with their transforms, triangles, polylists and polygons, and the diffuse colour of each material.
Skins, animations and textures are left out. trimesh reads the format only with a further package, and
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

from robokit.model.geometry import RGBA

Part = tuple[np.ndarray, np.ndarray, RGBA | None]


def read_collada(path: Path) -> Iterator[Part]:
    """Vertices (n, 3) [m], faces (m, 3) and colour of each part.

    Args:
        path: the file on disk.

    Yields:
        One part for each geometry and material that the scene shows.

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
    for node in shown.findall("node") if shown is not None else ():
        yield from _node_parts(node, turn, by_id)


def _node_parts(node: Any, above: np.ndarray, by_id: dict[str, Any]) -> Iterator[Part]:
    """Parts of a scene node and of the nodes below it."""
    matrix = above @ _transform(node)
    for instance in node.findall("instance_geometry"):
        geometry = _target(by_id, instance.get("url"))
        if geometry is None:
            continue
        materials = {
            bound.get("symbol"): _target(by_id, bound.get("target"))
            for bound in instance.iter("instance_material")
        }
        for vertices, faces, symbol in _geometry_parts(geometry, by_id):
            points = vertices @ matrix[:3, :3].T + matrix[:3, 3]
            if np.linalg.det(matrix[:3, :3]) < 0:
                faces = faces[:, ::-1]
            yield points, faces, _diffuse(materials.get(symbol), by_id)
    for instance in node.findall("instance_node"):
        target = _target(by_id, instance.get("url"))
        if target is not None:
            yield from _node_parts(target, matrix, by_id)
    for child in node.findall("node"):
        yield from _node_parts(child, matrix, by_id)


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


def _geometry_parts(
    geometry: Any, by_id: dict[str, Any]
) -> Iterator[tuple[np.ndarray, np.ndarray, str | None]]:
    """Vertices, faces and material symbol of each primitive list of a geometry."""
    for kind in ("triangles", "polylist", "polygons"):
        for primitive in geometry.iter(kind):
            inputs = primitive.findall("input")
            stride = 1 + max((int(given.get("offset", "0")) for given in inputs), default=0)
            vertex = next((given for given in inputs if given.get("semantic") == "VERTEX"), None)
            lists = [np.array(p.text.split(), dtype=np.int64) for p in primitive.findall("p") if p.text]
            if vertex is None or not lists:
                continue
            positions = _positions(_target(by_id, vertex.get("source")), by_id)
            corners = [flat[int(vertex.get("offset", "0")) :: stride] for flat in lists]
            if kind == "triangles":
                faces = np.concatenate(corners).reshape(-1, 3)
            elif kind == "polylist":
                counts = _numbers(primitive.find("vcount")).astype(int)
                faces = _fans(np.split(np.concatenate(corners), np.cumsum(counts)[:-1]))
            else:
                faces = _fans(corners)
            used, merged = np.unique(positions, axis=0, return_inverse=True)
            yield used, merged.reshape(-1)[faces], primitive.get("material")


def _fans(polygons: list[np.ndarray]) -> np.ndarray:
    """Polygons cut into triangles about their first corner, (m, 3)."""
    faces = [(p[0], p[i], p[i + 1]) for p in polygons for i in range(1, len(p) - 1)]
    return np.array(faces, dtype=np.int64).reshape(-1, 3)


def _positions(vertices: Any, by_id: dict[str, Any]) -> np.ndarray:
    """The POSITION source behind a vertices element, (n, 3)."""
    given = next(item for item in vertices.findall("input") if item.get("semantic") == "POSITION")
    return _numbers(_target(by_id, given.get("source")).find("float_array")).reshape(-1, 3)


def _diffuse(material: Any, by_id: dict[str, Any]) -> RGBA | None:
    """The diffuse colour of a material, None where it has none or is a texture."""
    instance = material.find("instance_effect") if material is not None else None
    effect = _target(by_id, instance.get("url")) if instance is not None else None
    colour = effect.find(".//diffuse/color") if effect is not None else None
    if colour is None:
        return None
    red, green, blue, alpha = np.clip(np.append(_numbers(colour), 1.0)[:4], 0.0, 1.0)
    return float(red), float(green), float(blue), float(alpha)


def _target(by_id: dict[str, Any], url: str | None) -> Any:
    """The element that a local reference (#id) names, or None."""
    return by_id.get((url or "").lstrip("#"))


def _numbers(element: Any) -> np.ndarray:
    """The numbers in an element's text."""
    return np.array((element.text or "").split(), dtype=float)
