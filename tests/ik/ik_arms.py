"""Arms, their reachable poses and their limits, for tests of inverse kinematics."""

from __future__ import annotations

import numpy as np

import robokit as rk

PYTHON = {"engine": "python"}
ONE = {**PYTHON, "starts": 1}

LENGTHS = (1.0, 0.7)  # of the links of :func:`arm`, by turns [m]


def arm(lower=-3.0, upper=3.0, n=2):
    """Hinges about z in a row, links along x; the tip is the link after the last."""
    b = rk.ModelBuilder("arm").link("l0")
    for k in range(n):
        shift = LENGTHS[(k - 1) % 2] if k else 0.0
        b.link(f"l{k + 1}", 1.0, (0.3, 0, 0), np.eye(3) * 0.01)
        place = rk.Placement(np.eye(3), (shift, 0, 0))
        b.joint(f"j{k}", "revolute", f"l{k}", f"l{k + 1}", place, (0, 0, 1), lower=lower, upper=upper)
    tip = rk.Placement(np.eye(3), (LENGTHS[(n - 1) % 2], 0, 0))
    return b.link("tip").joint("end", "fixed", f"l{n}", "tip", tip).build()


def seven():
    """An arm of seven hinges about changing axes, with limits."""
    b = rk.ModelBuilder("seven").link("l0")
    for k in range(7):
        b.link(f"l{k + 1}", 1.0, (0, 0, 0.1), np.eye(3) * 0.01)
        place = rk.Placement(np.eye(3), (0.0, 0.05 * (k % 3), 0.25))
        axis = (0, 0, 1) if k % 2 == 0 else (0, 1, 0)
        b.joint(f"j{k}", "revolute", f"l{k}", f"l{k + 1}", place, axis, lower=-2.5, upper=2.5)
    return b.build()


def reachable(robot, link, count=1, seed=3):
    rng = np.random.default_rng(seed)
    q = np.array([robot.random_configuration(rng) for _ in range(count)])
    R, p = rk.forward_kinematics(robot, q)[link]
    return q, R, p


def inside(robot, q):
    """Whether all joints with limits keep them, those that follow included."""
    full = np.array(robot.coupling.full_q(list(np.atleast_2d(q).T)) if robot.coupling else np.atleast_2d(q).T)
    for joint in robot.body_joints:
        at = robot.tree.q_slice[joint.body]
        if at.stop == at.start + 1:
            x = np.broadcast_to(full[at.start], len(np.atleast_2d(q)))
            if not ((x >= joint.lower - 1e-12) & (x <= joint.upper + 1e-12)).all():
                return False
    return True
