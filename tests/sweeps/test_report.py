"""The report of a sweep: its page, its columns, and the recipe in words."""

from __future__ import annotations

import base64
import math
import os
import zlib

import numpy as np
import sweep_robots

import robokit as rk
from robokit.cli import main
from robokit.sweeps.distributions import Choice, Constant, Grid, Normal, Sobol, Uniform
from robokit.sweeps.recipe import make_recipe
from robokit.sweeps.report import (
    WORST,
    ColumnInfo,
    PackedInput,
    column_data,
    distribution_words,
    factors_of,
    page_rows,
    recipe_words,
    thin_rows,
)


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


def test_a_report_of_a_small_sweep_without_replay(swings, tmp_path):
    assert rk.open_sweep(swings).report(tmp_path / "page", replay=False).suffix == ".html"


def test_a_page_in_the_folder_is_no_link_that_leads_out(tmp_path, capsys):
    folder, robot = tmp_path / "sweep", rk.load_urdf(rk.find_robot("double_pendulum"))
    starts = {"joint:upper_joint": rk.Uniform(0.0, 1.0)}
    run = {"ground": None, "duration": 0.002, "measures": ["energy"], "workers": 0}
    rk.sweep(robot, starts=starts, count=2, out=folder, **run)
    (tmp_path / "mine.html").write_text("mine")
    (folder / "report.html").symlink_to(tmp_path / "mine.html")
    assert main(["sweep", "--report", str(folder), "--no-open"]) == 1
    assert "report.html is a link; give -o FILE" in capsys.readouterr().err
    assert (tmp_path / "mine.html").read_text() == "mine"
    if hasattr(os, "mkfifo"):
        (folder / "report.html").unlink()
        os.mkfifo(folder / "report.html")
        assert main(["sweep", "--report", str(folder), "--no-open"]) == 1


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
    assert len(found.counts) == 20  # 2 n^(1/3), at most 48
    many = column_data("tilt", rng.uniform(0.0, 0.5, 100_000), ColumnInfo("parameter", "rad"), held)
    assert len(many.counts) == 48
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


# ---- Rows of a report: what stands out is held, and packed inputs come back with every bit -------


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


def unpacked_input(given, factors, rows):
    """What :class:`PackedInput` packed, (rows, width), as the page unpacks it."""
    base = np.frombuffer(zlib.decompress(base64.b64decode(given.base)), "<f8")
    out = np.tile(base, (rows, 1))
    for part in given.parts:
        dtype = np.dtype({1: "<i1", 2: "<i2", 8: "<f8"}[part.bytes])
        raw = np.frombuffer(zlib.decompress(base64.b64decode(part.values)), np.uint8)
        kept = np.ascontiguousarray(raw.reshape(part.bytes, -1).T).reshape(-1).view(dtype)
        table = kept.reshape(rows, len(part.entries))
        for j, entry in enumerate(part.entries):
            if part.bytes == 8:
                out[:, entry] = table[:, j]
            else:
                guess = base[entry] * factors[part.factor]
                out[:, entry] = (guess.view(np.int64) + table[:, j]).view(np.float64)
    return out


def test_every_bit_of_every_row_comes_back():
    rng = np.random.default_rng(0)
    n = 300
    mass, mu = rng.uniform(0.8, 1.2, n), rng.uniform(0.3, 1.0, n)
    own = rng.normal(size=n)
    late = np.where(np.arange(n) < 250, -0.0, 1.0)  # differs in a later block only
    nearly = 3.0 * mass * (1.0 + 1e-15 * rng.integers(-300, 300, n))
    turning = np.where(np.arange(n) < 200, 7.0 * mu, 5.0)  # stops being proportional in a later block
    blown = np.where(np.arange(n) == 280, np.nan, 2.0 * mass)
    columns = [np.full(n, 0.1), mass, 2.5 * mass, mu / 3.0, own, late, nearly, turning, blown]
    values = np.stack(columns, axis=1)
    factors = factors_of({"mass": mass, "mu": mu, "flag": np.ones(n), "zero": mass - mass[3]})
    assert len(factors) == 2
    packed = PackedInput("parameters", values.shape[1], factors, n)
    for first in range(0, n, 100):
        packed.add(values[first : first + 100])
    given = packed.packed()
    again = unpacked_input(given, factors, n)
    assert again.tobytes() == values.tobytes()
    raw = sorted(entry for part in given.parts if part.bytes == 8 for entry in part.entries)
    assert raw == [4, 5, 7, 8]
    assert sum(len(part.values) for part in given.parts if part.bytes < 8) < n * 8
