"""NaN in q, a quaternion that is not unit: an InvalidValue that names the joint, and no ShapeError."""

from __future__ import annotations

import numpy as np
import pytest
from for_each import for_each

import robokit as rk


@pytest.fixture(scope="module")
def robot():
    return rk.load_urdf(rk.find_robot("humanoid"), base="floating")


def bad(robot, joint, which):
    x = robot.neutral() if which == "q" else np.zeros(robot.nv)
    place = getattr(robot.joint(joint), f"{which}_slice")
    x[place.start] = np.nan
    return x


CALLS = {
    "crba": lambda r, q, v: rk.crba(r, q),
    "rnea": lambda r, q, v: rk.rnea(r, q, v, v, engine="python"),
    "batch": lambda r, q, v: rk.kinetic_energy(r, np.stack([r.neutral(), q]), v, engine="python"),
    "link": lambda r, q, v: rk.link_velocity(r, q, v, "head", engine="python"),
    "integrate": lambda r, q, v: r.integrate(q, v),
    "simulate": lambda r, q, v: rk.simulate(r, q, v, duration=0.01),
    "rollout": lambda r, q, v: rk.rollout(r, q, v, duration=0.01),
}


@for_each("name", CALLS)
def test_nan_in_q_names_the_joint(robot, name):
    with pytest.raises(rk.InvalidValue, match=r"^q0?: expected finite .* nan .*\(joint 'left_knee'\)") as e:
        CALLS[name](robot, bad(robot, "left_knee", "q"), np.zeros(robot.nv))
    assert not isinstance(e.value, rk.ShapeError)
    assert isinstance(e.value, ValueError) and isinstance(e.value, rk.RobokitError)
    assert e.value.argument in ("q", "q0")
    assert e.value.place[-1] == robot.joint("left_knee").q_slice.start


@for_each("name", ["rnea", "batch", "link", "integrate", "simulate"])
def test_nan_in_v_names_the_joint(robot, name):
    with pytest.raises(rk.InvalidValue, match=r"nan .*\(joint 'left_knee'\)"):
        CALLS[name](robot, robot.neutral(), bad(robot, "left_knee", "v"))


def test_a_quaternion_that_is_not_unit_names_the_base(robot):
    q = robot.neutral()
    q[0] = 2.0
    for call in (lambda: rk.crba(robot, q), lambda: robot.integrate(q, np.zeros(robot.nv))):
        with pytest.raises(rk.InvalidValue, match=r"unit quaternion .*\(joint 'floating_base'\)"):
            call()
    for call, argument in (
        (lambda: robot.configuration({"floating_base": q[:7]}), "joints['floating_base']"),
        (lambda: robot.configuration(base_quat_wxyz=q[:4]), "base_quat_wxyz"),
    ):
        with pytest.raises(rk.InvalidValue, match="'floating_base' has norm 2; a unit quaternion") as e:
            call()
        assert (e.value.argument, e.value.place) == (argument, (0,))


def test_a_quaternion_that_cannot_be_divided_by_its_norm_gets_other_advice():
    robot = rk.load("quadruped", base="floating")
    for size, advice in ((0.0, "robot.neutral() has [1, 0, 0, 0]"), (2.0, "divide it by its norm")):
        q = robot.neutral()
        q[:4] *= size
        with pytest.raises(rk.InvalidValue) as caught:
            rk.crba(robot, q)
        assert advice in str(caught.value)
