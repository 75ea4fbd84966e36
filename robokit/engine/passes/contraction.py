"""Chooses the products that are fused with a sum: a fused multiply-add has one rounding in place of two.

The choice is made here and not by a compiler, so that code has the same bits however well it is compiled, and
on whatever processor or card has the instruction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from robokit.engine.passes.guards import Path
from robokit.engine.trace.graph import Program
from robokit.engine.trace.ops import ADD, MUL, SUB


def contractions(
    program: Program, chunk: Collection[int], kept: Collection[int], inside: Mapping[int, Path]
) -> dict[int, int]:
    """Sums and differences of a chunk, each with the product that it is fused with, which nothing else uses.

    Args:
        program: the graph.
        chunk: nodes of one function, in order.
        kept: nodes that others read, from memory.
        inside: conditions around each node; both must be under the same ones.
    """
    nodes, wide = program.nodes, program.wide
    uses = Counter(program.operands(chunk))
    products = {n for n in chunk if nodes[n][0] == MUL and uses[n] == 1 and n not in kept}
    found = {}
    for n in chunk:
        op, *operands = nodes[n]
        if op in (ADD, SUB):
            for k in operands:
                if k in products and inside.get(k) == inside.get(n) and (k in wide) == (n in wide):
                    found[n] = k
                    break
    return found
