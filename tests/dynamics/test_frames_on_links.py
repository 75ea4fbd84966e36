"""Frames and points that are fixed to a link: poses, and how they move."""

from __future__ import annotations

import numpy as np
import pytest
from ladder import relative, rotation

import robokit as rk
from robokit.errors import ShapeError, UnknownName, WrongType


@pytest.fixture(scope="module")
def case():
    robot = rk.load_urdf(rk.find_robot("quadruped"), base="floating")
    rng = np.random.default_rng(8)
    q = robot.random_configuration(rng, 3)
    on = rk.Placement(rotation(rng), rng.standard_normal(3))
    return robot, q, rng.standard_normal((3, robot.nv)), rng.standard_normal((3, robot.nv)), on


def test_a_frame_stands_where_a_link_stands_that_is_fixed_there(case):
    robot, q, *_ = case
    link = robot.links[-1].name
    foot = robot.link(link)  # fixed to its shank, with a placement of its own
    shank = next(j.parent_link for j in robot.fixed_joints if j.child_link == link)
    poses = rk.forward_kinematics(robot, q)
    R, p = rk.forward_kinematics(robot, q, at=(shank, foot.placement))
    assert relative(R, poses[link][0]) < 1e-14 and relative(p, poses[link][1]) < 1e-14
    points = np.random.default_rng(0).standard_normal((5, 3))
    _, cloud = rk.forward_kinematics(robot, q, at=(link, points))
    assert cloud.shape == (3, 5, 3)
    for k, point in enumerate(points):
        R, p = rk.forward_kinematics(robot, q, at=(link, point))
        assert relative(cloud[:, k], p) < 1e-15
        assert relative(p, poses[link][1] + poses[link][0] @ point) < 1e-14
    for a, b in zip(rk.forward_kinematics(robot, q[0], at=link), poses[link], strict=True):
        np.testing.assert_array_equal(a, b[0])


def test_its_motion_is_the_rate_of_its_pose(case):
    robot, q, v, a, on = case
    link, h = "hind_left_foot", 1e-6

    def state(t):
        """q(t) and v(t) of a motion with v and a at 0."""
        return robot.integrate(q, t * v + 0.5 * t * t * a), v + t * a

    ends = [rk.forward_kinematics(robot, state(t)[0], at=(link, on)) for t in (-h, h)]
    R, _ = rk.forward_kinematics(robot, q, at=(link, on))
    (R0, p0), (R1, p1) = ends
    spin = np.swapaxes(R, -1, -2) @ (R1 - R0) / (2 * h)
    omega = np.stack([spin[:, 2, 1], spin[:, 0, 2], spin[:, 1, 0]], axis=1)
    found = rk.link_velocity(robot, q, v, link, "body", at=on)
    turned = np.einsum("bji,bj->bi", R, (p1 - p0) / (2 * h))
    assert relative(found, np.concatenate([omega, turned], axis=1)) < 1e-8
    J = rk.link_jacobian(robot, q, link, "body", at=on)
    assert relative(np.einsum("bij,bj->bi", J, v), found) < 1e-12
    before, after = (rk.link_velocity(robot, *state(t), link, at=on) for t in (-h, h))
    moved = rk.link_acceleration(robot, q, v, a, link, at=on, classical=True)
    assert relative(moved, (after - before) / (2 * h)) < 1e-6
    own = rk.link_acceleration(robot, q, v, a, link, "body", at=on, classical=True)
    both = own.reshape(3, 2, 3) @ np.swapaxes(R, -1, -2)
    assert relative(both.reshape(3, 6), moved) < 1e-12
    out = np.empty((3, 6))
    assert rk.link_velocity(robot, q, v, link, "body", at=on, out=out) is out
    assert relative(out, found) == 0.0


def test_wrong_places_are_named(case):
    robot, q, *_ = case
    with pytest.raises(UnknownName, match="trunk"):
        rk.forward_kinematics(robot, q, at=("trnk", (0, 0, 0)))
    with pytest.raises(WrongType, match=r"at.*Placement"):
        rk.forward_kinematics(robot, q, at=(1.0, 2.0, 3.0))
    with pytest.raises(ShapeError, match=r"at: expected \(link, point\)"):
        rk.forward_kinematics(robot, q, at=("trunk", (0, 0)))
    with pytest.raises(WrongType, match="out"):
        rk.forward_kinematics(robot, q, at="trunk", out=rk.forward_kinematics(robot, q))
