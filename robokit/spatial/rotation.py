"""Rotations: about an axis, from quaternions wxyz, and the exponential and logarithm of SO(3), SE(3).

A quaternion (w, x, y, z) is unit and rotates body coordinates into the coordinates outside.
Small angles take a series through ``where``: the function never branches on a value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from robokit.spatial.scalars import Scalar, atan2, cos, sin, sqrt, where
from robokit.spatial.vectors import Matrix3, Vector3

# Below this squared angle the series' first omitted term is under 1e-17.
_SMALL = 1e-4


def coordinate_rotation(u: Vector3, c: Scalar, s: Scalar) -> Matrix3:
    """E = u u^T + c (1 - u u^T) - s u x: coordinates in a frame turned by an angle about the unit axis u.

    Written entry by entry so that the zeros and ones of an axis such as (0, 0, 1) stay zeros and ones.
    """
    ux, uy, uz = u

    def entry(a: float, b: float, delta: float, w: float) -> Scalar:
        return a * b + c * (delta - a * b) - s * w

    return Matrix3(
        (
            (entry(ux, ux, 1.0, 0.0), entry(ux, uy, 0.0, -uz), entry(ux, uz, 0.0, uy)),
            (entry(uy, ux, 0.0, uz), entry(uy, uy, 1.0, 0.0), entry(uy, uz, 0.0, -ux)),
            (entry(uz, ux, 0.0, -uy), entry(uz, uy, 0.0, ux), entry(uz, uz, 1.0, 0.0)),
        )
    )


def quat_wxyz_to_rotation(quat: Sequence[Scalar]) -> Matrix3:
    """R(quat): x_outside = R x_body. The quaternion must be unit."""
    w, x, y, z = quat
    x2, y2, z2 = x + x, y + y, z + z
    xx, yy, zz = x * x2, y * y2, z * z2
    xy, xz, yz = x * y2, x * z2, y * z2
    wx, wy, wz = w * x2, w * y2, w * z2
    return Matrix3(
        (
            (1.0 - (yy + zz), xy - wz, xz + wy),
            (xy + wz, 1.0 - (xx + zz), yz - wx),
            (xz - wy, yz + wx, 1.0 - (xx + yy)),
        )
    )


def quat_multiply(a: Sequence[Scalar], b: Sequence[Scalar]) -> tuple[Scalar, ...]:
    """Quaternion product a b (first b, then a), wxyz."""
    aw, ax, ay, az = a
    bw, bx, by, bz = b
    return (
        aw * bw - ax * bx - ay * by - az * bz,
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw,
    )


def quat_conjugate(a: Sequence[Scalar]) -> tuple[Scalar, ...]:
    """Inverse of a unit quaternion, wxyz."""
    w, x, y, z = a
    return (w, -x, -y, -z)


def quat_normalized(a: Sequence[Scalar]) -> tuple[Scalar, ...]:
    """The quaternion a / |a|, wxyz."""
    w, x, y, z = a
    k = 1.0 / sqrt(w * w + x * x + y * y + z * z)
    return (w * k, x * k, y * k, z * k)


def quat_positive(quat: Sequence[Scalar]) -> list[Scalar]:
    """The one of q and -q, which are the same rotation, with w >= 0."""
    sign = where(quat[0] < 0.0, -1.0, 1.0)
    return [sign * x for x in quat]


def rotation_to_quat_wxyz(R: Any) -> list[Scalar]:
    """Quaternion with w >= 0 of a rotation matrix, three rows of three scalars; of unit length to rounding.

    Source: S. W. Shepperd (1978): from the largest of w, x, y, z, so that nothing cancels.
    """
    (a, b, c), (d, e, f), (g, h, i) = R
    # 4 times the largest entry squared, and the quaternion times that entry.
    ways = [
        (1.0 + a + e + i, (None, h - f, c - g, d - b)),
        (1.0 + a - e - i, (h - f, None, b + d, c + g)),
        (1.0 - a + e - i, (c - g, b + d, None, f + h)),
        (1.0 - a - e + i, (d - b, c + g, f + h, None)),
    ]
    square, quat = ways[0][0], [ways[0][0], *ways[0][1][1:]]
    for size, parts in ways[1:]:
        larger = size > square
        square = where(larger, size, square)
        quat = [where(larger, size if x is None else x, old) for x, old in zip(parts, quat, strict=True)]
    k = 0.5 / sqrt(square)
    return quat_positive([x * k for x in quat])


def _safe(theta2: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    """(is small, squared angle or 1, angle or 1): what the closed forms may divide by."""
    small = theta2 < _SMALL
    safe2 = where(small, 1.0, theta2)
    return small, safe2, sqrt(safe2)


def quat_exp(phi: Vector3) -> tuple[Scalar, ...]:
    """Unit quaternion wxyz of the rotation vector phi [rad]."""
    t2 = phi.dot(phi)
    small, _, t = _safe(t2)
    half = 0.5 * t
    w = where(small, 1.0 - t2 / 8.0 * (1.0 - t2 / 48.0), cos(half))
    k = where(small, 0.5 - t2 / 48.0 * (1.0 - t2 / 80.0), sin(half) / t)
    return (w, phi.x * k, phi.y * k, phi.z * k)


def quat_log(a: Sequence[Scalar]) -> Vector3:
    """Rotation vector [rad] of a unit quaternion wxyz, of length at most pi."""
    sign = where(a[0] < 0.0, -1.0, 1.0)
    w, x, y, z = (sign * c for c in a)
    s2 = x * x + y * y + z * z
    small, _, s = _safe(s2)
    w_safe = where(small, w, 1.0)
    t = s2 / (w_safe * w_safe)
    series = 2.0 * (1.0 - t * (1.0 / 3.0 - t * (1.0 / 5.0 - t / 7.0))) / w_safe
    k = where(small, series, 2.0 * atan2(s, w) / s)
    return Vector3(x * k, y * k, z * k)


def exp_translation(phi: Vector3, u: Vector3) -> Vector3:
    """V(phi) u: how far the origin moves while the body turns by phi and its own-axes velocity is u."""
    t2 = phi.dot(phi)
    small, s2, t = _safe(t2)
    half = sin(0.5 * t)  # 1 - cos t = 2 sin^2(t/2) without cancellation
    b = where(small, 0.5 - t2 / 24.0 * (1.0 - t2 / 30.0), 2.0 * half * half / s2)
    c = where(small, 1.0 / 6.0 - t2 / 120.0 * (1.0 - t2 / 42.0), (t - sin(t)) / (s2 * t))
    pu = phi.cross(u)
    return u + pu * b + phi.cross(pu) * c


def log_translation(phi: Vector3, p: Vector3) -> Vector3:
    """V(phi)^-1 p, the inverse of :func:`exp_translation`."""
    t2 = phi.dot(phi)
    small, s2, t = _safe(t2)
    half = 0.5 * t
    closed = (1.0 - half * cos(half) / sin(half)) / s2
    d = where(small, 1.0 / 12.0 + t2 / 720.0 * (1.0 + t2 / 42.0), closed)
    pp = phi.cross(p)
    return p - pp * 0.5 + phi.cross(pp) * d
