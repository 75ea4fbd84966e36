"""Jacobian of a point fixed in a link's frame: the link's spatial velocity at that point is J qd.

    column of joint j: ^PX_j S_j for the joints j in kappa(i) that support the link, else 0

Source: RBDA sections 2.3 and 4.1; seeds 003, kappa(i).
Cost: O(d), d the depth of the link.
"""

from __future__ import annotations

from robokit.model.tree import Tree
from robokit.spatial import Matrix3, Motion, Transform, Vector3


def link_jacobian(tree: Tree, q, at: Vector3, frame: tuple[int, Transform], axes: str) -> list[list]:
    """J, 6 x nv, as a list of rows [angular; linear].

    ``at`` is the point in the link's frame, ``frame`` the link's body i and the transform to its frame.
    The axes are the link's own ("body") or the world's ("world").
    """
    i, X_link = frame
    X = Transform(Matrix3.identity(), at) @ X_link  # from body i to the link's axes at the point
    columns = [Motion.zero()] * tree.nv
    for j in reversed(tree.support[i]):
        columns[tree.v_slice[j]] = [X @ column for column in tree.joint[j].S.columns]
        X = X @ tree.X(j, q[j])
    if axes == "world":
        R = X.E.T
        columns = [Motion(R @ column.ang, R @ column.lin) for column in columns]
    return [list(row) for row in zip(*columns, strict=True)]
