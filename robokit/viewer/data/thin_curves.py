"""Curves for a screen: fewer points, and every peak kept.

A curve is cut into buckets of equal length, and each keeps its smallest and its largest sample. However long
the run, its largest value is shown as it was.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

BUCKETS = 500
"""Buckets of a curve: about as many as its plot has columns."""

NEGLIGIBLE = 0.01
"""Share of a line's range below which what happens between two frames is left out."""

MOST_PEAKS = 200
"""Peaks between frames that one line keeps, the largest ones; its extremes are always among them."""


def kept(
    columns: Sequence[np.ndarray], always: Sequence[int] | np.ndarray = (), buckets: int = BUCKETS
) -> np.ndarray:
    """Indices of the samples that a plot of several lines keeps.

    Args:
        columns: the lines, (T,) each; what is not finite counts as no peak.
        always: indices that are kept besides; the first and the last are.
        buckets: as many as the plot is to have.

    Returns:
        Increasing indices, at most 2 * buckets for each line and those of ``always``.
    """
    T, most = len(columns[0]), 2 * buckets
    if most >= T:
        return np.arange(T)
    width = -(-T // buckets)
    rows = -(-T // width)
    starts = width * np.arange(rows)
    found = [np.array([0, T - 1]), np.asarray(always, dtype=int)]
    for column in columns:
        for worst, pick in ((np.inf, np.argmin), (-np.inf, np.argmax)):
            filled = np.full(rows * width, worst)
            filled[:T] = np.where(np.isfinite(column), column, worst)
            found.append(np.minimum(starts + pick(filled.reshape(rows, width), axis=1), T - 1))
    return np.unique(np.concatenate(found))


def without_repeats(t: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A line without the samples that equal both their neighbours: (t, y)."""
    inner = (y[1:-1] == y[:-2]) & (y[1:-1] == y[2:])
    keep = np.concatenate([[True], ~inner, [True]])[: len(y)]
    return t[keep], y[keep]


def peaks_between(t: np.ndarray, y: np.ndarray, frames: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """What lines that are drawn from frames would miss: samples outside the range of the frames beside them.

    Args:
        t: times of the samples, increasing, (S,) [s].
        y: the lines, (S, m).
        frames: times of the frames, increasing, (T,) [s].

    Returns:
        (times, values) of the peaks of each line, in the order of time.
    """
    sound = np.isfinite(y)
    starts = np.unique(np.clip(np.searchsorted(t, frames - 1e-9), 0, max(len(t) - 1, 0)))
    if len(starts) < 2 or np.all(np.diff(starts) < 2):
        return [(t[:0], t[:0]) for _ in range(y.shape[1])]
    found = []
    ends = np.append(starts[1:], len(t) - 1)
    for column, good in zip(y.T, sound.T, strict=True):
        times, values = [], []
        for worst, reduce, sign in ((np.inf, np.minimum, -1.0), (-np.inf, np.maximum, 1.0)):
            filled = np.where(good, column, worst)
            most = reduce.reduceat(filled, starts)
            beside = reduce(filled[starts], filled[ends])
            with np.errstate(invalid="ignore"):
                excess = sign * (most - beside)
            span = np.ptp(column[good]) if good.any() else 0.0
            rows = np.flatnonzero(excess > NEGLIGIBLE * span)
            rows = rows[np.argsort(-excess[rows], kind="stable")[:MOST_PEAKS]]
            extreme = int(np.argmax(sign * most))
            if excess[extreme] > 0.0 and extreme not in rows:
                rows = np.append(rows, extreme)
            for row in rows:
                part = filled[starts[row] : ends[row] + 1]
                at = starts[row] + int(np.argmax(sign * part))
                times.append(t[at])
                values.append(column[at])
        order = np.argsort(times, kind="stable")
        found.append((np.array(times)[order], np.array(values)[order]))
    return found
