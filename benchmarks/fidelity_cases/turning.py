"""Velocity products make no energy: a rotor in gimbals, robots that spin."""

from __future__ import annotations

import numpy as np

from fidelity_cases import scenes as s
from fidelity_cases.peer import Peer, there
from fidelity_cases.table import Found, Look, case

SPIN = 20.0
"""Largest rate of base and joints in the drops [rad/s]."""


@case("rotor", "Gyroscopes", "A rotor in gimbals at 100 rad/s")
def rotor(look: Look) -> Found:
    """A disc of 1 kg turns at 100 rad/s in two gimbals without friction or gravity; the outer one gets 0.1
    rad/s. At 1 ms for 10 s. Measured: the energy gained, as a share of that in the gimbals' motion at the
    start and of the whole, and the largest rate of a gimbal (exact: 0.1 rad/s).
    """
    found, lines = Found(), {}
    robot, v0 = s.rotor(), np.array([0.1, 0.0, 100.0])
    seconds = float(look.some(10, 2))
    options = {"gravity": (0.0, 0.0, 0.0), "joint_damping": 0.0, "record_every": 5}
    ways = {
        "with a ground (default)": {"ground": s.ground(height=-5.0)},
        "without": {"integrator": "contact"},
        "midpoint": {"integrator": "midpoint"},
        "rkmk4": {"integrator": "rkmk4"},
    }
    for label, way in ways.items():
        for dt in (1e-3, 4e-3):
            t = s.fall(robot, np.zeros(3), v0, duration=seconds, dt=dt, **way, **options)
            gained = (t.energy.kinetic - t.energy.kinetic[0]).max() / t.energy.kinetic[0]
            rate = np.abs(t.v[:, :2]).max()
            if dt == 1e-3:
                found.add(f"{label}: energy gained, of the whole", "", gained, most=1e-6)
                lines[label] = t.t, np.abs(t.v[:, :2]).max(axis=1)
            found.add(f"{label}, {1e3 * dt:g} ms: largest rate of a gimbal", "rad/s", rate,
                      most=0.11 if dt == 1e-3 else None)  # fmt: skip
            if "stopped" in t.summary:
                found.notes.append(
                    f"{label}, {1e3 * dt:g} ms: stopped at {t.summary['stopped']['time']:.3g} s"
                )
    if look.peer:
        peer = Peer(robot.with_gravity((0.0, 0.0, 0.0)), 1e-3, friction=None)
        peer.start(np.zeros(3), v0)
        _, v = peer.states(round(1e3 * seconds), 5)
        found.add(
            "MuJoCo's default (Euler): largest rate of a gimbal", "rad/s", mujoco=np.abs(v[:, :2]).max()
        )
        lines["MuJoCo"] = 5e-3 * np.arange(len(v)), np.abs(v[:, :2]).max(axis=1)
    found.plot("rotor", "Rate of the gimbals at 1 ms", "s", "rad/s", lines, log="y")
    return found


@case("spun_drops", "Gyroscopes", "1,000 strongly spun drops at four steps")
def spun_drops(look: Look) -> Found:
    """The humanoid in random poses, 2 to 50 cm above the ground, with up to 20 rad/s of the base about each
    axis and of each joint, falls for 2 s. Measured: failures (not finite, or energy without a cause), and
    how far the mechanical energy of a row ever rises above its start, over the energy that moved.
    """
    found = Found()
    robot = s.load("humanoid")
    rows = look.some(1000, 10)
    q0, v0 = s.random_starts(robot, rows, SPIN)
    for dt in (4e-3, 1e-3) if look.quick else (0.5e-3, 1e-3, 2e-3, 4e-3):
        every = round(8e-3 / dt)
        r = s.many(robot, q0, v0, duration=2.0, dt=dt, ground=s.ground(), record_every=every)
        kinetic, potential = s.rollout_energies(robot, r.q, r.v)
        rise = (kinetic + potential) - (kinetic + potential)[0]
        moved = np.fmax(
            np.nanmax(kinetic, axis=0), np.nanmax(potential, axis=0) - np.nanmin(potential, axis=0)
        )
        share = np.sort(np.nanmax(rise, axis=0) / moved)
        label = f"{1e3 * dt:g} ms"
        found.add(f"{label}: rows that failed, of {rows}", "", len(r.failed), most=0.0)
        found.add(f"{label}: largest rise of the energy, of what moved", "", share[-1], most=1e-3)
        found.add(f"{label}: rows above 1e-3", "", int((share > 1e-3).sum()))
    if look.peer and there():
        some = look.some(100, 5)
        for dt in (1e-3, 2e-3, 4e-3):
            lost, least = _there(s.same_joints(robot), q0[:some], v0, dt)
            found.add(f"{1e3 * dt:g} ms: MuJoCo, bad states, of {some}", "", mujoco=lost)
            found.add(f"{1e3 * dt:g} ms: MuJoCo, largest rise of the energy", "", mujoco=least)
    return found


def _there(robot, q0: np.ndarray, v0: np.ndarray, dt: float) -> tuple[int, float]:
    """Rows in which MuJoCo met a bad state, and the largest rise of the energy of the others."""
    peer, lost, worst = Peer(robot, dt), 0, 0.0
    every = round(8e-3 / dt)
    for q, v in zip(q0, v0, strict=False):
        peer.start(q, v)
        qs, vs = peer.states(round(2.0 / dt), every)
        if peer.warned:
            lost += 1
            continue
        kinetic, potential = (x[:, 0] for x in s.rollout_energies(robot, qs[:, None], vs[:, None]))
        total = kinetic + potential
        worst = max(worst, (total - total[0]).max() / max(kinetic.max(), np.ptp(potential)))
    return lost, worst
