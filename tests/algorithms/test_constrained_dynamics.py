"""Operational space, constrained dynamics and impacts against dense systems; their laws."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import ladder
import numpy as np
import pytest
from ladder import State, follower, relative
from loop_robots import parallelogram

import robokit as rk
from robokit.model import couple

PLAIN = {"engine": "python"}


def held(robot):
    """A pose and a point of two links, far from each other."""
    first, last = robot.link_names[3], robot.link_names[-1]
    return (rk.Contact(last, (0.1, -0.2, 0.3), "pose"), rk.Contact(first, (0.2, 0.1, 0.0)))


def dense(robot, s, contacts, **how):
    """H, C, J and J' v, each by an algorithm of its own."""
    rows, product = [], []
    for c in contacts:
        own = slice(0 if c.kind == "pose" else 3, 6)
        rows.append(rk.link_jacobian(robot, s.q, c.link, at=c.at, **how)[own])
        zero = np.zeros(robot.nv)
        a = rk.link_acceleration(robot, s.q, s.v, zero, c.link, at=c.at, classical=True, **how)
        product.append(a[own])
    H, C = rk.crba(robot, s.q, **how), rk.bias_forces(robot, s.q, s.v, **how)
    return SimpleNamespace(H=H, C=C, J=np.concatenate(rows), product=np.concatenate(product))


def branched(base="floating"):
    """A robot whose two held links have branches of their own."""
    b = rk.ModelBuilder("branched")
    rng = np.random.default_rng(8)
    parents = [0, 1, 2, 0, 4, 5, 6]
    kinds = ["spherical", "revolute", "prismatic", "revolute", "planar", "revolute", "spherical"]
    b.link("l0", 3.0, (0.1, 0, 0), ladder.inertia(rng, 3.0))
    for k, (p, kind) in enumerate(zip(parents, kinds, strict=True), 1):
        b.link(f"l{k}", 1.0 + 0.2 * k, rng.standard_normal(3) * 0.1, ladder.inertia(rng))
        place = rk.Placement(ladder.rotation(rng), rng.standard_normal(3) * 0.3)
        b.joint(f"j{k}", kind, f"l{p}", f"l{k}", place, rng.standard_normal(3))
    return b.build(base)


ROBOTS = {
    "floating": lambda: branched(),
    "fixed": lambda: branched("fixed"),
    "coupled": lambda: couple(follower("floating")),
}


@pytest.mark.parametrize("kind", ROBOTS)
def test_operational_space_inertia_is_the_inverse_of_the_mobility(kind):
    robot = ROBOTS[kind]()
    s, frames = State(robot), held(robot)[: 1 if kind == "coupled" else 2]
    Lambda, mobility, Jbar = rk.operational_space_inertia(robot, s.q, frames, **PLAIN)
    d = dense(robot, s, frames, **PLAIN)
    one = np.eye(len(d.J))
    assert relative(mobility, d.J @ np.linalg.solve(d.H, d.J.T)) < 1e-11
    assert relative(Lambda @ mobility, one) < 1e-10 and relative(d.J @ Jbar, one) < 1e-10
    assert (Lambda == Lambda.T).all()
    # Forces in the null space of Jbar^T move no frame.
    tau = s.tau - d.J.T @ (Jbar.T @ s.tau)
    assert relative(d.J @ np.linalg.solve(d.H, tau), np.zeros(len(one))) < 1e-10


def test_damping_bounds_the_inertia_of_what_cannot_move():
    robot = ladder.pendulum()
    q, frame = np.array([0.3]), [("rod", (0, 0, -1.0), "position")]
    with pytest.raises(rk.ShapeError, match=r"inertias are not finite: .* give a damping"):
        rk.operational_space_inertia(robot, q, frame, **PLAIN)
    Lambda, mobility, _ = rk.operational_space_inertia(robot, q, frame, 1e-6, **PLAIN)
    assert np.linalg.matrix_rank(mobility, tol=1e-12) == 1
    values = np.linalg.eigvalsh(Lambda)
    H = rk.crba(robot, q)[0, 0]
    assert values[0] == pytest.approx(H, rel=1e-5) and values[1:] == pytest.approx(3e6 * H, rel=1e-3)


@pytest.mark.parametrize("kind", ROBOTS)
def test_accelerations_and_forces_solve_the_dense_system(kind):
    robot = ROBOTS[kind]()
    s, contacts = State(robot), held(robot)[: 1 if kind == "coupled" else 2]
    d = dense(robot, s, contacts, **PLAIN)
    n, m = robot.nv, len(d.J)
    KKT = np.block([[d.H, -d.J.T], [d.J, np.zeros((m, m))]])
    expected = np.linalg.solve(KKT, np.concatenate([s.tau - d.C, -d.product]))
    a, forces = rk.constrained_dynamics(robot, s.q, s.v, s.tau, contacts, **PLAIN)
    assert relative(a, expected[:n]) < 1e-9 and relative(forces, expected[n:]) < 1e-9
    stabilised, _ = rk.constrained_dynamics(robot, s.q, s.v, s.tau, contacts, (50.0, 7.0), **PLAIN)
    assert relative(d.J @ stabilised + d.product, -7.0 * d.J @ s.v) < 1e-9


@pytest.mark.parametrize("e", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("kind", ["floating", "coupled"])
def test_an_impact_turns_the_velocity_and_keeps_the_books(kind, e):
    robot = ROBOTS[kind]()
    s, contacts = State(robot), held(robot)[:1]
    v, impulses = rk.impact(robot, s.q, s.v, contacts, e, **PLAIN)
    d = dense(robot, s, contacts, **PLAIN)
    assert relative(d.J @ v, -e * d.J @ s.v) < 1e-10
    assert relative(d.H @ (v - s.v), d.J.T @ impulses) < 1e-10
    lost = 0.5 * s.v @ d.H @ s.v - 0.5 * v @ d.H @ v
    change = 0.5 * (v - s.v) @ d.H @ (v - s.v)
    assert lost == pytest.approx((1.0 - e) / (1.0 + e) * change, rel=1e-8, abs=1e-9)
    # The momentum about the world's origin changes by the impulse at the contact.
    R, p = rk.forward_kinematics(robot, s.q, **PLAIN)[contacts[0].link]
    at, G = p + R @ contacts[0].at, rk.center_of_mass(robot, s.q, **PLAIN)
    A = rk.centroidal_momentum_matrix(robot, s.q, **PLAIN)
    moment = impulses[:3] + np.cross(at - G, impulses[3:])
    assert relative(A @ (v - s.v), np.concatenate([moment, impulses[3:]])) < 1e-9


@pytest.mark.parametrize("engine", [None, "python"])
def test_each_state_of_a_batch_has_its_own_restitution_and_damping(engine):
    robot = ROBOTS["floating"]()
    contacts = held(robot)
    states = [State(robot, seed) for seed in range(3)]
    q, v = (np.array([getattr(s, name) for s in states]) for name in "qv")
    shares = [0.0, 0.5, 1.0]
    one = [rk.impact(robot, *x, contacts, e) for *x, e in zip(q, v, shares, strict=True)]
    spaces = [
        rk.operational_space_inertia(robot, x, contacts, e + 1e-6) for x, e in zip(q, shares, strict=True)
    ]
    for each in (shares, np.array(shares), np.array(shares)[:, None], tuple(shares)):
        for got, wanted in zip(
            rk.impact(robot, q, v, contacts, each, engine=engine), zip(*one, strict=True), strict=True
        ):
            assert relative(got, np.array(wanted)) < 1e-10
        found = rk.operational_space_inertia(robot, q, contacts, np.add(each, 1e-6), engine=engine)
        assert relative(found.inertia, np.array([s.inertia for s in spaces])) < 1e-10
        a, _ = rk.constrained_dynamics(robot, q, v, v, contacts, proximal=np.add(each, 1e-8), engine=engine)
        assert a.shape == v.shape
    for wrong in (np.ones((3, 2)), np.ones((1, 3)), np.ones((3, 1, 1))):
        with pytest.raises(
            rk.ShapeError, match=r"restitution: .* one number for each state, \(\), \(B,\) or \(B, 1\)"
        ):
            rk.impact(robot, q, v, contacts, wrong)
    with pytest.raises(rk.ShapeError, match="restitution: expected a batch of 3 like v, got 2"):
        rk.impact(robot, q, v, contacts, [0.0, 1.0])


def test_four_corners_of_a_foot_share_the_load_of_one_pose():
    robot = branched()
    s, link = State(robot), robot.link_names[-1]
    corners = [rk.Contact(link, (x, y, -0.05)) for x in (-0.1, 0.1) for y in (-0.04, 0.04)]
    v = np.zeros(robot.nv)  # a turning foot has no four corners at rest
    a, forces = rk.constrained_dynamics(robot, s.q, v, s.tau, corners, **PLAIN)
    still, wrench = rk.constrained_dynamics(robot, s.q, v, s.tau, [(link, (0, 0, -0.05), "pose")], **PLAIN)
    assert relative(a, still) < 1e-6
    assert relative(forces.reshape(4, 3).sum(axis=0), wrench[3:]) < 1e-6


@pytest.mark.parametrize("rate", [1e-3, 0.1, 3.0])
def test_what_contradicting_constraints_ask_for_in_vain_is_no_force(rate):
    # The corners of a foot that turns accelerate towards one another, which no force can stop.
    robot = branched()
    s, link = State(robot), robot.link_names[-1]
    corners = [rk.Contact(link, (x, y, -0.05)) for x in (-0.1, 0.1) for y in (-0.04, 0.04)]
    v = rate * s.v
    d = dense(robot, SimpleNamespace(q=s.q, v=v), corners, **PLAIN)
    a, forces = rk.constrained_dynamics(robot, s.q, v, s.tau, corners, **PLAIN)
    free = np.linalg.solve(d.H, s.tau - d.C)
    mobility = d.J @ np.linalg.solve(d.H, d.J.T)
    root = np.sqrt(np.repeat(np.diag(mobility).reshape(4, 3).mean(axis=1), 3))  # of each corner's mobility
    scaled = mobility / np.outer(root, root)
    least = np.linalg.pinv(scaled, rcond=1e-9) @ (-(d.J @ free + d.product) / root) / root
    assert relative(forces, least) < 1e-5
    assert relative(d.H @ a + d.C, s.tau + d.J.T @ forces) < 1e-12


def test_constraints_that_repeat_each_other_need_their_proximal_share():
    robot = branched()
    s, twice = State(robot), [rk.Contact(robot.link_names[-1], (0.1, 0.2, 0.3))] * 2
    with pytest.raises(rk.ShapeError, match=r"not finite: .* proximal is too small for"):
        rk.constrained_dynamics(robot, s.q, s.v, s.tau, twice, proximal=0.0, **PLAIN)


@pytest.mark.parametrize("engine", ["python", "llvm"])
def test_frames_that_say_the_same_twice_have_no_inertia_without_damping(engine):
    # The pivots are not zero, but what rounding leaves of it.
    robot = branched()
    q, frames = State(robot).q, [robot.link_names[-1]] * 2
    with pytest.raises(rk.ShapeError, match=r"inertias are not finite: .* give a damping"):
        rk.operational_space_inertia(robot, q, frames, engine=engine)
    Lambda = rk.operational_space_inertia(robot, q, frames, 1e-6, engine=engine).inertia
    one = rk.operational_space_inertia(robot, q, frames[:1], engine=engine).inertia
    assert relative(Lambda.reshape(2, 6, 2, 6).sum(axis=(0, 2)), one) < 1e-4


def test_loop_joints_alone_and_beside_contacts():
    robot = parallelogram()
    angle, rate = 0.4, 1.5
    q, v = np.array([angle, -angle, angle, angle]), np.array([rate, -rate, rate, rate])
    a, forces = rk.constrained_dynamics(robot, q, v, np.zeros(4), **PLAIN)
    inertia = 3 * (0.02 + 1.0 * 0.25**2) + 2.0 * 0.5**2
    moment = (3 * 1.0 * 0.25 + 2.0 * 0.5) * 9.81 * np.sin(angle)
    assert relative(a, moment / inertia * np.array([1, -1, 1, 1])) < 1e-9 and forces.shape == (10,)
    both = ["loop1", rk.Contact("beam")]
    stopped, forces = rk.constrained_dynamics(robot, q, np.zeros(4), np.zeros(4), both, **PLAIN)
    assert relative(stopped[:3], np.zeros(3)) < 1e-9 and forces.shape == (8,)
    open_by = q + np.array([0.0, 1e-3, 0, 0])
    pulled, _ = rk.constrained_dynamics(robot, open_by, np.zeros(4), np.zeros(4), None, (100.0, 0.0), **PLAIN)
    free, _ = rk.constrained_dynamics(robot, open_by, np.zeros(4), np.zeros(4), **PLAIN)
    assert pulled[1] < free[1] - 0.01


def test_machine_code_batches_and_single_precision_compute_the_text():
    robot = ladder.chain(2, "floating")
    states = [State(robot, k) for k in range(3)]
    q, v, tau = (np.array([getattr(s, x) for s in states]) for x in ("q", "v", "tau"))
    contacts = (rk.Contact("link2", (0.1, 0.2, -0.1)),)
    calls = {
        "constrained": lambda q, v, tau, **how: rk.constrained_dynamics(robot, q, v, tau, contacts, **how),
        "impact": lambda q, v, tau, **how: rk.impact(robot, q, v, contacts, 0.5, **how),
        "space": lambda q, v, tau, **how: rk.operational_space_inertia(robot, q, contacts, 0.01, **how),
    }
    for call in calls.values():
        expected = call(q, v, tau, **PLAIN)
        for x, y in zip(call(q[1], v[1], tau[1]), expected, strict=True):
            assert relative(x, y[1]) < 1e-11
        outs = [np.empty_like(x) for x in expected]
        assert all(x is out for x, out in zip(call(q, v, tau, out=outs), outs, strict=True))
        for x, y in zip(outs, expected, strict=True):
            assert relative(x, y) < 1e-11
        for x, y in zip(call(q, v, tau, dtype="float32"), expected, strict=True):
            assert x.dtype == np.float32 and relative(x, y) < 1e-2


def test_a_loop_that_moved_is_another_kernel():
    # The fingerprint of a robot knows nothing of its loops: their key must.
    first, second = parallelogram(2), parallelogram(2)
    loop = second.loop_joints[0]
    moved = rk.Placement(position=loop.predecessor_placement.position + np.array([0.1, 0.0, 0.0]))
    second = replace(second, loop_joints=(replace(loop, predecessor_placement=moved),))
    assert first.fingerprint == second.fingerprint
    zero = np.array([0.2, 0.1, 0.0])
    forces = [rk.constrained_dynamics(r, zero, zero, zero, None, (10.0, 0.0))[1] for r in (first, second)]
    assert relative(forces[0], forces[1]) > 1e-3


def test_samples_of_inertias_each_have_their_own_answer():
    robot = ladder.chain(4, "floating")
    varied = robot.with_inertias(robot.inertial_parameters * np.array([1.0, 2.0])[:, None, None])
    s, contact = State(robot), [rk.Contact(robot.link_names[-1])]
    forces = rk.constrained_dynamics(varied, s.q, s.v, np.zeros(robot.nv), contact, **PLAIN)[1]
    assert relative(forces[1], 2.0 * forces[0]) < 1e-9


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ([], rk.ShapeError, "^constraints: expected at least one, got none"),
        ("loop", rk.WrongType, "^constraints: expected a list of constraints, got str"),
        (["rod"], rk.UnknownName, r"no loop joint named 'rod'; .*\(a link is held by a Contact\)"),
        ([rk.Contact("rot")], rk.UnknownName, "no link named 'rot'; did you mean 'rod'"),
        ([3], rk.WrongType, r"^constraints\[0\]: expected the name of a link, a Contact or"),
        (None, rk.ShapeError, "^constraints: expected at least one"),
    ],
)
def test_wrong_constraints_are_named(given, error, message):
    with pytest.raises(error, match=message):
        rk.constrained_dynamics(ladder.pendulum(), [0.0], [0.0], [0.0], given)


def test_wrong_contacts_and_numbers_are_named():
    robot, rod = ladder.pendulum(), [rk.Contact("rod")]
    with pytest.raises(rk.UnknownName, match="no kind of contact named 'point'"):
        rk.Contact("rod", kind="point")
    with pytest.raises(rk.ModelError, match=r"^at: expected finite numbers"):
        rk.Contact("rod", (0, 0, np.nan))
    for e in (-0.1, 1.1, np.nan):
        with pytest.raises(rk.ShapeError, match=r"^restitution: expected numbers from 0 to 1, got"):
            rk.impact(robot, [0.0], [0.0], rod, e)
    with pytest.raises(rk.ShapeError, match=r"^damping: expected numbers >= 0, got -1"):
        rk.operational_space_inertia(robot, [0.0], ["rod"], -1)
    with pytest.raises(rk.ShapeError, match=r"^stabilisation"):
        rk.constrained_dynamics(robot, [0.0], [0.0], [0.0], rod, (1.0,))
    with pytest.raises(rk.ShapeError, match=r"^stabilisation: expected kp, kd >= 0, .* got -2"):
        rk.constrained_dynamics(robot, [0.0], [0.0], [0.0], rod, (1.0, -2.0))
    with pytest.raises(
        rk.ShapeError, match=r"not finite: .* proximal is too small for constraints that repeat"
    ):
        rk.constrained_dynamics(robot, [0.3], [0.0], [0.0], 2 * rod, proximal=0.0, **PLAIN)


@pytest.mark.parametrize("kind", ROBOTS)
def test_external_forces_act_beside_those_of_the_constraints(kind):
    robot = ROBOTS[kind]()
    s, contacts = State(robot), held(robot)[: 1 if kind == "coupled" else 2]
    d = dense(robot, s, contacts, **PLAIN)
    rng = np.random.default_rng(4)
    forces = {name: rng.standard_normal(6) for name in robot.link_names[2:5]}
    a, force = rk.constrained_dynamics(robot, s.q, s.v, s.tau, contacts, f_ext=forces, **PLAIN)
    C = rk.bias_forces(robot, s.q, s.v, forces, **PLAIN)
    assert relative(d.H @ a + C, s.tau + d.J.T @ force) < 1e-9
    assert relative(d.J @ a, -d.product) < 1e-6
