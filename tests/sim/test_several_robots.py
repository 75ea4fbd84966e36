"""Several robots in one world: names, falls as alone, contacts between them."""

import numpy as np
import pytest
import sim_models as m

import robokit as rk
from robokit.model import Box, ModelBuilder, Placement, Shape


def _at(x: float, z: float) -> Placement:
    return Placement(position=np.array([x, 0.0, z]))


def test_robots_keep_their_dynamics_and_their_names():
    quad, pendulum = m.quadruped(), m.double_pendulum()
    world = rk.together({"a": (quad, _at(1.0, 0.5)), "b": pendulum})
    assert world.base == "fixed"
    assert (world.nq, world.nv) == (quad.nq + pendulum.nq, quad.nv + pendulum.nv)
    assert "a/floating_base" in world.joint_names
    assert f"b/{pendulum.joint_names[0]}" in world.joint_names
    rng = np.random.default_rng(0)
    q = [robot.random_configuration(rng) for robot in (quad, pendulum)]
    v = [rng.normal(size=robot.nv) for robot in (quad, pendulum)]
    want = [
        rk.aba(robot, *state, np.zeros(robot.nv))
        for robot, *state in zip((quad, pendulum), q, v, strict=True)
    ]
    got = rk.aba(world, np.concatenate(q), np.concatenate(v), np.zeros(world.nv))
    assert np.abs(got - np.concatenate(want)).max() < 1e-9


def test_each_falls_as_it_would_alone():
    ball, box = m.ball(), m.box()
    world = rk.together({"ball": (ball, _at(0.0, 0.3)), "box": (box, _at(5.0, 0.4))})
    run = rk.simulate(world, duration=0.6, dt=1e-3, ground=rk.Ground(), self_collision=True)
    assert run.q[-1, 6] + 0.3 == pytest.approx(0.1, abs=2e-3)
    assert run.q[-1, 13] + 0.4 == pytest.approx(0.1, abs=2e-3)
    for name in ("angular", "linear"):
        assert run.summary[f"momentum_balance_{name}"] < 1e-6


def test_robots_of_a_world_stand_one_by_one():
    ball, box = m.ball(), m.box()
    world = rk.together({"ball": ball, "box": (box, _at(1.0, 0.0))})
    with pytest.raises(rk.ShapeError, match=r"a world of robots.*np.concatenate"):
        rk.standing_configuration(world)
    q = np.concatenate([rk.standing_configuration(robot) for robot in (ball, box)])
    run = rk.simulate(world, q, duration=0.05, dt=1e-3, ground=True)
    assert abs(run.v).max() < 0.02


def test_robots_that_meet_in_space_keep_their_momentum():
    ball = m.ball()
    world = rk.together({"one": (ball, _at(0.0, 0.0)), "two": (ball, _at(1.0, 0.05))})
    pairs = rk.collision_pairs(world)
    assert pairs.pairs == (("one/ball", "two/ball"),)
    v0 = np.zeros(12)
    v0[3], v0[9] = 2.0, -1.0
    run = rk.simulate(world, v0=v0, duration=0.6, dt=1e-3, gravity=(0, 0, 0), self_collision=pairs)
    assert run.summary["dissipated_by_collision"] > 0.5
    assert np.abs(run.momentum - run.momentum[0]).max() < 1e-9
    assert np.linalg.norm(run.q[:, 4:7] - run.q[:, 11:14] - [1.0, 0.0, 0.05], axis=1).min() > 0.199


def test_a_ball_comes_to_rest_on_a_box():
    world = rk.together({"box": (m.box(), _at(0.0, 0.1)), "ball": (m.ball(), _at(0.0, 0.4))})
    run = rk.simulate(world, duration=0.5, dt=1e-3, ground=rk.Ground(), self_collision=True)
    assert run.q[-1, 13] + 0.4 > 0.25  # it lies on the capsules of the box, not on the ground
    assert run.energy.kinetic[-1] < 0.05
    forces = sum(run.contact_forces.values())
    np.testing.assert_allclose(forces, run.contact_force, atol=1e-9 * np.abs(forces).max())


def test_a_table_that_is_fixed_to_the_world_is_not_the_ground():
    """A ball slides to a halt on it: its forces are booked between the two, the ground is never touched."""
    top = ModelBuilder("table").link("top", 5.0, inertia=np.eye(3), collisions=(Shape(Box((2.0, 2.0, 0.2))),))
    world = rk.together({"table": (top.build("fixed"), _at(0.0, 0.4)), "ball": (m.ball(), _at(0.0, 0.65))})
    assert rk.collision_pairs(world).pairs == (("table/top", "ball/ball"),)
    v0, dt = np.array([0.0, 0.0, 0.0, 0.5, 0.0, 0.0]), 1e-3
    run = rk.simulate(world, v0=v0, duration=0.4, dt=dt, ground=rk.Ground(), record_every=1)
    assert set(zip(run.contacts.against, run.contacts.links, strict=True)) == {("table/top", "ball/ball")}
    force = run.contacts.forces.sum(axis=1)
    gained = dt * (force.sum(axis=0) + (len(run) - 1) * world.total_mass * world.gravity)
    np.testing.assert_allclose(run.momentum[-1, 3:] - run.momentum[0, 3:], gained, atol=1e-9)
    assert force[-1] == pytest.approx(-world.total_mass * world.gravity, rel=1e-3, abs=1e-3)
    for name in ("angular", "linear"):
        assert run.summary[f"momentum_balance_{name}"] < 1e-9
    assert run.summary["energy_balance"] < 1e-9
    # Of the ground there is nothing.
    assert not run.contact_force.any() and not run.contact_impulse.any() and not run.step_forces.force.any()
    assert not run.contact_forces["ball/ball"].any() and run.summary["deepest_penetration"] == 0.0
    assert run.losses["collision"][-1] > 0.5 and not run.losses["contact"].any()
    assert {e.kind for e in run.events} == {"collision"}
    assert {e.subject for e in run.events} == {"table/top", "ball/ball"}
    simulation = rk.Simulation(world, v0=v0, dt=dt, ground=rk.Ground())
    simulation.step(steps=400)
    assert (simulation.contacts.against, simulation.contacts.links) == (("table/top",), ("ball/ball",))
    np.testing.assert_array_equal(simulation.contacts.forces.sum(axis=0), force[-1])


@pytest.mark.parametrize("wrong", [None, [], "robots"])
def test_what_is_no_mapping_is_refused(wrong):
    with pytest.raises(rk.WrongType, match="robots"):
        rk.together(wrong)


def test_an_empty_world_and_a_stranger_are_refused():
    with pytest.raises(rk.ModelError, match="at least one"):
        rk.together({})
    with pytest.raises(rk.WrongType, match=r"robots\['a'\]"):
        rk.together({"a": 3})


def test_the_energy_of_several_robots_is_not_kept_and_that_is_said():
    world = rk.together({"a": m.box(), "b": (m.ball(), Placement(position=np.array([1.0, 0, 0])))})
    with pytest.raises(rk.ShapeError, match="integrator: 'energy_momentum' keeps the energy of one robot"):
        rk.simulate(world, duration=0.1, integrator="energy_momentum")
