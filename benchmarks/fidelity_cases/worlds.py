"""Loose bodies in one world, as robokit and MuJoCo see them."""

from __future__ import annotations

import math
import struct
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import robokit as rk
from fidelity_cases import scenes as s
from fidelity_cases.peer import Peer
from robokit.model import Box, Capsule, Cylinder, Mesh, ModelBuilder, Shape, Sphere


@dataclass(frozen=True)
class Body:
    """A loose body: its geometry, mass and start.

    Attributes:
        geometry: a Box, Sphere, Capsule, Cylinder, or corners (n, 3) of a hull around their middle [m].
        mass: [kg]; the inertia is that of an even density.
        at: position (3,) [m].
        turn: unit quaternion w, x, y, z.
        v: angular, then linear velocity in body axes (6,) [rad/s, m/s].
    """

    geometry: Any
    mass: float = 1.0
    at: tuple[float, ...] = (0.0, 0.0, 0.0)
    turn: tuple[float, ...] = (1.0, 0.0, 0.0, 0.0)
    v: tuple[float, ...] = (0.0,) * 6


@dataclass(frozen=True)
class World:
    """Bodies, what holds between them, and the ground.

    Attributes:
        bodies: loose bodies.
        friction: of the ground and between bodies.
        restitution: likewise.
        plane: whether there is the plane z = 0.
        solids: (geometry, position) of solids at rest.
        gravity: [m/s²].
        ground: further options of rk.Ground.
    """

    bodies: Sequence[Body]
    friction: float = 0.5
    restitution: float = 0.0
    plane: bool = True
    solids: Sequence[tuple[Any, tuple[float, float, float]]] = ()
    gravity: tuple[float, float, float] = (0.0, 0.0, -s.G)
    ground: dict[str, Any] = field(default_factory=dict)

    def robot(self) -> rk.Robot:
        """All bodies, as one robot; q and v are those of the bodies one after the other."""
        return rk.together({f"b{k}": _body(b.geometry, b.mass) for k, b in enumerate(self.bodies)})

    def start(self) -> tuple[np.ndarray, np.ndarray]:
        """q and v."""
        q = [(*(np.array(b.turn) / np.linalg.norm(b.turn)), *b.at) for b in self.bodies]
        return np.ravel(q), np.ravel([b.v for b in self.bodies])

    def options(self, robot: rk.Robot) -> dict[str, Any]:
        """Ground, pairs and gravity for simulate and rollout."""
        bounce = {"restitution": self.restitution} if self.restitution else {}
        pairs = rk.collision_pairs(robot).with_law(friction=self.friction, **bounce)
        solids = [rk.Solid(g, at) for g, at in self.solids]
        more: dict[str, Any] = {"shapes": solids} if solids else {}
        if solids and not self.plane:
            more["plane"] = False
        there = self.plane or solids
        ground = s.ground(friction=self.friction, **bounce, **more, **self.ground) if there else None
        pairs = pairs if len(self.bodies) > 1 else False
        return {"ground": ground, "self_collision": pairs, "gravity": self.gravity, "joint_damping": 0.0}

    def run(self, duration: float, dt: float = 1e-3, every: float = 1e-2, **more: Any) -> rk.Trajectory:
        """The motion of robokit."""
        robot = self.robot()
        q, v = self.start()
        q, v = more.pop("q", q), more.pop("v", v)
        options = self.options(robot) | {"record_every": max(1, round(every / dt))} | more
        return s.fall(robot, q, v, duration=duration, dt=dt, **options)

    def peer(self, dt: float = 1e-3, stiff: bool = False, **more: Any) -> Peer:
        """MuJoCo at the start."""
        robot = self.robot()
        options = {"pairs": rk.collision_pairs(robot), "solids": self.solids, "plane": self.plane} | more
        out = Peer(robot.with_gravity(self.gravity), dt, stiff, self.friction, **options)
        out.start(*self.start())
        return out


def places(q: np.ndarray) -> np.ndarray:
    """Positions (..., n, 3) of loose bodies [m]."""
    return q.reshape(*q.shape[:-1], -1, 7)[..., 4:]


def tower(count: int, size: float = 0.1, masses: Sequence[float] | None = None, off: float = 1e-3) -> World:
    """Boxes on each other, each other one a little aside."""
    box = Box((size,) * 3)
    return World(
        [
            Body(box, 1.0 if masses is None else masses[k], (off * (k % 2), 0.0, size * (k + 0.5)))
            for k in range(count)
        ]
    )


def heap(count: int, seed: int = 0, kinds: str = "hbcls") -> World:
    """Mixed bodies in columns above the ground, at random angles: hulls, boxes, cylinders, capsules, balls.

    Args:
        count: of bodies.
        seed: of sizes and angles.
        kinds: initial letters of the kinds in turn (l: capsule, s: ball, h: hull).
    """
    rng, bodies = np.random.default_rng(seed), []
    for k in range(count):
        kind, size = kinds[k % len(kinds)], rng.uniform(0.04, 0.08)
        geometry: Any = {
            "b": lambda size=size: Box(tuple(size * rng.uniform(0.8, 2.0, 3))),
            "c": lambda size=size: Cylinder(size, 1.5 * size),
            "l": lambda size=size: Capsule(0.5 * size, 1.5 * size),
            "s": lambda size=size: Sphere(size),
            "h": lambda size=size: hull(rng, size),
        }[kind]()
        turn = rng.standard_normal(4)
        column, row = k % 9, k // 9
        at = (0.25 * (column % 3 - 1), 0.25 * (column // 3 - 1), 0.15 + 0.25 * row)
        bodies.append(Body(geometry, rng.uniform(0.5, 2.0), at, tuple(turn / np.linalg.norm(turn))))
    return World(bodies)


def hull(rng: np.random.Generator, size: float, corners: int = 16) -> np.ndarray:
    """Corners of a random hull, on an ellipsoid, around its middle [m]."""
    x = rng.standard_normal((corners, 3))
    x = size * rng.uniform(0.7, 1.5, 3) * x / np.linalg.norm(x, axis=1)[:, None]
    _, middle, _ = _mesh_properties(x)
    return x - middle


def _body(geometry: Any, mass: float) -> rk.Robot:
    """A floating body of an even density."""
    if isinstance(geometry, np.ndarray):
        _, _, inertia = _mesh_properties(geometry)
        shape: Any = written(geometry.tobytes())
        inertia = inertia * mass
    else:
        shape, inertia = geometry, np.diag(_diagonal(geometry)) * mass
    return (
        ModelBuilder("body").link("body", mass, inertia=inertia, collisions=(Shape(shape),)).build("floating")
    )


def _diagonal(g: Any) -> np.ndarray:
    """Moments of inertia of a solid of 1 kg [m²]."""
    if isinstance(g, Box):
        square = np.array(g.size) ** 2
        return (square.sum() - square) / 12.0
    if isinstance(g, Sphere):
        return np.full(3, 0.4 * g.radius**2)
    r, h = g.radius, g.length
    if isinstance(g, Cylinder):
        return np.array([(3 * r * r + h * h) / 12.0] * 2 + [0.5 * r * r])
    ball, bar = 4.0 / 3.0 * math.pi * r**3, math.pi * r * r * h
    ball, bar = ball / (ball + bar), bar / (ball + bar)
    across = bar * (3 * r * r + h * h) / 12.0 + ball * (0.4 * r * r + 0.25 * h * h + 0.375 * h * r)
    return np.array([across, across, bar * 0.5 * r * r + ball * 0.4 * r * r])


def _triangles(x: np.ndarray) -> np.ndarray:
    """Faces of the hull of points, (n, 3, 3), seen from outside against the clock."""
    from scipy.spatial import ConvexHull

    found = ConvexHull(x)
    out = x[found.simplices]
    normal = np.cross(out[:, 1] - out[:, 0], out[:, 2] - out[:, 0])
    wrong = (normal * found.equations[:, :3]).sum(axis=1) < 0.0
    out[wrong] = out[wrong][:, ::-1]
    return out


def _mesh_properties(x: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Volume, middle, and inertia about it at 1 kg, of the hull of points."""
    t = _triangles(x)
    volumes = np.einsum("ni,ni->n", t[:, 0], np.cross(t[:, 1], t[:, 2])) / 6.0
    volume = volumes.sum()
    middle = np.einsum("n,ni->i", volumes, t.sum(axis=1)) / (4.0 * volume)
    total = t.sum(axis=1)
    second = np.einsum("n,nki,nkj->ij", volumes, t, t) + np.einsum("n,ni,nj->ij", volumes, total, total)
    second = second / (20.0 * volume) - np.outer(middle, middle)
    return float(volume), middle, np.trace(second) * np.eye(3) - second


@cache
def written(corners: bytes) -> Mesh:
    """The hull of corners as a mesh in a file."""
    triangles = _triangles(np.frombuffer(corners).reshape(-1, 3))
    folder = Path(tempfile.mkdtemp(prefix="hulls"))
    data = [b"\0" * 80, struct.pack("<I", len(triangles))]
    for t in triangles:
        data.append(struct.pack("<12fH", 0.0, 0.0, 0.0, *t.ravel(), 0))
    path = folder / "hull.stl"
    path.write_bytes(b"".join(data))
    return Mesh(str(path), path=path)
