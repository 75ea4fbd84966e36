"""Loops in C: no warning, and the bits that Python has."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from c_compiler import compiled
from loop_programs import ARRAYS, Program
from test_engine_loops import inputs

import robokit as rk
from robokit.engine.loops.kernel import ArrayOf, LoopKernel
from robokit.spatial.control_flow import call, cond, for_range, vmap, while_loop, whole, zeros
from robokit.spatial.scalars import cos, floor, sin, sqrt, where

FLAGS = ("-O1", "-ffp-contract=off")


def in_c(folder, kernels, flags=FLAGS, dtype="float64"):
    """Functions as :class:`LoopKernel` calls them, of one compiled library."""
    sources = []
    for kernel in kernels:
        for name, text in kernel.c_source(dtype).items():
            (folder / name).write_text(text)
            sources += [folder / name] * name.endswith(".c")
    library = compiled(folder, sources, *flags)

    def caller(kernel):
        head = kernel.c_source(dtype)[f"{kernel.name}.h"]

        def call(spare=0, **given):
            sizes, arrays, _ = kernel._read(given, dtype)
            needed = {"real": 0, "integer": 0}
            if " work_size" in head or "whole_work_size" in head:
                needed = kernel.workspace(**given)
            works = [np.full(max(0, needed["real"] + spare), np.nan, dtype)] * (" work_size" in head)
            works += [np.full(max(0, needed["integer"] + spare), 7, np.int32)] * ("whole_work_size" in head)
            pointers = [x.ctypes.data_as(ctypes.c_void_p) for x in arrays]
            for work in works:
                pointers += [work.ctypes.data_as(ctypes.c_void_p), ctypes.c_int(len(work))]
            function = getattr(library, kernel.name)
            function.restype = ctypes.c_int if f"int {kernel.name}(" in head else None
            status = function(*(ctypes.c_int(sizes[n]) for n in kernel.sizes), *pointers)
            if status:
                return kernel.failures()[status - 1]
            return {
                a.name: x for a, x in zip(kernel.arrays, arrays, strict=True) if a.role in ("out", "inout")
            }

        return call

    return [caller(kernel) for kernel in kernels]


def random_calls(seeds, rows=3):
    """Random programs with arguments of one state: (kernel, arguments)."""
    for seed in seeds:
        kernel = LoopKernel(f"random_{seed}", Program(seed, angles=True), ["n"], ARRAYS, reproducible=True)
        many, n = inputs(seed, rows, "float64")
        for row in range(rows):
            yield kernel, {"n": n} | {a.name: many[a.name] if a.shared else many[a.name][row] for a in ARRAYS}


def agree(folder, seeds, *flags):
    """Programs whose numbers by C and by Python are not the same bits."""
    pairs, wrong = list(random_calls(seeds)), []
    kernels = list(dict.fromkeys(kernel for kernel, _ in pairs))
    by_c = dict(zip(kernels, in_c(folder, kernels, flags or FLAGS), strict=True))
    for kernel, given in pairs:
        found, plain = by_c[kernel](**given), kernel(**given, engine="python")
        wrong += [(kernel.name, a) for a in found if not (found[a] == plain[a]).all()]
    return wrong


def test_random_programs_are_the_same_bits_in_c(tmp_path):
    assert agree(tmp_path, range(15)) == []


@pytest.mark.slow
def test_more_random_programs_in_c(tmp_path):
    assert agree(tmp_path, range(100, 250), "-O3", "-march=native", "-ffp-contract=off") == []


def swaps(n, x, whole, out):
    """What a loop carries changes places; whole numbers, truths and angles are carried, too."""
    a, b, turns, small = for_range(
        n,
        lambda k, a, b, turns, small: (
            b,
            a + x[k] * sin(b) + cos(b),
            turns + k - 1,
            (a < 0.5) & ~small | (turns == whole[0]),
        ),
        x[0],
        0.25,
        0,
        n < 2,
    )
    left = while_loop(lambda a, c: (c < n) & (a < 3.0), lambda a, c: (sqrt(abs(a) + 1.0), c + 2), a, turns)
    out[0] = cond(small, lambda: floor(b) + left[0] / 3.0, lambda: cond(n < 3, lambda: b, lambda: -b))
    out[1] = where(small, 1.5, turns * 0.5) - left[1]
    out[2] = where(n == n, 1.0, 2.0)
    whole[1], whole[2] = left[1] * -3, where(turns <= 2, turns, n)


SWAPS = LoopKernel(
    "swaps",
    swaps,
    ["n"],
    [ArrayOf("x", ("n",)), ArrayOf("int", (3,), "inout", "integer"), ArrayOf("x_1", (3,), "out")],
)


def moved(a, b, scale):
    """A function with two results, an array that it writes to and one that it reads."""

    def entry(k, total):
        b[k] = b[k] + a[k] * scale
        return total + sqrt(abs(b[k]))

    total = for_range(a.shape[0], entry, 0.0)
    return total, a[0] < total, 3


def calls(n, x, y, out):
    """Calls in loops and calls, of parts of arrays, for what they write or what they return."""
    seen = x[0] * 2.0

    def clamped(u, whole):
        return where(u < seen, u, seen * 0.5), whole + 1  # what it uses of the function around it

    def twice(u, rows):
        (first, i), (second, j) = call(clamped, u, n), call(clamped, u + 1.0, 2)
        call(moved, x, rows, u)
        return first + second + rows[1], i + j, 0.25

    def turn(k, s, count):
        total, small, three = call(moved, x, y[k], s * 0.125)
        found, more, quarter = call(twice, total * quarter_of(k), y[k])
        return where(small, s + found * quarter, s - total), count + more * three

    def quarter_of(k):
        return call(clamped, k * 0.25, k)[0]

    s, count = for_range(3, turn, 1.0, 0)
    call(moved, x, y[1], 0.5)
    out[0], out[1], out[2] = s, count * 1.0, call(moved, y[0], y[2], -1.0)[0]


CALLS = LoopKernel(
    "calls",
    calls,
    ["n"],
    [ArrayOf("x", ("n",)), ArrayOf("y", (3, "n"), "inout"), ArrayOf("out", (3,), "out")],
    reproducible=True,
)
CALLS_GIVEN = [{"x": np.linspace(-1.0, 2.0, n), "y": np.ones((3, n))} for n in (2, 5)]


def test_calls_are_the_same_bits_in_c(tmp_path):
    (call,) = in_c(tmp_path, [CALLS])
    for given in CALLS_GIVEN:
        found, plain = call(**given), CALLS(**given, engine="python")
        assert all((found[a] == plain[a]).all() for a in ("y", "out"))
    text = CALLS.c_source()["calls.c"]
    assert text.count("\nstatic ") < 6 and text.count("calls_") > 8, "a function for all calls that are alike"


def memory(n, x, int, out):
    """Arrays of zeros in loops, tests and functions, columns side by side, quotients of whole numbers."""

    def sums(m, weights):
        own, seen = zeros(m, 2), zeros(m, kind="integer")

        def entry(k):
            own[k, 0] = own[k, 0] + weights[k] * 0.5
            own[k, 1], seen[k] = own[k, 0] - 1.0, seen[k] + k

        for_range(2, lambda _: for_range(m, entry))
        return for_range(m, lambda k, s, t: (s + own[k, 1], t + seen[k]), 0.0, 0)

    small = zeros(3)

    def turn(k, total, count):
        weights = zeros(k + 1)
        for_range(k + 1, lambda j: weights.__setitem__(j, x[j] + k))
        more, own = call(sums, k + 1, weights)
        small[k % 3] = small[k % 3] + more
        return total + more, count + own

    total, count = for_range(n, turn, 0.0, 0)

    def below(c):
        scratch = zeros(c + 1)
        scratch[c] = 1.0
        return scratch[c] * c < 3.5

    turns = while_loop(below, lambda c: c + 1, 0, most=n)
    squares = vmap(lambda u, k: (u * u + small[k], k * 2))([x[0], small[1], 0.5], [0, 1, 2])
    out[0] = cond(total < 5.0, lambda: total, lambda: zeros(n)[0] - total)
    out[1], out[2] = squares[0][0] + squares[2][0], squares[1][0] * squares[1][1]
    int[0], int[1], int[2] = count, whole(total * 3.0), (count - 7) // (turns + 1)
    int[3], int[4], int[5] = (-count) // 4, (count - 9) % 5, turns


MEMORY = LoopKernel(
    "zeros",
    memory,
    ["n"],
    [ArrayOf("x", ("n",)), ArrayOf("work_size", (6,), "out", "integer"), ArrayOf("out", (3,), "out")],
    reproducible=True,
    checked=True,
)
MEMORY_GIVEN = [{"x": np.linspace(-1.0, 2.0, n)} for n in (1, 2, 5, 9)]


def test_arrays_of_zeros_are_in_the_workspace(tmp_path):
    (call,) = in_c(tmp_path, [MEMORY])
    for given in MEMORY_GIVEN:
        found, plain = call(**given), MEMORY(**given, engine="python")
        assert all((found[a] == plain[a]).all() for a in ("work_size", "out"))
        assert "the workspace is too small" in call(-4, **given)
    assert MEMORY.workspace(x=np.ones(4)) == {"real": 3 + 4 + 8, "integer": 4}


def spare_memory(n, x, out):
    """Arrays and results that a function has and nobody needs."""

    def first(unread, unused, values):
        unread[0] = 2.0
        scratch = zeros(n)
        scratch[0] = values[0]
        return scratch[0] + 1.0, unused + 3.0

    found = [call(first, zeros(3), x[k] * 5.0, x[k:]) for k in (0, 1)]
    call(first, zeros(n), 1.0, zeros(2))
    out[0] = found[0][0] + found[1][0]


SPARE = LoopKernel("spare_memory", spare_memory, ["n"], [ArrayOf("x", ("n",)), ArrayOf("out", (1,), "out")])


def test_arrays_that_a_function_does_not_need_are_not_handed_over(tmp_path):
    (call,) = in_c(tmp_path, [SPARE])
    given = {"x": [0.5, 2.0, 3.0]}
    assert call(**given)["out"] == SPARE(**given, engine="python")["out"] == [4.5]
    assert SPARE.workspace(**given) == {"real": 3, "integer": 0}
    assert SPARE.counts(**given)["store"] == 3 and SPARE.counts(**given)["mul"] == 0


def outside(n, x, out):
    """Ends where an index is beyond, in a function that is called."""
    first = call(lambda k: x[k] + 1.0, n - 2)
    out[0] = 2.0
    out[0] = for_range(n, lambda k, s: s + x[k + 1], first)


OUTSIDE = LoopKernel(
    "outside", outside, ["n"], [ArrayOf("x", ("n",)), ArrayOf("out", (1,), "out")], checked=True
)


def test_what_ends_a_call_is_told(tmp_path):
    (call,) = in_c(tmp_path, [OUTSIDE])
    for n in (1, 3):
        assert call(x=np.ones(n)).startswith("IndexError: index out of range")
        assert "test_engine_loops_c.py:" in call(x=np.ones(n))
    assert "\n *     1 IndexError: index out of range" in OUTSIDE.c_source()["outside.h"]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_every_form_in_both_precisions(tmp_path, dtype):
    (call,) = in_c(tmp_path, [SWAPS], ("-O2", "-Wdouble-promotion"), dtype)
    for n in range(1, 7):
        given = {"x": np.linspace(-1.0, 2.0, n), "int": [n, 0, 0]}
        found, plain = call(**given), SWAPS(**given, engine="python")
        assert (found["int"] == plain["int"]).all()
        np.testing.assert_allclose(found["x_1"], plain["x_1"], rtol=1e-15 if dtype == "float64" else 1e-5)


def angles(n, x, out):
    """A sine and a cosine of each number."""

    def one(k):
        out[k, 0], out[k, 1] = sin(x[k]), cos(x[k])

    for_range(n, one)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_sines_of_a_reproducible_kernel_are_the_engine_s_own(tmp_path, dtype):
    arrays = [ArrayOf("x", ("n",)), ArrayOf("out", ("n", 2), "out")]
    kernel = LoopKernel("angles", angles, ["n"], arrays, reproducible=True)
    x = np.random.default_rng(0).normal(size=2000) * 10.0 ** np.linspace(-3.0, 8.9, 2000)
    x[:9] = 0.0, 1e9, 2e9, -2e9, np.pi, -np.pi / 2, 8192.5, 2.0**20 + 1, -(2.0**30)
    for flags in (("-O0",), ("-O3", "-march=native")):
        (call,) = in_c(tmp_path, [kernel], (*flags, "-Wdouble-promotion", "-ffp-contract=off"), dtype)
        np.testing.assert_array_equal(call(x=x)["out"], kernel(x=x, dtype=dtype)["out"])
    assert "sin(" not in kernel.c_source()["angles.c"]
    library = LoopKernel("angles", angles, ["n"], arrays)
    assert " = sin(" in library.c_source()["angles.c"]


def test_the_header_names_arguments_shapes_and_units():
    texts = SWAPS.c_source(about="Swaps.\n*/ twice", units={"x": "N m"})
    head = texts["swaps.h"]
    assert "void swaps(int n, const double *x, int *r_int, double *r_x_1);" in head
    assert "x[n]: input [N m]" in head and "r_int[3], of int: input and output" in head
    assert head.count("*/") == 2 and "#include <math.h>" in texts["swaps.c"]
    with pytest.raises(rk.UnknownName, match="y"):
        SWAPS.c_source(units={"y": "m"})
    with pytest.raises(rk.UnknownName, match="float16"):
        SWAPS.c_source("float16")


@pytest.mark.parametrize("name", ["exp", "log10", "roundf", "abs", "strlen", "y1", "NAN", "double", "isnan"])
def test_names_of_the_c_library_are_left_to_it(tmp_path, name):
    arrays = [ArrayOf("gamma", ("NAN",)), ArrayOf("exp", (1,), "out")]
    kernel = LoopKernel(name, lambda n, x, out: out.__setitem__(0, sqrt(x[0])), ["NAN"], arrays)
    for file, text in kernel.c_source().items():
        (tmp_path / file).write_text(text)
    compiled(tmp_path, sorted(tmp_path.glob("*.c")))


@pytest.mark.parametrize("name", ["total", "stress", "isolate", "explore", "fmaximum"])
def test_other_names_stay(name):
    kernel = LoopKernel(name, lambda out: out.__setitem__(0, 1.0), [], [ArrayOf("y", (1,), "out")])
    assert f"void {name}(double *y);" in kernel.c_source()[f"{name}.h"]


def test_what_nothing_needs_is_not_written(tmp_path):
    def function(n, x, unread, out):
        wasted = for_range(n, lambda k, s: s + x[k], 0.0)
        out[0] = for_range(n, lambda k, s, t: (s + 1.0, t + s), wasted * 0.0, 0.0)[0]

    kernel = LoopKernel(
        "spare", function, ["n"], [ArrayOf("x", ("n",)), ArrayOf("unread", (2,)), ArrayOf("out", (1,), "out")]
    )
    (call,) = in_c(tmp_path, [kernel])
    assert call(x=[1.0, 2.0], unread=[0.0, 0.0])["out"] == [2.0]
    assert kernel.c_source()["spare.c"].count("for (") == 1
