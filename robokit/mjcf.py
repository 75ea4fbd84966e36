"""MJCF export: the numbered tree as a model that MuJoCo loads.

A body of MuJoCo is a body of robokit, with the inertia of all links fixed to it; the other links are
sites, so that their poses can be asked for by name. A fixed root is the world: its own mass is not
written. A moving link named "world", which is MuJoCo's name for its fixed frame, is body "world_link"
with a site "world". What MJCF cannot say is a warning, or an error where the model would move differently.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np

from robokit.errors import ModelError
from robokit.model.coupling import NONE, couple
from robokit.model.geometry import Box, Capsule, Cylinder, Mesh, Placement, Shape, Sphere
from robokit.model.parts import Joint
from robokit.model.robot import Robot
from robokit.spatial import RigidInertia

FAR = 1e6
"""Stands for no limit on one side of a range [rad | m]."""

THEIR_WORLD = "world"
"""The name of MuJoCo's own fixed frame, which no body may have."""

LEAST = 1e-15
"""Mass and inertia below which MuJoCo refuses a moving body."""

MESHES = (".stl", ".obj", ".msh")

KINDS = {"revolute": "hinge", "continuous": "hinge", "prismatic": "slide", "spherical": "ball"}


def to_mjcf(robot: Robot, path: str | os.PathLike[str] | None = None, meshes: bool = True) -> str:
    """The robot as MJCF.

    Kept are names, inertias, joints with damping, friction, position and effort limits, mimic joints (as
    equality constraints, which MuJoCo keeps softly), collision shapes (group 3) and gravity. Mesh files
    are named by their absolute path. Not kept are visuals, velocity limits and loop joints.

    Args:
        robot: the robot; one with coupled mimic joints is written with all its joints.
        path: a file to write it to too.
        meshes: write mesh collisions; MuJoCo takes their convex hulls.

    Returns:
        the XML.

    Raises:
        ModelError: a joint that MJCF does not have (helical, cylindrical, planar, or a floating joint
            that is not at the root, or is placed away from the root's frame).

    Warns:
        UserWarning: loop joints, shapes that are left out, and bodies that MuJoCo will refuse.
    """
    said: list[str] = []
    root = ET.Element("mujoco", model=robot.name)
    ET.SubElement(root, "compiler", angle="radian", autolimits="true", inertiafromgeom="false")
    ET.SubElement(root, "option", gravity=_text(robot.gravity))
    assets = ET.SubElement(root, "asset")
    bodies = [ET.SubElement(root, "worldbody")]
    tree, names = robot.tree, _body_names(robot)
    for i in tree.outward():
        X, joint = tree.XT[i], robot.body_joints[i - 1]
        rotation = np.array(X.E.T.rows, dtype=float)
        place = Placement(rotation, np.array([*X.r], dtype=float))
        body = ET.SubElement(bodies[tree.parent[i]], "body", {"name": names[i], **_pose(place)})
        bodies.append(body)
        _inertial(body, names[i], tree.I[i], said)
        _joint(body, joint, tree.parent[i], place)
    for link in robot.links:
        body = bodies[link.body]
        if link.body == 0 or link.name != names[link.body]:
            ET.SubElement(
                body, "site", {"name": link.name, "size": "0.005", "group": "4", **_pose(link.placement)}
            )
        for k, shape in enumerate(link.collisions):
            _geom(body, assets, f"{link.name}/{k}", link.placement, shape, meshes, said)
    _mimics(root, robot)
    if not len(assets):
        root.remove(assets)
    if robot.loop_joints:
        left = ", ".join(repr(joint.name) for joint in robot.loop_joints[:5])
        said.append(f"loop joints are not written ({left}): the loop is open in the model")
    for message in said:
        warnings.warn(f"MJCF of robot {robot.name!r}: {message}", stacklevel=2)
    ET.indent(root)
    text = ET.tostring(root, encoding="unicode") + "\n"
    if path is not None:
        Path(path).write_text(text, encoding="utf-8")
    return text


def _body_names(robot: Robot) -> list[str]:
    """Names of bodies 0..N in the model."""
    names = [robot.body_name(i) for i in range(robot.nbodies + 1)]
    if THEIR_WORLD in names[1:]:
        free = f"{THEIR_WORLD}_link"
        while free in robot.link_index:
            free += "_"
        names[names.index(THEIR_WORLD, 1)] = free
    return names


def _inertial(body: ET.Element, name: str, I: RigidInertia, said: list[str]) -> None:
    if not float(I.m) > LEAST:
        said.append(f"body {name!r} has no mass; MuJoCo refuses moving bodies without")
        return
    c = np.array([*I.h], dtype=float) / I.m
    about = np.array(I.Ibar.full().rows, dtype=float) - I.m * (c @ c * np.eye(3) - np.outer(c, c))
    moments = np.linalg.eigvalsh(about)
    if moments[0] <= LEAST:
        said.append(f"body {name!r} has a principal moment of {moments[0]:.3g} kg m^2; MuJoCo refuses it")
    elif moments[2] > (moments[0] + moments[1]) * (1.0 + 1e-9):
        said.append(
            f"body {name!r} has principal moments {', '.join(f'{x:.3g}' for x in moments)} kg m^2 that "
            "violate the triangle inequality; MuJoCo refuses it"
        )
    six = [about[0, 0], about[1, 1], about[2, 2], about[0, 1], about[0, 2], about[1, 2]]
    ET.SubElement(body, "inertial", pos=_text(c), mass=repr(float(I.m)), fullinertia=_text(six))


def _joint(body: ET.Element, joint: Joint, parent: int, place: Placement) -> None:
    if joint.kind == "floating":
        if parent != 0:
            raise ModelError(
                f"joint {joint.name!r} is floating between two bodies; MJCF has free joints at the root only"
            )
        # The coordinates of a free joint are the body's pose in the world, wherever the body is placed.
        if place.position.any() or not np.array_equal(place.rotation, np.eye(3)):
            raise ModelError(
                f"joint {joint.name!r} is floating and placed away from its root's frame; the free joints of "
                "MJCF start there: leave out the joint's placement"
            )
        ET.SubElement(body, "freejoint", name=joint.name)
        return
    if joint.kind not in KINDS:
        raise ModelError(
            f"joint {joint.name!r} is {joint.kind}, which MJCF does not have; it has {', '.join(KINDS)} and "
            "floating at the root"
        )
    element = ET.SubElement(body, "joint", name=joint.name, type=KINDS[joint.kind])
    if joint.kind != "spherical":
        element.set("axis", _text(joint.axis))
        if math.isfinite(joint.lower) or math.isfinite(joint.upper):
            element.set("range", _text((max(joint.lower, -FAR), min(joint.upper, FAR))))
    if joint.damping:
        element.set("damping", repr(joint.damping))
    if joint.friction:
        element.set("frictionloss", repr(joint.friction))
    # Effort 0 is what exporters write for "unknown".
    if 0.0 < joint.effort < math.inf and joint.kind != "spherical":
        element.set("actuatorfrcrange", _text((-joint.effort, joint.effort)))


def _geom(
    body: ET.Element,
    assets: ET.Element,
    name: str,
    link: Placement,
    shape: Shape,
    meshes: bool,
    said: list[str],
) -> None:
    geometry, options = shape.geometry, {"group": "3", **_pose(link @ shape.placement)}
    sizes: tuple[float, ...]
    if isinstance(geometry, Mesh):
        if not meshes:
            return
        if geometry.path is None or geometry.path.suffix.lower() not in MESHES:
            why = "was not found" if geometry.path is None else f"is none of {', '.join(MESHES)}"
            said.append(f"collision {name!r} is left out: mesh {geometry.filename!r} {why}")
            return
        file = str(Path(geometry.path).resolve())
        ET.SubElement(assets, "mesh", name=name, file=file, scale=_text(geometry.scale))
        ET.SubElement(body, "geom", {"type": "mesh", "mesh": name, **options})
        return
    if isinstance(geometry, Box):
        kind, sizes = "box", tuple(x / 2.0 for x in geometry.size)
    elif isinstance(geometry, Sphere):
        kind, sizes = "sphere", (geometry.radius,)
    else:
        assert isinstance(geometry, Cylinder | Capsule)
        kind = "capsule" if isinstance(geometry, Capsule) else "cylinder"
        sizes = (geometry.radius, geometry.length / 2.0)
    if min(sizes) <= 0.0:
        said.append(f"collision {name!r} is left out: a {kind} of size {_text(sizes)}")
        return
    ET.SubElement(body, "geom", {"type": kind, "size": _text(sizes), **options})


def _mimics(root: ET.Element, robot: Robot) -> None:
    """An equality constraint for each mimic joint, with the joint at the end of its chain."""
    full = robot if robot.coupling is not None else couple(robot)
    if full.coupling is None:
        return
    own = {joint.q_slice.start: joint.name for joint in full.joints}
    equality = ET.SubElement(root, "equality")
    for joint in full.mimic_joints:
        k, multiplier, offset = full.coupling.q_from[full.tree.q_slice[joint.body].start]
        element = ET.SubElement(equality, "joint", joint1=joint.name)
        if k != NONE:
            element.set("joint2", own[k])
        element.set("polycoef", _text((offset, multiplier if k != NONE else 0.0, 0.0, 0.0, 0.0)))


def _pose(place: Placement) -> dict[str, str]:
    """pos, and quat where it is turned."""
    pose: dict[str, Any] = {"pos": _text(place.position)}
    if not np.array_equal(place.rotation, np.eye(3)):
        pose["quat"] = _text(_quat_wxyz(np.asarray(place.rotation, dtype=float)))
    return pose


def _quat_wxyz(R: np.ndarray) -> np.ndarray:
    """Unit quaternion of a rotation: the eigenvector of the largest eigenvalue of Bar-Itzhack's matrix."""
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = R
    K = np.array(
        [
            [xx + yy + zz, zy - yz, xz - zx, yx - xy],
            [zy - yz, xx - yy - zz, yx + xy, zx + xz],
            [xz - zx, yx + xy, yy - xx - zz, zy + yz],
            [yx - xy, zx + xz, zy + yz, zz - xx - yy],
        ]
    )
    return np.linalg.eigh(K)[1][:, -1]


def _text(values: Iterable[float]) -> str:
    return " ".join(repr(float(x)) for x in values)
