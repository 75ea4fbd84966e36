"""Rows of a report: what stands out is held, and packed inputs come back with every bit."""

from __future__ import annotations

import base64
import zlib

import numpy as np

from robokit.sweeps.report import WORST, PackedInput, factors_of, page_rows, thin_rows


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
