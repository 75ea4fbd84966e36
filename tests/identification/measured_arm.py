"""A small arm, its motions and its forces, for the tests of identification."""

from __future__ import annotations

import ladder
import numpy as np

import robokit as rk
from robokit.identification.estimate import nearest_possible, parameters_of, pseudo_inertia


def arm(base: str = "fixed") -> rk.Robot:
    """Three joints: about the vertical, about a horizontal axis, and a slide along a skew one."""
    rng = np.random.default_rng(2)
    b = rk.ModelBuilder("small arm").link("base", 2.0, (0.1, 0, 0), np.eye(3) * 0.02)
    joints = (
        ("turn", "revolute", (0, 0, 1)),
        ("lift", "revolute", (0, 1, 0)),
        ("reach", "prismatic", (1, 0, 1)),
    )
    for k, (name, kind, axis) in enumerate(joints):
        mass = float(rng.uniform(1.0, 3.0))
        b.link(name + " link", mass, rng.uniform(-0.1, 0.1, 3), ladder.inertia(rng, mass))
        place = rk.Placement(np.eye(3), (0.0, 0.05, 0.3))
        limits = {"lower": -1.0, "upper": 1.0, "velocity": 3.0}
        parent = joints[k - 1][0] + " link" if k else "base"
        b.joint(name, kind, parent, name + " link", place, axis, **limits)
    return b.build(base)


R = arm()
VISCOUS, COULOMB, MOTORS = np.array([0.4, 0.1, 3.0]), np.array([0.2, 0.5, 1.0]), np.array([0.05, 0.02, 0.3])


def motion(robot: rk.Robot, states: int = 300, seed: int = 0):
    rng = np.random.default_rng(seed)
    q = np.array([robot.random_configuration(rng) for _ in range(states)])
    return q, *rng.standard_normal((2, states, robot.nv))


def predicted_forces(robot, q, v, a, friction=True, motors=False):
    tau = rk.rnea(robot, q, v, a)
    tau = tau + VISCOUS * v + COULOMB * np.sign(v) if friction else tau
    return tau + MOTORS * a if motors else tau


def guess(robot: rk.Robot, seed: int = 1, share: float = 0.3) -> np.ndarray:
    """Parameters of other bodies that can exist."""
    rng, rows = np.random.default_rng(seed), robot.inertial_parameters.copy()
    for k, P in enumerate(pseudo_inertia(nearest_possible(rows[1:])), 1):
        half = np.linalg.cholesky(P) @ (np.eye(4) + share * rng.standard_normal((4, 4)))
        rows[k] = parameters_of(half @ half.T)
    return rows


def truth(found) -> np.ndarray:
    return np.concatenate([R.inertial_parameters[1:].ravel(), VISCOUS, COULOMB])
