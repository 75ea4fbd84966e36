"""Rigid bodies tip where their weight leaves their base, and slide where friction gives way: no sooner."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sim_models

import robokit as rk
from robokit.model import Box, Cylinder, ModelBuilder, Placement, Shape

SHARES = np.array([0.97, 1.03])
UPRIGHT = math.cos(0.15)


def body(kind: str, width: float, height: float, mass: float = 1.0) -> rk.Robot:
    """A box or a cylinder with its axis along z."""
    builder = ModelBuilder(kind)
    if kind == "box":
        across, own = (width**2 + height**2) / 12.0, width**2 / 6.0
        shape = Shape(Box((width, width, height)))
    else:
        across, own = (0.75 * width**2 + height**2) / 12.0, width**2 / 8.0
        shape = Shape(Cylinder(0.5 * width, height))
    builder.link(kind, mass=mass, inertia=np.diag([across, across, own]) * mass, collisions=(shape,))
    return builder.build("floating")


def turned(angle: float, heading: float) -> tuple[np.ndarray, np.ndarray]:
    """(unit quaternion, z axis) after leaning by an angle towards a heading."""
    s, c = math.sin(angle), math.cos(angle)
    half = math.sin(0.5 * angle)
    quaternion = [math.cos(0.5 * angle), -half * math.sin(heading), half * math.cos(heading), 0.0]
    return np.array(quaternion), np.array([s * math.cos(heading), s * math.sin(heading), c])


def up(q: np.ndarray) -> np.ndarray:
    """z axes of bodies with these quaternions, (..., 4) to (..., 3)."""
    w, x, y, z = np.moveaxis(q, -1, 0)
    return np.stack([2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)], axis=-1)


def stand(kind: str, width: float, height: float, dt: float, heading: float, friction: float) -> list[bool]:
    """Which of them stand, put down at rest on slopes of SHARES times the one on which they tip."""
    starts = [turned(math.atan(share * width / height), heading) for share in SHARES]
    normals = np.array([n for _, n in starts])
    q = np.array([[*quaternion, *(0.5 * height * n)] for quaternion, n in starts])
    ground = rk.Ground(friction=friction * width / height, normal=normals)
    duration = 3.0 * math.sqrt(height / 0.3)
    run = rk.rollout(body(kind, width, height), q, duration=duration, dt=dt, ground=ground)
    upright = (up(run.q[..., :4]) * normals).sum(axis=-1).min(axis=0)
    return list(upright > UPRIGHT)


SIZES = [(0.05, 4), (0.3, 3), (0.3, 1), (1.0, 4)]


@pytest.mark.parametrize("kind", ["box", "cylinder"])
@pytest.mark.parametrize(("height", "slender"), SIZES)
def test_what_is_put_down_on_a_slope_tips_where_a_rigid_body_would(kind, height, slender):
    assert stand(kind, height / slender, height, 1e-3, 0.0, 2.0) == [True, False]


@pytest.mark.slow
@pytest.mark.parametrize("dt", [0.5e-3, 2e-3])
@pytest.mark.parametrize("kind", ["box", "cylinder"])
@pytest.mark.parametrize(("height", "slender"), [(0.3, 2), (1.0, 2), (1.0, 1)])
def test_it_does_so_in_other_steps(dt, kind, height, slender):
    assert stand(kind, height / slender, height, dt, 0.0, 1.2) == [True, False]


@pytest.mark.parametrize("heading", [math.pi / 4, 1.0])
def test_a_cylinder_has_no_side_to_which_it_tips_sooner(heading):
    assert stand("cylinder", 0.12, 0.3, 1e-3, heading, 2.0) == [True, False]


@pytest.mark.parametrize("share", SHARES)
def test_a_steady_push_on_flat_ground_tips_a_box_where_it_would_a_rigid_one(share):
    width, height = 0.1, 0.3
    robot = body("box", width, height)
    push = rk.Push("box", (share * width / height * 9.81, 0.0, 0.0), start=0.0, duration=3.0)
    q = np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.5 * height])
    run = rk.simulate(robot, q, duration=2.0, dt=1e-3, ground=rk.Ground(friction=1.0), pushes=push)
    assert (up(run.q[:, :4])[:, 2].min() > UPRIGHT) == (share < 1.0)


@pytest.mark.parametrize("self_collision", [False, True])
@pytest.mark.parametrize("share", SHARES)
def test_a_cylinder_beside_a_heavy_box_tips_as_it_does_alone(share, self_collision):
    """They share one ground, which is as firm as the cylinder asks for by its part of the weight."""
    width, height, angle = 0.1, 0.3, math.atan(share / 3.0)
    _, n = turned(angle, 0.0)
    c, s = math.cos(angle), math.sin(angle)
    R = np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])
    slim, heavy = body("cylinder", width, height), body("box", 0.2, 0.2, mass=9.0)
    world = rk.together(
        {
            "slim": (slim, Placement(rotation=R, position=0.5 * height * n)),
            "heavy": (heavy, Placement(rotation=R, position=0.1 * n + np.array([0.0, 1.0, 0.0]))),
        }
    )
    ground = rk.Ground(normal=n, friction=1.0)
    run = rk.simulate(world, duration=2.0, dt=1e-3, ground=ground, self_collision=self_collision)
    # Coordinates of a world begin at the placements.
    assert (up(run.q[:, :4])[:, 2].min() > UPRIGHT) == (share < 1.0)


@pytest.mark.parametrize("edge", [0.05, 0.2, pytest.param(1.0, marks=pytest.mark.slow)])
def test_a_cube_pushed_at_its_middle_begins_to_slide_at_once(edge):
    """At 1.1 of what friction holds, by the way that it has gone 0.2 s later.

    It is all of it that friction must give from the first step on; while the cube leans, it gives less.
    """
    mu, mass, end = 0.5, 2.0, 0.2
    robot, ground, limit = body("box", edge, edge, mass), rk.Ground(friction=mu), mu * mass * 9.81
    q = np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.5 * edge])
    rested = rk.simulate(robot, q, duration=1.0, dt=1e-3, ground=ground).q[-1]
    push = rk.Push("box", (1.1 * limit, 0.0, 0.0), duration=1.0)
    run = rk.simulate(robot, rested, duration=end, dt=1e-3, ground=ground, pushes=push)
    way = run.q[-1, 4] - rested[4]
    assert math.sqrt(2.0 * way / (0.1 * mu * 9.81)) == pytest.approx(end, abs=2e-3)


@pytest.mark.slow
@pytest.mark.parametrize("share", SHARES)
def test_a_box_beside_a_robot_that_it_may_touch_tips_as_it_does_alone(share):
    width, height, angle = 0.1, 0.3, math.atan(share / 3.0)
    _, n = turned(angle, 0.0)
    c, s = math.cos(angle), math.sin(angle)
    R = np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])
    away = Placement(rotation=R, position=0.6 * n + np.array([0.0, 8.0, 0.0]))
    box = (body("box", width, height), Placement(rotation=R, position=0.5 * height * n))
    world = rk.together({"box": box, "robot": (sim_models.box_with_bar(), away)})
    ground = rk.Ground(normal=n, friction=1.0)
    run = rk.simulate(world, duration=2.0, dt=1e-3, ground=ground, self_collision=True)
    assert (up(run.q[:, :4])[:, 2].min() > UPRIGHT) == (share < 1.0)
