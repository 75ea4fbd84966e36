"""Real expansions by the package xacro: macros, arguments, includes, and packages by name."""

from __future__ import annotations

import pytest

from robokit.errors import UrdfError
from robokit.urdf import expand_xacro, load_urdf, loads_urdf

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
    monkeypatch.setattr("robokit.urdf.read.xacro.SECONDS", 2.0)
    path.write_text(f'{HEAD}<link name="{value}"/></robot>')
    with pytest.raises(UrdfError, match=r"xacro-failed.*(stopped after 2 s|more memory than it may have)"):
        load_urdf(path)
