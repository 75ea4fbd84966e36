"""Which files of a folder are robots: URDFs, and xacro files that are no parts of one."""

import pytest

from robokit.urdf.lint import check_files, urdf_files

LINK = '<link name="a"/>'
MACRO = f'<xacro:macro name="leg" params="side">{LINK}</xacro:macro><xacro:property name="m" value="1"/>'
INCLUDE = '<xacro:include filename="{}"/>'


def xacro(inside, name=""):
    return f'<robot {name} xmlns:xacro="http://www.ros.org/wiki/xacro">{inside}</robot>'


FILES = {
    "plain.urdf": f"<robot name='r'>{LINK}</robot>",
    "links.xacro": xacro(LINK),
    "calls.urdf.xacro": xacro(INCLUDE.format("lib/legs.xacro") + '<xacro:leg side="l"/>'),
    "sometimes.xacro": xacro(f'<xacro:arg name="b" default="1"/><xacro:if value="1">{LINK}</xacro:if>'),
    "frame.urdf.xacro": xacro(INCLUDE.format("$(find me)/lib/body.xacro"), 'name="r"'),
    "broken.xacro": "<robot",
    "undeclared.xacro": "<robot><xacro:leg/></robot>",
    "lib/legs.xacro": xacro(MACRO),
    "lib/body.xacro": xacro(LINK),
    "lib/more.xacro": xacro(INCLUDE.format("legs.xacro")),
    "lib/gazebo.xacro": xacro("<gazebo/>"),
    ".git/old.xacro": xacro(LINK, 'name="r"'),
    "lib/notes.txt": "no robot",
}
ROBOTS = {name for name in FILES if "/" not in name}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("argument", [".", "**/*", "**/*.[ux]*"])
def test_robots_are_found_and_their_parts_are_not(folder, argument):
    found, problems = urdf_files([argument], None)
    assert ({path.as_posix() for path in found}, problems) == (ROBOTS, [])


def test_a_part_that_is_named_is_judged(folder):
    found, _ = urdf_files(["lib/legs.xacro"], lambda name: folder / name)
    assert [path.name for path in found] == ["legs.xacro"]


def test_a_folder_of_parts_holds_no_robot(folder):
    (folder / "lib" / "body.xacro").unlink()
    found, problems = urdf_files(["lib"], None)
    assert found == [] and "no robot in a .xacro file, in folder 'lib'" in problems[0]


def test_a_file_that_cannot_be_read_is_told(folder):
    (one,) = check_files([folder / "broken.xacro"])
    assert one.status() == 1
