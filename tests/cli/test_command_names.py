"""Names of commands, options and robots: the nearest ones are said, and wrong ones end with status 2."""

from __future__ import annotations

import os
import sys

import pytest

import robokit as rk
from robokit import robot_names
from robokit.cli import main

TINY = "<robot name='tiny'><link name='a'><inertial><mass value='1'/>" + (
    "<inertia ixx='1' iyy='1' izz='1' ixy='0' ixz='0' iyz='0'/></inertial></link></robot>"
)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(capsys, *argv):
    try:
        status = main(list(map(str, argv)))
    except SystemExit as ended:
        status = ended.code
    out, err = capsys.readouterr()
    return status, out, err


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("fal",), "did you mean fall?"),
        (("fall", "humanoyd"), "did you mean 'humanoid'?"),
        (("fall", "nosuch"), "no robot named 'nosuch'; known: arm, chain"),
        (("info", "nosuch.urdf"), "no file 'nosuch.urdf'"),
        (("view", "nosuch"), "no robot named"),
        (("cost", "nosuch"), "no robot named"),
        (("parity", "nosuch"), "no robot named"),
        (("sweep", "nosuch", "--count", "2"), "no robot named"),
        (("fall", "arm", "--duraton", "3"), "unrecognized arguments: --duraton 3; did you mean --duration"),
        (("fall", "arm", "--friction", "0.2"), "unrecognized arguments: --friction 0.2\n"),
        (("fall", "arm", "--package-dir", "nosuch"), "argument --package-dir: there is no folder 'nosuch'"),
        (("fall", "arm", "--png", "a.png", "--at", "3", "--duration", "0.2"), "--at 3: the run takes 0.2 s"),
        (("view", "arm", "--base", "flying"), "did you mean floating?"),
        (("fall", "arm", "--dt", "0"), "fall: error: argument --dt: expected a positive number, got '0'"),
        (("info", "arm", "chain"), "robokit info: error: unrecognized arguments: chain"),
    ],
)
def test_a_name_that_does_not_exist_is_wrong_usage_and_says_the_nearest(argv, said, capsys):
    status, out, err = run(capsys, *argv)
    assert status == 2 and not out and said in err and "Traceback" not in err
    assert len(err.splitlines()) == 1  # without all options above it


def test_falls_of_two_robots_are_two_pages(capsys, here):
    for name in ("arm", "double_pendulum"):
        assert run(capsys, "simulate", name, "--duration", "0.01", "--no-open")[0] == 0
    assert sorted(os.listdir(here)) == ["arm_simulate.html", "double_pendulum_simulate.html"]


def test_a_robot_of_the_examples_is_found_by_its_name_alone(monkeypatch, here):
    (here / "g1_29dof.urdf").write_text(TINY)
    monkeypatch.setattr(robot_names, "example_robots", lambda: {"g1": here / "g1_29dof.urdf"})
    assert rk.find_robot("g1") == here / "g1_29dof.urdf"
    assert rk.find_robot("humanoid").name == "humanoid.urdf"
    with pytest.raises(rk.UnknownName, match="did you mean 'g1'"):
        rk.find_robot("g11")
    monkeypatch.setattr(robot_names, "example_robots", dict)
    with pytest.raises(rk.UnknownName, match="pip install example-robot-data"):
        rk.find_robot("g1")


@pytest.fixture
def descriptions(here, monkeypatch):
    """A package robot_descriptions of three robots; find_robot lets git use no network for them."""
    package = here / "lib" / "robot_descriptions"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (here / "tiny.urdf").write_text(TINY)
    (package / "tiny_description.py").write_text(
        "import os\nassert os.environ['GIT_ALLOW_PROTOCOL'] == 'file'\nprint('Cloning ...')\n"
        f"URDF_PATH = {str(here / 'tiny.urdf')!r}\n"
    )
    (package / "tiny_mj_description.py").write_text("MJCF_PATH = 'a.xml'\n")
    (package / "far_description.py").write_text("raise OSError('transport https not allowed')\n")
    monkeypatch.syspath_prepend(str(here / "lib"))
    monkeypatch.delenv("GIT_ALLOW_PROTOCOL", raising=False)
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "robot_descriptions"]:
        del sys.modules[name]


def test_a_robot_of_robot_descriptions_comes_from_its_cache(descriptions, here, capsys):
    assert list(robot_names.described_robots()) == ["far", "tiny", "tiny_mj"]
    for name in ("tiny", "tiny_description"):
        assert rk.find_robot(f"robot_descriptions:{name}") == here / "tiny.urdf"
    assert not capsys.readouterr().out and "GIT_ALLOW_PROTOCOL" not in os.environ
    status, out, err = run(capsys, "info", "robot_descriptions:tiny")
    assert status == 0 and out.split()[0] == "tiny" and not err
    status, _, err = run(capsys, "info", "robot_descriptions:far")
    assert status == 2 and "could not (OSError: transport https not allowed); is the network there?" in err
    assert "python -c 'import robot_descriptions.far_description'" in err
    status, _, err = run(capsys, "info", "robot_descriptions:tinny")
    assert status == 2 and "did you mean 'tiny'" in err
    assert "robot_descriptions:NAME" in run(capsys, "robots")[1]


def test_without_the_package_it_is_said_what_to_install(monkeypatch, capsys):
    monkeypatch.setattr(robot_names, "described_robots", dict)
    status, _, err = run(capsys, "info", "robot_descriptions:g1")
    assert status == 1 and "pip install robot_descriptions" in err
