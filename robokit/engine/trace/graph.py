"""The recorded graph: what an algorithm computes for one robot, each operation once.

A node is the tuple (operation, operands...), and the same tuple is the key that finds it again, so equal
subexpressions are one node. Operands are node numbers and are smaller than the node's own number: the
order of recording is an order of evaluation.

A *reference* to a value is a node number with a sign: -7 is minus the value of node 7. Negation therefore
costs nothing while recording and moves outward by itself (products and sums pull the sign out); a NEG node
exists only where a negative value is stored or fed to something that cannot absorb the sign.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from robokit.engine.trace.ops import CONST, NEG, OPERATIONS, SUB

Node = tuple
"""(opcode, operands...), see ops.py; (INPUT, input, offset); (CONST, value), and in single
precision, if that is another."""


Shares = bool | Literal["large", "asked"]
"""Which functions that are taken several times are recorded once: none, all, or the large ones.

"asked": as the words ``call`` and ``vmap`` say, for a program that is played back.
"""


NODE_BUDGET = 1_400_000
"""Operations that are recorded at most (some seconds); longer functions run on plain numbers."""


class TraceTooLarge(Exception):
    """The graph passed its node budget: run the function on plain floats instead."""


@dataclass
class Block:
    """A shared function (see trace/blocks.py).

    Attributes:
        parameters: nodes that stand for its arguments.
        results: its values: nodes, or constants.
        lanes: columns of arguments that one call takes side by side, and of values that it returns.
        around: with lanes, results that do not depend on the arguments: no results of a call.
    """

    parameters: list[int]
    results: list[int | float]
    lanes: int = 1
    around: set[int] = field(default_factory=set)

    def numbered(self, at: Sequence[int]) -> Block:
        """The same with the nodes' new numbers."""
        results = [at[r] if type(r) is int else r for r in self.results]
        return Block([at[p] for p in self.parameters], results, self.lanes)


class Graph:
    """Nodes under construction, found again by their content.

    Attributes:
        signed: whether constants keep their sign. Iterations are then recorded alike whatever the signs
            of their constants, at a few more operations.
        blocks: shared functions in the order of recording.
        shared: the same by key; None where all functions are written out.
        large: whether only large functions are shared.
        asked: whether the functions of all vmaps are, all columns in one call, and of calls.
        within: whether a shared function is being recorded: what it shares in turn is written out.
        columns: most columns of a function that one call takes side by side.
        measured: what a look at a function has told (trace/blocks.py).
    """

    __slots__ = (
        "asked", "blocks", "budget", "columns", "index", "large", "marks", "measured", "nodes",
        "shared", "signed", "within",
    )  # fmt: skip

    exact = False
    """Whether quotients are never products with a reciprocal."""

    def __init__(
        self, budget: int = 400_000, signed: bool = False, shares: Shares = False, columns: int = 1
    ) -> None:
        self.signed, self.large, self.columns = signed, shares == "large", columns
        self.asked = shares == "asked"
        self.shared: dict[Hashable, Block] | None = {} if shares else None
        self.blocks: list[Block] = []
        self.within = False
        self.measured: dict[Hashable, Any] = {}
        # Node 0 is a placeholder: it could not carry a sign.
        self.nodes: list[Node] = [(CONST, math.nan)]
        self.index: dict[Node, int] = {}
        self.marks: list[int] = []
        self.budget = budget

    def add(self, node: Node) -> int:
        """Number of the node, recorded now if it is new."""
        nodes = self.nodes
        found = self.index.setdefault(node, len(nodes))
        if found == len(nodes):
            nodes.append(node)
            if found > self.budget:
                raise TraceTooLarge(f"more than {self.budget} operations")
        return found

    def record(self, opcode: int, *operands: int) -> int:
        """Number of an operation on nodes; where operands commute, both orders are one node."""
        if OPERATIONS[opcode].commutes and operands[0] > operands[1]:
            operands = operands[::-1]
        return self.add((opcode, *operands))

    def mark(self) -> None:
        """Note that an iteration of the function begins, or that the last one is over."""
        self.marks.append(len(self.nodes))

    def constant(self, value: float) -> int:
        """Reference to a constant; the sign is in the reference, so c and -c are one node."""
        if value < 0.0 and not self.signed:
            return -self.add((CONST, -value))
        return self.add((CONST, value + 0.0))

    def plain(self, ref: int) -> int:
        """Number of a node that holds the signed value itself."""
        if ref > 0:
            return ref
        node = self.nodes[-ref]
        if node[0] == CONST:
            return self.add((CONST, *(-x for x in node[1:])))
        if node[0] == SUB:
            return self.add((SUB, node[2], node[1]))
        return node[1] if node[0] == NEG else self.add((NEG, -ref))
