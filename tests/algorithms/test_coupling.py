"""Coupled mimic joints against the dense projection by G of the robot with independent ones."""

from __future__ import annotations

import numpy as np
import pytest

import robokit as rk
from robokit.model import Mimic, ModelBuilder, Placement, couple

EXACT = 1e-11


def gripper(base: str = "fixed", chain: bool = True) -> rk.Robot:
    """An arm with two fingers on different branches, a chain of mimics and one that follows a fixed joint."""
    b = ModelBuilder("gripper").link("root", 2.0, inertia=np.eye(3) * 0.1)
    rng = np.random.default_rng(4)

    def part(name, parent, kind, mimic=None, **more):
        A = rng.normal(size=(3, 3)) * 0.1
        b.link(name, 0.5 + rng.random(), rng.normal(size=3) * 0.2, A @ A.T + 0.02 * np.eye(3))
        place = Placement(np.eye(3), rng.normal(size=3) * 0.3)
        b.joint(f"{name}_joint", kind, parent, name, place, rng.normal(size=3), mimic=mimic, **more)

    # A follower before the joint it follows, as half of the real files have it.
    part("left", "root", "prismatic", Mimic("right_joint", -1.5, 0.02), lower=-0.4, upper=0.4, damping=0.3)
    part("arm", "root", "revolute", damping=0.2)
    part("wrist", "arm", "continuous")
    part("right", "wrist", "prismatic", lower=-0.5, upper=0.3, friction=0.1)
    part("tip", "right", "revolute", Mimic("left_joint", 2.0, 0.1) if chain else None)
    part("stop", "wrist", "fixed")
    part("held", "wrist", "revolute", Mimic("stop_joint", 3.0, 0.4))
    part("free", "root", "revolute")
    return b.build(base)


@pytest.fixture(params=["fixed", "floating"])
def pair(request):
    full = gripper(request.param)
    return full, couple(full)


def laws(full: rk.Robot, robot: rk.Robot, q):
    """G and q_full, written down by hand."""
    at = {name: robot.joint(name) for name in robot.joint_names}
    G, qf = np.zeros((full.nv, robot.nv)), full.neutral()
    for name in robot.joint_names:
        G[full.joint(name).v_slice, at[name].v_slice] = np.eye(at[name].v_slice.stop - at[name].v_slice.start)
        qf[full.joint(name).q_slice] = q[at[name].q_slice]
    right, r = q[at["right_joint"].q_slice][0], at["right_joint"].v_slice.start
    for name, m, offset in (("left_joint", -1.5, 0.02), ("tip_joint", -3.0, 0.14), ("held_joint", 0.0, 0.4)):
        joint = full.joint(name)
        G[joint.v_slice.start, r] = m
        qf[joint.q_slice] = m * right + offset
    return G, qf


def state(robot, seed=0):
    rng = np.random.default_rng(seed)
    return robot.random_configuration(rng), *rng.normal(size=(3, robot.nv))


def close(got, expected):
    return np.abs(np.asarray(got) - expected).max() <= EXACT * max(1.0, np.abs(expected).max())


def test_names_and_sizes(pair):
    full, robot = pair
    assert robot.nv == full.nv - 3 and robot.nbodies == full.nbodies
    assert set(full.joint_names) - set(robot.joint_names) == {"left_joint", "tip_joint", "held_joint"}
    joint = robot.joint("tip_joint")
    assert joint.mimic == Mimic("left_joint", 2.0, 0.1) and joint.q_slice == slice(0, 0)
    assert joint.body == full.joint("tip_joint").body
    with pytest.raises(rk.ShapeError, match="follows 'left_joint'"):
        robot.configuration(joints={"tip_joint": 0.1})
    q = robot.configuration(joints={"right_joint": 0.2})
    assert q[robot.joint("right_joint").q_slice] == 0.2


def test_random_configurations_keep_the_followers_limits(pair):
    _, robot = pair
    k = robot.joint("right_joint").q_slice.start
    q = np.array([robot.random_configuration(seed)[k] for seed in range(200)])
    assert (np.abs(-1.5 * q + 0.02) <= 0.4 + 1e-12).all() and np.ptp(q) > 0.3


def test_a_range_that_ends_at_minus_zero():
    """pr2's grippers: 0 to 0.5 and a follower of multiplier -1 with the same limits leave 0 only."""
    b = ModelBuilder("r").link("a").link("b", 1.0, inertia=np.eye(3)).link("c", 1.0, inertia=np.eye(3))
    b.joint("j", "revolute", "a", "b", lower=0.0, upper=0.5)
    b.joint("k", "revolute", "a", "c", lower=0.0, upper=0.5, mimic=Mimic("j", -1.0))
    assert couple(b.build()).random_configuration(0).tolist() == [0.0]


@pytest.mark.slow
def test_everything_is_the_projection_by_G(pair):
    full, robot = pair
    q, v, a, tau = state(robot)
    G, qf = laws(full, robot, q)
    assert np.array_equal(robot.coupling.G, G)
    vf, af = G @ v, G @ a
    push = {"tip": np.array([1.0, -2, 3, 4, 5, -6])}
    H = G.T @ rk.crba(full, qf) @ G
    C = G.T @ rk.bias_forces(full, qf, vf)
    assert close(rk.crba(robot, q), H)
    assert close(rk.crba(robot, q, sparse=True).toarray(), H)
    assert close(rk.bias_forces(robot, q, v), C)
    assert close(rk.gravity_forces(robot, q), G.T @ rk.gravity_forces(full, qf))
    assert close(rk.rnea(robot, q, v, a), G.T @ rk.rnea(full, qf, vf, af))
    assert close(rk.rnea(robot, q, v, a, push), G.T @ rk.rnea(full, qf, vf, af, push))
    expected = np.linalg.solve(H, tau - C)
    for method in ("aba", "crba"):
        assert close(rk.forward_dynamics(robot, q, v, tau, method=method), expected)
    pushed = np.linalg.solve(H, tau - G.T @ rk.bias_forces(full, qf, vf, push))
    assert close(rk.aba(robot, q, v, tau, push), pushed)
    assert close(rk.ltdl(robot, rk.crba(robot, q)).solve(tau), np.linalg.solve(H, tau))
    assert close(rk.centroidal_momentum_matrix(robot, q), rk.centroidal_momentum_matrix(full, qf) @ G)
    assert close(rk.centroidal_momentum(robot, q, v), rk.centroidal_momentum(full, qf, vf))
    assert close(rk.centroidal_momentum_bias(robot, q, v), rk.centroidal_momentum_bias(full, qf, vf))
    assert close(rk.center_of_mass(robot, q), rk.center_of_mass(full, qf))
    assert close(rk.kinetic_energy(robot, q, v), rk.kinetic_energy(full, qf, vf))
    assert close(rk.potential_energy(robot, q), rk.potential_energy(full, qf))
    assert close(rk.forward_kinematics(robot, q).position, rk.forward_kinematics(full, qf).position)


def test_batches_agree_with_single_states(pair):
    _, robot = pair
    rows = [state(robot, seed) for seed in range(3)]
    q, v, _, tau = (np.array(x) for x in zip(*rows, strict=True))
    assert close(rk.aba(robot, q, v, tau), np.array([rk.aba(robot, *x) for x in zip(q, v, tau, strict=True)]))


def test_sparsity_covers_the_filled_factor(pair):
    _, robot = pair
    q = state(robot)[0]
    H, pattern = rk.crba(robot, q), rk.inertia_sparsity(robot)
    assert not np.any(H[~pattern])
    assert np.any(H[pattern]) and not pattern.all()
    assert np.all(np.abs(rk.ltdl(robot, H).L[~pattern]) == 0.0)


def test_a_robot_without_mimics_comes_back():
    robot = rk.load_urdf(rk.find_robot("double_pendulum"), mimic="couple")
    assert robot.coupling is None and couple(robot) is robot
    with pytest.raises(rk.UnknownName, match="couple"):
        rk.load_urdf(rk.find_robot("double_pendulum"), mimic="coupled")


def test_only_joints_with_one_coordinate_can_be_coupled():
    b = ModelBuilder("m").link("a").link("b", 1.0).link("c", 1.0)
    b.joint("ball", "spherical", "a", "b").joint("j", "revolute", "b", "c", mimic=Mimic("ball"))
    with pytest.raises(rk.RobokitError, match="'ball' is spherical"):
        couple(b.build())


def test_massless_follower_is_no_singularity_and_massless_leader_is():
    b = ModelBuilder("m").link("a").link("b", 1.0, inertia=np.eye(3)).link("c")
    b.joint("j", "revolute", "a", "b").joint("k", "revolute", "b", "c", mimic=Mimic("j", 2.0))
    robot = couple(b.build())
    assert rk.aba(robot, [0.1], [0.0], [1.0]) == pytest.approx([1.0])
    b.link("d").joint("l", "revolute", "c", "d")
    with pytest.raises(rk.SingularInertia, match="'l'"):
        rk.aba(couple(b.build()), [0.1, 0], [0.0, 0], [1.0, 0])


def test_passive_motion_keeps_the_energy_and_the_coupling(pair):
    _, robot = pair
    q, v, _, _ = state(robot, 3)
    frictionless = couple(undamped(gripper(robot.base)))
    run = rk.simulate(frictionless, q, v * 0.3, 0.4, 2e-3)
    assert run.summary["energy_balance"] < 1e-6 * run.summary["energy_exchanged"]
    if robot.base == "floating":
        assert run.summary["momentum_balance_linear"] < 1e-9


def undamped(robot):
    from dataclasses import replace

    joints = tuple(replace(j, damping=0.0, friction=0.0, lower=-np.inf, upper=np.inf) for j in robot.joints)
    return replace(robot, joints=joints)


@pytest.mark.parametrize("integrator", ["contact", "midpoint", "rkmk4", "energy_momentum"])
def test_the_followers_limit_stops_the_leader(integrator):
    robot = couple(gripper())
    k = robot.joint("right_joint").v_slice.start
    v = np.zeros(robot.nv)
    v[k] = 2.0
    run = rk.simulate(robot, None, v, 0.5, 1e-3, integrator=integrator, gravity=(0, 0, 0))
    left = -1.5 * run.q[:, k] + 0.02
    # The follower reaches its limit at right = 0.28, before the leader reaches its own at 0.3.
    assert -0.42 < left.min() < -0.39
    assert run.summary["dissipated_by_stops"] > 0.1


def test_one_step_is_the_dense_implicit_one():
    """Half a drift, a kick with the forces at its end, half a drift; the energy is met."""
    full = gripper()
    robot = couple(full)
    q, v, dt = robot.neutral(), np.linspace(-1, 1, robot.nv), 1e-3
    run = rk.simulate(robot, q, v, dt, dt, integrator="contact", gravity=(0, 0, 0))
    zero = full.with_gravity((0, 0, 0))

    def inertia(q):
        G, qf = laws(full, robot, q)
        return G, qf, G.T @ rk.crba(zero, qf) @ G

    middle = q + 0.5 * dt * v
    G, qf, H = inertia(middle)
    b = np.array([j.damping for j in full.joints])
    rub = np.zeros(full.nv)
    rub[full.joint("right_joint").v_slice] = 0.1  # the joint slides: Coulomb's force
    y = v
    for _ in range(20):  # velocity products at the mean velocity
        p = H @ v - dt * G.T @ (rk.bias_forces(zero, qf, G @ (v + y) / 2) + rub * np.sign(G @ y))
        y = np.linalg.solve(H + dt * G.T @ np.diag(b) @ G, p)
    lost = dt * (b * (G @ y) + rub * np.sign(G @ y)) @ G @ (v + y) / 2
    before, after = v @ inertia(q)[2] @ v / 2, y @ inertia(middle + 0.5 * dt * y)[2] @ y / 2
    assert run.q[-1] == pytest.approx(middle + 0.5 * dt * y, abs=1e-12)
    # A settled step is right to 1e-4 of its impulses, which change velocities by 1e-4 here.
    assert run.v[-1] == pytest.approx(y * np.sqrt((before - lost) / after), abs=1e-9)
