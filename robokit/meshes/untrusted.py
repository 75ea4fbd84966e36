"""How much one mesh file may become: small files that multiply are refused before the work begins.

What a file holds grows with its bytes: a binary STL takes 50 bytes a triangle, the tightest text about 6.
More than that comes from meshes that a scene places many times, and from counts without data.
"""

from __future__ import annotations

import numpy as np

LARGEST = 512 << 20
"""Bytes of a mesh file, together with the buffers and lists of materials that it names."""

MOST_TRIANGLES, FREE_TRIANGLES, BYTES_A_TRIANGLE = 10_000_000, 100_000, 2
"""At most; in any file; and bytes for each triangle beyond. A mesh that is placed twice counts twice."""

MOST_PIECES, MOST_PLACES, FREE_PLACES, BYTES_A_PLACE = 20_000, 50_000, 1_000, 20
"""Pieces at most, nodes and instances of a scene at most; either in any file; bytes for each beyond."""

FARTHEST = 1e18
"""Largest coordinate [m]: the square of a distance is still a single-precision number, as pages and graphics
cards compute with. So is that of its inverse, the smallest unit of length."""

MOST_TAGS = 4_000_000
"""Elements of an XML text, or entries of a JSON text: each takes far more memory than its characters."""


class Budget:
    """What is left of the triangles, pieces and places that a file may have.

    Args:
        size: bytes of the file.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._triangles = self._pieces = self._places = self._copied = 0

    def read(self, size: int) -> None:
        """Count the bytes of another file that the mesh file names.

        Raises:
            ValueError: together they are too large.
        """
        self._size += size
        check_size(self._size, "the file and those it names have")

    def copied(self, size: int) -> None:
        """Count the bytes of a picture that is stored in the file.

        Raises:
            ValueError: together they are more than the file has.
        """
        self._copied += size
        if self._copied > self._size:
            raise ValueError(f"its pictures have more bytes than the file, which has {self._size:,}")

    @property
    def most_triangles(self) -> int:
        """Number of triangles that the file may have."""
        return min(MOST_TRIANGLES, FREE_TRIANGLES + self._size // BYTES_A_TRIANGLE)

    def triangles(self, count: int) -> None:
        """Count triangles that will be made.

        Raises:
            ValueError: they are too many.
        """
        self._triangles += count
        if self._triangles > self.most_triangles:
            raise ValueError(
                f"it holds more than {self.most_triangles:,} triangles; accepted are {FREE_TRIANGLES:,}, "
                f"one more for every {BYTES_A_TRIANGLE} of its {self._size:,} bytes, and at most "
                f"{MOST_TRIANGLES:,}"
            )

    def piece(self, triangles: int) -> None:
        """Count a piece that will be made, with its triangles.

        Raises:
            ValueError: they are too many.
        """
        self._pieces += 1
        self._check(self._pieces, "pieces", MOST_PIECES)
        self.triangles(triangles)

    def place(self) -> None:
        """Count a node or an instance of a scene.

        Raises:
            ValueError: they are too many.
        """
        self._places += 1
        self._check(self._places, "nodes and instances", MOST_PLACES)

    def _check(self, count: int, what: str, most: int) -> None:
        allowed = min(most, FREE_PLACES + self._size // BYTES_A_PLACE)
        if count > allowed:
            raise ValueError(
                f"it has more than {allowed:,} {what}; accepted are {FREE_PLACES:,}, one more for every "
                f"{BYTES_A_PLACE} of its {self._size:,} bytes, and at most {most:,}"
            )


def check_size(size: int, what: str = "the file has") -> None:
    """Raise ValueError for more bytes than are read."""
    if size > LARGEST:
        raise ValueError(f"{what} {size >> 20:,} MB; at most {LARGEST >> 20:,} MB are read")


def check_tags(count: int, what: str) -> None:
    """Raise ValueError for more elements of a text than are read."""
    if count > MOST_TAGS:
        raise ValueError(f"it has {count:,} {what}; at most {MOST_TAGS:,} are read")


def check_coordinates(vertices: np.ndarray) -> None:
    """Raise ValueError for vertices that no computation should meet."""
    if not np.isfinite(vertices).all():
        raise ValueError("a vertex is not a finite number")
    if len(vertices) and (farthest := float(np.abs(vertices).max())) > FARTHEST:
        raise ValueError(f"a vertex has the coordinate {farthest:.3g}; at most {FARTHEST:g} are read")


def scaled(vertices: np.ndarray, scale: tuple[float, float, float]) -> np.ndarray:
    """Vertices times a description's scale, (n, 3) [m].

    Raises:
        ValueError: they are too far away.
    """
    with np.errstate(all="ignore"):
        found = np.asarray(vertices, dtype=float) * np.asarray(scale, dtype=float)
    check_coordinates(found)
    return found
