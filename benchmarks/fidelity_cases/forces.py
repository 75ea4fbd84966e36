"""Are the contact forces possible: none pulls, none leaves its cone, and they add up?"""

from __future__ import annotations

import math

import numpy as np

import robokit as rk
from fidelity_cases import scenes as s
from fidelity_cases.table import Found, Look, case

MU = 0.8


@case("admissible", "Contact forces", "Contact forces that are possible, over whole falls")
def admissible(look: Look) -> Found:
    """Falls of 2 s from 2 cm, every step recorded. Measured: the share of the normal impulse that pulls,
    the share of the tangential impulse outside Coulomb's cone (means of eight
    falls), and how far the forces of the points are from adding up to the ground's force (of the weight).
    """
    found = Found()
    for label, name in (("humanoid", "humanoid"), ("G1", s.G1)):
        robot = s.load(name)
        starts = [
            rk.standing_configuration(robot, height=0.02, tilt=math.radians(4.0), seed=seed)
            for seed in range(look.some(8, 2))
        ]
        for dt in (1e-3, 0.25e-3, 4e-3):
            if look.quick and dt < 1e-3:
                continue
            falls = [shares(robot, q0, dt) for q0 in starts]
            pulls, outside = (float(np.mean(column)) for column in list(zip(*falls, strict=True))[:2])
            where = f"{label}, {1e3 * dt:g} ms"
            found.add(f"{where}: share of the impulse that pulls", "", pulls, most=1e-9)
            found.add(f"{where}: share outside the cone", "", outside, most=1e-9)
            if dt == 1e-3:
                found.add(
                    f"{where}: the points' sum beside the force",
                    "weights",
                    max(x for _, _, x in falls),
                    most=1e-9,
                )
    return found


def shares(robot: rk.Robot, q0: np.ndarray, dt: float) -> tuple[float, float, float]:
    """Share of the normal impulse that pulls, of the tangential one outside the cone, and the sum's error."""
    t = s.fall(robot, q0, duration=2.0, dt=dt, record_every=1, **s.alone({"ground": s.ground(friction=MU)}))
    with s.quiet():
        force = t.contacts.forces
    normal, tangential = force[..., 2], np.linalg.norm(force[..., :2], axis=-1)
    pulls = np.maximum(-normal, 0.0).sum() / np.abs(normal).sum()
    over = np.maximum(tangential - MU * np.maximum(normal, 0.0) * (1 + 1e-9), 0.0)
    apart = np.abs(force.sum(axis=1) - t.contact_force).max()
    return pulls, over.sum() / tangential.sum(), apart / (robot.total_mass * s.G)
