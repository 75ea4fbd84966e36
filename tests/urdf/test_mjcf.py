"""MJCF as text: what it says, and what it says that it cannot."""

from __future__ import annotations

import warnings
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import robokit as rk
from robokit.cli import main
from robokit.mjcf import to_mjcf
from robokit.model import Box, Capsule, Cylinder, Mesh, Mimic, ModelBuilder, Placement, Shape, Sphere, couple


def model(kind: str = "revolute", shapes=(), **more):
    b = (
        ModelBuilder("m")
        .link("a")
        .link("b", 2.0, (0.1, 0, 0), np.eye(3), collisions=[Shape(s) for s in shapes])
    )
    return b.joint("j", kind, "a", "b", **more)


def quiet(robot) -> ET.Element:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return ET.fromstring(to_mjcf(robot))


def test_joint_and_inertia():
    options = {"lower": -1.0, "upper": 2.0, "damping": 0.3, "friction": 0.2, "effort": 5.0}
    root = quiet(model("prismatic", axis=(0, 0, 2), **options).build())
    joint = root.find("worldbody/body[@name='b']/joint[@name='j']").attrib
    assert joint["type"] == "slide" and joint["axis"] == "0.0 0.0 1.0" and joint["range"] == "-1.0 2.0"
    assert (joint["damping"], joint["frictionloss"]) == ("0.3", "0.2")
    assert joint["actuatorfrcrange"] == "-5.0 5.0"
    inertial = root.find(".//inertial").attrib
    assert (inertial["mass"], inertial["pos"]) == ("2.0", "0.1 0.0 0.0")
    assert np.allclose([float(x) for x in inertial["fullinertia"].split()], [1, 1, 1, 0, 0, 0], atol=1e-15)


def test_effort_zero_is_no_clamp_and_an_open_range_stays_open():
    joint = quiet(model(effort=0.0, lower=-1.0).build()).find(".//joint").attrib
    assert "actuatorfrcrange" not in joint and joint["range"] == "-1.0 1000000.0"


def test_shapes():
    shapes = (Box((1, 2, 3)), Sphere(0.5), Cylinder(0.1, 0.6), Capsule(0.2, 0.4))
    geoms = [g.attrib for g in quiet(model(shapes=shapes).build()).iter("geom")]
    assert [(g["type"], g["size"]) for g in geoms] == [
        ("box", "0.5 1.0 1.5"),
        ("sphere", "0.5"),
        ("cylinder", "0.1 0.3"),
        ("capsule", "0.2 0.2"),
    ]


def test_links_behind_fixed_joints_are_sites():
    place = Placement(np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]]), np.array([0.0, 0, 1]))
    root = quiet(model().link("tool").joint("f", "fixed", "b", "tool", place).build())
    site = root.find("worldbody/body/site[@name='tool']").attrib
    quat = np.array([float(x) for x in site["quat"].split()])
    assert site["pos"] == "0.0 0.0 1.0"
    assert abs(quat @ [np.sqrt(0.5), 0, 0, np.sqrt(0.5)]) == pytest.approx(1.0)


def test_a_moving_link_named_as_their_world_is_a_site():
    b = ModelBuilder("m").link("world", 1.0, inertia=np.eye(3)).link("world_link", 1.0, inertia=np.eye(3))
    root = quiet(b.joint("j", "revolute", "world", "world_link").build("floating"))
    assert [body.get("name") for body in root.iter("body")] == ["world_link_", "world_link"]
    assert root.find("worldbody/body/site").attrib["name"] == "world"


def test_a_floating_joint_away_from_the_root_frame_is_refused():
    assert quiet(model("floating").build()).find(".//freejoint").get("name") == "j"
    with pytest.raises(rk.ModelError, match="'j' is floating and placed away"):
        to_mjcf(model("floating", placement=Placement(position=np.array([0.1, 0, 0]))).build())


@pytest.mark.parametrize("coupled", [False, True])
def test_mimic_becomes_an_equality(coupled):
    b = model().link("c", 1.0, inertia=np.eye(3))
    robot = b.joint("k", "revolute", "b", "c", mimic=Mimic("j", 2.0, 0.5)).build()
    law = quiet(couple(robot) if coupled else robot).find("equality/joint").attrib
    assert law == {"joint1": "k", "joint2": "j", "polycoef": "0.5 2.0 0.0 0.0 0.0"}


@pytest.mark.parametrize("kind", ["helical", "cylindrical", "planar", "floating"])
def test_joints_that_mjcf_does_not_have(kind):
    b = model().link("c", 1.0, inertia=np.eye(3)).joint("odd", kind, "b", "c")
    with pytest.raises(rk.RobokitError, match=f"'odd' is {kind}"):
        to_mjcf(b.build())


@pytest.mark.parametrize(
    ("robot", "message"),
    [
        (model(shapes=[Mesh("x.dae")]).build(), "'x.dae' was not found"),
        (model(shapes=[Sphere(0.0)]).build(), "left out: a sphere"),
        (ModelBuilder("m").link("a").link("b").joint("j", "revolute", "a", "b").build(), "no mass"),
        (
            ModelBuilder("m").link("a").link("b", 1.0, inertia=np.diag([1, 1, 3])).joint(
                "j", "revolute", "a", "b"
            ).build(),
            "triangle",
        ),
        (model().loop_joint("l", "revolute", "a", "b").build(), "'l'"),
    ],
)  # fmt: skip
def test_what_cannot_be_said_is_a_warning(robot, message):
    with pytest.warns(UserWarning, match=message):
        to_mjcf(robot)


def test_command_line(tmp_path, capsys):
    file = tmp_path / "arm.xml"
    assert main(["mjcf", "double_pendulum", "-o", str(file)]) == 0
    assert ET.parse(file).getroot().tag == "mujoco"
    assert main(["mjcf", "double_pendulum"]) == 0
    assert file.read_text() in capsys.readouterr().out
