"""What the file says is what the robot has."""

import copy
import math
import pickle
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from for_each import for_each
from urdf_cases import GOOD, INERTIAL, LIMIT, MASSLESS_TIP, inertial, joint, link, robot, two_joints, visual

import robokit as rk
from robokit.errors import ModelError, UnknownName, UrdfError
from robokit.model.geometry import Box, Capsule, Cylinder, Sphere
from robokit.urdf import check_urdf, from_yourdfpy, loads_urdf
from robokit.urdf.description import Origin
from robokit.urdf.source import NumberError, parse_number, parse_numbers


def rotation(axis, angle):
    c, s = math.cos(angle), math.sin(angle)
    i, j = [(1, 2), (2, 0), (0, 1)]["xyz".index(axis)]
    R = np.eye(3)
    R[i, i], R[i, j], R[j, i], R[j, j] = c, -s, s, c
    return R


# ---- numbers


@for_each("text", ["1", "-1", "+1", "1.", ".5", "-.5e-3", "1E5", "007", " 2 ", "1e-999", "\t3\n"])
def test_numbers(text):
    assert parse_number(text) == float(text)


@for_each(
    "text",
    [
        "",
        " ",
        "nan",
        "inf",
        "-Infinity",
        "1e999",
        "1_000",
        "0x10",
        "1,5",
        "1e",
        "\u00a01",
        "1\u2003",
        "\x0c1",
        "e5",
        ".",
        "+",
        "1 2",
        "٣",
        "1d3",
        "--1",
    ],
)
def test_no_numbers(text):
    with pytest.raises(NumberError):
        parse_number(text)


def test_number_lists():
    assert parse_numbers("\n 1 \t 2\r\n3 ", 3) == (1, 2, 3)
    assert parse_numbers("1e308 1e308 1e308", 3) == (1e308,) * 3
    for text in ("1 2", "1 2 3 4", "", "1,2,3", "1;2;3", "1 nan 3", "1\u00a02 3", "1 2 3\u00a0", "1\x0b2 3"):
        with pytest.raises(NumberError):
            parse_numbers(text, 3)


# ---- geometry of frames


def test_rpy_is_about_fixed_axes():
    r, p, y = 0.3, -0.7, 1.9
    R = Origin(rpy=(r, p, y)).rotation()
    np.testing.assert_allclose(R, rotation("z", y) @ rotation("y", p) @ rotation("x", r), atol=1e-15)


def test_quaternion_is_xyzw():
    h = 0.5 * 0.8
    R = Origin(quat_xyzw=(0, 0, 2 * math.sin(h), 2 * math.cos(h))).rotation()
    np.testing.assert_allclose(R, rotation("z", 0.8), atol=1e-15)


def test_inertial_rpy_turns_the_inertia():
    text = link(
        '<inertial><origin xyz="1 2 3" rpy="0.1 0.2 0.3"/><mass value="2"/>'
        '<inertia ixx="1" ixy="0.1" ixz="0.2" iyy="2" iyz="0.3" izz="2.5"/></inertial>'
    )
    b = loads_urdf(text, strict=True).link("b")
    R = Origin(rpy=(0.1, 0.2, 0.3)).rotation()
    I = np.array([[1, 0.1, 0.2], [0.1, 2, 0.3], [0.2, 0.3, 2.5]])
    np.testing.assert_allclose(b.inertia, R @ I @ R.T, atol=1e-15)
    np.testing.assert_array_equal(b.com, [1, 2, 3])
    assert b.mass == 2


def test_nothing_physical_is_corrected():
    b = loads_urdf(inertial(ixx="-1", izz="9", mass="0")).link("b")
    np.testing.assert_array_equal(np.diag(b.inertia), [-1, 1, 9])
    assert b.mass == 0


# ---- joints


def test_everything_of_a_joint():
    text = joint(
        '<origin xyz="1 2 3" rpy="0 0 1"/><axis xyz="0 -2 0"/>'
        '<limit lower="-0.5" upper="1" effort="7" velocity="3"/>'
        '<dynamics damping="0.1" friction="0.2"/><safety_controller soft_lower_limit="-0.4"'
        ' soft_upper_limit="0.9" k_position="15" k_velocity="10"/><calibration rising="0.3" falling="-0.3"/>'
    )
    j = loads_urdf(text).joint("j")
    assert (j.kind, j.parent_link, j.child_link) == ("revolute", "a", "b")
    assert (j.lower, j.upper, j.effort, j.velocity) == (-0.5, 1, 7, 3)
    assert (j.damping, j.friction, j.mimic) == (0.1, 0.2, None)
    np.testing.assert_array_equal(j.axis, [0, -1, 0])
    np.testing.assert_allclose(j.origin.rotation, rotation("z", 1), atol=1e-15)
    np.testing.assert_array_equal(j.origin.position, [1, 2, 3])
    description, _ = check_urdf(text)
    (d,) = description.joints
    assert (d.safety.soft_lower_limit, d.safety.k_position, d.safety.k_velocity) == (-0.4, 15, 10)
    assert (d.calibration.rising, d.calibration.falling) == (0.3, -0.3)
    assert d.axis == (0, -2, 0)


@pytest.mark.parametrize(
    ("kind", "nv"),
    [("revolute", 1), ("continuous", 1), ("prismatic", 1), ("planar", 3), ("floating", 6), ("fixed", 0)],
)
def test_joint_types(kind, nv):
    robot_ = loads_urdf(joint(LIMIT.replace("-1", "0").replace('"1"', '"0.5"'), kind=f'type="{kind}"'))
    assert robot_.nv == nv
    assert robot_.joint("j").kind == kind


def test_limits():
    j = loads_urdf(joint('<limit upper="2" effort="0" velocity="0"/>'), strict=True).joint("j")
    assert (j.lower, j.upper, j.effort, j.velocity) == (0, 2, 0, 0)
    for text in (
        joint(""),
        joint("<limit effort='1' velocity='1'/>"),
        joint(LIMIT, kind='type="continuous"'),
    ):
        j = loads_urdf(text).joint("j")
        assert (j.lower, j.upper) == (-math.inf, math.inf)


def test_axis_defaults_to_x_and_survives_any_length():
    np.testing.assert_array_equal(loads_urdf(joint()).joint("j").axis, [1, 0, 0])
    for size in ("1e-200", "1e200", "1e-320"):
        np.testing.assert_allclose(
            loads_urdf(joint(f'<axis xyz="0 {size} 0"/>{LIMIT}')).joint("j").axis, [0, 1, 0]
        )


def test_mimic_stays_a_coordinate_of_its_own():
    text = robot(
        "".join(f'<link name="{n}">{INERTIAL}</link>' for n in "abc")
        + f'<joint name="j" type="revolute"><parent link="a"/><child link="b"/>{LIMIT}</joint>'
        f'<joint name="k" type="revolute"><parent link="b"/><child link="c"/>{LIMIT}'
        '<mimic joint="j" multiplier="-2" offset="0.1"/></joint>'
    )
    robot_ = loads_urdf(text, strict=True)
    mimic = robot_.joint("k").mimic
    assert (mimic.joint, mimic.multiplier, mimic.offset) == ("j", -2, 0.1)
    assert robot_.joint_names == ("j", "k") and robot_.diagnostics == []
    # Asked for, the coupling is dropped, and said to be: once, with the joints' names.
    (said,) = loads_urdf(text, mimic="independent").diagnostics
    assert (said.severity, said.code) == ("warning", "mimic-independent")
    assert (
        "drops the law of 1 joint that mimics another in the file: 'k'" in said.message
        and "couple" in said.hint
    )
    with pytest.raises(UrdfError, match="mimic-independent"):
        loads_urdf(text, mimic="independent", strict=True)
    assert loads_urdf(text, mimic="couple", strict=True).joint_names == ("j",)
    plain = text.replace('<mimic joint="j" multiplier="-2" offset="0.1"/>', "")
    assert loads_urdf(plain, mimic="independent", strict=True).diagnostics == []
    with pytest.raises(UnknownName, match="couple"):
        loads_urdf(text, mimic="coupled")


def test_bodies_follow_the_order_of_the_joint_elements():
    links = "".join(f'<link name="{n}">{INERTIAL}</link>' for n in ("tip", "right", "left", "root"))
    edges = [("t", "left", "tip"), ("r", "root", "right"), ("l", "root", "left")]
    joints = "".join(
        f'<joint name="{n}" type="revolute"><parent link="{p}"/><child link="{c}"/>{LIMIT}</joint>'
        for n, p, c in edges
    )
    robot_ = loads_urdf(robot(links + joints), strict=True)
    assert robot_.joint_names == ("r", "l", "t")
    assert robot_.link_names == ("tip", "right", "left", "root")


def test_fixed_links_fold_and_stay_frames():
    text = robot(
        "".join(f'<link name="{n}">{INERTIAL}</link>' for n in "abc")
        + f'<joint name="j" type="revolute"><parent link="a"/><child link="b"/>{LIMIT}</joint>'
        '<joint name="k" type="fixed"><parent link="b"/><child link="c"/><origin xyz="0 0 2"/></joint>'
    )
    robot_ = loads_urdf(text, strict=True)
    body, placement = robot_.frame("c")
    assert (robot_.nbodies, body) == (1, 1)
    np.testing.assert_array_equal(placement.position, [0, 0, 2])
    I = robot_.tree.I[1]
    assert I.m == 2
    np.testing.assert_allclose(tuple(I.h), [0, 0, 2])


# ---- looks


def test_shapes_and_materials():
    text = robot(
        '<material name="red"><color rgba="1 0 0 0.5"/></material><link name="a">'
        '<visual name="v"><origin xyz="1 0 0" rpy="0 0 1"/><geometry><box size="1 2 3"/></geometry>'
        '<material name="red"/></visual>'
        '<visual><geometry><cylinder radius="1" length="2"/></geometry>'
        '<material name="blue"><color rgba="0 0 1 1"/></material></visual>'
        '<visual><geometry><sphere radius="4"/></geometry><material name="blue"/></visual>'
        '<collision><geometry><capsule radius="1" length="2"/></geometry></collision></link>'
    )
    a = loads_urdf(text, strict=True).link("a")
    assert [v.geometry for v in a.visuals] == [Box((1, 2, 3)), Cylinder(1, 2), Sphere(4)]
    assert [v.rgba for v in a.visuals] == [(1, 0, 0, 0.5), (0, 0, 1, 1), (0, 0, 1, 1)]
    assert a.visuals[0].name == "v"
    np.testing.assert_allclose(a.visuals[0].placement.rotation, rotation("z", 1), atol=1e-15)
    assert a.collisions[0].geometry == Capsule(1, 2)


# ---- joints that move nothing


def massless(text, base="fixed"):
    return [d for d in check_urdf(text, base=base)[1] if d.code == "massless-subtree"]


def test_massless_tip_names_the_joint():
    (warning,) = massless(MASSLESS_TIP.replace("KIND", "prismatic"))
    assert warning.element == "joint 'k'"
    assert massless(MASSLESS_TIP.replace("KIND", "fixed")) == []


def test_outermost_joint_is_named():
    text = MASSLESS_TIP.replace("KIND", "revolute").replace(
        "</robot>",
        '<link name="d"/><joint name="m" type="continuous"><parent link="c"/><child link="d"/></joint>'
        "</robot>",
    )
    (warning,) = massless(text)
    assert warning.element == "joint 'k'" and "1 beyond it" in warning.message


def test_robot_without_any_mass_is_one_warning():
    text = GOOD.replace(INERTIAL, "")
    (warning,) = massless(text)
    assert "'j'" in warning.message and "no link has a mass" in warning.message
    (warning,) = massless(robot('<link name="a"/>'), "floating")
    assert "floating_base" in warning.message


def test_inertia_without_mass_turns_but_does_not_slide():
    tip = INERTIAL.replace('mass value="1"', 'mass value="0"')
    text = MASSLESS_TIP.replace('<link name="c"/>', f'<link name="c">{tip}</link>')
    assert massless(text.replace("KIND", "revolute")) == []
    assert len(massless(text.replace("KIND", "prismatic"))) == 1


@pytest.mark.parametrize(("offset", "count"), [("0 0 0", 1), ("3 0 0", 1), ("0 1 0", 0)])
def test_point_mass_on_the_axis(offset, count):
    point = f'<inertial><origin xyz="{offset}"/><mass value="1"/></inertial>'
    text = MASSLESS_TIP.replace('<link name="c"/>', f'<link name="c">{point}</link>').replace(
        "KIND", "revolute"
    )
    assert len(massless(text)) == count


def test_floating_base_without_inertia():
    assert massless(GOOD) == []
    assert [w.element for w in massless(GOOD, "floating")] == ["joint 'floating_base'"]
    two = GOOD.replace(
        "</robot>",
        f'<link name="c">{INERTIAL}</link><joint name="k" type="continuous"><parent link="a"/>'
        '<child link="c"/><axis xyz="0 1 0"/></joint></robot>',
    )
    assert massless(two, "floating") == []
    behind = GOOD.replace(
        "</robot>",
        f'<link name="c">{INERTIAL}</link><joint name="k" type="fixed"><parent link="a"/>'
        '<child link="c"/></joint></robot>',
    )
    assert massless(behind, "floating") == []


def named_as_the_base(kind):
    return robot(
        f'<link name="a"/><link name="b">{INERTIAL}</link>\n'
        f'<joint name="floating_base" type="{kind}"><parent link="a"/><child link="b"/></joint>'
    )


def test_a_fixed_joint_may_have_the_base_joints_name():
    text = named_as_the_base("fixed")
    assert loads_urdf(text, strict=True).diagnostics == []
    robot_ = loads_urdf(text, base="floating", strict=True)
    assert robot_.all_joint_names == ("floating_base", "floating_base_fixed")
    assert robot_.joint("floating_base").kind == "floating"
    assert [(d.severity, d.code, d.line) for d in robot_.diagnostics] == [("note", "joint-renamed", 3)]


def test_a_robot_that_floats_already_does_not_float_twice():
    text = named_as_the_base("floating")
    assert loads_urdf(text, strict=True).joint_names == ("floating_base",)
    assert loads_urdf(text, base="floating", strict=True).nv == 6  # it is the base itself
    text = text.replace('<link name="a"/>', f'<link name="a">{INERTIAL}</link>')
    with pytest.raises(UrdfError, match="base='fixed'") as caught:
        loads_urdf(text, base="floating")
    (error,) = (d for d in caught.value.diagnostics if d.severity == "error")
    assert (error.code, error.line) == ("base-floats-twice", 3)


def test_source_and_name():
    robot_ = loads_urdf(GOOD)
    assert (robot_.name, robot_.source, robot_.base) == ("r", "<string>", "fixed")
    assert loads_urdf(robot('<link name="a"/>', name="")).name == "robot"


def test_from_yourdfpy():
    loaded = SimpleNamespace(write_xml_string=lambda: GOOD.encode())
    assert from_yourdfpy(loaded, base="floating").nv == 7
    with pytest.raises(UnknownName, match="mimic"):
        from_yourdfpy(loaded, mimic="both")


@pytest.mark.parametrize("kind", ["planar", "floating"])
@pytest.mark.parametrize("which", [0, 1])
def test_what_cannot_be_coupled_is_found_only_where_that_is_asked(kind, which):
    parts = two_joints("", '<mimic joint="j"/>').split('type="revolute"')
    kinds = [kind if k == which else "revolute" for k in (0, 1)]
    text = f'{parts[0]}type="{kinds[0]}"{parts[1]}type="{kinds[1]}"{parts[2]}'
    assert not [d for d in check_urdf(text)[1] if d.severity == "error"]
    (error,) = (d for d in check_urdf(text, mimic="couple")[1] if d.severity == "error")
    assert (error.code, error.element) == ("mimic-not-coupled", "joint 'k' mimic")
    assert f"{'jk'[which]!r} is {kind} and has several coordinates" in error.message
    with pytest.raises(ModelError, match="several coordinates"):
        loads_urdf(text, mimic="couple")
    assert loads_urdf(text).nv > 2


# ---- shapes, made at their first use


def shapes():
    """A link whose shapes are not made yet, and what they will be."""
    text = visual('<box size="1 2 3"/>')
    return loads_urdf(text).link("b"), loads_urdf(text).link("b").visuals


def test_shapes_are_made_at_their_first_use():
    link, expected = shapes()
    assert "visuals" not in vars(link)
    assert len(expected) == 1
    assert link.collisions == ()
    assert repr(link.visuals) == repr(expected)
    assert link.visuals is link.visuals
    assert set(vars(link)) == set(rk.model.Link.__dataclass_fields__)


@pytest.mark.parametrize("other", [copy.copy, copy.deepcopy, lambda link: pickle.loads(pickle.dumps(link))])
def test_copies_have_them(other):
    link, expected = shapes()
    assert repr(other(link).visuals) == repr(expected)
    assert repr(other(link)) == repr(link)


def test_threads_get_the_same_shapes():
    for _ in range(20):
        link, _ = shapes()
        gate, got = threading.Barrier(4), []

        def look(link=link, gate=gate, got=got):
            gate.wait()
            got.append((link.visuals, link.collisions))

        threads = [threading.Thread(target=look) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert all(one is two for pair in got for one, two in zip(pair, got[0], strict=True))
