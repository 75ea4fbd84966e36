"""A ground as a kernel takes it: the layout of its surfaces, which it is built for, and their numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from robokit.sim.ground.ground import Ground

Layout = tuple[str, bool, tuple[int, ...]]
"""(kind, whether it has a friction coefficient of its own, sizes).

The sizes are the planes of a hull, 1 for a moving plane, and the shape of a height field.
"""


def layouts(ground: Ground) -> tuple[Layout, ...]:
    """What a kernel for this ground is built for."""
    found: list[Layout] = []
    if ground.plane:
        found.append(("plane", False, (int(ground.moves),)))
    if ground.terrain is not None:
        field = ground.terrain
        found.append(("field", field.friction is not None, field.heights.shape))
    for solid in ground.shapes:
        size = len(solid.geometry.planes) if solid.kind == "hull" else 0
        found.append((solid.kind, solid.friction is not None, (size,)))
    return tuple(found)


def ground_numbers(ground: Ground) -> list[float]:
    """The inputs of a kernel that stand for this ground: its height, or the numbers of its surfaces."""
    return [ground.height] if ground.horizontal else surface_numbers(ground)


def surface_numbers(ground: Ground) -> list[float]:
    """Those of all surfaces, in the order of the layouts."""
    found: list[float] = []
    if ground.plane:
        found += plane_numbers(ground)
    field = ground.terrain
    if field is not None:
        found += [] if field.friction is None else [field.friction]
        found += [*field.origin, *(1.0 / length for length in field.cell)]
    for solid in ground.shapes:
        shape: Any = solid.geometry
        found += [] if solid.friction is None else [solid.friction]
        found += solid.placement.position.tolist()
        if solid.kind == "sphere":
            found.append(shape.radius)
            continue
        found += solid.placement.rotation.ravel().tolist()
        if solid.kind == "box":
            found += [0.5 * edge for edge in shape.size]
        elif solid.kind == "hull":
            found += shape.planes.ravel().tolist()
        else:
            found += [shape.radius, 0.5 * shape.length]
    return found


def ground_tables(ground: Ground) -> list[tuple[str, np.ndarray]]:
    """The tables of a kernel for this ground: the heights of a field."""
    return [] if ground.terrain is None else [("heights", ground.terrain.heights.ravel())]


def plane_numbers(ground: Ground) -> list[Any]:
    """Normal, distance from the world's origin, and the motion of the plane's surface where it moves.

    Floats, or (B,) where rows differ in them.
    """
    n = np.array(ground.up)
    if n.ndim == 2:  # one a row of a rollout
        return [*n, n[2] * ground.height]
    found = [*n.tolist(), float(n[2]) * ground.height]
    if ground.moves:
        # Its points have the velocities of a body that turns about the normal through (0, 0, height).
        turn = ground.spin * n
        at_origin = np.array(ground.velocity) - np.cross(turn, [0.0, 0.0, ground.height])
        found += [*turn.tolist(), *at_origin.tolist()]
    return found
