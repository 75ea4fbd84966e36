"""A ground as what stands still and can be touched (collision/scene.py)."""

from __future__ import annotations

from typing import Any

import numpy as np

from robokit.collision.scene import World
from robokit.model.geometry import Placement
from robokit.sim.ground.ground import Ground
from robokit.spatial import Vector3


def plane_of(ground: Ground) -> tuple[Placement, tuple[float, ...]]:
    """Placement of the plane, z along its normal; spin and velocity of its surface at the world's origin."""
    n = np.array(ground.up, dtype=float)
    t = _cross((0.0, 1.0, 0.0) if abs(n[2]) > abs(n[1]) else (0.0, 0.0, 1.0), n)
    t /= np.linalg.norm(t)
    place, spin = np.array([0.0, 0.0, ground.height]), ground.spin * n
    along = np.array(ground.velocity, dtype=float)
    along = along - n * n.dot(along) - _cross(spin, place)
    return Placement(np.stack([t, _cross(n, t), n], axis=1), place), (*spin.tolist(), *along.tolist())


def _cross(a: Any, b: Any) -> np.ndarray:
    return np.array([*Vector3(*a).cross(Vector3(*b))])  # a tenth of the time of numpy.cross


def world_of(ground: Ground) -> World:
    """All of a ground; its plane is that of the first row where rows differ in it."""
    alone, field = ground.row(0), ground.terrain
    plane, velocity = plane_of(alone) if ground.plane else (None, (0.0,) * 6)
    solids = [(solid.geometry, solid.placement) for solid in ground.shapes]
    if field is None:
        return World(plane, velocity, solids)
    return World(plane, velocity, solids, field.heights, field.cell, field.origin)
