"""Joints' forces as constraints, on a door without gravity and a pendulum: each row of their table."""

from __future__ import annotations

import numpy as np
import pytest
from step_of_forces import ForcesStep

import robokit as rk
from robokit.contact.materials import motor_numbers

DOOR = """<robot name="door"><link name="base"/><link name="leaf"><inertial><origin xyz="0 0 {arm}"/>
<mass value="2"/><inertia ixx="0.5" iyy="0.5" izz="0.5" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="hinge" type="{kind}"><parent link="base"/><child link="leaf"/><axis xyz="0 1 0"/>
<limit lower="{low}" upper="{high}" effort="100" velocity="100"/>
<dynamics damping="{damping}" friction="{friction}"/></joint></robot>"""


def door(tmp_path, arm=0.0, kind="revolute", low=-10.0, high=10.0, damping=0.0, friction=0.0):
    path = tmp_path / "door.urdf"
    path.write_text(DOOR.format(**{k: v for k, v in locals().items() if k not in ("path", "tmp_path")}))
    return rk.load_urdf(path)


def run(step, q, v, seconds, tau=0.0):
    for _ in range(round(seconds / step.x.dt[0])):
        q, v = step.step(q, v, tau)
    return q, v


def test_damping_is_that_of_an_implicit_damper(tmp_path):
    step = ForcesStep(door(tmp_path, damping=0.8), 1e-3)
    _, v = run(step, np.zeros(1), np.ones(1), 0.1)
    assert v[0] == pytest.approx((1.0 + 1e-3 * 0.8 / 0.5) ** -100, rel=1e-12)


@pytest.mark.parametrize("share, moved", [(0.95, 0.0), (1.05, 5.0)])
def test_dry_friction_holds_below_and_slides_above(tmp_path, share, moved):
    step = ForcesStep(door(tmp_path, friction=50.0, high=100.0), 1e-2)
    q, v = run(step, np.zeros(1), np.zeros(1), 1.0, np.array([50.0 * share]))
    wound = 1e-2 * share * 50.0 * 1e-2**2 / 0.5
    assert q[0] == pytest.approx(0.5 * 0.05 * 50.0 / 0.5 if moved else wound, rel=1e-4)
    assert moved or abs(v[0]) <= 1e-12


def test_a_limit_carries_what_leans_on_it_at_the_depth_of_its_stiffness(tmp_path):
    step = ForcesStep(door(tmp_path, low=0.0, high=1.0), 1e-3)
    k = step.x.stop_gains[1, 0]
    q, v = run(step, np.array([0.9]), np.zeros(1), 1.0, np.array([3.0]))
    assert q[0] - 1.0 == pytest.approx(3.0 / k, rel=1e-4)
    assert abs(v[0]) < 1e-9


@pytest.mark.parametrize("dt", [4e-3, 1e-3])
def test_a_stiff_servo_is_exact_and_needs_one_iteration(tmp_path, dt):
    robot = door(tmp_path, arm=-0.5)
    motor = motor_numbers(robot, [1], (1e7, 1e4))
    motor["motor_command"][0, 0] = 1e7 * 0.3
    step = ForcesStep(robot, dt, **motor)
    q, _ = run(step, np.array([0.0]), np.zeros(1), 0.5)
    weight = 2.0 * 9.81 * 0.5 * np.sin(0.3)
    assert q[0] == pytest.approx(0.3 - weight / 1e7, abs=1e-9)
    assert step.iterations <= 2


def test_effort_is_limited(tmp_path):
    robot = door(tmp_path, high=100.0)
    motor = motor_numbers(robot, [1], (1e7, 1e4), [[1.0, np.inf]])
    motor["motor_command"][0, 0] = 1e7 * 50.0
    step = ForcesStep(robot, 1e-3, **motor)
    _, v = run(step, np.zeros(1), np.zeros(1), 0.5)
    assert v[0] == pytest.approx(0.5 * 1.0 / 0.5, rel=1e-12)


@pytest.mark.parametrize("load", [0.0, -20.0])
def test_a_torque_pushes_no_further_than_to_the_largest_speed(tmp_path, load):
    robot = door(tmp_path, high=100.0)
    motor = motor_numbers(robot, [1], 0.0, [[50.0, 2.0]])
    motor["motor_command"][0, 0] = 80.0
    step = ForcesStep(robot, 1e-3, **motor)
    first = run(step, np.zeros(1), np.zeros(1), 0.01, np.array([load]))[1][0]
    assert first == pytest.approx(0.01 * (50.0 + load) / 0.5, rel=1e-9)
    _, v = run(step, np.zeros(1), np.zeros(1), 0.5, np.array([load]))
    # What holds the speed is left of it by R_v times the load's impulse.
    assert v[0] == pytest.approx(2.0, abs=1e-4 * abs(load) * 1e-3 / 0.5 + 1e-9)


def test_what_drives_a_joint_beyond_its_largest_speed_meets_no_brake(tmp_path):
    robot = door(tmp_path, high=100.0)
    motor = motor_numbers(robot, [1], 0.0, [[50.0, 2.0]])
    motor["motor_command"][0, 0] = 80.0
    step = ForcesStep(robot, 1e-3, **motor)
    _, v = run(step, np.zeros(1), np.array([3.0]), 0.1, np.array([5.0]))
    assert v[0] == pytest.approx(3.0 + 0.1 * 5.0 / 0.5, rel=1e-9)
