"""Wheels, cans and coins at edges of boxes: places and normals, kerbs in closed form, tables, stairs."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sim_models as m

import robokit as rk
from robokit.model import Box, Cylinder, ModelBuilder, Shape

RADIUS = 0.1
HEIGHT = 0.02  # of the kerb


def cylinder(width: float, radius: float = RADIUS) -> rk.Robot:
    across = (3.0 * radius**2 + width**2) / 12.0
    inertia = np.diag([across, across, 0.5 * radius**2])
    shape = Shape(Cylinder(radius, width))
    return ModelBuilder("roll").link("roll", 1.0, inertia=inertia, collisions=(shape,)).build("floating")


def kerb_run(width: float, speed: float, dt: float = 1e-3, yaw: float = 0.0):
    quarter = math.sqrt(0.5)
    c, s = quarter * math.cos(0.5 * yaw), quarter * math.sin(0.5 * yaw)
    kerb = rk.Solid(Box((2.0, 4.0, HEIGHT)), (1.3, 0.0, 0.5 * HEIGHT))
    ground = rk.Ground(friction=2.0, shapes=[kerb])
    v0 = [0.0, 0.0, -speed / RADIUS, speed, 0.0, 0.0]
    return rk.simulate(cylinder(width), [c, c, s, s, 0.0, 0.0, RADIUS], v0, ground=ground, dt=dt)


@pytest.mark.parametrize("width", [0.05, 0.4])
@pytest.mark.parametrize("speed", [0.55, 0.65, 0.95])
def test_a_wheel_climbs_a_kerb_or_rolls_back(width, speed):
    """It turns about the edge from the momentum about it, and loses m g h on its way up.

    At 0.65 m/s little is left of the energy; an impact that comes up to a step late takes a tenth of that.
    """
    run = kerb_run(width, speed, dt=2.5e-4)
    turned = speed * (1.5 - HEIGHT / RADIUS) / 1.5
    left = turned**2 - 4.0 / 3.0 * m.G * HEIGHT
    if left < 0.0:
        assert run.q[-1, 6] == pytest.approx(RADIUS, abs=1e-3) and run.q[-1, 4] < run.q[-2, 4]
        assert run.q[:, 6].max() == pytest.approx(RADIUS + 0.75 * turned**2 / m.G, abs=1e-3)
    else:
        assert run.q[-1, 6] == pytest.approx(RADIUS + HEIGHT, abs=1e-4)
        at_last = (run.q[-1, 4] - run.q[-11, 4]) / (run.t[-1] - run.t[-11])
        assert at_last == pytest.approx(left**0.5, rel=0.06 if speed == 0.65 else 0.015)


@pytest.mark.parametrize("width", [0.05, 0.4])
def test_a_wheel_that_meets_a_kerb_straight_on_stays_upright(width):
    """Both ends of the line along which it meets the edge are contacts: of ten wheels two or three tipped."""
    for speed in (0.74, 0.8, 0.86, 0.92, 0.98, 1.04):
        assert np.abs(kerb_run(width, speed).v[:, :2]).max() < 0.1, speed


@pytest.mark.parametrize("yaw", [0.3, 0.7])
@pytest.mark.parametrize("width", [0.05, 0.4])
def test_a_wheel_that_meets_a_kerb_askew_does_not_depend_on_the_step(width, yaw):
    coarse, fine = (kerb_run(width, 0.8, dt, yaw).q[-1, 4:] for dt in (1e-3, 5e-4))
    assert np.abs(coarse - fine).max() < 0.01


@pytest.mark.parametrize("width", [0.02, 0.05, 0.3])
@pytest.mark.parametrize("beyond", [-0.05, -0.01, 0.01])
def test_a_can_falls_off_a_table_when_its_middle_is_past_the_edge(width, beyond):
    table = rk.Solid(Box((1.0, 1.0, 0.2)), (-0.5, 0.0, 0.1))
    q0 = [1.0, 0.0, 0.0, 0.0, beyond, 0.0, 0.2 + 0.5 * width]
    run = rk.simulate(cylinder(width), q0, duration=1.5, ground=rk.Ground(shapes=[table]))
    if beyond < 0.0:
        assert np.abs(run.v[-1]).max() < 1e-6 and np.abs(run.q[-1] - q0).max() < 1e-3
    else:
        assert run.q[-1, 6] < 0.15  # it lies beside the table


@pytest.mark.slow
@pytest.mark.parametrize("width", [0.015, 0.05, 0.25, 0.3])
def test_cylinders_fall_down_stairs(width):
    """None gains energy."""
    steps = [Box((0.3, 2.0, 0.2 * (6 - k))) for k in range(6)]
    shapes = [rk.Solid(box, (0.3 * k, 0.0, 0.1 * (6 - k))) for k, box in enumerate(steps)]
    rng, starts = np.random.default_rng(0), []
    for _ in range(60):
        turn = rng.normal(size=4)
        q0 = [*(turn / np.linalg.norm(turn)), *(rng.uniform(-0.05, 0.05, 2)), 1.5]
        starts.append((q0, [*(5.0 * rng.normal(size=3)), rng.uniform(0.8, 1.3), *(0.3 * rng.normal(size=2))]))
    q0, v0 = map(np.array, zip(*starts, strict=True))
    run = rk.rollout(cylinder(width), q0, v0, duration=3.0, ground=rk.Ground(shapes=shapes))
    assert not len(run.failed) and not run.summary["rows_of_excess_energy"]
    assert run.q[-1, :, 6].max() < 1.3
