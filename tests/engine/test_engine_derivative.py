"""Derivatives made on the recorded graph: forward and reverse mode, choices, second derivatives."""

from __future__ import annotations

import math

import numpy as np
import pytest
from engine_cases import follow, guard, recipes
from hypothesis import given, settings
from hypothesis import strategies as st

from robokit.engine import Kernel
from robokit.engine.passes.derivative import along, gradient, jacobian
from robokit.engine.passes.replay import evaluated
from robokit.engine.trace.record import trace
from robokit.spatial.scalars import cos, floor, sin, sqrt, where

N = 3


def one(f):
    """A function of one input of N scalars and one number."""
    return (lambda x: [[f(x)]]), [("x", N)], [("y", ())]


def values(function, x):
    return np.array([float(y) for y in function(list(x))[0]])


def difference(function, x, h=1e-6):
    steps = np.eye(len(x)) * h
    return np.array([(values(function, x + e) - values(function, x - e))[0] / (2 * h) for e in steps])


@settings(max_examples=60)
@given(recipes(N, 12), st.integers(0, 999))
def test_forward_and_reverse_mode_agree(recipe, seed):
    f = one(lambda x: sum(follow(recipe, x)))
    x = np.random.default_rng(seed).standard_normal(N)
    forward, reverse = (values(mode(*f, [0]), x) for mode in (jacobian, gradient))
    np.testing.assert_allclose(forward, reverse, rtol=1e-12, atol=1e-12)


def smooth(x):
    a, b, c = x
    return sin(a * b) / (2.0 + cos(c)) + sqrt(1.0 + a * a) * where(b < c, b * b * c, 3.0 * b) - abs(c * a)


@pytest.mark.parametrize("mode", [jacobian, gradient])
def test_derivatives_are_difference_quotients(mode):
    f = one(smooth)
    x = np.array([0.7, -0.3, 1.1])
    assert np.abs(values(mode(*f, [0]), x) - difference(f[0], x)).max() < 1e-9
    swapped = np.array([0.7, 1.3, -1.1])  # the other branch
    assert np.abs(values(mode(*f, [0]), swapped) - difference(f[0], swapped)).max() < 1e-9


def test_the_second_derivative_is_symmetric_and_the_gradients_difference():
    f = one(smooth)
    slope = gradient(*f, [0])
    second = along(slope, f[1], [("g", (N,))], [0])
    x = np.array([0.7, -0.3, 1.1])
    H = np.array([[float(h) for h in second(x.tolist(), e.tolist())[1][0]] for e in np.eye(N)])
    assert np.abs(H - H.T).max() < 1e-13
    quotient = [(values(slope, x + e) - values(slope, x - e)) / 2e-6 for e in 1e-6 * np.eye(N)]
    assert np.abs(H - quotient).max() < 1e-8


def behind_branches(x):
    """Infinite slopes, quotients by 0 and NaN, all of them in branches that are not taken."""
    a, b, c = x
    root = sqrt(a)  # NaN below 0
    early = where(a > 0.0, root * b, b)
    late = where(b > 0.0, where(a > 0.0, root, c), c)  # the same root under another condition
    kept = guard(c > 0.0, lambda: [1.0 / c + root * 0.0 * where(a > 0.0, root, 1.0)], c)[0]
    return early + late + where(c > 0.0, kept / c, c * c)


@pytest.mark.parametrize("mode", [jacobian, gradient])
@pytest.mark.parametrize("x", [(-1.0, 0.5, -0.5), (0.0, -0.5, 0.0), (-1.0, -1.0, 0.0), (0.0, 2.0, -2.0)])
def test_nan_of_a_branch_that_is_not_taken_does_not_leave_it(mode, x):
    function, inputs, outputs = one(behind_branches)
    derived = mode(function, inputs, outputs, [0])
    a, b, c = x
    expected = [0.0, 1.0, (1.0 if b <= 0.0 or a <= 0.0 else 0.0) + 2.0 * c]
    kernel = Kernel("branches", inputs, [("d", (N,))], derived)
    assert kernel(np.array(x)).tolist() == expected
    assert kernel(np.array([x] * 5)).tolist() == [expected] * 5
    assert kernel.python(np.array(x)).tolist() == expected
    assert kernel.python(np.array([x] * 5)).tolist() == [expected] * 5


def test_floor_changes_in_jumps():
    program = trace(*one(lambda x: x[0] * floor(x[1]) + x[1] * floor(x[2] * 4.5)))
    from robokit.engine.passes.derivative import adjoints, tangents
    from robokit.engine.passes.replay import node_values

    x = [2.0, 1.5, 1.2]
    value = node_values(program, [x])
    forward = tangents(program, value, {(0, k): {k: 1.0} for k in range(N)})[0][0]
    assert forward == {0: 1.0, 1: 5.0}
    back = adjoints(program, value, {program.results[0][0]: 1.0})
    assert back == {(0, 0): 1.0, (0, 1): 5.0}


def test_what_the_text_computes_is_recorded_once():
    # The derivative of a product of sines needs the sines and cosines of the function and no other.
    f = one(lambda x: sin(x[0]) * sin(x[1]) * sin(x[2]))
    program = trace(jacobian(*f, [0]), f[1], [("d", (N,))])
    assert program.counts["sincos"] == N
    assert program.counts["mul"] == 6  # s0 s1, c_k times the others
    assert math.isclose(
        evaluated(program, [0.1, 0.2, 0.3])[0][0], math.cos(0.1) * math.sin(0.2) * math.sin(0.3)
    )


def test_a_direction_that_makes_no_difference_is_a_constant_zero():
    program = trace(
        jacobian(lambda x: [[x[0] * x[0], x[1]]], [("x", N)], [("y", (2,))], [0]), [("x", N)], [("d", (2, N))]
    )
    assert program.sparsity() == [[True, False, False, False, True, False]]
