"""A piece of a mesh file: triangles with their colours and pictures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from robokit.model.geometry import RGBA

Picture = Any
"""An image: the path of a file, or an image of Pillow."""


@dataclass(frozen=True)
class Surface:
    """A piece of a mesh file.

    Attributes:
        vertices: (n, 3) [m].
        faces: (m, 3) numbers of vertices.
        rgba: the one colour that the file gives it, or None.
        colours: (n, 3) colour of each vertex, 0..255, or None.
        uv: (m, 3, 2) place of each face's corners in the picture, from its lower left to (1, 1), or None.
        picture: the picture that covers it, or None.
        missing: name of the picture that should cover it and was not found, or "".
    """

    vertices: np.ndarray
    faces: np.ndarray
    rgba: RGBA | None = None
    colours: np.ndarray | None = None
    uv: np.ndarray | None = None
    picture: Picture | None = None
    missing: str = ""
