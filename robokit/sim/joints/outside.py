"""Forces from outside on bodies: pushes, and what a controller gives to the six entries of a floating base.

They change the momentum of a floating robot, which joint forces do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from robokit.algorithms.center_of_mass import composite_moment
from robokit.algorithms.centroidal import about
from robokit.model.tree import Tree
from robokit.spatial import Force, Motion, Transform, Vector3
from robokit.spatial.scalars import Scalar

Place = tuple[int, tuple[Scalar, Scalar, Scalar] | None]
"""Body and point in its coordinates [m]; None where the wrench is about the world's origin."""

BodyForces = list[Force | None]
"""Force on each body 0..N in its coordinates, None where there is none."""


def body_forces(
    tree: Tree, X: Sequence[Any], places: Sequence[Place], wrenches: Sequence[Scalar], base: Sequence[Scalar]
) -> BodyForces:
    """The forces from outside in one configuration.

    Args:
        tree: the tree.
        X: ^iX_lambda(i).
        places: where the wrenches act.
        wrenches: moment and force of each in world axes, 6 a place [N m; N].
        base: (6,) wrench on body 1 in its coordinates [N m; N]; empty where there is none.
    """
    forces: BodyForces = [None] * (tree.n + 1)
    if base:
        forces[1] = Force(Vector3(*base[:3]), Vector3(*base[3:]))
    turned: dict[int, Transform] = {0: Transform.identity()}
    for k, (i, point) in enumerate(places):
        moment, push = Vector3(*wrenches[6 * k : 6 * k + 3]), Vector3(*wrenches[6 * k + 3 : 6 * k + 6])
        pose = _pose(tree, X, i, turned)
        if point is None:
            f = pose.star(Force(moment, push))
        else:
            turned_push = pose.E @ push
            f = Force(pose.E @ moment + Vector3(*point).cross(turned_push), turned_push)
        own = forces[i]
        forces[i] = f if own is None else own + f
    return forces


def _pose(tree: Tree, X: Sequence[Any], i: int, known: dict[int, Transform]) -> Transform:
    """^iX_0, and those of the bodies on the way."""
    path = []
    while i not in known:
        path.append(i)
        i = tree.parent[i]
    for j in reversed(path):
        known[j] = X[j] @ known[i]
        i = j
    return known[i]


def power(forces: BodyForces, V: Sequence[Motion]) -> Scalar:
    """Of the forces on bodies that move at V [W]."""
    total: Scalar = 0.0
    for f, v in zip(forces, V, strict=True):
        if f is not None:
            total = total + v.dot(f)
    return total


def about_center(tree: Tree, X: Sequence[Any], forces: BodyForces) -> Force:
    """Their sum about the centre of mass, world axes [N m; N]."""
    total = [Force.zero() if f is None else f for f in forces]
    for i in tree.inward():
        p = tree.parent[i]
        total[p] = total[p] + X[i].T @ total[i]
    m, h = composite_moment(tree, X)
    return about(total[0], h * (1.0 / m))


def as_list(forces: BodyForces) -> list[Force]:
    """As algorithms take f_ext: a force for each body."""
    return [Force.zero() if f is None else f for f in forces]
