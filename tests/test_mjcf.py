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


def parts(robot, body="b"):
    """(name, kind, axis) of a body's joints."""
    joints = quiet(robot).find(f".//body[@name='{body}']").findall("joint")
    return [(j.get("name"), j.get("type"), j.get("axis")) for j in joints]


def test_joints_of_several_degrees_of_freedom_come_in_parts():
    assert parts(model("cylindrical", axis=(0, 0, 1)).build()) == [
        ("j_R", "hinge", "0.0 0.0 1.0"),
        ("j_T", "slide", "0.0 0.0 1.0"),
    ]
    assert parts(model("planar", axis=(0, 0, 1)).build()) == [
        ("j_TX", "slide", "1.0 0.0 0.0"),
        ("j_TY", "slide", "0.0 1.0 0.0"),
        ("j_RZ", "hinge", "0.0 0.0 1.0"),
    ]
    assert quiet(model("floating").build()).find(".//freejoint").get("name") == "j"
    away = model("floating", placement=Placement(position=np.array([0.1, 0, 0]))).build()
    assert parts(away) == [
        ("j_TX", "slide", "1.0 0.0 0.0"),
        ("j_TY", "slide", "0.0 1.0 0.0"),
        ("j_TZ", "slide", "0.0 0.0 1.0"),
        ("j_R", "ball", None),
    ]


def test_a_joint_called_like_a_part_of_another_is_refused():
    b = model("planar").link("c", 1.0, inertia=np.eye(3)).joint("j_RZ", "revolute", "b", "c")
    with pytest.raises(rk.ModelError, match="'j_RZ' has the name of a part of joint 'j'"):
        to_mjcf(b.build())


def test_visuals_touch_nothing():
    shape = Shape(Box((1, 1, 1)), rgba=(1.0, 0.5, 0.0, 1.0))
    b = ModelBuilder("m").link("a", visuals=[shape]).link("b", 1.0, inertia=np.eye(3), collisions=[shape])
    robot = b.joint("j", "revolute", "a", "b").build()
    collision, visual = (g.attrib for g in quiet(robot).iter("geom"))  # bodies come before the world's geoms
    assert (visual["group"], visual["contype"], visual["conaffinity"]) == ("2", "0", "0")
    assert visual["rgba"] == "1.0 0.5 0.0 1.0" and "rgba" not in collision
    assert collision["group"] == "3" and "contype" not in collision
    assert len(list(ET.fromstring(to_mjcf(robot, visuals=False)).iter("geom"))) == 1


def stl(path, faces=1, text=False):
    path.write_bytes(
        b"solid of words" * 10 if text else bytes(80) + faces.to_bytes(4, "little") + bytes(50 * faces)
    )
    return path


def test_meshes_are_assets_once_for_each_file_and_scale(tmp_path):
    file = stl(tmp_path / "part.stl")
    shapes = [Shape(Mesh("part.stl", scale, file)) for scale in ((1, 1, 1), (1, 1, 1), (1, -1, 1))]
    robot = ModelBuilder("m").link("a", visuals=shapes, collisions=shapes[:1]).build()
    root = quiet(robot)
    assets = [(m.get("name"), m.get("scale")) for m in root.iter("mesh")]
    assert assets == [("part", "1.0 1.0 1.0"), ("part_", "1.0 -1.0 1.0")]
    assert [g.get("mesh") for g in root.iter("geom")] == ["part", "part", "part_", "part"]
    assert not list(ET.fromstring(to_mjcf(robot, meshes=False)).iter("geom"))


@pytest.mark.parametrize(
    ("name", "make", "words"),
    [
        ("a.dae", lambda p: p.write_bytes(b"x"), "whose mesh is none of .stl, .obj, .msh"),
        ("a.stl", lambda p: stl(p, text=True), "binary STL"),
        ("a.STL", lambda p: stl(p, faces=200_001), "not 1 to 200000 faces"),
    ],
)
def test_meshes_that_mujoco_cannot_read_are_named_in_one_warning(tmp_path, name, make, words):
    file = tmp_path / name
    make(file)
    shapes = [Shape(Mesh(name, path=file))] * 7
    with pytest.warns(UserWarning) as caught:
        text = to_mjcf(ModelBuilder("m").link("a", visuals=shapes, collisions=shapes[:1]).build())
    assert "mesh" not in text
    said = [str(w.message) for w in caught]
    assert len(said) == 2 and all(words in line and repr(name) in line for line in said)
    assert "7 visuals left out" in said[0] and "and 2 more" in said[0] and "1 collision left out" in said[1]


def loop(kind, **more):
    return model().link("c").joint("f", "fixed", "b", "c").loop_joint("l", kind, "a", "c", **more).build()


def test_loop_joints_become_points_or_frames_that_stay_together():
    place = Placement(position=np.array([0.0, 0.5, 0.0]))
    root = quiet(loop("spherical", predecessor_placement=place))
    assert [(e.tag, e.attrib) for e in root.find("equality")] == [
        ("connect", {"site1": "l_predecessor", "site2": "l_successor"})
    ]
    assert root.find("worldbody/site[@name='l_predecessor']").get("pos") == "0.0 0.5 0.0"
    assert root.find(".//body/site[@name='l_successor']").get("pos") == "0.0 0.0 0.0"
    root = quiet(loop("revolute", axis=(0, 1, 0)))
    assert [e.tag for e in root.find("equality")] == ["connect", "connect"]
    assert root.find("worldbody/site[@name='l_predecessor_axis']").get("pos") == "0.0 0.1 0.0"
    assert [e.tag for e in quiet(loop("fixed")).find("equality")] == ["weld"]
    assert quiet(loop("floating")).find("equality") is None


@pytest.mark.parametrize("coupled", [False, True])
def test_mimic_becomes_an_equality(coupled):
    b = model().link("c", 1.0, inertia=np.eye(3))
    robot = b.joint("k", "revolute", "b", "c", mimic=Mimic("j", 2.0, 0.5)).build()
    law = quiet(couple(robot) if coupled else robot).find("equality/joint").attrib
    assert law == {"joint1": "k", "joint2": "j", "polycoef": "0.5 2.0 0.0 0.0 0.0"}


def test_a_joint_that_mjcf_does_not_have():
    b = model().link("c", 1.0, inertia=np.eye(3)).joint("odd", "helical", "b", "c")
    with pytest.raises(rk.ModelError, match="'odd' is helical"):
        to_mjcf(b.build())


@pytest.mark.parametrize(
    ("robot", "message"),
    [
        (model(shapes=[Mesh("x.dae")]).build(), "1 collision left out, whose mesh was not found: 'x.dae'"),
        (model(shapes=[Sphere(0.0)]).build(), "left out, of no size: 'b/0' .sphere 0.0"),
        (ModelBuilder("m").link("a").link("b").joint("j", "revolute", "a", "b").build(), "no mass"),
        (
            ModelBuilder("m").link("a").link("b", 1.0, inertia=np.diag([1, 1, 3])).joint(
                "j", "revolute", "a", "b"
            ).build(),
            "triangle",
        ),
        (model(lower=0.5, upper=0.5).build(), "'j' has the limits 0.5 and 0.5"),
        (model().loop_joint("l", "prismatic", "a", "b").build(), "'l' is prismatic"),
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
