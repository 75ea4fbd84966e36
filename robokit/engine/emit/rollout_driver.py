"""Writes the driver of rollouts: a batch of states goes through the kernel again and again, in place.

    i64 passes(ptr args, ptr strides, ptr ws, i64 start, i64 stop, i64 passes, ptr moves)

A pass is one run of the kernel. As the batch driver (batch_module.py) it works on rows start..stop, but a
group of tiles makes all its passes before the next group begins, so that its numbers stay in the cache. Rows
are read before the first pass and written after the last: between two passes what is fed back stays in the
workspace (next_pass.py). An output is written to the address of its input. moves holds the bytes by which the
pointer of each argument moves from one pass to the next, 0 where it stays.
The status is always 0: a row that becomes NaN spoils no other, and the caller looks for it.
"""

from __future__ import annotations

_DRIVER = """
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


def driver(count: int, numbers: dict[str, str | int]) -> str:
    """Text of the driver.

    Args:
        count: arguments of the kernel, inputs and outputs.
        numbers: what the batch driver's text is filled with: calls of the stages, sizes of tiles and groups.
    """
    return _DRIVER.format(count=count, **numbers)
