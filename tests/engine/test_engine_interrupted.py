"""Ctrl-C ends loops of machine code that would go on for ever, and the kernel can be called again."""

import subprocess
import sys

import pytest

ENDLESS = """
import os, signal, sys, threading, time
import numpy as np
import robokit as rk
from robokit.engine.loops.kernel import ArrayOf, LoopKernel
from robokit.spatial.control_flow import for_range, while_loop

def halved(x, out):
    out[0] = while_loop(lambda y: y < 2.0, lambda y: 0.5 * (x[0] + y), x[0])

def counted(n, x, out):
    out[0] = for_range(n, lambda k, s: for_range(n, lambda j, t: 0.999 * t + x[0], s), 0.0)

X, OUT = ArrayOf("x", (1,)), ArrayOf("out", (1,), "out")
halves = LoopKernel("halved", halved, [], [X, OUT], checked=True)
counts = LoopKernel("counted", counted, ["n"], [X, OUT], checked=True)
robot = rk.load("double_pendulum")

@rk.function(inputs={"q": "q", "x": ()}, outputs={"y": ()})
def own(rb, q, x):
    return while_loop(lambda y: y < 2.0, lambda y: 0.5 * (x + y), x)

def main_thread(kind):
    if kind == "while":
        return lambda x: halves(x=np.full(1, x)), 5.0
    if kind == "while, rows":
        return lambda x: halves(x=np.full((200, 1), x)), 5.0
    if kind == "for":
        return lambda x: counts(x=np.ones(1), n=3 if x else 2**31 - 1), 1.0
    if kind == "for, rows":
        return lambda x: counts(x=np.ones((200, 1)), n=3 if x else 2**31 - 1), 1.0
    return lambda x: own(robot, robot.neutral(), x), 5.0

run, ends = main_thread(sys.argv[1])
before = run(ends)  # compiles
told = []
if sys.argv[2] == "handler":
    signal.signal(signal.SIGINT, lambda *_: told.append(1))
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    run(0.0)
    print("went on")
except KeyboardInterrupt:
    print("interrupted", len(told))
after = run(ends)
print("again" if str(before) == str(after) else (before, after))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="os.kill ends the process there")
@pytest.mark.parametrize(
    ("kind", "handler"),
    [
        ("while", ""),
        ("while", "handler"),
        ("while, rows", ""),
        ("for", ""),
        ("for, rows", ""),
        ("function", ""),
    ],
)
def test_ctrl_c_ends_loops_without_end(kind, handler):
    done = subprocess.run(
        [sys.executable, "-c", ENDLESS, kind, handler], capture_output=True, text=True, timeout=120
    )
    assert done.stdout.split("\n")[:2] == [f"interrupted {int(bool(handler))}", "again"], done.stderr
