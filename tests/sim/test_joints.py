"""Damping, dry friction and stops of joints, and controllers."""

import math

import numpy as np
import pytest
import sim_models as m

import robokit as rk

INERTIA = 1.0 * 0.5**2 + 0.01


@pytest.mark.parametrize("name", ["euler", "rkmk4"])
def test_limit_holds(name):
    robot = m.pendulum(lower=-1.0, upper=0.5)
    trajectory = rk.simulate(robot, [-0.9], [4.0], duration=3.0, integrator=name, record_every=1)
    assert trajectory.q.max() < 0.5 + 0.02
    assert trajectory.summary["dissipated_by_stops"] > 0.1
    assert trajectory.energy.mechanical.max() < trajectory.energy.mechanical[0] + 0.03
    assert trajectory.summary["energy_balance"] < 0.05


@pytest.mark.parametrize("name", ["euler", "midpoint", "rkmk4"])
def test_a_stop_carries_a_static_load(name):
    """Gravity pushes the pendulum onto its stop and leaves it there."""
    robot = m.pendulum(lower=0.4, upper=1.0)
    trajectory = rk.simulate(robot, [0.6], duration=3.0, integrator=name)
    assert trajectory.q[-1, 0] == pytest.approx(0.4, abs=0.01)
    assert abs(trajectory.v[-1, 0]) < 1e-6


def test_continuous_joint_has_no_stop():
    robot = m.pendulum(kind="continuous")
    trajectory = rk.simulate(robot, [0.0], [20.0], duration=1.0)
    assert trajectory.q[-1, 0] > 2 * math.pi


@pytest.mark.parametrize("name", ["euler", "midpoint", "rkmk4"])
def test_damping_decays_as_theory(name):
    robot = m.pendulum(kind="continuous", damping=0.2)
    trajectory = rk.simulate(robot, None, [1.0], duration=1.0, gravity=(0, 0, 0), integrator=name)
    assert trajectory.v[:, 0] == pytest.approx(np.exp(-0.2 / INERTIA * trajectory.t), rel=1e-3)
    assert trajectory.energy.dissipated[-1] == pytest.approx(
        trajectory.energy.kinetic[0] - trajectory.energy.kinetic[-1], abs=1e-9
    )


@pytest.mark.parametrize("name", ["euler", "rkmk4"])
def test_dry_friction_holds_and_brakes(name):
    holding = m.pendulum(kind="continuous", friction=3.0)
    trajectory = rk.simulate(holding, [0.5], duration=1.0, integrator=name)
    torque = m.G * 0.5 * math.sin(trajectory.q[-1, 0])
    creep = 0.01 * torque / math.sqrt(3.0**2 - torque**2)
    assert abs(trajectory.v[-1, 0]) == pytest.approx(creep, rel=0.01)
    sliding = rk.simulate(holding, None, [5.0], duration=0.2, gravity=(0, 0, 0), integrator=name)
    assert sliding.v[-1, 0] == pytest.approx(5.0 - 3.0 / INERTIA * 0.2, rel=1e-3)


def test_stiff_friction_is_stable():
    robot = m.pendulum(kind="continuous", damping=1e4, friction=1e3)
    trajectory = rk.simulate(robot, [0.5], [3.0], duration=0.5, dt=5e-3)
    assert abs(trajectory.v[-1, 0]) < 1e-3


def test_falls_assume_some_damping_and_say_so():
    robot = m.free_chain()
    q = rk.standing_configuration(robot, height=0.5)
    trajectory = rk.simulate(robot, q, duration=0.05, ground=rk.Ground())
    assert trajectory.summary["default_damping"] == 0.1
    assert trajectory.summary["default_damping_joints"] == 4
    assert any("damping" in line for line in trajectory.report())
    assert "default_damping" not in rk.simulate(robot, q, duration=0.05).summary
    none = rk.simulate(robot, q, duration=0.05, ground=rk.Ground(), joint_damping=0.0)
    assert "default_damping" not in none.summary


def test_controller_holds_and_its_work_is_booked():
    robot = m.double_pendulum()
    target = np.array([0.4, -0.3])

    def hold(t, q, v):
        return rk.gravity_forces(robot, q) + 40.0 * (target - q) - 8.0 * v

    trajectory = rk.simulate(robot, duration=2.0, controller=hold)
    assert trajectory.q[-1] == pytest.approx(target, abs=1e-3)
    assert trajectory.tau.shape == trajectory.v.shape
    gained = trajectory.energy.mechanical[-1] - trajectory.energy.mechanical[0]
    assert trajectory.energy.work[-1] == pytest.approx(gained, abs=1e-6)
    assert trajectory.summary["energy_balance"] < 1e-6


@pytest.mark.parametrize("bad", [np.zeros(3), [math.nan, 0.0], "no"])
def test_controller_of_a_wrong_shape(bad):
    with pytest.raises(rk.ShapeError, match="controller"):
        rk.simulate(m.double_pendulum(), duration=0.1, controller=lambda t, q, v: bad)
