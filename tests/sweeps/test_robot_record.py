"""Robots in recipes: every number, shape, pair and actuator comes back to the bit."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import sweep_robots
from sweep_robots import WAVE

import robokit as rk
from robokit.serialize import from_json, to_json
from robokit.sweeps.recipe import Recipe, make_recipe
from robokit.sweeps.robot_record import RobotRecord, actuator_from_json, actuator_to_json


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
