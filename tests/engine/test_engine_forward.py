"""Derivatives of kernels with loops: against 50 digits, complex steps, and straight lines' at kinks."""

from __future__ import annotations

import fifty_digits
import numpy as np
import pytest
from loop_programs import ARRAYS, SIZE, Program

import robokit as rk
from robokit.engine import Kernel
from robokit.engine.loops.dual import jvp
from robokit.engine.loops.kernel import ArrayOf, LoopKernel
from robokit.engine.passes.derivative import along
from robokit.spatial.control_flow import call, cond, for_range, while_loop
from robokit.spatial.scalars import atan2, cos, floor, maximum, minimum, sin, sqrt, where

OUT = ArrayOf("out", (1,), "out")


def solve_in_place(n, A, x):
    """x solves A x = b by LDL^T, where it is b at first; the factors are left in A."""

    def column(k):
        inverse = 1.0 / A[k, k]

        def row(r):
            i = k + 1 + r
            scaled = A[i, k] * inverse
            for_range(
                r + 1, lambda c: A.__setitem__((i, k + 1 + c), A[i, k + 1 + c] - scaled * A[k + 1 + c, k])
            )

        for_range(n - 1 - k, row)
        for_range(n - 1 - k, lambda r: A.__setitem__((k + 1 + r, k), A[k + 1 + r, k] * inverse))

    def forward(i):
        x[i] = for_range(i, lambda j, rest: rest - A[i, j] * x[j], x[i])

    def backward(r):
        i = n - 1 - r
        x[i] = for_range(r, lambda c, rest: rest - A[i + 1 + c, i] * x[i + 1 + c], x[i] / A[i, i])

    for_range(n, column)
    for_range(n, forward)
    for_range(n, backward)


@pytest.fixture(scope="module")
def ldlt():
    arrays = [ArrayOf("A", ("n", "n"), "inout"), ArrayOf("x", ("n",), "inout")]
    return LoopKernel("ldlt", solve_in_place, ["n"], arrays).forward(("A", "x"))


def definite(rng, *shape):
    M = rng.normal(size=(*shape, shape[-1]))
    return M @ M.swapaxes(-1, -2) + shape[-1] * np.eye(shape[-1])


@pytest.mark.parametrize("n", [1, 2, 5, 12])
def test_a_solver_of_run_time_size(ldlt, n):
    rng = np.random.default_rng(n)
    A, dA, b, db = definite(rng, 5, n), rng.normal(size=(5, n, n)), *rng.normal(size=(2, 5, n))
    dA = dA + dA.swapaxes(1, 2)
    many = ldlt(A=A, x=b, dA=dA, dx=db)
    for k in range(5):
        x = np.linalg.solve(A[k], b[k])
        exact = np.linalg.solve(A[k], db[k] - dA[k] @ x)
        one = ldlt(A=A[k], x=b[k], dA=dA[k], dx=db[k])
        for found in (one["dx"], many["dx"][k]):
            assert np.abs(found - exact).max() < 1e-13 * np.abs(exact).max()
        np.testing.assert_allclose(one["x"], x, rtol=1e-12)
    half = ldlt(A=A, x=b, dA=dA, dx=db, dtype="float32")["dx"]
    assert np.abs(half - many["dx"]).max() < 1e-4 * np.abs(many["dx"]).max()


def test_a_solver_against_fifty_digits(ldlt):
    n, rng = 6, np.random.default_rng(7)
    A, dA, b, db = definite(rng, n), rng.normal(size=(n, n)), *rng.normal(size=(2, n))
    dA = dA + dA.T
    kernel = LoopKernel("ldlt", solve_in_place, ["n"], ldlt.arrays[:2])
    exact = fifty_digits.along(fifty_digits.of_kernel(kernel, {"n": n}), (A, b), (dA, db))
    found = ldlt(A=A, x=b, dA=dA, dx=db)
    got = np.concatenate([found["dA"].ravel(), found["dx"]])
    assert np.abs(got - exact).max() < 2e-15 * np.abs(exact).max()


def newton(p, out):
    """The root of u³ + a u = b, iterated until it settles."""
    a, b = p[0], p[1]
    miss = lambda u: u * u * u + a * u - b  # noqa: E731
    step = lambda u, k: (u - miss(u) / (3.0 * u * u + a), k + 1)  # noqa: E731
    out[0] = while_loop(lambda u, k: (k < 50) & (abs(miss(u)) > 1e-14), step, 1.0, 0)[0]


def test_an_iteration_whose_turns_are_counted_at_run_time():
    kernel = LoopKernel("newton", newton, [], [ArrayOf("p", (2,)), OUT]).forward("p")
    rng = np.random.default_rng(0)
    p, dp = rng.uniform(0.5, 9.0, (13, 2)), rng.normal(size=(13, 2))
    found = kernel(p=p, dp=dp)
    u = found["out"][:, 0]  # by the implicit function theorem, at the root
    exact = (dp[:, 1] - dp[:, 0] * u) / (3.0 * u * u + p[:, 0])
    assert np.abs(found["dout"][:, 0] / exact - 1.0).max() < 1e-7  # one turn behind the root
    plain = kernel(p=p, dp=dp, engine="python")
    np.testing.assert_allclose(found["dout"], plain["dout"], rtol=1e-13)


def gauss_seidel(n, sweeps, A, b, x):
    """Some sweeps over the rows of A x + b, x not below 0."""

    def row(i):
        rest = for_range(n, lambda j, sum_: sum_ + A[i, j] * x[j], b[i])
        x[i] = maximum(x[i] - rest / A[i, i], 0.0)

    for_range(n, lambda i: x.__setitem__(i, 0.0))
    for_range(sweeps, lambda _: for_range(n, row))


def test_sweeps_over_contacts_against_fifty_digits():
    arrays = [ArrayOf("A", ("n", "n")), ArrayOf("b", ("n",)), ArrayOf("x", ("n",), "out")]
    kernel = LoopKernel("sweeps", gauss_seidel, ["n", "sweeps"], arrays)
    for n in (1, 4, 9):
        rng = np.random.default_rng(n)
        A, dA, b, db = definite(rng, n), rng.normal(size=(n, n)), *rng.normal(size=(2, n))
        run = fifty_digits.of_kernel(kernel, {"n": n, "sweeps": 7})
        exact = fifty_digits.along(run, (A, b), (dA, db))
        found = kernel.forward(["A", "b"])(sweeps=7, A=A, b=b, dA=dA, db=db)["dx"]
        assert np.abs(found - exact).max() < 1e-14 * max(1.0, np.abs(exact).max())


def sums(most, count, x, out):
    """Products of the first so many entries, and their sum: every lane has a count of its own."""

    def outer(i, total):
        part = for_range(i + 1, lambda j, product: product * cos(x[j]) + sin(x[i] * x[j]), 0.25)
        return total + part / (1.0 + x[i] * x[i])

    out[0] = for_range(count[0], outer, 0.0)


def test_counts_of_each_lane_against_a_complex_step_and_the_bits_of_single_runs():
    arrays = [ArrayOf("count", (1,), "in", "integer"), ArrayOf("x", ("most",)), OUT]
    kernel = LoopKernel("sums", sums, ["most"], arrays, reproducible=True).forward("x")
    rng = np.random.default_rng(0)
    x, dx, count = rng.normal(size=(11, 8)), rng.normal(size=(11, 8)), np.arange(11)[:, None] % 9
    many = kernel(x=x, dx=dx, count=count)
    plain = kernel(x=x, dx=dx, count=count, engine="python")
    for k in range(11):
        out = np.zeros(1, complex)
        sums(8, count[k], x[k] + 1e-30j * dx[k], out)
        assert many["dout"][k, 0] == pytest.approx(out[0].imag * 1e30, rel=1e-13, abs=1e-13)
        one = kernel(x=x[k], dx=dx[k], count=count[k])
        for name in ("out", "dout"):
            assert one[name] == many[name][k] == plain[name][k]


def test_calls_that_are_nested():
    def inner(a, b):
        return a * sin(b), b / (2.0 + a * a)

    def middle(x, k, scale):
        return call(inner, x[k], scale)[0] + call(inner, scale, x[k])[1] + call(inner, x[k], 0.5)[1]

    def function(n, x, out):
        out[0] = for_range(n, lambda k, total: total + call(middle, x, k, total * 0.1 + 1.0), 0.0)

    kernel = LoopKernel("calls", function, ["n"], [ArrayOf("x", ("n",)), OUT])
    rng = np.random.default_rng(1)
    x, dx = rng.normal(size=(2, 5))
    exact = fifty_digits.along(fifty_digits.of_kernel(kernel, {"n": 5}), (x,), (dx,))
    forward = kernel.forward("x")
    assert forward(x=x, dx=dx)["dout"] == pytest.approx(exact, rel=1e-14)
    functions = forward.record().functions
    assert len(functions) < 8  # not one a call: the body of the loop is recorded once, and so are they


def test_second_derivatives_and_derivatives_inside_functions():
    def function(n, x, out):
        product = for_range(n, lambda k, p: p * (x[k] + 0.5), 1.0)
        # d/dy (y x0 + sin(y product)) at y = x1: a derivative that depends on x in turn
        _, slope = jvp(lambda y: y * x[0] + sin(y * product), (x[1],), (1.0,))
        out[0] = cond(product > 0.0, lambda: slope * product, lambda: slope)

    kernel = LoopKernel("twice", function, ["n"], [ArrayOf("x", ("n",)), OUT], reproducible=True)
    rng = np.random.default_rng(5)
    for _ in range(4):
        x, dx, other = rng.normal(size=(3, 4))
        first, run = kernel.forward("x"), fifty_digits.of_kernel(kernel, {"n": 4})
        exact = fifty_digits.along(run, (x,), (dx,))
        assert first(x=x, dx=dx)["dout"] == pytest.approx(exact, rel=1e-13)
        second = first.forward(("x", "dx"))
        assert {a.name for a in second.arrays} == {"x", "out", "dx", "dout", "d2x", "d2out", "d2dx", "d2dout"}
        found = second(x=x, dx=dx, d2x=other, d2dx=np.zeros(4))
        h = 1e-5
        difference = first(x=x + h * other, dx=dx)["dout"] - first(x=x - h * other, dx=dx)["dout"]
        assert found["d2dout"] == pytest.approx(difference / (2.0 * h), rel=1e-7, abs=1e-7)
        back = second(x=x, dx=other, d2x=dx, d2dx=np.zeros(4))["d2dout"]
        assert found["d2dout"] == pytest.approx(back, rel=1e-13)  # the Hessian is symmetric
        assert found["d2dout"] == second(x=x, dx=dx, d2x=other, d2dx=np.zeros(4), engine="python")["d2dout"]


def test_a_number_of_an_inner_derivation_is_constant_for_the_outer_one():
    # The classic case: d/dx (x d/dy (x + y)) is 1, and 2 where the two derivations are mixed up.
    assert jvp(lambda x: x * jvp(lambda y: x + y, (1.0,), (1.0,))[1], (3.0,), (1.0,)) == (3.0, 1.0)
    found = jvp(lambda x: jvp(lambda y: x * y * y, (2.0,), (x,))[1], (3.0,), (1.0,))
    assert found == (36.0, 24.0)


def test_several_directions_share_the_values():
    def function(n, x, out):
        for_range(n, lambda k: out.__setitem__(k, sin(x[k]) * x[n - 1 - k]))

    kernel = LoopKernel("several", function, ["n"], [ArrayOf("x", ("n",)), ArrayOf("out", ("n",), "out")])
    x = np.random.default_rng(2).normal(size=3)
    J = np.diag(np.cos(x) * x[::-1]) + np.diag(np.sin(x))[:, ::-1]
    in_lanes = kernel.forward("x")(x=x, dx=np.eye(3))  # a direction in each lane
    at_once = kernel.forward("x", directions=3)
    np.testing.assert_allclose(in_lanes["dout"], J.T, atol=1e-15)
    np.testing.assert_allclose(at_once(x=x, dx=np.eye(3))["dout"], J.T, atol=1e-15)
    many = at_once(x=np.tile(x, (5, 1)), dx=np.tile(np.eye(3), (5, 1, 1)))["dout"]
    np.testing.assert_allclose(many, np.tile(J.T, (5, 1, 1)), atol=1e-15)


KINKS = [
    lambda x: [abs(x[0])],
    lambda x: [maximum(x[0], x[1])],
    lambda x: [minimum(x[0], x[1])],
    lambda x: [maximum(x[0], 0.0)],
    lambda x: [where(x[0] > 0.0, sqrt(x[0]), x[1])],
    lambda x: [sqrt(x[0])],
    lambda x: [atan2(x[0], x[1])],
    lambda x: [atan2(x[0] + 1.0, x[1] - 1.0)],
    lambda x: [floor(x[0]) * x[1]],
    lambda x: [x[0] ** 1.5 + x[1] ** 3],
    lambda x: [(x[0] + 0.25) % 1.0 + x[1] // 0.5],
    lambda x: [np.hypot(x[0], 3.0) * np.exp(x[1])],
    lambda x: [np.maximum(x[0], np.float64(0.5)) * np.float64(2.0) + np.float64(1.0) / (x[1] + 3.0)],
    lambda x: [np.array([x[0], 2.0]) @ np.array([x[1], x[0]]) + (x[1] * np.array([1.0, x[0]])).sum()],
]


@pytest.mark.parametrize("number", range(len(KINKS)))
def test_kinks_are_those_of_straight_lines(number):
    function = KINKS[number]

    def written(x, out):
        out[0] = function(x)[0]

    loops = LoopKernel("kink", written, [], [ArrayOf("x", (2,)), OUT], reproducible=True).forward("x")
    slope = along(lambda x: [function(x)], [("x", 2)], [("y", (1,))], [0])
    line = Kernel(
        "kink", [("x", 2), ("dx", 2)], [("dy", (1,))], lambda x, dx: slope(x, dx)[1], reproducible=True
    )
    for x in ([0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.25, -0.5], [-1.0, -1.0]):
        for d in ([1.0, 0.0], [0.0, 1.0], [-0.5, 2.0]):
            np.testing.assert_array_equal(loops(x=x, dx=d)["dout"], np.ravel(line(np.array(x), np.array(d))))


MOVING = [a.name for a in ARRAYS if a.kind == "real"]


def program(seed, rows):
    """A random program's kernel, the size of its arrays, and what they hold, directions after it."""
    kernel = LoopKernel("random", Program(seed, angles=True), ["n"], ARRAYS, reproducible=True)
    rng, n = np.random.default_rng(seed), seed % 4 + 1
    given = {}
    for a in kernel.forward(MOVING).arrays:
        shape = [n if size == "n" else size for size in a.shape]
        shape = shape if a.shared else [rows, *shape]
        integer = a.kind == "integer"
        given[a.name] = rng.integers(-1, SIZE, shape) if integer else rng.uniform(-1.5, 1.5, shape)
    return kernel, n, given


def disagreements(seeds, rows=9):
    """Random programs whose derivatives alone, in a batch and by Python are not the same bits."""
    wrong = []
    for seed in seeds:
        kernel, n, given = program(seed, rows)
        forward = kernel.forward(MOVING)
        many, plain = forward(n=n, **given), forward(n=n, **given, engine="python")
        shared = [a.name for a in forward.arrays if a.shared]
        for row in range(rows):
            one = forward(n=n, **{name: x if name in shared else x[row] for name, x in given.items()})
            for name, x in one.items():
                if not np.array_equal(x, many[name][row]) or not np.array_equal(x, plain[name][row]):
                    wrong.append((seed, row, name))
    return wrong


def test_random_programs_have_the_same_derivatives_alone_in_lanes_and_by_python():
    assert disagreements(range(5)) == []


@pytest.mark.slow
def test_more_random_programs():
    assert disagreements(range(1000, 1080)) == []


def far_from_fifty_digits(seeds):
    """Random programs whose derivatives are not those of a difference quotient in 60 digits."""
    wrong = []
    for seed in seeds:
        kernel, n, given = program(seed, 1)
        given = {name: x if name in ("table", "index") else x[0] for name, x in given.items()}
        integers = {name: given[name].tolist() for name in ("m", "k", "index")}
        run = fifty_digits.of_kernel(kernel, {"n": n}, integers)
        x = [given[name] for name in MOVING]
        d = [given[f"d{name}"] for name in MOVING]
        found = kernel.forward(MOVING)(n=n, **given, engine="python")
        got = np.concatenate([found["dx"].ravel(), found["dy"].ravel(), np.zeros(SIZE)])
        exact = fifty_digits.along(run, x, [each.reshape(own.shape) for each, own in zip(d, x, strict=True)])
        if np.abs(got - exact).max() > 1e-12 * max(1.0, np.abs(exact).max()):
            wrong.append(seed)
    return wrong


def test_random_programs_against_fifty_digits():
    assert far_from_fifty_digits(range(100)) == []


@pytest.mark.slow
def test_more_random_programs_against_fifty_digits():
    assert far_from_fifty_digits(range(1000, 3000)) == []


def test_errors_say_what_is_wrong():
    def function(n, x, k, out):
        out[0] = x[0]

    arrays = [ArrayOf("x", ("n",)), ArrayOf("k", (1,), "in", "integer"), OUT]
    kernel = LoopKernel("wrong", function, ["n"], arrays)
    with pytest.raises(rk.UnknownName, match="input named 'z'"):
        kernel.forward("z")
    with pytest.raises(rk.UnknownName, match="input named 'out'"):
        kernel.forward(["x", "out"])
    for wrong in ("x", 0, 2.0):
        with pytest.raises(rk.ShapeError, match=f"directions: expected a whole number >= 1, got {wrong!r}"):
            kernel.forward("x", wrong)
    with pytest.raises(rk.WrongType, match="k"):
        kernel.forward("k")
    with pytest.raises(TypeError, match="no branch"):
        jvp(lambda x: x if x > 0.0 and x else -x, (1.0,), (1.0,))
    with pytest.raises(TypeError, match=r"zeros\(\)"):
        jvp(lambda x: np.zeros(2).__setitem__(0, x), (1.0,), (1.0,))


def test_arrays_without_dimensions():
    assert jvp(lambda a: for_range(3, lambda k, s: s * a, 1.0), (np.array(2.0),), (1.0,)) == (8.0, 12.0)

    def function(x, still, out):
        call(lambda a, b, c: c.__setitem__((), a[()] * a[()] * b[()]), x, still, out)

    arrays = [ArrayOf("x", ()), ArrayOf("still", ()), ArrayOf("out", (), "out")]
    slope = LoopKernel("product", function, [], arrays).forward("x")
    for engine in (None, "python"):
        assert slope(x=3.0, still=2.0, dx=1.0, engine=engine)["dout"] == 12.0
