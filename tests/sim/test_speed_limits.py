"""Actuators at their largest speed: full effort up to it, held there, and no push beyond."""

from __future__ import annotations

import numpy as np
import pytest
import sim_models as m

import robokit as rk
from robokit.model import Box, Mimic, ModelBuilder, Placement, Shape, couple

FASTEST, EFFORT, MASS = 0.5, 2.0, 0.5  # of a slider that is at its largest speed after an eighth of a second

REACHED = MASS * FASTEST / EFFORT

LIMITS = {"effort": EFFORT, "max_velocity": FASTEST}

ACTUATORS = {
    "torque": rk.Torque(target=50.0, **LIMITS),
    "torque, its effort": rk.Torque(target=EFFORT, **LIMITS),
    "torque, backward": rk.Torque(target=-50.0, **LIMITS),
    "position": rk.PD(kp=1e4, kd=10.0, target=10.0, **LIMITS),
    "position, backward": rk.PD(kp=1e4, kd=10.0, target=-10.0, **LIMITS),
    "speed": rk.Velocity(gain=1e5, target=FASTEST, **LIMITS),
}


def slider(axis=(1, 0, 0), mass=MASS, limit=FASTEST):
    """A box on a rail 1 m above the ground."""
    builder = ModelBuilder("slider").link("rail")
    builder.link("box", mass, inertia=np.eye(3) * 1e-3, collisions=(Shape(Box((0.1,) * 3)),))
    place = Placement(position=np.array([0.0, 0.0, 1.0]))
    builder.joint("slide", "prismatic", "rail", "box", place, axis, velocity=limit, effort=EFFORT)
    return builder.build("fixed")


def reached(run, d=1.0, short=1e-6):
    """Time of the first record at the largest speed, less a share of it; it is held to the end."""
    full = d * run.v[:, 0] > FASTEST * (1.0 - short)
    first = int(np.argmax(full))
    assert full[first:].all() and full.any()
    assert d * run.v[:, 0].max() <= FASTEST * (1.0 + 1e-9)
    return run.t[first]


@pytest.mark.parametrize("name", ACTUATORS)
@pytest.mark.parametrize("dt", [5e-4, 1e-3, 2e-3, 4e-3])
def test_full_effort_up_to_the_largest_speed(name, dt):
    actuator, d = ACTUATORS[name], -1.0 if "backward" in name else 1.0
    options = {"dt": dt, "actuators": actuator, "joint_damping": 0.0, "record_every": 1}
    run = rk.simulate(slider(), duration=0.4, **options)
    assert abs(reached(run, d) - REACHED) <= 1.001 * dt
    assert run.v[-1, 0] == pytest.approx(d * FASTEST, rel=1e-12)
    assert run.actuator_force[run.t < REACHED - dt][1:] == pytest.approx(d * EFFORT, rel=1e-12)
    assert abs(run.actuator_force[run.t > REACHED + 2.0 * dt]).max() < 1e-9 * EFFORT
    assert run.summary["energy_balance"] < 1e-12


@pytest.mark.parametrize("options", [{}, {"ground": True}, {"integrator": "midpoint"}])
def test_every_way_to_step_holds_it(options):
    options = {"dt": 1e-3, "actuators": ACTUATORS["position"], "joint_damping": 0.0, **options}
    run = rk.simulate(slider(), [0.0], duration=0.4, record_every=1, gravity=(0, 0, 0), **options)
    assert abs(reached(run) - REACHED) <= 1.001e-3
    assert run.v[-1, 0] == pytest.approx(FASTEST, rel=1e-12)


@pytest.mark.parametrize("dtype, error", [("float64", 1e-12), ("float32", 2e-5)])
def test_rollouts_hold_it(dtype, error):
    targets = np.array([[50.0], [-50.0], [EFFORT], [0.5 * EFFORT]])
    actuators = rk.Torque(target=targets, **LIMITS)
    options = {"dt": 1e-3, "actuators": actuators, "joint_damping": 0.0, "dtype": dtype, "record_every": 1}
    run = rk.rollout(slider(), np.zeros((4, 1)), steps=400, **options)
    speeds = run.v[:, :, 0].astype(float)
    for row, d in enumerate([1.0, -1.0, 1.0, 1.0]):
        first = run.t[int(np.argmax(d * speeds[:, row] > FASTEST * (1.0 - 1e-4)))]
        assert first == pytest.approx(REACHED * (2.0 if row == 3 else 1.0), abs=1.001e-3)
        assert speeds[-1, row] == pytest.approx(d * FASTEST, rel=error)
    assert np.abs(run.energy_balance).max() < max(error, 1e-12) * 0.5 * MASS * FASTEST**2


@pytest.mark.parametrize("dt", [1e-3, 4e-3])
def test_a_load_is_lifted_at_the_largest_speed(dt):
    weight = 2.0 * m.G
    lift = rk.Torque(target=500.0, effort=1.5 * weight, max_velocity=FASTEST)
    options = {"dt": dt, "actuators": lift, "joint_damping": 0.0, "record_every": 1}
    run = rk.simulate(slider((0, 0, 1), 2.0), duration=0.4, **options)
    assert abs(reached(run, short=2e-3) - FASTEST / (0.5 * m.G)) <= 1.001 * dt
    assert run.v[-1, 0] == pytest.approx(FASTEST, rel=1e-6) and run.v[-1, 0] <= FASTEST
    assert run.actuator_force[-1, 0] == pytest.approx(weight, rel=1e-6)


@pytest.mark.parametrize("dt", [1e-3, 4e-3])
@pytest.mark.parametrize("effort", [1.0, 200.0])
def test_what_falls_faster_is_neither_pushed_nor_braked(dt, effort):
    drop = rk.Torque(target=-500.0, effort=effort, max_velocity=FASTEST)
    options = {"dt": dt, "actuators": drop, "joint_damping": 0.0, "record_every": 1}
    run = rk.simulate(slider((0, 0, 1), 2.0), duration=0.4, **options)
    late = run.t > FASTEST / m.G + 2.0 * dt
    assert (run.actuator_force[late] == 0.0).all()
    assert np.diff(run.v[late, 0]) == pytest.approx(-m.G * dt, rel=1e-9)


def test_a_push_from_behind_is_not_braked():
    """At the largest speed, what is hit from behind goes on faster; a servo brings it back by its law."""
    push = rk.Push("box", (5.0, 0, 0), start=0.3, duration=0.1)
    options = {"joint_damping": 0.0, "record_every": 1, "pushes": [push]}
    run = rk.simulate(slider(), duration=0.5, actuators=ACTUATORS["torque"], **options)
    assert run.v[-1, 0] == pytest.approx(FASTEST + 5.0 * 0.1 / MASS, rel=1e-9)
    assert (run.actuator_force[run.t > 0.3005] == 0.0).all()
    held = rk.simulate(slider(), duration=0.7, actuators=ACTUATORS["speed"], **options)
    assert held.v[-1, 0] == pytest.approx(FASTEST, rel=1e-6)
    assert held.actuator_force.min() == pytest.approx(-EFFORT)


def arm(seed, joints=3):
    """Links of different masses, joints about different axes, each with the limits of the first."""
    rng = np.random.default_rng(seed)
    builder, length = ModelBuilder("arm").link("base"), 0.0
    for k in range(joints):
        mass, above, at = 10.0 ** rng.uniform(-0.5, 0.5), "base" if k == 0 else f"link_{k - 1}", length
        length = rng.uniform(0.2, 0.6)
        inertia = np.diag([1e-3, *[mass * length**2 / 12.0 + 1e-3] * 2])
        builder.link(f"link_{k}", mass, com=(0.5 * length, 0, 0), inertia=inertia)
        axis = rng.normal(size=3) if k % 2 else np.array([0.0, 1.0, 0.0])
        place = Placement(position=np.array([at, 0.0, 0.0]))
        builder.joint(f"joint_{k}", "continuous", above, f"link_{k}", place, axis / np.linalg.norm(axis))
    return builder.build("fixed")


@pytest.mark.parametrize("seed", [0, 1, 3])
@pytest.mark.parametrize("dt", [1e-3, 4e-3])
def test_motors_of_a_chain_at_their_largest_speeds(seed, dt):
    """Each limit is respected while the others pull, and the motion is that of small steps."""
    targets = np.where(np.random.default_rng(seed).random(3) < 0.5, -1.0, 1.0) * 60.0
    drives = rk.Torque(target=targets, effort=5.0, max_velocity=2.0)
    options = {"actuators": drives, "joint_damping": 0.0, "gravity": (0, 0, 0)}
    run = rk.simulate(arm(seed), duration=0.4, dt=dt, record_every=1, **options)
    fine = rk.simulate(arm(seed), duration=0.4, dt=1e-4, record_every=round(dt / 1e-4), **options)
    assert np.abs(run.q - fine.q).max() < 4.0 * dt
    pushes = np.abs(run.v[run.actuator_force * run.v > 1e-3])
    # What keeps the energy of a step changes its speeds by as much as the square of the step.
    assert pushes.max() <= 2.0 * (1.0 + 40.0 * dt * dt)
    assert np.abs(run.actuator_force).max() <= 5.0 * 1.001


def test_a_joint_that_others_follow_is_held_with_them():
    builder = ModelBuilder("hand").link("palm")
    for name in ("left", "right"):
        builder.link(name, MASS, inertia=np.eye(3) * 1e-3)
        mimic = Mimic("left_slide", -3.0, 0.0) if name == "right" else None
        builder.joint(f"{name}_slide", "prismatic", "palm", name, axis=(1, 0, 0), mimic=mimic)
    robot = couple(builder.build("fixed"))
    drive = rk.Torque(joints=["left_slide"], target=50.0, **LIMITS)
    run = rk.simulate(robot, duration=1.5, actuators=drive, joint_damping=0.0, record_every=1)
    assert abs(reached(run) - REACHED * 10.0) <= 1.001e-3
    assert run.v[-1, 0] == pytest.approx(FASTEST, rel=1e-12)


def test_a_limit_of_speed_alone():
    """Without a limit of effort a joint is there at once, and stays."""
    drive = rk.Torque(target=1e3, effort=np.inf, max_velocity=FASTEST)
    run = rk.simulate(slider(), duration=0.1, actuators=drive, joint_damping=0.0, record_every=1)
    assert run.v[1:, 0] == pytest.approx(FASTEST, rel=1e-12)


def test_the_events_say_when_it_is_reached():
    """A force below the limit of effort meets a limit only when the largest speed is reached."""
    drive = rk.Torque(target=0.5 * EFFORT, **LIMITS)
    run = rk.simulate(slider(), duration=0.5, actuators=drive, joint_damping=0.0)
    (event,) = [event for event in run.events if event.kind == "saturation"]
    assert event.time == pytest.approx(2.0 * REACHED, abs=2e-3)
    assert run.summary["saturated"]["slide"] == pytest.approx(0.5, abs=4e-3)
