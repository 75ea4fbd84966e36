"""Measures of the user's own: kept with the recipe, run only where a sweep goes on."""

from __future__ import annotations

import importlib
import json
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest
import sweep_robots

import robokit as rk
from robokit.cli import main
from robokit.sweeps.distributions import Uniform
from robokit.sweeps.folder import SweepFile, read_sweep_file
from robokit.sweeps.recipe import Recipe, StoredMeasure, make_recipe


@pytest.mark.slow
def test_a_measure_of_ones_own_is_kept_with_the_recipe(robot):
    @rk.function(inputs=("q", "v"), outputs={"turning": ()})
    def turning(tree, q, v):
        return [v[1][0] * v[1][0] + v[1][1] * v[1][1] + v[1][2] * v[1][2]]

    measure = rk.Measure(turning, "max", unit="1/s^2")
    starts = {"spin": Uniform(1.0, 5.0)}
    recipe = make_recipe(robot, starts=starts, ground=None, measures=[measure], count=3, duration=0.004)
    again = Recipe.from_json(recipe.to_json())
    assert again.hash == recipe.hash and again.to_json() == recipe.to_json()
    table = again.compute(0, 3)
    assert np.allclose(table["turning"], np.square(table["spin"]), rtol=1e-3)
    assert table.field("turning").metadata[b"unit"] == b"1/s^2"
    assert Recipe.from_json(recipe.to_json()).compute(0, 0).num_rows == 0


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
    assert "--resume executes the code of its user-defined measures (rk.Measure)" in said


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
