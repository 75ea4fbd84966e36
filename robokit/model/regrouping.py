"""Inertias as the joints feel them: what of a body acts only through its parent is given to the parent.

An inertia dI of body i acts only through the parent where the joint's own motion moves none of it, dI S = 0,
and where the parent carries it alike in every configuration, X^T dI X constant. Then T, V, momentum and
with them H, C, the accelerations and A_G are those of X^T dI X on the parent. Of a joint that turns about u:

    the mass, the first moment along u, and a (1 - u u^T)      revolute, continuous
    the mass                                                   spherical
    a (1 - u u^T)                                              helical, cylindrical, planar (u its normal)
    all second moments                                         prismatic
    nothing                                                    floating

The bodies that result need not exist: masses are 0, moments may be negative. Sums over all bodies are as they
were; what is asked of a single body (its energy, its momentum) is not.

Source: Gautier, Khalil, Direct calculation of minimum set of inertial parameters of serial robots, 1990;
Khalil, Dombre, Modeling, Identification and Control of Robots, 9.4.  Differs: for every kind of joint, in the
terms of its S.  Cost: O(n).
"""

from __future__ import annotations

from collections.abc import Sequence

from robokit.model.inertial_parameters import rigid_inertia, row
from robokit.model.joints import MotionSubspace
from robokit.model.tree import Tree
from robokit.spatial import RigidInertia, Symmetric3, Vector3
from robokit.spatial.scalars import Scalar

SECOND = (4, 6, 9)
"""Places of I_xx, I_yy and I_zz in the ten parameters of a body."""


def regrouped(
    tree: Tree, to_ground: bool, I: Sequence[RigidInertia] | None = None
) -> tuple[RigidInertia, ...]:
    """Inertias of bodies 0..N that give the same motion of the whole with fewer numbers.

    Args:
        tree: the tree; with the inertias of samples, arrays (B,), the results are arrays too.
        to_ground: whether what acts only through body 0 is left out: joint forces, H and accelerations stay,
            but the total mass, the momentum of the whole and the potential energy need it.
        I: inertias in place of the tree's.
    """
    found = list(tree.I if I is None else I)
    for i in tree.inward():
        p, S = tree.parent[i], tree.joint[i].S
        if p != 0 or to_ground:
            moved = _through_parent(found[i], S)
            if p != 0:
                found[p] = found[p] + tree.XT[i].T @ moved @ tree.XT[i]
            found[i] = without_places(found[i] + _scaled(moved, -1.0), places_left_empty(S))
    return tuple(found)


def sparse(tree: Tree, to_ground: bool, I: Sequence[RigidInertia]) -> tuple[RigidInertia, ...]:
    """Inertias that :func:`regrouped` returned, of scalars that are not numbers: what is 0 of each is 0.0."""
    return (
        I[0],
        *(
            I[i]
            if tree.parent[i] == 0 and not to_ground
            else without_places(I[i], places_left_empty(tree.joint[i].S))
            for i in tree.outward()
        ),
    )


def places_left_empty(S: MotionSubspace) -> tuple[int, ...]:
    """Which of a body's ten parameters are 0 once its parent has what acts only through it."""
    turns, slides = _spanned(S)
    if not turns:
        return (4, 5, 6, 7, 8, 9)
    empty = [] if slides else [0]
    if len(turns) == 1:
        u = tuple(turns[0])
        empty.append(SECOND[_across(turns[0])])
        if not slides:
            empty += [1 + k for k in range(3) if abs(u[k]) == 1.0]
    return tuple(sorted(empty))


def without_places(I: RigidInertia, places: Sequence[int]) -> RigidInertia:
    """The same with these of its ten parameters exactly 0."""
    return rigid_inertia([0.0 if k in places else x for k, x in enumerate(row(I))])


def _through_parent(I: RigidInertia, S: MotionSubspace) -> RigidInertia:
    """The part dI of I with dI S = 0 that the parent may have."""
    turns, slides = _spanned(S)
    if not turns:
        return RigidInertia(0.0, Vector3.zero(), I.Ibar)
    m, h, Ibar = (
        (0.0, Vector3.zero(), Symmetric3.zero()) if slides else (I.m, Vector3.zero(), Symmetric3.zero())
    )
    if len(turns) == 1:
        (u,) = turns
        k = _across(u)
        a = row(I)[SECOND[k]] * (1.0 / (1.0 - tuple(u)[k] ** 2))
        Ibar = Symmetric3(
            a * (1.0 - u.x * u.x),
            a * (1.0 - u.y * u.y),
            a * (1.0 - u.z * u.z),
            -a * (u.x * u.y),
            -a * (u.x * u.z),
            -a * (u.y * u.z),
        )
        if not slides:
            h = u * u.dot(I.h)
    return RigidInertia(m, h, Ibar)


def _spanned(S: MotionSubspace) -> tuple[list[Vector3], bool]:
    """The directions that a joint turns about, and whether it slides along any."""
    turns = [c.ang for c in S.columns if any(c.ang)]
    return turns, any(any(c.lin) for c in S.columns)


def _across(u: Vector3) -> int:
    """The coordinate axis whose second moment goes: the one farthest from the joint's axis."""
    return max(range(3), key=lambda k: (-abs(tuple(u)[k]), k))


def _scaled(I: RigidInertia, s: Scalar) -> RigidInertia:
    return rigid_inertia([x * s for x in row(I)])
