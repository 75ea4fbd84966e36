"""Errata of the sources: the variant as printed fails against the dense oracle, the corrected one holds.

Every printed variant below is what the source's page says, read literally.
"""

from __future__ import annotations

from itertools import chain as concat

import ladder
import numpy as np
import pytest
from dense import Dense, cross_force, skew
from ladder import Plain, State, relative

from robokit.spatial import Motion, Vector3


@pytest.fixture
def case():
    robot = ladder.random_tree(5, kinds=ladder.COORDINATE_KINDS, n=9)
    s = State(robot)
    return robot, s, Plain(robot), Dense(robot, s.q, s.v)


def test_rnea_gravity_enters_as_minus_a_g(case):
    # Seeds 001 and the dynamics notes write a_0 = g; the torque that holds the robot needs a_0 = -a_g.
    robot, s, plain, dense = case
    printed = Plain(robot.with_gravity(-robot.gravity))  # a_0 = +a_g
    assert relative(plain.gravity(s.q), dense.G) < 1e-13
    assert relative(printed.gravity(s.q), dense.G) > 1.0
    # A mass on a vertical slide has to be pushed up, not down.
    b = ladder.ModelBuilder("lift").link("ground").link("cabin", 3.0)
    lift = Plain(b.joint("slide", "prismatic", "ground", "cabin", axis=(0, 0, 1)).build())
    assert lift.gravity([0.0])[0] == pytest.approx(3.0 * 9.81)


def chain_aba(robot, q, qd, tau, sign):
    """ABA of seeds 002 for a chain of single joints, u absorbing h . c, with the last pass's sign free."""
    t = robot.tree
    n = t.n
    X = [None, *(t.X(i, [q[i - 1]]) for i in range(1, n + 1))]
    s = [None, *(j.S.columns[0] for j in t.joint[1:])]
    v, c, I, p = [Motion.zero()], [None], [None], [None]
    for i in range(1, n + 1):
        v.append(X[i] @ v[i - 1] + s[i] * qd[i - 1])
        c.append(v[i].cross(s[i] * qd[i - 1]))
        I.append(t.I[i].articulated())
        p.append(v[i].cross_force(t.I[i] @ v[i]))
    h, d, u = [None] * (n + 1), [None] * (n + 1), [None] * (n + 1)
    for i in range(n, 0, -1):
        h[i] = I[i] @ s[i]
        d[i] = s[i].dot(h[i])
        u[i] = tau[i - 1] - c[i].dot(h[i]) - s[i].dot(p[i])
        if i > 1:
            I[i - 1] = I[i - 1] + X[i].T @ I[i].minus_outer(h[i], h[i] * (1.0 / d[i])) @ X[i]
            p[i - 1] = p[i - 1] + X[i].T @ (p[i] + I[i] @ c[i] + h[i] * (u[i] / d[i]))
    a, qdd = Motion(Vector3.zero(), t.a0), []
    for i in range(1, n + 1):
        a = X[i] @ a
        qdd.append((u[i] + sign * a.dot(h[i])) / d[i])
        a = a + c[i] + s[i] * qdd[-1]
    return np.array(qdd)


def test_aba_third_pass_has_a_minus():
    # Seeds 002, third pass: printed (u_i + h_i^T a) / d_i, derived (u_i - h_i^T a) / d_i.
    robot = ladder.chain()
    s = State(robot)
    dense = Dense(robot, s.q, s.v)
    expected = np.linalg.solve(dense.H, s.tau - dense.C - dense.G)
    assert relative(chain_aba(robot, s.q, s.v, s.tau, -1.0), expected) < 1e-11
    assert relative(chain_aba(robot, s.q, s.v, s.tau, +1.0), expected) > 0.1
    assert relative(Plain(robot).aba(s.q, s.v, s.tau), expected) < 1e-11


def printed_world_rnea(robot, s, children_sign):
    """Seeds 003 in world axes at O, with the sign of the children's f_a free."""
    dense = Dense(robot, s.q, s.v)
    t = robot.tree
    a0 = np.r_[np.zeros(3), -robot.gravity]
    f, tau = [np.zeros(6)] * (t.n + 1), np.zeros(t.nv)
    for i in range(t.n, 0, -1):
        link = robot.link(robot.body_name(i))
        T, J, Jd = dense.T[link.name], dense.J[link.name], dense.Jd[link.name]
        X = robot.tree.I[i]
        R, p = T[:3, :3], T[:3, 3]
        Ib = np.array([[*(X @ Motion(Vector3(*e[:3]), Vector3(*e[3:])))] for e in np.eye(6)]).T
        to_body = np.block([[R.T, np.zeros((3, 3))], [-R.T @ skew(p), R.T]])
        I = to_body.T @ Ib @ to_body
        v = J @ s.v
        f[i] = I @ (a0 + J @ s.a + Jd @ s.v) + cross_force(v) @ I @ v
        f[i] = f[i] + children_sign * sum((f[j] for j in t.children[i]), np.zeros(6))
        tau[t.v_slice[i]] = J[:, t.v_slice[i]].T @ f[i]
    return tau


def test_forces_of_the_children_add_up(case):
    # Seeds 003: one slide prints - sum f_a(mu), the summary + sum; plus is right.
    robot, s, plain, dense = case
    assert relative(printed_world_rnea(robot, s, +1.0), dense.tau(s.a)) < 1e-12
    assert relative(printed_world_rnea(robot, s, -1.0), dense.tau(s.a)) > 0.1
    assert relative(plain.rnea_world(s.q, s.v, s.a), dense.tau(s.a)) < 1e-12


def test_force_cross_product_is_not_the_motion_cross_product(case):
    # Seeds 001's listing writes v[i].cross(I * v): it must be v x* (I v).
    _, s, _, dense = case
    robot, name = dense.robot, dense.robot.body_name(2)
    v = dense.J[name] @ s.v
    momentum = np.random.default_rng(0).standard_normal(6)
    as_motion = np.r_[
        np.cross(v[:3], momentum[:3]), np.cross(v[:3], momentum[3:]) + np.cross(v[3:], momentum[:3])
    ]
    assert relative(as_motion, cross_force(v) @ momentum) > 0.01
    # And power shows which one is right: v . (v x* p) = 0 for every p.
    assert abs(v @ cross_force(v) @ momentum) < 1e-12 < abs(v @ as_motion)
    assert robot.nv == len(s.v)


def test_a_spherical_joint_has_three_velocities():
    # Seeds 001 says k = 2 for a spherical joint.
    from robokit.model.joints import JOINT_TABLE

    S = JOINT_TABLE["spherical"].columns(Vector3(1.0, 0.0, 0.0), 0.0)
    assert len(S) == JOINT_TABLE["spherical"].nv == 3
    assert np.linalg.matrix_rank(np.array([list(c) for c in S])) == 3


def test_velocity_of_a_body_sums_over_its_support(case):
    # Seeds 000, one slide: v_k as a sum over nu(k) where kappa(k) is meant.
    robot, s, _, dense = case
    t = robot.tree
    k = next(i for i in range(1, t.n + 1) if len(t.support[i]) > 1 and len(t.subtree[i]) > 1)
    parts = {i: dense.J[robot.body_name(i)][:, t.v_slice[i]] @ s.v[t.v_slice[i]] for i in range(1, t.n + 1)}
    v = dense.J[robot.body_name(k)] @ s.v
    assert relative(sum(parts[i] for i in t.support[k]), v) < 1e-13
    assert relative(sum(parts[i] for i in t.subtree[k]), v) > 0.01


def from_h(robot, s, plain, dense, R, shift, C):
    """Dynamics notes eq. 23-26 with the rotation, the shift and the bias left open."""
    H = plain.crba(s.q)
    pG = np.array([H[2, 4], H[0, 5], H[1, 3]]) / H[3, 3]
    X_T = np.block([[R, -R @ skew(pG if shift else dense.com)], [np.zeros((3, 3)), R]])
    return X_T @ H[:6], X_T @ C[:6]


def test_transform_to_g_needs_the_base_rotation_and_the_base_frame_com_together():
    # Notes eq. 23-26: p_G in base axes with R_b; the world p_G, or the transposed R_b, is wrong.
    robot = ladder.random_tree(0, "floating")
    s = State(robot)
    plain, dense = Plain(robot), Dense(robot, s.q, s.v)
    R = dense.T["link0"][:3, :3]
    free = dense.C
    A, bias = from_h(robot, s, plain, dense, R, True, free)
    assert relative(A, dense.A_G) < 1e-12 and relative(bias, dense.bias_G) < 1e-12
    for wrong_R, shift in ((R.T, True), (R, False), (np.eye(3), True)):
        A, _ = from_h(robot, s, plain, dense, wrong_R, shift, free)
        assert relative(A, dense.A_G) > 0.01


def test_centroidal_bias_uses_the_gravity_free_bias():
    robot = ladder.random_tree(0, "floating")
    s = State(robot)
    plain, dense = Plain(robot), Dense(robot, s.q, s.v)
    R = dense.T["link0"][:3, :3]
    _, with_gravity = from_h(robot, s, plain, dense, R, True, plain.bias(s.q, s.v))
    assert relative(with_gravity, dense.bias_G) > 0.01
    # The difference is the weight at G, which has no moment about it.
    weight = np.r_[np.zeros(3), -robot.total_mass * robot.gravity]
    assert relative(with_gravity - dense.bias_G, weight) < 1e-11


def test_degrees_of_freedom_and_joints_are_not_the_same_index():
    # Seeds 001: n = len(qd) - 1 and n = len(qd) disagree; qd is by degree of freedom, i by joint.
    robot = ladder.random_tree(0)
    assert robot.nbodies != robot.nv != robot.nq
    s, plain = State(robot), Plain(robot)
    by_joint = robot.tree.split_v(s.v.tolist())
    assert len(by_joint) == robot.nbodies + 1 and list(concat(*by_joint)) == s.v.tolist()
    assert relative(plain.rnea(s.q, s.v, s.a), Dense(robot, s.q, s.v).tau(s.a)) < 1e-12
