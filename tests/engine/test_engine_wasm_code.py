"""WebAssembly in bytes: variables and places that share, and mean the same."""

from __future__ import annotations

import numpy as np
import pytest

from robokit.engine.emit.wasm import (
    F64,
    GET,
    I32,
    I64,
    PLAIN,
    PUT,
    SET,
    TAKE,
    TEE,
    Function,
    Variable,
    body,
    global_numbers,
    leb,
    module,
    number,
    signed,
    variable_numbers,
)


def random_function(rng: np.random.Generator, parameters: int) -> Function:
    """Variables of three kinds that are set, perhaps in a branch, and read for a while."""
    own = [Variable() for _ in range(parameters)]
    alive, code = list(own), []
    for k in range(400):
        variable = Variable([F64, F64, F64, I32, I64][rng.integers(5)])
        code += [PLAIN["if"]] * (k % 50 == 20) + [((SET, TEE)[rng.integers(2)], variable)]
        code += [PLAIN["end"]] * (k % 50 == 30)
        alive.append(variable)
        for _ in range(rng.integers(4)):
            code.append((GET, alive[rng.integers(max(0, len(alive) - 150), len(alive))]))
    return Function("f", own, [], code)


def kinds_of(parameters, declared):
    """Kinds of all variables, by their numbers."""
    kinds, at = [F64] * parameters, 1
    for _ in range(declared[0]):
        count, at = _read(declared, at)
        kinds += [declared[at]] * count
        at += 1
    return kinds


def test_code_that_does_the_same_again_names_the_same_variables():
    """So it is the same bytes, which are packed well."""
    a, b, c, d = (Variable() for _ in range(4))
    code = [(what, v) for pair in ((a, b), (c, d)) for what in (SET, GET) for v in pair]
    place, _ = variable_numbers(Function("f", [], [], code))
    assert [place[v] for v in (a, b, c, d)] == [0, 1, 0, 1]


@pytest.mark.parametrize("parameters", [0, 3, 140])
def test_values_share_a_variable_only_one_after_the_other(parameters):
    function = random_function(np.random.default_rng(parameters), parameters)
    place, declared = variable_numbers(function)
    kinds = kinds_of(parameters, declared)
    assert [place[v] for v in function.parameters if v in place] == list(range(parameters))
    for variable, k in place.items():
        assert kinds[k] == variable.kind
    held, times = {place[v]: v for v in function.parameters}, np.zeros(len(kinds))
    for item in function.code:
        if type(item) is tuple:
            what, variable = item
            times[place[variable]] += 1
            if what != GET:
                held[place[variable]] = variable
            else:
                assert held[place[variable]] is variable, "another value has taken its place"
    assert len(kinds) < 0.7 * len(place)
    own = times[parameters:]
    short = max(0, 128 - parameters)
    if 0 < short < len(own):
        assert own[:short].min() >= own[short:].max(), "the most used have the small numbers"


def test_what_is_there_before_a_loop_is_there_in_all_its_turns():
    before, inside, inner, after, parameter, unused = (Variable() for _ in range(6))
    loop, end = PLAIN["loop"], PLAIN["end"]
    code = [(SET, before), loop, (GET, before), (SET, inside), (GET, inside), loop, (GET, parameter)]
    code += [(SET, inner), (GET, inner), end, (SET, inner), end, (SET, after), (GET, after)]
    place, declared = variable_numbers(Function("f", [parameter, unused], [], code))
    assert place[before] == place[unused] == 1 and place[inside] == place[inner] == 2
    assert place[parameter] == 0 and len(kinds_of(2, declared)) == 3


def _read(code: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (code[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if code[at - 1] < 128:
            return value, at


def test_places_are_globals_and_so_are_constants_that_are_named_often():
    zero, once, drop = number(0.0), number(2.5), PLAIN["drop"]
    code = [zero, (PUT, 2), (TAKE, 2), (PUT, 7), zero, (PUT, 9)]
    code += [(TAKE, 2), drop] * 20 + [(TAKE, 9), drop] * 9 + [zero, drop] * 3 + [once, drop]
    function = Function("step", [], [], code)
    numbers = global_numbers([function])
    assert numbers == {2: 1, 9: 2, bytes(8): 3, 7: 4}, "the most used first, after the host's"
    code = body(function, numbers, {})
    assert code.endswith(b"\x0b") and code.count(b"\x24\x01") == 1 and code.count(b"\x23\x01") == 21
    assert code.count(b"\x44" + once[1]) == 1 and code.count(b"\x23\x03") == 5
    assert b"start" in module([function], ["step"]), "a place begins as what the host brings"


def test_constants_alone_need_nothing_of_the_host():
    function = Function("f", [], [], [number(2.5), PLAIN["drop"]] * 3)
    assert list(global_numbers([function]).values()) == [0]
    assert b"start" not in module([function], ["f"]) and b"start" not in module([], [])


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
