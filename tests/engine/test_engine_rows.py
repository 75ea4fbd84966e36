"""Rows of arrays to lanes and back: the same numbers at the same places, near or past the caches."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from robokit.dynamics.build import kernel
from robokit.engine import batch_calls
from robokit.engine.backend import llvm
from robokit.engine.emit import ir
from robokit.engine.emit.ir import FLOAT32, FLOAT64, Lines
from robokit.engine.emit.rows import BlockLoop, aligned_rows, in_order, worth_aligning
from robokit.engine.kernel import Kernel, NotFinite
from robokit.engine.single_calls import aligned

SIZES = (32, 33, 34, 35, 37, 64, 101, 127)


@pytest.fixture
def everything_past(monkeypatch):
    """All outputs count as too large for the caches."""
    monkeypatch.setattr(batch_calls, "last_cache", lambda: 0)


@pytest.mark.parametrize("past", [False, True])
@pytest.mark.parametrize("real", [FLOAT64, FLOAT32], ids=["float64", "float32"])
@pytest.mark.parametrize("lanes", [2, 4, 8, 16])
def test_rows_of_a_tile(lanes, real, past):
    rng = np.random.default_rng(lanes)
    slots = {n: rng.integers(0, 40, n).tolist() for n in SIZES if worth_aligning(n, lanes)}
    parts = []  # of one module
    for size, some in slots.items():
        call = f"  call void @one{size}(ptr %a, ptr %b)\n  ret void\n"
        parts += aligned_rows(f"one{size}", some, lanes, real, past)
        parts.append(f"define void @go{size}(ptr %a, ptr %b) {{\n{call}}}\n")
    code = llvm.Loaded(llvm.assemble(ir.module(parts, {lanes})))
    workspace = aligned(40 * lanes, real.dtype)
    workspace[:] = np.arange(len(workspace))
    for size, some in slots.items():
        to = aligned(lanes * size + 2 * lanes, real.dtype)
        to[:] = -1.0
        addresses = (workspace.ctypes.data, to[lanes:].ctypes.data)
        ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(code.address(f"go{size}"))(*addresses)
        want = workspace.reshape(40, lanes)[some].T
        np.testing.assert_array_equal(to[lanes:-lanes].reshape(lanes, size), want, err_msg=f"size {size}")
        assert (to[:lanes] == -1.0).all() and (to[-lanes:] == -1.0).all(), f"size {size}: written beside"


def made_code(kind, lanes, size, late, finite):
    """The function go(workspace, rows, mark) for slots 0, 1, ... of a row, written at rows[k] each."""
    out, late = Lines(), late or [0] * lanes
    given = [out(f"load ptr, ptr {out.pointer('%rows', lane, 'ptr')}, align 8") for lane in range(lanes)]
    rows = [out.pointer(row, -k) for row, k in zip(given, late, strict=True)]
    starts = [*range(lanes if any(late) else 0, size - lanes, lanes), *([] if any(late) else [size - lanes])]
    loop = BlockLoop(out, kind, lanes, finite=finite)
    loop.write(range(size), starts, late, rows, 8, "entry")
    if finite:
        out.do(f"store {loop.t} {loop.mark()}, ptr %mark, align 8")
    text = f"define void @go(ptr %ws, ptr %rows, ptr %mark) #0 {{\nentry:\n{out.text()}\n  ret void\n}}\n"
    code = llvm.Loaded(llvm.assemble(ir.module([text, *loop.tables], {lanes})))
    run = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(code.address("go"))
    return run, code, starts


@pytest.mark.parametrize("finite", [False, True])
@pytest.mark.parametrize("lanes", [2, 4, 8])
def test_rows_of_a_loop_over_blocks(lanes, finite):
    rng, size = np.random.default_rng(lanes), 37
    for late in (None, rng.permutation(lanes).tolist()):
        run, code, starts = made_code("loop", lanes, size, late, finite)
        workspace = aligned(size * lanes)
        workspace[:] = rng.normal(size=size * lanes)
        rows = [np.full(size, -1.0) for _ in range(lanes)]  # each anywhere
        addresses = (ctypes.c_void_p * lanes)(*(row.ctypes.data for row in rows))
        for bad in (None, *range(size)):
            values = workspace.reshape(size, lanes)
            values[:] = rng.normal(size=values.shape)
            lane = rng.integers(lanes)
            if bad is not None:
                values[bad, lane] = (np.nan, np.inf, -np.inf)[bad % 3]
            mark = np.zeros(lanes)
            run(workspace.ctypes.data, ctypes.addressof(addresses), mark.ctypes.data)
            seen = False
            for row, k, want in zip(rows, late or [0] * lanes, values.T, strict=True):
                first, last = starts[0] - k, starts[-1] + lanes - k
                np.testing.assert_array_equal(row[first:last], want[first:last])
                assert (row[:first] == -1.0).all() and (row[last:] == -1.0).all()
                seen |= not np.isfinite(want[first:last]).all()
            if finite:
                assert np.isnan(mark).any() == seen, bad
                assert (mark[~np.isnan(mark)] == 0.0).all()
        del code


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("size", [67, 128, 5])
def test_an_output_that_is_not_finite_is_seen_wherever_it_is(size, dtype):
    rows, huge = 33, 1e30 if dtype == "float32" else 1e300  # whole tiles, and a last one written otherwise
    kernel = Kernel(
        "large", [("x", size)], [("y", (size,))], lambda x: [[a * huge for a in x]], finite=True, dtype=dtype
    )
    x = np.zeros((rows, size), dtype)
    memory = aligned(rows * size + 1, dtype)
    for out in (memory[:-1].reshape(rows, size), memory[1:].reshape(rows, size)):
        kernel.batch(x, out=out)
        for place in range(size):
            x[place % rows, place] = huge
            with pytest.raises(NotFinite):
                kernel.batch(x, out=out)
            x[place % rows, place] = 0.0
        kernel.batch(x, out=out)
    for place in range(size):
        kernel(x[0])
        x[0, place] = huge
        with pytest.raises(NotFinite):
            kernel(x[0])
        x[0, place] = 0.0


def test_which_rows_are_worth_it():
    assert [worth_aligning(size, 4) for size in (9, 31, 32, 1225)] == [False, False, True, True]
    assert not worth_aligning(1225, 1)
    assert not worth_aligning(63, 16) and worth_aligning(64, 16)


def states(robot, rows):
    rng = np.random.default_rng(rows)
    return np.stack([robot.random_configuration(rng) for _ in range(rows)])


@pytest.mark.parametrize("robot", ["humanoid-floating", "arm-fixed"], indirect=True)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("rows", [1, 3, 4, 7, 65])
def test_matrices_past_the_caches(everything_past, robot, rows, dtype):
    q = states(robot, rows)
    for name in ("crba", "centroidal_momentum_matrix", "forward_kinematics"):
        got = kernel(robot, name, dtype).batch(q)
        want = np.stack([kernel(robot, name)(x) for x in q])
        bound = (1e-12 if dtype == "float64" else 1e-5) * abs(want).max()
        np.testing.assert_allclose(got, want, atol=bound, err_msg=name)


@pytest.mark.parametrize("cache", [0, 2**40], ids=["past", "near"])
@pytest.mark.parametrize("offset", [0, 1, 4, 5])
@pytest.mark.parametrize("robot", ["humanoid-floating"], indirect=True)
def test_where_the_output_lies_does_not_matter(monkeypatch, robot, offset, cache):
    monkeypatch.setattr(batch_calls, "last_cache", lambda: cache)
    rows, size = 21, robot.nv**2
    memory = aligned(offset + rows * size + 8)
    memory[:] = -1.0
    out = memory[offset:-8].reshape(rows, robot.nv, robot.nv)
    q = states(robot, rows)
    kernel(robot, "crba").batch(q, out=out)
    np.testing.assert_array_equal(out, [kernel(robot, "crba").batch(x[None])[0] for x in q])
    assert (memory[:offset] == -1.0).all() and (memory[-8:] == -1.0).all()


@pytest.mark.parametrize("robot", ["humanoid-floating"], indirect=True)
def test_threads_past_the_caches(everything_past, robot):
    q = states(robot, 1001)
    apart = np.concatenate([kernel(robot, "crba").batch(part, threads=1) for part in np.split(q, [3, 500])])
    np.testing.assert_array_equal(kernel(robot, "crba").batch(q, threads=2), apart)


@pytest.mark.parametrize("seed", range(20))
def test_moves_in_order_are_those_meant_at_once(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 12))
    moves = list(zip(rng.permutation(n).tolist(), rng.integers(0, n + 3, n).tolist(), strict=True))
    slots = list(range(n + 4))
    meant = dict(moves)
    for to, source in in_order(moves, n + 3):
        slots[to] = slots[source]
    assert slots[: n + 3] == [meant.get(k, k) for k in range(n + 3)]


def test_circles_need_the_spare_slot():
    assert len(in_order([(0, 1), (1, 0), (2, 3), (3, 4), (4, 2), (5, 5)], 9)) == 7


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("rows", [1, 13])
def test_states_that_change_places_in_every_pass(dtype, rows):
    # x turns round, y takes what x was, z is constant, w passes through; u changes from pass to pass.
    def function(x, y, u):
        a, b, c = x
        return [[b, c + u[0], a], [a * 0.5 + y[1], y[0], 2.0, y[3]]]

    kernel = Kernel(
        "turn",
        inputs=[("x", 3), ("y", 4), ("u", 1)],
        outputs=[("x_next", (3,)), ("y_next", (4,))],
        function=function,
        feedback={"x_next": "x", "y_next": "y"},
        dtype=dtype,
    )
    steps, rng = 7, np.random.default_rng(0)
    x, y, u = (rng.standard_normal(s).astype(dtype) for s in ((1, rows, 3), (1, rows, 4), (steps, rows, 1)))
    plain = [x[0].T.copy(), y[0].T.copy()]
    runner = kernel.rollout_runner()
    runner.run([x, y, u], runner.workspace(), range(rows), 0, steps)
    for k in range(steps):
        found = function(list(plain[0]), list(plain[1]), [u[k, :, 0]])
        plain = [np.array([np.broadcast_to(value, rows) for value in row], dtype) for row in found]
    for state, expected in zip((x, y), plain, strict=True):
        assert np.allclose(state[0].T, expected, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["int32", "float32", "float64"])
def test_tables_have_their_numbers(dtype):
    numbers = [0, 1, -2, 127, 2**31 - 1] if dtype == "int32" else [0.0, -0.0, 0.1, -1e300, np.inf, np.pi]
    text = ir.table("numbers", numbers, dtype) + "@there = constant ptr @numbers\n"
    code = llvm.Loaded(llvm.assemble(ir.module([text], {1})))
    place = ctypes.c_void_p.from_address(code.address("there")).value
    with np.errstate(over="ignore"):
        want = np.array(numbers, dtype)
    assert ctypes.string_at(place, want.nbytes) == want.tobytes() and place % want.itemsize == 0
