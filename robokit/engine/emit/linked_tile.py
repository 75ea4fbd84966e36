"""Writes the function that machine code calls in lanes: one tile, whose numbers are vectors already.

    i64 linked(ptr args, ptr ws, i64 mask)      always 0

args holds one pointer for each argument, then one for each output: element by element, the lanes of each side
by side, as the arrays of a loop kernel are (loops/emit.py); tables as ever. Nothing is checked. Outputs are
written in the lanes that the mask has (bit k for lane k), after all inputs were read: an output may be an
input too.
"""

from __future__ import annotations

from collections.abc import Sequence

from robokit.engine.emit.ir import vector
from robokit.engine.emit.rows import PAD, RowReader


class LinkedWriter(RowReader):
    """Writes the function.

    Attributes:
        tables: constants that it needs; complete after :meth:`linked`.
    """

    def linked(self, name: str, stages: Sequence[str]) -> str:
        """The function; the stages are those between reading and writing."""
        out, w, t, program = self._begin(), self.w, self.t, self.program
        out.do(f"%pad = alloca [{PAD} x i8], align 16")
        out.do("store volatile i8 0, ptr %pad")
        for number, place in self.plan.constants.items():
            self._store(place, self._constant(number))
        slot = 0
        for k, (_, size) in enumerate(program.inputs):
            if size:
                given = out.argument(k)
                i, carried = self._loop(f"in{k}", size, self._constant(0.0))
                at = out(f"mul i64 {i}, {w}")
                value = out(f"load {t}, ptr {out.pointer(given, at)}, align {self.align}")
                to = out.pointer(out.pointer("%ws", slot * w), at)
                out.do(f"store {t} {value}, ptr {to}, align {self.align}")
                self._end_loop(carried)
            slot += size
        self._angles(out)
        for stage in stages:
            out.do(f"call void @{stage}(ptr %ws, ptr %args, ptr null, i64 0, i64 {w})")
        mask = out(f"bitcast i{w} {out(f'trunc i64 %mask to i{w}')} to {vector(w, 'i1')}")
        for k, row in enumerate(program.results):
            if row:
                self._put(k, row, mask)
        body = out.text()
        heading = f"define i64 @{name}_linked(ptr %args, ptr noalias %ws, i64 %mask) #0 alignstack(64)"
        return f"{heading} {{\nentry:\n{body}\n  ret i64 0\n}}\n"

    def _put(self, k: int, row: Sequence[int | float], mask: str) -> None:
        """Write an output: a loop over the places of its numbers."""
        out, t = self.out, self.t
        slots = [self.plan.slot[r] if type(r) is int else self.plan.constants[r] for r in row]
        words = ", ".join(f"i32 {slot * self.align}" for slot in slots)
        self.tables.append(f"@linked{k} = internal constant [{len(slots)} x i32] [{words}]\n")
        to = out.argument(self.program.first_output + k)
        i, carried = self._loop(f"out{k}", len(slots), self._constant(0.0))
        word = out(f"load i32, ptr {out.pointer(f'@linked{k}', i, 'i32')}, align 4")
        value = self._load(0, out.pointer("%ws", out(f"zext i32 {word} to i64"), "i8"))
        where = out.pointer(to, out(f"mul i64 {i}, {self.w}"))
        before = out(f"load {t}, ptr {where}, align {self.align}")
        value = out(f"select {vector(self.w, 'i1')} {mask}, {t} {value}, {t} {before}")
        out.do(f"store {t} {value}, ptr {where}, align {self.align}")
        self._end_loop(carried)
