"""Robots too long for a straight line: H by columns, factors through LAPACK.

H of a chain of a thousand joints has half a million entries, and its factorisation 1e8 operations: neither
can be written out as straight-line code. Above :data:`MOST` operations

- H comes from one batch of inverse dynamics, H e_k = ID(q, 0, e_k) without gravity (dynamics notes eq. 15);
- L and D come from LAPACK. With P the permutation that reverses the order, P H P = (P L^T P) (P D P) (P L P)
  and P L^T P is a lower triangle: the factors of H = L^T D L are the reversed LDL^T ones of P H P. No entry
  outside the tree's pattern fills in, because RBDA 6.5 eliminates in that very order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from robokit.kernels import kernel
from robokit.model.robot import Robot
from robokit.model.sparsity import dof_depths, inertia_pattern

MOST = 200_000
"""Operations that are written out."""


def has_long_mass_matrix(robot: Robot) -> bool:
    """Whether H takes too many operations (some 12 an entry) to be written out."""
    return robot.nv > 150 and 12 * int(dof_depths(robot.tree.dof_parent).sum()) > MOST


def has_long_factors(robot: Robot) -> bool:
    """Whether the LTDL factorisation takes too many operations to be written out."""
    depth = dof_depths(robot.tree.dof_parent)
    return int((depth * (depth - 1)).sum()) > MOST


def mass_matrix(robot: Robot, q: np.ndarray) -> np.ndarray:
    """H by columns, (nv, nv) or (B, nv, nv).

    Args:
        robot: the robot.
        q: configuration, (nq,) or (B, nq).
    """
    weightless = robot.__dict__.get("_weightless")
    if weightless is None:
        weightless = robot.__dict__["_weightless"] = robot.with_gravity((0.0, 0.0, 0.0))
    run = kernel(weightless, "rnea")
    rest, unit = np.zeros(robot.nv), np.eye(robot.nv)
    rows = [run(state, rest, unit) for state in np.atleast_2d(q)]
    H = np.array(rows).reshape(-1, robot.nv, robot.nv)
    # Equal up to rounding; made equal, and exactly 0 where no path is.
    H = 0.5 * (H + np.swapaxes(H, -1, -2)) * inertia_pattern(robot.tree.dof_parent)
    return H if np.ndim(q) == 2 else H[0]


def factors(H: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """L (…, n, n) and D (…, n) of H = L^T D L; None where H is not positive definite."""
    from scipy.linalg import LinAlgError, cholesky

    L, D = np.zeros_like(H), np.empty(H.shape[:-1])
    for place in np.ndindex(H.shape[:-2]):
        try:
            C = cholesky(H[place][::-1, ::-1], lower=True, check_finite=False)
        except LinAlgError:
            return None
        diagonal = np.diagonal(C)
        L[place] = (C / diagonal)[::-1, ::-1].T
        D[place] = diagonal[::-1] ** 2
    return L, D


def solve(L: np.ndarray, D: np.ndarray, b: Any) -> np.ndarray:
    """x of L^T D L x = b, (…, n)."""
    from scipy.linalg import solve_triangular

    batch = np.broadcast_shapes(L.shape[:-2], np.shape(b)[:-1])
    L, D = np.broadcast_to(L, (*batch, *L.shape[-2:])), np.broadcast_to(D, (*batch, D.shape[-1]))
    b = np.broadcast_to(b, (*batch, D.shape[-1]))
    x = np.empty(b.shape)
    for place in np.ndindex(batch):
        y = solve_triangular(
            L[place], b[place], trans="T", lower=True, unit_diagonal=True, check_finite=False
        )
        x[place] = solve_triangular(
            L[place], y / D[place], lower=True, unit_diagonal=True, check_finite=False
        )
    return x
