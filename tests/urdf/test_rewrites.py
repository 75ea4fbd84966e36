"""What files of other programs say in their own way: bases, loops, up axes, versions, names of files."""

import numpy as np
import pytest
from for_each import for_each
from urdf_cases import (
    CASES,
    CUT,
    DAE,
    INERTIAL,
    LIMIT,
    OWN_BASE,
    POINTER,
    TWO_PARENTS,
    joint,
    robot,
    version,
    visual,
)

import robokit as rk
from robokit.cli import main
from robokit.meshes.hull import hull_corners
from robokit.urdf import check_urdf, loads_urdf

# ---- a floating base of the file's own

ARM = (
    f'<link name="arm">{INERTIAL}</link>\n'
    '<joint name="shoulder" type="revolute"><origin xyz="0 0 1"/><parent link="b"/><child link="arm"/>'
    f"{LIMIT}</joint>\n</robot>"
)
BODY = robot(f'<link name="b">{INERTIAL}</link>').replace("</robot>", ARM)
FRAMES = (
    '<link name="map"/><joint name="m" type="fixed"><parent link="world"/><child link="map"/></joint>'
    '<link name="wall"><visual><geometry><box size="1 1 1"/></geometry></visual></link>'
    '<joint name="w" type="fixed"><origin xyz="1 0 0"/><parent link="map"/><child link="wall"/></joint>'
)


@pytest.mark.parametrize("more", ["", FRAMES])
@pytest.mark.parametrize("name", ["free", "floating_base"])
def test_a_floating_base_of_the_files_own_is_the_floating_base(more, name):
    """Its dynamics is that of the same file without the world and the floating joint, to the bit."""
    text = OWN_BASE.replace('"free"', f'"{name}"').replace("</robot>", more + ARM)
    given, plain = loads_urdf(text, base="floating", strict=True), loads_urdf(BODY, base="floating")
    assert given.joint_names == plain.joint_names == ("floating_base", "shoulder")
    assert given.link_names == plain.link_names
    q = plain.random_configuration(np.random.default_rng(0))
    assert np.array_equal(rk.crba(given, q, engine="python"), rk.crba(plain, q, engine="python"))
    assert [d.code for d in given.diagnostics] == ["base-own"]
    assert check_urdf(text)[1] == []  # base="either": nothing would be singular
    assert loads_urdf(text).joint_names == (name, "shoulder")  # base="fixed": as written


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('<link name="world"/>', f'<link name="world">{INERTIAL}</link>'),  # a body of its own
        ('type="floating"', 'type="planar"'),
        ('"b"/></joint>', '"b"/></joint><loop_joint name="l" type="spherical"><predecessor link="world"/>'
         '<successor link="b"/></loop_joint>'),
        ('"b"/></joint>', f'"b"/></joint><link name="c">{INERTIAL}</link><joint name="k" type="floating">'
         '<parent link="world"/><child link="c"/></joint>'),
    ],
)  # fmt: skip
def test_what_is_no_floating_base_stays(old, new):
    text = OWN_BASE.replace(old, new)
    assert text != OWN_BASE
    assert "base-own" not in {d.code for d in check_urdf(text, base="floating")[1]}
    assert loads_urdf(text, base="floating").nv == loads_urdf(text).nv + 6


def test_two_floating_bodies_on_a_massless_base_are_singular_with_another_base():
    second = f'<link name="c">{INERTIAL}</link><joint name="k" type="floating"><parent link="world"/>'
    text = OWN_BASE.replace("</robot>", second + '<child link="c"/></joint></robot>')
    assert [d.code for d in check_urdf(text, base="floating")[1]] == ["massless-subtree"]
    assert [d.code for d in check_urdf(text, base="either")[1]] == ["base-massless"]


# ---- loops that no <loop_joint> closes


def test_a_pair_of_frames_is_closed_on_request_so_that_their_origins_coincide():
    text = CUT.format("closing_pin_1", "closing_pin_2")
    assert loads_urdf(text).loop_joints == ()
    closed = loads_urdf(text, loops="close", strict=True)
    (loop,) = closed.loop_joints
    assert (loop.name, loop.kind) == ("closing_pin", "spherical") and closed.diagnostics == []
    assert {loop.predecessor, loop.successor} == {"closing_pin_1", "closing_pin_2"}
    again = loads_urdf(rk.urdf.dump(closed), strict=True)  # written as a <loop_joint>
    assert again.diagnostics == [] and len(again.loop_joints) == 1


@pytest.mark.parametrize(
    "names", [("closing_pin_1", "closing_pin_3"), ("closing_1", "closing_2"), ("a_1", "a_2")]
)
def test_frames_of_other_names_are_no_pair(names):
    assert check_urdf(CUT.format(*names))[1] == []
    assert loads_urdf(CUT.format(*names), loops="close").loop_joints == ()


def test_frames_on_one_body_and_pairs_that_are_closed_are_no_open_loop():
    one = CUT.format("closing_pin_1", "closing_pin_2").replace('<parent link="c"/>', '<parent link="a"/>')
    assert check_urdf(one)[1] == []
    closing = (
        '<loop_joint name="l" type="spherical"><predecessor link="closing_pin_2"/>'
        '<successor link="closing_pin_1"/></loop_joint></robot>'
    )
    closed = CUT.format("closing_pin_1", "closing_pin_2").replace("</robot>", closing)
    assert check_urdf(closed)[1] == []
    assert len(loads_urdf(closed, loops="close").loop_joints) == 1


def test_a_link_with_two_parents_is_an_error_that_offers_the_loop():
    (error,) = check_urdf(TWO_PARENTS)[1]
    assert error.code == "link-two-parents" and "loops='close'" in error.hint and "'l'" in error.hint
    closed = loads_urdf(TWO_PARENTS, loops="close")
    (loop,) = closed.loop_joints
    assert (loop.name, loop.kind, loop.predecessor, loop.successor) == ("l", "revolute", "a", "c")
    assert loop.predecessor_placement.position.tolist() == [0, 0, 1]
    assert closed.joint_names == ("j", "k")


def test_the_joint_that_the_root_reaches_stays_in_the_tree():
    """b hangs on c in the first joint, and c on b: only the second joint leads to them."""
    links = "".join(f'<link name="{n}">{INERTIAL}</link>' for n in "abc")
    text = robot(
        links
        + "".join(
            f'<joint name="{name}" type="revolute"><parent link="{p}"/><child link="{c}"/>{LIMIT}</joint>'
            for name, p, c in (("back", "c", "b"), ("up", "a", "b"), ("on", "b", "c"))
        )
    )
    closed = loads_urdf(text, loops="close")
    assert closed.joint_names == ("up", "on") and [loop.name for loop in closed.loop_joints] == ["back"]


# ---- COLLADA's up axis and unit


def with_dae(folder, up="Y", unit="1", scale="1 1 1", origin=""):
    (folder / "part.dae").write_text(DAE.format(up=up, unit=unit))
    path = folder / "arm.urdf"
    path.write_text(visual(f'<mesh filename="part.dae" scale="{scale}"/>', origin))
    return path


def corners(robot_):
    (shape,) = robot_.link("b").visuals
    points = hull_corners(shape.geometry) @ shape.placement.rotation.T + shape.placement.position
    return sorted(map(tuple, (points.round(9) + 0.0).tolist()))


@pytest.mark.parametrize(
    ("up", "right"),
    [
        # Corners 0.3 x, 0.2 y and 0.1 z of the file; what is up becomes z.
        ("Z", [(0.3, 0, 0), (0, 0.2, 0), (0, 0, 0.1)]),
        ("Y", [(0.3, 0, 0), (0, 0, 0.2), (0, -0.1, 0)]),
        ("X", [(0, 0, 0.3), (-0.2, 0, 0), (0, -0.1, 0)]),
    ],
)
def test_the_up_axis_is_ignored_or_applied(tmp_path, up, right):
    path = with_dae(tmp_path, up)
    assert corners(rk.load_urdf(path)) == sorted([(0, 0, 0), (0.3, 0, 0), (0, 0.2, 0), (0, 0, 0.1)])
    assert corners(rk.load_urdf(path, mesh_up_axis="apply")) == sorted([(0, 0, 0), *right])
    codes = [d.code for d in check_urdf(path, plausible=True)[1] if d.code == "mesh-up-axis"]
    assert codes == ([] if up == "Z" else ["mesh-up-axis"])
    turned = check_urdf(path, plausible=True, mesh_up_axis="apply")[1]
    assert "mesh-up-axis" not in {d.code for d in turned}


def test_scale_and_origin_act_along_the_turned_axes(tmp_path):
    """scale = 1 2 3 along x, y, z with z up; then the origin turns by 90 degrees about z and shifts."""
    origin = '<origin xyz="0 0 1" rpy="0 0 1.5707963267948966"/>'
    path = with_dae(tmp_path, scale="1 2 3", origin=origin)
    found = corners(rk.load_urdf(path, mesh_up_axis="apply"))
    assert found == sorted([(0, 0, 1), (0, 0.3, 1), (0, 0, 1.6), (0.2, 0, 1)])
    text = rk.urdf.dump(rk.load_urdf(path, mesh_up_axis="apply"))
    assert corners(rk.loads_urdf(text, folder=tmp_path)) == found  # other programs see it so, too


@pytest.mark.parametrize("unit", ["1e300", "1e-300", "0", "-1", "nan", "inch"])
def test_a_unit_that_no_length_has_is_named(tmp_path, unit):
    (shape,) = rk.load_urdf(with_dae(tmp_path, "Z", unit)).link("b").visuals
    with pytest.raises(ValueError, match=f"its unit of length is meter='{unit}'; accepted are 1e-18 to 1e"):
        hull_corners(shape.geometry)


def test_a_scale_beyond_all_lengths_is_named(tmp_path):
    (shape,) = rk.load_urdf(with_dae(tmp_path, "Z", scale="1e300 1 1")).link("b").visuals
    with pytest.raises(ValueError, match=r"a vertex has the coordinate 3e\+299; at most 1e\+18"):
        hull_corners(shape.geometry)


# ---- files that Git LFS has not fetched, and names that are nearly right


@pytest.mark.parametrize("ending", ["stl", "obj", "ply", "dae", "glb", "gltf"])
def test_a_pointer_of_git_lfs_is_told_once_for_all_files(tmp_path, ending):
    for name in ("a", "b"):
        (tmp_path / f"{name}.{ending}").write_bytes(POINTER)
    path = tmp_path / "arm.urdf"
    two = "".join(f'<visual><geometry><mesh filename="{n}.{ending}"/></geometry></visual>' for n in "ab")
    path.write_text(robot(f'<link name="l">{INERTIAL}{two}</link>'))
    for meshes in (False, True):
        (found,) = check_urdf(path, plausible=True, meshes=meshes)[1]
        assert (
            found.code == "mesh-lfs-pointer" and "git lfs pull" in found.hint and "(2 times" in found.message
        )
    (shape, _) = rk.load_urdf(path).link("l").visuals
    with pytest.raises(ValueError, match=r"is a Git LFS pointer, not the file itself; .*git lfs pull"):
        hull_corners(shape.geometry)


def test_a_texture_and_a_macro_file_may_be_pointers_too(tmp_path):
    (tmp_path / "skin.png").write_bytes(POINTER)
    (tmp_path / "arm.xacro").write_bytes(POINTER)
    skin = '<material name="m"><texture filename="skin.png"/></material>'
    path = tmp_path / "arm.urdf"
    path.write_text(robot(skin + f'<link name="l">{INERTIAL}</link>'))
    assert [d.code for d in check_urdf(path, plausible=True)[1]] == ["mesh-lfs-pointer"]
    assert [d.code for d in check_urdf(tmp_path / "arm.xacro")[1]] == ["file-lfs-pointer"]


@pytest.mark.parametrize(
    ("written", "hint"),
    [
        ("Meshes/part1.stl", "did you mean 'Part1.STL'? the names differ in case"),
        ("meshes/part1.stl", "did you mean 'Meshes/Part1.STL'? the names differ in case"),
        ("package://Arm/Meshes/Part1.STL", "did you mean 'arm'? the names differ in case"),
        ("package://arm/meshes/Part1.STL", "did you mean 'Meshes/Part1.STL'? the names differ in case"),
        ("Meshes/finger_leff.stl", "did you mean 'finger_left.stl'?"),
        ("Meshes/unlike", "correct the name; dynamics do not need it"),
    ],
)
def test_a_mesh_of_nearly_the_same_name(tmp_path, written, hint):
    folder = tmp_path / "arm" / "Meshes"
    folder.mkdir(parents=True)
    if (tmp_path / "ARM").exists():
        pytest.skip("this file system does not tell capitals apart")
    (folder / "Part1.STL").touch()
    (folder / "finger_left.stl").touch()
    path = tmp_path / "arm" / "arm.urdf"
    path.write_text(visual(f'<mesh filename="{written}"/>'))
    (found,) = (d for d in check_urdf(path)[1] if d.code == "mesh-unresolved")
    assert found.hint == hint


# ---- versions


@for_each("number", ["2.7", "1", "1.0.0", "", "x", "1.3", "0.9", " 1.1 "])
def test_versions_that_urdfdom_refuses(number):
    """Measured with urdfdom in Pinocchio 4.1: all of these are refused."""
    (found,) = check_urdf(version(number, joint()))[1]
    assert found.code == "version-unknown" and repr(number) in found.message


@pytest.mark.parametrize("number", ["1.0", "1.1", "1.2"])
def test_versions_that_there_are(number):
    assert check_urdf(version(number, joint()))[1] == []


def test_limits_of_version_1_2_and_capsules_of_version_1_1():
    for name in ("acceleration", "deceleration", "jerk"):
        text = joint(LIMIT.replace("/>", f' {name}="4"/>'))
        assert [d.code for d in check_urdf(text)[1]] == ["version-too-low"]
        assert check_urdf(version("1.2", text))[1] == []
    capsule = visual('<capsule radius="0.1" length="0.2"/>')
    assert check_urdf(capsule)[1] == []
    assert [d.code for d in check_urdf(capsule, plausible=True)[1]] == ["version-too-low"]
    assert check_urdf(version("1.1", capsule), plausible=True)[1] == []


@for_each("code", CASES)
def test_every_bad_file_is_judged_with_every_way_of_reading(code):
    for base in ("floating", "either"):
        check_urdf(CASES[code][0], base, plausible=True, mesh_up_axis="apply", loops="close")


@pytest.mark.parity
def test_other_engines_agree_about_a_floating_base_of_the_files_own(tmp_path):
    from robokit.parity import compare

    path = tmp_path / "arm.urdf"
    path.write_text(OWN_BASE.replace("</robot>", ARM))
    found = compare(path, rk.load_urdf(path, base="floating"), states=1, run="python")
    assert found and all(one.agrees for one in found), found


@pytest.mark.parametrize("choice", ["ignore", "apply"])
def test_a_view_says_that_the_up_axis_is_ignored(tmp_path, choice, capsys):
    path, page = with_dae(tmp_path), tmp_path / "arm.html"
    assert main(["view", str(path), "--no-open", "-o", str(page), "--mesh-up-axis", choice]) == 0
    told = capsys.readouterr().err
    assert ("1 COLLADA file says that x or y is up" in told) == (choice == "ignore")
    assert page.is_file()


@pytest.mark.parametrize("choice", ["declared", "close"])
def test_the_command_line_closes_loops(tmp_path, choice, capsys):
    path = tmp_path / "arm.urdf"
    path.write_text(TWO_PARENTS)
    assert main(["info", str(path), "--loops", choice]) == (choice == "declared")
    assert ("--loops close" in capsys.readouterr().err) == (choice == "declared")


def test_why_a_mesh_cannot_be_read_is_said_without_names_of_classes(tmp_path):
    (tmp_path / "part.xyz").write_text("0 0 0")
    mesh = '<visual><geometry><mesh filename="part.xyz"/></geometry></visual>'
    (tmp_path / "r.urdf").write_text(f'<robot name="r"><link name="a">{mesh}</link></robot>')
    _, findings = check_urdf(tmp_path / "r.urdf", plausible=True, meshes=True)
    (found,) = [each for each in findings if each.code == "mesh-unreadable"]
    assert "cannot be read: its name ends in '.xyz'" in found.message
