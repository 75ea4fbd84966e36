"""The directive `.. machine-code::`: a pendulum's inverse dynamics from text to assembly, as it is today."""

from __future__ import annotations

import inspect
import re

from generated import Generated, code_block
from sphinx.application import Sphinx

import robokit as rk
from robokit.algorithms.rnea import rnea
from robokit.dynamics.build import flat_function, outputs, sizes
from robokit.dynamics.table import KERNELS
from robokit.engine.backend import llvm
from robokit.engine.emit.batch_module import batch_module
from robokit.engine.trace.graph import Program
from robokit.engine.trace.ops import CONST, INPUT, OPERATIONS
from robokit.engine.trace.record import trace
from robokit.model import ModelBuilder


def pendulum() -> rk.Robot:
    """One revolute joint about y and a rod of 2 kg that hangs from it."""
    rod = [[0.17, 0.0, 0.0], [0.0, 0.17, 0.0], [0.0, 0.0, 0.01]]
    builder = ModelBuilder("pendulum").link("ceiling").link("rod", 2.0, com=(0.0, 0.0, -0.5), inertia=rod)
    return builder.joint("hinge", "revolute", "ceiling", "rod", axis=(0.0, 1.0, 0.0)).build()


def recorded(robot: rk.Robot) -> Program:
    """The graph of its inverse dynamics."""
    row = KERNELS["rnea"]
    inputs = sizes(row, robot)
    return trace(flat_function(row, robot), inputs, outputs(row, robot))


def listing(program: Program) -> str:
    """A graph as one line an operation."""
    number = {n: f"x{k}" for k, n in enumerate(program.order)}

    def name(n: int) -> str:
        node = program.nodes[n]
        if node[0] == INPUT:
            return f"{program.inputs[node[1]][0]}[{node[2]}]"
        return f"{node[1]:g}" if node[0] == CONST else number[n]

    lines = []
    for n in program.order:
        opcode, *operands = program.nodes[n]
        values = tuple(name(operand) for operand in operands)
        lines.append(f"{number[n]} = {OPERATIONS[opcode].notation % values}")
    for (output, _), row in zip(program.outputs, program.results, strict=True):
        lines += [f"{output}[{k}] = {number.get(r, r)}" for k, r in enumerate(row)]
    return "\n".join(lines)


def function(text: str, start: str, end: str) -> str:
    """The part of a listing that begins and ends with lines that match."""
    found = re.search(rf"^{start}.*?^{end}$", text, re.MULTILINE | re.DOTALL)
    if found is None:
        raise ValueError(f"nothing between {start} and {end}")
    return found[0]


class MachineCode(Generated):
    """From text to assembly."""

    def rest(self) -> list[str]:
        """The five stages."""
        program = recorded(pendulum())
        module, _ = batch_module(program, 4, "pendulum", fused=True)
        assembly, _ = llvm.cross(module, "x86_64-linux-gnu", "x86-64-v3")
        body = [
            line
            for line in function(assembly, "chunk0:", r"\tretq").split("\n")
            if not re.match(r"\s*\.(cfi|p2align)|\s*#", line)
        ]
        chunk = function(module, r"define internal void @chunk0", "}")
        text = inspect.getsource(rnea)
        return [
            "The text in ``robokit/algorithms/rnea.py``:",
            "",
            *code_block("python", text),
            "Its recording for a rod of 2 kg that hangs from one hinge. What depends on masses and",
            "lengths alone is already a number, and what is zero is left out.",
            "",
            *code_block("text", listing(program)),
            "The same in LLVM's intermediate language. Each value is a vector of four states. Sines and",
            "cosines of all angles were computed before and are in the workspace. A product and a sum are",
            "one operation.",
            "",
            *code_block("llvm", chunk),
            "The machine code for a processor with AVX2:",
            "",
            *code_block("text", "\n".join(body)),
        ]


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_directive("machine-code", MachineCode)
    return {"parallel_read_safe": True}
