"""The ground of a saved trajectory: what is stored of it, and the same ground again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from robokit.sim.ground.ground import Ground
from robokit.sim.ground.height_field import HeightField
from robokit.sim.ground.solids import Solid

HEIGHTS = "ground_heights"
"""Name of the array of a height field."""


OLD = ("slip", "sweeps", "max_points", "accuracy")
"""What older files have, and does nothing any more."""


def record_ground(ground: Ground) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What is stored of a ground: words and numbers for JSON, and the heights of a field as an array."""
    about = {field.name: getattr(ground, field.name) for field in fields(Ground)}
    about["shapes"] = [solid.record() for solid in ground.shapes]
    field = ground.terrain
    if field is None:
        return about, {}
    about["terrain"] = {"cell": field.cell, "origin": field.origin, "friction": field.friction}
    return about, {HEIGHTS: field.heights}


def restored_ground(about: Mapping[str, Any], heights: np.ndarray | None) -> Ground:
    """The ground of a record.

    Raises:
        LookupError, TypeError, ValueError: the record is none.
    """
    given = {name: value for name, value in about.items() if name not in OLD}
    given["shapes"] = [Solid.of_record(row) for row in given.get("shapes", ())]
    if given.get("terrain") is not None:
        if heights is None:
            raise ValueError("the heights of its ground are missing")
        given["terrain"] = HeightField(heights, **given["terrain"])
    return Ground(**given)
