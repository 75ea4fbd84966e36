"""Measured motion: its checks, and its equations joint by joint, compressed.

tau_j = W_j x for the row of joint j over all states. With W_j = Q_j R_j, all that a fit needs of any number
of states is R_j and z_j = Q_j^T tau_j, as many rows as there are combinations that the joint feels:

    |tau_j - W_j x|^2 = |z_j - R_j x|^2 + rest_j
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from robokit.arguments import argument, check_values, real_array, real_number
from robokit.conventions import FLOATING_BASE
from robokit.dataclass_tools import frozen, short_repr
from robokit.dynamics.equations_of_motion import regressor_entries, regressor_nonzeros, rnea
from robokit.dynamics.run import FExt
from robokit.errors import ShapeError
from robokit.model.edit import armature_by_dof
from robokit.model.inertial_parameters import COUNT
from robokit.model.robot import Robot, check_robot, quaternion_offsets

CHUNK = 1024  # states whose regressors are in memory at once

ZERO_COLUMN_TOLERANCE, RANK_TOLERANCE = 1e-10, 1e-7
"""Share of the longest column at which one is zero; singular value, columns of length 1, of dependence."""


@frozen
class Measurements:
    """States of a motion, and the forces that moved it."""

    # q, v, a: (B, nq), (B, nv), (B, nv)
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    tau: np.ndarray  # joint forces, without those that balance external forces, (B, nv)
    # 1 over the standard deviation of each force, (B, nv), 0 for what does not count; None where it is to be
    # found from the data
    weights: np.ndarray | None = None


@frozen
class CompressedEquations:
    """The equations of one degree of freedom."""

    R: np.ndarray  # (rank, p), over all parameters
    z: np.ndarray  # (rank,)
    rest: float  # what no parameters explain, the sum of squares
    count: int  # number of equations
    rank: int  # of R
    scale: float  # mean square of tau

    def squares(self, x: np.ndarray) -> float:
        """Sum of squared residuals of parameters x."""
        return float(np.sum((self.z - self.R @ x) ** 2)) + self.rest


def check_measurements(
    robot: Robot, q: Any, v: Any, a: Any, tau: Any = None, f_ext: FExt = None, weights: Any = None
) -> Measurements:
    """Checked measurements; ShapeError, or InvalidValue for NaN and infinity, names the argument."""
    expected = {"q": (q, robot.nq), "v": (v, robot.nv), "a": (a, robot.nv)}
    if tau is not None:
        expected["tau"] = (tau, robot.nv)
    arrays: dict[str, np.ndarray] = {}
    for name, (value, size) in expected.items():
        array = argument(name, value, size)
        if array.ndim != 2 or len(array) == 0:
            raise ShapeError(
                f"{name}: expected the states of a motion, {size} numbers each, (B, {size}) with B "
                f">= 1, got shape {array.shape}"
            )
        if len(array) != len(arrays.get("q", array)):
            raise ShapeError(f"{name}: expected as many states as q, {len(arrays['q'])}, got {len(array)}")
        arrays[name] = array
    quaternions = [(0, k) for k in quaternion_offsets(robot)]
    check_values(list(arrays), list(arrays.values()), quaternions)
    forces = arrays.get("tau", np.zeros_like(arrays["v"]))
    states = arrays["q"], arrays["v"], arrays["a"]
    if f_ext is not None:
        forces = forces + rnea(robot, *states) - rnea(robot, *states, f_ext=f_ext)
    return Measurements(*states, forces, _weights(robot, weights, len(forces)))


def _weights(robot: Robot, weights: Any, states: int) -> np.ndarray | None:
    if weights is None:
        return None
    w = argument("weights", weights, robot.nv)
    if w.ndim == 2 and len(w) != states:
        raise ShapeError(f"weights: expected ({robot.nv},) or ({states}, {robot.nv}), got {w.shape}")
    check_values(["weights"], [w], [])
    if (w < 0.0).any():
        raise ShapeError(
            "weights: expected 1 over standard deviations, which are not negative, got "
            f"{w.min():.3g}; give 0 to leave a force out"
        )
    return np.broadcast_to(w, (states, robot.nv)).copy()


def compress_equations(
    columns: Columns, data: Measurements, progress: bool = False
) -> list[CompressedEquations]:
    """The equations of each degree of freedom."""
    robot, p = columns.robot, columns.size
    rows, places = regressor_entries(robot)
    of_row = [np.flatnonzero(rows == k) for k in range(robot.nv)]
    used = [_used_columns(columns, places[of_row[k]], k) for k in range(robot.nv)]
    triangles = [np.zeros((0, len(u) + 1)) for u in used]
    counts, squares = np.zeros(robot.nv, dtype=int), np.zeros(robot.nv)
    for start in _chunk_starts(len(data.q), progress):
        part = slice(start, start + CHUNK)
        q, v, a = data.q[part], data.v[part], data.a[part]
        tau = data.tau[part] - columns.known_motors * a
        Y = regressor_nonzeros(robot, q, v, a)
        more = [columns.joint_rates(kind, v, a) for kind in columns.kinds]
        for k in range(robot.nv):
            own = [x[:, k] for x in more] if k in columns.dofs else []
            block = np.column_stack([Y[:, of_row[k]], *own, tau[:, k]])
            if data.weights is not None:
                block = block * data.weights[part, k, None]
                counts[k] += np.count_nonzero(data.weights[part, k])
            else:
                counts[k] += len(block)
            squares[k] += float(block[:, -1] @ block[:, -1])
            triangles[k] = triangle(np.vstack([triangles[k], block]))
    return [
        _compress(T, u, p, int(n), float(s) / max(1, int(n)))
        for T, u, n, s in zip(triangles, used, counts, squares, strict=True)
    ]


def triangle(A: np.ndarray) -> np.ndarray:
    """R of A = Q R."""
    return np.asarray(np.linalg.qr(A, mode="r"))


def _used_columns(columns: Columns, places: np.ndarray, dof: int) -> np.ndarray:
    """Columns that the row of a degree of freedom has."""
    if dof not in columns.dofs:
        return places
    k = int(np.searchsorted(columns.dofs, dof))
    return np.concatenate([places, [columns.places(kind).start + k for kind in columns.kinds]]).astype(int)


def _compress(T: np.ndarray, used: np.ndarray, p: int, count: int, scale: float) -> CompressedEquations:
    n = len(used)
    A, z = T[:n, :n], T[:n, n]
    lengths = np.linalg.norm(A, axis=0)
    longest = lengths.max(initial=0.0)
    scaled = np.where(
        lengths > ZERO_COLUMN_TOLERANCE * longest, A / np.where(lengths > 0.0, lengths, 1.0), 0.0
    )
    # Where columns depend on each other, a triangle has rows of nothing but what no parameters explain.
    U, values, _ = np.linalg.svd(scaled, full_matrices=False)
    U = U[:, values > RANK_TOLERANCE]
    R = np.zeros((U.shape[1], p))
    R[:, used] = U.T @ A
    rest = float(np.sum((z - U @ (U.T @ z)) ** 2) + np.sum(T[n:, n] ** 2))
    return CompressedEquations(R, U.T @ z, rest, count, len(R), scale)


def _chunk_starts(states: int, progress: bool) -> Sequence[int]:
    starts = range(0, states, CHUNK)
    if not progress:
        return starts
    from tqdm import tqdm

    bar: Sequence[int] = tqdm(starts, desc="regressors", leave=False)
    return bar


# ---- parameters and their places ---------------------------------------------------------------

SYMBOLS = ("m", "m c_x", "m c_y", "m c_z", "I_xx", "I_xy", "I_yy", "I_xz", "I_yz", "I_zz")
"""Names of a body's ten parameters, in order."""

FRICTION = ("viscous", "coulomb")  # proportional to velocity; constant against it
MOTOR = "armature"  # inertia of a motor as its joint feels it


def dof_names(robot: Robot) -> list[str]:
    """Of each degree of freedom: its joint's name, with [k] where the joint has several."""
    names = [""] * robot.nv
    for joint in robot.joints:
        k0, k1 = joint.v_slice.start, joint.v_slice.stop
        for k in range(k0, k1):
            names[k] = joint.name if k1 - k0 == 1 else f"{joint.name}[{k - k0}]"
    return names


@frozen
class Columns:
    """Which parameters a fit has."""

    robot: Robot  # the robot
    kinds: tuple[str, ...] = ()  # of "viscous", "coulomb", "armature", those that are fitted

    @property
    def inertial(self) -> int:
        """Number of inertial parameters, 10 N."""
        return COUNT * self.robot.nbodies

    @property
    def dofs(self) -> np.ndarray:
        """Degrees of freedom that have friction and motors: all but a floating base's."""
        base = [
            range(*j.v_slice.indices(self.robot.nv)) for j in self.robot.joints if j.name == FLOATING_BASE
        ]
        return np.setdiff1d(np.arange(self.robot.nv), [k for r in base for k in r]).astype(int)

    @property
    def size(self) -> int:
        """Number of parameters."""
        return self.inertial + len(self.kinds) * len(self.dofs)

    def places(self, kind: str) -> slice:
        """Where the parameters of a kind stand."""
        n = len(self.dofs)
        start = self.inertial + self.kinds.index(kind) * n
        return slice(start, start + n)

    def names(self) -> list[str]:
        """Names of all parameters."""
        joints = dof_names(self.robot)
        bodies = [self.robot.body_name(i) for i in range(1, self.robot.nbodies + 1)]
        inertial = [f"{body} {symbol}" for body in bodies for symbol in SYMBOLS]
        return inertial + [f"{joints[k]} {kind}" for kind in self.kinds for k in self.dofs]

    def by_dof(self, x: np.ndarray, kind: str) -> np.ndarray:
        """The parameters of a kind by degree of freedom, (nv,); zero where there are none."""
        out = np.zeros(self.robot.nv)
        if kind in self.kinds:
            out[self.dofs] = x[self.places(kind)]
        return out

    @property
    def known_motors(self) -> np.ndarray:
        """Motor inertias that are taken from the robot, (nv,); zero where they are fitted."""
        return np.zeros(self.robot.nv) if MOTOR in self.kinds else armature_by_dof(self.robot)

    def joint_rates(self, kind: str, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        """What a kind's force is proportional to, (B, nv)."""
        return {"viscous": v, "coulomb": np.sign(v), MOTOR: a}[kind]


# ---- one thread for BLAS -----------------------------------------------------------------------


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """While it lasts, BLAS has one thread in all of the process; afterwards as many as before."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1, user_api="blas"):
        yield


# ---- Base parameters: the combinations of parameters that forces depend on, and that data can determine
#
# Some columns of the regressor are zero or combinations of others, whatever the motion: a parameter alone has
# no effect there. With W = Y over many states, W_1 its independent columns and W_2 = W_1 K the others,
#
#     W pi = W_1 (pi_1 + K pi_2)
#
# and the base parameters are pi_1 + K pi_2.
#
# Source: Gautier 1991, by QR; columns are taken in order, so that what acts through the parent goes there.

DEPENDENCE_TOLERANCE = 1e-7  # least share of an independent column that is outside the others' span


@frozen
class BaseParameters:
    """Combinations of inertial parameters that can be identified individually.

    Attributes:
        names: of all parameters, p of them.
        independent: the leading parameter of each combination, (n,); its coefficient is 1.
        matrix: values = matrix @ parameters, (n, p).
        without_effect: parameters that occur in no combination.
        tolerance: the fraction of a column's length that was taken for zero.
        condition: condition number of the independent columns, scaled to length 1: large if the data hardly
            distinguish them.
    """

    names: tuple[str, ...]
    independent: np.ndarray
    matrix: np.ndarray
    without_effect: np.ndarray
    tolerance: float
    condition: float

    __repr__ = short_repr

    def __len__(self) -> int:
        return len(self.independent)

    def values(self, parameters: Any) -> np.ndarray:
        """The combinations of parameters (p,) or (N, 10)."""
        vector = np.ravel(real_array("parameters", parameters, f"({len(self.names)},)"))
        if vector.shape != (len(self.names),):
            raise ShapeError(f"parameters: expected {len(self.names)} numbers, got {vector.size}")
        return self.matrix @ vector

    @property
    def expressions(self) -> list[str]:
        """Each combination in words: "arm m c_x + 0.3 hand m"."""
        out = []
        for k, lead in enumerate(self.independent):
            text = self.names[lead]
            for j in np.flatnonzero(self.matrix[k]):
                if j != lead:
                    c = self.matrix[k, j]
                    factor = "" if abs(abs(c) - 1.0) < 1e-12 else f"{abs(c):.4g} "
                    text += f" {'-' if c < 0 else '+'} {factor}{self.names[j]}"
            out.append(text)
        return out

    def __str__(self) -> str:
        lines = [
            f"{len(self)} combinations of {len(self.names)} parameters "
            f"(tolerance {self.tolerance:g}, condition {self.condition:.3g})"
        ]
        lines += [f"  {text}" for text in self.expressions]
        if len(self.without_effect):
            alone = ", ".join(self.names[k] for k in self.without_effect)
            lines.append(f"without effect: {alone}")
        return "\n".join(lines)


def base_parameters(
    robot: Robot, q: Any = None, v: Any = None, a: Any = None, *, tolerance: float = DEPENDENCE_TOLERANCE
) -> BaseParameters:
    """Base parameters: the combinations of inertial parameters that joint forces depend on.

    Without states, they are the parameters that some motion could determine, computed from random states.
    With the states of a motion, they are those that this motion excites; :func:`identify` says how well.

    Source: Gautier 1991.  Cost: O(n^3), n the number of parameters.

    Args:
        robot: the robot; its inertias do not matter.
        q, v, a: states of a motion, (B, nq) and (B, nv), all three or none.
        tolerance: a column counts as independent if at least this fraction of its length is outside the span
            of the others.

    Returns:
        the combinations: their names and the matrix that gives their values.

    Raises:
        ShapeError: states of a wrong shape, or only some of them.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> base = rk.base_parameters(robot)
        >>> len(base.names), len(base.independent)
        (20, 6)
    """
    check_robot(robot)
    tolerance = real_number("tolerance", tolerance, above=0.0)
    present = [x is not None for x in (q, v, a)]
    columns = Columns(robot)
    if any(present) and not all(present):
        raise ShapeError("q, v, a: expected all three, or none for the combinations of the robot's structure")
    with one_blas_thread():
        if not any(present):
            return structural_combinations(columns, tolerance=tolerance)
        R = stack_equations(compress_equations(columns, check_measurements(robot, q, v, a)), columns.size)
        return combinations(columns.names(), R, tolerance)


def structural_combinations(
    columns: Columns, moved: np.ndarray | None = None, tolerance: float = DEPENDENCE_TOLERANCE
) -> BaseParameters:
    """The combinations that some motion determines, of all parameters or of those that ``moved`` names."""
    robot, rng = columns.robot, np.random.default_rng(0)
    many = 20 + 3 * columns.size // max(1, robot.nv)
    q = np.array([robot.random_configuration(rng) for _ in range(many)]).reshape(many, robot.nq)
    v, a = rng.standard_normal((2, many, robot.nv)) * 3.0
    R = stack_equations(compress_equations(columns, check_measurements(robot, q, v, a)), columns.size)
    return combinations(columns.names(), R if moved is None else R * moved, tolerance)


def stack_equations(parts: Sequence[CompressedEquations], p: int) -> np.ndarray:
    """R of all joints' equations together, (k, p) with k <= p."""
    return triangle(np.vstack([np.zeros((0, p)), *(part.R for part in parts)]))


def combinations(
    names: Sequence[str], R: np.ndarray, tolerance: float = DEPENDENCE_TOLERANCE
) -> BaseParameters:
    """The independent columns of R, in order, and what they take from the others."""
    lengths = np.linalg.norm(R, axis=0)
    longest = lengths.max(initial=0.0)
    alive = lengths > 1e-10 * longest
    scaled = R / np.where(alive, lengths, 1.0)
    Q = np.zeros((len(R), 0))
    independent = []
    for k in np.flatnonzero(alive):
        rest = scaled[:, k]
        for _ in range(2):  # once more, for what rounding left
            rest = rest - Q @ (Q.T @ rest)
        size = np.linalg.norm(rest)
        if size > tolerance:
            independent.append(k)
            Q = np.column_stack([Q, rest / size])
    chosen = np.array(independent, dtype=int)
    W1 = scaled[:, chosen]
    K = np.linalg.lstsq(W1, scaled, rcond=None)[0] if len(chosen) else np.zeros((0, len(names)))
    K = K * np.where(alive, lengths, 0.0) / lengths[chosen, None]
    largest = np.abs(K).max(axis=1, initial=0.0)
    K = np.where(np.abs(K) < 1e-8 * np.maximum(largest, 1.0)[:, None], 0.0, K)
    K[:, chosen] = np.eye(len(chosen))
    condition = float(np.linalg.cond(W1)) if len(chosen) else 1.0
    unused = np.flatnonzero(~K.any(axis=0))
    return BaseParameters(tuple(names), chosen, K, unused, float(tolerance), condition)
