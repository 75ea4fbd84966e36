"""The tile of a batch, and the instructions that all its stages share.

A tile is as many states as a value has lanes. Its workspace holds, for every scalar of the plan, one vector
with a lane for each state. A stage is a function that works on one tile: read_rows.py and write_rows.py move
data between the caller's rows and the vectors, straight_line.py computes.
"""

from __future__ import annotations

from robokit.conventions import UNIT_QUATERNION_TOLERANCE
from robokit.engine.emit.ir import NOT_FINITE, NOT_FINITE_OUTPUT, NOT_UNIT, Lines, Real, constant, vector
from robokit.engine.passes.chunks import Schedule
from robokit.engine.trace.program import Program

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

    def __init__(self, program: Program, plan: Schedule, real: Real) -> None:
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

    def _mark(self, mark: str, values: list[str]) -> str:
        """The mark plus 0 times each value: NaN in the lanes where a value is NaN or infinite."""
        out, t = self.out, self.t
        marks = [out(f"fmul contract {t} {value}, {self._constant(0.0)}") for value in values]
        while len(marks) > 1:  # pairwise: a chain of sums would be the slowest part of the loop
            marks = [out(f"fadd contract {t} {a}, {b}") for a, b in zip(marks[::2], marks[1::2], strict=True)]
        return out(f"fadd {t} {mark}, {marks[0]}")
