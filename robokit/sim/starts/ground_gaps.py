"""How far a robot's shapes are from a ground, and how far it is to be lowered onto it.

Every number comes from the configuration by + - * / and square roots in an order that is written here, so
that starts of sweeps have the same bits on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from robokit.algorithms.kinematics import forward_kinematics
from robokit.collision.detect_kernel import Detector
from robokit.collision.fields import FIELD, PLANE
from robokit.collision.scene import robot_shapes, scene
from robokit.collision.shapes import Core, PlacedCore
from robokit.collision.support import SUPPORTS
from robokit.errors import ShapeError
from robokit.model.robot import Robot
from robokit.sim.ground import Ground, plane_of, world_of
from robokit.spatial import Vector3
from robokit.spatial.scalars import added

CLOSE = 1e-10
"""Gap that is none [m]."""

LOOKED = 0.25
"""Of the robot's size: how far ahead it is looked when it is lowered."""

ROUNDS = 10_000
"""Of lowering, at most."""


def touching_shapes(robot: Robot, ground: Ground) -> list[PlacedCore]:
    """Shapes of a robot that can touch a ground: those of bodies that move."""
    return [c for c in robot_shapes(robot, ground.shape_error).placed if c.body]


def ground_gaps(robot: Robot, q: np.ndarray, ground: Ground) -> np.ndarray:
    """Distance of the robot from the ground in each row of q (B, nq), below 0 inside; (B,) [m].

    Infinite for a robot without shapes. Where the ground is not one plane, it is infinite, too, for what is
    farther away than a quarter of the robot's size.
    """
    shapes = touching_shapes(robot, ground)
    if not shapes:
        return np.full(len(q), math.inf)
    if ground.only_plane:
        return _over_plane(robot, shapes, q, ground)
    over = _Uneven(robot, ground)
    return np.array([over.gap(row, k) for k, row in enumerate(q)])


def lowered(robot: Robot, q: np.ndarray, ground: Ground, clearance: Any) -> np.ndarray:
    """Heights of the base, (B,) [m], at which each row of q (B, nq) hangs ``clearance`` over the ground.

    NaN where there is nothing under the robot.

    Args:
        robot: a robot with a floating base.
        q: configurations, of which the base's height does not matter.
        ground: what is under it.
        clearance: gap of the nearest shape, a number or (B,) [m].
    """
    wanted = np.broadcast_to(clearance, len(q))
    if ground.only_plane:
        return np.asarray(q[:, 6] + (wanted - ground_gaps(robot, q, ground)) / ground.up[2])
    over = _Uneven(robot, ground)
    return np.array([over.lowered(row, k, float(wanted[k])) for k, row in enumerate(q)])


def lowered_base(robot: Robot, q: np.ndarray, ground: Ground, clearance: float) -> float:
    """The same of one configuration (nq,).

    Raises:
        ShapeError: there is nothing under the robot.
    """
    if not touching_shapes(robot, ground):
        return ground.height + clearance
    z = float(lowered(robot, q[None], ground, clearance)[0])
    if math.isnan(z):
        raise ShapeError("ground: nothing is under the robot; put it over a solid, or add the plane")
    return z


def body_poses(robot: Robot, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rotations (B, N + 1, 3, 3) to world axes and origins (B, N + 1, 3) of bodies 0..N [m]."""
    B, n = len(q), robot.nbodies + 1
    R, p = np.zeros((B, n, 3, 3)), np.zeros((B, n, 3))
    R[:, 0] = np.eye(3)
    for i, X in enumerate(forward_kinematics(robot.tree, robot.split_q(list(q.T)))[1:], 1):
        for k, row in enumerate(X.E.rows):
            for m, x in enumerate(row):
                R[:, i, m, k] = x
        for k, x in enumerate(X.r):
            p[:, i, k] = x
    return R, p


# ---- one plane -------------------------------------------------------------------------------------------


def _over_plane(robot: Robot, shapes: list[PlacedCore], q: np.ndarray, ground: Ground) -> np.ndarray:
    n, found = ground.up, np.full(len(q), math.inf)
    X0 = forward_kinematics(robot.tree, robot.split_q(list(q.T)))
    with np.errstate(all="ignore"):
        for c in shapes:
            X = X0[c.body]
            place = c.placement if c.core.own is None else c.placement @ c.core.own
            down = [*(X.E @ Vector3(*n))]
            x, y, z = place.position.tolist()
            at = n[0] * X.r.x + n[1] * X.r.y + n[2] * (X.r.z - ground.height)
            at = at + (down[0] * x + down[1] * y + down[2] * z)
            own = [added(place.rotation[k, m] * down[k] for k in range(3)) for m in range(3)]
            found = np.minimum(found, at + lowest(c.core, own) - c.core.radius)
    return found


def lowest(core: Core, n: Any) -> Any:
    """Least n . x of the points x of a core without its radius, for unit vectors n of three (B,) [m]."""
    if core.hull is None:
        down = -Vector3(*n)
        return -SUPPORTS[core.kind](Vector3(*core.size), down).dot(down)
    corners = core.hull.corners
    heights = [corners[:, k][:, None] * np.atleast_1d(s) for k, s in enumerate(n)]
    return (heights[0] + heights[1] + heights[2]).min(axis=0)


# ---- others ----------------------------------------------------------------------------------------------


class _Uneven:
    """A robot over a ground that is not one plane."""

    def __init__(self, robot: Robot, ground: Ground) -> None:
        found = scene(robot, world_of(ground), (), ground.shape_error)
        self.robot, self.ground, self.arrays = robot, ground, found.arrays
        own = np.array([bool(link) for link in found.links])
        x = found.arrays
        self.bodies, self.centres = x["shape_body"][own], x["shape_centre"][own]
        self.bounds = x["shape_bound"][own]
        self.far = LOOKED * (float(np.ptp(self._balls(robot.neutral())[0], axis=0).max()) + self.bounds.max())
        self.detector = Detector(found.arrays, robot.nbodies + 1, self.far, reproducible=True)
        self.own_plane = ground.plane and np.ndim(ground.normal) == 2

    def _balls(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        R, p = body_poses(self.robot, q[None])
        turned = R[0, self.bodies]
        at = sum(turned[:, :, k] * self.centres[:, None, k] for k in range(3))
        return p[0, self.bodies] + at, self.bounds

    def gap(self, q: np.ndarray, row: int) -> float:
        """Distance in a configuration."""
        if not np.isfinite(q).all():
            return math.nan
        if self.own_plane:
            plane, _ = plane_of(self.ground.row(row))
            placement = np.concatenate([plane.rotation.ravel(), plane.position])
            self.detector.arrays["shape_placement"][0] = placement
        R, p = body_poses(self.robot, q[None])
        return float(self.detector.at(R[0], p[0])["contact_gap"].min(initial=math.inf))

    def lowered(self, q: np.ndarray, row: int, clearance: float) -> float:
        """Height of the base, lowered from above all of the ground until the first shape is near."""
        if not np.isfinite(q).all():
            return math.nan
        q = q.copy()
        centres, bounds = self._balls(q)
        ends = list(self._ends(centres, bounds, clearance, row))
        top = max(float((high - centres[:, 2]).max()) for _, high in ends)
        bottom = min(float((low - centres[:, 2]).min()) for low, _ in ends)
        z = q[6]
        q[6] = z + top
        for _ in range(ROUNDS):
            # No shape meets the ground before it has gone its distance from it.
            step = min(self.gap(q, row), self.far) - clearance
            q[6] -= step if abs(step) > 0.0 else 0.0
            if abs(step) < CLOSE:
                return float(q[6])
            if q[6] < z + bottom:
                return math.nan
        return float(q[6])

    def _ends(
        self, centres: np.ndarray, bounds: np.ndarray, clearance: float, row: int
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Heights at which balls are under and over all of each surface, (K,) each [m]."""
        x, ground, away = self.arrays, self.ground, bounds + abs(clearance)
        for k in np.flatnonzero(x["shape_body"] == 0).tolist():
            kind, z = int(x["shape_kind"][k]), float(x["shape_centre"][k, 2])
            if kind == PLANE:
                n = ground.row(row).up
                level = ground.height - (n[0] * centres[:, 0] + n[1] * centres[:, 1]) / n[2]
                yield level - away / n[2], level + away / n[2]
            elif kind == FIELD:
                least, most = float(x["heights"].min()), float(x["heights"].max())
                yield z + least - self.far - away, z + most + away
            else:
                yield z - x["shape_bound"][k] - away, z + x["shape_bound"][k] + away
