"""glTF as its specification has it: modes, sparse and normalised numbers, transforms, pictures."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hostile_files import PLACES, TRIANGLE, data_uri, glb, gltf, painted

from robokit.meshes.read_mesh import read_mesh
from robokit.meshes.untrusted import open_picture

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de"
    "0000000c49444154789c63f8cfc0000003010100c9fe92ef0000000049454e44ae426082"
)
FIVE = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0), (0, 2, 0)]


def read(tmp_path, content: bytes, name: str = "a.gltf"):
    path = tmp_path / name
    path.write_bytes(content)
    return list(read_mesh(path))


def in_mode(mode: int, positions=FIVE) -> bytes:
    data = np.array(positions, "<f4").tobytes()
    return gltf(
        data,
        bufferViews=[{"buffer": 0, "byteLength": len(data)}],
        accessors=[{"bufferView": 0, "componentType": 5126, "count": len(positions), "type": "VEC3"}],
        meshes=[{"primitives": [{"attributes": {"POSITION": 0}, "mode": mode}]}],
    )


def corners(surface) -> np.ndarray:
    return surface.vertices[surface.faces]


def normals(surface) -> np.ndarray:
    a, b, c = np.moveaxis(corners(surface), 1, 0)
    return np.cross(b - a, c - a)


def test_strips_keep_their_outside_out(tmp_path):
    (surface,) = read(tmp_path, in_mode(5))
    assert len(surface.faces) == 3 and (normals(surface)[:, 2] > 0).all()


def test_fans_share_their_first_corner(tmp_path):
    around = [(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0), (-1, 1, 0)]
    (surface,) = read(tmp_path, in_mode(6, around))
    assert len(surface.faces) == 3 and (normals(surface)[:, 2] > 0).all()
    assert (corners(surface) == 0.0).all(axis=-1).any(axis=1).all()


@pytest.mark.parametrize("mode", [0, 1, 2, 3])
def test_points_and_lines_are_not_shown(tmp_path, mode):
    assert read(tmp_path, in_mode(mode)) == []


def test_sparse_rows_replace_others(tmp_path):
    data = TRIANGLE + struct.pack("<I3f", 2, 0, 5, 0)
    views = [
        {"buffer": 0, "byteLength": 36},
        {"buffer": 0, "byteOffset": 36, "byteLength": 4},
        {"buffer": 0, "byteOffset": 40, "byteLength": 12},
    ]
    sparse = {"count": 1, "indices": {"bufferView": 1, "componentType": 5125}, "values": {"bufferView": 2}}
    accessor = {"bufferView": 0, "componentType": 5126, "count": 3, "type": "VEC3", "sparse": sparse}
    (surface,) = read(tmp_path, gltf(data, bufferViews=views, accessors=[accessor]))
    assert surface.vertices.max(axis=0).tolist() == [1.0, 5.0, 0.0]


def test_strides_and_normalised_numbers(tmp_path):
    rows = [(0, 0, 0), (32767, 0, 0), (0, -32768, 0)]
    data = b"".join(struct.pack("<3h2x", *row) for row in rows)
    accessor = {"bufferView": 0, "componentType": 5122, "count": 3, "type": "VEC3", "normalized": True}
    views = [{"buffer": 0, "byteLength": len(data), "byteStride": 8}]
    (surface,) = read(tmp_path, gltf(data, bufferViews=views, accessors=[accessor]))
    assert np.abs(surface.vertices).max(axis=0).tolist() == [1.0, 1.0, 0.0]


def test_indices_choose_the_vertices(tmp_path):
    data = TRIANGLE + struct.pack("<3H", 2, 0, 1)
    views = [{"buffer": 0, "byteLength": 36}, {"buffer": 0, "byteOffset": 36, "byteLength": 6}]
    accessors = [
        {"bufferView": 0, "componentType": 5126, "count": 3, "type": "VEC3"},
        {"bufferView": 1, "componentType": 5123, "count": 3, "type": "SCALAR"},
    ]
    primitive = {"attributes": {"POSITION": 0}, "indices": 1}
    content = gltf(data, bufferViews=views, accessors=accessors, meshes=[{"primitives": [primitive]}])
    (surface,) = read(tmp_path, content)
    assert corners(surface)[0].tolist() == [[0, 1, 0], [0, 0, 0], [1, 0, 0]]
    wrong = gltf(TRIANGLE + struct.pack("<3H", 2, 0, 3), bufferViews=views, accessors=accessors)
    with pytest.raises(ValueError, match="a face names vertex 3 of 3"):
        read(tmp_path, wrong.replace(b'{"POSITION": 0}', b'{"POSITION": 0}, "indices": 1'))


def test_transforms_of_nodes_multiply_and_mirrors_turn_the_winding(tmp_path):
    half = 0.5**0.5
    nodes = [
        {"translation": [1, 2, 3], "rotation": [0, 0, half, half], "scale": [2, 2, 2], "children": [1]},
        {"mesh": 0, "matrix": [-1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1]},
    ]
    (surface,) = read(tmp_path, gltf(nodes=nodes))
    assert np.allclose(surface.vertices.min(axis=0), [-1, 0, 3])
    assert np.allclose(surface.vertices.max(axis=0), [1, 2, 3])
    assert (normals(surface)[:, 2] > 0).all()


def test_a_file_without_scenes_shows_the_nodes_that_nobody_places(tmp_path):
    nodes = [{"mesh": 0}, {"children": [0], "translation": [5, 0, 0]}]
    (surface,) = read(tmp_path, gltf(nodes=nodes, scenes=[]))
    assert surface.vertices[:, 0].min() == 5.0


def test_pictures_inside_beside_and_missing(tmp_path):
    (tmp_path / "skin.png").write_bytes(PIXEL)
    (surface,) = read(tmp_path, painted({"uri": "skin.png"}))
    assert surface.picture == (tmp_path / "skin.png").resolve()
    (surface,) = read(tmp_path, painted({"uri": data_uri(PIXEL)}))
    assert open_picture(surface.picture).size == (1, 1)
    stored = TRIANGLE + PLACES + PIXEL
    views = [
        {"buffer": 0, "byteLength": 36},
        {"buffer": 0, "byteOffset": 36, "byteLength": 24},
        {"buffer": 0, "byteOffset": 60, "byteLength": len(PIXEL)},
    ]
    tree = painted({"bufferView": 2}, bufferViews=views, buffers=[{"byteLength": len(stored)}])
    (surface,) = read(tmp_path, glb(tree, stored), "a.glb")
    assert surface.picture == PIXEL
    assert np.allclose(surface.uv[0], [[0, 1], [1, 1], [0, 0]])  # glTF counts from the upper left
    (surface,) = read(tmp_path, painted({"uri": "gone.png"}))
    assert (surface.picture, surface.uv, surface.missing) == (None, None, "gone.png")
