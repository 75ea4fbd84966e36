"""Friction where things move: on turntables, in oblique impacts, in corners."""

import math

import numpy as np
import pytest
import sim_models as m

import robokit as rk
from robokit.model import Box, ModelBuilder, Shape


@pytest.fixture(scope="module")
def plate() -> rk.Robot:
    """A flat box of 4 cm and 0.1 kg."""
    size = np.array([0.04, 0.04, 0.02])
    inertia = np.diag((size @ size - size**2) * 0.1 / 12.0)
    builder = ModelBuilder("plate")
    builder.link("plate", mass=0.1, inertia=inertia, collisions=(Shape(Box(tuple(size))),))
    return builder.build("floating")


@pytest.mark.parametrize("dt", [1e-3, 4e-3])
def test_a_box_rides_on_a_turntable_up_to_its_cone(plate, dt):
    """At 0.9 of what friction holds it stays on its circle; at 1.1 it is thrown off."""
    friction, away = 0.5, 0.2
    q0 = [1.0, 0.0, 0.0, 0.0, away, 0.0, 0.01 - 2.5e-6]  # where it rests
    for share in (0.9, 1.1):
        spin = math.sqrt(share * friction * m.G / away)
        v0 = [0.0, 0.0, spin, 0.0, spin * away, 0.0]
        run = rk.simulate(plate, q0, v0, duration=2.0, dt=dt, ground=rk.Ground(friction=friction, spin=spin))
        far = np.hypot(run.q[:, 4], run.q[:, 5])
        assert (np.abs(far - away).max() < 1e-5 * (1.0 + (1e3 * dt) ** 3)) == (share < 1.0)
        assert run.summary["energy_balance"] < 1e-9


def test_a_ball_on_a_turntable_circles_at_two_sevenths_of_its_rate():
    """It rolls on a circle that has nothing to do with the table's axis (E. Weckler, 1972)."""
    radius, spin, speed = 0.1, 3.0, 0.2
    # The point below has the table's velocity (0, 0.9, 0).
    turn = [(0.9 - speed) / radius, 0.0, 0.0]
    q0 = [1.0, 0.0, 0.0, 0.0, 0.3, 0.0, radius - 5e-4]
    ground = rk.Ground(spin=spin, friction=1.0)
    rate = 2.0 / 7.0 * spin
    run = rk.simulate(m.ball(), q0, [*turn, 0.0, speed, 0.0], duration=2.0 * math.pi / rate, ground=ground)
    x, y = run.q[:, 4] - 0.3, run.q[:, 5]
    assert math.hypot(x[-1], y[-1]) < 1e-3
    assert x.min() == pytest.approx(-2.0 * speed / rate, rel=1e-4)


@pytest.mark.parametrize("restitution", [0.0, 0.6])
def test_an_oblique_impact_has_the_impulse_of_coulomb(restitution):
    """mu (1 + e) m v_n, or 2/7 m v_t where that stops the sliding of a ball."""
    arriving, robot = 2.0, m.ball()
    starts, wanted, frictions = [], [], []
    for speed in (0.3, 1.0, 4.0):
        for friction in (0.05, 0.2, 0.6):
            starts.append([0.0, 0.0, 0.0, speed, 0.0, -arriving])
            frictions.append(friction)
            wanted.append(min(friction * (1.0 + restitution) * arriving, 2.0 / 7.0 * speed))
    q0 = np.tile([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.105], (len(starts), 1))
    ground = rk.Ground(friction=frictions, restitution=restitution)
    run = rk.rollout(robot, q0, starts, steps=6, dt=1e-3, ground=ground, gravity=(0, 0, 0))
    # The balls turn a little until the end; their speed is that along x.
    turned = 2.0 * np.arctan2(run.q[-1, :, 2], run.q[-1, :, 0])
    along = run.v[-1, :, 3] * np.cos(turned) + run.v[-1, :, 5] * np.sin(turned)
    np.testing.assert_allclose(np.array(starts)[:, 3] - along, wanted, rtol=0.05)
    assert run.outside.max() < 0.01
