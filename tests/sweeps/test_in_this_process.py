"""Sweeps in this process (workers=0): without Dask and pyarrow, and with the rows and files of all others."""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
from pathlib import Path

import numpy as np
import pytest
from fake_recipe import FakeRecipe
from sweep_files import contents

import robokit as rk
from robokit.sweeps.run_sweep import run_sweep

ROOT = Path(rk.__file__).resolve().parents[1]
RUN = {"starts": {"joint:upper_joint": rk.Uniform(0.0, 1.0)}, "ground": None, "duration": 0.02, "count": 6}

WITHOUT = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"dask", "distributed", "pyarrow", "cloudpickle", "pandas"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
import os
import robokit as rk
from robokit.cli import main

robot = rk.load_urdf(rk.find_robot("double_pendulum"))
run = {"starts": {"joint:upper_joint": rk.Uniform(0.0, 1.0)}, "ground": None, "duration": 0.02, "count": 6}

calls = []
def interrupted(self, first, last):
    calls.append(first)
    if len(calls) == 3:
        raise KeyboardInterrupt
    return computed(self, first, last)

computed, rk.Recipe.compute_rows = rk.Recipe.compute_rows, interrupted
try:
    rk.sweep(robot, **run, out="folder", chunk=2, workers=0)
except KeyboardInterrupt as error:
    assert "4 of 6 rows are kept; go on with: robokit sweep --resume folder" in str(error)
rk.Recipe.compute_rows = computed
assert main(["sweep", "--resume", "folder", "--workers", "0"]) == 0

whole = rk.sweep(robot, **run, out="whole", chunk=2, workers=0)
folder, memory = rk.open_sweep("folder"), rk.sweep(robot, **run, workers=0)
assert len(folder) == len(memory) == 6 and repr(folder.row(5)) == repr(memory.row(5))
assert repr(folder.table().to_pylist()[3]) == repr(folder.row(3)) and folder.failures.num_rows == 0
assert folder.worst("greatest_speed", 2).column_names == list(folder.columns)
assert folder.replay(4).summary["same_bits"]
folder.report("page.html")
assert main(["replay", "folder", "worst:greatest_speed", "--no-open"]) == 0

@rk.function(inputs=("q", "v"), outputs={"turning": ()})
def turning(tree, q, v):
    return [v[1][0] * v[1][0]]

own = rk.Measure(turning, "max")
assert (rk.sweep(robot, **run, measures=[own]).rows()["turning"] > 0.0).all()
for needs in ({"measures": [own], "workers": 0}, {"workers": 2}):
    try:
        rk.sweep(robot, **run, **needs, out=f"needs{len(needs)}", chunk=2)
    except rk.MissingDependency as error:
        assert "pip install 'robokit[sweep]'" in str(error)
    else:
        raise AssertionError(needs)
assert not {"dask", "distributed", "pyarrow"} & set(sys.modules)
"""


def test_neither_dask_nor_pyarrow_is_needed(tmp_path):
    """Interrupted and gone on with, too, such a sweep comes to the bytes of one that was not disturbed."""
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    undisturbed = contents(tmp_path / "whole")
    assert {
        name: x for name, x in contents(tmp_path / "folder").items() if name in undisturbed
    } == undisturbed
    robot = rk.load_urdf(rk.find_robot("double_pendulum"))
    here = rk.sweep(robot, **RUN, out=tmp_path / "here", chunk=2, workers=0)
    assert contents(tmp_path / "here").keys() == undisturbed.keys()  # names are hashes of the values
    found = rk.open_sweep(tmp_path / "folder").table()
    assert found.schema == here.table().schema and repr(found.to_pylist()) == repr(here.table().to_pylist())


def test_the_error_of_a_row_keeps_its_traceback(tmp_path):
    """A debugger finds the line where a row went wrong."""
    with pytest.raises(rk.RobokitError, match="row 33 cannot be") as found:
        run_sweep(FakeRecipe(95, raiser=33), tmp_path / "sweep", chunk=10, workers=0)
    lines = traceback.extract_tb(found.value.__cause__.__traceback__)
    assert lines[-1].name == "compute_rows" and Path(lines[-1].filename).name == "fake_recipe.py"


def test_a_breakpoint_in_a_row_is_reached():
    robot, seen = rk.load_urdf(rk.find_robot("double_pendulum")), []

    def trace(frame, event, argument):
        if frame.f_code.co_name == "start_states":
            seen.append(np.array(frame.f_locals["rows"]))

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        rk.sweep(robot, **RUN, workers=0)
    finally:
        sys.settrace(before)
    assert np.concatenate(seen).tolist() == list(range(6))
