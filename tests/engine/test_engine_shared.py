"""Functions that are called several times: recorded once, and the same numbers; and as WebAssembly."""

from __future__ import annotations

import base64

import numpy as np
import pytest
from engine_cases import called_often, guard
from node_program import run_in_node

from robokit.engine import Kernel
from robokit.engine.backend import llvm
from robokit.engine.emit import ir
from robokit.engine.loops import wasm
from robokit.engine.passes.derivative import along
from robokit.engine.passes.order import fused, opened, paths
from robokit.engine.passes.replay import evaluated
from robokit.engine.trace.ops import SQRT
from robokit.engine.trace.record import trace
from robokit.spatial.scalars import LIMIT, cos, floor, sin, sine_and_cosine, sqrt, where

ONE = [("x", 4)], [("y", (4,))]


@pytest.fixture(autouse=True)
def short_functions_are_called(monkeypatch):
    """In kernels of this process only long ones are."""
    monkeypatch.setattr("robokit.engine.trace.record.LONG", 0)


def long(a, b, steps=12):
    s = a
    for k in range(steps):
        s = sqrt(0.1 * s * s + (1.0 + 0.01 * k)) / (1.5 + b * b * s * s)
    return s


def thrice(x):
    """A function called three times, the last time in a guard, which reads what is computed outside."""
    near = x[0] > 0.0
    outside = x[1] * x[2] + x[3]
    costly = long(outside, x[1])

    def function(a, b, c, d):
        (inner,) = guard(near, lambda: [long(d, costly) + c], 0.0)
        return [inner + b * outside, -a, where(a < b, a * c, sin(b)), 2.0]

    a, b = x[1], x[2]
    total = 0.0
    for _ in range(2):
        a, b, more, two = called_often(function, a, b, x[3], a + b)
        total = total + more * two
    needed = total > 0.2
    last = called_often(function, b, a, total, a - b)
    a, b, total = guard(needed, lambda: [last[0], last[1] + last[2], last[2]], a, b, total)
    return [[a, b, total, costly]]


STATES = np.random.default_rng(3).uniform(-1.0, 1.0, (12, 4))


def plans(function):
    return [opened(trace(function, *ONE, shares=shares)) for shares in (False, True)]


def test_functions_are_recorded_once_and_mean_the_same():
    whole, calls = plans(thrice)
    assert len(calls.blocks) == 1 and not whole.blocks
    assert len(calls.order) < 0.7 * len(whole.order)
    for program in (calls, fused(calls)):
        for x in STATES:
            np.testing.assert_allclose(evaluated(program, x), evaluated(whole, x), rtol=1e-13)
    for x in STATES:
        np.testing.assert_allclose(thrice(x.tolist()), evaluated(whole, x), rtol=1e-13)


def test_a_text_of_which_only_arguments_are_read_computes_nothing():
    def function(x):
        b, a, two, _ = called_often(lambda a, b: [b, a, 2.0, long(a, b)], *x[:2])
        return [[a * two, b, x[2], x[3]]]

    assert plans(function)[1].blocks
    kernel = Kernel("arguments", *ONE, function)
    for given in (STATES[0], STATES):
        np.testing.assert_array_equal(kernel(given), np.array([2.0, 1.0, 1.0, 1.0]) * given)


@pytest.mark.parametrize("shares", ["large", True])
def test_the_derivative_of_a_text_that_is_called_is_called(shares):
    def function(x):
        taken = thrice(x)[0]
        # Of an argument that does not move, and with values that do not follow from the arguments.
        product = lambda a, b: [long(x[0] * a * b, x[3]), x[1], 4.0]  # noqa: E731
        more = [called_often(product, a, x[2]) for a in (2.0, 3.0)]
        return [[*taken[:3], taken[3] * more[0][0] + more[1][0] * more[1][1] * more[1][2]]]

    derived = along(function, *ONE, [0])

    def flat(x, d):
        values, slopes = derived(x, d)
        return [values[0], slopes[0]]

    both = [("x", 4), ("d", 4)], [("y", (4,)), ("dy", (4,))]
    calls, whole = (opened(trace(flat, *both, shares=how)) for how in (shares, False))
    assert len(calls.blocks) == 2 and not whole.blocks
    assert len(calls.order) < 0.7 * len(whole.order)
    for x, d in zip(STATES, STATES[::-1], strict=True):
        expected = evaluated(whole, x, d)
        np.testing.assert_allclose(evaluated(calls, x, d), expected, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(flat(x.tolist(), d.tolist()), expected, rtol=1e-12, atol=1e-14)
    kernel = Kernel("called along", *both, flat)
    np.testing.assert_allclose(
        kernel(STATES, STATES[::-1])[1],
        [evaluated(whole, *z)[1] for z in zip(STATES, STATES[::-1], strict=True)],
        rtol=1e-12,
        atol=1e-14,
    )


def test_a_function_called_in_another_is_written_out():
    def inner(a):
        return [long(a, a)]

    def outer(a, b):
        return [called_often(inner, a)[0] + b]

    def function(x):
        return [[called_often(outer, a, x[3])[0] for a in x]]

    whole, calls = plans(function)
    assert len(calls.blocks) == 1 and not whole.blocks
    for x in STATES:
        np.testing.assert_array_equal(evaluated(calls, x), evaluated(whole, x))


@pytest.mark.parametrize("reproducible", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_kernels_of_this_process_call_large_texts(dtype, reproducible, tmp_path, monkeypatch):
    monkeypatch.setenv("ROBOKIT_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(ir, "CHUNK", 30)  # many chunks, inside the calls too
    function, feedback = thrice, {"y": "x"}
    kernel = Kernel("calls", *ONE, function, feedback=feedback, dtype=dtype, reproducible=reproducible)
    monkeypatch.setattr("robokit.engine.trace.record.LONG", 10**9)
    plain = Kernel("plain", *ONE, thrice, dtype=dtype, reproducible=reproducible)
    states = np.random.default_rng(4).uniform(-1.0, 1.0, (67, 4)).astype(dtype)
    states[:20, 0] = -abs(states[:20, 0])  # whole tiles that skip a call
    expected, flops = plain(states), plain.flops
    assert not plain._maker.planned(plain._many).program.blocks
    monkeypatch.setattr("robokit.engine.trace.record.LONG", 0)
    if reproducible:
        np.testing.assert_array_equal(kernel(states), expected)
    np.testing.assert_allclose(kernel(states), expected, rtol=1e-12 if dtype == "float64" else 2e-5)
    for x, y in zip(states, expected, strict=True):
        np.testing.assert_allclose(kernel(x), y, rtol=1e-12 if dtype == "float64" else 2e-5)
    assert kernel._maker.planned(kernel._many).program.blocks
    assert kernel.flops == flops


def handed_on(x):
    """Three calls: of what they take and give, some is needed later than the next call."""
    function = lambda a, b: [long(a, b, 20), a - b]  # noqa: E731
    first, always = x[0] * x[1], x[2] + x[3]
    a0, b0 = called_often(function, first, always)
    a1, _ = called_often(function, a0 + x[3], always)
    a2, b2 = called_often(function, a1 * b0, always)
    return [[a2, b2, always, b0 * a2]]


def test_results_that_go_on_to_the_next_call_and_further(monkeypatch):
    program = trace(handed_on, *ONE, shares="large")
    monkeypatch.setattr(ir, "CHUNK", 20)
    kernel = Kernel("handed", *ONE, handed_on, reproducible=True)
    expected = np.array([evaluated(program, x)[0] for x in STATES])
    np.testing.assert_allclose(kernel(STATES), expected, rtol=1e-13)
    np.testing.assert_array_equal(kernel(STATES), [kernel(x) for x in STATES])


def guarded_calls(x):
    """Calls that are all inside a guard, and a body that reads what is only needed there."""
    near = x[0] > 0.0

    def inside():
        dear = long(x[1], x[2], 20)  # what the body reads of the program around it
        function = lambda a, b: [long(a, dear) * b, a - b, 1.0]  # noqa: E731
        values = [x[3], 0.5]
        for factor in (0.25, 3.0, -1.0):
            inner = values[0] > factor
            values = guard(
                inner,
                lambda v=values, f=factor: called_often(function, v[0], f)[:2],
                *values,
            )
        return [*values, dear]

    return [[*guard(near, inside, x[1], x[2], x[3]), x[0]]]


def test_calls_inside_a_guard_take_along_what_only_they_read():
    whole, calls = plans(guarded_calls)
    assert len(calls.blocks) == 1 and len(calls.blocks[0].parameters) == 2
    line, (body,) = calls.lines()
    inside = paths(calls)
    assert not any(n in inside for n in body)
    costly = [n for n in line if calls.nodes[n][0] == SQRT]
    assert costly and all(inside.get(n) for n in costly)
    for x in STATES:
        np.testing.assert_array_equal(evaluated(calls, x), evaluated(whole, x))


@pytest.mark.parametrize("chunk", [30, 400])
def test_bodies_in_one_chunk_and_in_many_mean_the_same(chunk, tmp_path, monkeypatch):
    monkeypatch.setenv("ROBOKIT_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(ir, "CHUNK", chunk)
    monkeypatch.setattr(llvm, "LEAST", 2_000)  # some of the chunks are called from another module
    function = guarded_calls
    kernel = Kernel("inside", *ONE, function, reproducible=True)
    expected = np.array([guarded_calls(x.tolist())[0] for x in STATES])
    np.testing.assert_array_equal(kernel(np.repeat(STATES, 5, axis=0)), np.repeat(expected, 5, axis=0))
    for x, y in zip(STATES, expected, strict=True):
        np.testing.assert_array_equal(kernel(x), y)


# ---- WebAssembly -----------------------------------------------------------------------------------------

RUN = """
const { file, inputs, outputs, rows } = JSON.parse(require("fs").readFileSync(0));
const { exports } = new WebAssembly.Instance(
  new WebAssembly.Module(Buffer.from(file, "base64")), { start: { zero: 0 } });
const all = new Float64Array(exports.memory.buffer);
console.log(JSON.stringify(rows.map((row) => {
  row.forEach((x, k) => all.set(x, inputs[k][1] / 8));
  exports.step();
  return outputs.map(([, at, count]) => [...all.subarray(at / 8, at / 8 + count)]);
})));
"""


def in_node(module, rows):
    """Outputs of a module for rows of inputs."""
    given = {
        "file": base64.b64encode(module.content).decode(),
        "inputs": module.inputs,
        "outputs": module.outputs,
        "rows": rows,
    }
    return run_in_node(RUN, given)


@pytest.mark.node
@pytest.mark.parametrize("chunk", [3000, 25, 4])
def test_the_module_computes_what_the_text_says(chunk, monkeypatch, tmp_path):
    monkeypatch.setenv("ROBOKIT_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(wasm, "CHUNK", chunk)

    def function(x):
        a, b, total, costly = thrice(x)[0]
        entries = [floor(3.0 * x[1]), abs(costly)]
        return [[a, b, total, x[2], 3.0], entries, *guarded_calls(x)]

    outputs = [("y", (5,)), ("z", (2,)), ("u", (4,))]
    kernel = Kernel("module", [("x", 4)], outputs, function, reproducible=True)
    module = wasm.unpacked(kernel.compiled(wasm.WASM))
    assert [name for name, _, _ in module.inputs] == ["x"]
    assert [(name, count) for name, _, count in module.outputs] == [("y", 5), ("z", 2), ("u", 4)]
    rows = [[list(x)] for x in [*STATES, *STATES[:2]]]  # also what an earlier state has left behind
    for (x,), outs in zip(rows, in_node(module, rows), strict=True):
        for found, expected in zip(outs, kernel(np.array(x)), strict=True):
            np.testing.assert_array_equal(found, expected)


@pytest.mark.node
def test_sines_in_the_module_are_the_engine_s_own():
    kernel = Kernel("sines", [("x", 1)], [("y", (1,)), ("z", (1,))], lambda x: [[sin(x[0])], [cos(x[0])]])
    module = wasm.unpacked(kernel.compiled(wasm.WASM))
    angles = [0.0, 1.0, -2.5, 1e3, -3e5, 1e7, -1e9, 2e9, *np.linspace(-10.0, 10.0, 40)]
    found = in_node(module, [[[float(a)]] for a in angles])
    for angle, ((sine,), (cosine,)) in zip(angles, found, strict=True):
        if abs(angle) <= LIMIT:
            assert (sine, cosine) == sine_and_cosine(angle)
        else:
            assert sine is None and cosine is None  # NaN, as JSON has it


def test_a_module_is_for_another_host():
    with pytest.raises(llvm.CompilerMissing):
        wasm.WASM.load(b"")
