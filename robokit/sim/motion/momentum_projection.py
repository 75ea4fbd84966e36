"""Momentum of a floating robot, kept to rounding.

Only gravity and the ground change the centroidal momentum of a floating robot. A time step misses that
momentum by its truncation error. The base's velocity is then corrected by the rigid motion of the whole robot
that adds what is missing:

    omega = I_G^-1 (k wanted - k)        v_G = (l wanted - l) / M

Source: centroidal momentum, dynamics notes eq. 20-22; projection methods, Hairer, Lubich and Wanner,
"Geometric numerical integration", section IV.4.
The ledger keeps the sum of what was missing (``corrected_...``), so that the correction is not hidden.
Cost: O(n), about a tenth of a step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from robokit.algorithms.centroidal import about
from robokit.algorithms.composites import composite_inertias
from robokit.model.tree import Tree
from robokit.sim.motion.implicit_sweep import body_velocities
from robokit.sim.motion.moving_axes import free_base
from robokit.spatial import Force, Motion, Transform, Vector3
from robokit.spatial.linear import ldl, ldl_solve
from robokit.spatial.scalars import Scalar


def floats(tree: Tree) -> bool:
    """Whether the robot hangs on nothing: one free joint carries it all, and no loop ties it to the world."""
    return len(tree.children[0]) == 1 and hangs_on_nothing(tree)


def hangs_on_nothing(tree: Tree) -> bool:
    """Whether free joints carry it all, one robot or several, and no loop ties any of them to the world."""
    return bases_are_free(tree) and not any(0 in ends for ends in tree.loops)


def may_keep_energy(tree: Tree) -> bool:
    """Whether the energy can be corrected: not that of several robots of which one floats.

    To scale the velocities of them all would change the momentum of those that nothing holds.
    """
    alone = len(tree.children[0]) == 1
    return alone or not any(free_base(tree, i) for i in tree.children[0])


def bases_are_free(tree: Tree) -> bool:
    """Whether free joints carry it all, whatever loops hold it besides."""
    return bool(tree.children[0]) and all(free_base(tree, i) for i in tree.children[0])


def at_base(tree: Tree, X: Sequence[Any]) -> list[Any]:
    """The transforms of a robot that floats, seen from world axes at its base.

    Momenta about the centre of mass do not depend on where the robot is, but sums about a far origin round
    as the square of its distance.
    """
    return [X[0], Transform(X[1].E, Vector3.zero()), *X[2:]]


def centroidal_state(tree: Tree, X: Sequence[Any], V: Sequence[Motion]) -> tuple[Force, Any, Vector3]:
    """(h_G in world axes, the robot as one rigid inertia at the origin of X, p_G from there)."""
    f = [Force.zero(), *(tree.I[i] @ V[i] for i in tree.outward())]
    whole: Any = None
    for i, Ic in composite_inertias(tree, X, tree.I):
        p = tree.parent[i]
        f[p] = f[p] + X[i].T @ f[i]
        if p == 0:
            moved = X[i].T @ Ic @ X[i]
            whole = moved if whole is None else whole + moved
    p_G = whole.h * (1.0 / whole.m)
    return about(f[0], p_G), whole, p_G


def about_center(I: Any, p: Vector3) -> list[list[Scalar]]:
    """Rotational inertia about the centre of mass p of a rigid inertia I given about the origin."""
    xx, yy, zz, xy, xz, yz = I.Ibar
    (x, y, z), (hx, hy, hz) = p, I.h
    return [
        [xx - (y * hy + z * hz), xy + x * hy, xz + x * hz],
        [xy + x * hy, yy - (x * hx + z * hz), yz + y * hz],
        [xz + x * hz, yz + y * hz, zz - (x * hx + y * hy)],
    ]


def momentum_at_base(tree: Tree, q: list[Any], v: list[Any]) -> Force:
    """h_G of a robot that floats, as :func:`keep_momentum` measures it: the same wherever the robot is."""
    X = tree.transforms(q)
    return centroidal_state(tree, at_base(tree, X), body_velocities(tree, X, v))[0]


def keep_momentum(
    tree: Tree,
    wanted: Force,
    v: list[list[Scalar]],
    X: Sequence[Any],
    V: Sequence[Motion],
) -> tuple[list[list[Scalar]], Force]:
    """v with the base's velocity corrected to the centroidal momentum wanted, and what was missing.

    Args:
        tree: the tree of a robot that floats.
        wanted: h_G [N m s; N s], world axes.
        v: velocities by joint.
        X, V: transforms and body velocities of that state.
    """
    h, I, p_G = centroidal_state(tree, at_base(tree, X), V)
    missing = wanted - h
    omega = Vector3(*ldl_solve(ldl(about_center(I, p_G)), list(missing.ang)))
    v_G = missing.lin * (1.0 / I.m)
    v_base = v_G - omega.cross(p_G)
    E = X[1].E
    base = [a + b for a, b in zip(v[1], [*(E @ omega), *(E @ v_base)], strict=True)]
    return [[], base, *v[2:]], missing
