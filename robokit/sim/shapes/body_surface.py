"""The contact points of one body: what of its shapes can touch a plane, within a stated error."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from robokit import disk_cache as cache
from robokit.meshes.hull_circles import circles
from robokit.meshes.hull_error import error_of, solid_hull, thinned
from robokit.model.parts import Link
from robokit.sim.shapes.contact_patches import MOST, neighbourhoods, patches
from robokit.sim.shapes.contact_shapes import Ball, ContactShape, Lowest, Point, Rim, cylinder_points

SAMPLES = 96
"""Points of a circle that stand for it where corners beside it are thinned."""

BLEND = 0.25
"""Height over the lowest corner up to which others count, relative to the error."""

THICK = 10.0
"""Corners share a point only if they are never both this near the ground, relative to the error."""

LEFT = 8
"""Corners of a hull beside its circles, at most: circles are for wheels, not for every round edge."""

ROUND = 40
"""Corners of a mesh that is taken as a ball, at least."""

ON_IT = 1e-9
"""Points this deep inside a hull, relative to its size, lie on it."""


@dataclass
class BodySurface:
    """Shapes of a body, in its coordinates.

    Attributes:
        exact: (link, shape) of those that are what they are.
        hulls: (link, corners (n, 3)) of meshes [m].
    """

    exact: list[tuple[Link, ContactShape]]
    hulls: list[tuple[Link, np.ndarray]]

    def with_rims(self, error: float) -> BodySurface:
        """The same with hulls that are balls, and the circles of others besides their corners, as exact."""
        exact, hulls = list(self.exact), []
        for link, corners in self.hulls:
            ball = ball_of(corners, error)
            if ball is not None:
                exact.append((link, ball))
                continue
            hulls.append((link, corners))
            exact += [(link, rim) for rim in rims_of(corners, error)]
        return BodySurface(exact, hulls)

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
        size = float(np.ptp(hull.points, axis=0).max())
        kept: list[tuple[Link, ContactShape]] = []
        for item, points in zip(self.exact, own, strict=True):
            depth = -(points @ hull.equations[:, :3].T + hull.equations[:, 3]).max()
            if depth <= ON_IT * size and all(item[1] != shape for _, shape in kept):
                kept.append(item)
        return BodySurface(kept, self.hulls)

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
                # To the nanometre: the error is found in sums whose order depends on the processor.
                yield link, corners[own], round(0.5 * float(left[0]), 9)


def shapes_of(
    surface: BodySurface, error: float, plane: bool, most: int = MOST
) -> list[tuple[Link, ContactShape]]:
    """(link, shape) of a body's contact points.

    Args:
        surface: the body's shapes.
        error: of the surface that touches [m].
        plane: whether the ground is a plane: shapes inside the others are left out, and corners that cannot
            touch together share a point. If not, corners near each other do.
        most: points of the hulls of a link at most.
    """
    surface = surface.with_rims(error)
    if plane:
        surface = surface.on_the_hull()
    found = shared(surface.exact, error) if plane else list(surface.exact)
    for link, corners, radius in surface.points(error):
        groups = patches(corners, error, most) if plane else neighbourhoods(corners, most)
        for group in groups:
            places = tuple((float(x), float(y), float(z)) for x, y, z in corners[group])
            shape: ContactShape = Ball(places[0], radius)
            if len(places) > 1:
                shape = Lowest(places, radius, BLEND * error)
            found.append((link, shape))
    return found


def shared(exact: list[tuple[Link, ContactShape]], error: float) -> list[tuple[Link, ContactShape]]:
    """The same with a point for corners of a link that never touch together: opposite ones of a box."""
    found = [item for item in exact if not _is_corner(item[1])]
    for link in {link.name: link for link, _ in exact}.values():
        own = [shape for other, shape in exact if other is link and _is_corner(shape)]
        corners = np.array([shape.reach()[0] for shape in own], dtype=float).reshape(-1, 3)
        for group in patches(corners, THICK * error, len(own), 0.0):
            shape = own[group[0]]
            if len(group) > 1:
                shape = Lowest(tuple(own[k].reach()[0] for k in group), 0.0, BLEND * error)
            found.append((link, shape))
    return found


def _is_corner(shape: ContactShape) -> bool:
    return isinstance(shape, Ball) and shape.radius == 0.0


def ball_of(corners: np.ndarray, error: float) -> Ball | None:
    """The ball that a hull of many corners is, within the error and a twentieth of its radius; else None."""
    if len(corners) < ROUND:
        return None
    center = np.round(0.5 * (corners.min(axis=0) + corners.max(axis=0)), 9)
    x, y, z = (corners - center).T
    away = np.sqrt(x * x + y * y + z * z)
    radius = round(float(away.max()), 9)
    most = min(error, 0.05 * radius)
    if float(away.min()) < radius - most:
        return None
    hull = solid_hull(corners - center)
    if hull is None or float(-hull.equations[:, 3].max()) < radius - most:
        return None
    return Ball(_tuple(center), radius)


def rims_of(corners: np.ndarray, error: float) -> list[Rim]:
    """Points on the circles of a hull: of each the lowest, and at flat ends more to stand on."""

    def made() -> list[np.ndarray]:
        rows = [[*c.center, *c.axis, c.radius, c.flat] for c in circles(corners, error)]
        rims = [Rim(_tuple(np.array(row[:3])), _tuple(np.array(row[3:6])), row[6]) for row in rows]
        if rims and len(thinned(corners, error, np.concatenate([r.samples(SAMPLES) for r in rims]))) > LEFT:
            rows = []
        return [np.array(rows, dtype=float).reshape(-1, 8)]

    (rows,) = cache.arrays("circles of a hull", ("circles", corners.tobytes(), error), made)
    found: list[Rim] = []
    flat: list[np.ndarray] = []
    for row in rows:
        other = next((k for k, x in enumerate(flat) if _pair(x, row, error)), None) if row[7] else None
        if row[7] and other is None:
            flat.append(row)
        elif other is not None:
            center, axis, radius, length = _cylinder(flat.pop(other), row)
            found += cylinder_points(center, axis, radius, length)
        else:
            found.append(Rim(_tuple(row[:3]), _tuple(row[3:6]), float(row[6])))
    for row in flat:
        for turn in (0.0, 0.5 * math.pi, math.pi, 1.5 * math.pi):
            found.append(Rim(_tuple(row[:3]), _tuple(row[3:6]), float(row[6]), turn))
    return found


def _pair(a: np.ndarray, b: np.ndarray, error: float) -> bool:
    """Whether two circles are the ends of one cylinder."""
    off = b[:3] - a[:3]
    across = off - (off @ a[3:6]) * a[3:6]
    apart = float(np.linalg.norm(across)) + abs(float(a[6] - b[6]))
    return bool(abs(abs(a[3:6] @ b[3:6]) - 1.0) < 1e-6 and apart <= 0.1 * error)


def _cylinder(a: np.ndarray, b: np.ndarray) -> tuple[Point, Point, float, float]:
    """Centre, axis, radius and length of the cylinder between two circles."""
    length = float(abs((b[:3] - a[:3]) @ a[3:6]))
    return _tuple(0.5 * (a[:3] + b[:3])), _tuple(a[3:6]), float(max(a[6], b[6])), length


def _tuple(x: np.ndarray) -> Point:
    a, b, c = x.tolist()
    return a, b, c


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
    assert isinstance(shape, Lowest)
    return np.array(shape.corners), shape.radius
