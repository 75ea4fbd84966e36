"""Bodies of the MJCF model: their names, inertias and joints."""

from __future__ import annotations

import math
from xml.etree import ElementTree as ET

import numpy as np

from robokit.errors import ModelError
from robokit.interop.mujoco import MUJOCO_PARTS
from robokit.mjcf.attributes import numbers
from robokit.model.geometry import Placement
from robokit.model.joints import plane_axes
from robokit.model.parts import Joint
from robokit.model.robot import Robot
from robokit.spatial import RigidInertia, Vector3

FAR = 1e6
"""Written for the missing side of a range that is limited on one side only [rad | m]."""

THEIR_WORLD = "world"
"""Name of MuJoCo's own fixed frame; no body may have it."""

LEAST = 1e-15
"""Mass and inertia below which MuJoCo refuses a moving body."""

KINDS = {"revolute": "hinge", "continuous": "hinge", "prismatic": "slide", "spherical": "ball"}


class Names:
    """Names in the MJCF model, each used once.

    Attributes:
        body: names of bodies 0..N.
    """

    def __init__(self, robot: Robot) -> None:
        self.body = [robot.body_name(i) for i in range(robot.nbodies + 1)]
        if THEIR_WORLD in self.body[1:]:
            free = f"{THEIR_WORLD}_link"
            while free in robot.link_index:
                free += "_"
            self.body[self.body.index(THEIR_WORLD, 1)] = free
        self._sites = set(robot.link_names)
        self._joints = set(robot.all_joint_names)

    def free_site(self, name: str) -> str:
        """The name, with underscores appended if a site has it already."""
        while name in self._sites:
            name += "_"
        self._sites.add(name)
        return name

    def parts(self, joint: Joint) -> list[str]:
        """Names of the MuJoCo joints that stand for a joint of several degrees of freedom."""
        parts = [joint.name + end for end in MUJOCO_PARTS[joint.kind]]
        for name in parts:
            if name in self._joints:
                raise ModelError(
                    f"joint {name!r} is called like a part of joint {joint.name!r}, which is {joint.kind} "
                    f"and becomes {', '.join(parts)} in MJCF: rename it"
                )
        return parts


def add_inertial(body: ET.Element, name: str, I: RigidInertia, said: list[str]) -> None:
    """Add mass, centre of mass and inertia; what MuJoCo will refuse is added to ``said``."""
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
    ET.SubElement(body, "inertial", pos=numbers(c), mass=repr(float(I.m)), fullinertia=numbers(six))


def add_joint(
    body: ET.Element, joint: Joint, parent: int, place: Placement, names: Names, said: list[str]
) -> None:
    """Add the joint of a body: several MuJoCo joints where MJCF has none of its kind.

    MuJoCo applies the joints of a body in order, each in the frame that the ones before it have moved. Slides
    that come first are therefore shifts along the parent's axes.
    """
    if joint.kind == "floating" and parent == 0 and _is_here(place):
        # The coordinates of a free joint are the body's pose in the world, wherever the body is placed.
        ET.SubElement(body, "freejoint", name=joint.name)
        return
    x, y, z = np.eye(3)
    if joint.kind == "floating":
        kinds = zip(names.parts(joint), ("slide", "slide", "slide", "ball"), (x, y, z, None), strict=True)
    elif joint.kind == "planar":
        axes = [np.array([*t]) for t in plane_axes(Vector3(*joint.axis.tolist()))]
        kinds = zip(names.parts(joint), ("slide", "slide", "hinge"), (*axes, joint.axis), strict=True)
    elif joint.kind == "cylindrical":
        kinds = zip(names.parts(joint), ("hinge", "slide"), (joint.axis, joint.axis), strict=True)
    elif joint.kind in KINDS:
        axis = None if joint.kind == "spherical" else joint.axis
        kinds = zip([joint.name], [KINDS[joint.kind]], [axis], strict=True)
    else:
        raise ModelError(
            f"joint {joint.name!r} is {joint.kind}, which MJCF does not have; it has "
            f"{', '.join((*KINDS, *MUJOCO_PARTS))}"
        )
    for name, kind, axis in kinds:
        element = ET.SubElement(body, "joint", name=name, type=kind)
        if axis is not None:
            element.set("axis", numbers(axis))
        if joint.damping:
            element.set("damping", repr(joint.damping))
        if joint.armature:
            element.set("armature", repr(joint.armature))
        if joint.friction:
            element.set("frictionloss", repr(joint.friction))
        if joint.kind not in KINDS or joint.kind == "spherical":
            continue
        if joint.lower == joint.upper:
            said.append(
                f"joint {joint.name!r} has the limits {joint.lower:g} and {joint.upper:g}; MuJoCo takes no "
                "range of one position, and the joint is written without"
            )
        elif math.isfinite(joint.lower) or math.isfinite(joint.upper):
            element.set("range", numbers((max(joint.lower, -FAR), min(joint.upper, FAR))))
        # Effort 0 is what exporters write for "unknown".
        if 0.0 < joint.effort < math.inf:
            element.set("actuatorfrcrange", numbers((-joint.effort, joint.effort)))


def _is_here(place: Placement) -> bool:
    return not place.position.any() and np.array_equal(place.rotation, np.eye(3))
