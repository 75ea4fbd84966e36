"""Forces and accelerations of the joints: inverse, forward and hybrid dynamics, and their derivatives.

Derivatives with respect to q are taken in the tangent space: column k is the change along
``robot.integrate(q, eps e_k)``, for quaternions as for angles.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from robokit.arguments import one_of
from robokit.dataclass_tools import short_repr
from robokit.dynamics.choices import joint_names
from robokit.dynamics.devices import on_device
from robokit.dynamics.run import FExt, accelerations, body_forces, dtype_name, dtype_of, run, with_forces
from robokit.dynamics.singular import check_inertia
from robokit.dynamics.table import WITH_FORCES, WITH_WORLD_FORCES
from robokit.model.robot import Robot, check_robot

__all__ = [
    "CentroidalDerivatives",
    "aba",
    "aba_derivatives",
    "bias_forces",
    "centroidal_momentum_derivatives",
    "floating_base_forces",
    "floating_base_inverse_dynamics",
    "forward_dynamics",
    "gravity_forces",
    "hybrid_dynamics",
    "rnea",
    "rnea_derivatives",
]


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


# ---- forward dynamics: the accelerations that joint forces give -------------------------------------------


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


# ---- hybrid dynamics: prescribed joints, and bases that nothing drives ------------------------------------

ENDLESS = 1e9
"""Rotor inertia of a joint that no force moves [kg m^2 | kg]."""


def hybrid_dynamics(
    robot: Robot,
    q: Any,
    v: Any,
    tau: Any,
    a: Any,
    prescribed: Sequence[str] = (),
    f_ext: FExt = None,
    *,
    out: Any = None,
    engine: str | None = None,
    dtype: Any = None,
    reproducible: bool | None = None,
    device: Any = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Joint forces and accelerations where some joints have the one given and some the other.

    Every set of prescribed joints has machine code of its own: none is forward dynamics, all is inverse
    dynamics, all but the floating base is :func:`floating_base_inverse_dynamics`.

    Source: RBDA table 9.2.  Cost: O(n); O(n d^2) for robots with coupled joints.

    Args:
        robot: the robot.
        q, v, f_ext, engine, dtype, reproducible, device: as in :func:`rnea`.
        tau: joint forces [N m | N], (nv,) or (B, nv); those of prescribed joints do not matter.
        a: accelerations [rad/s^2 | m/s^2], (nv,) or (B, nv); those of the other joints do not matter.
        prescribed: names of the joints whose accelerations are given.
        out: two arrays to write to.

    Returns:
        (tau, a), both complete, (nv,) or (B, nv) each: ``rnea(robot, q, v, a, f_ext) == tau``.

    Raises:
        UnknownName: no such joint.
        SingularInertia: a joint whose force is given moves no inertia; the error names it.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> given = ["upper_joint"]
        >>> tau, a = rk.hybrid_dynamics(robot, [0.5, 0.2], [0, 0], [0, 0], [1.0, 0], given)
        >>> tau.round(3), a.round(3)  # the force of the first joint, the acceleration of the second
        (array([2.276, 0.   ]), array([  1.   , -15.302]))
    """
    engine = engine if device is None else on_device(device, engine)
    check_robot(robot)
    given = tuple(prescribed) if prescribed.__class__ is list else prescribed
    try:
        names = robot.derived.get(("prescribed", given), lambda: _prescribed(robot, given))
    except TypeError:  # something among them that is no name
        names = _prescribed(robot, given)
    if f_ext is not None:
        dtype = dtype_of(dtype, out, q, v, tau, a, f_ext)
    name, forces = with_forces("hybrid_dynamics", robot, q, f_ext, engine, reproducible)
    return accelerations(robot, (name, names), out, engine, dtype, reproducible, q, v, tau, a, *forces)


def floating_base_inverse_dynamics(
    robot: Robot,
    q: Any,
    v: Any,
    a_joints: Any,
    *,
    out: Any = None,
    engine: str | None = None,
    dtype: Any = None,
    reproducible: bool | None = None,
    device: Any = None,
) -> tuple[np.ndarray, np.ndarray]:
    """How a floating base answers to given joint accelerations, and the joint forces that they need.

    Nothing acts on the base but its joints and gravity: a satellite with arms, a robot in the air.

    Source: RBDA section 9.5, table 9.6.  Cost: O(n).

    Args:
        robot: a robot on a floating base.
        q, v, engine, dtype, reproducible, device: as in :func:`rnea`.
        a_joints: accelerations of all joints but the base [rad/s^2 | m/s^2], (nv - 6,) or (B, nv - 6).
        out: two arrays to write to.

    Returns:
        (a_base, tau): the base's acceleration [alpha; a] in base axes, as in the first six entries of a,
        (6,) or (B, 6), and the forces of the other joints [N m | N], (nv - 6,) or (B, nv - 6).

    Raises:
        ModelError: the robot's base is fixed.
        SingularInertia: a joint moves no inertia; the error names it.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"), base="floating")
        >>> a_base, tau = rk.floating_base_inverse_dynamics(robot, robot.neutral(), np.zeros(8), [1.0, 0.0])
        >>> bool(np.isclose(a_base[5], -9.81))  # it falls, whatever its joints do
        True
        >>> same = rk.rnea(robot, robot.neutral(), np.zeros(8), [*a_base, 1.0, 0.0])
        >>> np.allclose(same, [0, 0, 0, 0, 0, 0, *tau])
        True
    """
    engine = engine if device is None else on_device(device, engine)
    return accelerations(
        robot, "floating_base_inverse_dynamics", out, engine, dtype, reproducible, q, v, a_joints
    )


def floating_base_forces(
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
    """The force that a motion needs on a floating base from outside: ground, tether or thrusters.

    It is the first six entries of :func:`rnea`, the only ones that no motor can give; where it is zero, the
    joints make the motion alone. The sum of all contact forces must equal it.

    Source: RBDA section 9.3.  Cost: O(n).

    Args:
        robot: a robot on a floating base.
        q, v, a, out, engine, dtype, reproducible, device: as in :func:`rnea`.

    Returns:
        [n; f] on the base about its origin, in base axes [N m; N], (6,) or (B, 6).

    Raises:
        ModelError: the robot's base is fixed.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"), base="floating")
        >>> force = rk.floating_base_forces(robot, robot.neutral(), np.zeros(8), np.zeros(8))
        >>> round(float(force[5]), 3), round(robot.total_mass * 9.81, 3)  # its weight
        (41.202, 41.202)
    """
    engine = engine if device is None else on_device(device, engine)
    return run(robot, "floating_base_forces", out, engine, dtype, reproducible, q, v, a)


def _prescribed(robot: Robot, names: Sequence[str]) -> tuple[str, ...]:
    found = joint_names(robot, names)
    # A joint whose acceleration is given is one with an endless rotor: it needs no inertia behind it.
    tree = robot.tree
    given = {robot.joint(name).body for name in found}
    own = tree.armature or tuple((0.0,) * joint.kind.nv for joint in tree.joint)
    rotors = tuple((ENDLESS,) * len(row) if i in given else row for i, row in enumerate(own))
    check_inertia(replace(robot, tree=replace(tree, armature=rotors)))
    return found


# ---- derivatives of inverse and forward dynamics, and of the centroidal momentum -------------------------

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
