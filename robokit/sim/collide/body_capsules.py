"""Capsules of a robot's links, in place of their shapes.

Each link's collision shapes stand for the convex hull of them all, for which up to three capsules are fitted
(capsule_fit.py). If no link has a collision shape, the visual shapes are used; as for contact points.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from robokit.meshes.hull import hull_corners
from robokit.model.geometry import Box, Capsule, Cylinder, Mesh, Shape, Sphere
from robokit.model.parts import Link
from robokit.model.robot import Robot
from robokit.sim.collide.capsule_fit import fit_capsules

RIM = 24
CORNERS = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])


@dataclass(frozen=True)
class LinkCapsule:
    """A capsule on a body; a sphere where start and end are the same.

    Attributes:
        link: name of the link whose shapes it stands for.
        body: number of the body it belongs to.
        start, end: (3,) ends of its axis in body coordinates [m].
        radius: [m].
        error: of the fit of the link's capsules to its shapes [m].
    """

    link: str
    body: int
    start: tuple[float, float, float]
    end: tuple[float, float, float]
    radius: float
    error: float

    @property
    def is_sphere(self) -> bool:
        """Whether its axis has no length."""
        return self.start == self.end


def body_capsules(robot: Robot) -> tuple[LinkCapsule, ...]:
    """The capsules of all links that have shapes, computed once."""
    return robot.derived.get(("body capsules",), lambda: _body_capsules(robot))


def _body_capsules(robot: Robot) -> tuple[LinkCapsule, ...]:
    found: list[LinkCapsule] = []
    for link in robot.links:
        balls = link_balls(link, shapes_of(robot, link))
        if balls is None:
            continue
        P = link.placement
        fit = fit_capsules(balls[0] @ P.rotation.T + P.position, balls[1])
        for a, b, r in zip(fit.start.tolist(), fit.end.tolist(), fit.radius.tolist(), strict=True):
            found.append(LinkCapsule(link.name, link.body, tuple(a), tuple(b), r, fit.error))
    return tuple(found)


def shapes_of(robot: Robot, link: Link) -> tuple[Shape, ...]:
    """The shapes that a link touches other links with."""
    return link.collisions if any(other.collisions for other in robot.links) else link.visuals


def link_balls(link: Link, shapes: tuple[Shape, ...]) -> tuple[np.ndarray, np.ndarray] | None:
    """Balls whose hull is that of a link's shapes: centres (n, 3) in the link frame and radii (n,) [m].

    Meshes that cannot be read are left out; None where nothing is left.
    """
    centres, radii = [], []
    for shape in shapes:
        try:
            local, radius = balls_of(shape)
        except Exception:  # readers of mesh formats raise whatever they like; contact_points warns of them
            continue
        P = shape.placement
        centres.append(local @ P.rotation.T + P.position)
        radii.append(np.full(len(local), radius))
    return (np.concatenate(centres), np.concatenate(radii)) if centres else None


def balls_of(shape: Shape) -> tuple[np.ndarray, float]:
    """Centres (n, 3) in the shape's frame and the radius of balls whose hull is the shape [m]."""
    geometry = shape.geometry
    if isinstance(geometry, Mesh):
        return hull_corners(geometry), 0.0
    if isinstance(geometry, Sphere):
        return np.zeros((1, 3)), geometry.radius
    if isinstance(geometry, Box):
        return CORNERS * np.array(geometry.size), 0.0
    end = np.array([0.0, 0.0, 0.5 * geometry.length])
    if isinstance(geometry, Capsule):
        return np.array([-end, end]), geometry.radius
    assert isinstance(geometry, Cylinder)
    turns = 2.0 * math.pi / RIM * np.arange(RIM)
    rim = geometry.radius * np.stack([np.cos(turns), np.sin(turns), np.zeros(RIM)], axis=1)
    return np.concatenate([rim - end, rim + end]), 0.0
