"""What overlaps at the starts of runs: bodies of the robot, and links in the ground."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robokit.caching import Spare
from robokit.collision.detect_kernel import Detector
from robokit.collision.scene import Scene
from robokit.sim.ground.ground_world import plane_of
from robokit.sim.motion.state_facts import state_poses
from robokit.sim.starts.ground_gaps import body_poses
from robokit.sim.step.step_kernel import Program
from robokit.sim.stepping.step_numbers import ground_stiffness, scene_of

ROWS = 1024
"""Starts whose poses are computed together."""

FEW = 16
"""Starts that one after the other are quicker."""


@dataclass(frozen=True)
class StartContacts:
    """The deepest overlaps at the starts of B rows, 0 of what is not finite.

    Attributes:
        depth: in the ground [m], (B,).
        link: that is there, B names.
        overlap: of bodies [m], (B,).
        bodies: that overlap, (B, 2).
        energy: that the springs of all these contacts hold [J], (B,).
    """

    depth: np.ndarray
    link: list[str]
    overlap: np.ndarray
    bodies: np.ndarray
    energy: np.ndarray


def start_contacts(program: Program, q: np.ndarray) -> StartContacts:
    """What overlaps in the rows of q (B, nq)."""
    ground, robot = program.ground, program.robot
    B = len(q)
    if ground is not None and ground.rows is not None and B == 1:
        B = ground.rows
    found = StartContacts(np.zeros(B), [""] * B, np.zeros(B), np.zeros((B, 2), int), np.zeros(B))
    if not program.contact:
        return found
    scene = scene_of(program)
    if not len(scene.arrays["pair_shapes"]):
        return found
    k = ground_stiffness(program, 0)
    spare: Spare[tuple[Scene, Detector]] = robot.derived.get("spare detectors", lambda: Spare(2))
    _, detector = kept = spare.take(id(scene), lambda: (scene, Detector(scene.arrays, robot.nbodies + 1)))
    of_ground = np.array([not link for link in scene.links])
    normals = ground is not None and bool(ground.plane) and np.ndim(ground.normal) == 2
    for first in range(0, B, ROWS):
        some = q[first : first + ROWS] if len(q) == B else np.broadcast_to(q, (min(ROWS, B), q.shape[1]))
        with np.errstate(all="ignore"):
            poses = state_poses if len(some) <= FEW and robot.samples is None else body_poses
            R, p = poses(robot, some)
        for m in np.flatnonzero(np.isfinite(R).all(axis=(1, 2, 3)) & np.isfinite(p).all(axis=(1, 2))):
            row = first + int(m)
            if normals and ground is not None:
                plane, _ = plane_of(ground.row(row))
                placement = np.concatenate([plane.rotation.ravel(), plane.position])
                detector.arrays["shape_placement"][0] = placement
            contacts = detector.at(R[m], p[m])
            depth = -contacts["contact_gap"]
            if not len(depth):
                continue
            found.energy[row] = 0.5 * k * float(np.square(np.maximum(depth, 0.0)).sum())
            shapes = scene.arrays["pair_shapes"][contacts["contact_pair"]]
            inside = of_ground[shapes[:, 0]]
            for which, deepest in ((inside, found.depth), (~inside, found.overlap)):
                if which.any():
                    at = int(np.where(which, depth, -np.inf).argmax())
                    deepest[row] = max(float(depth[at]), 0.0)
                    if which is inside:
                        found.link[row] = scene.links[shapes[at, 1]]
                    else:
                        found.bodies[row] = contacts["contact_bodies"][at]
    if not normals:  # else its plane is not that of the scene
        spare.give(id(scene), kept)
    return found
