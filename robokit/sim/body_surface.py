"""The contact points of one body: what of its shapes can touch a plane, within a stated error."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from robokit import disk_cache as cache
from robokit.meshes.hull_error import error_of, solid_hull, thinned
from robokit.model.parts import Link
from robokit.sim.contact_patches import MOST, patches
from robokit.sim.contact_shapes import Ball, ContactShape, Lowest, Rim

SAMPLES = 48
"""Points of a circle that stand for it where corners beside it are thinned."""

BLEND = 0.25
"""Height over the lowest corner up to which others count, relative to the error."""


@dataclass
class BodySurface:
    """Shapes of a body, in its coordinates.

    Attributes:
        exact: (link, shape) of those that are what they are.
        hulls: (link, corners (n, 3)) of meshes [m].
    """

    exact: list[tuple[Link, ContactShape]]
    hulls: list[tuple[Link, np.ndarray]]

    def on_the_hull(self) -> BodySurface:
        """The same without shapes inside the hull of all: they cannot be the lowest."""
        if len(self.exact) < 2 and not self.hulls:
            return self
        own = _samples(self.exact)
        if not own:
            return self
        hull = solid_hull(np.concatenate([*own, *(corners for _, corners in self.hulls)]))
        if hull is None:
            return self
        ends = np.cumsum([len(points) for points in own])
        found = set(np.searchsorted(ends, hull.vertices, side="right").tolist())
        return BodySurface([item for k, item in enumerate(self.exact) if k in found], self.hulls)

    def points(self, error: float) -> Iterator[tuple[Link, np.ndarray, float]]:
        """(link, its corners that are kept, their radius) for a plane, within ``error`` [m].

        Without exact shapes the hull is thinned to twice the error and its corners get the radius by which
        it is too small on the average: half outside, half inside.
        """
        if not self.hulls:
            return
        corners = np.concatenate([corners for _, corners in self.hulls])
        links = [link for link, own in self.hulls for _ in own]
        given = np.concatenate([*_samples(self.exact), np.zeros((0, 3))])
        share = 1.0 if len(given) else 2.0

        def made() -> list[np.ndarray]:
            kept = thinned(corners, share * error, given if len(given) else None)
            left = 0.0 if len(given) else float(error_of(corners, corners[kept]).max())
            return [kept, np.array([left if math.isfinite(left) else 0.0])]  # in one plane all are kept

        key = ("thinned", corners.tobytes(), given.tobytes(), share * error)
        kept, left = cache.arrays("thinned hull", key, made)
        names = {link.name: link for link in links}
        for name, link in names.items():
            own = [k for k in kept.tolist() if links[k].name == name]
            if own:
                yield link, corners[own], 0.5 * float(left[0])


def shapes_of(
    surface: BodySurface, error: float, plane: bool, most: int = MOST
) -> list[tuple[Link, ContactShape]]:
    """(link, shape) of a body's contact points.

    Args:
        surface: the body's shapes.
        error: of the surface that touches [m].
        plane: whether the ground is a plane: shapes inside the others are left out, and corners that cannot
            touch together share a point.
        most: points of the hulls of a link at most.
    """
    if plane:
        surface = surface.on_the_hull()
    found = list(surface.exact)
    for link, corners, radius in surface.points(error):
        groups = patches(corners, error, most) if plane else [[k] for k in range(len(corners))]
        for group in groups:
            places = tuple((float(x), float(y), float(z)) for x, y, z in corners[group])
            shape: ContactShape = Ball(places[0], radius)
            if len(places) > 1:
                shape = Lowest(places, radius, BLEND * error)
            found.append((link, shape))
    return found


def _samples(exact: list[tuple[Link, ContactShape]]) -> list[np.ndarray]:
    """Points that stand for exact shapes: corners, and points of circles; of balls, their ends."""
    found = []
    for _, shape in exact:
        points, radius = _extent(shape)
        if radius:
            ends = radius * np.concatenate([np.eye(3), -np.eye(3)])
            points = (points[:, None] + ends).reshape(-1, 3)
        found.append(points)
    return found


def _extent(shape: ContactShape) -> tuple[np.ndarray, float]:
    """Points whose hull, enlarged by a radius, is the shape's."""
    if isinstance(shape, Ball):
        return np.array([shape.position], dtype=float), float(shape.radius)
    if isinstance(shape, Rim):
        return shape.samples(SAMPLES), shape.rounding
    return np.array(shape.corners), shape.radius
