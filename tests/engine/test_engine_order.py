"""The order of operations: sums of products that fuse, and signs where their values are computed."""

from __future__ import annotations

import itertools
import operator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import robokit as rk
from robokit.dynamics.build import kernel
from robokit.engine.passes.order import fused, signs_early
from robokit.engine.passes.replay import evaluated
from robokit.engine.trace.graph import Program
from robokit.engine.trace.ops import ADD, MUL, NEG, SUB
from robokit.engine.trace.record import trace

SIGNED = (operator.add, operator.sub)


def multiply_adds(program: Program) -> int:
    """Additions that have a product of their own, which the code generator then fuses."""
    uses = [operand for n in program.order for operand in program.nodes[n][1:]]
    uses += [r for row in program.results for r in row if type(r) is int]

    def own(n: int) -> bool:
        return program.nodes[n][0] == MUL and uses.count(n) == 1

    sums = (program.nodes[n] for n in program.order if program.nodes[n][0] in (ADD, SUB))
    return sum(any(map(own, node[1:])) for node in sums)


def recorded(function, size: int, outputs: int = 1) -> Program:
    return trace(function, [("x", size)], [("y", (outputs,))])


def check(program: Program) -> Program:
    """Both give the same whole number, which no order of additions can round; the line stays a line."""
    other = fused(program)
    x = [3.0, -5.0, 7.0, 11.0, -13.0, 17.0, 19.0, -23.0]
    x = x[: program.inputs[0][1]]
    assert evaluated(other, x) == evaluated(program, x)
    assert other.order == sorted(other.order)
    assert all(operand < n for n in other.order for operand in other.nodes[n][1:])
    assert len(other.order) == len(program.order)
    assert multiply_adds(other) >= multiply_adds(program)
    return other


@pytest.mark.parametrize(("inner", "outer", "turned"), list(itertools.product(SIGNED, SIGNED, (False, True))))
def test_a_sum_of_two_products_and_a_value_is_two_multiply_adds(inner, outer, turned):
    def function(x):
        products = inner(x[1] * x[2], x[3] * x[4])
        return [[outer(products, x[0]) if turned else outer(x[0], products)]]

    program = recorded(function, 5)
    other = check(program)
    assert multiply_adds(program) == 1
    assert multiply_adds(other) == 2


def test_long_sums_follow_suit():
    def function(x):
        before = x[6] + x[7]
        return [[before - (x[0] * x[1] - x[2] * x[3] + x[4] * x[5])]]

    program = recorded(function, 8)
    assert (multiply_adds(program), multiply_adds(check(program))) == (2, 3)


def test_two_sums_of_products_become_one():
    program = recorded(lambda x: [[(x[0] * x[1] + x[2] * x[3]) - (x[4] * x[5] - x[6] * x[7])]], 8)
    assert (multiply_adds(program), multiply_adds(check(program))) == (2, 3)


def test_what_is_used_elsewhere_stays():
    def function(x):
        products = x[1] * x[2] + x[3] * x[4]
        return [[x[0] + products, products]]

    program = recorded(function, 5, outputs=2)
    assert fused(program).counts == program.counts
    assert multiply_adds(check(program)) == multiply_adds(program) == 1


def test_products_do_not_wait_for_a_value_that_comes_later():
    def function(x):
        products = x[1] * x[2] + x[3] * x[4]
        return [[products + (x[0] + 2.0) / (x[1] + 3.0)]]

    program = recorded(function, 5)
    other = fused(program)
    assert [other.nodes[n][0] for n in other.order] == [program.nodes[n][0] for n in program.order]


@given(st.data())
def test_any_polynomial_keeps_its_value(data):
    operations = (operator.add, operator.sub, operator.mul, operator.add, operator.sub)
    line = []
    for k in range(data.draw(st.integers(3, 40))):
        operand = st.integers(max(0, k - 4), k + 4)  # near, so that values of small degree meet
        line.append((data.draw(st.integers(0, 4)), data.draw(operand), data.draw(operand)))

    def function(x):
        values, degree = list(x), [1] * len(x)
        for kind, i, j in line:
            high = degree[i] + degree[j] if kind == 2 else max(degree[i], degree[j])
            if high > 6:  # whole numbers that a double holds exactly
                kind, high = 0, max(degree[i], degree[j])
            values.append(operations[kind](values[i], values[j]))
            degree.append(high)
        return [values[-3:]]

    check(recorded(function, 5, outputs=3))


def distances(program: Program) -> list[int]:
    """How long after the last of its operands each sign of an output comes."""
    place = {n: k for k, n in enumerate(program.order)}
    read = {operand for n in program.order for operand in program.nodes[n][1:]}
    return [
        place[n] - max(place.get(operand, -1) for operand in program.nodes[n][1:])
        for n in program.order
        if program.nodes[n][0] in (NEG, SUB) and n not in read
    ]


def test_a_minus_comes_right_after_the_value():
    def function(x):
        first, second = x[0] * x[1], x[0] - x[1]
        other = x[2] * x[3] + x[4]
        return [[-first, -second, other * other]]

    program = trace(function, [("x", 5)], [("y", (3,))])
    assert max(distances(program)) > 2
    early = signs_early(program)
    ops = [early.nodes[n][0] for n in early.order]
    assert ops.index(NEG) == 1
    assert sorted(early.order) == sorted(program.order)
    x = [2.0, 3.0, 5.0, 7.0, 11.0]
    assert evaluated(early, x) == evaluated(program, x) == [[-6.0, 1.0, 2116.0]]


def test_of_a_robots_matrices_too_and_nothing_else_moves():
    robot = rk.load_urdf(rk.find_robot("humanoid"), base="floating")
    rng = np.random.default_rng(1)
    given = [robot.random_configuration(rng), *rng.standard_normal((2, robot.nv))]
    for name, count in (("inverse_mass_matrix", 1), ("rnea_derivatives", 3)):
        program = kernel(robot, name).program()
        early = signs_early(program)
        place = {n: k for k, n in enumerate(early.order)}
        assert max(distances(early)) < 20 < max(distances(program))
        assert all(place[o] < place[n] for n in early.order for o in early.nodes[n][1:] if o in place)
        assert evaluated(early, *given[:count]) == evaluated(program, *given[:count])
