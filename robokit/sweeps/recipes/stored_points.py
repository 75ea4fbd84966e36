"""Contact points of a robot in JSON, to the bit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from robokit.sim.shapes.contact_points import ContactPoints
from robokit.sim.shapes.contact_shapes import Ball, Facing, Lowest, Part, Rim
from robokit.sweeps.recipes.stored_numbers import array_of_record, record_of_array

KINDS = {cls.__name__: cls for cls in (Ball, Lowest, Rim, Facing, Part)}


def record_of_points(points: ContactPoints) -> dict[str, Any]:
    """The contact points of a robot without samples, for JSON."""
    return {
        "body": points.body.tolist(),
        "position": record_of_array(points.position),
        "radius": record_of_array(points.radius),
        "link": list(points.link),
        "of_inertia": points.of_inertia.tolist(),
        "shape": [plain(shape) for shape in points.shape],
        "error": points.error,
    }


def points_of_record(given: Mapping[str, Any]) -> ContactPoints:
    """What :func:`record_of_points` gave.

    Raises:
        LookupError, TypeError, ValueError: it is none.
    """
    return ContactPoints(
        np.array(given["body"], dtype=int),
        array_of_record(given["position"]),
        array_of_record(given["radius"]),
        tuple(given["link"]),
        np.array(given["of_inertia"], dtype=bool),
        tuple(made(shape) for shape in given["shape"]),
        given["error"],
    )


def plain(value: Any) -> Any:
    """Dataclasses, tuples and numbers, for JSON."""
    if is_dataclass(value):
        row = {field.name: plain(getattr(value, field.name)) for field in fields(value)}
        return {"kind": type(value).__name__, "named": row}
    if isinstance(value, tuple):
        return [plain(x) for x in value]
    if isinstance(value, np.generic):
        return value.item()
    return value if isinstance(value, str | int) else float(value)


def made(given: Any, kinds: Mapping[str, Any] = KINDS) -> Any:
    """What :func:`plain` gave, of these kinds."""
    if isinstance(given, Mapping):
        return kinds[given["kind"]](**{name: made(x, kinds) for name, x in given["named"].items()})
    return tuple(made(x, kinds) for x in given) if isinstance(given, list) else given
