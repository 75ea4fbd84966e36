"""What is said where there is no card, no driver, an old one, too little memory, no compiler: one sentence.

The driver's library is one of Python's here, with as much as it takes to get there.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

import robokit as rk
from robokit.engine.cuda import assemble, driver

ARGUMENTS = ([0.1, 0.2], [0.0, 0.0], [0.0, 0.0])


class Library:
    """The driver's functions: each gives 0, or the number of an error, and fills in what it is asked for."""

    def __init__(self, cards: int = 1, version: int = 13000, free: int = 1 << 20, **errors: int) -> None:
        self.cards, self.version, self.free, self.errors = cards, version, free, errors

    def __getattr__(self, name: str) -> Any:
        def call(*given: Any) -> int:
            if name not in self.errors:
                self._fill(name, [getattr(x, "_obj", x) for x in given])
            return self.errors.get(name, 0)

        return call

    def _fill(self, name: str, given: list[Any]) -> None:
        if name == "cuGetErrorString":
            given[1].value = b"something of the driver's"
        if name == "cuDriverGetVersion":
            given[0].value = self.version
        if name == "cuDeviceGetCount":
            given[0].value = self.cards
        if name == "cuDeviceGetName":
            given[0].value = b"A card of tests"
        if name == "cuDeviceTotalMem_v2":
            given[0].value = 1 << 30
        if name == "cuDeviceGetAttribute":
            given[0].value = {75: 9, 76: 0}.get(given[1], 100)
        if name == "cuMemGetInfo_v2":
            given[0].value, given[1].value = self.free, 1 << 30


@pytest.fixture
def pendulum():
    return rk.load_urdf(rk.find_robot("double_pendulum"))


@pytest.fixture
def library(monkeypatch):
    """A function that puts a library in the place of the driver's, or none."""
    driver._cuda.cache_clear()
    monkeypatch.setattr(driver, "_cards", {})
    usual = ctypes.CDLL

    def put(made: Library | None) -> None:
        def load(name: Any, *more: Any, **options: Any) -> Any:
            if name not in driver.LIBRARIES:
                return usual(name, *more, **options)
            if made is None:
                raise OSError(name)
            return made

        monkeypatch.setattr(driver.ctypes, "CDLL", load)

    yield put
    driver._cuda.cache_clear()


def said(pendulum: rk.Robot, **options: Any) -> str:
    with pytest.raises(rk.DeviceError) as caught:
        rk.rnea(pendulum, *ARGUMENTS, **({"device": "cuda"} | options))
    text = str(caught.value)
    assert "\n" not in text and isinstance(caught.value, rk.RobokitError)
    return text


def test_no_driver_and_no_card(library, pendulum):
    library(None)
    assert said(pendulum).startswith('device="cuda" needs the NVIDIA driver, whose library')
    driver._cuda.cache_clear()
    library(Library(cuInit=driver.NO_DEVICE))
    assert "the NVIDIA driver finds no card on this machine" in said(pendulum)
    driver._cuda.cache_clear()
    library(Library(cuInit=999))
    assert "does not start: something of the driver's (error 999)" in said(pendulum)


def test_another_card_than_there_are(library, pendulum):
    library(Library(cards=2))
    assert 'device="cuda:3": there is no such card; this machine has cuda:0 to cuda:1' in said(
        pendulum, device="cuda:3"
    )
    for device in ("cuda:x", "cuda:-1", "gpu", "CUDA", 0):
        assert 'device: expected "cpu", "cuda" or "cuda:1"' in said(pendulum, device=device)
    with pytest.raises(rk.DeviceError, match="cuda:0 to cuda:1"):
        rk.rollout(pendulum, [0.1, 0.2], steps=1, device="cuda:2")
    with pytest.raises(rk.DeviceError, match="cuda:0 to cuda:1"):
        rk.Simulation(pendulum, batch=2, device="cuda:2")


def test_a_forked_process(library, pendulum):
    library(Library(cuDeviceGetCount=driver.NOT_INITIALIZED))
    assert "a forked process cannot use the card" in said(pendulum)


def test_what_a_graph_cannot_record(library, pendulum, monkeypatch):
    monkeypatch.setattr(assemble, "release", lambda: "ptxas 13.0.88")
    monkeypatch.setattr(driver.Card, "assemble", lambda self, text: b"code")
    library(Library(cuModuleLoadData=900))
    text = said(pendulum)
    assert "while a CUDA graph is recorded" in text and "before recording" in text


def test_a_driver_that_is_older_than_the_code(library, pendulum, monkeypatch):
    monkeypatch.setattr(assemble, "release", lambda: "ptxas 13.0.88")
    monkeypatch.setattr(driver.Card, "assemble", lambda self, text: b"code")
    library(Library(version=12020))
    text = said(pendulum)
    assert "12.2" in text and "CUDA 13" in text and "update the driver" in text


def test_too_little_memory(library, pendulum, monkeypatch):
    monkeypatch.setattr(assemble, "release", lambda: "ptxas 13.0.88")
    monkeypatch.setattr(driver.Card, "assemble", lambda self, text: b"code")
    monkeypatch.setattr(driver.Card, "load", lambda self, code: _Code())
    library(Library(cuMemAllocAsync=driver.OUT_OF_MEMORY, free=5 << 20))
    with pytest.raises(rk.DeviceError) as caught:
        rk.rnea(pendulum, np.zeros((1 << 18, 2)), *ARGUMENTS[1:], device="cuda")
    assert "4 MiB were asked for, 5 of 1,024 MiB are free" in str(caught.value)


class _Code:
    """Code that is never launched."""

    def function(self, name: str) -> _Code:
        return self


def test_the_newest_code_that_a_card_runs_and_the_assembler_makes(monkeypatch):
    said = "'sm_75','sm_80','sm_86','sm_88','sm_90','sm_90a','sm_100f', 'sm_110', 'compute_130'"
    monkeypatch.setattr(assemble, "_run", lambda command: said)
    monkeypatch.setattr(assemble, "release", lambda: "ptxas 13.0.88")
    assemble.architectures.cache_clear()
    try:
        found = [assemble.architecture(*each) for each in ((8, 0), (8, 7), (8, 9), (9, 0), (11, 0))]
        assert found == ["sm_80", "sm_86", "sm_88", "sm_90", "sm_110"]
        for each in ((7, 0), (10, 0), (12, 0)):
            with pytest.raises(rk.DeviceError, match=r"ptxas 13.0.88 makes no code .*, only for 7.5, 8.0"):
                assemble.architecture(*each)
    finally:
        assemble.architectures.cache_clear()
    monkeypatch.undo()
    assert {(8, 0), (9, 0), (10, 0)} <= set(assemble.architectures())


def test_no_compiler(library, pendulum, monkeypatch):
    library(Library())
    assemble.tool.cache_clear()
    monkeypatch.setattr(assemble.sys, "path", [])
    monkeypatch.setenv("PATH", "")
    for name in ("CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)
    try:
        assert "pip install 'robokit[cuda]'" in said(pendulum)
    finally:
        assemble.tool.cache_clear()
        assemble.release.cache_clear()


def test_the_processor_needs_none_of_it(library, pendulum):
    library(None)
    assert rk.rnea(pendulum, *ARGUMENTS, device="cpu").shape == (2,)
