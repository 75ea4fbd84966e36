"""The words of control_flow mean the same on every kind of scalar: one source, a dozen small programs."""

from __future__ import annotations

import numpy as np
import pytest
from for_each import for_each

from robokit.engine import Kernel
from robokit.engine.loops.interpret import interpret
from robokit.engine.loops.recorded_once import RecordedOnce, recorded_with_loops
from robokit.engine.passes.replay import evaluated
from robokit.engine.trace.record import RunTimeLoop, trace
from robokit.spatial.control_flow import call, cond, for_range, vmap, while_loop, whole, zeros
from robokit.spatial.scalars import cos, sin, sqrt, where


def power_sum(x, n):
    return [for_range(n, lambda k, s: s * x[0] + x[1] * (k + 1.0), 0.0)]


def whole_numbers(x, n):
    """A whole number that stays one, beside a real one."""
    return list(for_range(n, lambda k, s, c: (s + c * x[0], c + 2 * k), 0.0, 1))


def newton(x, n):
    a = x[2] * x[2] + 1.0
    return [while_loop(lambda r: abs(r * r - a) > 1e-13 * a, lambda r: 0.5 * (r + a / r), a, most=60)]


def counted_newton(x, n):
    """At most n turns."""
    a = x[2] * x[2] + 1.0
    return [while_loop(lambda r: abs(r * r - a) > 1e-13 * a, lambda r: 0.5 * (r + a / r), a, most=3)]


def bisection(x, n):
    f = lambda t: t * t * t + t - x[3]  # noqa: E731

    def halve(low, high):
        middle = 0.5 * (low + high)
        return cond(f(middle) > 0.0, lambda: (low, middle), lambda: (middle, high))

    return list(while_loop(lambda low, high: high - low > 1e-9, halve, -3.0, 3.0))


def branches(x, n):
    def then():
        y = sin(x[0])
        return [y * y, (x[1], 1.0)]

    found = cond(x[0] > x[1], then, lambda: [cos(x[1]), (x[0] * 2.0, 0.0)])
    return [found[0], *found[1]]


def nested(x, n):
    inner = lambda k: lambda j, s: s + cond(x[0] > 0.1 * j, lambda: x[0] * (k + j), lambda: -x[1])  # noqa: E731
    return [for_range(n, lambda k, s: for_range(k + 1, inner(k), s), 0.0)]


def memory(x, n):
    """A sort, in memory."""
    a = zeros(4)
    for k in range(4):
        a[k] = x[k]

    def swap(j):
        low, high = cond(a[j] > a[j + 1], lambda: (a[j + 1], a[j]), lambda: (a[j], a[j + 1]))
        a[j], a[j + 1] = low, high

    for_range(n, lambda i: for_range(3, swap))
    return [a[k] for k in range(4)]


def writes(x, n):
    """Branches and turns that are not taken write nothing."""
    a = zeros(2, 2)

    def put(i, value):
        a[i, 1 - i] = value
        return value

    found = cond(x[0] > 0.0, lambda: put(0, x[1]), lambda: put(1, x[2]))

    def again(k):
        put(0, a[0, 1] + k * x[3])

    for_range(n, again)
    return [found, a[0, 1], a[1, 0], a[0, 0]]


def calls(x, n):
    def long(p, q):
        for _ in range(6):
            p, q = 0.5 * (p * q + 1.0), sqrt(p * p + q * q)
        return p, q

    p, q = call(long, x[0], x[1])
    p, q = call(long, p + x[2], q)
    return [p, q, *call(long, 1.0, x[3])]


def columns(x, n):
    def long(p, q):
        for _ in range(12):
            p, q = 0.5 * p * q + 0.25, 0.3 * p * p + q
            q = q / (1.0 + q * q)
        return [p + x[3], q]

    return [v for pair in vmap(long)(x[:3], [1.0, x[0], 2.0]) for v in pair]


def early_exit(x, n):
    """Two loops in one, of which the inner one stops at different turns."""

    def step(k, s):
        return while_loop(lambda t: t < s + x[1] * x[1] + 0.5, lambda t: t + 0.25, s)

    return [for_range(n, step, x[0])]


PROGRAMS = [
    power_sum, whole_numbers, newton, counted_newton, bisection, branches, nested, memory, writes, calls,
    columns, early_exit,
]  # fmt: skip
COUNTS = [0, 1, 2, 3, 4, 2.75]
X = np.random.default_rng(5).uniform(-1.5, 1.5, (len(COUNTS), 4))

programs = pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)


def expected(program):
    return np.array([program(x.tolist(), n) for x, n in zip(X, COUNTS, strict=True)], float)


@programs
def test_columns_of_numpy(program):
    found = program(list(X.T), np.array(COUNTS))
    np.testing.assert_allclose(
        np.array(np.broadcast_arrays(*found)).T, expected(program), rtol=1e-13, atol=1e-14
    )


@programs
@pytest.mark.parametrize(
    "shares", [{}, {"shares": "large", "columns": 4}, {"shares": True}, {"shares": "asked"}]
)
def test_straight_lines(program, shares):
    """What is known while recording is unrolled; a loop that is not known says so."""
    size = len(expected(program)[0])
    for x, n in zip(X, COUNTS, strict=True):
        function = lambda x, n=n: [program(x, n)]  # noqa: E731
        try:
            made = trace(function, [("x", 4)], [("y", (size,))], **shares)
        except RunTimeLoop:
            assert program in (newton, counted_newton, bisection, early_exit)
            return
        found = evaluated(made, x.tolist())[0]
        np.testing.assert_allclose(found, np.array(program(x.tolist(), n), float), rtol=1e-13, atol=1e-14)
    assert program not in (newton, counted_newton, bisection)


@programs
def test_recordings_with_loops_played_back(program):
    """Over numbers, over columns, and over another recording."""
    y = expected(program)
    function = lambda x, n: [program(x, n[0])]  # noqa: E731
    shape = [("x", 4), ("n", 1)], [("y", (y.shape[1],))]
    graph = recorded_with_loops(function, *shape)
    again = RecordedOnce(function, *shape)
    again.__dict__["_recorded"] = graph
    for x, n, row in zip(X, COUNTS, y, strict=True):
        outs = zeros(len(row))
        interpret(graph, [x.tolist(), [n], outs])
        np.testing.assert_allclose(outs.astype(float), row, rtol=1e-14, atol=1e-15)
    found = again.again(list(X.T), [np.array(COUNTS)])[0]
    np.testing.assert_allclose(np.array(np.broadcast_arrays(*found)).T, y, rtol=1e-14, atol=1e-15)
    twice = recorded_with_loops(again, *shape)
    outs = zeros(y.shape[1])
    interpret(twice, [X[3].tolist(), [COUNTS[3]], outs])
    np.testing.assert_allclose(outs.astype(float), y[3], rtol=1e-14, atol=1e-15)


COMPILED = [whole_numbers, bisection, nested, writes, calls, early_exit]


def together(x, n):
    """Some programs in one function: they compile at once."""
    return [v for program in COMPILED for v in program(x, n)]


def test_machine_code():
    """Alone, in lanes that differ, and by Python, bit for bit where that is asked for."""
    y = expected(together)
    function = RecordedOnce(lambda x, n: [together(x, n[0])], [("x", 4), ("n", 1)], [("y", (y.shape[1],))])
    n = np.array(COUNTS)[:, None]
    for reproducible in (False, True):
        kernel = Kernel(
            "words",
            function.inputs,
            function.outputs,
            function,
            looped=function.looped,
            reproducible=reproducible,
        )
        batch = kernel(X, n)
        np.testing.assert_allclose(batch, y, rtol=1e-12, atol=1e-13)
        for k in range(len(X)):
            np.testing.assert_array_equal(kernel(X[k], n[k]), batch[k])
    np.testing.assert_array_equal(kernel.python(X, n), batch)
    np.testing.assert_array_equal(kernel.python(X[2], n[2]), batch[2])


@pytest.mark.parity
@programs
def test_jax_traces_counts_and_tests(program):
    import jax

    jax.config.update("jax_enable_x64", True)
    function = jax.jit(lambda x, n: program(list(x), n))
    if program in (memory, writes):  # memory from before a loop of JAX
        with pytest.raises(TypeError, match="make the memory in it"):
            function(X[1], COUNTS[1])
    else:
        for x, n in zip(X, COUNTS, strict=True):
            wanted = np.array(program(x.tolist(), n), float)
            np.testing.assert_allclose(np.array(function(x, n)), wanted, rtol=1e-12, atol=1e-13)


def symbols():
    import casadi
    import sympy

    return sympy.symbols("a b c d"), [casadi.SX.sym(name) for name in "abcd"]


@pytest.mark.parity
def test_symbols_choose_but_have_no_loops_of_unknown_length():
    for x in symbols():
        found = power_sum(x, 2)[0]
        assert str(branches(x, 0)[0]) and str(found)
        for program in (newton, lambda x, n: power_sum(x, x[0])):
            with pytest.raises(TypeError, match="no loops whose length is known only at run time"):
                program(list(x), 1)


def test_derivatives_of_numbers_go_through():
    """Complex step, which is one more kind of scalar."""
    h = 1e-30
    found = power_sum([complex(0.7, h), 0.3], 3)[0].imag / h
    assert found == pytest.approx(2 * 0.7 * 0.3 + 2 * 0.3)


def test_counts_and_whole_numbers():
    assert for_range(2.99, lambda k, s: s + 1, 0) == 2 and for_range(-3, lambda k, s: s + 1, 0) == 0
    assert for_range(np.int64(2), lambda k, s: s + 1, 0) == 2
    assert whole(-0.5) == -1 and whole(np.array([1.5, -1.5])).tolist() == [1, -2]
    for wrong in (np.nan, np.inf, 3e9, np.array([0.0, np.nan])):
        with pytest.raises(ValueError, match="NaN, or beyond 32 bits"):
            for_range(wrong, lambda k, s: s, 0.0)


@for_each(
    "wrong, message",
    [
        (lambda: for_range(2, lambda k, s: (s, s), 0.0), "carries 1 numbers and returned 2"),
        (lambda: for_range(2, lambda k, s: None, 0.0), "carries 1 numbers and returned nothing"),
        (lambda: for_range(2, lambda k, s, t: None, 0.0, 1.0), "carries 2 numbers and returned nothing"),
        (lambda: for_range(2, lambda k, s: s + 0.5, 0), "0.0 is a real number and 0 a whole one"),
        (lambda: for_range(2, lambda k, s: 1, 0.0), "0.0 is a real number and 0 a whole one"),
        (lambda: for_range(2, lambda k: 1.0), "carries 0 numbers and returned 1"),
        (lambda: while_loop(lambda s: s, lambda s: s - 1.0, 2.0), "outcome of a comparison"),
        (lambda: cond(1.0, lambda: 1.0, lambda: 2.0), "outcome of a comparison"),
        (lambda: cond(np.array([True, False]), lambda: [1.0], lambda: [1.0, 2.0]), "return 1 and 2 numbers"),
        (lambda: zeros(3).__setitem__(slice(0, 2), 1.0), "one element at a time"),
    ],
)
def test_errors_say_what_to_do(wrong, message):
    with pytest.raises((TypeError, IndexError), match=message):
        wrong()


def test_a_choice_in_columns_does_not_ask_for_more_than_is_needed():
    def never():
        raise AssertionError

    assert cond(np.array([True, True]), lambda: 1.0, never) == 1.0
    assert cond(np.array([False, False]), never, lambda: 2.0) == 2.0
    np.testing.assert_array_equal(where(np.array([True, False]), 1.0, 2.0), [1.0, 2.0])


def test_text_is_no_count_of_turns():
    with pytest.raises(TypeError, match="count: expected a number of turns, got '3'"):
        for_range("3", lambda k, s: s + 1.0, 0.0)
