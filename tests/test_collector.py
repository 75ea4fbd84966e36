"""Python's collector: paused where many objects and no cycles are made."""

import gc
import weakref

from robokit.interpreter import without_collector


class Node:
    """What may be part of a cycle."""


def test_garbage_of_a_program_that_pauses_the_collector_again_and_again_is_collected():
    """If a pause makes objects count as old, a program that loads robots in a loop keeps all of its cycles."""
    made, count = weakref.WeakSet[Node](), 3 * gc.get_threshold()[0]
    for _ in range(count):
        node = Node()
        node.own = node
        made.add(node)
        with without_collector():
            assert not gc.isenabled()
    kept = len(made)
    assert gc.isenabled() and kept < count // 2
