"""robokit convert: what is written is the robot, its meshes come with it, and what cannot be said is told."""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest

import robokit as rk
from robokit.cli import main
from robokit.errors import ModelError, RobokitError, UnknownName
from robokit.model.geometry import Mesh

TRIANGLE = """<?xml version="1.0"?>
<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
<asset><up_axis>Z_UP</up_axis></asset><library_geometries><geometry id="g"><mesh><source id="p">
<float_array id="a" count="12">0 0 0 1 0 0 0 1 0 0 0 1</float_array><technique_common>
<accessor source="#a" count="4" stride="3"><param name="X" type="float"/><param name="Y" type="float"/>
<param name="Z" type="float"/></accessor></technique_common></source><vertices id="v">
<input semantic="POSITION" source="#p"/></vertices><triangles count="4"><input semantic="VERTEX" source="#v"
offset="0"/><p>0 2 1 0 1 3 0 3 2 1 2 3</p></triangles></mesh></geometry></library_geometries>
<library_visual_scenes><visual_scene id="s"><node><instance_geometry url="#g"/></node></visual_scene>
</library_visual_scenes><scene><instance_visual_scene url="#s"/></scene></COLLADA>"""


@pytest.fixture
def with_mesh(tmp_path):
    """A URDF with a COLLADA mesh in a package."""
    folder = tmp_path / "my_robot"
    (folder / "meshes").mkdir(parents=True)
    (folder / "meshes" / "part.dae").write_text(TRIANGLE)
    (folder / "robot.urdf").write_text(
        """<robot name="r"><link name="base"/><link name="arm"><inertial><mass value="1"/>
        <inertia ixx=".1" iyy=".1" izz=".1" ixy="0" ixz="0" iyz="0"/></inertial>
        <visual><geometry><mesh filename="package://my_robot/meshes/part.dae" scale="2 2 2"/></geometry>
        </visual>
        <collision><geometry><mesh filename="package://my_robot/meshes/part.dae"/></geometry></collision></link>
        <joint name="j" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/>
        <limit lower="-1" upper="1" effort="5" velocity="2"/></joint></robot>"""
    )
    return folder / "robot.urdf"


def convert(*arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return rk.convert(*arguments, **options)


def meshes_of(robot):
    shapes = [s.geometry for link in robot.links for s in (*link.visuals, *link.collisions)]
    return [geometry for geometry in shapes if isinstance(geometry, Mesh)]


@pytest.mark.parametrize("ending", [".sdf", ".urdf"])
@pytest.mark.parametrize("how", ["keep", "absolute", "relative", "copy", "none"])
def test_meshes_are_found_from_the_new_file(with_mesh, tmp_path, ending, how):
    new = tmp_path / "new" / "place"
    new.mkdir(parents=True)
    done = convert(with_mesh, new / f"out{ending}", meshes=how)
    again = rk.load(done.path, package_dirs=[tmp_path] if how == "keep" else [])
    found = meshes_of(again)
    if how == "none":
        assert not found and not done.copied
        return
    assert len(found) == 2 and all(mesh.path is not None for mesh in found)
    assert found[0].scale == (2.0, 2.0, 2.0) and found[0].path.read_text() == TRIANGLE
    assert bool(done.copied) == (how == "copy")
    text = done.path.read_text()
    kept = "package://my_robot/" if ending == ".urdf" else "model://my_robot/"
    assert {"keep": kept, "absolute": str(tmp_path), "relative": "../../my_robot/", "copy": "out_meshes/"}[
        how
    ] in text
    if how == "copy":
        shutil.move(str(new), str(tmp_path / "elsewhere"))
        moved = rk.load(tmp_path / "elsewhere" / done.path.name)
        assert all(mesh.path is not None for mesh in meshes_of(moved))


def four_bar(kind="revolute"):
    """A square of three bars and its base, closed with all joints at zero."""
    builder = rk.ModelBuilder("four bar").link("base")
    for k, name in enumerate(("left", "top", "right")):
        builder.link(name, 1.0 + k, (0.1, 0.0, 0.4), np.diag([0.1, 0.2, 0.15]))
    up, aside = (rk.Placement(position=np.array(p)) for p in ((0.0, 0.0, 1.0), (1.0, 0.0, 0.0)))
    builder.joint("a", "revolute", "base", "left", axis=(0, 1, 0), lower=-1, upper=1)
    builder.joint("b", "revolute", "left", "top", up, axis=(0, 1, 0), lower=-1, upper=1)
    builder.joint("c", "revolute", "base", "right", aside, axis=(0, 1, 0), lower=-1, upper=1)
    return builder.loop_joint("d", kind, "top", "right", aside, up, axis=(0, 1, 0)).build()


@pytest.mark.parametrize("ending", [".sdf", ".urdf"])
@pytest.mark.parametrize("name", ["humanoid", "revolute", "universal"])
def test_there_and_back_again(name, ending, tmp_path):
    robot = rk.load(name, base="floating") if name == "humanoid" else four_bar(name)
    done = convert(robot, tmp_path / f"there{ending}")
    back = convert(done.path, tmp_path / "back.urdf", base=robot.base)
    again = rk.load(back.path, base=robot.base)
    assert again.joint_names == robot.joint_names and set(again.link_names) == set(robot.link_names)
    assert [loop.name for loop in again.loop_joints] == [loop.name for loop in robot.loop_joints]
    closed = (
        [rk.close_loops(each, each.neutral() + 0.1) for each in (robot, again)] if robot.loop_joints else []
    )
    np.testing.assert_allclose(*(closed or [0.0, 0.0]), atol=1e-9)
    q = robot.random_configuration(2)
    assert np.allclose(rk.crba(again, q), rk.crba(robot, q), rtol=0, atol=1e-12)
    here, there = (rk.forward_kinematics(r, q) for r in (robot, again))
    for link in robot.links:
        for a, b in zip(here[link.name], there[link.name], strict=True):
            assert np.allclose(a, b, rtol=0, atol=1e-12)
        other = again.link(link.name)
        assert [s.rgba for s in other.visuals] == [s.rgba for s in link.visuals]
        assert [s.geometry for s in other.collisions] == [s.geometry for s in link.collisions]


def test_what_would_move_differently_is_refused(tmp_path):
    builder = rk.ModelBuilder("r").link("base", 1.0, inertia=np.eye(3)).link("arm", 1.0, inertia=np.eye(3))
    screw = builder.joint("screw", "helical", "base", "arm", pitch=0.1, axis=(0, 0, 1)).build()
    for ending in (".urdf", ".xml"):
        with pytest.raises(ModelError, match="'screw'"):
            convert(screw, tmp_path / f"screw{ending}")
        assert not (tmp_path / f"screw{ending}").exists()
    assert rk.load(convert(screw, tmp_path / "screw.sdf").path).joint("screw").pitch == pytest.approx(0.1)
    builder = rk.ModelBuilder("r").link("base", 1.0, inertia=np.eye(3)).link("arm", 1.0, inertia=np.eye(3))
    slot = (
        builder.joint("a", "revolute", "base", "arm").loop_joint("slot", "cylindrical", "base", "arm").build()
    )
    for ending in (".sdf", ".xml"):
        with pytest.raises(ModelError, match="'slot'"):
            convert(slot, tmp_path / f"slot{ending}")


def test_a_planar_joint_becomes_three_that_move_alike(tmp_path):
    builder = (
        rk.ModelBuilder("r")
        .link("base", 1.0, inertia=np.eye(3))
        .link("disc", 2.0, inertia=np.diag([1, 2, 2.5]))
    )
    robot = builder.joint("plane", "planar", "base", "disc", axis=(0, 0.6, 0.8)).build()
    again = rk.load(convert(robot, tmp_path / "disc.sdf").path)
    assert again.joint_names == ("plane_TX", "plane_TY", "plane")
    q = np.array([0.4, 0.2, -0.3])  # angle, x, y
    (R, p), (S, r) = (
        rk.forward_kinematics(robot, q)["disc"],
        rk.forward_kinematics(again, q[[1, 2, 0]])["disc"],
    )
    assert np.allclose(R, S, atol=1e-15) and np.allclose(p, r, atol=1e-15)


def test_names_that_sdf_does_not_take_come_back(tmp_path):
    builder = rk.ModelBuilder("r").link("same", 1.0, inertia=np.eye(3)).link("a::b", 1.0, inertia=np.eye(3))
    robot = builder.joint("same", "continuous", "same", "a::b").build(base="floating")
    with pytest.warns(UserWarning, match="is called"):
        done = rk.convert(robot, tmp_path / "names.sdf")
    again = rk.load(done.path)
    assert again.link_names == robot.link_names and again.joint_names == robot.joint_names


def test_bad_calls_say_what_is_accepted(tmp_path):
    with pytest.raises(RobokitError, match=r"out\.step.*\.urdf, \.xml \(MJCF\) or \.sdf"):
        rk.convert("arm", tmp_path / "out.step")
    with pytest.raises(UnknownName, match="format to write"):
        rk.convert("arm", tmp_path / "out.urdf", to="usd")
    with pytest.raises(UnknownName, match="treatment of meshes"):
        rk.convert("arm", tmp_path / "out.urdf", meshes="move")
    own = tmp_path / "arm.urdf"
    own.write_text(rk.find_robot("arm").read_text())
    with pytest.raises(RobokitError, match="own file"):
        rk.convert(own, own)


def test_the_command(tmp_path, capsys):
    out = tmp_path / "arm.sdf"
    assert main(["convert", "arm", "-o", str(out)]) == 0
    assert "7 bodies" in capsys.readouterr().out and rk.load(out).nv == 7
    assert main(["convert", str(out), "-o", str(tmp_path / "arm.urdf")]) == 0
    assert main(["convert", str(out), "-o", str(tmp_path / "arm.step")]) == 2
    assert "--to" in capsys.readouterr().err
    assert main(["convert", str(out), "-o", str(tmp_path / "arm.step"), "--to", "urdf"]) == 0
    assert main(["convert", str(out), "-o", str(out)]) == 1
    assert main(["convert", "armm", "-o", str(tmp_path / "x.sdf")]) == 2
    assert "did you mean 'arm'" in capsys.readouterr().err
    assert not Path(tmp_path / "x.sdf").exists()
