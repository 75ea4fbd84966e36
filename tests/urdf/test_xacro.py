"""A .xacro path without the package xacro, and with a stand-in for it; tests/parity has the real one."""

import sys

import pytest
from urdf_cases import GOOD

from robokit.errors import UrdfError
from robokit.urdf import check_urdf, load_urdf, loads_urdf, xacro
from robokit.urdf.lint import check_files


@pytest.fixture
def path(tmp_path):
    """A file of macros, which is no URDF."""
    file = tmp_path / "arm.urdf.xacro"
    file.write_text('<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:arm/></robot>')
    return file


def only_error(path):
    _, found = check_urdf(path)
    with pytest.raises(UrdfError) as caught:
        load_urdf(path)
    assert caught.value.diagnostics == found
    (error,) = (d for d in found if d.severity == "error")
    return error


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    """Writes a package xacro of which the child process gets this text, or on which it runs this code."""
    package = tmp_path / "site" / "xacro"
    package.mkdir(parents=True)
    (package / "substitution_args.py").write_text("_eval_find = None\n_eval_dict = {}\n")
    monkeypatch.syspath_prepend(package.parent)

    def write(text=GOOD, code="pass"):
        (package / "__init__.py").write_text(
            "from xml.dom.minidom import parseString\n"
            "def process_file(path, mappings):\n"
            f"    {code}\n"
            f"    return parseString({text!r})\n"
        )

    write()
    return write


def test_without_xacro_the_error_says_how_to_install_it(path, stand_in, tmp_path):
    (tmp_path / "site" / "xacro" / "__init__.py").write_text("raise ImportError")
    error = only_error(path)
    assert error.code == "xacro-missing" and 'pip install "robokit[xacro]"' in error.hint


def test_the_expanded_text_is_read(path, stand_in):
    robot = load_urdf(path, strict=True)
    assert robot.joint_names == loads_urdf(GOOD).joint_names
    assert robot.source == f"{path} (expanded)"
    stand_in('<robot name="r"><link name="a"/><link name="a"/></robot>')
    assert only_error(path).code == "link-duplicate"


@pytest.mark.parametrize("error", ["ValueError('no such\\nmacro')", "KeyError('x')", "RecursionError()"])
def test_whatever_xacro_raises_is_an_error_of_the_file(path, stand_in, error):
    stand_in(code=f"raise {error}")
    found = only_error(path)
    assert (found.code, found.file) == ("xacro-failed", str(path))
    assert "no such macro" in found.message or "ValueError" not in error


ENDLESS = {
    "an expression without end": ("9**9**9", "it was stopped after 1 s"),
    "a loop without end": ("while True: pass", "it was stopped after 1 s"),
    "memory without end": ("x = bytearray(10**12)", "it needs more memory than it may have"),
    "a process that dies": ("import os; os.abort()", "the process that expands it ended with signal 6"),
    "a text without end": (
        "global parseString; parseString = lambda _: Large()",
        "at most 67108864 are read",
    ),
}
LARGE = "\nclass Large:\n    def toxml(self): return ' ' * 70_000_000\n"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no bound on memory and no signals")
@pytest.mark.parametrize("what", ENDLESS)
def test_what_has_no_end_is_stopped_and_the_next_file_is_judged(path, stand_in, what, monkeypatch):
    code, words = ENDLESS[what]
    if "after 1 s" in words:  # on a busy machine the other ends take longer
        monkeypatch.setattr(xacro, "MOST_SECONDS", 1.0)
    stand_in(code=code)
    with open(path.parent / "site" / "xacro" / "__init__.py", "a") as file:
        file.write(LARGE)
    plain = path.with_name("plain.urdf")
    plain.write_text(GOOD)
    stopped, other = check_files([path, plain])
    (error,) = stopped.diagnostics
    assert (error.code, error.severity) == ("xacro-failed", "error") and words in error.message
    assert stopped.status() == 1 and other.status() == 0


def test_what_the_file_prints_is_not_taken_for_the_text(path, stand_in, capfd):
    stand_in(code="import sys; print('{}'); print('words', file=sys.stderr)")
    assert load_urdf(path).joint_names == loads_urdf(GOOD).joint_names
    assert capfd.readouterr() == ("", "")


def test_only_the_ending_xacro_leads_there(path, stand_in):
    assert only_error(path.rename(path.with_name("arm.urdf"))).code == "xacro-unexpanded"
    assert only_error(path.with_name("none.xacro")).code == "file-missing"
    doctype = path.with_name("bomb.xacro")
    doctype.write_text('<!DOCTYPE r [<!ENTITY a "b">]><robot name="&a;"/>')
    assert only_error(doctype).code == "xml-doctype"
