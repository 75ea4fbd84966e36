"""Work that all lanes share, and functions that lanes run one after another: the numbers of single states."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from robokit.engine.backend import llvm
from robokit.engine.loops.fields import by_lane, constant, kernel_of, once, real, whole
from robokit.engine.loops.kernel import ArrayOf
from robokit.spatial.control_flow import call, cond, for_range, while_loop, zeros
from robokit.spatial.scalars import where

ARRAYS = (
    whole("count", 1),
    real("numbers", "n"),
    real("out", "n", role="out"),
    real("sums", 2, role="out"),
    real("scratch", "n", role="work"),
    ArrayOf("met", ("n",), "work", "integer", shared=True),
)


def sorted_sum(x: Any) -> None:
    """Sorts the first numbers, and sums them: each row goes its own way. Notes which places it met."""
    copy = zeros(x.n)

    def insert(k: Any) -> None:
        x.scratch[k] = x.numbers[k]
        x.met[k] = 1

        def swap(m: Any) -> Any:
            low, high = x.scratch[m], x.scratch[m - 1]
            x.scratch[m - 1], x.scratch[m] = low, high
            return m - 1

        def falls(m: Any) -> Any:
            return (m > 0) & (x.scratch[m] < x.scratch[where(m > 0, m - 1, 0)])

        while_loop(falls, swap, k)

    for_range(x.count[0], insert)

    def leave(k: Any) -> None:
        copy[k] = x.scratch[k]
        x.out[k] = copy[k]

    for_range(x.count[0], leave)
    x.sums[0] = once(x, total, 3.0)


def total(x: Any, factor: Any) -> Any:
    return for_range(x.count[0], lambda k, so_far: so_far + factor * x.scratch[k], 0.0)


def program(x: Any) -> None:
    for_range(x.n, lambda k: forget(x, k))
    cond(x.count[0] > 1, lambda: by_lane(x, sorted_sum), lambda: None)
    # Of all lanes: how many places one of them has met, the same number in each.
    x.sums[1] = for_range(x.n, lambda k, so_far: so_far + x.met[k], 0) * 1.0


def forget(x: Any, k: Any) -> None:
    x.met[k] = 0


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("lanes", [None, 4])
def test_each_lane_goes_its_own_way(dtype, lanes):
    kernel = kernel_of("lane_by_lane", program, ARRAYS, lanes=lanes)
    rng, wide = np.random.default_rng(0), kernel.lanes(dtype)
    rows = 2 * wide + 1
    numbers = rng.normal(size=(rows, 9)).astype(dtype)
    count = rng.integers(0, 10, size=(rows, 1))
    found = kernel(count=count, numbers=numbers, dtype=dtype)
    for row, n in enumerate(count[:, 0]):
        alone = kernel(count=count[row], numbers=numbers[row], dtype=dtype)
        np.testing.assert_array_equal(found["out"][row], alone["out"])
        np.testing.assert_array_equal(found["sums"][row, 0], alone["sums"][0])
        assert n < 2 or (alone["out"][:n] == np.sort(numbers[row, :n])).all()
        tile = count[row // wide * wide :][:wide, 0]
        assert found["sums"][row, 1] == max([0, *tile[tile > 1]])


def test_lanes_write_one_number_to_what_they_share_and_return_nothing_one_by_one():
    shared = [real("x", 1), real("y", 1, role="out"), ArrayOf("work", (1,), "work", shared=True)]

    def differs(x: Any) -> None:
        x.work[0] = x.x[0]
        x.y[0] = x.work[0]

    def returns(x: Any) -> None:
        def alone() -> Any:
            return x.x[0]

        alone.by_lane = True  # type: ignore[attr-defined]
        x.y[0] = call(alone)

    for function, message in ((differs, "different numbers"), (returns, "returns nothing")):
        kernel = kernel_of("refused", function, shared)
        assert kernel(x=np.ones(1))["y"] == 1.0
        with pytest.raises(TypeError, match=message):
            kernel(x=np.ones((9, 1)))


def of_kind(x: Any, kind: Any) -> None:
    """Sums beside what branches on a kind leave: a product, 0 and 1, and what was made before."""
    a, b, c, d, e, f = (x.numbers[k] for k in range(6))
    product, nothing, one = cond(kind == 2, lambda: (a * b, 0.0, 1.0), lambda: (a, b, c))
    x.out[0] = product + c * d
    x.out[1] = (nothing + c * d) + e * f
    x.out[2] = (one * (c * d)) - e
    x.out[3] = cond((kind == 1) | (a == math.inf), lambda: a, lambda: c * d + e * f) - a * b
    x.out[4] = e * f + a * b  # of which the last one was there first
    x.out[5] = where(kind == 2, c * e, d) + where(kind < 2, 2.0, 1.0) * (a * b)


OF_KIND = (whole("kind", 1), real("numbers", 6), real("out", 6, role="out"))


@pytest.mark.parametrize("reproducible", [False, True])
def test_a_kind_that_is_a_constant_changes_no_bits(reproducible: bool) -> None:
    """Sums are fused with the same products as where the kind is known only as the kernel runs."""
    kinds, numbers = np.full((200, 1), 2), np.random.default_rng(8).normal(size=(200, 6))

    def out(kind: Callable[[Any], Any]) -> np.ndarray:
        kernel = kernel_of("of_kind", lambda x: of_kind(x, kind(x)), OF_KIND, reproducible=reproducible)
        found: np.ndarray = kernel(kind=kinds, numbers=numbers)["out"]
        return found

    unknown, constants, known = (
        out(kind) for kind in (lambda x: x.kind[0], lambda x: constant(x.kind, 2), lambda x: 2)
    )
    np.testing.assert_array_equal(constants, unknown)
    assert reproducible or not llvm.has_fused_multiply_add() or (known != unknown).any(axis=0).sum() >= 3
