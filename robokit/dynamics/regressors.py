"""Regressors: forces, energies and momentum as linear in the inertial parameters of the bodies."""

from __future__ import annotations

from typing import Any

import numpy as np

from robokit.dynamics.devices import on_device
from robokit.dynamics.layout import parameter_entries
from robokit.dynamics.run import run
from robokit.errors import WrongType
from robokit.model.robot import Robot, check_robot

__all__ = ["energy_regressor", "momentum_regressor", "regressor", "regressor_entries", "regressor_nonzeros"]


def regressor(
    robot: Robot,
    q: Any,
    v: Any,
    a: Any,
    armature: bool = False,
    *,
    out: np.ndarray | None = None,
    engine: str | None = None,
    dtype: Any = None,
    reproducible: bool | None = None,
    device: Any = None,
) -> np.ndarray:
    """Y of inverse dynamics: tau = Y(q, v, a) pi for all inertial parameters pi.

    pi has ten numbers a body, of the bodies 1..N in turn: ``robot.inertial_parameters[1:].ravel()``, which
    gives the order. ``robot.with_inertias`` is the way back. Inertia of motors (armature) is no part of pi,
    unless it is asked for: then pi goes on with a number for each entry of v, as
    ``robokit.model.armature_by_dof(robot)`` gives them, whose columns are a on the diagonal. With coupled
    joints Y = G^T Y_full, with columns for all N bodies.

    Source: Atkeson, An, Hollerbach 1986.  Cost: O(n d), d the tree's depth.

    Args:
        robot: the robot; its own inertias do not matter.
        q, v, a, out, engine, dtype, reproducible, device: as in :func:`rnea`.
        armature: whether motors have columns too, nv of them, after those of the bodies.

    Returns:
        Y, (nv, 10 N) or (B, nv, 10 N), in [N m | N] a unit of the parameter; with motors 10 N + nv columns.

    Raises:
        WrongType: armature is neither True nor False.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> q, v, a = [0.5, 0.2], [1.0, -2.0], [0.3, 0.4]
        >>> pi = robot.inertial_parameters[1:].ravel()
        >>> np.allclose(rk.regressor(robot, q, v, a) @ pi, rk.rnea(robot, q, v, a))
        True
        >>> rk.regressor(robot, q, v, a, armature=True)[:, 20:]
        array([[0.3, 0. ],
               [0. , 0.4]])
    """
    engine = engine if device is None else on_device(device, engine)
    if armature is False:
        return run(robot, "regressor", out, engine, dtype, reproducible, q, v, a)
    if not isinstance(armature, bool | np.bool_):
        raise WrongType("armature", armature, "True or False")
    name = "regressor_armature" if armature else "regressor"
    return run(robot, name, out, engine, dtype, reproducible, q, v, a)


def regressor_nonzeros(
    robot: Robot,
    q: Any,
    v: Any,
    a: Any,
    *,
    out: np.ndarray | None = None,
    engine: str | None = None,
    dtype: Any = None,
    reproducible: bool | None = None,
    device: Any = None,
) -> np.ndarray:
    """The entries of Y that the tree leaves nonzero, row by row.

    A humanoid's Y has 80 kB, and two thirds of it are zero: a joint feels only the bodies that it carries.
    In batches, where memory is the limit, this is three times as fast as the dense matrix.
    ``rows, columns = regressor_entries(robot)`` gives the place of each entry. Motors have no columns here:
    their forces are armature times a.

    Source: Atkeson, An, Hollerbach 1986.  Cost: O(n d).

    Args:
        robot: the robot; its own inertias do not matter.
        q, v, a, out, engine, dtype, reproducible, device: as in :func:`rnea`.

    Returns:
        (entries,) or (B, entries).

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> rk.regressor_nonzeros(robot, [0.5, 0.2], [1.0, -2.0], [0.3, 0.4]).shape  # of 40 entries
        (30,)
    """
    engine = engine if device is None else on_device(device, engine)
    return run(robot, "regressor_nonzeros", out, engine, dtype, reproducible, q, v, a)


def regressor_entries(robot: Robot) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the entries that :func:`regressor_nonzeros` returns, (entries,) each.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> rows, columns = rk.regressor_entries(robot)
        >>> Y = np.zeros((robot.nv, 10 * robot.nbodies))
        >>> Y[rows, columns] = rk.regressor_nonzeros(robot, [0.5, 0.2], [1.0, -2.0], [0.3, 0.4])
        >>> np.allclose(Y, rk.regressor(robot, [0.5, 0.2], [1.0, -2.0], [0.3, 0.4]))
        True
    """
    check_robot(robot)
    rows, columns = parameter_entries(robot).T
    return rows, columns


def energy_regressor(
    robot: Robot,
    q: Any,
    v: Any,
    *,
    out: np.ndarray | None = None,
    engine: str | None = None,
    dtype: Any = None,
    reproducible: bool | None = None,
    device: Any = None,
) -> np.ndarray:
    """E of the energies: [T, V] = E(q, v) pi for all inertial parameters pi.

    T is the kinetic energy of the bodies, without that of motors (armature), and V the potential energy as in
    :func:`potential_energy`.

    Source: Gautier, Khalil 1988.  Cost: O(n).

    Args:
        robot: the robot; its own inertias do not matter.
        q, v, out, engine, dtype, reproducible, device: as in :func:`rnea`.

    Returns:
        E, (2, 10 N) or (B, 2, 10 N), in [J] a unit of the parameter, columns as in :func:`regressor`.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> pi = robot.inertial_parameters[1:].ravel()
        >>> (rk.energy_regressor(robot, [0.5, 0.2], [1.0, -2.0]) @ pi).round(4)  # kinetic, potential
        array([  0.1388, -11.617 ])
    """
    engine = engine if device is None else on_device(device, engine)
    return run(robot, "energy_regressor", out, engine, dtype, reproducible, q, v)


def momentum_regressor(
    robot: Robot,
    q: Any,
    v: Any,
    *,
    out: np.ndarray | None = None,
    engine: str | None = None,
    dtype: Any = None,
    reproducible: bool | None = None,
    device: Any = None,
) -> np.ndarray:
    """M of the momentum about the world origin: h_O = [k_O; l] = M(q, v) pi for all inertial parameters pi.

    About the centre of mass the momentum is not linear in pi, because that point depends on pi. With p_G and
    pi it is h_G = [k_O - p_G x l; l], which :func:`centroidal_momentum` returns.

    Source: RBDA eq. 2.62.  Cost: O(n).

    Args:
        robot: the robot; its own inertias do not matter.
        q, v, out, engine, dtype, reproducible, device: as in :func:`rnea`.

    Returns:
        M, (6, 10 N) or (B, 6, 10 N), rows [angular; linear] in world axes, in [N m s; N s] a unit of the
        parameter, columns as in :func:`regressor`.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> pi = robot.inertial_parameters[1:].ravel()
        >>> (rk.momentum_regressor(robot, [0.5, 0.2], [1.0, -2.0]) @ pi).round(3)
        array([-0.001,  0.289,  0.004, -0.557,  0.   ,  0.211])
    """
    engine = engine if device is None else on_device(device, engine)
    return run(robot, "momentum_regressor", out, engine, dtype, reproducible, q, v)
