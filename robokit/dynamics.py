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
from robokit.engine import ENGINES
from robokit.engine.arguments import batch_size
from robokit.errors import ShapeError, SingularInertia, UnknownName
from robokit.kernels import kernel, lower_entries
from robokit.large import long_way
from robokit.model.checks import not_a_robot
from robokit.model.robot import Robot
from robokit.singular import refuse, singular_joint

if TYPE_CHECKING:
    import scipy.sparse

LOOKS = 32
"""States whose accelerations are not finite that are searched for a joint to blame."""

FExt = Mapping[str, Any] | np.ndarray | None

DTYPES = ("float64", "float32")


class LinkPoses(Mapping[str, tuple[np.ndarray, np.ndarray]]):
    """World poses of all links: ``poses[link] = (R, p)``, x_world = R x_link + p.

    Attributes:
        rotation: (n, 3, 3) or (B, n, 3, 3), in link_names order.
        position: (n, 3) or (B, n, 3) [m].
    """

    __slots__ = ("_robot", "position", "rotation")

    def __init__(self, robot: Robot, rotation: np.ndarray, position: np.ndarray) -> None:
        self._robot, self.rotation, self.position = robot, rotation, position

    @property
    def link_names(self) -> tuple[str, ...]:
        """The n names."""
        return self._robot.link_names

    def __getitem__(self, link: str) -> tuple[np.ndarray, np.ndarray]:
        k = self._robot.link_index.get(link)
        if k is None:
            raise UnknownName("link", link, self.link_names)
        return self.rotation[..., k, :, :], self.position[..., k, :]

    def __iter__(self) -> Iterator[str]:
        return iter(self.link_names)

    def __len__(self) -> int:
        return len(self.link_names)

    def __repr__(self) -> str:
        return f"<LinkPoses of {len(self)} links, rotation {self.rotation.shape}>"


def forward_kinematics(robot: Robot, q: Any, *, engine: str | None = None, dtype: Any = None) -> LinkPoses:
    """World poses of all links.

    Source: RBDA section 4.4.  Cost: O(n).

    Args:
        robot: the robot.
        q, engine, dtype: as in :func:`rnea`.

    Returns:
        ``poses[link] = (R (3, 3), p (3,))``; all of them as .rotation and .position.
    """
    rotation, position = _run(robot, "forward_kinematics", None, engine, dtype, q)
    return LinkPoses(robot, rotation, position)


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
        out: array to write to, of the result's shape.
        engine: "llvm", machine code, which is what None means where there can be any, or "python", the text
            as it stands: for one-off calls and for looking inside with a debugger.
        dtype: "float64" (None) or "float32": of the result and of the computation. Batches then take about
            half the time and memory; errors are some 1e-6 of the largest terms. Arguments are converted.

    Returns:
        joint forces [N m | N], (nv,) or (B, nv).
    """
    if f_ext is None:
        return _run(robot, "rnea", out, engine, dtype, q, v, a)
    return _run(robot, "rnea_f_ext", out, engine, dtype, q, v, a, _body_forces(robot, q, f_ext, engine))


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
        return _run(robot, "bias_forces", out, engine, dtype, q, v)
    return _run(robot, "bias_forces_f_ext", out, engine, dtype, q, v, _body_forces(robot, q, f_ext, engine))


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
    return _run(robot, "gravity_forces", out, engine, dtype, q)


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
        return _run(robot, "crba", out, engine, dtype, q)
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
    return _run(robot, "crba_nonzeros", out, engine, dtype, q)


def inertia_entries(robot: Robot) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the entries that :func:`crba_nonzeros` returns, (entries,) each."""
    _check_robot(robot)
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
        return _run(self._robot, "ltdl_solve", None, self._engine, None, L, self.D, b)


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
    _check_robot(robot)
    n = robot.nv
    if hasattr(H, "toarray"):
        H = H.toarray()
    H = np.ascontiguousarray(real_array("H", H, f"({n}, {n}) or (B, {n}, {n})"))
    if H.ndim not in (2, 3) or H.shape[-2:] != (n, n):
        raise ShapeError(f"H: expected shape ({n}, {n}) or (B, {n}, {n}), got {H.shape}")
    _check_mass_matrix(robot, H)
    L, D = _run(robot, "ltdl", None, engine, None, H.reshape(*H.shape[:-2], n * n))
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
        return _accelerations(robot, "aba", out, engine, dtype, q, v, tau)
    return _accelerations(
        robot, "aba_f_ext", out, engine, dtype, q, v, tau, _body_forces(robot, q, f_ext, engine)
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
        return _accelerations(robot, "forward_dynamics", out, engine, dtype, q, v, tau)
    return _accelerations(
        robot, "forward_dynamics_f_ext", out, engine, dtype, q, v, tau, _body_forces(robot, q, f_ext, engine)
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
    _has_mass(robot)
    return _run(robot, "center_of_mass", None, engine, dtype, q)


def kinetic_energy(robot: Robot, q: Any, v: Any, *, engine: str | None = None, dtype: Any = None) -> Any:
    """Kinetic energy of the moving bodies.

    Source: seeds 000, T = 1/2 sum v_i^T I_i v_i.  Cost: O(n).

    Args:
        robot: the robot.
        q, v, engine, dtype: as in :func:`rnea`.

    Returns:
        T [J], a float or (B,).
    """
    return _run(robot, "kinetic_energy", None, engine, dtype, q, v)


def potential_energy(robot: Robot, q: Any, *, engine: str | None = None, dtype: Any = None) -> Any:
    """Potential energy in uniform gravity, zero where the centre of mass is at the origin's height.

    Source: V = -a_g . M p_G.  Cost: O(n).

    Args:
        robot: the robot.
        q, engine, dtype: as in :func:`rnea`.

    Returns:
        V [J], a float or (B,).
    """
    return _run(robot, "potential_energy", None, engine, dtype, q)


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
    _has_mass(robot)
    return _run(robot, "centroidal_momentum_matrix", out, engine, dtype, q)


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
    _has_mass(robot)
    return _run(robot, "centroidal_momentum", None, engine, dtype, q, v)


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
    _has_mass(robot)
    return _run(robot, "centroidal_momentum_bias", None, engine, dtype, q, v)


def inertia_sparsity(robot: Robot) -> np.ndarray:
    """Pattern of H from the tree alone: True where entry (i, j) can be nonzero.

    Source: seeds 000, branch-induced sparsity.  Cost: O(n d).

    Returns:
        boolean, (nv, nv).
    """
    _check_robot(robot)
    return robot.inertia_pattern.copy()


# ---- arguments and failures --------------------------------------------------------------------


def _check_mass_matrix(robot: Robot, H: np.ndarray) -> None:
    """The factorisation reads one triangle in the tree's pattern: what it would not see is an error."""
    scale = 1e-9 * float(np.abs(H).max(initial=0.0))
    if np.abs(H - np.swapaxes(H, -1, -2)).max(initial=0.0) > scale:
        raise ShapeError("H: expected a symmetric matrix, with both halves filled as rk.crba returns it")
    outside = np.abs(H[..., ~robot.inertia_pattern]).max(initial=0.0)
    if outside > scale:
        raise ShapeError(
            f"H: an entry of {outside:.3g} stands where the tree of robot {robot.name!r} has no path between "
            "two joints (see rk.inertia_sparsity); a matrix of another form needs a dense solver"
        )


def _run(
    robot: Robot, name: str, out: np.ndarray | None, engine: str | None, dtype: Any, *arguments: Any
) -> Any:
    """Run a kernel; the short way to machine code for single states comes first."""
    try:
        ready = robot.kernels.get(name)
    except AttributeError:
        raise not_a_robot(robot) from None
    if ready is not None and out is None and engine is None and dtype is None:
        result = ready.fast(*arguments)
        if result is not None:
            return result
    dtype = "float64" if dtype is None else dtype_name(dtype)
    if engine == "python":
        return kernel(robot, name, dtype).python(*arguments, out=out)
    if engine is not None and engine != "llvm":
        raise UnknownName("engine", str(engine), ENGINES)
    run = long_way(robot, name, dtype) or kernel(robot, name, dtype)
    return run(*arguments, out=out)


def dtype_name(given: Any) -> str:
    """Name of a kernel's dtype, of what names a dtype for NumPy.

    Raises:
        UnknownName: neither float64 nor float32.
    """
    try:
        name = np.dtype(given).name
    except TypeError:
        name = str(given)
    if name not in DTYPES:
        raise UnknownName("dtype", name, DTYPES)
    return name


def _body_forces(
    robot: Robot, q: Any, f_ext: Mapping[str, Any] | np.ndarray, engine: str | None
) -> np.ndarray:
    """f_ext as the kernels take it: 6 (N + 1) numbers in body coordinates, single or batch."""
    _check_robot(robot)
    rows = robot.nbodies + 1
    if not isinstance(f_ext, Mapping):
        accepted = f"({rows}, 6) or (B, {rows}, 6), or {{link: wrench (6,)}}"
        array = np.ascontiguousarray(real_array("f_ext", f_ext, accepted))
        if array.ndim not in (2, 3) or array.shape[-2:] != (rows, 6):
            raise ShapeError(
                f"f_ext: expected {{link: wrench (6,)}} or an array ({rows}, 6) or (B, {rows}, 6) in body "
                f"coordinates (row 0 is the reference body), got shape {np.shape(f_ext)}"
            )
        return array.reshape(*array.shape[:-2], rows * 6)
    wrenches = {}
    for link, wrench in f_ext.items():
        body = robot.link(link).body
        value = real_array(f"f_ext[{link!r}]", wrench, "(6,) or (B, 6)")
        if value.ndim not in (1, 2) or value.shape[-1] != 6:
            raise ShapeError(
                f"f_ext[{link!r}]: expected [n; f] of shape (6,) or (B, 6) in world axes about the world "
                f"origin, got shape {np.shape(wrench)}"
            )
        wrenches[link] = (body, value)
    batch_size([f"f_ext[{link!r}]" for link in wrenches], [value for _, value in wrenches.values()])
    batch = np.broadcast_shapes(*(value.shape[:-1] for _, value in wrenches.values()))
    world = np.zeros((*batch, rows, 6))
    for body, value in wrenches.values():
        world[..., body, :] += value
    local = _run(robot, "wrenches_in_bodies", None, engine, None, q, world.reshape(*batch, rows * 6))
    return local.reshape(*local.shape[:-2], rows * 6)


def _check_robot(robot: Any) -> None:
    if not isinstance(robot, Robot):
        raise not_a_robot(robot)


def _has_mass(robot: Robot) -> None:
    try:
        mass = robot.total_mass if robot.parameters is None else np.min(robot.total_mass, initial=np.inf)
        if mass > 0.0:
            return
    except (AttributeError, TypeError):  # TypeError: the class Robot instead of a robot
        raise not_a_robot(robot) from None
    raise SingularInertia(
        f"robot {robot.name!r} has no moving mass, so no centre of mass; give its links an <inertial>",
        robot.joint_names[0] if robot.joints else "",
    )


def _accelerations(
    robot: Robot, name: str, out: np.ndarray | None, engine: str | None, dtype: Any, q: Any, *others: Any
) -> np.ndarray:
    """Run a forward dynamics kernel; SingularInertia with the joint that moves no inertia.

    What is singular whatever q is was found when the kernel was built; here are the configurations
    that happen to be, whose accelerations machine code finds not finite.
    """
    try:
        return _run(robot, name, out, engine, dtype, q, *others)
    except ArithmeticError as error:
        if isinstance(error, SingularInertia):
            raise
        result = np.atleast_2d(getattr(error, "result", np.nan))
        states = np.atleast_2d(np.asarray(q, dtype=float))
        bad = np.flatnonzero(~np.isfinite(result).all(axis=-1))
        # A look takes milliseconds: not at every state of a large batch.
        for k in bad[:LOOKS]:
            each = robot if robot.samples is None else robot.sample(int(k))
            joint = singular_joint(each, states[k % len(states)])
            if joint is not None:
                refuse(robot, joint, "it moves no inertia of its own in this configuration")
        where = f" of state {bad[0]} (and {len(bad) - 1} more)" if len(states) > 1 else ""
        raise ShapeError(f"the accelerations{where} are not finite: v, tau or f_ext are too large") from error
