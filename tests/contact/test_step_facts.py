"""What is said of single steps: forces by link, stops, meetings and rest."""

from __future__ import annotations

import numpy as np
import pytest
from ladder import box_with_bar

import robokit as rk
from robokit.model import Box, ModelBuilder, Placement, Shape

DT = 1e-3


def folding():
    return box_with_bar(at=0.25, length=0.3)


@pytest.fixture(scope="module")
def fall():
    robot = folding()
    q, v = robot.neutral(), np.array([1.5, -2.0, 3.0, 1.0, 0.0, 0.0, 4.0])
    q[6] = 0.8
    return rk.simulate(robot, q, v, duration=2.0, dt=DT, ground=True, record_every=7)


def test_forces_of_all_steps_add_up_to_the_impulse_of_the_ground(fall):
    facts = fall.step_facts
    assert facts.force.shape == (2000, 2, 3) and facts.normal.max() > 100.0
    # Where nothing moves one step stands for many.
    np.testing.assert_allclose(DT * facts.force.sum(axis=(0, 1)), fall.contact_impulse[-1], atol=1e-6)
    # The ground is level: its normal force is that along z, and no friction is beyond Coulomb's.
    np.testing.assert_allclose(facts.normal, facts.force[..., 2], atol=1e-9 * facts.normal.max())
    along = np.linalg.norm(facts.force[..., :2], axis=-1)
    assert (along <= fall.ground.coefficient("box") * facts.normal * (1.0 + 1e-9) + 1e-9).all()


def test_states_before_all_steps_hold_the_records(fall):
    facts, marks = fall.step_facts, np.array(fall.marks)[:-1]
    np.testing.assert_allclose(facts.q[marks], fall.q[:-1], atol=1e-8)
    np.testing.assert_allclose(facts.v[marks], fall.v[:-1], atol=1e-8)


def test_stops_press_away_from_the_limit_that_is_reached(fall):
    facts = fall.step_facts
    pressed = np.flatnonzero(facts.stop[:, 0])
    assert len(pressed) > 10
    assert (np.sign(facts.stop[pressed, 0]) == -np.sign(facts.q[pressed, 7])).all()
    assert (np.abs(facts.q[pressed, 7]) > 0.19).all()


def test_a_robot_that_lies_is_at_rest(fall):
    kinds = [event.kind for event in fall.events]
    assert {"first contact", "impact", "limit", "peak load", "rest"} <= set(kinds)
    last = fall.step_facts
    assert last.moving[-1] < 1e-3 < last.moving[0]
    weight = 9.81 * fall.robot.total_mass
    assert last.load[-1] == pytest.approx(weight, rel=1e-3)


def test_links_that_meet_feel_the_same_impulse():
    """Two bars on hinges swing against each other."""
    b = ModelBuilder("clap")
    b.link("base")
    for side, name in ((-1.0, "left"), (1.0, "right")):
        b.link(
            name,
            mass=1.0,
            com=(0, 0, -0.2),
            inertia=np.diag([0.02, 0.02, 0.002]),
            collisions=(Shape(Box((0.1, 0.1, 0.4)), Placement(position=np.array([0, 0, -0.2]))),),
        )
        place = Placement(position=np.array([side * 0.1, 0.0, 0.0]))
        b.joint(f"{name} hinge", "revolute", "base", name, place, axis=(0, 1, 0))
    run = rk.simulate(
        b.build(),
        [0.5, -0.5],
        duration=0.5,
        dt=DT,
        self_collision=True,
        joint_damping=0.0,
    )
    met = run.step_facts.met
    assert (met[:, 0] > 0.1).any()
    np.testing.assert_allclose(met[:, 0], met[:, 1], rtol=1e-12)
    assert "collision" in {event.kind for event in run.events}


def test_an_imu_measures_what_the_steps_do():
    robot = folding()
    q, v = robot.neutral(), np.array([1.5, -2.0, 3.0, 1.0, 0.0, 0.0, 4.0])
    q[6] = 0.3
    run = rk.simulate(robot, q, v, duration=0.2, dt=DT, ground=True, record_every=1)
    w, x, y, z = run.q[:, :4].T
    up = np.stack([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)], axis=1)
    u = np.einsum("ti,ti->t", up, run.v[:, 3:6])  # of the box's origin, upward
    force = run.sensors.imu("box").specific_force[1:]
    felt = np.einsum("ti,ti->t", 0.5 * (up[1:] + up[:-1]), force)
    assert np.abs(felt).max() > 50.0
    np.testing.assert_allclose(felt, np.diff(u) / DT + 9.81, atol=1e-2 * np.abs(felt).max())
