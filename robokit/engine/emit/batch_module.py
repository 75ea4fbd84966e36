"""Writes the module of batches: rows become vectors of lanes, and back.

    i64 batch(ptr args, ptr strides, ptr ws, i64 start, i64 stop)
    i64 linked(ptr args, ptr ws, i64 mask)       one tile of vectors, nothing checked (rows.py)
    i64 passes(ptr args, ptr strides, ptr ws, i64 start, i64 stop, i64 passes, ptr moves)

`batch` runs rows start..stop and returns the status of all of them together (see single_module.py). args
holds one pointer for each input, then one for each output. strides holds the bytes between their rows, 0 to
use one row for the whole batch, and last whether to write past the caches (rows.py). The numbers of a row are
contiguous. `passes` makes several steps of a rollout (below).

A tile is as many rows as a value has lanes. Each stage (read, the chunks, write) works on one tile. A group
of tiles goes through a stage before the next stage begins, because the code of a humanoid's kernel does not
fit in the first-level cache; a short kernel takes its tiles one by one. Rows are turned into vectors and back
by shuffles in registers: NumPy's transpose would cost half of an inverse dynamics. In the last tile, lanes
past the end repeat the last row: they compute and store the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from robokit.engine.emit import ir
from robokit.engine.emit.ir import FLOAT64, Real, number, vector
from robokit.engine.emit.rows import PAD, STAGE, LinkedWriter, PassWriter, RowReader, RowWriter
from robokit.engine.emit.straight_line import ChunkWriter, chunk_code
from robokit.engine.passes.schedule import Schedule
from robokit.engine.passes.similarity import LoopBody, Rerolled
from robokit.engine.signature import Bounds, Pairs
from robokit.engine.trace.graph import Program

# -- Iterations that do the same -------------------------------------------------------------------------
#
# A function for each kind of piece that passes/similarity.py found, the table, and its driver.


class StepWriter(ChunkWriter):
    """Writes the shared functions and their table.

    step<kind>(ptr ws, ptr row, ptr values)    row: i32 slots of the bundles
    steps(ptr ws, i64 first, i64 last)         runs steps first..last-1
    """

    plan: Rerolled

    def __init__(self, program: Program, plan: Rerolled, real: Real, fused: bool) -> None:
        super().__init__(program, plan, direct=False, real=real, fused=fused)

    def functions(self) -> list[str]:
        """The functions of all bodies, the tables, and @steps."""
        texts = [self._step(k, kind) for k, kind in enumerate(self.plan.bodies)]
        places: list[int] = []
        values: list[float] = []
        table: list[int] = []
        for kind, row, constants in self.plan.steps:
            table += kind, len(places), len(values)
            places += row
            values += constants
        names = ", ".join(f"ptr @step{k}" for k in range(len(self.plan.bodies)))
        texts.append(f"@kinds = internal constant [{len(self.plan.bodies)} x ptr] [{names}]\n")
        texts.append(_table("steptable", "i32", map(str, table)))
        texts.append(_table("places", "i32", map(str, places)))
        texts.append(_table("values", self.real.kind, [number(x, self.real) for x in values or [0.0]]))
        texts.append(_STEPS.format(real=self.real.kind))
        return texts

    def _step(self, index: int, kind: LoopBody) -> str:
        self.loop_body = kind
        self._line(kind.nodes)
        entry = ["entry:"]
        for c in range(kind.bundles):
            entry.append(f"%ra{c} = getelementptr i32, ptr %row, i64 {c}")
            entry.append(f"%rs{c} = load i32, ptr %ra{c}, align 4")
            entry.append(f"%ri{c} = zext i32 %rs{c} to i64")
            entry.append(f"%r{c} = getelementptr {self.t}, ptr %ws, i64 %ri{c}")
        body = "\n  ".join(entry + self.lines)
        parameters = "ptr noalias %ws, ptr noalias %row, ptr noalias %values"
        # Spilled vectors must not lie across two lines; of stages, rows.PAD takes care.
        head = f"define internal void @step{index}({parameters}) #0 alignstack(64)"
        return f"{head} {{\n  {body}\n  ret void\n}}\n"

    def _address(self, number: int, name: str) -> None:
        column, position = self.loop_body.place[number]
        self.lines.append(f"{name} = getelementptr {self.t}, ptr %r{column}, i64 {position}")

    def _value(self, number: int) -> str:
        place = self.loop_body.values.get(number)
        if place is None or number in self.known:
            return super()._value(number) if place is None else self.known[number]
        self.known[number] = f"%v{number}"
        add, real, lanes = self.lines.append, self.real, self.plan.lanes
        scalar = f"%v{number}" if lanes == 1 else f"%s{number}"
        add(f"%a{number} = getelementptr {real.kind}, ptr %values, i64 {place}")
        add(f"{scalar} = load {real.kind}, ptr %a{number}, align {real.bytes}")
        if lanes > 1:
            add(f"%i{number} = insertelement {self.t} poison, {real.kind} {scalar}, i64 0")
            zeros = vector(lanes, "i32")
            add(f"%v{number} = shufflevector {self.t} %i{number}, {self.t} poison, {zeros} zeroinitializer")
        return f"%v{number}"


def rerolled_code(
    program: Program, shared: Rerolled, lanes: int, parameters: str, real: Real, fused: bool = False
) -> tuple[Schedule, list[str], list[str]]:
    """Write the chunks of a program, as ``straight_line.chunk_code`` does, and its shared functions.

    Args:
        program: what to compute.
        shared: its plan.
        lanes: states in a value.
        parameters: of each function that runs in its turn.
        real: its numbers.
        fused: whether products are fused with sums.

    Returns:
        the plan, the functions, and the names of those that run one after the other.
    """
    plan = replace(shared, lanes=lanes)
    texts = ChunkWriter(program, plan, direct=False, real=real, fused=fused).functions()
    texts += StepWriter(program, plan, real, fused).functions()
    stages = []
    for item in plan.sequence:
        if isinstance(item, int):
            stages.append(f"chunk{item}")
            continue
        stages.append(f"run{item.start}")
        call = f"call void @steps(ptr %ws, i64 {item.start}, i64 {item.stop})"
        texts.append(f"define internal void @run{item.start}({parameters}) #0 {{\n  {call}\n  ret void\n}}\n")
    return plan, texts, stages


def _table(name: str, kind: str, words: Iterable[str]) -> str:
    content = [f"{kind} {word}" for word in words]
    return f"@{name} = internal constant [{len(content)} x {kind}] [{', '.join(content)}]\n"


_STEPS = """
define internal void @steps(ptr %ws, i64 %first, i64 %last) #0 {{
entry:
  br label %step
step:
  %k = phi i64 [%first, %entry], [%next, %step]
  %place = mul i64 %k, 12
  %line = getelementptr i8, ptr @steptable, i64 %place
  %kind = load i32, ptr %line, align 4
  %rowat = getelementptr i8, ptr %line, i64 4
  %row32 = load i32, ptr %rowat, align 4
  %valueat = getelementptr i8, ptr %line, i64 8
  %value32 = load i32, ptr %valueat, align 4
  %kind64 = zext i32 %kind to i64
  %row64 = zext i32 %row32 to i64
  %value64 = zext i32 %value32 to i64
  %functionat = getelementptr ptr, ptr @kinds, i64 %kind64
  %function = load ptr, ptr %functionat, align 8
  %row = getelementptr i32, ptr @places, i64 %row64
  %values = getelementptr {real}, ptr @values, i64 %value64
  call void %function(ptr %ws, ptr %row, ptr %values)
  %next = add i64 %k, 1
  %more = icmp ult i64 %next, %last
  br i1 %more, label %step, label %done
done:
  ret void
}}
"""


# -- The module ------------------------------------------------------------------------------------------


def batch_module(
    program: Program,
    lanes: int,
    name: str,
    quaternions: Pairs = (),
    finite: bool = False,
    real: Real = FLOAT64,
    shared: Rerolled | None = None,
    width: int = 0,
    bounds: Bounds = (),
    feedback: Pairs = (),
    linked: bool = False,
    fused: bool = False,
    machine_code: bool = False,
) -> tuple[str, int]:
    """Module with the batch driver.

    Args:
        program: what to compute.
        lanes: states per tile: numbers in a machine vector.
        name: prefix of the symbols.
        quaternions: (input, offset) of each quaternion to check.
        finite: whether outputs are checked too.
        real: of all numbers, arguments included.
        shared: the plan of a large program.
        width: numbers per machine vector, where lanes are fewer.
        bounds: (input, offset, largest magnitude) of each scalar to check.
        feedback: (output, input) of what a pass hands to the next one in a rollout.
        linked: whether it is for callers in machine code, with `linked` in place of the other functions; code
            of one state has both.
        fused: whether products are fused with sums.
        machine_code: whether straight lines are written as such (machine_code.py), and not for LLVM.

    Returns:
        the module's text and the size of its workspace [doubles].
    """
    plan: Schedule
    if shared:
        plan, chunks, stages = rerolled_code(program, shared, lanes, STAGE, real, fused)
    else:
        size = int(ir.LONGER * ir.CHUNK)
        plan, chunks, stages = chunk_code(program, lanes, True, size, 1, STAGE, real, fused, machine_code)
    writer = RowWriter(program, plan, finite, real)
    # Shared code is short, and its values are many.
    group = 1 if shared or len(program.order) <= ir.FITS else ir.GROUP
    while group > 1 and group * writer.stride * writer.align > ir.HELD:
        group //= 2
    # One state's angles lie side by side and can be taken several at a time.
    together = max(width, lanes) if all(run.count * lanes >= width for run in plan.angles) else lanes
    sines = ir.sincos(lanes, real, fused=fused), ir.sincos_of_run(together, real, fused)
    parts = [*sines, *chunks]
    if linked or lanes == 1:
        link = LinkedWriter(program, plan, (), real)
        parts += [link.linked(name, stages), *link.tables]
    if linked:
        return ir.module(parts, {lanes, together}), -(-writer.stride * lanes * real.bytes // 8)
    reader = RowReader(program, plan, quaternions, real, bounds)
    parts += [reader.function(), writer.function(), *reader.tables, *writer.tables]
    between = ["write", "read"]
    if len(feedback) == len(program.results):
        after = PassWriter(program, plan, feedback, real, bounds)
        parts += [after.function(), *after.tables]
        between = ["next"]
    parts.append(_driver(writer, name, group, stages, between))
    return ir.module(parts, {lanes, together}), -(-writer.stride * lanes * group * real.bytes // 8)


_DRIVER = """
define internal void @each(ptr %stage, ptr %ws, ptr %args, ptr %strides, i64 %t, i64 %stop, i64 %tiles)
    #0 alignstack(64) {{
entry:
  br label %align
align:
  %pad = alloca [{pad} x i8], align 16
  store volatile i8 0, ptr %pad
  br label %tile
tile:
  %k = phi i64 [0, %align], [%k1, %tile]
  %row = phi i64 [%t, %align], [%row1, %tile]
  %place = mul i64 %k, {size}
  %here = getelementptr i8, ptr %ws, i64 %place
  call void %stage(ptr %here, ptr %args, ptr %strides, i64 %row, i64 %stop)
  %k1 = add i64 %k, 1
  %row1 = add i64 %row, {lanes}
  %more = icmp ult i64 %k1, %tiles
  br i1 %more, label %tile, label %done
done:
  ret void
}}
define internal void @prepare(ptr %ws, ptr %args, ptr %strides, i64 %t, i64 %stop) #0 {{
{prepare}
  ret void
}}
define i64 @{name}_batch(ptr %args, ptr %strides, ptr %ws, i64 %start, i64 %stop) #0 {{
entry:
  call void @each(ptr @prepare, ptr %ws, ptr %args, ptr %strides, i64 0, i64 0, i64 {group})
  br label %group
group:
  %t = phi i64 [%start, %entry], [%next, %group]
  %left = sub i64 %stop, %t
  %up = add i64 %left, {lanes_less_1}
  %need = sdiv i64 %up, {lanes}
  %few = icmp slt i64 %need, {group}
  %tiles = select i1 %few, i64 %need, i64 {group}
{read}
{stages}
{write}
  %next = add i64 %t, {rows}
  %more = icmp slt i64 %next, %stop
  br i1 %more, label %group, label %check
check:
  %k = phi i64 [0, %group], [%k1, %check]
  %before = phi i64 [0, %group], [%status, %check]
  %place = mul i64 %k, {size}
  %here = getelementptr i8, ptr %ws, i64 %place
{check}
  %k1 = add i64 %k, 1
  %again = icmp ult i64 %k1, {group}
  br i1 %again, label %check, label %done
done:
  {fence}
  ret i64 %status
}}
"""


def _driver(tile: RowWriter, name: str, group: int, stages: Sequence[str], between: Sequence[str]) -> str:
    """The functions that callers see.

    Args:
        tile: to be driven.
        name: prefix of the symbols.
        group: tiles that go together.
        stages: between reading and writing.
        between: stages between two passes of a rollout.
    """
    call = "  call void @each(ptr @{}, ptr %ws, ptr %args, ptr %strides, i64 %t, i64 %stop, i64 %tiles)"

    def calls(*names: str) -> str:
        return "\n".join(map(call.format, names))

    numbers: dict[str, str | int] = {
        "name": name,
        "size": tile.stride * tile.align,
        "lanes": tile.w,
        "lanes_less_1": tile.w - 1,
        "group": group,
        "pad": PAD,
        "rows": group * tile.w,
        "prepare": tile.prepared(),
        "read": calls("read"),
        "stages": calls(*stages),
        "between": calls(*between),
        "write": calls("write"),
        "check": tile.checked(),
        # What went past the caches is there before another thread is told that it is.
        "fence": "fence seq_cst" if tile.past_caches else "",
    }
    return _DRIVER.format(**numbers) + _PASSES.format(count=tile.count, **numbers)


# -- Rollouts --------------------------------------------------------------------------------------
#
# `passes` is the driver of rollouts: a batch of states goes through the kernel again and again, in place.
#
# A pass is one run of the kernel. As `batch` it works on rows start..stop, but a group of tiles makes all its
# passes before the next group begins, so that its numbers stay in the cache. Rows are read before the first
# pass and written after the last: between two passes what is fed back stays in the workspace (rows.py). An
# output is written to the address of its input. moves holds the bytes by which the pointer of each argument
# moves from one pass to the next, 0 where it stays. The status is always 0: a row that becomes NaN spoils no
# other, and the caller looks for it.

_PASSES = """
define i64 @{name}_passes(ptr %given, ptr %strides, ptr %ws, i64 %start, i64 %stop, i64 %passes,
    ptr %moves) #0 {{
entry:
  %args = alloca [{count} x ptr]
  call void @each(ptr @prepare, ptr %ws, ptr %given, ptr %strides, i64 0, i64 0, i64 {group})
  br label %group
group:
  %t = phi i64 [%start, %entry], [%next, %after]
  %left = sub i64 %stop, %t
  %up = add i64 %left, {lanes_less_1}
  %need = sdiv i64 %up, {lanes}
  %few = icmp slt i64 %need, {group}
  %tiles = select i1 %few, i64 %need, i64 {group}
  br label %copy
copy:
  %c = phi i64 [0, %group], [%c1, %copy]
  %from = getelementptr ptr, ptr %given, i64 %c
  %first = load ptr, ptr %from, align 8
  %to = getelementptr ptr, ptr %args, i64 %c
  store ptr %first, ptr %to, align 8
  %c1 = add i64 %c, 1
  %copying = icmp ult i64 %c1, {count}
  br i1 %copying, label %copy, label %begin
begin:
{read}
  br label %pass
pass:
  %p = phi i64 [0, %begin], [%p1, %again]
{stages}
  br label %move
move:
  %k = phi i64 [0, %pass], [%k1, %move]
  %place = getelementptr ptr, ptr %args, i64 %k
  %before = load ptr, ptr %place, align 8
  %by = getelementptr i64, ptr %moves, i64 %k
  %bytes = load i64, ptr %by, align 8
  %now = getelementptr i8, ptr %before, i64 %bytes
  store ptr %now, ptr %place, align 8
  %k1 = add i64 %k, 1
  %more = icmp ult i64 %k1, {count}
  br i1 %more, label %move, label %moved
moved:
  %p1 = add i64 %p, 1
  %goes_on = icmp slt i64 %p1, %passes
  br i1 %goes_on, label %again, label %after
again:
{between}
  br label %pass
after:
{write}
  %next = add i64 %t, {rows}
  %rest = icmp slt i64 %next, %stop
  br i1 %rest, label %group, label %done
done:
  ret i64 0
}}
"""
