"""robokit log, robokit identify and robokit view --live --joint-states."""

import numpy as np
import pytest

import robokit as rk
from robokit.cli import main

NAMES = ("upper_joint", "lower_joint")
LOG = ["log", "run.csv", "--robot", "double_pendulum", "--no-open"]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def swing():
    """A pendulum with a heavier link than described, moved by torques."""
    robot = rk.load_urdf(rk.find_robot("double_pendulum"))
    real = robot.with_inertias(robot.inertial_parameters * np.array([1.0, 1.0, 1.5])[:, None])
    push = rk.Torque(lambda t, q, v: [4 * np.sin(5 * t), 3 * np.sin(9 * t)])
    return rk.simulate(real, [0.5, 0.3], duration=2.0, actuators=push, record_every=2)


def write(path, run, efforts=True):
    tau = 0.5 * (run.actuator_force + np.vstack([run.actuator_force[1:], run.actuator_force[-1:]]))
    columns = [run.t, *run.q.T, *(tau.T if efforts else ())]
    header = ["time", *NAMES, *(f"{name}_effort" for name in NAMES if efforts)]
    np.savetxt(path, np.column_stack(columns), delimiter=",", header=",".join(header), comments="")
    return path


def test_log_writes_a_page_and_says_what_stays_unexplained(here, swing, capsys):
    write("run.csv", swing)
    assert main([*LOG, "-o", "a.html", "--save", "b.npz"]) == 0
    out, err = capsys.readouterr()
    assert all(len(line) <= 80 for line in out.splitlines())
    assert "double_pendulum: 2 s, 1001 samples at 500 Hz" in out and "2 with efforts" in out
    assert "Torque that the model cannot explain" in out and "Simulation from the same start" in out
    assert "no velocities of any joint" in err
    page = (here / "a.html").read_text()
    assert all(text in page for text in ("unexplained torque", "upper_joint: torque", "simulation"))
    assert len(rk.Trajectory.load("b.npz").t) == 1001


def test_log_without_efforts_or_simulation(here, swing, capsys):
    write("run.csv", swing, efforts=False)
    assert main([*LOG, "--start", "0.5", "--end", "1"]) == 0
    assert "no efforts in the log" in capsys.readouterr().out
    assert main([*LOG, "--no-simulation"]) == 0
    assert "Simulation" not in capsys.readouterr().out
    assert (here / "double_pendulum_log.html").exists()


def test_identify_writes_a_better_robot(here, swing, capsys):
    write("run.csv", swing)
    command = ["identify", "run.csv", "--robot", "double_pendulum", "--no-friction", "-o", "better.urdf"]
    assert main(command) == 0
    out = capsys.readouterr().out
    assert all(len(line) <= 80 for line in out.splitlines())
    assert "condition number" in out and "Residuals" in out and "better.urdf" in out
    better = rk.load_urdf("better.urdf")
    q, v, a = np.random.default_rng(0).normal(size=(3, 50, 2))
    wanted, found = (rk.rnea(robot, q, v, a) for robot in (swing.robot, better))
    assert np.abs(found - wanted).max() < 0.03 * np.abs(wanted).max()


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["log", "run.csv"], "does not describe its robot; give one: --robot ROBOT"),
        (["log", "none.csv", "--robot", "arm"], "there is no file 'none.csv'; give a CSV"),
        (["log", "none.csv"], "there is no file 'none.csv'; give a CSV"),
        (["log", "run.csv", "--robot", "arm"], "no column is named after a joint of the robot"),
        (["log", "run.csv", "--robot", "double_pendulum", "--missing", "hip=1"], "no joint named 'hip'"),
        (["identify", "still.csv", "--robot", "double_pendulum"], "no efforts"),
        (["view", "arm", "--live", "--joint-states", "none.jsonl", "--no-open"], "none.jsonl: No such file"),
        (["view", "arm", "--joint-states", "-"], "add --live"),
    ],
)
def test_what_cannot_be_done_is_one_line(here, swing, capsys, argv, said):
    write("run.csv", swing)
    write("still.csv", swing, efforts=False)
    assert main(argv) == 2
    err = capsys.readouterr().err
    assert said in err and "Traceback" not in err


def test_joint_states_from_standard_input_move_the_live_view(here, monkeypatch, capsys):
    import os

    shown = []
    monkeypatch.setattr("robokit.viewer.Viewer.display", lambda viewer, q: shown.append(q.tolist()))
    read, write = os.pipe()
    with open(write, "w") as lines:
        lines.write('{"name": ["upper_joint"], "position": [0.1]}\nx\n{"lower_joint": 0.3}\n')
    with open(read) as file:
        monkeypatch.setattr("sys.stdin", file)
        assert main(["view", "double_pendulum", "--live", "--joint-states", "-", "--no-open"]) == 0
    out, err = capsys.readouterr()
    assert "2 states shown, 1 bad line skipped" in out and "line 2 skipped: no JSON" in err
    assert shown[-1] == [0.1, 0.3]
