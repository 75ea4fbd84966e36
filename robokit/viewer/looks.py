"""Where a camera stands: the names of views from around the robot.

x is forward, y to the left and z up, as in the robot's base at its neutral configuration.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from robokit.errors import UnknownName

LOOKS = {
    "front": (0.0, 0.03),
    "back": (math.pi, 0.03),
    "left": (0.5 * math.pi, 0.03),
    "right": (-0.5 * math.pi, 0.03),
    "top": (-0.5 * math.pi, 0.5 * math.pi - 0.001),
    "corner": (-0.25 * math.pi, 0.26),
}
"""Azimuth and elevation of the camera as seen from the robot [rad]."""


def angles_of(look: Any) -> tuple[float, float]:
    """Azimuth and elevation [rad] of a named view.

    Raises:
        UnknownName: there is no such view.
    """
    if not isinstance(look, str) or look not in LOOKS:
        raise UnknownName("view", look, LOOKS)
    return LOOKS[look]


def direction(look: Any) -> np.ndarray:
    """Unit vector from the robot to the camera, world axes, (3,).

    Raises:
        UnknownName: there is no such view.
    """
    azimuth, elevation = angles_of(look)
    flat = math.cos(elevation)
    return np.array([flat * math.cos(azimuth), flat * math.sin(azimuth), math.sin(elevation)])
