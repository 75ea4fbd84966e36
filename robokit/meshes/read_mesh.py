"""Mesh files as surfaces: the one reader behind pictures, contact points and plausibility checks.

Mesh files come from anywhere. What is read is bounded by the size of the file, nothing is fetched, no
program is started, and what comes out is checked before anybody computes with it.
"""

from __future__ import annotations

import base64
import io
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import numpy as np

from robokit.meshes.collada import read_collada
from robokit.meshes.surface import Picture, Surface, compose, used_vertices
from robokit.meshes.untrusted import (
    Budget,
    check_coordinates,
    check_tags,
    companion,
    picture_beside,
    read_file,
    shortened,
)
from robokit.model.geometry import RGBA

# ==== gltf ========================================================================================
# glTF files (.gltf, .glb): what robot meshes use of the format.
#
# Scene nodes with their transforms, triangles, strips and fans, the base colour and its picture, colours of
# vertices. Skins, morph targets and animations are left out, and so is compression: a file that requires it
# is refused. trimesh reads the format too, but opens every picture on its own, copies what is placed many
# times, and passes over sparse accessors.
#
# Source: glTF 2.0 specification, chapters 3.5 (scenes), 3.6 (binary data), 3.7 (meshes), 3.9 (materials) and
# 4.4 (GLB).

TRIANGLES, STRIP, FAN = 4, 5, 6  # modes of a primitive; points and lines are not shown

_HARMLESS = ("KHR_materials_", "KHR_texture_", "KHR_mesh_quantization", "KHR_lights_", "EXT_texture_webp")


def read_gltf(path: Path, content: bytes, budget: Budget) -> Iterator[Surface]:
    """The surfaces of a glTF file: one for each primitive and place of the scene.

    ``budget`` counts what is made of the content; buffers and pictures may lie beside the path. Raises
    ValueError for text that is no glTF 2.0, or numbers that are not in the file.
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
        raise ValueError("positions do not have three coordinates")
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
        raise ValueError("texture coordinates are not two numbers each")
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
    """A glTF file, GLTF or GLB, with its buffers, some of them in files of its folder.

    ``tree`` is its JSON. Raises ValueError for no glTF 2.0, or a buffer that is not there.
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
            raise ValueError("the file is not glTF 2.0")
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
        """One object of a kind; ValueError if there is none of that number."""
        items = self.items(name)
        return items[whole(index, f"an index of {name}", len(items) - 1)]

    def view(self, index: Any) -> memoryview:
        """The bytes of a buffer view, without a copy; ValueError if it does not lie within its buffer."""
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
        """The numbers of an accessor, (count, columns), as a view of the buffer; or some of its rows.

        Of chosen rows, integers that stand for fractions are made floating-point numbers. Raises ValueError
        if it does not lie within its buffer view, or has fewer rows.
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
            path = companion(self._folder, uri, read=True)
            if path not in self._files:
                self._files[path] = read_file(path)
                self._budget.read(len(self._files[path]))
            content = self._files[path]
        length = whole(buffer.get("byteLength"), "byteLength", len(content))
        return memoryview(content)[:length]  # no copy: many buffers may name one file


def decoded_uri(uri: str) -> bytes:
    """The content of a data: URI in base64; ValueError if it is none."""
    head, _, data = uri.partition(",")
    try:
        if head.endswith(";base64"):
            return base64.b64decode(data)
    except ValueError:
        pass
    raise ValueError("a data: URI is not in base64")


def whole(value: Any, what: str, most: int) -> int:
    """A whole number in a glTF file, checked; ValueError if it is none from 0 to ``most``."""
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


# ==== STL, OBJ and PLY files: read by trimesh, once their counts have been compared with what is there ====
# Binary STL files, which most robots have, are read without it: importing trimesh takes longer than reading.
#
# trimesh opens the pictures that a file names with whatever Pillow has for them. It gets none to open here:
# the lists of materials that it reads name them under another key, and the heads of PLY files not at all.

OBJ_STEPS, OBJ_STEPS_A_BYTE = 100_000_000, 20
"""Materials of an OBJ times its vertices, in any file, and more for each of its bytes: trimesh goes through
all vertices for each material."""

MOST_MATERIALS = 2_000  # pieces of an OBJ: trimesh compares all their names, and each material is one
MOST_SOLIDS = 100  # of a text STL that cannot be joined: trimesh compares all their names
LONGEST_PLY_HEAD, MOST_PLY_PROPERTIES = 1 << 16, 64  # bytes; elements and properties

_PICTURE = "robokit_picture"
_PLY_SIZES = {
    **dict.fromkeys(("char", "uchar", "int8", "uint8"), 1),
    **dict.fromkeys(("short", "ushort", "int16", "uint16"), 2),
    **dict.fromkeys(("int", "uint", "float", "int32", "uint32", "float32"), 4),
    **dict.fromkeys(("double", "float64"), 8),
}


def read_with_trimesh(path: Path, content: bytes, budget: Budget) -> Iterator[Surface]:
    """The surfaces of an STL, OBJ or PLY file, by the ending of its path; what it names lies beside it.

    ``budget`` counts what is made of the content. Raises ValueError for counts that do not fit the file, and
    whatever trimesh raises.
    """
    kind = path.suffix.lower().lstrip(".")
    name = None
    if kind == "stl":
        content, binary = _checked_stl(content)
        if binary:
            # 80 bytes, the number of triangles, and of each 12 float32 and 2 bytes.
            count = int.from_bytes(content[80:84], "little")
            budget.piece(count)
            row = np.dtype([("numbers", "<f4", 12), ("more", "<u2")])
            rows = np.frombuffer(content, row, count, offset=84)
            corners = rows["numbers"][:, 3:].reshape(-1, 3).astype(float)
            yield Surface(corners, np.arange(3 * count).reshape(-1, 3))
            return
    elif kind == "obj":
        content = _checked_obj(content)
    else:
        content, name = _checked_ply(content)
    import trimesh

    beside = _Materials(path.parent, budget)
    # As it is: trimesh's processing drops vertices that are not finite without a word.
    with np.errstate(all="ignore"):  # numbers beyond their type are refused afterwards
        loaded: Any = trimesh.load(io.BytesIO(content), file_type=kind, resolver=beside, process=False)
    pieces = loaded.geometry.values() if isinstance(loaded, trimesh.Scene) else [loaded]
    piece: Any
    for piece in pieces:
        if not hasattr(piece, "faces") or not len(piece.faces):
            continue
        budget.piece(len(piece.faces))
        faces, vertices = np.asarray(piece.faces), np.asarray(piece.vertices, dtype=float)
        places = getattr(piece.visual, "uv", None)
        colours, uv, picture, missing = None, None, None, ""
        if places is not None:
            picture, missing = picture_beside(path.parent, _material_picture(piece) or name)
        if picture is not None:
            uv = np.asarray(places, dtype=float)[faces][..., :2]
        elif getattr(piece.visual, "kind", None) in ("vertex", "face"):
            colours = np.asarray(piece.visual.vertex_colors)[:, :3]
        yield Surface(vertices, faces, _colour(piece), colours, uv, picture, missing)


class _Materials(Mapping[str, bytes]):
    """What trimesh may read beside a file: lists of materials, with pictures under a key of ours."""

    def __init__(self, folder: Path, budget: Budget) -> None:
        self.folder, self.budget = folder, budget

    def __getitem__(self, name: str) -> bytes:
        path = companion(self.folder, name, read=True)
        if path.suffix.lower() != ".mtl":
            raise FileNotFoundError(f"{path.name!r} is not a list of materials")
        content = read_file(path)
        self.budget.read(len(content))
        lines = []
        for line in content.decode("utf-8", errors="replace").splitlines():
            key, *rest = line.split(maxsplit=1) or [""]
            if key.lower() == "map_kd":
                line = f"{_PICTURE} {quote(rest[0].strip())}" if rest else ""
            lines.append(line)
        return "\n".join(lines).encode()

    def get(self, name: str, default: Any = None) -> Any:
        """Called by trimesh for pictures: there are none."""
        raise FileNotFoundError(f"{name!r} is not opened")

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def _checked_stl(content: bytes) -> tuple[bytes, bool]:
    """An STL file, its solids joined to one, and whether it is a binary one of just its triangles.

    Raises ValueError if it has fewer triangles than it says.
    """
    count, room = int.from_bytes(content[80:84], "little"), max(0, (len(content) - 84) // 50)
    if content[:512].lstrip()[:5].lower() != b"solid":
        if room < count:
            raise ValueError(f"the STL declares {count:,} triangles, and the file has room for {room:,}")
        return content, len(content) == 84 + 50 * count
    if len(content) == 84 + 50 * count:  # it is binary nevertheless
        return content, True
    text = re.sub(rb"(?i)endsolid[^\n]{0,200}\n\s*solid[^\n]{0,200}\n", b"", _utf8(content))
    solids = len(re.findall(rb"(?i)endsolid", text))
    if solids > MOST_SOLIDS:
        raise ValueError(
            f"the STL has {solids:,} solids on lines with others; at most {MOST_SOLIDS} are read"
        )
    return text, False


def _checked_obj(content: bytes) -> bytes:
    """An OBJ file, its continued lines joined; ValueError if it would cost far more than its size."""
    text = _utf8(content).replace(b"\r\n", b"\n").replace(b"\\\n", b"")
    materials = len(set(re.findall(rb"usemtl[ \t]+([^\r\n]*)", text)))
    if materials > MOST_MATERIALS:
        raise ValueError(f"the OBJ has {materials:,} materials; at most {MOST_MATERIALS:,} are read")
    vertices = text.count(b"\nv ") + 1
    most = OBJ_STEPS + OBJ_STEPS_A_BYTE * len(content)
    if materials * vertices > most:
        raise ValueError(
            f"the OBJ has {materials:,} materials for {vertices:,} vertices; the product of both may be "
            f"{most:,} at most"
        )
    return text


def _utf8(content: bytes) -> bytes:
    """A text in UTF-8, so that trimesh reads the same text that was counted here."""
    return content if content.isascii() else content.decode("utf-8", errors="replace").encode()


def _checked_ply(content: bytes) -> tuple[bytes, str | None]:
    """A PLY file whose head does not name a picture, and the name.

    Raises ValueError for no head of a PLY, or more elements than there is room for.
    """
    lines: list[str] = []
    end = 0
    while "end_header" not in (lines[-1].split() if lines else ()):
        start, end = end, content.find(b"\n", end) + 1
        if not 0 < end <= LONGEST_PLY_HEAD or not content.startswith(b"ply"):
            raise ValueError(f"it does not begin with the head of a PLY, {LONGEST_PLY_HEAD} bytes at most")
        lines.append(content[start:end].decode("utf-8"))
    text = any(line.split()[:2] == ["format", "ascii"] for line in lines)
    name, needed, properties, elements, count = None, 0, 0, 0, 0
    for line in lines:
        words = line.split()
        if words[:1] == ["element"] and len(words) == 3:
            if not re.fullmatch(r"[0-9]{1,18}", words[2]):
                raise ValueError(f"the PLY has the count {shortened(words[2])!r}, not a whole number from 0")
            count, elements = int(words[2]), elements + 1
        elif words[:1] == ["property"] and len(words) > 2:
            properties += 1
            needed += count * (1 if text else _PLY_SIZES.get(words[2] if words[1] == "list" else words[1], 1))
        elif "texturefile" in line.lower():
            name = line[line.lower().index("texturefile") + len("texturefile") :].strip()
    if max(properties, elements) > MOST_PLY_PROPERTIES:
        raise ValueError(f"the PLY has more than {MOST_PLY_PROPERTIES} elements or properties")
    if needed > len(content) - end:
        raise ValueError(f"the PLY asks for {needed:,} bytes at least, and has {len(content) - end:,}")
    return re.sub(rb"(?i)texturefile", b"picturefile", content[:end]) + content[end:], name


def _material_picture(piece: Any) -> str | None:
    """The name of the picture that the material of a piece has."""
    material = getattr(getattr(piece, "visual", None), "material", None)
    words = (getattr(material, "kwargs", None) or {}).get(_PICTURE)
    return unquote(words[0]) if words else None


def _colour(piece: Any) -> RGBA | None:
    """The one colour of a piece, or None where the file does not say."""
    material: Any = getattr(getattr(piece, "visual", None), "material", None)
    main = getattr(material, "main_color", None)
    if main is None or getattr(material, "name", None) in (None, "default", "material_0"):
        return None
    red, green, blue, alpha = (float(value) / 255.0 for value in main)
    return red, green, blue, alpha


# ==== read mesh ===================================================================================

READERS = {
    ".stl": read_with_trimesh,
    ".obj": read_with_trimesh,
    ".ply": read_with_trimesh,
    ".glb": read_gltf,
    ".gltf": read_gltf,
    ".dae": read_collada,
}
"""Ending of the file's name, in small letters -> its reader."""


def read_mesh(path: Path) -> Iterator[Surface]:
    """The surfaces of a file with triangles: STL, OBJ, PLY, GLB, GLTF or COLLADA (.dae), by its ending.

    Their vertices are finite, and their faces name vertices. Raises ValueError for another format, a file
    that is not what its ending says, or one beyond the limits of :mod:`robokit.meshes.untrusted`; OSError for
    one that cannot be opened.
    """
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        ending = f"ends in {shortened(path.suffix)!r}" if path.suffix else "has no ending"
        raise ValueError(f"its name {ending}; mesh files are {', '.join(READERS)}")
    content = read_file(path)
    try:
        for surface in reader(path, content, Budget(len(content))):
            if len(surface.faces):
                check_coordinates(surface.vertices)
                if surface.faces.min() < 0 or surface.faces.max() >= len(surface.vertices):
                    raise ValueError(f"a face names vertex {surface.faces.max()} of {len(surface.vertices)}")
                yield _with_merged_vertices(_with_used_vertices(_with_valid_picture(surface)))
    except (ValueError, OSError, MemoryError):
        raise
    except Exception as problem:  # the readers meet anything in a file that is not what it should be
        reason = str(problem).strip() or "no more is known"
        raise ValueError(f"the file is not well formed: {type(problem).__name__}: {reason}") from problem


def _with_valid_picture(surface: Surface) -> Surface:
    """The same surface, without its picture where that has no proper places on it."""
    if surface.uv is None:
        return surface
    if surface.uv.shape[2:] == (2,) and np.isfinite(surface.uv).all():
        return surface
    return replace(surface, uv=None, picture=None)


def _with_used_vertices(surface: Surface) -> Surface:
    """The same surface without vertices that no face uses."""
    used = np.zeros(len(surface.vertices), dtype=bool)
    used[surface.faces] = True
    if used.all():
        return surface
    colours = None if surface.colours is None else surface.colours[used]
    faces = (np.cumsum(used) - 1)[surface.faces]
    return replace(surface, vertices=surface.vertices[used], faces=faces, colours=colours)


def _with_merged_vertices(surface: Surface) -> Surface:
    """The same surface with one vertex at a place: formats repeat them for each face or picture corner."""
    order = np.lexsort(surface.vertices.T[::-1])  # a quarter of the time of np.unique
    x, new = surface.vertices.T[:, order], np.ones(len(order), dtype=bool)
    new[1:] = (x[:, 1:] != x[:, :-1]).any(axis=0)
    if new.all():
        return surface
    merged, first = np.empty(len(order), dtype=int), order[new]
    merged[order] = np.cumsum(new) - 1
    colours = None if surface.colours is None else surface.colours[first]
    return replace(surface, vertices=surface.vertices[first], faces=merged[surface.faces], colours=colours)
