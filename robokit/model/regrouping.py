"""Robots of the same motion with fewer numbers: inertias regrouped, body frames slid along joint axes.

What of a body's inertia acts only through its parent is given to the parent.

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
from dataclasses import replace
from typing import Any

from robokit.model.inertial_parameters import rigid_inertia, row
from robokit.model.joints import MotionSubspace
from robokit.model.robot import Robot
from robokit.model.tree import Tree
from robokit.spatial import Matrix3, RigidInertia, Symmetric3, Transform, Vector3
from robokit.spatial.scalars import added

SECOND_MOMENTS = (4, 6, 9)  # places of I_xx, I_yy and I_zz in the ten parameters of a body


def regrouped(tree: Tree, to_ground: bool) -> tuple[RigidInertia, ...]:
    """Inertias of bodies 0..N that give the same motion of the whole with fewer numbers.

    ``tree``: the tree; with the inertias of samples, arrays (B,), the results are arrays too; ``to_ground``:
    whether what acts only through body 0 is left out: joint forces, H and accelerations stay, but the total
    mass, the momentum of the whole and the potential energy need it.
    """
    found = list(tree.I)
    for i in tree.inward():
        p, S = tree.parent[i], tree.joint[i].S
        if p != 0 or to_ground:
            moved = _through_parent(found[i], S)
            if p != 0:
                found[p] = found[p] + tree.XT[i].T @ moved @ tree.XT[i]
            rest = found[i] + rigid_inertia([x * -1.0 for x in row(moved)])
            found[i] = without_places(rest, places_left_empty(S))
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
    turns, slides = _joint_motion(S)
    if not turns:
        return (4, 5, 6, 7, 8, 9)
    empty = [] if slides else [0]
    if len(turns) == 1:
        u = tuple(turns[0])
        empty.append(SECOND_MOMENTS[_across(turns[0])])
        if not slides:
            empty += [1 + k for k in range(3) if abs(u[k]) == 1.0]
    return tuple(sorted(empty))


def without_places(I: RigidInertia, places: Sequence[int]) -> RigidInertia:
    """The inertia with these of its ten parameters exactly 0."""
    return rigid_inertia([0.0 if k in places else x for k, x in enumerate(row(I))])


def _through_parent(I: RigidInertia, S: MotionSubspace) -> RigidInertia:
    """The part dI of I with dI S = 0 that the parent may have."""
    turns, slides = _joint_motion(S)
    if not turns:
        return RigidInertia(0.0, Vector3.zero(), I.Ibar)
    m, h, Ibar = (
        (0.0, Vector3.zero(), Symmetric3.zero()) if slides else (I.m, Vector3.zero(), Symmetric3.zero())
    )
    if len(turns) == 1:
        (u,) = turns
        k = _across(u)
        a = row(I)[SECOND_MOMENTS[k]] * (1.0 / (1.0 - tuple(u)[k] ** 2))
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


def _joint_motion(S: MotionSubspace) -> tuple[list[Vector3], bool]:
    """The directions that a joint turns about, and whether it slides along any."""
    turns = [c.ang for c in S.columns if any(c.ang)]
    return turns, any(any(c.lin) for c in S.columns)


def _across(u: Vector3) -> int:
    """The coordinate axis whose second moment goes: the one farthest from the joint's axis."""
    return max(range(3), key=lambda k: (-abs(tuple(u)[k]), k))


# ---- body frames slid along their joints' axes ---------------------------------------------------
# Where that leaves fewer numbers in the transforms. Joint i does not care where on its axis the origin of
# body i lies: X_J(q) commutes with a shift w along the axis, and S stays. So do the results that do not
# depend on where the bodies' origins are: joint forces, H, accelerations, and what is given in world axes
# about the world's origin or the centre of mass. The coordinates q stay as they are.
#
#     X_T(i) -> xlt(w_i) X_T(i) xlt(-w_lambda(i))      I_i about the new origin
#
# This is the freedom that Denavit and Hartenberg used up.  Cost: O(n), a few sweeps over the tree.
#
# Source: Khalil, Dombre, Modeling, Identification and Control of Robots, 3.2 and 9.4 (fewer operations by the
# choice of frames); RBDA 4.2.  Differs: frames are only slid, so that the axes stay those of the description.

ROUNDING_SHARE = 1e-15  # share of the terms of a sum that is rounding of what should be 0
SWEEPS = 3  # so often every frame is looked at; the second time changes little

OFFSET, MOMENT, PRODUCT = 3.0, 3.0, 2.0
"""Operations saved by a zero in an offset, a first moment, a product of inertia: roughly, in proportion."""

AXES = (Vector3(1.0, 0.0, 0.0), Vector3(0.0, 1.0, 0.0), Vector3(0.0, 0.0, 1.0))


def shifts(tree: Tree, to_ground: bool, I: Sequence[RigidInertia] = ()) -> list[Vector3]:
    """The shift w_i of the origin of body i, in body-i coordinates, for bodies 0..N [m].

    ``to_ground``: whether where the bodies stand on body 0 does not matter. Zeros of the inertias ``I`` are
    looked at, if they are known.
    """
    w = [Vector3.zero() for _ in tree.parent]

    def offset(i: int) -> Vector3:
        return _offset(tree, w, i)

    def work(i: int) -> float:
        """Number of operations that the frame of body i causes, there and at its children."""
        total = added(_entries(offset(c)) for c in tree.children[i]) * OFFSET
        if not (to_ground and tree.parent[i] == 0):
            total += _entries(offset(i)) * OFFSET
        if I and not tree.children[i]:  # of others the children's inertias fill the places
            total += _of_inertia(_about(I[i], w[i]), tree.joint[i].S)
        return total

    for _ in range(SWEEPS):
        before = list(w)
        for i in tree.inward():
            for u in free_directions(tree.joint[i].S):
                tried = [-tree.XT[i].E.transpose_apply(u).dot(offset(i))]
                tried += [u.dot(offset(c)) for c in tree.children[i]]
                if I and not tree.children[i] and I[i].m:
                    tried.append(u.dot(_about(I[i], w[i]).h) * (1.0 / I[i].m))
                start, best, least = w[i], w[i], work(i)
                for step in tried:
                    w[i] = start + u * step
                    now = work(i)
                    if now < least:
                        best, least = w[i], now
                w[i] = best
        if all(a is b for a, b in zip(before, w, strict=True)):
            break
    return w


def placements(tree: Tree, w: Sequence[Vector3]) -> tuple[Transform, ...]:
    """X_T between the frames that are shifted by w."""
    found = [tree.XT[0]]
    for i in tree.outward():
        found.append(Transform(tree.XT[i].E, _offset(tree, w, i)))
    return tuple(found)


def _offset(tree: Tree, w: Sequence[Vector3], i: int) -> Vector3:
    terms = tree.XT[i].r, w[tree.parent[i]] * -1.0, tree.XT[i].E.transpose_apply(w[i])
    nothing = ROUNDING_SHARE * max(abs(x) for term in terms for x in term)
    return _clean(terms[0] + terms[1] + terms[2], nothing)


def slid(tree: Tree, w: Sequence[Vector3]) -> Tree:
    """The tree with its bodies' frames shifted by w; samples of inertias too."""
    I = tuple(_about(one, shift) for one, shift in zip(tree.I, w, strict=False))
    return replace(tree, XT=placements(tree, w), I=I)


def free_directions(S: MotionSubspace) -> tuple[Vector3, ...]:
    """Directions along which a joint does not care for the origin of its body."""
    turns = [c.ang for c in S.columns if any(c.ang)]
    return AXES if not turns else tuple(turns) if len(turns) == 1 else ()


def _about(I: RigidInertia, w: Vector3) -> RigidInertia:
    """The inertia about the point w instead of the origin."""
    return I.congruence(Transform(Matrix3.identity(), w * -1.0)) if any(w) else I


def _entries(v: Vector3) -> int:
    return sum(x != 0.0 for x in v)


def _of_inertia(I: RigidInertia, S: MotionSubspace) -> float:
    """What a body without children costs by the places of its inertia that are not empty once regrouped."""
    turns = [c.ang for c in S.columns if any(c.ang)]
    h = I.h if len(turns) != 1 else I.h - turns[0] * turns[0].dot(I.h)
    products = (I.Ibar.xy, I.Ibar.xz, I.Ibar.yz) if turns else ()
    largest = max(abs(x) for x in I.Ibar)
    moments = _entries(_clean(h, 4.0 * ROUNDING_SHARE * max(abs(x) for x in I.h)))
    return MOMENT * moments + PRODUCT * sum(abs(x) > 4.0 * ROUNDING_SHARE * largest for x in products)


def _clean(v: Vector3, nothing: float) -> Vector3:
    return Vector3(*(0.0 if abs(x) <= nothing else x for x in v))


# -- Limbs that are alike: the left and the right leg of a robot, two fingers of a hand -------------------
#
# Two subtrees are alike if their joints are of the same kinds, in the same arrangement. Lengths, inertias and
# the senses of axes may differ.


def similar_joints(tree: Tree) -> list[tuple[int, int]]:
    """Joints of limbs that hang on one body and are alike: (joint, that in its place in the other limb)."""
    names: dict[Any, int] = {}
    shape = [0] * (tree.n + 1)
    for i in range(tree.n, 0, -1):
        below = tuple(sorted(shape[k] for k in tree.children[i]))
        shape[i] = names.setdefault((tree.joint[i].kind.name, tree.joint[i].S.axes, below), len(names))

    def by_shape(body: int) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for k in tree.children[body]:
            found.setdefault(shape[k], []).append(k)
        return found

    found, bodies = [], [(0, 0)]  # a stack of its own: a limb may have more joints than Python's has room for
    while bodies:
        i, k = bodies.pop()
        others = by_shape(k)
        for name, joints in by_shape(i).items():
            if i == k:  # limbs of one body: two and two, and the last one may be left over
                pairs = zip(joints[::2], [*joints[1::2], joints[-1]], strict=False)
            else:
                pairs = zip(joints, others[name], strict=True)
            for pair in pairs:
                bodies.append(pair)
                if pair[0] != pair[1]:
                    found.append(pair)
    return found


def similar_inputs(robot: Robot, kinds: Sequence[bool | None]) -> list[tuple[int, int, int]]:
    """Places of the coordinates and velocities of joints that are alike: (input, offset, other offset).

    None where joints are coupled. ``kinds``: for each input of a kernel True for a configuration (nq,), False
    for a velocity or joint forces (nv,), else None.
    """
    if robot.coupling is not None:
        return []
    pairs, found = similar_joints(robot.tree), []
    for k, kind in enumerate(kinds):
        slices = robot.tree.q_slice if kind else robot.tree.v_slice
        for i, j in pairs if kind is not None else ():
            offset = slices[j].start - slices[i].start
            found += [(k, n, n + offset) for n in range(slices[i].start, slices[i].stop)]
    return found
