"""Recorded loops: the same numbers as the function run by Python, in one state and in every lane."""

from __future__ import annotations

import numpy as np
import pytest
from loop_programs import ARRAYS, SIZE, Program

import robokit as rk
from robokit.engine.loops.kernel import ArrayOf, LoopKernel
from robokit.engine.loops.record import FOR, Escaped
from robokit.spatial.control_flow import cond, for_range, while_loop
from robokit.spatial.scalars import cos, maximum, minimum, sin, where


def agree(seeds):
    """Programs whose rows alone, in a batch or by Python are not the same bits."""
    wrong = []
    for seed in seeds:
        kernel = LoopKernel("random", Program(seed), ["n"], ARRAYS, reproducible=True)
        rng, rows = np.random.default_rng(seed), 7
        x, y, table = rng.normal(size=(rows, SIZE)), rng.normal(size=(rows, SIZE)), rng.normal(size=SIZE)
        k, n = rng.integers(-1, SIZE, (rows, SIZE)), int(rng.integers(0, 4))
        many = kernel(n=n, x=x, y=y, k=k, table=table)
        plain = kernel(n=n, x=x, y=y, k=k, table=table, engine="python")
        for row in range(rows):
            one = kernel(n=n, x=x[row], y=y[row], k=k[row], table=table)
            for name in ("x", "y"):
                if not (one[name] == many[name][row]).all() or not (one[name] == plain[name][row]).all():
                    wrong.append((seed, row, name))
    return wrong


def test_random_programs_are_the_same_bits_by_python_alone_and_in_lanes():
    assert agree(range(12)) == []


@pytest.mark.slow
def test_more_random_programs():
    assert agree(range(100, 300)) == []


def factor(n, A):
    """LDL^T in place; L below the diagonal."""

    def column(k):
        inverse = 1.0 / A[k, k]

        def row(r):
            i = k + 1 + r
            x = A[i, k] * inverse

            def entry(c):
                A[i, k + 1 + c] = A[i, k + 1 + c] - x * A[k + 1 + c, k]

            for_range(r + 1, entry)

        def scale(r):
            A[k + 1 + r, k] = A[k + 1 + r, k] * inverse

        for_range(n - 1 - k, row)
        for_range(n - 1 - k, scale)

    for_range(n, column)


@pytest.fixture(scope="module")
def ldlt():
    return LoopKernel("ldlt", factor, ["n"], [ArrayOf("A", ("n", "n"), "inout")])


@pytest.mark.parametrize("n", [1, 2, 5, 17])
def test_one_kernel_factors_matrices_of_all_sizes(ldlt, n):
    M = np.random.default_rng(n).normal(size=(9, n, n))
    M = M @ M.swapaxes(1, 2) + n * np.eye(n)
    for given in (M, M[0]):
        F = ldlt(A=given)["A"]
        L, D = np.tril(F, -1) + np.eye(n), np.diagonal(F, axis1=-2, axis2=-1)
        np.testing.assert_allclose((L * D[..., None, :]) @ L.swapaxes(-1, -2), given, rtol=1e-13, atol=1e-13)
    assert len(ldlt._codes) <= 2


def test_single_precision(ldlt):
    M = np.eye(5) * 3.0 + 1.0
    assert np.abs(ldlt(A=M, dtype="float32")["A"] - ldlt(A=M)["A"]).max() < 1e-6
    assert np.abs(ldlt(A=np.tile(M, (11, 1, 1)), dtype="float32")["A"] - ldlt(A=M)["A"]).max() < 1e-6


def collatz(start, steps, out):
    """Turns until 1, halving even numbers: lanes stop at different times."""

    def turn(x, count):
        half = for_range(100, lambda k, h: where(2 * (h + 1) <= x, h + 1, h), 0)
        return where(2 * half == x, half, minimum(3 * x + 1, 1000)), count + 1

    x, count = while_loop(lambda x, _: x > 1, turn, start[0], 0)
    steps[0], out[0] = count, x * 1.0


def test_lanes_that_stop_at_different_times():
    arrays = [
        ArrayOf("start", (1,), "in", "integer"),
        ArrayOf("steps", (1,), "out", "integer"),
        ArrayOf("out", (1,), "out"),
    ]
    kernel = LoopKernel("collatz", collatz, [], arrays)
    start = np.arange(0, 22)[:, None]
    found = kernel(start=start)
    assert (found["steps"] == kernel(start=start, engine="python")["steps"]).all()
    assert found["steps"][[6, 7], 0].tolist() == [8, 16] and found["steps"][0, 0] == 0


def test_each_lane_has_a_count_of_its_own_and_done_lanes_keep_what_they_have():
    def text(most, count, x, out):
        def outer(i, total):
            def inner(j, sub):
                out[j] = out[j] + x[i]
                return sub + x[j]

            return for_range(i + 1, inner, total)

        for_range(most, lambda k: out.__setitem__(k, 0.0))
        out[most - 1] = for_range(count[0], outer, 0.25)

    arrays = [
        ArrayOf("count", (1,), "in", "integer"),
        ArrayOf("x", ("most",)),
        ArrayOf("out", ("most",), "out"),
    ]
    kernel = LoopKernel("counts", text, ["most"], arrays, reproducible=True)
    x, count = np.random.default_rng(0).normal(size=(13, 8)), np.arange(13)[:, None] % 8
    many, plain = (kernel(count=count, x=x, **how)["out"] for how in ({}, {"engine": "python"}))
    assert (many == plain).all()
    for row in range(13):
        assert (kernel(count=count[row], x=x[row])["out"] == many[row]).all()


def test_a_branch_runs_only_where_it_is_needed():
    def text(n, which, x, out):
        # Out of its branch the index would be beyond the array.
        out[0] = cond(which[0] < n, lambda: x[which[0]] * 2.0, lambda: -1.0)

    arrays = [ArrayOf("which", (1,), "in", "integer"), ArrayOf("x", ("n",)), ArrayOf("out", (1,), "out")]
    kernel = LoopKernel("branch", text, ["n"], arrays)
    which = np.array([[0], [2], [1 << 29], [1], [1 << 30]])
    found = kernel(which=which, x=np.tile([1.0, 2.0, 3.0], (5, 1)))["out"].ravel()
    assert found.tolist() == [2.0, 6.0, -1.0, 4.0, -1.0]
    assert kernel(which=[1 << 30], x=[1.0])["out"].tolist() == [-1.0]


def test_functions_of_angles_and_what_does_not_change_stand_before_a_loop():
    def text(n, x, out):
        out[0] = for_range(n, lambda k, s: s + sin(x[0]) * cos(x[k]), 0.0)

    kernel = LoopKernel("angles", text, ["n"], [ArrayOf("x", ("n",)), ArrayOf("out", (1,), "out")])
    x = np.random.default_rng(0).normal(size=(5, 9))
    np.testing.assert_allclose(kernel(x=x)["out"][:, 0], np.sin(x[:, 0]) * np.cos(x).sum(1), rtol=1e-14)

    def scaled(n, x, out):
        def body(k):
            out[k] = x[k] * (n * 0.5)

        for_range(n, body)

    graph = LoopKernel("s", scaled, ["n"], [ArrayOf("x", ("n",)), ArrayOf("out", ("n",), "out")]).record()
    (loop,) = [node for node in graph.nodes if node[0] == FOR]
    assert len(graph.regions[loop[1]].nodes) == 4  # index, load, product, store: not n / 2


def record(text, *arrays):
    return LoopKernel(
        "wrong", text, ["n"], arrays or [ArrayOf("x", ("n",)), ArrayOf("y", ("n",), "out")]
    ).record()


def test_a_value_that_leaves_a_loop_by_accident_is_an_error_where_it_is_used():
    def text(n, x, y):
        kept = []
        for_range(n, lambda k: kept.append(x[k]))
        y[0] = kept[0] + 1.0  # here

    with pytest.raises(Escaped, match="carry it") as caught:
        record(text)
    lines = [entry.lineno for entry in caught.traceback if entry.path.name == "test_engine_loops.py"]
    assert lines[-1] + 1 == text.__code__.co_firstlineno + 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (lambda n, x, y: for_range(n, lambda k, s: s + x[k], 0), "began as .'integer'."),
        (lambda n, x, y: for_range(n, lambda k, s: (s, s), 0.0), "same in number and kind"),
        (lambda n, x, y: cond(n < 2, lambda: 1.0, lambda: 1), "branches of cond return"),
        (lambda n, x, y: x.__setitem__(0, 1.0), "cannot be written"),
        (lambda n, x, y: y.__setitem__(x[0], 1.0), "an index is a whole number"),
        (lambda n, x, y: y.__setitem__(slice(0, 2), 1.0), "one element at a time"),
        (lambda n, x, y: x[0, 0], "2 indices for an array of 1"),
        (lambda n, x, y: [0.0 for _ in range(n)], "use for_range"),
        (lambda n, x, y: 1 if n < 3 else 2, "no branch"),
        (lambda n, x, y: len(x), "array.shape"),
    ],
)
def test_errors_say_what_to_do(text, message):
    with pytest.raises((TypeError, IndexError), match=message):
        record(text)


def test_calls_are_checked(ldlt):
    with pytest.raises(rk.UnknownName, match="argument named 'B'"):
        ldlt(B=np.eye(2))
    with pytest.raises(rk.ShapeError, match=r"^A: expected shape"):
        ldlt(A=np.ones((2, 3)))
    with pytest.raises(rk.WrongType, match=r"^A"):
        ldlt()
    with pytest.raises(rk.WrongType, match=r"^n"):
        ldlt(n=1.5, A=np.eye(2))
    empty = ldlt(A=np.empty((0, 3, 3)))["A"]
    assert empty.shape == (0, 3, 3)


def test_parts_of_arrays_and_whole_numbers():
    def text(n, x, out):
        row, tail = x[1], x[1:]

        def body(k):
            out[k] = maximum(row[k], tail[1, k]) + x[-1, k] - k / 2

        for_range(n, body)

    arrays = [ArrayOf("x", (3, "n")), ArrayOf("out", ("n",), "out")]
    kernel = LoopKernel("parts", text, ["n"], arrays)
    x = np.random.default_rng(0).normal(size=(6, 3, 4))
    expected = np.maximum(x[:, 1], x[:, 2]) + x[:, 2] - np.arange(4) / 2
    for how in ({}, {"engine": "python"}):
        np.testing.assert_allclose(kernel(x=x, **how)["out"], expected, atol=1e-15)
