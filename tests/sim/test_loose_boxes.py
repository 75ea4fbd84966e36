"""Loose boxes: rest, sliding, towers, collisions, and that no constant has a unit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import robokit as rk

STEP = 1e-3


def box(mass: float = 1.0, size: float = 0.2) -> rk.Robot:
    i = mass * size * size / 6.0
    inertia = f'<inertia ixx="{i}" iyy="{i}" izz="{i}" ixy="0" ixz="0" iyz="0"/>'
    shape = f'<geometry><box size="{size} {size} {size}"/></geometry>'
    return rk.loads_urdf(
        f'<robot name="box"><link name="box"><inertial><mass value="{mass}"/>{inertia}</inertial>'
        f"<collision>{shape}</collision></link></robot>",
        base="floating",
    )


@pytest.mark.parametrize("count", [1, 5, 10])
def test_a_tower_stands(count: int) -> None:
    robot = rk.together({f"box{k}": box() for k in range(count)})
    q = robot.neutral()
    q[6::7] = 0.2 * (np.arange(count) + 0.5)
    run = rk.simulate(robot, q, duration=1.0, dt=STEP, ground=True)
    assert np.abs(run.v[-1]).max() < 1e-9
    assert np.abs(run.q[-1].reshape(-1, 7)[:, 4:6]).max() < 1e-6
    assert run.contact_force[-1, 2] == pytest.approx(robot.total_mass * 9.81, rel=1e-6)
    assert run.summary["steps_not_settled"] == 0
    assert run.summary["momentum_balance_linear"] < 1e-9


def test_a_box_slides_as_far_as_coulomb_says_and_does_not_rise() -> None:
    q, v = np.array([1, 0, 0, 0, 0, 0, 0.1]), np.array([0, 0, 0, 2.0, 0, 0])
    ground = rk.Ground(friction=0.5)
    run = rk.simulate(box(), q, v, duration=1.0, dt=STEP, ground=ground)
    assert run.q[-1, 4] == pytest.approx(2.0**2 / (2 * 0.5 * 9.81), rel=1e-4)
    assert (run.q[:, 6] - 0.1).max() < 1e-6


def test_two_robots_that_collide_keep_their_momentum() -> None:
    robot = rk.together({"a": box(1.0, 0.2), "b": box(2.0, 0.3)}).with_gravity([0, 0, 0])
    q, v = robot.neutral(), np.zeros(12)
    q[4:6] = -0.5, 0.03
    v[:4] = 0.1, 1.0, 2.0, 2.0
    run = rk.simulate(robot, q, v, duration=0.6, dt=STEP, self_collision=True)
    assert run.summary["dissipated_by_collision"] > 0.5
    assert np.abs(run.momentum - run.momentum[0]).max() < 1e-9
    assert (run.energy.total - run.energy.total[0]).max() < 1e-12


def test_a_fall_scales_with_lengths_and_masses() -> None:
    ends = []
    for length, mass in ((1.0, 1.0), (0.1, 1.0), (1.0, 1e-6)):
        robot, time = box(mass, 0.2 * length), length**0.5
        q = np.r_[np.array([0.9, 0.3, 0.2, 0.06**0.5]), 0.0, 0.0, 0.5 * length]
        v = np.array([1, 2, 3, 0, 0, 0]) / time
        kw = {"duration": 1.0 * time, "dt": STEP * time, "ground": True}
        ends.append(rk.simulate(robot, q, v, **kw).q[-1] / np.r_[np.ones(4), np.full(3, length)])
    for end in ends[1:]:
        np.testing.assert_allclose(end, ends[0], atol=1e-9)


@pytest.mark.parametrize("given", ["friction", "normal"])
def test_rows_have_ground_of_their_own(given: str) -> None:
    q, v = np.array([1, 0, 0, 0, 0, 0, 0.1]), np.array([0, 0, 0, 2.0, 0, 0])
    values: dict[str, Any] = {
        "friction": [0.2, 0.5, 0.9],
        "normal": [(0.0, 0.0, 1.0), (0.02, 0.0, 1.0), (0.0, 0.03, 1.0)],
    }
    options: Any = {"dt": STEP}
    ground = rk.Ground(**{given: values[given]})
    rows = rk.rollout(box(), np.stack([q] * 3), np.stack([v] * 3), steps=200, ground=ground, **options)
    assert not np.allclose(rows.q[-1, 0], rows.q[-1, 1])
    for k, value in enumerate(values[given]):
        run = rk.simulate(box(), q, v, duration=0.2, ground=rk.Ground(**{given: value}), **options)
        assert np.array_equal(rows.q[-1, k], run.q[-1])
