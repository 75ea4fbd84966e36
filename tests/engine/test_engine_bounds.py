"""Angles have a largest magnitude, shifts have none; all engines and precisions say so in the same words."""

from __future__ import annotations

import ladder
import numpy as np
import pytest

import robokit as rk
from robokit.conventions import LARGEST_ANGLE
from robokit.engine import Kernel

WAYS = [{}, {"engine": "python"}, {"dtype": "float32"}, {"dtype": "float32", "engine": "python"}]


def angles(robot) -> set[int]:
    """Places of angles in q, by the joint table's words."""
    turning = ("revolute", "continuous", "helical", "cylindrical", "planar")
    return {joint.q_slice.start for joint in robot.joints if joint.kind in turning}


@pytest.fixture(scope="module")
def robot():
    return ladder.random_tree(5, kinds=ladder.COORDINATE_KINDS, n=9)


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("rows", [None, 11])
def test_every_angle_beyond_the_limit_is_refused_and_named(robot, way, rows):
    q, v = robot.neutral(), np.zeros(robot.nv)
    assert 3 < len(angles(robot)) < robot.nq
    for place in range(robot.nq):
        for value in (1.001 * LARGEST_ANGLE, -1e15):
            if place in angles(robot):
                given = np.tile(q, (rows or 1, 1))
                given[-1, place] = value
                where = f"{(rows or 1) - 1}, {place}" if rows else f"{place}"
                given = given if rows else given[0]
                words = rf"q: expected an angle of at most 1073741824 rad.* at q\[{where}\]; take it modulo"
                for call in (rk.rnea, rk.aba):
                    with pytest.raises(rk.InvalidValue, match=words):
                        call(robot, given, v, v, **way)


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_the_limit_itself_is_accepted(robot, way):
    q = robot.neutral()
    for place in angles(robot):
        q[place] = LARGEST_ANGLE
    given = q if "dtype" not in way else q.astype("float32")
    for one in (given, np.tile(given, (11, 1))):
        assert np.isfinite(rk.gravity_forces(robot, one, **way)).all()


def test_shifts_have_no_limit(robot):
    q = robot.neutral()
    for joint in robot.joints:
        if joint.kind == "prismatic":
            q[joint.q_slice] = 1e12
    floating = ladder.chain(3, base="floating")
    far = floating.neutral()
    far[4:7] = 1e12
    for one, state in ((robot, q), (floating, far)):
        for given in (state, np.tile(state, (11, 1))):
            assert np.isfinite(rk.forward_kinematics(one, given).position).all()


def test_what_follows_an_angle_does_not_turn_too_far():
    text = """<robot name="r"><link name="a"/>{}
      <joint name="j" type="continuous"><parent link="a"/><child link="b"/><axis xyz="0 1 0"/></joint>
      <joint name="k" type="continuous"><parent link="b"/><child link="c"/><axis xyz="0 1 0"/>
      <mimic joint="j" multiplier="1000" offset="1"/></joint></robot>"""
    body = """<link name="{}"><inertial><mass value="1"/>
      <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>"""
    robot = rk.loads_urdf(text.format(body.format("b") + body.format("c")), mimic="couple")
    assert robot.nq == 1
    for way in ({}, {"engine": "python"}):
        assert np.isfinite(rk.gravity_forces(robot, np.array([1e6]), **way)).all()
        with pytest.raises(rk.InvalidValue, match=r"at most 1073741\.823 rad"):
            rk.gravity_forces(robot, np.array([2e6]), **way)


@pytest.mark.parametrize("size", [3, 8, 21])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_bounds_hold_at_every_place_and_to_the_last_digit(size, dtype):
    bounds = [(0, k, 2.0 ** (3 + k)) for k in range(0, size, 2)]
    kernel = Kernel(
        "bounds",
        [("x", size)],
        [("y", (size,))],
        lambda x: [[2.0 * a for a in x]],
        bounds=bounds,
        dtype=dtype,
    )
    x = np.ones(size, dtype)
    for place in range(size):
        for sign in (1.0, -1.0):
            x[:] = 1.0
            x[place] = sign * 2.0 ** (3 + place)
            for rows in (x, np.tile(x, (5, 1))):
                assert (kernel(rows) == 2.0 * rows).all()
            x[place] = np.nextafter(x[place], np.array(sign * np.inf, dtype))
            for rows in (x, np.tile(x, (5, 1))):
                if place % 2:
                    assert (kernel(rows) == 2.0 * rows).all()
                else:
                    with pytest.raises(rk.InvalidValue, match="expected an angle of at most"):
                        kernel(rows)
