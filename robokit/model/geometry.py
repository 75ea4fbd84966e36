"""Visual and collision shapes of a link."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field
from pathlib import Path

import numpy as np

from robokit.dataclass_tools import frozen

RGBA = tuple[float, float, float, float]


_UPRIGHT = np.eye(3)


def product(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """A B of matrices (..., 3, 3), in one order of sums: a library's own order depends on the processor."""
    return (
        A[..., :, 0, None] * B[..., None, 0, :]
        + A[..., :, 1, None] * B[..., None, 1, :]
        + A[..., :, 2, None] * B[..., None, 2, :]
    )


def turned(R: np.ndarray, p: np.ndarray) -> np.ndarray:
    """R p of points (..., 3), in the same order of sums."""
    p = np.asarray(p)  # a placement may have been given a tuple
    return R[..., 0] * p[..., :1] + R[..., 1] * p[..., 1:2] + R[..., 2] * p[..., 2:]


def turned_inertia(R: np.ndarray, inertia: np.ndarray) -> np.ndarray:
    """R I R^T of matrices (..., 3, 3), in the same order of sums."""
    return product(product(R, inertia), np.swapaxes(R, -1, -2))


Rows = Sequence[Sequence[float]]
"""A 3 x 3 matrix in plain floats: NumPy takes longer over one matrix, and an importer has thousands."""


def product_of_rows(A: Rows, B: Rows) -> list[list[float]]:
    """A B, to the bit as :func:`product` computes it."""
    columns = tuple(zip(*B, strict=True))
    return [[a * p + b * q + c * r for p, q, r in columns] for a, b, c in A]


def turned_by_rows(R: Rows, p: Sequence[float]) -> list[float]:
    """R p, to the bit as :func:`turned` computes it."""
    x, y, z = p
    return [a * x + b * y + c * z for a, b, c in R]


@frozen
class Placement:
    """Pose of a frame B in a frame A: x_A = rotation @ x_B + position.

    Attributes:
        rotation: (3, 3), columns are B's axes in A.
        position: (3,), B's origin in A [m].
    """

    rotation: np.ndarray = field(default_factory=_UPRIGHT.copy)
    position: np.ndarray = field(default_factory=lambda: np.zeros(3))

    def __matmul__(self, other: Placement) -> Placement:
        """Pose of C in A from B in A (self) and C in B (other)."""
        position = turned(self.rotation, other.position) + self.position
        return Placement(product(self.rotation, other.rotation), position)

    def inverse(self) -> Placement:
        """Pose of A in B."""
        return Placement(self.rotation.T, turned(-self.rotation.T, self.position))


@frozen
class Box:
    """Box centred on its frame; size = full edge lengths along x, y, z [m]."""

    size: tuple[float, float, float]


@frozen
class Sphere:
    """Sphere about its frame's origin; radius [m]."""

    radius: float


@frozen
class Cylinder:
    """Cylinder along z, centred; radius and length [m]."""

    radius: float
    length: float


@frozen
class Capsule:
    """Cylinder along z with a half sphere on each end; length [m] is the cylinder's, without caps."""

    radius: float
    length: float


@frozen
class Mesh:
    """Triangle mesh in a file.

    Attributes:
        filename: as written in the description.
        scale: factors along x, y, z (negative mirrors).
        path: the file on disk, or None where it was not found.
    """

    filename: str
    scale: tuple[float, float, float] = (1.0, 1.0, 1.0)
    path: Path | None = None


Primitive = Box | Sphere | Cylinder | Capsule
Geometry = Primitive | Mesh


def volume(shape: Primitive) -> float:
    """Volume [m^3]."""
    if isinstance(shape, Box):
        return math.prod(shape.size)
    r = shape.radius
    ball = 4.0 / 3.0 * math.pi * r**3
    if isinstance(shape, Sphere):
        return ball
    tube = math.pi * r * r * shape.length
    return tube if isinstance(shape, Cylinder) else tube + ball


def square_gyrations(shape: Primitive) -> np.ndarray:
    """Moments of inertia per mass of an evenly filled shape about its axes, (3,) [m^2]."""
    if isinstance(shape, Box):
        x, y, z = shape.size
        return np.array([y * y + z * z, x * x + z * z, x * x + y * y]) / 12.0
    r = shape.radius
    of_ball = 0.4 * r * r
    if isinstance(shape, Sphere):
        return np.full(3, of_ball)
    length = shape.length
    across, along = r * r / 4.0 + length * length / 12.0, r * r / 2.0
    of_tube = np.array([across, across, along])
    if isinstance(shape, Cylinder):
        return of_tube
    # Two half balls, whose centres of mass lie 3/8 r beyond the ends of the cylinder.
    apart = of_ball + length * length / 4.0 + 0.375 * r * length
    tube, ball = volume(Cylinder(r, length)), volume(Sphere(r))
    return (tube * of_tube + ball * np.array([apart, apart, of_ball])) / (tube + ball)


@frozen
class Shape:
    """A geometry at a placement in its link's frame, with its looks.

    Attributes:
        geometry: box, sphere, cylinder, capsule or mesh.
        placement: of the geometry in the link's frame.
        rgba: colour and opacity, 0..1, or None.
        texture: the image file on disk, or None where there is none or it was not found.
        name: as in the description, or None.
        texture_filename: the image file as written in the description, or None.
    """

    geometry: Geometry
    placement: Placement = field(default_factory=Placement)
    rgba: RGBA | None = None
    texture: str | None = None
    name: str | None = None
    texture_filename: str | None = None
