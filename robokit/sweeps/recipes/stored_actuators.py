"""Actuators in JSON, to the bit: gains, limits, targets and keyframes. Functions of the user are refused."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from robokit.errors import ShapeError
from robokit.sim.driving.actuators import PD, Actuator, Torque, Velocity
from robokit.sim.driving.keyframes import Keyframes
from robokit.sweeps.recipes.stored_numbers import array_of_record, record_of_array

KINDS: dict[str, type[Actuator]] = {cls.__name__: cls for cls in (Torque, PD, Velocity)}

ENDLESS = "inf"
"""A limit that is none: JSON has no infinity."""


def record_of_actuator(given: Actuator) -> dict[str, Any]:
    """An actuator, for JSON.

    Raises:
        ShapeError: one of its values is a function.
    """
    kind = type(given).__name__
    values = {
        field.name: _plain(f"{kind}({field.name}=...)", getattr(given, field.name)) for field in fields(given)
    }
    return {"kind": kind, **values}


def actuator_of_record(given: Mapping[str, Any]) -> Actuator:
    """What :func:`record_of_actuator` gave.

    Raises:
        LookupError, TypeError, ValueError: it is none.
    """
    return KINDS[given["kind"]](**{name: _made(x) for name, x in given.items() if name != "kind"})


def _plain(what: str, value: Any) -> Any:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, Keyframes):
        times, values = record_of_array(value.time), record_of_array(value.values)
        named = {"joints": list(value.joints), "name": list(value.name), "curve": value.curve}
        return {"keyframes": {"time": times, "values": values, **named}}
    if callable(value):
        raise ShapeError(f"{what}: a sweep takes numbers, arrays and rk.Keyframes, no functions")
    if isinstance(value, Mapping):
        return {"by_joint": {str(name): _plain(what, x) for name, x in value.items()}}
    if np.ndim(value) == 0:
        return ENDLESS if value == math.inf else float(value)
    if isinstance(value, list | tuple) and all(isinstance(x, str) for x in value):
        return {"names": list(value)}
    return {"array": record_of_array(np.asarray(value, dtype=float))}


def _made(value: Any) -> Any:
    if value == ENDLESS:
        return math.inf
    if not isinstance(value, Mapping):
        return value
    if "keyframes" in value:
        row = value["keyframes"]
        times, values = array_of_record(row["time"]), array_of_record(row["values"])
        return Keyframes(times, tuple(row["joints"]), values, tuple(row["name"]), row["curve"])
    if "by_joint" in value:
        return {name: _made(x) for name, x in value["by_joint"].items()}
    return value["names"] if "names" in value else array_of_record(value["array"])
