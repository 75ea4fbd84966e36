"""The card that is this processor, in the place of the first card."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from host_card import HostCard

from robokit.engine.cuda import arrays, driver


@pytest.fixture(scope="module")
def _collected() -> None:
    """What was made before is on no card: to go through it after each test would take seconds."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def card(_collected: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[HostCard]:
    """It; tensors of PyTorch and arrays of JAX in the processor's memory are on it."""
    made = [HostCard(0), HostCard(1)]
    monkeypatch.setattr(driver, "card", lambda number=0: made[number])
    monkeypatch.setattr(driver, "count", lambda: 2)
    monkeypatch.setattr(driver, "current", lambda: 0)
    monkeypatch.setattr(arrays, "PLATFORM", "cpu")
    yield made[0]
    gc.collect()  # what is on it is given back to it
