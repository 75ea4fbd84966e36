"""Recorded loops: the same numbers as the function run by Python, in one state and in every lane."""

from __future__ import annotations

import gc
import weakref
from itertools import product

import numpy as np
import pytest
from loop_programs import ARRAYS, SIZE, Program, Rounded, Several, Single

import robokit as rk
from robokit.engine.backend import llvm
from robokit.engine.backend.llvm import BASELINE, LOOPS
from robokit.engine.emit.ir import FLOAT64
from robokit.engine.loops.environment import Environment
from robokit.engine.loops.kernel import REALS, ArrayOf, LoopKernel, _Plain, module_of, register
from robokit.engine.loops.record import Escaped
from robokit.engine.trace.ops import FOR
from robokit.spatial.control_flow import call, cond, for_range, vmap, while_loop, whole, zeros
from robokit.spatial.scalars import added, cos, maximum, minimum, sin, where


def agree(seeds, dtype="float64", reproducible=True, passes=True, rows=11, largest=22, together=None):
    """Programs whose rows alone, in a batch or by Python are not the same numbers.

    Rows alone and in a batch are the same bits; Python gives these too where programs are reproducible. Else
    products and sums are rounded together, some hundreds in a row at most, and errors do not grow.

    together: how many programs are in one kernel, each with its own part of the arrays; None for one, which
        has them whole. A kernel's own code, around that of its programs, is most of what small ones compile.
    """
    # In single precision Python has no sines of the same bits.
    programs = [Program(seed, dtype == "float64", largest) for seed in seeds]
    if together:
        seeds = seeds[::together]
        programs = [Several(programs[k : k + together]) for k in range(0, len(programs), together)]
    kernels = [
        LoopKernel(f"random{seed}", program, ["n"], program.arrays, reproducible)
        for seed, program in zip(seeds, programs, strict=True)
    ]
    real = REALS[dtype]
    for lanes in (1, register(real)):
        text = module_of(kernels, lanes, real)
        loaded = llvm.Loaded(llvm.assemble(text if passes else text.replace(LOOPS, BASELINE, 1)))
        for kernel in kernels:
            kernel._codes[lanes, dtype] = loaded
    wrong = []
    bound = 0.0 if reproducible else 1e-12 if dtype == "float64" else 1e-4
    for seed, kernel, program in zip(seeds, kernels, programs, strict=True):
        given, n = inputs(seed, rows, dtype, program.arrays)
        batch, alone, plain = (copies(given) for _ in range(3))
        kernel.batch({"n": n}, [*batch.values()], rows, dtype)()
        own = [x if a.shared else x[0].copy() for a, x in zip(program.arrays, alone.values(), strict=True)]
        call = kernel.single({"n": n}, own, dtype)
        program.number = float if dtype == "float64" else Single
        wrap = _Plain if dtype == "float64" else Rounded
        for row in range(rows):
            for a, x, y in zip(program.arrays, own, alone.values(), strict=True):
                if not a.shared:
                    x[...] = y[row]
            call()
            for a, x, y in zip(program.arrays, own, alone.values(), strict=True):
                if not a.shared:
                    y[row] = x
            program(
                n,
                *(
                    wrap(x if a.shared else x[row])
                    for a, x in zip(program.arrays, plain.values(), strict=True)
                ),
            )
        program.number = float
        for name in batch:
            if not np.array_equal(batch[name], alone[name]):
                wrong.append((seed, name, "alone"))
            if np.abs(batch[name] - plain[name]).max(initial=0.0) > bound:
                wrong.append((seed, name, "python"))
    return wrong


def inputs(seed, rows, dtype, arrays=ARRAYS):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 5))
    given = {}
    for a in arrays:
        shape = tuple(n if size == "n" else size for size in a.shape)
        shape = shape if a.shared else (rows, *shape)
        reals = rng.uniform(-1.5, 1.5, shape).astype(dtype)
        given[a.name] = rng.integers(-1, SIZE, shape, np.int32) if a.kind == "integer" else reals
    return given, n


def copies(given):
    return {name: x.copy() for name, x in given.items()}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("reproducible", [True, False])
def test_random_programs_are_the_same_by_python_alone_and_in_lanes(dtype, reproducible):
    assert agree(range(3), dtype, reproducible) == []
    assert agree(range(3, 23), dtype, reproducible, passes=False) == []


@pytest.mark.slow
@pytest.mark.parametrize("thousand", range(10))
def test_ten_thousand_random_programs(thousand, monkeypatch):
    wrong, width = [], llvm.vector_width()
    for k in range(10 * thousand, 10 * thousand + 10):
        lanes, rows = (width, 17) if k // 2 % 8 == 7 else (2, 5)
        monkeypatch.setattr(llvm, "vector_width", lambda lanes=lanes: lanes)
        dtype, reproducible = ("float64", "float32")[k % 2], k // 2 % 3 < 2
        seeds = range(100 * k, 100 * k + 100)
        found = agree(seeds, dtype, reproducible, passes=False, rows=rows, largest=6, together=5)
        wrong += [(dtype, reproducible, *each) for each in found]
    assert wrong == []


@pytest.mark.slow
def test_larger_random_programs():
    for k, (dtype, reproducible) in enumerate(product(("float64", "float32"), (True, False))):
        assert agree(range(1000 + 40 * k, 1040 + 40 * k), dtype, reproducible) == []


def factor(n, A):
    """LDL^T in place; L below the diagonal."""

    def column(k):
        inverse = 1.0 / A[k, k]

        def row(r):
            i = k + 1 + r
            x = A[i, k] * inverse

            def entry(c):
                A[i, k + 1 + c] = A[i, k + 1 + c] - x * A[k + 1 + c, k]

            for_range(r + 1, entry)

        def scale(r):
            A[k + 1 + r, k] = A[k + 1 + r, k] * inverse

        for_range(n - 1 - k, row)
        for_range(n - 1 - k, scale)

    for_range(n, column)


@pytest.fixture(scope="module")
def ldlt():
    return LoopKernel("ldlt", factor, ["n"], [ArrayOf("A", ("n", "n"), "inout")])


@pytest.mark.parametrize("n", [1, 2, 5, 17])
def test_one_kernel_factors_matrices_of_all_sizes(ldlt, n):
    M = np.random.default_rng(n).normal(size=(9, n, n))
    M = M @ M.swapaxes(1, 2) + n * np.eye(n)
    for given in (M, M[0]):
        F = ldlt(A=given)["A"]
        L, D = np.tril(F, -1) + np.eye(n), np.diagonal(F, axis1=-2, axis2=-1)
        np.testing.assert_allclose((L * D[..., None, :]) @ L.swapaxes(-1, -2), given, rtol=1e-13, atol=1e-13)
    assert len(ldlt._codes) <= 2


def test_single_precision(ldlt):
    M = np.eye(5) * 3.0 + 1.0
    assert np.abs(ldlt(A=M, dtype="float32")["A"] - ldlt(A=M)["A"]).max() < 1e-6
    assert np.abs(ldlt(A=np.tile(M, (11, 1, 1)), dtype="float32")["A"] - ldlt(A=M)["A"]).max() < 1e-6


def collatz(start, steps, out):
    """Turns until 1, halving even numbers: lanes stop at different times."""

    def turn(x, count):
        half = for_range(100, lambda k, h: where(2 * (h + 1) <= x, h + 1, h), 0)
        return where(2 * half == x, half, minimum(3 * x + 1, 1000)), count + 1

    x, count = while_loop(lambda x, _: x > 1, turn, start[0], 0)
    steps[0], out[0] = count, x * 1.0


def test_lanes_that_stop_at_different_times():
    arrays = [
        ArrayOf("start", (1,), "in", "integer"),
        ArrayOf("steps", (1,), "out", "integer"),
        ArrayOf("out", (1,), "out"),
    ]
    kernel = LoopKernel("collatz", collatz, [], arrays)
    start = np.arange(0, 22)[:, None]
    found = kernel(start=start)
    assert (found["steps"] == kernel(start=start, engine="python")["steps"]).all()
    assert found["steps"][[6, 7], 0].tolist() == [8, 16] and found["steps"][0, 0] == 0


def test_each_lane_has_a_count_of_its_own_and_done_lanes_keep_what_they_have():
    def function(most, count, x, out):
        def outer(i, total):
            def inner(j, sub):
                out[j] = out[j] + x[i]
                return sub + x[j]

            return for_range(i + 1, inner, total)

        for_range(most, lambda k: out.__setitem__(k, 0.0))
        out[most - 1] = for_range(count[0], outer, 0.25)

    arrays = [
        ArrayOf("count", (1,), "in", "integer"),
        ArrayOf("x", ("most",)),
        ArrayOf("out", ("most",), "out"),
    ]
    kernel = LoopKernel("counts", function, ["most"], arrays, reproducible=True)
    x, count = np.random.default_rng(0).normal(size=(13, 8)), np.arange(13)[:, None] % 8
    many, plain = (kernel(count=count, x=x, **how)["out"] for how in ({}, {"engine": "python"}))
    assert (many == plain).all()
    for row in range(13):
        assert (kernel(count=count[row], x=x[row])["out"] == many[row]).all()


def test_a_branch_runs_only_where_it_is_needed():
    def function(n, which, x, out):
        # Out of its branch the index would be beyond the array.
        out[0] = cond(which[0] < n, lambda: x[which[0]] * 2.0, lambda: -1.0)

    arrays = [ArrayOf("which", (1,), "in", "integer"), ArrayOf("x", ("n",)), ArrayOf("out", (1,), "out")]
    kernel = LoopKernel("branch", function, ["n"], arrays)
    which = np.array([[0], [2], [1 << 29], [1], [1 << 30]])
    found = kernel(which=which, x=np.tile([1.0, 2.0, 3.0], (5, 1)))["out"].ravel()
    assert found.tolist() == [2.0, 6.0, -1.0, 4.0, -1.0]
    assert kernel(which=[1 << 30], x=[1.0])["out"].tolist() == [-1.0]


def test_functions_of_angles_and_what_does_not_change_stand_before_a_loop():
    def function(n, x, out):
        out[0] = for_range(n, lambda k, s: s + sin(x[0]) * cos(x[k]), 0.0)

    kernel = LoopKernel("angles", function, ["n"], [ArrayOf("x", ("n",)), ArrayOf("out", (1,), "out")])
    x = np.random.default_rng(0).normal(size=(5, 9))
    np.testing.assert_allclose(kernel(x=x)["out"][:, 0], np.sin(x[:, 0]) * np.cos(x).sum(1), rtol=1e-14)

    def scaled(n, x, out):
        def body(k):
            out[k] = x[k] * (n * 0.5)

        for_range(n, body)

    graph = LoopKernel("s", scaled, ["n"], [ArrayOf("x", ("n",)), ArrayOf("out", ("n",), "out")]).record()
    (loop,) = [node for node in graph.nodes if node[0] == FOR]
    assert len(graph.regions[loop[1]].nodes) == 4  # index, load, product, store: not n / 2


def record(function, *arrays):
    return LoopKernel(
        "wrong", function, ["n"], arrays or [ArrayOf("x", ("n",)), ArrayOf("y", ("n",), "out")]
    ).record()


@pytest.mark.parametrize(
    "inside",
    [
        lambda kept, n, x: for_range(n, lambda k: kept.append(x[k])),
        lambda kept, n, x: for_range(n, lambda k, s: kept.append(s * x[k]) or s, 0.0),
        lambda kept, n, x: for_range(n, lambda k: kept.append(1.0 * k)),
        lambda kept, n, x: while_loop(lambda s: kept.append(s + 1.0) or s < x[0], lambda s: s + 1.0, 0.0),
        lambda kept, n, x: while_loop(lambda s: s < 1.0, lambda s: kept.append(s + x[0]) or s + 1.0, 0.0),
        lambda kept, n, x: cond(n < 2, lambda: kept.append(x[0] + 2.0), lambda: None),
        lambda kept, n, x: cond(n < 2, lambda: None, lambda: kept.append(-x[n - 1])),
        lambda kept, n, x: call(lambda a: kept.append(a * 2.0), x[0]),
        lambda kept, n, x: vmap(lambda a: kept.append(a * 2.0) or a)([x[0], x[1]]),
        lambda kept, n, x: for_range(n, lambda k: call(lambda a: kept.append(a * 2.0), x[k])),
    ],
)
@pytest.mark.parametrize(
    "use",
    [
        lambda value, y: value + 1.0,  # used
        lambda value, y: y.__setitem__(0, value),  # used
        lambda value, y: 1.0 / (value * value),  # used
        lambda value, y: where(value < 1.0, 0.0, 1.0),  # used
        lambda value, y: for_range(3, lambda k, s: s + 1.0, value),  # used
        lambda value, y: for_range(3, lambda k, s: value, 0.0),  # used
        lambda value, y: cond(y[0] < 1.0, lambda: value, lambda: 1.0),  # used
        lambda value, y: call(lambda a: a, value),  # used
        lambda value, y: call(lambda: value),  # used
    ],
)
def test_a_value_that_leaves_by_accident_is_an_error_with_both_lines(inside, use):
    def function(n, x, y):
        kept = []
        inside(kept, n, x)
        use(kept[0], y)

    with pytest.raises(Escaped, match="carry it") as caught:
        record(function)
    made, used = str(caught.value).splitlines()[1:]
    assert "made at test_engine_loops.py:" in made and "kept.append" in made
    assert "used at test_engine_loops.py:" in used and used.endswith("# used")


def test_memory_and_values_of_another_recording_are_of_no_use():
    kept = []
    record(lambda n, x, y: kept.extend([x[0], x, n]))
    for use in (
        lambda: kept[0] + 1.0,
        lambda: kept[1][0],
        lambda: kept[2] + 1,
        lambda: record(lambda n, x, y: y.__setitem__(0, kept[0])),
        lambda: record(lambda n, x, y: cond(n < 1, lambda: kept[0], lambda: 0.0)),
    ):
        with pytest.raises(Escaped):
            use()


def endless(n):
    return cond(n < 1, lambda: 0.0, lambda: endless(n - 1))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (
            lambda n, x, y: for_range(n, lambda k, s: s + x[k], 0),
            "returns real, what it carries began as int",
        ),
        (lambda n, x, y: for_range(n, lambda k, s: (s, s), 0.0), "returns .real, real., .* began as real"),
        (lambda n, x, y: for_range(n, lambda k, s, t: ((s, s), t), 0.0, 0), r"\(\(real, real\), integer\)"),
        (lambda n, x, y: for_range(n, lambda k, s: None, 0.0), "returns nothing"),
        (lambda n, x, y: for_range(n, lambda k: x[k]), "began as nothing"),
        (lambda n, x, y: for_range(n < 2, lambda k: None), "a count is a whole number"),
        (lambda n, x, y: for_range(n, lambda k, v: y, x), "part of another one"),
        (lambda n, x, y: while_loop(lambda s: s, lambda s: s, x[0]), "a test returns a comparison"),
        (lambda n, x, y: while_loop(lambda s: 1 < 2, lambda s: s, x[0]), "never ends"),
        (lambda n, x, y: while_loop(lambda s: s < 1, lambda s: s < 1, x[0]), "returns truth"),
        (lambda n, x, y: cond(x[0], lambda: 1.0, lambda: 2.0), "a condition is a comparison"),
        (lambda n, x, y: cond(n < 2, lambda: 1.0, lambda: 1), "second branch of cond returns integer"),
        (lambda n, x, y: cond(n < 2, lambda: x, lambda: y), "part of another one"),
        (lambda n, x, y: cond(n < 2, dict, dict), "a number, a comparison or an array"),
        (lambda n, x, y: call(lambda a: a, "word"), "a number, a comparison or an array"),
        (lambda n, x, y: zeros(x[0]), "a size is a whole number"),
        (lambda n, x, y: zeros(3, kind="complex"), "'complex'"),
        (lambda n, x, y: zeros(3, kind="integer").__setitem__(0, x[0]), "a real is no .* whole.x."),
        (lambda n, x, y: y.__setitem__(0, x[0] < 1.0), "a truth is no .* where"),
        (lambda n, x, y: zeros(3)[3], "index out of range: 3 of 3"),
        (lambda n, x, y: zeros(3)[-4], "index out of range"),
        (lambda n, x, y: zeros(3)[1:5], "index out of range"),
        (lambda n, x, y: [0.0, 1.0][n], "array .zeros. in place of the list"),
        (lambda n, x, y: list(x), "array.shape"),
        (lambda n, x, y: range(x[0]), "whole.x."),
        (lambda n, x, y: int(x[0]), "whole.x."),
        (lambda n, x, y: whole(x[0] < 1), "where"),
        (lambda n, x, y: min(x[0], 1.0), "minimum"),
        (lambda n, x, y: x[0] < 1.0 and n < 2, "instead of and"),
        (lambda n, x, y: (x[0] < 1.0) * 2.0, "a comparison is no number: where"),
        (lambda n, x, y: x.__setitem__(0, 1.0), "cannot be written"),
        (lambda n, x, y: y.__setitem__(x[0], 1.0), "an index is a whole number"),
        (lambda n, x, y: y.__setitem__(slice(0, 2), 1.0), "one element at a time"),
        (lambda n, x, y: x[0, 0], "2 indices for an array of 1"),
        (lambda n, x, y: [0.0 for _ in range(n)], "use for_range"),
        (lambda n, x, y: 1 if n < 3 else 2, "no branch"),
        (lambda n, x, y: len(x), "array.shape"),
        (lambda n, x, y: n + 3_000_000_000, "3000000000 has more"),
        (lambda n, x, y: endless(n), "calls itself without end.*write a loop"),
    ],
)
def test_errors_say_what_to_do(function, message):
    with pytest.raises((TypeError, IndexError, ValueError), match=message):
        record(function)


def test_calls_are_checked(ldlt):
    with pytest.raises(rk.UnknownName, match="argument named 'B'"):
        ldlt(B=np.eye(2))
    with pytest.raises(rk.ShapeError, match=r"^A: expected shape"):
        ldlt(A=np.ones((2, 3)))
    with pytest.raises(rk.WrongType, match=r"^A"):
        ldlt()
    for n in (1.5, 2**31, True):
        with pytest.raises(rk.WrongType, match=r"^n"):
            ldlt(n=n, A=np.eye(2))
    with pytest.raises(rk.WrongType, match=r"^A: .*real numbers"):
        ldlt(A=np.eye(2) * 1j)
    numbers = LoopKernel("numbers", lambda n, k, out: None, ["n"], [ArrayOf("k", (2,), "in", "integer")])
    for k in ([1.5, 2.0], [0, 2**31], ["a", "b"]):
        with pytest.raises(rk.WrongType, match=r"^k: .*whole numbers of 32 bits"):
            numbers(n=1, k=k)
    large = LoopKernel("large", lambda n, x: None, ["n"], [ArrayOf("x", ("n", "n"), "out")])
    with pytest.raises(rk.ShapeError, match=r"^x: .*2\^31"):
        large(n=1 << 16)
    empty = ldlt(A=np.empty((0, 3, 3)))["A"]
    assert empty.shape == (0, 3, 3)


def test_parts_of_arrays_and_whole_numbers():
    def function(n, x, out):
        row, tail = x[1], x[1:]

        def body(k):
            out[k] = maximum(row[k], tail[1, k]) + x[2, k] - k / 2

        for_range(n, body)

    arrays = [ArrayOf("x", (3, "n")), ArrayOf("out", ("n",), "out")]
    kernel = LoopKernel("parts", function, ["n"], arrays)
    x = np.random.default_rng(0).normal(size=(6, 3, 4))
    expected = np.maximum(x[:, 1], x[:, 2]) + x[:, 2] - np.arange(4) / 2
    for how in ({}, {"engine": "python"}):
        np.testing.assert_allclose(kernel(x=x, **how)["out"], expected, atol=1e-15)


# -- calls ------------------------------------------------------------------------------------------


def everywhere(function, sizes, arrays, rows=9, **given):
    """Runs a function of float64 in every way; all must be the same bits. What it gives for the rows."""
    kernel = LoopKernel(function.__name__, function, sizes, arrays, reproducible=True)
    many = kernel(**given)
    plain = kernel(**given, engine="python")
    shared = {a.name for a in arrays if a.shared} | set(sizes)
    for name, found in many.items():
        np.testing.assert_array_equal(found, plain[name], err_msg=f"{name}, python")
    for row in range(rows):
        own = {name: x if name in shared else x[row] for name, x in given.items()}
        for name, found in kernel(**own).items():
            np.testing.assert_array_equal(found, many[name][row], err_msg=f"{name}, row {row} alone")
    loose = LoopKernel(function.__name__, function, sizes, arrays)
    for name, found in loose(**given).items():
        np.testing.assert_allclose(found, many[name], rtol=1e-12, atol=1e-12)
    return many


def functions_of(kernel, lanes=1):
    """How many functions of the kernel's own its module has."""
    return sum(
        line.startswith("define internal") and "_function" in line
        for line in kernel.text(lanes, FLOAT64).splitlines()
    )


def dot(n, a, b):
    return for_range(n, lambda k, s: s + a[k] * b[k], 0.0)


def test_a_function_is_written_once_and_called_from_loops_branches_and_other_functions():
    def scaled(n, a, b, factor):
        return call(dot, n, a, b) * factor, n + 1

    def program(n, x, y, out):
        def turn(k, total):
            value, m = call(scaled, minimum(k, n), x[k], y, x[k, 0])
            return cond(value < 1.0, lambda: total + call(dot, n, x[k], x[0]), lambda: total - value * m)

        out[0] = for_range(n, turn, 0.0)
        out[1] = call(dot, n, y, y)

    arrays = [ArrayOf("x", ("n", "n")), ArrayOf("y", ("n",)), ArrayOf("out", (2,), "out")]
    rng = np.random.default_rng(0)
    everywhere(program, ["n"], arrays, x=rng.normal(size=(9, 5, 5)), y=rng.normal(size=(9, 5)))
    graph = LoopKernel("calls", program, ["n"], arrays).record()
    # dot of two arrays, and of two parts of one; scaled; the kernel.
    assert len(graph.functions) == 4


def test_a_plain_number_among_the_arguments_is_an_argument():
    def power(x, n, negative):
        y = for_range(n, lambda _, y: y * x, 1.0)
        return where(negative, -y, y)

    def program(x, out):
        for k, (n, negative) in enumerate([(0, False), (2, True), (3, False), (5, True)]):
            out[k] = call(power, x[0], n, negative)
        out[4] = call(power, 2, 3, False) + call(power, 0.5, 2, True)

    arrays = [ArrayOf("x", (1,)), ArrayOf("out", (5,), "out")]
    x = np.linspace(-2.0, 2.0, 9)[:, None]
    found = everywhere(program, [], arrays, x=x)["out"]
    np.testing.assert_allclose(found[:, :4], np.hstack([x**0, -(x**2), x**3, -(x**5)]), rtol=1e-15)
    assert (found[:, 4] == 7.75).all()
    # Whole or real x: two functions, and the kernel.
    assert len(LoopKernel("p", program, [], arrays).record().functions) == 3


def test_called_functions_write_to_parts_of_arrays_that_may_be_the_same():
    def add(n, a, b):
        def entry(k):
            a[k] = a[k] + b[k]

        for_range(n, entry)
        return a[1:]

    def program(n, x, y, z):
        rest = call(add, n, x[0], y)  # three pairs of arrays, one code
        call(add, n, x[1], z)
        call(add, n - 1, rest, z)
        call(add, n, x[0], x[1])  # parts of one array
        call(add, n - 1, x[1], x[1])  # the same
        z[0] = rest[0] + x[0, 1]  # what was written is seen

    arrays = [ArrayOf("x", (2, "n"), "inout"), ArrayOf("y", ("n",)), ArrayOf("z", ("n",), "inout")]
    rng = np.random.default_rng(0)
    given = {"x": rng.normal(size=(9, 2, 4)), "y": rng.normal(size=(9, 4)), "z": rng.normal(size=(9, 4))}
    everywhere(program, ["n"], arrays, **given)
    assert len(LoopKernel("p", program, ["n"], arrays).record().functions) == 4  # y is no inout


def test_a_function_uses_arrays_and_values_around_it_and_these_are_its_arguments_too():
    def program(n, x, y, out):
        scale = x[0] * 2.0

        def write(k, target):
            target[k] = target[k] + x[k] * scale + y[k] * n
            y[k] = scale

        def outer(k):
            call(write, k, out)  # not y
            call(write, k, y)  # y itself
            return call(inner, k)

        def inner(k):
            call(write, k, out)

        for_range(n, lambda k: call(outer, k))
        scale = x[1] * 3.0  # what it closes over is another one now
        call(write, 0, out)

    arrays = [ArrayOf("x", ("n",)), ArrayOf("y", ("n",), "inout"), ArrayOf("out", ("n",), "inout")]
    rng = np.random.default_rng(1)
    everywhere(program, ["n"], arrays, **{a: rng.normal(size=(9, 4)) for a in ("x", "y", "out")})


def test_a_branch_calls_a_function_in_the_lanes_that_need_it():
    def program(which, x, out):
        def store(k):
            out[k] = x[k] * 2.0  # k is beyond the arrays in other lanes
            return x[k]

        out[3] = cond(which[0] < 3, lambda: call(store, which[0]), lambda: -1.0)

    arrays = [ArrayOf("which", (1,), "in", "integer"), ArrayOf("x", (3,)), ArrayOf("out", (4,), "inout")]
    which = np.array([0, 2, 1 << 29, 1, 1 << 30, 1, 1, 2, 0])[:, None]
    rng = np.random.default_rng(0)
    everywhere(program, [], arrays, which=which, x=rng.normal(size=(9, 3)), out=np.zeros((9, 4)))


def test_tuples_lists_truths_and_nothing_go_in_and_out():
    from collections import namedtuple

    Pair = namedtuple("Pair", "real whole")

    def turned(pair, truth, rest):
        first, (second, [third]) = rest
        return Pair(where(truth, pair.real, first), pair.whole + 1), [
            truth & (first < second),
            None,
            (2.5, third),
        ]

    def program(x, k, out, m):
        pair, (truth, nothing, (constant, third)) = call(
            turned, Pair(x[0], k[0]), x[0] < x[1], (x[1], (x[2], [k[1]]))
        )
        assert nothing is None and constant == 2.5
        out[0], out[1] = pair.real + constant, where(truth, 1.0, 0.0)
        m[0] = pair.whole * third

    arrays = [ArrayOf("x", (3,)), ArrayOf("k", (2,), "in", "integer"), ArrayOf("out", (2,), "out")]
    arrays += [ArrayOf("m", (1,), "out", "integer")]
    rng = np.random.default_rng(0)
    everywhere(program, [], arrays, x=rng.normal(size=(9, 3)), k=rng.integers(0, 9, (9, 2)))


def test_a_function_that_calls_itself_is_one_error():
    def program(n, x, y):
        def down(k):
            return cond(k < 1, lambda: 0.0, lambda: call(down, k - 1))

        y[0] = call(down, n)

    with pytest.raises(TypeError, match=r"calls itself.*while_loop"):
        record(program)


# -- memory -----------------------------------------------------------------------------------------


def test_memory_is_zero_each_time_and_lasts_as_long_as_its_region():
    def sums(n, x):
        """Sums of the first 1, 2, ..., n entries."""
        found = zeros(n)

        def entry(k):
            found[k] = x[k] + (
                found[k - 1] if isinstance(k, int) and k else cond(k > 0, lambda: found[k - 1], lambda: 0.0)
            )

        for_range(n, entry)
        return found[n - 1]

    def program(n, x, count, out):
        whole, counts = zeros(n, 2), zeros(3, kind="integer")

        def turn(k, total):
            own, small = zeros(k + 1, n + 2), zeros(2, 2)
            own[k, n + 1] = own[k, n + 1] + x[k]
            small[0, 1] = small[0, 1] + own[k, n + 1]
            counts[k % 3] = counts[k % 3] + 1
            whole[k, 1] = own[k, n + 1] * 2.0
            row = whole[k]
            return total + call(sums, k + 1, x) + small[0, 1] + small[1, 1] + row[1] + counts[k % 3]

        out[0] = for_range(minimum(count[0], n), turn, 0.0)
        out[1] = while_loop(
            lambda m, s: (zeros(n)[0] < 1.0) & (m > 0), lambda m, s: (m - 1, s + zeros(m)[m - 1] + m), n, 0.0
        )[1]
        out[2] = counts[0] + 10 * counts[1]

    arrays = [ArrayOf("x", ("n",)), ArrayOf("count", (1,), "in", "integer"), ArrayOf("out", (3,), "out")]
    rng = np.random.default_rng(0)
    for n in (1, 7, 60):  # the last takes several blocks of the workspace
        everywhere(program, ["n"], arrays, x=rng.normal(size=(9, n)), count=rng.integers(0, n + 1, (9, 1)))


def test_the_workspace_grows_to_what_a_call_needs_and_is_used_again():
    def program(n, out):
        def turn(k, total):
            a = zeros(n, n)
            a[k, k] = 1.0
            b = zeros(n - k)
            b[n - k - 1] = a[k, k]
            return total + b[n - k - 1] + a[n - 1, 0]

        out[0] = for_range(n, turn, 0.0)

    kernel = LoopKernel("grows", program, ["n"], [ArrayOf("out", (1,), "out")])
    for n in (1, 40, 400):
        out = np.zeros(1)
        call = kernel.single({"n": n}, [out])
        for _ in range(3):
            call()
            assert out[0] == n + (n == 1)


@pytest.mark.parametrize("n", [-1, 1 << 16, (1 << 31) - 1])
def test_memory_of_no_possible_size_is_an_error(n):
    def program(n, out):
        out[0] = cond(n < 0, lambda: zeros(n)[0], lambda: zeros(n, n)[0, 0])

    kernel = LoopKernel("large", program, ["n"], [ArrayOf("out", (1,), "out")])
    with pytest.raises(ValueError, match="zeros: a size"):
        kernel(n=n)


def test_what_a_loop_or_function_made_is_not_there_after_it():
    def loop(n, x, y):
        kept = []
        for_range(n, lambda k: kept.append(zeros(n)))
        y[0] = kept[0][0]

    def function(n, x, y):
        y[0] = call(lambda m: zeros(m), n)[0]

    for program in (loop, function):
        with pytest.raises(Escaped, match=r"made at test_engine_loops.py:\d+: .*zeros"):
            record(program)


# -- whole numbers and checks -----------------------------------------------------------------------


def test_whole_numbers_divide_and_compare_as_in_python():
    def program(a, b, x, out, truth):
        i, j = a[0], b[0]
        safe = where(j == 0, 1, j)
        found = [i // safe, i % safe, i // 3, i % 3, i // -3, i % -3, i // 4, i % 4, 7 // safe, -7 % safe]
        found += [abs(i), -i, i**2, minimum(i, j), maximum(i, 2), whole(x[0]), whole(x[0] * 10.0) % 7]
        found += [i // 1, i // -1, cond((i < j) & (j != 3) | ~(i <= 0), lambda: i, lambda: j + 1)]
        for k, value in enumerate(found):
            out[k] = value
        inside = ((i >= 0) & (i < 5) | (x[0] > 0.5)) != (j == 2)
        inside = (inside == (i < 7)) ^ where(x[0] < 0.0, x[0] < -3.0, i == 2)
        last = for_range(j, lambda k, t, m: (t & (k < 4) | (m == 2), m + 1), inside, 0)
        truth[0] = where(last[0], 1, 0)
        truth[1] = last[1]

    arrays = [ArrayOf(name, (1,), "in", "integer") for name in "ab"]
    arrays += [
        ArrayOf("x", (1,)),
        ArrayOf("out", (20,), "out", "integer"),
        ArrayOf("truth", (2,), "out", "integer"),
    ]
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-20, 20, (99, 1)) for _ in range(2))
    everywhere(program, [], arrays, rows=99, a=a, b=b, x=rng.normal(size=(99, 1)) * 5)


def test_large_whole_numbers_divide_exactly():
    def program(a, b, out):
        out[0], out[1] = a[0] // b[0], a[0] % b[0]

    arrays = [ArrayOf(name, (1,), "in", "integer") for name in "ab"]
    rng = np.random.default_rng(0)
    limits = -(2**31) + 1, 2**31 - 1
    a, b = rng.integers(*limits, (500, 1)), rng.integers(1, 50, (500, 1)) * rng.choice([-1, 1], (500, 1))
    b[:100] = rng.integers(*limits, (100, 1))
    a[100:300] = b[100:300] * (a[100:300] // b[100:300]) - rng.integers(0, 2, (200, 1))
    a = a.clip(*limits)
    out = LoopKernel("divide", program, [], [*arrays, ArrayOf("out", (2,), "out", "integer")])(a=a, b=b)[
        "out"
    ]
    assert (out == np.hstack([a // b, a % b])).all()


def test_a_while_loop_ends_after_most_turns_in_every_lane():
    def program(x, count, out):
        out[0], out[1] = while_loop(lambda s, k: s < 10.0, lambda s, k: (s + x[0], k + 1.0), 0.0, 0.0, most=7)
        out[2] = while_loop(lambda s: s < 10.0, lambda s: s + x[0], 0.0, most=count[0])

    arrays = [ArrayOf("x", (1,)), ArrayOf("count", (1,), "in", "integer"), ArrayOf("out", (3,), "out")]
    x, count = np.array([-1.0, 0.0, 1.0, 2.0, 3.0, 1.5, 20.0, 0.1, 5.0])[:, None], np.arange(9)[:, None]
    out = everywhere(program, [], arrays, x=x, count=count)["out"]
    assert out[:, 1].tolist() == [7, 7, 7, 5, 4, 7, 1, 7, 2]


def test_a_test_that_writes_does_so_only_in_lanes_that_go_on():
    def program(count, out):
        def test(k):
            out[0] = out[0] + 1.0
            return k < count[0]

        while_loop(test, lambda k: k + 1, 0)

    arrays = [ArrayOf("count", (1,), "in", "integer"), ArrayOf("out", (1,), "inout")]
    count = np.arange(9)[:, None]
    out = everywhere(program, [], arrays, count=count, out=np.zeros((9, 1)))["out"]
    assert (out == count + 1).all()


@pytest.mark.parametrize("engine", ["python", None])
@pytest.mark.parametrize("rows", [None, 11])
def test_what_no_engine_can_compute_is_the_same_error_in_all(engine, rows):
    def program(n, k, x, out):
        out[0] = for_range(n, lambda i, s: s + 7 // k[i] + whole(x[i]), 0)

    arrays = [
        ArrayOf("k", ("n",), "in", "integer"),
        ArrayOf("x", ("n",)),
        ArrayOf("out", (1,), "out", "integer"),
    ]
    kernel = LoopKernel("fails", program, ["n"], arrays)
    shape = (3,) if rows is None else (rows, 3)
    k, x = np.ones(shape, int), np.zeros(shape)
    assert (kernel(k=k, x=x, engine=engine)["out"] == 21).all()
    for at, value, error in ((k, 0, ZeroDivisionError), (x, np.nan, ValueError), (x, 1e10, ValueError)):
        before = at.flat[-1]
        at.flat[-1] = value
        with pytest.raises(error):
            kernel(k=k, x=x, engine=engine)
        at.flat[-1] = before
    assert (kernel(k=k, x=x, engine=engine)["out"] == 21).all()
    if engine is None:
        k.flat[-1] = 0
        with pytest.raises(
            ZeroDivisionError, match=r"fails: .*zero\n  here at test_engine_loops.py:\d+: .*7 // k.i."
        ):
            kernel(k=k, x=x)


def test_a_checked_kernel_refuses_indices_out_of_range():
    def program(n, k, x, out):
        def turn(i):
            cond(i < 2, lambda: out.__setitem__(k[i], x[k[i] + i]), lambda: None)
            part = x[i:]
            out[0] = out[0] + part[k[2]]

        for_range(n, turn)

    arrays = [ArrayOf("k", (3,), "in", "integer"), ArrayOf("x", ("n",)), ArrayOf("out", (4,), "inout")]
    kernel = LoopKernel("checked", program, ["n"], arrays, reproducible=True, checked=True)
    rng = np.random.default_rng(0)
    x, k, out = rng.normal(size=(9, 4)), rng.integers(0, 3, (9, 3)), np.zeros((9, 4))
    k[:, 2] = 0
    found = kernel(x=x, k=k, out=out)["out"]
    assert (found == kernel(x=x, k=k, out=out, engine="python")["out"]).all()
    for column, value in ((0, 4), (0, 1 << 30), (1, -1), (2, 3)):
        wrong = k.copy()
        wrong[8, column] = value
        for given in ({"x": x, "k": wrong, "out": out}, {"x": x[8], "k": wrong[8], "out": out[8]}):
            with pytest.raises(
                IndexError, match=r"checked: index out of range.*\n  here at test_engine_loops.py:\d+"
            ):
                kernel(**given)
        with pytest.raises(IndexError, match="index"):
            kernel(**given, engine="python")
        kernel(x=x[0], k=k[0], out=out[0])


def test_an_index_that_all_lanes_share_is_a_load_of_a_vector():
    def program(n, x, index, table, out):
        def turn(k, s):
            i = index[k] % n + n // 2 - k  # of numbers that all states share
            out[k] = x[where(i < 0, 0, minimum(i, n - 1))] + table[k]
            return call(lambda j: x[j] + s, n - 1 - k)

        out[0] = for_range(n, turn, 0.0)

    arrays = [ArrayOf("x", ("n",)), ArrayOf("index", ("n",), "in", "integer", True)]
    arrays += [ArrayOf("table", ("n",), shared=True), ArrayOf("out", ("n",), "out")]
    kernel = LoopKernel("same", program, ["n"], arrays, reproducible=True)
    texts = kernel.parts(4, FLOAT64)[0][:-1]
    assert not any("extractelement" in text for text in texts)
    assert any("load <4 x double>" in text for text in texts)
    rng = np.random.default_rng(0)
    given = {"index": rng.integers(0, 9, 5), "table": rng.normal(size=5)}
    everywhere(program, ["n"], arrays, x=rng.normal(size=(9, 5)), **given)


# -- columns in lanes -------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 3, 8, 13])
def test_columns_are_the_same_bits_in_the_lanes_of_a_vector(count):
    def program(n, x, table, k, out):
        scale = x[0] * 0.5

        def column(a, b, pair, part):
            i, t = pair
            memory = zeros(n)

            def turn(j, s):
                memory[j] = s + sin(a) * table[(i + j) % n]
                return memory[j] * scale + part[j % 2]

            found = for_range(minimum(i, n), turn, b)
            return cond(t, lambda: found + cos(b), lambda: found * 0.5), i + 1, 2.5, scale

        columns = [x[m] for m in range(count)], [0.25 * m for m in range(count)]
        pairs = [(k[m], x[m] < x[0]) for m in range(count)]
        found = vmap(column)(*columns, pairs, [x[m:] for m in range(count)])
        assert len(found) == count and found[-1][2] == 2.5
        for m, (value, i, constant, same) in enumerate(found):
            out[m] = value * i + constant + same

    arrays = [ArrayOf("x", (count + 1,)), ArrayOf("table", ("n",), shared=True)]
    arrays += [ArrayOf("k", (count,), "in", "integer"), ArrayOf("out", (count,), "out")]
    rng = np.random.default_rng(0)
    given = {"x": rng.normal(size=(9, count + 1)), "table": rng.normal(size=5)}
    everywhere(program, ["n"], arrays, k=rng.integers(0, 7, (9, count)), **given)


def test_columns_that_write_are_computed_one_after_the_other():
    def program(x, out):
        def column(a):
            out[0] = out[0] * 0.5 + a
            return out[0]

        found = vmap(column)([x[k] for k in range(3)])
        out[1] = found[0] + found[1] * 3.0 + found[2]
        mixed = vmap(lambda a, b: (a, b * 2.0))([1.0, x[1]], [x[2], 3])  # not the same in kind
        out[2] = mixed[0][0] + mixed[1][1] + mixed[1][0]

    x = np.random.default_rng(0).normal(size=(9, 3))
    everywhere(program, [], [ArrayOf("x", (3,)), ArrayOf("out", (3,), "inout")], x=x, out=x * 0.0)


def test_parts_of_arrays_are_carried_chosen_and_returned():
    def program(n, x, k, out):
        tail = for_range(k[0], lambda i, part: part[1:], x)
        row = cond(k[1] < 2, lambda: x[0], lambda: x[n - 1])
        first, whole_, part = call(lambda a, i: (a[i], a, a[i:]), x, k[1])
        out[0], out[1], out[2] = tail[0, 1] * tail.shape[0], row[2] + first[0], part[0, 1] + whole_[0, 0]
        found = while_loop(lambda i, part: i < k[1], lambda i, part: (i + 1, part[1:]), 0, x)[1]
        out[3] = found[0, 2] + added(vmap(lambda a, b: a * b)(x[0], row))
        scalar = zeros()
        scalar[()] = out[3]
        out[4] = scalar[()] * 2.0

    arrays = [ArrayOf("x", ("n", 3)), ArrayOf("k", (2,), "in", "integer"), ArrayOf("out", (5,), "out")]
    rng = np.random.default_rng(0)
    everywhere(program, ["n"], arrays, x=rng.normal(size=(9, 5, 3)), k=rng.integers(0, 5, (9, 2)))


def test_errors_in_called_functions_loops_and_columns_reach_the_caller():
    def program(n, k, out):
        def inner(a):
            memory = zeros(n)
            memory[0] = 1.0 * (10 // a)
            return memory[0]

        def outer(i):
            return call(inner, k[i]) + cond(k[i] > 1, lambda: call(inner, k[i] - 1), lambda: 0.0)

        turns = while_loop(
            lambda s, i: call(inner, i + 1) > 2.0, lambda s, i: (s + call(outer, i % 3), i + 1), 0.0, 0
        )
        out[0] = turns[0] + sum(vmap(lambda a: call(inner, a))([k[0], k[1], k[2]]))

    arrays = [ArrayOf("k", (3,), "in", "integer"), ArrayOf("out", (1,), "out")]
    kernel = LoopKernel("nested", program, ["n"], arrays)
    k = np.arange(1, 34).reshape(11, 3)
    everywhere(program, ["n"], arrays, rows=11, k=k, n=4)
    for at in (0, 2, 32):
        wrong = k.copy()
        wrong.flat[at] = 0
        for given in (wrong, wrong[at // 3]):
            for engine in (None, "python"):
                with pytest.raises(ZeroDivisionError):
                    kernel(k=given, n=4, engine=engine)
        with pytest.raises(ValueError, match="zeros: a size"):
            kernel(k=k, n=-1)


def test_what_a_row_does_not_write_is_zero_whatever_its_neighbours_wrote():
    def some(n, x, out):
        cond(x[0] > 0.0, lambda: out.__setitem__(0, x[0]), lambda: None)

    kernel = LoopKernel("some", some, ["n"], [ArrayOf("x", ("n",)), ArrayOf("out", ("n",), "out")])
    x = np.random.default_rng(0).normal(size=(40, 3))
    expected = np.where(x > 0.0, x, 0.0) * [1.0, 0.0, 0.0]
    for rows in (x, -x):
        assert np.array_equal(kernel(x=rows)["out"], [kernel(x=row)["out"] for row in rows])
    assert np.array_equal(kernel(x=x)["out"], expected)


def test_memory_of_calls_does_not_wait_for_the_collector(monkeypatch):
    made, real = [], Environment.__init__
    monkeypatch.setattr(
        Environment, "__init__", lambda self, *a, **k: made.append(weakref.ref(self)) or real(self, *a, **k)
    )

    def function(n, x, out):
        out[0] = x[0] + zeros(n, n)[0, 0]

    kernel = LoopKernel("held", function, ["n"], [ArrayOf("x", ("n",)), ArrayOf("out", (1,), "out")])
    gc.disable()
    try:
        kernel(x=np.ones((9, 4)))
        kernel(x=np.ones(4))
        environment = kernel.environment({"n": 4}, "float64")
        made.append(weakref.ref(environment.context._blocks[0][1]))
        del environment
        assert [ref() for ref in made] == [None] * 4
    finally:
        gc.enable()


def test_a_kernel_that_python_runs_while_another_is_recorded():
    square = LoopKernel(
        "square",
        lambda n, x, out: for_range(n, lambda k: out.__setitem__(k, x[k] * x[k])),
        ["n"],
        [ArrayOf("x", ("n",)), ArrayOf("out", ("n",), "out")],
    )

    def function(n, x, out):
        def turn(k):
            out[k] = x[k] * float(square(x=np.full(2, 3.0), engine="python")["out"][1])

        for_range(n, turn)

    kernel = LoopKernel("around", function, ["n"], square.arrays)
    assert kernel(x=np.ones(2))["out"].tolist() == [9.0, 9.0]


def test_what_no_kernel_can_be_made_of_is_refused_where_it_is_written():
    x, out = ArrayOf("x", ("n",)), ArrayOf("out", ("n",), "out")
    for make, message in (
        (lambda: ArrayOf("x", ("n",), "input"), "no role named 'input'"),
        (lambda: ArrayOf("x", ("n",), kind="float"), "no kind named 'float'"),
        (lambda: ArrayOf("x", ("n",), "out", shared=True), "all states share it"),
        (lambda: ArrayOf("x", (-1,)), "a size is a whole number of 0 or more"),
        (lambda: LoopKernel("k", print, ["n"], [x, x]), "named 'x': rename one"),
        (lambda: LoopKernel("k", print, ["m"], [x, out]), "no size named 'n'"),
        (lambda: LoopKernel("a kernel", print, ["n"], [x, out]), "letters, digits and _"),
    ):
        with pytest.raises(rk.RobokitError, match=message):
            make()


def test_an_array_without_dimensions_is_a_number_of_a_state():
    arrays = [ArrayOf("x", ()), ArrayOf("out", (), "out")]
    kernel = LoopKernel("number", lambda x, out: out.__setitem__((), x[()] + 1.0), [], arrays)
    for engine in (None, "python"):
        assert kernel(x=3.0, engine=engine)["out"].shape == ()
        assert kernel(x=np.ones(9), engine=engine)["out"].tolist() == [2.0] * 9
    with pytest.raises(rk.RobokitError, match="x: expected real numbers"):
        kernel(x=[[1.0], [2.0, 3.0]])


@pytest.mark.parametrize("engine", [None, "python"])
def test_sizes_of_memory_that_are_known_are_checked_in_the_same_words(engine):
    for size, error in ((-1, ValueError), (2.0, TypeError)):
        kernel = LoopKernel("k", lambda n, x, size=size: zeros(n, size), ["n"], [ArrayOf("x", ("n",))])
        with pytest.raises(error, match="zeros: a size is "):
            kernel(x=np.ones(2), engine=engine)
