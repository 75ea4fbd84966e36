"""Every robot loads in robokit without a word, and in the other programs with the same numbers."""

from __future__ import annotations

import numpy as np
import pytest

import robokit as rk

NV = {"humanoid": 31, "quadruped": 12, "arm": 7, "double_pendulum": 2, "four_bar": 3, "chain": 100}


@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_robokit_loads_it_without_diagnostics(robot_file, base):
    robot = rk.load_urdf(robot_file.path, base=base)
    assert robot.diagnostics == []
    assert robot.nv == NV[robot.name] + (6 if base == "floating" else 0)
    loops = len(robot_file.root.findall("loop_joint"))
    assert len(robot.loop_joints) == loops


def test_robokit_stands_the_humanoid_at_its_height(humanoid):
    robot = rk.load_urdf(humanoid.path, base="floating")
    assert robot.total_mass == pytest.approx(75, abs=1e-6)
    _, com, _ = humanoid.whole(humanoid.bodies)
    np.testing.assert_allclose(rk.center_of_mass(robot, robot.neutral()), com, atol=1e-9)


@pytest.mark.parity
def test_pinocchio_reads_it(robot_file):
    pin = pytest.importorskip("pinocchio")
    model = pin.buildModelFromUrdf(str(robot_file.path), pin.JointModelFreeFlyer())
    assert model.nv == NV[robot_file.path.stem] + 6
    data = model.createData()
    com = pin.centerOfMass(model, data, pin.neutral(model))
    mass, expected, inertia = robot_file.whole(robot_file.bodies)
    assert pin.computeTotalMass(model) == pytest.approx(mass)
    np.testing.assert_allclose(com, expected, atol=1e-9)
    pin.ccrba(model, data, pin.neutral(model), np.zeros(model.nv))
    np.testing.assert_allclose(data.Ig.inertia, inertia, rtol=1e-9, atol=1e-9)


@pytest.mark.parity
def test_mujoco_reads_it(robot_file):
    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_path(str(robot_file.path))
    assert model.nv == NV[robot_file.path.stem]
    for joint in robot_file.root.findall("joint"):
        if joint.get("type") == "revolute":
            limit = joint.find("limit")
            expected = float(limit.get("lower")), float(limit.get("upper"))
            np.testing.assert_allclose(model.joint(joint.get("name")).range, expected, atol=1e-9)
