"""Contact points of a robot in JSON, to the bit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from robokit.arguments import real_number
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


def points_of_record(given: Mapping[str, Any], n: int) -> ContactPoints:
    """What :func:`record_of_points` gave.

    Args:
        given: the record.
        n: number of moving bodies.

    Raises:
        LookupError, TypeError, ValueError: it is none.
    """
    body, inertial = np.array(given["body"]), np.array(given["of_inertia"])
    position, radius = array_of_record(given["position"]), array_of_record(given["radius"])
    links, shapes = tuple(given["link"]), tuple(made(shape) for shape in given["shape"])
    K = len(body)
    good = (
        (body.shape == inertial.shape == radius.shape == (K,) and position.shape == (K, 3))
        and len(links) == len(shapes) == K
        and (not K or (body.dtype.kind, inertial.dtype.kind) == ("i", "b"))
        and bool(((body > 0) & (body <= n)).all())
        and all(isinstance(link, str) for link in links)
        and all(type(shape).__name__ in KINDS for shape in shapes)
    )
    if not good:
        raise ValueError("the contact points are not those of a robot")
    error = real_number("error", given["error"], least=0.0)
    return ContactPoints(body.astype(int), position, radius, links, inertial.astype(bool), shapes, error)


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
