"""Closed forms of turning bodies: a cylinder without forces, a heavy top, a chaotic double pendulum."""

from __future__ import annotations

import math

import numpy as np

import robokit as rk
from fidelity_cases import scenes as s
from fidelity_cases.peer import Peer
from fidelity_cases.table import Found, Look, case
from robokit.model import ModelBuilder, Placement


def _rotation(axis: np.ndarray, angle: float) -> np.ndarray:
    x, y, z = axis / np.linalg.norm(axis)
    K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + math.sin(angle) * K + (1.0 - math.cos(angle)) * K @ K


def _matrix(q: np.ndarray) -> np.ndarray:
    a, b, c, d = q
    return np.array([[1 - 2 * (c * c + d * d), 2 * (b * c - a * d), 2 * (b * d + a * c)],
                     [2 * (b * c + a * d), 1 - 2 * (b * b + d * d), 2 * (c * d - a * b)],
                     [2 * (b * d - a * c), 2 * (c * d + a * b), 1 - 2 * (b * b + c * c)]])  # fmt: skip


def _turned(w: np.ndarray, end: float) -> np.ndarray:
    """Rotation (3, 3) of the free cylinder that starts with w (3,) [rad/s], after so many seconds."""
    across, along = 2.0 * (3 * 0.1**2 + 0.2**2) / 12.0, 0.5 * 2.0 * 0.1**2
    L = np.array([across * w[0], across * w[1], along * w[2]])
    own = end * w[2] * (1 - along / across)
    return _rotation(L, end * np.linalg.norm(L) / across) @ _rotation(np.array([0, 0, 1.0]), own)


def _angle(wanted: np.ndarray, q: np.ndarray) -> float:
    """Angle between a rotation and that of a floating body [rad]."""
    return math.acos(max(-1.0, min(1.0, 0.5 * (np.trace(wanted.T @ _matrix(q[:4])) - 1.0))))


@case("free_cylinder", "Public references", "A cylinder turns without forces, 10 s")
def free_cylinder(look: Look) -> Found:
    """A cylinder turns with 3, 1 and 10 rad/s about its axes, without gravity, for 10 s at 1 ms. It precesses
    about its angular momentum L with L/A and turns about its own axis: R(t) = exp(t L/A) R(0) exp(t σ z).
    Measured: the largest angle between this and the result; and the same where there is a ground, far below.
    """
    robot, found = s.cylinder(), Found()
    w = np.array([3.0, 1.0, 10.0])
    end = 10.0
    wanted = _turned(w, end)
    v = np.concatenate([w, np.zeros(3)])

    def away(q: np.ndarray) -> float:
        return _angle(wanted, q)

    peer = None
    if look.peer:
        theirs = Peer(robot.with_gravity((0, 0, 0)), 1e-3, False, None)
        theirs.start(robot.neutral(), v)
        theirs.step(10000)
        peer = away(theirs.q)
    for label, ground in (("alone", None), ("above a ground", s.ground(height=-50.0))):
        t = s.fall(robot, robot.neutral(), v, duration=end, dt=1e-3, gravity=(0, 0, 0), ground=ground)
        found.add(
            f"{label}: angle from the closed form after 10 s", "rad", away(t.q[-1]), mujoco=peer, most=1e-3
        )
        energy = np.abs(t.energy.mechanical / t.energy.mechanical[0] - 1.0).max()
        found.add(f"{label}: energy's error", "", energy, most=1e-9)
    return found


@case("spun_start", "Gyroscopes", "Starts that spin fast, without a time step given")
def spun_start(look: Look) -> Found:
    """A free cylinder turns about three axes with up to 10,000 rad/s, for half a second, with a ground far
    below. robokit chooses a step of at most 1 ms in which no body turns by more than 0.3 rad; MuJoCo has 1
    ms. Measured: the angle from the closed form, over the angle that it turned, and the energy error.
    """
    robot, found, end = s.cylinder(), Found(), 0.5
    for rate in (10.0, 100.0, 1e3, 1e4)[: look.some(4, 3)]:
        w = rate * np.array([0.3, 0.1, 1.0])
        v = np.concatenate([w, np.zeros(3)])
        t = s.fall(robot, robot.neutral(), v, duration=end, gravity=(0, 0, 0), ground=s.ground(height=-50.0))
        turned, wanted = end * np.linalg.norm(w), _turned(w, end)
        peer, energy = {}, {}
        if look.peer:
            still = robot.with_gravity((0, 0, 0))
            qs, vs = _there(still, robot.neutral(), v, end)
            peer["mujoco"] = _angle(wanted, qs[-1]) / turned
            energy["mujoco"] = _drift(still, qs, vs, relative=True)
        where = f"{rate:,.0f} rad/s"
        away = _angle(wanted, t.q[-1]) / turned
        found.add(f"{where}: angle from the closed form, of that turned", "", away, **peer, most=1e-3)
        error = np.abs(t.energy.mechanical / t.energy.mechanical[0] - 1.0).max()
        found.add(f"{where}: energy's error", "", error, **energy, most=1e-9)
    return found


@case("heavy_top", "Public references", "A heavy top precesses steadily and nutates, 10 s")
def heavy_top(look: Look) -> Found:
    """A symmetric top on a fixed point leans by 0.6 rad, spins with 60 rad/s and precesses with the rate Ω of
    (A - C) Ω² cos θ - C ω Ω + m g l = 0 (ω: its own spin). Measured after 10 s at 1 ms: the change of the
    inclination, and the precession angle less Ω t. Then it is let go without precession and nutates:
    measured: the largest error of inclination and precession compared with Lagrange's equations solved to
    1e-13. It hangs in gimbals without mass.
    """
    from scipy.integrate import solve_ivp

    found, theta = Found(), 0.6
    m, length, axial, own = 1.0, 0.1, 5e-3, 60.0
    across = 0.003
    about, lean = across + m * length**2, theta
    builder = ModelBuilder("top").link("base").link("ring").link("fork")
    builder.link("top", m, (0, 0, length), np.diag([across, across, axial]))
    builder.joint("precess", "continuous", "base", "ring", axis=(0, 0, 1))
    tilt = Placement(_rotation(np.array([1.0, 0.0, 0.0]), theta))  # so that no gimbals lock in q = 0
    builder.joint("lean", "continuous", "ring", "fork", tilt, axis=(1, 0, 0))
    builder.joint("spin", "continuous", "fork", "top", Placement(), axis=(0, 0, 1))
    robot = builder.build("fixed")
    a, b, c = (about - axial) * math.cos(lean), -axial * own, m * s.G * length
    rate = 2.0 * c / (-b + math.sqrt(b * b - 4.0 * a * c))
    q0, v0 = np.zeros(3), np.array([rate, 0.0, own])
    t = s.fall(robot, q0, v0, duration=10.0, dt=1e-3, joint_damping=0.0, record_every=10)
    leaning, precession, energy = {}, {}, {}
    if look.peer:
        q, v = _there(robot, q0, v0, 10.0)
        leaning["mujoco"], precession["mujoco"] = np.abs(q[:, 1]).max(), abs(q[-1, 0] - 10.0 * rate)
        energy["mujoco"] = _drift(robot, q, v, relative=True)
    found.add("change of the leaning", "rad", np.abs(t.q[:, 1]).max(), **leaning, most=1e-5)
    found.add("precession's error after 10 s", "rad", abs(t.q[-1, 0] - 10.0 * rate), **precession, most=1e-3)
    error = np.abs(t.energy.mechanical / t.energy.mechanical[0] - 1.0).max()
    found.add("energy's error", "", error, **energy, most=1e-9)

    free = np.array([0.0, 0.0, own])
    spin = axial * own  # momentum about the top's axis; that about the vertical is its part

    def lagrange(_: float, y: np.ndarray) -> list[float]:
        lean, turning, _ = y
        n, k = math.sin(lean), math.cos(lean)
        around = spin * (math.cos(theta) - k) / (about * n * n)
        return [turning, around**2 * n * k - (spin * around * n - c * n) / about, around]

    runs = {
        "let go": s.fall(robot, q0, free, duration=10.0, dt=1e-3, joint_damping=0.0, record_every=10),
        "let go, above a ground": s.fall(robot, q0, free, duration=10.0, dt=1e-3, joint_damping=0.0,
                                         record_every=10, ground=s.ground(height=-5.0)),
    }  # fmt: skip
    right = solve_ivp(
        lagrange, (0, 10), (theta, 0.0, 0.0), "DOP853", runs["let go"].t, rtol=1e-13, atol=1e-13
    ).y

    def away(q: np.ndarray) -> float:
        return float(np.abs([theta + q[:, 1] - right[0], q[:, 0] - right[2]]).max())

    nutation = {"mujoco": away(_there(robot, q0, free, 10.0)[0])} if look.peer else {}
    for label, t in runs.items():
        found.add(f"{label}: error of the angles in 10 s", "rad", away(t.q), **nutation, most=1e-3)
    return found


def _there(robot: rk.Robot, q: np.ndarray, v: np.ndarray, seconds: float) -> tuple[np.ndarray, np.ndarray]:
    """MuJoCo's motion at 1 ms, each tenth state."""
    peer = Peer(robot, 1e-3, False, None)
    peer.start(q, v)
    return peer.states(round(1e3 * seconds), 10)


def _drift(robot: rk.Robot, q: np.ndarray, v: np.ndarray, relative: bool = False) -> float:
    """Largest error of the energy [J], or of the start's."""
    kinetic, potential = s.rollout_energies(robot, q[:, None], v[:, None])
    total = (kinetic + potential)[:, 0]
    return float(np.abs(total - total[0]).max() / (abs(total[0]) if relative else 1.0))


@case("chaotic", "Public references", "A chaotic double pendulum, 5 s")
def chaotic(look: Look) -> Found:
    """Two points of 1 kg on massless rods of 1 m start level, at rest; 5 s at 1 ms. Measured: the energy
    error and the angles' error compared with Dormand and Prince's method at 1e-13.
    """
    from scipy.integrate import solve_ivp

    builder, found = ModelBuilder("two").link("world"), Found()
    builder.link("a", 1.0, (1.0, 0, 0), np.zeros((3, 3))).link("b", 1.0, (1.0, 0, 0), np.zeros((3, 3)))
    builder.joint("first", "continuous", "world", "a", axis=(0, 0, 1))
    at = Placement(position=np.array([1.0, 0.0, 0.0]))
    builder.joint("second", "continuous", "a", "b", at, axis=(0, 0, 1))
    robot = builder.build("fixed").with_gravity((0, -s.G, 0))

    def rhs(_: float, y: np.ndarray) -> list[float]:
        a, b, u, w = y  # absolute angles
        c, n = math.cos(a - b), math.sin(a - b)
        f = -n * w * w - 2.0 * s.G * math.cos(a), n * u * u - s.G * math.cos(b)
        det = 2.0 - c * c
        return [u, w, (f[0] - c * f[1]) / det, (2.0 * f[1] - c * f[0]) / det]

    t = s.fall(robot, duration=5.0, dt=1e-3, joint_damping=0.0)
    right = solve_ivp(rhs, (0, 5), np.zeros(4), "DOP853", rtol=1e-13, atol=1e-13).y[:2, -1]

    def away(q: np.ndarray) -> float:
        return float(np.abs(np.array([q[0], q.sum()]) - right).max())

    angles, energy = {}, {}
    if look.peer:
        q, v = _there(robot, np.zeros(2), np.zeros(2), 5.0)
        angles["mujoco"], energy["mujoco"] = away(q[-1]), _drift(robot, q, v)
    found.add("error of the angles after 5 s", "rad", away(t.q[-1]), **angles, most=1e-4)
    error = np.abs(t.energy.mechanical - t.energy.mechanical[0]).max()
    found.add("energy's error", "J", error, **energy, most=1e-9)
    return found
