"""Derivatives of forward dynamics with respect to q, qd and tau.

    dqdd/dtau = H^-1        dqdd/dq = -H^-1 dID/dq        dqdd/dqd = -H^-1 dID/dqd

with the derivatives of inverse dynamics ID at the accelerations that tau gives. H^-1 is applied as
M D^-1 L^-T, M = L^-1 (inverse_mass_matrix.py), in the sparsity of both sides. L^-T is solved for: where H is
badly conditioned, the columns of dID may be a million times larger than what the joints feel of them in the
end, and a product with M^T would leave the errors of M on that scale. So dqdd/dq and dqdd/dqd are exact to
about cond(H) roundings, in machine code and in Python, which differ from each other by as much.

Columns of a floating base that are known are written down. Turning it turns gravity alone, so that only the
acceleration of the base itself changes. A uniform velocity more changes no force, and of the spatial
accelerations, in body axes, that of the base alone.

Source: J. Carpentier, N. Mansard, "Analytical derivatives of rigid body dynamics algorithms", 2018, section
III; S. Singh, R. P. Russell, P. M. Wensing 2022.
Differs: the product with H^-1 is a solution with the sparse factors of H.
Cost: O(n^2 d).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain

from robokit.algorithms.bias import bias_forces
from robokit.algorithms.coupling import reduced_force, reduced_matrix
from robokit.algorithms.crba import crba
from robokit.algorithms.inverse_mass_matrix import (
    TALL,
    branches,
    factors,
    inverse_factor,
    inverse_of_factor,
    parts,
    products,
)
from robokit.algorithms.ltdl import paths, solve_transposed, solve_unit
from robokit.algorithms.rnea_derivatives import rnea_derivatives, rnea_derivatives_world
from robokit.model.tree import Tree
from robokit.spatial import Motion, Vector3
from robokit.spatial.control_flow import vmap
from robokit.spatial.scalars import is_zero

Matrices = tuple[list[list], list[list], list[list]]


def aba_derivatives(tree: Tree, q, qd, tau, f_ext=None) -> Matrices:
    """dqdd/dq, dqdd/dqd and dqdd/dtau, nv x nv, as lists of rows; f_ext moves with the body."""
    return _derivatives(tree, q, qd, tau, f_ext, rnea_derivatives, turns=True)


def aba_derivatives_world(tree: Tree, q, qd, tau, f_ext) -> Matrices:
    """dqdd/dq, dqdd/dqd and dqdd/dtau, nv x nv; f_ext stays as it is in the world while the bodies move."""
    return _derivatives(tree, q, qd, tau, f_ext, rnea_derivatives_world, turns=False)


def _derivatives(tree: Tree, q, qd, tau, f_ext, inverse: Callable, turns: bool) -> Matrices:
    coupling = tree.coupling
    parent, H = tree.dof_parent, crba(tree, q)
    if coupling is not None:
        parent, H = coupling.dof_parent, reduced_matrix(tree, H)
    L, Dinv = factors(parent, H)
    C = chain(*bias_forces(tree, q, qd, f_ext))
    b = reduced_force(tree, [t - c for t, c in zip(chain(*tau), C, strict=True)])
    y = solve_transposed(parent, L, b)
    a = solve_unit(parent, L, [x * d for x, d in zip(y, Dinv, strict=True)])

    dq, dv = inverse(tree, q, qd, tree.split_v(a if coupling is None else coupling.full_v(a)), f_ext)
    known: list[dict[int, list]] = [{}, {}]
    if coupling is not None:
        dq, dv = reduced_matrix(tree, dq), reduced_matrix(tree, dv)
    else:
        known = [_base_rotation_columns(tree, q) if turns else {}, _base_velocity_columns(tree, qd)]
    for matrix, columns in zip((dq, dv), known, strict=True):
        for row in matrix:
            for k in columns:
                row[k] = 0.0
    M = inverse_factor(parent, L)
    dq, dv = _minus_solutions(parent, L, M, Dinv, (dq, dv))
    for matrix, columns in zip((dq, dv), known, strict=True):
        for k, column in columns.items():
            for i, x in column:
                matrix[i][k] = x
    return dq, dv, inverse_of_factor(parent, M, Dinv)


def _floating(tree: Tree) -> list[int]:
    """The floating bases: joints of six degrees of freedom between the reference and their body."""
    return [i for i in tree.children[0] if tree.joint[i].S.axes == (0, 1, 2, 3, 4, 5)]


def _base_rotation_columns(tree: Tree, q) -> dict[int, list]:
    """The columns of dqdd/dq of the floating bases' dofs: row numbers and values."""
    columns = {}
    for i in _floating(tree):
        a0 = tree.X(i, q[i]) @ Motion(Vector3.zero(), tree.a0)
        rows = range(tree.nv)[tree.v_slice[i]]
        for k, s in zip(rows, tree.joint[i].S.columns, strict=True):
            columns[k] = list(zip(rows, -a0.cross(s), strict=True))
    return columns


def _base_velocity_columns(tree: Tree, qd) -> dict[int, list]:
    """The columns of dqdd/dqd of the floating bases' linear velocities: row numbers and values."""
    columns = {}
    for i in _floating(tree):
        S, rows = tree.joint[i].S, range(tree.nv)[tree.v_slice[i]]
        for k, s in list(zip(rows, S.columns, strict=True))[3:]:
            columns[k] = list(zip(rows, -(S * qd[i]).cross(s), strict=True))
    return columns


def _minus_solutions(parent: Sequence[int], L, M, Dinv, both: Sequence[list[list]]) -> list[list[list]]:
    """-M D^-1 L^-T B of each of the matrices, column by column, where they are not zero.

    Columns of one branch have the same pattern and take the same operations.
    """
    n = len(parent)
    path = paths(parent)
    results = [[[0.0] * n for _ in range(n)] for _ in both]

    def function(*column):
        z = _solve_transposed(L, path, {i: x for i, x in enumerate(column) if not is_zero(x)})
        y = {j: -x * Dinv[j] for j, x in z.items()}
        return products(M, y, [[j for j in path[i] if j in y] for i in range(n)])

    for group in branches(parent):
        places = [(m, k) for m in range(len(both)) for k in group]
        columns = [[row[k] for row in both[m]] for m, k in places]
        places, columns = _nonzero_columns(places, columns)
        found = vmap(function)(*zip(*columns, strict=True))
        for (m, k), column in zip(places, found, strict=True):
            for i, x in enumerate(column):
                results[m][i][k] = x
    return results


def _solve_transposed(L, path: Sequence[Sequence[int]], b: Mapping) -> dict:
    """L^-T b at its nonzero entries, TALL at a time, so that a known entry is loaded once for all of them."""
    places = sorted({j for i in b for j in path[i]}, reverse=True)
    x = {j: b.get(j, 0.0) for j in places}
    for some in parts(places, TALL):
        for i in places:
            for j in some:
                if j < i and j in path[i]:
                    x[j] = x[j] - L[i][j] * x[i]
    return x


def _nonzero_columns(places: list, columns: list[list]) -> tuple[list, list[list]]:
    """Columns that are not zero throughout, and their places."""
    kept = [(p, c) for p, c in zip(places, columns, strict=True) if not all(map(is_zero, c))]
    return [p for p, _ in kept], [c for _, c in kept]
