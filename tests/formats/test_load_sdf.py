"""SDF as robots: what the file says beside bodies and joints, and what is told of the rest."""

from __future__ import annotations

import contextlib
import copy
import math
import random
from pathlib import Path

import numpy as np
import pytest
from lxml import etree

import robokit as rk
from robokit.errors import LoadError
from robokit.model.geometry import Box, Capsule, Cylinder, Mesh, Sphere
from robokit.sdf import to_sdf

BODY = (
    "<inertial><mass>2</mass><inertia><ixx>0.1</ixx><iyy>0.2</iyy><izz>0.25</izz><ixy>0</ixy><ixz>0</ixz>"
    "<iyz>0</iyz></inertia></inertial>"
)

HINGE = """<joint name="{0}" type="revolute"><parent>{1}</parent><child>{2}</child>
<axis><xyz>0 0 1</xyz>{3}</axis></joint>"""


def hinge(name, parent, child, more=""):
    return HINGE.format(name, parent, child, more)


def link(name, more="", pose=""):
    return f'<link name="{name}"><pose>{pose or "0 0 0 0 0 0"}</pose>{BODY}{more}</link>'


def load(tmp_path, body, world=False, **arguments):
    file = tmp_path / "robot.sdf"
    inside = body if world else f'<model name="robot">{body}</model>'
    file.write_text(f'<?xml version="1.0"?><sdf version="1.11">{inside}</sdf>')
    return rk.load(file, **arguments)


def told(robot, severity=None):
    return " | ".join(str(d) for d in robot.diagnostics if severity in (None, d.severity))


def test_looks_and_shapes_are_kept(tmp_path):
    mesh = rk.find_robot("humanoid").parent
    file = next(iter(mesh.rglob("*.stl")), None)
    visuals = """<visual name="a"><pose>0.1 0 0 0 0 0</pose><geometry><box><size>1 2 3</size></box></geometry>
      <transparency>0.5</transparency><material><diffuse>0.1 0.2 0.3 0.8</diffuse></material></visual>
      <visual name="b"><geometry><capsule><radius>0.1</radius><length>0.4</length></capsule></geometry>
      <material><script><name>Gazebo/Orange</name></script></material></visual>
      <collision name="c"><geometry><ellipsoid><radii>0.2 0.2 0.2</radii></ellipsoid></geometry></collision>
      <collision name="d"><geometry><ellipsoid><radii>0.2 0.3 0.2</radii></ellipsoid></geometry></collision>
      <collision name="e"><geometry><cylinder><radius>0.2</radius><length>1</length></cylinder></geometry>
      </collision>"""
    if file is not None:
        visuals += f'<visual name="m"><geometry><mesh><uri>file://{file}</uri></mesh></geometry></visual>'
    robot = load(tmp_path, link("base", visuals))
    base = robot.link("base")
    assert [type(s.geometry) for s in base.visuals] == [Box, Capsule, *([Mesh] if file else [])]
    assert base.visuals[0].rgba == (0.1, 0.2, 0.3, 0.4) and base.visuals[0].placement.position[0] == 0.1
    assert base.visuals[1].rgba[:2] == (1.0, 0.5088) and base.visuals[0].name == "a"
    assert [type(s.geometry) for s in base.collisions] == [Sphere, Mesh, Cylinder]
    assert "ellipsoid" in told(robot, "note") and "base/d" in told(robot)


def test_what_a_robot_cannot_have_is_told_by_name(tmp_path):
    body = link("base", '<sensor name="eye" type="camera"><pose>0 0 1 0 0 0</pose></sensor>')
    body += link("arm", "<enable_wind>1</enable_wind>") + '<plugin name="control" filename="libcontrol.so"/>'
    body += hinge("a", "base", "arm", "<dynamics><spring_stiffness>30</spring_stiffness></dynamics>")
    robot = load(tmp_path, body)
    assert "eye" in told(robot, "note") and "control" in told(robot, "note")
    assert "enable_wind" in told(robot, "warning")
    swims = link("fin").replace("</inertial>", "<fluid_added_mass><xx>1</xx></fluid_added_mass></inertial>")
    robot = load(
        tmp_path, link("base") + swims + hinge("a", "base", "fin", "<initial_position>1</initial_position>")
    )
    assert "fluid_added_mass" in told(robot, "warning") and "initial_position" in told(robot, "note")
    with pytest.raises(LoadError) as strict:
        load(tmp_path, body, strict=True)
    assert "strict" in str(strict.value)


@pytest.mark.parametrize("declared", ["", 'xmlns:drake="drake.mit.edu"'])
@pytest.mark.parametrize("name", ["joint", "linear_bushing_rpy", "ball_constraint"])
def test_extensions_of_drake_that_hold_bodies_are_told(tmp_path, name, declared):
    """<drake:joint> is no <joint>: the body that it holds is loose here."""
    extension = (
        f'<drake:{name} {declared} name="k" type="planar"><drake:parent>base</drake:parent></drake:{name}>'
    )
    robot = load(tmp_path, link("base") + link("arm") + extension)
    assert robot.nv == 12 and f"<drake:{name}> ('robot/k'): it affects the motion" in told(robot, "warning")


def test_elements_of_another_namespace_are_told_with_it(tmp_path):
    """A <visual> of another one is none."""
    robot = load(tmp_path, link("base", '<visual xmlns="http://other.org" name="v"/>'))
    assert "<{http://other.org}visual> ('base/v'): it is not supported" in told(robot)


def test_a_universal_joint_that_closes_a_loop_is_a_cross(tmp_path):
    arms = [link("base"), link("a", pose="1 0 0 0 0 0"), link("b", pose="0 1 0 0 0 0")]
    arms += [link("c", pose="1 1 0 0 0 0"), hinge("ja", "base", "a"), hinge("jb", "base", "b")]
    cross = """<joint name="u" type="universal"><parent>a</parent><child>c</child>
      <axis><xyz>1 0 0</xyz></axis><axis2><xyz>0 1 0</xyz></axis2></joint>"""
    robot = load(tmp_path, "".join(arms) + hinge("jc", "b", "c") + cross, base="fixed")
    (loop,) = robot.loop_joints
    assert (loop.name, loop.kind, loop.predecessor, loop.successor) == ("u", "universal", "a", "c")
    assert robot.nv == 3 and "u_between" not in robot.link_names and "left-out" not in told(robot)
    q = rk.close_loops(robot, robot.random_configuration(1) * 0.1)
    (Ra, pa), (Rc, pc) = (rk.forward_kinematics(robot, q)[name] for name in "ac")
    np.testing.assert_allclose(pa + Ra @ [0, 1, 0], pc, atol=1e-9)  # where c is at zero
    assert abs(Ra[:, 0] @ Rc[:, 1]) < 1e-9


def test_a_spring_of_a_joint_is_one(tmp_path):
    spring = "<spring_stiffness>30</spring_stiffness><spring_reference>0.2</spring_reference>"
    spring = f"<dynamics>{spring}</dynamics>"
    robot = load(tmp_path, link("base") + link("arm") + hinge("a", "base", "arm", spring), base="fixed")
    assert robot.scene.springs == (rk.JointSpring(joint="a", name="a", stiffness=30.0, rest=0.2),)
    assert not robot.scene.actuators and "springs=robot.scene.springs" in told(robot, "note")


def test_mimic_and_gearbox_are_mimic_joints(tmp_path):
    law = '<mimic joint="a"><multiplier>-2</multiplier><offset>0.1</offset><reference>0.3</reference></mimic>'
    robot = load(
        tmp_path,
        link("base") + link("arm") + link("leg") + hinge("a", "base", "arm") + hinge("b", "base", "leg", law),
        mimic="couple",
    )
    assert robot.nv == 7
    (b,) = robot.mimic_joints
    assert (b.mimic.joint, b.mimic.multiplier) == ("a", -2.0)
    assert b.mimic.offset == pytest.approx(0.1 + 2 * 0.3)
    own = hinge("b", "base", "leg").replace(
        "<axis>", '<drake:mimic joint="a" multiplier="4" offset="1"/><axis>'
    )
    robot = load(tmp_path, link("base") + link("arm") + link("leg") + hinge("a", "base", "arm") + own)
    assert robot.joint("b").mimic == rk.Mimic("a", 4.0, 1.0)
    gears = """<joint name="g" type="gearbox"><parent>arm</parent><child>leg</child>
      <gearbox_ratio>3</gearbox_ratio><gearbox_reference_body>base</gearbox_reference_body>
      <axis><xyz>0 0 1</xyz></axis><axis2><xyz>0 0 -1</xyz></axis2></joint>"""
    robot = load(
        tmp_path,
        link("base")
        + link("arm")
        + link("leg")
        + hinge("a", "base", "arm")
        + hinge("b", "base", "leg")
        + gears,
        mimic="couple",
    )
    (b,) = robot.mimic_joints
    # theta 2 = -3 theta 1, and the second axis points the other way.
    assert (b.name, b.mimic.joint, b.mimic.multiplier) == ("b", "a", 3.0)


def test_a_world_gives_one_robot_by_name(tmp_path):
    one, two = (f'<model name="{name}">{link("base")}</model>' for name in ("one", "two"))
    floor = '<model name="floor"><static>1</static><link name="plane"/></model>'
    world = '<world name="w"><gravity>0 0 -1.62</gravity>{}</world>'
    with pytest.raises(LoadError, match=r"'one', 'two'.*root="):
        load(tmp_path, world.format(one + two), world=True)
    robot = load(tmp_path, world.format(one + two), world=True, root="two")
    assert robot.name == "two" and tuple(robot.gravity) == (0.0, 0.0, -1.62) and "one" in told(robot)
    assert load(tmp_path, world.format(floor + one), world=True).name == "one"
    with pytest.raises(LoadError, match=r"no model 'three'.*'one', 'two'"):
        load(tmp_path, world.format(one + two), world=True, root="three")


def test_includes_are_read_where_they_stand(tmp_path):
    folder = tmp_path / "gripper"
    folder.mkdir()
    inner = f'<model name="gripper">{link("palm")}{link("finger", pose="0 0 0.1 0 0 0")}'
    inner += hinge("f", "palm", "finger") + "</model>"
    (folder / "model.config").write_text('<model><sdf version="1.9">model.sdf</sdf></model>')
    (folder / "model.sdf").write_text(f'<sdf version="1.9">{inner}</sdf>')
    include = "<include {}><uri>model://gripper</uri><name>hand</name>"
    include += '<pose relative_to="arm">0 0 {} 0 0 0</pose></include>'
    weld = '<joint name="w" type="fixed"><parent>arm</parent><child>{}</child></joint>'
    arm = link("base") + link("arm", pose="0 0 1 0 0 0") + hinge("a", "base", "arm")
    robot = load(tmp_path, arm + include.format("", 0.5) + weld.format("hand::palm"))
    assert {"hand::palm", "hand::finger"} <= set(robot.link_names) and "hand::f" in robot.joint_names
    _, p = rk.forward_kinematics(robot, robot.neutral())["hand::finger"]
    assert np.allclose(p - rk.forward_kinematics(robot, robot.neutral())["base"][1], [0, 0, 1.6], atol=1e-15)
    merged = load(tmp_path, arm + include.format('merge="true"', 0.5) + weld.format("palm"))
    assert {"palm", "finger"} <= set(merged.link_names)
    with pytest.raises(LoadError, match="no model 'model://nothing'"):
        load(tmp_path, arm + "<include><uri>model://nothing</uri></include>")


def test_inertia_of_collision_shapes(tmp_path):
    """A box and a ball by density, against the sums written out by hand."""
    body = """<link name="base"><inertial auto="true"><density>500</density></inertial>
      <collision name="a"><pose>0.1 0 0 0 0 0</pose><geometry><box><size>0.2 0.4 0.6</size></box></geometry>
      </collision><collision name="b"><density>100</density><pose>0 0 1 0 0 0</pose>
      <geometry><sphere><radius>0.3</radius></sphere></geometry></collision></link>"""
    base = load(tmp_path, body).link("base")
    box, ball = 500 * 0.2 * 0.4 * 0.6, 100 * 4 / 3 * math.pi * 0.3**3
    com = (box * np.array([0.1, 0, 0]) + ball * np.array([0, 0, 1.0])) / (box + ball)
    assert base.mass == pytest.approx(box + ball, rel=1e-14) and np.allclose(base.com, com, atol=1e-14)
    moments = box / 12 * np.array([0.4**2 + 0.6**2, 0.2**2 + 0.6**2, 0.2**2 + 0.4**2])
    want = np.diag(moments + 0.4 * ball * 0.3**2)
    for mass, at in ((box, [0.1, 0, 0]), (ball, [0, 0, 1.0])):
        d = np.array(at) - com
        want = want + mass * (d @ d * np.eye(3) - np.outer(d, d))
    assert np.allclose(base.inertia, want, rtol=1e-13)


def test_a_mesh_without_triangles_has_no_inertia(tmp_path):
    (tmp_path / "empty.stl").write_text("solid empty\nendsolid empty\n")
    body = """<link name="base"><inertial auto="true"/><collision name="a"><geometry><mesh>
      <uri>empty.stl</uri></mesh></geometry></collision></link>"""
    with pytest.raises(rk.LoadError, match="have no volume; give <mass> and <inertia>"):
        load(tmp_path, body)


def test_capsules_have_the_inertia_of_a_capsule_of_points(tmp_path):
    """By the mean over points of a lattice inside it."""
    body = """<link name="base"><inertial auto="true"/><collision name="a"><geometry><capsule>
      <radius>0.3</radius><length>0.5</length></capsule></geometry></collision></link>"""
    base = load(tmp_path, body).link("base")
    n = 60
    x = (np.arange(-n, n) + 0.5) * (0.55 / n)
    X, Y, Z = np.meshgrid(x, x, x, indexing="ij")
    inside = X**2 + Y**2 + np.maximum(np.abs(Z) - 0.25, 0.0) ** 2 <= 0.09
    volume = inside.sum() * (0.55 / n) ** 3
    assert base.mass == pytest.approx(1000 * volume, rel=4e-3)
    across = base.mass * float(np.mean((Y**2 + Z**2)[inside]))
    along = base.mass * float(np.mean((X**2 + Y**2)[inside]))
    assert np.allclose(np.diag(base.inertia), [across, across, along], rtol=6e-3)


def test_static_models_and_loops(tmp_path):
    still = load(tmp_path, "<static>true</static>" + link("a") + link("b") + hinge("j", "a", "b"))
    assert still.nv == 0 and still.base == "fixed" and "static" in told(still)
    square = "".join(
        link(n, pose=p) for n, p in (("a", "0 0 0 0 0 0"), ("b", "1 0 0 0 0 0"), ("c", "1 1 0 0 0 0"))
    )
    square += hinge("ab", "a", "b") + hinge("bc", "b", "c")
    square += hinge("ac", "a", "c", "<dynamics><damping>2</damping></dynamics>")
    robot = load(tmp_path, square)
    assert [loop.name for loop in robot.loop_joints] == ["ac"] and robot.nv == 8
    assert "damping" in told(robot, "warning")


BAD = {
    "no direction": (link("a") + link("b") + hinge("j", "a", "b").replace("0 0 1", "0 0 0"), "no direction"),
    "unknown type": (
        link("a") + link("b") + hinge("j", "a", "b").replace("revolute", "rotary"),
        "'rotary'.*revolute",
    ),
    "unknown end": (link("a") + hinge("j", "a", "nobody"), "no frame 'nobody'.*'a'"),
    "no number": (link("a").replace("<mass>2", "<mass>two"), "expected a number, got 'two'"),
    "frames in a circle": (
        link("a")
        + '<frame name="x"><pose relative_to="y"/></frame><frame name="y"><pose relative_to="x"/></frame>',
        "relative to itself",
    ),
    "a pose of three numbers": (link("a", pose="1 2 3"), "expected 6 or 7 numbers, got '1 2 3'"),
    "no link": ("", "no link"),
    "two links with the same name": (
        link("a") + "\n" + link("a"),
        r"are called 'a' \(lines \d and \d\)",
    ),
    "a joint with the name of its link": (
        link("a") + link("b") + hinge("b", "a", "b"),
        "two links, joints, .* are called 'b'",
    ),
    "a frame with the name of a link": (
        link("a") + link("b") + '<frame name="a"><pose>1 0 0 0 0 0</pose></frame>' + hinge("j", "a", "b"),
        "two links, joints, .* are called 'a'",
    ),
    "itself": (link("a") + hinge("j", "a", "a"), "with itself"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files_are_refused_in_one_line(case, tmp_path):
    body, words = BAD[case]
    with pytest.raises(LoadError, match=words) as problem:
        load(tmp_path, body)
    assert "robot.sdf" in str(problem.value) and "\n" not in str(problem.value)


VALUES = ("", "nan", "inf", "-1", "1e400", "abc", "1 2", "0 0 0", "world", "__model__", "base", "a::b", "é")


def test_broken_files_never_raise_anything_else(tmp_path):
    """A file with something left out, twice there or of another value is read, or refused with its name."""
    rng = random.Random(5)
    file = tmp_path / "robot.sdf"
    for name in ("arm", "humanoid"):
        text = to_sdf(rk.load(name), meshes=False, visuals=False).encode()
        for _ in range(25):
            root = etree.fromstring(text)
            for _ in range(3):
                element = rng.choice([e for e in root.iter() if e.getparent() is not None])
                change = rng.randrange(4)
                if change == 0:
                    element.getparent().remove(element)
                elif change == 1:
                    element.getparent().append(copy.deepcopy(element))
                elif change == 2 and element.attrib:
                    element.set(rng.choice(list(element.attrib)), rng.choice(VALUES))
                else:
                    element.text = rng.choice(VALUES)
            file.write_bytes(etree.tostring(root))
            with contextlib.suppress(LoadError):
                rk.load(file)


@pytest.mark.parametrize("name", ["arm", "humanoid", "quadruped"])
def test_what_is_written_is_read_as_the_same_robot(name, tmp_path):
    robot = rk.load(name, base="floating" if name != "arm" else None)
    again = rk.load(_write(robot, tmp_path))
    assert again.joint_names == robot.joint_names and set(again.link_names) == set(robot.link_names)
    q, v = robot.random_configuration(1), np.linspace(-1, 1, robot.nv)
    assert np.allclose(rk.crba(again, q), rk.crba(robot, q), rtol=0, atol=1e-13)
    assert np.allclose(rk.rnea(again, q, v, v), rk.rnea(robot, q, v, v), rtol=1e-12, atol=1e-12)
    for a, b in zip(robot.joints, again.joints, strict=True):
        assert all(
            getattr(a, n) == getattr(b, n) for n in ("lower", "upper", "effort", "velocity", "damping")
        )
    for one in robot.links:
        other = again.link(one.name)
        assert [s.rgba for s in one.visuals] == [s.rgba for s in other.visuals]
        assert [s.geometry for s in one.collisions] == [s.geometry for s in other.collisions]


def _write(robot, folder) -> Path:
    file = folder / "written.sdf"
    to_sdf(robot, file)
    return file


def test_friction_is_the_smaller_one_of_both_as_in_gazebo(tmp_path):
    surface = "<surface><friction><ode><mu>{}</mu></ode></friction></surface>"
    floor, own = surface.format(100), surface.format(0.4)
    box = "<geometry><box><size>1 1 1</size></box></geometry>"
    for said, friction in ((own, 0.4), ("", 1.0)):
        (tmp_path / "w.sdf").write_text(
            '<sdf version="1.9"><world name="w"><model name="g"><static>true</static><link name="l">'
            f'<collision name="c"><geometry><plane/></geometry>{floor}</collision></link></model>'
            f'<model name="m"><link name="b"><collision name="c">{box}{said}</collision></link></model>'
            "</world></sdf>"
        )
        assert rk.load(tmp_path / "w.sdf").scene.ground.friction == friction


def test_a_joint_within_one_rigid_body_is_said(tmp_path):
    ends = "<parent>{}</parent><child>{}</child>"
    joints = (f'<joint name="{a}{b}" type="fixed">{ends.format(a, b)}</joint>' for a, b in ("ab", "ba"))
    (tmp_path / "m.sdf").write_text(
        f'<sdf version="1.9"><model name="m"><link name="a"/><link name="b"/>{"".join(joints)}</model></sdf>'
    )
    robot = rk.load(tmp_path / "m.sdf")
    assert not robot.loop_joints and any(
        d.code == "left-out" and "'ba'" in d.element for d in robot.diagnostics
    )


@pytest.mark.parametrize(
    ("more", "where", "said"),
    [
        ("<pose>0 0 2 0 0 0</pose>", "link", "repeated <pose> of <link>"),
        ("<inertial><mass>9</mass></inertial>", "link", "repeated <inertial> of <link>"),
        (
            '<collision name="c"><geometry><box><size>1 1 1</size></box><sphere><radius>1</radius></sphere>'
            "</geometry></collision>",
            "link",
            "repeated <sphere> of <geometry>",
        ),
        (
            "<limit><lower>-1</lower></limit><limit><lower>-2</lower></limit>",
            "axis",
            "repeated <limit> of <axis>",
        ),
        ("<limit><lower>-1</lower><lower>-2</lower></limit>", "axis", "repeated <lower> of <limit>"),
    ],
)
def test_of_what_a_file_says_twice_the_first_counts_and_the_other_is_told(tmp_path, more, where, said):
    at_link, at_axis = (more, "") if where == "link" else ("", more)
    robot = load(tmp_path, link("base") + link("a", at_link) + hinge("j", "base", "a", at_axis))
    assert said in told(robot) and "the first counts" in told(robot)
    assert robot.total_mass == 4.0 and robot.joint("j").lower in (-1.0, -math.inf)
    plain = load(tmp_path, link("base") + link("a") + hinge("j", "base", "a"))
    assert "repeated" not in told(plain)
