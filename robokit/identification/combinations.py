"""Base parameters: the combinations of parameters that forces depend on, and that data can determine.

Some columns of the regressor are zero or combinations of others, whatever the motion: a parameter alone has
no effect there. With W = Y over many states, W_1 its independent columns and W_2 = W_1 K the others,

    W pi = W_1 (pi_1 + K pi_2)

and the base parameters are pi_1 + K pi_2.

Source: Gautier 1991, by QR; columns are taken in order, so that what acts through the parent goes there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from robokit.arguments import real_array, real_number
from robokit.dataclass_tools import short_repr
from robokit.errors import ShapeError
from robokit.identification.measurements import (
    Columns,
    CompressedEquations,
    check_measurements,
    compress_equations,
    one_blas_thread,
    triangle,
)
from robokit.model.robot import Robot, check_robot

DEPENDENCE_TOLERANCE = 1e-7
"""Share of its length by which a column must leave the span of the others to count as independent."""


@dataclass(frozen=True)
class BaseParameters:
    """Combinations of inertial parameters that can be identified individually.

    Attributes:
        names: of all parameters, p of them.
        independent: the leading parameter of each combination, (n,); its coefficient is 1.
        matrix: values = matrix @ parameters, (n, p).
        without_effect: parameters that occur in no combination.
        tolerance: share of a column that was taken for zero.
        condition: of the independent columns, each of length 1: large where data hardly tell them apart.
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
        tolerance: share of its length by which a column must leave the span of the others.

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
