"""A .xacro path without the package xacro, and with a stand-in for it; tests/parity has the real one."""

import sys
from types import ModuleType, SimpleNamespace
from xml.dom.minidom import parseString

import pytest
from urdf_cases import GOOD

from robokit.errors import UrdfError
from robokit.urdf import check_urdf, load_urdf, loads_urdf


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
def stand_in(monkeypatch):
    """Calls of this package give the document of the text that it holds, or raise its error."""
    xacro = ModuleType("xacro")
    xacro.text, xacro.error = GOOD, None
    xacro.substitution_args = ModuleType("xacro.substitution_args")
    xacro.substitution_args._eval_find = None
    xacro.substitution_args._eval_dict = {}

    def process_file(path, mappings):
        if xacro.error:
            raise xacro.error
        return SimpleNamespace(toxml=parseString(xacro.text).toxml)

    xacro.process_file = process_file
    monkeypatch.setitem(sys.modules, "xacro", xacro)
    monkeypatch.setitem(sys.modules, "xacro.substitution_args", xacro.substitution_args)
    return xacro


def test_without_xacro_the_error_says_how_to_install_it(path, monkeypatch):
    monkeypatch.setitem(sys.modules, "xacro", None)
    error = only_error(path)
    assert error.code == "xacro-missing" and 'pip install "robokit[xacro]"' in error.hint


def test_the_expanded_text_is_read(path, stand_in):
    robot = load_urdf(path, strict=True)
    assert robot.joint_names == loads_urdf(GOOD).joint_names
    assert robot.source == f"{path} (expanded)"
    stand_in.text = '<robot name="r"><link name="a"/><link name="a"/></robot>'
    assert only_error(path).code == "link-duplicate"


def test_whatever_xacro_raises_is_an_error_of_the_file(path, stand_in):
    for stand_in.error in (ValueError("no such\nmacro"), KeyError("x"), RecursionError()):
        error = only_error(path)
        assert (error.code, error.file) == ("xacro-failed", str(path))
    stand_in.error = ValueError("no such\nmacro")
    assert "no such macro" in only_error(path).message


def test_only_the_ending_xacro_leads_there(path, stand_in):
    assert only_error(path.rename(path.with_name("arm.urdf"))).code == "xacro-unexpanded"
    assert only_error(path.with_name("none.xacro")).code == "file-missing"
    doctype = path.with_name("bomb.xacro")
    doctype.write_text('<!DOCTYPE r [<!ENTITY a "b">]><robot name="&a;"/>')
    assert only_error(doctype).code == "xml-doctype"
