"""Writes the last stage of a batch: vectors of lanes become the caller's rows."""

from __future__ import annotations

from collections.abc import Sequence

from robokit.engine.emit.aligned_stores import AlignedStores, worth_aligning
from robokit.engine.emit.ir import Lines, Real
from robokit.engine.emit.paired_rows import PairedRows, paired
from robokit.engine.emit.tile import Tile
from robokit.engine.passes.chunks import Schedule
from robokit.engine.trace.program import Program

UNROLLED = 512
"""Most blocks of w columns of an output that are written without a loop."""

BLOCKS = 32
"""Of these in one function: LLVM's time grows faster than the number of stores."""


class RowWriter(Tile):
    """Writes the stage that writes.

    Attributes:
        finite: whether outputs are checked.
        past_caches: whether any output can be written past the caches.
        tables: constants and functions that the stage needs; complete after :meth:`function`.
    """

    def __init__(self, program: Program, plan: Schedule, finite: bool, real: Real) -> None:
        super().__init__(program, plan, real)
        self.finite = finite
        self.paired = paired(self.w, real)
        self.past_caches = any(worth_aligning(len(row), self.w) for row in program.results)
        self.tables: list[str] = []

    def function(self) -> str:
        """The stage @write: slots to rows; marks what is not finite, where that is asked for."""
        self._begin()
        rows = self._rows()
        mark = self._load(self.output_mark) if self.finite else ""
        for k, row in enumerate(self.program.results):
            if row:
                places = self._pointers(self.program.first_output + k, rows)
                if self.past_caches and worth_aligning(len(row), self.w):
                    mark = self._write_aligned(k, row, places, mark)
                else:
                    mark = self._write(k, row, places, mark)
        if self.finite:
            self._store(self.output_mark, mark)
        return self._end("write")

    def _write(self, k: int, results: Sequence[int | float], rows: list[str], mark: str) -> str:
        """Write an output wherever its rows lie; the mark afterwards. Entries of equal value share a slot."""
        out, w, t, size = self.out, self.w, self.t, len(results)
        slots = self._slots(results)
        if size < w:
            for column, slot in enumerate(slots):
                value = self._load(slot)
                for lane, row in enumerate(rows):
                    x = out(f"extractelement {t} {value}, i32 {lane}")
                    out.do(f"store {self.kind} {x}, ptr {out.pointer(row, column)}, align {self.real.bytes}")
                mark = self._mark(mark, [value]) if self.finite else mark
            return mark
        starts = [*range(0, size - w, w), size - w]
        # Long rows that do not end aligned come here in the last tile only: a loop will do for them.
        often = not worth_aligning(size, w) or (size % w == 0 and not self.paired)
        if not self.finite and often and len(starts) <= UNROLLED:
            self._write_unrolled(k, slots, starts, results, rows)
            return mark
        zero = [s for s in starts if all(r == 0.0 and type(r) is float for r in results[s : s + w])]
        empty = set(zero)
        rest = [s for s in starts if s not in empty]
        if zero:
            columns = self._table(zero)
            i, carried = self._loop(f"zero{k}", len(zero), self._constant(0.0))
            j = self._word(columns, i)
            for row in rows:
                out.do(f"store {t} {self._constant(0.0)}, ptr {out.pointer(row, j)}, align {self.real.bytes}")
            self._end_loop(carried)
        if not rest:
            return mark
        if self.paired:
            by_pairs = PairedRows(out, f"write{k}", w, finite=self.finite)
            self.block = by_pairs.write(slots, rest, [0] * w, rows, self.real.bytes, self.block)
            self.tables += by_pairs.tables
            return out(f"fadd {t} {mark}, {by_pairs.mark()}") if self.finite else mark
        columns = self._table(rest)
        places = self._table([slots[s + c] * self.align for s in rest for c in range(w)])
        i, carried = self._loop(f"write{k}", len(rest), mark if self.finite else self._constant(0.0))
        base = out.pointer(places, out(f"mul i64 {i}, {w}"), "i32")
        values = []
        for column in range(w):
            place = out.pointer("%ws", self._word(base, str(column)), "i8")
            values.append(out(f"load {t}, ptr {place}, align {self.align}"))
        j = self._word(columns, i)
        for row, value in zip(rows, out.transposed(values), strict=True):
            out.do(f"store {t} {value}, ptr {out.pointer(row, j)}, align {self.real.bytes}")
        after = self._end_loop(self._mark(carried, values) if self.finite else carried)
        return after if self.finite else mark

    def _write_aligned(self, k: int, results: Sequence[int | float], rows: list[str], mark: str) -> str:
        """Write a long output in aligned vectors, and past the caches, if its rows lie so that it can be."""
        out, slots, size = self.out, self._slots(results), len(results)
        # Where w divides the size, all rows are aligned, and the usual way is as good near the caches.
        names = (
            {"past": True, "near": False} if size % self.w or self.paired or self.finite else {"past": True}
        )
        for name, past in names.items():
            function = AlignedStores(f"{name}{k}", slots, self.w, self.real, past, self.finite)
            self.tables += [function.function(), *function.tables]
        first, last = (out(f"ptrtoint ptr {row} to i64") for row in (rows[0], rows[-1]))
        apart = out(f"sub i64 {out(f'sub i64 {last}, {first}')}, {size * self.real.bytes * (self.w - 1)}")
        off = out(f"or i64 {apart}, {out(f'and i64 {first}, {self.align - 1}')}")
        wanted = out(f"load i64, ptr {out.pointer('%strides', self.count, 'i64')}, align 8")
        out.do(f"br i1 {out(f'icmp eq i64 {off}, 0')}, label %aligned{k}, label %anywhere{k}")
        out.do(f"aligned{k}:")
        otherwise = f"tonear{k}" if "near" in names else f"anywhere{k}"
        out.do(f"br i1 {out(f'icmp ne i64 {wanted}, 0')}, label %topast{k}, label %{otherwise}")
        ways = []
        for name in names:
            out.do(f"to{name}{k}:")
            if self.finite:
                found = out(f"call {self.t} @{name}{k}(ptr %ws, ptr {rows[0]})")
                ways.append(f"[{out(f'fadd {self.t} {mark}, {found}')}, %to{name}{k}]")
            else:
                out.do(f"call void @{name}{k}(ptr %ws, ptr {rows[0]})")
            out.do(f"br label %written{k}")
        out.do(f"anywhere{k}:")
        self.block = f"anywhere{k}"
        found = self._write(k, results, rows, mark)
        ways.append(f"[{found}, %{self.block}]")
        out.do(f"br label %written{k}")
        self.block = f"written{k}"
        out.do(f"written{k}:")
        return out(f"phi {self.t} {', '.join(ways)}") if self.finite else mark

    def _slots(self, results: Sequence[int | float]) -> list[int]:
        """Where an output's scalars are in the workspace."""
        return [self.plan.slot[r] if type(r) is int else self.plan.constants[r] for r in results]

    def _write_unrolled(
        self,
        k: int,
        slots: list[int],
        starts: list[int],
        results: Sequence[int | float],
        rows: list[str],
    ) -> None:
        """As :meth:`_write`, without loops: a fifth faster, because places are part of the instructions."""
        outer, w, t = self.out, self.w, self.t
        given = [f"%r{lane}" for lane in range(w)]
        parameters = ", ".join(["ptr noalias %ws", *(f"ptr {r}" for r in given)])
        for part in range(0, len(starts), BLOCKS):
            self.out = out = Lines(self.real)
            for start in starts[part : part + BLOCKS]:
                if all(type(r) is float and r == 0.0 for r in results[start : start + w]):
                    values = [self._constant(0.0)] * w
                else:
                    values = out.transposed([self._load(slot) for slot in slots[start : start + w]])
                for row, value in zip(given, values, strict=True):
                    out.do(f"store {t} {value}, ptr {out.pointer(row, start)}, align {self.real.bytes}")
            name = f"@write{k}x{part}"
            self.tables.append(
                f"define internal void {name}({parameters}) #0 {{\n{out.text()}\n  ret void\n}}\n"
            )
            outer.do(f"call void {name}(ptr %ws, {', '.join(f'ptr {row}' for row in rows)})")
        self.out = outer

    def _table(self, words: Sequence[int]) -> str:
        """A constant table of 32-bit words; its name."""
        name = f"@table{len(self.tables)}"
        content = ", ".join(f"i32 {word}" for word in words)
        self.tables.append(f"{name} = internal constant [{len(words)} x i32] [{content}]\n")
        return name

    def _word(self, table: str, index: str) -> str:
        word = self.out(f"load i32, ptr {self.out.pointer(table, index, 'i32')}, align 4")
        return self.out(f"zext i32 {word} to i64")
