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

from collections.abc import Sequence

from robokit.engine.emit import ir
from robokit.engine.emit.ir import FLOAT64, Real
from robokit.engine.emit.rows import PAD, STAGE, LinkedWriter, PassWriter, RowReader, RowWriter
from robokit.engine.emit.straight_line import chunk_code
from robokit.engine.passes.similarity import Rerolled
from robokit.engine.signature import Bounds, Pairs
from robokit.engine.trace.graph import Program


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
    size = int(ir.LONGER * ir.CHUNK)
    plan, chunks, stages = chunk_code(program, lanes, True, size, 1, STAGE, real, fused, machine_code, shared)
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
