"""Cylinders roll."""

from __future__ import annotations

import numpy as np

from fidelity_cases import scenes as s
from fidelity_cases.peer import Peer, both
from fidelity_cases.table import Found, Look, case

WAY = 5.0
LYING = (np.sqrt(0.5), -np.sqrt(0.5), 0.0, 0.0)
"""The cylinder's z axis along the world's y."""


@case("rolling", "Shapes", "A cylinder rolls five metres")
def rolling(look: Look) -> Found:
    """A cylinder of 10 cm radius and 20 cm length, and a disc of 2 cm length, lie on the ground and roll
    without slipping, at 1 ms. Measured: the share of the speed that is left after five metres (0 where
    they do not get there), and the largest tilt of the axis.
    """
    found, lines = Found(), {}
    for label, length in (("cylinder", 0.2), ("disc", 0.02)):
        robot = s.cylinder(0.1, length)
        q0 = s.at_height(robot, 0.1, LYING)
        for speed in (0.5, 1.0, 2.0):
            v0 = np.array([0.0, 0.0, speed / 0.1, speed, 0.0, 0.0])
            seconds = 1.1 * WAY / speed
            t = s.fall(robot, q0, v0, duration=seconds, ground=s.ground(), record_every=10)
            left, tilt = _left(t.t, t.q, speed)
            if label == "cylinder":
                lines[f"robokit, {speed:g} m/s"] = t.q[:, 4], np.gradient(t.q[:, 4], t.t) / speed

            def theirs(stiff: bool, robot=robot, q0=q0, v0=v0, seconds=seconds, speed=speed) -> float:
                peer = Peer(robot, 1e-3, stiff, 0.8)
                peer.start(q0, v0)
                q, _ = peer.states(round(1e3 * seconds), 10)
                if not stiff and speed == 1.0:
                    lines["MuJoCo, 1 m/s"] = q[:, 4], np.gradient(q[:, 4], 0.01) / speed
                return _left(0.01 * np.arange(len(q)), q, speed)[0]

            them = both(look, theirs) if label == "cylinder" else {}
            found.add(f"{label}, {speed:g} m/s: speed left after 5 m", "", left, **them, least=0.999)
            found.add(f"{label}, {speed:g} m/s: largest tilt of its axis", "degrees", tilt)
    found.plot("rolling", "Speed of a cylinder, over that at the start", "m", "", lines)
    return found


def _left(t: np.ndarray, q: np.ndarray, speed: float) -> tuple[float, float]:
    """Share of the speed when 5 m are reached, and the largest tilt of the axis until then [degrees]."""
    x = q[:, 4]
    end = int(np.argmax(x >= WAY)) if (x >= WAY).any() else len(x) - 1
    w, a, b, c = q[: end + 1, :4].T
    up = np.abs(w * w - a * a - b * b + c * c)  # z component of the body's z axis
    tilt = float(np.degrees(np.arcsin(np.minimum(up.max(), 1.0))))
    if x[end] < WAY:
        return 0.0, tilt
    few = slice(max(0, end - 20), end + 1)  # the mean over 0.2 s
    return float(np.polyfit(t[few], x[few], 1)[0] / speed), tilt
