"""Laws of the motion of links and of the centre of mass: Jacobian times velocity, and its rate."""

from __future__ import annotations

import numpy as np
import pytest
from ladder import State, along, relative

import robokit as rk
from robokit.dynamics.build import flat_function
from robokit.dynamics.table import KERNELS

STEP = 1e-30
AT = np.array([0.3, -0.2, 0.5])


@pytest.fixture
def case(robot):
    return robot, State(robot, 5)


def rate_of(robot, name, q, v, *about, at=()):
    """Derivative of a row's matrix along the motion, exact to rounding."""
    row = KERNELS[name]
    moved = along(robot, q, v, STEP).tolist()
    (flat,) = flat_function(row, robot, (name, *about))(moved, *([list(at)] if len(at) else []))
    return np.array([complex(x).imag for x in flat]).reshape(row.result.shapes(robot)[0]) / STEP


def links(robot):
    """The reference's link, one in the middle, the last."""
    return [robot.link_names[k] for k in (0, len(robot.links) // 2, -1)]


@pytest.mark.parametrize("axes", ["world", "body"])
def test_a_links_velocity_is_its_jacobian_times_the_velocity(case, axes):
    robot, s = case
    for link in links(robot):
        J = rk.link_jacobian(robot, s.q, link, axes, AT, engine="python")
        assert relative(rk.link_velocity(robot, s.q, s.v, link, axes, AT, engine="python"), J @ s.v) < 1e-13


def test_the_classical_acceleration_is_the_rate_of_the_velocity_of_the_point(case):
    # J a + (dJ/dt) v, in world axes; the axes of the link only turn it.
    robot, s = case
    for link in links(robot):
        J = rk.link_jacobian(robot, s.q, link, at=AT, engine="python")
        Jd = rate_of(robot, "link_jacobian", s.q, s.v, link, "world", at=AT)
        given = (robot, s.q, s.v, s.a, link)
        world, body = (
            rk.link_acceleration(*given, axes, AT, classical=True, engine="python")
            for axes in ("world", "body")
        )
        assert relative(world, J @ s.a + Jd @ s.v) < 1e-12
        R, _ = rk.forward_kinematics(robot, s.q, engine="python")[link]
        assert relative(np.kron(np.eye(2), R) @ body, world) < 1e-12


@pytest.mark.parametrize("axes", ["world", "body"])
def test_spatial_and_classical_acceleration_differ_by_omega_cross_v(case, axes):
    robot, s = case
    for link in links(robot):
        v = rk.link_velocity(robot, s.q, s.v, link, axes, AT, engine="python")
        spatial, classical = (
            rk.link_acceleration(robot, s.q, s.v, s.a, link, axes, AT, c, engine="python")
            for c in (False, True)
        )
        expected = spatial + np.r_[np.zeros(3), np.cross(v[:3], v[3:])]
        assert relative(classical, expected) < 1e-13


def test_the_spatial_acceleration_is_the_rate_of_the_spatial_velocity_in_the_body(case):
    # In body coordinates a = dv/dt component by component, since v x v = 0.
    robot, s = case
    for link in links(robot):
        J = rk.link_jacobian(robot, s.q, link, "body", AT, engine="python")
        Jd = rate_of(robot, "link_jacobian", s.q, s.v, link, "body", at=AT)
        a = rk.link_acceleration(robot, s.q, s.v, s.a, link, "body", AT, engine="python")
        assert relative(a, J @ s.a + Jd @ s.v) < 1e-12


def test_the_center_of_mass_moves_by_the_linear_rows_of_the_momentum(case):
    robot, s = case
    M, python = robot.total_mass, {"engine": "python"}
    A = rk.centroidal_momentum_matrix(robot, s.q, **python)
    bias = rk.centroidal_momentum_bias(robot, s.q, s.v, **python)
    J = rk.center_of_mass_jacobian(robot, s.q, **python)
    assert relative(J, A[3:] / M) < 1e-13
    assert relative(rk.center_of_mass_velocity(robot, s.q, s.v, **python), J @ s.v) < 1e-13
    a = rk.center_of_mass_acceleration(robot, s.q, s.v, s.a, **python)
    assert relative(a, (A @ s.a + bias)[3:] / M) < 1e-12


def test_the_jacobian_of_the_center_of_mass_is_its_derivative_and_has_a_rate(case):
    robot, s = case
    J = rk.center_of_mass_jacobian(robot, s.q, engine="python")
    (p,) = flat_function(KERNELS["center_of_mass"], robot)(along(robot, s.q, s.v, STEP).tolist())
    assert relative(J @ s.v, np.array(p).imag / STEP) < 1e-12
    Jd = rate_of(robot, "center_of_mass_jacobian", s.q, s.v)
    a = rk.center_of_mass_acceleration(robot, s.q, s.v, s.a, engine="python")
    assert relative(a, J @ s.a + Jd @ s.v) < 1e-12


def test_a_link_that_does_not_move_and_a_flag_that_is_none():
    robot = rk.loads_urdf("<robot name='post'><link name='a'/></robot>")
    none = np.zeros(0)
    assert (rk.link_velocity(robot, none, none, "a") == 0.0).all()
    assert (rk.link_acceleration(robot, none, none, none, "a", classical=True) == 0.0).all()
    with pytest.raises(rk.WrongType, match=r"^classical: expected True or False, got"):
        rk.link_acceleration(robot, none, none, none, "a", classical="yes")
