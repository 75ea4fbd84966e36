"""Real expansions by the package xacro: macros, arguments, includes, and packages by name."""

from __future__ import annotations

import pytest

from robokit.cli import main
from robokit.errors import UrdfError
from robokit.urdf import check_urdf, expand_xacro, load_urdf, loads_urdf

pytestmark = pytest.mark.parity

HEAD = '<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro">'
LINK = """
<xacro:macro name="part" params="name mass">
  <link name="${name}"><inertial><mass value="${2 * mass}"/>
  <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
</xacro:macro>"""


@pytest.fixture
def path(tmp_path):
    """A robot of macros in the folder of one package that includes a file of another."""
    (tmp_path / "parts_description" / "urdf").mkdir(parents=True)
    (tmp_path / "parts_description" / "urdf" / "parts.xacro").write_text(f"{HEAD}{LINK}</robot>")
    file = tmp_path / "arm" / "arm.urdf.xacro"
    file.parent.mkdir()
    file.write_text(
        f'{HEAD}<xacro:arg name="mass" default="1.5"/>'
        '<xacro:include filename="$(find parts_description)/urdf/parts.xacro"/>'
        '<xacro:part name="base" mass="$(arg mass)"/></robot>'
    )
    return file


def test_macros_arguments_and_includes(path, capfd):
    robot = load_urdf(path, strict=True)
    assert robot.link("base").mass == 3.0 and robot.diagnostics == []
    text = expand_xacro(path, {"mass": "4"})
    assert loads_urdf(text, strict=True).link("base").mass == 8.0
    assert load_urdf(path).link("base").mass == 3.0  # the argument does not stay behind
    assert capfd.readouterr() == ("", "")


def test_packages_are_looked_for_in_package_dirs(path, tmp_path_factory):
    elsewhere = path.rename(tmp_path_factory.mktemp("elsewhere") / path.name)
    with pytest.raises(UrdfError, match=r"xacro-failed.*find parts_description.*package_dirs"):
        load_urdf(elsewhere)
    found = load_urdf(elsewhere, package_dirs=[path.parent.parent])
    assert found.link("base").mass == 3.0


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ('<xacro:nothing name="x"/>', "nothing"),
        ('<link name="${x}"/>', "x"),
        ('<xacro:include filename="none.xacro"/>', "none.xacro"),
        ('<xacro:macro name="m"><xacro:m/></xacro:macro><xacro:m/>', "xacro-failed"),
        ("<link>", "xacro-failed"),
    ],
)
def test_what_xacro_refuses_is_an_error_of_the_file(path, body, words, capfd):
    path.write_text(f"{HEAD}{body}</robot>")
    with pytest.raises(UrdfError) as caught:
        load_urdf(path)
    (error,) = caught.value.diagnostics
    assert (error.code, error.file) == ("xacro-failed", str(path)) and words in str(error)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("value", ["${9**9**9}", "${'x' * 10**12}", "${[0] * 10**12}"])
def test_an_expression_without_end_is_stopped(path, value, monkeypatch):
    monkeypatch.setattr("robokit.urdf.xacro.MOST_SECONDS", 2.0)
    path.write_text(f'{HEAD}<link name="{value}"/></robot>')
    with pytest.raises(UrdfError, match=r"xacro-failed.*(stopped after 2 s|more memory than it may have)"):
        load_urdf(path)


def test_arguments_without_a_default_are_asked_for_once_and_taken(path, capfd):
    mass = '<inertial><mass value="$(arg mass)"/></inertial>'
    path.write_text(f'{HEAD}<link name="$(arg base)">{mass}</link></robot>')
    with pytest.raises(UrdfError) as caught:
        load_urdf(path)
    (error,) = caught.value.diagnostics
    assert error.code == "xacro-argument"
    assert error.message == "xacro needs a value of arguments base, mass"
    assert error.hint.startswith("on the command line base:=VALUE mass:=VALUE, in Python xacro_args=")
    with pytest.raises(UrdfError, match="needs a value of the argument mass "):
        load_urdf(path, xacro_args={"base": "trunk"})
    assert load_urdf(path, xacro_args={"base": "trunk", "mass": 2}).link("trunk").mass == 2.0
    path.with_suffix(".urdf").write_text('<robot name="r"><link name="a"/></robot>')
    with pytest.raises(UrdfError, match=r"is no \.xacro file, and takes no arguments \(mass\)"):
        load_urdf(path.with_suffix(".urdf"), xacro_args={"mass": 2})


def test_an_argument_that_a_file_never_asks_for_is_a_warning(path):
    path.write_text(
        f'{HEAD}<xacro:arg name="mass" default="1"/>'
        '<xacro:arg name="idle" default="0"/><link name="a"/></robot>'
    )
    robot = load_urdf(path, xacro_args={"mas": 2, "mass": 3, "idle": 1})
    (warning,) = robot.diagnostics
    assert warning.code == "xacro-argument-unknown" and "'mas'" in warning.message
    with pytest.raises(UrdfError, match="has no argument 'mas'"):
        load_urdf(path, xacro_args={"mas": 2}, strict=True)
    with pytest.warns(UserWarning, match="has no argument 'mas'"):
        expand_xacro(path, {"mas": "2"})


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ('<link name="${x}"/>', "name 'x' is not defined when evaluating expression 'x'"),
        ('<link name="${dict()[3]}"/>', "there is no key 3 when evaluating expression 'dict()[3]'"),
        ('<link name="$(find none)"/>', "$(find none): there is no such package"),
        ('<xacro:macro name="m"><xacro:m/></xacro:macro><xacro:m/>', "calls itself without end"),
        ('<xacro:include filename="none.xacro"/>', "No such file or directory"),
        ('<xacro:macro name="m" params="*b"/><xacro:m/>', "Not enough blocks (in macro m)"),
    ],
)
def test_what_xacro_says_is_said_once_and_without_names_of_classes(path, body, words):
    path.write_text(f"{HEAD}{body}</robot>")
    _, (error,) = check_urdf(path)
    assert error.message.startswith("xacro cannot expand it: ") and error.message.count(words) == 1
    assert "<class" not in error.message and "Exception" not in error.message
    assert ("--package-dir" in error.hint) == ("find" in body)


@pytest.mark.parametrize("command", ["check", "info", "parity", "mjcf"])
def test_commands_take_the_arguments_as_xacro_does(path, command, capsys):
    inertia = '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
    mass = f'<inertial><mass value="$(arg mass)"/>{inertia}</inertial>'
    path.write_text(f'{HEAD}<link name="base">{mass}</link></robot>')
    assert main([command, str(path), "mass:=2"]) == 0
    capsys.readouterr()
    assert main([command, str(path)]) == 1
    told = "".join(capsys.readouterr())
    assert told.count("needs a value of the argument mass") == 1 and "Traceback" not in told


def test_two_descriptions_and_commands_without_a_robot(path, capsys):
    path.write_text(f'{HEAD}<link name="$(arg base)"/></robot>')
    assert main(["parity", str(path), str(path), "base:=b"]) == 0
    with pytest.raises(SystemExit):
        main(["robots", "base:=b"])
    assert "base:=... is an argument of a .xacro file" in capsys.readouterr().err
