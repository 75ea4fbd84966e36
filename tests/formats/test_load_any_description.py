"""rk.load: what a path or a name stands for, and options that belong to one format only."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import robokit as rk
from robokit.formats import other_programs
from robokit.formats.build import build_robot
from robokit.formats.description import WORLD, DescribedBody, DescribedJoint, Description
from robokit.formats.load import format_of
from robokit.model import Placement

MJCF = '<mujoco model="m"><worldbody><body name="b"><joint/><geom size="0.1"/></body></worldbody></mujoco>'


def test_a_urdf_is_what_load_urdf_makes_of_it():
    path = rk.find_robot("quadruped")
    for base in (None, "fixed", "floating"):
        mine, own = rk.load(path, base=base), rk.load_urdf(path, base=base or "fixed")
        assert (
            mine.fingerprint == own.fingerprint
            and mine.diagnostics == own.diagnostics
            and mine.base == own.base
        )
    assert rk.load("quadruped").fingerprint == rk.load_urdf(path).fingerprint
    assert rk.load("quadruped").scene is None


def test_the_format_is_told_by_the_content(tmp_path):
    path = tmp_path / "robot.xml"
    path.write_bytes(rk.find_robot("arm").read_bytes())
    assert format_of(path) == "URDF" and rk.load(path).nv == 7
    for text, kind in {
        MJCF: "MJCF",
        "<?xml version='1.0'?><!-- <robot> --><mujoco/>": "MJCF",
        "<sdf version='1.9'/>": "SDF",
        "#usda 1.0\n": "USD",
        "anything": "URDF",
    }.items():
        path.write_text(text)
        assert format_of(path) == kind
    path.write_bytes(b"PXR-USDC\0\0")
    assert format_of(path) == "USD"


def test_bad_arguments(tmp_path):
    with pytest.raises(rk.WrongType, match="path"):
        rk.load(3)
    with pytest.raises(rk.UnknownName, match="humanoid"):
        rk.load("humanoyd")
    with pytest.raises(rk.RobokitError, match=r"no file 'nothing\.xml'"):
        rk.load("nothing.xml")
    with pytest.raises(rk.UnknownName, match="base"):
        rk.load("arm", base="hovering")
    with pytest.raises(rk.LoadError, match="root="):
        rk.load("arm", root="a")
    path = tmp_path / "m.xml"
    path.write_text(MJCF)
    with pytest.raises(rk.LoadError, match="loops='close' is for URDF files; this one is MJCF"):
        rk.load(path, loops="close")
    with pytest.raises(rk.LoadError, match="mesh_up_axis='apply'"):
        rk.load(path, mesh_up_axis="apply")
    path.write_text("version https://git-lfs.github.com/spec/v1\n")
    with pytest.raises(rk.UrdfError, match="LFS"):
        rk.load(path)


def test_what_is_missing_is_named_with_its_extra(tmp_path, monkeypatch):
    path = tmp_path / "m.xml"
    path.write_text(MJCF)
    monkeypatch.setattr(other_programs.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(rk.MissingDependency, match=r"pip install mujoco, or 'robokit\[mjcf\]'"):
        rk.load(path)
    with pytest.raises(rk.MissingDependency, match=r"robokit\[descriptions\]"):
        rk.load("robot_descriptions:arm")


@pytest.fixture
def descriptions(tmp_path, monkeypatch):
    """A package robot_descriptions of the tests' own: two descriptions here, one whose clone fails."""
    package = tmp_path / "robot_descriptions"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (tmp_path / "m.xml").write_text(MJCF)
    (package / "ours_description.py").write_text(f"URDF_PATH = {str(rk.find_robot('arm'))!r}")
    (package / "ours_mj_description.py").write_text(f"MJCF_PATH = {str(tmp_path / 'm.xml')!r}")
    (package / "far_description.py").write_text("raise OSError('Could not resolve host: github.com')")
    (package / "asks_description.py").write_text(
        f"import os\nassert 'GIT_ALLOW_PROTOCOL' not in os.environ\nURDF_PATH = {str(rk.find_robot('arm'))!r}"
    )
    for name in [name for name in sys.modules if name.partition(".")[0] == "robot_descriptions"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in [name for name in sys.modules if name.partition(".")[0] == "robot_descriptions"]:
        del sys.modules[name]


def test_robots_of_robot_descriptions(descriptions):
    assert rk.load("robot_descriptions:ours").nv == 7
    assert rk.find_robot("robot_descriptions:ours_mj").name == "m.xml"
    assert rk.load("robot_descriptions:asks").nv == 7  # load may clone, find_robot may not
    with pytest.raises(rk.UnknownName, match="did you mean 'ours'"):
        rk.load("robot_descriptions:our")
    with pytest.raises(rk.RobokitError, match=r"could not \(OSError: Could not resolve host.*network there"):
        rk.load("robot_descriptions:far")
    with pytest.raises(rk.RobokitError, match="robokit fetches nothing"):
        rk.find_robot("robot_descriptions:far")


def test_a_scene_goes_by_names():
    robot = rk.load_urdf(rk.find_robot("double_pendulum"))
    builder = rk.ModelBuilder.from_robot(robot)
    servo = rk.PD(joints=("upper_joint", "lower_joint"), kp={"upper_joint": 3.0, "lower_joint": 4.0})
    home = {"upper_joint": (0.1,), "lower_joint": (0.2,)}
    builder.scene = rk.Scene(actuators=(servo,), configurations={"home": home})
    robot = builder.build()
    assert robot.configuration("home").tolist() == [0.1, 0.2]
    from robokit.model import lock_joints

    shorter = lock_joints(robot, {"lower_joint": 0.0})
    assert shorter.configuration("home").tolist() == [0.1]
    assert shorter.scene.actuators[0].kp == {"upper_joint": 3.0}
    kept = rk.ModelBuilder.from_robot(robot)
    kept.scene = rk.Scene(apart=(("base", "lower"),))
    both = rk.together({"a": kept.build(), "b": robot})
    assert both.scene.apart == (("a/base", "a/lower"),)
    assert "PD" in repr(robot.scene) and np.array_equal(shorter.neutral(), [0.0])


def test_bodies_that_hang_on_nothing_are_no_robot():
    """A reader that leaves out the joint to the world gets an error, not a robot without bodies."""
    here = Placement(np.eye(3), np.zeros(3))
    bodies = {name: DescribedBody(name, here, 1.0) for name in ("base", "arm")}
    joint = DescribedJoint("hinge", "revolute", "base", "arm", np.array([0.0, 0.0, 1.0]))
    side = Description("table", "arm.txt", "arm", bodies, [joint])
    with pytest.raises(rk.LoadError, match=r"arm\.txt: there is no body in it"):
        build_robot(side)
    side.joints.insert(0, DescribedJoint("", "fixed", WORLD, "base"))
    assert build_robot(side).joint_names == ("hinge",)
