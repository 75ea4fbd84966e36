"""How large a robot is: what lengths are measured by."""

from __future__ import annotations

import numpy as np

from robokit.algorithms.kinematics import forward_kinematics
from robokit.model.robot import Robot


def size_of(robot: Robot) -> float:
    """Longest edge of a box around the joints and centres of mass in the neutral configuration [m].

    At least twice the largest radius of gyration of a body.
    """
    tree = robot.tree
    X0 = forward_kinematics(tree, robot.split_q(robot.neutral().tolist()))
    places, gyration = [], 0.0
    for i in tree.outward():
        m, h = tree.I[i].m, tree.I[i].h
        places.append(list(X0[i].r))
        if m > 0.0:
            c = h * (1.0 / m)
            places.append(list(X0[i].point(c)))
            xx, yy, zz, *_ = tree.I[i].Ibar
            spread = 0.5 * (xx + yy + zz) / m - c.dot(c)
            gyration = max(gyration, float(spread) ** 0.5 if spread > 0.0 else 0.0)
    return max(float(np.ptp(np.array(places, float), axis=0).max()) if places else 0.0, 2.0 * gyration)
