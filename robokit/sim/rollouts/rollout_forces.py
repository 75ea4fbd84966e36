"""Joint forces of a rollout: constant or by step, for all rows or for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from robokit.arguments import check_finite, real_array
from robokit.errors import ShapeError


def controls(
    tau: Any,
    steps: int,
    q: np.ndarray,
    v: np.ndarray,
    given: Sequence[tuple[str, int | None]] = (),
    dtype: str = "float64",
) -> tuple[np.ndarray | None, int]:
    """Joint forces as (steps or 1, rows or 1, nv), and the number of rows.

    Args:
        tau: what was given, see :func:`robokit.rollout`.
        steps: of the rollout.
        q, v: starts, (rows or 1, n) each.
        given: (name, number of rows or None) of other arguments that may have one value a row.
        dtype: of the joint forces that are returned.

    Raises:
        ShapeError: tau of a shape or content that makes no sense, or different numbers of rows.
    """
    n = v.shape[1]
    rows = max(len(q), len(v))
    if min(len(q), len(v)) not in (1, rows):
        raise ShapeError(f"v0: expected {len(q)} rows like q0, got {len(v)}")
    counted = False
    for what, count in given:
        if count is None:
            continue
        for name, array in (("q0", q), ("v0", v)):
            if len(array) not in (1, count):
                raise ShapeError(f"{name}: expected 1 row or {count}, as {what} has, got {len(array)}")
        if counted and count != rows:
            raise ShapeError(f"{what}: expected {rows}, one a row, got {count}")
        rows, counted = count, True
    if tau is None:
        return None, rows
    accepted = (
        f"({n},), ({rows}, {n}), ({steps}, {n}) or ({steps}, {rows}, {n}) for {rows} rows, {steps} steps"
    )
    array = real_array("tau", tau, accepted, dtype=dtype)
    shape = array.shape
    if array.ndim == 1:
        array = array[None, None]
    elif array.ndim == 2:
        by_row, by_step = len(array) == rows, len(array) == steps
        if by_row and by_step and rows > 1:
            raise ShapeError(
                f"tau: {shape} could be one row a state or one a step; give ({steps}, 1, {n}) for forces "
                f"that change with time or (1, {rows}, {n}) for constant ones"
            )
        array = array[None] if by_row else array[:, None] if by_step else array
    elif array.ndim == 3 and len(q) == len(v) == 1 and not counted:
        rows = max(1, array.shape[1])  # the only argument that counts rows
    fits = array.ndim == 3 and array.shape[0] in (1, steps) and array.shape[1] in (1, rows)
    if not fits or array.shape[2] != n:
        raise ShapeError(f"tau: expected shape {accepted}, got {shape}")
    if steps == 0:
        return None, rows
    if array.shape[1] == 1 and rows > 1:  # meant for all rows
        check_finite("tau", array)
    # The engine goes from row to row and from step to step by any stride, but the numbers of one row must
    # lie side by side.
    good = array.strides[2] == array.itemsize and array.flags.aligned
    return array if good else np.ascontiguousarray(array), rows
