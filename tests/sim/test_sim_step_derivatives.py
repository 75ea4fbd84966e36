"""Derivatives of the simulator's step: against differences, in contact and out of it, and never NaN."""

from __future__ import annotations

import numpy as np
import pytest
import sim_models
from ladder import State, pendulum, random_tree, relative

import robokit as rk
from robokit.model.geometry import Cylinder, Shape

DT = 1e-3


def derivatives(robot, q, v, tau=None, **how):
    return rk.step_derivatives(robot, q, v, tau, dt=DT, **how)


def error(robot, q, v, tau, along, h, **how):
    """Of A and B along some directions, against fourth-order central differences."""
    here, n = derivatives(robot, q, v, tau, **how), robot.nv
    x = [(s, e) for e in along for s in (1, -1, 2, -2)]
    moves = [h * s * e for s, e in x]
    qs = np.array([robot.integrate(q, e[:n]) for e in moves])
    rest = np.array([np.hstack([v, tau]) + e[n:] for e in moves])
    there = derivatives(robot, qs, rest[:, :n], rest[:, n:], **how)
    rows = np.hstack([robot.difference(np.broadcast_to(here.q, qs.shape), there.q), there.v])
    a, b, c, d = rows.reshape(len(along), 4, 2 * n).swapaxes(0, 1)
    quotient = (8.0 * (a - b) - (c - d)) / (12.0 * h)
    return relative((np.hstack([here.A, here.B]) @ along.T).T, quotient)


@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_free_motion_of_every_joint_kind(base):
    robot = random_tree(0, base, n=9)
    s = State(robot, 2)
    along = np.random.default_rng(0).standard_normal((2, 3 * robot.nv))
    assert error(robot, s.q, s.v, s.tau, along, 1e-4, engine="python") < 1e-9


@pytest.mark.parametrize("robot", [pendulum(), random_tree(0, "floating", n=3)], ids=["fixed", "floating"])
def test_a_step_is_the_simulators_own(robot):
    s = State(robot)
    run = rk.simulate(robot, s.q, s.v, duration=DT, dt=DT, controller=lambda t, q, v: s.tau, record_every=1)
    step = derivatives(robot, s.q, s.v, s.tau)
    assert relative(step.q, run.q[-1]) < 1e-14
    assert relative(step.v, run.v[-1]) < 1e-14


def test_a_step_of_a_pendulum_is_that_of_its_linear_equation():
    robot = pendulum()
    step = derivatives(robot, [0.0], [0.0])
    mass = float(rk.crba(robot, [0.0], engine="python")[0, 0])
    w = np.sqrt(9.81 * 0.5 * 2.0 / mass)
    expected = [[np.cos(w * DT), np.sin(w * DT) / w], [-w * np.sin(w * DT), np.cos(w * DT)]]
    assert relative(step.A, expected) < 1e-12
    push = np.array([[(1.0 - np.cos(w * DT)) / w**2], [np.sin(w * DT) / w]]) / mass
    assert np.abs(step.B - push).max() < 1e-13


CONTACTS = {
    "in the air": ((0.0, 0.0), 0.3, (0, 0, 0, 0, 0, 0)),
    "touching": ((0.0, 0.0), 0.1, (0, 0, 0, 0, 0, 0)),
    "sticking": ((0.0, 0.0), 0.0995, (0, 0, 0, 0, 0, 0)),
    "sliding": ((0.0, 0.0), 0.0995, (0.1, 0.2, 0.3, 1.0, -0.5, 0.01)),
    "landing": ((0.3, 0.2), 0.14, (0.5, 0.2, 0.1, 0.3, 0.2, -1.0)),
    "on an edge": ((np.pi / 4, 0.0), 0.141, (0.2, 0.3, 0.1, 0.5, 0.2, -0.1)),
}


def laid(robot, place):
    (roll, pitch), height, v = CONTACTS[place]
    q = robot.neutral()
    q = robot.integrate(q, [roll, 0, 0, 0, 0, 0])
    q = robot.integrate(q, [0, pitch, 0, 0, 0, 0])
    q[4:] = 0.1, -0.2, height
    return q, np.array(v, dtype=float)


@pytest.mark.parametrize("place", ["in the air", "sliding", "landing", "on an edge"])
def test_a_box_on_the_ground_away_from_switches(place):
    robot = sim_models.box()
    q, v = laid(robot, place)
    tau = np.array([0.1, 0.2, 0.0, 0.3, -0.2, 0.1])
    along = np.random.default_rng(1).standard_normal((2, 18))
    assert error(robot, q, v, tau, along, 1e-7, ground=True) < 1e-6


def disc():
    builder = rk.ModelBuilder("disc")
    shapes = (Shape(Cylinder(0.1, 0.2)),)
    builder.link("disc", mass=1.0, inertia=np.diag([0.004, 0.004, 0.005]), collisions=shapes)
    return builder.build("floating")


@pytest.mark.parametrize("shape", [sim_models.box, sim_models.ball, disc])
@pytest.mark.parametrize("ground", [True, rk.Ground(restitution=0.5, torsional=0.01, rolling=0.01)])
def test_no_contact_state_gives_nan(shape, ground):
    # Flat, on edges and corners, at rest and exactly touching: where roots and quotients are of 0.
    robot = shape()
    q, v = (np.array(x) for x in zip(*(laid(robot, place) for place in CONTACTS), strict=True))
    found = derivatives(robot, q, v, ground=ground)
    assert all(np.isfinite(x).all() for x in found)
    pressed = found.v[:, 5] > v[:, 5] - 0.005
    assert pressed.any() and not pressed[0]


def test_machine_code_takes_the_same_step():
    robot = sim_models.slider(friction=1.0, damping=2.0, upper=0.1, lower=-0.1)
    q, v = np.array([[0.0], [0.0999], [0.11]]), np.array([[0.0], [1.0], [0.5]])
    tau = np.array([[0.5], [0.0], [3.0]])
    code = rk.step_derivatives(robot, q, v, tau, dt=DT)
    plain = derivatives(robot, q, v, tau, engine="python")
    for x, y in zip(code, plain, strict=True):
        assert relative(x, y) < 1e-12
    one = rk.step_derivatives(robot, q[1], v[1], tau[1], dt=DT)
    assert (code.A[1] == one.A).all() and one.B.shape == (2, 1)
    box = sim_models.box()
    both = (derivatives(box, *laid(box, "sliding"), ground=True, engine=x) for x in (None, "python"))
    assert max(relative(x, y) for x, y in zip(*both, strict=True)) < 1e-11


@pytest.mark.slow
@pytest.mark.parametrize("name", ["quadruped", "humanoid"])
def test_rows_of_a_robot_on_the_ground_are_single_states_and_the_plain_text(name):
    robot = rk.load_urdf(rk.find_robot(name), base="floating")
    q, v = rk.standing_configuration(robot), np.random.default_rng(4).standard_normal((2, robot.nv))
    found = rk.step_derivatives(robot, q, v, dt=DT, ground=True)
    for x, y in zip(found, derivatives(robot, q, v, ground=True, engine="python"), strict=True):
        assert relative(x, y) < 1e-11
    one = rk.step_derivatives(robot, q, v[1], dt=DT, ground=True)
    assert (one.q == found.q[1]).all() and (found.A[1] == one.A).all() and (found.B[1] == one.B).all()


def test_a_robot_that_is_over_the_ground_by_rounding_has_the_derivatives_of_one_that_rests():
    """From 5 um over it, gravity alone brings a point down in a step, and the derivatives are steep."""
    robot = sim_models.box()
    q, v = rk.standing_configuration(robot), np.zeros(robot.nv)
    height = rk.standing_height(robot, q)
    resting, *others = (
        rk.step_derivatives(robot, [*q[:6], height + over, *q[7:]], v, ground=rk.Ground()).A
        for over in (-1e-9, 1e-15, 1e-13)
    )
    for other in others:
        assert abs(other).max() < 1.1 * abs(resting).max()


def test_samples_of_inertias_take_steps_of_their_own():
    robot = pendulum()
    varied = robot.with_inertias(robot.inertial_parameters * np.array([1.0, 3.0])[:, None, None])
    found = derivatives(varied, [0.3], [0.1], [0.2])
    for k in range(2):
        alone = derivatives(varied.sample(k), [0.3], [0.1], [0.2])
        assert all(relative(x[k], y) < 1e-13 for x, y in zip(found, alone, strict=True))


def test_what_has_no_derivative_is_refused():
    robot = sim_models.box()
    q, v = laid(robot, "sticking")
    with pytest.raises(rk.ShapeError, match=r"^q\[0\]: link 'box' .* below the ground"):
        derivatives(robot, q - [0, 0, 0, 0, 0, 0, 1.0], v, ground=True)
    with pytest.raises(rk.InvalidValue, match="unit quaternion"):
        derivatives(robot, 2.0 * q, v)


@pytest.mark.parametrize("engine", [None, "python"])
def test_a_batch_of_no_state_has_no_derivative(engine):
    robot = sim_models.box()
    for rows in (np.zeros((0, robot.nq)), robot.neutral()):
        step = rk.step_derivatives(robot, rows, np.zeros((0, robot.nv)), dt=DT, engine=engine)
        assert [x.shape for x in step] == [(0, 7), (0, 6), (0, 12, 12), (0, 12, 6)]


def test_a_robot_at_rest_in_the_air_has_the_derivatives_of_one_that_hardly_moves():
    """The correction of energy is of no size there; it took what the rounding of the weight's work made."""
    robot = random_tree(1, "floating", ("revolute",), n=3)
    q = robot.neutral()
    q[4:7] = 0.3, 0.2, 3.0
    still = np.zeros(robot.nv)
    along = np.random.default_rng(0).standard_normal((2, 3 * robot.nv))
    along[:, : robot.nv] = 0.0
    assert error(robot, q, still, still, along, 1e-3, ground=True, joint_damping=0.1) < 2e-3
