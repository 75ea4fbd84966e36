"""Kernels that call other kernels: the numbers of Python's calls, one caller's code for all robots."""

from __future__ import annotations

import signal
import threading
import time

import ladder
import numpy as np
import pytest
import waiting
from engine_cases import steps
from test_engine_loops_c import in_c

import robokit as rk
from robokit.dynamics.build import kernel as robot_kernel
from robokit.engine.backend import llvm
from robokit.engine.kernel import Kernel
from robokit.engine.loops.kernel import ArrayOf, LoopKernel, LoopRunner
from robokit.spatial.control_flow import call, cond, for_range, vmap, while_loop, zeros
from robokit.spatial.scalars import sin

OUT = ArrayOf("out", (1,), "out")


@pytest.fixture
def compiled(monkeypatch, tmp_path):
    """The modules that are compiled, in a cache of their own."""
    made = []
    real = llvm.assemble
    monkeypatch.setenv("ROBOKIT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(llvm, "assemble", lambda text: made.append(text) or real(text))
    return made


def back_and_forth(rnea, aba):
    """Forces to accelerations and back, a run-time number of times, each time with half of the forces."""

    def function(turns, nq, nv, q, v, tau, a):
        def turn(k):
            call(aba, q, v, tau, a)
            call(rnea, q, v, a, tau)
            for_range(nv, lambda i: tau.__setitem__(i, 0.5 * tau[i]))

        for_range(turns, turn)

    arrays = [ArrayOf("q", ("nq",)), ArrayOf("v", ("nv",)), ArrayOf("tau", ("nv",), "inout")]
    return LoopKernel("halves", function, ["turns", "nq", "nv"], [*arrays, ArrayOf("a", ("nv",), "out")])


@pytest.mark.parametrize("engine", [None, "python"])
def test_one_caller_calls_the_kernels_of_two_robots(compiled, engine):
    mine = []
    for robot in (ladder.chain(3), ladder.chain(4, base="floating")):
        aba, rnea = robot_kernel(robot, "aba"), robot_kernel(robot, "rnea")
        state, rng = ladder.State(robot, 1), np.random.default_rng(0)
        tau = rng.normal(size=(11, robot.nv))
        kernel = back_and_forth(rnea, aba)
        before = len(compiled)
        got = kernel(turns=3, q=state.q, v=state.v, tau=tau, engine=engine)
        one = kernel(turns=3, q=state.q, v=state.v, tau=tau[4], engine=engine)
        mine.append([text for text in compiled[before:] if "halves" in text])
        assert not engine or len(compiled) == before
        np.testing.assert_allclose(got["tau"], tau / 8.0, rtol=1e-9, atol=1e-9)
        want = np.array([rk.aba(robot, state.q, state.v, row) for row in tau / 4.0])
        np.testing.assert_allclose(got["a"], want, rtol=1e-9, atol=1e-7)
        np.testing.assert_allclose(one["tau"], tau[4] / 8.0, rtol=1e-9, atol=1e-9)
    if not engine:
        assert [len(texts) for texts in mine] == [2, 0], "the second robot compiles nothing of the caller"


def doubled(factor=2.0, key=None, n=3, **options):
    """y = factor * sin(x), and a constant and an input as outputs."""
    function = lambda x: [[factor * sin(e) for e in x], [1.5, x[0]]]  # noqa: E731
    return Kernel("doubled", [("x", n)], [("y", (n,)), ("z", (2,))], function, key=key, **options)


def repeated(inner, reproducible=False):
    """Calls a kernel as often as a state asks, unless its first number is negative."""

    def function(count, x, y, z):
        def turn(k):
            call(inner, x, y, z)
            for_range(3, lambda i: x.__setitem__(i, x[i] + 0.25 * y[i]))

        cond(
            x[0] < 0.0,
            lambda: None,
            lambda: for_range(count[0], turn),
        )

    arrays = [ArrayOf("count", (1,), kind="integer"), ArrayOf("x", (3,), "inout")]
    arrays += [ArrayOf("y", (3,), "inout"), ArrayOf("z", (2,), "inout")]
    return LoopKernel("repeated", function, [], arrays, reproducible)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_lanes_that_differ_have_the_bits_of_their_single_runs(dtype):
    inner = doubled(reproducible=True, dtype=dtype)
    kernel = repeated(inner, reproducible=True)
    rng, rows = np.random.default_rng(3), 21
    x, y, z = rng.normal(size=(rows, 3)), rng.normal(size=(rows, 3)), rng.normal(size=(rows, 2))
    count = rng.integers(0, 6, (rows, 1))
    many = kernel(count=count, x=x, y=y, z=z, dtype=dtype)
    plain = kernel(count=count, x=x, y=y, z=z, dtype=dtype, engine="python")
    idle = (count[:, 0] == 0) | (x[:, 0] < 0.0)
    assert 0 < idle.sum() < rows
    assert (many["y"][idle] == y[idle].astype(dtype)).all(), "lanes that are not active keep what they had"
    assert (many["z"][~idle, 0] == 1.5).all()
    for row in range(rows):
        one = kernel(count=count[row], x=x[row], y=y[row], z=z[row], dtype=dtype)
        for name in "xyz":
            assert (one[name] == many[name][row]).all()
            assert (one[name] == plain[name][row]).all()


def test_kernels_with_loops_are_called_as_well_with_sizes_and_memory_of_their_own():
    """A kernel that calls one that calls one; the inner ones work on rows of a matrix."""
    inner = doubled()

    def summed(n, x, total, y, z):
        def each(k, so_far):
            for_range(3, lambda i: y.__setitem__(i, x[k, i]))
            call(inner, y, x[k], z)
            return so_far + x[k, 0] + x[k, 1] + x[k, 2]

        total[0] = for_range(n, each, 0.0)

    arrays = [ArrayOf("x", ("n", 3), "inout"), ArrayOf("total", (1,), "out")]
    work = [ArrayOf("y", (3,), "work"), ArrayOf("z", (2,), "work")]
    middle = LoopKernel("summed", summed, ["n"], [*arrays, *work])

    def function(m, n, x, totals):
        for_range(m, lambda k: cond(x[k, 0, 0] < 0.0, lambda: None, lambda: call(middle, x[k], totals[k])))

    arrays = [ArrayOf("x", ("m", "n", 3), "inout"), ArrayOf("totals", ("m", 1), "inout")]
    outer = LoopKernel("outer", function, ["m", "n"], arrays)
    x = np.random.default_rng(5).normal(size=(19, 4, 2, 3))
    totals = np.full((19, 4, 1), 9.0)
    many = outer(x=x, totals=totals)
    on = x[:, :, 0, 0] >= 0.0
    want = np.where(on, (2.0 * np.sin(x)).sum(axis=(2, 3)), 9.0)
    np.testing.assert_allclose(many["totals"][..., 0], want, rtol=1e-13)
    np.testing.assert_allclose(many["x"], np.where(on[..., None, None], 2.0 * np.sin(x), x), rtol=1e-13)
    for engine in (None, "python"):
        np.testing.assert_allclose(
            outer(x=x[3], totals=totals[3], engine=engine)["totals"][:, 0], want[3], rtol=1e-13
        )


def test_a_changed_kernel_is_what_runs(compiled):
    """Same caller, same name, same key but for the number: never the code of the old one."""
    x, nothing = np.array([0.5, 1.0, 2.0]), {"y": np.zeros(3), "z": np.zeros(2), "count": np.array([1])}
    for factor in (2.0, 3.0, 2.0):
        got = repeated(doubled(factor, b"%f" % factor))(x=x, **nothing)["y"]
        np.testing.assert_allclose(got, factor * np.sin(x), rtol=1e-14)
    assert sum("repeated" in text for text in compiled) == 1


# -- what is refused ----------------------------------------------------------------------------------


def calling(inner, *shapes, roles=("in", "out", "out"), function=None, sizes=("n",), **options):
    arrays = [
        ArrayOf(name, shape, role, **options) for name, shape, role in zip("xyz", shapes, roles, strict=False)
    ]
    return LoopKernel("calling", function or (lambda n, *a: call(inner, *a)), list(sizes), arrays)


def test_sizes_that_do_not_fit_are_said_at_the_call():
    inner = doubled()
    with pytest.raises(rk.ShapeError, match=r"y of doubled: expected shape \(3,\), got \(4,\)"):
        calling(inner, (3,), (4,), (2,)).record()
    free = calling(inner, ("n",), (3,), (2,))
    for engine in (None, "python"):
        with pytest.raises(rk.ShapeError, match=r"x of doubled: expected shape \(3,\), got \(5,\)"):
            free(x=np.ones(5), engine=engine)
        with pytest.raises(rk.ShapeError, match=r"x of doubled: expected shape \(3,\), got \(5,\)"):
            free(x=np.ones((9, 5)), engine=engine)
        np.testing.assert_allclose(free(x=np.ones(3), engine=engine)["y"], 2.0 * np.sin(1.0))
    loop = LoopKernel(
        "twice", lambda n, x, y: None, ["n"], [ArrayOf("x", ("n",)), ArrayOf("y", ("n",), "out")]
    )
    with pytest.raises(rk.ShapeError, match=r"y of twice: expected shape \(4,\), got \(5,\)"):
        calling(loop, ("n",), (5,))(x=np.ones(4))


def test_a_size_that_is_known_only_in_a_loop_is_refused_where_it_is():
    inner = doubled()

    def function(n, x, y, z):
        for_range(n, lambda k: call(inner, x[k : 3 + k], y, z))

    with pytest.raises(TypeError, match=r"must follow from those of the calling kernel"):
        calling(inner, ("n",), (3,), (2,), function=function).record()


def test_arguments_that_no_call_can_have_are_refused():
    inner = doubled()
    with pytest.raises(TypeError, match=r"doubled takes 3 arrays \(x, y, z\), got 2"):
        calling(inner, (3,), (3,), roles=("in", "out")).record()
    with pytest.raises(rk.RobokitError, match=r"x of doubled: expected an array of the calling kernel"):
        calling(inner, (3,), (3,), (2,), function=lambda n, x, y, z: call(inner, 1.0, y, z)).record()
    with pytest.raises(TypeError, match="y of doubled is written, but the array given is an input"):
        calling(inner, (3,), (3,), (2,), roles=("in", "in", "out")).record()
    with pytest.raises(TypeError, match="expected an array of reals, got one of integers"):
        calling(inner, (3,), (3,), (2,), kind="integer").record()
    with pytest.raises(TypeError, match="writes y, and x may be in the same memory"):
        calling(inner, (3,), (3,), (2,), function=lambda n, x, y, z: call(inner, y, y, z)).record()
    apart = lambda n, x, y, z: call(inner, y[3:], y[:3], z)  # noqa: E731
    assert calling(inner, (3,), (6,), (2,), function=apart).record().links
    shared = [ArrayOf("x", (3,), shared=True), ArrayOf("y", (3,), "out"), ArrayOf("z", (2,), "out")]
    with pytest.raises(TypeError, match="every state has one of its own, of the array given all"):
        LoopKernel("calling", lambda *a: call(inner, *a), [], shared).record()
    with pytest.raises(TypeError, match="repeated is reproducible and calls doubled, which is not"):
        repeated(inner, reproducible=True).record()
    with pytest.raises(rk.RobokitError, match="doubled, which is called in float32: expected"):
        calling(inner, (3,), (3,), (2,))(n=0, x=np.ones((9, 3)), dtype="float32")


# -- many steps ---------------------------------------------------------------------------------------


def pendulum_step():
    """A step whose state is (x, w), with a force given anew, which counts its turns."""
    rate = Kernel("rate", [("x", 2), ("f", 1)], [("a", (1,))], lambda x, f: [[f[0] - sin(x[0])]])

    def function(x, f, turns, a):
        call(rate, x, f, a)
        x[1] = x[1] + 0.01 * a[0]
        x[0] = x[0] + 0.01 * x[1]
        turns[0] = turns[0] + 1.0

    arrays = [ArrayOf("x", (2,), "inout"), ArrayOf("f", (1,)), ArrayOf("turns", (1,), "inout")]
    return LoopKernel("swing", function, [], [*arrays, ArrayOf("a", (1,), "work")])


def swung(x, forces):
    x = np.array(x)
    for f in forces:
        x[..., 1] += 0.01 * (f - np.sin(x[..., 0]))
        x[..., 0] += 0.01 * x[..., 1]
    return x


def test_steps_of_one_state():
    x, force, turns = np.array([1.0, 0.2]), np.array([0.3]), np.zeros(1)
    wanted = swung(x, [0.3] * 50)
    assert steps(pendulum_step(), {}, [x, force, turns], 50) == 50 == turns[0]
    np.testing.assert_allclose(x, wanted, rtol=1e-12)
    beyond = [np.array([1.0, 1e308]), np.array([1e308]), np.zeros(1)]
    assert 0 < steps(pendulum_step(), {}, beyond, 400) < 400, "ends where the state is no longer finite"


@pytest.mark.parametrize("engine", ["llvm", "python"])
@pytest.mark.parametrize("threads", [1, 2])
def test_rows_go_through_many_steps(engine, threads, monkeypatch):
    monkeypatch.setenv("ROBOKIT_ENGINE", engine)
    rng, rows, marks = np.random.default_rng(0), 37, [0, 1, 7, 12]
    x0, forces = rng.normal(size=(rows, 2)), rng.normal(size=(12, rows))
    runner = LoopRunner(pendulum_step(), {})
    arrays = [x0[None].copy(), forces[:, :, None].copy(), np.zeros((1, rows, 1))]
    seen = {}

    def record(k, first, last):
        seen.setdefault(k, np.full((rows, 2), np.nan))[first:last] = arrays[0][0, first:last]

    assert runner.roll(arrays, rows, marks, record, threads) == (4, False)
    for k in (1, 2, 3):
        np.testing.assert_allclose(seen[k], swung(x0, forces[: marks[k]]), rtol=1e-12, atol=1e-13)
    assert (arrays[2] == 12.0).all()
    alike = [x0[None].copy(), np.full((1, 1, 1), 0.3), np.zeros((1, rows, 1))]
    runner.roll(alike, rows, [0, 5], lambda *_: None, threads)
    np.testing.assert_allclose(alike[0][0], swung(x0, [0.3] * 5), rtol=1e-12)


def test_batches_let_other_threads_run():
    """A batch of half a second of processor time releases the GIL; Ctrl-C is heard in blocks."""

    def function(n, x):
        x[0] = for_range(n, lambda k, s: s + sin(s), x[0])

    kernel = LoopKernel("long", function, ["n"], [ArrayOf("x", (1,), "inout")])
    kernel(n=1, x=np.ones((16, 1)))
    ticks, stop = [], threading.Event()

    def tick():
        while not stop.is_set():
            ticks.append(time.process_time())
            time.sleep(0.005)

    other = threading.Thread(target=tick)
    other.start()
    kernel(n=400_000, x=np.ones((64, 1)))
    stop.set()
    other.join()
    assert np.diff(ticks).max() < 0.5 and len(ticks) > 5


def test_a_while_loop_around_calls_stops_for_each_lane_alone():
    """Newton's iteration, each of whose steps is another kernel: rows settle at different turns."""
    step = Kernel("newton", [("x", 1), ("c", 1)], [("y", (1,))], lambda x, c: [[0.5 * (x[0] + c[0] / x[0])]])

    def function(c, x, y, turns):
        def turn(count, change):
            call(step, x, c, y)
            change = abs(y[0] - x[0])
            x[0] = y[0]
            return count + 1, change

        x[0] = 1.0
        turns[0] = while_loop(lambda n, d: (d > 1e-12) & (n < 50), turn, 0, 1.0)[0]

    arrays = [ArrayOf("c", (1,)), ArrayOf("x", (1,), "out"), ArrayOf("y", (1,), "work")]
    kernel = LoopKernel("root", function, [], [*arrays, ArrayOf("turns", (1,), "out", "integer")])
    c = 10.0 ** np.linspace(-3, 6, 19)[:, None]
    many = kernel(c=c)
    np.testing.assert_allclose(many["x"], np.sqrt(c), rtol=1e-12)
    assert len(set(many["turns"][:, 0].tolist())) > 5
    for row in range(19):
        one = kernel(c=c[row])
        assert one["turns"] == many["turns"][row] and one["x"] == many["x"][row]


@pytest.mark.parametrize("engine", [None, "python"])
def test_what_a_called_kernel_fails_with_reaches_the_caller(engine):
    """Its index is out of range in one of the states; a caller's loop that waits for its result ends."""

    def chosen(x, k, out):
        out[0] = x[k[0]]

    arrays = [ArrayOf("x", (3,)), ArrayOf("k", (1,), "in", "integer"), ArrayOf("out", (1,), "out")]
    inner = LoopKernel("chosen", chosen, [], arrays, checked=True)

    def function(x, k, out):
        out[0] = 0.0

        def turn(n):
            call(inner, x, k, out)
            return n + 1

        while_loop(lambda n: out[0] < 1.0, turn, 0)

    kernel = LoopKernel("chooses", function, [], arrays)
    x, k = np.ones(3), np.arange(3)[:, None] % 3
    assert (kernel(x=x, k=np.tile(k, (5, 1)), engine=engine)["out"] == 1.0).all()
    for bad in (np.array([[0]] * 9 + [[7]] + [[1]] * 9), np.array([7])):
        with pytest.raises(IndexError, match="out of" if engine else "chosen: index out of range"):
            kernel(x=x, k=bad, engine=engine)
    assert kernel(x=x, k=k[1], engine=engine)["out"] == 1.0, "the next call begins anew"


def test_columns_of_a_vmap_may_call_kernels():
    inner = doubled()

    def function(x, out, y, z):
        def column(k):
            for_range(3, lambda i: y.__setitem__(i, x[i] * k))
            call(inner, y, out, z)
            return out[0]

        a, b = vmap(column)([1.0, 2.0])
        out[1], out[2] = a, b

    arrays = [ArrayOf("x", (3,)), ArrayOf("out", (3,), "out")]
    work = [ArrayOf("y", (3,), "work"), ArrayOf("z", (2,), "work")]
    kernel = LoopKernel("columns", function, [], [*arrays, *work])
    x = np.random.default_rng(0).normal(size=(9, 3))
    for engine in (None, "python"):
        for given in (x, x[2]):
            got = kernel(x=given, engine=engine)["out"]
            for k in (1, 2):
                np.testing.assert_allclose(got[..., k], 2.0 * np.sin(k * given[..., 0]), rtol=1e-14)


def test_ctrl_c_ends_a_batch():
    """After the present block of rows, not after all of them."""

    def function(n, x):
        x[0] = for_range(n, lambda k, s: s + sin(s), x[0])

    kernel = LoopKernel("long", function, ["n"], [ArrayOf("x", (1,), "inout")])
    kernel(n=1, x=np.ones((16, 1)))
    main = threading.main_thread().ident
    started = time.process_time()
    sender = waiting.after(0.3, lambda: signal.pthread_kill(main, signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        kernel(n=50_000, x=np.ones((100_000, 1)))
    assert time.process_time() - started < 10.0, "the whole takes a minute"
    sender.join()


def test_what_calls_kernels_with_loops_has_derivatives_figures_and_c(tmp_path):
    def scaled(n, m, x, work, out):
        for_range(n, lambda k: work.__setitem__(k, x[k] * m))
        for_range(n, lambda k: out.__setitem__(k, work[k] * x[k]))

    arrays = [ArrayOf("x", ("n",)), ArrayOf("work", ("n",), "work"), ArrayOf("out", ("n",), "out")]
    inner = LoopKernel("scaled", scaled, ["n", "m"], arrays)
    four = LoopKernel("four", lambda x, out: out.__setitem__(0, x[1, 0]), [], [ArrayOf("x", (2, 2)), OUT])

    def function(n, x, out):
        between, last = zeros(n), zeros(1)
        call(inner, n, 3, x, between)
        for_range(n, lambda k: out.__setitem__(k, between[k] + 1.0))
        call(four, x[:4], last)
        out[0] = last[0]

    x = np.arange(1.0, 6.0)
    kernel = LoopKernel("calls", function, ["n"], [ArrayOf("x", ("n",)), ArrayOf("out", ("n",), "out")])
    values = kernel(x=x)["out"]
    for engine in (None, "python"):
        found = kernel.forward("x")(x=x, dx=np.ones(5), engine=engine)
        assert np.array_equal(found["out"], values)
        assert found["dout"].tolist() == [1.0, 12.0, 18.0, 24.0, 30.0]
        second = kernel.forward("x").forward("x")(x=x, dx=np.ones(5), d2x=np.ones(5), engine=engine)
        assert second["d2dout"].tolist() == [0.0, 6.0, 6.0, 6.0, 6.0]
    lanes = kernel.forward("x", directions=5)(x=np.tile(x, (9, 1)), dx=np.tile(np.eye(5), (9, 1, 1)))
    assert np.array_equal(lanes["dout"][4].sum(0), [1.0, 12.0, 18.0, 24.0, 30.0])
    assert kernel.counts(x=x)["mul"] == 10
    assert np.array_equal(in_c(tmp_path, [kernel])[0](x=x)["out"], values)
    wrong = LoopKernel("wrong", lambda n, x, out: call(four, x, out), ["n"], [ArrayOf("x", ("n",)), OUT])
    with pytest.raises(rk.ShapeError, match="x of four"):
        wrong.forward("x")(x=x, dx=x)


def test_kernels_that_call_each_other_are_one_error():
    arrays, kernels = [ArrayOf("x", ("n",)), ArrayOf("out", ("n",), "out")], []
    for k in range(2):
        function = lambda n, x, out, k=k: call(kernels[1 - k], x, out)  # noqa: E731
        kernels.append(LoopKernel(f"kernel{k}", function, ["n"], arrays))
    with pytest.raises(TypeError, match=r"the kernel kernel. calls itself, or one that calls it"):
        kernels[0](x=np.ones(2))


def test_what_is_written_of_a_caller_includes_kernels_without_loops(tmp_path):
    aba = robot_kernel(ladder.chain(2), "aba", reproducible=True)
    arrays = [ArrayOf(name, (2,)) for name in ("q", "v", "tau")]

    def twice(q, v, tau, a):
        call(aba, q, v, tau, a)
        call(aba, q, v, a, a_next := zeros(2))
        for k in range(2):
            a[k] = a_next[k]

    kernel = LoopKernel("twice", twice, [], [*arrays, ArrayOf("a", (2,), "out")], reproducible=True)
    state = dict(zip(("q", "v", "tau"), np.random.default_rng(0).standard_normal((3, 2)), strict=True))
    expected = kernel(**state)["a"]
    np.testing.assert_array_equal(in_c(tmp_path, [kernel])[0](**state)["a"], expected)
    assert kernel.counts(**state)["mul"] == 2 * aba.counts["mul"]
    h, dq = 1e-6, np.array([0.3, -0.7])
    ahead, behind = (kernel(**{**state, "q": state["q"] + s * h * dq})["a"] for s in (1, -1))
    slope = kernel.forward("q")(**state, dq=dq)["da"]
    np.testing.assert_allclose(slope, (ahead - behind) / (2 * h), rtol=1e-6)
