"""HeightField: ground whose height is given on a grid, by an array or by a picture."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from robokit.arguments import check_finite, path_argument, real_array, real_number
from robokit.dataclass_tools import short_repr
from robokit.errors import ShapeError, shown
from robokit.meshes.untrusted import open_picture

MOST_HEIGHTS = 1 << 22
"""Heights of a field: 2048 x 2048."""


@dataclass(frozen=True, eq=False)
class HeightField:
    """Ground given by heights on a grid.

    Each cell has two triangles. Beyond the grid, the ground continues horizontally at the height of its edge.

    Attributes:
        heights: (nx, ny) [m]; heights[i, j] is at x = origin[0] + i cell[0], y = origin[1] + j cell[1].
        cell: distances (dx, dy) between neighbours [m], or one for both.
        origin: (x, y) or (x, y, z) of heights[0, 0]'s corner in the world [m]; z is added to all heights.
        friction: Coulomb coefficient of the field; None takes that of the ground.

    Raises:
        ShapeError: an argument of the wrong shape or content.

    Example:
        >>> x = np.linspace(-1.0, 1.0, 21)
        >>> hills = rk.HeightField(0.05 * np.cos(3 * x)[:, None] * np.ones(21), cell=0.1, origin=(-1.0, -1.0))
        >>> rk.Ground(terrain=hills).plane
        False
    """

    heights: Any
    cell: Any = 0.1
    origin: Any = (0.0, 0.0, 0.0)
    friction: float | None = None

    __repr__ = short_repr

    def __post_init__(self) -> None:
        heights = np.array(real_array("HeightField(heights)", self.heights, "(nx, ny)"), dtype=float)
        if heights.ndim != 2 or min(heights.shape) < 2 or heights.size > MOST_HEIGHTS:
            raise ShapeError(
                "HeightField(heights): expected shape (nx, ny), at least 2 each and at most "
                f"{MOST_HEIGHTS:,} in all, got {heights.shape}"
            )
        check_finite("HeightField(heights)", heights)
        cell = real_array("HeightField(cell=...)", self.cell, "() or (2,)")
        cell = np.broadcast_to(cell, (2,)) if cell.shape in ((), (2,)) else np.zeros(2)
        if not (np.isfinite(cell) & (cell > 0.0)).all():
            raise ShapeError(
                f"HeightField(cell=...): expected one or two lengths > 0, got {shown(self.cell)}"
            )
        origin = real_array("HeightField(origin=...)", self.origin, "(2,) or (3,)")
        if origin.shape not in ((2,), (3,)) or not np.isfinite(origin).all():
            raise ShapeError(
                f"HeightField(origin=...): expected (x, y) or (x, y, z), got {shown(self.origin)}"
            )
        heights.setflags(write=False)
        object.__setattr__(self, "heights", heights)
        object.__setattr__(self, "cell", tuple(map(float, cell)))
        object.__setattr__(self, "origin", (*map(float, origin), 0.0)[:3])
        if self.friction is not None:
            mu = real_number("HeightField(friction=...)", self.friction, least=0.0)
            object.__setattr__(self, "friction", mu)

    def __eq__(self, other: object) -> bool:
        """Whether it is the same field at the same place."""
        return isinstance(other, HeightField) and (
            (self.cell, self.origin, self.friction) == (other.cell, other.origin, other.friction)
            and np.array_equal(self.heights, other.heights)
        )

    def __hash__(self) -> int:
        return hash((self.cell, self.origin, self.friction, self.heights.shape))

    @staticmethod
    def from_picture(
        path: str | os.PathLike[str],
        size: float | Sequence[float] = 10.0,
        low: float = 0.0,
        high: float = 1.0,
        origin: Sequence[float] | None = None,
        friction: float | None = None,
    ) -> HeightField:
        """A height field from an image: black is low, white is high. Needs Pillow.

        Columns of pixels are along x, rows along -y, so from above the field looks like the image.

        Args:
            path: a PNG, JPEG, BMP, TGA, GIF, WebP or TIFF file; of 16 bits a pixel, all count.
            size: lengths along x and y from the first to the last pixel [m], or the longer one, for square
                pixels.
            low, high: heights of black and of white [m].
            origin: (x, y) or (x, y, z) of the lower left pixel [m]; None centres the image on the world's
                origin.
            friction: Coulomb coefficient of the field; None takes that of the ground.

        Raises:
            ShapeError: the picture cannot be read, or another argument of the wrong content.
        """
        path = path_argument("path", path)
        low, high = real_number("low", low), real_number("high", high)
        lengths = real_array("size", size, "() or (2,)")
        if lengths.shape not in ((), (2,)) or not (np.isfinite(lengths) & (lengths > 0.0)).all():
            raise ShapeError(f"size: expected one or two lengths > 0, got {shown(size)}")
        try:
            grey = _grey(path)
        except (OSError, ValueError, SyntaxError) as error:
            raise ShapeError(f"path: {os.fspath(path)}: no picture of heights ({error})") from error
        if min(grey.shape) < 2 or grey.size > MOST_HEIGHTS:
            raise ShapeError(
                f"path: {os.fspath(path)} has {grey.shape[1]} x {grey.shape[0]} pixels; expected at least "
                f"2 x 2 and at most {MOST_HEIGHTS:,} in all"
            )
        heights = low + (high - low) * grey[::-1].T
        cells = np.array(heights.shape) - 1
        cell = lengths / (cells if lengths.ndim else cells.max())
        middle = (-0.5 * cells * cell).tolist()
        return HeightField(heights, cell, middle if origin is None else origin, friction)


def _grey(path: Any) -> np.ndarray:
    """Brightness of the pixels from 0 to 1, row by row from the top."""
    with open_picture(path) as image:
        if image.mode.startswith("I"):
            return np.asarray(image, dtype=float) / 65535.0
        if image.mode == "F":
            raise ValueError("its pixels are floating-point numbers; give the array to HeightField instead")
        return np.asarray(image.convert("L"), dtype=float) / 255.0
