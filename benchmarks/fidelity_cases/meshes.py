"""How deep the true shapes of a fallen robot lie, beside what is said of its contact points."""

from __future__ import annotations

import math

import numpy as np

import robokit as rk
from fidelity_cases import scenes as s
from fidelity_cases.peer import Peer, both
from fidelity_cases.table import Found, Look, case
from robokit.meshes.hull import hull_corners
from robokit.model import Box, Capsule, Cylinder, Mesh

ROBOTS = ("g1", "talos", "anymal", "go2", "icub")


@case("deepest", "Shapes", "The deepest vertex of the meshes of robots at rest")
def deepest(look: Look) -> Found:
    """Robots fall from 2 cm and lie after 4 s, at 1 ms. All corners of the hulls of their meshes, their
    boxes, balls and the rims of their cylinders are searched for the deepest point. Measured: how much deeper
    it lies than the deepest contact.
    """
    found = Found()
    for name in ROBOTS[: look.some(len(ROBOTS), 2)]:
        robot = s.load(f"example-robot-data:{name}")
        q0 = rk.standing_configuration(robot, height=0.02, tilt=math.radians(4.0), seed=0)
        t = s.fall(robot, q0, duration=4.0, ground=s.ground(), record_every=500)
        with s.quiet():
            presses = t.contacts.forces[-1, :, 2] > 0.0
            said = -float(t.contacts.points[-1, presses, 2].min(initial=math.inf))
        true, link = depth(robot, t.q[-1])
        found.add(
            f"{name}: true depth less that of the contacts ({link})", "mm", 1e3 * (true - said), most=1.0
        )

        def theirs(stiff: bool, robot: rk.Robot = robot, q0: np.ndarray = q0) -> float:
            peer = Peer(s.same_joints(robot), 1e-3, stiff, pairs=rk.collision_pairs(robot))
            peer.start(q0)
            peer.step(4000)
            return 1e3 * depth(robot, peer.q)[0]

        found.add(f"{name}: true depth", "mm", 1e3 * true, **both(look, theirs))
        found.add(f"{name}: deepest contact of the summary", "mm", 1e3 * t.summary["deepest_penetration"])
    return found


def depth(robot: rk.Robot, q: np.ndarray) -> tuple[float, str]:
    """Depth of the deepest point of the collision shapes under z = 0 [m], and its link."""
    poses = rk.forward_kinematics(robot, q)
    best = (-math.inf, "")
    for link in robot.links:
        for shape in link.collisions if link.body else ():
            R, p = poses[link.name]
            at = shape.placement
            best = max(best, (-_lowest(shape.geometry, R @ at.rotation, R @ at.position + p), link.name))
    return best


def _lowest(geometry, R: np.ndarray, p: np.ndarray) -> float:
    """z of the lowest point of a shape, in the world."""
    if isinstance(geometry, Mesh):
        return float((hull_corners(geometry) @ R.T + p)[:, 2].min())
    if isinstance(geometry, Cylinder):
        return float(
            p[2] - abs(R[2, 2]) * 0.5 * geometry.length - math.hypot(R[2, 0], R[2, 1]) * geometry.radius
        )
    if isinstance(geometry, Box):
        return float(p[2] - 0.5 * np.abs(R[2]) @ np.array(geometry.size))
    half = 0.5 * geometry.length * abs(R[2, 2]) if isinstance(geometry, Capsule) else 0.0
    return float(p[2] - half - geometry.radius)
