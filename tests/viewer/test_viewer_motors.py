"""Driven joints in a live run: they have the bits of Python, and sliders move their targets."""

from __future__ import annotations

import json

import numpy as np
import pytest
from test_viewer_browser import Watch, until
from test_viewer_contact_step import same_bits
from test_viewer_curves import numbers
from test_viewer_worker import START, told

import robokit as rk
from robokit.model import Box, ModelBuilder, Placement, Shape
from robokit.viewer import write_page
from robokit.viewer.live_data import live_data
from robokit.viewer.page import json_for_html

TRACE = {"kind": "trace", "steps": 200, "every": 20}


def crane():
    """A box on the ground, with an arm, a slide and a wheel on it."""
    b = ModelBuilder("crane")
    inertia = np.diag([0.02, 0.02, 0.02])
    b.link("box", 4.0, inertia=4 * inertia, collisions=(Shape(Box((0.5, 0.5, 0.2))),))
    b.link("arm", 0.5, (0.1, 0, 0), 0.2 * inertia)
    b.link("slide", 0.3, inertia=0.1 * inertia)
    b.link("wheel", 0.2, inertia=0.1 * inertia)
    up = Placement(position=np.array([0.0, 0.0, 0.15]))
    b.joint("lift", "revolute", "box", "arm", up, axis=(0, 1, 0), lower=-1.0, upper=0.8, effort=30.0)
    b.joint("rail", "prismatic", "arm", "slide", up, axis=(1, 0, 0))
    b.joint("axle", "continuous", "slide", "wheel", axis=(0, 0, 1), velocity=5.0, effort=4.0)
    return b.build("floating")


def drives(lift=0.3, rail=2.0, axle=1.5):
    return [
        rk.PD(joints=["lift"], kp=80.0, kd=6.0, target=lift, feedforward=0.7),
        rk.Torque(joints=["rail"], target=rail),
        rk.Velocity(joints=["axle"], gain=0.2, target=axle),
    ]


def run_of(robot, actuators, ground=True):
    q = robot.neutral()
    if robot.base == "floating":
        q[6] = 0.101
    given = {"dt": 1e-3, "record_every": 20, "reproducible": True, "actuators": actuators}
    return rk.simulate(robot, q, duration=0.2, ground=ground, **given)


@pytest.fixture(scope="module")
def run():
    return run_of(crane(), drives())


def motors(run):
    return json.loads(json_for_html(live_data(run, "").motors))


@pytest.mark.node
def test_driven_joints_have_the_bits_of_python(run):
    assert np.abs(run.q[-1, 7:]).min() > 1e-3
    same_bits(run, told(run, START, TRACE)[-1])


@pytest.mark.node
def test_other_targets_give_the_run_that_python_has_with_them(run):
    found = motors(run)
    targets = np.array([-0.4, -1.0, 3.0])
    gain, bias = (np.array([motor[key] for motor in found["list"]]) for key in ("gain", "bias"))
    commands = (bias + gain * targets).tolist()
    other = run_of(run.robot, drives(*targets))
    np.testing.assert_allclose(
        np.reshape(told(run, START, {"kind": "drive", "commands": commands}, TRACE)[-1]["q"], other.q.shape),
        other.q,
        atol=1e-12,
    )
    # None: those of the recording again.
    again = [{"kind": "drive", "commands": commands}, START, {"kind": "drive", "commands": None}, TRACE]
    same_bits(run, told(run, START, *again)[-1])


@pytest.mark.node
def test_so_do_those_of_passive_motion():
    robot = rk.load_urdf(rk.find_robot("double_pendulum"))
    run = run_of(robot, rk.PD(kp=20.0, kd=1.0, target=[0.5, -0.3]), ground=None)
    same_bits(run, told(run, START, TRACE)[-1])
    assert np.abs(run.actuator_force).max() > 1.0


@pytest.mark.node
@pytest.mark.parametrize("ground", [True, None])
def test_without_power_joints_move_freely(ground):
    """As in a run without actuators, from the same state."""
    robot = crane() if ground else rk.load_urdf(rk.find_robot("double_pendulum"))
    servos = drives() if ground else rk.PD(kp=20.0, kd=1.0, target=[0.5, -0.3])
    run, free = run_of(robot, servos, ground), run_of(robot, None, ground)
    off, on = ({"kind": "drive", "commands": None, "powered": powered} for powered in (False, True))
    q = np.reshape(told(run, START, off, TRACE)[-1]["q"], run.q.shape)
    np.testing.assert_allclose(q, free.q, atol=1e-9)
    assert np.abs(run.q[-1] - free.q[-1]).max() > 1e-3
    same_bits(run, told(run, off, on, START, TRACE)[-1])


def test_targets_and_their_ranges_are_those_of_the_run(run):
    found = motors(run)
    assert [(m["joint"], m["kind"], m["unit"]) for m in found["list"]] == [
        ("lift", "position", "rad"),
        ("rail", "force", "N"),
        ("axle", "velocity", "rad/s"),
    ]
    np.testing.assert_allclose(numbers(found["targets"]), [0.3, 2.0, 1.5], rtol=1e-6)
    lift, rail, axle = found["list"]
    assert (lift["lower"], lift["upper"]) == (-1.0, 0.8)  # of the joint
    assert (axle["lower"], axle["upper"]) == (-5.0, 5.0)
    # Nothing limits the slide: its target goes up to the robot's weight.
    assert rail["upper"] == -rail["lower"] == pytest.approx(9.81 * run.robot.total_mass, rel=1e-3)
    still = run_of(run.robot, None)
    assert live_data(still, "").motors is None


def test_targets_that_move_are_kept_over_time():
    path = ([0.0, 0.1, 0.2], [0.0, 0.4, -0.2])
    frames = rk.Keyframes(path[0], ("lift",), np.array(path[1])[:, None], curve="linear")
    run = run_of(crane(), rk.PD(joints=["lift"], kp=80.0, kd=0.0, target=frames))
    found = motors(run)
    t = numbers(found["t"])
    assert len(t) > 100 and np.all(np.diff(t) > 0.0)
    # A servo follows the rate of its target by kp dt 2R / (1 + 2R) more (robokit.sim.joint_forces).
    np.testing.assert_allclose(numbers(found["targets"]), np.interp(t + 0.5e-3, *path), atol=2e-4)


@pytest.mark.browser
def test_sliders_move_the_joints_and_reset_brings_them_back(chromium, run, tmp_path):
    watch = Watch(chromium)
    page = watch.open(write_page(run, tmp_path / "crane.html", live=True, walk=False))
    page.click("#live")
    until(page, "robokit.run.motion.duration > 1")
    slider = page.get_by_label("Target position of lift")
    assert float(slider.input_value()) == pytest.approx(0.3, abs=1e-6)
    lift = "robokit.run.motion.q.at(-3)"
    slider.fill("-0.6")
    until(page, f"{lift} < -0.4")
    until(page, "document.querySelector('.live-motors output').innerText.startsWith('−0.60 rad')")
    page.get_by_role("button", name="Reset").click()
    until(page, f"{lift} > 0.1")
    assert float(slider.input_value()) == pytest.approx(0.3, abs=1e-6)
    # The books have the actuators' work.
    energy = page.evaluate("[...robokit.run.motion.energy.slice(-5), robokit.run.startEnergy]")
    assert abs(energy[3]) > 0.1 and abs(energy[4] - energy[5]) < 2e-3 * abs(energy[3])
    watch.judge()
