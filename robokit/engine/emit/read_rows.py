"""Writes the first stage of a batch: the caller's rows become vectors of lanes."""

from __future__ import annotations

from robokit.engine.emit.ir import Lines, Real, number, vector
from robokit.engine.emit.tile import Tile
from robokit.engine.passes.chunks import Schedule
from robokit.engine.signature import Bounds, Pairs
from robokit.engine.trace.program import Program


class RowReader(Tile):
    """Writes the stage that reads.

    Attributes:
        tables: constants that the stage needs; complete after :meth:`function`.
        prefix: of their names.
    """

    def __init__(
        self, program: Program, plan: Schedule, quaternions: Pairs, real: Real, bounds: Bounds = ()
    ) -> None:
        super().__init__(program, plan, real)
        self.quaternions = quaternions
        self.tables: list[str] = []
        self.prefix = ""
        self.scales = {(k, offset): real.scale(most) for k, offset, most in bounds}

    def function(self) -> str:
        """The stage @read: rows to slots; marks of what is not finite or not unit; sines and cosines."""
        out, w, t = self._begin(), self.w, self.t
        mark, slot = self._load(self.input_mark), 0
        rows = self._rows()
        for k, (_, size) in enumerate(self.program.inputs):
            if size:
                mark = self._read(k, size, self._pointers(k, rows), slot, mark)
            slot += size
        self._store(self.input_mark, mark)
        if self.quaternions:
            worst = self._load(self.norm_error)
            for k, offset in self.quaternions:
                error = out.norm_error(
                    w, [self._load(self.plan.slot_of_input[k, offset + j]) for j in range(4)]
                )
                more = out(f"fcmp ogt {t} {error}, {worst}")
                worst = out(f"select {vector(w, 'i1')} {more}, {t} {error}, {t} {worst}")
            self._store(self.norm_error, worst)
        self._angles(out)
        return self._end("read")

    def _angles(self, out: Lines) -> None:
        """Sines and cosines of the inputs that are angles."""
        for run in self.plan.angles:
            first = self.plan.slot_of_input[run.input, run.offset]
            places = (out.pointer("%ws", s * self.w) for s in (first, run.sin_slot, run.cos_slot))
            pointers = ", ".join(f"ptr {p}" for p in places)
            out.do(f"call void @sincos_run({pointers}, i64 {run.count * self.w})")

    def _read(self, k: int, size: int, rows: list[str], slot: int, mark: str) -> str:
        """Read an input of that size to slots from the given one on; the mark afterwards."""
        out, w, t = self.out, self.w, self.t
        if size < w:
            for column in range(size):
                value = "undef"
                for lane, row in enumerate(rows):
                    x = out(f"load {self.kind}, ptr {out.pointer(row, column)}, align {self.real.bytes}")
                    value = out(f"insertelement {t} {value}, {self.kind} {x}, i32 {lane}")
                self._store(slot + column, value)
                if (k, column) in self.scales:  # infinite where it is beyond its bound
                    value = out(f"fmul {t} {value}, {self._constant(self.scales[k, column])}")
                mark = self._mark(mark, [value])
            return mark
        # Blocks of w columns; the last may overlap the one before.
        i, carried = self._loop(f"read{k}", -(-size // w), mark)
        first = out(f"mul i64 {i}, {w}")
        over = out(f"icmp sgt i64 {first}, {size - w}")
        j = out(f"select i1 {over}, i64 {size - w}, i64 {first}")
        values = [out(f"load {t}, ptr {out.pointer(row, j)}, align {self.real.bytes}") for row in rows]
        mark = self._mark(carried, self._scaled(k, size, j, values))
        base = out.pointer(out.pointer("%ws", slot * w), out(f"mul i64 {j}, {w}"))
        for column, value in enumerate(out.transposed(values)):
            out.do(f"store {t} {value}, ptr {out.pointer(base, column * w)}, align {self.align}")
        return self._end_loop(mark)

    def _scaled(self, k: int, size: int, j: str, values: list[str]) -> list[str]:
        """Columns j, j + 1, ... of input k, one row a vector: infinite where one is beyond its bound."""
        scales = [self.scales.get((k, column), 1.0) for column in range(size)]
        if all(scale == 1.0 for scale in scales):
            return values
        out, t = self.out, self.t
        words = ", ".join(f"{self.kind} {number(scale, self.real)}" for scale in scales)
        name = f"@{self.prefix}scales{k}"
        self.tables.append(f"{name} = internal constant [{size} x {self.kind}] [{words}]\n")
        factors = out(f"load {t}, ptr {out.pointer(name, j)}, align {self.real.bytes}")
        return [out(f"fmul {t} {value}, {factors}") for value in values]
