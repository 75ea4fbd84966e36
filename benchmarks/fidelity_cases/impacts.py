"""Impacts: balls of two sizes, restitution, two carts that meet."""

from __future__ import annotations

import math

import numpy as np

import robokit as rk
from fidelity_cases import scenes as s
from fidelity_cases.peer import Peer, both
from fidelity_cases.table import Found, Look, NotYet, case


@case("balls", "Impacts", "Balls of 5 mm and of half a metre, dropped from twenty radii")
def balls(look: Look) -> Found:
    """Balls of 1000 kg/m³ at 1 ms. Measured: how deep they sink, over their radius."""
    found = Found()
    for radius in (0.005, 0.05, 0.5):
        robot = s.ball(radius)
        q0 = s.at_height(robot, 21.0 * radius)
        seconds = 3.0 * math.sqrt(40.0 * radius / s.G)
        t = s.fall(robot, q0, duration=seconds, ground=s.ground(), record_every=1)

        def theirs(stiff: bool, robot=robot, q0=q0, seconds=seconds, radius=radius) -> float:
            peer = Peer(robot, 1e-3, stiff)
            peer.start(q0)
            q, _ = peer.states(round(1e3 * seconds), 1)
            return 1.0 - q[:, 6].min() / radius

        sink = t.summary["deepest_penetration"] / radius
        label = f"{1e3 * radius:g} mm"
        found.add(f"{label}: largest depth, over the radius", "", sink, **both(look, theirs), most=0.2)
        found.add(f"{label}: depth at the end, over the radius", "", 1.0 - t.q[-1, 6] / radius)
        landed = int(np.argmax(t.q[:, 6] < radius))
        bounce = (t.q[landed:, 6].max() / radius - 1.0) / 20.0
        found.add(f"{label}: bounces to this share of the height", "", max(bounce, 0.0))
    return found


@case("restitution", "Impacts", "Restitution from 0 to 1 at five steps")
def restitution(look: Look) -> Found:
    """A ball of 5 cm falls from half a metre. Measured: its largest speed upwards after the impact over that
    before, less the coefficient of restitution: the largest difference of all steps from 0.25 to 4 ms. Both
    speeds are those at the ground: at the end of a step the ball has lost up to g dt of it.
    """
    found, lines = Found(), {}
    robot, missing = s.ball(0.05), None
    steps = (0.25e-3, 0.5e-3, 1e-3, 2e-3, 4e-3)
    for e in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0):
        measured = []
        for dt in steps:
            try:
                surface = s.ground(restitution=e)
            except NotYet as problem:
                missing = str(problem)
                break
            t = s.fall(robot, s.at_height(robot, 0.55), duration=0.6, dt=dt, ground=surface, record_every=1)
            measured.append(_bounce(t.momentum[:, 5] / robot.total_mass, t.q[:, 6] - 0.05))
        if not measured:
            continue

        def theirs(stiff: bool, e: float = e) -> float | None:
            if stiff:
                return None
            log = math.log(max(e, 1e-3))
            peer = Peer(robot, 1e-3, bounce=-2.0 * log / math.hypot(math.pi, log) * math.sqrt(1e5))
            peer.start(s.at_height(robot, 0.55))
            q, v = peer.states(600, 1)
            return abs(_bounce(v[:, 5], q[:, 6] - 0.05) - e)

        worst = np.abs(np.array(measured) - e).max()
        found.add(f"restitution {e:g}: largest difference", "", worst, **both(look, theirs), most=2e-3)
        lines[f"{e:g}"] = [1e3 * dt for dt in steps], measured
    found.plot("restitution", "Speed after the impact over that before", "ms", "", lines, log="x")
    if missing:
        found.notes.append(f"Not yet possible: {missing}.")
    if look.peer:
        found.notes.append(
            "MuJoCo: at 1 ms, with direct stiffness (solref) and the damping that belongs to it."
        )
    return found


def _bounce(up: np.ndarray, gap: np.ndarray) -> float:
    """Largest speed upwards at the ground after the fastest fall, over that of a fall of half a metre."""
    rises = (np.arange(len(up)) > np.argmin(up)) & (up > 0.0)
    square = np.where(rises, up**2 + 2.0 * s.G * np.maximum(gap, 0.0), 0.0)
    return math.sqrt(square.max() / (2.0 * s.G * 0.5))


@case("carts", "Impacts", "Two balls on sliders, driven at each other")
def carts(look: Look) -> Found:
    """Two balls of 1 kg and 10 cm, 80 cm apart; one is driven at the other with 2 m/s, at 1 ms. Measured:
    how deep they sink into each other, and their speeds afterwards: equal, or apart by the restitution.
    """
    if not s.knows("self_collision"):
        raise NotYet("simulate(self_collision=) is not there")
    found, robot = Found(), s.two_carts()
    for e in (0.0, 0.5):
        pairs = s.replace(rk.collision_pairs(robot), restitution=e)
        t = s.fall(robot, np.zeros(2), np.array([2.0, 0.0]), duration=1.0, record_every=1,
                   joint_damping=0.0, self_collision=pairs, ground=s.ground(height=-1.0))  # fmt: skip
        gap = t.q[:, 1] - t.q[:, 0] + 1.0 - 0.2
        after = int(np.argmin(gap)) + 20
        apart = (t.v[min(after, len(t) - 1), 1] - t.v[min(after, len(t) - 1), 0]) / 2.0
        found.add(f"restitution {e:g}: largest depth", "mm", -1e3 * gap.min(), most=10.0)
        found.add(
            f"restitution {e:g}: speed apart over that before", "", apart, most=e + 0.02, least=e - 0.02
        )
        found.add(f"restitution {e:g}: momentum lost", "N s", abs(t.v[-1].sum() - 2.0), most=1e-9)
    return found
