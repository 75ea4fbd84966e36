"""Code of kernels with loops on disk, found under robokit's source without a recording."""

import json
import os
import subprocess
import sys

import pytest

from robokit import disk_cache
from robokit.engine.loops.fields import kernel_of
from robokit.engine.loops.kernel import LoopKernel, Source
from robokit.engine.signature import ArrayOf

MODULE = """
from robokit.engine.loops.fields import kernel_of, real
from robokit.spatial.control_flow import for_range

FACTOR = {factor}

def scale(x):
    for_range(x.n, lambda k: x.b.__setitem__(k, FACTOR * x.a[k]))

def made():
    return kernel_of("scale", scale, [real("a", "n"), real("b", {size}, role="out")], by_source=True)
"""

RUN = """
import json, sys
sys.path.insert(0, sys.argv[1])
import robokit
robokit.__path__.append(sys.argv[1] + "/more")
from robokit import disk_cache
digest = disk_cache.digest(b"source", open(sys.argv[1] + "/more/scaled.py").read()).encode()
if len(sys.argv) > 2:
    digest = b""
found = lambda: digest
found.__wrapped__ = found
disk_cache.source_digest = found
from robokit import scaled
kernel = scaled.made()
out = kernel(a=[1.0, 2.0])["b"].tolist()
print(json.dumps([out, "graph" in vars(kernel)]))
"""


@pytest.fixture
def run(tmp_path):
    """Runs a module as if it were one of robokit: what its kernel gives, and whether it was recorded."""
    (tmp_path / "more").mkdir()

    def go(factor, size='"n"', *more):
        (tmp_path / "more" / "scaled.py").write_text(MODULE.format(factor=factor, size=size))
        env = os.environ | {"ROBOKIT_CACHE_DIR": str(tmp_path / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-c", RUN, str(tmp_path), *more]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    return go


def test_the_second_process_records_nothing(run):
    assert run(2.0) == [[2.0, 4.0], True]
    assert run(2.0) == [[2.0, 4.0], False]


def test_code_that_a_thread_made_is_found_by_later_processes(source, monkeypatch, tmp_path):
    monkeypatch.setenv("ROBOKIT_CACHE_DIR", str(tmp_path))

    def kernel():
        x = ArrayOf("x", (1,), "out")
        return LoopKernel("aside", lambda x: x.__setitem__(0, 1.0), [], [x], from_source=kernel_of)

    first = kernel()
    assert not first.at_hand("batch", "float64")
    first._improve((first.lanes("float64"), "float64"))
    assert first.at_hand("batch", "float64") and kernel().at_hand("batch", "float64")


def test_other_source_or_other_arrays_are_other_code(run):
    run(2.0)
    assert run(3.0) == [[3.0, 6.0], True]
    assert run(3.0, "2") == [[3.0, 6.0], True]
    assert run(2.0) == [[2.0, 4.0], False]


def test_where_the_source_is_not_known_everything_is_recorded(run):
    run(2.0)
    assert run(2.0, '"n"', "unknown") == [[2.0, 4.0], True]


@pytest.fixture
def source(monkeypatch):
    """A source that is known, whoever edits it while the tests run."""

    def source():
        return b"as it began"

    source.__wrapped__ = source
    monkeypatch.setattr(disk_cache, "source_digest", source)
    return source


def test_functions_from_outside_are_found_by_their_text_alone(source):
    assert Source.of(run, "arrays") is None
    assert Source.of(lambda x: x, "arrays") is None
    assert Source.of(kernel_of, "arrays") is not None


def test_nothing_is_noted_once_the_source_has_changed(monkeypatch, source):
    kept = []
    monkeypatch.setattr(disk_cache, "store", lambda name, *_: kept.append(name))
    source.__wrapped__ = lambda: b"as it is now"
    found = Source.of(kernel_of, "arrays")
    found.note("k", "text", True)
    assert not kept
    source.__wrapped__ = source
    found.note("k", "text", True)
    assert kept == [found.name]


def test_without_the_code_the_note_is_of_no_use(source, monkeypatch, tmp_path):
    monkeypatch.setenv("ROBOKIT_CACHE_DIR", str(tmp_path))
    found = Source.of(LoopKernel, "a kernel that was never compiled")
    assert found.load() is None
    found.note("k", "a text that was never compiled", True)
    assert disk_cache.load(found.name)
    assert found.load() is None


def test_what_was_recorded_already_is_what_runs(monkeypatch, source):
    monkeypatch.setattr(Source, "of", lambda *_: pytest.fail("looks for other code"))
    kernel = LoopKernel(
        "recorded",
        lambda x: x.__setitem__(0, 1.0),
        [],
        [ArrayOf("x", (1,), "out")],
        from_source=kernel_of,
    )
    assert kernel.graph.regions
    assert kernel()["x"] == 1.0
