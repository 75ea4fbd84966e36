"""A thing to draw: a shape with a colour, at a placement on a body."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from robokit.meshes.surface import Picture
from robokit.meshes.untrusted import open_picture
from robokit.model.geometry import RGBA, Box, Capsule, Cylinder, Placement, Sphere

Role = Literal["visual", "collision", "inertia", "axis", "ground"]


@dataclass(frozen=True)
class Triangles:
    """A triangle mesh in memory.

    Attributes:
        vertices: (n, 3) [m].
        faces: vertex numbers, (m, 3).
        colours: of the vertices, (n, 3), 0 to 255; or None.
        uv: picture coordinates of the faces' corners, (m, 3, 2); or None.
        picture: the mesh's own picture, a path or the content of a file; or None.
    """

    vertices: np.ndarray
    faces: np.ndarray
    colours: np.ndarray | None = None
    uv: np.ndarray | None = None
    picture: Picture | None = None


Drawable = Box | Sphere | Cylinder | Capsule | Triangles


@dataclass(frozen=True)
class Node:
    """One thing to draw.

    Attributes:
        link: name of the link it belongs to.
        body: number of the body that carries it, 0 for the world or the fixed root.
        geometry: primitive or triangles, in the node's own frame.
        placement: the node's frame in the body's frame.
        rgba: colour, each 0 to 1 (sRGB).
        role: "visual" for the robot, "ground" for the ground; the others are overlays.
        stand_in: True if an overlay represents the robot because the robot has no visuals.
        picture: the picture that covers it, a path or the content of a file; or None.
    """

    link: str
    body: int
    geometry: Drawable
    placement: Placement
    rgba: RGBA
    role: Role
    stand_in: bool = False
    picture: Picture | None = None


def local_box(geometry: Drawable) -> tuple[np.ndarray, np.ndarray]:
    """Lowest and highest corner of a geometry in its own frame, (3,) each [m]."""
    if isinstance(geometry, Triangles):
        return geometry.vertices.min(axis=0), geometry.vertices.max(axis=0)
    if isinstance(geometry, Box):
        half = 0.5 * np.asarray(geometry.size, dtype=float)
    elif isinstance(geometry, Sphere):
        half = np.full(3, float(geometry.radius))
    else:
        caps = geometry.radius if isinstance(geometry, Capsule) else 0.0
        half = np.array([geometry.radius, geometry.radius, 0.5 * geometry.length + caps], dtype=float)
    return -half, half


# ---- pictures ------------------------------------------------------------------------------------


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
