"""robokit parity without any engine, and with one that is robokit itself: figures, tables, exit status."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

import robokit as rk
from robokit import robot_names as catalog
from robokit.cli import main
from robokit.parity import QUANTITIES, compare, engines, plain_text
from robokit.parity.engines import Engine

COUPLED = """<robot name="coupled">
<link name="world"/>
<link name="a"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial></link>
<link name="b"><inertial><mass value="2"/><inertia ixx="1" iyy="2" izz="1"/></inertial></link>
<joint name="j" type="continuous"><parent link="world"/><child link="a"/><axis xyz="0 1 0"/></joint>
<joint name="k" type="continuous"><origin xyz="0.1 0 0.3"/><parent link="a"/><child link="b"/>
<axis xyz="0 1 0"/><mimic joint="j" multiplier="-2" offset="0.1"/></joint>
</robot>"""


def itself(spoilt=None):
    """An opener of an engine whose answers are robokit's own, one of them spoilt."""

    def opened(text, robot, changes):
        theirs = rk.loads_urdf(text, base=robot.base)

        def answers(x):
            poses = rk.forward_kinematics(theirs, x.q, engine="python")
            out = {
                "mass": np.array(theirs.total_mass),
                "H": rk.crba(theirs, x.q, engine="python"),
                "C": rk.bias_forces(theirs, x.q, x.v, engine="python"),
                "tau": rk.rnea(theirs, x.q, x.v, x.a, engine="python"),
                "CoM": rk.center_of_mass(theirs, x.q, engine="python"),
                "A_G": rk.centroidal_momentum_matrix(theirs, x.q, engine="python"),
                "rotation": poses.rotation,
                "position": poses.position,
            }
            if x.tau is not None:
                out["qdd"] = rk.aba(theirs, x.q, x.v, x.tau, engine="python")
            if spoilt is not None:
                out[spoilt] = out[spoilt] + 1e-3
            return out

        return answers

    return opened


def refuses(text, robot, changes):
    raise ValueError("bad\n inertia")


@pytest.fixture
def engine(monkeypatch):
    """Puts engines in the place of those that may be installed."""

    def put(**openers):
        found = {
            name: Engine("json", "no-such-package", "that of robokit", opened)
            for name, opened in openers.items()
        }
        monkeypatch.setattr(engines, "ENGINES", found)
        monkeypatch.setenv("ROBOKIT_ENGINE", "python")  # nothing to compile for

    return put


@pytest.fixture
def coupled(tmp_path):
    path = tmp_path / "coupled.urdf"
    path.write_text(COUPLED)
    return path


def test_nothing_to_compare_with(monkeypatch, capsys):
    monkeypatch.setattr(engines, "ENGINES", {"Absent": Engine("no_such_engine_module", "", "", refuses)})
    assert main(["parity", "double_pendulum"]) == 1
    assert "pip install pin or mujoco or drake" in capsys.readouterr().err


def test_one_robot(engine, capsys):
    engine(Same=itself(), Other=itself("C"), Strict=refuses)
    assert main(["parity", "double_pendulum", "--base", "floating", "--states", "2"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "2 states" in lines[0] and lines[2].split() == ["Same", "Other", "Strict"]
    table = {line.split()[0]: line.split()[1:] for line in lines[3 : 3 + len(QUANTITIES)]}
    assert list(table) == list(QUANTITIES)
    assert table["H"][2] == "-" and float(table["H"][1]) < 1e-14 < 1e-10 < float(table["C"][1])
    text = "\n".join(lines)
    assert "Same: agrees to 1e-10" in text and "Other: differs" in text
    assert "Strict: cannot load the file\n  - bad inertia" in text
    assert "base velocity is that of robokit" in text
    assert max(map(len, lines)) <= 80


def test_many_robots(engine, capsys, coupled):
    engine(Same=itself(), Other=itself("C"))
    broken = coupled.with_name("broken.urdf")
    broken.write_text("<robot name='r'/>")
    assert main(["parity", str(coupled.parent), "--base", "both", "--states", "1"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[-1] for line in lines[1:3]] == ["file", "file"]  # robokit refuses the file
    assert lines[3].split()[1:4] == ["fixed", "2", "0.0e+00"] and lines[3].endswith("!")
    assert lines[4].split()[1:3] == ["floating", "8"]
    assert "broken.urdf: robokit: cannot load it: no-links: robot has no <link>" in lines
    assert lines[-3].split() == ["agree", "to", "1e-10", "2", "0"]
    assert lines[-1].strip() == "of 2 readings of 1 file"
    engine(Same=itself())
    assert main(["parity", str(coupled), "arm", "--states", "1"]) == 0


def test_names_are_not_cut(engine, capsys, coupled):
    engine(Same=itself())
    long = coupled.with_name("a_robot_whose_name_is_longer_than_its_column.urdf")
    shutil.copy(coupled, long)
    (coupled.parent / "other").mkdir()
    shutil.copy(coupled, coupled.parent / "other")
    assert main(["parity", str(coupled.parent), "--states", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == long.name and lines[2].split()[:2] == ["fixed", "2"]
    # Files of the same name are told apart by their folders.
    assert {line.split()[0] for line in lines[3:6]} >= {
        "other/coupled.urdf",
        f"{coupled.parent.name}/coupled.urdf",
    }
    assert max(map(len, lines)) <= 80 and "..." not in "".join(lines)


def test_json(engine, capsys, coupled):
    engine(Same=itself())
    assert main(["parity", str(coupled), "--json"]) == 0
    one = json.loads(capsys.readouterr().out)
    assert one["base"] == "fixed" and one["engines"][0]["agrees"]
    assert set(one["engines"][0]["errors"]) == set(QUANTITIES)
    assert main(["parity", str(coupled), "--base", "both", "--json"]) == 0
    assert [row["base"] for row in json.loads(capsys.readouterr().out)] == ["fixed", "floating"]


def test_json_holds_no_infinity(engine, capsys, coupled):
    def overflows(text, robot, changes):
        answers = itself()(text, robot, changes)
        return lambda x: answers(x) | {"H": np.full((2, 2), np.inf)}

    engine(Odd=overflows)
    for extra in ((), ("--base", "both")):
        assert main(["parity", str(coupled), "--json", *extra]) == 1
        json.loads(capsys.readouterr().out, parse_constant=lambda name: pytest.fail(name))


@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_coupled_robots_are_compared_through_g(engine, coupled, base):
    engine(Same=itself(), Other=itself("H"))
    robot = rk.load_urdf(coupled, base=base, mimic="couple")
    same, other = compare(coupled, robot, run="python")
    assert same.agrees and set(same.errors) == set(QUANTITIES)
    assert not other.agrees and other.errors["H"] > 1e-10 and other.errors["C"] < 1e-14
    assert any("projected by the coupling matrix G" in note for note in same.notes)


def test_singular_robots_have_no_accelerations_to_compare(engine, tmp_path):
    engine(Same=itself())
    path = tmp_path / "light.urdf"
    path.write_text(
        COUPLED.replace('<mass value="2"/><inertia ixx="1" iyy="2" izz="1"/>', '<mass value="0"/>')
    )
    (same,) = compare(path, rk.load_urdf(path), run="python")
    assert same.agrees and set(same.errors) == set(QUANTITIES) - {"qdd"}
    assert any("singular at joint 'k'" in note for note in same.notes)


def test_what_others_read_has_no_link_of_their_own_frames_name():
    text = plain_text(COUPLED.encode(), "world_link")
    assert 'link="world_link"' in text and '"world"' not in text and "mimic" not in text


@pytest.mark.parametrize("n", ["0", "-1", "two", "1.5"])
def test_states_are_counted(n, capsys):
    with pytest.raises(SystemExit):
        main(["parity", "arm", "--states", n])
    assert "whole number" in capsys.readouterr().err


def test_all_public_robots_by_one_name(engine, capsys, coupled, monkeypatch):
    engine(Same=itself())
    monkeypatch.setattr(catalog, "example_robots", lambda: {"a": coupled, "b": coupled})
    assert catalog.example_files() == [coupled]
    assert main(["parity", "example-robot-data", "--base", "both"]) == 0
    assert "of 2 readings of 1 file" in capsys.readouterr().out
    assert main(["check", "example-robot-data"]) == 0
    monkeypatch.setattr(catalog, "example_robots", dict)
    assert main(["parity", "example-robot-data"]) == 1
    assert "pip install example-robot-data" in capsys.readouterr().err
