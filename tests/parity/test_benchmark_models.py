"""The MuJoCo models of the benchmarks: the limits of the file, and the motion of robokit."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import robokit as rk

pytestmark = pytest.mark.parity

ROBOTS = ("example-robot-data:g1", "humanoid", "quadruped")


@pytest.fixture
def benchmarks(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[2] / "benchmarks"))
    yield
    for name in ("simulation", "mujoco_model", "agree", "measure"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("name", ROBOTS)
def test_mujoco_has_the_limits_of_the_file(benchmarks, name):
    from mujoco_model import model_on_a_plane

    robot = rk.load_urdf(rk.find_robot(name), base="floating")
    model = model_on_a_plane(robot, 1e-3, {})
    limited = [j for j in robot.joints if np.isfinite(j.upper - j.lower)]
    assert len(limited) >= 12
    for joint in limited:
        theirs = model.joint(joint.name)
        assert theirs.limited[0] and theirs.range == pytest.approx([joint.lower, joint.upper])


@pytest.mark.parametrize("name", ROBOTS)
def test_mujoco_swings_as_robokit_does(benchmarks, name):
    from simulation import ALIKE, swing

    assert swing(name) <= ALIKE


def test_locked_joints_would_be_noticed(benchmarks, monkeypatch):
    import simulation

    in_radians = simulation.model_on_a_plane

    def in_degrees(robot, timestep, damping):
        model = in_radians(robot, timestep, damping)
        model.jnt_range *= np.pi / 180.0
        return model

    monkeypatch.setattr(simulation, "model_on_a_plane", in_degrees)
    with pytest.raises(simulation.Disagreement, match="constraints act at the start"):
        simulation.swing("humanoid")
