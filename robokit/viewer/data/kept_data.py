"""Data of a page that follow from the robot alone and take long to make, kept on disk."""

from __future__ import annotations

import json
import sys
import types
import typing
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

from robokit import disk_cache
from robokit.model.robot import Robot


def kept(label: str, robot: Robot, key: tuple[Any, ...], kind: Any, make: Callable[[], Any]) -> Any:
    """What the folder has, or what is made now and kept there.

    Args:
        label: for ``robokit cache``.
        robot: a single robot, on whose dynamics it depends.
        key: what else it depends on, of exact reprs.
        kind: its type: of the payload's classes, lists, tuples, text, numbers and None.
        make: makes it.
    """
    source = disk_cache.source_digest()
    names = [joint.name for joint in robot.body_joints]
    name = disk_cache.digest(
        "page",
        label,
        source,
        robot.fingerprint,
        robot.base,
        names,
        robot.tree.loops,
        key,
        sys.version_info[:2],
    )
    found = disk_cache.load(name) if source else None
    if found is not None:
        return rebuilt(kind, json.loads(found[1]))
    made = make()
    if source:
        content = json.dumps(made, separators=(",", ":"), default=vars).encode()
        disk_cache.store(name, {"kernel": label, "part": "page"}, content)
    return made


def rebuilt(kind: Any, value: Any) -> Any:
    """What was written as JSON, as its type.

    Args:
        kind: the type.
        value: of json.loads.
    """
    if isinstance(kind, types.UnionType) or typing.get_origin(kind) is typing.Union:
        if value is None:
            return None
        return rebuilt(next(arm for arm in typing.get_args(kind) if arm is not type(None)), value)
    if is_dataclass(kind) and isinstance(kind, type):
        hints = typing.get_type_hints(kind)
        return kind(**{f.name: rebuilt(hints[f.name], value[f.name]) for f in fields(kind)})
    inner = typing.get_args(kind)
    if typing.get_origin(kind) is list:
        return [rebuilt(inner[0], each) for each in value]
    if typing.get_origin(kind) is tuple:
        return tuple(rebuilt(each, part) for each, part in zip(inner, value, strict=True))
    return value
