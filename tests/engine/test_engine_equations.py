"""Derivatives of numbers that solve equations, in functions and in kernels with loops, against 50 digits."""

from __future__ import annotations

import fifty_digits
import mpmath as mp
import numpy as np
import pytest
from engine_cases import guard

import robokit as rk
from robokit.dynamics.build import kernel as kernel_of
from robokit.engine import Kernel
from robokit.engine.loops.dual import jvp
from robokit.engine.loops.kernel import ArrayOf, LoopKernel
from robokit.engine.passes.derivative import along, gradient, jacobian, pullback
from robokit.engine.passes.replay import evaluated
from robokit.engine.trace.record import trace
from robokit.spatial import Vector3
from robokit.spatial.control_flow import call, cond, for_range, solution, while_loop, zeros
from robokit.spatial.linear import lu, lu_in_place, lu_solve, lu_solve_in_place, lu_solve_transposed
from robokit.spatial.scalars import cos, maximum, minimum, sin, sqrt, where

P = np.array([3.0, 1.2, 0.7])  # parameters at which the system below has a solution near its start


def residual(u, p):
    """Three equations for three numbers."""
    x, y, z = u
    return [x * x + y * y + z * z - p[0], x * y - p[1] * z, x + sin(y) * p[2] - 0.5 * z]


def matrix(u, p):
    x, y, z = u
    return [[2.0 * x, 2.0 * y, 2.0 * z], [y, x, -p[1]], [1.0, cos(y) * p[2], -0.5]]


def iterated(p, turns=6):
    u = [-1.0, 1.0, -0.9]
    for _ in range(turns):
        step = lu_solve(lu(matrix(u, p)), residual(u, p))
        u = [a - b for a, b in zip(u, step, strict=True)]
    return u


def outputs(u, p):
    return [u[0] * u[1] + sin(u[2]) * p[0]], u


def exact(p, d):
    """The outputs' derivatives along d in 50 digits: a difference quotient of the converged iteration."""
    run = lambda q: [x for row in outputs(iterated(q, 9), q) for x in row]  # noqa: E731
    return fifty_digits.along(run, (p,), (d,))


def function(p):
    return outputs(solution(residual, iterated(p), p), p)


def function_with_solver(p):
    u = iterated(p)
    factors = lu(matrix(u, p))
    return outputs(solution(residual, u, p, solve=lambda b: lu_solve(factors, b)), p)


def function_that_uses_what_is_around(p):
    return outputs(solution(lambda u: residual(u, p), tuple(iterated(p))), p)


FUNCTIONS = [function, function_with_solver, function_that_uses_what_is_around]
IN, OUT = [("p", 3)], [("w", ()), ("u", (3,))]


@pytest.mark.parametrize("f", FUNCTIONS)
def test_a_text_is_differentiated_in_every_mode(f):
    J = np.transpose([exact(P, d) for d in np.eye(3)])
    rows = [*jacobian(f, IN, OUT, [0])(P.tolist())]
    forward = np.concatenate([np.reshape(row, (-1, 3)) for row in rows]).astype(float)
    rows = gradient(f, IN, OUT, [0])(P.tolist())
    reverse = np.concatenate([np.reshape(row, (-1, 3)) for row in rows]).astype(float)
    d, w = [0.3, -0.5, 0.7], [1.0, -2.0, 0.5, 0.25]
    values, slopes = along(f, IN, OUT, [0])(P.tolist(), d)
    pulled = pullback(f, IN, OUT, 1)(P.tolist(), w[:1], w[1:])
    scale = np.abs(J).max()
    assert np.abs(forward - J).max() < 4e-15 * scale and np.abs(reverse - J).max() < 4e-15 * scale
    assert np.abs(np.concatenate(slopes) - J @ d).max() < 4e-15 * scale
    assert np.abs(np.array(pulled[0]) - w @ J).max() < 8e-15 * scale
    assert [*values[0], *values[1]] == [*f(P.tolist())[0], *f(P.tolist())[1]]


@pytest.mark.parametrize("f", FUNCTIONS)
def test_second_derivatives(f):
    run = lambda q: outputs(iterated(q, 9), q)[0]  # noqa: E731
    with mp.workdps(fifty_digits.DIGITS):
        h, p = mp.mpf(10) ** -15, fifty_digits.exact(P)
        e = fifty_digits.exact(np.eye(3)) * h
        second = lambda a, b: run(p + a + b)[0] - run(p + a - b)[0] - run(p - a + b)[0] + run(p - a - b)[0]  # noqa: E731
        H = np.array([[float(second(a, b) / (4 * h * h)) for a in e] for b in e])
    first = [("g", (3,))], [("w", ())]
    slope = gradient(lambda p: f(p)[:1], IN, first[1], [0])
    rows = [along(slope, IN, first[0], [0])(P.tolist(), e.tolist())[1][0] for e in np.eye(3)]
    assert np.abs(np.array(rows, float) - H).max() < 1e-14 * np.abs(H).max()
    twice = jacobian(jacobian(lambda p: f(p)[:1], IN, first[1], [0]), IN, first[0], [0])(P.tolist())[0]
    assert np.abs(np.reshape(twice, (3, 3)).astype(float) - H).max() < 1e-14 * np.abs(H).max()
    back = gradient(gradient(lambda p: f(p)[:1], IN, first[1], [0]), IN, first[0], [0])(P.tolist())[0]
    assert np.abs(np.reshape(back, (3, 3)).astype(float) - H).max() < 1e-14 * np.abs(H).max()


def test_what_is_computed_and_not_differentiated_is_the_same_program():
    solved, plain = (trace(f, IN, OUT) for f in (function, lambda p: outputs(iterated(p), p)))
    assert [solved.nodes[n] for n in solved.order] == [plain.nodes[n] for n in plain.order]
    assert solved.results == plain.results
    more = []
    for turns in (6, 12):  # no turn of the iteration is differentiated
        f = lambda p, turns=turns: outputs(solution(residual, iterated(p, turns), p), p)  # noqa: E731
        derived = trace(jacobian(f, IN, OUT, [0]), IN, [("J", (3,)), ("K", (9,))])
        more.append(derived.flops - trace(f, IN, OUT).flops)
    assert more[0] == more[1] < 100


def test_the_whole_of_a_function_of_a_robot():
    def solved(tree, q, p):
        u = solution(residual, iterated(p), p)
        return outputs([u[0] + sin(q[1][0]), *u[1:]], p)[0]

    def unrolled(tree, q, p):
        u = iterated(p)
        return outputs([u[0] + sin(q[1][0]), *u[1:]], p)[0]

    robot = rk.load_urdf(rk.find_robot("arm"))
    f, g = (rk.function(x, inputs={"q": "q", "p": (3,)}, outputs={"w": ()}) for x in (solved, unrolled))
    rng = np.random.default_rng(0)
    q, p = rng.normal(size=(5, robot.nq)), P + rng.uniform(-0.1, 0.1, (5, 3))
    assert kernel_of(robot, f.key(robot)).flops == kernel_of(robot, g.key(robot)).flops
    np.testing.assert_array_equal(f(robot, q, p), g(robot, q, p))
    for derived in (lambda x: x.derivative("p"), lambda x: x.gradient("p"), lambda x: x.gradient("q")):
        expected = derived(g)(robot, q, p)
        for how in ({}, {"engine": "python"}):
            np.testing.assert_allclose(derived(f)(robot, q, p, **how), expected, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(derived(f)(robot, q[0], p[0]), expected[0], rtol=1e-12, atol=1e-13)
    found = f.hessian_vector("p")(robot, q, p, np.ones((5, 3)))
    np.testing.assert_allclose(found, g.hessian_vector("p")(robot, q, p, np.ones((5, 3))), rtol=1e-11)


def test_the_angle_that_closes_a_four_bar():
    def closure(angles, drive, lengths):
        a, b, c, d = lengths
        coupler, rocker = angles
        return [
            a * cos(drive) + b * cos(coupler) - c * cos(rocker) - d,
            a * sin(drive) + b * sin(coupler) - c * sin(rocker),
        ]

    def angles(drive, lengths, turns=9):
        coupler, rocker = 0.5, 1.3
        _, b, c, _ = lengths
        for _ in range(turns):
            x, y = closure((coupler, rocker), drive, lengths)
            J = [[-b * sin(coupler), c * sin(rocker)], [b * cos(coupler), -c * cos(rocker)]]
            step = lu_solve(lu(J), [x, y])
            coupler, rocker = coupler - step[0], rocker - step[1]
        return coupler, rocker

    def linkage(x):
        return [[solution(closure, angles(x[0], x[1:]), x[0], x[1:])[1]]]

    x = np.array([0.8, 0.4, 1.1, 0.9, 1.2])
    run = lambda x: [angles(x[0], x[1:], 14)[1]]  # noqa: E731
    expected = [fifty_digits.along(run, (x,), (d,))[0] for d in np.eye(5)]
    for mode in (jacobian, gradient):
        found = np.array(mode(linkage, [("x", 5)], [("rocker", ())], [0])(x.tolist())[0], float)
        assert np.abs(found - expected).max() < 4e-15 * np.abs(expected).max()


def test_an_equation_whose_residual_solves_another_one():
    def root(a):  # b³ + b = a
        b = 0.5 * a
        for _ in range(12):
            b = b - (b * b * b + b - a) / (3.0 * b * b + 1.0)
        return b

    def inner(a):
        return solution(lambda b, a: b * b * b + b - a, root(a), a)

    def outer(x, turns=14, inner=inner):  # u + root(u x) = 2 x
        u = x
        for _ in range(turns):
            b = root(u * x)
            u = u - (u + b - 2.0 * x) / (1.0 + x / (3.0 * b * b + 1.0))
        return u

    f = lambda x: [[solution(lambda u: u + inner(u * x[0]) - 2.0 * x[0], outer(x[0]))]]  # noqa: E731
    expected = fifty_digits.along(lambda x: [outer(x[0])], ([0.7],), ([1.0],))[0]
    for mode in (jacobian, gradient):
        found = mode(f, [("x", 1)], [("u", ())], [0])([0.7])[0][0]
        assert found == pytest.approx(expected, rel=1e-14)
    assert jvp(lambda x: f([x])[0][0], (0.7,), (1.0,))[1] == pytest.approx(expected, rel=1e-14)


def test_two_equations_of_the_same_numbers():
    # The second unknown number was found as the first one is; its equation depends on the first solution.
    def f(x):
        u = sqrt(x[0])
        s = solution(lambda s: s * s - x[0], u)
        return [[s, solution(lambda t: t * s - x[0], u)]]

    found = jacobian(f, [("x", 1)], [("y", (2,))], [0])([4.0])[0]
    assert found == pytest.approx([0.25, 0.25], rel=1e-15)
    assert gradient(f, [("x", 1)], [("y", (2,))], [0])([4.0])[0] == pytest.approx([0.25, 0.25], rel=1e-15)


def test_what_was_not_chosen_leaves_nothing_behind():
    def f(x):
        root = sqrt(x[0])  # NaN below 0
        s = solution(lambda s: s * s - x[0], root)
        kept = guard(x[0] > 0.0, lambda: [solution(lambda s: s * s - x[0], root)], 0.0)[0]
        return [[where(x[0] > 0.0, s, x[1]) + kept]]

    for mode in (jacobian, gradient):
        slopes = Kernel("branches", [("x", 2)], [("J", (2,))], mode(f, [("x", 2)], [("y", ())], [0]))
        assert np.ravel(slopes(np.array([4.0, 3.0]))).tolist() == [0.5, 0.0]
        assert np.ravel(slopes(np.array([-4.0, 3.0]))).tolist() == [0.0, 1.0]
        assert np.ravel(slopes(np.array([0.0, 3.0]))).tolist() == [0.0, 1.0]


def test_a_function_that_is_called():
    def f(x):
        def body(a):
            return [solution(lambda s: s * s - a, sqrt(a))]

        return [[call(body, a)[0] for a in (x[0], x[0] * x[1], x[1] + 1.0)]]

    x, d = [4.0, 2.25], [0.3, -0.7]
    recorded = trace(
        lambda x, d: along(f, [("x", 2)], [("y", (3,))], [0])(x, d)[1], [("x", 2), ("d", 2)], [("y", (3,))],
        shares=True,
    )  # fmt: skip
    a, rates = [4.0, 9.0, 3.25], [0.3, 0.3 * 2.25 - 0.7 * 4.0, -0.7]
    expected = [r / (2.0 * np.sqrt(x)) for x, r in zip(a, rates, strict=True)]
    assert evaluated(recorded, x, d)[0] == pytest.approx(expected, rel=1e-14)


def test_an_equation_in_a_called_function_one_of_whose_numbers_never_changes():
    def f(x):
        def body(a):
            residual = lambda u: [u[0] * u[0] + u[1] - a, u[1] * u[0]]  # noqa: E731
            return [solution(residual, [sqrt(a), 0.0])[1], solution(residual, [sqrt(a), 0.0])[0]]

        return [[y for a in (x[0], x[0] * x[1]) for y in call(body, a)]]

    # s = sqrt(a), t = 0: dt = 0, ds = da / (2 s); and their derivatives once more
    slope = lambda x, d: along(f, [("x", 2)], [("y", (4,))], [0])(x, d)[1]  # noqa: E731
    twice = along(slope, [("x", 2), ("d", 2)], [("y", (4,))], [0])
    given = [("x", 2), ("d", 2), ("e", 2)]
    recorded = trace(lambda x, d, e: twice(x, d, e)[1], given, [("y", (4,))], shares=True)
    x, d, e = [4.0, 2.25], [0.3, -0.7], [0.2, 0.5]
    a, da, ea = 9.0, 0.3 * 2.25 - 0.7 * 4.0, 0.2 * 2.25 + 0.5 * 4.0
    mixed = 0.3 * 0.5 - 0.7 * 0.2
    expected = [0.0, -0.3 * 0.2 / 32.0, 0.0, mixed / (2.0 * 3.0) - da * ea / (4.0 * a**1.5)]
    assert evaluated(recorded, x, d, e)[0] == pytest.approx(expected, rel=1e-13)


def test_where_the_matrix_is_singular_the_derivative_is_not_finite():
    f = lambda x: [[solution(lambda s: s * s - x[0], 0.0 * x[0] + sqrt(x[0]))]]  # noqa: E731
    for mode in (jacobian, gradient):
        assert not np.isfinite(mode(f, [("x", 1)], [("y", ())], [0])([0.0])[0][0])

    def g(x):
        u = solution(lambda u: (u[0] + u[1] - x[0], 2.0 * u[0] + 2.0 * u[1] - 2.0 * x[0]), (x[0] - 1.0, 1.0))
        return [list(u)]

    for mode in (jacobian, gradient):
        assert not np.isfinite(np.array(mode(g, [("x", 1)], [("y", (2,))], [0])([3.0])[0], float)).all()
    assert not np.isfinite(jvp(lambda x: f([x])[0][0], (0.0,), (1.0,))[1])


def test_plain_numbers_are_what_they_are():
    def never(*_):
        raise AssertionError("called")

    u = (1.0, [2.0, 3.0])
    assert solution(never, u, 4.0, solve=never) is u


def test_a_wrong_number_of_residuals_is_an_error():
    f = lambda p: [[solution(lambda u, a: [u - a, u], p[0], p[1])]]  # noqa: E731
    with pytest.raises(ValueError, match="returns 2 numbers for 1 unknown"):
        jacobian(f, [("p", 2)], [("y", ())], [0])([1.0, 1.0])
    with pytest.raises(ValueError, match="returns 2 numbers for 1 unknown"):
        jvp(lambda p: f([p, 1.0])[0][0], (1.0,), (1.0,))


def test_residuals_may_be_vectors_and_unknown_numbers_arrays():
    def f(p):
        u = np.array([p[0] + p[1], 2.0 * p[2], p[0] * p[1]])
        return [solution(lambda u: Vector3(u[0] - p[0] - p[1], u[1] - 2.0 * p[2], u[2] - p[0] * p[1]), u)]

    expected = [1.0, 1.0, 0.0, 0.0, 0.0, 2.0, 5.0, 3.0, 0.0]
    for mode in (jacobian, gradient):
        found = mode(f, IN, [("u", (3,))], [0])([3.0, 5.0, 7.0])[0]
        assert np.array(found, float).tolist() == expected
    rates = jvp(lambda *p: f(p)[0], (3.0, 5.0, 7.0), (1.0, 0.0, 0.0))[1]
    assert rates.tolist() == expected[::3]
    with pytest.raises(TypeError, match="one array, not Vector3"):
        jacobian(lambda p: [solution(lambda u: u, Vector3(*p))], IN, [("u", (3,))], [0])([1.0, 1.0, 1.0])


def test_factors_exchange_rows():
    rng = np.random.default_rng(0)
    for n in (1, 2, 3, 6):
        for A in (rng.normal(size=(n, n)), np.eye(n)[::-1] + np.triu(rng.normal(size=(n, n)), 1) * 0.01):
            b, factors = rng.normal(size=n), lu(A.tolist())
            scale = np.abs(np.linalg.inv(A)).max()
            assert np.abs(np.array(lu_solve(factors, b)) - np.linalg.solve(A, b)).max() < 1e-13 * scale
            assert np.abs(lu_solve_transposed(factors, b) - np.linalg.solve(A.T, b)).max() < 1e-13 * scale
            F, rows, x = A.copy(), np.zeros(n, int).astype(object), b.copy()
            lu_in_place(F, rows)
            lu_solve_in_place(F, rows, x)
            assert np.abs(x - np.linalg.solve(A, b)).max() < 1e-13 * scale


# -- kernels with loops -----------------------------------------------------------------------------


def root(p, out):
    """Numbers that are found by loops, how many is known: u³ + a u = b, and x² + y² = a, x y = b / 2."""
    a, b = p[0], p[1]
    miss = lambda u, a, b: u * u * u + a * u - b  # noqa: E731
    step = lambda u, k: (u - miss(u, a, b) / (3.0 * u * u + a), k + 1)  # noqa: E731
    u = while_loop(lambda u, k: (k < 50) & (abs(miss(u, a, b)) > 1e-15), step, 1.0, 0)[0]
    out[0] = solution(miss, u, a, b)

    def both(pair):
        x, y = pair
        return x * x + y * y - a, x * y - 0.5 * b  # a and b from around

    def turn(_, x, y):
        f, g = both((x, y))
        det = 2.0 * (x * x - y * y)
        return x - (f * x - 2.0 * g * y) / det, y - (2.0 * g * x - f * y) / det

    found = solution(both, for_range(40, turn, sqrt(a + 1.0), 0.3))
    out[1], out[2] = found[0], found[1]


def exact_root(p):
    a, b = p
    u = mp.findroot(lambda u: u**3 + a * u - b, 0.5)
    x, y = mp.sqrt(a + b), mp.sqrt(a - b)
    return [u, (x + y) / 2, (x - y) / 2]


def test_numbers_that_loops_have_found():
    made = LoopKernel("root", root, [], [ArrayOf("p", (2,)), ArrayOf("out", (3,), "out")], reproducible=True)
    first = made.forward("p")
    second = first.forward("p")
    rng = np.random.default_rng(0)
    p, d = rng.uniform([1.5, 0.3], [2.5, 1.2], (9, 2)), rng.normal(size=(9, 2))
    many, twice = first(p=p, dp=d), second(p=p, dp=d, d2p=d)
    for k in range(9):
        expected = fifty_digits.along(exact_root, (p[k],), (d[k],))
        assert np.abs(many["dout"][k] - expected).max() < 3e-15 * np.abs(expected).max()
        with mp.workdps(fifty_digits.DIGITS):
            h, at, by = mp.mpf(10) ** -18, fifty_digits.exact(p[k]), fifty_digits.exact(d[k])
            rows = [exact_root(at + s * h * by) for s in (-1, 0, 1)]
            curved = [float((a - 2 * b + c) / h**2) for a, b, c in zip(*rows, strict=True)]
        assert np.abs(twice["d2dout"][k] - curved).max() < 2e-14 * np.abs(curved).max()
        one = first(p=p[k], dp=d[k])
        assert (one["dout"] == many["dout"][k]).all() and (one["out"] == many["out"][k]).all()
    plain = second(p=p, dp=d, d2p=d, engine="python")
    for name, x in twice.items():
        np.testing.assert_array_equal(plain[name], x)


def settled(way):
    """Contacts x >= 0, A x + b >= 0 whose sweeps have settled."""

    def residual_of(x, A, b):
        n, found = x.shape[0], zeros(x.shape[0])

        def row(i):
            push = for_range(n, lambda j, total: total + A[i, j] * x[j], b[i])
            found[i] = x[i] - maximum(x[i] - push / A[i, i], 0.0)

        for_range(n, row)
        return found

    def factored(n, A, b, x):
        J, rows = zeros(n, n), zeros(n, kind="integer")

        def row(i):
            push = for_range(n, lambda j, total: total + A[i, j] * x[j], b[i])
            active = x[i] - push / A[i, i] > 0.0
            for_range(n, lambda j: J.__setitem__((i, j), where(active, A[i, j] / A[i, i], 0.0)))
            J[i, i] = 1.0

        for_range(n, row)
        lu_in_place(J, rows)

        def solve(b):
            found = zeros(n)
            for_range(n, lambda i: found.__setitem__(i, b[i]))
            lu_solve_in_place(J, rows, found)
            return found

        return solve

    def function(n, sweeps, A, b, x):
        def row(i):
            push = for_range(n, lambda j, total: total + A[i, j] * x[j], b[i])
            x[i] = maximum(x[i] - push / A[i, i], 0.0)

        for_range(n, lambda i: x.__setitem__(i, 0.0))
        for_range(sweeps, lambda _: for_range(n, row))
        if way == "around":
            solution(lambda x: residual_of(x, A, b), x)
        elif way == "solver":
            solution(residual_of, x, A, b, solve=factored(n, A, b, x))
        else:
            solution(residual_of, x, A, b)

    arrays = [ArrayOf("A", ("n", "n")), ArrayOf("b", ("n",)), ArrayOf("x", ("n",), "out")]
    return LoopKernel(f"settled_{way}", function, ["n", "sweeps"], arrays, reproducible=True)


def contacts(n, rows=()):
    rng = np.random.default_rng(n)
    M = rng.normal(size=(*rows, n, n))
    A, dA = M @ M.swapaxes(-1, -2) + n * np.eye(n), rng.normal(size=(*rows, n, n))
    return A, rng.normal(size=(*rows, n)), dA + dA.swapaxes(-1, -2), rng.normal(size=(*rows, n))


def exact_rates(A, b, dA, db, x):
    """The derivatives of the contact problem's solution: those that push solve A x = -b."""
    push, rates, curved = np.flatnonzero(x > 0.0), np.zeros_like(x), np.zeros_like(x)
    with mp.workdps(50):
        if not len(push):
            return rates, curved
        S = mp.matrix(A[np.ix_(push, push)].tolist())
        T = mp.matrix(dA[np.ix_(push, push)].tolist())
        y = mp.lu_solve(S, mp.matrix((-b[push]).tolist()))
        first = mp.lu_solve(S, mp.matrix((-db[push]).tolist()) - T * y)
        second = mp.lu_solve(S, -2 * T * first)
        rates[push], curved[push] = fifty_digits.floats(list(first)), fifty_digits.floats(list(second))
    return rates, curved


@pytest.mark.parametrize("way", ["parameters", "around", "solver"])
def test_sweeps_that_have_settled(way):
    made = settled(way)
    first = made.forward(("A", "b"))
    for n in (1, 3, 8):
        A, b, dA, db = contacts(n, (5,))
        many = first(sweeps=150, A=A, b=b, dA=dA, db=db)
        half = first(sweeps=150, A=A, b=b, dA=dA, db=db, dtype="float32")
        for k in range(5):
            rates, _ = exact_rates(A[k], b[k], dA[k], db[k], many["x"][k])
            scale = max(np.abs(rates).max(), 1e-3)
            assert np.abs(many["dx"][k] - rates).max() < 1e-14 * scale
            assert np.abs(half["dx"][k] - rates).max() < 1e-5 * scale
            one = first(sweeps=150, A=A[k], b=b[k], dA=dA[k], db=db[k])
            assert (one["dx"] == many["dx"][k]).all() and (one["x"] == many["x"][k]).all()
        assert (made(sweeps=150, A=A, b=b)["x"] == many["x"]).all()


@pytest.mark.parametrize("way", ["parameters", "solver"])
def test_second_derivatives_of_what_has_settled(way):
    A, b, dA, db = contacts(4)
    second = settled(way).forward(("A", "b")).forward(("A", "b"))
    found = second(sweeps=60, A=A, b=b, dA=dA, db=db, d2A=dA, d2b=db, engine="python")
    rates, curved = exact_rates(A, b, dA, db, found["x"])
    assert np.abs(found["dx"] - rates).max() < 1e-14 * np.abs(rates).max()
    assert np.abs(found["d2dx"] - curved).max() < 1e-13 * np.abs(curved).max()


@pytest.mark.slow
@pytest.mark.parametrize("way", ["parameters", "solver"])
def test_second_derivatives_of_what_has_settled_in_machine_code(way):
    A, b, dA, db = contacts(4, (3,))
    second = settled(way).forward(("A", "b")).forward(("A", "b"))
    given = {"A": A, "b": b, "dA": dA, "db": db, "d2A": dA, "d2b": db}
    many, plain = second(sweeps=60, **given), second(sweeps=60, **given, engine="python")
    for name, x in many.items():
        np.testing.assert_array_equal(x, plain[name])


def test_what_a_kernel_that_is_not_differentiated_computes_is_the_same_program():
    def program(solved):
        def function(p, out):
            u = for_range(9, lambda _, u: u - (u * u * u - p[0]) / (3.0 * u * u), 1.0)
            out[0] = solution(lambda u: u * u * u - p[0], u) if solved else u

        return (
            LoopKernel("same", function, [], [ArrayOf("p", (1,)), ArrayOf("out", (1,), "out")]).record().nodes
        )

    assert program(True) == program(False)


def test_a_solution_inside_a_branch_and_a_loop():
    def function(n, x, out):
        def row(k):
            low = lambda: solution(lambda s: s * s - x[k], sqrt(x[k]))  # noqa: E731
            out[k] = cond(x[k] > 1.0, low, lambda: minimum(x[k], 0.5) * 3.0)

        for_range(n, row)

    made = LoopKernel("inside", function, ["n"], [ArrayOf("x", ("n",)), ArrayOf("out", ("n",), "out")])
    x, dx = np.array([[4.0, 0.25, 9.0], [0.1, 0.7, 2.25]]), np.ones((2, 3))
    found = made.forward("x")(x=x, dx=dx)["dout"]
    np.testing.assert_allclose(found, [[0.25, 3.0, 1 / 6], [3.0, 0.0, 1 / 3]], rtol=1e-15)


def test_a_residual_that_carries_memory_through_loops():
    def function(n, x, out):
        def residual(u):
            memory = zeros(n)

            def row(k, held):
                held[k] = u[k] * u[k] - x[k]
                return held

            return for_range(n, row, memory)

        for_range(n, lambda k: out.__setitem__(k, sqrt(x[k])))
        solution(residual, out)

    made = LoopKernel("carried", function, ["n"], [ArrayOf("x", ("n",)), ArrayOf("out", ("n",), "out")])
    x, dx = np.array([4.0, 0.25, 9.0]), np.array([1.0, -1.0, 2.0])
    for how in ({}, {"engine": "python"}):
        found = made.forward("x")(x=x, dx=dx, **how)["dout"]
        np.testing.assert_allclose(found, dx / (2.0 * np.sqrt(x)), rtol=1e-15)
        twice = made.forward("x").forward("x")(x=x, dx=dx, d2x=dx, **how)["d2dout"]
        np.testing.assert_allclose(twice, -dx * dx / (4.0 * x**1.5), rtol=1e-14)


def test_errors_of_arrays():
    def run(solve):
        def function(n, x, out):
            for_range(n, lambda k: out.__setitem__(k, x[k]))
            solve(out, x)

        return LoopKernel(
            "bad", function, ["n"], [ArrayOf("x", ("n",)), ArrayOf("out", ("n",), "out")]
        ).forward("x")

    cases = [
        (lambda u, x: solution(lambda u: [u[0] - x[0]], u), "residual of an array is an array"),
        (lambda u, x: solution(lambda u: zeros(2), (u, 1.0)), "or one array"),
        (lambda u, x: solution(lambda u: zeros(2, 2), zeros(2, 2)), "one dimension"),
    ]
    for solve, message in cases:
        with pytest.raises(TypeError, match=message):
            run(solve)(x=np.ones(2), dx=np.ones(2), engine="python")
