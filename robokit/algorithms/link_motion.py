"""Velocity and acceleration of a point fixed in a link's frame: [omega; v] is J qd, [alpha; a] its rate.

    v_i = ^iX_p v_p + S_i qd_i        a_i = ^iX_p a_p + S_i qdd_i + v_i x S_i qd_i        p = lambda(i)
    classical: a + (0, omega x v), v and a at the point

The spatial acceleration is the rate of the spatial velocity at a place that stands still; the classical one
is that of the point itself: J qdd + Jd qd with world axes. Gravity does not enter: a_0 = 0.

Source: RBDA sections 2.11 (spatial and classical acceleration), 5.3 (eq. 5.7, 5.8); seeds 003, kappa(i).
Cost: O(d), d the depth of the link.
"""

from __future__ import annotations

from robokit.model.tree import Tree
from robokit.spatial import Matrix3, Motion, Transform, Vector3


def link_velocity(tree: Tree, q, qd, at: Vector3, frame: tuple[int, Transform], axes: str) -> Motion:
    """[omega; v] of the point ``at`` of the link's frame, [rad/s; m/s].

    ``frame`` is the link's body i and the transform to its frame. The axes are the link's own ("body") or
    the world's ("world").
    """
    i, X_link = frame
    v, E = Motion.zero(), Matrix3.identity()
    for j in tree.support[i]:
        X = tree.X(j, q[j])
        v, E = X @ v + tree.joint[j].S * qd[j], X.E @ E
    X = Transform(Matrix3.identity(), at) @ X_link
    return _in_axes(axes, X.E @ E, X @ v)


def link_acceleration(
    tree: Tree, q, qd, qdd, at: Vector3, frame: tuple[int, Transform], axes: str, classical: bool
) -> Motion:
    """[alpha; a] of the point ``at`` of the link's frame, in the axes asked for, [rad/s^2; m/s^2]."""
    i, X_link = frame
    v, a, E = Motion.zero(), Motion.zero(), Matrix3.identity()
    for j in tree.support[i]:
        X, S = tree.X(j, q[j]), tree.joint[j].S
        vJ = S * qd[j]
        v, E = X @ v + vJ, X.E @ E
        a = X @ a + S * qdd[j] + v.cross(vJ)
    X = Transform(Matrix3.identity(), at) @ X_link
    v, a = X @ v, X @ a
    if classical:
        a = Motion(a.ang, a.lin + v.ang.cross(v.lin))
    return _in_axes(axes, X.E @ E, a)


def _in_axes(axes: str, E: Matrix3, m: Motion) -> Motion:
    """The motion m, given in axes that E turns the world's into."""
    return Motion(E.transpose_apply(m.ang), E.transpose_apply(m.lin)) if axes == "world" else m
