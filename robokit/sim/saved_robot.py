"""The robot of a saved trajectory: what is stored of it, and the same robot again.

Stored are the robot as URDF text, where a URDF can say it; its base, gravity and treatment of mimic joints;
and as numbers its inertial parameters and the places and axes of its joints. The robot is made of the text
alone. No other file is read, and meshes are looked for only in folders that the caller names. The numbers
then show whether it is the robot that moved.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from robokit.errors import ModelError, RobokitError, ShapeError
from robokit.model.geometry import Mesh, Shape
from robokit.model.robot import Robot
from robokit.urdf import dump, loads_urdf

TOLERANCE = 1e-9
"""Share by which numbers may differ: rotations that a URDF writes as angles are read back to rounding."""

Folders = Sequence[str | os.PathLike[str]]


def record(robot: Robot) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What is stored of a robot: words for JSON, and arrays of numbers."""
    about = {
        "name": robot.name,
        "base": robot.base,
        "gravity": list(robot.tree.gravity),
        "mimic": _mimic(robot),
        "joint_names": list(robot.joint_names),
        "joint_kinds": [joint.kind for joint in robot.joints],
        "parameters_are_an_input": robot.parameters is not None,
        "fingerprint": robot.fingerprint.hex(),
        "source": str(robot.source),
        "urdf": _text(robot),
    }
    return about, {"robot_parameters": robot.inertial_parameters, "robot_joints": joint_numbers(robot)}


def joint_numbers(robot: Robot) -> np.ndarray:
    """Place, axis and pitch of each body's joint, (N, 16): rotation by rows, position, axis, pitch."""
    tree = robot.tree
    rows = [
        [*(x for row in X.E.rows for x in row), *X.r, *joint.axis, joint.pitch]
        for joint, X in zip(tree.joint[1:], tree.XT[1:], strict=True)
    ]
    return np.array(rows, dtype=float).reshape(len(rows), 16)


def _mimic(robot: Robot) -> str | None:
    return "couple" if robot.coupling is not None else None


def _text(robot: Robot) -> str | None:
    """The robot as URDF text; None where a URDF cannot say it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what a URDF leaves out, the numbers beside it hold
            return dump(robot, own_types=True)
    except ModelError:
        return None


def restored(
    given: Mapping[str, Any], numbers: Mapping[str, np.ndarray], package_dirs: Folders
) -> Robot | None:
    """The robot of a record, made of its text.

    Returns:
        None where the record has no text that makes this robot.

    Warns:
        UserWarning: the text does not make the robot that was stored; says what differs.
    """
    text = given.get("urdf")
    if not isinstance(text, str):
        return None
    try:
        robot = loads_urdf(text, base=given["base"], package_dirs=package_dirs, mimic=given.get("mimic"))
        robot = fitted(_with_files_in(robot, package_dirs), given, numbers, exactly=True)
    except (RobokitError, LookupError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split())[:300]
        warnings.warn(
            f"the text in the file does not make the robot of this trajectory ({reason}): .robot is None; "
            "give it with Trajectory.load(path, robot=...)",
            stacklevel=3,
        )
        return None
    return robot


def fitted(
    robot: Robot, given: Mapping[str, Any], numbers: Mapping[str, np.ndarray], exactly: bool = False
) -> Robot:
    """A robot under the gravity of the record, if it is the recorded one.

    Args:
        robot: to be compared.
        given, numbers: the record.
        exactly: give it the recorded inertial parameters where its own are not these to the bit.

    Raises:
        ShapeError: it is another robot; says what differs.
    """
    differs = _difference(robot, given, numbers, inertias=not exactly)
    if differs:
        raise ShapeError(
            f"robot {robot.name!r} does not fit this trajectory of {given.get('name')!r}: {differs}"
        )
    if "gravity" in given:
        robot = robot.with_gravity(given["gravity"])
    stored = numbers.get("robot_parameters")
    if exactly and stored is not None:
        same = np.allclose(robot.inertial_parameters, stored, rtol=TOLERANCE, atol=1e-15)
        if given.get("parameters_are_an_input") or not same:
            robot = robot.with_inertias(stored)
    return robot


def _difference(
    robot: Robot, given: Mapping[str, Any], numbers: Mapping[str, np.ndarray], inertias: bool
) -> str:
    """What makes a robot another than the recorded one, in words; "" for nothing. Old files record less."""
    words: tuple[tuple[str, Any], ...] = (
        ("base", robot.base),
        ("mimic", _mimic(robot)),
        ("sizes", [robot.nq, robot.nv]),
        ("joint_names", list(robot.joint_names)),
        ("joint_kinds", [joint.kind for joint in robot.joints]),
    )
    for what, mine in words:
        if what in given and given[what] != mine:
            return _words(what.replace("_", " "), mine, given[what])
    joints = numbers.get("robot_joints")
    if joints is not None:
        own = joint_numbers(robot)
        if own.shape != joints.shape:
            return f"it has {len(own)} moving bodies, the trajectory's has {len(joints)}"
        k = _first_apart(own, joints)
        if k is not None:
            return f"joint {robot.body_joints[k].name!r} is at another place or has another axis"
    stored = numbers.get("robot_parameters")
    if stored is not None:
        own = robot.inertial_parameters
        if own.shape != stored.shape:
            return f"its inertial parameters have shape {own.shape}, the trajectory's {stored.shape}"
        k = _first_apart(own, stored) if inertias else None
        if k is not None:
            mass, was = float(robot.total_mass), float(stored[1:, 0].sum())
            return (
                f"link {robot.body_name(k)!r} has another mass or inertia (in all {mass:.6g} kg, the "
                f"trajectory's {was:.6g} kg)"
            )
    return ""


def _words(what: str, own: Any, given: Any) -> str:
    if what == "sizes":
        return f"it has nq {own[0]} and nv {own[1]}, the trajectory {given[0]} and {given[1]}"
    if isinstance(own, list) and isinstance(given, list):
        if len(own) != len(given):
            return f"it has {len(own)} {what}, the trajectory's has {len(given)}"
        own, given = next((a, b) for a, b in zip(own, given, strict=True) if a != b)
    return f"its {what} is {own!r}, the trajectory's {given!r}"


def _first_apart(a: np.ndarray, b: np.ndarray) -> int | None:
    """The first row of two arrays (n, k) that differs by more than rounding."""
    scale = np.abs(b).max(axis=1, keepdims=True, initial=0.0)
    apart = ~(np.abs(a - b) <= TOLERANCE * scale).all(axis=1)
    return int(apart.argmax()) if apart.any() else None


def _with_files_in(robot: Robot, folders: Folders) -> Robot:
    """The robot with the meshes and pictures that are in these folders, and no others."""
    roots = [Path(folder).expanduser().resolve() for folder in folders]

    def inside(path: str | Path | None) -> bool:
        if path is None:
            return False
        place = Path(path).resolve()
        return any(place.is_relative_to(root) for root in roots)

    def kept(shapes: Iterable[Shape]) -> tuple[Shape, ...]:
        found = []
        for shape in shapes:
            geometry = shape.geometry
            if isinstance(geometry, Mesh) and not inside(geometry.path):
                geometry = replace(geometry, path=None)
            texture = shape.texture if inside(shape.texture) else None
            found.append(replace(shape, geometry=geometry, texture=texture))
        return tuple(found)

    links = tuple(
        replace(link, visuals=kept(link.visuals), collisions=kept(link.collisions)) for link in robot.links
    )
    return replace(robot, links=links)
