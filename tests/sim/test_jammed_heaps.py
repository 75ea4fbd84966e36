"""Heaps whose bodies are wedged in: iterations of their steps, what these leave, and energy."""

import numpy as np
import pytest

import robokit as rk
from robokit.model import Box, Capsule, Cylinder, ModelBuilder, Shape

pytestmark = pytest.mark.slow

SHAPES = Box((0.12, 0.1, 0.08)), Cylinder(0.05, 0.1), Capsule(0.03, 0.06)
INERTIAS = (1.4e-3, 1.7e-3, 2.0e-3), (1.5e-3, 1.5e-3, 1.25e-3), (8e-4, 8e-4, 4e-4)


def heap(n=120, apart=0.18, side=4, seed=0):
    """So many bodies of 1 kg, turned at random, in layers above each other; they fall into a heap."""
    rng, kinds = np.random.default_rng(seed), []
    for shape, inertia in zip(SHAPES, INERTIAS, strict=True):
        builder = ModelBuilder("body")
        builder.link("body", 1.0, inertia=np.diag(inertia), collisions=(Shape(shape),))
        kinds.append(builder.build("floating"))
    world = rk.together({f"b{k}": kinds[k % len(kinds)] for k in range(n)})
    k, q = np.arange(n), world.neutral().reshape(n, 7)
    q[:, :4] = rng.normal(size=(n, 4))
    q[:, :4] /= np.linalg.norm(q[:, :4], axis=1)[:, None]
    q[:, 4:] = apart * np.stack([k % side, k // side % side, k // side**2], axis=1) + (0.0, 0.0, 0.1)
    q[:, 4:] += rng.uniform(-2e-3, 2e-3, (n, 3))
    return world, q.ravel()


@pytest.mark.filterwarnings("ignore:link .* rotates:UserWarning")
def test_a_jammed_heap_takes_few_iterations_and_no_step_gains_energy():
    """53 iterations a step found; some 150 where directions are never soft.

    Reproducible, as one step in hundreds may take thousands of them with other bits.
    """
    world, q = heap()
    ground = rk.Ground(friction=0.8, rolling=1e-3, torsional=1e-3)
    how = {"self_collision": True, "record_every": 1, "reproducible": True}
    run = rk.simulate(world, q, duration=1.2, dt=4e-3, ground=ground, **how)
    assert run.summary["contact_iterations_mean"] < 80.0
    assert run.summary["steps_not_settled"] == 0
    assert run.summary["momentum_balance_linear"] < 1e-9 * world.total_mass
    energy = run.energy.mechanical
    assert energy[-1] < 0.5 * energy[0]
    assert np.diff(energy).max() <= 1e-12 * energy[0]


@pytest.mark.filterwarnings("ignore:link .* rotates:UserWarning")
def test_no_step_of_a_jammed_heap_takes_thousands_of_iterations():
    """180 at most; 3,331 where a step whose first attempt fails follows paths of friction alone."""
    world, q = heap(seed=4)
    ground = rk.Ground(friction=0.8, rolling=1e-3, torsional=1e-3)
    how = {"self_collision": True, "record_every": 300, "reproducible": True}
    run = rk.simulate(world, q, duration=1.2, dt=4e-3, ground=ground, **how)
    assert run.summary["contact_iterations_most"] < 1000
    assert run.summary["steps_not_settled"] == 0
    assert run.summary["momentum_balance_linear"] < 1e-9 * world.total_mass
