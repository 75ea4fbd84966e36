"""glTF files (.gltf, .glb): what robot meshes use of the format.

Scene nodes with their transforms, triangles, strips and fans, the base colour and its picture, colours of
vertices. Skins, morph targets and animations are left out, and so is compression: a file that requires it
is refused. trimesh reads the format too, but opens every picture on its own, copies what is placed many
times, and passes over sparse accessors.

Source: glTF 2.0 specification, chapters 3.5 (scenes), 3.6 (binary data), 3.7 (meshes), 3.9 (materials) and
4.4 (GLB).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from robokit.meshes.surface import Picture, Surface, compose, used_vertices
from robokit.meshes.untrusted import Budget, check_tags, companion, picture_beside, read_file
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
            yield surface.transform(matrix)


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
        return _with_material(data, surface, material, attributes, used)
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
    return faces[(a != b) & (b != c) & (a != c)]  # triangles without area connect strips


def _with_material(
    data: GltfData, surface: Surface, material: dict[str, Any], attributes: dict[str, Any], used: np.ndarray
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
    """A colour factor of glTF, linear (3.9.2), converted to sRGB (IEC 61966-2-1)."""
    light = np.clip(np.append(np.asarray(factor, dtype=float), 1.0)[:4], 0.0, 1.0)
    red, green, blue, _ = np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1.0 / 2.4) - 0.055)
    return float(red), float(green), float(blue), float(light[3])


# ---- JSON, buffers and accessors -----------------------------------------------------------------
# Arrays from the numbers of the file, each within its bytes (glTF 2.0, 3.6 and 4.4).

_DTYPES = {5120: "<i1", 5121: "<u1", 5122: "<i2", 5123: "<u2", 5125: "<u4", 5126: "<f4"}
_COLUMNS = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4}


class GltfData:
    """A glTF file with its buffers.

    Args:
        content: of the file, GLTF or GLB.
        folder: of the file, for the buffers that it names.
        budget: counts what is made of it.

    Attributes:
        tree: the JSON text as Python objects.

    Raises:
        ValueError: no glTF 2.0, or a buffer that is not there.
    """

    def __init__(self, content: bytes, folder: Path, budget: Budget) -> None:
        text, stored = _chunks(content) if content[:4] == b"glTF" else (content, None)
        check_tags(sum(text.count(mark) for mark in (b"[", b"{", b",")), "entries")
        try:
            tree = json.loads(text, parse_constant=_refuse_constant)
        except ValueError as problem:
            raise ValueError(f"its text is no JSON: {problem}") from problem
        version = tree.get("asset", {}).get("version", "2.0") if isinstance(tree, dict) else "0"
        if not str(version).startswith("2."):
            raise ValueError("the file is no glTF 2.0")
        self.tree: dict[str, Any] = tree
        self._folder, self._budget = folder, budget
        self._lists: dict[str, list[dict[str, Any]]] = {}
        self._files: dict[Path, bytes] = {}
        self._pictures: dict[int, tuple[Picture | None, str]] = {}
        self._buffers = [self._buffer(buffer, stored) for buffer in self.items("buffers")]

    def items(self, name: str) -> list[dict[str, Any]]:
        """The objects of one kind ("meshes", "nodes", ...), an empty list where there are none."""
        if name not in self._lists:
            found = self.tree.get(name, [])
            if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
                raise ValueError(f"{name} is not a list of objects")
            self._lists[name] = found
        return self._lists[name]

    def item(self, name: str, index: Any) -> dict[str, Any]:
        """One object of a kind.

        Raises:
            ValueError: there is none of that number.
        """
        items = self.items(name)
        return items[whole(index, f"an index of {name}", len(items) - 1)]

    def view(self, index: Any) -> memoryview:
        """The bytes of a buffer view, without a copy.

        Raises:
            ValueError: it does not lie within its buffer.
        """
        view = self.item("bufferViews", index)
        buffer = self._buffers[whole(view.get("buffer"), "buffer", len(self._buffers) - 1)]
        start = whole(view.get("byteOffset", 0), "byteOffset", len(buffer))
        length = whole(view.get("byteLength"), "byteLength", len(buffer) - start)
        return buffer[start : start + length]

    def count(self, index: Any) -> int:
        """Number of rows of an accessor."""
        given = self.item("accessors", index)
        return whole(given.get("count"), "count", 3 * self._budget.most_triangles)

    def array(self, index: Any, rows: np.ndarray | None = None) -> np.ndarray:
        """The numbers of an accessor, (count, columns), or some of its rows.

        Of chosen rows, integers that stand for fractions are made floating-point numbers.

        Args:
            index: of the accessor.
            rows: numbers of the rows; without them all, as a view of the buffer.

        Raises:
            ValueError: it does not lie within its buffer view, or has fewer rows.
        """
        given, count = self.item("accessors", index), self.count(index)
        kind, columns = _DTYPES.get(given.get("componentType", 0)), _COLUMNS.get(given.get("type", ""))
        if kind is None or columns is None:
            raise ValueError(f"accessor {index} has a type that meshes do not use")
        if "bufferView" in given:
            stride = self.item("bufferViews", given["bufferView"]).get("byteStride")
            data = self.view(given["bufferView"])
            values = _strided_view(data, given.get("byteOffset", 0), count, columns, kind, stride)
        else:
            self._budget.triangles(count // 3)  # these are not stored in the file
            values = np.zeros((count, columns), kind)
        if isinstance(given.get("sparse"), dict):
            self._budget.triangles(count // 3)  # a copy of its own
            values = self._with_exceptions(values, given["sparse"])
        if rows is not None:
            if len(rows) and rows.max() >= count:
                raise ValueError(f"accessor {index} has {count:,} rows, and row {rows.max():,} is asked for")
            values = values[rows]
            if given.get("normalized") is True and kind != "<f4":
                values = np.maximum(values / np.iinfo(kind).max, -1.0)
        return values

    def picture(self, texture: Any) -> tuple[Picture | None, str]:
        """The picture of a texture of this number, read once; and its name where it is not found."""
        given = self.item("textures", texture)
        webp = given.get("extensions", {}).get("EXT_texture_webp", {})
        index = webp.get("source", given.get("source"))
        if index is None:
            return None, ""
        if index not in self._pictures:
            image = self.item("images", index)
            uri = image.get("uri")
            if uri is not None and not uri.startswith("data:"):
                self._pictures[index] = picture_beside(self._folder, uri)
            else:
                stored = self.view(image.get("bufferView")) if uri is None else decoded_uri(uri)
                self._budget.copied(len(stored))
                self._pictures[index] = bytes(stored), ""
        return self._pictures[index]

    def _with_exceptions(self, values: np.ndarray, sparse: dict[str, Any]) -> np.ndarray:
        """A copy in which some rows are exchanged (3.6.2.3)."""
        count = whole(sparse.get("count"), "count of a sparse accessor", len(values))
        places, rows = sparse.get("indices"), sparse.get("values")
        if not isinstance(places, dict) or not isinstance(rows, dict):
            raise ValueError("a sparse accessor has no indices or no values")
        kind = _DTYPES.get(places.get("componentType", 0), "")
        if kind not in ("<u1", "<u2", "<u4"):
            raise ValueError("a sparse accessor has indices of a wrong type")
        data = self.view(places.get("bufferView"))
        at = _strided_view(data, places.get("byteOffset", 0), count, 1, kind, None)[:, 0]
        data = self.view(rows.get("bufferView"))
        new = _strided_view(data, rows.get("byteOffset", 0), count, values.shape[1], values.dtype.str, None)
        if len(at) and at.max() >= len(values):
            raise ValueError(f"a sparse accessor names row {at.max()} of {len(values)}")
        values = values.copy()
        values[at] = new
        return values

    def _buffer(self, buffer: dict[str, Any], stored: bytes | None) -> memoryview:
        uri = buffer.get("uri")
        if uri is None and stored is not None:
            content = stored
        elif not isinstance(uri, str):
            raise ValueError("a buffer has no uri")
        elif uri.startswith("data:"):
            content = decoded_uri(uri)
        else:
            path = companion(self._folder, uri)
            if path not in self._files:
                self._files[path] = read_file(path)
                self._budget.read(len(self._files[path]))
            content = self._files[path]
        length = whole(buffer.get("byteLength"), "byteLength", len(content))
        return memoryview(content)[:length]  # no copy: many buffers may name one file


def decoded_uri(uri: str) -> bytes:
    """The content of a data: URI in base64.

    Raises:
        ValueError: it is none.
    """
    head, _, data = uri.partition(",")
    try:
        if head.endswith(";base64"):
            return base64.b64decode(data)
    except ValueError:
        pass
    raise ValueError("a data: URI is not in base64")


def whole(value: Any, what: str, most: int) -> int:
    """A whole number in a glTF file, checked.

    Raises:
        ValueError: it is none from 0 to most.
    """
    if type(value) is not int or not 0 <= value <= most:
        shown = value if isinstance(value, int) and abs(value) < 1e18 else str(value)[:40]
        raise ValueError(f"{what} is {shown}; there is room for a whole number from 0 to {max(most, 0):,}")
    return value


def _strided_view(
    data: memoryview, start: Any, count: int, columns: int, kind: str, stride: int | None
) -> np.ndarray:
    """Rows of numbers that lie some bytes apart, (count, columns), as a view of the data."""
    row = columns * np.dtype(kind).itemsize
    start = whole(start, "byteOffset", len(data))
    step = row if stride is None else whole(stride, "byteStride", 252)
    if step < row or (count and start + step * (count - 1) + row > len(data)):
        raise ValueError(f"an accessor of {count:,} rows does not fit its {len(data):,} bytes")
    if not count:
        return np.zeros((0, columns), kind)
    return np.ndarray((count, columns), kind, data, start, (step, np.dtype(kind).itemsize))


def _chunks(content: bytes) -> tuple[bytes, bytes | None]:
    """The JSON text and the binary chunk of a GLB file."""
    if len(content) < 20 or content[16:20] != b"JSON":
        raise ValueError("the GLB does not begin with a JSON text")
    length = int.from_bytes(content[12:16], "little")
    if 20 + length > len(content):
        raise ValueError(f"the GLB says that its text has {length:,} bytes, and ends before")
    head = content[20 + length : 28 + length]
    if head[4:] != b"BIN\0":
        return content[20 : 20 + length], None
    size = int.from_bytes(head[:4], "little")
    if 28 + length + size > len(content):
        raise ValueError(f"the GLB says that its buffer has {size:,} bytes, and ends before")
    return content[20 : 20 + length], content[28 + length : 28 + length + size]


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no number")
