"""A message with the states of joints, whatever wrote it: its names, positions, velocities and efforts.

    {"name": ["hip", "knee"], "position": [0.1, 0.2], "velocity": [], "effort": []}   sensor_msgs/JointState
    {"joints": [{"name": "hip", "position": 0.1}, ...]}                               foxglove.JointStates
    {"joint_names": [...], "interface_values": [...]}                                 control_msgs
    {"hip": 0.1, "knee": 0.2}                                                         a mapping, JSON alone

A message is a mapping (JSON) or an object with attributes (CDR, ROS 1, protobuf).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

QUANTITIES = ("position", "velocity", "effort")
"""What is measured of a joint: [rad | m], [rad/s | m/s], [N m | N]."""


@dataclass(frozen=True)
class JointState:
    """The joints of one message.

    Attributes:
        names: of the joints, n of them.
        values: of position, velocity and effort: n numbers each, or None where the message has none.
        stamp: when it was measured [ns], 0 where the message does not say.
    """

    names: tuple[str, ...]
    values: tuple[Sequence[float] | None, ...]
    stamp: int = 0


def field(message: Any, name: str, default: Any = None) -> Any:
    """A field of a message: of a mapping or of an object."""
    if isinstance(message, Mapping):
        return message.get(name, default)
    return getattr(message, name, default)


def stamp_of(message: Any) -> int:
    """When a message was measured, from its header or time stamp [ns]; 0 where it does not say."""
    stamp = field(field(message, "header"), "stamp")
    if stamp is None:
        stamp = field(message, "timestamp", field(message, "stamp"))
    if isinstance(stamp, int | float) and not isinstance(stamp, bool):  # seconds
        return round(1e9 * stamp) if math.isfinite(stamp) else 0
    found = []
    for names in (("sec", "secs", "seconds"), ("nanosec", "nsec", "nsecs", "nanos")):
        found.append(next((x for name in names if (x := field(stamp, name)) is not None), 0))
    try:
        return int(found[0]) * 1_000_000_000 + int(found[1])
    except (TypeError, ValueError, OverflowError):
        return 0


def joint_state(message: Any) -> JointState:
    """The joints of a message.

    Raises:
        ValueError: it is none, or contradicts itself; says how.
    """
    stamp = stamp_of(message)
    joints = field(message, "joints")
    if joints is not None and not isinstance(joints, str | bytes | int | float):
        return JointState(*_of_list(list(joints)), stamp)
    interfaces = field(message, "interface_values")
    if interfaces is not None:
        return JointState(*_of_interfaces(_names(field(message, "joint_names")), list(interfaces)), stamp)
    if field(message, "name") is not None and not isinstance(field(message, "name"), int | float):
        names = _names(field(message, "name"))
        values = [_numbers(names, quantity, field(message, quantity)) for quantity in QUANTITIES]
        return _with_values(names, values, stamp)
    if isinstance(message, Mapping):
        numbers = {k: x for k, x in message.items() if k not in ("stamp", "timestamp", "header")}
        if numbers and all(_is_number(x) for x in numbers.values()):
            return JointState(
                tuple(map(str, numbers)), ([float(x) for x in numbers.values()], None, None), stamp
            )
    raise ValueError("no joint states: expected name and position, or numbers by joint")


def _with_values(names: tuple[str, ...], values: Sequence[Any], stamp: int) -> JointState:
    if names and all(x is None for x in values):
        raise ValueError(f"{len(names)} names without position, velocity and effort")
    return JointState(names, tuple(values), stamp)


def _of_list(joints: list[Any]) -> tuple[tuple[str, ...], tuple[list[float] | None, ...]]:
    """Names and values of a list of joints; NaN for what a joint of it lacks."""
    names = _names([field(joint, "name") for joint in joints])
    values: list[list[float] | None] = []
    for quantity in QUANTITIES:
        found = [_optional(joint, quantity) for joint in joints]
        values.append(None if all(math.isnan(x) for x in found) else found)
    return names, tuple(values)


def _optional(joint: Any, quantity: str) -> float:
    """A number that a joint may lack; protobuf's own question tells 0 from nothing."""
    has = getattr(joint, "HasField", None)
    if has is not None:
        try:
            if not has(quantity):
                return math.nan
        except ValueError:  # a field that is always there, or never
            pass
    value = field(joint, quantity)
    return float(value) if _is_number(value) else math.nan


def _of_interfaces(
    names: tuple[str, ...], interfaces: list[Any]
) -> tuple[tuple[str, ...], tuple[list[float] | None, ...]]:
    """Of control_msgs/DynamicJointState: each joint has values by the name of an interface."""
    rows: list[dict[str, float]] = []
    for one in interfaces:
        keys, values = list(field(one, "interface_names", ())), list(field(one, "values", ()))
        rows.append({str(key): float(x) for key, x in zip(keys, values, strict=False)})
    if len(rows) != len(names):
        raise ValueError(f"{len(names)} names and {len(rows)} interface_values")
    out: list[list[float] | None] = []
    for quantity in QUANTITIES:
        out.append(
            [row.get(quantity, math.nan) for row in rows] if any(quantity in r for r in rows) else None
        )
    return names, tuple(out)


def _names(given: Any) -> tuple[str, ...]:
    if isinstance(given, str | bytes) or given is None:
        raise ValueError("name: expected a list of joint names")
    names = tuple(given)
    if not all(isinstance(name, str) for name in names):
        raise ValueError("name: expected a list of joint names")
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"joint {twice[:60]!r} is named twice")
    return names


def _numbers(names: tuple[str, ...], quantity: str, given: Any) -> Sequence[float] | None:
    if given is None:
        return None
    values = given.tolist() if hasattr(given, "tolist") else list(given) if _is_list(given) else None
    if values is None or not all(x is None or _is_number(x) for x in values):
        raise ValueError(f"{quantity}: expected a list of numbers")
    if not values:
        return None
    if len(values) != len(names):
        raise ValueError(f"{len(names)} names and {len(values)} numbers of {quantity}")
    return [math.nan if x is None else float(x) for x in values]


def _is_list(given: Any) -> bool:
    return not isinstance(given, str | bytes | Mapping) and hasattr(given, "__iter__")


def _is_number(x: Any) -> bool:
    return isinstance(x, int | float) and not isinstance(x, bool)
