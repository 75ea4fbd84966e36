"""Motors: position and velocity servos and given torques, within their effort and up to their speed.

    tau = u - kp q - lag qd0 - b qd,     u = kp q* + feedforward + (kd + extra) v*
    b = alpha kd + extra,     lag = (1 - alpha) kd,     alpha = 1 / (1 - e^-z) - 1 / z,     z = dt kd / m
    extra = kp dt 2 R / (1 + 2 R),     R = kp dt^2 / m

q is the configuration at the middle of the step, qd0 the speed at its start and qd that at its end, m the
inertia that the motor moves. For a joint alone and kp = 0 the law is exact: qd = e^-z qd0. It is of second
order, and no gain is too stiff: with A = 1 + dt b / m and c = 1 - dt lag / m, the roots of the characteristic
polynomial z^2 - (1 + (c - R) / A) z + c / A of a step lie inside the unit circle if extra >= (1/2 - 2/R) kp
dt. That holds up to an inertia eight times smaller than m. As a constraint:

    u = qd     R = 1/(dt b + 1e-16 H)     aim = R dt (u - kp q - lag qd0)
    set: [-L dt, L dt], and in the direction of push no more than what brings it to its largest speed:
         |g| <= max(0, (v_max - |qd|)/R_v),  R_v = 1e-4 W

A given torque has b = 0: R is then so large that the speed is lost in the rounding of the aim. If other
forces drive a joint beyond its largest speed, the limit neither pushes nor brakes it. A motor stores no
energy; its work is its impulse g times the mean of the speeds before and after.

Cost: O(motors), 60 operations each.
"""

from __future__ import annotations

from typing import Any

from robokit.contact.constraints.adding import add_row, moves, speed, value
from robokit.contact.fields import MOTOR
from robokit.contact.kinematics import own_inertia
from robokit.spatial.control_flow import call, cond, for_range, rounding
from robokit.spatial.scalars import Scalar, clamp, maximum, minimum, where

NOTHING = 1e-16  # share of H that is added to dt b: beside the impulses of a step it is rounding

SERIES = (1.0 / 12.0, -1.0 / 720.0, 1.0 / 30240.0, -1.0 / 1209600.0, 1.0 / 47900160.0, -5.284190138687493e-10)
"""Of (1 / (1 - e^-z) - 1 / z - 1/2) / z in powers of z^2: Bernoulli numbers over factorials."""

NEAR, FAR = 0.5, 40.0  # z up to which the series holds to 2e-15, and from which e^-z is 0
SQUARED = 6  # e^-z is that of z / 2^6, squared as often


def collect(x: Any) -> None:
    """The rows of all motors."""

    def motor(m: Any) -> None:
        j, dt = x.motor_dof[m], x.dt[0]

        def add() -> None:
            kp, kd, most = x.motor_gains[m, 0], x.motor_gains[m, 1], x.motor_limits[m, 1]
            b, lag, follow = call(servo_numbers, kp, kd, x.motor_inertia[m], dt)
            u = x.motor_command[m, 0] + follow * clamp(x.motor_command[m, 1], -most, most)
            u = u - kp * value(x, j) - lag * speed(x, j)
            row, gain, effort = x.dof_row[j], x.dof_gain[j], x.motor_limits[m, 0] * dt
            R = 1.0 / (dt * b + rounding(NOTHING) * own_inertia(x, row) / (gain * gain))
            add_row(x, MOTOR, m, j, 1.0, R, R * (dt * u), -effort, effort, most)

        cond(moves(x, j), add, lambda: None)

    for_range(x.n_motors, motor)


def servo_numbers(kp: Scalar, kd: Scalar, m: Scalar, dt: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    """(b, lag, factor of target velocities) of the law above.

    ``kp``: stiffness [N m/rad | N/m]; ``kd``: damping [N m s/rad | N s/m]; ``m``: inertia that the joint
    moves [kg m^2 | kg]; ``dt``: step [s].
    """
    alpha = end_share(dt * kd / m)
    R = kp * dt * dt / m
    extra = kp * dt * (2.0 * R / (1.0 + 2.0 * R))
    return alpha * kd + extra, (1.0 - alpha) * kd, kd + extra


def end_share(z: Scalar) -> Scalar:
    """alpha = 1 / (1 - e^-z) - 1 / z for z >= 0: from 1/2, where a damper is weak, to 1."""
    square = minimum(z, NEAR) * minimum(z, NEAR)
    series: Scalar = 0.0
    for c in SERIES[::-1]:
        series = c + square * series
    far = maximum(z, NEAR)
    direct = 1.0 / (1.0 - decay(minimum(far, FAR))) - 1.0 / far
    return where(z < NEAR, 0.5 + z * series, direct)


def decay(z: Scalar) -> Scalar:
    """e^-z for 0 <= z <= FAR, to some 1e-14 of itself."""
    r = z * 0.5**SQUARED
    found: Scalar = 1.0
    for n in range(14, 0, -1):
        found = 1.0 - found * r * (1.0 / n)
    for _ in range(SQUARED):
        found = found * found
    return found
