"""Mimic and loop joints as equality constraints."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree import ElementTree as ET

import numpy as np

from robokit.mjcf.attributes import numbers
from robokit.mjcf.bodies import Names
from robokit.model.geometry import Placement
from robokit.model.mimic_coupling import NONE
from robokit.model.mimics import couple
from robokit.model.parts import LoopJoint
from robokit.model.robot import Robot

ALONG = 0.1
"""Distance between the two points that hold the axis of a loop's hinge [m]."""

Site = tuple[str, int, Placement]


def add_mimics(equality: ET.Element, robot: Robot) -> None:
    """Add a constraint for each mimic joint, to the joint at the end of its mimic chain."""
    full = robot if robot.coupling is not None else couple(robot)
    if full.coupling is None:
        return
    own = {joint.q_slice.start: joint.name for joint in full.joints}
    for joint in full.mimic_joints:
        k, multiplier, offset = full.coupling.q_from[full.tree.q_slice[joint.body].start]
        element = ET.SubElement(equality, "joint", joint1=joint.name)
        if k != NONE:
            element.set("joint2", own[k])
        element.set("polycoef", numbers((offset, multiplier if k != NONE else 0.0, 0.0, 0.0, 0.0)))


def add_loops(equality: ET.Element, robot: Robot, names: Names, said: list[str]) -> Iterator[Site]:
    """Add constraints for loop joints; yields the sites that the constraints connect.

    A spherical joint connects one point of its two links, a revolute joint two points on its axis; a fixed
    joint welds the frames. The other kinds let points slide, for which MJCF has no constraint.
    """
    for loop in robot.loop_joints:
        if loop.kind == "floating":
            continue  # no constraint
        if loop.kind not in ("spherical", "revolute", "continuous", "fixed"):
            said.append(
                f"loop joint {loop.name!r} is {loop.kind}, for which MJCF has no constraint: the loop is "
                "left open"
            )
            continue
        points = [np.zeros(3)]
        if loop.kind in ("revolute", "continuous"):
            points.append(ALONG * np.asarray(loop.axis, dtype=float))
        kind = "weld" if loop.kind == "fixed" else "connect"
        for k, point in enumerate(points):
            sites = [_site(robot, names, loop, end, k, point) for end in ("predecessor", "successor")]
            ET.SubElement(equality, kind, site1=sites[0][0], site2=sites[1][0])
            yield from sites


def _site(robot: Robot, names: Names, loop: LoopJoint, end: str, k: int, point: np.ndarray) -> Site:
    link = robot.link(getattr(loop, end))
    at = link.placement @ getattr(loop, f"{end}_placement") @ Placement(position=point)
    return names.free_site(f"{loop.name}_{end}" + ("_axis" if k else "")), link.body, at
