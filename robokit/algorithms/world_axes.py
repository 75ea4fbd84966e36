"""Matrices of robots with hundreds of joints: loops over a robot that is data, all vectors in world axes.

For a dof k of body i and a dof l of a joint that carries it, an entry of H, of the derivatives of forces, of
the Coriolis matrix or of the regressor is a sum of powers m_l . f_k (crba.py, rnea_derivatives.py,
coriolis_matrix.py, regressor.py). Here all vectors are in world axes, each about the origin of its own body:

    m_l . f_k = m_l.ang . (f_k.ang + r x f_k.lin) + m_l.lin . f_k.lin        r = p_k - p_l

so that nothing is lost at a hundred metres from the base, and the recursions need no rotations.

Arrays (N + 1 rows for bodies 0..N, D degrees of freedom):

    parent (N + 1)        lambda, 0 of the reference itself
    first, last (N + 1)   the dofs of each body are first, ..., last - 1
    S (D, 6)              columns of S in body coordinates
    inertias (N + 1, 10)  m, h, I_xx, I_xy, I_yy, I_xz, I_yz, I_zz in body coordinates
    pose (N + 1, 12)      [R p] by rows, x_world = R x_body + p

Motions and forces of dofs are (sets, 6, D): the inner loops go along neighbours in memory.

Source: S. Singh, R. P. Russell, P. M. Wensing 2022, algorithm 1 (IDSVA); RBDA sections 6.2, 6.5 and 7.3;
Atkeson, An, Hollerbach 1986.
Differs: joints of several dofs are taken dof by dof, as bodies without mass between them would be.
Cost: O(n) for the vectors and for a solution; O(n d) for the pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from robokit.algorithms.regressor import newton_euler
from robokit.spatial import Force, Matrix3, Motion, RigidInertia, Symmetric3, Transform, Vector3
from robokit.spatial.control_flow import for_range
from robokit.spatial.coriolis import CoriolisInertia
from robokit.spatial.inertia import ArticulatedInertia


def vectors(
    bodies: Any,
    dofs: Any,
    parent: Any,
    first: Any,
    last: Any,
    S: Any,
    inertias: Any,
    pose: Any,
    rotors: Any,
    qd: Any,
    qdd: Any,
    a0: Any,
    f_ext: Any,
    held: Any,
    motions: Any,
    forces: Any,
    place: Any,
    tau: Any,
    v: Any,
    a: Any,
    Ic: Any,
    Bc: Any,
    fc: Any,
    hc: Any,
) -> None:
    """The vectors whose products the derivatives are, for each dof.

    motions: s, Psi', Psi'', Psi' + s'. forces: those by q and by qd, I^c s, 2 B^cT s, s x* (forces held in
    the world), 1/2 I^c (s' - Psi'). place: the dof's body's origin. tau: the joint forces.
    f_ext moves with the bodies, what is held stays; both are in body coordinates.
    """
    _put(v, 0, [0.0] * 6)
    _put(a, 0, [0.0, 0.0, 0.0, a0[0], a0[1], a0[2]])
    for each, count in ((Ic, 10), (Bc, 12), (fc, 6), (hc, 6)):
        _put(each, 0, [0.0] * count)

    def outward(k: Any) -> None:
        i = k + 1
        turned, moved = _turned(pose, i), _moved(pose, parent, i)
        up, ap = moved @ _motion(v, parent[i]), moved @ _motion(a, parent[i])

        def own(n: Any, vJ: Any, aJ: Any) -> tuple[Any, Any]:
            d = first[i] + n
            s = turned.back(_motion(S, d))
            _column(motions, 0, d, s)
            for c in range(3):
                place[c, d] = pose[i, 4 * c + 3]
            return tuple(_of(vJ) + s * qd[d]), tuple(_of(aJ) + s * qdd[d])

        zero = (0.0,) * 6
        vJ, aJ = map(_of, for_range(last[i] - first[i], own, zero, zero))
        vi = up + vJ
        ai = ap + aJ + vi.cross(vJ)

        def rates(n: Any) -> None:
            d = first[i] + n
            s = _set_motion(motions, 0, d)
            psi = up.cross(s)
            _column(motions, 1, d, psi)
            _column(motions, 2, d, ap.cross(s) + up.cross(psi))
            _column(motions, 3, d, psi + vi.cross(s))

        for_range(last[i] - first[i], rates)
        I = turned.T @ _inertia(inertias, i) @ turned
        B = CoriolisInertia.of(I, vi)
        h = turned.T @ _force(held, i)
        _put(v, i, vi)
        _put(a, i, ai)
        _put_inertia(Ic, i, I)
        _put(Bc, i, [*(x for row in B.K.rows for x in row), *B.p])
        _put(fc, i, I @ ai + B @ vi - turned.T @ _force(f_ext, i))
        _put(hc, i, h)

    def inward(k: Any) -> None:
        i = bodies - 1 - k
        I, B, f, h = _inertia(Ic, i), _coriolis(Bc, i), _force(fc, i), _force(hc, i)

        def own(n: Any) -> None:
            d = first[i] + n
            s, psi, psi2, both = (_set_motion(motions, m, d) for m in range(4))
            _column(forces, 0, d, B @ (psi * 2.0) + I @ psi2 + s.cross_force(f))
            _column(forces, 1, d, B @ (s * 2.0) + I @ both)
            _column(forces, 2, d, I @ s)
            _column(forces, 3, d, B.transpose_apply(s * 2.0))
            _column(forces, 4, d, s.cross_force(h))
            _column(forces, 5, d, I @ ((both - psi * 2.0) * 0.5))
            tau[d] = s.dot(f - h) + rotors[d] * qdd[d]

        for_range(last[i] - first[i], own)
        p, X = parent[i], _moved(pose, parent, i)
        _put_inertia(Ic, p, _inertia(Ic, p) + X.T @ I @ X)
        B = _coriolis(Bc, p) + B.congruence(X)
        _put(Bc, p, [*(x for row in B.K.rows for x in row), *B.p])
        _put(fc, p, _force(fc, p) + X.T @ f)
        _put(hc, p, _force(hc, p) + X.T @ h)

    for_range(bodies - 1, outward)
    for_range(bodies - 1, inward)


def composites(
    bodies: Any,
    dofs: Any,
    parent: Any,
    first: Any,
    last: Any,
    S: Any,
    inertias: Any,
    pose: Any,
    motions: Any,
    forces: Any,
    place: Any,
    Ic: Any,
) -> None:
    """The vectors whose products are H: motions s and forces I^c s of each dof."""
    _put(Ic, 0, [0.0] * 10)

    def outward(k: Any) -> None:
        turned = _turned(pose, k + 1)
        _put_inertia(Ic, k + 1, turned.T @ _inertia(inertias, k + 1) @ turned)

    def inward(k: Any) -> None:
        i = bodies - 1 - k
        I, turned = _inertia(Ic, i), _turned(pose, i)

        def own(n: Any) -> None:
            d = first[i] + n
            s = turned.back(_motion(S, d))
            _column(motions, 0, d, s)
            _column(forces, 0, d, I @ s)
            for c in range(3):
                place[c, d] = pose[i, 4 * c + 3]

        for_range(last[i] - first[i], own)
        p, X = parent[i], _moved(pose, parent, i)
        _put_inertia(Ic, p, _inertia(Ic, p) + X.T @ I @ X)

    for_range(bodies - 1, outward)
    for_range(bodies - 1, inward)


def equations(
    bodies: Any,
    dofs: Any,
    columns: Any,
    parent: Any,
    first: Any,
    last: Any,
    S: Any,
    pose: Any,
    qd: Any,
    qdd: Any,
    a0: Any,
    motions: Any,
    place: Any,
    forces: Any,
    at: Any,
    v: Any,
    a: Any,
) -> None:
    """The vectors whose products are the regressor: motions s of each dof, ten forces of each body.

    The forces (1, 6, 10 N) are those of a unit of each inertial parameter, at the places ``at``.
    """
    _put(v, 0, [0.0] * 6)
    _put(a, 0, [0.0, 0.0, 0.0, a0[0], a0[1], a0[2]])
    zero, axes = Vector3.zero(), Matrix3.identity().rows

    def outward(k: Any) -> None:
        i = k + 1
        turned, moved = _turned(pose, i), _moved(pose, parent, i)
        up, ap = moved @ _motion(v, parent[i]), moved @ _motion(a, parent[i])

        def own(n: Any, vJ: Any, aJ: Any) -> tuple[Any, Any]:
            d = first[i] + n
            s = turned.back(_motion(S, d))
            _column(motions, 0, d, s)
            for c in range(3):
                place[c, d] = pose[i, 4 * c + 3]
            return tuple(_of(vJ) + s * qd[d]), tuple(_of(aJ) + s * qdd[d])

        none = (0.0,) * 6
        vJ, aJ = map(_of, for_range(last[i] - first[i], own, none, none))
        vi = up + vJ
        ai = ap + aJ + vi.cross(vJ)
        _put(v, i, vi)
        _put(a, i, ai)
        g, B, D = newton_euler(turned @ vi, turned @ ai)
        units = [Force(zero, g)]
        for axis, column in zip(axes, B.T.rows, strict=True):
            units.append(Force(Vector3(*axis).cross(g), Vector3(*column)))
        units += [Force(each, zero) for each in D]
        for n, f in enumerate(units):
            _column(forces, 0, 10 * k + n, turned.T @ f)
            for c in range(3):
                at[c, 10 * k + n] = pose[i, 4 * c + 3]

    for_range(bodies - 1, outward)


def factors(
    bodies: Any,
    dofs: Any,
    parent: Any,
    first: Any,
    last: Any,
    S: Any,
    inertias: Any,
    pose: Any,
    rotors: Any,
    motions: Any,
    U: Any,
    Dinv: Any,
    offset: Any,
    IA: Any,
) -> None:
    """H factorised by articulated bodies: s, U = I^A s and 1 / D of each dof; offsets p_i - p_lambda(i)."""
    _put(IA, 0, [0.0] * 21)

    def outward(k: Any) -> None:
        turned = _turned(pose, k + 1)
        _put(IA, k + 1, (turned.T @ _inertia(inertias, k + 1) @ turned).articulated())

    def inward(k: Any) -> None:
        i = bodies - 1 - k
        turned, count = _turned(pose, i), last[i] - first[i]

        def own(n: Any, entries: Any) -> Any:
            d = first[i] + count - 1 - n
            I, s = ArticulatedInertia.of(entries), turned.back(_motion(S, d))
            f = I @ s
            inverse = 1.0 / (s.dot(f) + rotors[d])
            _put(motions, d, s)
            _put(U, d, f)
            Dinv[d] = inverse
            return tuple(I.minus_outer(f, f * inverse))

        left = for_range(count, own, tuple(IA[i, c] for c in range(21)))
        p, X = parent[i], _moved(pose, parent, i)
        _put(offset, i, X.r)
        above = ArticulatedInertia.of([IA[p, c] for c in range(21)])
        _put(IA, p, above + X.T @ ArticulatedInertia.of(left) @ X)

    for_range(bodies - 1, outward)
    for_range(bodies - 1, inward)


def accelerations(
    bodies: Any,
    dofs: Any,
    parent: Any,
    first: Any,
    last: Any,
    motions: Any,
    U: Any,
    Dinv: Any,
    offset: Any,
    b: Any,
    x: Any,
    carried: Any,
) -> None:
    """x of H x = b, by the two passes of the articulated-body algorithm."""

    def begin(i: Any) -> None:
        _put(carried, i, [0.0] * 6)

    def inward(k: Any) -> None:
        i = bodies - 1 - k
        count = last[i] - first[i]

        def own(n: Any, f: Any) -> Any:
            d = first[i] + count - 1 - n
            z = (b[d] - _motion(motions, d).dot(_of_force(f))) * Dinv[d]
            x[d] = z
            return tuple(_of_force(f) + _force(U, d) * z)

        f = _of_force(for_range(count, own, tuple(_force(carried, i))))
        p, X = parent[i], Transform(Matrix3.identity(), _vector(offset, i))
        _put(carried, p, _force(carried, p) + X.T @ f)

    def outward(k: Any) -> None:
        i = k + 1
        start = Transform(Matrix3.identity(), _vector(offset, i)) @ _motion(carried, parent[i])

        def own(n: Any, a: Any) -> Any:
            d = first[i] + n
            y = x[d] - _of(a).dot(_force(U, d)) * Dinv[d]
            x[d] = y
            return tuple(_of(a) + _motion(motions, d) * y)

        _put(carried, i, for_range(last[i] - first[i], own, tuple(start)))

    for_range(bodies, begin)
    for_range(bodies - 1, inward)
    _put(carried, 0, [0.0] * 6)
    for_range(bodies - 1, outward)


def powers(forces_are_of_rows: bool) -> Callable[..., None]:
    """The text that adds, at the places of each row, the sums of the powers of its and a column's vectors.

    Its arrays: spans (K, 2) of columns, of which row k has begin[k] to end[k] - 1; the vectors (terms, 6,
    count) and places (3, count) of rows and columns; and the matrix.

    Args:
        forces_are_of_rows: whether rows have forces and columns motions, or the other way round.
    """

    def text(
        rows: Any, columns: Any, terms: Any, runs: Any, begin: Any, end: Any, spans: Any,
        R: Any, at_row: Any, C: Any, at_column: Any, out: Any,
    ) -> None:  # fmt: skip
        def row(k: Any) -> None:
            def term(t: Any) -> None:
                ang = Vector3(R[t, 0, k], R[t, 1, k], R[t, 2, k])
                lin = Vector3(R[t, 3, k], R[t, 4, k], R[t, 5, k])
                p = Vector3(at_row[0, k], at_row[1, k], at_row[2, k])

                def span(n: Any) -> None:
                    start = spans[n + begin[k], 0]

                    def entry(m: Any) -> None:
                        c = start + m
                        r = p - Vector3(at_column[0, c], at_column[1, c], at_column[2, c])
                        a = Vector3(C[t, 0, c], C[t, 1, c], C[t, 2, c])
                        b = Vector3(C[t, 3, c], C[t, 4, c], C[t, 5, c])
                        if forces_are_of_rows:
                            power = a.dot(ang + r.cross(lin)) + b.dot(lin)
                        else:
                            power = a.dot(ang) + b.dot(lin + r.cross(ang))
                        out[k, c] = out[k, c] + power

                    for_range(spans[n + begin[k], 1] - start, entry)

                for_range(end[k] - begin[k], span)

            for_range(terms, term)

        for_range(rows, row)

    return text


def mirrored(rows: Any, runs: Any, begin: Any, end: Any, spans: Any, H: Any) -> None:
    """The other half of a symmetric matrix: what is in the columns of each row's spans."""

    def row(k: Any) -> None:
        def span(n: Any) -> None:
            start = spans[n + begin[k], 0]

            def entry(m: Any) -> None:
                H[k, start + m] = H[start + m, k]

            for_range(spans[n + begin[k], 1] - start, entry)

        for_range(end[k] - begin[k], span)

    for_range(rows, row)


# ---- what arrays hold ------------------------------------------------------------------------------------


def _vector(A: Any, i: Any) -> Vector3:
    return Vector3(A[i, 0], A[i, 1], A[i, 2])


def _of(six: Any) -> Motion:
    return Motion(Vector3(*six[:3]), Vector3(*six[3:]))


def _of_force(six: Any) -> Force:
    return Force(Vector3(*six[:3]), Vector3(*six[3:]))


def _motion(A: Any, i: Any) -> Motion:
    return _of([A[i, c] for c in range(6)])


def _force(A: Any, i: Any) -> Force:
    return _of_force([A[i, c] for c in range(6)])


def _set_motion(A: Any, k: int, d: Any) -> Motion:
    return _of([A[k, c, d] for c in range(6)])


def _put(A: Any, i: Any, values: Any) -> None:
    for c, x in enumerate(values):
        A[i, c] = x


def _column(A: Any, k: int, d: Any, values: Any) -> None:
    for c, x in enumerate(values):
        A[k, c, d] = x


def _inertia(A: Any, i: Any) -> RigidInertia:
    m, x, y, z, xx, xy, yy, xz, yz, zz = (A[i, c] for c in range(10))
    return RigidInertia(m, Vector3(x, y, z), Symmetric3(xx, yy, zz, xy, xz, yz))


def _put_inertia(A: Any, i: Any, I: RigidInertia) -> None:
    J = I.Ibar
    _put(A, i, [I.m, *I.h, J.xx, J.xy, J.yy, J.xz, J.yz, J.zz])


def _coriolis(A: Any, i: Any) -> CoriolisInertia:
    K = Matrix3([[A[i, 3 * r + c] for c in range(3)] for r in range(3)])
    return CoriolisInertia(K, Vector3(A[i, 9], A[i, 10], A[i, 11]))


def _turned(pose: Any, i: Any) -> Transform:
    """From world axes at the body's origin to body coordinates."""
    R = Matrix3([[pose[i, 4 * r + c] for c in range(3)] for r in range(3)])
    return Transform(R.T, Vector3.zero())


def _moved(pose: Any, parent: Any, i: Any) -> Transform:
    """From the parent's origin to the body's, in world axes."""
    p = parent[i]
    r = Vector3(*(pose[i, 4 * c + 3] - pose[p, 4 * c + 3] for c in range(3)))
    return Transform(Matrix3.identity(), r)
