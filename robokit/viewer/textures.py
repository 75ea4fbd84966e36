"""Pictures on surfaces, small enough to be part of a page."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any

LARGEST = 512
"""Pixels along the longer side in a page."""

MOST = 64_000_000
"""Pixels of a picture that is still opened."""


def data_uri(picture: Any) -> str:
    """A picture as text that a browser opens: JPEG, or PNG where it is transparent somewhere.

    Args:
        picture: the path of a file, or an image of Pillow.

    Raises:
        ValueError: a picture of too many pixels; OSError: a file that is no picture.
    """
    from PIL import Image

    image = Image.open(picture) if isinstance(picture, (str, Path)) else picture
    if image.width * image.height > MOST:
        raise ValueError(f"the picture has {image.width} x {image.height} pixels; at most {MOST:,} are shown")
    clear = "A" in image.getbands() or "transparency" in image.info
    image = image.convert("RGBA" if clear else "RGB")
    if clear and image.getchannel("A").getextrema() == (255, 255):
        image, clear = image.convert("RGB"), False
    image.thumbnail((LARGEST, LARGEST))
    content = io.BytesIO()
    image.save(content, "PNG") if clear else image.save(content, "JPEG", quality=85)
    kind = "png" if clear else "jpeg"
    return f"data:image/{kind};base64,{base64.b64encode(content.getvalue()).decode('ascii')}"
