"""Which joint makes H singular: the pivots of the articulated-body algorithm, on plain numbers.

A joint whose pivot D = S^T I^A S is nothing beside its own H_ii = S^T I^c S moves no inertia that the
joints behind it could not move without it. Links without mass are the usual cause. In exact arithmetic
D would be 0; in floating point it is rounding noise, and accelerations computed with it are as well.

Source: RBDA table 7.1 (D), section 6.2 (H_ii).  Cost: O(n).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np

from robokit.algorithms.aba import add_rotors, without_joint
from robokit.algorithms.composites import composite_inertias
from robokit.algorithms.coupling import reduced_matrix
from robokit.algorithms.crba import crba
from robokit.algorithms.ltdl import ltdl
from robokit.conventions import FLOATING_BASE
from robokit.errors import SingularInertia
from robokit.model.inertial_parameters import about_coms, columns, inertias, row
from robokit.model.parts import Joint
from robokit.model.robot import Robot
from robokit.model.tree import Tree
from robokit.spatial import Transform, Vector3
from robokit.spatial.linear import ldl

RELATIVE = 1e-13  # pivots below this share of H_ii are rounding noise


BLOCK = 2048  # samples that are looked at together, as arrays


def singular_joint(robot: Robot, q: np.ndarray | None = None) -> Joint | None:
    """The outermost joint without a pivot at q (nq,), or None; of a robot with samples, in any of them.

    At a random configuration, the default, it finds what is singular always.
    """
    if q is None:
        q = robot.random_configuration(0)
    search = _without_pivot if robot.coupling is None else _without_coupled_pivot
    if robot.samples is None:
        return search(robot, robot.tree, q)
    for first in range(0, robot.samples, BLOCK):
        block = inertias(columns(robot.inertial_parameters[first : first + BLOCK]))
        joint = search(robot, replace(robot.tree, I=block), q)
        if joint is not None:
            return joint
    return None


def _without_pivot(robot: Robot, tree: Tree, q: np.ndarray) -> Joint | None:
    """From the pivots D of the articulated-body algorithm; the inertias are floats or arrays (B,)."""
    X = tree.transforms(tree.split_q(q.tolist()))
    if _move_their_own(tree, X):
        return None
    IA = [I.articulated() for I in tree.I]
    for i, Ic in composite_inertias(tree, X, tree.I):
        p, S = tree.parent[i], tree.joint[i].S
        U = S.of(IA[i])
        D = [S.T @ column for column in U]
        H = [S.T @ column for column in S.of(Ic)]
        rotors = add_rotors(tree, i, D)
        add_rotors(tree, i, H)
        if not _are_pivots(D, [row[k] for k, row in enumerate(H)]):
            return robot.joints[i - 1]
        if p != 0:
            Ia = without_joint(IA[i], U, ldl(D), () if rotors else S.axes)
            IA[p] = IA[p] + X[i].T @ Ia @ X[i]
    return None


def _move_their_own(tree: Tree, X: Sequence[Transform]) -> bool:
    """Whether the links' own inertias alone are pivots, which spares the recursion, 130 us a joint.

    Where no inertia is below zero, I^A_i - I_i is not, so D_i >= S^T I_i S. H_ii is at most a bound: the root
    of V^T I V is a seminorm of twists V = (w, v), so of a subtree with mass M_i, and with no moment of
    inertia above P_i about the joint's origin, it is |w| sqrt(P_i) + |v| sqrt(M_i) at most. By this, too,
    none about the parent's origin, r away, is above (sqrt(P_i) + |r| sqrt(M_i))^2. Rotors add as much to
    both sides.
    """
    m, _, about_com = about_coms([np.array(x, float) for x in zip(*map(row, tree.I), strict=True)])
    if min((r for rotors in tree.armature for r in rotors), default=0.0) < 0.0 or m.min() < 0.0:
        return False
    if np.linalg.eigvalsh(about_com).min() < 0.0:
        return False
    M, P = [I.m for I in tree.I], [I.Ibar.xx + I.Ibar.yy + I.Ibar.zz for I in tree.I]
    for i in tree.inward():
        p, S = tree.parent[i], tree.joint[i].S
        D = [S.T @ column for column in S.of(tree.I[i])]
        far = P[i] ** 0.5 + _size(X[i].r) * M[i] ** 0.5
        root_H = (_size(c.ang) * P[i] ** 0.5 + _size(c.lin) * M[i] ** 0.5 for c in S.columns)
        if not _are_pivots(D, [h * h for h in root_H]):  # h**2 raises an error where h * h is infinite
            return False
        M[p], P[p] = M[p] + M[i], P[p] + far * far
    return True


def _size(v: Vector3) -> Any:
    """Length of a vector."""
    return v.dot(v) ** 0.5


def _without_coupled_pivot(robot: Robot, tree: Tree, q: np.ndarray) -> Joint | None:
    """As :func:`_without_pivot`, from the pivots of H_r = L^T D L of coupled joints."""
    H = reduced_matrix(tree, crba(tree, robot.split_q(q.tolist())))
    for joint in reversed(robot.joints):
        for k in reversed(range(robot.nv)[joint.v_slice]):
            # Factorised from the outermost dof: what comes after the first pivot without value is noise.
            if not np.all(H[k][k] > 0.0):
                return joint
    with np.errstate(all="ignore"):
        _, D = ltdl(robot.dof_parent, [[np.asarray(x, dtype=float) for x in row] for row in H])
    for joint in reversed(robot.joints):
        if not all(np.all(D[k] > RELATIVE * H[k][k]) for k in range(robot.nv)[joint.v_slice]):
            return joint
    return None


def _are_pivots(D: Sequence[Sequence[Any]], H: Sequence[Any]) -> bool:
    """Whether D is positive, relative to the diagonal of H, for all samples."""
    if not all(np.all(h > 0.0) for h in H):
        return False
    if len(H) == 1:
        return bool(np.all(D[0][0] > RELATIVE * H[0]))
    scale = 1.0 / np.sqrt(np.stack(np.broadcast_arrays(*H), axis=-1))
    rows = np.stack(np.broadcast_arrays(*(x for row in D for x in row)), axis=-1)
    scaled = scale[..., :, None] * rows.reshape(*rows.shape[:-1], len(H), len(H)) * scale[..., None, :]
    return bool(np.linalg.eigvalsh(scaled).min() > RELATIVE)


def check_mass(robot: Robot) -> None:
    """Raise SingularInertia where nothing that moves has mass: there is no centre of mass."""
    mass = robot.total_mass if robot.parameters is None else np.min(robot.total_mass, initial=np.inf)
    if mass > 0.0:
        return
    cure = "give its links an <inertial>" if robot.joints else "nothing moves: load it with base='floating'"
    raise SingularInertia(
        f"robot {robot.name!r} has no moving mass, so no centre of mass; {cure}",
        robot.joint_names[0] if robot.joints else "",
    )


def singular(robot: Robot) -> Joint | None:
    """:func:`singular_joint` whatever the configuration, looked for once."""
    found: Joint | None = robot.derived.get("singular joint", lambda: singular_joint(robot))
    return found


def check_inertia(robot: Robot) -> None:
    """Raise SingularInertia where some joint moves no inertia, whatever the configuration."""
    joint = singular(robot)
    if joint is not None:
        refuse(robot, joint, "it moves no inertia of its own")


def refuse(robot: Robot, joint: Joint, why: str) -> NoReturn:
    """Raise SingularInertia for a joint."""
    # A file may say so, with a warning.
    below = next((j for j in robot.body_joints if j.armature < 0.0), None)
    if below is not None:
        raise SingularInertia(
            f"H of robot {robot.name!r} is not positive definite at joint {joint.name!r}: the armature of "
            f"joint {below.name!r} is {below.armature:g}, and no rotor has an inertia below zero; correct it "
            "in the file or by robokit.model.replace_armature",
            joint.name,
        )
    otherwise = "load it with base='fixed'" if joint.name == FLOATING_BASE else "make the joint fixed"
    raise SingularInertia(
        f"H of robot {robot.name!r} is singular at joint {joint.name!r}: {why}; give link "
        f"{joint.child_link!r} or those behind it mass and rotational inertia, or {otherwise}",
        joint.name,
    )
