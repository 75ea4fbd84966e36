"""Plans a program and writes its chunks, by the writer that its values ask for."""

from __future__ import annotations

from robokit.engine.emit.call_code import CallWriter
from robokit.engine.emit.ir import FLOAT64, Real
from robokit.engine.emit.pair_code import PairWriter
from robokit.engine.emit.straight_line import ChunkWriter
from robokit.engine.passes.called_lines import called_lines
from robokit.engine.passes.chunks import Schedule, schedule
from robokit.engine.trace.program import Program


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
    if not program.blocks and not program.wide:
        plan = schedule(program, lanes, bundled, size, shortest_run)
        texts = ChunkWriter(program, plan, not bundled, real).functions()
        return plan, texts, [f"chunk{k}" for k in range(len(texts))]
    lines = called_lines(program, lanes, bundled, size, shortest_run)
    writer = (PairWriter if program.wide else CallWriter)(program, lines, not bundled, real)
    texts = writer.functions()
    rest = range(len(lines.chunks), len(texts))  # constants, and what is passed on
    stages: list[str] = []
    for item in (*lines.sequence, *rest):
        if isinstance(item, int):
            stages.append(f"chunk{item}")
            continue
        names = [f"chunk{k}" for k in item.chunks]
        if item.call in lines.windows.first:
            texts += [writer.in_window(f"at{item.call}{name}", item.call, name, parameters) for name in names]
            names = [f"at{item.call}{name}" for name in names]
        if item.conditions:
            texts.append(writer.when(f"when{len(texts)}", item.conditions, names, parameters))
            names = [f"when{len(texts) - 1}"]
        stages += names
    return lines, texts, stages
