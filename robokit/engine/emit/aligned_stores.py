"""Writes long outputs in aligned vectors and, if they are larger than the caches, directly to memory.

A row of a humanoid's matrix may begin anywhere between two aligned places. Every second vector stored from
there would lie across two cache lines. So a row is stored from the aligned place before it: if the row begins
k scalars after that place, its lane is delayed by k columns as columns are turned into rows (paired_rows.py
for doubles). The few vectors that hold the end of one row and the beginning of the next are put together
scalar by scalar. All rows of a tile together begin and end at an aligned place.

A cache line that is written in the usual way is first fetched from memory, and later written back. Stores
past the caches, which must be aligned, skip the fetch and leave the caches' content alone: the dense mass
matrix of 4096 humanoids takes half the time.
"""

from __future__ import annotations

from collections.abc import Sequence

from robokit.engine.emit.ir import Lines, Real, constant, vector
from robokit.engine.emit.paired_rows import PairedRows, paired

LEAST = 32
"""Scalars of the shortest row that is written in this way."""


def worth_aligning(size: int, lanes: int) -> bool:
    """Whether rows of that many scalars are written in aligned vectors."""
    return lanes > 1 and size >= max(LEAST, 4 * lanes)


class AlignedStores:
    """Writes a function `void @name(ptr ws, ptr to)` for one output: a tile's rows to an aligned place.

    Where the scalars are checked, the function's value is 0, or NaN in some lane if one is not finite.

    Attributes:
        tables: constants that it needs.
    """

    def __init__(
        self, name: str, slots: Sequence[int], lanes: int, real: Real, past: bool, finite: bool = False
    ) -> None:
        """What to write.

        Args:
            name: of the function.
            slots: of the row's scalars in the workspace.
            lanes: rows of a tile, a power of two.
            real: of the scalars.
            past: whether to write past the caches.
            finite: whether the scalars are checked.
        """
        self.finite = finite
        self.name, self.slots, self.w, self.real = name, slots, lanes, real
        self.hint = ", !nontemporal !{i32 1}" if past else ""
        self.t, self.align = vector(lanes, real.kind), real.bytes * lanes
        self.size = len(slots)
        self.off = [lane * self.size % lanes for lane in range(lanes)]
        self.first, self.last = 1, self.size // lanes - 1
        self.tables: list[str] = []

    def function(self) -> str:
        """The function."""
        out = self.out = Lines(self.real)
        starts = [self._place(lane * self.size - self.off[lane]) for lane in range(self.w)]
        mark = self._in_pairs(starts) if paired(self.w, self.real) else self._in_squares(starts)
        for element in self._seams():
            value = self._gathered(element)
            self._store(value, self._place(element))
            if mark:
                zero = out(f"fmul contract {self.t} {value}, {constant(self.w, 0.0, self.real)}")
                mark = out(f"fadd contract {self.t} {mark}, {zero}")
        kind, value = (self.t, f" {mark}") if mark else ("void", "")
        return (
            f"define internal {kind} @{self.name}(ptr noalias %ws, ptr noalias %to) #0 {{\n"
            f"entry:\n{out.text()}\n  ret {kind}{value}\n}}\n"
        )

    def _in_pairs(self, starts: list[str]) -> str:
        """The loop over blocks of columns; the mark of its check, if there is one."""
        rows = PairedRows(self.out, self.name, self.w, self.hint, self.finite)
        blocks = [self.w * block for block in range(self.first, self.last)]
        rows.write(self.slots, blocks, self.off, starts, self.align, "entry")
        self.tables += rows.tables
        return rows.mark()

    def _in_squares(self, starts: list[str]) -> str:
        """The same by transposing squares of vectors."""
        out, w, zeros = self.out, self.w, constant(self.w, 0.0, self.real)
        history = self._delayed([self._load(slot) for slot in self.slots[:w]], None)[1]
        blocks = range(self.first, self.last)
        places = [slot * self.align for slot in self.slots[self.first * w : self.last * w]]
        self.tables.append(
            f"@{self.name}places = internal constant [{len(places)} x i32] "
            f"[{', '.join(f'i32 {place}' for place in places)}]\n"
        )
        out.do("br label %block")
        out.do("block:")
        out.do("%b = phi i64 [0, %entry], [%next, %block]")
        phis = len(out.lines)
        names = [f"%h{k}" for k in range(len(history))]
        out.lines += [""] * (len(names) + self.finite)
        row = out.pointer(f"@{self.name}places", out(f"mul i64 %b, {w}"), "i32")
        values = []
        for column in range(w):
            word = out(f"load i32, ptr {out.pointer(row, column, 'i32')}, align 4")
            place = out.pointer("%ws", out(f"zext i32 {word} to i64"), "i8")
            values.append(out(f"load {self.t}, ptr {place}, align {self.align}"))
        columns, after = self._delayed(values, names)
        if self.finite:
            parts = [out(f"fmul contract {self.t} {value}, {zeros}") for value in columns]
            while len(parts) > 1:
                pairs = zip(parts[::2], parts[1::2], strict=True)
                parts = [out(f"fadd contract {self.t} {a}, {b}") for a, b in pairs]
            mark = out(f"fadd {self.t} %mark, {parts[0]}")
            out.lines[phis + len(names)] = f"%mark = phi {self.t} [{zeros}, %entry], [{mark}, %block]"
        at = out(f"mul i64 {out(f'add i64 %b, {self.first}')}, {w}")
        for start, value in zip(starts, out.transposed(columns), strict=True):
            self._store(value, out.pointer(start, at))
        for k, (name, before, now) in enumerate(zip(names, history, after, strict=True)):
            out.lines[phis + k] = f"{name} = phi {self.t} [{before}, %entry], [{now}, %block]"
        out.do("%next = add i64 %b, 1")
        out.do(f"br i1 {out(f'icmp ult i64 %next, {len(blocks)}')}, label %block, label %seams")
        out.do("seams:")
        return mark if self.finite else ""

    def _seams(self) -> list[int]:
        """First elements of the aligned vectors that the loop does not write: two rows meet in them."""
        w, done = self.w, set()
        for lane, off in enumerate(self.off):
            start = lane * self.size - off
            done |= {start + w * b for b in range(self.first, self.last)}
        return [element for element in range(0, w * self.size, w) if element not in done]

    def _delayed(self, values: list[str], history: list[str] | None) -> tuple[list[str], list[str]]:
        """Delay each lane by the number of scalars by which its row begins after an aligned place.

        Column c of the result holds, in each lane, the scalar of column c - off of that lane's row. The delay
        is made digit by digit, in binary: for each digit, the lanes whose delay has it take their scalars
        from `digit` columns earlier, by one shuffle a column. For the first columns of a block these come
        from the block before.

        Args:
            values: w columns.
            history: the last columns of the block before, as returned; None at the first block.

        Returns:
            the w delayed columns, and the history for the next block.
        """
        left, given, digit = [], list(history or ()), 1
        while digit < self.w:
            moved = [bool(off & digit) for off in self.off]
            if any(moved):
                earlier = given[:digit] if history is not None else values[:digit]
                del given[:digit]
                mask = ", ".join(f"i32 {k + self.w * m}" for k, m in enumerate(moved))
                both = zip(values, [*earlier, *values], strict=False)
                left += values[-digit:]
                values = [
                    self.out(f"shufflevector {self.t} {a}, {self.t} {b}, <{self.w} x i32> <{mask}>")
                    for a, b in both
                ]
            digit *= 2
        return values, left

    def _gathered(self, element: int) -> str:
        """A vector of consecutive elements of the tile's rows, loaded one by one."""
        value, out = "undef", self.out
        for k in range(self.w):
            lane, column = divmod(element + k, self.size)
            place = out.pointer("%ws", self.slots[column] * self.w + lane)
            x = out(f"load {self.real.kind}, ptr {place}, align {self.real.bytes}")
            value = out(f"insertelement {self.t} {value}, {self.real.kind} {x}, i32 {k}")
        return value

    def _load(self, slot: int) -> str:
        return self.out(f"load {self.t}, ptr {self.out.pointer('%ws', slot * self.w)}, align {self.align}")

    def _place(self, element: int) -> str:
        return self.out.pointer("%to", element)

    def _store(self, value: str, place: str) -> None:
        self.out.do(f"store {self.t} {value}, ptr {place}, align {self.align}{self.hint}")
