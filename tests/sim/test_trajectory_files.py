"""Saving and loading trajectories."""

import json

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


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A saved trajectory: its path."""
    run = rk.simulate(m.box(), rk.standing_configuration(m.box()), duration=0.02, ground=rk.Ground())
    return run.save(tmp_path_factory.mktemp("saved") / "t.npz")


def _cut(raw):
    return raw[: len(raw) // 2]


@pytest.mark.parametrize("damage", [_cut, lambda raw: b"", lambda raw: b"PK\x03\x04" + b"x" * 99])
def test_damaged_files_are_refused(saved, tmp_path, damage):
    path = tmp_path / "damaged.npz"
    path.write_bytes(damage(saved.read_bytes()))
    with pytest.raises(rk.RobokitError, match=r"damaged\.npz: not a trajectory"):
        rk.Trajectory.load(path)


@pytest.mark.parametrize(
    "change",
    [
        {"q": np.zeros(5)},
        {"q": np.zeros((2, 7))},
        {"energy_kinetic": np.zeros(3)},
        {"momentum": None},
        {"about": np.array("{}")},
        {"about": np.array("[1]")},
        {"about": np.array("no json")},
        {"about": np.array(json.dumps({"robot": None, "summary": {}, "ground": {"friction": -1.0}}))},
        {"about": np.array(json.dumps({"robot": None, "summary": {}, "ground": {"colour": "red"}}))},
    ],
)
def test_files_with_wrong_contents_are_refused(saved, tmp_path, change):
    with np.load(saved) as data:
        arrays = {name: data[name] for name in data.files} | change
    path = tmp_path / "wrong.npz"
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})
    with pytest.raises(rk.RobokitError, match=r"wrong\.npz: not a trajectory"):
        rk.Trajectory.load(path)


def test_an_array_file_is_no_trajectory(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros(3))
    with pytest.raises(rk.RobokitError, match="not a trajectory"):
        rk.Trajectory.load(tmp_path / "a.npy")


def test_interrupted_and_failed_runs_can_be_saved(tmp_path):
    def controller(t, q, v):
        if t > 0.02:
            raise KeyboardInterrupt
        return np.zeros(2)

    run = rk.simulate(m.double_pendulum(), duration=1.0, controller=controller)
    loaded = rk.Trajectory.load(run.save(tmp_path / "stopped"))
    _same(run, loaded)
    assert loaded.summary["interrupted"] is True
    with pytest.raises(rk.SimulationError) as caught:
        rk.simulate(m.double_pendulum(), [0.3, 0.2], [1e200, 0.0], duration=0.1)
    kept = caught.value.trajectory
    assert len(rk.Trajectory.load(kept.save(tmp_path / "broken"))) == len(kept)
