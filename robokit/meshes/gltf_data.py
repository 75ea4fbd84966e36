"""The numbers of a glTF file: its JSON, its buffers, and arrays from them, each within its bytes.

Source: glTF 2.0 specification, 3.6 (binary data) and 4.4 (GLB).
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np

from robokit.meshes.companions import companion, picture_beside, read_file
from robokit.meshes.surface import Picture
from robokit.meshes.untrusted import Budget, check_tags

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
            values = _strided(data, given.get("byteOffset", 0), count, columns, kind, stride)
        else:
            self._budget.triangles(count // 3)  # no bytes of the file stand for them
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
        at = _strided(data, places.get("byteOffset", 0), count, 1, kind, None)[:, 0]
        data = self.view(rows.get("bufferView"))
        new = _strided(data, rows.get("byteOffset", 0), count, values.shape[1], values.dtype.str, None)
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
    """A whole number of a glTF file.

    Raises:
        ValueError: it is none from 0 to most.
    """
    if type(value) is not int or not 0 <= value <= most:
        shown = value if isinstance(value, int) and abs(value) < 1e18 else str(value)[:40]
        raise ValueError(f"{what} is {shown}; there is room for a whole number from 0 to {max(most, 0):,}")
    return value


def _strided(
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
