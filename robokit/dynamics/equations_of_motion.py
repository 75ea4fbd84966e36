"""The equations of motion in joint space: H, its factors and inverse; forces, accelerations; regressors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from robokit.arguments import one_of, real_array
from robokit.dataclass_tools import short_repr
from robokit.dynamics.choices import joint_names, on_card, on_device
from robokit.dynamics.layout import lower_entries, parameter_entries
from robokit.dynamics.run import (
    FExt,
    accelerations,
    body_forces,
    check_mass_matrix,
    dtype_name,
    dtype_of,
    run,
    with_forces,
)
from robokit.dynamics.singular import check_inertia, refuse
from robokit.dynamics.table import WITH_FORCES, WITH_WORLD_FORCES
from robokit.errors import ShapeError, WrongType, warn
from robokit.model.robot import Robot, check_robot

if TYPE_CHECKING:
    import scipy.sparse

# ==== the joint-space inertia matrix and the Coriolis matrix ======================================
# The joint-space inertia matrix H, its sparsity, its factors L^T D L, its inverse; the Coriolis matrix.


def crba(
    robot: Robot,
    q: Any,
    *,
    sparse: bool = False,
    out: np.ndarray | None = None,
    engine: str | None = None,
    dtype: Any = None,
    reproducible: bool | None = None,
    device: Any = None,
) -> np.ndarray | scipy.sparse.csr_array:
    """Joint-space inertia matrix H(q) by the composite-rigid-body algorithm.

    Source: RBDA table 6.2; seeds 000.  Cost: O(n d), d the depth of the tree.

    Args:
        robot: the robot.
        q, engine, dtype, reproducible, device: as in :func:`rnea`.
        sparse: a scipy.sparse array of the entries that the tree leaves nonzero; one state only.
        out: array to write to, (nv, nv) or (B, nv, nv); with sparse=False only.

    Returns:
        H, symmetric, both halves filled, (nv, nv) or (B, nv, nv) [kg m^2 | kg m | kg].

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> rk.crba(robot, [0.5, 0.2]).round(4)
        array([[1.0814, 0.3962],
               [0.3962, 0.1952]])
    """
    engine = engine if device is None else on_device(device, engine)
    if not sparse:
        return run(robot, "crba", out, engine, dtype, reproducible, q)
    values = crba_nonzeros(robot, q, engine=engine, dtype=dtype, reproducible=reproducible)
    if out is not None or values.ndim != 1:
        raise ShapeError(
            "crba(sparse=True): takes one state, (nq,), and no out; use sparse=False for a batch"
        )
    import scipy.sparse

    rows, columns = inertia_entries(robot)
    below = rows != columns
    return scipy.sparse.csr_array(
        (
            np.concatenate([values, values[below]]),
            (np.concatenate([rows, columns[below]]), np.concatenate([columns, rows[below]])),
        ),
        shape=(robot.nv, robot.nv),
    )


def crba_nonzeros(
    robot: Robot,
    q: Any,
    *,
    out: np.ndarray | None = None,
    engine: str | None = None,
    dtype: Any = None,
    reproducible: bool | None = None,
    device: Any = None,
) -> np.ndarray:
    """The entries of H that the tree leaves nonzero, of the lower triangle, row by row.

    Half of a humanoid's H is zero, and most of the rest occurs twice, by symmetry. In large batches, where
    memory is the limit, this is three times as fast as the dense matrix. ``rows, columns =
    inertia_entries(robot)`` gives the place of each entry.

    Source: RBDA table 6.2; seeds 000.  Cost: O(n d).

    Args:
        robot: the robot.
        q, out, engine, dtype, reproducible, device: as in :func:`rnea`.

    Returns:
        (entries,) or (B, entries).

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> rk.crba_nonzeros(robot, [0.5, 0.2]).round(4)
        array([1.0814, 0.3962, 0.1952])
    """
    engine = engine if device is None else on_device(device, engine)
    return run(robot, "crba_nonzeros", out, engine, dtype, reproducible, q)


def inertia_entries(robot: Robot) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the entries that :func:`crba_nonzeros` returns, (entries,) each.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("humanoid"))
        >>> rows, columns = rk.inertia_entries(robot)
        >>> len(rows), robot.nv**2
        (155, 961)
    """
    check_robot(robot)
    rows, columns = lower_entries(robot).T
    return rows, columns


def inertia_sparsity(robot: Robot) -> np.ndarray:
    """Pattern of H from the tree alone: True where entry (i, j) can be nonzero.

    Source: seeds 000, branch-induced sparsity.  Cost: O(n d).

    Returns:
        boolean, (nv, nv).

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("humanoid"))
        >>> left, right = robot.joint("left_knee").v_slice.start, robot.joint("right_knee").v_slice.start
        >>> pattern = rk.inertia_sparsity(robot)
        >>> bool(pattern[left, right]), bool(pattern[left, left])
        (False, True)
    """
    check_robot(robot)
    return robot.inertia_pattern.copy()


class LTDLFactor:
    """H = L^T D L, without fill-in: L has the pattern of H's lower triangle.

    Attributes:
        L: unit lower triangular, (nv, nv) or (B, nv, nv).
        D: diagonal, (nv,) or (B, nv).
    """

    __slots__ = ("D", "L", "_engine", "_reproducible", "_robot")

    def __init__(
        self,
        robot: Robot,
        L: np.ndarray,
        D: np.ndarray,
        engine: str | None = None,
        reproducible: bool | None = None,
    ) -> None:
        self._robot, self.L, self.D = robot, L, D
        self._engine, self._reproducible = engine, reproducible

    def __repr__(self) -> str:
        states = f" of {len(self.D)} states" if self.D.ndim == 2 else ""
        return f"<LTDLFactor of {self._robot.name!r}: nv {self._robot.nv}{states}>"

    def solve(self, b: Any) -> np.ndarray:
        """Solve H x = b for b of (nv,) or (B, nv); one factor serves a batch of right-hand sides.

        Source: RBDA tables 6.4, 6.5.  Cost: O(n d).
        """
        n = self._robot.nv
        L = self.L.reshape(*self.L.shape[:-2], n * n)
        how = self._engine, None, self._reproducible
        return run(self._robot, "ltdl_solve", None, *how, L, self.D, b)


def ltdl(
    robot: Robot, H: Any, *, engine: str | None = None, reproducible: bool | None = None, device: Any = None
) -> LTDLFactor:
    """Factorise H = L^T D L in the sparsity that the robot's branches induce.

    Source: seeds 000, function LTDL; RBDA table 6.3.  Cost: O(n d^2).

    Args:
        robot: the robot whose tree gives the sparsity.
        H: symmetric positive definite in that sparsity, (nv, nv) or (B, nv, nv), as :func:`crba` returns it;
            one scipy.sparse matrix too.
        engine, reproducible, device: as in :func:`rnea`; the factor's solve takes them too.

    Returns:
        the factor, with .L, .D and .solve(b).

    Raises:
        SingularInertia: a diagonal entry of D is not positive.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> H = rk.crba(robot, [0.5, 0.2])
        >>> factor = rk.ltdl(robot, H)
        >>> np.allclose(factor.L.T @ np.diag(factor.D) @ factor.L, H)
        True
        >>> np.allclose(H @ factor.solve([1.0, 2.0]), [1.0, 2.0])
        True
    """
    engine = engine if device is None else on_device(device, engine)
    check_robot(robot)
    n = robot.nv
    if on_card(H):
        flat = H.reshape(*H.shape[:-2], n * n)
        L, D = run(robot, "ltdl", None, engine, None, reproducible, flat)
        return LTDLFactor(robot, L, D, engine, reproducible)
    if hasattr(H, "toarray"):
        H = H.toarray()
    dtype = dtype_name(dtype_of(None, None, H))
    H = np.ascontiguousarray(real_array("H", H, f"({n}, {n}) or (B, {n}, {n})", dtype=dtype))
    if H.ndim not in (2, 3) or H.shape[-2:] != (n, n):
        raise ShapeError(f"H: expected shape ({n}, {n}) or (B, {n}, {n}), got {H.shape}")
    check_mass_matrix(robot, H)
    L, D = run(robot, "ltdl", None, engine, None, reproducible, H.reshape(*H.shape[:-2], n * n))
    bad = ~(D > 0.0)
    if np.any(bad):
        dof = int(np.argwhere(bad)[-1][-1])
        joint = next(j for j in robot.joints if j.v_slice.start <= dof < j.v_slice.stop)
        refuse(robot, joint, "H is not positive definite")
    return LTDLFactor(robot, L, D, engine, reproducible)


def inverse_mass_matrix(
    robot: Robot,
    q: Any,
    *,
    out: np.ndarray | None = None,
    engine: str | None = None,
    dtype: Any = None,
    reproducible: bool | None = None,
    device: Any = None,
) -> np.ndarray:
    """H(q)^-1, without a dense factorisation; entries of joints that share no path to the reference are 0.

    For one right side, ``rk.aba`` or ``rk.ltdl(robot, H).solve(b)`` is much cheaper.

    Source: RBDA section 6.5 for the factors.  Cost: O(n^2 d), d the depth of the tree.

    Args:
        robot: the robot.
        q, out, engine, dtype, reproducible, device: as in :func:`rnea`. In float32 errors are some
            1e-5 of the largest entry.

    Returns:
        H^-1, symmetric, both halves filled, (nv, nv) or (B, nv, nv) [1/(kg m^2) | 1/(kg m) | 1/kg].

    Raises:
        SingularInertia: a joint moves no inertia; the error names it.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> rk.inverse_mass_matrix(robot, [0.5, 0.2]).round(3)
        array([[ 3.604, -7.313],
               [-7.313, 19.962]])
    """
    engine = engine if device is None else on_device(device, engine)
    if out is None and engine is None and dtype is None and reproducible is None:
        try:  # the short way of accelerations, without the call
            result = robot.kernels["inverse_mass_matrix"].fast(q)
        except (KeyError, AttributeError, TypeError):  # not there yet, or no robot
            result = None
        if result is not None:
            return result
    return accelerations(robot, "inverse_mass_matrix", out, engine, dtype, reproducible, q)


def coriolis_matrix(
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
    """C(q, v): C v is the bias force without gravity, and dH/dt - 2 C is skew-symmetric.

    For joints whose velocities are the rates of their coordinates it is made of Christoffel's symbols; for
    quaternions and planar joints too, C + C^T is the rate of H.

    Source: S. Echeandia, P. M. Wensing 2021, algorithm 1.  Cost: O(n d), d the depth of the tree.

    Args:
        robot: the robot.
        q, v, out, engine, dtype, reproducible, device: as in :func:`rnea`.

    Returns:
        C, (nv, nv) or (B, nv, nv) [kg m^2/s | kg m/s | kg/s].

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> q, v = [0.5, 0.2], np.array([1.0, -2.0])
        >>> C = rk.coriolis_matrix(robot, q, v)
        >>> np.allclose(C @ v, rk.bias_forces(robot, q, v) - rk.gravity_forces(robot, q))
        True
    """
    engine = engine if device is None else on_device(device, engine)
    return run(robot, "coriolis_matrix", out, engine, dtype, reproducible, q, v)


# ==== inverse, forward and hybrid dynamics, and their derivatives =================================
# Forces and accelerations of the joints: inverse, forward and hybrid dynamics, and their derivatives.
#
# Derivatives with respect to q are taken in the tangent space: column k is the change along
# ``robot.integrate(q, eps e_k)``, for quaternions as for angles.


__all__ = [
    "CentroidalDerivatives",
    "LTDLFactor",
    "aba",
    "aba_derivatives",
    "bias_forces",
    "centroidal_momentum_derivatives",
    "coriolis_matrix",
    "crba",
    "crba_nonzeros",
    "energy_regressor",
    "floating_base_forces",
    "floating_base_inverse_dynamics",
    "forward_dynamics",
    "gravity_forces",
    "hybrid_dynamics",
    "inertia_entries",
    "inertia_sparsity",
    "inverse_mass_matrix",
    "ltdl",
    "momentum_regressor",
    "regressor",
    "regressor_entries",
    "regressor_nonzeros",
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
    dtype = dtype_of(dtype, out, q, v, a, f_ext)
    forces = body_forces(robot, q, f_ext, engine, reproducible)
    return run(robot, "rnea_f_ext", out, engine, dtype, reproducible, q, v, a, forces)


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
    dtype = dtype_of(dtype, out, q, v, f_ext)
    forces = body_forces(robot, q, f_ext, engine, reproducible)
    return run(robot, "bias_forces_f_ext", out, engine, dtype, reproducible, q, v, forces)


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
    dtype = dtype_of(dtype, out, q, v, tau, f_ext)
    forces = body_forces(robot, q, f_ext, engine, reproducible)
    return accelerations(robot, "aba_f_ext", out, engine, dtype, reproducible, q, v, tau, forces)


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
        warn(
            'forward_dynamics: method "crba" in float32 loses some 1e-3 of the accelerations; "aba" does not',
            UserWarning,
        )
    if f_ext is None:
        return accelerations(robot, "forward_dynamics", out, engine, dtype, reproducible, q, v, tau)
    forces = body_forces(robot, q, f_ext, engine, reproducible)
    return accelerations(robot, "forward_dynamics_f_ext", out, engine, dtype, reproducible, q, v, tau, forces)


# ---- hybrid dynamics: prescribed joints, and bases that nothing drives ------------------------------------

ENDLESS = 1e9  # rotor inertia of a joint that no force moves [kg m^2 | kg]


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
    asked = tuple(prescribed) if prescribed.__class__ is list else prescribed
    try:
        names = robot.derived.get(("prescribed", asked), lambda: _prescribed(robot, asked))
    except TypeError:  # something among them that is no name
        names = _prescribed(robot, asked)
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
    bodies = {robot.joint(name).body for name in found}
    own = tree.armature or tuple((0.0,) * joint.kind.nv for joint in tree.joint)
    rotors = tuple((ENDLESS,) * len(row) if i in bodies else row for i, row in enumerate(own))
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


# ==== regressors: forces, energies and momentum as linear in the inertial parameters of the bodies ====


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
