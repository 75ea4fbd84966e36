"""Saving and loading trajectories."""

import numpy as np
import pytest
import sim_models as m

import robokit as rk


def _same(a, b):
    for name in ("t", "q", "v", "momentum", "contact_force"):
        assert np.array_equal(getattr(a, name), getattr(b, name)), name
    for name in ("kinetic", "potential", "dissipated", "work", "total"):
        assert np.array_equal(getattr(a.energy, name), getattr(b.energy, name)), name
    assert a.summary == b.summary


def test_round_trip_reloads_the_robot(tmp_path):
    robot = m.humanoid()
    q = rk.standing_configuration(robot)
    trajectory = rk.simulate(
        robot, q, duration=0.05, ground=rk.Ground(friction={"left_foot": 0.3}, height=-0.01)
    )
    path = trajectory.save(tmp_path / "fall")
    assert path.name == "fall.npz"
    loaded = rk.Trajectory.load(path)
    _same(trajectory, loaded)
    assert loaded.robot.joint_names == robot.joint_names and loaded.robot.base == "floating"
    assert loaded.ground == trajectory.ground
    assert np.array_equal(loaded.contacts.forces, trajectory.contacts.forces)
    assert loaded.contacts.links == trajectory.contacts.links
    assert loaded.report() == trajectory.report()


def test_robot_comes_from_the_kept_text_when_its_file_is_gone(tmp_path):
    file = tmp_path / "p.urdf"
    file.write_text((m.ROBOTS / "double_pendulum.urdf").read_text())
    trajectory = rk.simulate(rk.load_urdf(file), [0.1, 0.2], duration=0.02, gravity=(0, 0, -1.62))
    path = trajectory.save(tmp_path / "t.npz")
    file.unlink()
    loaded = rk.Trajectory.load(path)
    assert loaded.robot is not None and loaded.robot.gravity[2] == -1.62


def test_robot_of_code_is_given_or_missing(tmp_path):
    trajectory = rk.simulate(m.box(), duration=0.02, controller=lambda t, q, v: np.zeros(6))
    path = trajectory.save(tmp_path / "t.npz")
    loaded = rk.Trajectory.load(path)
    _same(trajectory, loaded)
    assert loaded.robot is None and "box" in repr(loaded)
    assert np.array_equal(loaded.tau, trajectory.tau)
    with pytest.raises(rk.RobokitError, match="robot="):
        loaded.to_html(tmp_path / "x.html")
    assert rk.Trajectory.load(path, robot=m.box()).robot is m.box()
    with pytest.raises(rk.ShapeError, match="fit"):
        rk.Trajectory.load(path, robot=m.double_pendulum())


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, a=np.zeros(3))
    with pytest.raises(rk.ShapeError, match="not a trajectory"):
        rk.Trajectory.load(path)
    path.write_text("nonsense")
    with pytest.raises(rk.ShapeError, match="not a trajectory"):
        rk.Trajectory.load(path)
    with pytest.raises(FileNotFoundError):
        rk.Trajectory.load(tmp_path / "none.npz")
