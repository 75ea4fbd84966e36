"""robokit fall and robokit simulate: bad steps, Ctrl-C, what the output says about steps, base and times."""

import re
from pathlib import Path

import pytest

import robokit as rk
from robokit.cli import main

SHORT = ("--duration", "0.05", "--no-open")


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def run(capsys, *argv):
    """(exit status, standard output, standard error)"""
    status = main([str(a) for a in argv])
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    # Energies of a run that broke down have more digits than fit.
    assert status == 3 or max(map(len, out.splitlines()), default=0) <= 80
    return status, out, err


@pytest.mark.parametrize(
    "argv",
    [
        ("simulate", "double_pendulum", "--dt", "1.5", "--duration", "1000"),
        ("simulate", "double_pendulum", "--dt", "2", "--duration", "1000"),
    ],
    ids=" ".join,
)
def test_a_run_that_breaks_down_ends_with_status_3_and_its_page(capsys, argv):
    status, out, err = run(capsys, *argv, "--no-open", "-o", "x.html")
    assert status == 3 and Path("x.html").stat().st_size > 100_000 and "until it broke down" in out
    (said,) = [line for line in err.splitlines() if "warning" not in line]
    # When, which body, what to do; nothing of Python.
    assert "t = " in said and "link '" in said and "try --dt " in said and "trajectory" not in said


def test_the_time_step_and_the_base_are_said(capsys, tmp_path):
    _, out, _ = run(capsys, "simulate", "double_pendulum", *SHORT, "-o", "x.html")
    assert re.search(r"time step +1 ms, chosen for the robot", out) and "fixed base, 2 degrees" in out
    _, out, _ = run(capsys, "simulate", "double_pendulum", *SHORT, "--dt", "5e-4", "-o", "x.html")
    assert "chosen" not in out and "steps of 0.5 ms" in out


def stopped_at(instant):
    """rk.simulate whose user presses Ctrl-C at an instant [s]."""
    simulate = rk.simulate

    def simulated(robot, q0, **options):
        def controller(t, q, v):
            if t > instant:
                raise KeyboardInterrupt
            return [0.0] * robot.nv

        return simulate(robot, q0, controller=controller, **options)

    return simulated


@pytest.mark.parametrize(
    "argv", [("simulate", "double_pendulum"), ("fall", "quadruped", "--no-live", "--no-self-collision")]
)
def test_ctrl_c_writes_what_was_computed_and_ends_with_130(capsys, tmp_path, monkeypatch, argv):
    monkeypatch.setattr(rk, "simulate", stopped_at(0.021))
    files = ("-o", "x.html", "--save", "x.npz")
    status, out, err = run(capsys, *argv, *SHORT, *files)
    assert status == 130 and "interrupted at t = 0.02" in err
    assert (tmp_path / "x.html").stat().st_size > 100_000 and "x.html" in out
    assert 0.01 < rk.Trajectory.load(tmp_path / "x.npz").t[-1] < 0.04


def test_ctrl_c_while_the_page_is_written_writes_it_again(capsys, tmp_path, monkeypatch):
    written, write = [], rk.Trajectory.to_html

    def to_html(self, path, **options):
        written.append(path)
        if len(written) == 1:
            raise KeyboardInterrupt
        return write(self, path, **options)

    monkeypatch.setattr(rk.Trajectory, "to_html", to_html)
    status, out, err = run(capsys, "simulate", "double_pendulum", *SHORT, "-o", "x.html", "--save", "x.npz")
    assert (
        status == 130
        and "everything was computed: writing the results" in err
        and "x.html" in out
        and len(written) == 2
    )
    assert (tmp_path / "x.html").stat().st_size > 100_000 and len(rk.Trajectory.load(tmp_path / "x.npz")) > 1


def test_ctrl_c_before_the_first_step_writes_nothing(capsys, tmp_path, monkeypatch):
    def compiling(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(rk, "simulate", compiling)
    status, out, err = run(capsys, "simulate", "double_pendulum", *SHORT, "-o", "x.html")
    assert status == 130 and not out and "interrupted before" in err and not list(tmp_path.iterdir())


def test_ctrl_c_anywhere_else_ends_with_130(capsys, monkeypatch):
    monkeypatch.setattr("robokit.find_robot", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
    status, out, err = run(capsys, "info", "arm")
    assert status == 130 and not out and err == "robokit: interrupted\n"


def test_times_tell_compiling_from_stepping(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("ROBOKIT_CACHE_DIR", str(tmp_path / "cache"))
    for cold in (True, False):
        _, out, _ = run(capsys, "simulate", "double_pendulum", *SHORT, "-o", "x.html")
        line = next(line for line in out.splitlines() if line.startswith("  time   "))
        assert (" s compiling, " in line) is cold and " s stepping, " in line and "everything else" in line


def test_a_fall_needs_a_floating_base(capsys):
    status, out, err = run(capsys, "fall", "arm", "--base", "fixed")
    assert status == 2 and not out and "leave out --base fixed" in err


def test_a_duration_without_end_is_refused(capsys):
    status, _, err = run(capsys, "simulate", "double_pendulum", "--duration", "1e12")
    assert status == 2 and "at most 100,000 s" in err
