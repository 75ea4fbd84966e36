"""What is promised and no other file here tests: lanes, the GIL, idle threads, float32, the benchmarks."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from engine_cases import chain, states
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from strategies import LAYOUTS, SHARE, arguments, robots_of

import robokit as rk
from robokit.dynamics.build import example_key, flat_function, kernel
from robokit.dynamics.table import KERNELS
from robokit.engine import batch_calls
from robokit.engine.backend import llvm
from robokit.engine.kernel import Kernel

ROOT = Path(rk.__file__).resolve().parents[1]


def fresh(dtype: str = "float64") -> Kernel:
    function, inputs, outputs = chain(9)
    return Kernel("chain", inputs, outputs, function, dtype=dtype)


@pytest.mark.parametrize(
    ("features", "lanes"), [("+avx2,+avx512f", 8), ("+avx,+avx2,-avx512f", 4), ("+sse2,-avx2", 2), ("", 2)]
)
@pytest.mark.parametrize(("dtype", "scalar", "more"), [("float64", "double", 1), ("float32", "float", 2)])
@pytest.mark.parametrize("source", ["the system", "LLVM"])
def test_batches_have_the_lanes_of_the_processor(
    monkeypatch, features, lanes, dtype, scalar, more, source, no_baseline_code
):
    written = []

    def assemble(ir):
        written.append(ir)
        raise llvm.CompilerMissing("code for a processor that is not here")

    has = " ".join(each[1:] for each in features.split(",") if each.startswith("+"))
    said = f"flags\t\t: fpu {has}" if source == "the system" else ""
    monkeypatch.setattr(llvm, "processor_description", lambda: said)
    monkeypatch.setattr(llvm, "host", lambda: ("", features))
    monkeypatch.setattr(llvm, "assemble", assemble)
    monkeypatch.setattr("robokit.disk_cache.load", lambda name: None)
    llvm.vector_width.cache_clear()
    try:
        fresh(dtype)(*states(np.random.default_rng(0), [9, 9], 33))
    finally:
        monkeypatch.undo()
        llvm.vector_width.cache_clear()
    products = re.findall(rf"fmul <(\d+) x {scalar}>", written[0])
    assert len(products) > 50 and set(products) == {str(lanes * more)}


def test_other_threads_of_python_run_during_a_batch(monkeypatch):
    monkeypatch.setattr(batch_calls, "BLOCK_SECONDS", 1e3)  # one call into machine code
    robot = rk.load_urdf(rk.find_robot("humanoid"), base="floating")
    rows = 1_000_000
    q = np.broadcast_to(robot.neutral(), (rows, robot.nq))
    v, out = np.zeros(robot.nv), np.empty(rows)
    run = kernel(robot, "kinetic_energy").batch
    run(q[:9], v, out=out[:9], threads=1)
    ticks, done = [], threading.Event()

    def tick():
        while not done.wait(1e-3):
            ticks.append(time.perf_counter())

    def amid():
        """Turns that the thread had in the middle of a batch."""
        started = time.perf_counter()
        run(q, v, out=out, threads=1)
        ended = time.perf_counter()
        tenth = (ended - started) / 10
        return sum(started + tenth < t < ended - tenth for t in ticks)

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        assert any(amid() >= 3 for _ in range(20)), "a busy machine may leave out some, a lock leaves out all"
    finally:
        done.set()
        thread.join()


def test_no_thread_is_woken_for_few_states(monkeypatch):
    run = fresh()
    many = states(np.random.default_rng(1), [9, 9], 20_000)
    expected = run(*many)
    few = [x[:64] for x in many]
    monkeypatch.setattr(batch_calls, "processors", lambda: 4)
    woken = []
    real = batch_calls.thread_pool
    monkeypatch.setattr(batch_calls, "thread_pool", lambda: woken.append(1) or real())
    for a, b in zip(run.batch(*few, threads=4), expected, strict=True):
        assert (a == b[:64]).all()
    assert not woken
    for a, b in zip(run.batch(*many, threads=4), expected, strict=True):
        assert (a == b).all()
    assert woken  # for many they are


SOLVES = ("aba", "forward_dynamics", "ltdl", "hybrid", "inverse_mass", "floating_base_inverse")


@pytest.mark.parametrize("name", SHARE)
@settings(max_examples=2)
@given(data=st.data())
def test_single_precision_is_near_the_plain_text(name, data):
    robot = data.draw(robots_of(name, most=3))
    assume(robot.total_mass > 0.0 or not name.startswith("cent"))
    rows = data.draw(st.sampled_from((1, 17, 33)))
    values = arguments(robot, KERNELS[name].inputs.split(), rows, data.draw(st.integers(0, 2**16)))
    values = [x.astype(np.float32) for x in values]
    layout = data.draw(st.sampled_from(["C", "Fortran", "columns of a wider array", "rows backwards"]))
    run = kernel(robot, example_key(KERNELS[name], robot), "float32")
    got = run(*(_laid(x, layout) for x in values))
    got = got if isinstance(got, tuple) else (got,)
    allowed = 3e-5
    if name.startswith(SOLVES) and robot.nv:  # rounding is multiplied by the condition of what is solved
        allowed *= max(1.0, _condition(robot, name, values))
        assume(allowed < 0.1)
    for k in (0, rows // 2, rows - 1):
        function = flat_function(KERNELS[name], robot, example_key(KERNELS[name], robot))
        expected = function(*(x[k].astype(float).tolist() for x in values))
        for one, many in zip(expected, got, strict=True):
            assert many.dtype == np.float32 and len(many) == rows
            error = np.abs(many[k].reshape(-1) - np.array(one, float)).max(initial=0.0)
            assert error <= allowed * max(1.0, np.abs(one).max(initial=0.0))


def _laid(x: np.ndarray, layout: str) -> np.ndarray:
    """The layouts of strategies.py without their conversion to double."""
    return np.asfortranarray(x) if layout == "Fortran" else LAYOUTS[layout](x).astype(np.float32, order="A")


def _condition(robot: rk.Robot, name: str, values: list[np.ndarray]) -> float:
    n, each = robot.nv, []
    for k in range(len(values[0])):
        if name == "ltdl_solve":
            L = values[0][k].reshape(n, n).astype(float)
            H = L.T @ np.diag(values[1][k]) @ L
        elif name == "ltdl":
            H = values[0][k].reshape(n, n)
        else:
            function = flat_function(KERNELS["crba"], robot)
            H = np.array(function(values[0][k].astype(float).tolist())[0]).reshape(n, n)
        each.append(np.linalg.cond(H))
    return float(max(each))


INTERRUPTED = """
import sys
sys.path.insert(0, "benchmarks")
import agree, dynamics, engine, run

def compare(name, base, seconds, figures):
    figures |= {"robot": name, "nv": 3, "rnea": {"pinocchio": 9.0, "single": 2.0, "batch": 0.25}}
    raise KeyboardInterrupt

def disagree(jobs):
    raise agree.Disagreement("another number")

agree.everything = (lambda jobs: None) if sys.argv[1] == "interrupted" else disagree
dynamics.compare = compare
sys.argv[1:] = ["--quick", "-o", sys.argv[2]]
run.main()
"""


@pytest.mark.parametrize(("how", "status"), [("interrupted", 130), ("disagreement", 1)])
def test_benchmarks_keep_what_was_measured_and_time_nothing_that_disagrees(tmp_path, how, status):
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, how, str(tmp_path / "results")],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status, done.stderr
    written = tmp_path / "results.json"
    if how == "disagreement":
        assert done.stderr.strip() == "nothing was timed: another number" and not written.exists()
        return
    (robot,) = json.loads(written.read_text())["dynamics"]
    assert robot["rnea"]["batch"] == 0.25
    lines = {line.split("  ")[1]: line for line in done.stdout.splitlines() if "dynamics" in line}
    assert "36x  met" in lines["batch rnea"] and "not measured" in lines["batch aba"]
    assert "0.2222x  met" in lines["single call, G1"]


@pytest.mark.slow
def test_a_comparison_with_another_revision_goes_on_where_it_was(tmp_path, monkeypatch, capsys):
    if not (ROOT / ".git").exists():
        pytest.skip("robokit's history is not here")
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    compare = importlib.import_module("compare")
    roots, file = compare.both_versions("HEAD", tmp_path), tmp_path / "compared.json"
    monkeypatch.setattr(compare, "both_versions", lambda *_: roots)  # the bytecode is made once
    monkeypatch.setattr(compare, "FLOOR", 0.0)  # rows that come out slower are not measured again

    def compared(*more: str) -> tuple[str, dict]:
        options = ["HEAD", "--robots", "arm", "--seconds", "0", "-o", str(file), *more]
        monkeypatch.setattr(sys, "argv", ["compare.py", *options])
        compare.main()
        return capsys.readouterr().out, json.loads(file.read_text())["rows"]

    said, first = compared("--only", "gravity_forces")
    assert "2 rows, 0 of them" in said and "geometric mean" in said
    assert set(first) == {"arm gravity_forces", "arm+6 gravity_forces"}
    for row in first.values():
        for figures in (row["before"], row["after"]):
            assert set(figures) == {"first", "first batch", "single", "128", "4096", "bytes"}
            assert all(x > 0.0 for x in figures.values())
    said, both = compared("--only", "gravity_forces", "floating_base_forces")
    assert "3 rows, 2 of them" in said and len(both) == 3 and first.items() <= both.items()
