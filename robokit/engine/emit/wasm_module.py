"""Writes the module of a kernel for WebAssembly: one state, all arrays at fixed places of one memory.

    void step()

reads the inputs and writes the outputs (passes/regions.py gives the places). Nothing is checked. Every
distance from the memory's begin is written so that LLVM makes it part of the load or store. Constants are
loads, too, once a chunk: as part of the code each would take nine bytes at each use.
"""

from __future__ import annotations

from collections.abc import Sequence

from robokit.engine.emit import ir, sincos
from robokit.engine.emit.straight_line import ChunkWriter
from robokit.engine.passes.regions import Regions
from robokit.engine.trace.blocks import called, position
from robokit.engine.trace.ops import CALL, CONST, RESULT
from robokit.engine.trace.program import Program

CHUNK = 5000
"""Nodes per chunk: longer ones pass less through memory and compile slowly."""

BANK, BANKS = 16384, 4
"""Bytes to a pointer, and pointers: a distance below 16384 takes two bytes of code, a larger one three."""

BASE = 1024
"""First byte of the arrays; what lies below is LLVM's own."""

_SINES = """define internal void @sines(double %x, ptr %to) #0 {{
  {body}
  store double %zsin, ptr %to, align 8
  %next = getelementptr inbounds nuw i8, ptr %to, i32 8
  store double %zcos, ptr %next, align 8
  ret void
}}
"""

_STEP = """define void @step() #0 {{
  call void @whole({banks})
  ret void
}}
"""


POINTERS = ", ".join(f"ptr %w{k}" for k in range(BANKS))
APART = ", ".join(f"ptr noalias %w{k}" for k in range(BANKS))


def wasm_module(program: Program, plan: Regions) -> str:
    """Text of the module."""
    texts = [_SINES.format(body="\n  ".join(sincos.body(1, "%x")))]
    for line in range(len(plan.lines)):
        texts += RegionWriter(program, plan, line).texts()
    banks = ", ".join(f"ptr inttoptr (i32 {BASE + BANK * k} to ptr)" for k in range(BANKS))
    texts.append(_STEP.format(banks=banks))
    return ir.module(texts, {1})


class RegionWriter(ChunkWriter):
    """Writes one line of a plan: the program's own, or a body."""

    element = "getelementptr inbounds nuw"

    def __init__(self, program: Program, plan: Regions, line: int) -> None:
        super().__init__(program, plan.lines[line], direct=True)
        self.regions, self.line, self.scratch = plan, line, plan.size
        if line:
            self.targets, self.fixed = {}, []

    @property
    def name(self) -> str:
        """Of the function."""
        return f"block{self.line - 1}" if self.line else "whole"

    def texts(self) -> list[str]:
        """The chunks, and the function that calls them."""
        chunks = self.functions()
        if self.line:
            chunks.append(self._results(len(chunks)))
        calls = "".join(f"  call void @{self.name}_{k}({POINTERS})\n" for k in range(len(chunks)))
        return [*chunks, f"define internal void @{self.name}({POINTERS}) #0 {{\n{calls}  ret void\n}}\n"]

    def _wrapped(self, index: int, pointers: Sequence[int], lines: Sequence[str]) -> str:
        plan = self.regions
        starts = [*plan.inputs, *plan.tables, *plan.outputs]
        entry = ["entry:", *(self._at(f"%p{k}", starts[k]) for k in pointers)]
        body = "\n  ".join([*entry, *lines])
        return f"define internal void @{self.name}_{index}({APART}) #0 {{\n  {body}\n  ret void\n}}\n"

    def _at(self, name: str, place: int) -> str:
        bank = min(8 * place // BANK, BANKS - 1)
        return f"{name} = getelementptr inbounds nuw i8, ptr %w{bank}, i32 {8 * place - BANK * bank}"

    def _address(self, number: int, name: str) -> None:
        self.lines.append(self._at(name, self.plan.slot[number]))

    def _results(self, index: int) -> str:
        """The results of a body, where calls look for them."""
        self._line(())
        block = self.program.blocks[self.line - 1]
        for at, place in self.regions.results[self.line - 1].items():
            value = self._value(int(block.results[at]))
            self.lines.append(self._at(f"%z{at}", place))
            self.lines.append(f"store double {value}, ptr %z{at}, align 8")
        return self._wrapped(index, sorted(self.pointers), self.lines)

    def _value(self, number: int) -> str:
        node = self.program.nodes[number]
        if node[0] == CONST and number not in self.known:
            k = self.loads[number]
            self.loads[number] += 1
            self.known[number] = f"%k{number}r{k}"
            self.lines.append(self._at(f"%c{number}r{k}", self.regions.constants[node[1]]))
            self.lines.append(f"%k{number}r{k} = load double, ptr %c{number}r{k}, align 8")
        return self.known[number] if node[0] == CONST and number in self.known else super()._value(number)

    def _compute(self, number: int) -> None:
        node = self.program.nodes[number]
        if node[0] == CALL:
            block = called(self.program, number)
            for k, operand in enumerate(node[2:]):
                value = self._value(operand)
                self.lines.append(self._at(f"%x{number}x{k}", self.regions.arguments[block] + k))
                self.lines.append(f"store double {value}, ptr %x{number}x{k}, align 8")
            self.lines.append(f"call void @block{block}({POINTERS})")
        elif node[0] == RESULT:
            places = self.regions.results[called(self.program, node[1])]
            self.lines.append(self._at(f"%y{number}", places[position(self.program, number)]))
            self.lines.append(f"%v{number} = load double, ptr %y{number}, align 8")
        else:
            super()._compute(number)

    def _pair(self, angle: int, value: str) -> str:
        if angle not in self.pairs:
            name = f"{angle}x{self.labels}"
            self.pairs[angle] = f"%w{name}"
            pair = "{double, double}"
            self.lines += [
                self._at(f"%wp{name}", self.scratch),
                self._at(f"%wq{name}", self.scratch + 1),
                f"call void @sines(double {value}, ptr %wp{name})",
                f"%ws{name} = load double, ptr %wp{name}, align 8",
                f"%wc{name} = load double, ptr %wq{name}, align 8",
                f"%wi{name} = insertvalue {pair} poison, double %ws{name}, 0",
                f"%w{name} = insertvalue {pair} %wi{name}, double %wc{name}, 1",
            ]
        return self.pairs[angle]
