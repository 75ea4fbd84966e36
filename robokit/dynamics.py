"""The public dynamics functions: NumPy arrays in and out, one state or a batch.

Every function takes one state, ``(nq,)`` and ``(nv,)``, or a batch, ``(B, nq)`` and ``(B, nv)``, and
returns the matching shape; a single state goes along with a batch. The algorithm's text runs as
machine code, compiled for the robot at the first call and kept on disk; with ``engine="python"`` it runs
as it stands, on Python's floats or NumPy's columns: slow, nothing is compiled, and the same numbers up to
rounding.

All raise ShapeError (a wrong shape or dtype, NaN, infinity or a quaternion that is not unit; the
message names the argument), WrongType where the robot is none, and, given names, an engine among them,
UnknownName.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from robokit.arrays import real_array
from robokit.calls import (
    accelerations,
    body_forces,
    check_mass_matrix,
    check_robot,
    dtype_name,
    run,
)
from robokit.errors import ShapeError, UnknownName
from robokit.kernels import kernel, lower_entries
from robokit.model.robot import Robot
from robokit.singular import refuse

if TYPE_CHECKING:
    import scipy.sparse

FExt = Mapping[str, Any] | np.ndarray | None


class LinkPoses(Mapping[str, tuple[np.ndarray, np.ndarray]]):
    """World poses of all links: ``poses[link] = (R, p)``, x_world = R x_link + p.

    Attributes:
        matrices: [R p], (n, 3, 4) or (B, n, 3, 4), in link_names order; the others are views of it.
    """

    __slots__ = ("_links", "matrices")

    def __init__(self, links: Mapping[str, int], matrices: np.ndarray) -> None:
        self._links, self.matrices = links, matrices

    @property
    def rotation(self) -> np.ndarray:
        """(n, 3, 3) or (B, n, 3, 3)."""
        return self.matrices[..., :3]

    @property
    def position(self) -> np.ndarray:
        """(n, 3) or (B, n, 3) [m]."""
        return self.matrices[..., 3]

    @property
    def link_names(self) -> tuple[str, ...]:
        """The n names."""
        return tuple(self._links)

    def __getitem__(self, link: str) -> tuple[np.ndarray, np.ndarray]:
        k = self._links.get(link)
        if k is None:
            raise UnknownName("link", link, self.link_names)
        pose = self.matrices[..., k, :, :]
        return pose[..., :3], pose[..., 3]

    def __iter__(self) -> Iterator[str]:
        return iter(self._links)

    def __len__(self) -> int:
        return len(self._links)

    def __repr__(self) -> str:
        return f"<LinkPoses of {len(self)} links, rotation {self.rotation.shape}>"


def forward_kinematics(
    robot: Robot,
    q: Any,
    *,
    out: LinkPoses | None = None,
    engine: str | None = None,
    dtype: Any = None,
) -> LinkPoses:
    """World poses of all links.

    Source: RBDA section 4.4.  Cost: O(n).

    Args:
        robot: the robot.
        q, engine, dtype: as in :func:`rnea`.
        out: poses of an earlier call with as many states, to write to.

    Returns:
        ``poses[link] = (R (3, 3), p (3,))``; all of them as .rotation, .position and .matrices.
    """
    if out is None and engine is None and dtype is None:  # the short way: machine code makes the object too
        try:
            short = robot.kernels["link poses"]
            poses = short(q)
        except (AttributeError, KeyError, TypeError):  # not there yet, or no robot
            poses = None
        if poses is not None:
            return poses
    if out is None:
        matrices = run(robot, "forward_kinematics", None, engine, dtype, q)
        if matrices.ndim == 3 and engine is None and dtype is None and "link poses" not in robot.kernels:
            ready = kernel(robot, "forward_kinematics")
            robot.kernels["link poses"] = ready.held(LinkPoses, robot.link_index)
        return LinkPoses(robot.link_index, matrices)
    if not isinstance(out, LinkPoses):
        raise TypeError(
            f"out: expected LinkPoses, as forward_kinematics returns them, got {type(out).__name__}"
        )
    run(robot, "forward_kinematics", out.matrices, engine, dtype, q)
    return out


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
        engine: "llvm", machine code, which is what None means where there can be any, or "python", the text
            as it stands: for one-off calls and for looking inside with a debugger.
        dtype: "float64" (None) or "float32": of the result and of the computation. Batches then take about
            half the time and memory; errors are some 1e-6 of the largest terms. Arguments are converted.

    Returns:
        joint forces [N m | N], (nv,) or (B, nv).
    """
    if f_ext is None:
        return run(robot, "rnea", out, engine, dtype, q, v, a)
    return run(robot, "rnea_f_ext", out, engine, dtype, q, v, a, body_forces(robot, q, f_ext, engine))


def bias_forces(
    robot: Robot,
    q: Any,
    v: Any,
    f_ext: FExt = None,
    *,
    out: np.ndarray | None = None,
    engine: str | None = None,
    dtype: Any = None,
) -> np.ndarray:
    """C(q, v, f_ext): the joint forces that give zero acceleration, gravity included.

    Source: seeds 000, step 1; dynamics notes eq. 13.  Cost: O(n).

    Args:
        robot: the robot.
        q, v, f_ext, out, engine, dtype: as in :func:`rnea`.

    Returns:
        joint forces [N m | N], (nv,) or (B, nv).
    """
    if f_ext is None:
        return run(robot, "bias_forces", out, engine, dtype, q, v)
    return run(robot, "bias_forces_f_ext", out, engine, dtype, q, v, body_forces(robot, q, f_ext, engine))


def gravity_forces(
    robot: Robot, q: Any, *, out: np.ndarray | None = None, engine: str | None = None, dtype: Any = None
) -> np.ndarray:
    """G(q): the joint forces that hold the robot still against gravity.

    Source: dynamics notes eq. 14.  Cost: O(n).

    Args:
        robot: the robot.
        q, out, engine, dtype: as in :func:`rnea`.

    Returns:
        joint forces [N m | N], (nv,) or (B, nv).
    """
    return run(robot, "gravity_forces", out, engine, dtype, q)


def crba(
    robot: Robot,
    q: Any,
    *,
    sparse: bool = False,
    out: np.ndarray | None = None,
    engine: str | None = None,
    dtype: Any = None,
) -> np.ndarray | scipy.sparse.csr_array:
    """Joint-space inertia matrix H(q) by the composite-rigid-body algorithm.

    Source: RBDA table 6.2; seeds 000.  Cost: O(n d), d the depth of the tree.

    Args:
        robot: the robot.
        q, engine, dtype: as in :func:`rnea`.
        sparse: a scipy.sparse array of the entries that the tree leaves nonzero; one state only.
        out: array to write to, (nv, nv) or (B, nv, nv); with sparse=False only.

    Returns:
        H, symmetric, both halves filled, (nv, nv) or (B, nv, nv) [kg m^2 | kg m | kg].
    """
    if not sparse:
        return run(robot, "crba", out, engine, dtype, q)
    values = crba_nonzeros(robot, q, engine=engine, dtype=dtype)
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
    robot: Robot, q: Any, *, out: np.ndarray | None = None, engine: str | None = None, dtype: Any = None
) -> np.ndarray:
    """The entries of H that the tree leaves nonzero, of the lower triangle, row by row.

    A humanoid's H is half zeros and half mirror image: in big batches, where memory is the limit, this
    is three times faster than the dense matrix. ``rows, columns = inertia_entries(robot)`` says where
    each entry belongs.

    Source: RBDA table 6.2; seeds 000.  Cost: O(n d).

    Args:
        robot: the robot.
        q, out, engine, dtype: as in :func:`rnea`.

    Returns:
        (entries,) or (B, entries).
    """
    return run(robot, "crba_nonzeros", out, engine, dtype, q)


def inertia_entries(robot: Robot) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the entries that :func:`crba_nonzeros` returns, (entries,) each."""
    check_robot(robot)
    rows, columns = np.array(lower_entries(robot), dtype=int).reshape(-1, 2).T
    return rows, columns


class LTDLFactor:
    """H = L^T D L, without fill-in: L has the pattern of H's lower triangle.

    Attributes:
        L: unit lower triangular, (nv, nv) or (B, nv, nv).
        D: diagonal, (nv,) or (B, nv).
    """

    __slots__ = ("D", "L", "_engine", "_robot")

    def __init__(self, robot: Robot, L: np.ndarray, D: np.ndarray, engine: str | None = None) -> None:
        self._robot, self.L, self.D, self._engine = robot, L, D, engine

    def solve(self, b: Any) -> np.ndarray:
        """Solve H x = b for b of (nv,) or (B, nv); one factor serves a batch of right-hand sides.

        Source: RBDA tables 6.4, 6.5.  Cost: O(n d).
        """
        n = self._robot.nv
        L = self.L.reshape(*self.L.shape[:-2], n * n)
        return run(self._robot, "ltdl_solve", None, self._engine, None, L, self.D, b)


def ltdl(robot: Robot, H: Any, *, engine: str | None = None) -> LTDLFactor:
    """Factorise H = L^T D L in the sparsity that the robot's branches induce.

    Source: seeds 000, function LTDL; RBDA table 6.3.  Cost: O(n d^2).

    Args:
        robot: the robot whose tree gives the sparsity.
        H: symmetric positive definite in that sparsity, (nv, nv) or (B, nv, nv), as :func:`crba` returns it;
            one scipy.sparse matrix too.
        engine: as in :func:`rnea`; the factor's solve takes it too.

    Returns:
        the factor, with .L, .D and .solve(b).

    Raises:
        SingularInertia: a diagonal entry of D is not positive.
    """
    check_robot(robot)
    n = robot.nv
    if hasattr(H, "toarray"):
        H = H.toarray()
    H = np.ascontiguousarray(real_array("H", H, f"({n}, {n}) or (B, {n}, {n})"))
    if H.ndim not in (2, 3) or H.shape[-2:] != (n, n):
        raise ShapeError(f"H: expected shape ({n}, {n}) or (B, {n}, {n}), got {H.shape}")
    check_mass_matrix(robot, H)
    L, D = run(robot, "ltdl", None, engine, None, H.reshape(*H.shape[:-2], n * n))
    bad = ~(D > 0.0)
    if np.any(bad):
        dof = int(np.argwhere(bad)[-1][-1])
        joint = next(j for j in robot.joints if j.v_slice.start <= dof < j.v_slice.stop)
        refuse(robot, joint, "H is not positive definite")
    return LTDLFactor(robot, L, D, engine)


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
) -> np.ndarray:
    """Forward dynamics by the articulated-body algorithm.

    Source: RBDA table 7.1; seeds 002.  Differs: the slides' last pass has a sign error.  Cost: O(n).

    Args:
        robot: the robot.
        q, v, f_ext, out, engine, dtype: as in :func:`rnea`.
        tau: joint forces [N m | N], (nv,) or (B, nv).

    Returns:
        accelerations [rad/s^2 | m/s^2], (nv,) or (B, nv).

    Raises:
        SingularInertia: a joint moves no inertia; the error names it.
    """
    if f_ext is None:
        return accelerations(robot, "aba", out, engine, dtype, q, v, tau)
    return accelerations(
        robot, "aba_f_ext", out, engine, dtype, q, v, tau, body_forces(robot, q, f_ext, engine)
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
) -> np.ndarray:
    """Forward dynamics by the articulated-body algorithm or by RNEA, CRBA and a sparse solve.

    Source: RBDA chapters 6, 7; seeds 000, 002.

    Args:
        robot: the robot.
        q, v, f_ext, out, engine, dtype: as in :func:`rnea`.
        tau: joint forces [N m | N], (nv,) or (B, nv).
        method: "aba", O(n), or "crba", O(n d^2).

    Returns:
        accelerations [rad/s^2 | m/s^2], (nv,) or (B, nv).

    Raises:
        SingularInertia: a joint moves no inertia; the error names it.
    """
    if method == "aba":
        return aba(robot, q, v, tau, f_ext, out=out, engine=engine, dtype=dtype)
    if method != "crba":
        raise UnknownName("method", str(method), ("aba", "crba"))
    if dtype is not None and dtype_name(dtype) == "float32":
        warnings.warn(
            'forward_dynamics: method "crba" in float32 loses some 1e-3 of the accelerations; "aba" does not',
            stacklevel=2,
        )
    if f_ext is None:
        return accelerations(robot, "forward_dynamics", out, engine, dtype, q, v, tau)
    return accelerations(
        robot, "forward_dynamics_f_ext", out, engine, dtype, q, v, tau, body_forces(robot, q, f_ext, engine)
    )


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


def inertia_sparsity(robot: Robot) -> np.ndarray:
    """Pattern of H from the tree alone: True where entry (i, j) can be nonzero.

    Source: seeds 000, branch-induced sparsity.  Cost: O(n d).

    Returns:
        boolean, (nv, nv).
    """
    check_robot(robot)
    return robot.inertia_pattern.copy()
