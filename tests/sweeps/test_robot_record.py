"""Robots in recipes: every number, shape, pair and actuator comes back to the bit."""

from __future__ import annotations

import json
import math
import os
import subprocess
from dataclasses import replace

import numpy as np
import pytest
import sweep_robots
from sweep_robots import WAVE

import robokit as rk
from robokit.meshes.read_mesh import read_mesh
from robokit.serialize import from_json, to_json
from robokit.sweeps.recipe import Recipe, make_recipe
from robokit.sweeps.robot_record import RobotRecord, actuator_from_json, actuator_to_json
from robokit.urdf import xacro


def test_numbers_of_another_machine_come_back_to_the_bit(recipe):
    given = json.loads(recipe.to_json())
    again = Recipe.from_json(json.dumps(given))
    numbers = again.robots["hopper"].numbers
    for x in numbers.values():
        x += np.abs(x) * 2.0**-52  # as if its sines were others in their last bits
    robot = again.robots["hopper"].robot
    assert (robot.inertial_parameters == numbers["parameters"]).all()
    assert robot.tree.XT[2].r.x == numbers["joints"][1][9]
    assert (robot.links[1].placement.rotation.ravel() == numbers["links"][1][:9]).all()


@pytest.mark.slow
def test_bodies_are_kept_apart_as_in_a_simulation():
    robot = rk.load_urdf(rk.find_robot("quadruped"), base="floating")
    how = {"starts": {"height": 0.001}, "count": 2, "duration": 0.02}
    recipe = make_recipe(robot, **how)
    again = Recipe.from_json(recipe.to_json())
    pairs = rk.collision_pairs(robot)
    assert again.robots["quadruped"].pairs == pairs
    motion = again.trajectory(1)
    one = rk.simulate(robot, motion.q[0], duration=0.02, dt=recipe.dt["quadruped"], ground=rk.Ground())
    assert np.allclose(one.q, motion.q, atol=1e-9)
    assert from_json(rk.CollisionPairs, to_json(pairs)) == pairs
    fewer = pairs.remove(*pairs.pairs[0]).with_law(friction=0.2)
    assert make_recipe(robot, **how, self_collision=fewer).robots["quadruped"].pairs == fewer
    assert make_recipe(robot, **how, self_collision=False).robots["quadruped"].pairs is None


@pytest.mark.parametrize(
    "given",
    [
        rk.PD(kp=100.0, kd={"hip": 0.1}, target=WAVE, effort=math.inf, armature=0.01),
        rk.Velocity(gain=np.array([1.0 / 3.0]), joints=["hip"], max_velocity=4.0, feedforward=[0.1]),
        rk.Torque(target=np.array([[0.1], [0.2]])),
    ],
    ids=["PD", "Velocity", "Torque"],
)
def test_an_actuator_comes_back_from_its_record(given):
    text = json.dumps(actuator_to_json(given), allow_nan=False)
    again = actuator_from_json(json.loads(text))
    assert json.dumps(actuator_to_json(again)) == text and type(again) is type(given)


def paths(record):
    return [shape.geometry.path for shape in record.with_meshes().links[0].visuals]


def test_a_robot_of_a_recipe_looks_for_no_file(record, monkeypatch, tmp_path):
    """An absolute name, or a package that this machine knows, is not even looked for."""
    record, folder = record
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(tmp_path))
    about = dict(record.about)
    about["urdf"] = about["urdf"].replace("meshes/cube.obj", str(folder / "cube.obj"))
    about["urdf"] = about["urdf"].replace("meshes/plain.obj", "package://meshes/plain.obj")
    again = replace(record, about=about)
    assert [shape.geometry.path for shape in again.robot.links[0].visuals] == [None, None]
    assert paths(again) == [None, None]


def changed(content, path, value):
    """The same JSON with another value at a path; None as value takes it away."""
    content = json.loads(json.dumps(content))
    *where, last = path
    at = content
    for key in where:
        at = at[key]
    if value is None:
        del at[last]
    else:
        at[last] = value
    return content


BOX, BALL = ("shapes", 0), ("shapes", 1)
NAMES = ("kind", "bound", "radius", "size", "centre", "own", "hull")
ABSENT = [
    *(((*BALL, name), None) for name in NAMES),
    *(((*BOX, "hull", name), None) for name in ("corners", "normals", "polygons", "error", "sides")),
    *((("pairs", name), None) for name in ("error", "friction", "restitution")),
]
WRONG = [
    ((*BALL, "size"), [0.1, "inf", 0.1]),
    ((*BALL, "centre"), ["-inf", 0.0, 0.0]),
    ((*BALL, "bound"), "inf"),
    ((*BALL, "radius"), -0.1),
    ((*BOX, "hull", "error"), "inf"),
    ((*BOX, "hull", "corners"), [[0, 0, 0]] * 8),
    (("numbers", "joints"), [[0] * 16]),
    (("pairs", "error"), "inf"),
]


def test_a_record_that_rows_would_not_follow_from_is_refused():
    """A number that is absent would be this version's default, and rows would have other bits."""
    robot = sweep_robots.hopper()
    q = robot.neutral()[None]
    pairs = replace(rk.collision_pairs(robot), bodies=((1, 2),))
    made = RobotRecord.of(robot, q, 0.0 * q[:, :-1], rk.Ground(), apart=pairs)
    good = json.loads(json.dumps(to_json(made), allow_nan=False))
    assert to_json(from_json(RobotRecord, good)) == good
    assert good["shapes"][0]["hull"] is not None and good["pairs"]["bodies"] == [[1, 2]]
    for path, value in ABSENT + WRONG:
        with pytest.raises(ValueError, match=path[-1] if value is None else "expected|hull|indices"):
            from_json(RobotRecord, changed(good, path, value), "robot")


# ---- A sweep's folder from anybody: shown, it runs nothing and reads no other files --------------


def test_what_is_shown_are_copies_of_files_with_the_hash_of_the_recipe(record):
    record, folder = record
    cube, plain = paths(record)
    assert folder not in cube.parents and cube.read_bytes() == (folder / "cube.obj").read_bytes()
    assert {path.name for path in cube.parent.iterdir()} == {"cube.obj", "cube.mtl", "wood.png"}
    assert [path.name for path in plain.parent.iterdir()] == ["plain.obj"]
    (surface,) = read_mesh(cube)
    assert surface.picture is not None
    assert paths(record)[0] == cube  # copied once
    (folder / "plain.obj").write_text((folder / "cube.obj").read_text())  # is another now
    (folder / "wood.png").write_bytes(b"another picture")
    cube, plain = paths(record)
    assert plain is None and {path.name for path in cube.parent.iterdir()} == {"cube.obj", "cube.mtl"}
    (folder / "cube.obj").unlink()
    if hasattr(os, "mkfifo"):
        os.mkfifo(folder / "cube.obj")
    assert paths(record)[0] is None


def test_pictures_that_a_recipe_does_not_have_are_not_taken(record):
    record, _ = record
    bare = replace(record, looks=replace(record.looks, named={}))
    assert [path.name for path in paths(bare)[0].parent.iterdir()] == ["cube.obj"]
    assert paths(replace(record, meshes={})) == [None, None]


def test_the_hash_of_a_recipe_does_not_depend_on_looks(record, tmp_path):
    robot = rk.load_urdf(tmp_path / "cube.urdf", base="floating")
    recipe = make_recipe(robot, ground=None, count=1, duration=0.001, measures=["energy"])
    text = json.loads(recipe.to_json())
    assert text["robots"]["cube"].pop("looks")["named"]["meshes/cube.obj"].keys() >= {"cube.mtl", "wood.png"}
    assert Recipe.from_json(json.dumps(text)).hash == recipe.hash


def test_no_xacro_is_expanded_to_show_a_sweep(tmp_path, monkeypatch):
    def started(*_, **__):
        raise AssertionError("a program was started")

    folder, robot = tmp_path / "sweep", rk.load_urdf(rk.find_robot("double_pendulum"))
    run = {"ground": None, "duration": 0.002, "measures": ["energy"], "workers": 0}
    starts = {"joint:upper_joint": rk.Uniform(0.0, 1.0)}
    (tmp_path / "arm.xacro").write_text(rk.find_robot("double_pendulum").read_text())
    made = replace(robot, source=str(tmp_path / "arm.xacro"))
    rk.sweep(made, starts=starts, count=2, out=folder, **run)
    monkeypatch.setattr(subprocess, "Popen", started)
    monkeypatch.setattr(xacro, "expanded", started)
    monkeypatch.setattr("robokit.urdf.load.expanded", started)
    found = rk.open_sweep(folder)
    assert found.recipe.robots["double_pendulum"].about["source"].endswith("arm.xacro")
    assert found.replay(1).summary["same_bits"]
    assert found.recipe.robots["double_pendulum"].with_meshes().name == "double_pendulum"
