"""A trajectory for those who take it elsewhere: tables, poses of links, centre of mass, short reprs."""

from __future__ import annotations

import builtins
import csv

import ladder
import numpy as np
import pytest
import sim_models as m

import robokit as rk


@pytest.fixture(scope="module")
def fallen():
    q = rk.standing_configuration(m.quadruped())
    q[6] += 0.1
    return rk.simulate(m.quadruped(), q, duration=0.1, dt=2e-3, ground=rk.Ground())


def test_link_poses_and_centre_of_mass_are_those_of_the_functions(fallen):
    robot = fallen.robot
    link = robot.link_names[-1]
    found, poses = fallen.link_poses(link), rk.forward_kinematics(robot, fallen.q)
    assert found.shape == (len(fallen), 4, 4)
    assert np.array_equal(found[:, :3, :3], poses[link][0]) and np.array_equal(
        found[:, :3, 3], poses[link][1]
    )
    assert (found[:, 3] == [0, 0, 0, 1]).all()
    assert np.array_equal(fallen.center_of_mass, rk.center_of_mass(robot, fallen.q))
    with pytest.raises(rk.UnknownName, match=f"did you mean .*{link}"):
        fallen.link_poses(link + "x")


def test_long_runs_go_through_in_pieces(fallen, monkeypatch):
    expected = fallen.link_poses(fallen.robot.link_names[-1])
    monkeypatch.setattr("robokit.sim.trajectory.POSES", 7)
    monkeypatch.setattr("robokit.sim.trajectory.ROWS", 7)
    assert np.allclose(fallen.link_poses(fallen.robot.link_names[-1]), expected, rtol=0, atol=1e-14)


def read(path):
    with open(path, newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    return header, np.array(rows, dtype=float)


def test_a_csv_has_every_digit_of_every_column_by_joint(fallen, tmp_path):
    header, rows = read(fallen.to_csv(tmp_path / "run"))
    robot, column = fallen.robot, dict(zip(header, rows.T, strict=True))
    assert len(column) == 1 + robot.nq + robot.nv + 4 + 6 + 3 and header[0] == "time"
    assert np.array_equal(column["time"], fallen.t)
    base, *hinges = robot.joints
    for k, part in enumerate(("qw", "qx", "qy", "qz", "px", "py", "pz")):
        assert np.array_equal(column[f"q/{base.name}/{part}"], fallen.q[:, k])
    for k, part in enumerate(("wx", "wy", "wz", "vx", "vy", "vz")):
        assert np.array_equal(column[f"v/{base.name}/{part}"], fallen.v[:, k])
    for joint in hinges:
        assert np.array_equal(column[f"q/{joint.name}"], fallen.q[:, joint.q_slice][:, 0])
        assert np.array_equal(column[f"v/{joint.name}"], fallen.v[:, joint.v_slice][:, 0])
    assert np.array_equal(column["energy/kinetic"], fallen.energy.kinetic)
    assert np.array_equal(column["momentum/lz"], fallen.momentum[:, 5])
    assert np.array_equal(column["contact_force/z"], fallen.contact_force[:, 2])


def test_every_kind_of_joint_and_odd_names_have_columns(tmp_path):
    robot = ladder.random_tree(0, "floating", n=len(ladder.ALL_KINDS))
    run = rk.simulate(robot, robot.neutral(), duration=2e-3, dt=1e-3, integrator="contact")
    header, rows = read(run.to_csv(tmp_path / "kinds"))
    assert len(header) == len(set(header)) == 1 + robot.nq + robot.nv + 4 + 6 and rows.shape[0] == len(run)
    odd = rk.ModelBuilder("odd").link("a").link("b", 1.0, (0, 0, -1), np.eye(3))
    odd = odd.joint('hip, "left"', "revolute", "a", "b", axis=(0, 1, 0)).build()
    run = rk.simulate(odd, [0.1], [0.0], duration=2e-3, dt=1e-3, controller=lambda t, q, v: [0.5])
    header, _ = read(run.to_csv(tmp_path / "odd"))
    assert header[1] == 'q/hip, "left"' and 'tau/hip, "left"' in header


@pytest.mark.parity
def test_a_dataframe_is_the_same_table(fallen, tmp_path, monkeypatch):
    import pandas

    table = fallen.to_dataframe()
    header, rows = read(fallen.to_csv(tmp_path / "run"))
    assert list(table.columns) == header and np.array_equal(table.to_numpy(), rows)
    assert isinstance(table, pandas.DataFrame)
    usual = builtins.__import__

    def without(name, *more):
        if name == "pandas":
            raise ImportError(name)
        return usual(name, *more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(rk.MissingDependency, match="pip install pandas"):
        fallen.to_dataframe()


def test_without_its_robot_a_trajectory_says_what_to_do(fallen, tmp_path):
    lost = rk.Trajectory(**{f: getattr(fallen, f) for f in ("t", "q", "v", "energy", "momentum")},
                         contact_force=fallen.contact_force, robot=None)  # fmt: skip
    for ask in (lost.to_dataframe, lambda: lost.to_csv(tmp_path / "x"), lambda: lost.link_poses("a"),
                lambda: lost.center_of_mass):  # fmt: skip
        with pytest.raises(rk.RobokitError, match=r"needs the robot: Trajectory\.load\(path, robot="):
            ask()
    assert not list(tmp_path.iterdir())


def test_reprs_are_short(fallen):
    robot = fallen.robot
    frames = rk.Keyframes(np.arange(500.0), robot.joint_names[1:], np.zeros((500, robot.nq - 7)))
    rolled = rk.rollout(robot, np.tile(fallen.q[0], (3, 1)), duration=4e-3, dt=2e-3, ground=rk.Ground())
    for thing in (
        fallen, fallen.energy, fallen.contacts, fallen.step_forces, fallen.step_facts, frames, rolled,
        fallen.sensors.imu(robot.link_names[0]), fallen.sensors.joint_force(robot.joint_names[2]),
        rk.centroidal_momentum_derivatives(robot, fallen.q[0], fallen.v[0], fallen.v[0], engine="python"),
        rk.HeightField(np.zeros((30, 30)), 0.1),
    ):  # fmt: skip
        assert "\n" not in repr(thing) and len(repr(thing)) < 400
    energy = fallen.energy
    assert f"kinetic {energy.kinetic[0]:.4g} to {energy.kinetic[-1]:.4g}" in repr(energy)
