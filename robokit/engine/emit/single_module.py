"""Writes the module of single calls: checks, sines and chunks, on the caller's own arrays.

    i64 single(ptr args, ptr ws)                  one state; returns a status
    i64 linked(ptr args, ptr ws, i64)            one state, nothing checked: for callers in machine code

args holds one pointer for each input, then one for each output. The status is the sum of 1 (an input is NaN
or infinite), 2 (a quaternion is not of unit length) and, where that is asked for, 4 (an output is NaN or
infinite). If it contains 1 or 2, nothing has been computed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from robokit.conventions import UNIT_QUATERNION_TOLERANCE
from robokit.engine.emit import ir
from robokit.engine.emit.batch_module import batch_module
from robokit.engine.emit.ir import NOT_FINITE, NOT_FINITE_OUTPUT, NOT_UNIT, Lines, constant, number, vector
from robokit.engine.emit.straight_line import chunk_code
from robokit.engine.passes.similarity import Rerolled
from robokit.engine.signature import Bounds, Pairs
from robokit.engine.trace.graph import LANES, Program


def single_module(
    program: Program,
    width: int,
    name: str,
    quaternions: Pairs = (),
    finite: bool = False,
    shared: Rerolled | None = None,
    bounds: Bounds = (),
    fused: bool = False,
    machine_code: bool = False,
) -> tuple[str, int]:
    """Module with the single driver.

    Args:
        program: what to compute.
        width: doubles per machine vector.
        name: prefix of the symbols.
        quaternions: (input, offset) of each quaternion to check.
        finite: whether outputs are checked too.
        shared: the plan of a large program, whose code is the batch's with one lane.
        bounds: (input, offset, largest magnitude) of each scalar to check.
        fused: whether products are fused with sums.
        machine_code: whether straight lines are written as such (machine_code.py), and not for LLVM.

    Returns:
        the module's text and the size of its workspace [doubles].
    """
    out = Lines()
    inputs = [out.argument(k) for k in range(len(program.inputs))]
    bad = _not_finite(
        out,
        width,
        [(p, size) for p, (_, size) in zip(inputs, program.inputs, strict=True)],
        {(k, offset): ir.FLOAT64.scale(most) for k, offset, most in bounds},
    )
    status = out(f"select i1 {bad}, i64 {NOT_FINITE}, i64 0")
    for k, offset in quaternions:
        parts = [out(f"load double, ptr {out.pointer(inputs[k], offset + j)}, align 8") for j in range(4)]
        off = out(f"fcmp ogt double {out.norm_error(1, parts)}, {number(UNIT_QUATERNION_TOLERANCE)}")
        status = out(f"or i64 {status}, {out(f'select i1 {off}, i64 {NOT_UNIT}, i64 0')}")
    good = out(f"icmp eq i64 {status}, 0")
    out.do(f"br i1 {good}, label %run, label %refuse")
    out.do("run:")
    parts = []
    if shared is not None:
        body, workspace = batch_module(
            program, 1, name, quaternions, finite, shared=shared, width=width, fused=fused
        )
        result = out(f"call i64 @{name}_batch(ptr %args, ptr @one_row, ptr %ws, i64 0, i64 1)")
        zeros = program.first_output + len(program.outputs)
        parts.append(f"@one_row = internal constant [{zeros} x i64] zeroinitializer\n")
    else:
        body, workspace = _straight(program, width, name, fused, machine_code)
        out(f"call i64 @{name}_linked(ptr %args, ptr %ws, i64 0)")
        result = _outputs_finite(out, program, width) if finite else "0"
        parts += [_zeros(width)] if finite else []
    out.do(f"ret i64 {result}")
    out.do("refuse:")
    out.do(f"ret i64 {status}")
    driver = f"define i64 @{name}_single(ptr %args, ptr noalias %ws) #0 {{\nentry:\n{out.text()}\n}}\n"
    parts.append(driver)
    return "\n".join([body, *parts]), workspace


def _straight(program: Program, width: int, name: str, fused: bool, machine_code: bool) -> tuple[str, int]:
    """The chunks, and the function that calls them on the caller's arrays; their module and workspace.

    ``width``: doubles per machine vector; ``name``: prefix of the symbols; ``fused``: whether products are
    fused with sums; ``machine_code``: as in :func:`single_module`.
    """
    parameters = "ptr noalias %ws, ptr noalias %args"
    plan, functions, stages = chunk_code(
        program, 1, False, ir.CHUNK, width, parameters, fused=fused, machine_code=machine_code
    )
    out = Lines()
    for run in plan.angles:
        source = out.pointer(out.argument(run.input), run.offset)
        sins, coss = (out.pointer("%ws", slot) for slot in (run.sin_slot, run.cos_slot))
        out.do(f"call void @sincos_run(ptr {source}, ptr {sins}, ptr {coss}, i64 {run.count})")
    for stage in stages:
        out.do(f"call void @{stage}(ptr %ws, ptr %args)")
    lanes = {block.lanes for block in program.blocks if block.lanes > 1}
    lanes |= {LANES} if program.wide else set()
    wide = [ir.sincos(n, name=f"sincos_{n}", fused=fused) for n in sorted(lanes)]
    parts = [ir.sincos(1, fused=fused), *wide, ir.sincos_of_run(width, fused=fused), *functions]
    parts.append(
        f"define i64 @{name}_linked(ptr %args, ptr %ws, i64 %mask) #0 {{\n{out.text()}\n  ret i64 0\n}}\n"
    )
    return ir.module(parts, {width, *lanes}), max(1, plan.slots)


def _outputs_finite(out: Lines, program: Program, width: int) -> str:
    """The status of the outputs."""
    first = program.first_output
    sizes = [math.prod(shape) for _, shape in program.outputs]
    arrays = [(out.argument(first + k), size) for k, size in enumerate(sizes)]
    bad = _not_finite(out, width, arrays, loops=True)
    return out(f"select i1 {bad}, i64 {NOT_FINITE_OUTPUT}, i64 0")


def _not_finite(
    out: Lines,
    width: int,
    arrays: Sequence[tuple[str, int]],
    scales: Mapping[tuple[int, int], float] | None = None,
    loops: bool = False,
) -> str:
    """Whether one of the arrays (pointer, size) holds NaN or infinity: x*0 shows both.

    Scales of (array, place) make infinite first what is beyond a bound. With loops, @zeros looks at all of an
    array but its end.
    """
    scales = scales or {}
    t = vector(width)
    sums, turn = [constant(width, 0.0)] * 4, 0  # four, so that they do not wait for each other
    rest = number(0.0)
    for k, (pointer, size) in enumerate(arrays):
        looped = size // (4 * width) * 4 if loops else 0
        if looped:
            zero = out(f"call {t} @zeros(ptr {pointer}, i64 {looped * width})")
            sums[turn % 4] = out(f"fadd contract {t} {sums[turn % 4]}, {zero}")
        for place in _vector_places(size, width)[looped:]:
            x = out(f"load {t}, ptr {out.pointer(pointer, place)}, align 8")
            factors = [scales.get((k, place + lane), 1.0) for lane in range(width)]
            if any(factor != 1.0 for factor in factors):
                words = ", ".join(f"double {number(factor)}" for factor in factors)
                x = out(f"fmul {t} {x}, <{words}>")
            zero = out(f"fmul contract {t} {x}, {constant(width, 0.0)}")
            sums[turn % 4] = out(f"fadd contract {t} {sums[turn % 4]}, {zero}")
            turn += 1
        for place in range(size if size < width else 0):
            x = out(f"load double, ptr {out.pointer(pointer, place)}, align 8")
            if (k, place) in scales:
                x = out(f"fmul double {x}, {number(scales[k, place])}")
            rest = out(f"fadd contract double {rest}, {out(f'fmul contract double {x}, {number(0.0)}')}")
    pairs = [out(f"fadd {t} {sums[k]}, {sums[k + 1]}") for k in (0, 2)]
    total = out(f"fadd {t} {pairs[0]}, {pairs[1]}")
    first = out.any(width, out(f"fcmp uno {t} {total}, {total}"))
    return out(f"or i1 {first}, {out(f'fcmp uno double {rest}, {rest}')}")


def _zeros(width: int) -> str:
    """A function: zero times the numbers of an array, summed up, four vectors a round."""
    t, out = vector(width), Lines()
    begin = [f"%s{j} = phi {t} [zeroinitializer, %entry], [%n{j}, %loop]" for j in range(4)]
    for j in range(4):
        place = out.pointer(out.pointer("%from", "%k"), j * width)
        x = out(f"load {t}, ptr {place}, align 8")
        zero = out(f"fmul contract {t} {x}, {constant(width, 0.0)}")
        out.do(f"%n{j} = fadd contract {t} %s{j}, {zero}")
    first = "\n  ".join(begin)
    return f"""define internal {t} @zeros(ptr %from, i64 %count) #0 {{
entry:
  br label %loop
loop:
  %k = phi i64 [0, %entry], [%next, %loop]
  {first}
{out.text()}
  %next = add i64 %k, {4 * width}
  %more = icmp ult i64 %next, %count
  br i1 %more, label %loop, label %done
done:
  %a = fadd {t} %n0, %n1
  %b = fadd {t} %n2, %n3
  %c = fadd {t} %a, %b
  ret {t} %c
}}
"""


def _vector_places(size: int, width: int) -> list[int]:
    """Where vectors begin that together cover `size` doubles; the last may overlap the one before."""
    if size < width:
        return []
    places = list(range(0, size - width + 1, width))
    return places if size % width == 0 else [*places, size - width]
