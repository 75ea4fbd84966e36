"""robokit collisions: what it lists, in words and as JSON, and what it refuses."""

from __future__ import annotations

import json

import pytest

import robokit as rk
from robokit.cli import main


def test_lists_contacts_and_the_nearest_others(capsys):
    robot = rk.load_urdf(rk.find_robot("humanoid"), base="floating")
    q = robot.configuration({"left_elbow": 2.4, "left_shoulder_yaw": 0.5})
    found = rk.collisions(robot, q, margin=0.02)
    joints = ["--joint", "left_elbow=2.4", "--joint", "left_shoulder_yaw=0.5"]
    given = ["collisions", "humanoid", "--base", "floating", *joints, "--margin", "0.02"]
    assert main(given) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"humanoid: {len(found)} of ") and "nearer than 0.02 m" in lines[0]
    assert [line.split(" m  ")[1] for line in lines[1 : 1 + len(found)]] == [f"{c.a}, {c.b}" for c in found]
    assert lines[1 + len(found)] == "the nearest others:"
    assert main([*given, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["collisions"]
    assert [(row["a"], row["b"], row["depth"]) for row in rows] == [(c.a, c.b, c.depth) for c in found]


def test_stands_on_the_ground(capsys):
    assert main(["collisions", "quadruped", "--base", "floating", "--at", "stand", "--ground"]) == 0
    out = capsys.readouterr().out
    assert "0.000000 m  ground, " in out
    height = ["--ground-height", "0.3"]
    assert main(["collisions", "quadruped", "--base", "floating", "--at", "stand", *height]) == 0
    assert "0.000000 m  ground, " in capsys.readouterr().out


def test_an_angle_in_degrees_is_said_to_be_beyond_the_limits(capsys):
    assert main(["collisions", "humanoid", "--joint", "left_elbow=140"]) == 0
    joint = rk.load("humanoid").joint("left_elbow")
    said = f"--joint left_elbow=140: outside of its limits, {joint.lower:.4g} to {joint.upper:.4g} rad"
    assert said in capsys.readouterr().err
    assert main(["collisions", "humanoid", "--joint", "left_elbow=-1.4"]) == 0
    assert not capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--at", "stnd"], "did you mean 'stand'"),
        (["--at", "stand"], "--base floating"),
        (["--joint", "left_elbw=1"], "left_elbow"),
        (["--joint", "left_elbow"], "NAME=VALUE"),
        (["--margin", "nan"], "finite number"),
    ],
)
def test_refuses(more, words, capsys):
    try:
        status = main(["collisions", "humanoid", *more])
    except SystemExit as stop:  # of argparse
        status = stop.code
    assert status in (1, 2) and words in capsys.readouterr().err
