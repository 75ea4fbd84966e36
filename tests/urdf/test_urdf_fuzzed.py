"""What fuzzing has found: inputs that ended in another exception, a warning or infinite numbers."""

import json

import numpy as np
import pytest
from urdf_cases import LIMIT, inertial, joint, link

from robokit.urdf import check_urdf, loads_urdf
from robokit.urdf.lint.files import Checked, as_json
from robokit.urdf.lint.lines import Paint, listing

BEYOND = {
    "an inertia that overflows where it is turned": (
        '<origin rpy="0.3 0.4 0.5"/><mass value="1"/>'
        '<inertia ixx="1.7e308" iyy="1.7e308" izz="1.7e308" ixy="1e308" ixz="1e308" iyz="1e308"/>'
    ),
    "an inertia that overflows where it is moved": (
        '<origin xyz="1e200 0 0"/><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
    ),
}


@pytest.mark.parametrize("what", BEYOND)
@pytest.mark.filterwarnings("error")
def test_inertias_beyond_the_largest_double_are_refused(what):
    _, found = check_urdf(link(f"<inertial>{BEYOND[what]}</inertial>"))
    assert [d.code for d in found if d.severity == "error"] == ["number-not-finite"]
    assert "link 'b' inertial" in found[0].element and found[0].line == 3


@pytest.mark.parametrize("mass", ["1e-320", "5e-324", "1e-12"])
@pytest.mark.filterwarnings("error")
def test_a_mass_that_vanishes_beside_its_inertia_is_listed(mass):
    description, found = check_urdf(inertial(mass=mass), plausible=True)
    checked = [Checked("<string>", description, found)]
    assert "\n".join(listing(checked, Paint(False), inertias=True))
    json.dumps(as_json(checked, inertias=True), allow_nan=False)


LEFTOVER = '<robot name="r" {0}>\n<link name="a"/>\n<x:b x:c="p:q r:s 12:30 é:x"/>\n</robot>\n'


@pytest.mark.parametrize("behind", ["<", "<robot/>", "words", "<a", "</robot>", "<!DOCTYPE r>"])
def test_a_prefix_that_nobody_declared_hides_nothing_behind_the_robot(behind):
    _, found = check_urdf(LEFTOVER.format("") + behind)
    assert [d.code for d in found] == ["xml-syntax"]


@pytest.mark.parametrize("root", ["", 'xmlns:y="u"', 'xmlns="http://a" xmlns:y="u"'])
def test_a_prefix_that_nobody_declared_is_a_note(root):
    (note,) = loads_urdf("<!-- <r> -->" + LEFTOVER.format(root)).diagnostics
    assert (note.code, note.line) == ("tag-unknown", 3) and "<x:b>" in note.message


@pytest.mark.parametrize("size", ["1e308", "1e-320"])
def test_an_axis_of_any_length_keeps_its_direction(size):
    robot = loads_urdf(joint(f'{LIMIT}<axis xyz="{size} 0 -{size}"/>'))
    np.testing.assert_allclose(robot.joint("j").axis, [0.5**0.5, 0.0, -(0.5**0.5)], rtol=1e-12, atol=0.0)
