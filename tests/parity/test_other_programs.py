"""Readers of other programs over hostile files and broken installations: one error, and the others go on."""

from __future__ import annotations

import os
import sys

import pytest
import waiting

import robokit as rk
from robokit.cli import main
from robokit.errors import MissingDependency, RobokitError
from robokit.formats import other_programs
from robokit.formats.other_programs import _child, require
from robokit.parity import compare, compare_files, files_table, referee, table

pytestmark = pytest.mark.parity

INERTIAL = """<inertial><origin rpy="0 0 0.5"/><mass value="1"/>
<inertia ixx="1" ixy="0" ixz="0" iyy="2" iyz="0" izz="2"/></inertial>"""

ARM = f"""<robot name="r"><link name="base"/><link name="arm">{INERTIAL}</link>
<link name="tool">{INERTIAL}</link>
<joint name="j" type="continuous"><parent link="base"/><child link="arm"/></joint>
<joint name="f" type="fixed"><parent link="arm"/><child link="tool"/></joint></robot>"""

STAGE = """#usda 1.0
(
 metersPerUnit = METRES
 upAxis = "UP"
)
def Xform "arm" (
 prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"]
)
{
 float physics:mass = MASS
 def Cylinder "c" (
  prepend apiSchemas = ["PhysicsCollisionAPI"]
 )
 {
  uniform token axis = "SHAPE"
 }
}
def PhysicsRevoluteJoint "j"
{
 rel physics:body1 = </arm>
 uniform token physics:axis = "AXIS"
 float physics:lowerLimit = LOWER
}
"""

RIGHT = {"METRES": "1", "UP": "Z", "MASS": "1", "SHAPE": "Z", "AXIS": "X", "LOWER": "-inf"}


def stage(**changes):
    text = STAGE
    for name, value in (RIGHT | changes).items():
        text = text.replace(name, value)
    return text


@pytest.fixture
def arm(tmp_path):
    file = tmp_path / "arm.urdf"
    file.write_text(ARM)
    return file


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"AXIS": "Q"}, "/j: its axis is 'Q'; expected X, Y or Z"),
        ({"SHAPE": "Q"}, "/arm/c: its axis is 'Q'"),
        ({"METRES": "0"}, "metersPerUnit is 0"),
        ({"METRES": "nan"}, "metersPerUnit is nan"),
        ({"UP": "W"}, "upAxis is 'W'"),
        ({"MASS": "inf"}, "body 'arm': its mass is inf"),
        ({"LOWER": "nan"}, "joint 'j': its lower limit is nan"),
    ],
)
def test_wrong_values_of_a_stage_are_named(arm, tmp_path, changes, words):
    pytest.importorskip("pxr", reason="usd-core has no wheel for every machine")
    b = tmp_path / "b.usda"
    b.write_text(stage())
    referee(arm, b)
    b.write_text(stage(**changes))
    with pytest.raises(RobokitError) as caught:
        referee(arm, b)
    assert words in str(caught.value) and str(b) in str(caught.value)


def test_what_never_ends_is_stopped(arm, tmp_path, monkeypatch, capsys):
    _child.close()
    os.mkfifo(tmp_path / "pipe.stl")
    geom = '<body><geom type="mesh" mesh="p"/></body>'
    mesh = '<asset><mesh name="p" file="pipe.stl"/></asset>'
    for name, text in {
        "pipe.xml": f"<mujoco>{mesh}<worldbody>{geom}</worldbody></mujoco>",
        "many.xml": '<mujoco><worldbody><replicate count="100000000"><body>'
        '<geom size="1"/></body></replicate></worldbody></mujoco>',
    }.items():
        (tmp_path / name).write_text(text)
        monkeypatch.setattr(_child, "seconds", waiting.PATIENCE)
        require("mujoco")  # on a busy machine its import alone may take longer than what follows
        monkeypatch.setattr(_child, "seconds", 3.0)
        assert main(["parity", str(arm), str(tmp_path / name)]) == 2
        said = capsys.readouterr().err
        assert f"{tmp_path / name}: MuJoCo cannot read it: it " in said and said.count("\n") == 1
        assert "stopped after 3 s" in said or "memory" in said
    _child.close()


def broken(tmp_path, monkeypatch, package, body):
    (tmp_path / "site" / package).mkdir(parents=True)
    (tmp_path / "site" / package / "__init__.py").write_text(body)
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.delitem(sys.modules, package, raising=False)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (
            "raise ImportError('libmujoco.so.4: cannot open shared object file')",
            "ImportError: libmujoco.so.4",
        ),
        ("import os; os.abort()", "SIGABRT"),
        ("raise RuntimeError('no display')", "RuntimeError: no display"),
    ],
)
def test_a_broken_installation_is_no_fault_of_the_file(arm, tmp_path, monkeypatch, body, words):
    broken(tmp_path, monkeypatch, "mujoco", body)
    with pytest.raises(MissingDependency) as caught:
        referee(arm, arm, through="mujoco")
    for word in (words, "MuJoCo is installed and cannot be imported", "pip install --force-reinstall mujoco"):
        assert word in str(caught.value)
    robot = rk.load_urdf(arm)
    found = compare(arm, robot, states=1, run="python")
    assert [c.engine for c in found if not c.imported] == ["MuJoCo"]
    assert all(c.agrees for c in found if c.imported)
    lines = table(robot, found, 1)
    assert any(line.startswith("MuJoCo") and line.endswith("cannot be imported") for line in lines)
    rows = list(files_table(compare_files([arm], ["fixed"], 1), ["Pinocchio", "MuJoCo", "Drake"]))
    assert "broken" in rows[1] and any("refused" in row and row.split()[-3:] == ["0"] * 3 for row in rows)


def test_a_peer_that_crashes_does_not_take_the_others_down(arm, monkeypatch, tmp_path):
    broken(tmp_path, monkeypatch, "pinocchio", "def __getattr__(name): import os; os.abort()")
    found = compare(arm, rk.load_urdf(arm), states=1, run="python")
    (failed,) = [c for c in found if c.failure]
    assert failed.engine == "Pinocchio" and failed.imported and "SIGABRT" in failed.failure
    assert len(found) == 3


@pytest.mark.parametrize(
    ("version", "turned", "fused"),
    [
        ("3.1.2", False, False),
        ("3.1.3", True, False),
        ("3.3.7", True, True),
        ("3.10.0", True, True),
        ("3.11.0", True, False),
        ("3.13.0", True, False),
        ("3.14.0", False, False),
        ("4.0.0", False, False),
    ],
)
def test_faults_are_named_where_the_version_and_the_file_have_them(arm, monkeypatch, version, turned, fused):
    monkeypatch.setattr(other_programs, "installed_version", lambda package: version)
    told = other_programs.peer_faults("mujoco", arm.read_bytes)
    assert [f"MuJoCo {version} drops the rotation" in note for note in told].count(True) == turned
    assert [f"MuJoCo {version} places and turns" in note for note in told].count(True) == fused
    assert len(told) == turned + fused
    notes = referee(arm, arm, through="mujoco").notes
    assert set(told) <= set(notes)
    (row,) = [c for c in compare(arm, rk.load_urdf(arm), 1, run="python") if c.engine == "MuJoCo"]
    assert any("drops the rotation" in note for note in row.notes) == turned
    plain = ARM.replace('rpy="0 0 0.5"', "").replace('type="fixed"', 'type="continuous"')
    assert other_programs.peer_faults("mujoco", plain.encode) == []


def test_a_root_that_mujoco_merges_into_its_world_is_said(tmp_path):
    file = tmp_path / "body.urdf"
    file.write_text(f'<robot name="r"><link name="body">{INERTIAL}</link></robot>')
    verdict = referee(file, file, through="mujoco")
    assert verdict.same and any("root link 'body' into its fixed world" in note for note in verdict.notes)


@pytest.mark.parametrize("name", ["r.usda", "r.sdf", "r.urdf", "r.xml"])
def test_git_lfs_pointers_and_empty_files_are_one_clear_error(name, tmp_path):
    (tmp_path / "a.urdf").write_text(ARM)
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 3\n"
    for text, words in ((pointer, "git lfs pull"), ("", name)):
        (tmp_path / name).write_text(text)
        for through in ("robokit", "drake"):
            with pytest.raises(RobokitError) as caught:
                referee(tmp_path / "a.urdf", tmp_path / name, through=through)
            assert words in str(caught.value) and "Error in" not in str(caught.value)
