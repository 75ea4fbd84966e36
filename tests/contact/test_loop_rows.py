"""Loop joints as constraints: their rows are derivatives, and what they hold does not move."""

from __future__ import annotations

import numpy as np
import pytest
from dense_step import ARRAYS, DenseStep
from loop_robots import KINDS, closed_four_bar, free_four_bar, two_arms

import robokit as rk
from robokit.contact.constraints.loops import halves
from robokit.engine.loops.fields import kernel_of, real
from robokit.model.loop_models import loop_models


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


def test_a_four_bar_keeps_its_energy_by_forces_that_stay_bounded():
    """Three of its five rows repeat what its hinges hold."""
    robot = free_four_bar()
    step = DenseStep(robot, 1e-3)
    q = closed_four_bar(robot)
    v, forces, energies = np.zeros(robot.nv), [], []
    for _ in range(300):
        q, v = step.step(q, v)
        forces.append(np.abs(step.x.loop_force).max())
        energies.append([rk.kinetic_energy(robot, q, v), rk.potential_energy(robot, q)])
    kinetic, potential = np.array(energies).T
    total = kinetic + potential
    assert np.abs(total - total[0]).max() < 5e-3 * kinetic.max()
    assert max(forces) < 3.0 * 9.81 * robot.total_mass
    assert np.abs(rows(step, q)[1]).max() < 1e-3
