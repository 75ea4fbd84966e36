"""Every quantity of one state through the public functions, and the error measure against other programs."""

from __future__ import annotations

import numpy as np
from ladder import Plain

import robokit as rk

QUANTITIES = (
    "H",
    "C",
    "G",
    "tau",
    "qdd",
    "tau_f_ext",
    "qdd_f_ext",
    "A_G",
    "h_G",
    "bias",
    "com",
    "T",
    "V",
    "rotation",
    "position",
)


def quantities(robot: rk.Robot, q, v, a, tau, f_ext, compiled_h: bool = True) -> dict[str, np.ndarray]:
    """f_ext is {link: [n; f] in world axes about the world origin}; poses are in link_names order."""
    poses = rk.forward_kinematics(robot, q)
    return {
        "H": rk.crba(robot, q) if compiled_h else Plain(robot).crba(q),
        "C": rk.bias_forces(robot, q, v),
        "G": rk.gravity_forces(robot, q),
        "tau": rk.rnea(robot, q, v, a),
        "qdd": rk.aba(robot, q, v, tau),
        "tau_f_ext": rk.rnea(robot, q, v, a, f_ext=f_ext),
        "qdd_f_ext": rk.forward_dynamics(robot, q, v, tau, f_ext=f_ext, method="crba"),
        "A_G": rk.centroidal_momentum_matrix(robot, q),
        "h_G": rk.centroidal_momentum(robot, q, v),
        "bias": rk.centroidal_momentum_bias(robot, q, v),
        "com": rk.center_of_mass(robot, q),
        "T": np.asarray(rk.kinetic_energy(robot, q, v)),
        "V": np.asarray(rk.potential_energy(robot, q)),
        "rotation": poses.rotation,
        "position": poses.position,
    }


def error(got, expected) -> float:
    """Largest difference relative to the largest expected entry."""
    got, expected = np.asarray(got, dtype=float), np.asarray(expected, dtype=float)
    assert got.shape == expected.shape, f"shapes {got.shape} and {expected.shape}"
    assert np.all(np.isfinite(got)) and np.all(np.isfinite(expected)), "not finite"
    return float(np.abs(got - expected).max() / max(1e-3, np.abs(expected).max()))
