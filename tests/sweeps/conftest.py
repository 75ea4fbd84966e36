"""Sweeps that several tests of this folder read."""

from __future__ import annotations

import json

import pytest
import sweep_robots
from fake_recipe import FakeRecipe
from sweep_robots import DURATION, OTHERS, STARTS

import robokit as rk
from robokit.sweeps.recipe import make_recipe
from robokit.sweeps.robot_record import RobotRecord
from robokit.sweeps.workers import run_sweep

RECIPE = FakeRecipe(45)


RUN = {"ground": None, "duration": 0.002, "measures": ["energy"], "workers": 0}


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep") / "undisturbed"
    run_sweep(RECIPE, folder, chunk=10, workers=0)
    return folder


@pytest.fixture(scope="session")
def swings(tmp_path_factory):
    """A sweep of a robot: six rows in chunks of two."""
    folder = tmp_path_factory.mktemp("sweep") / "swings"
    starts = {"joint:upper_joint": rk.Uniform(0.0, 1.0)}
    robot = rk.load_urdf(rk.find_robot("double_pendulum"))
    rk.sweep(robot, starts=starts, count=6, chunk=2, out=folder, **RUN)
    return folder


@pytest.fixture(scope="session")
def robot():
    return sweep_robots.hopper()


@pytest.fixture(scope="session")
def recipe(robot):
    return make_recipe(
        robot, starts=STARTS, parameters=OTHERS, count=40, duration=DURATION, seed=5, measures=["peak_force"]
    )


CUBE = (
    "mtllib cube.mtl\nv 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nvt 0 0\nvt 1 0\nvt 0 1\nusemtl paint\n"
    + "".join(f"f {a}/1 {b}/2 {c}/3\n" for a, b, c in ((1, 2, 3), (1, 2, 4), (1, 3, 4), (2, 3, 4)))
)

PAINT = "newmtl paint\nKd 1 0 0\nmap_Kd wood.png\n"

ROBOT = """
<robot name="cube">
  <link name="cube">
    <inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>
    <visual><geometry><mesh filename="meshes/cube.obj"/></geometry></visual>
    <visual><geometry><mesh filename="meshes/plain.obj"/></geometry></visual>
  </link>
</robot>
"""


@pytest.fixture
def record(tmp_path):
    """The record of a robot whose meshes lie in a folder, and that folder."""
    from PIL import Image

    folder = tmp_path / "meshes"
    folder.mkdir()
    (folder / "cube.obj").write_text(CUBE)
    (folder / "plain.obj").write_text(CUBE.partition("\n")[2])
    (folder / "cube.mtl").write_text(PAINT)
    Image.new("RGB", (2, 2), (9, 8, 7)).save(folder / "wood.png")
    (tmp_path / "cube.urdf").write_text(ROBOT)
    robot = rk.load_urdf(tmp_path / "cube.urdf", base="floating")
    q = robot.neutral()[None]
    made = RobotRecord.of(robot, q, 0.0 * q[:, :-1], None)
    return RobotRecord.from_json(json.loads(json.dumps(made.to_json()))), folder
