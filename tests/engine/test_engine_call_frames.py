"""Calls whose results are the kernel's have places of their own: nothing is copied, and the numbers stay."""

from __future__ import annotations

import numpy as np
import pytest
from engine_cases import called_often, guard

from robokit.engine import Kernel
from robokit.engine.emit import ir
from robokit.engine.passes.schedule import blocks_with_frames, call_plan
from robokit.engine.trace.ops import CALL, CONST, RESULT
from robokit.engine.trace.record import called, position, trace
from robokit.spatial.scalars import sin, sqrt

ONE = [("x", 4)], [("y", (17,))]
STATES = np.random.default_rng(5).uniform(-1.0, 1.0, (41, 4))


@pytest.fixture(autouse=True)
def short_functions_are_called(monkeypatch):
    """In kernels of this process only long ones are."""
    monkeypatch.setattr("robokit.engine.trace.record.LONG", 0)


def columns(x):
    """Four calls that give what the kernel gives; arguments of every kind; one may be left out."""
    around = sin(x[0]) * x[1]

    def function(a, b, c):
        s = a
        for k in range(15):
            s = sqrt(0.1 * s * s + (1.0 + 0.01 * k)) / (1.5 + b * b * s * s)
        # Read again below, taken twice, an argument, a number, and a value of the function around the calls.
        return [s, s * c, s, b, 2.0, around]

    twice = x[1] * x[2]
    calls = [[twice, x[3] + 1.0, x[0]], [twice, twice, 0.5], [around, x[3] + 1.0, sin(x[3])]]
    found = [called_often(function, *call) for call in calls]
    last = [found[0][0] * 2.0, found[1][1], x[2] - x[0]]
    near = x[2] > 0.0
    inner = guard(near, lambda: called_often(function, *last)[:2], x[0], x[1])
    rows = [each for call in found for each in call[:4]]
    return [[*rows, *inner, found[0][4], found[1][5], twice]]


@pytest.mark.parametrize("reproducible", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("chunk", [20, 400])
def test_the_numbers_are_those_of_the_text(chunk, dtype, reproducible, tmp_path, monkeypatch):
    monkeypatch.setenv("ROBOKIT_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(ir, "CHUNK", chunk)
    kernel = Kernel("columns", *ONE, columns, dtype=dtype, reproducible=reproducible)
    states = STATES.astype(dtype)
    states[8:24, 2] = -abs(states[8:24, 2])  # whole tiles that leave the last call out
    expected = np.array([columns(x.tolist())[0] for x in states])
    np.testing.assert_allclose(kernel(states), expected, rtol=1e-12 if dtype == "float64" else 3e-5)


def test_only_arguments_that_have_another_place_are_copied():
    program = trace(columns, *ONE, shares="large")
    plan = call_plan(program, 4, True, 20, 1)
    nodes, (line, _) = program.nodes, program.lines()
    calls = [n for n in line if nodes[n][0] == CALL]
    assert plan.frames.blocks == {called(program, calls[0])} and list(plan.frames.first) == calls
    copied = [
        [
            k
            for k, operand in enumerate(nodes[n][2:])
            if nodes[operand][0] > CONST and (n, k) not in plan.placed
        ]
        for n in calls
    ]
    # A product that two calls take is in the frame of the first; a sine is where the sines are.
    assert copied[0] == [] and copied[1] == [0, 1] and 2 in copied[2]
    inside = {n for chunk in plan.chunks for n in chunk}
    read = [n for n in line if nodes[n][0] == RESULT and n in inside]
    assert [position(program, n) for n in read] == [5], (
        "the function around the calls computes this one alone"
    )


def test_frames_do_not_overlap():
    program = trace(columns, *ONE, shares="large")
    plan = call_plan(program, 4, True, 20, 1)
    size = 1 + max(plan.frames.within.values())
    used = [range(first, first + size) for first in plan.frames.first.values()]
    places = [place for frame in used for place in frame]
    assert len(places) == len(set(places)) and max(places) < plan.slots
    others = set(plan.slot) - set(plan.frames.slot) - set(plan.frames.within)
    assert not {plan.slot[n] for n in others} & set(places)


def test_what_the_kernel_does_not_return_shares_one_place():
    def summed(x):
        return [[sum(columns(x)[0])] * 17]

    program = trace(summed, *ONE, shares="large")
    assert program.blocks and not blocks_with_frames(program, program.lines()[0])
