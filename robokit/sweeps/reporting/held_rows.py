"""Which rows of a sweep its report holds: all of a small one; of a large one a sample and what stands out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

MOST_ROWS = 100_000
"""Rows of a page: as many as a browser opens within a second or two."""

WORST = 100
"""Rows with the largest and with the smallest values of each measure that a page holds in any case."""

MOST_FAILURES = 20_000
"""Rows that failed, of those that a page holds in any case."""


@dataclass(frozen=True)
class Held:
    """Rows of a page.

    Attributes:
        places: of them among those of the sweep, ascending.
        special: of those that failed or are among the most extreme, ascending.
        sentence: which rows the page holds; "" where it holds all.
    """

    places: np.ndarray
    special: np.ndarray
    sentence: str


def held_rows(
    count: int, measures: Mapping[str, np.ndarray], failed: np.ndarray, most: int = MOST_ROWS
) -> Held:
    """The rows that a page holds.

    The sample is the same for the same sweep: rows at equal distances, one row being as random as another.

    Args:
        count: rows of the sweep.
        measures: numbers by name, (count,) each; NaN for none.
        failed: which rows failed, (count,).
        most: rows of the page; what stands out may add to them.

    """
    failures = np.flatnonzero(failed)
    kept = [failures[:MOST_FAILURES]]
    for values in measures.values():
        known = np.flatnonzero(np.isfinite(values))
        if len(known) <= 2 * WORST:
            kept.append(known)
            continue
        for sign in (-1.0, 1.0):
            kept.append(known[np.argpartition(sign * values[known], WORST - 1)[:WORST]])
    special = np.unique(np.concatenate(kept))
    if count <= most:
        return Held(np.arange(count), special, "")
    even = np.unique(np.linspace(0, count - 1, most).astype(np.int64))
    places = np.union1d(even, special)
    those = _spaced(len(failures))
    if len(failures) > MOST_FAILURES:
        those = f"the first {_spaced(MOST_FAILURES)} of {those}"
    sentence = (
        f"This page holds {_spaced(len(places))} of {_spaced(count)} rows: {_spaced(most)} at equal "
        f"distances, {those} that failed, and the {WORST} with the largest and {WORST} with the smallest "
        "value of each measure. The distributions count all rows of the sweep; what a filter leaves of them "
        "is scaled up from the rows of the page."
    )
    return Held(places, special, sentence)


def within(rows: int, special: np.ndarray, most: int) -> np.ndarray:
    """At most so many of the rows: those that stand out first, then others at equal distances.

    Args:
        rows: how many there are.
        special: which stand out, (rows,).
        most: how many are wanted.

    Returns:
        Their places, ascending.
    """
    if rows <= most:
        return np.arange(rows)
    first = np.flatnonzero(special)[:most]
    rest = np.flatnonzero(~special)
    if not len(rest) or most == len(first):
        return first
    even = np.unique(np.linspace(0, len(rest) - 1, most - len(first)).astype(np.int64))
    return np.union1d(first, rest[even])


def _spaced(number: int) -> str:
    return f"{number:,}".replace(",", " ")
