"""The joint-space inertia matrix H, its sparsity, its factors L^T D L, its inverse; the Coriolis matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from robokit.arguments import real_array
from robokit.dynamics.devices import on_card, on_device
from robokit.dynamics.layout import lower_entries
from robokit.dynamics.run import accelerations, check_mass_matrix, dtype_name, dtype_of, run
from robokit.dynamics.singular import refuse
from robokit.errors import ShapeError
from robokit.model.robot import Robot, check_robot

if TYPE_CHECKING:
    import scipy.sparse

__all__ = [
    "LTDLFactor",
    "coriolis_matrix",
    "crba",
    "crba_nonzeros",
    "inertia_entries",
    "inertia_sparsity",
    "inverse_mass_matrix",
    "ltdl",
]


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
