"""Guarded blocks: a lane gets what a choice would give it, and what no lane needs is skipped."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from engine_cases import follow, guard, recipes
from hypothesis import given, settings
from hypothesis import strategies as st

from robokit.engine import Kernel
from robokit.engine.emit.batch_module import batch_module
from robokit.engine.emit.single_module import single_module
from robokit.engine.passes.order import blocks, guarded, paths
from robokit.engine.passes.replay import evaluated
from robokit.engine.trace.ops import GUARD, OPERATIONS, SQRT
from robokit.engine.trace.record import trace
from robokit.spatial.control_flow import cond, zeros
from robokit.spatial.scalars import sin, sqrt, where

ONE = [("x", 4)], [("y", (3,))]


def chosen(condition: Any, function: Callable[[], Any], *fallbacks: Any) -> list[Any]:
    """What a guard means, without a branch."""
    return [where(condition, x, other) for x, other in zip(function(), fallbacks, strict=True)]


def long(a: Any, b: Any, steps: int = 12) -> Any:
    """A block that is worth a branch, and forgets its rounding errors."""
    s = a
    for k in range(steps):
        s = sqrt(0.1 * s * s + (1.0 + 0.01 * k)) / (1.5 + b * b * s * s)
    return s


def rows(kind: str, count: int, seed: int = 0, dtype: str = "float64") -> np.ndarray:
    """States whose first number is positive in all rows, in one, in some, or in none."""
    x = np.random.default_rng(seed).uniform(0.1, 1.0, (count, 4))
    off = {"all": [], "one": [k for k in range(count) if k != count // 2], "some": range(0, count, 3)}
    x[list(off.get(kind, range(count))), 0] *= -1.0
    return x.astype(dtype)


KINDS = ["all", "one", "some", "none"]


def simple(x: list[Any], g: Any = guard) -> list[list[Any]]:
    on = x[0] > 0.0
    shared = x[1] * x[2] + x[3]
    p, r = g(on, lambda: [long(x[1], shared), sin(long(x[2], x[3]) - shared)], 3.0, -x[1])
    return [[p + shared, r, p * r]]


def flowing(x: list[Any], g: Any = guard) -> list[list[Any]]:
    """Two blocks of one condition, a choice between them, and values that go from one to the other."""
    on = x[0] > 0.0
    p, r = g(on, lambda: [long(x[1], x[2]), long(x[2], x[3])], 0.0, 0.0)
    middle = long(p, x[3], 3)
    (s,) = g(on, lambda: [long(r, middle) + p], x[2])
    return [[s, middle, where(on, p, 5.0)]]


def nested(x: list[Any], g: Any = guard) -> list[list[Any]]:
    """A guard in a guard whose condition takes a block to compute, and one of another condition."""

    def outer() -> list[Any]:
        a = long(x[1], x[2])
        (b,) = g(a > 0.5, lambda: [long(a, x[3]) + x[1]], a)
        (c,) = g(a > 0.5, lambda: [long(b, x[2]) - b], x[2])
        return [a, b + c]

    p, r = g(x[0] > 0.0, outer, 0.25, x[3])
    (s,) = g(x[1] > 0.5, lambda: [long(r, p)], 1.0)
    return [[p, r, s]]


def across(x: list[Any], g: Any = guard) -> list[list[Any]]:
    """What a block needs, a block of the same condition inside another guard needs, too."""
    on, more = x[0] > 0.0, x[1] > 0.5
    seen = long(x[1], x[2])
    (p,) = g(on, lambda: [long(seen, x[3])], 0.5)
    (s,) = g(more, lambda: [g(on, lambda: [long(x[2], seen) + p], x[3])[0] * long(p, x[2])], x[2])
    return [[p, s, p * s]]


def crossed(x: list[Any], g: Any = guard) -> list[list[Any]]:
    """Two guards, each inside the other, with values that both nestings read: their blocks would wait for
    each other."""
    on, more = x[0] > 0.0, x[1] > 0.5
    early = long(x[2], x[3])
    both = long(early, x[2])
    (p,) = g(on, lambda: [g(more, lambda: [long(both, x[1])], 0.5)[0] * early], 0.25)
    (s,) = g(more, lambda: [g(on, lambda: [long(both, early)], 0.75)[0] * long(x[1], both)], x[3])
    (r,) = g(on, lambda: [long(s, p) * g(more, lambda: [long(both, s)], 0.5)[0]], x[2])
    return [[p, s, r]]


FUNCTIONS = [simple, flowing, nested, across, crossed]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_guard_is_a_choice_in_every_way_to_run_it(function, dtype):
    kernel = Kernel("guarded", *ONE, function, dtype=dtype)
    plain = Kernel("plain", *ONE, lambda x: function(x, chosen), dtype=dtype)
    tolerance = 1e-13 if dtype == "float64" else 1e-5
    for kind in KINDS:
        x = rows(kind, 37, dtype=dtype)
        expected = plain.batch(x)
        np.testing.assert_allclose(kernel.batch(x), expected, rtol=tolerance)
        np.testing.assert_allclose(kernel.python(x), expected, rtol=tolerance)
        np.testing.assert_allclose(kernel(x[5]), expected[5], rtol=tolerance)
        np.testing.assert_allclose(kernel.python(x[5]), expected[5], rtol=tolerance)
        np.testing.assert_allclose(evaluated(kernel.program(), x[5]), expected[5:6], rtol=tolerance)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_what_neighbours_need_changes_no_bit_of_a_row(function, dtype):
    kernel = Kernel("guarded", *ONE, function, dtype=dtype)
    for count in (1, 7, 33):
        x = rows("some", count, dtype=dtype)
        together = kernel.batch(x)
        alone = [kernel.batch(np.tile(row, (16, 1)))[3] for row in x]
        np.testing.assert_array_equal(together, alone)


@settings(max_examples=6)
@given(outside=recipes(4, 10), within=recipes(6, 25), seed=st.integers(0, 2**20), kind=st.sampled_from(KINDS))
def test_any_text_in_a_guard_gives_the_bits_of_a_choice(outside, within, seed, kind):
    def function(x: list[Any], g: Any) -> list[list[Any]]:
        before = follow(outside, x)

        def block() -> list[Any]:
            values = follow(within, before[-6:])
            return [values[-1], values[-2] * values[-3], values[-1] + values[-4]]

        a, b, c = g(x[0] > 0.0, block, before[-1], 0.0, x[1])
        return [[a, b + before[-2], c]]

    kernel = Kernel("guarded", *ONE, lambda x: function(x, guard))
    plain = Kernel("plain", *ONE, lambda x: function(x, chosen))
    x = rows(kind, 11, seed)
    np.testing.assert_array_equal(kernel.batch(x), plain.batch(x))
    np.testing.assert_array_equal(kernel(x[4]), plain(x[4]))


def test_rollouts_are_the_steps_of_single_states():
    def function(x: list[Any]) -> list[list[Any]]:
        a, b, _ = simple(x)[0]
        return [[0.9 * x[0] - 0.3 * b, 0.5 * x[1] + 0.05 * a, x[2], 1.0 - x[3]]]

    kernel = Kernel("walk", [("x", 4)], [("x1", (4,))], function, feedback={"x1": "x"})
    x = rows("some", 37)
    rolled = x[None].copy()
    kernel.rollout_runner().roll([rolled], 37, [0, 25], lambda *reached: None, threads=1)
    alone = x.copy()
    for _ in range(25):
        alone = np.array([kernel(row) for row in alone])
    np.testing.assert_array_equal(rolled[0], alone)
    assert 0 < np.sum(alone[:, 0] > 0.0) < 37  # some need the block in the end, and some do not


@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_code_branches(function):
    program = Kernel("guarded", *ONE, function).program()
    for code, _ in (single_module(program, 8, "k"), batch_module(program, 8, "k")):
        branches = re.findall(r"br i1 %\w+, label %block(\d+), label %after(\d+)", code)
        assert branches and all(a == b for a, b in branches)
        assert re.search(r"phi (double|<8 x double>) \[.*\], \[poison", code)
    plain = Kernel("plain", *ONE, lambda x: function(x, chosen)).program()
    assert "label %block" not in batch_module(plain, 8, "k")[0]


def test_blocks_over_several_chunks_are_skipped_in_each():
    def function(x: list[Any], g: Any = guard) -> list[list[Any]]:
        a, b = g(x[0] > 0.0, lambda: [long(x[1], x[2], 120), long(x[2], x[3], 120)], 0.0, x[1])
        return [[a, b, a - b]]

    program = trace(function, *ONE)
    code, _ = batch_module(program, 8, "k")
    assert code.count("define internal void @chunk") == code.count("label %block") > 2
    kernel = Kernel("guarded", *ONE, function)
    for kind in KINDS:
        x = rows(kind, 21)
        expected = np.array([evaluated(program, row)[0] for row in x])
        np.testing.assert_allclose(kernel.batch(x), expected, rtol=1e-12)
        np.testing.assert_allclose(kernel(x[10]), expected[10], rtol=1e-12)


def test_time_falls_where_no_lane_needs_the_block():
    def function(x: list[Any]) -> list[list[Any]]:
        return [guard(x[0] > 0.0, lambda: [long(x[k], x[3], 100) for k in (1, 2, 3)], 0.0, 0.0, 0.0)]

    kernel = Kernel("guarded", *ONE, function)
    seconds = {}
    for kind in ("all", "none"):
        x = rows(kind, 4096)
        out = kernel.batch(x)
        times = []
        for _ in range(5):
            started = time.thread_time()
            kernel.batch(x, out=out, threads=1)
            times.append(time.thread_time() - started)
        seconds[kind] = min(times)
    assert seconds["none"] < 0.2 * seconds["all"]


def test_only_what_nothing_else_needs_is_inside():
    def function(x: list[Any]) -> list[list[Any]]:
        on = x[0] > 0.0
        early = long(x[1], x[2])  # recorded before, and used in the block alone
        seen = long(x[2], x[3])

        def block() -> list[Any]:
            both = long(x[3], x[1])  # recorded in the block, and used after it too
            return [early * seen + both]

        (a,) = guard(on, block, 0.0)
        return [[a, seen, long(x[3], x[1]) + 1.0]]

    inside = guarded(trace(function, *ONE))
    assert inside["sqrt"] == 12
    assert trace(function, *ONE).counts["sqrt"] == 36


def test_what_is_needed_where_more_holds_too_stays_inside():
    program = trace(across, *ONE)
    inside, (on, more) = paths(program), [n for n in program.order if OPERATIONS[program.nodes[n][0]].truth]
    by_path = Counter(inside.get(n, ()) for n in program.order if program.nodes[n][0] == SQRT)
    assert by_path == {(on,): 24, (more, on): 12, (more,): 12}


def test_a_choice_waits_until_it_is_read():
    def function(x: list[Any]) -> list[list[Any]]:
        found = [guard(x[0] > 0.1 * k, lambda k=k: [long(x[k], x[3])], 0.0)[0] for k in range(3)]
        return [[found[0] * x[1], found[2] * x[2], found[1] * x[3]]]

    program = trace(function, *ONE)
    line, _ = blocks(program)
    for n in (n for n in line if program.nodes[n][0] == GUARD):
        assert n in program.nodes[line[line.index(n) + 1]][1:]


def test_counts_name_what_is_inside():
    kernel = Kernel("guarded", *ONE, simple)
    assert kernel.counts["sqrt"] == kernel.guarded["sqrt"] == 24
    assert kernel.counts["select"] == 2 and kernel.guarded["select"] == 0
    assert kernel.counts["mul"] > kernel.guarded["mul"] > 24
    assert all(kernel.sparsity[0])
    plain = Kernel("plain", *ONE, lambda x: simple(x, chosen))
    assert plain.counts == kernel.counts and not any(plain.guarded.values())


def test_a_choice_inside_a_guard_on_its_own_condition_costs_nothing():
    kernel = Kernel("guarded", *ONE, flowing)
    # r is used in the second block alone; p, s and the last output are choices outside.
    assert kernel.counts["select"] == 3


def test_blocks_keep_an_order_of_evaluation():
    for function in FUNCTIONS:
        program = trace(function, *ONE)
        line, _ = blocks(program)
        place = {n: k for k, n in enumerate(line)}
        assert sorted(line) == program.order
        for n in line:
            assert all(place.get(operand, -1) < place[n] for operand in program.nodes[n][1:])


def test_plain_numbers_skip_the_text_and_wrong_counts_are_refused():
    def never() -> list[Any]:
        raise AssertionError

    assert guard(False, never, 1.0, 2.0) == [1.0, 2.0]
    assert guard(True, lambda: [3.0], 1.0) == [3.0]
    none = np.zeros(3, bool)
    assert guard(none, never, 1.0) == [1.0]
    some = np.array([True, False, True])
    np.testing.assert_array_equal(guard(some, lambda: [np.arange(3.0)], 7.0)[0], [0.0, 7.0, 2.0])
    with pytest.raises(TypeError, match="return 2 and 1 numbers"):
        guard(some, lambda: [1.0, 2.0], 0.0)
    with pytest.raises(TypeError, match="return 2 and 1 numbers"):
        trace(lambda x: [guard(x[0] > 0.0, lambda: [x[1], x[2]], 0.0)], [("x", 3)], [("y", (1,))])


def test_both_branches_may_be_long():
    """Each is guarded by its own condition: a state runs one of them."""

    def function(x: list[Any]) -> list[list[Any]]:
        kept = zeros(2)

        def then() -> list[Any]:
            kept[0] = long(x[1], x[2])
            return [kept[0] + 1.0, x[3]]

        def otherwise() -> list[Any]:
            kept[1] = long(x[2], x[3])
            return [kept[1] - 1.0, kept[1]]

        return [[*cond(x[0] > 0.0, then, otherwise), kept[0] - kept[1]]]

    program = trace(function, *ONE)
    conditions = set(paths(program).values())
    assert len(conditions) == 2  # the two branches
    assert sum(guarded(program).values()) > 1.8 * sum(guarded(trace(half, *ONE)).values())
    kernel = Kernel("both", *ONE, function, reproducible=True)
    for kind in KINDS:
        x = rows(kind, 9)
        batch = kernel(x)
        for k, row in enumerate(x):
            np.testing.assert_array_equal(kernel(row), batch[k])
            np.testing.assert_allclose(batch[k], np.ravel(function(row.tolist())), rtol=1e-13)


def half(x: list[Any]) -> list[list[Any]]:
    y = cond(x[0] > 0.0, lambda: long(x[1], x[2]), lambda: 0.0)
    return [[y, x[3], 0.0]]


def test_symbols_choose():
    sympy = pytest.importorskip("sympy")
    x = sympy.Symbol("x")
    (y,) = guard(x > 0, lambda: [x * x], 0.0)
    assert (y.subs(x, 3.0), y.subs(x, -3.0)) == (9.0, 0.0)
