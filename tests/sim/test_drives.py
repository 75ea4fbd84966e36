"""The law of actuators on a single joint, by hand: drift, kick with the linearised force, drift."""

import itertools
import math

import pytest

from robokit.sim.joint_forces import Drive, DriveNumbers, DriveState
from robokit.sim.run_inputs import servo_numbers


def run(drive, numbers, q, v, mass, dt, steps, u, sweeps=2, load=0.0):
    """(q, v, force) after each step of a joint of constant inertia."""
    out = []
    for _ in range(steps):
        middle = q + 0.5 * dt * v
        state = DriveState([drive], [numbers], [u], [[], [middle]], [[], [v]], [[], [0.0]], dt)
        y = v
        for _ in range(sweeps):
            slopes, rest = state.linearise([[], [y]])
            y = (mass * v + dt * (rest[1][0] + load)) / (mass + dt * slopes[1][0])
        force = state.forces([[], [y]])[1][0]
        assert mass * (y - v) == pytest.approx(dt * (force + load), rel=1e-9, abs=1e-12)
        q, v = middle + 0.5 * dt * y, y
        out.append((q, v, force))
    return out


SERVO = Drive(1, True, False, False)


def servo(kp, kd, mass, dt=1e-3, **limits):
    b, lag, _ = servo_numbers(kp, kd, mass, dt)
    return DriveNumbers(kp, float(b), float(lag), mass=mass, **limits)


def test_converges_to_the_damped_oscillator():
    """m q'' = kp (q* - q) - kd q': the error goes to zero with dt."""
    mass, kp, kd, goal = 2.0, 50.0, 4.0, 0.7
    rate, errors = kd / (2 * mass), []
    w = math.sqrt(kp / mass - rate**2)

    def exact(t):
        return goal - goal * math.exp(-rate * t) * (math.cos(w * t) + rate / w * math.sin(w * t))

    for dt in (1e-2, 5e-3, 2.5e-3):
        states = run(SERVO, servo(kp, kd, mass, dt), 0.0, 0.0, mass, dt, round(1 / dt), kp * goal)
        errors.append(max(abs(q - exact((k + 1) * dt)) for k, (q, _, _) in enumerate(states)))
    assert errors[0] < 5e-4
    assert errors[1] < 0.3 * errors[0] and errors[2] < 0.3 * errors[1], "of second order"


@pytest.mark.parametrize("kp", [0.0, 1.0, 1e3, 1e6, 1e9])
@pytest.mark.parametrize("kd", [0.0, 3.0, 1e3])
@pytest.mark.parametrize("guess", [0.1, 1.0, 7.0])
def test_no_gain_is_unstable(kp, kd, guess):
    """1 g m^2 at 1 ms: the position never swings wider than that of an undamped joint.

    Nor where the inertia that the law reckons with is wrong.
    """
    mass, dt = 1e-3, 1e-3
    states = run(SERVO, servo(kp, kd, guess * mass, dt), 0.1, 1.0, mass, dt, 400, 0.0)
    # The position may swing by v / w, or move by one step.
    bound = 0.1 + max(1.0 / math.sqrt(kp / mass), dt) if kp else 0.1 + 0.4
    assert max(abs(q) for q, _, _ in states) <= 1.05 * bound
    if kp * dt >= 1.0 and kd < 1e3 and guess <= 1.0:  # at the target within a few steps
        assert abs(states[-1][0]) < 1e-9


def test_the_limit_is_held_exactly():
    numbers = servo(400.0, 80.0, 2.0, effort=5.0)
    states = run(Drive(1, True, True, False), numbers, 0.0, 0.0, 2.0, 1e-3, 3000, 400.0)
    forces = [force for *_, force in states]
    assert forces[:200] == [5.0] * 200
    assert max(map(abs, forces)) <= 5.0 * (1 + 1e-12)
    assert states[-1][0] == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("speed", [0.1, 1.0, 4.0, 10.0, 100.0])
def test_a_stiff_limited_damper_neither_chatters_nor_turns_round(speed):
    numbers = servo(0.0, 3.0, 1e-3, effort=5.0)
    states = run(Drive(1, True, True, False), numbers, 0.0, speed, 1e-3, 1e-3, 60, 0.0)
    speeds = [speed, *(v for _, v, _ in states)]
    assert all(0.0 <= b <= a for a, b in itertools.pairwise(speeds))
    assert min(force for *_, force in states) >= -5.0 * (1 + 1e-12)


@pytest.mark.parametrize("gain", [1e4, 0.0])
@pytest.mark.parametrize("effort", [5.0, 5e4])
def test_the_speed_limit_is_neither_passed_nor_a_brake(gain, effort):
    drive = Drive(1, bool(gain), True, True)
    numbers = servo(0.0, gain, 2.0, effort=effort, speed=2.0)
    u = 1e5
    speeds = [v for _, v, _ in run(drive, numbers, 0.0, 0.0, 2.0, 1e-3, 2000, u)]
    assert max(speeds) <= 2.0 * (1.0 + 1e-12) and speeds[-1] == pytest.approx(2.0, rel=1e-12)
    fast = run(drive, numbers, 0.0, 3.0, 2.0, 1e-3, 20, u)
    assert [v for _, v, _ in fast] == [3.0] * 20, "what moves faster is not braked"
    if effort == 5.0:
        back = run(drive, numbers, 0.0, -3.0, 2.0, 1e-3, 1, u)
        assert back[0][2] == pytest.approx(effort, rel=1e-9), "it brakes with all it has"


def test_a_damper_alone_is_exact():
    """q' = v e^-z, whatever the step."""
    for dt in (1e-3, 1e-2, 0.1):
        states = run(SERVO, servo(0.0, 3.0, 0.05, dt), 0.0, 2.0, 0.05, dt, 3, 0.0)
        exact = [2.0 * math.exp(-3.0 * k * dt / 0.05) for k in (1, 2, 3)]
        assert [v for _, v, _ in states] == pytest.approx(exact, rel=1e-9)


def test_other_joint_forces_share_the_limit():
    drive = Drive(1, True, True, False)
    numbers = servo(0.0, 1.0, 1.0, effort=3.0)
    state = DriveState([drive], [numbers], [2.0], [[], [0.0]], [[], [0.0]], [[], [9.0]], 1e-3)
    slopes, rest = state.linearise([[], [0.0]])
    assert (slopes[1], rest[1], state.limited) == ([0.0], [3.0], [1.0])
