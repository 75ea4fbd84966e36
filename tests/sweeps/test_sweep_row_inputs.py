"""Inputs of rows come back from their packed form with every bit, and in little room."""

from __future__ import annotations

import numpy as np

from robokit.sweeps.report_rows import PackedInput, factors_of, unpacked_input


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
