"""The range of effort that a model of MuJoCo allows a joint."""

from __future__ import annotations

import math
from typing import Any

JOINT_TRANSMISSIONS = (0, 1)
"""Types of transmission that act on a joint; the gear's first number is their factor."""

FREE = (-math.inf, math.inf)

Range = tuple[float, float]


def actuators_of(model: Any, j: int) -> list[int]:
    """The actuators of a joint."""
    return [
        k
        for k in range(model.nu)
        if int(model.actuator_trnid[k, 0]) == j and int(model.actuator_trntype[k]) in JOINT_TRANSMISSIONS
    ]


def effort_range(model: Any, j: int) -> Range:
    """The least and the largest effort of a joint [N m | N], infinite where there is no limit.

    An actuator makes gain * control + bias, within its range of force, times its gear; what the actuators of
    a joint make together stays within the joint's own range.
    """
    lower = upper = 0.0
    own = actuators_of(model, j)
    for k in own:
        least, most = _actuator(model, k)
        lower, upper = lower + least, upper + most
    if not own:
        lower, upper = FREE
    if model.jnt_actfrclimited[j]:
        lower = max(lower, float(model.jnt_actfrcrange[j, 0]))
        upper = min(upper, float(model.jnt_actfrcrange[j, 1]))
    return lower, upper


def _actuator(model: Any, k: int) -> Range:
    import mujoco

    lower, upper = FREE
    constant = float(model.actuator_biasprm[k, 0]) if int(model.actuator_biastype[k]) else 0.0
    plain = int(model.actuator_biastype[k]) == mujoco.mjtBias.mjBIAS_NONE or (
        # A bias of position or velocity makes forces that no range of controls bounds.
        int(model.actuator_biastype[k]) == mujoco.mjtBias.mjBIAS_AFFINE
        and not model.actuator_biasprm[k, 1:3].any()
    )
    fixed = int(model.actuator_gaintype[k]) == mujoco.mjtGain.mjGAIN_FIXED
    # The control of an integrator is the rate of what acts, and a muscle has a gain of its own.
    dynamic = int(model.actuator_dyntype[k]) not in (
        mujoco.mjtDyn.mjDYN_NONE,
        mujoco.mjtDyn.mjDYN_FILTER,
        mujoco.mjtDyn.mjDYN_FILTEREXACT,
    )
    if plain and fixed and not dynamic and model.actuator_ctrllimited[k]:
        gain = float(model.actuator_gainprm[k, 0])
        lower, upper = sorted(gain * float(c) + constant for c in model.actuator_ctrlrange[k])
    if model.actuator_forcelimited[k]:
        lower = max(lower, float(model.actuator_forcerange[k, 0]))
        upper = min(upper, float(model.actuator_forcerange[k, 1]))
    gear = float(model.actuator_gear[k, 0])
    if not gear:
        return 0.0, 0.0
    lower, upper = sorted((gear * lower, gear * upper))
    return lower, upper
