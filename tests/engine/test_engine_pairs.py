"""Limbs that are alike in the lanes of vectors, for one state: the same numbers as one after the other."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from engine_cases import called_often, follow, guard, recipes
from hypothesis import given, settings
from hypothesis import strategies as st

import robokit as rk
from robokit.dynamics.build import kernel as kernel_of
from robokit.engine import Kernel
from robokit.engine.backend.targets import OneState
from robokit.engine.emit import ir
from robokit.engine.passes import superword as passes
from robokit.engine.passes.order import fused, paths
from robokit.engine.passes.superword import isomorphic_pairs, packed
from robokit.engine.trace.ops import ADD, CALL, FIRST, GUARD, INPUT, PAIR, SECOND, SUB
from robokit.engine.trace.record import trace
from robokit.spatial.scalars import cos, sin, sqrt, where

N = 6
SHAPE = [("x", 2 * N)], [("y", (9,))]
SEEDS = [(0, k, N + k) for k in range(N)]
RANDOM = np.random.default_rng(3)
STATES = RANDOM.uniform(-1.0, 1.0, (12, 2 * N))


@pytest.fixture(autouse=True)
def short_functions_are_called(monkeypatch):
    """In kernels of this process only long ones are."""
    monkeypatch.setattr("robokit.engine.trace.record.LONG", 0)


def limb(x, c, sign, on=None):
    """What a limb computes: constants of its own, and signs."""
    s, t = sin(x[0]), cos(x[0])
    a = s * x[1] + sign * (t * x[2] * c)
    b = t * x[1] - sign * (s * x[2]) + c
    low = where(a < b, a, b * 0.5)
    d = sqrt(a * a + b * b + 1.0) / (2.0 + low * low)

    def near():
        e = d
        for k in range(6):
            e = sqrt(e * e + 0.1 * k + b * b) * x[3] - sign * a / (1.5 + e * e)
        return [e, e * d]

    return [a, b, d, *guard((x[4] > 0.0) & (a < 0.8) if on is None else on, near, x[5], d)]


def robot(x, fours=(1.0, -1.0)):
    """Two limbs on a trunk."""
    left, right = (limb(x[k * N :], 0.3 + 0.4 * k, sign) for k, sign in enumerate(fours))
    trunk = [sum(pair) * 0.5 for pair in zip(left, right, strict=True)]
    out = [
        limb([trunk[0], *side[:3], x[4], x[5]], 1.1, sign)
        for side, sign in zip((left, right), fours, strict=True)
    ]
    return [[*trunk, out[0][2], out[1][2], out[0][3] - out[1][3], left[3]]]


def calls(x):
    """A function whose arguments are those of two limbs, called three times."""

    def sweep(*w):
        limbs = (w[:3], 1.0), (w[3:6], -1.0)
        up = [limb([a, b, c, a * b, x[4], x[10]], 0.4, sign) for (a, b, c), sign in limbs]
        return [each * w[6] + k for k, row in enumerate(up) for each in row[:4]]

    w = [*x[:3], *x[N : N + 3], x[5] + x[11]]
    for _ in range(3):
        found = called_often(sweep, *w)
        w = [found[0], found[1], found[2], found[4], found[5], found[6], found[3] - found[7]]
    return [[*w, found[3], found[7]]]


def functions_of_limbs(x):
    """A function that is called for one limb after the other, several times."""
    left, right = [*x[:3]], [*x[N : N + 3]]
    for k in range(3):
        sides = []
        for side, sign in ((left, 1.0), (right, -1.0)):
            given = [sign * side[0], side[1] + 0.1 * k, side[2]]
            sides.append(called_often(limb_text, *given))
        (a, b, c, d), (e, f, g, h) = sides
        p, r = sin(x[0]), sin(x[N])
        left, right = [a * p + h, b * p * c, p * d - e], [e * r + d, f * r * g, r * h - a]
    return [[*left, *right, left[0] * right[1], a, h]]


def limb_text(a, b, c):
    """What both limbs do."""
    s = sin(a) * b - c
    for k in range(12):
        s = sqrt(0.1 * s * s + 0.1 * k + b * b) * 0.3 * c - 0.2 * a / (1.5 + s * s)
    return [sin(s), cos(s * a), sin(b - s), cos(c * s)]


def expected(function, x):
    return np.asarray(function(x.tolist())[0], float)


@pytest.fixture
def always(monkeypatch, tmp_path):
    """Twins go through lanes whether that pays or not."""
    monkeypatch.setenv("ROBOKIT_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(passes, "WORTH", 10.0)


def made(function, seeds=SEEDS, shape=SHAPE, **more):
    """A kernel, and its graph as it is written."""
    kernel = Kernel("pairs", *shape, function, superword_seeds=seeds, **more)
    planned = kernel._maker.planned(OneState())
    return kernel, packed(planned.program, planned.superword_seeds)


@pytest.mark.parametrize("chunk", [450, 12])
@pytest.mark.parametrize("function", [robot, calls, functions_of_limbs])
def test_machine_code_gives_the_same(function, chunk, always, monkeypatch):
    monkeypatch.setattr(ir, "CHUNK", chunk)
    kernel, graph = made(function)
    called = function is not robot  # what is called is written once already, and stays as it is
    assert any(graph.nodes[n][0] == CALL for n in graph.order) == called
    assert not graph.wide if called else len(graph.wide) > 0.3 * len(graph.order)
    for x in STATES:
        np.testing.assert_allclose(kernel(x), expected(function, x), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("left", "right"), list(product((0.5, -0.5), repeat=2)))
def test_a_block_runs_where_either_limb_needs_it(left, right, always):
    kernel, graph = made(robot)
    inside = paths(graph)
    assert any(graph.nodes[n][0] == GUARD and n in graph.wide for n in graph.order)
    assert any(n in graph.wide for n in inside)
    x = STATES[0].copy()
    x[4], x[N + 4] = left, right
    np.testing.assert_allclose(kernel(x), expected(robot, x), rtol=1e-12)


@pytest.mark.parametrize("signs", list(product((1.0, -1.0), repeat=4)))
@pytest.mark.parametrize("swapped", [False, True])
def test_sums_are_partners_of_differences(signs, swapped, always):
    a, b, c, d = signs

    def function(x):
        p, q = sin(x[0]) * x[1], cos(x[0]) * x[2]
        if swapped:  # of two operands the one that is recorded first is the first
            s = cos(x[N]) * x[N + 2]
        r = sin(x[N]) * x[N + 1]
        if not swapped:
            s = cos(x[N]) * x[N + 2]
        second = c * r + d * s
        return [[a * p + b * q, second, p * (a * p + b * q), r * second, *x[:5]]]

    kernel, graph = made(function)
    assert graph.wide
    for x in STATES[:3]:
        np.testing.assert_allclose(kernel(x), expected(function, x), rtol=1e-12, atol=1e-15)


def test_partners_that_wait_for_each_other_stay_apart(always):
    def function(x):
        first, second = sin(x[0]) * x[1], sin(x[N]) * x[N + 1]
        left = sqrt(first * first + 1.0)
        right = sqrt(second * second + 1.0)
        # Each limb goes on from the other: what is before is done for one before it can be done for both.
        after = cos(right) * x[2] + left
        before = cos(after * x[N + 2]) + right
        return [[left, right, after, before, *x[:5]]]

    kernel, _ = made(function)
    for x in STATES[:3]:
        np.testing.assert_allclose(kernel(x), expected(function, x), rtol=1e-12)


@settings(max_examples=40, deadline=None)
@given(recipes(3, 40), st.integers(0, 2**32))
def test_wrong_guesses_are_no_errors(recipe, seed):
    """Any two operations of one kind may be called partners, even where one depends on the other."""
    rng = np.random.default_rng(seed)

    def function(x):
        return [follow(recipe, x)]

    def guessed(program, *_):
        partner = [0] * len(program.nodes)
        for op in {program.nodes[n][0] for n in program.order}:
            alike = (ADD, SUB) if op == ADD else (op,) if op != SUB else ()
            same = rng.permutation([n for n in program.order if program.nodes[n][0] in alike]).tolist()
            for n, m in zip(same[::2], same[1::2], strict=False):
                partner[n], partner[m] = m, n
        return partner

    shape = [("x", 3)], [("y", (3 + len(recipe),))]
    x = rng.uniform(0.2, 1.0, 3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passes, "WORTH", 10.0)
        patch.setattr(passes, "isomorphic_pairs", guessed)
        kernel = Kernel("guessed", *shape, function, superword_seeds=[(0, 0, 1)])
        np.testing.assert_allclose(
            kernel(x), np.asarray(function(x.tolist())[0], float), rtol=1e-9, atol=1e-12
        )


def test_leaves_stay_what_they_are(always):
    _, graph = made(robot)
    assert not any(graph.nodes[n][0] == INPUT for n in graph.wide)
    lanes = {n for n in graph.order if graph.nodes[n][0] in (FIRST, SECOND)}
    assert all(graph.nodes[n][1] in graph.wide and n not in graph.wide for n in lanes)
    assert all(n in graph.wide for n in graph.order if graph.nodes[n][0] == PAIR)
    read = {x for n in graph.order for x in graph.nodes[n][1:]} | set(graph.results[0])
    assert read >= set(graph.order)


@pytest.mark.parametrize("name", ["humanoid", "quadruped"])
def test_limbs_of_a_robot_are_found(name):
    robot = rk.load_urdf(rk.find_robot(name), base="floating")
    program = kernel_of(robot, "rnea")._maker.planned(OneState())
    graph = packed(program.program, program.superword_seeds)
    assert len(graph.order) < 0.72 * len(program.program.order)


def test_without_gain_all_stays_as_it_is():
    program = fused(trace(robot, *SHAPE))
    assert packed(program, []) is program
    few = fused(trace(lambda x: [[sin(x[0]) + x[k] * x[k + 1] for k in range(9)]], *SHAPE))
    assert packed(few, SEEDS) is few


def test_partners_are_mutual_and_do_the_same():
    program = fused(trace(robot, *SHAPE))
    at = {node[1:]: n for n, node in enumerate(program.nodes) if node[0] == INPUT}
    partner = isomorphic_pairs(program, [(at[k, a], at[k, b]) for k, a, b in SEEDS], paths(program))
    found = [n for n in program.order if partner[n]]
    assert len(found) > 0.6 * len(program.order)
    assert all(partner[partner[n]] == n != partner[n] for n in found)
    assert all(len(program.nodes[n]) == len(program.nodes[partner[n]]) for n in found)


def test_reproducible_code_takes_one_limb_after_the_other():
    kernel = Kernel("pairs", *SHAPE, robot, superword_seeds=SEEDS, reproducible=True)
    assert not kernel._maker.planned(OneState()).superword_seeds
