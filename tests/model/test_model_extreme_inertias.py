"""Inertias that are no numbers, or too large to be added up, are refused with the link's name."""

import numpy as np
import pytest

import robokit as rk
from robokit.model import ModelBuilder, Placement


def _two_welded(mass, com=(0.0, 0.0, 0.0)):
    builder = ModelBuilder("welded")
    builder.link("a", mass=1.0, inertia=np.eye(3))
    builder.link("b", mass=mass, com=com, inertia=np.eye(3))
    builder.joint("weld", "fixed", "a", "b", Placement(position=np.array([1e200, 0.0, 0.0])))
    return builder.build("floating")


def test_inertias_that_overflow_when_welded_are_named(recwarn):
    with pytest.raises(rk.ModelError, match=r"link 'b': its mass 1e\+200 kg and inertia are too large"):
        _two_welded(1e200)
    text = """<robot name="r"><link name="a"><inertial><mass value="1"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
    <link name="b"><inertial><mass value="1e300"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
    <joint name="j" type="fixed"><parent link="a"/><child link="b"/>
    <origin xyz="1e10 0 0"/></joint></robot>"""
    with pytest.raises(rk.RobokitError, match="'b'"):
        rk.loads_urdf(text, base="floating")
    robot = rk.loads_urdf(text.replace("1e300", "1"), base="floating")
    with pytest.raises(rk.ModelError, match="link 'b': its mass and inertia are too large"):
        robot.with_inertias({"b": (1e300, None, None)})
    assert not [w for w in recwarn.list if issubclass(w.category, RuntimeWarning)]


MASKED = np.ma.masked_array([1.0, 2.0], mask=[True, False])


@pytest.mark.parametrize(
    "wrong", [np.ma.masked, MASKED, [np.ma.masked, 1.0], "1", ["1", "2"], 1j, True, [None, 1.0], object(), {}]
)
def test_masses_that_are_no_numbers_are_refused(wrong):
    robot = rk.load_urdf(rk.find_robot("double_pendulum"))
    with pytest.raises(rk.ModelError, match="mass of link 'upper'"):
        robot.with_inertias({"upper": (wrong, None, None)})


def test_parameters_that_are_no_numbers_are_refused():
    robot = rk.load_urdf(rk.find_robot("double_pendulum"))
    P = robot.inertial_parameters
    for wrong in (
        np.ma.masked_array(P, mask=P > 1.0),
        P.astype(str),
        P.astype(complex),
        P.astype(object),
        "heavy",
    ):
        with pytest.raises(rk.ModelError, match="inertias: expected"):
            robot.with_inertias(wrong)
    with pytest.raises(rk.ModelError, match="com of link 'upper'"):
        robot.with_inertias({"upper": (None, np.ma.masked_array([0.0, 0.0, 1.0], mask=[0, 0, 1]), None)})
