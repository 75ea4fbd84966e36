"""Tables: an entry for each lane, read where the caller's array is."""

from __future__ import annotations

import math

import numpy as np
import pytest
from engine_cases import guard
from hypothesis import given
from hypothesis import strategies as st

from robokit.arguments import ShapeError
from robokit.engine import Kernel
from robokit.engine.emit.batch_module import batch_module
from robokit.spatial.scalars import floor, lookup

COLUMNS = 40


def height(x, table):
    """Bilinear height of a grid over the unit square, and what is read beside a guard."""
    u, w = (COLUMNS - 1) * x[0], (COLUMNS - 1) * x[1]
    i, j = floor(u), floor(w)
    a, b = u - i, w - j
    corners = [lookup(table, (i + di) * COLUMNS + (j + dj)) for di in (0.0, 1.0) for dj in (0.0, 1.0)]
    z = (1 - a) * ((1 - b) * corners[0] + b * corners[1]) + a * ((1 - b) * corners[2] + b * corners[3])
    return [[z, *guard(x[0] > 0.5, lambda: [lookup(table, 3.0 * u)], -1.0)]]


def build(dtype="float64"):
    tables = [("heights", COLUMNS * COLUMNS)]
    return Kernel.build("height", [("x", 2)], [("z", (2,))], height, dtype=dtype, tables=tables)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("rows", [1, 2, 7, 33])
def test_every_way_reads_the_same_entries(dtype, rows):
    rng = np.random.default_rng(rows)
    table = rng.uniform(size=COLUMNS * COLUMNS).astype(dtype)
    x = rng.uniform(-0.1, 1.1, (rows, 2)).astype(dtype)
    kernel = build(dtype)
    expected = kernel.python(x, table)
    tolerance = 1e-13 if dtype == "float64" else 1e-5
    np.testing.assert_allclose(kernel.batch(x, table), expected, atol=tolerance)
    np.testing.assert_array_equal([kernel(row, table) for row in x], kernel.batch(x, table))
    np.testing.assert_allclose(kernel.program().evaluate(x[0], table)[0], expected[0], atol=tolerance)


def test_a_plane_is_interpolated_exactly():
    i, j = np.meshgrid(np.arange(COLUMNS), np.arange(COLUMNS), indexing="ij")
    table = (0.25 * i - 0.5 * j).ravel()
    x = np.random.default_rng(0).uniform(0.0, 0.999, (50, 2))
    z = build().batch(x, table)[:, 0]
    np.testing.assert_allclose(z, (COLUMNS - 1) * (0.25 * x[:, 0] - 0.5 * x[:, 1]), atol=1e-12)


@given(st.floats(allow_nan=True, allow_infinity=True), st.integers(1, 5))
def test_an_index_is_rounded_down_and_clamped(index, size):
    table = np.arange(float(size))
    entry = 0.0 if math.isnan(index) or index < 0 else float(min(index, size - 1) // 1)
    assert lookup(table, index) == entry
    assert lookup(list(table), index) == entry
    assert lookup(table, np.array([index, 0.0])).tolist() == [entry, 0.0]


def test_machine_code_rounds_down_and_clamps():
    kernel = Kernel.build("at", [("x", 1)], [("y", ())], lambda x, t: [[lookup(t, x[0])]], tables=[("t", 5)])
    table = np.arange(5.0)
    x = np.array([-1e300, -1.0, -0.5, 0.0, 0.99, 1.0, 3.999, 4.0, 4.5, 5.0, 1e9, 2.0**31, 1e300])
    expected = [0, 0, 0, 0, 0, 1, 3, 4, 4, 4, 4, 4, 4]
    assert kernel.batch(x[:, None], table).tolist() == expected
    assert [kernel(np.array([each]), table) for each in x] == expected
    assert [kernel.python(np.array([each]), table) for each in x] == expected


def test_an_index_that_is_not_a_number_reads_the_first_entry():
    def text(x, table):
        return [[lookup(table, (2.0 * x[0]) / (3.0 * x[0]))]]  # 0 / 0

    kernel = Kernel.build("at", [("x", 1)], [("y", ())], text, tables=[("t", 5)])
    table = np.arange(7.0, 12.0)
    assert kernel(np.zeros(1), table) == 7.0
    assert kernel.batch(np.zeros((9, 1)), table).tolist() == [7.0] * 9
    assert kernel.python(np.zeros((9, 1)), table).tolist() == [7.0] * 9


def test_floor_is_that_of_the_library():
    kernel = Kernel.build("floor", [("x", 1)], [("y", ())], lambda x: [[floor(x[0])]])
    x = np.array([-1e300, -2.5, -2.0, -1e-300, 0.0, 0.5, 1.0, 2.0**52 + 1.0, 1e300])
    np.testing.assert_array_equal(kernel.batch(x[:, None]), np.floor(x))
    assert [kernel(each.reshape(1)) for each in x] == np.floor(x).tolist()
    assert floor(-2.5) == -3.0 and type(floor(2)) is float
    assert floor(2.5 + 1e-30j) == 2.0


def test_large_tables_are_read_where_they_are():
    n = 2048
    kernel = Kernel.build(
        "far", [("x", 1)], [("y", ())], lambda x, t: [[lookup(t, x[0])]], tables=[("t", n * n)]
    )
    table = np.arange(float(n * n))
    x = np.random.default_rng(0).integers(0, n * n, (1000, 1)).astype(float)
    np.testing.assert_array_equal(kernel.batch(x, table), x[:, 0])
    table[:] = -table  # what the caller writes is seen: nothing was copied
    np.testing.assert_array_equal(kernel.batch(x, table), -x[:, 0])
    assert len(batch_module(kernel.program(), 8, "k")[0]) < 100_000


def test_rollouts_and_iterations_share_the_table():
    def text(x, t):
        return [[lookup(t, x[0] * 4.0) + 0.25 * x[1], 0.5 * x[1]]]

    kernel = Kernel.build("walk", [("x", 2)], [("x1", (2,))], text, feedback={"x1": "x"}, tables=[("t", 16)])
    rng = np.random.default_rng(1)
    table, x = rng.uniform(0.0, 4.0, 16), rng.uniform(0.0, 3.0, (19, 2))
    rolled = x[None].copy()
    kernel.rollout_runner().roll([rolled, table.reshape(1, 1, -1)], 19, [0, 12], lambda *r: None, threads=1)
    heights = table.reshape(1, 1, -1)
    with pytest.raises(ValueError, match="expected 2 arrays, got 3"):
        kernel.rollout_runner().roll([rolled, heights, heights], 19, [0, 12], lambda *r: None, threads=1)
    alone = [kernel.iterate(row, table, steps=12)[1] for row in x]
    np.testing.assert_array_equal(rolled[0], alone)


def test_wrong_tables_are_refused():
    kernel = build()
    x = np.zeros((3, 2))
    with pytest.raises(ShapeError, match="heights"):
        kernel.batch(x, np.zeros(7))
    with pytest.raises(ShapeError, match="heights: expected a table"):
        kernel.batch(x, np.zeros((3, COLUMNS * COLUMNS)))
    with pytest.raises(TypeError, match=r"\(x, heights\)"):
        kernel.batch(x)
    for size in (0, 2**24 + 1):
        with pytest.raises(ValueError, match="table of 1 to"):
            Kernel.build("k", [("x", 1)], [("y", ())], lambda x, t: [[x[0]]], tables=[("t", size)])
