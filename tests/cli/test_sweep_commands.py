"""The commands sweep and replay: arguments, messages, exit status, and what they write."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pytest

import robokit as rk
from robokit.cli import main
from robokit.sweeps.distributions import distribution_text, read_distribution

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "sweeps"))
import sweep_robots


@pytest.mark.parametrize(
    "text, expected",
    [
        ("0.5", rk.sweeps.distributions.Constant(0.5)),
        ("0:20", rk.Uniform(0.0, 20.0)),
        ("-90:90", rk.Uniform(-90.0, 90.0)),
        ("uniform:1:2", rk.Uniform(1.0, 2.0)),
        ("normal:1:0.1", rk.Normal(1.0, 0.1)),
        ("normal:1:0.1:0.8:1.2", rk.Normal(1.0, 0.1, 0.8, 1.2)),
        ("choice:a,b", rk.Choice(["a", "b"])),
        ("choice:1,2.5", rk.Choice([1.0, 2.5])),
        ("grid:0:20:11", rk.Grid(0.0, 20.0, 11)),
        ("grid:1,2,5", rk.Grid([1.0, 2.0, 5.0])),
        ("sobol:0:1", rk.Sobol(0.0, 1.0)),
    ],
)
def test_values_are_read_as_they_are_written(text, expected):
    found = read_distribution(text)
    assert found == expected and type(found) is type(expected)
    assert distribution_text(found)


def test_degrees_become_radians():
    assert read_distribution("0:180", math.pi / 180.0) == rk.Uniform(0.0, math.pi)
    assert distribution_text(rk.Uniform(0.0, math.pi), math.pi / 180.0) == "0 to 180"


@pytest.mark.parametrize(
    "text", ["", ":", "1:", "0:1:2", "normal:1", "grid:0:1", "grid:0:1:2.5", "choice:", "1,2"]
)
def test_values_that_are_none_are_refused(text):
    with pytest.raises(rk.ShapeError, match="grid:0:20:11"):
        read_distribution(text)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("sweep")
    file = place / "hopper.urdf"
    file.write_text(sweep_robots.HOPPER.format(name="hopper"))
    arguments = f"sweep {file} --count 6 --tilt 0:20 --direction -90:90 --duration 0.01 --measure peak_force"
    assert main([*arguments.split(), "--workers", "0", "-o", str(place / "falls")]) == 0
    return place / "falls"


def test_a_sweep_is_written_and_goes_on(folder, capsys):
    found = rk.open_sweep(folder)
    assert len(found) == found.recipe.count == 6
    tilt = found.table(["tilt"])["tilt"].to_numpy()
    assert 0.0 <= tilt.min() < tilt.max() <= math.radians(20.0)
    assert main(["sweep", "--resume", str(folder)]) == 0
    out = capsys.readouterr().out
    assert "computed      0 rows" in out and "0 to 20 deg" in out
    assert all(len(line) <= 80 for line in out.splitlines() if str(folder) not in line)


def test_servos_hold_the_start_with_the_gains_of_their_row(tmp_path, capsys):
    file = tmp_path / "hopper.urdf"
    file.write_text(sweep_robots.HOPPER.format(name="hopper"))
    arguments = f"sweep {file} --base fixed --no-ground --count 3 --duration 0.01 --dt 0.001 --workers 0"
    servos = "--kp 40:80 --kd 2 --effort 0.5 --set kp:hip=2 --set target:hip=0.3 --measure energy"
    assert main([*arguments.split(), *servos.split(), "-o", str(tmp_path / "held")]) == 0
    assert "kp            40 to 80" in capsys.readouterr().out
    found = rk.open_sweep(tmp_path / "held")
    for k in range(3):
        row = found.row(k)
        robot = rk.load_urdf(file)
        by_hand = rk.PD(kp=2.0 * row["kp"], kd=2.0, effort=0.5 * robot.joint("hip").effort, target=0.3)
        run = rk.simulate(
            robot, robot.neutral(), duration=0.01, dt=1e-3, actuators=by_hand, reproducible=True
        )
        np.testing.assert_array_equal(found.replay(k).q, run.q)
        assert 40.0 <= row["kp"] <= 80.0 and run.q[-1, 0] > 0.0


@pytest.mark.slow
def test_a_row_is_shown_again(folder, tmp_path, capsys):
    page = tmp_path / "row.html"
    assert main(["replay", str(folder), "3", "-o", str(page), "--no-open"]) == 0
    out = capsys.readouterr().out
    assert "the bits of the sweep" in out and page.stat().st_size > 10_000
    assert main(["replay", str(folder), "worst:peak_force", "-o", str(page), "--no-open"]) == 0


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["sweep"], "give a robot"),
        (["sweep", "humanoid", "--resume", "x"], "give a robot"),
        (["sweep", "humanoid", "--tilt", "1:2:3", "--count", "2"], "--tilt"),
        (["sweep", "humanoid", "--set", "weight=1", "--count", "2"], "weight"),
        (["sweep", "humanoid", "--set", "mass", "--count", "2"], "NAME=VALUES"),
        (["sweep", "humanoid", "--set", "tilt=1", "--tilt", "1", "--count", "2"], "already"),
        (["sweep", "humanoid", "humanoid", "--count", "2"], "twice"),
        (["sweep", "humanoid"], "count"),
        (["sweep", "humanoid", "--effort", "0.5", "--count", "2"], "effort: there are no servos"),
        (["sweep", "humanoid", "--set", "target:left_knee=1", "--count", "2"], "--kp 100"),
        (["sweep", "humanoid", "--kd", "5", "--set", "kp:left_knee=2", "--count", "2"], "give --kp, too"),
        (["sweep", "humanoid", "--kp", "0:100", "--count", "2"], "kp: expected values above 0"),
        (["replay", "no_such_folder", "1"], "no_such_folder"),
        (["replay", ".", "1"], "no sweep.json"),
    ],
)
def test_a_command_that_makes_no_sense_is_one_line(arguments, words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    message = capsys.readouterr().err
    assert words in message and "Traceback" not in message and message.count("\n") == 1


def test_rows_that_are_not_there_are_refused(folder, capsys):
    assert main(["replay", str(folder), "6"]) == 2
    assert "0 to 5" in capsys.readouterr().err
    assert main(["replay", str(folder), "worst:speed_of_light"]) == 2
    assert "speed_of_light" in capsys.readouterr().err


def test_parameters_and_measures_are_listed(capsys):
    assert main(["sweep", "--list"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in (*rk.sweep_parameters, *rk.measures))
    assert max(map(len, out.splitlines())) <= 80
