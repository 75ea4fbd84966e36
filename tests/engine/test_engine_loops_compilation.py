"""Kernels with loops: what makes their first compilation short, and that nothing is lost by it."""

import numpy as np
import pytest

from robokit.engine.backend import llvm
from robokit.engine.emit.ir import FLOAT64
from robokit.engine.loops.kernel import LoopKernel
from robokit.engine.loops.runs import Steps
from robokit.engine.signature import ArrayOf
from robokit.spatial.control_flow import for_range


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
    steps = Steps(doubled(5), {"n": 3})
    given = [np.ones(3) for _ in range(5)]
    given[array][2] = 2.0**1020  # 4 steps to infinity
    done, found = steps.iterate(*given, steps=50)
    assert done == 4
    assert np.isinf(found[array][2])
    assert [x[0] for x in found] == [16.0] * 5


def test_a_long_module_is_compiled_as_such_and_has_the_same_results(monkeypatch):
    x = np.linspace(-1.0, 1.0, 37)
    short = doubled(3)
    assert not short.text(1, FLOAT64).startswith(llvm.LOOPS + llvm.LONG)
    wanted = short(x0=x, x1=x, x2=x)
    monkeypatch.setattr(llvm, "LONG_FROM", 0)
    long = doubled(3)
    assert long.text(1, FLOAT64).startswith(llvm.LOOPS + llvm.LONG)
    for name, found in long(x0=x, x1=x, x2=x).items():
        np.testing.assert_array_equal(found, wanted[name])
