"""WebAssembly with its variables numbered anew: the same code in fewer bytes."""

from __future__ import annotations

import numpy as np
import pytest

from robokit.engine.target.wasm_code import GET, SET, TEE, Unknown, leb, shorter

I32, F64 = 0x7F, 0x7C
CONSTANT = b"\x44" + bytes(range(0x20, 0x28))  # its bytes look like instructions that name variables
LOAD, STORE, ADD, CALL, FLOOR = b"\x2b\x03\x80\x08", b"\x39\x03\x08", b"\xa0", b"\x10\x83\0", b"\x9c"
CONVERT, BLOCK, BRANCH, END = b"\xfc\x02", b"\x02\x40", b"\x0d\x00", b"\x0b"


def body(kinds: list[int], instructions: list) -> bytes:
    """A function of variables of these kinds; an instruction is bytes, or (code, variable)."""
    code = [i if isinstance(i, bytes) else bytes([i[0]]) + leb(i[1]) for i in instructions]
    return leb(len(kinds)) + b"".join(leb(1) + bytes([k]) for k in kinds) + b"".join(code)


def read(code: bytes, instructions: list) -> tuple[list[int], list[int], int]:
    """(kinds, variables in the order of use, bytes of instructions), where the instructions are these."""

    def number(at: int) -> tuple[int, int]:
        value = shift = 0
        while True:
            value |= (code[at] & 127) << shift
            shift, at = shift + 7, at + 1
            if code[at - 1] < 128:
                return value, at

    runs, at = number(0)
    kinds: list[int] = []
    for _ in range(runs):
        count, at = number(at)
        kinds += [code[at]] * count
        at += 1
    used, start = [], at
    for i in instructions:
        if isinstance(i, bytes):
            assert code[at : at + len(i)] == i
            at += len(i)
        else:
            assert code[at] == i[0]
            variable, at = number(at + 1)
            used.append(variable)
    assert at == len(code)
    return kinds, used, len(code) - start


@pytest.mark.parametrize("parameters", [0, 1, 4, 60])
def test_the_code_stays_and_its_variables_move_together(parameters):
    rng = np.random.default_rng(parameters)
    kinds = [F64 if x else I32 for x in rng.random(300) < 0.8]
    # As in long code: most variables serve once, the late ones most often.
    chosen = np.sort(rng.choice(parameters + 300, 2000, p=_rising(parameters + 300)))
    others = [CONSTANT, LOAD, STORE, ADD, CALL, FLOOR, CONVERT, BLOCK, BRANCH]
    instructions = []
    for variable in rng.permutation(chosen).tolist():
        instructions += [(int(rng.choice([GET, SET, TEE])), variable), others[rng.integers(len(others))]]
    instructions.append(END)
    before = body(kinds, instructions)
    after = shorter(before, parameters)
    old_kinds, old, old_size = read(before, instructions)
    new_kinds, new, new_size = read(after, instructions)
    assert sorted(new_kinds) == sorted(old_kinds) and len(set(zip(old, new, strict=True))) == len(set(old))
    for a, b in set(zip(old, new, strict=True)):
        assert (a == b) if a < parameters else (old_kinds[a - parameters] == new_kinds[b - parameters])
    assert new_size < old_size and len(after) < len(before)
    counts = sorted((old.count(v) for v in set(old) if v >= parameters), reverse=True)
    short = sum(counts[: max(0, 128 - parameters)])
    assert sum(parameters <= v < 128 for v in new) == short, "the most used have the small numbers"


def _rising(n: int) -> np.ndarray:
    weight = np.arange(1.0, n + 1) ** 2
    return weight / weight.sum()


@pytest.mark.parametrize("instruction", [b"\xfd\x0c", b"\xfc\x0a\0\0", b"\x11\0\0", b"\x06\x40"])
def test_an_unknown_instruction_is_left_to_those_who_know(instruction):
    with pytest.raises(Unknown, match="instruction"):
        shorter(body([F64], [instruction, END]), 0)
