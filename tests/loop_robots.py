"""Robots with closed loops that the tests share."""

from __future__ import annotations

import numpy as np
from ladder import ALL_KINDS, inertia, rotation

import robokit as rk
from robokit.model import ModelBuilder, Placement
from robokit.model.joints import JOINT_TABLE, JointModel
from robokit.spatial import Vector3

KINDS = [kind for kind in ALL_KINDS if kind != "floating"]
"""Kinds of loop joints that constrain anything."""

AXIS, PITCH = (0.36, 0.48, 0.8), 0.17


def two_arms(kind: str, seed: int = 0) -> rk.Robot:
    """A floating trunk with two arms of skew joints, a loop joint between their tips."""
    rng = np.random.default_rng(seed)
    b = ModelBuilder("arms").link("trunk", 2.0, (0.1, 0, 0), inertia(rng, 2.0))
    for side in "ab":
        above = "trunk"
        for k, joint in enumerate(("spherical", "helical", "prismatic", "revolute")):
            name = f"{side}{k}"
            b.link(name, 1.0 + k, rng.standard_normal(3) * 0.1, inertia(rng))
            at = Placement(rotation(rng), rng.standard_normal(3) * 0.2)
            b.joint(f"j{name}", joint, above, name, at, rng.standard_normal(3), pitch=0.1)
            above = name
    ends = [Placement(rotation(rng), rng.standard_normal(3) * 0.2) for _ in range(2)]
    b.loop_joint("loop", kind, "a3", "b3", *ends, axis=AXIS, pitch=PITCH if kind == "helical" else 0.0)
    return b.build("floating")


def closed_at(robot: rk.Robot, kind: str, q, moved) -> rk.Robot:
    """The robot with the successor's frame moved to where the joint is closed, its coordinates ``moved``."""
    (loop,) = robot.loop_joints
    (R, p), (S, s) = (rk.forward_kinematics(robot, q)[end] for end in (loop.predecessor, loop.successor))
    X = JointModel(JOINT_TABLE[kind], Vector3(*AXIS), loop.pitch).XJ(list(moved))
    step = Placement(np.array(X.E.rows).T, np.array(list(X.r)))
    at = Placement(S, s).inverse() @ Placement(R, p) @ loop.predecessor_placement @ step
    b = ModelBuilder.from_robot(robot)
    b._loops["loop"].successor_placement = at
    return b.build("floating")


def parallelogram(cranks: int = 3) -> rk.Robot:
    """A beam on equal cranks about y: each crank after the second repeats what the others hold."""
    b = ModelBuilder("parallelogram").link("ground")
    for k in range(cranks):
        b.link(f"crank{k}", 1.0, (0, 0, 0.25), np.eye(3) * 0.02)
        at = Placement(position=np.array([0.3 * k, 0, 0]))
        b.joint(f"hinge{k}", "continuous", "ground", f"crank{k}", at, axis=(0, 1, 0))
    tip = Placement(position=np.array([0, 0, 0.5]))
    b.link("beam", 2.0, (0.3, 0, 0), np.diag([0.01, 0.1, 0.1]))
    b.joint("pin", "continuous", "crank0", "beam", tip, axis=(0, 1, 0))
    for k in range(1, cranks):
        at = Placement(position=np.array([0.3 * k, 0, 0]))
        b.loop_joint(f"loop{k}", "revolute", "beam", f"crank{k}", at, tip, axis=(0, 1, 0))
    return b.build()


def jacobian(loops) -> np.ndarray:
    """K of all loops, (n_c, nv)."""
    return np.array([row for loop in loops for row in loop.jacobian()])
