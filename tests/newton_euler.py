"""Newton's and Euler's laws of every single link, from the reactions of its joints: an oracle of these.

It takes accelerations of links from ``rk.link_acceleration``, tested beside Pinocchio, and sums up what acts.
"""

from __future__ import annotations

import numpy as np

import robokit as rk


def imbalance(robot, q, v, a, reactions, on_links=None) -> float:
    """What forces and moments of all links leave beside their motion, over the largest of them.

    Args:
        robot: the robot.
        q, v, a: states, (B, ...).
        reactions: by joint, in world axes.
        on_links: wrenches from outside by link, (B, 6) in world axes about the world's origin.
    """
    poses, links = rk.forward_kinematics(robot, q), {link.name: link for link in robot.links}
    loops = robot.loop_joints
    joints = [
        (j.name, j.parent_link, j.child_link, (j.child_link, np.zeros(3)))
        for j in (*robot.body_joints, *robot.fixed_joints)
    ]
    joints += [
        (j.name, j.predecessor, j.successor, (j.successor, j.successor_placement.position)) for j in loops
    ]
    worst, size = 0.0, 1e-300
    # All links in one call: a kernel for each would take longer to compile than all of these laws.
    names, coms = list(links), np.array([link.com for link in links.values()])
    motions = rk.link_acceleration(robot, q, v, a, names, at=coms, classical=True)
    velocities = rk.link_velocity(robot, q, v, names)
    for k, (name, link) in enumerate(links.items()):
        if link.body == 0 and name == robot.body_name(0):
            continue  # the root of a fixed base stands on what is not told
        R, p = poses[name]
        com = p + R @ link.com
        motion, omega = motions[:, k], velocities[:, k, :3]
        I = R @ link.inertia @ np.swapaxes(R, -1, -2)
        turned = np.einsum("bij,bj->bi", I, omega)
        force = -link.mass * (motion[:, 3:] - robot.gravity)
        moment = -np.einsum("bij,bj->bi", I, motion[:, :3]) - np.cross(omega, turned)
        for joint, parent, child, (at, place) in joints:
            for sign in ([1.0] if child == name else []) + ([-1.0] if parent == name else []):
                o = poses[at][1] + poses[at][0] @ place
                n, f = reactions[joint][:, :3], reactions[joint][:, 3:]
                size = max(size, float(np.abs(f).max()))
                force = force + sign * f
                moment = moment + sign * (n + np.cross(o - com, f))
        if on_links and name in on_links:
            n, f = on_links[name][:, :3], on_links[name][:, 3:]
            force, moment = force + f, moment + n - np.cross(com, f)
        worst = max(worst, float(np.abs(force).max()), float(np.abs(moment).max()))
    return worst / size
