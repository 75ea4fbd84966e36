"""Configurations to be let go: the lowest point where it was asked for."""

import math

import numpy as np
import pytest
import sim_models as m
from scipy.spatial.transform import Rotation

import robokit as rk
from robokit.model import Box, Capsule, Cylinder, Sphere

MODELS = [m.box, m.ball, m.quadruped, m.humanoid]


def _lowest(robot: rk.Robot, q: np.ndarray) -> float:
    """Lowest point of the collision shapes, each by its own formula, from the poses of the links."""
    poses = rk.forward_kinematics(robot, q)
    heights = []
    for link in robot.links:
        R, p = poses[link.name]
        for shape in link.collisions:
            P, g = shape.placement, shape.geometry
            up, z = (R @ P.rotation)[2], (R @ P.position + p)[2]
            if isinstance(g, Sphere):
                reach = g.radius
            elif isinstance(g, Capsule):
                reach = g.radius + 0.5 * g.length * abs(up[2])
            elif isinstance(g, Box):
                reach = 0.5 * float(np.abs(up) @ g.size)
            else:
                assert isinstance(g, Cylinder)
                reach = 0.5 * g.length * abs(up[2]) + g.radius * math.hypot(up[0], up[1])
            heights.append(z - reach)
    return min(heights)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("height", [0.0, 0.3])
@pytest.mark.parametrize("tilt", [0.0, 0.4, -1.5, (0.5, 0.5, -0.5, 0.5)])
def test_lowest_point_is_at_the_height_asked_for(model, height, tilt):
    robot = model()
    for seed in (None, 1, 2):
        q = rk.standing_configuration(robot, height, tilt, seed, ground_height=-0.7)
        # The lowest point of a cylinder's rim is exact but for 1e-6 of its radius.
        assert _lowest(robot, q) + 0.7 == pytest.approx(height, abs=1e-12 if model in MODELS[:2] else 1e-6)
        assert np.linalg.norm(q[:4]) == pytest.approx(1.0, abs=1e-14)


@pytest.mark.parametrize("model", MODELS)
def test_the_deepest_point_of_a_start_is_what_was_asked_for(model):
    q = rk.standing_configuration(model(), -1e-3, 0.3, seed=4)
    run = rk.simulate(model(), q, duration=1e-3, ground=rk.Ground(), self_collision=False)
    assert run.summary["deepest_penetration"] == pytest.approx(1e-3, abs=1e-12)


def test_a_tilt_leans_forward_about_y():
    q = rk.standing_configuration(m.humanoid(), tilt=0.3)
    turned = Rotation.from_quat([*q[1:4], q[0]]).as_rotvec()
    assert turned == pytest.approx([0.0, 0.3, 0.0])


def test_the_tilt_turns_the_whole_of_a_given_configuration():
    """World axes: the turn comes on top of the base's own orientation, and moves no joint."""
    robot = m.quadruped()
    start = robot.random_configuration(3)
    turn = Rotation.from_rotvec([0.2, -0.4, 0.7])
    x, y, z, w = turn.as_quat()
    q = rk.standing_configuration(robot, tilt=(w, x, y, z), q=start)
    both = turn * Rotation.from_quat([*start[1:4], start[0]])
    assert Rotation.from_quat([*q[1:4], q[0]]).as_matrix() == pytest.approx(both.as_matrix(), abs=1e-12)
    assert np.array_equal(q[7:], start[7:])


@pytest.mark.parametrize("wrong", [{"tilt": (1.0, 1.0, 0.0, 0.0)}, {"tilt": (1.0, 0.0)}, {"q": np.zeros(3)}])
def test_wrong_arguments_are_named(wrong):
    with pytest.raises(rk.ShapeError, match=next(iter(wrong))):
        rk.standing_configuration(m.box(), **wrong)
    with pytest.raises(rk.ShapeError, match="fixed base"):
        rk.standing_configuration(m.double_pendulum())
