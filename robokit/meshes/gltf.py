"""The triangles, colours and pictures of a glTF file (.gltf, .glb): what robot meshes use of the format.

Scene nodes with their transforms, triangles, strips and fans, the base colour and its picture, colours of
vertices. Skins, morph targets and animations are left out, and so is compression: a file that requires it
is refused. trimesh reads the format too, but opens every picture on its own, copies what is placed many
times, and passes over sparse accessors.

Source: glTF 2.0 specification, chapters 3.5 (scenes), 3.7 (meshes) and 3.9 (materials).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from robokit.meshes.gltf_data import GltfData
from robokit.meshes.surface import Surface, compose, used_vertices
from robokit.meshes.untrusted import Budget
from robokit.model.geometry import RGBA

TRIANGLES, STRIP, FAN = 4, 5, 6
"""Modes of a primitive; points and lines are not shown."""

_HARMLESS = ("KHR_materials_", "KHR_texture_", "KHR_mesh_quantization", "KHR_lights_", "EXT_texture_webp")


def read_gltf(path: Path, content: bytes, budget: Budget) -> Iterator[Surface]:
    """The surfaces of a file.

    Args:
        path: of the file, for what lies beside it.
        content: of the file.
        budget: counts what is made of it.

    Yields:
        One for each primitive and place of the scene.

    Raises:
        ValueError: text that is no glTF 2.0, or numbers that are not in the file.
    """
    data = GltfData(content, path.parent, budget)
    required = [str(name)[:60] for name in data.tree.get("extensionsRequired", [])]
    unknown = [name for name in required if not name.startswith(_HARMLESS)]
    if unknown:
        raise ValueError(f"the file requires the extension {unknown[0]}, which is not read")
    known: dict[int, list[Surface]] = {}
    for mesh, matrix in _placed_meshes(data, budget):
        if mesh in known:
            for surface in known[mesh]:
                budget.piece(len(surface.faces))
        else:
            primitives = data.item("meshes", mesh).get("primitives", [])
            found = [_surface(data, primitive, budget) for primitive in primitives]
            known[mesh] = [surface for surface in found if surface is not None]
        for surface in known[mesh]:
            yield surface.placed(matrix)


def _placed_meshes(data: GltfData, budget: Budget) -> Iterator[tuple[Any, np.ndarray]]:
    """Number and place of each mesh that the scene shows."""
    nodes = data.items("nodes")
    if data.items("scenes"):
        roots = data.item("scenes", data.tree.get("scene", 0)).get("nodes", [])
    else:
        below = {child for node in nodes for child in node.get("children", [])}
        roots = [k for k in range(len(nodes)) if k not in below]
    seen: set[int] = set()
    todo = [(index, np.eye(4)) for index in reversed(roots)]
    while todo:
        index, above = todo.pop()
        node = data.item("nodes", index)
        if index in seen:
            raise ValueError(f"node {index} is placed twice; nodes must form a tree")
        seen.add(index)
        budget.place()
        matrix = compose(above, _transform(node))
        if "mesh" in node:
            yield node["mesh"], matrix
        todo += [(child, matrix) for child in reversed(node.get("children", []))]


@np.errstate(all="ignore")
def _transform(node: dict[str, Any]) -> np.ndarray:
    """The matrix of a node, or the product of its translation, rotation and scale, (4, 4)."""
    if "matrix" in node:
        return np.array(node["matrix"], dtype=float).reshape(4, 4).T
    total = np.eye(4)
    x, y, z, w = np.array(node.get("rotation", (0, 0, 0, 1)), dtype=float)
    total[:3, :3] = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ]
    total[:3, :3] *= np.array(node.get("scale", (1, 1, 1)), dtype=float)
    total[:3, 3] = node.get("translation", (0, 0, 0))
    return total


def _surface(data: GltfData, primitive: dict[str, Any], budget: Budget) -> Surface | None:
    """A primitive in the frame of its mesh; None where it has no triangles."""
    attributes = primitive.get("attributes", {})
    mode = primitive.get("mode", TRIANGLES)
    if "POSITION" not in attributes or mode not in (TRIANGLES, STRIP, FAN):
        return None
    count = data.count(attributes["POSITION"])
    indices = data.array(primitive["indices"])[:, 0] if "indices" in primitive else None
    corners = count if indices is None else len(indices)
    budget.piece(corners // 3 if mode == TRIANGLES else max(corners - 2, 0))
    if indices is None:
        indices = np.arange(count)
    used, faces = used_vertices(_faces(indices.astype(np.int64), mode), count)
    if not len(faces):
        return None
    positions = data.array(attributes["POSITION"], used).astype(float)
    if positions.shape[1] != 3:
        raise ValueError("positions have not three coordinates")
    surface = Surface(positions, faces)
    if "material" in primitive:
        material = data.item("materials", primitive["material"])
        return _painted(data, surface, material, attributes, used)
    if "COLOR_0" in attributes and data.count(attributes["COLOR_0"]) == count:
        return replace(surface, colours=_colours(data.array(attributes["COLOR_0"], used)))
    return surface


def _colours(values: np.ndarray) -> np.ndarray | None:
    """Colours of vertices (n, 3), 0..255, from numbers 0..1; bytes are taken as they are."""
    if values.shape[1] < 3:
        return None
    rgb = values[:, :3]
    return rgb if rgb.dtype == np.uint8 else (np.clip(rgb, 0.0, 1.0) * 255.0).astype(np.uint8)


def _faces(indices: np.ndarray, mode: int) -> np.ndarray:
    """Corners of triangles (m, 3) from the list of corners of a primitive (3.7.2.1)."""
    if mode == TRIANGLES:
        return indices[: len(indices) // 3 * 3].reshape(-1, 3)
    if len(indices) < 3:
        return np.zeros((0, 3), dtype=np.int64)
    k = np.arange(len(indices) - 2)
    if mode == FAN:
        return indices[np.stack([k + 1, k + 2, np.zeros_like(k)], axis=1)]
    faces = indices[np.stack([k, k + 1 + k % 2, k + 2 - k % 2], axis=1)]
    a, b, c = faces.T
    return faces[(a != b) & (b != c) & (a != c)]  # strips are joined by triangles without area


def _painted(
    data: GltfData,
    surface: Surface,
    material: dict[str, Any],
    attributes: dict[str, Any],
    used: np.ndarray,
) -> Surface:
    """The surface with the colour or the picture of its material."""
    looks = material.get("pbrMetallicRoughness", {})
    factor = looks.get("baseColorFactor")
    surface = replace(surface, rgba=None if factor is None else _from_linear(factor))
    texture = looks.get("baseColorTexture")
    if texture is None:
        return surface
    places = attributes.get(f"TEXCOORD_{texture.get('texCoord', 0)}")
    if places is None:
        return surface
    picture, missing = data.picture(texture.get("index"))
    if picture is None:
        return replace(surface, missing=missing)
    uv = data.array(places, used).astype(float)
    if uv.shape[1] != 2:
        raise ValueError("places in a picture are not two numbers each")
    corners = uv[surface.faces]
    corners[..., 1] = 1.0 - corners[..., 1]  # glTF counts from the upper left
    return replace(surface, uv=corners, picture=picture)


def _from_linear(factor: Any) -> RGBA:
    """A colour factor of glTF, linear (3.9.2), in sRGB (IEC 61966-2-1)."""
    light = np.clip(np.append(np.asarray(factor, dtype=float), 1.0)[:4], 0.0, 1.0)
    red, green, blue, _ = np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1.0 / 2.4) - 0.055)
    return float(red), float(green), float(blue), float(light[3])
