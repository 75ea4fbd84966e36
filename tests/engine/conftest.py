"""The engine's tests write to a cache of their own, and find engine_cases."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from robokit.engine import maker, single_calls

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def engine_cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True, scope="module")
def own_cache(engine_cache):
    # Taken back after each file: what the tests of other folders compile belongs to the cache that all share.
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROBOKIT_CACHE_DIR", str(engine_cache))
        single_calls._shim()  # compiled once a process: no test's own cache shall see it
        yield


@pytest.fixture(scope="module")
def compiled_well():
    """First calls wait for optimised code, in the whole file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(maker, "TIERED", False)
        yield


@pytest.fixture
def no_baseline_code(monkeypatch):
    """First calls wait for optimised code, in this test alone."""
    monkeypatch.setattr(maker, "TIERED", False)
