"""Which rows of a sweep its report holds: all of a small one; of a large one a sample and what stands out."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

MOST_ROWS = 100_000
"""Rows of a page: as many as a browser opens within a second or two."""

WORST = 100
"""Rows with the largest and with the smallest values of each measure that a page holds in any case."""

MOST_FAILURES = 20_000
"""Rows that failed, of those that a page holds in any case."""


def held_rows(
    count: int, measures: Mapping[str, np.ndarray], failed: np.ndarray, most: int = MOST_ROWS
) -> tuple[np.ndarray, str]:
    """Places of the rows that a page holds, and a sentence that says which these are.

    The sample is the same for the same sweep: rows at equal distances, one row being as random as another.

    Args:
        count: rows of the sweep.
        measures: numbers by name, (count,) each; NaN for none.
        failed: which rows failed, (count,).
        most: rows of the page; what stands out may add to them.

    Returns:
        Ascending places, and the sentence: "" where they are all.
    """
    if count <= most:
        return np.arange(count), ""
    failures = np.flatnonzero(failed)
    kept = [np.unique(np.linspace(0, count - 1, most).astype(np.int64)), failures[:MOST_FAILURES]]
    for values in measures.values():
        known = np.flatnonzero(np.isfinite(values))
        if len(known) <= 2 * WORST:
            kept.append(known)
            continue
        for sign in (-1.0, 1.0):
            kept.append(known[np.argpartition(sign * values[known], WORST - 1)[:WORST]])
    places = np.unique(np.concatenate(kept))
    those = _spaced(len(failures))
    if len(failures) > MOST_FAILURES:
        those = f"the first {_spaced(MOST_FAILURES)} of {those}"
    sentence = (
        f"This page holds {_spaced(len(places))} of {_spaced(count)} rows: {_spaced(most)} at equal "
        f"distances, {those} that failed, and the {WORST} with the largest and {WORST} with the smallest "
        "value of each measure. The distributions count all rows of the sweep; what a filter leaves of them "
        "is scaled up from the rows of the page."
    )
    return places, sentence


def _spaced(number: int) -> str:
    return f"{number:,}".replace(",", " ")
