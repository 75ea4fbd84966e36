"""robokit parity: robots beside other engines, and two descriptions of one robot."""

from __future__ import annotations

import json
import re
import shutil

import numpy as np
import pytest

import robokit as rk
from robokit import robot_names as catalog
from robokit.cli import main
from robokit.parity import CAUSES, QUANTITIES, compare, comparison, plain_text, referee
from robokit.parity.comparison import Engine
from robokit.parity.inertials import NO_MASS, Rigid

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
        monkeypatch.setattr(comparison, "ENGINES", found)
        monkeypatch.setenv("ROBOKIT_ENGINE", "python")  # nothing to compile for

    return put


@pytest.fixture
def coupled(tmp_path):
    path = tmp_path / "coupled.urdf"
    path.write_text(COUPLED)
    return path


def test_nothing_to_compare_with(monkeypatch, capsys):
    monkeypatch.setattr(
        comparison, "ENGINES", {"Absent": Engine("no_such_engine_module", "no-engine", "", refuses)}
    )
    assert main(["parity", "double_pendulum"]) == 1
    assert "pip install no-engine" in capsys.readouterr().err


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


# robokit parity A B: verdicts in lines and JSON, exit status, errors
# -------------------------------------------------------------------

BALL = '<inertia ixx="0.4" ixy="0" ixz="0" iyy="0.5" iyz="0" izz="0.6"/>'

ARM = f"""<robot name="two">
<link name="base"><inertial><mass value="3"/>{BALL}</inertial></link>
<link name="upper"><inertial>
  <origin xyz="0.1 0 0.2" rpy="0.3 0 0"/>
  <mass value="2"/>{BALL}</inertial>
  <collision><origin xyz="0 0 0.1"/><geometry>
  <mesh filename="a.stl" scale="0.001 0.001 0.001"/></geometry></collision>
</link>
<link name="lower"><inertial><origin xyz="0 0.1 0"/><mass value="1"/>{BALL}</inertial></link>
<link name="tool"><inertial><mass value="0.5"/>{BALL}</inertial></link>
<joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/>
  <origin xyz="0 0 0.3" rpy="0 0.2 0"/>
  <axis xyz="0 1 0"/>
  <limit lower="-1" upper="2" effort="10" velocity="3"/><dynamics damping="0.5"/></joint>
<joint name="elbow" type="revolute"><parent link="upper"/><child link="lower"/><origin xyz="0 0 0.4"/>
  <axis xyz="0 1 0"/><limit lower="-2" upper="1.5" effort="10" velocity="3"/></joint>
<joint name="flange" type="fixed"><parent link="lower"/><child link="tool"/>
  <origin xyz="0 0 0.2" rpy="1 0 0"/></joint>
</robot>
"""


@pytest.fixture
def pair(tmp_path):
    """Writes the arm, and the arm with one piece of its text replaced."""

    def written(old="", new="", name="b.urdf"):
        a, b = tmp_path / "a.urdf", tmp_path / name
        a.write_text(ARM)
        assert old in ARM
        b.write_text(ARM.replace(old, new, 1) if old else ARM)
        return str(a), str(b)

    return written


def test_the_same_robot(pair, capsys):
    assert main(["parity", *pair()]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].strip() == "4 links and 2 joints matched"
    assert lines[-1] == "same: no difference above 1e-06"


# What is replaced, by what; cause, element, line of A and words of the verdict.
CASES = {
    "rotation": (' rpy="0.3 0 0"', "", "inertial-rotation-lost", "upper", 3, "rotation of line 4 left out"),
    "twice": ('xyz="0.1 0 0.2"', 'xyz="0.2 0 0.4"', "inertial-origin-twice", "upper", 3, "applied twice"),
    "axis": ('xyz="0 1 0"/>\n', 'xyz="0 -1 0"/>\n', "axis-flipped", "shoulder", 13, "line 13 negated"),
    "length": ('xyz="0 1 0"/>\n', 'xyz="0 3 0"/>\n', "axis-length", "shoulder", 13, "length 3"),
    "origin": (' rpy="0 0.2 0"', "", "origin-rotation-lost", "shoulder", 12, "of line 12 left out"),
    "degrees": (
        'lower="-1" upper="2"',
        'lower="-57.29577951308232" upper="114.59155902616465"',
        "limits-degrees",
        "shoulder",
        14,
        "in degrees, read as radians",
    ),
    "exchanged": (
        'lower="-1" upper="2"',
        'lower="2" upper="-1"',
        "limits-swapped",
        "shoulder",
        14,
        "exchanged",
    ),
    "damping": ('<dynamics damping="0.5"/>', "", "damping-lost", "shoulder", 14, "no damping"),
    "welded": (
        '"elbow" type="revolute"',
        '"elbow" type="fixed"',
        "joint-welded",
        "elbow",
        15,
        "B has it fixed",
    ),
    "mass": ('<mass value="2"/>', '<mass value="2000"/>', "mass-scaled", "upper", 3, "times 1000 (kilograms"),
    "mesh": ('scale="0.001 0.001 0.001"', "", "mesh-scale", "upper", 6, "leaves the mesh's scale out"),
    "tool": ('xyz="0 0 0.2" rpy="1 0 0"', 'xyz="0 0 0.2"', "origin-rotation-lost", "flange", 18, "left out"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_mistake_is_named_with_its_element_and_line(pair, capsys, name, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)  # of the terminal that the tests run in
    old, new, cause, element, line, words = CASES[name]
    files = pair(old, new)
    (finding,) = referee(*files).findings
    assert (finding.cause, finding.name, finding.line) == (cause, element, line)
    assert words in finding.text
    assert main(["parity", *files]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[3].startswith(f"{element}: ") and f"[{cause}" in lines[3]
    assert lines[-1].startswith(f"different: 1 finding ({cause})")


def test_the_verdict_as_json(pair, capsys):
    assert main(["parity", *pair(*CASES["rotation"][:2]), "--json"]) == 1
    verdict = json.loads(capsys.readouterr().out)
    assert verdict["same"] is False and (verdict["bodies"], verdict["joints"]) == (4, 2)
    (finding,) = verdict["findings"]
    assert finding["cause"] == "inertial-rotation-lost" and finding["line"] == 3
    assert finding["meaning"] == CAUSES["inertial-rotation-lost"].meaning and finding["fix"]
    assert main(["parity", *pair(), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["same"] is True


def test_names_that_differ_are_matched_by_geometry(pair):
    a, b = pair()
    other = ARM
    for k, name in enumerate(("base", "upper", "lower", "tool", "shoulder", "elbow", "flange")):
        other = other.replace(f'"{name}"', f'"part{k}"')
    with open(b, "w") as file:
        file.write(other)
    verdict = referee(a, b)
    assert verdict.same and any("matched by geometry" in note for note in verdict.notes)
    with open(b, "w") as file:
        file.write(other.replace('<mass value="1"/>', '<mass value="1.5"/>'))
    (finding,) = referee(a, b).findings
    assert (finding.cause, finding.name) == ("mass-scaled", "lower")


def test_errors_have_their_own_status(pair, capsys, tmp_path):
    a, b = pair()
    for none in ("none.xml", "none.urdf"):
        assert main(["parity", a, str(tmp_path / none)]) == 2
        assert "no file" in capsys.readouterr().err
    broken = tmp_path / "broken.urdf"
    broken.write_text("<robot name='r'/>")
    assert main(["parity", a, str(broken)]) == 2
    assert "no-links" in capsys.readouterr().err
    assert main(["parity", a, b, "--base", "both"]) == 2
    with pytest.raises(SystemExit):
        main(["parity", a, b, "--tolerance", "2"])
    with pytest.raises(rk.RobokitError, match="tolerance"):
        referee(a, b, tolerance=0.5)
    with pytest.raises(rk.UnknownName, match="pinocchio"):
        referee(a, b, through="pinochio")
    with pytest.raises(rk.RobokitError, match="no file"):
        referee(a, tmp_path / "c.urdf")


def test_rounding_is_a_note_and_the_tolerance_is_the_callers(pair):
    files = pair('<mass value="2"/>', '<mass value="2.00005"/>')
    verdict = referee(*files)
    assert verdict.same and any("rounded: upper" in note for note in verdict.notes)
    files = pair('<mass value="2"/>', '<mass value="2.01"/>')
    assert not referee(*files).same and referee(*files, tolerance=0.01).same


def test_a_base_that_is_said_is_compared(pair):
    world = '<link name="world"/><joint name="w" type="{}"><parent link="world"/><child link="base"/></joint>'
    a, welded = pair('<link name="base">', world.format("fixed") + '<link name="base">')
    assert [f.cause for f in referee(a, welded).findings] == ["base-welded"]
    assert [f.cause for f in referee(welded, a).findings] == ["base-freed"]
    assert referee(a, welded, base="fixed").same


def test_every_cause_says_what_it_is():
    for code, cause in CAUSES.items():
        assert cause.code == code and cause.meaning and cause.fix
        assert all("/" in where and "#" in where for where in cause.evidence)


BOLTED = ("trunk", "pack", "camera", "antenna")


def described(dropped, digits, merged):
    """A trunk with three links fixed to it and a leg; merged: as one link, without those that are dropped."""
    rng = np.random.default_rng(3)
    total, links, joints = NO_MASS, "", ""
    for k, name in enumerate(BOLTED):
        m, com = 4.0 / (1 + 3 * k), rng.normal(0, 0.03, 3).round(4)
        inertia = np.diag(m * np.array([0.005, 0.006, 0.004]))
        place = rng.normal(0, 0.2, 3).round(4) if k else np.zeros(3)
        links += linked(name, Rigid(m, com, inertia), 17)
        if k:
            joints += f'<joint name="{name}_bolt" type="fixed"><origin xyz="{triple(place, 17)}"/>'
            joints += f'<parent link="trunk"/><child link="{name}"/></joint>'
        if name not in dropped:
            total = total + Rigid(m, com + place, inertia)
    if merged:
        links, joints = linked("trunk", total, digits), ""
    links += linked("leg", Rigid(1.0, np.zeros(3), np.eye(3) * 0.01), 17)
    hip = '<joint name="hip" type="continuous"><parent link="trunk"/><child link="leg"/></joint>'
    return f'<robot name="r">{links}{joints}{hip}</robot>'


def triple(numbers, digits):
    return " ".join(f"{x:.{digits}g}" for x in numbers)


def linked(name, body, digits):
    I = body.inertia
    entries = zip(("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), I[np.triu_indices(3)], strict=True)
    matrix = " ".join(f'{key}="{x:.{digits}g}"' for key, x in entries)
    return (
        f'<link name="{name}"><inertial><origin xyz="{triple(body.com, digits)}"/>'
        f'<mass value="{body.mass:.{digits}g}"/><inertia {matrix}/></inertial></link>'
    )


@pytest.mark.parametrize("digits", [17, 6])
@pytest.mark.parametrize("dropped", [["camera"], ["pack", "camera"], ["pack", "camera", "antenna"]])
def test_links_that_a_merge_drops_are_named(dropped, digits, tmp_path):
    a, b = tmp_path / "a.urdf", tmp_path / "b.urdf"
    a.write_text(described(dropped, digits, False))
    b.write_text(described(dropped, digits, True))
    verdict = referee(a, b)
    assert [(f.cause, f.name) for f in verdict.findings] == [("fixed-link-dropped", name) for name in dropped]
    b.write_text(described([], digits, True))
    assert referee(a, b).same


def test_another_robot_is_suspected_only_where_joints_have_other_names_too(tmp_path):
    a, b, c = (tmp_path / name for name in ("a.urdf", "b.urdf", "c.urdf"))
    a.write_text(ARM)
    other = re.sub(
        '(link(?: name)?=")', r"\1x", ARM.replace('value="', 'value="7').replace('xyz="0 ', 'xyz="0.7 ')
    )
    b.write_text(other)
    c.write_text(re.sub('joint name="', 'joint name="x', other))
    said = "hardly a name is the same"
    assert not any(said in note for note in referee(a, b).notes)
    assert any(said in note for note in referee(a, c).notes)


@pytest.mark.parametrize("through", ["mujoco", "drake", "pinocchio"])
@pytest.mark.parity
def test_one_file_through_a_program(pair, capsys, through):
    a, b = pair()
    assert main(["parity", a, "--through", through]) == main(["parity", a, b, "--through", through]) == 0
    alone, both = re.split(r"(?m)^A  ", capsys.readouterr().out)[1:]
    assert alone == both.replace("b.urdf", "a.urdf") and "(URDF through " in alone


def test_options_that_mean_nothing_are_refused(pair, capsys, tmp_path):
    a, b = pair()
    for arguments in ([a, b, a], [str(tmp_path)]):
        assert main(["parity", *arguments, "--through", "drake"]) == 2
        assert capsys.readouterr().err.count("--through") == 1
    for arguments in (["parity", a, b], ["parity", a], ["check", a, b]):
        assert main([*arguments, "mass:=2"]) == 2
        assert "mass:=... is an argument of a .xacro file" in capsys.readouterr().err


def test_loops_are_closed_in_both_descriptions(pair, capsys):
    again = '<joint name="rod" type="continuous"><parent link="upper"/><child link="tool"/></joint></robot>'
    files = pair("</robot>", again)
    assert main(["parity", files[1], files[1]]) == 2
    assert "--loops close" in capsys.readouterr().err
    assert main(["parity", files[1], files[1], "--loops", "close"]) == 0
    assert main(["parity", files[1], files[0], "--loops", "close"]) == 1
    assert "loop-missing" in capsys.readouterr().out
