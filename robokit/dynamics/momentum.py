"""Centre of mass, energies and centroidal momentum."""

from __future__ import annotations

from typing import Any

import numpy as np

from robokit.dynamics.run import run
from robokit.model.robot import Robot

__all__ = [
    "center_of_mass",
    "centroidal_momentum",
    "centroidal_momentum_bias",
    "centroidal_momentum_matrix",
    "kinetic_energy",
    "potential_energy",
]


def center_of_mass(robot: Robot, q: Any, *, engine: str | None = None, dtype: Any = None) -> np.ndarray:
    """Centre of mass of the moving bodies in the world.

    Source: dynamics notes eq. 20.  Cost: O(n).

    Args:
        robot: the robot.
        q, engine, dtype: as in :func:`rnea`.

    Returns:
        p_G [m], (3,) or (B, 3).
    """
    return run(robot, "center_of_mass", None, engine, dtype, q)


def kinetic_energy(robot: Robot, q: Any, v: Any, *, engine: str | None = None, dtype: Any = None) -> Any:
    """Kinetic energy of the moving bodies.

    Source: seeds 000, T = 1/2 sum v_i^T I_i v_i.  Cost: O(n).

    Args:
        robot: the robot.
        q, v, engine, dtype: as in :func:`rnea`.

    Returns:
        T [J], a float or (B,).
    """
    return run(robot, "kinetic_energy", None, engine, dtype, q, v)


def potential_energy(robot: Robot, q: Any, *, engine: str | None = None, dtype: Any = None) -> Any:
    """Potential energy in uniform gravity, zero where the centre of mass is at the origin's height.

    Source: V = -a_g . M p_G.  Cost: O(n).

    Args:
        robot: the robot.
        q, engine, dtype: as in :func:`rnea`.

    Returns:
        V [J], a float or (B,).
    """
    return run(robot, "potential_energy", None, engine, dtype, q)


def centroidal_momentum_matrix(
    robot: Robot, q: Any, *, out: np.ndarray | None = None, engine: str | None = None, dtype: Any = None
) -> np.ndarray:
    """A_G(q) with h_G = A_G v: rows [angular; linear] in world axes about the centre of mass.

    Source: dynamics notes eq. 20-25, from link momenta.  Cost: O(n).

    Args:
        robot: the robot.
        q, out, engine, dtype: as in :func:`rnea`.

    Returns:
        A_G, (6, nv) or (B, 6, nv).
    """
    return run(robot, "centroidal_momentum_matrix", out, engine, dtype, q)


def centroidal_momentum(
    robot: Robot, q: Any, v: Any, *, engine: str | None = None, dtype: Any = None
) -> np.ndarray:
    """h_G = [k_G; l_G] in world axes about the centre of mass.

    Source: dynamics notes eq. 21.  Cost: O(n).

    Args:
        robot: the robot.
        q, v, engine, dtype: as in :func:`rnea`.

    Returns:
        h_G [N m s; N s], (6,) or (B, 6).
    """
    return run(robot, "centroidal_momentum", None, engine, dtype, q, v)


def centroidal_momentum_bias(
    robot: Robot, q: Any, v: Any, *, engine: str | None = None, dtype: Any = None
) -> np.ndarray:
    """Rate of h_G at zero acceleration, without gravity: (d/dt A_G) v.

    Source: dynamics notes eq. 22, 26.  Cost: O(n).

    Args:
        robot: the robot.
        q, v, engine, dtype: as in :func:`rnea`.

    Returns:
        [N m; N], (6,) or (B, 6).
    """
    return run(robot, "centroidal_momentum_bias", None, engine, dtype, q, v)
