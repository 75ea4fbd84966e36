"""Rigid-body dynamics of a robot that is data: loops over the arrays of fields.py.

All vectors of a body are in world axes about the seat of its mechanism (a tree, or trees that loop joints
connect; ``wholes`` in the arrays): its first base. So columns S of joints, inertias and momenta of one can be
compared and added as they are, and rounding grows with its size, not with its distance from others or from
the world's origin. Seats are relative to the step's origin, which is that of body 1.

    V_i = V_lambda + sum of S_j v_j        H_jk = S_j . I^c_i S_k        C_j = S_j . sum of f_i

Source: RBDA chapters 5 and 6 (recursive Newton-Euler, composite rigid bodies), in one frame for all bodies as
in section 2.2; seeds 000, 001.
Differs: columns S contain the gains of mimic joints, so that G^T H G and G^T C (section 3.3) need no matrix
G; floating bases have their linear velocity in axes that do not rotate.
"""

from __future__ import annotations

from typing import Any

from robokit.contact.robot_data import BLOCK, FEW, FLOATING, PLANAR, SPHERICAL
from robokit.contact.vectors import (
    about,
    add,
    entries,
    force,
    in_lanes,
    inertia,
    matrix,
    motion,
    moved,
    nothing,
    of_force,
    put,
    ten,
    vector,
    write,
    write_row,
)
from robokit.model.joints import JOINT_TABLE
from robokit.spatial import Force, Matrix3, Motion, RigidInertia, Symmetric3, Transform, Vector3
from robokit.spatial.control_flow import cond, for_range
from robokit.spatial.rotation import quat_exp, quat_wxyz_to_rotation
from robokit.spatial.scalars import Scalar, cos, sin, where
from robokit.spatial.vectors import chosen

# ---- positions --------------------------------------------------------------------------------------------


def advance(x: Any, q: Any, v: Any, way: Any, h: Scalar) -> None:
    """Move q along a velocity for a time h, in place, and rotate the linear velocity v of floating bases.

    That velocity is in axes that do not rotate during the step; afterwards v has it in the base's new axes.
    """

    def body(m: Any) -> None:
        b = m + 1
        at, row = x.coordinate_from[x.joint_coordinate[b]], x.dof_row[x.body_dofs[b, 0]]
        kind = x.joint_kind[b]

        def of_several() -> None:
            planar = kind < SPHERICAL
            cond(planar, lambda: _move(x, "planar", b, q, at, way, row, h), with_quaternion)

        def with_quaternion() -> None:
            alone = kind < FLOATING
            cond(alone, lambda: _move(x, "spherical", b, q, at, way, row, h), floating)

        def floating() -> None:
            carried = x.parent[b] > 0
            cond(
                carried,
                lambda: _move(x, "floating", b, q, at, way, row, h),
                lambda: _float(q, at, v, way, row, h),
            )

        def own() -> None:
            cond(kind < PLANAR, lambda: for_range(x.body_dofs[b, 1], shift), of_several)

        def shift(k: Any) -> None:
            q[at + k] = q[at + k] + h * way[row + k]

        cond(x.joint_leads[b] > 0, own, nothing)

    for_range(x.n_bodies - 1, body)


def _move(x: Any, kind: str, b: Any, q: Any, at: Any, v: Any, row: Any, h: Scalar) -> None:
    """Advance the coordinates of a joint, by the joint table."""
    joint = JOINT_TABLE[kind]
    step = [v[row + k] * h for k in range(joint.nv)]
    write(q, at, joint.exp([q[at + k] for k in range(joint.nq)], step, vector(x.joint_axis, b)))


def _float(q: Any, at: Any, v: Any, way: Any, row: Any, h: Scalar) -> None:
    """Advance a floating base; its origin moves in a straight line."""
    now = [q[at + k] for k in range(7)]
    spin, velocity = (Vector3(*(way[row + first + k] for k in range(3))) for first in (0, 3))
    own = Vector3(*(v[row + 3 + k] for k in range(3)))
    place = Vector3(*now[4:]) + quat_wxyz_to_rotation(now[:4]) @ velocity * h
    write(q, at, JOINT_TABLE["spherical"].exp(now[:4], [*(spin * h)], spin))
    write(q, at + 4, place)
    write(v, row + 3, quat_wxyz_to_rotation(quat_exp(spin * h)).transpose_apply(own))


def place_bodies(x: Any, q: Any) -> None:
    """Origin and seats, poses R and p, columns S with gains and inertias I of a configuration q."""
    write_row(x.I, 0, [0.0] * 10)
    place_links(x, q)
    if not in_lanes(x):
        _columns_by_row(x)
    for_range(x.n_bodies - 1, lambda m: _inertia_here(x, m + 1))


def place_links(x: Any, q: Any) -> None:
    """Origin and seats, poses R and p, and columns S with gains of a configuration."""
    for_range(x.n_coordinates, lambda k: _coordinate(x, q, k))
    write_row(x.R, 0, entries(Matrix3.identity()))
    write_row(x.p, 0, Vector3.zero())
    write_row(x.seat, 0, Vector3.zero())
    write(x.origin, 0, Vector3.zero())
    for_range(x.n_bodies - 1, lambda m: _joint_pose(x, m + 1))
    for_range(x.n_bodies - 1, lambda m: _pose(x, m + 1))
    for_range(x.n_dofs, lambda j: _column(x, j))


def _coordinate(x: Any, q: Any, k: Any) -> None:
    """A coordinate of the tree: gain * q + offset."""
    place = x.coordinate_from[k]
    leader = where(place < 0, 0.0, q[where(place < 0, 0, place)])
    x.coordinate[k] = x.coordinate_gain[k] * leader + x.coordinate_offset[k]


def _joint_pose(x: Any, b: Any) -> None:
    """Pose of a body in its parent's axes, in R and p."""
    at, kind = x.joint_coordinate[b], x.joint_kind[b]

    def by_angle() -> None:
        c, s = cos(x.coordinate[at]), sin(x.coordinate[at])
        for k in range(9):
            x.R[b, k] = x.joint_turn[b, k] + c * x.joint_turn[b, 9 + k] + s * x.joint_turn[b, 18 + k]
        r = vector(x.joint_placement, b, 9)

        def shift(n: Any, *r: Scalar) -> tuple[Scalar, ...]:
            return tuple(r[c] + x.coordinate[at + n] * x.joint_slide[b, n, c] for c in range(3))

        write_row(x.p, b, for_range(x.body_dofs[b, 1], shift, *r))

    def by_quaternion() -> None:
        R_0 = matrix(x.joint_placement, b)
        R = quat_wxyz_to_rotation([x.coordinate[at + k] for k in range(4)])
        write_row(x.R, b, entries(R_0 @ R))
        r = vector(x.joint_placement, b, 9)

        def shifted() -> tuple[Scalar, ...]:
            return tuple(r + R_0 @ Vector3(*(x.coordinate[at + 4 + k] for k in range(3))))

        write_row(x.p, b, cond(kind < FLOATING, lambda: tuple(r), shifted))

    cond(kind < SPHERICAL, by_angle, by_quaternion)


def _pose(x: Any, b: Any) -> None:
    """Pose of a body from that of its parent; body 1 defines the origin, a first base the seat."""
    parent, first = x.parent[b], x.wholes[x.body_whole[b], 0]

    def begin() -> None:
        write(x.origin, 0, vector(x.p, 1))
        write_row(x.p, 0, -vector(x.p, 1))

    cond(b < 2, begin, nothing)
    R, hangs = matrix(x.R, parent), parent < 1
    at = R @ vector(x.p, b) + vector(x.p, parent)
    seat = chosen(first == b, at, vector(x.seat, where(hangs, first, parent)))
    write_row(x.seat, b, seat)
    write_row(x.p, b, at - chosen(hangs, seat, Vector3.zero()))
    write_row(x.R, b, entries(R @ matrix(x.R, b)))


def _column(x: Any, j: Any) -> None:
    """Column of S, rotated from body axes to world axes, about the seat."""
    b, gain = x.dof_body[j], x.dof_gain[j]
    R, s = matrix(x.R, b), motion(x.dof_axis, j) * gain
    ang = R @ s.ang
    write_row(x.S, j, Motion(ang, R @ s.lin + vector(x.p, b).cross(ang)))


def _columns_by_row(x: Any) -> None:
    """Columns S by rows."""

    def dof(j: Any) -> None:
        def by_row() -> None:
            for k in range(6):
                x.S_by_row[k, j] = x.S[j, k]

        cond(j < x.n_columns, by_row, nothing)

    pad(x, *(x.S_by_row[k] for k in range(6)))
    for_range(x.n_dofs, dof)


def _inertia_here(x: Any, b: Any) -> None:
    """Inertia of a body in world axes, about the seat (RBDA eq. 2.66)."""
    R, I = matrix(x.R, b), inertia(x.inertia, b)
    axes = [Vector3(*row) for row in R.rows]
    # Written out, as Symmetric3.rotated looks for coordinate axes in plain numbers, and rounds otherwise.
    i, j, k = axes
    I_i, I_j, I_k = (I.Ibar @ axis for axis in axes)
    turned = Symmetric3(i.dot(I_i), j.dot(I_j), k.dot(I_k), i.dot(I_j), i.dot(I_k), j.dot(I_k))
    X = Transform(Matrix3.identity(), vector(x.p, b))
    write_row(x.I, b, ten(X.T @ RigidInertia(I.m, R @ I.h, turned) @ X))


# ---- motion -----------------------------------------------------------------------------------------------


def velocities(x: Any, v: Any, V: Any) -> None:
    """V: the velocities of all bodies, (n_bodies, 6), for velocities v of the robot."""
    write_row(V, 0, [0.0] * 6)

    def body(m: Any) -> None:
        b = m + 1
        first = x.body_dofs[b, 0]

        def more(n: Any, *so_far: Scalar) -> tuple[Scalar, ...]:
            rate = v[known_row(x.dof_row[first + n])]
            return tuple(so_far[c] + x.S[first + n, c] * rate for c in range(6))

        write_row(V, b, for_range(x.body_dofs[b, 1], more, *motion(V, x.parent[b])))

    for_range(x.n_bodies - 1, body)


def known_row(row: Any) -> Any:
    """The row of a dof; for a dof that cannot move, whose column S is 0, any row."""
    return where(row < 0, 0, row)


def mass_matrix(x: Any) -> None:
    """The entries of H, rows >= columns, from S and I by composite inertias (RBDA section 6.2)."""
    composites(x)

    def row_in_H(r: Any, e: Any, n: Any) -> tuple[Any, Any]:
        return x.bands[r // BLOCK, 2] + x.blocks[e], n

    def empty(r: Any) -> None:
        of_band(x, r, lambda c, e, n: write_row(x.H, row_in_H(r, e, n), [0.0] * BLOCK))

    def of_no_row(m: Any) -> None:
        empty(x.nv + m)
        x.H[place_in_H(x, x.nv + m, x.nv + m)] = 1.0

    def dof(j: Any) -> None:
        row, f = x.dof_row[j], inertia(x.composite, x.dof_body[j]) @ motion(x.S, j)

        def by_fours() -> None:
            of_band(x, j, lambda c, e, n: write_row(x.H, row_in_H(j, e, n), powers_of_row(x, f, c, e, n)))

        def by_entries() -> None:
            first = x.path[j, 0]

            def ancestor(n: Any) -> None:
                k = x.ancestors[first + n]
                other, power = x.dof_row[k], motion(x.S, k).dot(f)
                # Two dofs of one row meet on its diagonal from both sides.
                twice = where(other < row, power, where(row < other, power, 2.0 * power))
                high, low = where(row < other, other, row), where(row < other, row, other)
                cond(other < 0, nothing, lambda: add(x.H, place_in_H(x, high, low), twice))

            def moves() -> None:
                add(x.H, place_in_H(x, row, row), motion(x.S, j).dot(f))
                for_range(x.path[j, 1], ancestor)

            cond(row < 0, nothing, moves)

        one_way(x, by_fours, by_entries)
        rotor = x.armature[j] * x.dof_gain[j] * x.dof_gain[j]
        cond(row < 0, nothing, lambda: add(x.H, place_in_H(x, row, row), rotor))

    one_way(x, nothing, lambda: for_range(x.nv, empty))
    for_range(BLOCK * x.n_bands - x.nv, of_no_row)
    for_range(x.n_dofs, dof)


def own_inertia(x: Any, row: Any) -> Scalar:
    """H_jj of a row [kg m^2 | kg]; for massless links that only loops move, the inertia of everything that
    moves.
    """
    if in_lanes(x):
        return x.H[place_in_H(x, row, row)]

    def with_all() -> Scalar:
        I = inertia(x.composite, 0)

        def dof(j: Any, found: Scalar) -> Scalar:
            S = motion(x.S, j)
            return where(x.dof_row[j] == row, S.dot(I @ S), found)

        return for_range(x.n_dofs, dof, 1.0)

    own = x.H[place_in_H(x, row, row)]
    return cond(own > 0.0, lambda: 1.0 * own, with_all)


def place_in_H(x: Any, row: Any, column: Any) -> tuple[Any, Any, Any]:
    """The place of an entry of H in its blocks."""
    k, c = row // BLOCK, column // BLOCK
    return x.bands[k, 2] + c, row - BLOCK * k, column - BLOCK * c


def of_band(x: Any, r: Any, do: Any) -> None:
    """Call do(column, e, n) for the blocks of a row n of H: entry e of ``blocks``."""
    k = r // BLOCK
    first, n = x.bands[k, 0], r - BLOCK * k
    for_range(x.bands[k, 1], lambda m: do(BLOCK * x.blocks[first + m], first + m, n))


def one_way(x: Any, by_fours: Any, by_entries: Any) -> None:
    """Write entries of H or A four at a time if dofs are rows in their order, otherwise one by one.

    In lanes the vectors are full anyway, and a thread of a GPU has none. The numbers are the same to the bit.
    """
    if in_lanes(x) or hasattr(x, "unrolls"):
        by_entries()
    else:
        cond((x.n_dofs > x.nv) | (x.n_parts > FEW), by_entries, by_fours)


def powers(S: Any, f: Force, column: Any) -> list[Scalar]:
    """Power of a force along each of four columns of S, given by rows, (6, n)."""
    s = [Motion(*(Vector3(*(S[h + i, column + n] for i in range(3))) for h in (0, 3))) for n in range(BLOCK)]
    return [each.dot(f) for each in s]


def powers_of_row(x: Any, f: Force, column: Any, e: Any, r: Any) -> list[Scalar]:
    """The same for a block; 0 where row r has no entry in it (:func:`of_band`)."""
    return [x.block_mask[e, r, n] * power for n, power in enumerate(powers(x.S_by_row, f, column))]


def entries_of_H(x: Any, do: Any) -> None:
    """Call do(row, column, number) with all entries that H has, on both sides of the diagonal."""

    def row(r: Any) -> None:
        first = x.row_path[r, 0]

        def beside(m: Any) -> None:
            c = x.row_columns[first + m]
            do(r, c, x.H[place_in_H(x, r, c)])
            do(c, r, x.H[place_in_H(x, r, c)])

        do(r, r, x.H[place_in_H(x, r, r)])
        for_range(x.row_path[r, 1], beside)

    for_range(x.nv, row)


def composites(x: Any) -> None:
    """Inertias of bodies with everything that they carry; that of the world is the entire robot's."""
    for_range(x.n_bodies, lambda b: write_row(x.composite, b, [x.I[b, k] for k in range(10)]))

    def inward(m: Any) -> None:
        b = x.n_bodies - 1 - m
        parent = x.parent[b]
        write_row(x.composite, parent, [x.composite[parent, k] + x.composite[b, k] for k in range(10)])

    for_range(x.n_bodies - 1, inward)


def pad(x: Any, *arrays: Any) -> None:
    """Write 0 to the columns of A that belong to no row of v and fill its last blocks."""

    def column(k: Any) -> None:
        for each in arrays:
            each[x.nv + k] = 0.0

    for_range(x.n_columns - x.nv, column)


def multiply(x: Any, y: Any, out: Any) -> None:
    """The product H y.

    Products with a row are summed separately, so that four numbers are not read just after one of them was
    written, before it has reached the cache.
    """
    given, product = x.multiplied, x.multiples

    def four(A: Any, first: Any) -> list[Scalar]:
        return [A[first + n] for n in range(BLOCK)]

    def band(k: Any) -> None:
        first, at, place = BLOCK * k, x.bands[k, 0], x.bands[k, 2]
        own, rows = four(given, first), range(BLOCK)

        def rows_at(c: Any) -> list[list[Scalar]]:
            return [[x.H[place + c, r, n] for n in range(BLOCK)] for r in rows]

        def add_products(column: Any, h: list[list[Scalar]]) -> None:
            """What the rows are worth in these columns."""
            left = four(product, column)
            for r in rows:
                left = [a + b * own[r] for a, b in zip(left, h[r], strict=True)]
            write(product, column, left)

        def block(m: Any, *sums: Scalar) -> tuple[Scalar, ...]:
            c = x.blocks[at + 1 + m]
            h, known = rows_at(c), four(given, BLOCK * c)
            add_products(BLOCK * c, h)
            return tuple(sums[BLOCK * r + n] + h[r][n] * known[n] for r in rows for n in rows)

        h = rows_at(k)
        add_products(first, [[h[r][n] if n < r else 0.0 for n in rows] for r in rows])
        start = [h[r][n] * own[n] for r in rows for n in rows]
        sums = for_range(x.bands[k, 1] - 1, block, *start)
        for r in rows:
            a, b, c, d = sums[BLOCK * r : BLOCK * (r + 1)]
            x.row_sums[first + r] = (a + b) + (c + d)

    for_range(x.nv, lambda j: put(given, j, y[j]))
    pad(x, given)
    for_range(x.n_columns, lambda k: put(product, k, 0.0))
    for_range(x.n_bands, band)
    for_range(x.nv, lambda j: put(out, j, product[j] + x.row_sums[j]))


# ---- forces -----------------------------------------------------------------------------------------------


def bias(x: Any, out: Any) -> None:
    """C: the forces of joints that keep bodies at velocities W, with velocity products and gravity.

    f_i = I_i a_i + W_i x* I_i W_i      a_i of :func:`velocity_products`, with a_0 = -a_g
    """
    velocity_products(x, x.W, -vector(x.gravity))
    write_row(x.f, 0, Force.zero())

    def body(m: Any) -> None:
        b = m + 1
        W, I = motion(x.W, b), inertia(x.I, b)
        write_row(x.f, b, I @ motion(x.a, b) + W.cross_force(I @ W))

    for_range(x.n_bodies - 1, body)
    generalized(x, x.f, out)


def velocity_products(x: Any, V: Any, of_world: Vector3) -> None:
    """Accelerations a of bodies at velocities V while those of joints are 0, in fields of velocities.

        a_i = a_lambda + V_lambda x V_i

    The product is V_i x S v, as V_i = V_lambda + S v. A base that floats keeps its linear velocity u in axes
    that do not turn: seen from there its acceleration at the seat is u x omega.

    Args:
        V: velocities of bodies, (n_bodies, 6).
        of_world: acceleration of the world [m/s^2].
    """
    write_row(x.a, 0, Motion(Vector3.zero(), of_world))

    def body(m: Any) -> None:
        b = m + 1
        parent, W = x.parent[b], motion(V, b)
        a = motion(x.a, parent) + motion(V, parent).cross(W)

        def straight() -> tuple[Scalar, ...]:
            u = W.lin + W.ang.cross(vector(x.p, b))
            return tuple(a.lin + u.cross(W.ang))

        a = Motion(a.ang, Vector3(*cond(is_free_base(x, b), straight, lambda: tuple(a.lin))))
        write_row(x.a, b, a)

    for_range(x.n_bodies - 1, body)


def is_free_base(x: Any, b: Any) -> Any:
    """Whether a joint lets a body float freely in the world."""
    return (x.parent[b] < 1) & (x.joint_kind[b] == FLOATING)


def generalized(x: Any, f: Any, out: Any) -> None:
    """J^T f: joint forces equivalent to the forces f on bodies, (n_bodies, 6).

    f is overwritten by sums: the force on each body and on everything that it carries.
    """

    def inward(m: Any) -> None:
        b = x.n_bodies - 1 - m
        parent = x.parent[b]
        write_row(f, parent, force(f, parent) + force(f, b))

    def dof(j: Any) -> None:
        row, power = x.dof_row[j], motion(x.S, j).dot(force(f, x.dof_body[j]))
        cond(row < 0, nothing, lambda: add(out, row, power))

    for_range(x.n_bodies - 1, inward)
    for_range(x.nv, lambda j: put(out, j, 0.0))
    for_range(x.n_dofs, dof)


def between(x: Any, c: Any, V: Any) -> Motion:
    """Velocity of body b against a of a constraint, about its place, at velocities V of the bodies."""
    V_a, V_b = (moved(motion(V, x.c_bodies[c, k]), vector(x.c_arms, (c, k))) for k in range(2))
    return V_b - V_a


def push(x: Any, c: Any, f: Force, on: Any) -> None:
    """Add the force of a constraint on its body b, about its place, to those ``on`` bodies."""
    for k, sign in enumerate((-1.0, 1.0)):
        b = x.c_bodies[c, k]
        write_row(on, b, force(on, b) + about(f, -vector(x.c_arms, (c, k))) * sign)


# ---- of all -----------------------------------------------------------------------------------------------


def spatial_momentum(x: Any, V: Any) -> Force:
    """Momentum of all bodies about the origin, [N m s; N s]."""

    def more(b: Any, *so_far: Scalar) -> tuple[Scalar, ...]:
        return tuple(of_force(so_far) + about(inertia(x.I, b) @ motion(V, b), -vector(x.seat, b)))

    return of_force(for_range(x.n_bodies, more, *Force.zero()))


def whole_mass(x: Any) -> tuple[Scalar, Vector3]:
    """Mass of all bodies [kg], and that times the place of their centre of mass from the origin [kg m]."""

    def more(b: Any, *so_far: Scalar) -> tuple[Scalar, ...]:
        m = x.I[b, 0]
        return so_far[0] + m, *(Vector3(*so_far[1:]) + vector(x.I, b, 1) + vector(x.seat, b) * m)

    m, *h = for_range(x.n_bodies, more, *[0.0] * 4)
    return m, Vector3(*h)


def kinetic_energy(x: Any, v: Any, V: Any) -> Scalar:
    """T [J] at velocities v of the robot and V of its bodies; rotors included."""

    def of_body(b: Any, T: Scalar) -> Scalar:
        return T + motion(V, b).dot(inertia(x.I, b) @ motion(V, b))

    def of_rotor(j: Any, T: Scalar) -> Scalar:
        rate = x.dof_gain[j] * v[known_row(x.dof_row[j])]
        return T + x.armature[j] * rate * rate

    return 0.5 * for_range(x.n_dofs, of_rotor, for_range(x.n_bodies, of_body, 0.0))


def potential_energy(x: Any) -> Scalar:
    """V [J]; 0 where the centre of mass is at the height of the world's origin."""
    m, h = whole_mass(x)
    return -vector(x.gravity).dot(h + vector(x.origin) * m)
