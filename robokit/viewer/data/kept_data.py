"""Data of a page that follow from the robot alone and take long to make, kept on disk."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from robokit import disk_cache
from robokit.model.robot import Robot
from robokit.serialize import from_json


def kept(label: str, robot: Robot, key: tuple[Any, ...], kind: Any, make: Callable[[], Any]) -> Any:
    """Load what is on disk, or make it now and store it.

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
        return from_json(kind, json.loads(found[1]))
    made = make()
    if source:
        content = json.dumps(made, separators=(",", ":"), default=vars).encode()
        disk_cache.store(name, {"kernel": label, "part": "page"}, content)
    return made
