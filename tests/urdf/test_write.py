"""What is written is read again: the same robot, to the last bit but for rotations, which are to rounding."""

import dataclasses
import math
import re
import warnings
from pathlib import Path

import ladder
import numpy as np
import pytest
from for_each import for_each
from hypothesis import given
from hypothesis import strategies as st
from urdf_cases import GOOD, INERTIAL, LIMIT, joint, visual
from urdf_strategies import urdfs

import robokit as rk
from robokit.model import (
    Box,
    Calibration,
    Mesh,
    Mimic,
    ModelBuilder,
    Placement,
    Safety,
    Shape,
    lock_joints,
)
from robokit.urdf import check_urdf, dump, load_urdf, loads_urdf
from robokit.urdf.description import Origin
from robokit.urdf.write import roll_pitch_yaw

ROTATION = 1e-14
UNAIMED = ("floating", "fixed")  # kinds without an axis


def difference(a, b, where="robot"):
    """The first place in which two robots differ, or None; rotations may differ by rounding."""
    if isinstance(a, np.ndarray):
        least = ROTATION if a.shape == (3, 3) else 0.0
        return None if a.shape == b.shape and np.abs(a - b).max() <= least else f"{where}: {a} and {b}"
    if dataclasses.is_dataclass(a):
        a, b = ({f.name: getattr(x, f.name) for f in dataclasses.fields(x)} for x in (a, b))
    if isinstance(a, dict):
        return next(filter(None, (difference(v, b[k], f"{where}.{k}") for k, v in a.items())), None)
    if isinstance(a, (list, tuple)):
        if len(a) != len(b):
            return f"{where}: {len(a)} and {len(b)}"
        rows = enumerate(zip(a, b, strict=True))
        return next(filter(None, (difference(x, y, f"{where}[{k}]") for k, (x, y) in rows)), None)
    return None if a == b else f"{where}: {a!r} and {b!r}"


PARTS = ("name", "base", "joints", "links", "fixed_joints", "loop_joints")


def assert_same(a, b):
    for part in PARTS:
        assert difference(getattr(a, part), getattr(b, part), part) is None
    assert (a.tree.parent, a.tree.loops, a.tree.name) == (b.tree.parent, b.tree.loops, b.tree.name)


@given(urdfs(meshes=True), st.sampled_from(["fixed", "floating"]))
def test_read_written_read(text, base):
    robot = loads_urdf(text, base=base)
    written = dump(robot)
    again = loads_urdf(written, base=base)
    assert_same(robot, again)
    assert {d.code for d in again.diagnostics} == {d.code for d in robot.diagnostics}
    assert_same(again, loads_urdf(dump(again), base=base))


def test_joints_are_written_in_the_order_of_their_bodies():
    """Also where a fixed joint of a later link was written first."""
    pairs = [
        ("left_hand", "tip", "fixed"),
        ("base", "a", "fixed"),
        ("a", "left", "revolute"),
        ("base", "right", "revolute"),
        ("right", "right_hand", "revolute"),
        ("left", "left_hand", "revolute"),
    ]
    joints = "".join(
        f'<joint name="{child}_joint" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        '<axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="1" velocity="1"/></joint>'
        for parent, child, kind in pairs
    )  # fmt: skip
    links = "".join(
        f'<link name="{name}">{INERTIAL}</link>' for name in ("base", *(child for _, child, _ in pairs))
    )
    robot = loads_urdf(f'<robot name="r">{links}{joints}</robot>')
    written = re.findall(r'joint name="(\w+)" type="revolute"', dump(robot))
    assert written == [joint.name for joint in robot.body_joints]


@pytest.mark.parametrize("name", ladder.OWN)
def test_our_robots_are_read_again_to_the_last_bit(name):
    robot = load_urdf(rk.find_robot(name), base="floating")
    again = loads_urdf(dump(robot), base="floating", strict=True)
    assert again.fingerprint == robot.fingerprint
    assert dump(again) == dump(robot)


angles = st.tuples(st.floats(-3.14, 3.14), st.floats(-1.57, 1.57), st.floats(-3.14, 3.14))


@given(angles)
def test_angles_are_found_again(rpy):
    R = Origin(rpy=rpy).rotation()
    assert np.array_equal(Origin(rpy=roll_pitch_yaw(R)).rotation(), R)


@given(angles, st.sampled_from([0.0, 1e-16, -1e-9, 1e-7]), st.sampled_from([-1.0, 1.0]))
def test_angles_at_gimbal_lock(rpy, off, sign):
    R = Origin(rpy=(rpy[0], sign * (math.pi / 2 + off), rpy[2])).rotation()
    assert np.abs(Origin(rpy=roll_pitch_yaw(R)).rotation() - R).max() < 2e-15


@given(st.integers(0, 10**6))
def test_angles_of_any_rotation(seed):
    rng = np.random.default_rng(seed)
    R = ladder.rotation(rng) @ np.eye(3)[:, rng.permutation(3)] * rng.choice([1.0, -1.0], 3)
    R = R * np.linalg.det(R)  # itself a rotation to rounding only
    assert np.abs(Origin(rpy=roll_pitch_yaw(R)).rotation() - R).max() < 1e-14


def test_safety_and_calibration_are_kept():
    safety = (
        '<safety_controller soft_lower_limit="-0.9" soft_upper_limit="0.8" k_position="20" k_velocity="4"/>'
    )
    robot = loads_urdf(
        joint(LIMIT + safety + '<calibration rising="0.1" reference_position="0.2"/>'), strict=True
    )
    j = robot.joint("j")
    assert j.safety == Safety(-0.9, 0.8, 20, 4) and j.calibration == Calibration(0.1, None, 0.2)
    text = dump(robot)
    assert safety in text and '<calibration rising="0.1" reference_position="0.2"/>' in text
    again = loads_urdf(text, strict=True).joint("j")
    assert (again.safety, again.calibration) == (j.safety, j.calibration)
    assert loads_urdf(dump(ModelBuilder.from_robot(robot).build())).joint("j").safety == j.safety
    locked = lock_joints(robot, {"j": 0.3}).joint("j")
    assert (locked.safety, locked.calibration) == (None, None)


def test_short_angles_stay_short():
    text = joint('<origin xyz="0.1 0 0" rpy="1.5707963 -0.3 2.5"/>' + LIMIT)
    assert 'rpy="1.5707963 -0.3 2.5"' in dump(loads_urdf(text))


def test_a_code_built_robot_is_written_to_rounding():
    kinds = ("revolute", "continuous", "prismatic", "planar", "floating", "fixed")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for base in ("fixed", "floating"):
            robot = ladder.random_tree(4, base, kinds)
            # The ladder gives every joint a pitch and an axis, used or not; a URDF holds those that are used.
            groups = [
                tuple(
                    dataclasses.replace(j, pitch=0.0, axis=np.eye(3)[0] if j.kind in UNAIMED else j.axis)
                    for j in found
                )
                for found in (robot.joints, robot.fixed_joints)
            ]
            said = dataclasses.replace(robot, joints=groups[0], fixed_joints=groups[1])
            assert_same(said, loads_urdf(dump(robot), base=base))


# ---- what cannot be written


def pair(kind="revolute", link="b", **options):
    b = ModelBuilder("pair").link("a").link(link, 1.0, inertia=np.eye(3))
    return b.joint("j", kind, "a", link, **options).build()


@for_each(
    "robot, words",
    [
        (pair("helical", pitch=0.1), "joint 'j' is helical"),
        (pair("cylindrical"), "joint 'j' is cylindrical"),
        (pair("spherical"), "joint 'j' is spherical"),
        (pair(lower=0.0), "one-sided"),
        (pair(link="b\0"), "U+0000"),
        (pair(link="\ud800"), "U+D800"),
        (pair(link="${b}"), "xacro"),
        (pair(mimic=Mimic("k")), "'k'"),
        (pair(mimic=Mimic("j")), "itself"),
        (pair(mimic=Mimic("k", math.nan)), "multiplier is not finite"),
    ],
)
def test_what_a_urdf_cannot_say_is_refused(robot, words):
    with pytest.raises(rk.ModelError, match="cannot be written as URDF") as caught:
        dump(robot)
    assert words in str(caught.value)


def test_every_reason_is_told():
    b = ModelBuilder("r").link("a").link("b").link("c")
    b.joint("j", "helical", "a", "b").joint("k", "spherical", "b", "c")
    with pytest.raises(rk.ModelError) as caught:
        dump(b.build())
    assert "'j'" in str(caught.value) and "'k'" in str(caught.value)


def test_what_is_left_out_is_a_warning():
    with pytest.warns(UserWarning, match="position limits of joint 'j', which is continuous"):
        text = dump(pair("continuous", lower=-1.0, upper=1.0))
    assert loads_urdf(text).joint("j").lower == -math.inf
    skew = np.eye(3)
    skew[0, 1] = 1e-8
    with pytest.warns(UserWarning, match="not orthonormal"):
        dump(pair(placement=Placement(skew)))


# ---- files


def test_a_file_is_written(tmp_path):
    robot = loads_urdf(GOOD)
    text = dump(robot, tmp_path / "good.urdf")
    assert (tmp_path / "good.urdf").read_text(encoding="utf-8") == text
    assert_same(robot, load_urdf(tmp_path / "good.urdf", strict=True))
    with pytest.raises(OSError):
        dump(robot, tmp_path / "none" / "good.urdf")


def test_file_names_lead_to_the_same_files(tmp_path):
    home = tmp_path / "here"
    away = tmp_path / "far" / "away" / "from" / "here"
    for folder in (home / "meshes", away):
        folder.mkdir(parents=True)
    (home / "meshes" / "a.stl").write_text("solid")
    (home / "image.png").write_text("png")
    material = '<material name="m"><texture filename="image.png"/></material>'
    (home / "r.urdf").write_text(visual('<mesh filename="meshes/a.stl" scale="1 -1 2"/>', material))
    robot = load_urdf(home / "r.urdf", strict=True)
    beside, text = dump(robot, home / "again.urdf"), dump(robot)
    assert beside == text and 'filename="meshes/a.stl" scale="1 -1 2"' in text
    dump(robot, away / "r.urdf")
    (shape,) = load_urdf(away / "r.urdf", strict=True).link("b").visuals
    (before,) = robot.link("b").visuals
    assert Path(shape.geometry.path) == before.geometry.path and shape.texture == before.texture


def test_an_unresolved_texture_keeps_its_name():
    material = '<material name="m"><texture filename="package://none/a.png"/></material>'
    again = loads_urdf(dump(loads_urdf(visual('<box size="1 1 1"/>', material))))
    assert again.link("b").visuals[0].texture_filename == "package://none/a.png"


def test_equal_looks_share_a_material():
    red, blue = (1.0, 0.0, 0.0, 1.0), (0.0, 0.0, 1.0, 1.0)
    shapes = [Shape(Box((1, 1, 1)), rgba=rgba) for rgba in (red, red, blue, None)]
    b = ModelBuilder("r").link("a", visuals=shapes, collisions=[Shape(Mesh("package://a/b.stl"))])
    text = dump(b.build())
    assert text.count("<color") == 2
    assert [v.rgba for v in loads_urdf(text).link("a").visuals] == [red, red, blue, None]


def test_a_written_robot_has_no_findings_of_its_own():
    for base in ("fixed", "floating"):
        robot = load_urdf(rk.find_robot("quadruped"), base=base)
        assert check_urdf(dump(robot), base=base)[1] == []


def test_own_types_of_joints_are_for_robokit_alone():
    b = rk.ModelBuilder("r")
    for name in "abc":
        b.link(name, mass=1.0, inertia=np.eye(3))
    robot = b.joint("j", "spherical", "a", "b").joint("k", "cylindrical", "b", "c", axis=(0, 1, 0)).build()
    text = dump(robot, own_types=True)
    assert loads_urdf(text).fingerprint == robot.fingerprint
    plain = text.replace(' own_joint_types="true"', "")
    assert plain != text
    with pytest.raises(rk.UrdfError, match="joint-type-unknown"):
        loads_urdf(plain)
    assert dump(rk.load_urdf(rk.find_robot("arm")), own_types=True) == dump(
        rk.load_urdf(rk.find_robot("arm"))
    )
    helical = rk.ModelBuilder("r").link("a").link("b", mass=1.0).joint("j", "helical", "a", "b").build()
    with pytest.raises(rk.ModelError, match="helical"):
        dump(helical, own_types=True)
