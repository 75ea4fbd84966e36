"""Do fallen robots lie inside themselves? Looked at by Coal, which knows nothing of robokit's shapes."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

import robokit as rk
from fidelity_cases import scenes as s
from fidelity_cases.peer import Peer
from fidelity_cases.table import Found, Look, NotYet, case


@case("folding", "Self-collision", "Robots do not fold into themselves")
def folding(look: Look) -> Found:
    """Robots fall from 2 cm and lie after 4 s. Pinocchio and Coal look at the convex hulls of their
    collision shapes: all pairs of links that are not neighbours (two joints apart at most) and do not meet
    in the neutral pose. Measured: the pairs that overlap, and how deep.
    """
    found = Found()
    on = s.knows("self_collision")
    robots = [
        ("humanoid", "humanoid"),
        ("Talos", "example-robot-data:talos"),
        ("G1", s.G1),
        ("iCub", "example-robot-data:icub"),
    ]
    for label, name in robots[: look.some(4, 1)]:
        robot = s.load(name)
        try:
            overlaps = Overlaps(robot, rk.find_robot(name))
        except ImportError as missing:
            raise NotYet("Pinocchio and Coal are not installed") from missing
        for way in (True, False) if on else (None,):
            options: dict[str, Any] = {} if way is None else {"self_collision": way}
            counts, depths, failed = [], [0.0], 0
            for seed in range(look.some(4, 1)):
                q0 = rk.standing_configuration(robot, height=0.02, tilt=math.radians(4.0), seed=seed)
                t = s.fall(robot, q0, duration=4.0, ground=s.ground(), record_every=200, **options)
                failed += "stopped" in t.summary
                pairs = overlaps(t.q[-1])
                counts.append(len(pairs))
                depths += [depth for _, _, depth in pairs]
            what = label if way is not False else f"{label}, self_collision=False"
            limit = 3.0 if way else None
            theirs = {}
            for key, stiff in (("mujoco", False), ("stiff", True)) if look.peer and way else ():
                theirs[key] = _there(robot, overlaps, stiff, look.some(4, 1))
            many = {key: x[0] for key, x in theirs.items()}
            found.add(f"{what}: pairs that overlap at rest, mean", "", np.mean(counts), **many)
            deep = {key: x[1] for key, x in theirs.items()}
            found.add(f"{what}: deepest overlap", "mm", 1e3 * max(depths), **deep, most=limit)
            if failed:
                found.add(f"{what}: falls that failed", "", failed, most=0.0)
    if not on:
        found.notes.append("simulate(self_collision=) is not there.")
    return found


def _there(robot: rk.Robot, overlaps: Overlaps, stiff: bool, falls: int) -> tuple[float, float]:
    """Pairs that overlap after MuJoCo's falls, mean, and the deepest overlap [mm]; the same pairs touch."""
    peer, counts, deepest = Peer(s.same_joints(robot), 1e-3, stiff, pairs=rk.collision_pairs(robot)), [], 0.0
    for seed in range(falls):
        peer.start(rk.standing_configuration(robot, height=0.02, tilt=math.radians(4.0), seed=seed))
        peer.step(4000)
        pairs = overlaps(peer.q)
        counts.append(len(pairs))
        deepest = max([deepest, *(depth for _, _, depth in pairs)])
    return float(np.mean(counts)), 1e3 * deepest


class Overlaps:
    """Pairs of a robot's links that may meet, as hulls.

    Not those of Coal's ``buildConvexRepresentation``, which keep corners that lie inside: their distances
    depend on the order of the two (of iCub: 2 or 5 mm apart where no plane is between them).
    """

    def __init__(self, robot: rk.Robot, path: Any) -> None:
        import coal
        import pinocchio as pin

        from robokit.interop import PinocchioAdapter

        self.coal, self.pin = coal, pin
        model = pin.buildModelFromUrdf(str(path), pin.JointModelFreeFlyer())
        folders = [str(p) for p in Path(path).resolve().parents]
        shapes = pin.buildGeomFromUrdf(model, str(path), pin.GeometryType.COLLISION, package_dirs=folders)
        for shape in shapes.geometryObjects:
            if isinstance(shape.geometry, coal.BVHModelBase):
                points = coal.StdVec_Vec3s()
                points.extend(list(shape.geometry.vertices()))
                shape.geometry = coal.Convex.convexHull(points, True, "Qt")
        self.model, self.shapes = model, shapes
        self.data, self.placed = model.createData(), shapes.createData()
        self.to = PinocchioAdapter(robot, model)
        near = {(a, b) for a in range(model.njoints) for b in self._around(a)}
        objects = shapes.geometryObjects
        self.pairs = [
            (i, j)
            for i in range(len(objects))
            for j in range(i)
            if (objects[i].parentJoint, objects[j].parentJoint) not in near
        ]
        meeting = {(i, j) for i, j, _ in self._all(robot.neutral())}
        self.pairs = [pair for pair in self.pairs if pair not in meeting]

    def _around(self, joint: int) -> set[int]:
        """Joints at most two steps away in the tree."""
        parents = list(self.model.parents)

        def one(k: int) -> set[int]:
            return {k, parents[k]} | {j for j in range(1, len(parents)) if parents[j] == k}

        return {k for middle in one(joint) for k in one(middle)}

    def _all(self, q: np.ndarray) -> list[tuple[int, int, float]]:
        coal, out = self.coal, []
        self.pin.updateGeometryPlacements(self.model, self.data, self.shapes, self.placed, self.to.q(q))
        for i, j in self.pairs:
            result = coal.CollisionResult()
            a, b = (self.shapes.geometryObjects[k].geometry for k in (i, j))
            at, bt = (
                coal.Transform3s(self.placed.oMg[k].rotation, self.placed.oMg[k].translation) for k in (i, j)
            )
            if coal.collide(a, at, b, bt, coal.CollisionRequest(), result):
                out.append((i, j, float(-result.getContact(0).penetration_depth)))
        return out

    def __call__(self, q: np.ndarray) -> list[tuple[str, str, float]]:
        """Overlapping pairs (link, link, depth [m]) in a configuration."""
        names = [self.model.frames[g.parentFrame].name for g in self.shapes.geometryObjects]
        return [(names[i], names[j], depth) for i, j, depth in self._all(q)]
