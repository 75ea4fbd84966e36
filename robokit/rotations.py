"""Conversions of rotations: unit quaternions, matrices, roll-pitch-yaw, axis and angle, rotation vectors.

Each takes body coordinates to those of the outer frame, x_outer = R x_body:

=================  =========================================================================================
quat_wxyz          (4,) unit quaternion, scalar part first, as everywhere in robokit; q and -q are the same
quat_xyzw          (4,) the same with the scalar part last, as in ROS, Pinocchio and SciPy
matrix             (3, 3) R, its columns are the body's axes
rpy                (3,) roll, pitch, yaw [rad] about fixed x, y, z: R = Rz(yaw) Ry(pitch) Rx(roll), as in URDF
axis, angle        (3,) axis of any length but 0, and the angle about it [rad]
rotation_vector    (3,) axis times angle [rad], the logarithm of R
=================  =========================================================================================

All take one rotation or arrays of them with any leading axes, and return the same. They also take lists of
the scalars of ``rk.function`` and return such lists, so that derivatives go through them. Where a
representation is not unique:

* Quaternions in results have w >= 0.
* Angles about an axis are in 0..pi, and rotation vectors have a length of at most pi. At pi, either of the
  two opposite axes may result; at 0 the axis is x.
* Pitch is in -pi/2..pi/2. At these two ends (gimbal lock) only roll -+ yaw is determined, and yaw is 0.
  Near them roll and yaw are uncertain one by one, and yet the three give the rotation back to rounding.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from robokit.arguments import check_finite, real_array
from robokit.conventions import UNIT_QUATERNION_TOLERANCE
from robokit.errors import InvalidValue, ShapeError
from robokit.spatial import Matrix3, Vector3
from robokit.spatial.rotation import (
    quat_exp,
    quat_log,
    quat_normalized,
    quat_positive,
    quat_wxyz_to_rotation,
    rotation_to_quat_wxyz,
)
from robokit.spatial.scalars import Scalar, atan2, cos, sin, sqrt, where

__all__ = [
    "axis_angle_to_matrix",
    "axis_angle_to_quat_wxyz",
    "matrix_to_axis_angle",
    "matrix_to_quat_wxyz",
    "matrix_to_rotation_vector",
    "matrix_to_rpy",
    "quat_wxyz_to_axis_angle",
    "quat_wxyz_to_matrix",
    "quat_wxyz_to_rotation_vector",
    "quat_wxyz_to_rpy",
    "quat_wxyz_to_xyzw",
    "quat_xyzw_to_wxyz",
    "rotation_vector_to_matrix",
    "rotation_vector_to_quat_wxyz",
    "rpy_to_matrix",
    "rpy_to_quat_wxyz",
]

LOCKED = 1e-15  # cosine of a pitch that is rounding of 0: entries of a matrix have errors of a few 1e-16

Text = Callable[..., Any]

SHAPES: dict[str, tuple[int, ...]] = {
    "quat_wxyz": (4,),
    "quat_xyzw": (4,),
    "matrix": (3, 3),
    "rpy": (3,),
    "axis": (3,),
    "angle": (),
    "rotation_vector": (3,),
}
"""Shape of one rotation, by its representation."""


def _conversion(text: Text) -> Text:
    """A function of arrays, from a text of the scalars of one rotation; its arguments' names matter."""
    signature = inspect.signature(text)
    names = tuple(signature.parameters)

    @functools.wraps(text)
    def convert(*values: Any, **named: Any) -> Any:
        given = signature.bind(*values, **named).args
        if any(_symbolic(x) for x in given):
            return text(*(_rows(name, x) for name, x in zip(names, given, strict=True)))
        arrays = [_checked(name, x) for name, x in zip(names, given, strict=True)]
        batch = _batch(names, arrays)
        return _stacked(text(*(_columns(name, x) for name, x in zip(names, arrays, strict=True))), batch)

    return convert


def _leaves(x: Any) -> list[Any]:
    if isinstance(x, Matrix3):
        x = x.rows
    if isinstance(x, Vector3 | list | tuple):
        return [leaf for part in x for leaf in _leaves(part)]
    return [x]


def _symbolic(x: Any) -> bool:
    """Whether there are scalars in it that are no numbers."""
    if isinstance(x, np.ndarray):
        return False
    return any(
        not isinstance(leaf, int | float | np.ndarray | np.generic | str | None) for leaf in _leaves(x)
    )


def _rows(name: str, x: Any) -> Any:
    """Scalars of one rotation, in the order in which the conversions take them."""
    leaves, shape = _leaves(x), SHAPES[name]
    if len(leaves) != int(np.prod(shape)):
        raise ShapeError(f"{name}: expected {shape}, got {len(leaves)} numbers")
    if not shape:
        return leaves[0]
    return [leaves[k : k + 3] for k in (0, 3, 6)] if len(shape) == 2 else leaves


def _checked(name: str, value: Any) -> np.ndarray:
    """The array, of the right shape; unit quaternions, rotation matrices, axes that are no zeros."""
    shape = SHAPES[name]
    accepted = str((..., *shape)).replace("Ellipsis", "...") if shape else "a number or (...)"
    x = real_array(name, _leaves(value) if isinstance(value, Vector3) else value, accepted)
    if x.shape[x.ndim - len(shape) :] != shape or x.ndim < len(shape):
        raise ShapeError(f"{name}: expected shape {shape} or {accepted}, got shape {x.shape}")
    check_finite(name, x)
    if name.startswith("quat"):
        norm2 = np.sum(x * x, axis=-1)
        _refuse(
            name, np.abs(norm2 - 1.0) > UNIT_QUATERNION_TOLERANCE, "a unit quaternion; divide it by its norm"
        )
    elif name == "matrix":
        off = np.abs(x @ np.swapaxes(x, -1, -2) - np.eye(3)).max(axis=(-1, -2), initial=0.0)
        bad = (off > UNIT_QUATERNION_TOLERANCE) | (np.linalg.det(x) < 0.0)
        _refuse(name, bad, "a rotation: perpendicular unit columns with determinant 1")
    elif name == "axis":
        _refuse(name, ~np.any(x != 0.0, axis=-1), "an axis that is not zero")
    return x


def _refuse(name: str, bad: np.ndarray, expected: str) -> None:
    if np.any(bad):
        place = tuple(int(k) for k in np.argwhere(bad)[0])
        at = f"[{', '.join(map(str, place))}]" if place else ""
        raise InvalidValue(f"{name}{at}: expected {expected}", name, place)


def _columns(name: str, x: np.ndarray) -> Any:
    """Scalars of one rotation, each an array of all of them; of a single one numbers, which is quicker."""
    shape = SHAPES[name]
    if x.shape == shape:
        return x.tolist()
    if not shape:
        return x[()]
    if len(shape) == 1:
        return [x[..., k] for k in range(shape[0])]
    return [[x[..., i, k] for k in range(3)] for i in range(3)]


def _batch(names: Sequence[str], arrays: Sequence[np.ndarray]) -> tuple[int, ...]:
    shapes = [x.shape[: x.ndim - len(SHAPES[name])] for name, x in zip(names, arrays, strict=True)]
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise ShapeError(f"{', '.join(names)}: {shapes} do not go together; give as many of each") from None


def _stacked(found: Any, batch: tuple[int, ...]) -> Any:
    """What a text returned as arrays (*batch, ...)."""
    if isinstance(found, tuple):
        return tuple(_stacked(x, batch) for x in found)
    if not batch:
        return np.array(found.rows if isinstance(found, Matrix3) else found, dtype=float)[()]
    if isinstance(found, Matrix3):
        rows = [_stacked(list(row), batch) for row in found.rows]
        return np.stack(rows, axis=-2)
    if isinstance(found, list):
        return np.stack([np.broadcast_to(x, batch) for x in found], axis=-1).astype(float)
    return np.broadcast_to(found, batch).astype(float)[()]


# ---- texts of one rotation --------------------------------------------------------------------------------


def _rpy_of_matrix(R: Sequence[Sequence[Scalar]]) -> list[Scalar]:
    """Angles of a matrix; roll is taken in the frame of the yaw that was found, so that errors cancel."""
    (r00, r01, r02), (r10, r11, r12), (r20, _, _) = R
    c2 = r00 * r00 + r10 * r10
    locked = c2 < LOCKED * LOCKED
    safe = where(locked, 1.0, c2)
    c = sqrt(safe)
    cy, sy = where(locked, 1.0, r00 / c), where(locked, 0.0, r10 / c)
    pitch = atan2(0.0 - r20, where(locked, 0.0, c))
    return [atan2(sy * r02 - cy * r12, cy * r11 - sy * r01), pitch, atan2(sy, cy)]


def _axis_angle_of_quat(quat: Sequence[Scalar]) -> tuple[list[Scalar], Scalar]:
    w, x, y, z = quat_positive(quat)
    s2 = x * x + y * y + z * z
    none = s2 == 0.0
    s = sqrt(where(none, 1.0, s2))
    axis = [where(none, 1.0, x / s), where(none, 0.0, y / s), where(none, 0.0, z / s)]
    return axis, where(none, 0.0, 2.0 * atan2(where(none, 0.0, s), w))


def _quat_of_rpy(rpy: Sequence[Scalar]) -> list[Scalar]:
    (cr, cp, cy), (sr, sp, sy) = ([f(0.5 * x) for x in rpy] for f in (cos, sin))
    return [
        cr * cp * cy + sr * sp * sy,
        sr * cp * cy - cr * sp * sy,
        cr * sp * cy + sr * cp * sy,
        cr * cp * sy - sr * sp * cy,
    ]


def _quat_of_axis_angle(axis: Sequence[Scalar], angle: Scalar) -> list[Scalar]:
    x, y, z = axis
    k = sin(0.5 * angle) / sqrt(x * x + y * y + z * z)
    return [cos(0.5 * angle), x * k, y * k, z * k]


# ---- what is public ---------------------------------------------------------------------------------------


@_conversion
def quat_wxyz_to_matrix(quat_wxyz: Any) -> Any:
    """R (..., 3, 3) of unit quaternions (..., 4).

    Example:
        >>> rk.rotations.quat_wxyz_to_matrix([0.6, 0.8, 0, 0]).round(12)
        array([[ 1.  ,  0.  ,  0.  ],
               [ 0.  , -0.28, -0.96],
               [ 0.  ,  0.96, -0.28]])
    """
    return quat_wxyz_to_rotation(quat_normalized(quat_wxyz))


@_conversion
def matrix_to_quat_wxyz(matrix: Any) -> Any:
    """Unit quaternions (..., 4) with w >= 0 of rotation matrices (..., 3, 3).

    Example:
        >>> rk.rotations.matrix_to_quat_wxyz([[1, 0, 0], [0, -0.28, -0.96], [0, 0.96, -0.28]]).round(12)
        array([0.6, 0.8, 0. , 0. ])
    """
    return list(quat_normalized(rotation_to_quat_wxyz(matrix)))


@_conversion
def rpy_to_matrix(rpy: Any) -> Any:
    """R = Rz(yaw) Ry(pitch) Rx(roll), (..., 3, 3), of roll, pitch, yaw (..., 3) [rad].

    Example:
        >>> rk.rotations.rpy_to_matrix([0, 0, np.pi / 2]).round(12) + 0.0
        array([[ 0., -1.,  0.],
               [ 1.,  0.,  0.],
               [ 0.,  0.,  1.]])
    """
    (cr, cp, cy), (sr, sp, sy) = ([f(x) for x in rpy] for f in (cos, sin))
    return Matrix3(
        (
            (cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr),
            (sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr),
            (0.0 - sp, cp * sr, cp * cr),
        )
    )


@_conversion
def matrix_to_rpy(matrix: Any) -> Any:
    """Roll, pitch, yaw (..., 3) [rad] of rotation matrices (..., 3, 3).

    Example:
        >>> R = rk.rotations.rpy_to_matrix([0.1, -0.2, 0.3])
        >>> rk.rotations.matrix_to_rpy(R).round(12)
        array([ 0.1, -0.2,  0.3])
        >>> rk.rotations.matrix_to_rpy(rk.rotations.rpy_to_matrix([0.3, np.pi / 2, 0.1])).round(12)
        array([0.2       , 1.57079633, 0.        ])
    """
    return _rpy_of_matrix(matrix)


@_conversion
def rotation_vector_to_matrix(rotation_vector: Any) -> Any:
    """R (..., 3, 3) of rotation vectors (..., 3) [rad], the exponential.

    Example:
        >>> rk.rotations.rotation_vector_to_matrix([0, 0, np.pi / 2]).round(12) + 0.0
        array([[ 0., -1.,  0.],
               [ 1.,  0.,  0.],
               [ 0.,  0.,  1.]])
    """
    return quat_wxyz_to_rotation(quat_exp(Vector3(*rotation_vector)))


@_conversion
def matrix_to_rotation_vector(matrix: Any) -> Any:
    """Rotation vectors (..., 3) [rad] at most pi long of rotation matrices (..., 3, 3), the logarithm.

    Example:
        >>> rk.rotations.matrix_to_rotation_vector([[0, -1, 0], [1, 0, 0], [0, 0, 1]]).round(6)
        array([0.      , 0.      , 1.570796])
    """
    return list(quat_log(quat_normalized(rotation_to_quat_wxyz(matrix))))


@_conversion
def axis_angle_to_matrix(axis: Any, angle: Any) -> Any:
    """R (..., 3, 3) of axes (..., 3) of any length, and angles (...) [rad] about them.

    Example:
        >>> rk.rotations.axis_angle_to_matrix([0, 0, 2], np.pi / 2).round(12) + 0.0
        array([[ 0., -1.,  0.],
               [ 1.,  0.,  0.],
               [ 0.,  0.,  1.]])
    """
    return quat_wxyz_to_rotation(_quat_of_axis_angle(axis, angle))


@_conversion
def matrix_to_axis_angle(matrix: Any) -> Any:
    """Unit axes (..., 3) and angles (...) in 0..pi [rad] of rotation matrices (..., 3, 3).

    Example:
        >>> axis, angle = rk.rotations.matrix_to_axis_angle([[0, -1, 0], [1, 0, 0], [0, 0, 1]])
        >>> axis.round(12), round(float(angle), 6)
        (array([0., 0., 1.]), 1.570796)
    """
    return _axis_angle_of_quat(quat_normalized(rotation_to_quat_wxyz(matrix)))


@_conversion
def quat_wxyz_to_rpy(quat_wxyz: Any) -> Any:
    """Roll, pitch, yaw (..., 3) [rad] of unit quaternions (..., 4).

    Example:
        >>> rk.rotations.quat_wxyz_to_rpy([0.6, 0.8, 0, 0]).round(6)
        array([1.85459, 0.     , 0.     ])
    """
    return _rpy_of_matrix(quat_wxyz_to_rotation(quat_normalized(quat_wxyz)).rows)


@_conversion
def rpy_to_quat_wxyz(rpy: Any) -> Any:
    """Unit quaternions (..., 4) with w >= 0 of roll, pitch, yaw (..., 3) [rad].

    Example:
        >>> rk.rotations.rpy_to_quat_wxyz([0, 0, np.pi / 2]).round(6)
        array([0.707107, 0.      , 0.      , 0.707107])
    """
    return quat_positive(_quat_of_rpy(rpy))


@_conversion
def quat_wxyz_to_rotation_vector(quat_wxyz: Any) -> Any:
    """Rotation vectors (..., 3) [rad] at most pi long of unit quaternions (..., 4).

    Example:
        >>> rk.rotations.quat_wxyz_to_rotation_vector([0.6, 0, 0.8, 0]).round(6)
        array([0.     , 1.85459, 0.     ])
    """
    return list(quat_log(quat_normalized(quat_wxyz)))


@_conversion
def rotation_vector_to_quat_wxyz(rotation_vector: Any) -> Any:
    """Unit quaternions (..., 4) with w >= 0 of rotation vectors (..., 3) [rad].

    Example:
        >>> rk.rotations.rotation_vector_to_quat_wxyz([0, 0, np.pi]).round(12)
        array([0., 0., 0., 1.])
    """
    return quat_positive(quat_exp(Vector3(*rotation_vector)))


@_conversion
def axis_angle_to_quat_wxyz(axis: Any, angle: Any) -> Any:
    """Unit quaternions (..., 4) with w >= 0 of axes (..., 3) of any length and angles (...) [rad].

    Example:
        >>> rk.rotations.axis_angle_to_quat_wxyz([0, 0, 2], np.pi / 2).round(6)
        array([0.707107, 0.      , 0.      , 0.707107])
    """
    return quat_positive(_quat_of_axis_angle(axis, angle))


@_conversion
def quat_wxyz_to_axis_angle(quat_wxyz: Any) -> Any:
    """Unit axes (..., 3) and angles (...) in 0..pi [rad] of unit quaternions (..., 4).

    Example:
        >>> axis, angle = rk.rotations.quat_wxyz_to_axis_angle([0.6, 0, 0, 0.8])
        >>> axis, round(float(angle), 6)
        (array([0., 0., 1.]), 1.85459)
    """
    return _axis_angle_of_quat(quat_normalized(quat_wxyz))


@_conversion
def quat_wxyz_to_xyzw(quat_wxyz: Any) -> Any:
    """The same quaternions (..., 4) with the scalar part last.

    Example:
        >>> rk.rotations.quat_wxyz_to_xyzw([0.6, 0, 0, 0.8])
        array([0. , 0. , 0.8, 0.6])
    """
    w, x, y, z = quat_wxyz
    return [x, y, z, w]


@_conversion
def quat_xyzw_to_wxyz(quat_xyzw: Any) -> Any:
    """The same quaternions (..., 4) with the scalar part first.

    Example:
        >>> rk.rotations.quat_xyzw_to_wxyz([0, 0, 1, 0])
        array([0., 0., 0., 1.])
    """
    x, y, z, w = quat_xyzw
    return [w, x, y, z]
