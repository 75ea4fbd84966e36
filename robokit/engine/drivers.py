"""Writes the functions that callers see: they move data, check it and run the chunks.

    i64 single(ptr args, ptr ws)                                 one state
    i64 iterate(ptr args, ptr ws, i64 steps)                     outputs fed back into inputs
    i64 batch(ptr args, ptr strides, ptr ws, i64 start, i64 stop)   rows start..stop of a batch

args holds one pointer per input, then one per output. Rows are contiguous; strides are the bytes between
the rows of each argument, 0 to use one row for the whole batch. The status is the sum of 1 (an input is
NaN or infinite) and 2 (a quaternion is not of unit length); nothing is computed for a single state whose
status is not 0.

Batches go through the chunks in tiles of one vector width. The rows of a tile are turned into vectors and
back here, by shuffles in registers: NumPy's transpose would cost half of an inverse dynamics. A tile past
the end repeats the last row: all its lanes compute and store the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from robokit.conventions import UNIT_QUATERNION_TOLERANCE
from robokit.engine import sincos
from robokit.engine.chunks import ChunkWriter
from robokit.engine.graph import Program
from robokit.engine.schedule import Schedule, schedule
from robokit.engine.text import constant, number, suffix, vector

CHUNK = 700
"""Nodes per chunk: 400 to 1,000 measure the same."""

GROUP = 4
"""Tiles that go through a chunk before the next one is fetched."""

NOT_FINITE, NOT_UNIT = 1, 2

Quaternions = Sequence[tuple[int, int]]

_HEADER = """declare double @llvm.fabs.f64(double)
declare double @llvm.sqrt.f64(double)
"""
# 512-bit registers are used where the CPU has them, also on those whose tuning prefers 256.
_ATTRIBUTES = (
    'attributes #0 = { noinline nounwind "prefer-vector-width"="512" "min-legal-vector-width"="512" }\n'
)


def _module(parts: list[str], lanes: set[int]) -> str:
    declared = "".join(
        f"declare {vector(n)} @llvm.{f}.{suffix(n)}({vector(n)})\n" for n in lanes - {1} for f in ("fabs", "sqrt")
    )
    return "\n".join([_HEADER + declared, *parts, _ATTRIBUTES])


class _Lines:
    """Instructions under construction; values get fresh names."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.count = 0

    def __call__(self, instruction: str) -> str:
        """Append an instruction that has a value; its name."""
        self.count += 1
        self.lines.append(f"%x{self.count} = {instruction}")
        return f"%x{self.count}"

    def do(self, instruction: str) -> None:
        """Append an instruction without a value, or a label."""
        self.lines.append(instruction)

    def pointer(self, base: str, index: int | str, kind: str = "double") -> str:
        return self(f"getelementptr {kind}, ptr {base}, i64 {index}")

    def argument(self, index: int) -> str:
        return self(f"load ptr, ptr {self.pointer('%args', index, 'ptr')}, align 8")

    def any(self, lanes: int, mask: str) -> str:
        """Whether any lane of a mask is set."""
        if lanes == 1:
            return mask
        return self(f"icmp ne i{lanes} {self(f'bitcast <{lanes} x i1> {mask} to i{lanes}')}, 0")

    def text(self) -> str:
        return "\n".join(line if line.endswith(":") else "  " + line for line in self.lines)


def _angles(out: _Lines, plan: Schedule, inputs: Sequence[str] | None) -> None:
    """Sines and cosines of the joint angles. `inputs`: pointers to the caller's arrays, if they are used."""
    for run in plan.angles:
        source = (
            out.pointer(inputs[run.input], run.offset)
            if inputs is not None
            else out.pointer("%ws", plan.slot_of_input[(run.input, run.offset)] * plan.lanes)
        )
        sins, coss = (out.pointer("%ws", slot * plan.lanes) for slot in (run.sin_slot, run.cos_slot))
        out.do(f"call void @sincos_run(ptr {source}, ptr {sins}, ptr {coss}, i64 {run.count * plan.lanes})")


def single(program: Program, width: int, name: str, quaternions: Quaternions, feedback: Quaternions) -> tuple[str, int]:
    """Module with the single and iterate drivers.

    Args:
        program: what to compute.
        width: doubles per machine vector.
        name: prefix of the symbols.
        quaternions: (input, offset) of each quaternion to check.
        feedback: (output, input) pairs: where iterate copies.

    Returns:
        the module's text and the size of its workspace [doubles].
    """
    plan = schedule(program, lanes=1, bundled=False, size=CHUNK, shortest_run=width)
    functions = ChunkWriter(program, plan, direct=True).functions()
    t = vector(width)
    out = _Lines()
    inputs = [out.argument(k) for k in range(len(program.inputs))]
    # NaN and infinity are what x*0 shows; four sums, so that they do not wait for each other.
    sums, turn = [constant(width, 0.0)] * 4, 0
    rest = number(0.0)
    for pointer, (_, size) in zip(inputs, program.inputs, strict=True):
        for place in _vector_places(size, width):
            x = out(f"load {t}, ptr {out.pointer(pointer, place)}, align 8")
            zero = out(f"fmul contract {t} {x}, {constant(width, 0.0)}")
            sums[turn % 4] = out(f"fadd contract {t} {sums[turn % 4]}, {zero}")
            turn += 1
        for place in range(size if size < width else 0):
            x = out(f"load double, ptr {out.pointer(pointer, place)}, align 8")
            rest = out(f"fadd contract double {rest}, {out(f'fmul contract double {x}, {number(0.0)}')}")
    pairs = [out(f"fadd {t} {sums[k]}, {sums[k + 1]}") for k in (0, 2)]
    total = out(f"fadd {t} {pairs[0]}, {pairs[1]}")
    bad = out(f"or i1 {out.any(width, out(f'fcmp uno {t} {total}, {total}'))}, {out(f'fcmp uno double {rest}, {rest}')}")
    status = out(f"zext i1 {bad} to i64")
    for k, offset in quaternions:
        parts = [
            out(f"load double, ptr {out.pointer(inputs[k], offset + j)}, align 8") for j in range(4)
        ]
        off = out(f"fcmp ogt double {_norm_error(out, 1, parts)}, {number(UNIT_QUATERNION_TOLERANCE)}")
        status = out(f"or i64 {status}, {out(f'select i1 {off}, i64 {NOT_UNIT}, i64 0')}")
    good = out(f"icmp eq i64 {status}, 0")
    out.do(f"br i1 {good}, label %run, label %refuse")
    out.do("run:")
    _angles(out, plan, inputs)
    for k in range(len(functions)):
        out.do(f"call void @chunk{k}(ptr %ws, ptr %args)")
    out.do("ret i64 0")
    out.do("refuse:")
    out.do(f"ret i64 {status}")
    driver = f"define i64 @{name}_single(ptr noalias %args, ptr noalias %ws) #0 {{\nentry:\n{out.text()}\n}}\n"
    parts = [sincos.function(1), sincos.run_function(width), *functions, driver]
    if feedback:
        parts.append(_iterate(program, width, name, feedback))
    return _module(parts, {1, width}), max(1, plan.slots)


def _iterate(program: Program, width: int, name: str, feedback: Quaternions) -> str:
    out = _Lines()
    for output, source in feedback:
        size = program.inputs[source][1]
        to, given = out.argument(source), out.argument(len(program.inputs) + output)
        places = [(p, width) for p in _vector_places(size, width)] or [(p, 1) for p in range(size)]
        for place, lanes in places:
            x = out(f"load {vector(lanes)}, ptr {out.pointer(given, place)}, align 8")
            out.do(f"store {vector(lanes)} {x}, ptr {out.pointer(to, place)}, align 8")
    return f"""define i64 @{name}_iterate(ptr %args, ptr %ws, i64 %steps) #0 {{
entry:
  br label %loop
loop:
  %k = phi i64 [0, %entry], [%next, %copy]
  %status = call i64 @{name}_single(ptr %args, ptr %ws)
  %broken = and i64 %status, {NOT_FINITE}
  %stop = icmp ne i64 %broken, 0
  br i1 %stop, label %done, label %copy
copy:
  %next = add i64 %k, 1
{out.text()}
  %more = icmp ult i64 %next, %steps
  br i1 %more, label %loop, label %done
done:
  %result = phi i64 [%k, %loop], [%next, %copy]
  ret i64 %result
}}
"""


def _vector_places(size: int, width: int) -> list[int]:
    """Where vectors begin that together cover `size` doubles; the last may overlap the one before."""
    if size < width:
        return []
    places = list(range(0, size - width + 1, width))
    return places if size % width == 0 else [*places, size - width]


def _norm_error(out: _Lines, lanes: int, parts: list[str]) -> str:
    t = vector(lanes)
    total = out(f"fmul contract {t} {parts[0]}, {parts[0]}")
    for part in parts[1:]:
        total = out(f"fadd contract {t} {total}, {out(f'fmul contract {t} {part}, {part}')}")
    error = out(f"fsub {t} {total}, {constant(lanes, 1.0)}")
    return out(f"call {t} @llvm.fabs.{suffix(lanes)}({t} {error})")


def batch(program: Program, width: int, lanes: int, name: str, quaternions: Quaternions) -> tuple[str, int]:
    """Module with the batch driver.

    Args:
        program: what to compute.
        width: doubles per machine vector.
        lanes: states per tile, a multiple of width.
        name: prefix of the symbols.
        quaternions: (input, offset) of each quaternion to check.

    Returns:
        the module's text and the size of its workspace [doubles].
    """
    plan = schedule(program, lanes=lanes, bundled=True, size=CHUNK, shortest_run=1)
    functions = ChunkWriter(program, plan, direct=False).functions()
    parts = [sincos.function(lanes), sincos.run_function(width), *functions]
    parts += _tables(program, plan, name)
    parts.append(_BatchWriter(program, plan, name, functions, quaternions).text())
    return _module(parts, {1, width, lanes}), (plan.slots + 2) * lanes * GROUP


def _tables(program: Program, plan: Schedule, name: str) -> list[str]:
    """For each output, where in the workspace its scalars are [bytes]."""
    texts = []
    for k, row in enumerate(program.results):
        slots = [plan.slot[r] if type(r) is int else plan.constants[r] for r in row]
        words = ", ".join(f"i32 {slot * plan.lanes * 8}" for slot in slots)
        texts.append(f"@table{k} = internal constant [{len(row)} x i32] [{words}]\n" if row else "")
    return texts


class _BatchWriter:
    """Writes the batch driver."""

    def __init__(
        self, program: Program, plan: Schedule, name: str, functions: list[str], quaternions: Quaternions
    ) -> None:
        self.program, self.plan, self.name, self.functions = program, plan, name, functions
        self.quaternions = quaternions
        self.w = plan.lanes
        self.t = vector(plan.lanes)
        self.seen, self.worst = plan.slots, plan.slots + 1
        self.stride = plan.slots + 2
        self.out = _Lines()
        self.block = "entry"

    def text(self) -> str:
        """The stages read, angles and write, and the driver that runs all stages."""
        read, write = self._reader(), self._writer()
        stages = ["@read", *(f"@chunk{k}" for k in range(len(self.functions))), "@write"]
        calls = "\n".join(
            f"  call void @each(ptr {stage}, ptr %ws, ptr %args, ptr %strides, i64 %t, i64 %stop, i64 %tiles)"
            for stage in stages
        )
        w, t = self.w, self.t
        size = self.stride * w * 8
        out = self.out = _Lines()
        for value, slot in self.plan.constants.items():
            self._store_slot(constant(w, value), slot * w)
        for slot in (self.seen, self.worst):
            self._store_slot(constant(w, 0.0), slot * w)
        prepare = out.text()
        out = self.out = _Lines()
        seen = out(f"load {t}, ptr {out.pointer('%here', self.seen * w)}, align {8 * w}")
        worst = out(f"load {t}, ptr {out.pointer('%here', self.worst * w)}, align {8 * w}")
        broken = out(f"zext i1 {out.any(w, out(f'fcmp uno {t} {seen}, {seen}'))} to i64")
        off = out.any(w, out(f"fcmp ogt {t} {worst}, {constant(w, UNIT_QUATERNION_TOLERANCE)}"))
        both = out(f"or i64 {broken}, {out(f'select i1 {off}, i64 {NOT_UNIT}, i64 0')}")
        out.do(f"%status = or i64 %before, {both}")
        return f"""{read}
{write}
define internal void @each(ptr %stage, ptr %ws, ptr %args, ptr %strides, i64 %t, i64 %stop, i64 %tiles) #0 {{
entry:
  br label %tile
tile:
  %k = phi i64 [0, %entry], [%k1, %tile]
  %row = phi i64 [%t, %entry], [%row1, %tile]
  %place = mul i64 %k, {size}
  %here = getelementptr i8, ptr %ws, i64 %place
  call void %stage(ptr %here, ptr %args, ptr %strides, i64 %row, i64 %stop)
  %k1 = add i64 %k, 1
  %row1 = add i64 %row, {w}
  %more = icmp ult i64 %k1, %tiles
  br i1 %more, label %tile, label %done
done:
  ret void
}}
define internal void @prepare(ptr %ws, ptr %args, ptr %strides, i64 %t, i64 %stop) #0 {{
{prepare}
  ret void
}}
define i64 @{self.name}_batch(ptr %args, ptr %strides, ptr %ws, i64 %start, i64 %stop) #0 {{
entry:
  call void @each(ptr @prepare, ptr %ws, ptr %args, ptr %strides, i64 0, i64 0, i64 {GROUP})
  br label %group
group:
  %t = phi i64 [%start, %entry], [%next, %group]
  %left = sub i64 %stop, %t
  %up = add i64 %left, {w - 1}
  %need = sdiv i64 %up, {w}
  %few = icmp slt i64 %need, {GROUP}
  %tiles = select i1 %few, i64 %need, i64 {GROUP}
{calls}
  %next = add i64 %t, {w * GROUP}
  %more = icmp slt i64 %next, %stop
  br i1 %more, label %group, label %check
check:
  %k = phi i64 [0, %group], [%k1, %check]
  %before = phi i64 [0, %group], [%status, %check]
  %place = mul i64 %k, {size}
  %here = getelementptr i8, ptr %ws, i64 %place
{out.text()}
  %k1 = add i64 %k, 1
  %again = icmp ult i64 %k1, {GROUP}
  br i1 %again, label %check, label %done
done:
  ret i64 %status
}}
"""

    def _stage(self, name: str) -> str:
        return (
            f"define internal void @{name}(ptr noalias %ws, ptr noalias %args, ptr noalias %strides, "
            f"i64 %t, i64 %stop) #0 {{\nentry:\n{self.out.text()}\n  ret void\n}}"
        )

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

    def _reader(self) -> str:
        self.out, self.block = _Lines(), "entry"
        out, w, t = self.out, self.w, self.t
        rows, slot = self._rows(), 0
        seen = out(f"load {t}, ptr {out.pointer('%ws', self.seen * w)}, align {8 * w}")
        for k, (_, size) in enumerate(self.program.inputs):
            if size:
                seen = self._read(k, size, self._pointers(k, rows), slot, seen)
            slot += size
        self._store_slot(seen, self.seen * w)
        worst = out(f"load {t}, ptr {out.pointer('%ws', self.worst * w)}, align {8 * w}")
        for k, offset in self.quaternions:
            first = self.plan.slot_of_input[(k, offset)]
            four = [out(f"load {t}, ptr {out.pointer('%ws', (first + j) * w)}, align {8 * w}") for j in range(4)]
            error = _norm_error(out, w, four)
            more = out(f"fcmp ogt {t} {error}, {worst}")
            worst = out(f"select {vector(w, 'i1')} {more}, {t} {error}, {t} {worst}")
        self._store_slot(worst, self.worst * w)
        _angles(out, self.plan, None)
        return self._stage("read")

    def _writer(self) -> str:
        self.out, self.block = _Lines(), "entry"
        rows = self._rows()
        for k, row in enumerate(self.program.results):
            if row:
                pointers = self._pointers(len(self.program.inputs) + k, rows)
                self._write(k, len(row), pointers)
        return self._stage("write")

    def _label(self, name: str) -> None:
        self.out.do(f"{name}:")
        self.block = name

    def _store_slot(self, value: str, place: int | str) -> None:
        self.out.do(f"store {self.t} {value}, ptr {self.out.pointer('%ws', place)}, align {8 * self.w}")

    def _loop(self, name: str, size: int, carried: str | None) -> tuple[str, str]:
        """Open a loop over blocks of w columns; the last block may overlap the one before."""
        before = self.block
        self.out.do(f"br label %{name}")
        self._label(name)
        self.out.do(f"%{name}j = phi i64 [0, %{before}], [%{name}next, %{name}]")
        if carried:
            self.out.do(f"%{name}c = phi {self.t} [{carried}, %{before}], [%{name}cnext, %{name}]")
        return f"%{name}j", f"%{name}c"

    def _end_loop(self, name: str, size: int) -> None:
        out, last = self.out, size - self.w
        step = out(f"add i64 %{name}j, {self.w}")
        over = out(f"icmp sgt i64 {step}, {last}")
        out.do(f"%{name}next = select i1 {over}, i64 {last}, i64 {step}")
        out.do(f"br i1 {out(f'icmp slt i64 %{name}j, {last}')}, label %{name}, label %{name}end")
        self._label(f"{name}end")

    def _read(self, k: int, size: int, rows: list[str], slot: int, seen: str) -> str:
        """Rows to slots, and the sum that NaN and infinity leave a mark in."""
        out, w, t, zero = self.out, self.w, self.t, constant(self.w, 0.0)
        if size < w:
            for column in range(size):
                value = "undef"
                for lane, row in enumerate(rows):
                    x = out(f"load double, ptr {out.pointer(row, column)}, align 8")
                    value = out(f"insertelement {t} {value}, double {x}, i32 {lane}")
                self._store_slot(value, (slot + column) * w)
                seen = out(f"fadd contract {t} {seen}, {out(f'fmul contract {t} {value}, {zero}')}")
            return seen
        name = f"read{k}"
        j, carried = self._loop(name, size, seen)
        values = [out(f"load {t}, ptr {out.pointer(row, j)}, align 8") for row in rows]
        marks = [out(f"fmul contract {t} {value}, {zero}") for value in values]
        while len(marks) > 1:
            marks = [out(f"fadd contract {t} {a}, {b}") for a, b in zip(marks[::2], marks[1::2], strict=True)]
        out.do(f"%{name}cnext = fadd {t} {carried}, {marks[0]}")
        base = out.pointer("%ws", slot * w)
        for column, value in enumerate(self._transposed(values)):
            place = out(f"mul i64 {out(f'add i64 {j}, {column}')}, {w}")
            out.do(f"store {t} {value}, ptr {out.pointer(base, place)}, align {8 * w}")
        self._end_loop(name, size)
        return f"%{name}cnext"

    def _write(self, k: int, size: int, rows: list[str]) -> None:
        """Slots to rows, by way of the output's table."""
        out, w, t = self.out, self.w, self.t
        table = f"@table{k}"

        def load(index: str) -> str:
            word = out(f"load i32, ptr {out.pointer(table, index, 'i32')}, align 4")
            place = out.pointer("%ws", out(f"zext i32 {word} to i64"), "i8")
            return out(f"load {t}, ptr {place}, align {8 * w}")

        if size < w:
            for column in range(size):
                value = load(str(column))
                for lane, row in enumerate(rows):
                    x = out(f"extractelement {t} {value}, i32 {lane}")
                    out.do(f"store double {x}, ptr {out.pointer(row, column)}, align 8")
            return
        name = f"write{k}"
        j, _ = self._loop(name, size, None)
        values = [load(out(f"add i64 {j}, {column}")) for column in range(w)]
        for row, value in zip(rows, self._transposed(values), strict=True):
            out.do(f"store {t} {value}, ptr {out.pointer(row, j)}, align 8")
        self._end_loop(name, size)

    def _transposed(self, rows: list[str]) -> list[str]:
        """w vectors of w elements, transposed by halving: log2 w rounds of two-vector shuffles."""
        w, t = self.w, self.t
        rows = list(rows)
        step = 1
        while step < w:
            low = [lane if not lane & step else lane - step + w for lane in range(w)]
            high = [lane + step if not lane & step else lane + w for lane in range(w)]
            for k in range(w):
                if not k & step:
                    a, b = rows[k], rows[k + step]
                    for target, order in ((k, low), (k + step, high)):
                        mask = ", ".join(f"i32 {x}" for x in order)
                        rows[target] = self.out(f"shufflevector {t} {a}, {t} {b}, <{w} x i32> <{mask}>")
            step *= 2
        return rows
