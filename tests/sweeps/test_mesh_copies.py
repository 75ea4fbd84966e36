"""A sweep's folder from anybody: shown, it runs nothing and reads no other files."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import replace

import robokit as rk
from robokit.meshes.read_mesh import read_mesh
from robokit.sweeps.recipe import Recipe, make_recipe
from robokit.urdf import xacro


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
