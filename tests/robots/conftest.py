"""The robots' files, read with lxml alone so that these tests do not lean on robokit's own reader."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from lxml import etree
from scipy.spatial.transform import Rotation

FOLDER = Path(__file__).parents[2] / "robots"
NAMES = ("humanoid", "quadruped", "arm", "double_pendulum", "four_bar", "chain")


def vector(element, name, default=(0.0, 0.0, 0.0)):
    text = None if element is None else element.get(name)
    return np.array(default if text is None else [float(word) for word in text.split()])


@dataclass
class Body:
    mass: float
    com: np.ndarray
    inertia: np.ndarray
    visuals: list = field(default_factory=list)  # (kind, size, position, rotation)
    collisions: list = field(default_factory=list)


@dataclass
class File:
    path: Path
    root: etree._Element
    bodies: dict[str, Body]

    def poses(self):
        """Rotation and position of every link in the root link at q = 0."""
        found = {}
        joints = self.root.findall("joint")
        children = {j.find("child").get("link") for j in joints}
        (start,) = set(self.bodies) - children
        found[start] = (np.eye(3), np.zeros(3))
        for j in joints:
            R, p = found[j.find("parent").get("link")]
            o = j.find("origin")
            turn = Rotation.from_euler("xyz", vector(o, "rpy")).as_matrix()
            found[j.find("child").get("link")] = (R @ turn, p + R @ vector(o, "xyz"))
        return found

    def whole(self, links):
        """Mass, centre of mass and inertia about it of some links together, root axes, q = 0."""
        poses = self.poses()
        parts = [(self.bodies[k], *poses[k]) for k in links]
        mass = sum(b.mass for b, _, _ in parts)
        com = sum(b.mass * (p + R @ b.com) for b, R, p in parts) / mass
        inertia = np.zeros((3, 3))
        for b, R, p in parts:
            c = p + R @ b.com - com
            inertia += R @ b.inertia @ R.T + b.mass * (c @ c * np.eye(3) - np.outer(c, c))
        return mass, com, inertia


def solids(link, tag):
    found = []
    for shape in link.findall(tag):
        (g,) = shape.find("geometry")
        attributes = {"box": ["size"], "sphere": ["radius"], "cylinder": ["radius", "length"]}[g.tag]
        size = np.concatenate([vector(g, a) for a in attributes])
        o = shape.find("origin")
        found.append(
            (g.tag, size, vector(o, "xyz"), Rotation.from_euler("xyz", vector(o, "rpy")).as_matrix())
        )
    return found


def read(path):
    root = etree.parse(path).getroot()
    bodies = {}
    for link in root.findall("link"):
        inertial = link.find("inertial")
        i = {k: float(v) for k, v in inertial.find("inertia").attrib.items()}
        assert not vector(inertial.find("origin"), "rpy").any()
        bodies[link.get("name")] = Body(
            float(inertial.find("mass").get("value")),
            vector(inertial.find("origin"), "xyz"),
            np.array(
                [
                    [i["ixx"], i["ixy"], i["ixz"]],
                    [i["ixy"], i["iyy"], i["iyz"]],
                    [i["ixz"], i["iyz"], i["izz"]],
                ]
            ),
            solids(link, "visual"),
            solids(link, "collision"),
        )
    return File(path, root, bodies)


@pytest.fixture(params=NAMES)
def robot_file(request):
    return read(FOLDER / f"{request.param}.urdf")


@pytest.fixture
def humanoid():
    return read(FOLDER / "humanoid.urdf")


@pytest.fixture
def four_bar():
    return read(FOLDER / "four_bar.urdf")


@pytest.fixture
def robots_folder():
    return FOLDER
