"""Derivatives of inverse dynamics of a robot that is data: loops over the arrays of fields.py.

    tau = H(q) a + C(q, w),    in axes that do not turn for the linear velocity of bases that float

Configurations are differentiated along the velocities: q moves by a unit of v_k. For a dof k of body i, with
the velocity W and the acceleration A of the parent of i, W_i its own, and composites of what i carries:

    Psi' = W x S        Psi'' = A x S + W x Psi'        s = Psi' + W_i x S

    row k, column c of the same body or on its path:  dq = Psi'_c . 2 B^T S_k + Psi''_c . I S_k
                                                      dv = S_c . 2 B^T S_k + s_c . I S_k
    row c of a dof that carries k, column k:          dq = S_c . (2 B Psi'_k + I Psi''_k + S_k x* f)
                                                      dv = S_c . (2 B S_k + I s_k)

Source: S. Singh, R. P. Russell, P. M. Wensing 2022, algorithm 1 (IDSVA).
Differs: all vectors are about one origin; joints of several dofs are taken dof by dof; bases that float.
Cost: O(n) for the vectors, O(n d) for the entries, d the depth of the tree.
"""

from __future__ import annotations

from typing import Any

from robokit.contact.kinematics import composites, is_free_base, known_row, velocities
from robokit.contact.vectors import (
    add,
    entries,
    force,
    inertia,
    motion,
    nothing,
    put,
    vector,
    write_row,
)
from robokit.spatial import Force, Matrix3, Motion, Vector3
from robokit.spatial.control_flow import cond, for_range
from robokit.spatial.scalars import where
from robokit.spatial.vectors import CoriolisInertia


def inverse_dynamics_derivatives(x: Any, w: Any, a: Any, dq: Any, dv: Any) -> None:
    """dtau/dq and dtau/dv, (nv, nv) each, at velocities w and accelerations a.

    It takes R, p, S and I of the configuration; composites, W, a and f are written.
    """
    _forces(x, w, a)
    _sums(x)
    for_range(x.n_dofs, lambda k: _rates(x, k))
    for each in (dq, dv):
        for_range(x.nv, lambda r, D=each: for_range(x.nv, lambda c: put(D, (r, c), 0.0)))
    for_range(x.n_dofs, lambda k: _entries(x, k, dq, dv))


def _forces(x: Any, w: Any, a: Any) -> None:
    """Velocities, accelerations, forces and Coriolis matrices of the bodies."""
    velocities(x, w, x.W)
    write_row(x.a, 0, Motion(Vector3.zero(), -vector(x.gravity)))
    write_row(x.f, 0, Force.zero())
    write_row(x.B, 0, [0.0] * 12)

    def body(m: Any) -> None:
        b = m + 1
        parent, W, I, first = x.parent[b], motion(x.W, b), inertia(x.I, b), x.body_dofs[b, 0]
        u = W.lin + W.ang.cross(vector(x.p, b))
        A = motion(x.a, parent) + motion(x.W, parent).cross(W)
        A = Motion(A.ang, A.lin + u.cross(W.ang) * where(is_free_base(x, b), 1.0, 0.0))

        def more(n: Any, *so_far: Any) -> tuple[Any, ...]:
            rate = a[known_row(x.dof_row[first + n])]
            return tuple(so_far[c] + x.S[first + n, c] * rate for c in range(6))

        write_row(x.a, b, for_range(x.body_dofs[b, 1], more, *A))
        B = CoriolisInertia.of(I, W)
        write_row(x.f, b, I @ motion(x.a, b) + B @ W)
        write_row(x.B, b, [*entries(B.K), *B.p])

    for_range(x.n_bodies - 1, body)


def _sums(x: Any) -> None:
    """Inertias, Coriolis matrices and forces, of each body and all that it carries."""
    composites(x)

    def inward(m: Any) -> None:
        b = x.n_bodies - 1 - m
        parent = x.parent[b]
        write_row(x.B, parent, [x.B[parent, k] + x.B[b, k] for k in range(12)])
        write_row(x.f, parent, force(x.f, parent) + force(x.f, b))

    for_range(x.n_bodies - 1, inward)


def _rates(x: Any, k: Any) -> None:
    """How a dof's axis moves, and the forces that come of it."""
    b, S = x.dof_body[k], motion(x.S, k)
    up, W = motion(x.W, x.parent[b]), motion(x.W, b)
    psi = up.cross(S)
    psi2 = motion(x.a, x.parent[b]).cross(S) + up.cross(psi)
    rate = psi + W.cross(S)
    # The acceleration u x omega of a base that floats, about its origin.
    p = vector(x.p, b)
    u, lin = W.lin + W.ang.cross(p), S.lin + S.ang.cross(p)
    turning = u.cross(S.ang) + lin.cross(W.ang)
    rate = Motion(rate.ang, rate.lin + turning * where(is_free_base(x, b), 1.0, 0.0))
    write_row(x.rates, k, [*psi, *psi2, *rate])
    I, f = inertia(x.composite, b), force(x.f, b)
    B = CoriolisInertia(Matrix3([[x.B[b, 3 * r + c] for c in range(3)] for r in range(3)]), vector(x.B, b, 9))
    by_q = B @ (psi * 2.0) + I @ psi2 + S.cross_force(f)
    by_v = B @ (S * 2.0) + I @ rate
    write_row(x.slopes, k, [*by_q, *by_v, *(I @ S), *B.transpose_apply(S * 2.0)])


def _entries(x: Any, k: Any, dq: Any, dv: Any) -> None:
    """Entries of a dof with those of its body, and with those that carry it."""
    b, row = x.dof_body[k], x.dof_row[k]
    first, at = x.body_dofs[b, 0], x.path[k, 0]
    by_q, by_v, IS, BS = (force(x.slopes, k, 6 * n) for n in range(4))

    def below(c: Any, column: Any) -> None:
        psi, psi2, rate = (motion(x.rates, c, 6 * n) for n in range(3))
        add(dq, (row, column), psi.dot(BS) + psi2.dot(IS))
        add(dv, (row, column), motion(x.S, c).dot(BS) + rate.dot(IS))

    def of_body(n: Any) -> None:
        column = x.dof_row[first + n]
        cond(column < 0, nothing, lambda: below(first + n, column))

    def of_path(n: Any) -> None:
        c = x.ancestors[at + (k - first) + n]
        column = x.dof_row[c]

        def both() -> None:
            below(c, column)
            add(dq, (column, row), motion(x.S, c).dot(by_q))
            add(dv, (column, row), motion(x.S, c).dot(by_v))

        cond(column < 0, nothing, both)

    def all_of_them() -> None:
        for_range(x.body_dofs[b, 1], of_body)
        for_range(x.path[k, 1] - (k - first), of_path)

    cond(row < 0, nothing, all_of_them)
