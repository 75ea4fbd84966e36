"""Writes the stage between two passes of a rollout: the state stays in vectors of lanes.

What is fed back is moved from the slots of the output to those of the input, one vector for a number of all
rows of a tile. To turn it into rows and back, as at the beginning and the end of a batch, takes longer. The
inputs that are not fed back are read again, because the next pass may have others, and because slots of
inputs that are read for good are used for other values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from robokit.engine.emit.ir import Real
from robokit.engine.emit.read_rows import RowReader
from robokit.engine.passes.chunks import Schedule
from robokit.engine.signature import Bounds, Pairs
from robokit.engine.trace.program import Program

Move = tuple[int, int]
"""(slot to, slot from)."""


class PassWriter(RowReader):
    """Writes the stage @next.

    Attributes:
        tables: constants that the stage needs; complete after :meth:`function`.
    """

    def __init__(
        self, program: Program, plan: Schedule, feedback: Pairs, real: Real, bounds: Bounds = ()
    ) -> None:
        super().__init__(program, plan, (), real, bounds)
        self.feedback = {k: output for output, k in feedback}
        self.prefix = "next"

    def function(self) -> str:
        """The stage @next: results to inputs, other rows to slots, sines and cosines."""
        out = self._begin()
        self._move(in_order(self._moves(), self.spare))
        mark, slot = self._load(self.input_mark), 0
        rows = self._rows()
        for k, (_, size) in enumerate(self.program.inputs):
            if size and k not in self.feedback:
                mark = self._read(k, size, self._pointers(k, rows), slot, mark)
            slot += size
        self._store(self.input_mark, mark)
        self._angles(out)
        return self._end("next")

    def _moves(self) -> list[Move]:
        """Of all that is fed back."""
        found, slot, plan = list[Move](), 0, self.plan
        for k, (_, size) in enumerate(self.program.inputs):
            if k in self.feedback:
                row = self.program.results[self.feedback[k]]
                sources = [plan.slot[r] if type(r) is int else plan.constants[r] for r in row]
                found += zip(range(slot, slot + size), sources, strict=True)
            slot += size
        return found

    def _move(self, moves: Sequence[Move]) -> None:
        """Move them one after the other, in a loop over a table of places."""
        if not moves:
            return
        words = [f"i32 {slot * self.align}" for move in moves for slot in move]
        self.tables.append(f"@moves = internal constant [{len(words)} x i32] [{', '.join(words)}]\n")
        out = self.out
        i, carried = self._loop("move", len(moves), self._constant(0.0))
        row = out.pointer("@moves", out(f"mul i64 {i}, 2"), "i32")
        places = []
        for k in range(2):
            word = out(f"load i32, ptr {out.pointer(row, k, 'i32')}, align 4")
            places.append(out.pointer("%ws", out(f"zext i32 {word} to i64"), "i8"))
        value = out(f"load {self.t}, ptr {places[1]}, align {self.align}")
        out.do(f"store {self.t} {value}, ptr {places[0]}, align {self.align}")
        self._end_loop(carried)


def in_order(moves: Sequence[Move], spare: int) -> list[Move]:
    """The moves, meant all at once, in an order in which no slot is written before it is read for good.

    Args:
        moves: at most one to each slot.
        spare: a slot that is in none of them, for those that go round in a circle.
    """
    waiting = {to: source for to, source in moves if to != source}
    readers = Counter(waiting.values())
    free = [to for to in waiting if not readers[to]]
    done: list[Move] = []
    while waiting:
        if not free:  # only circles are left: each slot is read once
            to = next(iter(waiting))
            reader = next(other for other, source in waiting.items() if source == to)
            done.append((spare, to))
            waiting[reader] = spare
            readers[to] = 0
            free.append(to)
        to = free.pop()
        source = waiting.pop(to)
        done.append((to, source))
        readers[source] -= 1
        if not readers[source] and source in waiting:
            free.append(source)
    return done
