"""Mesh files: the same surface in every format, and nothing but that from a hostile one."""

from __future__ import annotations

import io
import json
import socket
import struct
import tracemalloc

import numpy as np
import pytest
import trimesh
from PIL import Image

from robokit.meshes import untrusted
from robokit.meshes.read_mesh import READERS, read_mesh
from robokit.meshes.surface import Surface
from robokit.meshes.untrusted import companion, open_picture
from robokit.robot_names import example_files

SOLID = trimesh.creation.box((1.0, 2.0, 3.0))
AREA, VOLUME = 22.0, 6.0


def picture(size=(8, 4)) -> Image.Image:
    image = Image.new("RGB", size, (250, 10, 10))
    image.paste((10, 10, 250), (size[0] // 2, 0, size[0], size[1]))
    return image


def textured() -> trimesh.Trimesh:
    visual = trimesh.visual.TextureVisuals(
        uv=(SOLID.vertices[:, :2] - [-0.5, -1.0]) / [1.0, 2.0],
        material=trimesh.visual.material.SimpleMaterial(image=picture(), name="skin"),
    )
    return trimesh.Trimesh(SOLID.vertices, SOLID.faces, visual=visual, process=False)


def write(folder, name: str, mesh=SOLID, **options):
    """Export as Python users of trimesh do, with the files beside it."""
    path = folder / name
    content = mesh.export(file_type=name.rpartition(".")[2], **options)
    if isinstance(content, dict):
        for part, data in content.items():
            (folder / (name if part.endswith(".gltf") else part)).write_bytes(data)
    elif isinstance(content, str):
        path.write_text(content)
    else:
        path.write_bytes(content)
    return path


def only(path) -> Surface:
    (surface,) = read_mesh(path)
    return surface


def area_and_volume(surface: Surface) -> tuple[float, float]:
    solid = trimesh.Trimesh(surface.vertices, surface.faces)
    return solid.area, solid.volume


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("a.stl", {}),
        ("A.STL", {}),
        ("a.obj", {}),
        ("a.ply", {}),
        ("a.ply", {"encoding": "ascii"}),
        ("a.glb", {}),
        ("a.gltf", {}),
    ],
)
def test_a_box_is_a_box_in_every_format(tmp_path, name, options):
    path = write(tmp_path, name.lower(), **options)
    path = path.rename(tmp_path / name)
    assert area_and_volume(only(path)) == pytest.approx((AREA, VOLUME), rel=1e-6)


def test_text_stl(tmp_path):
    path = tmp_path / "a.stl"
    path.write_text(trimesh.exchange.stl.export_stl_ascii(SOLID))
    assert area_and_volume(only(path)) == pytest.approx((AREA, VOLUME), rel=1e-6)


COLLADA = """<?xml version="1.0"?>
<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
<asset><unit meter="0.01"/><up_axis>Y_UP</up_axis></asset>
<library_images><image id="img"><init_from>{picture}</init_from></image></library_images>
<library_effects><effect id="e"><profile_COMMON>
<newparam sid="s"><surface type="2D"><init_from>img</init_from></surface></newparam>
<newparam sid="t"><sampler2D><source>s</source></sampler2D></newparam>
<technique sid="c"><lambert><diffuse><texture texture="t" texcoord="UV"/></diffuse></lambert></technique>
</profile_COMMON></effect></library_effects>
<library_materials><material id="m"><instance_effect url="#e"/></material></library_materials>
<library_geometries><geometry id="g"><mesh>
<source id="p"><float_array id="pa" count="12">0 0 0 100 0 0 100 100 0 0 100 0</float_array>
<technique_common><accessor source="#pa" count="4" stride="3"/></technique_common></source>
<source id="u"><float_array id="ua" count="8">0 0 1 0 1 1 0 1</float_array>
<technique_common><accessor source="#ua" count="4" stride="2"/></technique_common></source>
<vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
{primitive}
</mesh></geometry></library_geometries>
<library_visual_scenes><visual_scene id="w"><node><scale>{scale}</scale>
<instance_geometry url="#g"><bind_material><technique_common>
<instance_material symbol="mat" target="#m"/></technique_common></bind_material></instance_geometry>
</node></visual_scene></library_visual_scenes>
<scene><instance_visual_scene url="#w"/></scene></COLLADA>"""

INPUTS = (
    '<input semantic="VERTEX" source="#v" offset="0"/><input semantic="TEXCOORD" source="#u" offset="1"/>'
)
PRIMITIVES = {
    "triangles": f'<triangles material="mat" count="2">{INPUTS}<p>0 0 1 1 2 2 0 0 2 2 3 3</p></triangles>',
    "polylist": f'<polylist material="mat">{INPUTS}<vcount>4</vcount><p>0 0 1 1 2 2 3 3</p></polylist>',
    "polygons": f'<polygons material="mat" count="1">{INPUTS}<p>0 0 1 1 2 2 3 3</p></polygons>',
}


@pytest.mark.parametrize("kind", PRIMITIVES)
@pytest.mark.parametrize("scale", ["1 1 1", "-1 1 1"])
def test_collada_brings_its_picture(tmp_path, kind, scale):
    picture().save(tmp_path / "skin.png")
    path = tmp_path / "a.dae"
    path.write_text(COLLADA.format(picture="skin.png", primitive=PRIMITIVES[kind], scale=scale))
    surface = only(path)
    assert surface.picture == (tmp_path / "skin.png").resolve() and surface.rgba is None
    corners = surface.vertices[surface.faces]
    assert trimesh.Trimesh(surface.vertices, surface.faces).area == pytest.approx(1.0)
    mirrored = np.array([-1.0 if scale.startswith("-") else 1.0, 1.0])
    assert np.allclose(surface.uv, corners[..., :2] * mirrored)
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    assert (normal[:, 2] > 0).all()  # the winding is turned where the mirror turned it


def test_a_picture_that_is_not_there_is_named(tmp_path):
    path = tmp_path / "a.dae"
    path.write_text(COLLADA.format(picture="gone.png", primitive=PRIMITIVES["polygons"], scale="1 1 1"))
    surface = only(path)
    assert (surface.missing, surface.picture, surface.uv) == ("gone.png", None, None)


@pytest.mark.parametrize("name", ["a.obj", "a.glb", "a.gltf"])
def test_pictures_come_with_their_coordinates(tmp_path, name):
    path = write(tmp_path, name, textured())
    if name == "a.obj":
        text, beside = trimesh.exchange.obj.export_obj(textured(), return_texture=True, mtl_name="a.mtl")
        path.write_text(text)
        for part, data in beside.items():
            (tmp_path / part).write_bytes(data)
    surface = only(path)
    assert open_picture(surface.picture).size == (8, 4)
    expected = (surface.vertices[surface.faces][..., :2] + [0.5, 1.0]) / [1.0, 2.0]
    assert np.allclose(surface.uv, expected, atol=1e-6)


def test_colours_of_vertices_and_of_materials(tmp_path):
    colours = np.tile(np.array([10, 200, 30, 255], np.uint8), (8, 1))
    mesh = trimesh.Trimesh(SOLID.vertices, SOLID.faces, vertex_colors=colours, process=False)
    surface = only(write(tmp_path, "a.ply", mesh))
    assert (surface.colours == [10, 200, 30]).all() and len(surface.colours) == len(surface.vertices)
    path = write(tmp_path, "b.obj")
    path.write_text("mtllib b.mtl\nusemtl paint\n" + path.read_text())
    (tmp_path / "b.mtl").write_text("newmtl paint\nKd 0.2 0.4 0.6\n")
    assert only(path).rgba == pytest.approx((0.2, 0.4, 0.6, 1.0), abs=0.003)


# -- hostile files ---------------------------------------------------------------------------------


def lying_stl() -> bytes:
    return b"x" * 80 + struct.pack("<I", 10**9) + b"\0" * 500


def gltf(uri: str) -> bytes:
    document = {
        "asset": {"version": "2.0"},
        "buffers": [{"uri": uri, "byteLength": 36}],
        "bufferViews": [{"buffer": 0, "byteLength": 36}],
        "accessors": [{"bufferView": 0, "componentType": 5126, "count": 3, "type": "VEC3"}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}}]}],
        "nodes": [{"mesh": 0}],
        "scenes": [{"nodes": [0]}],
        "scene": 0,
    }
    return json.dumps(document).encode()


def ply(vertices: str, count: int, ends: str = "ascii") -> bytes:
    head = f"ply\nformat {ends} 1.0\nelement vertex {count}\n"
    head += "".join(f"property float {axis}\n" for axis in "xyz")
    return f"{head}element face 1\nproperty list uchar int vertex_indices\nend_header\n{vertices}".encode()


HOSTILE = {
    "lying.stl": lying_stl(),
    "cut.stl": trimesh.exchange.stl.export_stl(SOLID)[:-70],
    "noise.stl": np.random.default_rng(0).bytes(4000),
    "empty.stl": b"",
    "range.obj": b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 9\n",
    "nan.obj": b"v 0 0 nan\nv 1 0 0\nv 0 1 0\nf 1 2 3\n",
    "inf.ply": ply("0 0 inf\n1 0 0\n0 1 0\n3 0 1 2\n", 3),
    "many.ply": ply("0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n", 10**9),
    "many_binary.ply": ply("\0" * 60, 10**9, "binary_little_endian"),
    "negative.ply": ply("0 0 0\n1 0 0\n0 1 0\n3 0 1 -7\n", 3),
    "outside.gltf": gltf("../../../../../../etc/passwd"),
    "absolute.gltf": gltf("/etc/passwd"),
    "file.gltf": gltf("file:///etc/passwd"),
    "remote.gltf": gltf("http://127.0.0.1:9/a.bin"),
    "cut.glb": SOLID.export(file_type="glb")[:200],
    "noise.glb": b"glTF" + bytes(200),
    "unknown.xyzzy": b"who knows",
    "nan.stl": (
        trimesh.exchange.stl.export_stl(SOLID)[:96]
        + b"\0\0\xc0\x7f"
        + trimesh.exchange.stl.export_stl(SOLID)[100:]
    ),
    "negative.dae": COLLADA.format(
        picture="a.png", primitive=PRIMITIVES["polygons"].replace("3 3", "-1 3"), scale="1 1 1"
    ).encode(),
    "self.dae": COLLADA.format(picture="a.png", primitive=PRIMITIVES["polygons"], scale="1 1 1")
    .replace("<node><scale>", '<node id="n"><instance_node url="#n"/><scale>')
    .encode(),
    "text.dae": b"no COLLADA",
    "bomb.dae": b'<!DOCTYPE a [<!ENTITY b "bbbbbbbbbb"><!ENTITY c "&b;&b;&b;">]><COLLADA>&c;</COLLADA>',
    "range.dae": COLLADA.format(
        picture="a.png", primitive=PRIMITIVES["polygons"].replace("3 3", "9 9"), scale="1 1 1"
    ).encode(),
}


REFUSED = {
    *("lying.stl", "cut.stl", "nan.stl", "range.obj", "nan.obj", "inf.ply", "negative.ply"),
    *("range.dae", "negative.dae", "self.dae", "outside.gltf", "absolute.gltf", "file.gltf", "remote.gltf"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_fail_in_words_and_at_once(tmp_path, monkeypatch, name):
    monkeypatch.setattr(socket.socket, "connect", lambda *a: pytest.fail("a socket was opened"))
    opened = []
    real = io.open
    monkeypatch.setattr(
        "builtins.open", lambda path, *a, **k: opened.append(str(path)) or real(path, *a, **k)
    )
    path = tmp_path / name
    path.write_bytes(HOSTILE[name])
    tracemalloc.start()
    try:
        surfaces = [s for s in read_mesh(path) if len(s.faces)]
    except Exception as problem:
        assert str(problem)
    else:
        assert all(np.isfinite(s.vertices).all() and s.faces.max() < len(s.vertices) for s in surfaces)
        assert not surfaces and name not in REFUSED
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200e6
    assert not any("passwd" in each for each in opened)


def test_only_companions_beside_the_mesh_are_opened(tmp_path):
    folder = tmp_path / "package" / "meshes" / "arm"
    (tmp_path / "package" / "textures").mkdir(parents=True)
    folder.mkdir(parents=True)
    near, above, far = folder / "a b.png", tmp_path / "package" / "textures" / "c.jpg", tmp_path / "d.png"
    for path in (near, above, far, folder / "secret.txt"):
        path.write_bytes(b"x")
    assert companion(folder, "a%20b.png") == near
    assert companion(folder, "C:\\work\\a b.png") == near  # Windows exports name where the file was
    assert companion(folder, "../../textures/c.jpg") == above
    for name in ("../../../d.png", str(far), "secret.txt", "none.png", "http://a/b.png", "/etc/passwd", ""):
        with pytest.raises(FileNotFoundError, match="not beside the mesh"):
            companion(folder, name)


def test_factors_of_gltf_are_linear(tmp_path):
    material = trimesh.visual.material.PBRMaterial(baseColorFactor=[55, 128, 0, 255], name="skin")
    visual = trimesh.visual.TextureVisuals(uv=np.zeros((8, 2)), material=material)
    path = write(
        tmp_path, "a.glb", trimesh.Trimesh(SOLID.vertices, SOLID.faces, visual=visual, process=False)
    )
    assert only(path).rgba == pytest.approx((0.5019, 0.7361, 0.0, 1.0), abs=2e-3)


def test_a_file_that_is_too_large_is_refused(tmp_path, monkeypatch):
    path = write(tmp_path, "a.stl")
    monkeypatch.setattr(untrusted, "MOST_BYTES", path.stat().st_size - 1)
    with pytest.raises(ValueError, match="at most"):
        list(read_mesh(path))
    monkeypatch.undo()
    monkeypatch.setattr(untrusted, "MOST_TRIANGLES", 11)
    with pytest.raises(ValueError, match="more than 11 triangles"):
        list(read_mesh(path))


# ---- the meshes of example-robot-data, far from all limits ---------------------------------------


@pytest.mark.parity
def test_the_meshes_of_example_robots_need_a_tenth_of_what_is_allowed():
    root = next(path for path in example_files()[0].parents if path.name == "example-robot-data")
    meshes = [path for path in sorted(root.rglob("*")) if path.suffix.lower() in READERS]
    assert len(meshes) > 700
    for path in meshes:
        pieces = [len(surface.faces) for surface in read_mesh(path)]
        size = path.stat().st_size
        assert pieces, path
        assert (
            sum(pieces) < size / untrusted.BYTES_A_TRIANGLE / 10
            or sum(pieces) < untrusted.FREE_TRIANGLES / 10
        ), path
        assert len(pieces) < untrusted.FREE_PLACES / 3, path
