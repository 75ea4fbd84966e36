"""Small mesh files that claim, place or unpack to far more than they hold are refused in words, at once."""

from __future__ import annotations

import io
import os
import struct
import subprocess
import sys
import tracemalloc
import warnings
import zlib
from pathlib import Path

import hostile_files
import numpy as np
import pytest
from PIL import Image

import robokit as rk
from robokit.meshes import untrusted
from robokit.meshes.read_mesh import read_mesh
from robokit.meshes.untrusted import companion, open_picture, picture_format, read_file
from robokit.urdf import check_urdf
from robokit.viewer.scene import data_uri, scene

TRIANGLES = f"<triangles>{hostile_files.VERTEX}<p>0 1 2</p></triangles>"


def write(folder, name, content):
    path = folder / name
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("name", hostile_files.MULTIPLYING)
def test_small_files_that_multiply_are_refused(tmp_path, name):
    make, says = hostile_files.MULTIPLYING[name]
    path = write(tmp_path, name, make())
    allowed = 100e6 + 10 * path.stat().st_size
    tracemalloc.start()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(ValueError, match=says):
                list(read_mesh(path))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < allowed


def test_the_ending_counts_in_any_case(tmp_path):
    path = write(tmp_path, "A.GlTf", hostile_files.gltf())
    assert [len(surface.faces) for surface in read_mesh(path)] == [1]


def test_lists_that_share_vertices_take_only_those_that_they_use(tmp_path):
    path = write(tmp_path, "lists.dae", hostile_files.primitive_lists(1_000, 15_000))
    tracemalloc.start()
    surfaces = list(read_mesh(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(surfaces) == 1_000 and peak < 20e6  # 360 MB where each takes all vertices
    assert all(len(surface.vertices) == 3 for surface in surfaces)


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("a.dae", lambda: hostile_files.instances(100, 1)),
        ("b.dae", lambda: hostile_files.primitive_lists(100, 10)),
        ("a.gltf", lambda: hostile_files.gltf_instances(100)),
    ],
)
def test_pieces_are_limited(tmp_path, monkeypatch, name, make):
    path = write(tmp_path, name, make())
    assert len(list(read_mesh(path))) in (100, 101)
    monkeypatch.setattr(untrusted, "MOST_PIECES", 99)
    with pytest.raises(ValueError, match="more than 99 pieces; accepted are 1,000, one more for every 20 of"):
        list(read_mesh(path))


@pytest.mark.parametrize("nodes", [40, 2_000])
def test_nodes_are_counted_each_time_that_they_are_placed(tmp_path, nodes):
    chain = "".join(f'<node id="n{k}"><instance_node url="#n{k + 1}"/></node>' for k in range(nodes))
    path = write(tmp_path, "a.dae", hostile_files.collada(TRIANGLES, nodes=chain))
    if nodes * (nodes + 1) / 2 < untrusted.FREE_PLACES:
        assert len(list(read_mesh(path))) == 1
    else:
        with pytest.raises(ValueError, match=r"more than [0-9,]+ nodes and instances"):
            list(read_mesh(path))


def test_scenes_may_be_deep(tmp_path):
    chain = "".join(f'<node id="n{k}"><instance_node url="#n{k + 1}"/></node>' for k in range(1_500))
    deep = hostile_files.collada(TRIANGLES, nodes='<node><instance_node url="#n0"/></node>').replace(
        b"<library_visual_scenes>", f"<library_nodes>{chain}</library_nodes><library_visual_scenes>".encode()
    )
    assert len(list(read_mesh(write(tmp_path, "a.dae", deep)))) == 1


def test_text_in_another_encoding_hides_nothing(tmp_path):
    text = hostile_files.collada(TRIANGLES, picture="Räder.png").decode()
    for encoding in ("utf-8", "utf-16", "iso-8859-1", "windows-1252"):
        declared = text.replace('version="1.0"', f'version="1.0" encoding="{encoding}"', 1)
        assert len(list(read_mesh(write(tmp_path, "a.dae", declared.encode(encoding))))) == 1
    hidden = b'<?xml version="1.0" encoding="utf-7"?>+ADwAIQ-DOCTYPE a []+AD4-<COLLADA/>'
    with pytest.raises(ValueError, match="not well formed: XMLSyntaxError"):
        list(read_mesh(write(tmp_path, "a.dae", hidden)))


def test_solids_of_a_text_stl_are_one_surface(tmp_path):
    solid = (
        "solid part {0}\n facet normal 0 0 1\n  outer loop\n   vertex {0} 0 0\n   vertex {1} 0 0\n"
        "   vertex {0} 1 0\n  endloop\n endfacet\nendsolid part {0}\n\n"
    )
    content = "".join(solid.format(k, k + 1) for k in range(2_000)).encode()  # 50 s for ten times as many
    (surface,) = read_mesh(write(tmp_path, "a.stl", content))
    assert len(surface.faces) == 2_000 and np.ptp(surface.vertices[:, 0]) == 2_000.0


def test_a_binary_stl_may_begin_with_solid(tmp_path):
    triangle = struct.pack("<12fH", 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0)
    path = write(tmp_path, "a.stl", b"solid endsolid".ljust(80) + struct.pack("<I", 2) + triangle * 2)
    assert [len(surface.faces) for surface in read_mesh(path)] == [2]


def test_vertices_that_no_face_uses_do_not_count(tmp_path):
    content = hostile_files.ply("0 0 0\n9 9 9\n1 0 0\n0 1 0\n3 0 2 3\n", 4, 1)
    (surface,) = read_mesh(write(tmp_path, "a.ply", content))
    assert surface.vertices.max(axis=0).tolist() == [1.0, 1.0, 0.0]


@pytest.mark.parametrize("places", ["nan 0", "inf 0", "0"])
def test_pictures_without_proper_places_are_left_out(tmp_path, places):
    write(tmp_path, "skin.png", b"x")
    write(tmp_path, "skin.mtl", b"newmtl paint\nmap_Kd skin.png\n")
    obj = "mtllib skin.mtl\n" + hostile_files.OBJ
    (good,) = read_mesh(write(tmp_path, "a.obj", obj.encode()))
    assert good.picture is not None and good.uv.shape == (1, 3, 2)
    for place in ("vt 0 0", "vt 1 0", "vt 0 1"):
        obj = obj.replace(place, f"vt {places}")
    (surface,) = read_mesh(write(tmp_path, "a.obj", obj.encode()))
    assert len(surface.faces) == 1 and surface.picture is None and surface.uv is None


# -- files and the folders they may reach ----------------------------------------------------------


def test_only_regular_files_are_read(tmp_path):
    os.mkfifo(tmp_path / "pipe.stl")  # opening it waits for somebody who writes
    (tmp_path / "endless.stl").symlink_to("/dev/zero")
    (tmp_path / "folder.stl").mkdir()
    for name in ("pipe.stl", "endless.stl", "folder.stl"):
        with pytest.raises(ValueError, match=f"'{name}' is not a regular file"):
            list(read_mesh(tmp_path / name))
    target = write(tmp_path, "target.gltf", hostile_files.gltf())
    (tmp_path / "link.gltf").symlink_to(target)
    assert len(list(read_mesh(tmp_path / "link.gltf"))) == 1


def test_files_are_limited_together_with_their_buffers(tmp_path, monkeypatch):
    buffer = hostile_files.TRIANGLE + bytes(4_000)
    content = hostile_files.gltf(buffers=[{"uri": "a.bin", "byteLength": 60}])
    path = write(tmp_path, "a.gltf", content)
    write(tmp_path, "a.bin", buffer)
    monkeypatch.setattr(untrusted, "MOST_BYTES", len(content) + len(buffer))
    assert len(list(read_mesh(path))) == 1
    monkeypatch.setattr(untrusted, "MOST_BYTES", len(content) + len(buffer) - 1)
    with pytest.raises(ValueError, match="the file and those it names have 0 MB; at most 0 MB are read"):
        list(read_mesh(path))
    monkeypatch.setattr(untrusted, "MOST_BYTES", 100)
    with pytest.raises(ValueError, match="at most"):
        read_file(path)


def test_many_buffers_of_one_file_take_its_room_once(tmp_path):
    write(tmp_path, "a.bin", hostile_files.TRIANGLE + bytes(1_000_000))
    buffers = [{"uri": "a.bin", "byteLength": 900_000 + k} for k in range(500)]
    path = write(tmp_path, "a.gltf", hostile_files.gltf(buffers=buffers))
    tracemalloc.start()
    assert len(list(read_mesh(path))) == 1
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10e6  # 450 MB where each buffer is a copy


def test_a_mesh_reaches_two_folders_above_and_never_the_root(tmp_path):
    folder = tmp_path / "robot" / "meshes" / "arm"
    folder.mkdir(parents=True)
    for place in (tmp_path, tmp_path / "robot", folder):
        (place / "skin.png").write_bytes(b"x")
    assert companion(folder, "../../skin.png") == tmp_path / "robot" / "skin.png"
    (folder / "skin.png").unlink()
    (folder / "link.png").symlink_to(tmp_path / "skin.png")
    for name in (
        "../../../skin.png",
        "..%2F..%2F..%2Fskin.png",
        "..\\..\\..\\skin.png",
        "link.png",
        "a\0.png",
    ):
        with pytest.raises(FileNotFoundError, match="is not beside the mesh"):
            companion(folder, name)
    with pytest.raises(FileNotFoundError, match="is not beside the mesh"):
        companion(folder, "x" * 100_000 + ".png")
    # The folders above a mesh in the root of the file system would be everything.
    with pytest.raises(FileNotFoundError):
        companion(Path("/"), str(tmp_path / "skin.png"))


@pytest.mark.parametrize("name", ["a.obj", "a.gltf", "a.dae", "a.ply"])
def test_no_format_opens_files_elsewhere(tmp_path, name):
    folder = tmp_path / "one" / "two" / "three"
    folder.mkdir(parents=True)
    for outside in ("skin.png", "paint.mtl", "a.bin"):
        (tmp_path / outside).write_bytes(hostile_files.TRIANGLE)
    up = "../../../"
    square = f'<polygons material="mat">{hostile_files.COVERED}<p>0 1 2 3</p></polygons>'
    content = {
        "a.obj": f"mtllib {up}paint.mtl\n{hostile_files.OBJ}".encode(),
        "a.gltf": hostile_files.gltf(buffers=[{"uri": f"{up}a.bin", "byteLength": 36}]),
        "a.dae": hostile_files.collada(square, picture=f"{up}skin.png"),
        "a.ply": hostile_files.ply(
            "0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n",
            3,
            1,
            extra=f"comment TextureFile {up}skin.png\n",
        ),
    }[name]
    path = write(folder, name, content)
    if name == "a.gltf":
        with pytest.raises(FileNotFoundError, match=r"a\.bin' is not beside the mesh"):
            list(read_mesh(path))
    else:
        assert [surface.picture for surface in read_mesh(path)] == [None]


# -- what becomes of them --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["vcount.dae", "mesh.zip", "count.gltf", "lying.stl"])
def test_an_unreadable_mesh_is_a_warning_with_link_and_file(tmp_path, name):
    write(tmp_path, name, hostile_files.MULTIPLYING[name][0]())
    urdf = tmp_path / "robot.urdf"
    urdf.write_text(
        '<robot name="r"><link name="base"/><link name="arm"><inertial><mass value="1"/>'
        '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
        f'<visual><geometry><mesh filename="{name}"/></geometry></visual></link>'
        '<joint name="j" type="continuous"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/>'
        "</joint></robot>"
    )
    robot = rk.load_urdf(urdf)
    assert np.isfinite(rk.aba(robot, np.zeros(1), np.zeros(1), np.zeros(1))).all()
    with pytest.warns(UserWarning, match=f"mesh '{name}' of link 'arm' is drawn as a box") as shown:
        scene(robot)
    assert len(shown) == 1
    _, found = check_urdf(urdf, plausible=True, meshes=True)
    findings = [f for f in found if f.code == "mesh-unreadable"]
    assert len(findings) == 1 and f"mesh '{name}'" in str(findings[0]) and "'arm'" in str(findings[0])


# ---- pictures ------------------------------------------------------------------------------------
# The accepted formats open, nothing else does, and no picture starts a program.

HERE = Path(__file__).parent


def encoded(kind: str, size: tuple[int, int] = (6, 4), mode: str = "RGB") -> bytes:
    content = io.BytesIO()
    Image.new(mode, size).save(content, kind)
    return content.getvalue()


def png(width: int, height: int) -> bytes:
    """The beginning of a PNG of that size, without its pixels."""
    chunks = [(b"IHDR", struct.pack(">2I5B", width, height, 8, 2, 0, 0, 0)), (b"IDAT", zlib.compress(b"\0"))]
    body = b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + body


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF", "TGA"])
@pytest.mark.parametrize("name", ["skin.png", "skin.tga"])
def test_accepted_formats_open_whatever_they_are_called(tmp_path, kind, name):
    path = tmp_path / name
    path.write_bytes(encoded(kind))
    assert open_picture(path).size == (6, 4)
    assert open_picture(path.read_bytes()).size == (6, 4)
    assert data_uri(path).startswith("data:image/jpeg;base64,")


def test_a_tga_without_a_footer_is_told_by_its_name_and_header(tmp_path):
    content = encoded("TGA").split(b"\0" * 8 + b"TRUEVISION")[0]
    path = tmp_path / "skin.TGA"
    path.write_bytes(content)
    assert open_picture(path).size == (6, 4)
    with pytest.raises(ValueError, match="PNG, JPEG, BMP, TGA, GIF, WebP and TIFF"):
        open_picture(content)


@pytest.mark.parametrize("kind", ["EPS", "PDF", "PPM", "ICO", "PCX", "SGI", "JPEG2000", "ICNS"])
def test_other_formats_of_pillow_are_not_opened(tmp_path, kind):
    for suffix in (".png", ".tga", ""):
        with pytest.raises(ValueError, match="not one of the picture formats"):
            picture_format(encoded(kind, (64, 64)), suffix)


@pytest.mark.parametrize(
    ("content", "size"),
    [
        (png(60_000_000, 1), "60000000 x 1"),
        (png(1, 20_000), "1 x 20000"),
        (png(9_000, 9_000), "9000 x 9000"),
        (png(40_000, 40_000), "40000 x 40000"),
        (b"RIFF\0\0\0\0WEBPVP8X\n\0\0\0\0\0\0\0" + b"\xff\xff\xff" * 2, "16777216 x 16777216"),
        (b"RIFF\0\0\0\0WEBPVP8L\n\0\0\0\x2f" + b"\xff" * 4 + bytes(5), "16384 x 16384"),
        (b"RIFF\0\0\0\0WEBPVP8 \n\0\0\0" + bytes(6) + b"\xff\x3f" * 2, "16383 x 16383"),
        (b"\0\0\2" + bytes(9) + struct.pack("<2H", 60_000, 60_000) + b"\x18\0", "60000 x 60000"),
    ],
)
def test_sizes_are_compared_before_pixels_are_made(tmp_path, content, size):
    path = tmp_path / "skin.tga"
    path.write_bytes(content)
    tracemalloc.start()
    with pytest.raises(ValueError, match=size + r"|too large: Image size"):
        data_uri(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20e6


def test_tiles_of_a_tiff_are_compared_too():
    data = zlib.compress(bytes(1000))
    tags = {
        256: 16,
        257: 16,
        258: 8,
        259: 8,
        262: 1,
        277: 1,
        322: 40_000,
        323: 40_000,
        324: 8,
        325: len(data),
    }
    content = b"II*\0" + struct.pack("<I", 8 + len(data)) + data + struct.pack("<H", len(tags))
    content += b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags.items()) + bytes(4)
    with pytest.raises(ValueError, match="40000 x 40000 pixels"):  # of 16 x 16 pixels, in 1.5 GB
        open_picture(content)


def test_a_damaged_head_is_refused_in_words():
    with pytest.raises(ValueError, match="it begins like a GIF and is none"):
        open_picture(b"GIF89a" + bytes(4))


def test_a_jpeg_of_endless_scans_is_refused():
    content = encoded("JPEG")
    with pytest.raises(ValueError, match="more than 200 scans"):
        open_picture(content + b"\xff\xda" * 201)


def test_pictures_of_the_usual_size_are_shown(monkeypatch):
    monkeypatch.setattr(untrusted, "MOST_PIXELS", 24)
    assert data_uri(encoded("PNG")).startswith("data:image/jpeg")
    with pytest.raises(ValueError, match="6 x 5 pixels; at most 24 are opened, and 16,384 along a side"):
        data_uri(encoded("PNG", (6, 5)))


@pytest.mark.slow
def test_no_mesh_and_no_picture_starts_a_program(tmp_path):
    meshes = hostile_files.write_programs(tmp_path)
    for name, (make, _) in hostile_files.MULTIPLYING.items():
        content = make()
        if len(content) < 100_000:  # the larger ones take time, and differ only in that
            (tmp_path / name).write_bytes(content)
    script = HERE / "open_everything.py"
    run = subprocess.run([sys.executable, script, tmp_path], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-1] == "started:"
    assert run.stderr == ""
    for path in meshes:  # they are good meshes: what was kept shut is their pictures
        assert sum(len(surface.faces) for surface in read_mesh(path)) in (1, 2)


def test_the_hook_hears_a_program_start():
    code = (
        "import sys; sys.argv = ['x', '.']; import open_everything as o, subprocess; "
        "subprocess.run([sys.executable, '-V'], capture_output=True); print(o.started)"
    )
    run = subprocess.run([sys.executable, "-c", code], cwd=HERE, capture_output=True, text=True, check=True)
    assert "subprocess.Popen" in run.stdout


@pytest.mark.parametrize(
    "name", ["beside.gltf", "data.gltf", "inside.glb", "beside.dae", "beside.obj", "beside.ply"]
)
def test_a_picture_that_is_a_program_is_left_out_in_words(tmp_path, name):
    hostile_files.write_programs(tmp_path)
    (surface,) = read_mesh(tmp_path / name)
    with pytest.raises(ValueError, match="not one of the picture formats"):
        open_picture(surface.picture)
