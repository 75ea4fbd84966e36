"""Kinds of results of derivatives and inverses: several matrices at once."""

from __future__ import annotations

from itertools import chain
from typing import Any

from robokit.algorithms.coupling import reduced_columns, reduced_matrix
from robokit.dynamics.layout import Kind


def _flat(rows: Any) -> list[Any]:
    return list(chain.from_iterable(rows))


MATRICES = Kind(
    lambda robot: [(robot.nv, robot.nv)] * 2,
    lambda _, matrices: [_flat(A) for A in matrices],
    reduced=lambda tree, matrices: [reduced_matrix(tree, A) for A in matrices],
)
"""Two such matrices, derivatives of forces: A = G^T A_full G."""

INVERSE = Kind(lambda robot: [(robot.nv, robot.nv)], lambda _, A: [_flat(A)], own_text=True, finite=True)
"""The inverse of a matrix of joint space, (nv, nv): no projection gives that of coupled joints."""

INVERSES = Kind(
    lambda robot: [(robot.nv, robot.nv)] * 3,
    lambda _, matrices: [_flat(A) for A in matrices],
    own_text=True,
    finite=True,
)
"""Three matrices, derivatives of accelerations: no projection gives those of coupled joints either."""

SETS_OF_COLUMNS = Kind(
    lambda robot: [(6, robot.nv)] * 4,
    lambda _, sets: [_flat(A) for A in sets],
    reduced=lambda tree, sets: [reduced_columns(tree, A) for A in sets],
)
"""Four sets of such columns, derivatives of a momentum and of its rate."""
