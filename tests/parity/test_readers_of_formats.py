"""MJCF, SDF and USD, and a URDF through other programs, as the referee reads them."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from other_formats import sdf, usd

import robokit as rk
from robokit.errors import RobokitError
from robokit.mjcf import to_mjcf
from robokit.parity import referee
from robokit.urdf import check_urdf

pytestmark = pytest.mark.parity

OURS = ("arm", "quadruped")


def described(name):
    """A robot's file and its description, without the passive forces that USD's own schema cannot say."""
    description, _ = check_urdf(rk.find_robot(name), "either")
    joints = (joint._replace(dynamics=None) for joint in description.joints)
    return description._replace(joints=tuple(joints))


@pytest.mark.parametrize("name", [*OURS, "example-robot-data:panda"])
def test_the_export_is_the_robot(name, tmp_path):
    file, out = rk.find_robot(name), tmp_path / "robot.xml"
    for base in ("fixed", "floating"):
        to_mjcf(rk.load_urdf(file, base=base), out, visuals=False)
        verdict = referee(file, out, base=base)
        assert verdict.same and verdict.joints == len(rk.load_urdf(file).joint_names)
        other = {"fixed": "floating", "floating": "fixed"}[base]
        cause = {"fixed": "base-welded", "floating": "base-freed"}[base]
        assert [f.cause for f in referee(file, out, base=other).findings] == [cause]


@pytest.mark.parametrize("through", ["mujoco", "drake", "pinocchio"])
@pytest.mark.parametrize("name", [*OURS, "example-robot-data:panda"])
def test_other_programs_read_the_same_robot(name, through):
    file = rk.find_robot(name)
    verdict = referee(file, file, through=through)
    assert verdict.same, verdict.findings
    assert verdict.joints == len(rk.load_urdf(file).joint_names)


def test_drake_replaces_an_impossible_inertia():
    file = rk.find_robot("example-robot-data:b1")
    (finding,) = referee(file, file, through="drake").findings
    assert (finding.cause, finding.name) == ("inertia-ball", "base")


@pytest.mark.parametrize("name", OURS)
def test_sdf(name, tmp_path):
    description, _ = check_urdf(rk.find_robot(name), "either")
    b = tmp_path / "robot.sdf"
    b.write_text(sdf(description))
    verdict = referee(rk.find_robot(name), b)
    assert verdict.same and verdict.bodies == len(description.links), verdict.findings
    first = next(joint for joint in description.joints if joint.moves)
    text = b.read_text()
    axis = f"<xyz>{' '.join(map(repr, first.axis))}</xyz>"
    b.write_text(text.replace(axis, f"<xyz>{' '.join(repr(-x) for x in first.axis)}</xyz>", 1))
    (finding,) = referee(rk.find_robot(name), b).findings
    assert (finding.cause, finding.name) == ("axis-flipped", first.name)


@pytest.mark.parametrize("name", OURS)
def test_usd(name, tmp_path):
    pytest.importorskip("pxr", reason="usd-core has no wheel for every machine")
    from robokit.urdf.write import write

    description = described(name)
    a, b, c = (tmp_path / file for file in ("robot.urdf", "robot.usda", "inverted.usda"))
    a.write_text(write(description, []))
    usd(description, b)
    verdict = referee(a, b, base="fixed")
    assert verdict.same and verdict.bodies == len(description.links), verdict.findings
    assert [f.cause for f in referee(a, b, base="floating").findings] == ["base-welded"]
    usd(description, c, fixed=False, axes_inverted=True)
    verdict = referee(a, c, base="floating")
    assert {f.cause for f in verdict.findings} <= {"principal-axes-inverted", "principal-axes-lost"}
    turned = [
        link.name
        for link in description.links
        if link.inertial and np.abs(np.array(link.inertial.inertia)[[1, 2, 4]]).max() > 1e-6
    ]
    assert {f.name for f in verdict.findings} >= set(turned)


@pytest.fixture
def benchmark(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[2] / "benchmarks"))
    import referee as benchmark

    yield benchmark
    for name in [m for m in sys.modules if m.split(".")[0] in ("referee", "mutations", "measure")]:
        sys.modules.pop(name, None)


@pytest.mark.parametrize("name", ["example-robot-data:ur5_gripper"])
def test_mistakes_are_named(benchmark, name, tmp_path):
    # The whole table, every public robot: python benchmarks/referee.py
    rows = list(benchmark.rows_of(rk.find_robot(name), ("URDF", "MJCF"), set(), tmp_path))
    done = [row for row in rows if not row.skipped]
    assert len(done) > 90
    wrong = [f"{r.format} {r.cause} {r.element}: {r.said or 'same'}" for r in done if not r.right]
    assert not wrong, "\n".join(wrong)


# SDF as models of Gazebo have it: sensors, plugins, models that include others
# -----------------------------------------------------------------------------

INERTIA = "<mass>{m}</mass><inertia><ixx>0.02</ixx><iyy>0.03</iyy><izz>0.04</izz></inertia>"

URDF_INERTIAL = """<inertial><mass value="{m}"/>
<inertia ixx="0.02" ixy="0" ixz="0" iyy="0.03" iyz="0" izz="0.04"/></inertial>"""

EXTRAS = """
<plugin name="p" filename="libp.so"><rate>5</rate><a:b xmlns:a="urn:a">1</a:b></plugin>
<light name="lamp" type="point"><diffuse>1 1 1 1</diffuse></light><gripper name="g"/><vendor>1</vendor>"""

SENSOR = '<sensor name="imu" type="imu"><gz_frame_id>x</gz_frame_id><made_up>1</made_up></sensor>'


def link(name, m, more=""):
    return f'<link name="{name}"><inertial>{INERTIA.format(m=m)}</inertial>{more}</link>'


def urdf_link(name, m):
    return f'<link name="{name}">{URDF_INERTIAL.format(m=m)}</link>'


def urdf_joint(name, kind, parent, child, axis="0 0 1", xyz="0 0 0"):
    limit = '<limit lower="-1" upper="1" effort="3" velocity="2"/>' if kind == "revolute" else ""
    return (
        f'<joint name="{name}" type="{kind}"><origin xyz="{xyz}"/><parent link="{parent}"/>'
        f'<child link="{child}"/><axis xyz="{axis}"/>{limit}</joint>'
    )


def joint(name, kind, parent, child, more=""):
    return f'<joint name="{name}" type="{kind}"><parent>{parent}</parent><child>{child}</child>{more}</joint>'


LIMITED = (
    "<axis><xyz>0 0 1</xyz><limit><lower>-1</lower><upper>1</upper><effort>3</effort><velocity>2</velocity>"
    "</limit></axis>"
)


def model(body, name="drone", version="1.9"):
    return f'<?xml version="1.0"?><sdf version="{version}"><model name="{name}">{body}</model></sdf>'


@pytest.fixture
def write(tmp_path):
    def written(name, text):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return written


def robot(body):
    return f'<robot name="drone">{body}</robot>'


def test_what_has_no_dynamics_is_set_aside_with_a_note(write):
    a = write(
        "a.urdf",
        robot(urdf_link("body", 2) + urdf_link("arm", 1) + urdf_joint("j", "revolute", "body", "arm")),
    )
    arm = link(
        "arm",
        1,
        SENSOR + '<visual name="v"><geometry><mesh><uri>model://no/no.dae</uri></mesh></geometry></visual>',
    )
    turn = joint("j", "revolute", "body", "arm", LIMITED + '<sensor name="ft" type="magic"/>')
    b = write("b.sdf", model(link("body", 2, SENSOR) + arm + turn + EXTRAS))
    verdict = referee(a, b)
    assert verdict.same and verdict.joints == 1, verdict.findings
    (note,) = [note for note in verdict.notes if "no rigid-body dynamics" in note]
    assert "<sensor> (3)" in note and "<light> (1)" in note and "<vendor> (1)" in note
    b.write_text(b.read_text().replace("<mass>1</mass>", "<mass>1.5</mass>"))
    (finding,) = referee(a, b).findings
    assert (finding.cause, finding.name) == ("mass-scaled", "arm")


def test_models_that_include_others(write):
    """As PX4 has them: a model merged into another, and a sensor's model on a joint of its own."""
    write("base/model.config", "<model><name>base</name><sdf version='1.9'>base.sdf</sdf></model>")
    passive = "</xyz><dynamics><damping>0.5</damping><friction>0.25</friction></dynamics>"
    spin = joint("rotor_joint", "revolute", "body", "rotor", LIMITED.replace("</xyz>", passive))
    write("base/base.sdf", model(link("body", 2, SENSOR) + link("rotor", 0.1) + spin + EXTRAS, "base"))
    write("gps/model.sdf", model(link("link", 0.01, SENSOR), "gps", "1.6"))
    include = '<include merge="true"><uri>model://base</uri></include>'
    gps = "<include><uri>model://gps</uri><name>gps0</name><pose>0 0 0.1 0 0 0</pose></include>"
    second = gps.replace("gps0", "gps1").replace("0.1", "-0.1")
    b = write("drone/model.sdf", model(include + gps + second + joint("g0", "fixed", "body", "gps0::link")
        + joint("g1", "fixed", "body", "gps1::link") + EXTRAS))  # fmt: skip
    links = (
        urdf_link("body", 2)
        + urdf_link("rotor", 0.1)
        + urdf_link("gps0_link", 0.01)
        + urdf_link("gps1_link", 0.01)
    )
    turn = urdf_joint("rotor_joint", "revolute", "body", "rotor").replace(
        "</joint>", '<dynamics damping="0.5" friction="0.25"/></joint>'
    )
    fixed = urdf_joint("g0", "fixed", "body", "gps0_link", xyz="0 0 0.1")
    fixed += urdf_joint("g1", "fixed", "body", "gps1_link", xyz="0 0 -0.1")
    verdict = referee(write("a.urdf", robot(links + turn + fixed)), b)
    assert verdict.same and verdict.bodies == 4, verdict.findings


@pytest.mark.parametrize("kind", ["universal", "revolute2"])
def test_a_joint_with_two_axes_is_two_revolute_joints(kind, write):
    axes = "<axis><xyz>0 0 1</xyz></axis><axis2><xyz>1 0 0</xyz></axis2><pose>0 0 0.1 0 0 0</pose>"
    body = link("body", 2) + link("arm", 1) + joint("j", kind, "body", "arm", axes)
    body += '<frame name="f" attached_to="body"><pose>0 0 0.2 0 0 0</pose></frame>'
    arm = urdf_link("arm", 1).replace("<inertial>", '<inertial><origin xyz="0 0 -0.1"/>')
    links = urdf_link("body", 2) + '<link name="cross"/>' + arm
    joints = urdf_joint("j", "continuous", "body", "cross", xyz="0 0 0.3")
    joints += urdf_joint("k", "continuous", "cross", "arm", "1 0 0")
    body = body.replace('<link name="arm">', '<link name="arm"><pose relative_to="f"/>')
    verdict = referee(write("a.urdf", robot(links + joints)), write("b.sdf", model(body)))
    assert verdict.same and verdict.joints == 2, verdict.findings


def test_an_inertia_that_no_body_can_have_is_taken_as_it_is_written(write):
    a = write("a.urdf", robot(urdf_link("body", 2)).replace("0.04", "0.4"))
    verdict = referee(a, write("b.sdf", model(link("body", 2)).replace("0.04", "0.4")))
    assert verdict.same, verdict.findings


def test_what_gazebo_reads_and_xml_or_drake_refuse(write):
    a = write("a.urdf", robot(urdf_link("body", 2) + urdf_link("arm", 1)
        + urdf_joint("j", "continuous", "body", "arm")))  # fmt: skip
    wide = "<limit><lower>-1e+16</lower><upper>1e16</upper><effort>-1</effort><velocity>-1</velocity></limit>"
    turn = joint("j", "revolute", "body", "arm", f"<axis><xyz>0 0 1</xyz>{wide}"
        "<use_parent_model_frame>1</use_parent_model_frame></axis>")  # fmt: skip
    idle = "<velocity_decay/><kinematic>0</kinematic><!-- a -- b --><vendor:x>1</vendor:x>"
    text = model(link("body", 2, idle) + link("arm", 1) + turn)
    for version in ("1.5", "1.6", "1.9", "1.11"):
        b = write("b.sdf", text.replace('version="1.9"', f'version="{version}"'))
        verdict = referee(a, b)
        assert verdict.same and not any("not compared" in note for note in verdict.notes), verdict
    b = write(
        "b.sdf", text.replace("<velocity_decay/>", "<velocity_decay><linear>0.1</linear></velocity_decay>")
    )
    assert any("not compared: <velocity_decay> (1)" in note for note in referee(a, b).notes)


TETRAHEDRON = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"


@pytest.mark.parametrize(
    "uri", ["meshes/t.obj", "model://drone/meshes/t.obj", "package://drone/meshes/t.obj"]
)
def test_collision_meshes(write, uri):
    write("drone/meshes/t.obj", TETRAHEDRON)
    shape = '<collision><geometry><mesh filename="meshes/t.obj" scale="0.5 0.5 0.5"/></geometry></collision>'
    a = write("drone/a.urdf", robot(urdf_link("body", 2).replace("</link>", shape + "</link>")))
    mesh = f"<mesh><uri>{uri}</uri><scale>0.5 0.5 0.5</scale></mesh>"
    text = model(link("body", 2, f'<collision name="c"><geometry>{mesh}</geometry></collision>'))
    assert referee(a, write("drone/b.sdf", text)).same
    (finding,) = referee(a, write("drone/b.sdf", text.replace("0.5 0.5 0.5", "0.5 0.5 5"))).findings
    assert finding.cause == "mesh-scale"
    left_out = referee(a, write("drone/b.sdf", text.replace("t.obj", "t.dae")))
    assert left_out.same and "not compared: <mesh> (1)" in left_out.notes


def test_a_world_without_its_sun(write):
    a = write("a.urdf", robot(urdf_link("body", 2)))
    sun = (
        "<include><uri>model://no_such_sun</uri></include><physics type='ode'/><light name='l' type='point'/>"
    )
    text = model(link("body", 2)).replace(
        "<model", f"<world name='w'>{sun}<gravity>0 0 -1.62</gravity><model"
    )
    verdict = referee(a, write("b.sdf", text.replace("</model>", "</model></world>")))
    assert [f.cause for f in verdict.findings] == ["gravity"]
    assert any("model://no_such_sun" in note for note in verdict.notes)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("<include><uri>model://b</uri></include>", "includes itself (b/model.sdf > b/model.sdf)"),
        ("<include><uri>model://none</uri></include>", "no model 'model://none'"),
        ("<include><uri>https://x/y</uri></include>", "fetched from a network"),
        (
            link("arm", 1) + joint("j", "revolute", "body", "arm", LIMITED.replace("3", "much")),
            "expected a number",
        ),
        ("<link", "line 1"),
    ],
)
def test_one_error_that_names_the_file(body, words, write):
    a = write("a.urdf", robot(urdf_link("body", 2)))
    b = write("b/model.sdf", model(link("body", 2) + body))
    with pytest.raises(RobokitError) as caught:
        referee(a, b)
    assert words in str(caught.value) and str(b) in str(caught.value)


def test_a_mimic_joint_with_a_limit_of_effort_is_not_driven_twice(write):
    names, links = ("base", "a", "b"), ""
    for name in names:
        links += urdf_link(name, 1)
    law = '<mimic joint="lead" multiplier="2" offset="0.1"/></joint>'
    joints = urdf_joint("lead", "revolute", "base", "a") + urdf_joint("follow", "revolute", "a", "b")
    a = write("a.urdf", robot(links + joints[: -len("</joint>")] + law))
    mimic = "</xyz><mimic joint='lead'><multiplier>2</multiplier><offset>0.1</offset>"
    mimic += "<reference>0</reference></mimic>"
    body = "".join(link(name, 1) for name in names) + joint("lead", "revolute", "base", "a", LIMITED)
    text = model(
        body + joint("follow", "revolute", "a", "b", LIMITED.replace("</xyz>", mimic)), version="1.11"
    )
    verdict = referee(a, write("b.sdf", text))
    assert verdict.same, verdict.findings
    (finding,) = referee(a, write("b.sdf", text.replace("<multiplier>2", "<multiplier>-2"))).findings
    assert finding.name == "follow" and finding.cause.startswith("mimic-")


def test_joints_of_kinds_that_a_urdf_has_not_are_named(write):
    a = write("a.urdf", robot(urdf_link("body", 2) + urdf_link("arm", 1)
        + urdf_joint("j", "revolute", "body", "arm")))  # fmt: skip
    turn = joint("j", "screw", "body", "arm", "<axis><xyz>0 0 1</xyz></axis>")
    (finding,) = referee(a, write("b.sdf", model(link("body", 2) + link("arm", 1) + turn))).findings
    assert (finding.cause, finding.text) == ("joint-type", "screw in B, revolute in A")


def test_what_drake_says_stands_without_the_place_of_a_copy(write):
    a = write("a.urdf", robot(urdf_link("body", 2)))
    body = "<static>1</static>" + link("body", 2) + link("arm", 1) + joint("j", "ball", "body", "arm")
    with pytest.raises(RobokitError, match="Drake cannot load it: Only fixed joints"):
        referee(a, write("b.sdf", model(body)))
