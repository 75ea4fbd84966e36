"""Writes what passes/rerolling.py planned: a function for each kind of piece, the table, and its driver."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from robokit.engine.emit.ir import Real, number, vector
from robokit.engine.emit.straight_line import ChunkWriter
from robokit.engine.passes.chunks import Schedule
from robokit.engine.passes.rerolling import LoopBody, Rerolled
from robokit.engine.trace.graph import Program


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
