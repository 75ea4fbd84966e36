"""Distances and collisions of robots beside Pinocchio with coal, in one process: values and times.

python benchmarks/distances.py [humanoid example-robot-data:g1 ...]

Both measure the same pairs of links, meshes as the convex hulls of all their points (coal reads and hulls
them itself). A pair's distance is the least of its shapes'. Times are processor time, the least of
interleaved repeats; Pinocchio's contain its own kinematics, as ours do, and its gradients are not part of it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pinocchio as pin
from measure import machine, prepare_to_measure
from models import in_pinocchio

import robokit as rk

ROBOTS = ("humanoid", "example-robot-data:g1", "example-robot-data:talos", "example-robot-data:panda")
STATES, REPEATS, ROWS = 20, 5, 256


class Coal:
    """The links' shapes as Pinocchio's geometry objects."""

    def __init__(self, robot: rk.Robot, path: str, pairs: tuple[tuple[str, str], ...]) -> None:
        self.model, self.data, self.adapter = in_pinocchio(robot)
        kind = pin.GeometryType.COLLISION
        if not any(link.collisions for link in robot.links):
            kind = pin.GeometryType.VISUAL
        file = rk.find_robot(path)
        folders = [str(parent) for parent in file.parents][:5]
        self.geometry = pin.buildGeomFromUrdf(
            self.model, str(rk.find_robot(path)), kind, package_dirs=folders
        )
        of: dict[str, list[int]] = {}
        for k, each in enumerate(self.geometry.geometryObjects):
            if hasattr(each.geometry, "buildConvexHull"):
                each.geometry.buildConvexHull(True, "Qt")
                each.geometry = each.geometry.convex
            of.setdefault(self.model.frames[each.parentFrame].name, []).append(k)
        self.first = []
        for a, b in pairs:
            self.first.append(len(self.geometry.collisionPairs))
            for i in of[a]:
                for j in of[b]:
                    self.geometry.addCollisionPair(pin.CollisionPair(i, j))
        self.found = pin.GeometryData(self.geometry)
        for request in self.found.distanceRequests:
            request.gjk_tolerance = request.epa_tolerance = 1e-12
            request.gjk_max_iterations = request.epa_max_iterations = 400

    def distances(self, q: np.ndarray) -> np.ndarray:
        """Of each pair of links."""
        pin.computeDistances(self.model, self.data, self.geometry, self.found, q)
        each = [result.min_distance for result in self.found.distanceResults]
        return np.minimum.reduceat(each, self.first)

    def measure(self, q: np.ndarray) -> None:
        """The same, its numbers left in place."""
        pin.computeDistances(self.model, self.data, self.geometry, self.found, q)

    def collide(self, q: np.ndarray) -> None:
        """All pairs in contact."""
        pin.computeCollisions(self.model, self.data, self.geometry, self.found, q, False)


def microseconds(calls: dict[str, tuple[Callable[[], Any], int]]) -> dict[str, float]:
    """Least processor time of each, over its number of configurations."""
    found = dict.fromkeys(calls, float("inf"))
    for _ in range(REPEATS):
        for name, (run, count) in calls.items():
            begun = time.process_time()
            run()
            found[name] = min(found[name], 1e6 * (time.process_time() - begun) / count)
    return found


def main(name: str) -> None:
    """Print a robot's lines."""
    robot = rk.load_urdf(rk.find_robot(name))
    rng = np.random.default_rng(0)
    q = np.array([robot.random_configuration(rng) for _ in range(ROWS)])
    ours = rk.distance(robot, q[:STATES])
    coal = Coal(robot, name, ours.pairs)
    theirs_q = [coal.adapter.q(row) for row in q[:STATES]]
    theirs = np.array([coal.distances(row) for row in theirs_q])
    error = ours.distance - theirs
    apart, deep = error[theirs > 0], error[theirs <= 0]
    print(f"{name}: {len(ours)} pairs of links, {len(coal.geometry.collisionPairs)} of shapes")
    print(f"  apart: {len(apart)}, off by at most {np.abs(apart).max():.1e} m", end="; ")
    if len(deep):
        print(f"overlaps: {len(deep)}, {deep.min():.1e} to {deep.max():.1e} m")
    few, most = q[:STATES], rk.collisions(robot, q)

    def each(call: Callable[[np.ndarray], Any], rows: Any) -> Callable[[], None]:
        def run() -> None:
            for row in rows:
                call(row)

        return run

    calls = {
        "distances, single": (each(lambda row: rk.distance(robot, row), few), STATES),
        "with gradients": (each(lambda row: rk.distance(robot, row, gradient=True), few), STATES),
        "coal's distances": (each(coal.measure, theirs_q), STATES),
        "distances, batch": (lambda: rk.distance(robot, q, threads=1), ROWS),
        "collisions, single": (each(lambda row: rk.collisions(robot, row), few), STATES),
        "coal's collisions": (each(coal.collide, theirs_q), STATES),
        "collisions, batch": (lambda: rk.collisions(robot, q, threads=1), ROWS),
    }
    for what, time_ in microseconds(calls).items():
        print(f"  {what:20} {time_:9.1f} us")
    print(f"  rows in collision: {np.count_nonzero(most.any)} of {ROWS}")


if __name__ == "__main__":
    prepare_to_measure()
    print(machine())
    for each_name in sys.argv[1:] or ROBOTS:
        main(each_name)
