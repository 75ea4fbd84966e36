"""Pictures and colours on surfaces, from the file to the page."""

from __future__ import annotations

import base64
import io

import numpy as np
import pytest
import trimesh
from PIL import Image

from robokit import disk_cache as cache
from robokit.meshes import surface
from robokit.meshes.read_mesh import read_mesh
from robokit.meshes.surface import Surface
from robokit.model import Box, Mesh, ModelBuilder, Shape
from robokit.viewer.payload import pose_payload
from robokit.viewer.scene import WHITE, data_uri, scene


def sphere_in_colours(tmp_path):
    """A fine sphere whose vertices are red above and blue below."""
    ball = trimesh.creation.icosphere(4, 0.5)
    colours = np.where(ball.vertices[:, 2:] > 0, [[255, 0, 0, 255]], [[0, 0, 255, 255]]).astype(np.uint8)
    ball.visual.vertex_colors = colours
    path = tmp_path / "ball.ply"
    path.write_bytes(ball.export(file_type="ply"))
    return path


def sheet(n: int) -> Surface:
    """A flat sheet of 2 n^2 triangles with a picture over the whole of it."""
    x = np.linspace(0.0, 1.0, n + 1)
    vertices = np.stack([*(g.ravel() for g in np.meshgrid(x, x)), np.zeros((n + 1) ** 2)], axis=1)
    k = (np.arange(n)[:, None] * (n + 1) + np.arange(n)).ravel()
    faces = np.concatenate([np.stack([k, k + 1, k + n + 2], 1), np.stack([k, k + n + 2, k + n + 1], 1)])
    return Surface(vertices, faces, uv=vertices[faces][..., :2], picture=png((2, 2), (9, 9, 9, 255)))


def png(size: tuple[int, int], rgba: tuple[int, int, int, int]) -> bytes:
    content = io.BytesIO()
    Image.new("RGBA", size, rgba).save(content, "PNG")
    return content.getvalue()


def decoded(uri: str) -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(uri.partition(",")[2])))


def robot(*shapes: Shape):
    return ModelBuilder("painted").link("l", 1.0, (0, 0, 0), np.eye(3), visuals=shapes).build()


def test_colours_of_vertices_survive_thinning(tmp_path):
    (triangles,), _ = surface.simplified_surfaces(
        list(read_mesh(sphere_in_colours(tmp_path))), (1.0, 1.0, 1.0), 400
    )
    assert len(triangles.faces) <= 400
    above = triangles.vertices[:, 2] > 0.1
    below = triangles.vertices[:, 2] < -0.1
    assert (triangles.colours[above] == [255, 0, 0]).all() and (triangles.colours[below] == [0, 0, 255]).all()


def test_pictures_stay_where_they_were_when_a_surface_is_simplified():
    fewer = surface.simplify_surface(sheet(40), 200)
    assert 0 < len(fewer.faces) <= 200
    assert np.allclose(fewer.uv, fewer.vertices[fewer.faces][..., :2], atol=1e-5)


def test_a_mirrored_mesh_keeps_its_picture_on_its_corners():
    (triangles,), _ = surface.simplified_surfaces([sheet(3)], (-1.0, 1.0, 1.0), 100)
    corners = triangles.vertices[triangles.faces]
    assert np.allclose(triangles.uv, corners[..., :2] * [-1.0, 1.0])
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    assert (normal[:, 2] > 0).all()


def test_what_was_simplified_once_is_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("ROBOKIT_CACHE_DIR", str(tmp_path / "cache"))
    first = surface.simplify_surface(sheet(30), 100)
    assert [entry.kernel for entry in cache.entries()].count("simplified mesh") == 1
    import fast_simplification

    monkeypatch.setattr(fast_simplification, "simplify", lambda *a, **k: pytest.fail("simplified again"))
    again = surface.simplify_surface(sheet(30), 100)
    assert np.array_equal(first.vertices, again.vertices) and np.array_equal(first.faces, again.faces)


def test_the_description_goes_before_the_file(tmp_path):
    path = sphere_in_colours(tmp_path)
    (own, painted) = (
        [
            node
            for node in scene(robot(Shape(Mesh("ball.ply", path=path), rgba=rgba)))
            if node.role == "visual"
        ]
        for rgba in (None, (0.1, 0.2, 0.3, 1.0))
    )
    assert own[0].rgba == WHITE and own[0].geometry.colours is not None
    assert painted[0].rgba == (0.1, 0.2, 0.3, 1.0) and painted[0].geometry.colours is None


def test_a_texture_of_the_description_reaches_the_page_once(tmp_path):
    path = tmp_path / "skin.png"
    Image.new("RGB", (2048, 1024), (200, 30, 40)).save(path)
    shapes = [Shape(Box((1.0, 1.0, 1.0)), texture=str(path)), Shape(Box((2.0, 1.0, 1.0)), texture=str(path))]
    payload = pose_payload(robot(*shapes, Shape(Box((3.0, 1.0, 1.0)))))
    seen = [node for node in payload.nodes if node.role == "visual"]
    assert [node.picture for node in seen] == [0, 0, None]
    (uri,) = payload.pictures
    image = decoded(uri)
    assert uri.startswith("data:image/jpeg;base64,") and image.size == (512, 256)
    assert np.abs(np.array(image.getpixel((5, 5))) - [200, 30, 40]).max() < 6


def test_transparent_pictures_stay_transparent():
    assert decoded(data_uri(png((4, 4), (9, 9, 9, 0)))).getpixel((0, 0))[3] == 0
    assert decoded(data_uri(png((2_000, 4), (9, 9, 9, 0)))).getpixel((0, 0))[3] == 0
    assert data_uri(png((4, 4), (9, 9, 9, 255))).startswith("data:image/jpeg")


def test_what_is_no_picture_is_left_out_with_a_warning(tmp_path):
    path = tmp_path / "skin.png"
    path.write_bytes(b"no picture")
    shapes = [Shape(Box((1.0, 1.0, 1.0)), texture=str(path))] * 2
    with pytest.warns(UserWarning, match=r"skin.png' of link 'l' is left out: it is not one of") as caught:
        payload = pose_payload(robot(*shapes))
    assert len(caught) == 1 and payload.pictures == []
