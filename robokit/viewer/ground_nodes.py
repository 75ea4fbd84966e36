"""The ground as it is drawn: its plane as a grid, its height field and its solids as nodes of the world."""

from __future__ import annotations

import numpy as np

from robokit.model.geometry import RGBA, Placement
from robokit.sim.ground import Ground, HeightField
from robokit.sim.ground.solids import Hull, Solid
from robokit.viewer.nodes import Node, Triangles

TERRAIN_COLOUR: RGBA = (0.66, 0.68, 0.62, 1.0)
SOLID_COLOUR: RGBA = (0.74, 0.70, 0.63, 1.0)

MOST_LINES = 200
"""Lines of a height field that are drawn along each side: 80,000 triangles."""


def ground_nodes(ground: Ground) -> list[Node]:
    """Nodes of all but the plane."""
    nodes = [] if ground.terrain is None else [_terrain_node(ground.terrain)]
    return nodes + [_solid_node(solid) for solid in ground.shapes]


def _terrain_node(field: HeightField) -> Node:
    z = np.asarray(field.heights)
    rows, columns = (
        np.unique(np.linspace(0, n - 1, min(n, MOST_LINES)).round().astype(int)) for n in z.shape
    )
    z = z[np.ix_(rows, columns)]
    (dx, dy), (x0, y0, z0) = field.cell, field.origin
    x, y = np.meshgrid(x0 + dx * rows, y0 + dy * columns, indexing="ij")
    vertices = np.stack([x, y, z0 + z], axis=-1).reshape(-1, 3)
    number = np.arange(z.size).reshape(z.shape)
    a, b, c, d = number[:-1, :-1], number[1:, :-1], number[1:, 1:], number[:-1, 1:]
    faces = np.stack([a, b, c, a, c, d], axis=-1).reshape(-1, 3)
    return Node("", 0, Triangles(vertices, faces), Placement(), TERRAIN_COLOUR, "ground")


def _solid_node(solid: Solid) -> Node:
    shape = solid.geometry
    if isinstance(shape, Hull):
        shape = hull_triangles(shape.points)
    return Node("", 0, shape, solid.placement, solid.rgba or SOLID_COLOUR, "ground")


def hull_triangles(points: np.ndarray) -> Triangles:
    """The triangles of a convex hull, wound outward."""
    from scipy.spatial import ConvexHull

    hull = ConvexHull(points)
    faces = hull.simplices.copy()
    a, b, c = (points[faces[:, k]] for k in range(3))
    inward = np.einsum("ij,ij->i", np.cross(b - a, c - a), hull.equations[:, :3]) < 0.0
    faces[inward] = faces[inward][:, ::-1]
    return Triangles(points, faces)
