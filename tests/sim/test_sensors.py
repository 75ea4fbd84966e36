"""Sensors of a run: closed forms of a pendulum, a box at rest and a ball in free fall."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import sim_models as m

import robokit as rk
from robokit.model import Box, ModelBuilder, Placement, Shape

DT = 1e-3


def tilted_box() -> rk.Robot:
    """A box with an IMU on a bracket: 0.1 m ahead, turned by a right angle about x."""
    builder = ModelBuilder("box").link(
        "box", 1.0, inertia=np.eye(3) * 0.01, collisions=(Shape(Box((0.2,) * 3)),)
    )
    turned = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])
    builder.link("imu").joint("bracket", "fixed", "box", "imu", Placement(turned, np.array([0.1, 0.0, 0.0])))
    return builder.build("floating")


def test_an_imu_at_rest_feels_the_ground_and_in_free_fall_nothing():
    robot = tilted_box()
    q0 = rk.standing_configuration(robot)
    still = rk.simulate(robot, q0, duration=1.0, dt=DT, ground=True).sensors.imu("imu")
    np.testing.assert_allclose(still.specific_force[-1], [0.0, m.G, 0.0], atol=1e-3)  # y of the IMU is up
    falling = rk.simulate(robot, q0, duration=0.1, dt=DT).sensors.imu("imu")
    np.testing.assert_allclose(falling.specific_force, 0.0, atol=1e-9)


def test_an_imu_that_circles_feels_the_centripetal_acceleration():
    robot, rate = tilted_box().with_gravity((0, 0, 0)), 3.0
    v0 = np.array([0.0, 0.0, rate, 0.0, 0.0, 0.0])
    imu = rk.simulate(robot, v0=v0, duration=0.3, dt=DT).sensors.imu("imu")
    np.testing.assert_allclose(
        imu.angular_velocity, np.tile([0.0, rate, 0.0], (len(imu.angular_velocity), 1)), atol=1e-12
    )
    np.testing.assert_allclose(imu.specific_force[:, 0], -rate * rate * 0.1, rtol=1e-4)
    np.testing.assert_allclose(imu.specific_force[:, 1:], 0.0, atol=rate**3 * 0.1 * DT)


def test_axes_of_an_imu_turn_with_it_during_the_step():
    """1 % of a turn a step: the centripetal acceleration points to the centre all the same."""
    robot, rate = tilted_box().with_gravity((0, 0, 0)), 50.0
    imu = rk.simulate(robot, v0=[0, 0, rate, 0, 0, 0], duration=0.05, dt=DT).sensors.imu("imu")
    np.testing.assert_allclose(imu.specific_force[:, 0], -rate * rate * 0.1, rtol=1e-3)
    np.testing.assert_allclose(imu.specific_force[:, 1:], 0.0, atol=1e-9)


def test_the_wrench_under_a_box_carries_its_weight():
    robot = tilted_box()
    run = rk.simulate(robot, rk.standing_configuration(robot), duration=1.0, dt=DT, ground=True)
    wrench = run.sensors.contact_wrench("box")
    np.testing.assert_allclose(wrench[-1], [0, 0, 0, 0, 0, m.G], atol=1e-3)
    np.testing.assert_allclose(run.sensors.contact_wrench("imu"), 0.0)
    # About an origin beside the weight there is a moment: shift the box's frame instead of its points.
    force = run.contact_forces["box"]
    np.testing.assert_allclose(np.linalg.norm(wrench[:, 3:], axis=1), np.linalg.norm(force, axis=1))


def test_a_wrench_is_about_the_links_origin():
    builder = ModelBuilder("post").link("base").link(
        "post", 2.0, com=(0.3, 0.0, 0.0), inertia=np.eye(3) * 0.01,
        collisions=(Shape(Box((0.2,) * 3), Placement(position=np.array([0.3, 0.0, 0.0]))),),
    )  # fmt: skip
    robot = builder.joint("slide", "prismatic", "base", "post", axis=(0, 0, 1)).build("fixed")
    run = rk.simulate(robot, [0.1], duration=1.0, dt=DT, ground=True)
    wrench = run.sensors.contact_wrench("post")[-1]
    weight = 2.0 * m.G
    np.testing.assert_allclose(wrench, [0.0, -0.3 * weight, 0.0, 0.0, 0.0, weight], atol=1e-2)


@pytest.mark.parametrize("integrator", ["rkmk4", "contact"])
def test_forces_in_a_joint_are_those_of_its_parts(integrator):
    robot = m.pendulum(upper=0.4, lower=-2.0, damping=0.2).with_gravity((0, 0, 0))
    given = {"actuators": rk.Torque(target=3.0), "record_every": 1, "integrator": integrator}
    run = rk.simulate(robot, v0=[1.0], duration=1.5, dt=DT, **given)
    parts = run.sensors.joint_force("hinge")
    np.testing.assert_allclose(parts.actuator[:, 0], 3.0)
    free = run.q[1:, 0] < 0.35
    np.testing.assert_allclose(parts.friction[1:, 0][free], -0.2 * run.v[1:, 0][free], atol=0.01)
    assert parts.stop[0, 0] == 0.0 and parts.stop[-1, 0] == pytest.approx(-3.0, abs=1e-3)
    # What acts in the joint is what accelerates it.
    inertia = 0.01 + 0.5**2
    gained = inertia * np.diff(run.v[:, 0])
    np.testing.assert_allclose(gained, DT * parts.total[1:, 0], atol=1e-4)


@pytest.mark.parametrize("integrator", ["contact", "rkmk4", "midpoint", "energy_momentum"])
def test_the_force_in_a_floating_base_is_what_moves_it(integrator):
    """It is what the controller gives, by the laws of Newton and Euler about a principal axis."""
    robot = m.box().with_gravity((0, 0, 0))
    (base,), about_z, z = robot.joints, 0.2**2 / 6, [2, 5]  # a cube of 1 kg
    given = {"controller": lambda t, q, v: np.array([0.0, 0.0, 0.02, 0.0, 0.0, 3.0]) * (1.0 + t)}
    run = rk.simulate(robot, duration=0.2, dt=DT, record_every=1, integrator=integrator, **given)
    parts = run.sensors.joint_force(base.name)
    gained = np.diff(run.v, axis=0)[:, z] * [about_z, 1.0]
    np.testing.assert_allclose(parts.total[1:][:, z], gained / DT, rtol=1e-9)
    np.testing.assert_array_equal(parts.total, parts.actuator)
    assert not np.delete(parts.total, z, axis=1).any()


def test_an_imu_of_a_restored_run_does_not_depend_on_its_notes():
    """Those of a run that is too long are made again; it begins in the middle of another one."""
    q0 = m.box().neutral()
    q0[-1] = 0.3
    sims = [
        rk.Simulation(m.box(), q0, np.array([3.0, 2.0, 1.0, 1.0, 0.0, 0.0]), dt=DT, record_every=10)
        for _ in range(2)
    ]
    sims[0].step(steps=53)
    sims[1].restore(sims[0].state())
    sims[1].step(steps=100)
    run = sims[1].trajectory()
    noted, again = (each.sensors.imu("box").specific_force for each in (run, replace(run, notes=None)))
    assert run.notes is not None and run.marks[0] == 53
    np.testing.assert_array_equal(noted, again)


def test_errors_name_what_there_is(tmp_path):
    run = rk.simulate(m.pendulum(), duration=0.01, dt=DT)
    with pytest.raises(rk.UnknownName, match="hinge"):
        run.sensors.joint_force("hing")
    with pytest.raises(rk.UnknownName, match="bob"):
        run.sensors.imu("bop")
    again = rk.Trajectory.load(run.save(tmp_path / "run"))
    with pytest.raises(rk.RobokitError, match="use them before"):
        _ = again.sensors
