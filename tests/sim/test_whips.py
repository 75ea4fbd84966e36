"""A light link that is whipped about too fast for the step is warned of, and the step that does is said."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest

import robokit as rk


def whip(length):
    """An arm of 1 m and 1 kg with a lash of 1 g."""
    b = rk.ModelBuilder("whip").link("ground")
    b.link("arm", 1.0, (0, 0, -0.5), np.diag([1 / 12, 1 / 12, 1e-4]))
    I = 1e-3 * length**2 / 12
    b.link("lash", 1e-3, (0, 0, -length / 2), np.diag([I, I, I / 100]))
    b.joint("shoulder", "continuous", "ground", "arm", axis=(0, 1, 0))
    at = rk.Placement(position=np.array([0.0, 0.0, -1.0]))
    return b.joint("wrist", "continuous", "arm", "lash", axis=(0, 1, 0), placement=at).build()


def warned(*arguments, **options):
    """(the run, what was said of it)."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        run = rk.simulate(*arguments, **options)
    return run, [str(w.message) for w in found if issubclass(w.category, rk.SimulationWarning)]


def step_of(text):
    return float(re.search(r"use dt = ([0-9.e-]+)", text).group(1))


def test_a_lash_that_is_swung_about_is_named_and_the_step_that_does_is_said():
    robot, start = whip(0.04), [2.5, 0.5]
    run, (text,) = warned(robot, start, duration=2.0, integrator="contact")
    assert np.abs(run.a[:, 1]).max() > 2000.0 and "link 'lash'" in text and "joint 'wrist'" in text
    finer, said = warned(robot, start, duration=2.0, integrator="contact", dt=step_of(text))
    assert not said
    exact = rk.simulate(robot, start, duration=2.01, dt=2.5e-4, integrator="rkmk4", record_every=1)
    off, less = (np.abs(x.q[:, 1] - np.interp(x.t, exact.t, exact.q[:, 1])).max() for x in (run, finer))
    assert less < 0.5 * off < 0.05 and off > 1e-3
    assert not warned(robot, start, duration=2.0)[1]  # of the fourth order 1 ms is fine: 1e-6 rad


@pytest.mark.parametrize("method", ["rkmk4", "contact"])
def test_a_lash_that_is_driven_faster_and_faster_is_warned_of(method):
    """2,000 rad/s^2 by a torque: after 0.15 s it turns by 0.3 rad a step."""
    robot = whip(0.04)
    torque = 2000.0 * (1e-3 * 0.04**2 / 3)
    options = {"integrator": method, "gravity": (0, 0, 0), "controller": lambda t, q, v: [0.0, torque]}
    _, (text,) = warned(robot, duration=0.3, **options)
    assert re.match(r"link 'lash' turns at [0-9.]+ rad/s at t = 0\.3", text) or "at t = 0.29" in text
    assert step_of(text) == pytest.approx(0.3 / 600, rel=0.1)
    assert not warned(robot, duration=0.3, dt=step_of(text), **options)[1]
    assert not warned(robot, duration=0.12, **options)[1]


def test_shipped_robots_fall_and_swing_without_a_word():
    said = []
    for name in ("double_pendulum", "arm", "quadruped", "humanoid"):
        robot = rk.load_urdf(rk.find_robot(name), base="floating")
        q = robot.neutral()
        q[:4], q[6] = rk.rotations.rpy_to_quat_wxyz([0.5, 0.3, 0.1]), 1.5
        said += [name, *warned(robot, q, duration=1.0, ground=True)[1]]
        hung = rk.load_urdf(rk.find_robot(name))
        said += warned(
            hung, 0.5 * hung.random_configuration(0), duration=2.0, integrator="contact", self_collision=False
        )[1]
    assert said == ["double_pendulum", "arm", "quadruped", "humanoid"]
