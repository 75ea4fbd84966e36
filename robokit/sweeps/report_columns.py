"""Parameters and measures as a sweep's report gets them: values of the rows it holds, bins of all rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from robokit.sweeps.report_rows import in_planes
from robokit.viewer.payload_keys import ColumnData

BINS = 48
"""At most, and half as many at least."""

MAX_TICKS = 20 * BINS
"""A column with more values than these, among the first SEEN rows, has no steps."""

MAX_VALUES_SEEN = 100_000

EQUAL_TOLERANCE = 1e-12
"""Numbers that differ by a smaller share of themselves are one number."""

LARGEST = 1e38
"""Numbers that are larger, as of rows that explode, are shown as this one: pages hold single precision."""

MAX_LABELS = 40
"""Texts that a column of texts keeps by name, the most frequent; the others are "other"."""

HIDDEN = ("row", "final_hash", "state_hash", "seed")
"""Columns that say nothing to a reader."""


@dataclass(frozen=True)
class ColumnInfo:
    """What is known of a column besides its values.

    Attributes:
        role: "parameter" or "measure".
        unit: of the values.
        text: what it is, in one line.
    """

    role: str
    unit: str = ""
    text: str = ""


def display_unit(values: np.ndarray, unit: str) -> tuple[np.ndarray, str]:
    """Values in the unit of the report: angles in degrees."""
    if unit in ("rad", "rad/s"):
        return np.degrees(values), unit.replace("rad", "°")
    return values, unit


def column_data(name: str, values: np.ndarray, about: ColumnInfo, held: np.ndarray) -> ColumnData:
    """A column of the report.

    Args:
        name: of the column.
        values: of all rows: numbers with NaN, or an object array of texts with None.
        about: role, unit, and what it is.
        held: places of the rows that the page holds.
    """
    title = name.replace("_", " ").replace(":", ": ").replace("/", ": ")
    if values.dtype.kind not in "fiub":
        return _labels(name, title, values, about, held)
    whole = values.dtype.kind != "f"
    numbers, unit = display_unit(values.astype(np.float64), about.unit)
    numbers = np.where(np.isfinite(numbers), np.clip(numbers, -LARGEST, LARGEST), np.nan)
    known = numbers[np.isfinite(numbers)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, -1.0)
    if high - low <= EQUAL_TOLERANCE * max(abs(low), abs(high)):
        high = low if len(known) else high  # the same number but for rounding: no bins lie between
    counts = np.array([len(known)])
    if high > low:
        counts = np.histogram(known, bins_of(known, low, high), (low, high))[0]
    whole = whole or bool(len(known) and np.array_equal(known, np.round(known)) and abs(high) < 1e9)
    singles = numbers[held].astype(np.float32)
    if not whole:
        singles = five_digits(singles)
    return ColumnData(
        name, title, unit, about.text, about.role, None, in_planes(singles), low, high,
        [int(n) for n in counts], int(len(values) - len(known)), whole,
    )  # fmt: skip


def bins_of(known: np.ndarray, low: float, high: float) -> int:
    """So many bins that each holds as many of the values that occur: times come in steps of the run.

    Args:
        known: the values.
        low, high: the least and the largest of them, which differ.
    """
    ticks = np.unique(known[:MAX_VALUES_SEEN].astype(np.float32))
    if not BINS // 2 <= len(ticks) <= min(MAX_TICKS, len(known) // 4):
        return BINS
    uneven = {m: np.histogram(ticks, m, (low, high))[0].std() * m for m in range(BINS, BINS // 2 - 1, -1)}
    return min(uneven, key=lambda m: uneven[m])


def five_digits(values: np.ndarray) -> np.ndarray:
    """Single numbers rounded to a share of 2e-5 of each: their lowest bytes are 0 and take no room."""
    bits = values.view(np.uint32)
    rounded = (bits + np.uint32(0x80)) & np.uint32(0xFFFFFF00)
    return np.where(np.isfinite(values), rounded, bits).astype(np.uint32).view(np.float32)


def _labels(name: str, title: str, values: np.ndarray, about: ColumnInfo, held: np.ndarray) -> ColumnData:
    texts = np.array(["" if x is None else str(x) for x in values], dtype=object)
    found, codes, counts = np.unique(texts.astype(str), return_inverse=True, return_counts=True)
    order = [k for k in np.argsort(-counts, kind="stable") if found[k]]
    place = np.full(len(found), np.nan)
    labels = [str(found[k]) for k in order[:MAX_LABELS]]
    place[order[:MAX_LABELS]] = np.arange(len(labels))
    if len(order) > MAX_LABELS:
        labels.append("other")
        place[order[MAX_LABELS:]] = MAX_LABELS
    every = place[codes]
    known = every[np.isfinite(every)].astype(np.int64)
    binned = np.bincount(known, minlength=len(labels)) if labels else np.zeros(0, np.int64)
    return ColumnData(
        name, title, "", about.text, about.role, labels, in_planes(every[held].astype(np.float32)),
        0.0, float(max(0, len(labels) - 1)), [int(n) for n in binned], int(np.isnan(every).sum()), True,
    )  # fmt: skip


def first_choices(columns: list[ColumnData], measures: Mapping[str, int]) -> tuple[int, int, int, int]:
    """Columns that the report shows first: sorted by, across, up, colour.

    Args:
        columns: of the report.
        measures: what a reader most likely asks for, by name: the smaller the number, the sooner.
    """
    spread = [k for k, c in enumerate(columns) if c.labels is None and c.high > c.low]
    own = sorted(
        (k for k in spread if columns[k].role == "measure"),
        key=lambda k: measures.get(columns[k].name, math.inf),
    )
    given = [k for k in spread if columns[k].role == "parameter"]
    ranked = own or given
    up = ranked[0] if ranked else 0
    across = next((k for k in [*given, *ranked[1:]] if k != up), up)
    tinted = next((k for k in [*given[1:], *ranked[1:]] if k not in (up, across)), -1)
    return up, across, up, tinted
