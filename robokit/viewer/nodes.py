"""A thing to draw: a shape with a colour, at a placement on a body."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from robokit.meshes.surface import Picture
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
