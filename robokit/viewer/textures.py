"""Pictures on surfaces, small enough to be part of a page."""

from __future__ import annotations

import base64
import io
from pathlib import Path

from robokit.meshes.untrusted import open_picture

LARGEST = 512
"""Pixels along the longer side in a page."""


def data_uri(picture: str | Path | bytes) -> str:
    """A picture as text that a browser opens: JPEG, or PNG where it is transparent somewhere.

    Args:
        picture: the path of a file, or its content.

    Raises:
        ValueError: a format that is not opened, or too many pixels; OSError: a file that is no picture.
    """
    image = open_picture(Path(picture) if isinstance(picture, str) else picture)
    clear = "A" in image.getbands() or "transparency" in image.info
    if image.mode in ("L", "RGB", "RGBA") and "transparency" not in image.info:
        image.thumbnail((LARGEST, LARGEST))  # before it is copied
    small = image.convert("RGBA" if clear else "RGB")
    if clear and small.getchannel("A").getextrema() == (255, 255):
        small, clear = small.convert("RGB"), False
    small.thumbnail((LARGEST, LARGEST))
    content = io.BytesIO()
    small.save(content, "PNG") if clear else small.save(content, "JPEG", quality=85)
    kind = "png" if clear else "jpeg"
    return f"data:image/{kind};base64,{base64.b64encode(content.getvalue()).decode('ascii')}"
