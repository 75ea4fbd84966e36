"""How far a point or a frame of a link is from where it should be, and how that follows the joints.

    position:  e = p - p_t                              e' = v                             in world axes
    pose:      e = [4 tan(theta/4) u; R_t^T (p - p_t)]  e' = [N R_t^T omega; R_t^T v]  in the target's axes

theta and u are angle and axis of the link's rotation as the target sees it, R_t^T R; omega and v are the
link's angular velocity and the velocity of the point. With r = tan(theta/4) u

    N = (1 - r.r) 1 - 2 r x + 2 r r^T,

which is exact: a Gauss-Newton step uses the true derivative. 4 tan(theta/4) is theta for small angles, needs
no angle, and still has a slope at half a turn, where a quaternion's vector or a trace has none.

Source: RBDA sections 2.3, 4.1 for v and omega (as in link_jacobian.py); 4.5 for Euler parameters; seeds 003,
kappa(i). The rates of r are those of the modified Rodrigues parameters.
Cost: O(d), d the depth of the link.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from robokit.model.tree import Tree
from robokit.spatial import Matrix3, Transform, Vector3
from robokit.spatial.scalars import Scalar, sqrt, where


class Frame(NamedTuple):
    """The point or frame of a link that is to reach a target."""

    body: int  # of the link
    X: Transform  # transform from the body's coordinates to the link's
    turned: bool  # whether the target has an orientation too


class Target(NamedTuple):
    """The position or pose that it is to reach."""

    at: Vector3  # the point in the link's frame [m]
    p: Vector3  # where that is wanted in the world [m]
    R: Matrix3 | None  # orientation that is wanted for the link, x_world = R x_link; None for a point


def pose_error(frame: Frame, target: Target, X0: Mapping[int, Transform]) -> list[Scalar]:
    """e, 6 or 3 numbers [angular; linear], for the transforms ^iX_0 of the bodies."""
    X = frame.X @ X0[frame.body]
    away = X.point(target.at) - target.p
    if target.R is None:
        return list(away)
    r = rodrigues((X.E @ target.R).T)
    return [*(r * 4.0), *target.R.transpose_apply(away)]


def pose_error_columns(
    tree: Tree, frame: Frame, target: Target, X0: Mapping[int, Transform]
) -> dict[int, list[Scalar]]:
    """Derivative of e along each degree of freedom that supports the link, by its number."""
    X = frame.X @ X0[frame.body]
    p = X.point(target.at)
    N = None
    if target.R is not None:
        N = _rate(rodrigues((X.E @ target.R).T)) @ target.R.T
    columns = {}
    for j in tree.support[frame.body]:
        first, arm = tree.v_slice[j].start, p - X0[j].r
        for k, s in enumerate(tree.joint[j].S.columns):
            omega = X0[j].E.transpose_apply(s.ang)
            v = X0[j].E.transpose_apply(s.lin) + omega.cross(arm)
            if N is None or target.R is None:
                columns[first + k] = list(v)
            else:
                columns[first + k] = [*(N @ omega), *target.R.transpose_apply(v)]
    return columns


def _rate(r: Vector3) -> Matrix3:
    """N: the rate of 4 r for an angular velocity in the axes outside."""
    outer = Matrix3([[a * b for b in r] for a in r])
    return Matrix3.identity() * (1.0 - r.dot(r)) - (Matrix3.skew(r) - outer) * 2.0


def rodrigues(R: Matrix3) -> Vector3:
    """tan(theta/4) u of a rotation by theta, 0 to pi, about the unit axis u.

    By the column of 4 quat quat^T with the largest diagonal entry, which is at least 1.
    """
    (a, b, c), (d, e, f), (g, h, i) = R.rows
    quat, size = [1.0 + a + e + i, h - f, c - g, d - b], 1.0 + a + e + i
    for k, column in enumerate(
        (
            [h - f, 1.0 + a - e - i, b + d, c + g],
            [c - g, b + d, 1.0 - a + e - i, f + h],
            [d - b, c + g, f + h, 1.0 - a - e + i],
        ),
        1,
    ):
        larger = column[k] > size
        quat = [where(larger, x, y) for x, y in zip(column, quat, strict=True)]
        size = where(larger, column[k], size)
    w, x, y, z = quat
    sign = where(w < 0.0, -1.0, 1.0)
    share = 1.0 / (2.0 * sqrt(size) + sign * w) * sign  # of a quaternion 2 sqrt(size) long
    return Vector3(x * share, y * share, z * share)
