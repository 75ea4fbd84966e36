"""Derivatives, H^-1 and the Coriolis matrix of robots with hundreds of joints.

An entry of dtau/dq, dtau/dv or C is a product of vectors of its two joints (rnea_derivatives.py). Machine
code computes the vectors, in proportion to the number of joints. NumPy multiplies all pairs, and what no
path connects is set to 0. H^-1 comes from LAPACK.

The derivatives of accelerations are too many operations earlier than their two factors are, H^-1 and the
derivatives of forces: NumPy multiplies these.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from robokit import arguments as check
from robokit.dynamics import long_robots
from robokit.dynamics.build import Key, kernel
from robokit.dynamics.table import WITH_FORCES, WITH_WORLD_FORCES
from robokit.engine import NotFinite
from robokit.model.robot import Robot


def long_way(robot: Robot, name: Key, dtype: str = "float64") -> Callable[..., Any] | None:
    """The function that replaces a kernel of too many operations; None if there are few enough.

    Args:
        robot: the robot.
        name: of the kernel. What is returned takes its arguments, and ``out``.
        dtype: of the result; the computation is in double precision all the same.
    """
    return long_robots.long_way(robot, name, dtype, WAYS)


def is_written_out(robot: Robot, name: str) -> bool:
    """Whether a kernel of this module's kind is code for this robot; True for all other kernels."""
    return name in long_robots.WAYS or long_way(robot, name) is None


def _pairs(robot: Robot) -> tuple[np.ndarray, np.ndarray]:
    """Where the row's joint is carried by the column's or is the same, and where it carries it."""
    return robot.derived.get("pairs of joints", lambda: _find_pairs(robot))


def _find_pairs(robot: Robot) -> tuple[np.ndarray, np.ndarray]:
    tree = robot.tree
    below, above = np.zeros((tree.nv, tree.nv), bool), np.zeros((tree.nv, tree.nv), bool)
    for i in tree.outward():
        for j in tree.support[i]:
            below[tree.v_slice[i], tree.v_slice[j]] = True
            if j != i:
                above[tree.v_slice[j], tree.v_slice[i]] = True
    return below, above


def _products(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a @ np.swapaxes(b, -1, -2)


def _reduced(robot: Robot, A: np.ndarray) -> np.ndarray:
    """G^T A G, where joints follow others."""
    return A if robot.coupling is None else robot.coupling.G.T @ A @ robot.coupling.G


def _columns(robot: Robot, ending: str, *arguments: Any) -> np.ndarray:
    """(10, ..., nv, 6)."""
    return np.moveaxis(kernel(robot, "derivative_columns" + ending)(*arguments), -3, 0)


def _rnea_derivatives(ending: str) -> Callable[..., tuple[np.ndarray, np.ndarray]]:
    def run(robot: Robot, *arguments: Any) -> tuple[np.ndarray, np.ndarray]:
        S, psi, psi2, both, by_q, by_v, U, W, turned, _ = _columns(robot, ending, *arguments)
        below, above = _pairs(robot)
        dq = above * _products(S, by_q) + below * (
            _products(W, psi) + _products(U, psi2) - _products(turned, S)
        )
        dv = above * _products(S, by_v) + below * (_products(W, S) + _products(U, both))
        return _reduced(robot, dq), _reduced(robot, dv)

    return run


def _coriolis_matrix(robot: Robot, q: Any, v: Any) -> np.ndarray:
    S, psi, _, both, _, by_v, U, W, _, own = _columns(robot, "", q, v, np.zeros(robot.nv))
    below, above = _pairs(robot)
    C = above * _products(S, 0.5 * by_v + own) + below * (_products(0.5 * W, S) + _products(U, both - psi))
    return _reduced(robot, C)


def _inverse(robot: Robot, q: Any) -> np.ndarray:
    H = long_robots.mass_matrix(robot, q)
    try:
        inverse = np.linalg.inv(H)
    except np.linalg.LinAlgError:
        raise NotFinite("inverse_mass_matrix", np.full(H.shape, np.nan)) from None
    return 0.5 * (inverse + np.swapaxes(inverse, -1, -2))


def _way(robot: Robot, name: str) -> Callable[..., Any]:
    return long_way(robot, name) or kernel(robot, name)


def _aba_derivatives(ending: str) -> Callable[..., tuple[np.ndarray, ...]]:
    def run(robot: Robot, q: Any, v: Any, tau: Any, *f_ext: Any) -> tuple[np.ndarray, ...]:
        tau = check.argument("tau", tau, robot.nv)
        check.check_values(["tau"], [tau], ())
        inverse = _way(robot, "inverse_mass_matrix")(q)
        C = kernel(robot, "bias_forces_f_ext" if f_ext else "bias_forces")(q, v, *f_ext)
        a = (inverse @ (tau - C)[..., None])[..., 0]
        if not np.isfinite(a).all():
            raise NotFinite("aba_derivatives", a)
        minus = -inverse
        by_state = tuple(minus @ x for x in _way(robot, "rnea_derivatives" + ending)(q, v, a, *f_ext))
        return (*by_state, np.array(np.broadcast_to(inverse, by_state[0].shape)))

    return run


WAYS: long_robots.Ways = {
    **long_robots.WAYS,
    "coriolis_matrix": ("derivatives", _coriolis_matrix),
    "inverse_mass_matrix": ("inverse", _inverse),
    **{
        "rnea_derivatives" + ending: ("derivatives", _rnea_derivatives(ending))
        for ending in ("", WITH_FORCES, WITH_WORLD_FORCES)
    },
    **{
        "aba_derivatives" + ending: ("derivatives of accelerations", _aba_derivatives(ending))
        for ending in ("", WITH_FORCES, WITH_WORLD_FORCES)
    },
}
"""For each kernel what may make it too long, and the other way."""
