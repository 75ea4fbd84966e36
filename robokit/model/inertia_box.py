"""The box of even density that has a body's mass and inertia: a picture of ten numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

LARGEST = 1e100
"""Numbers beyond are not judged: their products leave the floating-point range."""


@dataclass(frozen=True)
class EquivalentBox:
    """The homogeneous box with a given mass and rotational inertia.

    Attributes:
        moments: principal moments of inertia about the centre of mass, ascending, (3,) [kg m^2].
        axes: principal axes as columns in the axes of the inertia, right-handed, (3, 3).
        size: edge lengths along these axes, (3,) [m]; 0 where no body has such moments.
    """

    moments: np.ndarray
    axes: np.ndarray
    size: np.ndarray


def equivalent_box(mass: float, inertia: np.ndarray) -> EquivalentBox | None:
    """Principal moments, principal axes and equivalent box of a body.

    Args:
        mass: [kg].
        inertia: rotational inertia about the centre of mass, (3, 3) [kg m^2].

    Returns:
        None for a body without mass, and for numbers whose products overflow.
    """
    I = np.asarray(inertia, dtype=float)
    if not mass > 0 or not float(np.abs(I).max()) < LARGEST * min(mass, 1.0):
        return None
    moments, axes = np.linalg.eigh(I)
    if np.linalg.det(axes) < 0:
        axes = axes * np.array([1.0, 1.0, -1.0])
    return EquivalentBox(moments, axes, box_edges(mass, moments))


def box_edges(mass: Any, moments: np.ndarray) -> np.ndarray:
    """Edges a, b, c of the box of even density: I1 = m (b² + c²) / 12, and so on round.

    Scalar by scalar, so that a body of many has the bits that it has alone.

    Args:
        mass: [kg], a number or (...), positive.
        moments: principal moments of inertia, (..., 3) [kg m^2].

    Returns:
        (..., 3) [m]; 0 where no body has such moments.
    """
    x, y, z = np.moveaxis(moments, -1, 0)
    squares = 6.0 / np.asarray(mass)[..., None] * np.stack([y + z - x, z + x - y, x + y - z], axis=-1)
    return np.sqrt(np.maximum(squares, 0.0))
