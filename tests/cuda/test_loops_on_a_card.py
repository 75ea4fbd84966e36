"""Kernels with loops on a card: on a host card their IR has the bits of the processor's code.

What reads memory before it is written gives NaN there.
"""

from __future__ import annotations

import re

import ladder
import numpy as np
import pytest
from host_card import HostCard
from loop_programs import ARRAYS, Program
from ptxas_usage import assembled

from robokit.dynamics.build import kernel as robot_kernel
from robokit.engine.cuda import assemble
from robokit.engine.cuda.loop_code import NOT_FINITE
from robokit.engine.cuda.loops import Code, Loops
from robokit.engine.emit.ir import FLOAT32, FLOAT64
from robokit.engine.loops.kernel import ArrayOf, LoopKernel
from robokit.spatial.control_flow import call, cond, for_range, zeros
from robokit.spatial.scalars import sqrt, where

WHERE = ["tile", "tile", "tile", "tile", "shared", "shared"]


def program(seed):
    """A random program, and 50 states for it."""
    rng, n = np.random.default_rng(seed), 4
    kernel = LoopKernel(f"program{seed}", Program(seed), ["n"], ARRAYS, reproducible=True)
    given = {
        "x": rng.uniform(-2, 2, (50, 5)),
        "y": rng.uniform(-2, 2, (50, 2, n)),
        "m": rng.integers(0, 9, (50, 5)),
        "k": rng.integers(0, 9, (50, 5)),
        "table": rng.uniform(-2, 2, 5),
        "index": rng.integers(0, 5, 5),
    }
    return kernel, given, {"n": n}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("seed", range(6))
def test_a_random_program_has_the_bits_of_the_processor(seed, dtype):
    kernel, given, sizes = program(seed)
    expected = kernel(dtype=dtype, **given)
    shared = {name: given[name] for name in ("table", "index")}
    known = {"index": given["index"]} if seed % 2 else {}
    beside = (1, 4, 8)[seed % 3]
    loops = Loops(HostCard(), kernel, sizes, WHERE, dtype, shared, 50, known, beside=beside)
    for name in ("x", "y", "m", "k"):
        loops.write(name, given[name])
    loops.run(1)
    assert not loops.read("status").any() and (loops.read("taken") == 1).all()
    for name, x in expected.items():
        np.testing.assert_array_equal(loops.read(name), x)


def test_a_kernel_that_calls_straight_kernels_and_others_has_them_in_its_code():
    robot = ladder.chain(3)
    aba, rnea = robot_kernel(robot, "aba"), robot_kernel(robot, "rnea")

    def halves(turns, nv, q, v, tau, a):
        def turn(k):
            call(aba, q, v, tau, a)
            call(rnea, q, v, a, tau)
            for_range(nv, lambda i: tau.__setitem__(i, 0.5 * tau[i]))

        for_range(turns, turn)

    arrays = [ArrayOf("q", ("nv",)), ArrayOf("v", ("nv",)), ArrayOf("tau", ("nv",), "inout")]
    kernel = LoopKernel("halves", halves, ["turns", "nv"], [*arrays, ArrayOf("a", ("nv",), "out")])
    rng = np.random.default_rng(0)
    given = {name: rng.normal(size=(40, 3)) for name in ("q", "v", "tau")}
    expected = kernel(turns=3, **given)
    loops = Loops(HostCard(), kernel, {"turns": 3, "nv": 3}, ["tile"] * 4, "float64", {}, 40)
    for name, x in given.items():
        loops.write(name, x)
    loops.run(1)
    np.testing.assert_allclose(loops.read("tau"), expected["tau"], rtol=1e-10)
    np.testing.assert_allclose(loops.read("tau"), given["tau"] / 8, rtol=1e-9)


def summed():
    """out += x[0] + ... + x[k - 1], by way of zeros(k); an index is checked."""

    def function(n, x, k, out):
        held = zeros(k[0])
        for_range(k[0], lambda i: held.__setitem__(i, x[i]))
        out[0] = for_range(k[0], lambda i, total: total + held[i], out[0])

    arrays = [ArrayOf("x", ("n",)), ArrayOf("k", (1,), "in", "integer"), ArrayOf("out", (1,), "inout")]
    return LoopKernel("summed", function, ["n"], arrays, checked=True)


def test_states_that_fail_stop_and_say_why_and_others_go_on():
    options = {"heap": 16, "finite": ["out"], "beside": 4}
    loops = Loops(HostCard(), summed(), {"n": 8}, ["tile"] * 3, "float64", {}, 40, **options)
    x, k = np.ones((40, 8)), np.full((40, 1), 8)
    k[3], k[5], x[7, 2] = 9, 20, np.inf
    loops.write("x", x)
    loops.write("k", k)
    loops.run(2)
    status, taken = loops.read("status"), loops.read("taken")
    others = np.delete(np.arange(40), [3, 5, 7])
    assert status[7] == NOT_FINITE and not status[others].any() and (taken[others] == 2).all()
    np.testing.assert_array_equal(loops.read("out")[others], 16.0)
    assert isinstance(loops.failed(status[3]), IndexError) and isinstance(
        loops.failed(status[5]), MemoryError
    )
    assert taken[3] == taken[5] == 0


@pytest.mark.parametrize("known", [False, True])
def test_a_loop_of_several_turns_at_once_does_each_turn_once(known):
    """Four turns are read together, those that are left one by one; whole numbers are exact."""

    def function(n, count, x, y, out):
        def turn(k, total, last):
            y[k] = y[k] + x[k]
            return total + (k + 1) * x[k], x[k] - last

        out[0], out[1] = for_range(n if known else count[0], turn, 1.0, 2.0)

    turns, rng = np.arange(12), np.random.default_rng(0)
    arrays = [ArrayOf("count", (1,), "in", "integer"), ArrayOf("x", (12,)), ArrayOf("y", (12,), "inout")]
    kernel = LoopKernel("several_turns", function, ["n"], [*arrays, ArrayOf("out", (2,), "out")])
    x, y = rng.integers(-9, 9, (2, 12, 12)).astype(float)
    for n in turns.tolist() if known else [0]:
        loops = Loops(HostCard(), kernel, {"n": n}, ["tile"] * 4, "float64", {}, 12)
        for name, value in (("count", turns[:, None]), ("x", x), ("y", y)):
            loops.write(name, value)
        loops.run(1)
        of = np.full(12, n) if known else turns
        done = turns < of[:, None]
        signs = (-1.0) ** (of[:, None] - 1 - turns)
        np.testing.assert_array_equal(loops.read("y"), y + x * done)
        sums = 1.0 + (x * (turns + 1) * done).sum(axis=1), 2.0 * (-1.0) ** of + (x * signs * done).sum(axis=1)
        np.testing.assert_array_equal(loops.read("out"), np.stack(sums, axis=1))


def test_states_of_many_passes_and_states_that_wait_do_not_hold_up_the_next_of_their_thread():
    """Steps of one to five passes, and states that stop at the second step; 150 states in 64 threads."""

    def function(passes, left, steps, full):
        left[0] = cond(left[0] > 0, lambda: left[0] - 1, lambda: passes[0] - 1)
        steps[0] = steps[0] + where(left[0] == 0, 1, 0)
        full[0] = where((passes[0] == 3) & (steps[0] == 2) & (left[0] == 0), 1, 0)

    arrays = [ArrayOf("passes", (1,), "in", "integer")]
    arrays += [ArrayOf(name, (1,), "inout", "integer") for name in ("left", "steps", "full")]
    kernel, passes = LoopKernel("passes", function, [], arrays), 1 + np.arange(150)[:, None] % 5
    loops = Loops(
        HostCard(), kernel, {}, ["tile"] * 4, "float32", {}, 150, stop="full", unfinished="left"
    )  # fmt: skip
    loops.write("passes", passes)
    loops.run(3)
    stopped = (passes == 3)[:, 0]
    np.testing.assert_array_equal(loops.read("taken"), np.where(stopped, 1, 3))
    np.testing.assert_array_equal(loops.read("steps")[:, 0], np.where(stopped, 2, 3))
    np.testing.assert_array_equal(loops.read("full")[:, 0], stopped)
    loops.write("full", np.zeros((1, 1)))
    loops.run(3, resumed=True)
    assert (loops.read("taken") == 3).all() and not loops.read("left").any()


def test_what_all_numbers_of_an_array_say_alike_is_known():
    """No shape here is of kind 5: code for it is not written, also in a function that is handed the kind."""

    def function(n, kind, x, out):
        def of(k, value):
            return cond(k == 5, lambda: sqrt(value), lambda: cond(k < 3, lambda: 2.0 * value, lambda: value))

        def each(i):
            out[i] = call(of, kind[i], x[i])

        for_range(n, each)

    arrays = [ArrayOf("kind", ("n",), "in", "integer"), ArrayOf("x", ("n",)), ArrayOf("out", ("n",), "out")]
    kernel = LoopKernel("kinds", function, ["n"], arrays)
    kind, x = np.array([1, 4, 2, 1]), np.arange(160.0).reshape(40, 4)
    expected = kernel(kind=kind, x=x)["out"]
    for known, roots in (({"kind": kind}, 0), ({}, 1)):
        where_ = ["shared", "tile", "tile"]
        code = Code(kernel, {"n": 4}, FLOAT64, where_, known).text
        assert bool(re.search(r"call double @llvm.sqrt", code)) == roots
        loops = Loops(HostCard(), kernel, {"n": 4}, where_, "float64", {"kind": kind}, 40, known)
        loops.write("x", x)
        loops.run(1)
        np.testing.assert_array_equal(loops.read("out"), expected)


def rows_of(width):
    """A kernel that goes through rows of so many numbers, and where its arrays are."""

    def function(n, which, x, out):
        def each(i):
            for c in range(width):
                out[i, c] = x[which[i] + 1, c] - x[which[i], width - 1 - c]

        for_range(n, each)

    rows = ("n", width)
    arrays = [ArrayOf("which", ("n",), "in", "integer"), ArrayOf("x", rows), ArrayOf("out", rows, "out")]
    return LoopKernel(f"rows_of_{width}", function, ["n"], arrays), ["shared", "tile", "tile"]


@pytest.mark.parametrize("width", [2, 3, 4, 6, 8, 12])
def test_numbers_of_rows_of_any_width_are_found(width):
    (kernel, where_), rng = rows_of(width), np.random.default_rng(width)
    which, x = rng.integers(0, 6, 7, np.int32), rng.normal(size=(40, 7, width))
    loops = Loops(HostCard(), kernel, {"n": 7}, where_, "float64", {"which": which}, 40, beside=8)
    loops.write("x", x)
    loops.run(1)
    np.testing.assert_array_equal(loops.read("out"), x[:, which + 1] - x[:, which][..., ::-1])


def test_the_numbers_of_a_row_have_one_address_where_rows_begin_at_multiples():
    """Of 8 numbers side by side: rows of 8 are on a straight line, of rows of 4 one place is computed where
    of rows of 3 each number has one.
    """
    found = {}
    for width in (3, 4, 8):
        kernel, where_ = rows_of(width)
        module = assemble.modules(Code(kernel, {"n": 7}, FLOAT64, where_, {}, beside=8).text)[0]
        code = assemble.ptx(module).split("take4")[0]  # where the code of the copies between tiles begins
        found[width] = len(re.findall(r"\bshl\.b32", code))
    assert found[8] < found[4] < found[3]


def test_columns_of_a_card_go_to_states_and_back_all_or_some():
    where, shared = ["tile", "shared", "tile"], {"k": [4]}
    loops = Loops(HostCard(), summed(), {"n": 4}, where, "float32", shared, 70, beside=8)
    wide = np.arange(70 * 6, dtype=np.float32).reshape(6, 70)  # a slice of a larger array
    loops.take("x", (wide[1].ctypes.data, 70, 1))
    rows = np.array([2, 69, 33])
    few = np.array([[1, 1, 1, 1], [2, 2, 2, 2], [3, 3, 3, 3]], np.float32)
    loops.take("x", (few.ctypes.data, 1, 4), which=(rows.ctypes.data, 3))
    loops.run(1)
    expected = wide[1:5].sum(axis=0)
    expected[rows] = [4, 8, 12]
    found = np.empty(70, np.float32)
    loops.give("out", (found.ctypes.data, 70, 1))
    np.testing.assert_array_equal(found, expected)
    loops.take("x", (few.ctypes.data, 0, 0), part=(1, 2, 2))  # every second number, the same for all
    np.testing.assert_array_equal(loops.read("x")[0], [wide[1, 0], 1, wide[3, 0], 1])


@pytest.mark.parity  # ptxas comes with the tests that need other programs
@pytest.mark.parametrize("real", [FLOAT32, FLOAT64], ids=["float32", "float64"])
def test_programs_assemble_for_three_architectures_and_name_the_space_of_each_access(real):
    kernel, _, sizes = program(3)
    code = Code(kernel, sizes, real, WHERE, {}, ("x",), 64)
    for arch in ("sm_80", "sm_90", "sm_100"):
        _, usage = assembled(code.text, arch)
        assert max(each.registers for each in usage) <= 64
    for part in assemble.modules(code.text):
        assert not [line for line in assemble.ptx(part).splitlines() if _no_space(line)]


def _no_space(line):
    words = line.split()
    name = words[0] if words and not words[0].startswith("@") else words[1] if len(words) > 1 else ""
    return name.startswith(("ld.", "st.")) and name.split(".")[1] not in ("global", "local", "param", "const")
