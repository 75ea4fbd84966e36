"""Writes the stages of a batch (tiles.py) that move data: rows become vectors of lanes, and back."""

from __future__ import annotations

from collections.abc import Sequence

from robokit.conventions import UNIT_QUATERNION_TOLERANCE
from robokit.engine.emit import aligned_stores as pour
from robokit.engine.emit.ir import NOT_FINITE, NOT_FINITE_OUTPUT, NOT_UNIT, Lines, Real, constant, vector
from robokit.engine.passes.chunks import Schedule
from robokit.engine.signature import Pairs
from robokit.engine.trace.program import Program

UNROLLED = 512
"""Most blocks of an output that are written without a loop."""

BLOCKS = 32
"""Blocks in one function of such lines: LLVM's time grows faster than the number of stores."""


STAGE = "ptr noalias %ws, ptr noalias %args, ptr noalias %strides, i64 %t, i64 %stop"
"""Parameters of a stage: the tile's workspace, arguments, bytes between rows, first row, end of the batch."""


class Rows:
    """Writes the stages that move data.

    Attributes:
        stride: slots of one tile's workspace, the plan's and three more.
        count: of arguments; the strides are followed by whether to write past the caches.
        pours: whether any output can be.
        tables: constants and functions that the stages need.
    """

    def __init__(
        self, program: Program, plan: Schedule, quaternions: Pairs, finite: bool, real: Real
    ) -> None:
        self.program, self.plan, self.quaternions, self.finite = program, plan, quaternions, finite
        self.real, self.kind = real, real.kind
        self.w, self.align = plan.lanes, real.bytes * plan.lanes
        self.t = vector(plan.lanes, real.kind)
        # Three slots more: marks of NaN in inputs and in outputs, largest error of a quaternion.
        self.sick_input, self.sick_output, self.worst = range(plan.slots, plan.slots + 3)
        self.stride = plan.slots + 3
        self.count = len(program.inputs) + len(program.results)
        self.pours = not finite and any(pour.worth(len(row), plan.lanes) for row in program.results)
        self.tables: list[str] = []

    def prepared(self) -> str:
        """Instructions that fill what stays the same for all tiles: constant outputs, empty marks."""
        self.out = Lines(self.real)
        marks = dict.fromkeys((self.sick_input, self.sick_output, self.worst), 0.0)
        for slot, value in [(s, v) for v, s in self.plan.constants.items()] + list(marks.items()):
            self._store(slot, self._constant(value))
        return self.out.text()

    def checked(self) -> str:
        """Instructions that add to %before what the marks of the tile at %here say: %status."""
        w, t = self.w, self.t
        out = self.out = Lines(self.real)
        status = "%before"
        for slot, part in ((self.sick_input, NOT_FINITE), (self.sick_output, NOT_FINITE_OUTPUT)):
            sum_ = self._load(slot, "%here")
            found = out.any(w, out(f"fcmp uno {t} {sum_}, {sum_}"))
            status = out(f"or i64 {status}, {out(f'select i1 {found}, i64 {part}, i64 0')}")
        limit = self._constant(UNIT_QUATERNION_TOLERANCE)
        off = out.any(w, out(f"fcmp ogt {t} {self._load(self.worst, '%here')}, {limit}"))
        out.do(f"%status = or i64 {status}, {out(f'select i1 {off}, i64 {NOT_UNIT}, i64 0')}")
        return out.text()

    def reader(self) -> str:
        """Stage: rows to slots, checks, sines and cosines."""
        out, w, t = self._begin(), self.w, self.t
        sick, slot = self._load(self.sick_input), 0
        rows = self._rows()
        for k, (_, size) in enumerate(self.program.inputs):
            if size:
                sick = self._read(k, size, self._pointers(k, rows), slot, sick)
            slot += size
        self._store(self.sick_input, sick)
        if self.quaternions:
            worst = self._load(self.worst)
            for k, offset in self.quaternions:
                error = out.norm_error(
                    w, [self._load(self.plan.slot_of_input[k, offset + j]) for j in range(4)]
                )
                more = out(f"fcmp ogt {t} {error}, {worst}")
                worst = out(f"select {vector(w, 'i1')} {more}, {t} {error}, {t} {worst}")
            self._store(self.worst, worst)
        for run in self.plan.angles:
            first = self.plan.slot_of_input[run.input, run.offset]
            places = (out.pointer("%ws", s * w) for s in (first, run.sin_slot, run.cos_slot))
            pointers = ", ".join(f"ptr {p}" for p in places)
            out.do(f"call void @sincos_run({pointers}, i64 {run.count * w})")
        return self._end("read")

    def writer(self) -> str:
        """Stage: slots to rows."""
        self._begin()
        rows = self._rows()
        sick = self._load(self.sick_output) if self.finite else ""
        for k, row in enumerate(self.program.results):
            if row:
                places = self._pointers(len(self.program.inputs) + k, rows)
                if self.pours and pour.worth(len(row), self.w):
                    self._poured(k, row, places)
                else:
                    sick = self._write(k, row, places, sick)
        if self.finite:
            self._store(self.sick_output, sick)
        return self._end("write")

    # -- pieces ----------------------------------------------------------------------------------

    def _begin(self) -> Lines:
        self.out, self.block = Lines(self.real), "entry"
        return self.out

    def _end(self, name: str) -> str:
        return f"define internal void @{name}({STAGE}) #0 {{\nentry:\n{self.out.text()}\n  ret void\n}}\n"

    def _constant(self, value: float) -> str:
        return constant(self.w, value, self.real)

    def _store(self, slot: int, value: str) -> None:
        self.out.do(
            f"store {self.t} {value}, ptr {self.out.pointer('%ws', slot * self.w)}, align {self.align}"
        )

    def _load(self, slot: int, base: str = "%ws") -> str:
        return self.out(f"load {self.t}, ptr {self.out.pointer(base, slot * self.w)}, align {self.align}")

    def _rows(self) -> list[str]:
        """Row numbers of the tile's lanes; past the end, the last row again."""
        last, rows = self.out("sub i64 %stop, 1"), []
        for lane in range(self.w):
            row = self.out(f"add i64 %t, {lane}")
            past = self.out(f"icmp sgt i64 {row}, {last}")
            rows.append(self.out(f"select i1 {past}, i64 {last}, i64 {row}"))
        return rows

    def _pointers(self, k: int, rows: list[str]) -> list[str]:
        """Where the tile's rows of argument k begin."""
        base = self.out.argument(k)
        stride = self.out(f"load i64, ptr {self.out.pointer('%strides', k, 'i64')}, align 8")
        return [self.out.pointer(base, self.out(f"mul i64 {row}, {stride}"), "i8") for row in rows]

    def _loop(self, name: str, count: int, carried: str) -> tuple[str, str]:
        """Open a loop of count rounds that carries a vector; its counter and the vector."""
        before, self.block = self.block, name
        self.out.do(f"br label %{name}")
        self.out.do(f"{name}:")
        self.out.do(f"%{name}i = phi i64 [0, %{before}], [%{name}n, %{name}]")
        # The phi names a value that is computed later: _end_loop completes it.
        self.open = (
            len(self.out.lines),
            f"%{name}c = phi {self.t} [{carried}, %{before}], [{{}}, %{name}]",
            count,
        )
        self.out.do("")
        return f"%{name}i", f"%{name}c"

    def _end_loop(self, carried: str) -> str:
        """Close the loop; the vector after it."""
        name, out = self.block, self.out
        line, phi, count = self.open
        out.lines[line] = phi.format(carried)
        out.do(f"%{name}n = add i64 %{name}i, 1")
        out.do(f"br i1 {out(f'icmp ult i64 %{name}n, {count}')}, label %{name}, label %{name}end")
        self.block = f"{name}end"
        out.do(f"{self.block}:")
        return carried

    def _mark(self, sick: str, values: list[str]) -> str:
        """The sum of sick and 0 times the values: NaN where one is NaN or infinite."""
        out, t = self.out, self.t
        marks = [out(f"fmul contract {t} {value}, {self._constant(0.0)}") for value in values]
        while len(marks) > 1:  # pairwise: a chain of sums would be the slowest part of the loop
            marks = [out(f"fadd contract {t} {a}, {b}") for a, b in zip(marks[::2], marks[1::2], strict=True)]
        return out(f"fadd {t} {sick}, {marks[0]}")

    def _table(self, words: Sequence[int]) -> str:
        """A constant table of 32-bit words; its name."""
        name = f"@table{len(self.tables)}"
        content = ", ".join(f"i32 {word}" for word in words)
        self.tables.append(f"{name} = internal constant [{len(words)} x i32] [{content}]\n")
        return name

    def _word(self, table: str, index: str) -> str:
        word = self.out(f"load i32, ptr {self.out.pointer(table, index, 'i32')}, align 4")
        return self.out(f"zext i32 {word} to i64")

    def _read(self, k: int, size: int, rows: list[str], slot: int, sick: str) -> str:
        out, w, t = self.out, self.w, self.t
        if size < w:
            for column in range(size):
                value = "undef"
                for lane, row in enumerate(rows):
                    x = out(f"load {self.kind}, ptr {out.pointer(row, column)}, align {self.real.bytes}")
                    value = out(f"insertelement {t} {value}, {self.kind} {x}, i32 {lane}")
                self._store(slot + column, value)
                sick = self._mark(sick, [value])
            return sick
        # Blocks of w columns; the last may overlap the one before.
        i, carried = self._loop(f"read{k}", -(-size // w), sick)
        first = out(f"mul i64 {i}, {w}")
        over = out(f"icmp sgt i64 {first}, {size - w}")
        j = out(f"select i1 {over}, i64 {size - w}, i64 {first}")
        values = [out(f"load {t}, ptr {out.pointer(row, j)}, align {self.real.bytes}") for row in rows]
        sick = self._mark(carried, values)
        base = out.pointer(out.pointer("%ws", slot * w), out(f"mul i64 {j}, {w}"))
        for column, value in enumerate(out.transposed(values)):
            out.do(f"store {t} {value}, ptr {out.pointer(base, column * w)}, align {self.align}")
        return self._end_loop(sick)

    def _write(self, k: int, results: Sequence[int | float], rows: list[str], sick: str) -> str:
        """Slots to rows, by way of a table: entries of equal value share a slot."""
        out, w, t, size = self.out, self.w, self.t, len(results)
        slots = self._slots(results)
        if size < w:
            for column, slot in enumerate(slots):
                value = self._load(slot)
                for lane, row in enumerate(rows):
                    x = out(f"extractelement {t} {value}, i32 {lane}")
                    out.do(f"store {self.kind} {x}, ptr {out.pointer(row, column)}, align {self.real.bytes}")
                sick = self._mark(sick, [value]) if self.finite else sick
            return sick
        starts = [*range(0, size - w, w), size - w]
        often = size % w == 0 or not pour.worth(size, w)  # others are pour.py's, but for the last tile
        if not self.finite and often and len(starts) <= UNROLLED:
            self._write_unrolled(k, slots, starts, results, rows)
            return sick
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
            return sick
        columns = self._table(rest)
        places = self._table([slots[s + c] * self.align for s in rest for c in range(w)])
        i, carried = self._loop(f"write{k}", len(rest), sick if self.finite else self._constant(0.0))
        base = out.pointer(places, out(f"mul i64 {i}, {w}"), "i32")
        values = []
        for column in range(w):
            place = out.pointer("%ws", self._word(base, str(column)), "i8")
            values.append(out(f"load {t}, ptr {place}, align {self.align}"))
        j = self._word(columns, i)
        for row, value in zip(rows, out.transposed(values), strict=True):
            out.do(f"store {t} {value}, ptr {out.pointer(row, j)}, align {self.real.bytes}")
        after = self._end_loop(self._mark(carried, values) if self.finite else carried)
        return after if self.finite else sick

    def _poured(self, k: int, results: Sequence[int | float], rows: list[str]) -> None:
        """Write a long output: in aligned vectors, and past the caches, where its place allows it."""
        out, slots, size = self.out, self._slots(results), len(results)
        names = {"past": True, "near": False} if size % self.w else {"past": True}
        for name, past in names.items():
            function = pour.Pour(f"{name}{k}", slots, self.w, self.real, past)
            self.tables += [function.function(), *function.tables]
        first, last = (out(f"ptrtoint ptr {row} to i64") for row in (rows[0], rows[-1]))
        apart = out(f"sub i64 {out(f'sub i64 {last}, {first}')}, {size * self.real.bytes * (self.w - 1)}")
        off = out(f"or i64 {apart}, {out(f'and i64 {first}, {self.align - 1}')}")
        wanted = out(f"load i64, ptr {out.pointer('%strides', self.count, 'i64')}, align 8")
        out.do(f"br i1 {out(f'icmp eq i64 {off}, 0')}, label %aligned{k}, label %anywhere{k}")
        out.do(f"aligned{k}:")
        otherwise = f"tonear{k}" if "near" in names else f"anywhere{k}"
        out.do(f"br i1 {out(f'icmp ne i64 {wanted}, 0')}, label %topast{k}, label %{otherwise}")
        for name in names:
            out.do(f"to{name}{k}:")
            out.do(f"call void @{name}{k}(ptr %ws, ptr {rows[0]})")
            out.do(f"br label %written{k}")
        out.do(f"anywhere{k}:")
        self.block = f"anywhere{k}"
        self._write(k, results, rows, "")
        out.do(f"br label %written{k}")
        self.block = f"written{k}"
        out.do(f"written{k}:")

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
        """The same as straight lines, a fifth faster: each block knows where its slots are."""
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
