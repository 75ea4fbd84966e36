"""Python's collector: paused where many objects and no cycles are made."""

import subprocess
import sys

CYCLES = """
import gc
import weakref
from robokit.interpreter import without_collector

class Node:
    pass

made, count = weakref.WeakSet(), 3 * gc.get_threshold()[0]
for _ in range(count):
    node = Node()
    node.own = node
    made.add(node)
    with without_collector():
        assert not gc.isenabled()
assert gc.isenabled()
print(len(made) < count // 2)
"""


def test_garbage_of_a_program_that_pauses_the_collector_again_and_again_is_collected():
    """Else a program that loads robots in a loop keeps all of its cycles."""
    assert subprocess.check_output([sys.executable, "-c", CYCLES], text=True).strip() == "True"
