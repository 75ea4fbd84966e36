"""Derivatives of inverse dynamics of robots that are numbers, against differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_kinematics import ROBOTS, everything, state_of

from robokit.contact.fields import DERIVATIVES, MOTION, ROBOT
from robokit.contact.kinematics import place_bodies
from robokit.contact.robot_data import robot_data, sizes_of_matrices
from robokit.contact.step_derivatives import inverse_dynamics_derivatives
from robokit.engine.loops.fields import kernel_of, real
from robokit.model import Robot

GIVEN = (real("q", "nq"), real("w", "nv"), real("acceleration", "nv"))
FOUND = tuple(real(name, "nv", "nv", role="out") for name in ("dq", "dv"))


def _derivatives(x: Any) -> None:
    place_bodies(x, x.q)
    inverse_dynamics_derivatives(x, x.w, x.acceleration, x.dq, x.dv)


KERNEL = kernel_of(
    "test_derivatives", _derivatives, (*ROBOT, *MOTION, *DERIVATIVES, *GIVEN, *FOUND), checked=True
)


def inverse_dynamics(robot: Robot, q: np.ndarray, w: np.ndarray, a: np.ndarray) -> np.ndarray:
    """H a + C."""
    x = everything(robot, q, w)
    H = x["H"] + np.tril(x["H"], -1).T
    return H @ a + x["C"]


@pytest.mark.parametrize("name", ROBOTS)
def test_derivatives_are_those_of_differences(name: str) -> None:
    robot = ROBOTS[name]()
    q, w = state_of(robot)
    a = np.random.default_rng(1).normal(size=robot.nv)
    data = robot_data(robot)
    found = KERNEL(**data, n_H=sizes_of_matrices(data)["n_H"], q=q, w=w, acceleration=a)
    h = 1e-5
    for k, e in enumerate(h * np.eye(robot.nv)):
        ends = [inverse_dynamics(robot, robot.integrate(q, side * e), w, a) for side in (1, -1)]
        by_q = (ends[0] - ends[1]) / (2 * h)
        ends = [inverse_dynamics(robot, q, w + side * e, a) for side in (1, -1)]
        by_v = (ends[0] - ends[1]) / (2 * h)
        size = 1.0 + max(np.abs(found["dq"]).max(), np.abs(found["dv"]).max())
        assert np.abs(found["dq"][:, k] - by_q).max() < 1e-8 * size
        assert np.abs(found["dv"][:, k] - by_v).max() < 1e-8 * size
