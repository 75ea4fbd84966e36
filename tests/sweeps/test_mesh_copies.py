"""A sweep's folder from anybody: shown, it runs nothing and reads no other files."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import replace

import pytest

import robokit as rk
from robokit.meshes.read_mesh import read_mesh
from robokit.sweeps.make_recipe import make_recipe
from robokit.sweeps.recipe import Recipe
from robokit.sweeps.robot_record import RobotRecord
from robokit.urdf import xacro

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


def paths(record):
    return [shape.geometry.path for shape in record.with_meshes().links[0].visuals]


def test_what_is_shown_are_copies_of_files_with_the_hash_of_the_recipe(record):
    record, folder = record
    cube, plain = paths(record)
    assert folder not in cube.parents and cube.read_bytes() == (folder / "cube.obj").read_bytes()
    assert {path.name for path in cube.parent.iterdir()} == {"cube.obj", "cube.mtl", "wood.png"}
    assert [path.name for path in plain.parent.iterdir()] == ["plain.obj"]
    (surface,) = read_mesh(cube)
    assert surface.picture is not None
    assert paths(record)[0] == cube  # copied once
    (folder / "plain.obj").write_text(CUBE)  # is another now
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
