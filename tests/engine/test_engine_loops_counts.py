"""Operations of loops: those that the function does when it runs."""

from __future__ import annotations

import loop_programs
import numpy as np
import pytest
from loop_programs import ARRAYS
from test_engine_loops import factor
from test_engine_loops_c import CALLS, CALLS_GIVEN, random_calls

import robokit as rk
from robokit.engine.loops.kernel import ArrayOf, LoopKernel
from robokit.spatial import control_flow
from robokit.spatial.control_flow import call, cond, for_range, while_loop
from robokit.spatial.scalars import cos, sin


@pytest.mark.parametrize("n", [1, 2, 7, 60])
def test_counts_of_a_factorization_are_the_sums_of_its_loops(n):
    kernel = LoopKernel("ldlt", factor, ["n"], [ArrayOf("A", ("n", "n"), "inout")])
    found = kernel.counts(A=np.eye(n))
    pairs = [(k, i) for k in range(n) for i in range(k + 1, n)]
    inner = sum(i - k for k, i in pairs)
    assert found["div"] == n
    assert found["mul"] == inner + 2 * len(pairs)
    assert found["add"] == inner and found["sqrt"] == found["sincos"] == 0
    assert found["store"] == inner + len(pairs)
    assert found["load"] == n + 2 * inner + 2 * len(pairs)


def data(n, x, steps, out):
    """How often its loops run depends on numbers."""

    def until(s, c):
        return s * 0.5, c + 1

    _, c = while_loop(lambda s, c: s > 1.0, until, x[0], 0)
    steps[0] = c
    for_range(steps[0], lambda k: out.__setitem__(0, 3.0 / out[0]))
    out[1] = cond(x[1] < 0.0, lambda: sin(x[1]) + cos(x[1]), lambda: call(lambda u: u * u * u, x[1]))


DATA = LoopKernel(
    "data",
    data,
    ["n"],
    [ArrayOf("x", ("n",)), ArrayOf("steps", (1,), "out", "integer"), ArrayOf("out", (2,), "inout")],
)


def test_counts_follow_the_numbers():
    found = DATA.counts(x=[8.0, -1.0], out=[1.0, 1.0])
    assert (found["div"], found["sincos"], found["compare"]) == (3, 1, 4 + 1)
    assert (found["mul"], found["whole"]) == (3, 3), "the product of the other branch is not computed"
    found = DATA.counts(x=[0.5, 2.0], out=[1.0, 1.0])
    assert (found["div"], found["sincos"], found["mul"], found["whole"]) == (0, 0, 2, 0)


def test_counts_change_nothing_and_are_of_one_state():
    out = np.ones(2)
    DATA.counts(x=[8.0, -1.0], out=out)
    assert (out == 1.0).all()
    with pytest.raises(rk.ShapeError, match="one state"):
        DATA.counts(x=np.ones((3, 2)), out=np.ones((3, 2)))


class Counter:
    """An array whose writes are counted."""

    def __init__(self, array):
        self.array, self.shape, self.times, self.whole = array, array.shape, 0, self

    def __getitem__(self, index):
        found = self.array[index]
        if isinstance(found, np.ndarray):
            part = Counter(found)
            part.whole = self
            return part
        return getattr(found, "item", lambda: found)()

    def __setitem__(self, index, value):
        self.whole.times += 1
        self.array[index] = value


@pytest.mark.parametrize("seed", range(20))
def test_as_many_elements_are_written_as_by_python(seed, monkeypatch):
    made = []

    def zeros(*shape, **how):
        made.append(Counter(control_flow.zeros(*shape, **how)))
        return made[-1]

    for kernel, given in random_calls([seed]):
        found = kernel.counts(**given)
        arrays = {a.name: Counter(np.array(given[a.name])) for a in ARRAYS}
        with monkeypatch.context() as patch:
            patch.setattr(loop_programs, "zeros", zeros)
            kernel.function(given["n"], *arrays.values())
        own = sum(array.times for array in arrays.values())
        # What is written to memory that is never read again is not needed.
        assert own <= found["store"] <= own + sum(array.times for array in made)
        made.clear()


def test_a_function_counts_as_often_as_it_is_called():
    small, large = (CALLS.counts(**given) for given in CALLS_GIVEN)
    assert small["sqrt"] == 8 * 2 and large["sqrt"] == 8 * 5
