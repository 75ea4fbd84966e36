"""The method that keeps energy and momenta: what is kept, for how long, and what it costs in accuracy."""

import numpy as np
import pytest
import sim_models as m
from ladder import relative

import robokit as rk
from robokit.model import ModelBuilder, Placement, Shape, Sphere

KEPT = 1e-12
METHOD = {"integrator": "energy_momentum"}
WEIGHTLESS = (0.0, 0.0, 0.0)


def tumble(robot, seed=1):
    v = np.random.default_rng(seed).standard_normal(robot.nv)
    v[:3] *= 3.0
    return v


def energy_error(run):
    """Largest change of the balance, relative to the kinetic energy."""
    total = run.energy.total
    return np.abs(total - total[0]).max() / run.energy.kinetic.max()


def momentum_errors(run):
    """Largest changes of the momenta about the centre of mass, relative to them: angular, linear.

    The angular one does not depend on where the base is; near the origin it is computed with fewer roundings.
    """
    here, still = run.q.copy(), run.v.copy()
    here[:, 4:7], still[:, 3:6] = 0.0, 0.0
    k = rk.centroidal_momentum(run.robot, here, still)[:, :3]
    l = run.momentum[:, 3:] - run.t[:, None] * run.robot.total_mass * run.robot.gravity
    return [np.abs(x - x[0]).max() / np.abs(y).max() for x, y in ((k, k), (l, run.momentum[:, 3:]))]


def gimbals(base="fixed"):
    """A disc of 2e-3 kg m^2 in two light gimbals."""
    builder = ModelBuilder("gimbals")
    builder.link("frame", mass=1.0, inertia=np.eye(3) * 1e-2)
    for name in ("outer", "inner"):
        builder.link(name, mass=0.01, inertia=np.eye(3) * 1e-5)
    builder.link("disc", mass=1.0, inertia=np.diag([1.1e-3, 1.1e-3, 2e-3]))
    builder.joint("a", "continuous", "frame", "outer", axis=(1, 0, 0))
    builder.joint("b", "continuous", "outer", "inner", axis=(0, 1, 0))
    builder.joint("c", "continuous", "inner", "disc", axis=(0, 0, 1))
    return builder.build(base)


@pytest.mark.parametrize("start", [(2.0, 0.5), (3.1, -1.0), (0.3, 0.0)])
def test_double_pendulum_keeps_its_energy_to_rounding(start):
    run = rk.simulate(m.without_limits(m.double_pendulum()), start, duration=10.0, **METHOD)
    assert energy_error(run) < KEPT / 10
    assert run.summary["energy_corrected"] > 1e3 * run.summary["energy_balance"]


def test_energy_does_not_wander_in_a_hundred_seconds():
    run = rk.simulate(m.pendulum(), [1.2], duration=100.0, **METHOD)
    assert energy_error(run) < KEPT / 10


@pytest.mark.parametrize("model", [m.free_chain, m.brick, lambda: gimbals("floating")])
def test_tumbling_robots_keep_energy_and_momenta(model):
    keeps_energy_and_momenta(model(), (0.0, 0.0, -m.G))


def keeps_energy_and_momenta(robot, gravity):
    run = rk.simulate(robot, None, tumble(robot), duration=10.0, gravity=gravity, **METHOD)
    assert energy_error(run) < KEPT
    assert max(momentum_errors(run)) < KEPT


@pytest.mark.slow
@pytest.mark.parametrize("weight", [0.0, m.G])
@pytest.mark.parametrize("model", [m.quadruped, m.humanoid, m.free_chain])
def test_tumbling_legged_robots_keep_energy_and_momenta(model, weight):
    keeps_energy_and_momenta(m.without_limits(model()), (0.0, 0.0, -weight))


def test_centre_of_mass_is_on_the_parabola():
    robot = m.free_chain()
    run = rk.simulate(robot, None, tumble(robot), duration=2.0, dt=4e-3, **METHOD)
    p, t = rk.center_of_mass(robot, run.q), run.t[:, None]
    expected = p[0] + t * run.momentum[0, 3:] / robot.total_mass + 0.5 * t**2 * robot.gravity
    assert np.abs(p - expected).max() < 1e-12


@pytest.mark.parametrize("model", [m.brick, m.free_chain])
def test_coarse_steps_keep_what_the_uncorrected_method_loses(model):
    robot = model()
    start = {"q0": None, "v0": 3.0 * tumble(robot), "duration": 4.0, "dt": 8e-3}
    kept, lost = (
        energy_error(rk.simulate(robot, integrator=name, **start)) for name in ("energy_momentum", "rkmk4")
    )
    assert lost > 1e-10
    assert kept < KEPT


@pytest.mark.parametrize(
    "v0", [(0, 0, 0, 0, 0, 0), (0, 0, 3, 0, 0, 0), (0, 8, 1e-7, 0, 0, 0), (0, 0, 0, 1, 2, 3)]
)
def test_rigid_bodies_that_the_correction_cannot_or_need_not_move(v0):
    """At rest, about principal axes (the middle one tips over), in flight without a spin."""
    run = rk.simulate(m.brick(), None, v0, duration=10.0, gravity=WEIGHTLESS, **METHOD)
    assert np.isfinite(run.q).all()
    assert np.abs(run.energy.total - run.energy.total[0]).max() <= KEPT * run.energy.kinetic.max()
    assert np.abs(run.momentum - run.momentum[0]).max() <= KEPT * np.abs(run.momentum).max()


@pytest.mark.parametrize("angle", [0.0, np.pi])
def test_a_robot_at_rest_stays_at_rest(angle):
    run = rk.simulate(m.pendulum(damping=0.1), [angle], duration=5.0, **METHOD)
    assert np.abs(run.v).max() < 1e-12


def test_a_damped_robot_comes_to_rest():
    """The correction does not feed on rounding when there is hardly any kinetic energy left."""
    run = rk.simulate(m.pendulum(damping=2.0), [1.0], duration=30.0, **METHOD)
    assert np.abs(run.v[-1]).max() < 1e-12
    assert energy_error(run) < KEPT


@pytest.mark.parametrize(
    "joint",
    [{"damping": 0.1}, {"friction": 0.3}, {"lower": -1.0, "upper": 1.5}, {"damping": 0.1, "lower": 0.5}],
)
def test_the_ledger_closes_with_joint_forces(joint):
    joint = {"lower": -4.0, "upper": 4.0} | joint
    run = rk.simulate(m.pendulum(**joint), [1.2], duration=10.0, **METHOD)
    assert energy_error(run) < KEPT
    assert run.energy.dissipated[-1] > 1e-3 or "damping" not in joint


def test_the_ledger_closes_with_a_controller_in_flight():
    robot = m.free_chain()

    def controller(t, q, v):
        return np.r_[np.zeros(6), 0.3 * np.sin(3.0 * t + np.arange(robot.nv - 6))]

    run = rk.simulate(robot, None, tumble(robot), duration=1.0, controller=controller, **METHOD)
    assert abs(run.energy.work[-1]) > 0.01
    assert energy_error(run) < KEPT
    assert max(momentum_errors(run)) < KEPT


def test_pushes_give_momentum_and_energy():
    """A push on a link: the ledger closes, and the motion is that of a fine step."""
    robot = m.free_chain()
    push = ("l4", (0.5, -0.2, 0.3, 4.0, 9.0, -3.0), (0.1, 0.0, 0.05), 0.05, 0.2)
    runs = [
        rk.simulate(robot, None, tumble(robot), duration=0.4, dt=dt, integrator=name, pushes=[push])
        for name, dt in (("energy_momentum", 2e-3), ("energy_momentum", 1e-3), ("rkmk4", 1.25e-4))
    ]
    assert runs[0].energy.work[-1] > 0.1
    assert energy_error(runs[0]) < KEPT
    coarse, fine = (np.abs(robot.difference(run.q[-1], runs[2].q[-1])).max() for run in runs[:2])
    assert coarse < 1e-7
    assert fine < coarse / 8.0


def test_a_push_on_a_fixed_robot_closes_the_ledger():
    push = ("bob", (0.0, 0.0, 0.0, 3.0, 0.0, 1.0), (0.0, 0.0, -0.5), 0.05, 0.2)
    run = rk.simulate(m.pendulum(), [0.5], duration=0.5, pushes=[push], **METHOD)
    assert abs(run.energy.work[-1]) > 0.1
    assert energy_error(run) < KEPT


def test_a_run_backwards_returns():
    robot = m.free_chain()
    there = rk.simulate(robot, None, tumble(robot), duration=1.0, **METHOD)
    back = rk.simulate(robot, there.q[-1], -there.v[-1], duration=1.0, **METHOD)
    assert np.abs(robot.difference(there.q[0], back.q[-1])).max() < 1e-9


def test_rows_of_a_rollout_keep_theirs_with_inertias_of_their_own():
    robot = m.free_chain()
    P = robot.inertial_parameters
    scale = np.random.default_rng(0).uniform(0.8, 1.2, (3, len(P), 1))
    many = robot.with_inertias(P * scale)
    v0 = np.stack([tumble(robot, seed) for seed in range(3)])
    rollout = rk.rollout(many, None, v0, steps=500, **METHOD)
    for k in range(3):
        run = rollout.trajectory(k)
        assert np.array_equal(run.q, rollout.q[:, k])
        assert energy_error(run) < KEPT
        assert max(momentum_errors(run)) < KEPT


def test_single_precision():
    robot = m.free_chain()
    v0 = np.stack([tumble(robot, seed) for seed in range(3)])
    rough, fine = (rk.rollout(robot, None, v0, steps=500, dtype=x, **METHOD) for x in ("float32", "float64"))
    assert not len(rough.failed)
    assert np.abs(rough.q - fine.q).max() < 1e-3
    q, v = (x.astype(float).reshape(-1, x.shape[-1]) for x in (rough.q, rough.v))
    E = (rk.kinetic_energy(robot, q, v) + rk.potential_energy(robot, q)).reshape(-1, 3)
    assert np.abs(E - E[0]).max() < 5e-5 * rk.kinetic_energy(robot, q, v).max()


# ---- gyroscopes ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tilt", [0.1, 5.0])
@pytest.mark.parametrize("dt", [1e-3, 4e-3])
@pytest.mark.parametrize("name", ["midpoint", "rkmk4", "energy_momentum"])
def test_velocity_products_make_no_energy(name, dt, tilt):
    """A disc at 100 rad/s nutates with the tilt it was given, and no more."""
    run = rk.simulate(
        gimbals(), [0.3, 0.2, 0.0], [tilt, 0.0, 100.0], duration=4.0, dt=dt, integrator=name, record_every=1
    )
    assert np.abs(run.v[:, :2]).max() < 1.05 * tilt
    assert np.abs(run.q[:, :2]).max() < 0.3 + 0.01 * tilt
    gained = run.energy.total - run.energy.total[0]
    assert gained.max() < 1e-6 * run.energy.kinetic[0]


def creeper():
    """A body with two legs whose joints have friction: what little they move, the step hardly knows."""
    builder = ModelBuilder("creeper")
    sphere = (Shape(Sphere(0.05)),)
    builder.link("body", 6.0, (0.02, 0.01, 0.0), np.diag([0.05, 0.2, 0.22]), collisions=sphere)
    for name, y in (("left", 0.1), ("right", -0.1)):
        builder.link(name, 1.0, (0.01, 0.02, -0.15), np.diag([0.01, 0.012, 0.001]))
        place = Placement(np.eye(3), (0.2, y, 0.0))
        builder.joint(name + "_hip", "revolute", "body", name, place, (1, 1, 0), friction=0.1, damping=0.08)
    return builder.build("floating")


@pytest.mark.parametrize("speed", [1e-12, 1e-9, 1e-6, 1e-4])
def test_a_robot_that_hardly_moves_is_not_turned_in_its_fall(speed):
    """Its base turns no more than its legs make it, small as that is beside the rounding of its weight."""
    robot = creeper()
    q, v = robot.configuration(base_position=(0.3, 0.2, 1.0), joints={"left_hip": 0.3}), np.zeros(robot.nv)
    v[6:] = speed, -0.7 * speed
    run = rk.simulate(robot, q, v, duration=0.2, ground=True)
    moved = robot.difference(q, run.q[-1])
    assert np.abs(moved[:3]).max() < 0.2 * speed
    assert (
        relative(moved[3:6], robot.difference(q, rk.simulate(robot, q, duration=0.2, ground=True).q[-1])[3:6])
        < 1e-4
    )
