"""Net contact forces of links: Newton's laws, and the same bits in rows, in lanes and of one robot."""

import numpy as np
import pytest

import robokit as rk
from robokit.engine.loops.kernel import LoopKernel
from robokit.sim.contact_rows import Lanes

B, DT = 9, 1e-3


@pytest.fixture(scope="module")
def fallen():
    """A humanoid and starts of B rows, low enough that links meet each other and the ground."""
    robot = rk.load_urdf(rk.find_robot("humanoid"), base="floating")
    q = np.tile(rk.standing_configuration(robot, height=0.01), (B, 1))
    return robot, q, 2.0 * np.random.default_rng(3).normal(size=(B, robot.nv))


def linear_momentum(robot, q, v):
    """(B, 3) [N s], in world axes."""
    return rk.centroidal_momentum(robot, q, v)[:, 3:]


def test_forces_on_all_links_change_the_momentum_of_each_row(fallen):
    """Newton's second law of each row; what links give to each other adds up to nothing."""
    robot, q, v = fallen
    sim = rk.Simulation(robot, q, v, ground=True, batch=B, dt=DT)
    assert sim.net_contact_forces.shape == (B, len(robot.links), 3) and not sim.net_contact_forces.any()
    met = 0
    for _ in range(30):
        sim.step(steps=9)
        before = linear_momentum(robot, sim.q, sim.v)
        sim.step()
        force = (linear_momentum(robot, sim.q, sim.v) - before) / DT - robot.total_mass * robot.gravity
        total = sim.net_contact_forces.sum(axis=1)
        np.testing.assert_allclose(total, force, atol=1e-6 * (1.0 + abs(force).max()))
        met = max(met, int((sim.net_contact_forces != 0.0).any(axis=-1).sum(axis=1).max()))
    assert met > 4 and abs(total).max() > 100.0


def test_robots_that_meet_push_each_other_apart():
    """Two quadrupeds in one world without a ground, in row 0 too far apart: Newton's second law of each, and
    his third law."""
    one = rk.load_urdf(rk.find_robot("quadruped"), base="floating")
    robot = rk.together({"a": one, "b": one})
    q, v = np.tile(robot.neutral(), (2, 1)), np.zeros((2, robot.nv))
    q[:, one.nq + 6], v[:, one.nv + 5] = [9.0, 0.6], -2.0
    given = {"self_collision": True, "gravity": (0.0, 0.0, 0.0), "dt": DT}
    sim = rk.Simulation(robot, q, v, batch=2, **given)
    halves = {"a": (slice(0, one.nq), slice(0, one.nv)), "b": (slice(one.nq, None), slice(one.nv, None))}
    most = np.zeros(2)
    for _ in range(200):
        before = {k: linear_momentum(one, sim.q[:, a], sim.v[:, b]) for k, (a, b) in halves.items()}
        sim.step()
        forces, sums = sim.net_contact_forces, {}
        for k, (a, b) in halves.items():
            sums[k] = forces[:, [name.startswith(f"{k}/") for name in robot.link_names]].sum(axis=1)
            change = (linear_momentum(one, sim.q[:, a], sim.v[:, b]) - before[k]) / DT
            np.testing.assert_allclose(sums[k], change, atol=1e-6 * (1.0 + abs(change).max()))
        np.testing.assert_allclose(sums["a"], -sums["b"], atol=1e-9 * (1.0 + abs(forces).max()))
        most = np.maximum(most, abs(sums["b"][:, 2]))
    assert most[0] == 0.0 and most[1] > 100.0


def test_rows_have_the_forces_of_one_robot(fallen):
    """To the bit, through a partial reset, a state restored and steps of an accuracy; on the ground alone
    those of ``contacts``."""
    robot, q, v = fallen
    for options in ({}, {"accuracy": 1e-3}):
        options |= {"ground": True, "dt": 2.0 * DT, "self_collision": False}
        rows = rk.Simulation(robot, q, v, batch=B, **options)
        one = rk.Simulation(robot, q[4], v[4], **options)
        for sim in (rows, one):
            sim.step(steps=60)
        alone = one.net_contact_forces
        assert alone.any() and np.array_equal(rows.net_contact_forces[4], alone)
        ground, touching = np.zeros_like(alone), one.contacts
        for link, force in zip(touching.links, touching.forces, strict=True):
            ground[robot.link_names.index(link)] += force
        np.testing.assert_allclose(alone, ground, atol=1e-9 * abs(alone).max())
        states = rows.state(), one.state()
        rows.reset(rows=[1, 2])
        assert not rows.net_contact_forces[1:3].any() and np.array_equal(rows.net_contact_forces[4], alone)
        one.reset()
        assert not one.net_contact_forces.any()
        rows.step(steps=5)
        for sim, state in zip((rows, one), states, strict=True):
            sim.restore(state)
        assert np.array_equal(rows.net_contact_forces[4], alone) and np.array_equal(
            one.net_contact_forces, alone
        )


def test_nothing_touches_in_passive_motion():
    robot = rk.load_urdf(rk.find_robot("double_pendulum"))
    for batch, shape in ((None, (3, 3)), (2, (2, 3, 3))):
        sim = rk.Simulation(robot, [1.0, 0.0], batch=batch)
        sim.step()
        assert sim.net_contact_forces.shape == shape and not sim.net_contact_forces.any()


@pytest.mark.slow
def test_rows_in_lanes_have_the_forces_of_rows(fallen, monkeypatch):
    robot, q, v = fallen
    taken, found = [], []
    own = Lanes.run
    monkeypatch.setattr(Lanes, "run", lambda self, a, b, *rest: (taken.append(b - a), own(self, a, b, *rest)))
    for lanes in (False, True):
        monkeypatch.setattr(LoopKernel, "at_hand", lambda *_, lanes=lanes: lanes)
        for ground in (rk.Ground(), rk.Ground(restitution=0.5)):
            sim = rk.Simulation(robot, q, v, ground=ground, batch=B, dt=DT, threads=1)
            for _ in range(20):
                sim.step(steps=4)
                found.append(sim.net_contact_forces)
        assert bool(taken) == lanes
    half = len(found) // 2
    assert np.array_equal(found[:half], found[half:]) and np.any(found)
