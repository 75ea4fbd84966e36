"""Centre of mass, energies and centroidal momentum."""

from __future__ import annotations

from typing import Any

import numpy as np

from robokit.dynamics.devices import on_device
from robokit.dynamics.run import run
from robokit.model.robot import Robot

__all__ = [
    "center_of_mass",
    "center_of_mass_acceleration",
    "center_of_mass_jacobian",
    "center_of_mass_velocity",
    "centroidal_momentum",
    "centroidal_momentum_bias",
    "centroidal_momentum_matrix",
    "kinetic_energy",
    "potential_energy",
]


def center_of_mass(
    robot: Robot,
    q: Any,
    *,
    out: np.ndarray | None = None,
    engine: str | None = None,
    dtype: Any = None,
    reproducible: bool | None = None,
    device: Any = None,
) -> np.ndarray:
    """Centre of mass of the moving bodies in the world.

    Source: dynamics notes eq. 20.  Cost: O(n).

    Args:
        robot: the robot.
        q, out, engine, dtype, reproducible, device: as in :func:`rnea`.

    Returns:
        p_G [m], (3,) or (B, 3).

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> rk.center_of_mass(robot, [0.5, 0.2]).round(3)
        array([-0.336,  0.016, -0.538])
    """
    engine = engine if device is None else on_device(device, engine)
    return run(robot, "center_of_mass", out, engine, dtype, reproducible, q)


def center_of_mass_jacobian(
    robot: Robot,
    q: Any,
    *,
    out: np.ndarray | None = None,
    engine: str | None = None,
    dtype: Any = None,
    reproducible: bool | None = None,
    device: Any = None,
) -> np.ndarray:
    """J_G(q) of the centre of mass of the moving bodies: J_G v is its velocity in the world.

    Source: dynamics notes eq. 20: the linear rows of A_G over M.  Cost: O(n).

    Args:
        robot: the robot.
        q, out, engine, dtype, reproducible, device: as in :func:`rnea`.

    Returns:
        J_G, (3, nv) or (B, 3, nv), in world axes.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> rk.center_of_mass_jacobian(robot, [0.5, 0.2]).round(3)
        array([[-0.538, -0.143],
               [ 0.   ,  0.   ],
               [ 0.336,  0.12 ]])
    """
    engine = engine if device is None else on_device(device, engine)
    return run(robot, "center_of_mass_jacobian", out, engine, dtype, reproducible, q)


def center_of_mass_velocity(
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
    """Velocity of the centre of mass of the moving bodies in the world: l_G / M.

    Source: dynamics notes eq. 20, 21.  Cost: O(n).

    Args:
        robot: the robot.
        q, v, out, engine, dtype, reproducible, device: as in :func:`rnea`.

    Returns:
        [m/s], (3,) or (B, 3), in world axes.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> rk.center_of_mass_velocity(robot, [0.5, 0.2], [1.0, -2.0]).round(3)
        array([-0.253,  0.   ,  0.096])
    """
    engine = engine if device is None else on_device(device, engine)
    return run(robot, "center_of_mass_velocity", out, engine, dtype, reproducible, q, v)


def center_of_mass_acceleration(
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
    """Acceleration of the centre of mass of the moving bodies in the world; gravity does not enter.

    M times it is the sum of all outer forces, weight included.

    Source: dynamics notes eq. 20, 22: the linear rows of A_G a + (d/dt A_G) v, over M.  Cost: O(n).

    Args:
        robot: the robot.
        q, v, a, out, engine, dtype, reproducible, device: as in :func:`rnea`.

    Returns:
        [m/s^2], (3,) or (B, 3), in world axes.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> rk.center_of_mass_acceleration(robot, [0.5, 0.2], [0, 0], [1.0, 1.0]).round(3)
        array([-0.681,  0.   ,  0.456])
    """
    engine = engine if device is None else on_device(device, engine)
    return run(robot, "center_of_mass_acceleration", out, engine, dtype, reproducible, q, v, a)


def kinetic_energy(
    robot: Robot,
    q: Any,
    v: Any,
    *,
    out: np.ndarray | None = None,
    engine: str | None = None,
    dtype: Any = None,
    reproducible: bool | None = None,
    device: Any = None,
) -> Any:
    """Kinetic energy of the moving bodies.

    Source: seeds 000, T = 1/2 sum v_i^T I_i v_i.  Cost: O(n).

    Args:
        robot: the robot.
        q, v, out, engine, dtype, reproducible, device: as in :func:`rnea`.

    Returns:
        T [J], a float or (B,).

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> round(rk.kinetic_energy(robot, [0.5, 0.2], [1.0, -2.0]), 4)
        0.1388
    """
    engine = engine if device is None else on_device(device, engine)
    return run(robot, "kinetic_energy", out, engine, dtype, reproducible, q, v)


def potential_energy(
    robot: Robot,
    q: Any,
    *,
    out: np.ndarray | None = None,
    engine: str | None = None,
    dtype: Any = None,
    reproducible: bool | None = None,
    device: Any = None,
) -> Any:
    """Potential energy in uniform gravity, zero where the centre of mass is at the origin's height.

    Source: V = -a_g . M p_G.  Cost: O(n).

    Args:
        robot: the robot.
        q, out, engine, dtype, reproducible, device: as in :func:`rnea`.

    Returns:
        V [J], a float or (B,).

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> round(rk.potential_energy(robot, [0.5, 0.2]), 4)
        -11.617
    """
    engine = engine if device is None else on_device(device, engine)
    return run(robot, "potential_energy", out, engine, dtype, reproducible, q)


def centroidal_momentum_matrix(
    robot: Robot,
    q: Any,
    *,
    out: np.ndarray | None = None,
    engine: str | None = None,
    dtype: Any = None,
    reproducible: bool | None = None,
    device: Any = None,
) -> np.ndarray:
    """A_G(q) with h_G = A_G v: rows [angular; linear] in world axes about the centre of mass.

    Source: dynamics notes eq. 20-25, from link momenta.  Cost: O(n).

    Args:
        robot: the robot.
        q, out, engine, dtype, reproducible, device: as in :func:`rnea`.

    Returns:
        A_G, (6, nv) or (B, 6, nv).

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> A_G = rk.centroidal_momentum_matrix(robot, [0.5, 0.2])
        >>> np.allclose(A_G @ [1.0, -2.0], rk.centroidal_momentum(robot, [0.5, 0.2], [1.0, -2.0]))
        True
    """
    engine = engine if device is None else on_device(device, engine)
    return run(robot, "centroidal_momentum_matrix", out, engine, dtype, reproducible, q)


def centroidal_momentum(
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
    """h_G = [k_G; l_G] in world axes about the centre of mass.

    Source: dynamics notes eq. 21.  Cost: O(n).

    Args:
        robot: the robot.
        q, v, out, engine, dtype, reproducible, device: as in :func:`rnea`.

    Returns:
        h_G [N m s; N s], (6,) or (B, 6).

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> rk.centroidal_momentum(robot, [0.5, 0.2], [1.0, -2.0]).round(3)
        array([-0.004, -0.082, -0.004, -0.557,  0.   ,  0.211])
    """
    engine = engine if device is None else on_device(device, engine)
    return run(robot, "centroidal_momentum", out, engine, dtype, reproducible, q, v)


def centroidal_momentum_bias(
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
    """Rate of h_G at zero acceleration, without gravity: (d/dt A_G) v.

    Source: dynamics notes eq. 22, 26.  Cost: O(n).

    Args:
        robot: the robot.
        q, v, out, engine, dtype, reproducible, device: as in :func:`rnea`.

    Returns:
        [N m; N], (6,) or (B, 6).

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> q, v, a = [0.5, 0.2], [1.0, -2.0], [0.3, 0.4]
        >>> rate = rk.centroidal_momentum_matrix(robot, q) @ a + rk.centroidal_momentum_bias(robot, q, v)
        >>> np.allclose(rate[3:], (1.2 + 1.0) * rk.center_of_mass_acceleration(robot, q, v, a))
        True
    """
    engine = engine if device is None else on_device(device, engine)
    return run(robot, "centroidal_momentum_bias", out, engine, dtype, reproducible, q, v)
