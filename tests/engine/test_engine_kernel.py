"""Machine code against the plain evaluation of the same graph, in every way a kernel can be called."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from engine_cases import chain, follow, recipes, states
from hypothesis import given, settings
from hypothesis import strategies as st

from robokit.engine import single_calls
from robokit.engine.emit import ir
from robokit.engine.kernel import Kernel, NotFinite
from robokit.engine.passes.replay import evaluated
from robokit.engine.trace.record import trace
from robokit.errors import InvalidValue
from robokit.spatial.scalars import sin, sqrt


@pytest.fixture(scope="module")
def kernel():
    program, inputs, outputs = chain(9)
    return Kernel("chain", inputs, outputs, program)


def assert_same(a, b, tolerance=1e-13):
    for x, y in zip(a, b, strict=True):
        assert np.shape(x) == np.shape(y)
        np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance)


@settings(max_examples=15, deadline=None, derandomize=True)
@given(recipe=recipes(inputs=3, steps=30), rows=st.integers(1, 9), seed=st.integers(0, 2**32 - 1))
def test_any_expression_is_the_same_on_one_lane_many_lanes_and_in_python(recipe, rows, seed):
    size = 3 + len(recipe)

    def program(x):
        return [follow(recipe, x)]

    kernel = Kernel("random", [("x", 3)], [("y", (size,))], program)
    x = np.random.default_rng(seed).uniform(-1.0, 1.0, (rows, 3))
    batch = kernel(x)
    graph = trace(program, [("x", 3)], [("y", (size,))])
    for k in range(rows):
        exact = follow(recipe, x[k].tolist())
        np.testing.assert_allclose(evaluated(graph, x[k])[0], exact, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(kernel(x[k]), exact, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(batch[k], exact, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("rows", [*range(1, 18), 33, 64, 257])
def test_batches_of_any_size_are_their_single_states(kernel, rows):
    x = states(np.random.default_rng(rows), [9, 9], rows)
    batch = kernel(*x)
    singles = [kernel(*(a[k] for a in x)) for k in range(rows)]
    assert_same(batch, [np.array(s) for s in zip(*singles, strict=True)])


def test_an_empty_batch_gives_empty_outputs(kernel):
    assert [x.shape for x in kernel(np.zeros((0, 9)), np.zeros((0, 9)))] == [(0, 9), (0, 9, 9), (0,)]


def test_many_chunks_agree_with_one(monkeypatch):
    program, inputs, outputs = chain(12)
    x = states(np.random.default_rng(1), [12, 12], None)
    xs = states(np.random.default_rng(2), [12, 12], 21)
    reference = Kernel("whole", inputs, outputs, program)
    for size in (7, 23, 60):
        monkeypatch.setattr(ir, "CHUNK", size)
        cut = Kernel(f"cut{size}", inputs, outputs, program)
        assert_same(cut(*x), reference(*x))
        assert_same(cut(*xs), reference(*xs))


def test_truths_survive_a_cut(monkeypatch):
    monkeypatch.setattr(ir, "CHUNK", 3)

    def program(x):
        truths = [a < 0.25 for a in x]
        values = [sin(a) * a for a in x]
        from robokit.spatial.scalars import where

        return [[where(t, v, -v) for t, v in zip(truths, values, strict=True)]]

    kernel = Kernel("truths", [("x", 12)], [("y", (12,))], program)
    x = np.random.default_rng(0).uniform(-1, 1, (6, 12))
    expected = np.where(x < 0.25, 1, -1) * np.sin(x) * x
    np.testing.assert_allclose(kernel(x), expected, atol=1e-15)
    np.testing.assert_allclose(kernel(x[0]), expected[0], atol=1e-15)


def test_constant_and_passed_on_outputs_are_written(kernel):
    k = Kernel("c", [("x", 2)], [("y", (7,))], lambda x: [[0.0, x[1], 2.5, -x[0], x[1], 0.0, -1.0]])
    assert k(np.array([3.0, 4.0])).tolist() == [0.0, 4.0, 2.5, -3.0, 4.0, 0.0, -1.0]
    rows = k(np.tile([3.0, 4.0], (6, 1)))
    assert (rows == [0.0, 4.0, 2.5, -3.0, 4.0, 0.0, -1.0]).all()


def test_sines_that_are_outputs_as_they_are_keep_their_place(monkeypatch):
    def program(x):
        sines, y = [sin(a) for a in x], x
        for _ in range(8):  # values that cross cuts, which take the places of what is not needed any more
            y = [a * b + 0.5 for a, b in zip(y, [*y[1:], sines[0]], strict=True)]
        return [[*sines, *x, *y]]

    monkeypatch.setattr(ir, "CHUNK", 5)
    kernel = Kernel("sines", [("x", 6)], [("y", (18,))], program)
    x = np.random.default_rng(1).uniform(-1, 1, (9, 6))
    assert_same(kernel(x), kernel.python(x))
    assert_same(kernel(x[0]), kernel.python(x[0]))


def test_inputs_that_nothing_needs_and_empty_ones_are_fine():
    k = Kernel("e", [("x", 0), ("y", 3)], [("z", (0,)), ("w", (2,))], lambda x, y: [[], [y[0], 1.0]])
    z, w = k(np.zeros(0), np.ones(3))
    assert (z.shape, w.tolist()) == ((0,), [1.0, 1.0])
    z, w = k(np.zeros((5, 0)), np.ones((5, 3)))
    assert (z.shape, w.shape) == ((5, 0), (5, 2))


def test_strided_inputs_give_the_same_without_a_copy_of_rows(kernel):
    wide = np.random.default_rng(5).uniform(-1, 1, (19, 30))
    expected = kernel(np.ascontiguousarray(wide[:, 3:12]), np.ascontiguousarray(wide[:, 15:24]))
    assert_same(kernel(wide[:, 3:12], wide[:, 15:24]), expected, 0)
    assert_same(kernel(wide[::-1, 3:12], wide[::-1, 15:24]), [x[::-1] for x in expected], 0)
    assert_same(kernel(wide.T[3:12].T, wide[:, 15:24].tolist()), expected, 0)
    assert_same(kernel(wide[2, 3:12], wide[2, 15:24]), [x[2] for x in expected])


def test_a_single_state_goes_along_with_a_batch(kernel):
    q, v = states(np.random.default_rng(6), [9, 9], 11)
    assert_same(kernel(q, v[0]), kernel(q, np.tile(v[0], (11, 1))), 0)


def test_outputs_are_written_where_asked(kernel):
    x = states(np.random.default_rng(7), [9, 9], None)
    expected = kernel(*x)
    outs = [np.zeros(9), np.zeros((9, 9)), np.zeros(())]
    returned = kernel(*x, out=outs)
    assert all(a is b for a, b in zip(returned, outs, strict=True))
    assert_same(outs, expected, 0)
    xs = states(np.random.default_rng(8), [9, 9], 13)
    room = [np.zeros((13, 9)), np.zeros((13, 9, 9)), np.zeros(13)]
    assert kernel(*xs, out=room)[1] is room[1]
    assert_same(room, kernel(*xs), 0)


def test_lists_integers_and_float32_are_converted(kernel):
    q, v = [0, 1, 0, -1, 0, 1, 2, 0, 1], np.arange(9, dtype=np.float32)
    assert_same(kernel(q, v), kernel(np.array(q, float), v.astype(float)), 0)


def test_a_number_is_an_input_of_one_scalar():
    k = Kernel("dt", [("x", 2), ("dt", 1)], [("y", (2,))], lambda x, dt: [[x[0] + dt[0] * x[1], x[1]]])
    x = np.array([1.0, 2.0])
    for dt in (0.5, np.float64(0.5), [0.5], np.array(0.5), np.array([0.5])):
        assert k(x, dt).tolist() == [2.0, 2.0]
    assert k(np.tile(x, (5, 1)), 0.5).tolist() == [[2.0, 2.0]] * 5


def test_threads_agree_with_one(kernel, monkeypatch):
    from robokit.engine import batch_calls

    monkeypatch.setattr(batch_calls, "PAYS_SECONDS", 1e-9)
    monkeypatch.setattr(batch_calls, "BLOCK_SECONDS", 1e-5)
    monkeypatch.setattr(batch_calls, "processors", lambda: 4)
    xs = states(np.random.default_rng(9), [9, 9], 1003)
    assert_same(kernel.batch(*xs, threads=4), kernel.batch(*xs, threads=1), 0)


def test_threads_may_share_a_kernel(kernel):
    xs = states(np.random.default_rng(10), [9, 9], 200)
    expected = kernel(*xs)
    wrong = []

    def work():
        for k in range(200):
            got = kernel(xs[0][k], xs[1][k])
            if not np.allclose(got[1], expected[1][k], rtol=1e-12, atol=1e-12):
                wrong.append(k)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_text_on_plain_numbers_agrees(kernel):
    x = states(np.random.default_rng(11), [9, 9], None)
    assert_same(kernel.python(*x), kernel(*x))
    xs = states(np.random.default_rng(12), [9, 9], 7)
    assert_same(kernel.python(*xs), kernel(*xs))


def test_a_text_too_long_to_record_runs_on_plain_numbers(kernel, monkeypatch):
    from robokit.engine import maker

    monkeypatch.setattr(maker, "NODE_BUDGET", 20)
    program, inputs, outputs = chain(9)
    plain = Kernel("plain", inputs, outputs, program)
    x = states(np.random.default_rng(13), [9, 9], None)
    assert_same(plain(*x), kernel(*x))
    with pytest.raises(InvalidValue, match="q: expected finite"):
        plain(np.full(9, np.nan), x[1])


def test_without_a_compiler_the_text_runs_on_plain_numbers(kernel, monkeypatch):
    from robokit.engine.backend import llvm

    def missing(*_):
        raise llvm.CompilerMissing("none")

    monkeypatch.setattr(llvm, "identity", missing)
    program, inputs, outputs = chain(9)
    plain = Kernel("bare", inputs, outputs, program)
    x = states(np.random.default_rng(13), [9, 9], None)
    assert_same(plain(*x), kernel(*x))


def test_without_the_entry_ctypes_gives_the_same(kernel, monkeypatch):
    monkeypatch.setattr(single_calls, "_shim", lambda: None)
    program, inputs, outputs = chain(9)
    slow = Kernel("slow", inputs, outputs, program)
    x = states(np.random.default_rng(14), [9, 9], None)
    assert_same(slow(*x), kernel(*x), 0)
    with pytest.raises(InvalidValue, match="finite"):
        slow(x[0] * np.inf, x[1])


def test_the_entry_is_in_use_here(no_baseline_code):
    program, inputs, outputs = chain(9)
    kernel = Kernel("used", inputs, outputs, program)
    kernel(*states(np.random.default_rng(0), [9, 9], None))
    if single_calls.layout_is_known():
        assert type(kernel.fast).__name__ == "builtin_function_or_method"


def test_counts_are_known_before_and_after_compiling(kernel):
    program, inputs, outputs = chain(4)
    fresh = Kernel("counted", inputs, outputs, program)
    before = fresh.counts
    fresh(*states(np.random.default_rng(0), [4, 4], None))
    assert fresh.counts == before
    assert fresh.flops == sum(before[n] for n in ("mul", "add", "div", "sqrt"))
    assert (~fresh.sparsity[1]).sum() == sum((i + j) % 3 == 0 for i in range(4) for j in range(4))


def test_an_output_that_is_not_finite_is_reported_where_asked():
    k = Kernel(
        "root", [("x", 5)], [("y", (5,)), ("z", ())], lambda x: [[sqrt(a) for a in x], [x[0]]], finite=True
    )
    good, bad = np.ones(5), np.array([1.0, 1, 1, -1, 1])
    assert k(good)[0].tolist() == [1.0] * 5
    with pytest.raises(NotFinite) as single:
        k(bad)
    assert np.isnan(single.value.result[0]).tolist() == [False, False, False, True, False]
    with pytest.raises(NotFinite) as batch:
        k(np.stack([good] * 6 + [bad]))
    assert np.isnan(batch.value.result[0]).sum() == 1
