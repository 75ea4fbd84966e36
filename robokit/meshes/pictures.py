"""Pictures on meshes: the formats that are opened, by their first bytes, and how large they may be.

Pillow reads more formats than meshes use, and starts another program for some of them (Ghostscript for
PostScript). So the format is told from the content, whatever the file is called, and Pillow is given that
format alone. Sizes are compared before anything is decoded.
"""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from robokit.meshes.companions import read_file

if TYPE_CHECKING:
    from PIL.Image import Image

MOST_PIXELS, LONGEST_SIDE = 1 << 25, 16_384
"""Of a picture: 8192 x 4096, and no side longer than this."""

MOST_SCANS = 200
"""Passes over a progressive JPEG; usual are ten. Each costs the time of the whole picture and few bytes."""

_FIRST_BYTES = {
    b"\x89PNG\r\n\x1a\n": "PNG",
    b"\xff\xd8\xff": "JPEG",
    b"BM": "BMP",
    b"GIF87a": "GIF",
    b"GIF89a": "GIF",
    b"II*\0": "TIFF",
    b"MM\0*": "TIFF",
}
_TILE_WIDTH, _TILE_HEIGHT = 322, 323
ACCEPTED = "PNG, JPEG, BMP, TGA, GIF, WebP and TIFF"


def open_picture(picture: Path | bytes) -> Image:
    """A picture, with its size checked and its pixels not yet decoded.

    Args:
        picture: path of the file, or its content.

    Raises:
        ValueError: a format that is not accepted, a damaged head, or too many pixels.
        OSError: a file that cannot be read.
    """
    from PIL import Image

    content = picture if isinstance(picture, bytes) else read_file(picture)
    kind = picture_format(content, "" if isinstance(picture, bytes) else picture.suffix)
    if kind == "JPEG" and content.count(b"\xff\xda") > MOST_SCANS:
        raise ValueError(f"the JPEG has more than {MOST_SCANS} scans")
    if kind == "WEBP":
        _check_pixels(*_webp_size(content))  # Pillow makes room for the pixels when it opens the file
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # an error follows
            image = Image.open(io.BytesIO(content), formats=[kind])
    except Image.UnidentifiedImageError as problem:
        raise ValueError(f"it begins like a {kind} and is none") from problem
    except Image.DecompressionBombError as problem:
        raise ValueError(f"the picture is too large: {problem}") from problem
    _check_pixels(*image.size)
    if kind == "TIFF":  # it is decoded tile by tile, and a tile may be larger than the picture
        tags = getattr(image, "tag_v2", {})
        _check_pixels(*(int(tags.get(tag, 0)) for tag in (_TILE_WIDTH, _TILE_HEIGHT)))
    return image


def picture_format(content: bytes, suffix: str = "") -> str:
    """Pillow's name of the format that the content has.

    Args:
        content: of the file.
        suffix: of its name; a TGA file may have nothing else that tells it.

    Raises:
        ValueError: none of the accepted ones.
    """
    for start, kind in _FIRST_BYTES.items():
        if content.startswith(start):
            return kind
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "WEBP"
    if content[-18:] == b"TRUEVISION-XFILE.\0" or (suffix.lower() == ".tga" and _is_tga(content)):
        return "TGA"
    raise ValueError(f"it is not one of the picture formats {ACCEPTED}")


def _is_tga(content: bytes) -> bool:
    """Whether the header of a TGA file could begin so: it has no first bytes of its own."""
    if len(content) < 18:
        return False
    palette, kind, depth = content[1], content[2], content[16]
    return palette in (0, 1) and kind in (1, 2, 3, 9, 10, 11) and depth in (8, 15, 16, 24, 32)


def _webp_size(content: bytes) -> tuple[int, int]:
    """Width and height that the first chunk of a WebP file gives (RFC 9649)."""
    kind, data = content[12:16], content[20:30]
    if len(data) < 10:
        raise ValueError("the WebP ends in its header")
    if kind == b"VP8X":
        return 1 + int.from_bytes(data[4:7], "little"), 1 + int.from_bytes(data[7:10], "little")
    if kind == b"VP8L":
        bits = int.from_bytes(data[1:5], "little")
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    return int.from_bytes(data[6:8], "little") & 0x3FFF, int.from_bytes(data[8:10], "little") & 0x3FFF


def _check_pixels(width: int, height: int) -> None:
    if width * height > MOST_PIXELS or max(width, height) > LONGEST_SIDE:
        raise ValueError(
            f"the picture has {width} x {height} pixels; at most {MOST_PIXELS:,} are opened, "
            f"and {LONGEST_SIDE:,} along a side"
        )
