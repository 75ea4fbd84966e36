"""Where the values of a chunk are computed, for code whose operands go to a stack.

A *basic block* is a run of nodes that no branch leaves or enters. A value whose readers are all in one basic
block is computed there, by the first of them; the others are computed at their own place in the line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from robokit.engine.passes.guards import Path
from robokit.engine.trace.graph import Program
from robokit.engine.trace.ops import CALL, CONST, COS, GUARD, LOOKUP, RESULT, SIN

APART = -1
"""Stands for the basic block of a value that is computed at its own place."""

Event = tuple[str, int, int]
"""What happens in a chunk: ("node", number, basic_block), ("if", condition, basic_block), ("end", 0, 0)."""


class BasicBlocks:
    """What is known of a chunk before it is written.

    Attributes:
        events: the nodes, and the branches around those in guarded blocks.
        end: the basic block after the last event.
        basic_block: where each node of the chunk is computed.
        count: how often each node of the chunk is read in it.
        reads: how often what comes from elsewhere is read, by node and basic block.
        pairs: sines and cosines by opcode, angle and basic block.
        skipped: choices between a value of a block that is skipped otherwise, and 0.
        zero: those values: variables that are 0 where nobody has set them.
    """

    def __init__(
        self,
        program: Program,
        chunk: Sequence[int],
        inside: Mapping[int, Path],
        fixed: Collection[int],
        returned: Sequence[int],
    ) -> None:
        """Look at a chunk.

        Args:
            program: the graph.
            chunk: nodes in order.
            inside: guards around nodes.
            fixed: nodes that are computed at their own place, whoever reads them.
            returned: nodes that are read after the last event.
        """
        self.program, self.inside = program, inside
        self.here = set(chunk)
        self.events = self._events(chunk)
        self.end = len(self.events) + 1
        self.basic_block: dict[int, int] = {}
        self.count: Counter[int] = Counter()
        self.reads: Counter[tuple[int, int]] = Counter()
        self.pairs: dict[tuple[int, int, int], int] = {}
        self.skipped = {n for n in chunk if self._skips(n)}
        self.zero = {program.nodes[n][2] for n in self.skipped}
        for number in returned:
            self._use(number, self.end)
        for kind, number, basic_block in reversed(self.events):
            if kind == "if":
                self._use(number, basic_block)
            elif kind == "node":
                self._look(number, basic_block, number in fixed)

    def _events(self, chunk: Sequence[int]) -> list[Event]:
        events: list[Event] = []
        basic_block = 0
        here: Path = ()
        for number in [*chunk, 0]:
            path = self.inside.get(number, ())
            if path != here:
                shared = 0
                while shared < min(len(path), len(here)) and path[shared] == here[shared]:
                    shared += 1
                events += [("end", 0, 0)] * (len(here) - shared)
                for condition in path[shared:]:
                    basic_block += 1
                    events.append(("if", condition, basic_block))
                here, basic_block = path, basic_block + 1
            events.append(("node", number, basic_block))
        return events[:-1]

    def _skips(self, number: int) -> bool:
        op, *operands = self.program.nodes[number]
        if op != GUARD or operands[1] not in self.here:
            return False
        condition, value, other = operands
        node = self.program.nodes[other]
        within = self.inside.get(value, ()) == (*self.inside.get(number, ()), condition)
        return within and node[0] == CONST and node[1] == 0.0

    def _look(self, number: int, basic_block: int, fixed: bool) -> None:
        """A node, after all that read it."""
        at = self.basic_block.get(number, APART)
        if fixed or at == APART:
            self.basic_block[number], at = APART, basic_block
        node = self.program.nodes[number]
        if number in self.skipped:
            self.basic_block[node[2]] = APART
            self.count[node[2]] += 1
            return
        if node[0] in (SIN, COS):
            self.pairs[node[0], node[1], at] = number
        if node[0] != RESULT:
            for operand in node[2:] if node[0] in (CALL, LOOKUP) else node[1:]:
                self._use(operand, at)

    def _use(self, number: int, basic_block: int) -> None:
        if number not in self.here:
            self.reads[number, basic_block] += 1
            return
        if self.basic_block.setdefault(number, basic_block) != basic_block:
            self.basic_block[number] = APART
        self.count[number] += 1
