"""Forward dynamics: the accelerations that joint forces give."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from robokit.arguments import one_of
from robokit.dynamics.devices import on_device
from robokit.dynamics.run import FExt, accelerations, body_forces, dtype_name, dtype_of
from robokit.model.robot import Robot

__all__ = ["aba", "forward_dynamics"]


def aba(
    robot: Robot,
    q: Any,
    v: Any,
    tau: Any,
    f_ext: FExt = None,
    *,
    out: np.ndarray | None = None,
    engine: str | None = None,
    dtype: Any = None,
    reproducible: bool | None = None,
    device: Any = None,
) -> np.ndarray:
    """Forward dynamics by the articulated-body algorithm.

    Source: RBDA table 7.1; seeds 002.  Differs: the slides' last pass has a sign error.  Cost: O(n).

    Args:
        robot: the robot.
        q, v, f_ext, out, engine, dtype, reproducible, device: as in :func:`rnea`.
        tau: joint forces [N m | N], (nv,) or (B, nv).

    Returns:
        accelerations [rad/s^2 | m/s^2], (nv,) or (B, nv).

    Raises:
        SingularInertia: a joint moves no inertia; the error names it.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> rk.aba(robot, q=[0.5, 0.2], v=[0, 0], tau=[0, 0]).round(3)  # let go at rest
        array([-7.203,  1.344])
    """
    engine = engine if device is None else on_device(device, engine)
    if f_ext is None:
        return accelerations(robot, "aba", out, engine, dtype, reproducible, q, v, tau)
    return accelerations(
        robot,
        "aba_f_ext",
        out,
        engine,
        dtype_of(dtype, out, q, v, tau, f_ext),
        reproducible,
        q,
        v,
        tau,
        body_forces(robot, q, f_ext, engine, reproducible),
    )


def forward_dynamics(
    robot: Robot,
    q: Any,
    v: Any,
    tau: Any,
    f_ext: FExt = None,
    *,
    method: str = "aba",
    out: np.ndarray | None = None,
    engine: str | None = None,
    dtype: Any = None,
    reproducible: bool | None = None,
    device: Any = None,
) -> np.ndarray:
    """Forward dynamics by the articulated-body algorithm or by RNEA, CRBA and a sparse solve.

    Source: RBDA chapters 6, 7; seeds 000, 002.

    Args:
        robot: the robot.
        q, v, f_ext, out, engine, dtype, reproducible, device: as in :func:`rnea`.
        tau: joint forces [N m | N], (nv,) or (B, nv).
        method: "aba", O(n), or "crba", O(n d^2).

    Returns:
        accelerations [rad/s^2 | m/s^2], (nv,) or (B, nv).

    Raises:
        SingularInertia: a joint moves no inertia; the error names it.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> rk.forward_dynamics(robot, [0.5, 0.2], [0, 0], [0, 0], method="crba").round(3)
        array([-7.203,  1.344])
    """
    engine = engine if device is None else on_device(device, engine)
    if one_of("method", method, ("aba", "crba")) == "aba":
        return aba(robot, q, v, tau, f_ext, out=out, engine=engine, dtype=dtype, reproducible=reproducible)
    dtype = dtype_of(dtype, out, q, v, tau, f_ext)
    if dtype is not None and dtype_name(dtype) == "float32":
        warnings.warn(
            'forward_dynamics: method "crba" in float32 loses some 1e-3 of the accelerations; "aba" does not',
            stacklevel=2,
        )
    if f_ext is None:
        return accelerations(robot, "forward_dynamics", out, engine, dtype, reproducible, q, v, tau)
    return accelerations(
        robot,
        "forward_dynamics_f_ext",
        out,
        engine,
        dtype,
        reproducible,
        q,
        v,
        tau,
        body_forces(robot, q, f_ext, engine, reproducible),
    )
