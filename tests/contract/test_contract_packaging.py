"""What installs robokit elsewhere agrees with pyproject.toml; its types check the programs of users."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import robokit
from robokit.errors import MissingDependency
from robokit.viewer import page

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

PROGRAM = """
import numpy as np
import robokit as rk

robot: rk.Robot = rk.load_urdf(rk.find_robot("humanoid"), base="floating")
q: np.ndarray = robot.neutral()
H: np.ndarray = rk.crba(robot, q)
a: np.ndarray = rk.aba(robot, q, np.zeros(robot.nv), np.zeros(robot.nv))
run: rk.Trajectory = rk.simulate(robot, q, duration=1.0, ground=rk.Ground())
x: int = rk.aba(robot, q, q, q)
y: str = rk.simulate(robot, q)
"""


def without_meshcat(monkeypatch):
    monkeypatch.setattr(page.importlib.util, "find_spec", lambda name: None)


def test_versions_are_one():
    recipe = (ROOT / "packaging" / "recipe.yaml").read_text(encoding="utf-8")
    assert PROJECT["version"] == robokit.__version__
    assert re.findall(r'^  version: "(.*)"$', recipe, re.M) == [robokit.__version__]


def test_the_conda_recipe_has_the_dependencies():
    recipe = (ROOT / "packaging" / "recipe.yaml").read_text(encoding="utf-8")
    _, _, run = recipe.partition("  run:\n")
    listed = re.findall(r"^    - (\S+) (\S+)$", run.partition("\n\n")[0], re.M)
    assert listed[0] == ("python", PROJECT["requires-python"])
    assert [name + bound for name, bound in listed[1:]] == PROJECT["dependencies"]


def test_pages_take_meshcat_from_its_package_or_from_the_wheel(tmp_path, monkeypatch):
    assert page.meshcat_page().parent.name == "viewer"
    without_meshcat(monkeypatch)
    monkeypatch.setattr(page, "COPY", tmp_path)
    with pytest.raises(MissingDependency, match=r"pip install 'robokit\[live\]'"):
        page.meshcat_page()
    (tmp_path / "main.min.js").write_text("")
    assert page.meshcat_page() == tmp_path


@pytest.mark.slow
def test_types_of_users_programs_are_known(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), "program.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    wrong = [line for line in done.stdout.splitlines() if "error" in line and line.startswith("program")]
    assert [int(line.split(":")[1]) for line in wrong] == [10, 11], done.stdout
