"""Python's collector: paused where many objects and no cycles are made."""

import gc
import subprocess
import sys

from robokit import interpreter
from robokit.interpreter import without_collector

OLD = """
import gc
from robokit.interpreter import without_collector
with without_collector():
    assert not gc.isenabled()
    made = [[] for _ in range(1000)]
assert gc.isenabled() and gc.get_freeze_count() == 0
print(any(each is made[-1] for each in gc.get_objects(generation=2)))
"""


def test_what_is_made_without_the_collector_counts_as_old():
    assert subprocess.check_output([sys.executable, "-c", OLD], text=True).strip() == "True"


def test_frozen_objects_of_a_program_stay_frozen(monkeypatch):
    thawed = []
    monkeypatch.setattr(interpreter.gc, "get_freeze_count", lambda: 1)
    monkeypatch.setattr(interpreter.gc, "unfreeze", lambda: thawed.append(1))
    with without_collector():
        pass
    assert gc.isenabled() and not thawed
