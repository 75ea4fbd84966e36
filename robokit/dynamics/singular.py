"""Which joint makes H singular: the pivots of the articulated-body algorithm, looked at in plain numbers.

A joint whose pivot D = S^T I^A S is nothing beside its own H_ii = S^T I^c S moves no inertia that the
joints behind it could not move without it. Links without mass are the usual cause. In exact arithmetic
D would be 0; in floating point it is rounding noise, and accelerations computed with it are as well.

Source: RBDA table 7.1 (D), section 6.2 (H_ii).  Cost: O(n).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import numpy as np

from robokit.algorithms.aba import without_joint
from robokit.algorithms.coupling import reduced_matrix
from robokit.algorithms.crba import crba
from robokit.algorithms.ltdl import ltdl
from robokit.conventions import FLOATING_BASE
from robokit.errors import SingularInertia
from robokit.model.parts import Joint
from robokit.model.robot import Robot
from robokit.spatial.linear import ldl

RELATIVE = 1e-13
"""Pivots below this share of H_ii are rounding noise."""


def singular_joint(robot: Robot, q: np.ndarray | None = None) -> Joint | None:
    """The outermost joint without a pivot, or None.

    Args:
        robot: the robot.
        q: configuration to look at, (nq,); a random one by default, which finds what is singular always.
    """
    tree = robot.tree
    if q is None:
        q = robot.random_configuration(0)
    if robot.coupling is not None:
        return _singular_coupled(robot, q)
    X = tree.transforms(tree.split_q(q.tolist()))
    Ic, IA = list(tree.I), [I.articulated() for I in tree.I]
    for i in tree.inward():
        p, S = tree.parent[i], tree.joint[i].S
        U = S.of(IA[i])
        D = [S.T @ column for column in U]
        H = [S.T @ column for column in S.of(Ic[i])]
        if not _is_pivot(D, [row[k] for k, row in enumerate(H)]):
            return robot.joints[i - 1]
        if p != 0:
            Ic[p] = Ic[p] + X[i].T @ Ic[i] @ X[i]
            IA[p] = IA[p] + X[i].T @ without_joint(IA[i], U, ldl(D)).without(S.axes) @ X[i]
    return None


def _singular_coupled(robot: Robot, q: np.ndarray) -> Joint | None:
    """The same from the pivots of H_r = L^T D L."""
    H = reduced_matrix(robot.tree, crba(robot.tree, robot.split_q(q.tolist())))
    for joint in reversed(robot.joints):
        for k in reversed(range(robot.nv)[joint.v_slice]):
            # Factorised from the outermost dof: what comes after the first pivot without value is noise.
            if not H[k][k] > 0.0:
                return joint
    with np.errstate(all="ignore"):
        _, D = ltdl(robot.dof_parent, np.array(H))
    for joint in reversed(robot.joints):
        if not all(D[k] > RELATIVE * H[k][k] for k in range(robot.nv)[joint.v_slice]):
            return joint
    return None


def _is_pivot(D: Sequence[Sequence[float]], H: Sequence[float]) -> bool:
    """Whether D is positive beside the diagonal of H."""
    if min(H) <= 0.0:
        return False
    if len(H) == 1:
        return D[0][0] > RELATIVE * H[0]
    scale = 1.0 / np.sqrt(np.array(H))
    return bool(np.linalg.eigvalsh(scale[:, None] * np.array(D) * scale).min() > RELATIVE)


def check_mass(robot: Robot) -> None:
    """Raise SingularInertia where nothing that moves has mass: there is no centre of mass."""
    mass = robot.total_mass if robot.parameters is None else np.min(robot.total_mass, initial=np.inf)
    if mass > 0.0:
        return
    raise SingularInertia(
        f"robot {robot.name!r} has no moving mass, so no centre of mass; give its links an <inertial>",
        robot.joint_names[0] if robot.joints else "",
    )


def check_inertia(robot: Robot) -> None:
    """Raise SingularInertia where some joint moves no inertia, whatever the configuration."""
    joint = robot.derived.get("singular joint", lambda: _always_singular(robot))
    if joint is not None:
        refuse(robot, joint, "it moves no inertia of its own")


def _always_singular(robot: Robot) -> Joint | None:
    """The outermost joint that moves no inertia in some sample, whatever the configuration."""
    return next(filter(None, map(singular_joint, _patterns(robot))), None)


def _patterns(robot: Robot) -> list[Robot]:
    """The robots to look at: of one with samples, one for each pattern of parameters that are zero.

    A joint that is singular whatever q is lacks some mass or inertia altogether.
    """
    if robot.samples is None:
        return [robot]
    zero = np.packbits(robot.inertial_parameters.reshape(robot.samples, -1) == 0.0, axis=1)
    _, first = np.unique(zero, axis=0, return_index=True)
    return [robot.sample(int(k)) for k in first]


def refuse(robot: Robot, joint: Joint, why: str) -> NoReturn:
    """Raise SingularInertia for a joint."""
    otherwise = "load it with base='fixed'" if joint.name == FLOATING_BASE else "make the joint fixed"
    raise SingularInertia(
        f"H of robot {robot.name!r} is singular at joint {joint.name!r}: {why}; give link "
        f"{joint.child_link!r} or those behind it mass and rotational inertia, or {otherwise}",
        joint.name,
    )
