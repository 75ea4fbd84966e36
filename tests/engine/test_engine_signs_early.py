"""Signs of outputs come where their values are computed, not when the text is over."""

from __future__ import annotations

import numpy as np

import robokit as rk
from robokit.dynamics.build import kernel
from robokit.engine.passes.order import signs_early
from robokit.engine.trace.ops import NEG, SUB
from robokit.engine.trace.program import Program
from robokit.engine.trace.record import trace


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
    def text(x):
        first, second = x[0] * x[1], x[0] - x[1]
        other = x[2] * x[3] + x[4]
        return [[-first, -second, other * other]]

    program = trace(text, [("x", 5)], [("y", (3,))])
    assert max(distances(program)) > 2
    early = signs_early(program)
    ops = [early.nodes[n][0] for n in early.order]
    assert ops.index(NEG) == 1
    assert sorted(early.order) == sorted(program.order)
    x = [2.0, 3.0, 5.0, 7.0, 11.0]
    assert early.evaluate(x) == program.evaluate(x) == [[-6.0, 1.0, 2116.0]]


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
        assert early.evaluate(*given[:count]) == program.evaluate(*given[:count])
