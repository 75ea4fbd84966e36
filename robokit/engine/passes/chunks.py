"""Cuts a program's straight line into chunks and gives places in memory to what must outlive one.

One giant basic block compiles 10 to 30 times slower than functions of some hundred nodes and runs no
faster, so the line is cut where few values are alive. A value that crosses a cut gets a slot of the
workspace; slots are used again once their last reader's chunk is over.

Sines and cosines of consecutive inputs (the joint angles) are taken out of the line. A loop computes them
before the first chunk, with full vectors even in code of one state.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from itertools import accumulate

from robokit.engine.passes.guards import Path
from robokit.engine.trace.graph import Program
from robokit.engine.trace.ops import COS, INPUT, SIN

STORE = 2
"""Weight of an output's store in a chunk, in operations: LLVM's time grows faster than their number."""


@dataclass
class Angles:
    """A run of consecutive scalars of one input whose sine and cosine are needed."""

    input: int
    offset: int
    count: int
    sin_slot: int
    cos_slot: int


@dataclass
class Schedule:
    """Where and when everything happens."""

    lanes: int  # numbers per value: states that go together
    chunks: list[list[int]]  # node numbers of each chunk, in order
    slot: dict[int, int]  # workspace slot (of `lanes` numbers) of each node that lives in memory
    stored: set[int]  # nodes of chunks that are written to their slot
    angles: list[Angles]  # the sine and cosine runs
    constants: dict[float, int]  # slot of each constant that is an output (only with `bundled`)
    # slot of each input's scalars by (input, offset) (only with `bundled`)
    slot_of_input: dict[tuple[int, int], int]
    slots: int  # slots in all
    # conditions of the guards around each node, the outermost first; nothing where there are none
    inside: dict[int, Path] = field(default_factory=dict)


@dataclass
class Places:
    """What has its place before anything is cut."""

    slot: dict[int, int]  # of inputs (only with `bundled`), sines and cosines of inputs
    angles: list[Angles]  # the sine and cosine runs
    constants: dict[float, int]  # slot of each constant that is an output (only with `bundled`)
    kept: set[int]  # nodes that are outputs (only with `bundled`)
    slots: int  # slots so far

    def inputs(self, program: Program) -> dict[tuple[int, int], int]:
        """Slot of each input's scalars by (input, offset)."""
        nodes = program.nodes
        return {nodes[n][1:]: k for n, k in self.slot.items() if nodes[n][0] == INPUT}


def fixed_places(program: Program, bundled: bool, shortest_run: int) -> Places:
    """Places of inputs, of sines and cosines of inputs, and of constant outputs.

    Args:
        program, bundled, shortest_run: as in :func:`robokit.engine.passes.calls.call_plan`.
    """
    nodes = program.nodes
    slot: dict[int, int] = {}
    slots = 0
    by_place = {n[1:]: k for k, n in enumerate(nodes) if n[0] == INPUT}
    if bundled:
        for k, (_, count) in enumerate(program.inputs):
            for offset in range(count):
                slot[by_place[(k, offset)]] = slots
                slots += 1

    angles = []
    trig: dict[int, dict[int, int]] = {}
    for number in program.order:
        op = nodes[number][0]
        if op in (SIN, COS) and nodes[nodes[number][1]][0] == INPUT:
            trig.setdefault(nodes[number][1], {})[op] = number
    for run in _runs(sorted(nodes[k][1:] for k in trig)):
        if len(run) >= shortest_run:
            angles.append(Angles(*run[0], len(run), slots, slots + len(run)))
            for k, place in enumerate(run):
                found = trig[by_place[place]]
                slot[found.get(SIN, -1)] = slots + k
                slot[found.get(COS, -1)] = slots + len(run) + k
            slots += 2 * len(run)
    slot.pop(-1, None)

    constants: dict[float, int] = {}
    kept: set[int] = set()
    if bundled:
        for row in program.results:
            for r in row:
                if type(r) is int:
                    kept.add(r)
                elif r not in constants:
                    constants[r] = slots
                    slots += 1
    return Places(slot, angles, constants, kept, slots)


def _runs(places: Iterable[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """Groups of consecutive places (input, offset)."""
    runs: list[list[tuple[int, int]]] = []
    for place in places:
        if runs and runs[-1][-1] == (place[0], place[1] - 1):
            runs[-1].append(place)
        else:
            runs.append([place])
    return runs


def cut(program: Program, order: list[int], weight: list[int], size: int) -> list[list[int]]:
    """Chunks of 0.6 to 1.2 times the size in weight, each cut at the position fewest values cross."""
    nodes = program.nodes
    last: dict[int, int] = {}  # by node: where in the line it is read last
    for p, n in enumerate(order):
        last[n] = p
        for operand in nodes[n][1:]:
            if operand in last:
                last[operand] = p
    change = [0] * (len(order) + 2)
    for p, end in enumerate(last.values()):
        change[p + 1] += 1
        change[end + 1] -= 1
    crossing, alive = [], 0
    for step in change:
        alive += step
        crossing.append(alive)
    reached = [0, *accumulate(weight)]
    chunks, start = [], 0
    while start < len(order):
        done = reached[start]
        if reached[-1] - done <= size * 5 // 4:
            stop = len(order)
        else:
            first = max(start + 1, bisect_left(reached, done + size * 3 // 5))
            end = max(first + 1, bisect_right(reached, done + size * 6 // 5))
            stop = min(range(first, end), key=crossing.__getitem__)
        chunks.append(order[start:stop])
        start = stop
    return chunks


def cut_at(order: list[int], size: int, ends: Collection[int]) -> list[list[int]]:
    """Chunks of at most the size, where there are cuts enough, each of which ends with one of these nodes."""
    chunks: list[list[int]] = []
    start = 0
    for p, n in enumerate(order):
        if n in ends or p == len(order) - 1:
            if chunks and len(chunks[-1]) + p + 1 - start <= size:
                chunks[-1] += order[start : p + 1]
            else:
                chunks.append(order[start : p + 1])
            start = p + 1
    return chunks
