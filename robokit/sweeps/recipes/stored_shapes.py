"""Shapes of a robot that can touch, in JSON, to the bit: hulls of meshes come from files and from SciPy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from robokit.arguments import real_number
from robokit.collision.hulls import Polytope
from robokit.collision.scene import RobotShapes
from robokit.collision.shapes import Core, PlacedCore
from robokit.model.geometry import Placement
from robokit.model.robot import Robot
from robokit.sweeps.recipes.stored_numbers import array_of_record, record_of_array


def record_of_shapes(shapes: RobotShapes) -> list[dict[str, Any]]:
    """The shapes of a robot, for JSON."""
    return [_record(c) for c in shapes.placed]


def _record(placed: PlacedCore) -> dict[str, Any]:
    core, hull = placed.core, placed.core.hull
    return {
        "link": placed.link,
        "body": placed.body,
        "placement": _record_of_placement(placed.placement),
        "kind": core.kind,
        "bound": core.bound,
        "radius": core.radius,
        "size": list(core.size),
        "centre": list(core.centre),
        "own": None if core.own is None else _record_of_placement(core.own),
        "hull": None
        if hull is None
        else {
            "corners": record_of_array(hull.corners),
            "normals": record_of_array(hull.normals),
            "polygons": [list(map(int, polygon)) for polygon in hull.polygons],
            "error": hull.error,
            "sides": None if hull.sides is None else np.asarray(hull.sides).tolist(),
        },
    }


def shapes_of_record(given: Any, n: int) -> RobotShapes:
    """What :func:`record_of_shapes` gave.

    Args:
        given: the record.
        n: number of moving bodies.

    Raises:
        LookupError, TypeError, ValueError: it is none.
    """
    placed = tuple(_placed(row) for row in given)
    if not all(0 <= c.body <= n for c in placed):
        raise ValueError("the shapes are not those of the robot")
    return RobotShapes(placed)


def _placed(row: Mapping[str, Any]) -> PlacedCore:
    numbers = {name: real_number(name, row[name], least=0.0) for name in ("bound", "radius")}
    size, centre = (tuple(real_number(name, x) for x in row[name]) for name in ("size", "centre"))
    if len(size) != 3 or len(centre) != 3 or not isinstance(row["link"], str):
        raise ValueError("a shape of the robot is not whole")
    hull = None
    if row["hull"] is not None:
        about = row["hull"]
        corners, normals = array_of_record(about["corners"]), array_of_record(about["normals"])
        polygons = tuple(tuple(int(k) for k in polygon) for polygon in about["polygons"])
        ends = [k for polygon in polygons for k in polygon]
        good = corners.ndim == normals.ndim == 2 and corners.shape[1] == normals.shape[1] == 3
        if not (good and np.isfinite(corners).all() and all(0 <= k < len(corners) for k in ends)):
            raise ValueError("a hull of the robot is not whole")
        sides = None if about["sides"] is None else np.array(about["sides"], int).reshape(-1, 2)
        hull = Polytope(corners, normals, polygons, real_number("error", about["error"]), sides)
    own = None if row["own"] is None else _placement(row["own"])
    core = Core(int(row["kind"]), hull=hull, size=size, centre=centre, own=own, **numbers)  # type: ignore[arg-type]
    return PlacedCore(core, int(row["body"]), _placement(row["placement"]), row["link"])


def _record_of_placement(given: Placement) -> dict[str, Any]:
    return record_of_array(np.concatenate([np.ravel(given.rotation), np.ravel(given.position)]))


def _placement(given: Any) -> Placement:
    x = array_of_record(given)
    if x.shape != (12,) or not np.isfinite(x).all():
        raise ValueError(f"a placement of a shape has the shape {x.shape}")
    return Placement(x[:9].reshape(3, 3), x[9:])


def keep_shapes(robot: Robot, shapes: RobotShapes | None, error: float) -> None:
    """Let a robot have these shapes, of meshes thinned to this error [m], instead of computing them."""
    if shapes is not None:
        robot.derived.get(("shapes that touch", error), lambda: shapes)
