"""The report of a sweep: its page, and the recipe in words."""

from __future__ import annotations

import math
import os

import sweep_robots

import robokit as rk
from robokit.cli import main
from robokit.sweeps.distributions import Choice, Constant, Grid, Normal, Sobol, Uniform
from robokit.sweeps.make_recipe import make_recipe
from robokit.sweeps.report import distribution_words, recipe_words


def test_a_recipe_in_words_says_what_was_drawn():
    recipe = make_recipe(
        sweep_robots.hopper(),
        starts={"tilt": Uniform(0.0, math.pi / 6)},
        parameters={"mass": Normal(1.0, 0.1, low=0.5), "friction": Grid(0.2, 0.8, 4)},
        duration=0.1,
        count=1000,
        ground=rk.Ground(),
        measures=["peak_load"],
    )
    words = dict(recipe_words(recipe))
    assert words["robot"].startswith("hopper: 6 kg, 7 dof, floating base")
    assert words["rows"] == "1 000 of 0.1 s each" and words["tilt"] == "uniform, 0 to 30°"
    assert words["mass"] == "normal, 1 ± 0.1, from 0.5"
    assert words["friction"] == "grid of 4: 0.2, 0.4, 0.6, 0.8" and words["ground"] == "a plane"
    assert distribution_words(Sobol(-1.0, 2.0), "m") == "Sobol sequence, −1 to 2 m"
    assert distribution_words(Constant(3.0), "N s") == "3 N s"
    assert distribution_words(Choice(["a", "b"], [1.0, 3.0]), "") == "one of a (25 %), b (75 %)"


def test_a_report_of_a_small_sweep_without_replay(swings, tmp_path):
    assert rk.open_sweep(swings).report(tmp_path / "page", replay=False).suffix == ".html"


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
