"""The first and the last stage of a batch: rows of the caller's arrays become vectors of lanes, and back.

A tile is as many states as a value has lanes. Its workspace holds, for every scalar of the plan, one vector
with a lane for each state. A stage is a function that works on one tile:

    read     rows to lanes: checks of what is given, sines and cosines of angles (:class:`RowReader`)
    chunks   compute (straight_line.py)
    write    lanes to rows (:class:`RowWriter`)
    next     between two steps of a rollout, in place of write and read (:class:`PassWriter`)

:class:`LinkedWriter` writes one tile for callers in machine code, whose numbers are vectors already.

A block of w columns of w rows is a square in registers, and is transposed there. Long rows are stored in
aligned vectors, and past the caches if the outputs are larger than these: a cache line that is written in the
usual way is first fetched from memory, and later written back. The dense mass matrices of 4096 humanoids take
half the time so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain

from robokit.conventions import UNIT_QUATERNION_TOLERANCE
from robokit.engine.emit.ir import (
    FLOAT64,
    NOT_FINITE,
    NOT_FINITE_OUTPUT,
    NOT_UNIT,
    Lines,
    Real,
    constant,
    table,
    vector,
)
from robokit.engine.passes.schedule import Plan
from robokit.engine.signature import Bounds, Pairs
from robokit.engine.trace.graph import Program

STAGE = "ptr noalias %ws, ptr noalias %args, ptr noalias %strides, i64 %t, i64 %stop"
"""Parameters of a stage: the tile's workspace, arguments, bytes between rows, first row, end of the batch."""

PAD = 48
"""Bytes below an aligned stack at which stages are called: what they put there then lies aligned.

The code generator lays values that find no register 16 bytes off a stage's frame, wherever the stack
happens to be. Half of all stacks would have half of them across two lines, which costs a humanoid's ABA
4 % always and 30 % with bad luck. Aligning the stack of each stage by itself costs more than it saves.
"""


class Tile:
    """Writes instructions on a tile's workspace, and the checks of a batch.

    Beside the plan's slots, a tile has four slots of its own: a mark for the inputs and one for the outputs,
    which become NaN in the lanes where a value is NaN or infinite, the largest error of a quaternion's
    squared norm, and a spare one.

    Attributes:
        w: lanes.
        align: bytes of a vector, which begins at a multiple of it.
        t: type of a vector.
        stride: slots of one tile's workspace.
        count: of arguments; the strides are followed by whether to write past the caches.
    """

    def __init__(self, program: Program, plan: Plan, real: Real) -> None:
        self.program, self.plan = program, plan
        self.real, self.kind = real, real.kind
        self.w, self.align = plan.lanes, real.bytes * plan.lanes
        self.t = vector(plan.lanes, real.kind)
        first = plan.slots
        self.input_mark, self.output_mark, self.norm_error, self.spare = range(first, first + 4)
        self.stride = plan.slots + 4
        self.count = program.first_output + len(program.results)

    def prepared(self) -> str:
        """Instructions, once a workspace: constant outputs are stored, marks are set to 0."""
        self.out = Lines(self.real)
        marks = dict.fromkeys((self.input_mark, self.output_mark, self.norm_error), 0.0)
        for slot, value in [(s, v) for v, s in self.plan.constants.items()] + list(marks.items()):
            self._store(slot, self._constant(value))
        return self.out.text()

    def checked(self) -> str:
        """Instructions that make %status: %before and what the marks of the tile at %here show."""
        w, t = self.w, self.t
        out = self.out = Lines(self.real)
        status = "%before"
        for slot, part in ((self.input_mark, NOT_FINITE), (self.output_mark, NOT_FINITE_OUTPUT)):
            sum_ = self._load(slot, "%here")
            found = out.any(w, out(f"fcmp uno {t} {sum_}, {sum_}"))
            status = out(f"or i64 {status}, {out(f'select i1 {found}, i64 {part}, i64 0')}")
        limit = self._constant(UNIT_QUATERNION_TOLERANCE)
        off = out.any(w, out(f"fcmp ogt {t} {self._load(self.norm_error, '%here')}, {limit}"))
        out.do(f"%status = or i64 {status}, {out(f'select i1 {off}, i64 {NOT_UNIT}, i64 0')}")
        return out.text()

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
        """Number of each lane's row; lanes past the end of the batch have its last row."""
        last, rows = self.out("sub i64 %stop, 1"), []
        for lane in range(self.w):
            row = self.out(f"add i64 %t, {lane}")
            past = self.out(f"icmp sgt i64 {row}, {last}")
            rows.append(self.out(f"select i1 {past}, i64 {last}, i64 {row}"))
        return rows

    def _pointers(self, k: int, rows: list[str]) -> list[str]:
        """Addresses of the tile's rows of argument k."""
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
        phi = f"%{name}c = phi {self.t} [{carried}, %{before}], [{{}}, %{name}]"
        self.open = len(self.out.lines), phi, count
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

    def _slots(self, results: Sequence[int | float]) -> list[int]:
        """Where an output's scalars are in the workspace."""
        return [self.plan.slot[r] if type(r) is int else self.plan.constants[r] for r in results]

    def _place(self, table: str, index: str) -> str:
        """Address of a place in the workspace that a table of places has at an index."""
        word = self.out(f"load i32, ptr {self.out.pointer(table, index, 'i32')}, align 4")
        return self.out.pointer("%ws", self.out(f"zext i32 {word} to i64"), "i8")

    def _mark(self, mark: str, values: list[str]) -> str:
        """The mark plus 0 times each value: NaN in the lanes where a value is NaN or infinite."""
        out, t = self.out, self.t
        marks = [out(f"fmul contract {t} {value}, {self._constant(0.0)}") for value in values]
        while len(marks) > 1:  # pairwise: a chain of sums would be the slowest part of the loop
            marks = [out(f"fadd contract {t} {a}, {b}") for a, b in zip(marks[::2], marks[1::2], strict=True)]
        return out(f"fadd {t} {mark}, {marks[0]}")


# -- Rows to lanes ---------------------------------------------------------------------------------------


class RowReader(Tile):
    """Writes the stage that reads.

    ``tables``: constants that the stage needs; complete after :meth:`function`; ``prefix``: of their names.
    """

    def __init__(
        self, program: Program, plan: Plan, quaternions: Pairs, real: Real, bounds: Bounds = ()
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
        name = f"{self.prefix}scales{k}"
        self.tables.append(table(name, scales, self.real.dtype))
        factors = out(f"load {t}, ptr {out.pointer(f'@{name}', j)}, align {self.real.bytes}")
        return [out(f"fmul {t} {value}, {factors}") for value in values]


# -- Lanes to rows ---------------------------------------------------------------------------------------


LEAST = 32  # scalars of the shortest row that is stored in aligned vectors
PIECE = 2  # doubles in 16 bytes
SUMS = 2  # sums of the check, so that they do not wait for each other


def worth_aligning(size: int, lanes: int) -> bool:
    """Whether rows of that many scalars are stored in aligned vectors."""
    return lanes > 1 and size >= max(LEAST, 4 * lanes)


class BlockLoop:
    """Writes a loop over blocks of w columns of one output, in the function that it stands in.

    A row that begins k scalars after an aligned place is stored from that place, k columns *late*: its
    vectors then hold the last columns of the block before, which the loop carries.

    A square of w vectors is transposed by log2(w) shuffles a vector, and processors shuffle one vector a
    cycle. Doubles take fewer: their columns lie in memory, so pieces of two lanes, 16 bytes, are put beside
    each other as they are loaded, which takes no shuffle. Those of the even columns make one vector and those
    of the odd columns another. Their first halves are one row of w numbers, their second halves the next row.
    A batch of mass matrices of a humanoid takes 0.95 of the time so. ``tables``: constants that it needs.
    """

    def __init__(self, out: Lines, name: str, lanes: int, hint: str = "", finite: bool = False) -> None:
        """What to write.

        Args:
            out: where to.
            name: prefix of its labels and tables.
            lanes: rows of a tile, a power of two.
            hint: ending of the stores.
            finite: whether the scalars are checked.
        """
        self.out, self.name, self.w, self.hint = out, name, lanes, hint
        self.t, self.align = vector(lanes, out.real.kind), out.real.bytes * lanes
        self.paired = lanes > PIECE and out.real is FLOAT64
        self.zero = constant(lanes, 0.0, out.real)
        self.tables, self.marks = list[str](), [self.zero] * (SUMS if finite else 0)

    def mark(self) -> str:
        """After :meth:`write`: a vector of 0, or with NaN where a scalar is not finite; "" without check."""
        if not self.marks:
            return ""
        return self.out(f"fadd contract {self.t} {self.marks[0]}, {self.marks[1]}")

    def write(
        self,
        slots: Sequence[int],
        starts: Sequence[int],
        late: Sequence[int],
        rows: Sequence[str],
        align: int,
        before: str,
    ) -> str:
        """The loop.

        Args:
            slots: of the row's scalars in the workspace.
            starts: first columns of the blocks. Where a row is late, each block follows the one before, and
                the first one is not the row's first.
            late: by how many columns, for each row.
            rows: addresses of the rows, each its columns earlier than it begins.
            align: of the stores [bytes].
            before: label that the loop is entered from.

        Returns:
            the label after the loop.
        """
        out, w, name = self.out, self.w, self.name
        turned = self._in_pairs if self.paired else self._in_squares
        earlier: list[str] = []
        if any(late):
            first = [out.pointer("%ws", slot * w) for slot in slots[starts[0] - w : starts[0]]]
            earlier = self._history(first, late)
        carried = [*earlier, *self.marks]
        out.do(f"br label %{name}loop")
        out.do(f"{name}loop:")
        opened = len(out.lines)
        names = [f"%{name}p{k}" for k in range(len(carried))]
        out.lines += [""] * (1 + len(names))
        marks = names[len(earlier) :]
        column, places = self._line(slots, starts)
        values, after = turned(places, names[: len(earlier)], late)
        for row, (to, value) in enumerate(zip(rows, values, strict=True)):
            out.do(f"store {self.t} {value}, ptr {out.pointer(to, column)}, align {align}{self.hint}")
            if marks:
                none = out(f"fmul contract {self.t} {value}, {self.zero}")
                marks[row % SUMS] = out(f"fadd contract {self.t} {marks[row % SUMS]}, {none}")
        out.lines[opened] = f"%{name}i = phi i64 [0, %{before}], [%{name}n, %{name}loop]"
        for k, (phi, begin, end) in enumerate(zip(names, carried, [*after, *marks], strict=True)):
            out.lines[opened + 1 + k] = f"{phi} = phi {self.t} [{begin}, %{before}], [{end}, %{name}loop]"
        out.do(f"%{name}n = add i64 %{name}i, 1")
        more = out(f"icmp ult i64 %{name}n, {len(starts)}")
        out.do(f"br i1 {more}, label %{name}loop, label %{name}end")
        out.do(f"{name}end:")
        self.marks = marks
        return f"{name}end"

    def _line(self, slots: Sequence[int], starts: Sequence[int]) -> tuple[str, list[str]]:
        """First column of a round's block, and where its columns are, from a table."""
        out, w = self.out, self.w
        words = [x for start in starts for x in (start, *(s * self.align for s in slots[start : start + w]))]
        self.tables.append(table(f"{self.name}table", words))
        line = out.pointer(f"@{self.name}table", out(f"mul i64 %{self.name}i, {w + 1}"), "i32")
        found = []
        for k in range(w + 1):
            word = out(f"load i32, ptr {out.pointer(line, k, 'i32')}, align 4")
            found.append(out(f"zext i32 {word} to i64"))
        return found[0], [out.pointer("%ws", word, "i8") for word in found[1:]]

    def _history(self, places: Sequence[str], late: Sequence[int]) -> list[str]:
        """What the first block needs of the one before, whose columns are at these places."""
        if self.paired:
            return [*chain(*self._pieces(places))]
        return self._delayed(self._loaded(places), None, late)[1]

    def _loaded(self, places: Sequence[str]) -> list[str]:
        return [self.out(f"load {self.t}, ptr {place}, align {self.align}") for place in places]

    # -- squares ---------------------------------------------------------------------------------

    def _in_squares(
        self, places: Sequence[str], earlier: list[str], late: Sequence[int]
    ) -> tuple[list[str], list[str]]:
        """The rows of a block whose columns are at these places, and what the next block needs of it."""
        columns, after = self._delayed(self._loaded(places), earlier, late)
        return self.out.transposed(columns), after

    def _delayed(
        self, values: list[str], history: list[str] | None, late: Sequence[int]
    ) -> tuple[list[str], list[str]]:
        """Delay each lane by the columns by which its row is late.

        Column c of the result holds, in each lane, the scalar of column c - late of that lane's row. The
        delay is made digit by digit, in binary: for each digit, the lanes whose delay has it take their
        scalars from `digit` columns earlier, by one shuffle a column. For the first columns of a block these
        come from the block before. ``values``: w columns; ``history``: the last columns of the block before,
        as returned; None at the first block; ``late``: by how many columns, for each row. Returns the w
        delayed columns, and the history for the next block.
        """
        left, arguments, digit = [], list(history or ()), 1
        while digit < self.w:
            moved = [bool(off & digit) for off in late]
            if any(moved):
                earlier = arguments[:digit] if history is not None else values[:digit]
                del arguments[:digit]
                mask = ", ".join(f"i32 {k + self.w * m}" for k, m in enumerate(moved))
                both = zip(values, [*earlier, *values], strict=False)
                left += values[-digit:]
                values = [
                    self.out(f"shufflevector {self.t} {a}, {self.t} {b}, <{self.w} x i32> <{mask}>")
                    for a, b in both
                ]
            digit *= 2
        return values, left

    # -- pieces of two lanes ---------------------------------------------------------------------

    def _in_pairs(
        self, places: Sequence[str], earlier: list[str], late: Sequence[int]
    ) -> tuple[Iterator[str], list[str]]:
        """As :meth:`_in_squares`, of doubles."""
        now = self._pieces(places)

        def rows() -> Iterator[str]:
            for row, delay in enumerate(late):
                pair, half = divmod(row, PIECE)
                before = tuple(earlier[2 * pair : 2 * pair + 2])
                evens, odds = (self._late(before, now[pair], delay, which) for which in range(PIECE))
                yield self._halves(evens, odds, half)

        return rows(), [*chain(*now)] if earlier else []

    def _pieces(self, places: Sequence[str]) -> list[tuple[str, str]]:
        """For each pair of rows the vectors of its pieces: of the even columns, of the odd ones."""
        found = []
        for pair in range(self.w // PIECE):
            pieces = []
            for place in places:
                at = self.out.pointer(place, PIECE * pair)
                pieces.append(self.out(f"load <2 x double>, ptr {at}, align 16"))
            found.append((self._joined(pieces[::2]), self._joined(pieces[1::2])))
        return found

    def _joined(self, parts: list[str]) -> str:
        """Vectors side by side."""
        width = PIECE
        while len(parts) > 1:
            mask = ", ".join(f"i32 {k}" for k in range(2 * width))
            t = vector(width)
            parts = [
                self.out(f"shufflevector {t} {a}, {t} {b}, <{2 * width} x i32> <{mask}>")
                for a, b in zip(parts[::2], parts[1::2], strict=True)
            ]
            width *= 2
        return parts[0]

    def _late(self, before: Sequence[str], now: Sequence[str], delay: int, which: int) -> str:
        """Every second column of a block, from the first or second one on, so many columns late."""
        parity = (delay + which) % 2
        pieces = (delay - which + 1) // 2
        if pieces == 0:
            return now[parity]
        if pieces == self.w // PIECE:
            return before[parity]
        first = self.w - PIECE * pieces
        mask = ", ".join(f"i32 {first + k}" for k in range(self.w))
        t = self.t
        return self.out(f"shufflevector {t} {before[parity]}, {t} {now[parity]}, <{self.w} x i32> <{mask}>")

    def _halves(self, evens: str, odds: str, half: int) -> str:
        """One row: the same lane of all pieces, by column."""
        mask = ", ".join(f"i32 {2 * (k // 2) + half + self.w * (k % 2)}" for k in range(self.w))
        return self.out(f"shufflevector {self.t} {evens}, {self.t} {odds}, <{self.w} x i32> <{mask}>")


def aligned_rows(
    name: str, slots: Sequence[int], lanes: int, real: Real, past: bool, finite: bool = False
) -> list[str]:
    """A function `void @name(ptr ws, ptr to)`: a tile's rows to an aligned place; and its constants.

    The rows of a tile together begin and end at an aligned place; each begins anywhere between two. The few
    vectors that hold the end of one row and the beginning of the next are put together scalar by scalar.
    Where the scalars are checked, the function's value is 0, or NaN in some lane if one is not finite.

    Args:
        name: of the function.
        slots: of the row's scalars in the workspace.
        lanes: rows of a tile, a power of two.
        real: of the scalars.
        past: whether to write past the caches.
        finite: whether the scalars are checked.
    """
    w, size, out, t = lanes, len(slots), Lines(real), vector(lanes, real.kind)
    align, hint = real.bytes * lanes, ", !nontemporal !{i32 1}" if past else ""
    late = [lane * size % w for lane in range(w)]
    begins = [lane * size - late[lane] for lane in range(w)]
    blocks = [w * block for block in range(1, size // w - 1)]
    loop = BlockLoop(out, name, w, hint, finite)
    loop.write(slots, blocks, late, [out.pointer("%to", place) for place in begins], align, "entry")
    mark = loop.mark()
    done = {begin + block for begin in begins for block in blocks}
    for element in sorted(set(range(0, w * size, w)) - done):
        value = "undef"
        for k in range(w):
            lane, column = divmod(element + k, size)
            place = out.pointer("%ws", slots[column] * w + lane)
            x = out(f"load {real.kind}, ptr {place}, align {real.bytes}")
            value = out(f"insertelement {t} {value}, {real.kind} {x}, i32 {k}")
        out.do(f"store {t} {value}, ptr {out.pointer('%to', element)}, align {align}{hint}")
        if mark:
            none = out(f"fmul contract {t} {value}, {constant(w, 0.0, real)}")
            mark = out(f"fadd contract {t} {mark}, {none}")
    kind, result = (t, f" {mark}") if mark else ("void", "")
    heading = f"define internal {kind} @{name}(ptr noalias %ws, ptr noalias %to) #0"
    return [f"{heading} {{\nentry:\n{out.text()}\n  ret {kind}{result}\n}}\n", *loop.tables]


class RowWriter(Tile):
    """Writes the stage that writes.

    ``finite``: whether outputs are checked; ``past_caches``: whether any output can be written past the
    caches; ``tables``: constants and functions that the stage needs; complete after :meth:`function`.
    """

    def __init__(self, program: Program, plan: Plan, finite: bool, real: Real) -> None:
        super().__init__(program, plan, real)
        self.finite = finite
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
        out, w, size = self.out, self.w, len(results)
        slots = self._slots(results)
        if size < w:
            for column, slot in enumerate(slots):
                value = self._load(slot)
                for lane, row in enumerate(rows):
                    x = out(f"extractelement {self.t} {value}, i32 {lane}")
                    out.do(f"store {self.kind} {x}, ptr {out.pointer(row, column)}, align {self.real.bytes}")
                mark = self._mark(mark, [value]) if self.finite else mark
            return mark
        loop = BlockLoop(out, f"write{k}", w, finite=self.finite)
        starts = [*range(0, size - w, w), size - w]  # the last may overlap the one before
        self.block = loop.write(slots, starts, [0] * w, rows, self.real.bytes, self.block)
        self.tables += loop.tables
        return out(f"fadd {self.t} {mark}, {loop.mark()}") if self.finite else mark

    def _write_aligned(self, k: int, results: Sequence[int | float], rows: list[str], mark: str) -> str:
        """Write a long output in aligned vectors, and past the caches, if its rows lie so that it can be."""
        out, slots, size = self.out, self._slots(results), len(results)
        names = {"past": True, "near": False}
        for name, past in names.items():
            self.tables += aligned_rows(f"{name}{k}", slots, self.w, self.real, past, self.finite)
        first, last = (out(f"ptrtoint ptr {row} to i64") for row in (rows[0], rows[-1]))
        apart = out(f"sub i64 {out(f'sub i64 {last}, {first}')}, {size * self.real.bytes * (self.w - 1)}")
        off = out(f"or i64 {apart}, {out(f'and i64 {first}, {self.align - 1}')}")
        wanted = out(f"load i64, ptr {out.pointer('%strides', self.count, 'i64')}, align 8")
        out.do(f"br i1 {out(f'icmp eq i64 {off}, 0')}, label %aligned{k}, label %anywhere{k}")
        out.do(f"aligned{k}:")
        out.do(f"br i1 {out(f'icmp ne i64 {wanted}, 0')}, label %topast{k}, label %tonear{k}")
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


# -- Between two steps of a rollout ----------------------------------------------------------------------


Move = tuple[int, int]  # (slot to, slot from)


class PassWriter(RowReader):
    """Writes the stage @next. ``tables``: constants that the stage needs; complete after :meth:`function`."""

    def __init__(
        self, program: Program, plan: Plan, feedback: Pairs, real: Real, bounds: Bounds = ()
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
        found, slot = list[Move](), 0
        for k, (_, size) in enumerate(self.program.inputs):
            if k in self.feedback:
                sources = self._slots(self.program.results[self.feedback[k]])
                found += zip(range(slot, slot + size), sources, strict=True)
            slot += size
        return found

    def _move(self, moves: Sequence[Move]) -> None:
        """Move them one after the other, in a loop over a table of places."""
        if not moves:
            return
        self.tables.append(table("moves", [slot * self.align for move in moves for slot in move]))
        out = self.out
        i, carried = self._loop("move", len(moves), self._constant(0.0))
        row = out.pointer("@moves", out(f"mul i64 {i}, 2"), "i32")
        places = [self._place(row, str(k)) for k in range(2)]
        value = out(f"load {self.t}, ptr {places[1]}, align {self.align}")
        out.do(f"store {self.t} {value}, ptr {places[0]}, align {self.align}")
        self._end_loop(carried)


def in_order(moves: Sequence[Move], spare: int) -> list[Move]:
    """The moves, meant all at once, in an order in which no slot is written before it is read for good.

    ``moves``: at most one to each slot; ``spare``: a slot that is in none of them, for those that go round in
    a circle.
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


# -- One tile in lanes -----------------------------------------------------------------------------------
#
# The function that machine code calls in lanes: one tile, whose numbers are vectors already.
#
#     i64 linked(ptr args, ptr ws, i64 mask)      always 0
#
# args holds one pointer for each argument, then one for each output: element by element, the lanes of each
# side by side, as the arrays of a loop kernel are (loops/emit.py). Nothing is checked.
# Outputs are written in the lanes that the mask has (bit k for lane k), after all inputs were read: an output
# may be an input too.


class LinkedWriter(RowReader):
    """Writes the function. ``tables``: constants that it needs; complete after :meth:`linked`."""

    def linked(self, name: str, stages: Sequence[str]) -> str:
        """The function; the stages are those between reading and writing."""
        out, w, t, program = self._begin(), self.w, self.t, self.program
        out.do(f"%pad = alloca [{PAD} x i8], align 16")
        out.do("store volatile i8 0, ptr %pad")
        for constant_value, place in self.plan.constants.items():
            self._store(place, self._constant(constant_value))
        slot = 0
        for k, (_, size) in enumerate(program.inputs):
            if size:
                array = out.argument(k)
                i, carried = self._loop(f"in{k}", size, self._constant(0.0))
                at = out(f"mul i64 {i}, {w}")
                value = out(f"load {t}, ptr {out.pointer(array, at)}, align {self.align}")
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
        slots = self._slots(row)
        self.tables.append(table(f"linked{k}", [slot * self.align for slot in slots]))
        to = out.argument(self.program.first_output + k)
        i, carried = self._loop(f"out{k}", len(slots), self._constant(0.0))
        value = self._load(0, self._place(f"@linked{k}", i))
        where = out.pointer(to, out(f"mul i64 {i}, {self.w}"))
        before = out(f"load {t}, ptr {where}, align {self.align}")
        value = out(f"select {vector(self.w, 'i1')} {mask}, {t} {value}, {t} {before}")
        out.do(f"store {t} {value}, ptr {where}, align {self.align}")
        self._end_loop(carried)
