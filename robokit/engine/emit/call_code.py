"""Writes what passes/called_lines.py planned: chunks that call, and the calls that depend on a condition."""

from __future__ import annotations

from robokit.engine.emit.ir import FLOAT64, Real
from robokit.engine.emit.straight_line import ChunkWriter
from robokit.engine.passes.called_lines import CalledLines, called_lines
from robokit.engine.passes.chunks import Schedule, schedule
from robokit.engine.passes.guards import Path
from robokit.engine.trace.blocks import called, position
from robokit.engine.trace.ops import CALL, RESULT
from robokit.engine.trace.program import Program


class CallWriter(ChunkWriter):
    """Writes the chunks of a program with shared texts."""

    plan: CalledLines

    def _compute(self, number: int) -> None:
        node, program = self.program.nodes[number], self.program
        if node[0] == CALL:
            block_number = called(program, number)
            parameters = program.blocks[block_number].parameters
            for k, (operand, parameter) in enumerate(zip(node[2:], parameters, strict=True)):
                value = self._value(operand)
                self._address(parameter, f"%x{number}x{k}")
                self.lines.append(f"store {self.t} {value}, ptr %x{number}x{k}, align {self.align}")
            if block_number in self.plan.direct:
                more = "" if self.direct else ", ptr %strides, i64 %t, i64 %stop"
                chunk = self.plan.direct[block_number]
                self.lines.append(f"call void @chunk{chunk}(ptr %ws, ptr %args{more})")
        elif node[0] == RESULT:
            block = program.blocks[called(program, node[1])]
            self._address(int(block.results[position(program, number)]), f"%y{number}")
            self.lines.append(f"%v{number} = load {self.t}, ptr %y{number}, align {self.align}")
        else:
            super()._compute(number)

    def when(self, name: str, conditions: Path, stages: list[str], parameters: str) -> str:
        """A function that runs stages where each of the conditions holds in some lane."""
        lanes = self.plan.lanes
        self.lines = []
        for k, condition in enumerate(conditions):  # an inner one is computed where the outer one holds
            self._address(condition, f"%a{k}")
            self.lines.append(f"%t{k} = load {self.t}, ptr %a{k}, align {self.align}")
            self.lines.append(f"%v{k} = fcmp une {self.t} %t{k}, {self._constant(0.0)}")
            mask = f"%v{k}"
            if lanes > 1:
                self.lines.append(f"%m{k} = bitcast {self.truth} {mask} to i{lanes}")
                self.lines.append(f"%n{k} = icmp ne i{lanes} %m{k}, 0")
                mask = f"%n{k}"
            self.lines.append(f"br i1 {mask}, label %yes{k}, label %no")
            self.lines.append(f"yes{k}:")
        given = ", ".join(f"{each.split()[0]} {each.split()[-1]}" for each in parameters.split(", "))
        self.lines += [f"call void @{stage}({given})" for stage in stages]
        body = "\n  ".join(["entry:", *self.lines, "br label %no", "no:", "ret void"])
        return f"define internal void @{name}({parameters}) #0 {{\n  {body}\n}}\n"


def chunk_code(
    program: Program,
    lanes: int,
    bundled: bool,
    size: int,
    shortest_run: int,
    parameters: str,
    real: Real = FLOAT64,
) -> tuple[Schedule, list[str], list[str]]:
    """Plan a program and write its chunks.

    Args:
        program, lanes, bundled, size, shortest_run: as of :func:`schedule`.
        parameters: of each chunk's function.
        real: its numbers.

    Returns:
        the plan, the functions, and the names of those that run one after the other.
    """
    if not program.blocks:
        plan = schedule(program, lanes, bundled, size, shortest_run)
        texts = ChunkWriter(program, plan, not bundled, real).functions()
        return plan, texts, [f"chunk{k}" for k in range(len(texts))]
    lines = called_lines(program, lanes, bundled, size, shortest_run)
    writer = CallWriter(program, lines, not bundled, real)
    texts = writer.functions()
    rest = range(len(lines.chunks), len(texts))  # constants, and what is passed on
    stages: list[str] = []
    for item in (*lines.sequence, *rest):
        if isinstance(item, int):
            stages.append(f"chunk{item}")
            continue
        chunks, conditions = item
        names = [f"chunk{k}" for k in chunks]
        if conditions:
            texts.append(writer.when(f"when{len(texts)}", conditions, names, parameters))
            names = [f"when{len(texts) - 1}"]
        stages += names
    return lines, texts, stages
