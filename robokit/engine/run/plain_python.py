"""Runs a function as it stands, on Python's floats or NumPy's columns: slow, and the same numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from robokit.engine.signature import FlatFunction, Pairs

SECONDS = 1e-5
"""A guess of the time per state of a batch."""


def run_plain(
    text: FlatFunction,
    arrays: Sequence[np.ndarray],
    outs: Sequence[np.ndarray],
    rows: int | None,
    tables: int = 0,
) -> None:
    """Run a function once.

    Args:
        text: what to run.
        arrays: (n,) or (rows, n) each.
        outs: what it returns is written to these.
        rows: states of the batch; None for one state.
        tables: how many of the arrays, the last ones, are tables: (n,) each, given to the function as they
            are.
    """
    inputs, shared = arrays[: len(arrays) - tables], arrays[len(arrays) - tables :]
    if rows is None:
        try:
            results = text(*(a.tolist() for a in inputs), *shared)
        except (ValueError, ArithmeticError):  # Python raises where the processor answers NaN
            run_plain(text, arrays, [o[None] for o in outs], 1, tables)
            return
    else:
        columns = [np.ascontiguousarray(np.broadcast_to(a, (rows, a.shape[-1])).T) for a in inputs]
        with np.errstate(all="ignore"):
            results = text(*map(list, columns), *shared)
    for o, row in zip(outs, results, strict=True):
        flat = o.reshape(-1) if rows is None else o.reshape(rows, math.prod(o.shape[1:]))
        for k, x in enumerate(row):
            flat[..., k] = x


def iterate_plain(
    text: FlatFunction,
    arrays: Sequence[np.ndarray],
    outs: Sequence[np.ndarray],
    feedback: Pairs,
    steps: int,
    tables: int = 0,
) -> int:
    """Run a function again and again, each time with its fed-back outputs as inputs.

    Args:
        text: what to run.
        arrays: (n,) each; the fed-back ones are overwritten.
        outs: the last outputs are written to these.
        feedback: (output, input) pairs.
        steps: how many runs.
        tables: as in :func:`run_plain`.

    Returns:
        the runs done: fewer where an input was not finite.
    """
    for done in range(steps):
        if not all(np.isfinite(a).all() for a in arrays[: len(arrays) - tables]):
            return done
        run_plain(text, arrays, outs, None, tables)
        for o, i in feedback:
            arrays[i][:] = outs[o].reshape(-1)
    return max(steps, 0)
