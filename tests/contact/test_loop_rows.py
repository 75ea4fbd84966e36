"""Loop joints as constraints: their rows are derivatives, and what they hold does not move."""

from __future__ import annotations

import numpy as np
import pytest
from loop_robots import KINDS, bennett, closed_four_bar, delta, free_four_bar, two_arms
from step_of_forces import ARRAYS, DenseStep, ForcesStep

import robokit as rk
from robokit.contact.constraints.loops import halves
from robokit.engine.loops.fields import kernel_of, real
from robokit.model import ModelBuilder, Placement
from robokit.model.constraints import loop_models


def rows_of(x):
    """E and delta of loop 0."""

    def write(half, E, delta):
        for k, (e, s) in enumerate(zip(E, delta, strict=True)):
            x.delta[3 * half + k] = s
            for m, number in enumerate(e):
                x.E[3 * half + k, m] = number

    halves(x, 0, write)


ROWS = kernel_of("loop_rows", rows_of, (*ARRAYS, real("E", 6, 6, role="out"), real("delta", 6, role="out")))


def rows(step, q):
    step.place(q)
    found = ROWS(**{a.name: np.asarray(getattr(step.x, a.name)) for a in ARRAYS})
    a, b = step.x.loop_bodies[0]
    return found["E"] @ (step.J[b] - step.J[a]), found["delta"]


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_every_kind_are_derivatives_of_what_they_hold(kind):
    robot = two_arms(kind)
    step, rng = DenseStep(robot, 1e-3), np.random.default_rng(3)
    step.x.q = q = robot.random_configuration(rng)
    J, delta = rows(step, q)
    v, h = rng.standard_normal(robot.nv), 1e-6
    ahead, behind = (rows(step, step.advance(q, s * v, h)[0])[1] for s in (1.0, -1.0))
    assert J @ v == pytest.approx((ahead - behind) / (2.0 * h), abs=2e-7 * (1.0 + np.abs(J @ v).max()))
    assert np.count_nonzero(delta) == loop_models(robot)[0].rows


def swings(robot, q, dt, seconds=1.0):
    """(largest change of energy over the largest kinetic energy, largest force [N], step) of a free swing."""
    step, v, forces = ForcesStep(robot, dt), np.zeros(robot.nv), []
    step.x.damping[:] = 0.0
    energies = [[0.0, rk.potential_energy(robot, q)]]
    for _ in range(round(seconds / dt)):
        q, v = step.step(q, v)
        forces.append(np.abs(step.x.loop_force).max())
        energies.append([rk.kinetic_energy(robot, q, v), rk.potential_energy(robot, q)])
    kinetic, total = np.array(energies)[:, 0], np.sum(energies, axis=1)
    assert not step.x.solved[2]
    open_ = rows(DenseStep(robot, dt), q)[1]
    assert np.abs(open_).max() < 1e-13
    return np.abs(total - total[0]).max() / kinetic.max(), max(forces)


def test_a_four_bar_keeps_its_energy_to_second_order_by_forces_that_stay_bounded():
    """Three of its five rows repeat what its hinges hold."""
    robot = free_four_bar()
    q = closed_four_bar(robot)
    off, force = swings(robot, q, 4e-3)
    closer, again = swings(robot, q, 2e-3)
    assert off < 2e-3 and closer < 0.3 * off
    assert max(force, again) < 3.0 * 9.81 * robot.total_mass


def test_a_linkage_that_moves_only_while_it_is_closed_is_not_stopped():
    robot = bennett()
    q = robot.neutral()
    q[robot.joint("hinge1").q_slice] = 0.7
    off, force = swings(robot, rk.close_loops(robot, q, keep=["hinge1"]), 4e-3, 2.0)
    assert off < 5e-5
    assert force < 10.0 * 9.81


def test_rods_a_hundred_thousand_times_lighter_carry_a_platform():
    robot = delta(4e-6)
    off, _ = swings(robot, rk.close_loops(robot, robot.neutral()), 5e-4, 0.4)
    assert off < 1e-2


def test_a_hinge_as_two_balls_swings_as_a_hinge():
    """Six rows for two that matter, on a heavy and a light link."""
    swung = []
    for hinged in (True, False):
        b = ModelBuilder("door").link("frame").link("arm", 1.0, (0, 0, -0.25), np.eye(3) * 0.02)
        b.link("leaf", 1e-4, (0.1, 0, 0), np.eye(3) * 1e-6)
        b.joint("hinge", "continuous", "frame", "arm", axis=(0, 1, 0))
        tip = Placement(position=np.array([0, 0, -0.5]))
        if hinged:
            b.joint("pin", "continuous", "arm", "leaf", tip, axis=(0, 1, 0))
        else:
            b.joint("pin", "spherical", "arm", "leaf", tip)
            for y in (-0.1, 0.1):
                at = Placement(position=np.array([0, y, -0.5]))
                b.loop_joint(f"ball{y}", "spherical", "arm", "leaf", at, Placement(position=[0, y, 0]))
        robot = b.build()
        step = ForcesStep(robot, 1e-3)
        q, v = robot.neutral(), np.zeros(robot.nv)
        q[0] = 1.0
        for _ in range(500):
            q, v = step.step(q, v)
        swung.append(q[0])
    assert swung[1] == pytest.approx(swung[0], abs=1e-5)
