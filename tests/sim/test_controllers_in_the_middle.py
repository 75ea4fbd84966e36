"""A controller is called at the middle of the step that it acts in: second order, whatever it depends on."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import sim_models as m
from scipy.integrate import solve_ivp

import robokit as rk

DT = 4e-3


def slider(mass=2.0):
    """A mass on a horizontal guide."""
    b = rk.ModelBuilder("slider").link("rail").link("mass", mass, (0, 0, 0), 0.01 * np.eye(3))
    return b.joint("guide", "prismatic", "rail", "mass", axis=(1, 0, 0)).build()


LAWS = {
    "time": lambda t, x, v: 30.0 * np.sin(7.0 * t),
    "spring": lambda t, x, v: -200.0 * x - 4000.0 * x**3,
    "damper": lambda t, x, v: -200.0 * x - 5.0 * v - 2.0 * v**3,
}


@pytest.mark.parametrize("method", ["rkmk4", "contact"])
@pytest.mark.parametrize("law", LAWS)
def test_forces_of_time_place_and_speed_are_of_second_order(law, method):
    force = LAWS[law]
    exact = solve_ivp(
        lambda t, y: [y[1], force(t, *y) / 2.0], (0, 1.0), [0.1, 0.5], "DOP853", rtol=1e-12, atol=1e-13
    ).y[:, -1]
    errors = []
    for dt in (DT, DT / 2, DT / 4):
        run = rk.simulate(
            slider(), [0.1], [0.5], duration=1.0, dt=dt, integrator=method,
            controller=lambda t, q, v: [force(t, q[0], v[0])],
        )  # fmt: skip
        errors.append(np.abs([run.q[-1, 0], run.v[-1, 0]] - exact).max())
    assert errors[-1] < 2e-4
    assert np.log2(errors[0] / errors[-1]) / 2 == pytest.approx(2.0, abs=0.25)


def test_targets_that_are_functions_and_torques_on_a_base_are_too():
    robot = m.double_pendulum()
    wave = rk.Torque(
        joints=robot.joint_names[:1],
        target=lambda t, q, v: np.array([3.0 * np.sin(9.0 * t) - 2.0 * q[0] - v[0]]),
    )
    ends = [
        rk.simulate(robot, [0.4, 0.1], duration=0.5, dt=DT / 2**k, actuators=wave).q[-1] for k in range(4)
    ]
    steps = [np.abs(a - b).max() for a, b in pairwise(ends)]
    assert np.log2(steps[0] / steps[1]) == pytest.approx(2.0, abs=0.3)
    assert np.log2(steps[1] / steps[2]) == pytest.approx(2.0, abs=0.3)
    body = rk.load_urdf(rk.find_robot("double_pendulum"), base="floating")
    spin = np.array([1.0, 2.0, -1.0, 0.3, 0.1, -0.2, 0.5, -1.0])

    def hold(t, q, v):
        return np.concatenate(
            [np.cos(5 * t) * np.array([0.3, -0.2, 0.1]) - 0.2 * v[:3], -3.0 * q[4:7] - 2.0 * v[3:6], -v[6:]]
        )

    ends = [
        rk.simulate(body, None, spin, duration=0.5, dt=DT / 2**k, gravity=(0, 0, 0), controller=hold).v[-1]
        for k in range(4)
    ]
    steps = [np.abs(a - b).max() for a, b in pairwise(ends)]
    assert np.log2(steps[1] / steps[2]) == pytest.approx(2.0, abs=0.3)


def test_it_is_asked_about_the_middle():
    asked = []

    def controller(t, q, v):
        asked.append((t, q, v))
        return [4.0]

    rk.simulate(slider(), [0.0], [1.0], duration=5 * DT, dt=DT, controller=controller)
    t, x, v = (np.array([each[k] for each in asked]).reshape(-1)[:5] for k in range(3))
    np.testing.assert_allclose(t, (np.arange(5) + 0.5) * DT)
    np.testing.assert_allclose(x, t + 1.0 * t**2, atol=0.3 * DT**2)
    np.testing.assert_allclose(v[2:], 1.0 + 2.0 * t[2:], atol=1e-12)  # from the third step on
    late = []
    sim = rk.Simulation(slider(), dt=DT, controller=lambda t, q, v: late.append(t) or [0.0], control_every=3)
    sim.step(steps=7)
    np.testing.assert_allclose(late, [0.0, 3 * DT, 6 * DT])  # a sampled one


def test_an_impact_does_not_change_what_comes_after_it():
    """A ball that falls and stops: the speed that a damper sees is never beyond those that there are."""
    b = rk.ModelBuilder("post").link("ground").link("mass", 1.0, (0, 0, 0), 0.01 * np.eye(3))
    robot = b.joint("drop", "prismatic", "ground", "mass", axis=(0, 0, 1), lower=0.0, upper=5.0).build()
    seen = []

    def damper(t, q, v):
        seen.append(float(v[0]))
        return [-0.5 * v[0]]

    run = rk.simulate(
        robot, [1.0], duration=1.0, dt=DT, record_every=1, controller=damper, integrator="contact"
    )
    beyond = max(run.v.min() - min(seen), max(seen) - run.v.max())
    assert run.v.min() < -4.0 and beyond < 0.03 * abs(run.v.min())


def test_steps_by_hand_are_those_of_simulate():
    robot, law = m.double_pendulum(), lambda t, q, v: np.sin(20 * t) - 3.0 * q - 0.3 * v
    run = rk.simulate(robot, [0.5, 0.2], duration=50 * DT, dt=DT, controller=law)
    sim, other = (rk.Simulation(robot, [0.5, 0.2], dt=DT) for _ in range(2))
    for k in range(50):
        sim.step(tau=law(*sim.middle))
        if k == 20:
            other.restore(sim.state())
    for _ in range(29):
        other.step(tau=law(*other.middle))
    np.testing.assert_array_equal(sim.q, run.q[-1])
    np.testing.assert_array_equal(other.q, run.q[-1])
