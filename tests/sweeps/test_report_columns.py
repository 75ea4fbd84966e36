"""Columns of a report: all rows are counted, some are held."""

from __future__ import annotations

import base64
import zlib

import numpy as np

from robokit.sweeps.report_columns import ColumnInfo, column_data


def unpacked(text):
    raw = np.frombuffer(zlib.decompress(base64.b64decode(text)), np.uint8)
    return np.ascontiguousarray(raw.reshape(4, -1).T).reshape(-1).view("<f4")


def test_columns_count_all_rows_and_keep_the_values_of_some():
    rng = np.random.default_rng(1)
    values = rng.uniform(0.0, 0.5, 1000)
    values[5] = np.nan
    held = np.arange(0, 1000, 10)
    found = column_data("tilt", values, ColumnInfo("parameter", "rad", "leans"), held)
    assert sum(found.counts) == 999 and found.missing == 1 and found.unit == "°" and not found.whole
    np.testing.assert_allclose(unpacked(found.values), np.degrees(values[held]), rtol=2e-5)
    degrees = np.degrees(values[np.isfinite(values)])
    assert (found.low, found.high) == (degrees.min(), degrees.max())
    np.testing.assert_array_equal(np.histogram(degrees, len(found.counts))[0], found.counts)
    steps = np.repeat(0.0635 + 1e-3 * np.arange(82), 10)
    assert column_data("peak_force_time", steps, ColumnInfo("measure", "s"), held[:80]).counts == [20] * 41
    hits = column_data("hits", rng.poisson(70_000, 1000), ColumnInfo("measure"), held)
    assert hits.whole and hits.labels is None
    words = np.array(["a", "b", None, "a"] * 250, dtype=object)
    found = column_data("link", words, ColumnInfo("measure"), np.arange(4))
    assert (found.labels, found.counts, found.missing) == (["a", "b"], [500, 250], 250)
    np.testing.assert_array_equal(unpacked(found.values), [0.0, 1.0, np.nan, 0.0])


def test_numbers_that_hardly_differ_or_are_huge_have_a_column():
    """Energies of rows in free flight differ by their last bits; rows that explode have any number."""
    last = 61.4 + np.spacing(61.4) * np.arange(10.0)
    wild = np.array([1e300, -1e300, 0.0, np.inf, np.nan, 5e-324, 1.0, 2.0, 3.0, 4.0])
    for values, most in ((last, 62.0), (wild, 1e39), (np.zeros(10), 0.0)):
        found = column_data("x", values, ColumnInfo("measure", "J"), np.arange(10))
        assert sum(found.counts) == np.isfinite(values).sum() and abs(found.high) <= most
        assert np.isfinite([found.low, found.high]).all()
