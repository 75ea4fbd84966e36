"""Derivatives of inverse dynamics, of forward dynamics and of the centroidal momentum.

Those with respect to q are taken in the tangent space: column k is the change along
``robot.integrate(q, eps e_k)``, for quaternions as for angles.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from robokit.dataclass_tools import short_repr
from robokit.dynamics.devices import on_device
from robokit.dynamics.run import FExt, accelerations, body_forces, dtype_of, run
from robokit.dynamics.table import WITH_FORCES, WITH_WORLD_FORCES
from robokit.model.robot import Robot

__all__ = ["CentroidalDerivatives", "aba_derivatives", "centroidal_momentum_derivatives", "rnea_derivatives"]

Out = Sequence[np.ndarray] | None


def rnea_derivatives(
    robot: Robot,
    q: Any,
    v: Any,
    a: Any,
    f_ext: FExt = None,
    *,
    out: Out = None,
    engine: str | None = None,
    dtype: Any = None,
    reproducible: bool | None = None,
    device: Any = None,
) -> tuple[np.ndarray, np.ndarray]:
    """dtau/dq and dtau/dv of inverse dynamics tau = ID(q, v, a); dtau/da is H, ``rk.crba(robot, q)``.

    Column k of dtau/dq is the change along ``robot.integrate(q, eps e_k)``.

    Source: S. Singh, R. P. Russell, P. M. Wensing 2022, algorithm 1.  Cost: O(n d), d the depth of the tree.

    Args:
        robot: the robot.
        q, v, a, engine, dtype, reproducible, device: as in :func:`rnea`.
        f_ext: as in :func:`rnea`. What is given is held fixed: the wrench in the world for {link: wrench},
            the numbers in body coordinates for an array.
        out: two arrays to write to.

    Returns:
        dtau/dq [N m/rad, N m/m, N/rad or N/m] and dtau/dv, (nv, nv) or (B, nv, nv) each.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> dtau_dq, dtau_dv = rk.rnea_derivatives(robot, [0.5, 0.2], [0, 0], [0, 0])
        >>> dtau_dq.round(3)  # the stiffness of gravity
        array([[11.617,  3.076],
               [ 3.076,  3.076]])
    """
    engine = engine if device is None else on_device(device, engine)
    if f_ext is None:
        return run(robot, "rnea_derivatives", out, engine, dtype, reproducible, q, v, a)
    dtype = dtype_of(dtype, out, q, v, a, f_ext)
    forces = body_forces(robot, q, f_ext, engine, reproducible)
    return run(robot, "rnea_derivatives" + _ending(f_ext), out, engine, dtype, reproducible, q, v, a, forces)


def aba_derivatives(
    robot: Robot,
    q: Any,
    v: Any,
    tau: Any,
    f_ext: FExt = None,
    *,
    out: Out = None,
    engine: str | None = None,
    dtype: Any = None,
    reproducible: bool | None = None,
    device: Any = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """da/dq, da/dv and da/dtau = H^-1 of forward dynamics a = FD(q, v, tau).

    Column k of da/dq is the change along ``robot.integrate(q, eps e_k)``.

    Source: J. Carpentier, N. Mansard 2018, through the sparse factor of H.  Cost: O(n^2 d).
    Error: about cond(H) roundings of the largest entry, 1e-16 cond(H), whatever the engine. Robots of
    hundreds of joints take the inverse of H, whose own error counts more where cond(H) is large.

    Args:
        robot: the robot.
        q, v, engine, dtype, reproducible, device: as in :func:`rnea`. In float32 errors are some 1e-4 of the
            largest entry.
        tau: joint forces [N m | N], (nv,) or (B, nv).
        f_ext: as in :func:`rnea`; what is held fixed as in :func:`rnea_derivatives`.
        out: three arrays to write to.

    Returns:
        da/dq, da/dv and da/dtau, (nv, nv) or (B, nv, nv) each.

    Raises:
        SingularInertia: a joint moves no inertia; the error names it.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> da_dq, da_dv, da_dtau = rk.aba_derivatives(robot, [0.5, 0.2], [0, 0], [0, 0])
        >>> da_dq.round(3)
        array([[-19.368,  11.639],
               [ 23.543, -40.88 ]])
        >>> np.allclose(da_dtau, rk.inverse_mass_matrix(robot, [0.5, 0.2]))
        True
    """
    engine = engine if device is None else on_device(device, engine)
    if f_ext is None:
        return accelerations(robot, "aba_derivatives", out, engine, dtype, reproducible, q, v, tau)
    dtype = dtype_of(dtype, out, q, v, tau, f_ext)
    forces = body_forces(robot, q, f_ext, engine, reproducible)
    return accelerations(
        robot, "aba_derivatives" + _ending(f_ext), out, engine, dtype, reproducible, q, v, tau, forces
    )


class CentroidalDerivatives(NamedTuple):
    """Derivatives of the centroidal momentum h_G and of its rate, (6, nv) or (B, 6, nv) each.

    The rate is A_G a + (d/dt A_G) v. The derivative of h_G with respect to v is A_G, as is ``drate_da``.

    Attributes:
        dh_dq: of h_G with respect to q.
        drate_dq: of the rate with respect to q.
        drate_dv: of the rate with respect to v.
        drate_da: of the rate with respect to a: A_G.
    """

    dh_dq: np.ndarray
    drate_dq: np.ndarray
    drate_dv: np.ndarray
    drate_da: np.ndarray

    def __repr__(self) -> str:
        return short_repr(self)


def centroidal_momentum_derivatives(
    robot: Robot,
    q: Any,
    v: Any,
    a: Any,
    *,
    out: Out = None,
    engine: str | None = None,
    dtype: Any = None,
    reproducible: bool | None = None,
    device: Any = None,
) -> CentroidalDerivatives:
    """Derivatives of the centroidal momentum and of its rate; rows [angular; linear] in world axes about G.

    The rate is that of the motion alone: gravity, which acts at the centre of mass, would add m g to its
    linear part and nothing to its derivatives. G is the centre of mass, which moves with q.

    Source: J. Carpentier, N. Mansard 2018; dynamics notes eq. 20-22.  Cost: O(n).

    Args:
        robot: the robot.
        q, v, a, engine, dtype, reproducible, device: as in :func:`rnea`.
        out: four arrays to write to.

    Returns:
        dh/dq, drate/dq, drate/dv and drate/da by name.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> found = rk.centroidal_momentum_derivatives(robot, [0.5, 0.2], [1.0, -2.0], [0, 0])
        >>> found.dh_dq.shape
        (6, 2)
    """
    engine = engine if device is None else on_device(device, engine)
    return CentroidalDerivatives(
        *run(robot, "centroidal_momentum_derivatives", out, engine, dtype, reproducible, q, v, a)
    )


def _ending(f_ext: Any) -> str:
    """Of the name of the kernel that holds fixed what was given."""
    return WITH_WORLD_FORCES if isinstance(f_ext, Mapping) else WITH_FORCES
