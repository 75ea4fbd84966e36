"""The whole MJCF model: options, assets, bodies in the tree's order, constraints."""

from __future__ import annotations

import os
import warnings
from xml.etree import ElementTree as ET

import numpy as np

from robokit.mjcf.attributes import numbers, pose
from robokit.mjcf.bodies import Names, add_inertial, add_joint
from robokit.mjcf.constraints import add_loops, add_mimics
from robokit.mjcf.geoms import Shapes
from robokit.model.geometry import Placement
from robokit.model.robot import Robot, check_robot
from robokit.written_files import output_path, write_text


def to_mjcf(
    robot: Robot,
    path: str | os.PathLike[str] | None = None,
    meshes: bool = True,
    visuals: bool = True,
) -> str:
    """The robot as MJCF, for MuJoCo 3.3 and newer.

    Written are names, inertias, joints with damping, friction, position and effort limits, mimic and loop
    joints (as equality constraints, which MuJoCo enforces softly), visual shapes with their colours (group 2,
    without contacts), collision shapes (group 3) and gravity. Mesh files are referred to by absolute path.
    Velocity limits, textures, safety controllers and calibrations are not written.

    Args:
        robot: the robot; if its mimic joints are coupled, all its joints are written.
        path: a file that the XML is written to as well.
        meshes: write shapes that are meshes; MuJoCo uses the convex hull of a collision mesh.
        visuals: write visual shapes.

    Returns:
        the XML.

    Raises:
        ModelError: a kind of joint that MJCF does not have (helical), or a joint whose name is needed for a
            part of another joint.
        WriteError: the file cannot be written.

    Warns:
        UserWarning: loop joints and ranges that MJCF cannot express, shapes that are left out, and bodies
            that MuJoCo will refuse.

    Example:
        >>> from robokit.mjcf import to_mjcf
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> to_mjcf(robot).splitlines()[0]
        '<mujoco model="double_pendulum">'
    """
    check_robot(robot)
    file = None if path is None else output_path("path", path)
    said: list[str] = []
    root = ET.Element("mujoco", model=robot.name)
    ET.SubElement(root, "compiler", angle="radian", autolimits="true", inertiafromgeom="false")
    ET.SubElement(root, "option", gravity=numbers(robot.gravity))
    shapes = Shapes(ET.SubElement(root, "asset"), meshes)
    bodies = [ET.SubElement(root, "worldbody")]
    tree, names = robot.tree, Names(robot)
    for i in tree.outward():
        X, joint = tree.XT[i], robot.body_joints[i - 1]
        place = Placement(np.array(X.E.T.rows, dtype=float), np.array([*X.r], dtype=float))
        attributes = {"name": names.body[i], **pose(place)}
        bodies.append(ET.SubElement(bodies[tree.parent[i]], "body", attributes))
        add_inertial(bodies[i], names.body[i], tree.I[i], said)
        add_joint(bodies[i], joint, tree.parent[i], place, names, said)
    for link in robot.links:
        body = bodies[link.body]
        if link.body == 0 or link.name != names.body[link.body]:
            add_site(body, link.name, link.placement)
        if visuals:
            shapes.add(body, "visual", link.name, link.placement, link.visuals)
        shapes.add(body, "collision", link.name, link.placement, link.collisions)
    equality = ET.SubElement(root, "equality")
    add_mimics(equality, robot)
    for site, body_of, placement in add_loops(equality, robot, names, said):
        add_site(bodies[body_of], site, placement)
    for element in (shapes.assets, equality):
        if not len(element):
            root.remove(element)
    for message in said + shapes.left_out():
        warnings.warn(f"MJCF of robot {robot.name!r}: {message}", stacklevel=2)
    ET.indent(root)
    text = ET.tostring(root, encoding="unicode") + "\n"
    if file is not None:
        write_text(file, text)
    return text


def add_site(body: ET.Element, name: str, placement: Placement) -> None:
    """Add a frame to a body, in group 4, which MuJoCo's viewer hides by default."""
    ET.SubElement(body, "site", {"name": name, "size": "0.005", "group": "4", **pose(placement)})
