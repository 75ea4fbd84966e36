"""Writes long outputs of doubles: rows two by two, from pieces of two lanes.

A square of w vectors is transposed by log2(w) shuffles a vector in registers, and processors shuffle one
vector a cycle. But the columns lie in memory: their pieces of two lanes, 16 bytes, are put beside each other
as they are loaded, which takes no shuffle. Those of the even columns make one vector and those of the odd
columns another. Their first halves are one row of w numbers, their second halves the next row.

A row that begins k numbers after an aligned place is stored from that place, k columns late
(aligned_stores.py): its vectors then hold the last pieces of the columns before.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from robokit.engine.emit.ir import FLOAT64, Lines, Real, constant, vector

SUMS = 2
"""Sums of the check, so that they do not wait for each other."""

PIECE = 2
"""Doubles in 16 bytes."""


Pieces = list[tuple[str, str]]
"""For each pair of rows the vectors of its pieces: of the even columns, of the odd ones."""


def paired(lanes: int, real: Real) -> bool:
    """Whether rows are written in this way: a vector holds several pieces."""
    return lanes > PIECE and real is FLOAT64


class PairedRows:
    """Writes a loop over blocks of w columns of one output, in the function that it stands in.

    Attributes:
        tables: constants that it needs.
    """

    def __init__(self, out: Lines, name: str, lanes: int, hint: str = "", finite: bool = False) -> None:
        """What to write.

        Args:
            out: where to.
            name: prefix of its labels and tables.
            lanes: rows of a tile, 4 or more.
            hint: ending of the stores.
            finite: whether the numbers are checked.
        """
        self.out, self.name, self.w, self.hint = out, name, lanes, hint
        self.t, self.tables = vector(lanes), list[str]()
        self.marks = [constant(lanes, 0.0)] * (SUMS if finite else 0)

    def mark(self) -> str:
        """After :meth:`write`: a vector of 0, or with NaN where a number is not finite; "" without check."""
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
            slots: of the row's numbers in the workspace.
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
        pairs = range(w // PIECE if any(late) else 0)
        earlier = (
            self._pieces([out.pointer("%ws", slot * w) for slot in slots[starts[0] - w : starts[0]]])
            if pairs
            else []
        )
        carried = [*chain(*earlier), *self.marks]
        out.do(f"br label %{name}loop")
        out.do(f"{name}loop:")
        opened = len(out.lines)
        out.lines += [""] * (len(carried) + 1)
        names = [f"%{name}c{k}" for k in range(len(carried))]
        earlier = [(names[PIECE * k], names[PIECE * k + 1]) for k in pairs]
        marks = names[PIECE * len(pairs) :]
        first, places = self._line(slots, starts)
        now = self._pieces(places)
        for row, (to, delay) in enumerate(zip(rows, late, strict=True)):
            pair, half = divmod(row, PIECE)
            evens, odds = (self._late(earlier, now, pair, delay, which) for which in range(PIECE))
            value = self._halves(evens, odds, half)
            out.do(f"store {self.t} {value}, ptr {out.pointer(to, first)}, align {align}{self.hint}")
            if marks:
                zero = out(f"fmul contract {self.t} {value}, {constant(w, 0.0)}")
                marks[row % SUMS] = out(f"fadd contract {self.t} {marks[row % SUMS]}, {zero}")
        out.lines[opened] = f"%{name}i = phi i64 [0, %{before}], [%{name}n, %{name}loop]"
        after = [*chain(*now[: len(pairs)]), *marks]
        for k, (phi, begin, end) in enumerate(zip(names, carried, after, strict=True)):
            out.lines[opened + 1 + k] = f"{phi} = phi {self.t} [{begin}, %{before}], [{end}, %{name}loop]"
        out.do(f"%{name}n = add i64 %{name}i, 1")
        more = out(f"icmp ult i64 %{name}n, {len(starts)}")
        out.do(f"br i1 {more}, label %{name}loop, label %{name}end")
        out.do(f"{name}end:")
        self.marks = marks
        return f"{name}end"

    def _line(self, slots: Sequence[int], starts: Sequence[int]) -> tuple[str, list[str]]:
        """First column of a round's block, and where its columns are, from a table."""
        out, w, bytes_each = self.out, self.w, FLOAT64.bytes * self.w
        words = [x for start in starts for x in (start, *(s * bytes_each for s in slots[start : start + w]))]
        content = ", ".join(f"i32 {x}" for x in words)
        self.tables.append(f"@{self.name}table = internal constant [{len(words)} x i32] [{content}]\n")
        line = out.pointer(f"@{self.name}table", out(f"mul i64 %{self.name}i, {w + 1}"), "i32")
        found = []
        for k in range(w + 1):
            word = out(f"load i32, ptr {out.pointer(line, k, 'i32')}, align 4")
            found.append(out(f"zext i32 {word} to i64"))
        return found[0], [out.pointer("%ws", word, "i8") for word in found[1:]]

    def _pieces(self, places: Sequence[str]) -> Pieces:
        """The pieces of the columns at these places."""
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

    def _late(self, before: Pieces, now: Pieces, pair: int, delay: int, which: int) -> str:
        """Every second column of a block, from the first or second one on, so many columns late."""
        parity = (delay + which) % 2
        pieces = (delay - which + 1) // 2
        if pieces == 0:
            return now[pair][parity]
        if pieces == self.w // PIECE:
            return before[pair][parity]
        first = self.w - PIECE * pieces
        mask = ", ".join(f"i32 {first + k}" for k in range(self.w))
        t = self.t
        return self.out(
            f"shufflevector {t} {before[pair][parity]}, {t} {now[pair][parity]}, <{self.w} x i32> <{mask}>"
        )

    def _halves(self, evens: str, odds: str, half: int) -> str:
        """One row: the same lane of all pieces, by column."""
        mask = ", ".join(f"i32 {2 * (k // 2) + half + self.w * (k % 2)}" for k in range(self.w))
        return self.out(f"shufflevector {self.t} {evens}, {self.t} {odds}, <{self.w} x i32> <{mask}>")
