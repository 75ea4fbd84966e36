"""Pictures on meshes: the accepted formats open, nothing else does, and no picture starts a program."""

from __future__ import annotations

import io
import struct
import subprocess
import sys
import tracemalloc
import zlib
from pathlib import Path

import hostile_files
import pytest
from PIL import Image

from robokit.meshes import pictures
from robokit.meshes.pictures import open_picture, picture_format
from robokit.meshes.read_mesh import read_mesh
from robokit.viewer.textures import data_uri

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
    monkeypatch.setattr(pictures, "MOST_PIXELS", 24)
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
