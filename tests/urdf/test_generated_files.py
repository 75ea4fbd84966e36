"""Generated files load in silence and mutated ones load or are refused; what fuzzing found; real files."""

from __future__ import annotations

import json
import re
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from urdf_cases import LIMIT, inertial, joint, link
from urdf_strategies import urdfs

from robokit.errors import RobokitError, UrdfError
from robokit.robot_names import example_robots
from robokit.urdf import check_urdf, loads_urdf
from robokit.urdf.lint import CheckedFile, Paint, as_json, listing


@given(urdfs(), st.sampled_from(["fixed", "floating"]))
def test_generated_robots_are_silent(text, base):
    robot = loads_urdf(text, base=base, strict=True)
    assert robot.diagnostics == []
    assert len(robot.link_names) == text.count("<link ")
    assert len(robot.all_joint_names) == text.count("<joint ") + (base == "floating")
    assert len(robot.loop_joints) == text.count("<loop_joint ")
    assert sum(j.mimic is not None for j in robot.joints) == text.count("<mimic ")


@st.composite
def mutants(draw):
    text = draw(urdfs())
    for _ in range(draw(st.integers(1, 3))):
        tokens = list(re.finditer(r'"[^"]*"|<[^>]*>|[\w.]+', text))
        a, b = (draw(st.sampled_from(tokens)) for _ in range(2))
        new = draw(
            st.sampled_from(
                ["", '""', '"nan"', '"-1"', '"1e308"', '"1e-320"', '"0 0 0"', "<", "&", "\0", b[0]]
            )
        )
        text = text[: a.start()] + new + text[a.end() :]
    return text


@settings(max_examples=75)
@given(mutants(), st.sampled_from(["fixed", "floating"]))
def test_mutants_load_or_are_refused(text, base):
    description, found = check_urdf(text if text.lstrip()[:1] == "<" else text.encode(), base=base)
    try:
        robot = loads_urdf(text, base=base)
    except UrdfError as error:
        assert any(d.severity == "error" for d in error.diagnostics)
    except RobokitError:
        pass
    else:
        assert description is not None
        assert robot.diagnostics == found


@given(st.binary(max_size=200))
def test_noise_is_refused(data):
    try:
        loads_urdf(data)
    except UrdfError as error:
        assert error.diagnostics
    else:
        raise AssertionError("noise is no robot")


# ---- what fuzzing has found ----------------------------------------------------------------------

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


HEAVY = (
    '<inertial><mass value="{0}"/><inertia ixx="{1}" iyy="{1}" izz="{1}" ixy="0" ixz="0" iyz="0"/></inertial>'
)


def joined(kind, first, second, xyz="0 0 0"):
    """Links a (the root), b and c, the last two with these inertials, c joined to b by this kind of joint."""
    links = f'<link name="a"/>\n<link name="b">{first}</link>\n<link name="c">{second}</link>\n'
    ends = '<joint name="{0}" type="{1}"><parent link="{2}"/><child link="{3}"/><origin xyz="{4}"/></joint>\n'
    joints = ends.format("j", "continuous", "a", "b", "0 0 0") + ends.format("k", kind, "b", "c", xyz)
    return f'<robot name="r">\n{links}{joints}</robot>'


SUMS = {
    "inertias": (joined("fixed", HEAVY.format(1, "1.5e307"), HEAVY.format(1, "1.5e307")), "fixed to it"),
    "distances": (joined("fixed", HEAVY.format(1, 1), HEAVY.format(1, 1), "1e200 0 0"), "fixed to it"),
    "masses": (
        joined("continuous", HEAVY.format("1e308", "1e307"), HEAVY.format("1e308", "1e307")),
        "the mass of all links together",
    ),
}


@pytest.mark.parametrize("what", SUMS)
@pytest.mark.filterwarnings("error")
def test_sums_beyond_the_largest_double_are_errors_that_name_the_link(what):
    text, words = SUMS[what]
    _, (error,) = check_urdf(text)
    assert (error.severity, error.code) == ("error", "number-not-finite")
    assert (error.element, error.line) == ("link 'c' inertial", 4) and words in error.message


@pytest.mark.filterwarnings("error")
def test_inertias_of_links_that_move_apart_are_not_added():
    robot = loads_urdf(joined("continuous", HEAVY.format(1, "1e307"), HEAVY.format(1, "1e307")))
    assert robot.diagnostics == []


def mimics(laws):
    """Joint j0 moves by itself, each further one follows the joint before it: multiplier, offset."""
    links = '<link name="a"/>' + "".join(
        f'<link name="l{k}">{HEAVY.format(1, 1)}</link>' for k in range(len(laws) + 1)
    )
    joints = '<joint name="j0" type="continuous"><parent link="a"/><child link="l0"/></joint>\n'
    for k, (multiplier, offset) in enumerate(laws, 1):
        joints += (
            f'<joint name="j{k}" type="continuous"><parent link="a"/><child link="l{k}"/>'
            f'<mimic joint="j{k - 1}" multiplier="{multiplier}" offset="{offset}"/></joint>\n'
        )
    return f'<robot name="r">\n{links}{joints}</robot>'


@pytest.mark.parametrize(
    ("laws", "told"),
    [
        ([(2, 0)] * 2000, "joint 'j1024' mimic"),
        ([(1e200, 0), (1, 0), (-1e200, 0), (2, 0)], "joint 'j3' mimic"),
        ([(1, 1e308), (1, 1e308)], "joint 'j2' mimic"),
        ([(0, 1e308), (1e10, 0)], "joint 'j2' mimic"),
    ],
)
@pytest.mark.parametrize("mimic", [None, "couple"])
def test_a_chain_of_mimics_beyond_the_largest_double_is_an_error_that_names_the_joint(laws, told, mimic):
    with pytest.raises(UrdfError) as caught:
        loads_urdf(mimics(laws), mimic=mimic)
    (error,) = (d for d in caught.value.diagnostics if d.severity == "error")
    assert (error.code, error.element) == ("number-not-finite", told)
    assert error.line == 2 + int(told.split("'")[1][1:])


@pytest.mark.slow
@pytest.mark.parametrize("laws", [[(2, 0)] * 1000, [(0.5, 1)] * 1100, [(1e200, 0), (1e-200, 0), (1e200, 0)]])
def test_a_chain_of_mimics_within_the_doubles_is_coupled(laws):
    """To the largest one; to below the smallest one, which is 2**-1074; and out of their range between."""
    assert np.isfinite(loads_urdf(mimics(laws), mimic="couple").coupling.q_from).all()


def test_long_chains_of_mimics_take_no_square_of_time():
    text = mimics([(1, 0)] * 5000)
    start = time.process_time()
    assert check_urdf(text, mimic="couple")[1] == []
    assert time.process_time() - start < 10


@pytest.mark.parametrize("mass", ["1e-320", "5e-324", "1e-12"])
@pytest.mark.filterwarnings("error")
def test_a_mass_that_vanishes_beside_its_inertia_is_listed(mass):
    description, found = check_urdf(inertial(mass=mass), plausible=True)
    checked = [CheckedFile("<string>", description, found)]
    assert "\n".join(listing(checked, Paint(False), inertias=True))
    json.dumps(as_json(checked, inertias=True), allow_nan=False)


LEFTOVER = '<robot name="r" {0}>\n<link name="a"/>\n<x:b x:c="p:q r:s 12:30 é:x"/>\n</robot>\n'


@pytest.mark.parametrize("behind", ["<", "<robot/>", "words", "<a", "</robot>", "<!DOCTYPE r>"])
def test_a_prefix_that_nobody_declared_hides_nothing_behind_the_robot(behind):
    _, found = check_urdf(LEFTOVER.format("") + behind)
    assert [d.code for d in found] == ["xml-syntax"]


@pytest.mark.parametrize("root", ["", 'xmlns:y="u"', 'xmlns="http://a" xmlns:y="u"'])
def test_a_prefix_that_nobody_declared_is_one_warning(root):
    (warning,) = loads_urdf("<!-- <r> -->" + LEFTOVER.format(root)).diagnostics
    assert (warning.severity, warning.code, warning.line) == ("warning", "xml-prefix-undeclared", 3)
    assert "the prefix of x:b is declared nowhere (2 times; first here)" in warning.message


def test_every_prefix_is_told_once_wherever_it_stands():
    inside = '<link name="a" p:x="1"><q:r/></link>\n<gazebo>\n<p:s/></gazebo>'
    found = loads_urdf(f'<robot name="r">{inside}</robot>').diagnostics
    assert [(d.code, d.line) for d in found if d.severity == "warning"] == [("xml-prefix-undeclared", 1)] * 2
    assert {d.code for d in found if d.severity == "note"} == {"physics-ignored"}
    declared = f'<robot name="r" xmlns:p="p" xmlns:q="q">{inside}</robot>'
    assert not [d for d in loads_urdf(declared).diagnostics if d.severity == "warning"]


@pytest.mark.parametrize("size", ["1e308", "1e-320"])
def test_an_axis_of_any_length_keeps_its_direction(size):
    robot = loads_urdf(joint(f'{LIMIT}<axis xyz="{size} 0 -{size}"/>'))
    np.testing.assert_allclose(robot.joint("j").axis, [0.5**0.5, 0.0, -(0.5**0.5)], rtol=1e-12, atol=0.0)


# ---- the robots of example-robot-data ------------------------------------------------------------
# What real files look like. Every warning here was looked at by hand.

# Files with a defect that no reading of theirs can mend.
REFUSED = {"alex_psyonic_hands.urdf": {"mimic-unknown"}, "ur3.urdf": {"no-links"}}

JUSTIFIED = {
    "inertia-not-psd",
    "inertia-triangle",
    "inertia-zero",
    "limit-range-missing",
    "massless-subtree",
    "mesh-unresolved",
    "robot-name-empty",
}

SILENT = {
    "a1.urdf",
    "borinot_flying_arm_2.urdf",
    "double_pendulum_continuous.urdf",
    "g1_29dof_with_hand_rev_1_0.urdf",
    "hextilt_flying_arm_5.urdf",
    "human.urdf",
    "iris.urdf",
    "laikago.urdf",
    "simple_humanoid_classical.urdf",
}


@pytest.mark.parity
def test_example_robots():
    paths = sorted(set(example_robots().values()))
    assert len(paths) > 50
    silent = set()
    for path in paths:
        _, found = check_urdf(path)
        errors = {d.code for d in found if d.severity == "error"}
        assert errors == REFUSED.get(path.name, set()), found
        assert {d.code for d in found if d.severity == "warning"} <= JUSTIFIED
        if not found:
            silent.add(path.name)
    assert silent >= SILENT
