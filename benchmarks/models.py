"""Robots and states that are measured."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import robokit as rk
from robokit.interop import PinocchioAdapter
from robokit.model import ModelBuilder, Placement

G1 = "example-robot-data:g1"


def states(robot: rk.Robot, rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Random q, v, a of a batch."""
    rng = np.random.default_rng(0)
    q = np.stack([robot.random_configuration(rng) for _ in range(rows)])
    return q, *rng.standard_normal((2, rows, robot.nv))


def in_pinocchio(robot: rk.Robot) -> tuple[Any, Any, PinocchioAdapter]:
    """Pinocchio's model and data of a robot, from its file, and the adapter of the two."""
    import pinocchio as pin

    root = (pin.JointModelFreeFlyer(),) if robot.base == "floating" else ()
    model = pin.buildModelFromUrdf(str(robot.source), *root)
    return model, model.createData(), PinocchioAdapter(robot, model)


def chain(n: int) -> rk.Robot:
    """Equal links in a row, axes in turn about x and y."""
    builder = ModelBuilder(f"chain {n}").link("l0")
    for k in range(n):
        builder.link(f"l{k + 1}", 1.0, (0.1, 0.02, -0.3), np.diag([0.02, 0.03, 0.02]))
        place, axis = Placement(np.eye(3), (0.0, 0.01, -0.5)), ((1, 0, 0), (0, 1, 0))[k % 2]
        builder.joint(f"j{k}", "revolute", f"l{k}", f"l{k + 1}", place, axis=axis)
    return builder.build()


def random_tree(n: int) -> rk.Robot:
    """Random parents among the last six links, axes, masses and placements; a fifth of the joints slide."""
    rng = np.random.default_rng(n)
    builder = ModelBuilder(f"random tree {n}").link("l0")
    for k in range(n):
        half = rng.standard_normal((3, 3)) * 0.1
        turned, _ = np.linalg.qr(rng.standard_normal((3, 3)))
        turned *= np.linalg.det(turned)
        inertia = half @ half.T + np.eye(3) * 0.02
        builder.link(f"l{k + 1}", rng.uniform(0.5, 2.0), rng.uniform(-0.1, 0.1, 3), inertia)
        kind = "prismatic" if rng.random() < 0.2 else "revolute"
        place = Placement(turned, rng.uniform(-0.3, 0.3, 3))
        parent = f"l{rng.integers(max(0, k - 6), k + 1)}"
        builder.joint(f"j{k}", kind, parent, f"l{k + 1}", place, axis=rng.standard_normal(3))
    return builder.build()


def frictionless(robot: rk.Robot) -> rk.Robot:
    """The robot without damping, friction and limits in its joints, to measure the integrator alone."""
    free = {"damping": 0.0, "friction": 0.0, "lower": -np.inf, "upper": np.inf}
    return replace(robot, joints=tuple(replace(joint, **free) for joint in robot.joints))
