"""Bytecode programs and their tapes: the numbers of the recorded graph and of its derivatives."""

from __future__ import annotations

import numpy as np
import pytest
from engine_cases import guard

from robokit.engine import Kernel
from robokit.engine.passes.bytecode import ENTER, PLUS, SKIP, bytecode
from robokit.engine.passes.derivative import along
from robokit.engine.run.interpreter import Interpreter
from robokit.engine.trace.record import trace
from robokit.spatial.scalars import cos, floor, lookup, shared, sin, sqrt, where

INPUTS, OUTPUTS, TABLES = [("x", 4), ("y", 1)], [("z", (6,)), ("s", ())], [("heights", 5)]
HEIGHTS = np.array([0.3, -0.2, 0.5, 0.1, 0.7])
KEY = object()
STATES = np.random.default_rng(5).uniform(-1.0, 1.0, (40, 5))


def everything(x, y, heights):
    """Every operation; a text taken three times, once in a guard, which reads what is computed outside."""
    outside = x[0] * x[1] + y[0]
    apart = sin(x[2]) * cos(x[3])
    near = x[0] > 0.1

    def text(a, b, c):
        (inner,) = guard(b < 0.2, lambda: [sqrt(a * a + 2.0) / (1.5 + outside * b)], 0.25)
        return [inner - a * b, where((a < b) & ~(c == 0.5), sin(c), abs(a)), apart - c, 3.0, outside]

    total, c = 0.0, x[2]
    for k in range(2):
        first, second, c, three, same = shared(KEY, text, [x[k], total + x[3], c], [True] * 3, large=True)
        total = total + first * three - second * same
    (late,) = guard(near, lambda: shared(KEY, text, [total, c, x[1]], [True] * 3, large=True)[:1], cos(total))
    safe = where(near | (total <= -5.0), sqrt(x[0]), 1.0 - x[3])  # NaN in the branch that is not taken
    return [
        [total, late, safe, floor(3.0 * x[0]) * x[1], lookup(heights, 4.0 * x[2]) / (2.0 + x[3]), -x[2]],
        [x[1] * x[2] - c],
    ]


def tape(of):
    program = trace(everything, INPUTS, OUTPUTS, tables=TABLES, shares="large")
    assert len(program.blocks) == 1
    found = bytecode(program, of)
    assert {ENTER, SKIP, PLUS} <= set(found.code[:, 0].tolist())
    return program, Interpreter(found)


def test_values_and_derivatives_are_those_of_the_graph():
    of = [(0, k) for k in range(4)] + [(1, 0)]
    program, run = tape(of)
    derived = along(everything, INPUTS, OUTPUTS, [0, 1], TABLES)
    directions = [("dx", 4), ("dy", 1)]
    graph = trace(lambda *given: derived(*given)[1], INPUTS + directions, OUTPUTS, tables=TABLES)
    for state in STATES:
        values, slopes = run([state[:4], state[4:]], [HEIGHTS])
        expected = [x for row in program.evaluate(state[:4], state[4:], HEIGHTS) for x in row]
        assert np.abs(values - expected).max() < 1e-15
        for k, direction in enumerate(np.eye(5).tolist()):
            rows = graph.evaluate(state[:4], state[4:], direction[:4], direction[4:], HEIGHTS)
            changes = [x for row in rows for x in row]
            assert np.abs(slopes[:, k] - changes).max() < 1e-13 * max(1.0, np.abs(changes).max())


def test_both_sides_of_every_condition_were_met():
    """Else the test above would say little."""
    assert {bool(x > 0.1) for x in STATES[:, 0]} == {True, False}


def test_directions_are_in_any_order_and_some_move_nothing():
    _, run = tape([(0, 0), (1, 0), (0, 3)])
    of_all = tape([(0, k) for k in range(4)] + [(1, 0)])[1]
    for state in STATES[:5]:
        some, every = (each([state[:4], state[4:]], [HEIGHTS])[1] for each in (run, of_all))
        assert (some == every[:, [0, 4, 3]]).all()
    still = Interpreter(bytecode(trace(lambda x: [[x[0], 2.0]], [("x", 2)], [("y", (2,))]), [(0, 1), (0, 0)]))
    values, slopes = still([np.array([3.0, 4.0])], [])
    assert values.tolist() == [3.0, 2.0] and slopes.tolist() == [[0.0, 1.0], [0.0, 0.0]]


def test_more_directions_than_go_together():
    n = 150

    def text(x):
        return [[x[k] * x[(7 * k + 1) % n] - sin(x[k]) for k in range(n)]]

    x = np.random.default_rng(0).standard_normal(n)
    _, slopes = Interpreter(bytecode(trace(text, [("x", n)], [("y", (n,))]), [(0, k) for k in range(n)]))(
        [x], []
    )
    expected = np.zeros((n, n))
    for k in range(n):
        expected[k, k] += x[(7 * k + 1) % n] - np.cos(x[k])
        expected[k, (7 * k + 1) % n] += x[k]
    assert np.abs(slopes - expected).max() < 1e-15


@pytest.mark.parametrize("how", [{"reproducible": True}, {"dtype": "float32"}])
def test_kernels_that_are_not_interpreted(how):
    kernel = Kernel.build("square", [("x", 1)], [("y", ())], lambda x: [[x[0] * x[0]]], **how)
    assert kernel.interpreter([(0, 0)], 1) is None
    kernel = Kernel.build("square", [("x", 1)], [("y", ())], lambda x: [[x[0] * x[0]]])
    assert kernel.interpreter([(0, 0)], 2) is None


def test_a_kernels_list_is_kept_on_disk(tmp_path, monkeypatch):
    monkeypatch.setenv("ROBOKIT_CACHE_DIR", str(tmp_path))
    recordings = []

    def text(x):
        recordings.append(1)
        return [[x[0] * x[0] + x[1]]]

    for _ in range(2):
        kernel = Kernel.build("square", [("x", 2)], [("y", ())], text, key=b"square")
        values, slopes = kernel.interpreter([(0, 0), (0, 1)], 1)([np.array([3.0, 4.0])], [])
        assert values.tolist() == [13.0] and slopes.tolist() == [[6.0, 1.0]]
    assert len(recordings) == 1
