"""Operations that are shared among workers: what is computed, and that nobody reads what is not there yet."""

from __future__ import annotations

import numpy as np
import pytest

import robokit as rk
from robokit.dynamics.build import kernel
from robokit.engine.backend.targets import ManyStates
from robokit.engine.cuda.straight_code import expanded, fused_products, shared
from robokit.engine.emit.ir import FLOAT64
from robokit.engine.passes.replay import evaluated
from robokit.engine.trace.graph import Program
from robokit.engine.trace.ops import ADD, CALL, MUL, RESULT, SUB


@pytest.fixture(scope="module")
def program() -> Program:
    """One that calls."""
    found = kernel(rk.load("humanoid"), "aba_derivatives")._maker.planned(ManyStates(FLOAT64)).program
    assert found.blocks
    return found


def test_expanded_computes_the_same(program: Program) -> None:
    flat, marked = expanded(program, fused_products(program)[0])
    assert not flat.blocks and not any(flat.nodes[n][0] in (CALL, RESULT) for n in flat.order)
    given = [np.random.default_rng(3).uniform(-1, 1, size).tolist() for _, size in program.inputs]
    assert evaluated(flat, *given) == evaluated(program, *given)
    assert len(marked) > 1000 and all(flat.nodes[n][0] == MUL for n in marked)


@pytest.mark.parametrize(("workers", "window"), [(4, 64), (16, 128)])
def test_nobody_reads_what_is_not_there(program: Program, workers: int, window: int) -> None:
    flat, fused = expanded(program, fused_products(program)[0])
    team = shared(flat, workers, fused, window)
    done = [n for shares in team.rounds for share in shares for n in share]
    assert sorted(done) == sorted(flat.order)
    assert all(len(shares) == workers for shares in team.rounds)
    memory, before = dict[int, int](), set[int]()  # what each place holds; what is computed so far
    order = set(flat.order)
    for shares in team.rounds:
        now = dict[int, int]()
        for share in shares:
            own = set[int]()
            for n in share:
                for o in order.intersection(flat.nodes[n][1:]) - own:
                    assert o in before and memory[team.slot[o]] == o  # nobody has written over it
                own.add(n)
                if flat.nodes[n][0] in (ADD, SUB):  # a fused product is where its sum is
                    assert all(o in own for o in fused.intersection(flat.nodes[n][1:]))
                if n in team.slot:
                    assert team.slot[n] not in now and 0 <= team.slot[n] < team.slots
                    now[team.slot[n]] = n
        # While one writes, others of the round may still read: no place that is read is written.
        read = {team.slot[o] for share in shares for n in share for o in order.intersection(flat.nodes[n][1:])
                if o in before}  # fmt: skip
        assert read.isdisjoint(now)
        memory |= now
        before |= {n for share in shares for n in share}


def test_all_have_about_the_same_to_do(program: Program) -> None:
    flat, fused = expanded(program, fused_products(program)[0])
    team = shared(flat, 8, fused, 128)
    longest = sum(max(map(len, shares)) for shares in team.rounds)
    assert longest * 8 < 1.6 * len(flat.order)
