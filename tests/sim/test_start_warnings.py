"""SimulationWarning: starts that overlap, that spin too fast for the step, and pairs that are left out."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
import sim_models as m

import robokit as rk
from robokit.model import Box, Placement, Shape, Sphere


def said(run, *arguments, **how):
    """The SimulationWarnings of a run, and the files that they point at."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        run(*arguments, **how)
    assert all(x.filename == __file__ for x in found)
    return [str(x.message) for x in found if issubclass(x.category, rk.SimulationWarning)]


@pytest.fixture(scope="module")
def two_balls():
    """Two balls of 0.1 m on one rail, which come together; they touch where their shifts sum to 0.8 m."""
    b = rk.ModelBuilder("balls").link("rail")
    for name, side in (("left", -1), ("right", 1)):
        ball = (Shape(Sphere(0.1)),)
        b.link(name, mass=1.0, inertia=np.eye(3) * 0.004, collisions=ball)
        place = Placement(position=np.array([0.5 * side, 0, 1.0]))
        b.joint(f"{name}_slide", "prismatic", "rail", name, place, (-side, 0, 0), lower=-1.0, upper=1.0)
    return b.build()


HOW = {"duration": 2e-3, "dt": 1e-3, "ground": None, "self_collision": True}


def test_bodies_that_overlap_are_named_with_the_depth(two_balls):
    words = said(rk.simulate, two_balls, [0.4, 0.42], **HOW)
    assert len(words) == 1 and re.match(r"q0: bodies 'left' and 'right' overlap by 20 mm and push", words[0])
    assert not said(rk.simulate, two_balls, [0.4, 0.3999], **HOW)
    assert not said(rk.simulate, two_balls, [0.4, 0.42], **(HOW | {"self_collision": False}))
    rows = np.array([[0.4, 0.3], [0.4, 0.41], [0.4, 0.45]])
    words = said(rk.rollout, two_balls, rows, **HOW)
    assert len(words) == 1 and "q0[2] (and 1 more): bodies 'left' and 'right' overlap by 50 mm" in words[0]
    assert not said(rk.rollout, two_balls, rows[:1], **HOW)


def test_a_start_in_the_ground_is_named_with_the_depth():
    q = rk.standing_configuration(m.box())
    run = {"duration": 2e-3, "dt": 1e-3, "ground": rk.Ground()}
    assert not said(rk.simulate, m.box(), q, **run)
    low = q - [0, 0, 0, 0, 0, 0, 0.03]
    words = said(rk.simulate, m.box(), low, **run)
    assert len(words) == 1  # not once more at the end, for the same depth
    assert re.match(r"q0: link '\w+' starts (29|30|31)(\.\d+)? mm inside the ground, which pushes", words[0])
    words = said(rk.rollout, m.box(), [q, low, q], **run)
    assert re.match(r"q0\[1\]: link '\w+' starts (29|30|31)(\.\d+)? mm inside", words[0])


@pytest.mark.parametrize("dt", [1e-3, 4e-3])
def test_a_spin_too_fast_for_the_step_names_the_body_and_the_step_to_take(dt):
    robot, v = m.box(), np.zeros(6)
    run = {"duration": 2 * dt, "dt": dt}
    v[:3] = 0.29 / dt / np.sqrt(3.0)
    assert not said(rk.simulate, robot, robot.neutral(), v, **run)
    v[:3] *= 2.0
    (words,) = said(rk.simulate, robot, robot.neutral(), v, **run)
    assert words.startswith("v0: body ") and "0.58 rad per step" in words
    better = float(re.search(r"use dt = ([\d.e-]+)", words)[1])
    assert 0.8 < better * 0.58 / dt / 0.3 <= 1.0
    assert not said(rk.simulate, robot, robot.neutral(), v, duration=2 * better, dt=better)
    (words,) = said(rk.rollout, robot, robot.neutral(), [0 * v, v], **run)
    assert words.startswith("v0[1]: body ")


def test_joints_that_turn_against_each_other_are_no_spin():
    robot = m.double_pendulum()
    run = {"duration": 0.01, "dt": 5e-3}
    assert not said(rk.simulate, robot, [0.0, 0.0], [40.0, -40.0], **run)
    (words,) = said(rk.simulate, robot, [0.0, 0.0], [40.0, 40.0], **run)
    assert (
        "'lower' spins at 80 rad/s, 0.4 rad per step of 0.005 s, where 0.3 is fine: use dt = 0.0037" in words
    )


@pytest.mark.parametrize("name", ["arm", "double_pendulum", "four_bar", "quadruped", "humanoid"])
def test_good_starts_are_silent(name):
    robot = rk.load_urdf(rk.find_robot(name), base="floating")
    from robokit.sim.run_inputs import set_up
    from robokit.sim.starts import checked_starts

    setup = set_up(robot, 1e-3, 1e-3, True, None, None, None)  # no step is compiled
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        q = rk.standing_configuration(robot)
        checked_starts(robot, setup.program, q, np.zeros(robot.nv), 1e-3)


def cube(times, sink):
    """A cube of 40 cm, or its copy at another scale that is as heavy; lengths and times of its contacts."""
    edge = 0.4 * times
    robot = rk.ModelBuilder("cube").link(
        "cube", 1.0, inertia=np.eye(3) * edge**2 / 6.0, collisions=(Shape(Box((edge,) * 3)),)
    )
    return robot.build("floating"), [1.0, *[0.0] * 5, 0.5 * edge], rk.Ground(sink=sink)


@pytest.mark.parametrize("times", [0.1, 1.0, 10.0])
def test_a_scene_and_its_copies_at_other_scales_get_the_same_warnings(times):
    """Lengths go with the size, times with its root: no robot is warned of what is the same at any scale."""
    robot, at, ground = cube(times, 1e-3 * times if times > 1.0 else None)
    dt = 1e-3 * times**0.5

    def words(low, dt):
        return said(
            rk.simulate, robot, at - np.eye(7)[6] * low * times, duration=2 * dt, dt=dt, ground=ground
        )

    assert not words(5e-3, dt) and not words(5e-3, 3.9e-3 * max(1.0, times**0.5))
    (deep,) = words(0.012, dt)
    assert f"starts {12.0 * times:.3g} mm inside the ground" in deep
    if times >= 1.0:
        with pytest.raises(rk.ShapeError, match="below the ground"):
            words(0.11, dt)
        (long,) = words(0.0, 4.1e-3 * times**0.5)
        assert f"take {4.0 * times**0.5:.3g} ms or less" in long


@pytest.mark.parametrize("times", [0.1, 1.0, 10.0])
def test_how_deep_a_fall_may_go_goes_with_the_robot(times):
    robot, at, ground = cube(times, 1e-3 * times if times > 1.0 else None)
    dt = 1e-3 * times**0.5
    depths = []
    for fast in (2.0, 20.0):
        v = [0.0] * 5 + [-fast * times**0.5]
        words = said(rk.simulate, robot, at, v, duration=0.1 * times**0.5, dt=dt, ground=ground)
        depths.append(sum("penetrated the ground" in each for each in words))
        assert all(f"({10.0 * times:.3g} mm is fine)" in each for each in words if "penetrated" in each)
    assert depths == [0, 1]
