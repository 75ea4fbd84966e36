"""Closed forms of turning bodies: a cylinder without forces, a heavy top, a chaotic double pendulum."""

from __future__ import annotations

import math

import numpy as np

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


@case("free_cylinder", "Public references", "A cylinder turns without forces, 10 s")
def free_cylinder(look: Look) -> Found:
    """A cylinder turns with 3, 1 and 10 rad/s about its axes, without gravity, for 10 s at 1 ms. It precesses
    about its angular momentum L with L/A and turns about its own axis: R(t) = exp(t L/A) R(0) exp(t σ z).
    Counted is the largest angle between this and the result; and the same where there is a ground, far below.
    """
    robot, found = s.cylinder(), Found()
    w = np.array([3.0, 1.0, 10.0])
    across, along = 2.0 * (3 * 0.1**2 + 0.2**2) / 12.0, 0.5 * 2.0 * 0.1**2
    L = np.array([across * w[0], across * w[1], along * w[2]])
    end = 10.0
    wanted = _rotation(L, end * np.linalg.norm(L) / across) @ _rotation(
        np.array([0, 0, 1.0]), end * w[2] * (1 - along / across)
    )
    v = np.concatenate([w, np.zeros(3)])

    def away(q: np.ndarray) -> float:
        return math.acos(max(-1.0, min(1.0, 0.5 * (np.trace(wanted.T @ _matrix(q[:4])) - 1.0))))

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


@case("heavy_top", "Public references", "A heavy top precesses steadily, 10 s")
def heavy_top(look: Look) -> Found:
    """A symmetric top on a fixed point leans by 0.6 rad, spins with 60 rad/s and precesses with the rate Ω of
    (A - C) Ω² cos θ - C ω Ω + m g l = 0 (ω: its own spin). Counted after 10 s at 1 ms: the leaning, and the
    precession's angle less Ω t. It hangs in gimbals without mass.
    """
    found, theta = Found(), 0.6
    m, length, axial, own = 1.0, 0.1, 5e-3, 60.0
    about, lean = 0.002 + m * length**2, theta
    builder = ModelBuilder("top").link("base").link("ring").link("fork")
    builder.link("top", m, (0, 0, length), np.diag([0.002, 0.002, axial]))
    builder.joint("precess", "continuous", "base", "ring", axis=(0, 0, 1))
    tilt = Placement(_rotation(np.array([1.0, 0.0, 0.0]), theta))  # so that no gimbals lock in q = 0
    builder.joint("lean", "continuous", "ring", "fork", tilt, axis=(1, 0, 0))
    builder.joint("spin", "continuous", "fork", "top", Placement(), axis=(0, 0, 1))
    robot = builder.build("fixed")
    a, b, c = (about - axial) * math.cos(lean), -axial * own, m * s.G * length
    rate = 2.0 * c / (-b + math.sqrt(b * b - 4.0 * a * c))
    q0, v0 = np.zeros(3), np.array([rate, 0.0, own])
    t = s.fall(robot, q0, v0, duration=10.0, dt=1e-3, joint_damping=0.0, record_every=10)
    found.add("change of the leaning", "rad", np.abs(t.q[:, 1]).max(), most=1e-5)
    found.add("precession's error after 10 s", "rad", abs(t.q[-1, 0] - 10.0 * rate), most=1e-3)
    found.add(
        "energy's error", "", np.abs(t.energy.mechanical / t.energy.mechanical[0] - 1.0).max(), most=1e-9
    )
    return found


@case("chaotic", "Public references", "A chaotic double pendulum, 5 s")
def chaotic(look: Look) -> Found:
    """Two points of 1 kg on massless rods of 1 m start level, at rest; 5 s at 1 ms. Counted are the energy's
    error and the angles' error beside Dormand and Prince's method at 1e-13.
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
    ours = np.array([t.q[-1, 0], t.q[-1].sum()])
    found.add("error of the angles after 5 s", "rad", np.abs(ours - right).max(), most=1e-4)
    found.add("energy's error", "J", np.abs(t.energy.mechanical - t.energy.mechanical[0]).max(), most=1e-9)
    return found
