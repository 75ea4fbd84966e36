"""robokit parity: figures, reasons, exit status."""

from __future__ import annotations

import dataclasses
import json

import pytest

import robokit as rk
from robokit.cli import main
from robokit.parity import ENGINES, QUANTITIES, compare

pytestmark = pytest.mark.parity


@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_agreement(base, capsys):
    assert main(["parity", "arm", "--base", base]) == 0
    out = capsys.readouterr().out
    assert all(f"{engine} " in out and "agrees" in out for engine in ENGINES)
    assert max(map(len, out.splitlines())) <= 80


def test_json(capsys):
    assert main(["parity", "double_pendulum", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [c["engine"] for c in found["engines"]] == list(ENGINES)
    for c in found["engines"]:
        assert c["agrees"] and set(c["errors"]) == set(QUANTITIES) and max(c["errors"].values()) < 1e-10


def test_refusal_of_an_engine_has_its_reason(capsys):
    assert main(["parity", "example-robot-data:icub"]) == 1
    out = capsys.readouterr().out
    assert "MuJoCo" in out and "cannot load the file" in out and "inertia" in out
    assert "Traceback" not in out


def test_another_robot_differs():
    path = rk.find_robot("double_pendulum")
    robot = rk.load_urdf(path)
    I = list(robot.tree.I)
    I[2] = I[2] + I[2]
    heavier = dataclasses.replace(robot, tree=dataclasses.replace(robot.tree, I=tuple(I)))
    for comparison in compare(path, heavier):
        assert not comparison.agrees and comparison.errors["H"] > 1e-3 and comparison.errors["mass"] > 1e-3
        assert comparison.errors["position"] < 1e-12


def test_mimics_are_said():
    path = rk.find_robot("example-robot-data:panda")
    for comparison in compare(path, rk.load_urdf(path), states=1):
        assert comparison.agrees and any(
            "mimic joints (1: 'panda_finger_joint2')" in note for note in comparison.notes
        )
