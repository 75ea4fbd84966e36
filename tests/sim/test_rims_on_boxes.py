"""Wheels, cans and coins at edges of boxes: places and normals, kerbs in closed form, tables, stairs."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sim_models as m

import robokit as rk
from robokit.model import Box, Cylinder, ModelBuilder, Shape
from robokit.sim.touching.rim_on_box import PlacedRim, rim_on_box
from robokit.sim.touching.surfaces import placed_solid
from robokit.spatial import Vector3

RADIUS = 0.1
HEIGHT = 0.02
"""Of the kerb."""


def cylinder(width: float, radius: float = RADIUS) -> rk.Robot:
    across = (3.0 * radius**2 + width**2) / 12.0
    inertia = np.diag([across, across, 0.5 * radius**2])
    shape = Shape(Cylinder(radius, width))
    return ModelBuilder("roll").link("roll", 1.0, inertia=inertia, collisions=(shape,)).build("floating")


def nearest(center, axis, half) -> tuple[np.ndarray, np.ndarray]:
    """Places of filled discs and boxes that are nearest to each other, by projections in turns; (N, 3)."""
    places, moving = center.copy(), np.arange(len(center))
    x, c, a, h = center, center, axis, half
    for _ in range(20_000):
        d = np.clip(x, -h, h) - c
        d -= a * (a * d).sum(axis=1, keepdims=True)
        length = np.maximum(np.sqrt((d * d).sum(axis=1, keepdims=True)), 1e-30)
        before, x = x, c + d * np.minimum(1.0, RADIUS / length)
        ended = np.abs(x - before).max(axis=1) < 1e-15
        if ended.any():
            places[moving] = x
            moving, x, c, a, h = (each[~ended] for each in (moving, x, c, a, h))
            if not len(moving):
                break
    places[moving] = x
    return places, np.clip(places, -half, half)


def touching_pairs(count: int):
    """(centre, axis, half edges, normal) of rims that are a micrometre inside boxes, at faces and edges."""
    rng = np.random.default_rng(1)
    drawn = [
        (rng.uniform(0.1, 1.0, 3), rng.normal(size=3), rng.uniform(-1.0, 1.0, 3)) for _ in range(8 * count)
    ]
    half, axis, share = (np.array(each) for each in zip(*drawn, strict=True))
    axis /= np.linalg.norm(axis, axis=1, keepdims=True)
    center = share * (half + RADIUS)
    x, y = nearest(center, axis, half)
    gap = np.linalg.norm(x - y, axis=1)
    corner = (np.abs(np.abs(y) - half) < 1e-9).sum(axis=1) == 3
    apart = np.flatnonzero((gap >= 1e-3) & ~corner)
    center, axis, half = center[apart], axis[apart], half[apart]
    center -= (x - y)[apart] * (1.0 - 1e-5 / gap[apart, None])
    x, y = nearest(center, axis, half)
    gap = np.linalg.norm(x - y, axis=1)
    near = np.flatnonzero((gap > 1e-7) & (gap < 1e-4))[:count]
    assert len(near) == count
    n = (x - y)[near] / gap[near, None]
    return zip(center[near] - n * (gap[near, None] + 1e-6), axis[near], half[near], n, strict=True)


def test_a_rim_touches_as_its_nearest_place_does():
    """Against projections, which only serve while they are apart: then moved to a micrometre inside."""
    good = 0
    for center, axis, half, n in touching_pairs(150):

        def lowest(n, axis=axis, center=center):
            n = np.array(list(n))
            down = axis * (axis @ n) - n
            return Vector3(*(center + RADIUS * down / np.linalg.norm(down)))

        box = placed_solid("box", tuple(half), None, Vector3.zero(), None)
        _, touch = rim_on_box(PlacedRim(Vector3(*center), Vector3(*axis), RADIUS, lowest), box)
        assert -1e-4 < touch.phi < RADIUS / 800.0
        good += abs(touch.phi + 1e-6) < 1e-7 and np.array(list(touch.n)) @ n > 0.9999
    assert good > 125  # of the others the projections have not ended, or the edge lies along the end


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
    """It turns about the edge from the momentum about it, and loses m g h on its way up."""
    run = kerb_run(width, speed)
    turned = speed * (1.5 - HEIGHT / RADIUS) / 1.5
    left = turned**2 - 4.0 / 3.0 * m.G * HEIGHT
    if left < 0.0:
        assert run.q[-1, 6] == pytest.approx(RADIUS, abs=1e-3) and run.q[-1, 4] < run.q[-2, 4]
        assert run.q[:, 6].max() == pytest.approx(RADIUS + 0.75 * turned**2 / m.G, abs=1e-3)
    else:
        assert run.q[-1, 6] == pytest.approx(RADIUS + HEIGHT, abs=1e-4)
        at_last = (run.q[-1, 4] - run.q[-11, 4]) / (run.t[-1] - run.t[-11])
        assert at_last == pytest.approx(left**0.5, rel=0.015)


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
    """None gains energy: such a run ends with an error."""
    steps = [Box((0.3, 2.0, 0.2 * (6 - k))) for k in range(6)]
    shapes = [rk.Solid(box, (0.3 * k, 0.0, 0.1 * (6 - k))) for k, box in enumerate(steps)]
    robot, ground = cylinder(width), rk.Ground(shapes=shapes)
    rng = np.random.default_rng(0)
    for _ in range(60):
        turn = rng.normal(size=4)
        q0 = [*(turn / np.linalg.norm(turn)), *(rng.uniform(-0.05, 0.05, 2)), 1.5]
        v0 = [*(5.0 * rng.normal(size=3)), rng.uniform(0.8, 1.3), *(0.3 * rng.normal(size=2))]
        run = rk.simulate(robot, q0, v0, duration=3.0, ground=ground)
        assert run.q[-1, 6] < 1.3
