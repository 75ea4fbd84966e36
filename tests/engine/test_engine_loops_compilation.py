"""Kernels with loops: what makes their first compilation short, and that nothing is lost by it."""

import logging
import os
import threading

import numpy as np
import pytest
import waiting
from engine_cases import steps

from robokit.engine import maker
from robokit.engine.backend import llvm
from robokit.engine.emit.ir import FLOAT64
from robokit.engine.loops import kernel as loop_kernel
from robokit.engine.loops.kernel import LoopKernel, LoopRunner
from robokit.engine.signature import ArrayOf
from robokit.spatial.control_flow import call, for_range


def doubled(count):
    """A kernel of so many arrays, each of which is doubled in each step."""

    def step(n, *arrays):
        for x in arrays:
            for_range(n, lambda k, x=x: x.__setitem__(k, 2.0 * x[k]))

    return LoopKernel("doubled", step, ["n"], [ArrayOf(f"x{k}", ("n",), "inout") for k in range(count)])


def test_no_loop_for_each_array_looks_whether_it_is_finite():
    def labels(count):
        text = doubled(count).text(1, FLOAT64, "linked")
        single = text[text.index("@doubled_single(") :]
        return sum(line.endswith(":") for line in single[: single.index("\n}\n")].splitlines())

    assert labels(40) == labels(1)


@pytest.mark.parametrize("array", [0, 1, 4])
def test_steps_end_where_any_array_is_no_longer_finite(array):
    given = [np.ones(3) for _ in range(5)]
    given[array][2] = 2.0**1020  # 4 steps to infinity
    assert steps(doubled(5), {"n": 3}, given, 50) == 4
    assert np.isinf(given[array][2])
    assert [x[0] for x in given] == [16.0] * 5


def polynomials(n, x, y, out):
    """Three functions of each element: two that are called, in a loop, and one of the kernel's own."""
    power = lambda s: for_range(3, lambda _, p: p * s + 0.1, s)  # noqa: E731
    total = lambda s, t: for_range(2, lambda _, p: p * t + s, power(s))  # noqa: E731

    def element(k):
        out[k] = call(power, x[k]) + call(total, x[k], y[k]) - call(power, y[k]) / 3.0

    for_range(n, element)


def run_for_long(kernel, lanes=1, part="linked"):
    """As if its code had run for longer than any compilation takes; waits for the better code."""
    version = kernel.version
    kernel.ran(1.0, lanes, "float64", part)
    waiting.until(lambda: kernel.version > version)


def test_code_that_is_there_soon_is_compiled_well_when_it_has_run_for_long():
    arrays = [ArrayOf("x", ("n",)), ArrayOf("y", ("n",)), ArrayOf("out", ("n",), "out")]
    given = {"x": np.linspace(-1.0, 1.0, 37), "y": np.linspace(0.3, 2.0, 37)}
    kernel = LoopKernel("polynomials", polynomials, ["n"], arrays)
    first, soon = kernel(**given)["out"], kernel.code(1, FLOAT64)
    assert kernel.code(1, FLOAT64) is soon and kernel.soon(1, "float64")
    assert 0.0 < kernel.seconds < kernel.seconds_to_compile("float64")
    run_for_long(kernel)
    well = kernel.code(1, FLOAT64)
    assert well is not soon and kernel.code(1, FLOAT64) is well and not kernel.soon(1, "float64")
    np.testing.assert_array_equal(kernel(**given)["out"], first)


def test_where_no_better_code_can_be_had_the_first_one_stays(monkeypatch, caplog):
    arrays = [ArrayOf("x", ("n",)), ArrayOf("y", ("n",)), ArrayOf("out", ("n",), "out")]
    given = {"x": np.linspace(-1.0, 1.0, 37), "y": np.linspace(0.3, 2.0, 37)}
    kernel = LoopKernel("denied", polynomials, ["n"], arrays)
    first, soon = kernel(**given)["out"], kernel.code(1, FLOAT64)

    def denied(content):
        raise llvm.CompilerMissing("no memory for it")

    monkeypatch.setattr(llvm, "Loaded", denied)
    with caplog.at_level(logging.INFO):
        kernel.ran(1.0, 1, "float64")  # more than any compilation of it takes
        waiting.until(lambda: "no memory for it" in caplog.text)
    np.testing.assert_array_equal(kernel(**given)["out"], first)
    assert kernel.code(1, FLOAT64) is soon and kernel.refused is None


def test_a_call_that_is_kept_and_rows_run_better_code_once_it_is_worth_it():
    arrays = [ArrayOf("x", ("n",)), ArrayOf("y", ("n",)), ArrayOf("out", ("n",), "out")]
    kernel = LoopKernel("kept", polynomials, ["n"], arrays)
    x, y = np.random.default_rng(0).normal(size=(2, 64, 37))
    out, alone = np.zeros((2, 64, 37))
    call = kernel.single({"n": 37}, [x[0], y[0], alone[0]])
    runner = LoopRunner(kernel, {"n": 37})
    rows = runner.once([x[None], y[None], out[None]], len(x))
    found = []
    for turn in range(3):
        call()
        rows()
        found.append((kernel.code(1, FLOAT64), kernel.code(runner.lanes, FLOAT64, "batch"), runner._run))
        assert (out[0] == alone[0]).all() and out.any()
        out[:] = alone[:] = 0.0
        if not turn:
            run_for_long(kernel)
            run_for_long(kernel, runner.lanes, "batch")
    assert all(a is not b for a, b in zip(found[0], found[1], strict=True))
    assert all(a is b for a, b in zip(found[1], found[2], strict=True))


def test_a_kernel_that_is_called_by_another_is_compiled_well_with_it():
    arrays = [ArrayOf("x", ("n",)), ArrayOf("y", ("n",)), ArrayOf("out", ("n",), "out")]
    inner = LoopKernel("called", polynomials, ["n"], arrays)
    outer = LoopKernel("caller", lambda n, x, y, out: call(inner, x, y, out), ["n"], arrays)
    given = {"x": np.linspace(-1.0, 1.0, 37), "y": np.linspace(0.3, 2.0, 37)}
    first, soon = outer(**given)["out"], inner.code(1, FLOAT64)
    assert outer.soon(1, "float64") and inner.soon(1, "float64")
    run_for_long(outer)
    np.testing.assert_array_equal(outer(**given)["out"], first)
    assert inner.code(1, FLOAT64) is not soon and not inner.soon(1, "float64")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_nobody_waits_for_better_code(monkeypatch):
    """Neither calls, nor other kernels, nor a fork, whose child keeps the first code."""
    arrays = [ArrayOf("x", ("n",)), ArrayOf("y", ("n",)), ArrayOf("out", ("n",), "out")]
    given = {"x": np.linspace(-1.0, 1.0, 37), "y": np.linspace(0.3, 2.0, 37)}
    kernel = LoopKernel("awaited", polynomials, ["n"], arrays)
    first, begun, go_on, own = (
        kernel(**given)["out"],
        threading.Event(),
        threading.Event(),
        loop_kernel.code_of,
    )

    def code_of(name, *rest):
        if name == "awaited":
            begun.set()
            assert go_on.wait(waiting.PATIENCE)
        return own(name, *rest)

    monkeypatch.setattr(loop_kernel, "code_of", code_of)
    kernel.ran(1.0, 1, "float64")
    try:
        assert begun.wait(waiting.PATIENCE)
        for each in (kernel, LoopKernel("meanwhile", polynomials, ["n"], arrays)):
            np.testing.assert_array_equal(each(**given)["out"], first)
        child = os.fork()
        if not child:
            os._exit(int((kernel(**given)["out"] != first).any()))
        ended = [(0, 0)]
        waiting.until(lambda: ended[-1][0] or ended.append(os.waitpid(child, os.WNOHANG)))
        assert ended[-1] == (child, 0) and not kernel.version
    finally:
        go_on.set()
    waiting.until(lambda: kernel.version == 1)
    np.testing.assert_array_equal(kernel(**given)["out"], first)


def test_a_long_module_is_compiled_in_parts_and_has_the_same_bits(monkeypatch):
    arrays = [ArrayOf("x", ("n",)), ArrayOf("y", ("n",)), ArrayOf("out", ("n",), "out")]
    given = {"x": np.linspace(-1.0, 1.0, 37), "y": np.linspace(0.3, 2.0, 37)}

    def made():
        return LoopKernel("polynomials", polynomials, ["n"], arrays)

    assert not made().text(1, FLOAT64).startswith(llvm.LOOPS + llvm.LONG)
    wanted = made()(**given)["out"]
    monkeypatch.setattr(llvm, "LONG_FROM", 1)
    long = made().text(1, FLOAT64)
    for text, mark, own in (
        (long, llvm.LONG, llvm.LONG + llvm.ONCE),
        (llvm.soon(long), llvm.SOON, llvm.SOON),
    ):
        assert text.startswith(llvm.LOOPS + mark)
        parts = llvm.called_apart(text)
        first, *called = parts
        assert first.startswith(llvm.LOOPS + own)
        assert len(called) == 2 and all(part.startswith(llvm.LOOPS + mark) for part in called)
        for k in range(3):  # each is in one of them
            name = f" @polynomials_function{k}("
            assert sum(f"{{double}}{name}" in part for part in parts) == (3 if k else 0)
            declared = sum(f"declare hidden {{double}}{name}" in part for part in parts)
            assert declared == (2 if k else 0)
        monkeypatch.setattr(maker, "TIERED", mark == llvm.SOON)
        np.testing.assert_array_equal(made()(**given)["out"], wanted)
