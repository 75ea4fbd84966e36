"""The table of operations: values, derivatives, order of operands, counts; each by its own law."""

from __future__ import annotations

import cmath
import itertools
import math
from typing import Any

import numpy as np
import pytest
from engine_cases import follow, recipes
from hypothesis import given, settings
from hypothesis import strategies as st

from robokit.engine import Kernel
from robokit.engine.passes.replay import evaluated
from robokit.engine.trace.graph import Arrays, Graph
from robokit.engine.trace.ops import (
    ADD,
    AND,
    CONST,
    COS,
    DIV,
    EQ,
    GUARD,
    INPUT,
    LT,
    MUL,
    NOT,
    OPERATIONS,
    OR,
    SELECT,
    SIN,
    SQRT,
    SUB,
    Operation,
    flops,
)
from robokit.engine.trace.record import trace
from robokit.engine.trace.scalar import Scalar, Truth
from robokit.spatial.scalars import cos, floor, sin, sqrt, where

CALLS = ("call", "result", "pair", "first", "second", "still", "solution")
"""What they mean does not follow from their operands: test_engine_shared.py, test_engine_pairs.py. The last
two are for derivatives and never compiled: test_engine_equations.py."""

BY_NAME = {each.name: each for each in OPERATIONS}
PLAIN = {name: each for name, each in BY_NAME.items() if name not in CALLS and not each.whole}
NUMERIC = {name: each for name, each in BY_NAME.items() if not each.truth}


def operands(each: Operation, x: list[Any]) -> list[Any]:
    """Three numbers as operands: as many as it takes, the first of a choice as a truth."""
    return [x[2] > 0.5, *x[:2]] if each.number in (SELECT, GUARD) else x[: each.operands]


def test_an_opcode_is_a_place_in_the_table_and_leaves_stand_before():
    assert [each.number for each in OPERATIONS] == list(range(len(OPERATIONS)))
    assert len(BY_NAME) == len(OPERATIONS)
    assert max(INPUT, CONST) < 0


def test_every_column_fits_the_number_of_operands():
    for each in PLAIN.values():
        assert len(each.slopes) == (0 if each.truth else each.operands), each.name
        given = 1 if each.paired else each.operands
        assert each.llvm.count("%s") == given, each.name
        assert not each.commutes or each.operands == 2, each.name
        assert not each.parity or each.operands == 1, each.name
        assert not each.flop or each.count, each.name
    for each in OPERATIONS:
        if each.whole:  # recordings with loops compute with them: test_engine_loops.py
            assert each.llvm.count("%s") == (each.operands if each.wasm else 0), each.name


@pytest.mark.parametrize("name", NUMERIC)
@pytest.mark.parametrize("x", [[0.7, 1.3, 1.0], [1.9, -0.4, 0.0], [0.2, -2.5, 1.0]])
def test_slopes_are_the_difference_quotients_of_the_value(name, x):
    each, h = NUMERIC[name], 1e-6
    at = operands(each, x)
    for k, slope in enumerate(each.slopes):
        if slope is None:
            assert type(at[k]) in (bool, list)
            continue
        more, less = ([*at[:k], at[k] + step, *at[k + 1 :]] for step in (h, -h))
        expected = (each.value(*more) - each.value(*less)) / (2 * h)
        for d in (1.0, -3.0):
            assert slope(d, each.value(*at), *at) == pytest.approx(d * expected, rel=1e-8, abs=1e-8)


@pytest.mark.parametrize(
    ("opcode", "function", "x"),
    [
        (MUL, lambda a, b: a * b, (0.7, -1.3)),
        (ADD, lambda a, b: a + b, (0.7, -1.3)),
        (SUB, lambda a, b: a - b, (0.7, -1.3)),
        (DIV, lambda a, b: a / b, (0.7, -1.3)),
        (SQRT, cmath.sqrt, (0.7,)),
        (SIN, cmath.sin, (0.7,)),
        (COS, cmath.cos, (0.7,)),
    ],
)
def test_slopes_are_the_complex_step_to_rounding(opcode, function, x):
    each, h = OPERATIONS[opcode], 1e-30
    for k, slope in enumerate(each.slopes):
        stepped = [complex(value, h * (j == k)) for j, value in enumerate(x)]
        assert slope(1.0, each.value(*x), *x) == pytest.approx(function(*stepped).imag / h, rel=1e-15)


def test_what_a_choice_did_not_take_keeps_its_nan():
    each = OPERATIONS[SELECT]
    for taken in (True, False):
        slopes = [slope for slope in each.slopes if slope is not None]
        tangents = (1.0, math.nan) if taken else (math.nan, 1.0)
        assert sum(slope(d, 0.0, taken, 2.0, 3.0) for slope, d in zip(slopes, tangents, strict=True)) == 1.0


def tangent(y: Any, x: list[Scalar], direction: list[float]) -> Any:
    """The derivative of a traced value along a direction, recorded on the same graph: forward mode."""
    if type(y) is not Scalar:
        return 0.0
    nodes = y.graph.nodes
    tangents: dict[int, Any] = {abs(a.ref): d for a, d in zip(x, direction, strict=True)}

    def value(number: int) -> Any:
        opcode = nodes[number][0]
        if opcode == CONST:
            return nodes[number][1]
        wrapped = Truth if opcode > CONST and OPERATIONS[opcode].truth else Scalar
        return wrapped(y.graph, number)

    for number in range(1, abs(y.ref) + 1):
        opcode, *numbers = nodes[number]
        if opcode <= CONST or OPERATIONS[opcode].truth:
            continue
        given, total = [value(n) for n in numbers], 0.0
        for n, slope in zip(numbers, OPERATIONS[opcode].slopes, strict=True):
            if slope is not None:
                total = total + slope(tangents.get(n, 0.0), value(number), *given)
        tangents[number] = total
    d = tangents.get(abs(y.ref), 0.0)
    return d if y.ref > 0 else -d


def derivative(function: Any, direction: list[float]) -> Any:
    """Program of the function's derivative along a direction."""
    size = len(direction)
    return trace(lambda x: [[tangent(function(x), x, direction)]], [("x", size)], [("dy", (1,))])


def test_the_slopes_of_a_recorded_text_make_its_derivative_as_a_graph():
    def function(x):
        a = sin(x[0] * x[1]) / (2.0 + cos(x[2]))
        b = sqrt(x[0] * x[0] + 1.0) - x[1] * a
        return b * b / (3.0 - x[2]) - -a

    x, direction = [0.3, -0.8, 1.7], [0.6, -1.1, 0.4]
    stepped = [complex(a, 1e-30 * d) for a, d in zip(x, direction, strict=True)]
    expected = function(stepped).imag / 1e-30
    assert evaluated(derivative(function, direction), x)[0][0] == pytest.approx(expected, rel=1e-14)


def test_choices_and_absolute_values_are_differentiated_branch_by_branch():
    def function(x):
        root = sqrt(where(x[0] > 0.0, x[0], 0.0))  # its slope at 0 is infinite
        return where(x[0] > 0.0, root * x[1], -3.0 * abs(x[1]) * x[0])

    program = derivative(function, [1.0, 0.5])
    assert evaluated(program, [4.0, -2.0])[0][0] == pytest.approx(-2.0 / 4.0 + 0.5 * 2.0)
    assert evaluated(program, [-4.0, -2.0])[0][0] == pytest.approx(-6.0 - 0.5 * 12.0)


@settings(max_examples=60)
@given(recipe=recipes(3, 12), seed=st.integers(0, 2**20))
def test_any_smooth_text_has_the_derivative_of_its_difference_quotient(recipe, seed):
    smooth = [step for step in recipe if step[0] not in (3, 4, 6, 11, 12, 13)] or [(2, 0, 1)]
    rng = np.random.default_rng(seed)
    x, direction = rng.uniform(-1.0, 1.0, (2, 3))

    def function(values):
        total = 0.0
        for k, value in enumerate(follow([(kind, i % 3, j % 3) for kind, i, j in smooth], list(values))[3:]):
            total = total + value * (1.0 + 0.1 * k)
        return total * total

    h = 1e-5
    expected = (function(list(x + h * direction)) - function(list(x - h * direction))) / (2 * h)
    got = evaluated(derivative(function, direction.tolist()), x.tolist())[0][0]
    assert got == pytest.approx(expected, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize(
    "opcode",
    [each.number for each in OPERATIONS if each.operands == 2 and each.name not in CALLS],
)
def test_operands_change_places_only_where_that_changes_nothing(opcode):
    graph, each = Graph(), OPERATIONS[opcode]
    graph.add((INPUT, 0, 0)), graph.add((INPUT, 0, 1))
    assert (graph.record(opcode, 1, 2) == graph.record(opcode, 2, 1)) is each.commutes
    pairs = [(True, False), (True, True)] if each.truth and opcode not in (LT, EQ) else [(0.3, 0.7)]
    for a, b in pairs:
        assert not each.commutes or each.value(a, b) == each.value(b, a)


@pytest.mark.parametrize("name", [name for name, each in BY_NAME.items() if each.parity])
def test_odd_and_even_functions_are(name):
    each = BY_NAME[name]
    for x in (0.3, -1.7):
        assert each.value(-x) == each.parity * each.value(x)


def test_counts_are_those_of_the_table():
    nodes = [(MUL, 1, 2), (ADD, 1, 2), (SUB, 1, 2), (SIN, 1), (COS, 1), (COS, 2), (SELECT, 3, 1, 2)]
    counts = Arrays.of(nodes, range(len(nodes))).counted()
    assert counts == {
        "mul": 1,
        "add": 2,
        "div": 0,
        "sqrt": 0,
        "sincos": 2,
        "neg": 0,
        "select": 1,
        "compare": 0,
    }
    assert flops(counts) == 3


@pytest.mark.parametrize("name", PLAIN)
def test_machine_code_computes_the_value(name):
    each = BY_NAME[name]

    def function(x):
        graph = x[0].graph
        numbers = [abs(a.ref) for a in x]
        if each.number in (AND, OR, NOT):
            numbers = [(a < 0.5).number for a in x]
        elif each.number in (SELECT, GUARD):
            numbers = [(x[2] < 0.5).number, *numbers[:2]]
        number = graph.record(each.number, *numbers[: each.operands])
        return [[where(Truth(graph, number), 1.0, 0.0) if each.truth else Scalar(graph, number)]]

    def value(a, b, c):
        if each.number in (AND, OR, NOT):
            return each.value(*(x < 0.5 for x in (a, b, c)[: each.operands]))
        choice = each.number in (SELECT, GUARD)
        return each.value(*([c < 0.5, a, b] if choice else operands(each, [a, b, c])))

    some = (-2.5, -1.0, 0.0, 0.25, 1.0, 3.0)
    states = np.array(list(itertools.product(some, some, (0.0, 1.0))))
    plain = [float(value(*row)) for row in states.tolist()]
    kernel = Kernel("one", [("x", 3)], [("y", ())], function)
    tolerance = 2e-16 if each.paired else 0.0
    for answers in ([kernel(row) for row in states], kernel.batch(states)):
        np.testing.assert_allclose(answers, plain, rtol=0, atol=tolerance)


def test_floor_is_that_of_the_library():
    kernel = Kernel("floor", [("x", 1)], [("y", ())], lambda x: [[floor(x[0])]])
    x = np.array([-1e300, -2.5, -2.0, -1e-300, 0.0, 0.5, 1.0, 2.0**52 + 1.0, 1e300])
    np.testing.assert_array_equal(kernel.batch(x[:, None]), np.floor(x))
    assert [kernel(each.reshape(1)) for each in x] == np.floor(x).tolist()
    assert floor(-2.5) == -3.0 and type(floor(2)) is float
    assert floor(2.5 + 1e-30j) == 2.0
