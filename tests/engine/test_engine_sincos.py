"""Sine and cosine: accuracy against 50 digits, special values, and where the coefficients come from."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest

from robokit.engine.emit import ir
from robokit.engine.emit.ir import FLOAT32, FLOAT64
from robokit.engine.kernel import Kernel
from robokit.spatial.scalars import cos, sin


def function(x):
    """Both of each input (the vector loop), and of their sums with 0 (the function of one value)."""
    y = [a * 1.0 + 0.0 for a in x]
    z = [a + x[0] - x[0] * 1.0 for a in y]
    return [[sin(a) for a in y], [cos(a) for a in y], [sin(a) for a in z], [cos(a) for a in z]]


OUTPUTS = [(n, (8,)) for n in ("s", "c", "s1", "c1")]


@pytest.fixture(scope="module")
def pair():
    return Kernel("sincos", [("x", 8)], OUTPUTS, function)


def angles() -> np.ndarray:
    rng = np.random.default_rng(3)
    whole = np.arange(-400, 400) * (np.pi / 4)
    large = [rng.uniform(-1, 1, 400) * 10.0**e for e in (-12, -3, 0, 1, 2, 4, 6, 9)]
    x = np.concatenate(
        [whole, np.nextafter(whole, np.inf), np.rint(rng.uniform(-6e8, 6e8, 400)) * (np.pi / 2), *large]
    )
    return np.resize(x, (len(x) // 8, 8))


@pytest.mark.parametrize("largest", [1e9, 2.0**20], ids=["wide", "near"])
def test_error_stays_below_2e_16(pair, largest):
    x = angles().ravel()
    x = x[abs(x) <= largest]
    if largest == 2.0**20:  # only rounds that look at no number by itself
        turns = np.rint(np.random.default_rng(5).uniform(-667_000, 667_000, 1600)) * (np.pi / 2)
        x = np.concatenate([x, turns, [largest, -largest]])
    x = np.resize(x, (len(x) // 8, 8))
    s, c, *_ = pair(x)
    with mp.workdps(50):
        exact = [(mp.sin(mp.mpf(a)), mp.cos(mp.mpf(a))) for a in x.ravel().tolist()]
        worst = max(
            max(abs(mp.mpf(a) - e), abs(mp.mpf(b) - f))
            for a, b, (e, f) in zip(s.ravel().tolist(), c.ravel().tolist(), exact, strict=True)
        )
    assert float(worst) < 2e-16


def test_single_precision_reduces_large_angles_in_doubles(short_pair):
    x = angles().astype(np.float32)
    s, c, *_ = short_pair(x)
    np.testing.assert_allclose(s, np.sin(x.astype(float)), rtol=0, atol=1.2e-7)
    np.testing.assert_allclose(c, np.cos(x.astype(float)), rtol=0, atol=1.2e-7)


@pytest.fixture(scope="module")
def short_pair():
    return Kernel("sincos", [("x", 8)], OUTPUTS, function, dtype="float32")


def test_single_precision_up_to_where_it_changes_to_doubles(short_pair):
    rng = np.random.default_rng(4)
    turns = np.rint(rng.uniform(-5215, 5215, 4000)) * (np.pi / 2)
    x = np.clip(np.concatenate([turns, rng.uniform(-8192, 8192, 4000)]).astype(np.float32), -8192, 8192)
    s, c, *_ = short_pair(x.reshape(-1, 8))
    np.testing.assert_allclose(s.ravel(), np.sin(x.astype(float)), rtol=0, atol=1.2e-7)
    np.testing.assert_allclose(c.ravel(), np.cos(x.astype(float)), rtol=0, atol=1.2e-7)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_what_an_angle_gives_does_not_depend_on_those_beside_it(dtype, pair, short_pair):
    kernel = pair if dtype == "float64" else short_pair
    x = np.tile(np.random.default_rng(6).uniform(-8000, 8000, 8).astype(dtype), (24, 1))
    alone = kernel(x)
    beside = np.ones(x.shape, bool)
    beside[5, 3] = beside[17, 6] = False
    for other in (1e5, 2e6, -5e8):
        x[5, 3], x[17, 6] = other, -other
        for before, after in zip(alone, kernel(x), strict=True):
            np.testing.assert_array_equal(after[beside], before[beside])


@pytest.mark.parametrize("other", [1e5, -1e8, 2.0**31, np.nan, np.inf])
def test_an_angle_does_not_matter_to_those_beside_it(short_pair, other):
    x = np.tile(np.linspace(-3, 3, 8, dtype=np.float32), (24, 1))
    x[5, 3] = other
    if np.isfinite(other):
        s, c, *_ = short_pair(x)
    else:  # refused as an argument, so it arises inside
        inside = Kernel(
            "inside",
            [("x", 8), ("y", 8)],
            OUTPUTS,
            lambda x, y: function([a / b for a, b in zip(x, y, strict=True)]),
            dtype="float32",
        )
        y = np.ones_like(x)
        x[5, 3], y[5, 3] = (0.0, 0.0) if np.isnan(other) else (1.0, 0.0)
        s, c, *_ = inside(x, y)
    exact = np.sin(x.astype(float)), np.cos(x.astype(float))
    hit = np.zeros(x.shape, bool)
    hit[5, 3] = abs(other) > ir.LIMIT or not np.isfinite(other)
    for got, want in zip((s, c), exact, strict=True):
        assert (np.isnan(got) == hit).all()
        np.testing.assert_allclose(got[~hit], want[~hit], rtol=0, atol=1.2e-7)


@pytest.mark.parametrize("real", [FLOAT64, FLOAT32], ids=["float64", "float32"])
def test_parts_of_half_pi_for_near_angles(real):
    limit, _, parts = ir.NEAR[real]
    turns = int(np.ceil(limit * 2 / np.pi))
    mantissa = {"float64": 53, "float32": 24}[real.dtype]
    with mp.workdps(60):
        off = abs(sum(map(mp.mpf, parts)) - mp.pi / 2)
        assert turns * off < mp.mpf(2) ** (-mantissa - 2)
    for part in parts[:-1]:  # exact products, fused or not
        digits = int(mp.mpf(part).man).bit_length()
        assert digits + turns.bit_length() <= mantissa


def test_small_angles_keep_their_relative_accuracy(pair):
    x = np.tile(10.0 ** -np.arange(1.0, 9.0) * 1.2345, (4, 1))
    np.testing.assert_allclose(pair(x)[0], np.sin(x), rtol=3e-16, atol=0)


def test_one_lane_and_many_agree(pair):
    x = angles()[:40]
    batch = pair(x)
    for k, row in enumerate(x):
        for a, b in zip(pair(row), batch, strict=True):
            np.testing.assert_allclose(a, b[k], rtol=0, atol=2.3e-16)


@pytest.mark.parametrize("factor", [2.0, 1e6])
def test_angles_beyond_the_limit_are_nan_not_wrong(pair, factor):
    s, c, *_ = pair(np.full(8, ir.LIMIT * factor))
    assert np.isnan(s).all() and np.isnan(c).all()


def test_infinity_that_arises_inside_gives_nan():
    kernel = Kernel("inf", [("x", 1)], [("y", (2,))], lambda x: [[sin(1.0 / x[0]), cos(1.0 / x[0])]])
    assert np.isnan(kernel(np.zeros(1))).all()
    assert np.isnan(kernel(np.zeros((5, 1)))).all()


@pytest.mark.parametrize(
    ("coefficients", "function", "weight"),
    [
        (ir.SIN, lambda z: (mp.sin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, lambda z: z),
        (ir.COS, lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2, lambda z: z * z),
        (ir.SIN_FLOAT32, lambda z: (mp.sin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, lambda z: z),
        (ir.COS_FLOAT32, lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2, lambda z: z * z),
    ],
    ids=["sin", "cos", "single-precision sin", "single-precision cos"],
)
def test_the_coefficients_are_the_minimax_ones(coefficients, function, weight):
    with mp.workdps(50):
        high = (mp.pi / 4 * mp.mpf("1.0001")) ** 2
        found = remez(function, weight, len(coefficients) - 1, mp.mpf("1e-8"), high)
    assert [float(x) for x in found] == pytest.approx(coefficients, rel=1e-13)


def remez(function, weight, degree, low, high):
    """Coefficients of the polynomial whose weighted error has its largest value as small as possible."""
    n = degree + 2
    points = [(low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * k / (n - 1)) for k in range(n)]
    grid = [(low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * k / 300) for k in range(301)]
    values = [function(t) for t in grid]
    for _ in range(6):
        rows = [[x**j for j in range(degree + 1)] + [(-1) ** k / weight(x)] for k, x in enumerate(points)]
        solved = mp.lu_solve(mp.matrix(rows), mp.matrix([function(x) for x in points]))
        polynomial = [solved[j] for j in range(degree + 1)]
        errors = [
            (v - sum(k * t**j for j, k in enumerate(polynomial))) * weight(t)
            for t, v in zip(grid, values, strict=True)
        ]
        groups: list[list[int]] = []
        for k, e in enumerate(errors):
            if groups and (errors[groups[-1][-1]] > 0) == (e > 0):
                groups[-1].append(k)
            else:
                groups.append([k])
        assert len(groups) == n
        points = [grid[max(group, key=lambda k: abs(errors[k]))] for group in groups]
    return polynomial
