"""Matrices of robots with hundreds of joints: loops over a robot that is data, all vectors in world axes.

For a dof k of body i and a dof l of a joint that carries it, an entry of H, of the derivatives of forces, of
the Coriolis matrix or of the regressor is a sum of powers m_l . f_k (crba.py, rnea_derivatives.py,
coriolis_matrix.py, regressor.py). Here all vectors are in world axes, each about the origin of its own body:

    m_l . f_k = m_l.ang . (f_k.ang + r x f_k.lin) + m_l.lin . f_k.lin        r = p_k - p_l

so that nothing is lost at a hundred metres from the base, and the recursions need no rotations.

Each function takes one argument, whose attributes are arrays (N + 1 rows for bodies 0..N, D degrees of
freedom):

    parent (N + 1)        lambda, 0 of the reference itself
    first, last (N + 1)   the dofs of each body are first, ..., last - 1
    S (D, 6)              columns of S in body coordinates
    inertias (N + 1, 10)  m, h, I_xx, I_xy, I_yy, I_xz, I_yz, I_zz in body coordinates
    pose (N + 1, 12)      [R p] by rows, x_world = R x_body + p
    above (D, 2)          the dofs that a dof carries are above[k, 0], ..., above[k, 1] - 1
    below (K, 2)          runs of dofs: those of the dof's body and of those that carry it are the runs
    begin, end (D)        begin[k], ..., end[k] - 1

Motions and forces of dofs are (sets, 6, D): the inner loops go along neighbours in memory.

Source: S. Singh, R. P. Russell, P. M. Wensing 2022, algorithm 1 (IDSVA); RBDA sections 6.2, 6.5 and 7.3;
Atkeson, An, Hollerbach 1986.
Differs: joints of several dofs are taken dof by dof, as bodies without mass between them would be.
Cost: O(n) for the vectors and for a solution; O(n d) for the pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from robokit.algorithms.regressor import newton_euler
from robokit.model.inertial_parameters import row
from robokit.spatial import Force, Matrix3, Motion, RigidInertia, Symmetric3, Transform, Vector3
from robokit.spatial.control_flow import for_range
from robokit.spatial.vectors import ArticulatedInertia, CoriolisInertia


def mass_matrix(x: Any) -> None:
    """H from the motions s and the forces I^c s of each dof."""
    _put(x.Ic, 0, [0.0] * 10)

    def outward(k: Any) -> None:
        rotation = _rotation(x.pose, k + 1)
        _put(x.Ic, k + 1, row(rotation.T @ _inertia(x.inertias, k + 1) @ rotation))

    def inward(k: Any) -> None:
        i = x.bodies - 1 - k
        I, rotation, p, X = _inertia(x.Ic, i), _rotation(x.pose, i), x.parent[i], _offset_transform(x, i)

        def own(n: Any) -> None:
            d = x.first[i] + n
            _column(x.forces, 0, d, I @ _axis(x, i, d, rotation))

        for_range(x.last[i] - x.first[i], own)
        _put(x.Ic, p, row(_inertia(x.Ic, p) + X.T @ I @ X))

    for_range(x.bodies - 1, outward)
    for_range(x.bodies - 1, inward)
    upper = _span(lambda k: (k, x.above[k, 1]))
    _powers(x.H, x.dofs, upper, (x.motions, x.place), (x.forces, x.place), [(0, 0)], False)
    _mirror(x.H, x.dofs, upper)

    def diagonal(k: Any) -> None:
        x.H[k, k] = x.H[k, k] + x.rotors[k]

    for_range(x.dofs, diagonal)


def bias(x: Any) -> None:
    """tau of inverse dynamics."""
    _vectors(x, "")


def force_derivatives(x: Any) -> None:
    """dtau/dq and dtau/dv."""
    _vectors(x, "derivatives")
    motions, forces, below = (x.motions, x.place), (x.forces, x.place), _runs(x)
    above = _span(lambda k: (x.above[k, 0], x.above[k, 1]))
    _powers(x.dq, x.dofs, below, forces, motions, [(3, 1), (2, 2), (4, 0)], True)
    _powers(x.dq, x.dofs, above, motions, forces, [(0, 0)], False)
    _powers(x.dv, x.dofs, below, forces, motions, [(3, 0), (2, 3)], True)
    _powers(x.dv, x.dofs, above, motions, forces, [(0, 1)], False)


def coriolis_matrix(x: Any) -> None:
    """C of the factorisation that makes dH/dt = C + C^T."""
    _vectors(x, "coriolis")
    motions, forces = (x.motions, x.place), (x.forces, x.place)
    above = _span(lambda k: (x.above[k, 0], x.above[k, 1]))
    _powers(x.C, x.dofs, _runs(x), forces, motions, [(3, 0), (2, 3)], True)
    _powers(x.C, x.dofs, above, motions, forces, [(0, 1)], False)


def _vectors(x: Any, what: str) -> None:
    """Inverse dynamics, and the vectors whose products the derivatives are, for each dof.

    motions: s, Psi', Psi'', Psi' + s'. forces: those by q and by qd, I^c s, 2 B^cT s, -s x* (forces held in
    the world). The Coriolis matrix has s' in place of Psi' + s', B^cT s, and B^c s + I^c s' by qd. f_ext
    moves with the bodies, what is held stays; both are in body coordinates. ``x``: the arrays; ``what``:
    "derivatives" or "coriolis", "" for the forces alone.
    """
    _rest(x)
    for each, count in ((x.Ic, 10), (x.Bc, 12), (x.fc, 6), (x.hc, 6)):
        _put(each, 0, [0.0] * count)

    def outward(k: Any) -> None:
        i = k + 1
        rotation, up, ap, vi, ai = _moves(x, i)

        def rates(n: Any) -> None:
            d = x.first[i] + n
            s = _set_motion(x.motions, 0, d)
            psi, rate = up.cross(s), vi.cross(s)
            _column(x.motions, 1, d, psi)
            _column(x.motions, 2, d, ap.cross(s) + up.cross(psi))
            _column(x.motions, 3, d, rate if what == "coriolis" else psi + rate)

        if what:
            for_range(x.last[i] - x.first[i], rates)
        I = rotation.T @ _inertia(x.inertias, i) @ rotation
        B = CoriolisInertia.of(I, vi)
        _put(x.Ic, i, row(I))
        _put(x.Bc, i, _twelve(B))
        _put(x.fc, i, I @ ai + B @ vi - rotation.T @ _force(x.f_ext, i))
        _put(x.hc, i, rotation.T @ _force(x.held, i))

    def inward(k: Any) -> None:
        i = x.bodies - 1 - k
        I, B, f, h = _inertia(x.Ic, i), _coriolis(x.Bc, i), _force(x.fc, i), _force(x.hc, i)
        p, X = x.parent[i], _offset_transform(x, i)

        def own(n: Any) -> None:
            d = x.first[i] + n
            s, psi, psi2, rate = (_set_motion(x.motions, m, d) for m in range(4))
            x.tau[d] = s.dot(f - h) + x.rotors[d] * x.qdd[d]
            if what:
                _column(x.forces, 2, d, I @ s)
            if what == "derivatives":
                _column(x.forces, 0, d, B @ (psi * 2.0) + I @ psi2 + s.cross_force(f))
                _column(x.forces, 1, d, B @ (s * 2.0) + I @ rate)
                _column(x.forces, 3, d, B.transpose_apply(s * 2.0))
                _column(x.forces, 4, d, s.cross_force(h) * -1.0)
            if what == "coriolis":
                _column(x.forces, 1, d, B @ s + I @ rate)
                _column(x.forces, 3, d, B.transpose_apply(s))

        for_range(x.last[i] - x.first[i], own)
        if what:
            _put(x.Ic, p, row(_inertia(x.Ic, p) + X.T @ I @ X))
            _put(x.Bc, p, _twelve(_coriolis(x.Bc, p) + B.congruence(X)))
        _put(x.fc, p, _force(x.fc, p) + X.T @ f)
        _put(x.hc, p, _force(x.hc, p) + X.T @ h)

    for_range(x.bodies - 1, outward)
    for_range(x.bodies - 1, inward)


def regressor(x: Any) -> None:
    """Y: motions of dofs by the forces of a unit of each body's inertial parameters.

    Those are ``units`` (1, 6, 10 N) at the places ``at``; row k has columns carried[k, 0], ...,
    carried[k, 1] - 1.
    """
    _rest(x)
    zero, axes = Vector3.zero(), Matrix3.identity().rows

    def outward(k: Any) -> None:
        rotation, _, _, v, a = _moves(x, k + 1)
        g, B, D = newton_euler(rotation @ v, rotation @ a)
        units = [Force(zero, g)]
        for axis, column in zip(axes, B.T.rows, strict=True):
            units.append(Force(Vector3(*axis).cross(g), Vector3(*column)))
        units += [Force(each, zero) for each in D]
        for n, f in enumerate(units):
            _column(x.units, 0, 10 * k + n, rotation.T @ f)
            for c in range(3):
                x.at[c, 10 * k + n] = x.pose[k + 1, 4 * c + 3]

    for_range(x.bodies - 1, outward)
    carried = _span(lambda k: (x.carried[k, 0], x.carried[k, 1]))
    _powers(x.Y, x.dofs, carried, (x.motions, x.place), (x.units, x.at), [(0, 0)], False)


def factors(x: Any) -> None:
    """H factorised by articulated bodies: s, U = I^A s and 1 / D of each dof; offsets p_i - p_lambda(i)."""
    _put(x.IA, 0, [0.0] * 21)

    def outward(k: Any) -> None:
        rotation = _rotation(x.pose, k + 1)
        _put(x.IA, k + 1, (rotation.T @ _inertia(x.inertias, k + 1) @ rotation).articulated())

    def inward(k: Any) -> None:
        i = x.bodies - 1 - k
        rotation, count = _rotation(x.pose, i), x.last[i] - x.first[i]

        def own(n: Any, entries: Any) -> Any:
            d = x.first[i] + count - 1 - n
            I, s = ArticulatedInertia.of(entries), rotation.back(_motion(x.S, d))
            f = I @ s
            inverse = 1.0 / (s.dot(f) + x.rotors[d])
            _put(x.s, d, s)
            _put(x.U, d, f)
            x.Dinv[d] = inverse
            return tuple(I.minus_outer(f, f * inverse))

        left = for_range(count, own, tuple(x.IA[i, c] for c in range(21)))
        p, X = x.parent[i], _offset_transform(x, i)
        _put(x.offset, i, X.r)
        above = ArticulatedInertia.of([x.IA[p, c] for c in range(21)])
        _put(x.IA, p, above + X.T @ ArticulatedInertia.of(left) @ X)

    for_range(x.bodies - 1, outward)
    for_range(x.bodies - 1, inward)


def solve(x: Any) -> None:
    """x of H x = b, by the two passes of the articulated-body algorithm over :func:`factors`."""

    def begin(i: Any) -> None:
        _put(x.passed, i, [0.0] * 6)

    def inward(k: Any) -> None:
        i = x.bodies - 1 - k
        count = x.last[i] - x.first[i]

        def own(n: Any, f: Any) -> Any:
            d = x.first[i] + count - 1 - n
            z = (x.b[d] - _motion(x.s, d).dot(_of_force(f))) * x.Dinv[d]
            x.x[d] = z
            return tuple(_of_force(f) + _force(x.U, d) * z)

        f = _of_force(for_range(count, own, tuple(_force(x.passed, i))))
        p, X = x.parent[i], Transform(Matrix3.identity(), _vector(x.offset, i))
        _put(x.passed, p, _force(x.passed, p) + X.T @ f)

    def outward(k: Any) -> None:
        i = k + 1
        start = Transform(Matrix3.identity(), _vector(x.offset, i)) @ _motion(x.passed, x.parent[i])

        def own(n: Any, a: Any) -> Any:
            d = x.first[i] + n
            y = x.x[d] - _of(a).dot(_force(x.U, d)) * x.Dinv[d]
            x.x[d] = y
            return tuple(_of(a) + _motion(x.s, d) * y)

        _put(x.passed, i, for_range(x.last[i] - x.first[i], own, tuple(start)))

    for_range(x.bodies, begin)
    for_range(x.bodies - 1, inward)
    _put(x.passed, 0, [0.0] * 6)
    for_range(x.bodies - 1, outward)


def mirror(x: Any) -> None:
    """The lower half of H from its upper one."""
    _mirror(x.H, x.dofs, _span(lambda k: (k, x.dofs)))


# ---- bodies ----------------------------------------------------------------------------------------------


def _rest(x: Any) -> None:
    """The motion of the reference: at rest, with the acceleration -g that stands for gravity."""
    _put(x.v, 0, [0.0] * 6)
    _put(x.a, 0, [0.0, 0.0, 0.0, x.a0[0], x.a0[1], x.a0[2]])


def _axis(x: Any, i: Any, d: Any, rotation: Transform) -> Motion:
    """s of a dof of body i, kept with the body's place."""
    s = rotation.back(_motion(x.S, d))
    _column(x.motions, 0, d, s)
    for c in range(3):
        x.place[c, d] = x.pose[i, 4 * c + 3]
    return s


def _moves(x: Any, i: Any) -> tuple[Transform, Motion, Motion, Motion, Motion]:
    """How body i is turned; its parent's velocity and acceleration at its origin, and its own, kept."""
    rotation, moved, p = _rotation(x.pose, i), _offset_transform(x, i), x.parent[i]
    up, ap = moved @ _motion(x.v, p), moved @ _motion(x.a, p)

    def own(n: Any, vJ: Any, aJ: Any) -> tuple[Any, Any]:
        d = x.first[i] + n
        s = _axis(x, i, d, rotation)
        return tuple(_of(vJ) + s * x.qd[d]), tuple(_of(aJ) + s * x.qdd[d])

    zero = (0.0,) * 6
    vJ, aJ = map(_of, for_range(x.last[i] - x.first[i], own, zero, zero))
    v = up + vJ
    a = ap + aJ + v.cross(vJ)
    _put(x.v, i, v)
    _put(x.a, i, a)
    return rotation, up, ap, v, a


# ---- pairs -----------------------------------------------------------------------------------------------

Spans = Callable[[Any, Callable[[Any, Any], None]], Any]
"""Row k, what to do with columns from one to before another -> does it for the row's spans."""


def _span(ends: Callable[[Any], tuple[Any, Any]]) -> Spans:
    return lambda k, do: do(*ends(k))


def _runs(x: Any) -> Spans:
    """The spans of the dof's own body and of the bodies that carry it."""

    def each(k: Any, do: Any) -> None:
        start = x.begin[k]
        for_range(x.end[k] - start, lambda n: do(x.below[start + n, 0], x.below[start + n, 1]))

    return each


def _powers(
    out: Any,
    rows: Any,
    spans: Spans,
    of_row: tuple[Any, Any],
    of_column: tuple[Any, Any],
    terms: Sequence[tuple[int, int]],
    forces_are_of_rows: bool,
) -> None:
    """Add, at the places of each row, the sums of the powers of its and a column's vectors.

    Args:
        out: the matrix.
        rows: how many it has.
        spans: of columns, by row.
        of_row, of_column: vectors (sets, 6, count) and places (3, count).
        terms: sets of the row and of the column.
        forces_are_of_rows: whether rows have forces and columns motions, or the other way round.
    """
    (R, at_row), (C, at_column) = of_row, of_column

    def row(k: Any) -> None:
        own = [_set_motion(R, t, k) for t, _ in terms]
        p = Vector3(at_row[0, k], at_row[1, k], at_row[2, k])

        def span(start: Any, stop: Any) -> None:
            def entry(m: Any) -> None:
                c = start + m
                r = p - Vector3(at_column[0, c], at_column[1, c], at_column[2, c])
                total = out[k, c]
                for s, (_, t) in zip(own, terms, strict=True):
                    other = _set_motion(C, t, c)
                    if forces_are_of_rows:
                        power = other.ang.dot(s.ang + r.cross(s.lin)) + other.lin.dot(s.lin)
                    else:
                        power = s.ang.dot(other.ang) + other.lin.dot(s.lin + r.cross(s.ang))
                    total = total + power
                out[k, c] = total

            for_range(stop - start, entry)

        spans(k, span)

    for_range(rows, row)


def _mirror(A: Any, rows: Any, spans: Spans) -> None:
    """The lower half of a symmetric matrix, from the spans of its upper one."""

    def row(k: Any) -> None:
        def span(start: Any, stop: Any) -> None:
            def entry(m: Any) -> None:
                A[start + m, k] = A[k, start + m]

            for_range(stop - start, entry)

        spans(k, span)

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


def _twelve(B: CoriolisInertia) -> list[Any]:
    return [*(x for row in B.K.rows for x in row), *B.p]


def _coriolis(A: Any, i: Any) -> CoriolisInertia:
    K = Matrix3([[A[i, 3 * r + c] for c in range(3)] for r in range(3)])
    return CoriolisInertia(K, Vector3(A[i, 9], A[i, 10], A[i, 11]))


def _rotation(pose: Any, i: Any) -> Transform:
    """From world axes at the body's origin to body coordinates."""
    R = Matrix3([[pose[i, 4 * r + c] for c in range(3)] for r in range(3)])
    return Transform(R.T, Vector3.zero())


def _offset_transform(x: Any, i: Any) -> Transform:
    """From the parent's origin to the body's, in world axes."""
    p, pose = x.parent[i], x.pose
    r = Vector3(*(pose[i, 4 * c + 3] - pose[p, 4 * c + 3] for c in range(3)))
    return Transform(Matrix3.identity(), r)
