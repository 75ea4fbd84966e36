"""Friction where things move: on turntables, in oblique impacts, in corners."""

import math

import numpy as np
import pytest
import sim_models as m
from scipy.integrate import solve_ivp

import robokit as rk
from robokit.model import Box, Cylinder, ModelBuilder, Placement, Shape


@pytest.fixture(scope="module")
def plate() -> rk.Robot:
    """A flat box of 4 cm and 0.1 kg."""
    size = np.array([0.04, 0.04, 0.02])
    inertia = np.diag((size @ size - size**2) * 0.1 / 12.0)
    builder = ModelBuilder("plate")
    builder.link("plate", mass=0.1, inertia=inertia, collisions=(Shape(Box(tuple(size))),))
    return builder.build("floating")


@pytest.mark.parametrize("dt", [1e-3, 4e-3])
def test_a_box_rides_on_a_turntable_up_to_its_cone(plate, dt):
    """At 0.9 of what friction holds it stays on its circle; at 1.1 it is thrown off."""
    friction, away = 0.5, 0.2
    q0 = [1.0, 0.0, 0.0, 0.0, away, 0.0, 0.01 - 2.5e-6]  # where it rests
    for share in (0.9, 1.1):
        spin = math.sqrt(share * friction * m.G / away)
        v0 = [0.0, 0.0, spin, 0.0, spin * away, 0.0]
        run = rk.simulate(plate, q0, v0, duration=2.0, dt=dt, ground=rk.Ground(friction=friction, spin=spin))
        far = np.hypot(run.q[:, 4], run.q[:, 5])
        assert (np.abs(far - away).max() < 1e-5 * (1.0 + (1e3 * dt) ** 3)) == (share < 1.0)
        assert run.summary["energy_balance"] < 1e-9


@pytest.mark.parametrize("dt", [1e-3, 4e-3])
@pytest.mark.parametrize("place", ["on a table", "on a wall"])
def test_what_friction_holds_on_a_link_that_turns_stays_where_it_is_on_it(place, dt):
    """A box on a table that a joint turns about the vertical, and one on a wall that goes round."""
    size, at, middle = (2.0, 2.0, 0.1), (0.4, 0.0, 0.03), (0.0, 0.0, -0.05)
    if place == "on a wall":
        size, at, middle = (0.1, 1.0, 1.0), (0.97, 0.0, 0.0), (1.05, 0.0, 0.0)
    b, rate = ModelBuilder("wheel"), 4.5 if place == "on a wall" else 3.5
    link = Shape(Box(size), Placement(position=np.array(middle)))
    b.link("post").link("wheel", 1.0, inertia=np.eye(3), collisions=(link,))
    b.link("box", 0.2, inertia=1.2e-4 * np.eye(3), collisions=(Shape(Box((0.06,) * 3)),))
    b.joint("turn", "continuous", "post", "wheel", axis=(0.0, 0.0, 1.0))
    b.joint("free", "floating", "post", "box")
    robot, v0 = b.build(), [rate, 0.0, 0.0, rate, 0.0, rate * at[0], 0.0]
    run = rk.simulate(
        robot, [0.0, 1.0, 0.0, 0.0, 0.0, *at], v0, duration=2.0, dt=dt,
        self_collision=rk.collision_pairs(robot).with_law(friction=0.8),
        motions=rk.PrescribedMotion("turn", lambda t: rate * t, lambda t: rate),
    )  # fmt: skip
    x, y, z = run.q[:, 5:].T
    c, s = np.cos(run.q[:, 0]), np.sin(run.q[:, 0])
    seen = np.stack([c * x + s * y, c * y - s * x, z], axis=1)[run.t > 0.5]
    # Between two kicks the box goes straight: chords are shorter than arcs.
    assert np.abs(seen - seen[0]).max() < 1.1 * 1.5 * rate**3 * at[0] * dt**2 / 6.0


def test_a_box_on_a_swing_is_as_if_it_were_fixed_to_it():
    """A plate that hangs from a hinge carries a box: one pendulum, whose angle SciPy's integrator knows."""
    length, size, start, b = 1.0, 0.1, 0.9, ModelBuilder("swing")
    seat = Shape(Box((0.5, 0.4, 0.04)), Placement(position=np.array([0.0, 0.0, -length - 0.02])))
    b.link("beam").link("seat", 3.0, (0.0, 0.0, -0.8), 0.3 * np.eye(3), collisions=(seat,))
    b.link("box", 2.0, inertia=np.eye(3) * 2.0 * size**2 / 6.0, collisions=(Shape(Box((size,) * 3)),))
    b.joint("hinge", "continuous", "beam", "seat", axis=(0.0, 1.0, 0.0)).joint(
        "free", "floating", "beam", "box"
    )
    far = length - 0.5 * size
    turn = [math.cos(0.5 * start), 0.0, math.sin(0.5 * start), 0.0]
    q0 = [start, *turn, -far * math.sin(start), 0.0, -far * math.cos(start)]
    run = rk.simulate(b.build(), q0, duration=6.0, dt=2e-3, self_collision=True)
    inertia = 0.3 + 3.0 * 0.8**2 + 2.0 * size**2 / 6.0 + 2.0 * far**2
    stiff = (3.0 * 0.8 + 2.0 * far) * m.G / inertia
    wanted = solve_ivp(
        lambda t, y: [y[1], -stiff * math.sin(y[0])],
        (0.0, 6.0),
        [start, 0.0],
        t_eval=run.t,
        rtol=1e-10,
        atol=1e-12,
    )
    assert np.abs(run.q[:, 0] - wanted.y[0]).max() < 6e-5  # the box sinks in by 5e-6 m


def test_a_ball_on_a_turntable_circles_at_two_sevenths_of_its_rate():
    """It rolls on a circle that has nothing to do with the table's axis (E. Weckler, 1972)."""
    radius, spin, speed = 0.1, 3.0, 0.2
    # The point below has the table's velocity (0, 0.9, 0).
    turn = [(0.9 - speed) / radius, 0.0, 0.0]
    q0 = [1.0, 0.0, 0.0, 0.0, 0.3, 0.0, radius - 5e-4]
    ground = rk.Ground(spin=spin, friction=1.0)
    rate = 2.0 / 7.0 * spin
    run = rk.simulate(m.ball(), q0, [*turn, 0.0, speed, 0.0], duration=2.0 * math.pi / rate, ground=ground)
    x, y = run.q[:, 4] - 0.3, run.q[:, 5]
    assert math.hypot(x[-1], y[-1]) < 1e-3
    assert x.min() == pytest.approx(-2.0 * speed / rate, rel=1e-4)


@pytest.mark.parametrize("restitution", [0.0, 0.6])
def test_an_oblique_impact_has_the_impulse_of_coulomb(restitution):
    """mu (1 + e) m v_n, or 2/7 m v_t where that stops the sliding of a ball."""
    arriving, robot = 2.0, m.ball()
    starts, wanted, frictions = [], [], []
    for speed in (0.3, 1.0, 4.0):
        for friction in (0.05, 0.2, 0.6):
            starts.append([0.0, 0.0, 0.0, speed, 0.0, -arriving])
            frictions.append(friction)
            wanted.append(min(friction * (1.0 + restitution) * arriving, 2.0 / 7.0 * speed))
    q0 = np.tile([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.105], (len(starts), 1))
    ground = rk.Ground(friction=frictions, restitution=restitution)
    run = rk.rollout(robot, q0, starts, steps=6, dt=1e-3, ground=ground, gravity=(0, 0, 0))
    # The balls turn a little until the end; their speed is that along x.
    turned = 2.0 * np.arctan2(run.q[-1, :, 2], run.q[-1, :, 0])
    along = run.v[-1, :, 3] * np.cos(turned) + run.v[-1, :, 5] * np.sin(turned)
    np.testing.assert_allclose(np.array(starts)[:, 3] - along, wanted, rtol=0.05)
    assert run.outside.max() < 0.01


def test_a_box_on_driven_rollers_is_carried_along_and_does_not_shake():
    """The places where it touches stay where they are, while the rollers turn under them at 20 rad/s."""
    b, radius, rate = ModelBuilder("conveyor"), 0.05, 20.0
    across = Placement(np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]]), np.zeros(3))
    b.link("frame")
    for k in range(3):
        roller = Shape(Cylinder(radius, 0.4), across)
        b.link(f"roller {k}", 1.0, inertia=2e-3 * np.eye(3), collisions=(roller,))
        at = Placement(position=np.array([0.15 * k, 0.0, 0.0]))
        b.joint(f"turn {k}", "continuous", "frame", f"roller {k}", at, axis=(0.0, 1.0, 0.0))
    b.link("box", 1.0, inertia=0.02 * np.eye(3), collisions=(Shape(Box((0.5, 0.2, 0.1))),))
    b.joint("free", "floating", "frame", "box")
    run = rk.simulate(
        b.build(), [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.1, 0.0, 0.1],
        [rate] * 3 + [0.0] * 3 + [1.0, 0.0, 0.0],
        duration=0.1, dt=1e-3, record_every=1, self_collision=True,
        motions=[rk.PrescribedMotion(f"turn {k}", lambda t: rate * t, lambda t: rate) for k in range(3)],
    )  # fmt: skip
    assert np.ptp(run.q[30:, -1]) < 1e-5  # its middle's height
    assert run.v[-1, -3] == pytest.approx(rate * radius, rel=1e-3)


def test_a_planted_foot_stays_where_it_is_while_its_robot_rocks():
    """The trunk swings at 1.2 Hz about the ankle, with 0.56 of what friction holds."""
    b, length, rate = ModelBuilder("rocker"), 0.6, 2.0 * math.pi * 1.2
    size = np.array([0.8, 0.4, 0.04])
    b.link("trunk", mass=5.0, inertia=0.1 * np.eye(3))
    inertia = np.diag((size @ size - size**2) * 8.0 / 12.0)
    b.link("foot", mass=8.0, inertia=inertia, collisions=(Shape(Box(tuple(size))),))
    at = Placement(position=np.array([0.0, 0.0, -length]))
    b.joint("ankle", "continuous", "trunk", "foot", at, axis=(0.0, 1.0, 0.0))
    robot, turn = b.build("floating"), 0.4 * rate
    q0 = [math.cos(0.25), 0.0, math.sin(0.25), 0.0]
    q0 += [length * math.sin(0.5), 0.0, 0.02 + length * math.cos(0.5), -0.5]
    ankle = rk.PrescribedMotion(
        "ankle", lambda t: -0.5 - 0.4 * math.sin(rate * t), lambda t: -turn * math.cos(rate * t)
    )
    v0 = [0.0, turn, 0.0, turn * length, 0.0, 0.0, -turn]
    run = rk.simulate(
        robot, q0, v0, duration=2.5, dt=1e-3, ground=rk.Ground(friction=1.0), joint_damping=0.0, motions=ankle
    )
    x = run.link_poses("foot")[run.t > 0.1, 0, 3]
    period = round(2.0 * math.pi / rate / (run.t[1] - run.t[0]))
    assert np.abs(x[period:] - x[:-period]).max() < 1e-5
