"""Numbers and poses as attributes of MJCF elements."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from robokit.model.geometry import Placement


def numbers(values: Iterable[float]) -> str:
    """Numbers in decimal; reading them back gives the same bits."""
    return " ".join(repr(float(x)) for x in values)


def pose(place: Placement) -> dict[str, str]:
    """The attribute pos, and quat where the frame is rotated."""
    found = {"pos": numbers(place.position)}
    if not np.array_equal(place.rotation, np.eye(3)):
        found["quat"] = numbers(_quat_wxyz(np.asarray(place.rotation, dtype=float)))
    return found


def _quat_wxyz(R: np.ndarray) -> np.ndarray:
    """Unit quaternion of a rotation: the eigenvector of the largest eigenvalue of Bar-Itzhack's matrix."""
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = R
    K = np.array(
        [
            [xx + yy + zz, zy - yz, xz - zx, yx - xy],
            [zy - yz, xx - yy - zz, yx + xy, zx + xz],
            [xz - zx, yx + xy, yy - xx - zz, zy + yz],
            [yx - xy, zx + xz, zy + yz, zz - xx - yy],
        ]
    )
    return np.linalg.eigh(K)[1][:, -1]
