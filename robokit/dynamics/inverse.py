"""Inverse dynamics: the joint forces of a motion, of velocities alone, and of gravity alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from robokit.dynamics.devices import on_device
from robokit.dynamics.run import FExt, body_forces, dtype_of, run
from robokit.model.robot import Robot

__all__ = ["bias_forces", "gravity_forces", "rnea"]


def rnea(
    robot: Robot,
    q: Any,
    v: Any,
    a: Any,
    f_ext: FExt = None,
    *,
    out: np.ndarray | None = None,
    engine: str | None = None,
    dtype: Any = None,
    reproducible: bool | None = None,
    device: Any = None,
) -> np.ndarray:
    """Inverse dynamics by the recursive Newton-Euler algorithm: tau = H(q) a + C(q, v, f_ext).

    Source: RBDA table 5.1; seeds 001.  Differs: gravity enters as a_0 = -a_g.  Cost: O(n).

    Args:
        robot: the robot.
        q: configuration [rad | m | unit quaternion wxyz], (nq,) or (B, nq).
        v: velocity [rad/s | m/s], (nv,) or (B, nv); a floating base's is [omega; v] in base axes.
        a: acceleration [rad/s^2 | m/s^2], (nv,) or (B, nv).
        f_ext: forces on the bodies [N m; N]: {link: [n; f] in world axes about the world origin, (6,) or
            (B, 6)}, or an array (nbodies + 1, 6) or (B, nbodies + 1, 6) in body coordinates.
        out: array to write to, of the result's shape; it may share memory with an argument.
        engine: "llvm", machine code (the default, where llvmlite is installed), or "python", the
            algorithm as plain Python, for single calls and for debuggers.
        dtype: "float64" or "float32", of the result and of the computation; arguments are converted. By
            default (None) NumPy's result type of the arrays of floats that are given, ``out`` included:
            float32 where all of them are, float64 otherwise. Lists and whole numbers do not count. In
            float32 batches take about half the time and memory; errors are some 1e-6 of the largest terms.
        reproducible: whether the result is the same bits on every processor, for one state and in a batch
            (:doc:`/reproducible`); None asks the environment variable ``ROBOKIT_REPRODUCIBLE``.
        device: "cuda", or "cuda:1", computes on a graphics card (:doc:`/gpu`): NumPy's arrays are copied
            there and back. Arrays of PyTorch, CuPy and JAX that are on a card are computed there without
            being asked, and give arrays of the same library; neither NaN nor quaternions are looked for in
            them. None: where the arrays are.

    Returns:
        joint forces [N m | N], (nv,) or (B, nv).

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> rk.rnea(robot, q=[0.5, 0.2], v=[0, 0], a=[0, 0]).round(3)  # holds the robot against gravity
        array([7.257, 2.591])
        >>> rk.rnea(robot, [0.5, 0.2], [0, 0], [0, 0], {"lower": [0, 0, 0, 5.0, 0, 0]}).round(3)
        array([7.257, 0.397])
    """
    engine = engine if device is None else on_device(device, engine)
    if f_ext is None:
        return run(robot, "rnea", out, engine, dtype, reproducible, q, v, a)
    return run(
        robot,
        "rnea_f_ext",
        out,
        engine,
        dtype_of(dtype, out, q, v, a, f_ext),
        reproducible,
        q,
        v,
        a,
        body_forces(robot, q, f_ext, engine, reproducible),
    )


def bias_forces(
    robot: Robot,
    q: Any,
    v: Any,
    f_ext: FExt = None,
    *,
    out: np.ndarray | None = None,
    engine: str | None = None,
    dtype: Any = None,
    reproducible: bool | None = None,
    device: Any = None,
) -> np.ndarray:
    """C(q, v, f_ext): the joint forces that give zero acceleration, gravity included.

    Source: seeds 000, step 1; dynamics notes eq. 13.  Cost: O(n).

    Args:
        robot: the robot.
        q, v, f_ext, out, engine, dtype, reproducible, device: as in :func:`rnea`.

    Returns:
        joint forces [N m | N], (nv,) or (B, nv).

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> rk.bias_forces(robot, q=[0.5, 0.2], v=[1.0, -2.0]).round(3)
        array([7.257, 2.632])
    """
    engine = engine if device is None else on_device(device, engine)
    if f_ext is None:
        return run(robot, "bias_forces", out, engine, dtype, reproducible, q, v)
    return run(
        robot,
        "bias_forces_f_ext",
        out,
        engine,
        dtype_of(dtype, out, q, v, f_ext),
        reproducible,
        q,
        v,
        body_forces(robot, q, f_ext, engine, reproducible),
    )


def gravity_forces(
    robot: Robot,
    q: Any,
    *,
    out: np.ndarray | None = None,
    engine: str | None = None,
    dtype: Any = None,
    reproducible: bool | None = None,
    device: Any = None,
) -> np.ndarray:
    """G(q): the joint forces that hold the robot still against gravity.

    Source: dynamics notes eq. 14.  Cost: O(n).

    Args:
        robot: the robot.
        q, out, engine, dtype, reproducible, device: as in :func:`rnea`.

    Returns:
        joint forces [N m | N], (nv,) or (B, nv).

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> rk.gravity_forces(robot, [0.5, 0.2]).round(3)
        array([7.257, 2.591])
        >>> rk.gravity_forces(robot, [[0.5, 0.2], [0.0, 0.0]]).shape  # a batch of two states
        (2, 2)
    """
    engine = engine if device is None else on_device(device, engine)
    return run(robot, "gravity_forces", out, engine, dtype, reproducible, q)
