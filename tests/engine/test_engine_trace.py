"""What the tracer records: folding, sharing, signs, counts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from robokit.engine.passes.replay import evaluated
from robokit.engine.trace.graph import TraceTooLarge
from robokit.engine.trace.ops import flops
from robokit.engine.trace.record import trace
from robokit.engine.trace.scalar import Scalar
from robokit.spatial.scalars import cos, maximum, minimum, sin, sqrt, where


def record(function: Any, inputs: int, outputs: int) -> Any:
    return trace(lambda x: [function(x)], [("x", inputs)], [("y", (outputs,))])


def returned(function: Any) -> Any:
    """What the function makes of two traced scalars."""
    seen: list[Any] = []
    trace(lambda x: seen.append(function(*x)) or [[0.0]], [("x", 2)], [("y", (1,))])
    return seen[0]


@pytest.mark.parametrize(
    "function",
    [
        lambda a, b: a * 0.0,
        lambda a, b: 0 * a,
        lambda a, b: a - a,
        lambda a, b: -a + a,
        lambda a, b: (a * b) - (b * a),
        lambda a, b: (a - b) + (b - a),
        lambda a, b: 0.0 / a,
        lambda a, b: (-a) * b + a * b,
    ],
)
def test_a_vanishing_expression_is_the_float_zero(function):
    assert returned(function) == 0.0
    assert type(returned(function)) is float


@pytest.mark.parametrize(
    "function",
    [
        lambda a: a + 0.0,
        lambda a: 0 + a,
        lambda a: a * 1.0,
        lambda a: a / 1,
        lambda a: 0.0 - (0.0 - a),
        lambda a: a - 0.0,
        lambda a: where(True, a, 0.0),
    ],
)
def test_neutral_elements_leave_no_trace(function):
    program = record(lambda x: [function(x[0])], 1, 1)
    assert program.order == []
    assert evaluated(program, [3.5]) == [[3.5]]


def test_quotients_of_a_value_by_itself_are_one():
    assert returned(lambda a, b: a / a) == 1.0
    assert returned(lambda a, b: (-a) / a) == -1.0


def test_equal_expressions_are_recorded_once():
    program = record(lambda x: [x[0] * x[1], x[1] * x[0], (-x[0]) * x[1], x[0] + x[1], -(-x[1] - x[0])], 2, 5)
    assert program.counts["mul"] == 1
    assert program.counts["add"] == 1


def test_negation_costs_nothing_until_it_is_stored():
    program = record(lambda x: [(-x[0]) * (-x[1]), x[0] - (-x[1]), -(x[0] - x[1])], 2, 3)
    assert program.counts["neg"] == 0
    assert record(lambda x: [-(x[0] * x[1])], 2, 1).counts["neg"] == 1


def test_a_sine_and_a_cosine_of_one_angle_count_as_one_pair():
    program = record(lambda x: [sin(x[0]), cos(x[0]), cos(-x[0]), -sin(-x[0])], 1, 4)
    assert program.counts["sincos"] == 1


def test_what_no_output_needs_is_dropped():
    program = record(lambda x: [x[0] * x[1], x[0] + x[1]][:1], 2, 1)
    assert (program.counts["mul"], program.counts["add"], flops(program.counts)) == (1, 0, 1)


def test_sparsity_shows_the_constant_zeros():
    program = record(lambda x: [x[0], 0.0, x[0] * 0, 1.0], 1, 4)
    assert program.sparsity() == [[True, False, False, True]]


def test_evaluation_agrees_with_the_text_on_floats():
    def function(x):
        return [
            sqrt(abs(x[0])) + x[1] / x[2],
            where(x[0] < x[1], sin(x[2]), cos(x[2])),
            maximum(x[0], -x[1]),
            minimum(2.0, x[2]),
            x[0] ** 3,
            1.0 / x[2] - 4.0,
            x[1] / 3.0,
        ]

    x = [-0.7, 1.3, 2.1]
    assert evaluated(record(function, 3, 7), x)[0] == pytest.approx(function(x), rel=1e-15)


def test_a_branch_on_a_value_says_what_to_use():
    with pytest.raises(TypeError, match="where"):
        record(lambda x: [x[0] if x[0] > 0 else 0.0], 1, 1)
    with pytest.raises(TypeError, match="where"):
        record(lambda x: [x[0] and 0.0], 1, 1)


def test_a_math_function_on_a_traced_scalar_says_what_to_use():
    with pytest.raises(TypeError, match="spatial"):
        record(lambda x: [math.sin(x[0])], 1, 1)


def test_numpy_numbers_leave_the_operation_to_the_scalar():
    program = record(lambda x: [np.float64(2.0) * x[0], x[0] + np.float64(1.0), np.float64(1.0) - x[0]], 1, 3)
    assert evaluated(program, [3.0]) == [[6.0, 4.0, -2.0]]
    assert type(returned(lambda a, b: np.float64(2.0) * a)) is Scalar


def test_a_node_budget_ends_the_trace():
    def function(x):
        y = x[0]
        for k in range(1000):
            y = y * x[0] + k
        return [[y]]

    with pytest.raises(TraceTooLarge):
        trace(function, [("x", 1)], [("y", (1,))], budget=500)


def test_a_text_of_other_sizes_than_declared_is_an_error():
    with pytest.raises(ValueError, match="declared"):
        record(lambda x: [x[0], x[0]], 1, 1)
