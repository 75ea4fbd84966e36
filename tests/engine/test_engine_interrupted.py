"""Ctrl-C ends loops of machine code that would go on for ever, and the kernel can be called again."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import waiting

ENDLESS = """
import os, signal, sys
import numpy as np
import robokit as rk
import waiting
from robokit.engine.loops.kernel import ArrayOf, LoopKernel
from robokit.spatial.control_flow import for_range, while_loop

def halved(x, out):
    out[0] = while_loop(lambda y: y < 2.0, lambda y: 0.5 * (x[0] + y), x[0])

def counted(n, m, x, out):
    # What is begun of the inner loop is gone through.
    out[0] = for_range(n, lambda k, s: for_range(m, lambda j, t: 0.999 * t + x[0], s), 0.0)

X, OUT = ArrayOf("x", (1,)), ArrayOf("out", (1,), "out")
halves = LoopKernel("halved", halved, [], [X, OUT], checked=True)
counts = LoopKernel("counted", counted, ["n", "m"], [X, OUT], checked=True)
robot = rk.load("double_pendulum")

@rk.function(inputs={"q": "q", "x": ()}, outputs={"y": ()})
def own(rb, q, x):
    return while_loop(lambda y: y < 2.0, lambda y: 0.5 * (x + y), x)

KINDS = {
    "while": (lambda x: halves(x=np.full(1, x)), 5.0),
    "while, rows": (lambda x: halves(x=np.full((200, 1), x)), 5.0),
    "for": (lambda x: counts(x=np.ones(1), n=3 if x else 2**31 - 1, m=1000), 1.0),
    "for, rows": (lambda x: counts(x=np.ones((200, 1)), n=3 if x else 2**31 - 1, m=1000), 1.0),
    "function": (lambda x: own(robot, robot.neutral(), x), 5.0),
}
told = []

def interrupt(run, ends):
    before, called = run(ends), len(told)  # compiles
    waiting.after(0.1, lambda: os.kill(os.getpid(), signal.SIGINT))
    try:
        run(0.0)
        how = "went on"
    except KeyboardInterrupt:
        how = "interrupted"
    after = run(ends)
    return how, len(told) - called, "again" if str(before) == str(after) else (before, after)

for kind, (run, ends) in KINDS.items():
    print(kind, *interrupt(run, ends), sep="; ")
signal.signal(signal.SIGINT, lambda *_: told.append(1))
print("handler", *interrupt(*KINDS["while"]), sep="; ")
"""


FAILS = """
import signal
import numpy as np
from robokit.engine.loops.kernel import ArrayOf, LoopKernel
from robokit.spatial.control_flow import while_loop

def turns(n, x, i, out):
    out[0] = while_loop(lambda s: s < 1.0, lambda s: s + x[0], 0.0)
    out[i[0]] = x[0]

arrays = [ArrayOf("x", (1,)), ArrayOf("i", (1,), "in", "integer"), ArrayOf("out", ("n",), "out")]
kernel = LoopKernel("turns", turns, ["n"], arrays, checked=True)
told = []
signal.signal(signal.SIGINT, lambda *_: told.append(1))
x, i = np.full((64, 1), 1e-5), np.zeros((64, 1), np.int32)
before = kernel(x=x, i=i, n=1)
bad = x.copy()
bad[4:8], bad[32:], i[4] = 1e-7, 0.0, 7  # for long, for ever, and what ends both
try:
    kernel(x=bad, i=i, n=1)
except IndexError:
    print("index", told)
print(str(kernel(x=x, i=0 * i, n=1)) == str(before))
"""


def test_an_error_in_one_row_ends_the_loops_of_other_threads_and_is_no_ctrl_c():
    done = subprocess.run(
        [sys.executable, "-c", FAILS], capture_output=True, text=True, timeout=waiting.PATIENCE
    )
    assert done.stdout.split("\n")[:2] == ["index []", "True"], done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="os.kill ends the process there")
def test_ctrl_c_ends_loops_without_end():
    """Of every kind, one after the other in one process; where a handler of one's own returns, too."""
    done = subprocess.run(
        [sys.executable, "-c", ENDLESS],
        env={**os.environ, "PYTHONPATH": str(Path(waiting.__file__).parent)},
        capture_output=True,
        text=True,
        timeout=waiting.PATIENCE,
    )
    kinds = ("while", "while, rows", "for", "for, rows", "function")
    expected = [*(f"{kind}; interrupted; 0; again" for kind in kinds), "handler; interrupted; 1; again"]
    assert done.stdout.splitlines() == expected, done.stderr
