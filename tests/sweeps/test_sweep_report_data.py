"""What the report of a sweep holds: which rows, their columns, their distributions, the recipe in words."""

from __future__ import annotations

import base64
import math
import zlib

import numpy as np
import sweep_robots

import robokit as rk
from robokit.sweeps.distributions import Choice, Constant, Grid, Normal, Sobol, Uniform
from robokit.sweeps.make_recipe import make_recipe
from robokit.sweeps.report import distribution_words, recipe_words
from robokit.sweeps.report_columns import ColumnInfo, column_data
from robokit.sweeps.report_rows import WORST, page_rows, thin_rows


def unpacked(text):
    raw = np.frombuffer(zlib.decompress(base64.b64decode(text)), np.uint8)
    return np.ascontiguousarray(raw.reshape(4, -1).T).reshape(-1).view("<f4")


def test_a_large_sweep_leaves_failures_and_extremes_on_the_page():
    rng = np.random.default_rng(0)
    n, most = 50_000, 2_000
    peak = rng.normal(size=n)
    peak[::7] = np.nan
    failed = rng.random(n) < 0.002
    held = page_rows(n, {"peak": peak}, failed, most)
    order = np.argsort(np.where(np.isnan(peak), np.inf, peak))
    known = int(np.isfinite(peak).sum())
    wanted = {*np.flatnonzero(failed), *order[:WORST], *order[known - WORST : known]}
    assert wanted == set(held.special) and wanted <= set(held.places)
    assert most <= len(held.places) <= most + len(wanted)
    assert (np.diff(held.places) > 0).all() and "50 000 rows" in held.sentence
    chosen = thin_rows(len(held.places), np.isin(held.places, held.special), 600)
    assert len(chosen) <= 600 and wanted <= set(held.places[chosen]) and (np.diff(chosen) > 0).all()
    whole = page_rows(100, {}, np.zeros(100, bool))
    assert whole.sentence == "" and len(whole.places) == 100


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


def test_a_recipe_in_words_says_what_was_drawn():
    recipe = make_recipe(
        sweep_robots.hopper(),
        starts={"tilt": Uniform(0.0, math.pi / 6)},
        parameters={"mass": Normal(1.0, 0.1, low=0.5), "friction": Grid(0.2, 0.8, 4)},
        duration=0.1,
        count=1000,
        ground=rk.Ground(),
        measures=["peak_load"],
    )
    words = dict(recipe_words(recipe))
    assert words["robot"].startswith("hopper: 6 kg, 7 dof, floating base")
    assert words["rows"] == "1 000 of 0.1 s each" and words["tilt"] == "uniform, 0 to 30°"
    assert words["mass"] == "normal, 1 ± 0.1, from 0.5"
    assert words["friction"] == "grid of 4: 0.2, 0.4, 0.6, 0.8" and words["ground"] == "a plane"
    assert distribution_words(Sobol(-1.0, 2.0), "m") == "Sobol sequence, −1 to 2 m"
    assert distribution_words(Constant(3.0), "N s") == "3 N s"
    assert distribution_words(Choice(["a", "b"], [1.0, 3.0]), "") == "one of a (25 %), b (75 %)"
