"""When a stop or the ground acts: one step is that of the law, written out for one degree of freedom."""

from __future__ import annotations

import numpy as np
import pytest
import sim_models as m

import robokit as rk
from robokit.model import Shape, Sphere
from robokit.sim.touching.contact import SHORTEST

MASS, LIMIT, TIME = 2.0, 0.25, 5e-3
K = MASS / TIME**2  # of a stop: stiffer than the weight on a millimetre
D = 2.0 * TIME * K
RADIUS = 0.1
GROUND = rk.Ground(sink=1e-3, time=0.02)


def after(
    gap: float,
    v: float,
    free: float,
    dt: float,
    k: float = K,
    d: float = D,
    sweeps: int = 3,
    falling: float | None = None,
) -> tuple[float, float, bool]:
    """(speed towards the obstacle after a step, share w of it that acted, whether it was let go in the end).

    All acts at the gap of the step's middle. The obstacle is there where the body would be past it at the
    step's end, with the speed before and what gravity adds; then half of it where that holds of the iterate;
    in the last sweep not where it would pull. The ground (``falling``) acts on a body that reaches it in the
    step for the part of the step that is left, at the mean depth of that part, and lets it fall as far as the
    surface where gravity alone brings it there; not at all on one that would not reach it at thrice its
    speed (near_ground.py).
    """
    phi, kd = gap - 0.5 * dt * v, k * dt + d
    reach = 2.0 * phi / dt if phi > 0.0 else k / kd * phi
    near = falling is None or phi < dt * (3.0 * abs(v) + falling)
    approach = v + (falling or 0.0)
    on = approach > reach
    depth, left, free_fall = -phi, 1.0, 0.0
    if on and falling is not None and gap > 0.0:
        left = max(1.0 - gap / (approach - 0.5 * falling) / dt, SHORTEST)
        depth = 0.5 * left * dt * max(v, 0.0)
        free_fall = min(max(2.0 * gap / dt - v, 0.0), falling)
    x, w, released = v, float(on), False
    for sweep in range(sweeps):
        if 0 < sweep < sweeps - 1:
            w = 0.5 * (w + float(x > (free_fall - k / kd * depth if on else reach)))
        elif sweep and kd * (x - free_fall) + k * depth <= 0.0:
            w, released = 0.0, w > 0.0
        w = w if near else 0.0
        x = (MASS * free - dt * w * left * (k * depth - kd * free_fall)) / (MASS + dt * w * left * kd)
    return x, w, released


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
    expected, w, released = zip(*(after(*x, dt) for x in zip(*states, strict=True)), strict=True)
    assert 100 < w.count(1.0) < 400 and w.count(0.5) > 20 and sum(released) > 20
    np.testing.assert_allclose(after_a_step(side, *states, dt), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("dt", [5e-4, 1e-3])
def test_a_step_above_the_ground_is_that_of_the_law(dt):
    b = rk.ModelBuilder("ball").link("mast").link("ball", MASS, collisions=(Shape(Sphere(RADIUS)),))
    robot, ground = b.joint("slide", "prismatic", "mast", "ball", axis=(0, 0, 1)).build(), GROUND
    gap, v, free = some(dt)
    k = MASS * m.G / ground.sink
    law = {"k": k, "d": ground.time * k, "sweeps": ground.sweeps, "falling": m.G * dt}
    expected, w, released = zip(*(after(*x, dt, **law) for x in zip(gap, v, free, strict=True)), strict=True)
    assert 100 < w.count(1.0) < 400 and w.count(0.5) > 20 and sum(released) > 20
    q, speed, tau = (x[:, None] for x in (RADIUS + gap, -v, MASS * (m.G - (free - v) / dt)))
    run = rk.rollout(robot, q, speed, steps=1, dt=dt, tau=tau, ground=ground, joint_damping=0.0)
    np.testing.assert_allclose(-run.v[-1, :, 0], expected, rtol=1e-10, atol=1e-12)


@pytest.mark.filterwarnings("ignore:.*long for contact")
@pytest.mark.parametrize("dt", [1e-3, 2e-2])
def test_nothing_hovers_where_gravity_alone_brings_it_down(dt):
    """Its damper alone would let it sink by a small part of the way in each step."""
    high = m.G * dt**2
    for gap in (0.02 * high, 0.2 * high, 0.45 * high):
        run = rk.simulate(m.ball(RADIUS), [1, 0, 0, 0, 0, 0, RADIUS + gap], duration=dt, dt=dt, ground=GROUND)
        assert run.q[-1, 6] - RADIUS < 1e-3 * high


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_a_cart_that_reaches_its_stop_in_the_step_is_held_in_all_of_it(side):
    """Slowed down it would not reach the stop any more: the speed before says that it does."""
    v, gap, dt = 1.0, 9e-4, 1e-3
    middle = gap - 0.5 * dt * v
    whole = (MASS * v + dt * K * middle) / (MASS + dt * (K * dt + D))
    assert 0.5 * dt * whole < middle < 0.5 * dt * v
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
