"""Sweeps in this process: in memory without Dask and pyarrow; in a folder (workers=0) without Dask."""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
from pathlib import Path

import numpy as np
import pytest
import waiting
from fake_recipe import FakeRecipe
from sweep_files import contents

import robokit as rk
from robokit.sweeps.workers import run_sweep

ROOT = Path(rk.__file__).resolve().parents[1]
RUN = {"starts": {"joint:upper_joint": rk.Uniform(0.0, 1.0)}, "ground": None, "duration": 0.02, "count": 6}

WITHOUT = """
import os
import sys

absent = {"dask", "distributed", "pyarrow", "cloudpickle", "pandas"}

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in absent:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
import numpy as np
import robokit as rk
from robokit.cli import main

robot = rk.load_urdf(rk.find_robot("double_pendulum"))
run = {"starts": {"joint:upper_joint": rk.Uniform(0.0, 1.0)}, "ground": None, "duration": 0.02, "count": 6}

@rk.function(inputs=("q", "v"), outputs={"turning": ()})
def turning(tree, q, v):
    return [v[1][0] * v[1][0]]

def said_without(**arguments):
    try:
        rk.sweep(robot, **run, **arguments)
    except rk.MissingDependency as error:
        return str(error)
    raise AssertionError(arguments)

memory = rk.sweep(robot, **run, workers=0)
assert repr(memory.table().to_pylist()[3]) == repr(memory.row(3)) and memory.failures.num_rows == 0
assert memory.worst("greatest_speed", 2).column_names == list(memory.columns)
assert memory.rows(np.array(["failure", "row"])).column_names == ["failure", "row"]
assert memory.replay(4).summary["same_bits"]
memory.report("page.html")
own = rk.Measure(turning, "max")
assert (rk.sweep(robot, **run, measures=[own]).rows()["turning"] > 0.0).all()
for how in ({"workers": 0}, {"workers": 2}, {"resume": True}):
    said = said_without(**how, out="folder")
    for words in ("out=FOLDER, -o FOLDER", "without a folder", "pip install 'robokit[sweep]'"):
        assert words in said, said
assert main(["sweep", "double_pendulum", "--count", "3", "--workers", "0", "-o", "folder"]) == 1
assert not os.path.exists("folder")
assert not {"dask", "distributed", "pyarrow"} & set(sys.modules)

absent.discard("pyarrow")
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
rk.sweep(robot, **run, out="whole", chunk=2, workers=0)
folder = rk.open_sweep("folder")
assert len(folder) == 6 and repr(folder.rows().to_pylist()) == repr(memory.rows().to_pylist())
assert main(["replay", "folder", "worst:greatest_speed", "--no-open"]) == 0
for how in ({"measures": [own], "workers": 0}, {"workers": 2}):
    assert "pip install 'robokit[sweep]'" in said_without(**how, out=f"needs{len(how)}", chunk=2)
assert not {"dask", "distributed"} & set(sys.modules)

absent.add("pyarrow")
for name in [name for name in sys.modules if name.partition(".")[0] == "pyarrow"]:
    del sys.modules[name]
for read in (rk.Sweep.rows, rk.Sweep.table, len, lambda sweep: sweep.replay(0)):
    try:
        read(rk.open_sweep("folder"))
    except rk.MissingDependency as error:
        assert "needs pyarrow" in str(error)
    else:
        raise AssertionError(read)
"""


def test_what_is_needed_in_memory_and_in_a_folder(tmp_path):
    """Interrupted and resumed without Dask, a folder has the bytes of one that was not disturbed."""
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        timeout=waiting.PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    undisturbed = contents(tmp_path / "whole")
    assert len(undisturbed) == 4 and contents(tmp_path / "folder") == undisturbed


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
