"""A sweep's folder from anybody: shown, it runs nothing, reads no other files and overwrites none."""

from __future__ import annotations

import importlib
import json
import os
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import sweep_robots

import robokit as rk
from robokit.child_process import search_path
from robokit.cli import main
from robokit.meshes.read_mesh import read_mesh
from robokit.sweeps.folder import SweepFile, read_sweep_file
from robokit.sweeps.make_recipe import make_recipe
from robokit.sweeps.recipe import Recipe
from robokit.sweeps.robot_record import RobotRecord
from robokit.sweeps.user_measures import StoredMeasure
from robokit.sweeps.workers import worker_environment
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
    return [shape.geometry.path for shape in record.shown().links[0].visuals]


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
    assert found.recipe.robots["double_pendulum"].shown().name == "double_pendulum"


def test_a_page_in_the_folder_is_no_link_that_leads_out(tmp_path, capsys):
    folder, robot = tmp_path / "sweep", rk.load_urdf(rk.find_robot("double_pendulum"))
    starts = {"joint:upper_joint": rk.Uniform(0.0, 1.0)}
    run = {"ground": None, "duration": 0.002, "measures": ["energy"], "workers": 0}
    rk.sweep(robot, starts=starts, count=2, out=folder, **run)
    (tmp_path / "mine.html").write_text("mine")
    (folder / "report.html").symlink_to(tmp_path / "mine.html")
    assert main(["sweep", "--report", str(folder), "--no-open"]) == 1
    assert "report.html is a link; give -o FILE" in capsys.readouterr().err
    assert (tmp_path / "mine.html").read_text() == "mine"
    if hasattr(os, "mkfifo"):
        (folder / "report.html").unlink()
        os.mkfifo(folder / "report.html")
        assert main(["sweep", "--report", str(folder), "--no-open"]) == 1


def test_a_measure_of_a_foreign_sweep_runs_when_it_goes_on_and_not_before(tmp_path):
    class Trap:
        def __reduce__(self):
            return Path.touch, (tmp_path / "ran",)

    folder, robot = tmp_path / "sweep", sweep_robots.hopper()
    run = {"ground": None, "duration": 0.002, "dt": 0.001, "measures": ["energy"], "workers": 0}
    starts = {"spin": rk.Uniform(0.0, 1.0)}
    rk.sweep(robot, starts=starts, count=2, out=folder, **run)
    given = read_sweep_file(folder)
    about = {"name": "trap", "reduce": "max", "threshold": None, "unit": "", "link": None}
    text = json.loads(given.recipe)
    text["measures"] = [StoredMeasure(about, "", pickle.dumps(Trap())).record()]
    for path in (folder / "chunks").iterdir():
        path.unlink()
    SweepFile(json.dumps(text, separators=(",", ":")), given.chunk, given.count).write(folder)
    found = rk.open_sweep(folder)
    repr(found), len(found), found.replay(0)
    with pytest.raises(rk.RobokitError, match="has no rows yet"):
        found.report(tmp_path / "page.html")
    assert not (tmp_path / "ran").exists()
    with pytest.raises(rk.RobokitError, match="could not be computed"):
        rk.open_sweep(folder).resume(workers=0)
    assert (tmp_path / "ran").exists()


def test_help_says_what_runs(capsys):
    with pytest.raises(SystemExit):
        main(["sweep", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert "--resume runs the code of measures of the maker's own (rk.Measure)" in said


def test_no_process_has_the_current_folder_on_its_path(monkeypatch, tmp_path):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(("", "/one", "", "/two", "")))
    found = worker_environment()
    assert found["PYTHONSAFEPATH"] == "1"
    parts = found["PYTHONPATH"].split(os.pathsep)
    assert parts[-2:] == ["/one", "/two"] and "" not in parts
    started = []

    def start(command, **_):
        started.append(command)
        raise OSError("no process")

    monkeypatch.setattr(subprocess, "Popen", start)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    (tmp_path / "arm.xacro").write_text('<robot name="r"/>')
    with pytest.raises(rk.UrdfError):
        rk.load_urdf(tmp_path / "arm.xacro")
    assert "-P" in started[0]
    assert "" not in search_path() and sys.path[1] in search_path()


def test_a_measure_of_ones_own_module_needs_no_module_elsewhere(tmp_path, monkeypatch):
    """The workers do not find it, since the current folder is not on their path."""
    text = "import robokit as rk\nimport factors_of_mine\n\n"
    text += "@rk.function(inputs=('q', 'v'), outputs={'turning': ()})\n"
    text += "def turning(tree, q, v):\n    return [factors_of_mine.FACTOR * v[1][0]]\n"
    (tmp_path / "measures_of_mine.py").write_text(text)
    (tmp_path / "factors_of_mine.py").write_text("FACTOR = 3.0\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("measures_of_mine")
    kept = StoredMeasure.of(rk.Measure(module.turning, "max"), [])
    monkeypatch.undo()
    for name in ("measures_of_mine", "factors_of_mine"):
        monkeypatch.delitem(sys.modules, name)
    assert kept.measure.function.name == "turning"
    assert not {"measures_of_mine", "factors_of_mine"} & set(sys.modules)
