"""Columns of one function in the lanes of vectors, for one state: the same numbers as one after the other."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from robokit.engine import Kernel
from robokit.engine.backend import llvm
from robokit.engine.emit import ir
from robokit.engine.passes.order import fused
from robokit.engine.passes.replay import evaluated
from robokit.engine.trace.record import trace
from robokit.spatial.control_flow import cond, vmap, zeros
from robokit.spatial.scalars import sin, sqrt

N = 13
SHAPE = [("x", 4), ("w", N)], [("A", (5, N)), ("y", (N,)), ("z", (3,))]


def function(x, w):
    """Thirteen columns, then three, then two that come to little: each reads what is computed around it."""
    outside, root = x[0] * x[1] + 1.5, sqrt(x[2] * x[2] + 1.0)

    def column(a, b, one, zero):
        up = (a * outside + x[3]) * (b + root) + zero
        down = up / (1.0 + b * b) - one * 0.25
        return [up, up * down + sin(b), a, outside, 2.0]

    columns = [[w[k], w[k] * x[k % 4], 1.0 if k == 4 else 0.0, 0.0] for k in range(N)]
    found = vmap(column)(*zip(*columns, strict=True))
    A = [[each[i] for each in found] for i in range(5)]

    def again(p, q, r):
        s = p * q - r
        for _ in range(10):
            s = 0.3 * s * (p * q) / (1.0 + p * p * q * q) + r
        return [s * s * outside + q, s - p, p * r]

    three = [[found[k][0], found[k][1], A[1][6 - k]] for k in range(3)]
    passed = vmap(again)(*zip(*three, strict=True))
    few = vmap(lambda p, q: [p * q - outside, q])(*zip(*(row[:2] for row in three[:2]), strict=True))
    y = [passed[0][0] + each[1] for each in found]
    return [
        [v for row in A for v in row],
        y,
        [p[2] * passed[1][1] + few[k % 2][0] for k, p in enumerate(passed)],
    ]


RANDOM = np.random.default_rng(7)
STATES = [(RANDOM.uniform(-1.0, 1.0, 4), RANDOM.uniform(-1.0, 1.0, N)) for _ in range(5)]


def expected(x, w):
    return np.concatenate([np.asarray(row, float) for row in function(x.tolist(), w.tolist())])


@pytest.mark.parametrize("columns", [2, 4, 8])
def test_the_recorded_graph_means_the_same(columns):
    calls = trace(function, *SHAPE, shares="large", columns=columns)
    assert [block.lanes for block in calls.blocks] == [columns, min(columns, 4)]
    for program in (calls, fused(calls)):
        for x, w in STATES:
            np.testing.assert_allclose(np.concatenate(evaluated(program, x, w)), expected(x, w), rtol=1e-13)
    assert not trace(function, *SHAPE, shares="large").blocks


@pytest.mark.parametrize(("width", "chunk"), [(8, 450), (8, 12), (4, 30), (2, 450)])
def test_machine_code_gives_the_same(width, chunk, tmp_path, monkeypatch):
    if width > llvm.vector_width():
        pytest.skip("this processor has narrower vectors")
    monkeypatch.setenv("ROBOKIT_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(ir, "CHUNK", chunk)
    monkeypatch.setattr(llvm, "vector_width", lambda: width)
    kernel = Kernel("columns", *SHAPE, function, finite=True)
    for x, w in STATES:
        found = np.concatenate([each.ravel() for each in kernel(x, w)])
        np.testing.assert_allclose(found, expected(x, w), rtol=1e-13)
    assert kernel._maker._plans and any(
        b.lanes > 1 for plan, _ in kernel._maker._plans.values() for b in plan.blocks
    )
    assert kernel.counts == trace(function, *SHAPE).counts


def test_reproducible_kernels_take_one_column_after_the_other(tmp_path, monkeypatch):
    monkeypatch.setenv("ROBOKIT_CACHE_DIR", str(tmp_path))
    kernel = Kernel("same", *SHAPE, function, reproducible=True)
    many = [np.array([state[k] for state in STATES]) for k in range(2)]
    for one, batch in zip(zip(*(kernel(x, w) for x, w in STATES), strict=True), kernel(*many), strict=True):
        np.testing.assert_array_equal(np.array(one), batch)


def test_plain_numbers_go_one_after_the_other():
    assert vmap(lambda a, b: [a + b, a])([1.0, 3.0], [2.0, 4.0]) == [[3.0, 1.0], [7.0, 3.0]]


def test_functions_that_choose_or_write_go_one_after_the_other():
    """Lanes have no branches, and what is written to has an order."""

    def chooses(x):
        return [each * each for each in vmap(lambda a: cond(a > 0.0, lambda: long(a), lambda: -a))(x)]

    def writes(x):
        memory = zeros(1)

        def put(a):
            memory[0] = 2.0 * memory[0] + long(a)
            return memory[0]

        return vmap(put)(x)

    def long(a):
        for _ in range(40):
            a = 0.5 * a * a + 0.1
        return a

    state = [0.5, -0.25, 0.75, -1.0]
    for function in (chooses, writes):
        program = trace(lambda x, f=function: [f(x)], [("x", 4)], [("y", (4,))], shares="large", columns=8)
        assert not program.blocks
        np.testing.assert_allclose(evaluated(program, state)[0], function(state), rtol=1e-14)


def test_without_lanes_columns_take_each_operation_in_turn():
    """So that a value that several columns read is loaded once: its products are neighbours."""
    program = trace(function, *SHAPE)
    for x, w in STATES:
        np.testing.assert_allclose(np.concatenate(evaluated(program, x, w)), expected(x, w), rtol=1e-13)
    order = {n: k for k, n in enumerate(program.order)}
    columns = [order[n] for n in program.results[0][:N]]  # the first row of A: one value a column
    assert columns == sorted(columns)
    assert [b - a for a, b in pairwise(columns)].count(1) >= N // 2
