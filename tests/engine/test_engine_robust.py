"""Processes, threads, interrupts, long runs: a kernel in the middle of a real program."""

from __future__ import annotations

import gc
import inspect
import os
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest
import waiting
from engine_cases import chain, states

import robokit as rk
from robokit import disk_cache
from robokit.engine import batch_calls
from robokit.engine.backend import llvm
from robokit.engine.kernel import Kernel

pytestmark = pytest.mark.slow

ROOT = Path(disk_cache.__file__).resolve().parents[1]
posix = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork and no such signals")


@pytest.fixture
def threads(monkeypatch):
    """Batches of any size in four threads, in blocks of a tile."""
    monkeypatch.setattr(batch_calls, "PAYS_SECONDS", 1e-9)
    monkeypatch.setattr(batch_calls, "BLOCK_SECONDS", 1e-9)
    monkeypatch.setattr(batch_calls, "processors", lambda: 4)


def fresh(n: int = 9) -> Kernel:
    function, inputs, outputs = chain(n)
    return Kernel("chain", inputs, outputs, function)


def start(folder: Path, script: str, *arguments: str) -> subprocess.Popen:
    path = folder / "script.py"
    path.write_text(script)
    env = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}"}
    command = [sys.executable, "-W", "ignore::DeprecationWarning", str(path), *arguments]
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen) -> list[str]:
    try:
        out, err = process.communicate(timeout=waiting.PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    assert process.returncode == 0, err
    return out.split()


CHILDREN = """
import multiprocessing, sys
import numpy as np
import robokit as rk
import waiting
from robokit.engine import batch_calls

batch_calls.PAYS_SECONDS, batch_calls.processors = 1e-9, lambda: 3

def work(robot, first):
    n = robot.nv
    q, v = np.linspace(first, 1.0, 50 * n).reshape(50, n), np.linspace(-1.0, first, 50 * n).reshape(50, n)
    taus = rk.rnea(robot, q, v, v)
    assert batch_calls._pool is not None
    singles = [rk.rnea(robot, *each) for each in zip(q, v, v)]
    assert np.allclose(taus, singles, rtol=1e-12, atol=1e-12)
    return taus + rk.gravity_forces(robot, q)

def child(robot, first, pipe):
    pipe.send(work(robot, first))

if __name__ == "__main__":
    robot = rk.load_urdf(rk.find_robot("double_pendulum"))
    expected = work(robot, 0.5)
    context = multiprocessing.get_context(sys.argv[1])
    ours, theirs = context.Pipe()
    process = context.Process(target=child, args=(robot, 0.5, theirs))
    process.start()
    assert (work(robot, 0.5) == expected).all()  # both at once
    assert ours.poll(waiting.PATIENCE) and (ours.recv() == expected).all()
    process.join(waiting.PATIENCE)
    print(process.exitcode)
"""


@posix
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_children_compute_what_their_parent_does(tmp_path, method):
    assert finish(start(tmp_path, CHILDREN, method)) == ["0"]


FORK = """
import os, sys, threading, time
import numpy as np
from robokit.engine.backend import llvm
from robokit.engine.kernel import Kernel

slow = threading.Event()
real = llvm.assemble

def assemble(ir):
    slow.set()
    time.sleep(0.3)
    return real(ir)

llvm.assemble = assemble
kernel = Kernel("fork", [("x", 2)], [("y", (2,))], lambda x: [[x[0] * 3.0, x[1] + x[0]]])
x = np.array([1.0, 2.0])
thread = threading.Thread(target=kernel, args=(x,))
thread.start()
slow.wait()
pid = os.fork()  # while the thread compiles
if pid == 0:
    assert kernel(x).tolist() == [3.0, 3.0]
    assert kernel(np.tile(x, (5, 1))).tolist() == [[3.0, 3.0]] * 5
    sys.exit(7)
thread.join()
assert kernel(x).tolist() == [3.0, 3.0]
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


@posix
def test_a_fork_while_a_thread_compiles(tmp_path):
    assert finish(start(tmp_path, FORK)) == ["7"]


def test_a_kernel_first_called_by_many_threads_at_once(threads):
    xs = states(np.random.default_rng(3), [9, 9], 100)
    expected = fresh()(*xs)
    for _ in range(3):
        kernel, gate, wrong = fresh(), threading.Barrier(8), []

        def work(k, kernel=kernel, gate=gate, wrong=wrong):
            gate.wait()
            for j in range(40):
                row = (7 * k + j) % 100
                got = kernel(*xs) if (j + k) % 4 == 0 else kernel(xs[0][row], xs[1][row])
                want = expected if (j + k) % 4 == 0 else [e[row] for e in expected]
                if not all(np.allclose(a, b, rtol=1e-13, atol=1e-13) for a, b in zip(got, want, strict=True)):
                    wrong.append((k, j))

        run_all([threading.Thread(target=work, args=(k,)) for k in range(8)])
        assert not wrong


def run_all(workers: list[threading.Thread]) -> None:
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def test_a_robot_may_be_deleted_while_it_computes(threads, no_baseline_code):
    robot = rk.load_urdf(rk.find_robot("arm"))
    rng = np.random.default_rng(0)
    q, v = rng.uniform(-1, 1, (3000, robot.nq)), rng.uniform(-1, 1, (3000, robot.nv))
    expected = rk.rnea(robot, q, v, v)
    single = rk.rnea(robot, q[0], v[0], v[0])
    robots, gate, answers = [robot], threading.Barrier(2), []

    def work():
        mine = robots[0]
        gate.wait()
        answers.append(rk.rnea(mine, q, v, v))

    thread = threading.Thread(target=work)
    thread.start()
    gate.wait()
    gone, fast = weakref.ref(robot), robot.kernels["rnea"].fast
    robots.clear()
    del robot
    gc.collect()
    np.full(1_000_000, np.nan)  # what was freed too early would be this
    thread.join()
    assert (answers[0] == expected).all()
    del thread, work
    gc.collect()
    assert gone() is None
    assert (fast(q[0], v[0], v[0]) == single).all()  # machine code lives as long as its function


def test_arrays_live_as_long_as_a_thread_writes_to_them(threads, monkeypatch):
    # A second Ctrl-C can end the wait for the other threads: what they still use must not be freed.
    kernel = fresh()
    xs = states(np.random.default_rng(3), [9, 9], 200)
    kernel(*xs)
    given = []

    class Pool:
        def submit(self, run, *arguments):
            given.append(run)
            raise KeyboardInterrupt

    monkeypatch.setattr(batch_calls, "thread_pool", Pool)
    with pytest.raises(KeyboardInterrupt):
        kernel(*xs)
    work = given[0]
    kept = work.__defaults__[0]
    assert any(a is xs[0] for a in kept) and len(kept) == len(
        kernel.signature.inputs + kernel.signature.outputs
    )
    assert kernel._runner._keep is not None and inspect.getclosurevars(work).nonlocals["stop"].is_set()


def test_without_a_thread_the_caller_computes_alone(threads, monkeypatch):
    kernel = fresh()
    xs = states(np.random.default_rng(3), [9, 9], 300)
    expected = kernel.batch(*xs, threads=1)
    real, started = batch_calls.thread_pool(), []

    class Pool:
        def submit(self, *arguments):
            if started:
                raise RuntimeError("can't start new thread")
            started.append(1)
            return real.submit(*arguments)

    monkeypatch.setattr(batch_calls, "thread_pool", Pool)
    assert all((a == b).all() for a, b in zip(kernel(*xs), expected, strict=True))
    assert started


LONG_RUN = """
import resource, sys
import numpy as np
import robokit as rk

calls, batches = int(sys.argv[1]), int(sys.argv[2])
robot = rk.load_urdf(rk.find_robot("arm"))
rng = np.random.default_rng(0)
q, v = rng.uniform(-1, 1, (64, robot.nq)), rng.uniform(-1, 1, (64, robot.nv))
bad, out = np.full(robot.nq, np.nan), np.empty(robot.nv)

def run(calls, batches):
    for k in range(calls):
        q1, v1 = q[k & 63], v[k & 63]
        rk.rnea(robot, q1, v1, v1)
        rk.rnea(robot, q1, v1, v1, out=out) if k % 4 == 0 else rk.kinetic_energy(robot, q1, v1)
        if k % 50 == 0:
            rk.forward_kinematics(robot, q1)
            try:
                rk.rnea(robot, bad, v1, v1)
            except rk.InvalidValue:
                pass
    for k in range(batches):
        rk.rnea(robot, q, v, v)
        rk.crba(robot, q[: k & 63])

run(2000, 4000)  # Python itself keeps up to 2,000 freed tuples of each size
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
run(calls, batches)
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(grown // 1024 if sys.platform == "darwin" else grown)
"""


@posix
def test_memory_does_not_grow_with_calls(tmp_path):
    # Ten bytes a call would be two megabytes.
    (kilobytes,) = finish(start(tmp_path, LONG_RUN, "100000", "1000"))
    assert int(kilobytes) < 1000


INTERRUPT = """
import signal, time
import numpy as np
import waiting
import robokit as rk
from robokit.engine import batch_calls

robot = rk.load_urdf(rk.find_robot("humanoid"), base="floating")
rows = 200_000_000  # half a minute, of one state and memory that is touched as it goes
q = np.broadcast_to(robot.neutral(), (rows, robot.nq))
v = np.zeros(robot.nv)
rk.kinetic_energy(robot, q[:3], v)
for count in (1, 2):
    batch_calls.processors = lambda: count
    asked = []
    waiting.after(0.2, lambda: (asked.append(time.process_time()), signal.raise_signal(signal.SIGINT)))
    try:
        rk.kinetic_energy(robot, q, v)
    except KeyboardInterrupt:
        print(time.process_time() - asked[0] < 1.0)
    assert rk.kinetic_energy(robot, q[:999], v).shape == (999,)
"""


@posix
def test_an_interrupt_ends_a_long_batch_within_a_second(tmp_path):
    """With one thread, with two; a second of processor time."""
    assert finish(start(tmp_path, INTERRUPT)) == ["True", "True"]


INTERRUPTED_COMPILATION = """
import os, random, signal, sys, time
import numpy as np
import robokit as rk
import waiting
from robokit.engine import Kernel

robot = rk.load_urdf(rk.find_robot("humanoid"), base="floating")
zero, x, wait = np.zeros(robot.nv), np.array([1.0, 2.0]), random.Random(0)

def send():
    global asked
    asked = time.process_time()
    os.kill(os.getpid(), signal.SIGINT)

heard = []
for k in range(int(sys.argv[1])):
    fresh = robot.with_gravity((0.0, 0.0, -1.0 - k))
    try:
        waiting.after(0.3 * wait.random(), send)
        while True:
            rk.aba(fresh, robot.neutral(), zero, zero)
            fresh.kernels.clear()
    except KeyboardInterrupt:
        heard.append(time.process_time() - asked)
    small = Kernel("small", [("x", 2)], [("y", (2,))], lambda x: [[x[0] * (3.0 + k), x[1]]])
    assert small(x).tolist() == [3.0 + k, 2.0]
print(len(heard), max(heard) < 1.0)
"""


@posix
def test_an_interrupted_compilation_is_left_at_once_and_the_next_one_does_not_wait_for_it(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("ROBOKIT_CACHE_DIR", str(tmp_path / "file" / "none"))
    (tmp_path / "file").touch()  # no cache: everything is compiled
    assert finish(start(tmp_path, INTERRUPTED_COMPILATION, "6")) == ["6", "True"]


def test_the_main_thread_never_enters_the_compiler(tmp_path, monkeypatch):
    monkeypatch.setenv("ROBOKIT_CACHE_DIR", str(tmp_path))
    from llvmlite.binding import ffi

    threads: list[int] = []
    ffi.register_lock_callback(lambda: threads.append(threading.get_ident()), lambda: None)
    try:
        kernel = fresh(31)
        kernel(*states(np.random.default_rng(3), [31, 31], 3))
        kernel(*(a[0] for a in states(np.random.default_rng(3), [31, 31], 3)))
        llvm.cross("define void @f() { ret void }", "x86_64-unknown-linux-gnu")
        monkeypatch.setattr(llvm, "images_possible", lambda: False)  # LLVM's own loader
        monkeypatch.setenv("ROBOKIT_CACHE_DIR", str(tmp_path / "other"))
        other = fresh(37)
        other(*(a[0] for a in states(np.random.default_rng(3), [37, 37], 3)))
        assert other._maker.refused is None
        del other
        gc.collect()
    finally:
        ffi.lib._lock._cblist.clear()
    assert threads and threading.get_ident() not in threads


JOB = """
import os, signal, sys, threading, time
from robokit.engine.backend.llvm import elsewhere

def job():
    begun.set()
    heard.wait()
    time.sleep(0.2)  # who does not wait is first
    print("done", flush=True)

begun, heard, left = threading.Event(), threading.Event(), []
threading.Thread(target=lambda: (begun.wait(), os.kill(os.getpid(), signal.SIGINT))).start()
try:
    elsewhere([job, lambda: left.append(1)])
except KeyboardInterrupt:
    print("heard", flush=True)
    heard.set()
if sys.argv[1] == "fork":
    pid = os.fork()
    if pid == 0:
        print("child", elsewhere([lambda: 7]), flush=True)
        os._exit(0)
    os.waitpid(pid, 0)
print("end", left, flush=True)
"""


@posix
@pytest.mark.parametrize(
    ("then", "words"),
    [("end", "heard end [] done"), ("fork", "heard done child [7] end []")],
)
def test_work_that_was_begun_is_waited_for_by_a_fork_and_by_the_end(tmp_path, then, words):
    assert finish(start(tmp_path, JOB, then)) == words.split()


def test_jobs_are_done_by_the_caller_where_no_thread_can_be_had(monkeypatch):
    def none(*_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(llvm._thread, "start_new_thread", none)
    ours = threading.get_ident()
    assert llvm.elsewhere([threading.get_ident, threading.get_ident], 2) == [ours, ours]
    with pytest.raises(ZeroDivisionError):
        llvm.elsewhere([lambda: 1 // 0])


def test_the_first_failure_is_raised_and_what_was_not_begun_is_left_out():
    done = []
    with pytest.raises(ZeroDivisionError):
        llvm.elsewhere([lambda: 1 // 0, lambda: done.append(1)])
    assert not done
    assert llvm.elsewhere([lambda k=k: k * k for k in range(20)], 3) == [k * k for k in range(20)]
    assert llvm.elsewhere([lambda: llvm.elsewhere([lambda: 5])]) == [[5]], "a job may ask for jobs"


def test_a_thread_is_never_given_rows_that_are_not_there(monkeypatch):
    # A slow kernel's few rows are shared among threads by whole tiles, of which there may be less than one.
    monkeypatch.setattr(batch_calls, "PAYS_SECONDS", 1e-12)
    monkeypatch.setattr(batch_calls, "processors", lambda: 4)
    kernel, given = fresh(), []
    xs = states(np.random.default_rng(3), [9, 9], 200)
    expected = kernel(*xs)
    real = batch_calls.BatchRunner._rows

    def rows(runner, addresses, strides, start, end, stop, *keep):
        given.append((start, end))
        return real(runner, addresses, strides, start, end, stop, *keep)

    monkeypatch.setattr(batch_calls.BatchRunner, "_rows", rows)
    tile = kernel._runner._tile
    for count in (1, 2, tile - 1, tile, tile + 1, 3 * tile + 5, 200):
        given.clear()
        whole = [np.full((count + tile, *e.shape[1:]), 7.0) for e in expected]
        kernel.batch(*(x[:count] for x in xs), out=[w[:count] for w in whole])
        assert sorted(k for start, end in given for k in range(start, end)) == list(range(count))
        for found, right in zip(whole, expected, strict=True):
            assert (found[:count] == right[:count]).all() and (found[count:] == 7.0).all()
