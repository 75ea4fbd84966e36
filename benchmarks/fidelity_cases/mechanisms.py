"""Mechanisms of public benchmarks: IFToMM's library A01 to A05, and Andrews' squeezing mechanism.

Source: IFToMM Technical Committee for Multibody Dynamics, "Library of Computational Benchmark Problems",
problems A01 to A05; E. Hairer, G. Wanner, "Solving Ordinary Differential Equations II", VII.7, and
W. Schiehlen, "Multibody Systems Handbook" (1990), for the squeezing mechanism.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

import robokit as rk
from fidelity_cases import scenes as s
from fidelity_cases.peer import Others, Peer
from fidelity_cases.table import Found, Look, case
from robokit.model import ModelBuilder, Placement

Z = (0.0, 0.0, 1.0)


def _at(x: float, y: float, z: float = 0.0) -> Placement:
    return Placement(position=np.array([x, y, z]))


def _drift(found: Found, t: rk.Trajectory, most: float, others: Others, scale: float | None = None) -> None:
    """The largest error of the energy, of the scale or of what it changed between its kinds."""

    def drift(kinetic: np.ndarray, potential: np.ndarray) -> float:
        total = kinetic + potential
        return float(np.abs(total - total[0]).max() / (scale or np.ptp(kinetic)))

    def theirs(q: np.ndarray, v: np.ndarray) -> float:
        return drift(*(x[:, 0] for x in s.rollout_energies(t.robot, q[:, None], v[:, None])))

    error = drift(t.energy.kinetic, t.energy.mechanical - t.energy.kinetic)
    found.add(
        "energy's error, of the largest change of kinetic energy", "", error, **others.of(theirs), most=most
    )
    if "loop_gap" in t.summary:
        gaps = others.of(lambda q, v: 1e6 * s.loop_gap(t.robot, q))
        found.add("largest gap of the loops", "µm", 1e6 * t.summary["loop_gap"], **gaps, most=1.0)


@case("a01", "Public references", "IFToMM A01: a simple pendulum, 10 s")
def pendulum(look: Look) -> Found:
    """A point of 1 kg on a massless rod of 1 m starts level, at rest. Measured: the largest error of its
    position within 10 s at 0.5 ms, compared with the pendulum's equation solved to 1e-13 by Dormand and
    Prince's method.
    """
    from scipy.integrate import solve_ivp

    builder = ModelBuilder("pendulum").link("world")
    builder.link("point", 1.0, com=(-1.0, 0.0, 0.0), inertia=np.zeros((3, 3)))
    builder.joint("turn", "continuous", "world", "point", axis=Z)
    robot = builder.build("fixed").with_gravity((0.0, -s.G, 0.0))
    end = float(look.some(10, 2))
    t = s.fall(robot, duration=end, dt=0.5e-3, record_every=20, joint_damping=0.0)
    others = Others(look, robot, 0.5e-3)
    others.run(np.zeros(1), None, round(end / 0.5e-3), 20)
    right = solve_ivp(lambda _, y: (y[1], s.G * math.cos(y[0])), (0, end), (0.0, 0.0), "DOP853", t.t,
                      rtol=1e-13, atol=1e-13)  # fmt: skip

    def away(q: np.ndarray, v: np.ndarray) -> float:
        return float(2.0 * np.abs(np.sin(0.5 * (q[:, 0] - right.y[0]))).max())

    found = Found()
    found.add("error of the place", "m", away(t.q, t.v), **others.of(away), most=1e-5)
    _drift(found, t, 1e-9, others)
    return found


def bars(spans: int, upright: float = 1.0, top: float = 1.0) -> rk.Robot:
    """Upright links of 1 m side by side, joined above by level ones, of these masses [kg]: N four-bars."""
    inertia = np.diag([1e-4, 1.0 / 12.0, 1.0 / 12.0])
    builder = ModelBuilder("bars").link("ground")
    for k in range(spans + 1):
        builder.link(f"up{k}", upright, (0.5, 0.0, 0.0), upright * inertia)
        builder.joint(f"foot{k}", "continuous", "ground", f"up{k}", _at(float(k), 0.0), axis=Z)
    for k in range(spans):
        builder.link(f"top{k}", top, (0.5, 0.0, 0.0), top * inertia)
        builder.joint(f"left{k}", "continuous", f"up{k}", f"top{k}", _at(1.0, 0.0), axis=Z)
        builder.loop_joint(f"right{k}", "revolute", f"top{k}", f"up{k + 1}", _at(1.0, 0.0), _at(1.0, 0.0), Z)
    return builder.build("fixed").with_gravity((0.0, -s.G, 0.0))


@case("a02", "Public references", "IFToMM A02: two four-bars that pass through singular configurations, 10 s")
def four_bars(look: Look) -> Found:
    """Five links of 1 m and 1 kg, the upright ones on hinges 1 m apart; the tops move at 30 m/s at first.
    When all links are level the loops' equations lose rank, and a smooth motion keeps the uprights parallel,
    as a pendulum. Measured: the energy error within 10 s at 1 ms, and that of the uprights' angles compared
    with the pendulum's equation solved to 1e-13.
    """
    from scipy.integrate import solve_ivp

    robot, end = bars(2), look.some(10, 2) * 1.0
    up = np.array([1.0 if name.startswith("foot") else -1.0 for name in robot.joint_names])
    q, v = 0.5 * math.pi * up, -30.0 * up
    t = s.fall(robot, q, v, duration=end, dt=1e-3, record_every=1, joint_damping=0.0)
    others = Others(look, robot, 1e-3)
    others.run(q, v, round(1e3 * end), 1)
    found = Found()
    found.add("share of the time that was computed", "", t.t[-1] / end, least=1.0)
    if "stopped" not in t.summary:
        _drift(found, t, 1e-4, others, float(t.energy.kinetic[0]))
        pull = s.G * (3 * 0.5 + 2) / (3 / 3 + 2)  # of three uprights and two tops, over their inertia
        right = solve_ivp(lambda _, y: (y[1], -pull * math.cos(y[0])), (0, end), (0.5 * math.pi, -30.0),
                          "DOP853", t.t, rtol=1e-13, atol=1e-13)  # fmt: skip

        def away(q: np.ndarray, v: np.ndarray) -> float:
            return float(np.abs(q[:, up > 0.0] - right.y[0][:, None]).max())

        found.add("error of an upright's angle", "rad", away(t.q, t.v), **others.of(away), most=1e-3)
    return found


@case("loop_masses", "Joints", "A loop of links a thousand times as heavy as each other")
def loop_masses(look: Look) -> Found:
    """Two upright bars and the level one above them, 1 m each, in a loop: the uprights 1 kg and the level one
    1 g, and the reverse. They lean by 60 degrees, start at rest and swing for 10 s at 1 ms. Measured: the
    error of the uprights' angle compared with the pendulum's equation solved to 1e-13, the energy error, and
    the gap of the loop.
    """
    from scipy.integrate import solve_ivp

    found, end = Found(), look.some(10, 2) * 1.0
    for label, upright, top in (("1 g on 1 kg", 1.0, 1e-3), ("1 kg on 1 g", 1e-3, 1.0)):
        robot = bars(1, upright, top)
        up = np.array([1.0 if name.startswith("foot") else -1.0 for name in robot.joint_names])
        q = -0.5 * math.pi * up + math.radians(60.0) * up
        t = s.fall(robot, q, duration=end, dt=1e-3, record_every=10, joint_damping=0.0)
        others = Others(look, robot, 1e-3)
        others.run(q, None, round(1e3 * end), 10)
        pull = s.G * (upright + top) / (2.0 / 3.0 * upright + top)
        right = solve_ivp(lambda _, y, pull=pull: (y[1], -pull * math.cos(y[0])), (0, end), (q[0], 0.0),
                          "DOP853", t.t, rtol=1e-13, atol=1e-13)  # fmt: skip

        def away(q: np.ndarray, v: np.ndarray, up: Any = up, right: Any = right) -> float:
            return float(np.abs(q[:, up > 0.0] - right.y[0][:, None]).max())

        one = Found()
        one.add("error of an upright's angle", "rad", away(t.q, t.v), **others.of(away), most=1e-4)
        _drift(one, t, 1e-6, others)
        found.figures += [replace(f, what=f"{label}: {f.what}") for f in one.figures]
    return found


# Names of Hairer and Wanner; lengths [m], masses [kg], inertia about the middle [kg m²].
D, E, RR, RA, DA, EA = 0.028, 0.02, 0.007, 0.00092, 0.0115, 0.01421
SS, SA, SB, SC, SD = 0.035, 0.01874, 0.01043, 0.018, 0.02
TA, TB, U, UA, UB, ZF, ZT, FA = 0.02308, 0.00916, 0.04, 0.01228, 0.00449, 0.02, 0.04, 0.01421
A, B, C = (-0.06934, -0.00227), (-0.03635, 0.03273), (0.014, 0.072)
SPRING, LENGTH, DRIVE = 4530.0, 0.07785, 0.033
MASS = 0.04325, 0.00365, 0.02373, 0.00706, 0.07050, 0.00706, 0.05498
INERTIA = 2.194e-6, 4.410e-7, 5.255e-6, 5.667e-7, 1.169e-5, 5.667e-7, 1.912e-5
START = (-0.0617138900142764, 0.0, 0.455279819163070, 0.222668390165886, 0.487364979543843,
         -0.222668390165886, 1.23054744454982)  # fmt: skip
AT_30_MS = (15.81077119629904, -15.75637105984298, 0.04082224013073101, -0.5347301163226948,
            0.5244099658805304, 0.5347301163226948, 1.048080741042263)  # fmt: skip
NAMES = "beta", "theta", "gamma", "phi", "delta", "omega", "epsilon"


def squeezer() -> rk.Robot:
    """Andrews' squeezing mechanism, seven bodies in a plane with three loops, without its spring."""
    builder = ModelBuilder("squeezer").link("ground")

    def body(k: int, parent: str, at: tuple[float, float], com: tuple[float, float]) -> None:
        inertia = np.eye(3) * INERTIA[k]  # only that about z counts
        builder.link(NAMES[k], MASS[k], (*com, 0.0), inertia)
        builder.joint(NAMES[k] + " turn", "continuous", parent, NAMES[k], _at(*at), axis=Z)

    body(0, "ground", (0.0, 0.0), (RA, 0.0))
    body(1, "beta", (RR, 0.0), (-DA, 0.0))
    body(2, "ground", B, (SA, -SB))
    body(4, "ground", A, (TA, TB))
    body(3, "delta", (ZT, 0.0), (0.0, -(E - EA)))
    body(6, "ground", A, (UA, -UB))
    body(5, "epsilon", (0.0, -U), (ZF - FA, 0.0))
    tip = _at(-D, 0.0)
    for name, link, at in (("B", "gamma", (0.0, -SS)), ("D", "phi", (0.0, -E)), ("F", "omega", (ZF, 0.0))):
        builder.loop_joint(name, "revolute", "theta", link, tip, _at(*at), Z)
    return builder.build("fixed").with_gravity((0.0, 0.0, 0.0))


def _spring(gamma: float) -> float:
    """Moment of the spring about gamma's hinge [N m]."""
    c, n = math.cos(gamma), math.sin(gamma)
    x, y = SD * c + SC * n + B[0] - C[0], SD * n - SC * c + B[1] - C[1]
    length = math.hypot(x, y)
    pull = -SPRING * (length - LENGTH) / length
    return pull * (x * (SC * c - SD * n) + y * (SD * c + SC * n))


@case("andrews", "Public references", "Andrews' squeezing mechanism, 30 ms")
def andrews(look: Look) -> Found:
    """Seven bodies in a plane, three loops, a spring, a motor of 33 N mm that turns the crank two and a half
    times in 30 ms. Measured: the largest error of the seven angles at 0.03 s, compared with the published
    figures; the spring's force is that of the middle of each step. (IFToMM A03.)
    """
    found, robot = Found(), squeezer()
    q0 = np.zeros(robot.nq)
    for name, x in zip(NAMES, START, strict=True):
        q0[robot.joint(name + " turn").q_slice] = x
    at = {name: robot.joint(name + " turn").q_slice.start for name in NAMES}

    ends = {}
    for dt in (1e-5, 0.5e-5)[: look.some(2, 1)]:

        def drive(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
            tau, k = np.zeros(robot.nv), at["gamma"]
            tau[at["beta"]], tau[k] = DRIVE, _spring(q[k])
            return tau

        t = s.fall(robot, q0, duration=0.03, dt=dt, controller=drive, record_every=100, joint_damping=0.0)
        ends[dt] = np.array([t.q[-1, at[name]] for name in NAMES])
        error = np.abs(ends[dt] - AT_30_MS)
        them = {}
        for key, peer in Others(look, robot, dt).peers.items():
            peer.start(q0)
            for _ in range(round(0.03 / dt)):
                peer.data.qfrc_applied[:] = drive(0.0, peer.data.qpos, peer.data.qvel)
                peer.step()
            them[key] = np.abs([peer.data.qpos[at[name]] for name in NAMES] - np.array(AT_30_MS)).max()
        found.add(f"largest error of an angle at {1e3 * dt:g} ms", "rad", error.max(), **them, most=1e-3)
    if len(ends) > 1:
        better = (4.0 * ends[0.5e-5] - ends[1e-5]) / 3.0
        found.add("the same, both steps extrapolated", "rad", np.abs(better - AT_30_MS).max(), most=1e-5)
    return found


def bricard() -> rk.Robot:
    """Five rods of 1 m and 1 kg and the ground between six hinges: over-constrained, and yet it moves."""
    corners = [(0, 0, 0), (1, 0, 0), (1, -1, 0), (1, -1, 1), (0, -1, 1), (0, 0, 1)]
    axes = [(0, 1, 0), (0, 0, 1), (1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 0, 0)]
    corners = [np.array(x, float) for x in corners]
    builder, above = ModelBuilder("bricard").link("ground"), "ground"
    for k in range(1, 6):
        along = corners[(k + 1) % 6] - corners[k]
        inertia = (np.eye(3) - np.outer(along, along)) / 12.0 + 1e-5 * np.eye(3)
        builder.link(f"rod{k}", 1.0, tuple(0.5 * along), inertia)
        start = corners[k] if k == 1 else corners[k] - corners[k - 1]
        builder.joint(f"hinge{k}", "continuous", above, f"rod{k}", _at(*start), axis=axes[k])
        above = f"rod{k}"
    builder.loop_joint("close", "revolute", above, "ground", _at(*(corners[0] - corners[5])), _at(0, 0, 0),
                       axis=axes[0])  # fmt: skip
    return builder.build("fixed").with_gravity((0.0, -s.G, 0.0))


@case("a04", "Public references", "IFToMM A04: Bricard's mechanism, 10 s")
def bricards(look: Look) -> Found:
    """Five rods and the ground in a closed chain of six hinges, along the edges of a cube: its equations are
    redundant, and one freedom is left. It falls from rest for 10 s at 1 ms. Measured: the energy error and
    the gap of the loop.
    """
    found, robot = Found(), bricard()
    t = s.fall(robot, duration=float(look.some(10, 3)), dt=1e-3, record_every=10, joint_damping=0.0)
    others = Others(look, robot, 1e-3)
    others.run(robot.neutral(), None, look.some(10000, 3000), 10)
    found.add("share of the time that was computed", "", t.t[-1] / look.some(10, 3), least=1.0)
    fastest = others.of(lambda q, v: float(np.abs(v).max()))
    found.add("largest speed of a hinge: it moves", "rad/s", np.abs(t.v).max(), **fastest, least=1.0)
    _drift(found, t, 1e-5, others)
    return found


def governor() -> rk.Robot:
    """An axis with a heavy slider and two rods of 1 m on each side: the flyball governor, without springs."""
    alpha = math.radians(30.0)
    builder = ModelBuilder("governor").link("ground")
    builder.link("axis", 3.0, (0, 0, -0.5), np.diag([0.25, 0.25, 5e-5]))
    builder.joint("spin", "continuous", "ground", "axis", axis=Z)
    top = 2.0 * math.cos(alpha)
    builder.link("slider", 1.0, inertia=np.diag([1e-3, 1e-3, 1e-3]))
    builder.joint("slide", "prismatic", "axis", "slider", _at(0, 0, -top), axis=Z)
    rod = np.diag([1.0 / 12.0 * 0.3, 1.0 / 12.0 * 0.3, 5e-6])
    for side, name in ((1.0, "right"), (-1.0, "left")):
        builder.link(f"{name} arm", 0.3 + 5.0, (0, 0, -(0.15 + 5.0) / 5.3), rod + np.diag([0.36, 0.36, 1e-3]))
        builder.joint(f"{name} swing", "continuous", "axis", f"{name} arm", axis=(0, -side, 0))
        builder.link(f"{name} rod", 0.3, (0, 0, 0.5), rod)
        builder.joint(f"{name} link", "continuous", "slider", f"{name} rod", axis=(0, side, 0))
        builder.loop_joint(f"{name} pin", "revolute", f"{name} arm", f"{name} rod", _at(0, 0, -1.0),
                           _at(0, 0, 1.0), axis=(0, 1, 0))  # fmt: skip
    return builder.build("fixed")


@case("a05", "Public references", "IFToMM A05, of its kind: a flyball governor with a stiff spring, 10 s")
def flyballs(look: Look) -> Found:
    """Arms of 1 m with balls of 5 kg hang 30 degrees from an axis that turns once in a second; rods lead to a
    slider of 1 kg, which a spring of 8e5 N/m with a damper of 4e4 N s/m holds (a PD motor without limits,
    which is implicit). Measured: the angular momentum about the axis, the loops' gap, and the difference from
    half the step.
    """
    found, robot = Found(), governor()
    alpha, ends = math.radians(30.0), []
    q0, v0 = np.zeros(robot.nq), np.zeros(robot.nv)
    for name in ("right swing", "left swing"):
        q0[robot.joint(name).q_slice] = alpha
    for name in ("right link", "left link"):
        q0[robot.joint(name).q_slice] = alpha
    v0[robot.joint("spin").v_slice] = 2.0 * math.pi
    spring = rk.PD(kp={"slide": 8e5}, kd={"slide": 4e4}, effort=math.inf, target={"slide": 0.0})
    seconds, theirs = float(look.some(10, 2)), []

    def spring_there(peer: Peer) -> None:
        joint, row = peer.model.joint("slide").id, peer.model.joint("slide").dofadr[0]
        peer.model.jnt_stiffness[joint], peer.model.dof_damping[row] = 8e5, 4e4

    def change(q: np.ndarray, v: np.ndarray) -> float:
        p = np.array([rk.crba(robot, x) @ y for x, y in zip(q, v, strict=True)])
        about = p[:, robot.joint("spin").v_slice.start]
        return float(np.ptp(about) / about[0])

    for dt in (1e-3, 0.5e-3):
        options = {"joint_damping": 0.0, "actuators": spring}
        t = s.fall(robot, q0, v0, duration=seconds, dt=dt, **options)
        ends.append(t.q[-1])
        others = Others(look, robot, dt, spring_there)
        others.run(q0, v0, round(seconds / dt), round(1e-2 / dt))
        theirs.append(others.of(lambda q, v: q[-1]))
        if dt == 1e-3:
            momenta = others.of(change)
            found.add(
                "change of the momentum about the axis", "of it", change(t.q, t.v), **momenta, most=1e-6
            )
            gaps = others.of(lambda q, v: 1e6 * s.loop_gap(robot, q))
            found.add("largest gap of the loops", "µm", 1e6 * t.summary["loop_gap"], **gaps, most=1.0)
    apart = {key: float(np.abs(theirs[0][key] - theirs[1][key]).max()) for key in theirs[0]}
    mine = float(np.abs(ends[0] - ends[1]).max())
    found.add("angles at the end: 1 ms less 0.5 ms", "rad, m", mine, **apart, most=1e-3)
    return found
