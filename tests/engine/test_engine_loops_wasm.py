"""Loops in WebAssembly: one module for all sizes, and the bits that Python has."""

from __future__ import annotations

import base64

import numpy as np
import pytest
from node_program import run_in_node
from test_engine_loops import factor
from test_engine_loops_c import CALLS, CALLS_GIVEN, MEMORY, MEMORY_GIVEN, OUTSIDE, SPARE, SWAPS, random_calls

import robokit as rk
from robokit.engine.loops.kernel import ArrayOf, LoopKernel, wasm_module
from robokit.spatial.control_flow import call, for_range, zeros
from robokit.spatial.scalars import cos, sin

RUN = """
const { file, calls } = JSON.parse(require("fs").readFileSync(0));
const { exports } = new WebAssembly.Instance(new WebAssembly.Module(Buffer.from(file, "base64")), {});
console.log(JSON.stringify(calls.map(({ name, sizes, arrays, work }) => {
  let end = 8;
  const places = arrays.map(({ values, whole }) => {
    const place = end;
    end += 8 * (1 + values.length);
    return place;
  });
  const start = end;
  end += work;
  while (exports.memory.buffer.byteLength < end) exports.memory.grow(1);
  const views = arrays.map(({ values, whole }, k) =>
    new (whole ? Int32Array : Float64Array)(exports.memory.buffer, places[k], values.length));
  views.forEach((view, k) => view.set(arrays[k].values));
  const given = [...sizes, ...places];
  new Uint8Array(exports.memory.buffer, start, work).fill(77);
  if (exports[name].length > given.length) given.push(start, end);
  const status = exports[name](...given);
  return status ? status : views.map((view) => [...view]);
})));
"""


def in_node(calls, spare=0):
    """What each call leaves in its arrays: (kernel, arguments) -> outputs, all in one module."""
    kernels = list(dict.fromkeys(kernel for kernel, _ in calls))
    given = []
    for kernel, arguments in calls:
        sizes, arrays, _ = kernel._read(arguments, "float64")
        values = [{"values": x.ravel().tolist(), "whole": x.dtype == np.int32} for x in arrays]
        try:
            needed = kernel.workspace(**arguments)
        except (IndexError, MemoryError, ValueError, ZeroDivisionError):
            needed = {"real": 0, "integer": 0}
        own = {"sizes": [sizes[n] for n in kernel.sizes], "arrays": values}
        given.append({"name": kernel.name, "work": 8 * needed["real"] + 4 * needed["integer"] + spare, **own})
    file = base64.b64encode(wasm_module(kernels)).decode()
    found = run_in_node(RUN, {"file": file, "calls": given})
    for (kernel, _), arrays in zip(calls, found, strict=True):
        if isinstance(arrays, int):
            yield kernel.failures()[arrays - 1]
            continue
        yield {a.name: x for a, x in zip(kernel.arrays, arrays, strict=True) if a.role in ("out", "inout")}


def differ(calls):
    """Calls whose numbers in Node and by Python are not the same."""
    wrong = []
    for (kernel, given), found in zip(calls, in_node(calls), strict=True):
        plain = kernel(**given, engine="python")
        wrong += [(kernel.name, a) for a in found if found[a] != plain[a].ravel().tolist()]
    return wrong


@pytest.mark.node
def test_random_programs_are_the_same_bits_in_node():
    assert differ(list(random_calls(range(60)))) == []


@pytest.mark.node
def test_one_module_serves_all_sizes_and_its_memory_grows():
    ldlt = LoopKernel("ldlt", factor, ["n"], [ArrayOf("A", ("n", "n"), "inout")])
    calls = []
    for n in (1, 2, 17, 96):
        M = np.random.default_rng(n).normal(size=(n, n))
        calls.append((ldlt, {"A": M @ M.T + n * np.eye(n)}))
    assert differ(calls) == []
    assert len(wasm_module([ldlt])) < 400


@pytest.mark.node
def test_the_elements_of_a_row_have_one_address():
    """Each more of them takes 16 bytes: two loads, a sum and a store, without an index of its own."""

    def kernel(width):
        def function(n, A, B, at):
            def row(k):
                first = at[k] - 3  # of the first row -3: no place in memory
                for j in range(width):
                    B[k, j] = A[k, j] + A[n - 1 - k, width - 1 - j]
                B[k, first + 3] = B[k, first + 3] + A.reshape(n * width)[first + 3]

            for_range(n, row)

        shape = ("n", width)
        arrays = [ArrayOf("A", shape), ArrayOf("B", shape, "out"), ArrayOf("at", ("n",), kind="integer")]
        return LoopKernel(f"rows_{width}", function, ["n"], arrays)

    kernels = [kernel(6), kernel(12)]
    given = [
        {"A": np.random.default_rng(0).normal(size=(5, w)), "at": np.arange(5, dtype=np.int32)}
        for w in (6, 12)
    ]
    assert differ(list(zip(kernels, given, strict=True))) == []
    few, many = (len(wasm_module([each])) for each in kernels)
    assert many - few <= 16 * 6 + 4


@pytest.mark.node
def test_calls_are_the_same_bits_in_node():
    assert differ([(CALLS, given) for given in CALLS_GIVEN]) == []


@pytest.mark.node
def test_arrays_of_zeros_are_in_the_workspace():
    calls = [(MEMORY, given) for given in MEMORY_GIVEN]
    assert differ([*calls, (SPARE, {"x": np.array([0.5, 2.0, 3.0])})]) == []
    assert all("the workspace is too small" in found for found in in_node(calls, -8))


@pytest.mark.node
def test_functions_find_the_arrays_of_each_call():
    """One function is given the same array by all who call it, others another one each time."""

    def function(n, x, y, out):
        def add(a, b):
            for_range(n, lambda k: a.__setitem__(k, a[k] + 2.0 * b[k]))

        def both(a, b):
            call(add, out, a)
            call(add, b, a)

        def turn(k):
            own = zeros(n + k)  # begins elsewhere in each turn
            spare = zeros(n)
            call(both, x, own)
            call(both, y, spare)
            call(add, out, own)
            call(add, out, spare)

        for_range(3, turn)

    arrays = [ArrayOf("x", ("n",)), ArrayOf("y", ("n",)), ArrayOf("out", ("n",), "out")]
    kernel = LoopKernel("several", function, ["n"], arrays)
    assert differ([(kernel, {"x": np.arange(1.0, 6.0), "y": np.arange(4.0, 9.0)})]) == []


def test_names_are_those_of_the_exports():
    other = LoopKernel("memory", factor, ["n"], [ArrayOf("A", ("n", "n"), "inout")])
    for kernels in ([other], [MEMORY, MEMORY]):
        with pytest.raises(rk.RobokitError, match=kernels[0].name):
            wasm_module(kernels)


@pytest.mark.node
def test_what_ends_a_call_is_told():
    for found in in_node([(OUTSIDE, {"x": np.ones(n)}) for n in (1, 3)]):
        assert found.startswith("IndexError: index out of range")


@pytest.mark.node
def test_every_form_in_node():
    calls = [(SWAPS, {"x": np.linspace(-1.0, 2.0, n), "int": [n, 0, 0]}) for n in range(1, 7)]
    for (kernel, given), found in zip(calls, in_node(calls), strict=True):
        plain = kernel(**given, engine="python")
        assert found["int"] == plain["int"].tolist()
        np.testing.assert_allclose(found["x_1"], plain["x_1"], rtol=1e-14)


@pytest.mark.node
def test_angles_are_the_engine_s_own():
    def function(n, x, out):
        def turn(k, s):
            out[k] = sin(x[k]) * cos(x[k]) + cos(s)
            return s + sin(x[k] * 2.0)

        out[0] = for_range(n, turn, 0.5)

    kernel = LoopKernel(
        "angles", function, ["n"], [ArrayOf("x", ("n",)), ArrayOf("out", ("n",), "out")], True
    )
    x = np.array([0.1, -3.0, 1e3, 2e7, 5.0])
    (found,) = in_node([(kernel, {"x": x})])
    assert found["out"] == kernel(x=x)["out"].tolist()


def overwritten(n, x, y, out):
    """Elements that are read before they are written, and used after it."""
    known, last, other, counted = x[0], x[n - 1], y[1], x[1]
    x[0], x[1], y[0] = 5.0, 7.0, 6.0
    out[0] = known + 10.0 * last

    def again(k):
        x[1] = x[1] + 1.0

    for_range(n, again)
    out[1] = other + 10.0 * counted
    out[2] = x[0] + 10.0 * x[1]


@pytest.mark.node
def test_what_is_read_before_it_is_written_is_what_was_there():
    arrays = [ArrayOf("x", ("n",), "inout"), ArrayOf("y", ("n",), "inout"), ArrayOf("out", (3,), "out")]
    kernel = LoopKernel("overwritten", overwritten, ["n"], arrays)
    calls = [(kernel, {"x": np.arange(1.0, n + 1.0), "y": np.arange(2.0, n + 2.0)}) for n in (2, 3)]
    assert not list(differ(calls))
