"""When a stop or the ground acts: one step is that of the law, written out for one degree of freedom."""

from __future__ import annotations

import numpy as np
import pytest
import sim_models as m

import robokit as rk
from robokit.model import Shape, Sphere

MASS, LIMIT, TIME = 2.0, 0.25, 5e-3
K = MASS / TIME**2  # of a stop: stiffer than the weight on a millimetre
D = 2.0 * TIME * K
RADIUS = 0.1


def after(
    gap: float, v: float, free: float, dt: float, k: float = K, d: float = D
) -> tuple[float, bool, bool]:
    """Speed towards the obstacle after a step: two solves, each with the set of the speed before it.

    An obstacle acts where it pushes, and where the body would be past it after the step, with the speed at
    hand or with the speed v* that it would have alone. Half of an old set stays.
    """
    x, w = v, None
    differs = False
    for _ in range(2):
        push = (k * dt + d) * x - k * gap > 0.0
        with_free, with_own = dt * free > gap, dt * x > gap
        differs |= push and with_free != with_own
        on = float(push and (with_free or with_own))
        w = on if w is None else 0.5 * (w + on)
        x = (MASS * free + dt * w * k * gap) / (MASS + dt * w * (k * dt + d))
    return x, differs, w > 0.0


def some(dt: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gap, speed and v* of 500 states round the edge."""
    rng = np.random.default_rng(1)
    v, change = rng.uniform((-1.0, -3.0), (3.0, 3.0), (500, 2)).T
    return rng.uniform(-1.0, 3.0, 500) * dt, v, v + change


def cart(side: float) -> rk.Robot:
    return m.slider(**({"upper": LIMIT} if side > 0.0 else {"lower": -LIMIT}))


def after_a_step(side: float, gap, v, free, dt: float = 1e-3) -> np.ndarray:
    q = side * (LIMIT - np.asarray(gap, float))[:, None]
    force = MASS * (np.asarray(free) - v) / dt
    v, tau = (side * np.asarray(x, float)[:, None] for x in (v, force))
    # All in one batch: the step's kernel is that of simulate.
    run = rk.rollout(cart(side), q, v, steps=1, dt=dt, tau=tau, integrator="euler", record_every=1)
    return side * run.v[-1, :, 0]


@pytest.mark.parametrize("dt", [5e-4, 1e-3])
@pytest.mark.parametrize("side", [1.0, -1.0])
def test_a_step_at_a_stop_is_that_of_the_law(side, dt):
    states = some(dt)
    expected, differs, acts = zip(*(after(*x, dt) for x in zip(*states, strict=True)), strict=True)
    assert sum(differs) > 50 and 100 < sum(acts) < 400
    np.testing.assert_allclose(after_a_step(side, *states, dt), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("dt", [5e-4, 1e-3])
def test_a_step_above_the_ground_is_that_of_the_law(dt):
    b = rk.ModelBuilder("ball").link("mast").link("ball", MASS, collisions=(Shape(Sphere(RADIUS)),))
    robot, ground = b.joint("slide", "prismatic", "mast", "ball", axis=(0, 0, 1)).build(), rk.Ground()
    gap, v, free = some(dt)
    k = MASS * m.G / ground.sink
    law = {"k": k, "d": ground.time * k}
    expected, differs, acts = zip(
        *(after(*x, dt, **law) for x in zip(gap, v, free, strict=True)), strict=True
    )
    assert sum(differs) > 50 and 100 < sum(acts) < 400
    q, speed, tau = (x[:, None] for x in (RADIUS + gap, -v, MASS * (m.G - (free - v) / dt)))
    run = rk.rollout(robot, q, speed, steps=1, dt=dt, tau=tau, ground=ground, joint_damping=0.0)
    np.testing.assert_allclose(-run.v[-1, :, 0], expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_a_cart_that_reaches_its_stop_in_the_step_is_held_in_all_of_it(side):
    """Slowed down it would not reach the stop any more: v*, not the iterate, says that it does."""
    v, gap, dt = 1.0, 0.9e-3, 1e-3
    whole = (MASS * v + dt * K * gap) / (MASS + dt * (K * dt + D))
    assert dt * whole < gap < dt * v
    assert after_a_step(side, [gap], [v], [v]) == pytest.approx(whole, rel=1e-12)


def test_a_cart_that_does_not_reach_its_stop_in_the_step_is_free():
    v, gap = 1.0, [1.001e-3, 5e-3]
    assert after_a_step(1.0, gap, [v, v], [v, v]).tolist() == [v, v]


def test_simulate_and_rollout_meet_a_stop_alike():
    robot = cart(1.0)
    one = rk.simulate(robot, [0.2], [3.0], duration=0.05, integrator="euler", record_every=1)
    many = rk.rollout(robot, [[0.2]] * 3, [[3.0]] * 3, duration=0.05, integrator="euler", record_every=1)
    np.testing.assert_allclose(many.v[:, 1], one.v, rtol=1e-12)
    assert one.q.max() > LIMIT
