"""Images of code, and modules compiled side by side: the same answers as from LLVM's own loader."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import ladder
import numpy as np
import pytest
import waiting

from robokit import disk_cache
from robokit.dynamics import build
from robokit.engine import maker
from robokit.engine.backend import llvm
from robokit.engine.kernel import ONE_STATE, Kernel

pytestmark = pytest.mark.skipif(not llvm.images_possible(), reason="images are for Linux on x86-64")

MODULE = """
@table = internal constant [2 x ptr] [ptr @one, ptr @two]
define internal double @one(double %x) {
  %y = fadd double %x, 0x3FF199999999999A
  ret double %y
}
define internal double @two(double %x) {
  %y = fmul double %x, 0x4009200000000000
  ret double %y
}
define double @choose(i64 %k, double %x) {
  %at = getelementptr ptr, ptr @table, i64 %k
  %f = load ptr, ptr %at
  %y = call double %f(double %x)
  ret double %y
}
"""

CALLER = """
declare hidden double @far(double)
define double @near(double %x) {
  %y = call double @far(double %x)
  ret double %y
}
"""

FAR = (
    "define hidden double @far(double %x) {\n  %y = fsub double %x, 0x3FE0000000000000\n  ret double %y\n}\n"
)


def function(code: bytes, symbol: str, *kinds):
    loaded = llvm.Loaded(code)
    call = ctypes.CFUNCTYPE(ctypes.c_double, *kinds)(loaded.address(symbol))
    call.keep = loaded
    return call


def test_an_image_and_llvms_loader_give_the_same():
    direct = llvm._object(MODULE)
    image = llvm.image([direct])
    assert image.startswith(llvm.MAGIC) and direct.startswith(b"\x7fELF")
    for code in (direct, image):
        choose = function(code, "choose", ctypes.c_int64, ctypes.c_double)
        assert [choose(k, 2.0) for k in (0, 1)] == [2.0 + 1.1, 2.0 * 3.140625]


def test_objects_find_what_others_define():
    image = llvm.image([llvm._object(CALLER), llvm._object(FAR)])
    assert function(image, "near", ctypes.c_double)(2.0) == 1.5
    with pytest.raises(llvm.NotLinked, match="'far' from outside"):
        llvm.image([llvm._object(CALLER)])
    with pytest.raises(llvm.NotLinked, match="'far' twice"):
        llvm.image([llvm._object(FAR), llvm._object(FAR)])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("@room = internal global [4 x double] zeroinitializer\n"
         "define ptr @where() {\n  ret ptr @room\n}\n", "variables"),
        ("declare double @sin(double)\ndefine double @f(double %x) {\n  %y = call double @sin(double %x)\n"
         "  ret double %y\n}\n", "'sin' from outside"),
    ],
)  # fmt: skip
def test_what_an_image_cannot_hold_is_left_to_llvm(text, message):
    with pytest.raises(llvm.NotLinked, match=message):
        llvm.image([llvm._object(text)])
    assert llvm.assemble(text).startswith(b"\x7fELF")


def test_foreign_bytes_are_no_object():
    for content in (b"\x7fELF\x01\x01" + bytes(100), bytes(200)):
        with pytest.raises(llvm.NotLinked, match="no relocatable object"):
            llvm.image([content])
    arm = llvm.cross(FAR, "aarch64-linux-gnu")[1]
    with pytest.raises(llvm.NotLinked, match="no relocatable object"):
        llvm.image([arm])


def test_code_can_be_run_and_not_written():
    loaded = llvm.Image(llvm.image([llvm._object(FAR)]))
    place = loaded.address("far")
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, rights = line.split()[:2]
        first, last = (int(x, 16) for x in span.split("-"))
        if first <= place < last:
            assert rights.startswith("r-x")
            break
    else:
        pytest.fail("not mapped")


def test_a_system_that_runs_no_new_code_gets_plain_python(monkeypatch):
    monkeypatch.setattr(llvm, "_mprotect", lambda: lambda *words: -1)
    kernel = Kernel("locked", [("x", 2)], [("y", (1,))], lambda x: [[x[0] * x[1] + 0.25]])
    assert kernel(np.array([2.0, 3.0])) == 6.25
    assert "cannot be made executable" in kernel._maker.refused


@pytest.mark.parametrize(
    ("name", "joints"), [("rnea", 12), ("aba", 12), pytest.param("rnea", 150, marks=pytest.mark.slow)]
)
def test_shares_of_a_module_compute_the_same(name, joints, tmp_path, monkeypatch, no_baseline_code):
    divided = llvm.divided
    monkeypatch.setattr(llvm, "LEAST", 20_000)
    monkeypatch.setattr(llvm, "MOST", 10_000_000)
    rng, answers = np.random.default_rng(0), []
    for count in (1, 3):
        monkeypatch.setenv("ROBOKIT_CACHE_DIR", str(tmp_path / str(count)))
        made = []
        monkeypatch.setattr(
            llvm,
            "divided",
            lambda text, _, made=made, count=count: made.append(divided(text, count)) or made[-1],
        )
        robot = ladder.chain(joints, base="floating")
        if count == 1:
            q = np.stack([robot.random_configuration(rng) for _ in range(5)])
            v, a = rng.standard_normal((2, 5, robot.nv))
        run = build.kernel(robot, name)
        answers.append((run(q[0], v[0], a[0]), run.batch(q, v, a)))
        assert {len(texts) for texts in made if len(texts[0]) > 40_000} in ({count}, set())
        assert max(map(len, made)) == count
    for one, three in zip(*answers, strict=True):
        assert np.array_equal(one, three)


def test_the_sines_of_all_joints_are_compiled_once_a_process(tmp_path, monkeypatch):
    monkeypatch.setenv("ROBOKIT_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(llvm, "_sines", {})
    texts, compiled = [], llvm._object
    monkeypatch.setattr(
        llvm, "_object", lambda text, processor: texts.append(text) or compiled(text, processor)
    )
    q = np.array([0.3, -1.2, 2.0])
    for seed in range(4):
        robot = ladder.random_tree(seed, kinds=("revolute",), n=3)
        H = build.kernel(robot, "crba")
        np.testing.assert_allclose(H(q), H.python(q), rtol=1e-13, atol=1e-13)
    sines = [bool(re.search(r"^define .*@sincos_run\(", text, re.M)) for text in texts]
    kernels = ["@chunk0" in text for text in texts]
    # The first kernel has them in its own module; for the second they get one, which serves all others.
    assert all("\nattributes #0 = {" in text for text in texts)
    assert sorted(zip(sines, kernels, strict=True)) == [(False, True)] * 3 + [(True, False), (True, True)]


def test_every_function_is_in_one_share_and_declared_in_the_first(monkeypatch):
    monkeypatch.setattr(llvm, "LEAST", 10)
    chunk = "define internal void @chunk{}(ptr noalias %ws, ptr noalias %args) #0 {{\n  ret void\n}}\n"
    sines = "define internal {double, double} @sincos(double %x) #0 {\n  ret {double, double} undef\n}\n"
    head = "declare double @llvm.fabs.f64(double)\n"
    driver = "define void @run(ptr %ws,\n    ptr %args) #0 {\n  call void @chunk0(ptr %ws, ptr %args)\n}\n"
    tail = "attributes #0 = { noinline }\n"
    text = head + sines + "".join(map(chunk.format, range(5))) + driver + tail
    first, *others = llvm.divided(text, 3)
    assert len(others) == 2 and driver in first
    for part in (first, *others):
        assert head in part and sines in part and tail in part
    for k in range(5):
        name = f"@chunk{k}("
        defined = [
            part
            for part in (first, *others)
            if f"void {name}" in part and f"declare hidden void {name}" not in part
        ]
        assert len(defined) == 1
        assert name in first
    assert llvm.divided(text, 1) == [text]
    monkeypatch.setattr(llvm, "MOST", len(text) // 2 + 1)  # each processor's turn is short
    assert len(llvm.divided(text, 1)) == 2
    assert llvm.divided(driver, 3) == [driver]


@pytest.mark.parametrize("reproducible", [False, True])
@pytest.mark.parametrize("name", ["aba", "aba_derivatives"])
def test_baseline_code_has_the_same_bits(name, reproducible, tmp_path, monkeypatch):
    monkeypatch.setenv("ROBOKIT_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(llvm, "LEAST", 10_000)  # in several modules
    robot = ladder.chain(3, base="floating")
    rng = np.random.default_rng(0)
    q = np.stack([robot.random_configuration(rng) for _ in range(9)])
    given = q, *rng.standard_normal((2, 9, robot.nv))
    made = build.kernel(robot, name, reproducible=reproducible)
    one = [x[0] for x in given]
    soon = [np.hstack([np.ravel(x) for x in run(*some)]) for run, some in ((made, one), (made.batch, given))]
    assert all(code.baseline for code in made._maker._codes.values())
    made.fast = made._of_one_state(made._maker.code(ONE_STATE))
    made._runner = made._runner_of(made._maker.code(made._many))
    assert not any(code.baseline for code in made._maker._codes.values())
    well = [np.hstack([np.ravel(x) for x in run(*some)]) for run, some in ((made, one), (made.batch, given))]
    for a, b in zip(soon, well, strict=True):
        assert np.array_equal(a, b)


def test_code_that_runs_for_long_is_compiled_well_meanwhile(tmp_path, monkeypatch):
    monkeypatch.setenv("ROBOKIT_CACHE_DIR", str(tmp_path))
    robot = ladder.chain(2, base="floating")
    q, v = robot.random_configuration(np.random.default_rng(0)), np.zeros(robot.nv)
    made = build.kernel(robot, "aba")
    one, many = made(q, v, v), made.batch(np.tile(q, (9, 1)), v, v)
    codes = made._maker._codes
    assert all(code.baseline for code in codes.values())

    def runs_well():
        assert np.array_equal(made(q, v, v), one)
        assert np.array_equal(made.batch(np.tile(q, (500, 1)), v, v)[:9], many)
        return not any(code.baseline for code in codes.values())

    waiting.until(runs_well, pause=0.0)
    assert len(codes) == 2
    assert np.array_equal(made(q, v, v), one)
    again = build.kernel(ladder.chain(2, base="floating"), "aba")
    assert np.array_equal(again(q, v, v), one)
    assert not again._maker._codes["single"].baseline  # the disk has both; the better one counts


def test_what_rollouts_have_run_counts_for_batches(tmp_path, monkeypatch):
    monkeypatch.setenv("ROBOKIT_CACHE_DIR", str(tmp_path))
    asked = []
    monkeypatch.setattr(maker.Maker, "improve", lambda *given: asked.append(given))
    step = lambda x: [[0.5 * x[0] + 0.25 * x[1], x[1]]]  # noqa: E731
    made = Kernel("step", [("x", 2)], [("y", (2,))], step, feedback={"y": "x"})
    runner = made.rollout_runner(baseline=True)
    made.newer(runner, 0.75 * runner.keep.baseline)
    made.batch(np.ones((9, 2)))  # the same code
    assert not asked
    for seconds in (0.25 * runner.keep.baseline, 1.0):
        made.newer(runner, seconds)
        assert len(asked) == 1


def test_code_can_be_asked_for_while_a_thread_is_about_to_compile_it(tmp_path, monkeypatch):
    monkeypatch.setenv("ROBOKIT_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(disk_cache, "LOCK_PATIENCE", 2.0 * waiting.PATIENCE)
    robot = ladder.chain(2)
    made, ready = build.kernel(robot, "rnea"), threading.Event()
    made(*np.zeros((3, 2)))
    began = time.monotonic()
    with maker.MAKING:
        made._maker.improve(ONE_STATE, lambda _: ready.set())
        time.sleep(0.3)  # the thread comes to where it needs what is held here
        assert not made._maker.code(ONE_STATE).baseline
    assert ready.wait(waiting.PATIENCE) and time.monotonic() - began < waiting.PATIENCE


def test_a_forked_child_holds_no_locks_of_other_threads(tmp_path):
    here, there = os.pipe()
    with disk_cache.file_lock(tmp_path / "lock"):
        os.link(tmp_path / "lock", tmp_path / "same")  # stays, as after a process that ended before its work
        child = os.fork()
        if not child:
            os.write(there, b"!")
            time.sleep(waiting.PATIENCE)
            os._exit(0)
        os.read(here, 1)
    try:
        with disk_cache.file_lock(tmp_path / "same") as waited:
            assert not waited
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(here)
        os.close(there)


def test_modules_compiled_at_the_same_time_are_the_same_as_one_by_one():
    text = MODULE.replace("@choose", "@other")
    before, found = llvm._object(text), []
    threads = [
        threading.Thread(target=lambda: found.extend(llvm._object(text) for _ in range(10))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 40 and set(found) == {before}


def test_another_llvmlite_compiles_one_by_one(monkeypatch):
    library = llvm._binding().ffi.lib

    class Plain:
        def __getattr__(self, name):
            function = getattr(library, name)
            return lambda *words: function(*words)

    monkeypatch.setattr(llvm._binding().ffi, "lib", Plain())
    assert llvm._object(MODULE).startswith(b"\x7fELF")


LOADS = """
import sys
import numpy as np
import robokit as rk
robot = rk.load_urdf(rk.find_robot("double_pendulum"))
rk.rnea(robot, robot.neutral(), [1.0, 2.0], [0.5, 0.25])
print("llvmlite.binding" in sys.modules)
"""


def test_a_kernel_from_the_cache_does_not_wait_for_llvm(tmp_path):
    root = str(Path(llvm.__file__).resolve().parents[3])
    environment = {**os.environ, "PYTHONPATH": root, "ROBOKIT_CACHE_DIR": str(tmp_path)}
    for expected in ("True", "False"):
        done = subprocess.run(
            [sys.executable, "-c", LOADS],
            env=environment,
            capture_output=True,
            text=True,
            timeout=waiting.PATIENCE,
        )
        assert done.stdout.strip() == expected, done.stderr


def test_the_processor_is_known_without_llvm():
    width = llvm.vector_width()
    assert llvm.processor_description() and llvm.processor_flags()
    assert llvm.processor_description() in llvm.identity()
    assert width == (
        8 if "avx512f" in llvm.processor_flags() else 4 if "avx2" in llvm.processor_flags() else 2
    )


def test_where_the_system_says_nothing_llvm_is_asked(monkeypatch):
    before = llvm.vector_width()
    caches = (llvm.processor_description, llvm.identity, llvm.vector_width)
    monkeypatch.setattr(llvm, "INFORMATION", os.devnull + "/nothing")
    for each in caches:
        each.cache_clear()
    try:
        assert llvm.processor_description() == "" and not llvm.processor_flags()
        assert llvm.vector_width() == before
        assert llvm.host()[0] in llvm.identity()
    finally:
        monkeypatch.undo()
        for each in caches:
            each.cache_clear()
