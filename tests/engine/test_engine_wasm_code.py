"""From text to WebAssembly: variables and places that share, and mean the same."""

from __future__ import annotations

import numpy as np
import pytest

from robokit.engine.target import wasm_code
from robokit.engine.target.wasm_code import F64, I32, I64, Function, Storage, _numbered, leb, signed


def random_function(rng: np.random.Generator, parameters: int) -> Function:
    """Variables of three kinds that are set, perhaps in a branch, and read for a while."""
    names = [f"p{k}" for k in range(parameters)]
    alive, lines = list(names), []
    for k in range(400):
        name = f"{k}" + ["", "", "", "t", "l"][rng.integers(5)]
        lines += (
            ["if"] * (k % 50 == 20) + [f"{['set', 'tee'][rng.integers(2)]} {name}"] + ["end"] * (k % 50 == 30)
        )
        alive.append(name)
        for _ in range(rng.integers(4)):
            lines.append(f"get {alive[rng.integers(max(0, len(alive) - 150), len(alive))]}")
    return Function("f", names, 0, lines)


@pytest.mark.parametrize("parameters", [0, 3, 140])
def test_values_share_a_variable_only_one_after_the_other(parameters):
    rng = np.random.default_rng(parameters)
    function = random_function(rng, parameters)
    number, declared = _numbered(function)
    kinds = [F64] * parameters
    at = 1
    for _ in range(declared[0]):
        count, at = _read(declared, at)
        kinds += [declared[at]] * count
        at += 1
    assert all(number[f"p{k}"] == k for k in range(parameters))
    for name, k in number.items():
        assert kinds[k] == {"t": I32, "l": I64}.get(name[-1], F64)
    held = {number[name]: name for name in function.parameters}
    for line in function.lines:
        what, _, name = line.partition(" ")
        if what in ("set", "tee"):
            held[number[name]] = name
        elif what == "get":
            assert held[number[name]] == name, "another value has taken its place"
    assert len(kinds) < 0.7 * len(number)
    times = np.zeros(len(kinds))
    for line in function.lines:
        if " " in line:
            times[number[line[4:]]] += 1
    own = times[parameters:]
    short = max(0, 128 - parameters)
    if 0 < short < len(own):
        assert own[:short].min() >= own[short:].max(), "the most used have the small numbers"


def _read(code: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (code[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if code[at - 1] < 128:
            return value, at


def test_places_that_are_named_often_are_globals_and_arrays_stay_in_memory():
    number = "number " + bytes(8).hex()
    lines = ["at 2", number, "put 2", "at 7", "take 2", "put 7", "at 9", number, "put 9"]
    lines += ["take 2", "drop"] * 20 + ["take 9", "drop"] * 9 + [number, "drop"] * 3
    found = [Function("step", [], 0, lines)]
    storage = Storage.of(found, 3)
    assert storage.address == {"2": 16, "7": 24} and storage.size == 32
    assert set(storage.globals) == {"9", bytes(8).hex()}
    assert storage.globals["9"] == 1, "the most used first, after the host's"
    assert [each[1] for each in storage.declared()] == [1, 0], "a constant does not change"
    ((body,), _) = wasm_code.assembled(found, 3)
    assert body.endswith(b"\x0b") and body.count(b"\x24\x01") == 1 and body.count(b"\x23\x01") == 9


@pytest.mark.parametrize("value", [0, 1, 63, 64, 127, 128, 300, 16383, 16384, 123456789])
def test_numbers_are_short_and_come_back(value):
    assert _read(leb(value), 0) == (value, len(leb(value)))
    assert len(leb(value)) == max(1, -(-value.bit_length() // 7))
    code, found = signed(-value), 0
    for k, byte in enumerate(code):
        found |= (byte & 127) << 7 * k
    if code[-1] & 64:
        found -= 1 << 7 * len(code)
    assert found == -value
