"""The order of operations: sums of products that fuse, and signs where their values are computed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from robokit.engine.passes.guards import Path
from robokit.engine.trace.graph import Node, Program
from robokit.engine.trace.ops import ADD, CONST, MUL, NEG, SUB

# -- Sums of products ------------------------------------------------------------------------------------
#
# Sums of products in the order that lets each multiplication become half of a fused multiply-add.
#
# The code generator fuses x + a b into one instruction. In x + (a b + c d) it can fuse one of the two
# products; in (x + a b) + c d it can fuse both. Sums of the first kind arise where a force is moved and added
# to another. They are rewritten to the second kind if x is computed before the products, so that no value is
# needed earlier than before. The result may differ by rounding.


def _results(program: Program) -> Iterator[int]:
    """Nodes that are outputs, and results of blocks, as often as they are."""
    rows = chain(program.results, (block.results for block in program.blocks))
    return (r for r in chain.from_iterable(rows) if type(r) is int)


def fused(program: Program) -> Program:
    """The same program with its sums of products in the order that fuses best; nodes are renumbered."""
    nodes, uses = program.nodes, Counter(program.operands(program.order))
    uses.update(_results(program))
    product, inner = bytearray(len(nodes)), bytearray(len(nodes))  # used once: products, sums
    for number in program.order:
        if uses[number] == 1:
            op = nodes[number][0]
            product[number] = op == MUL
            inner[number] = op in (ADD, SUB)

    def products(number: int) -> list[tuple[int, int, int]]:
        """A sum of products and nothing else, from its first: (node, product, sign of it), else []."""
        chain: list[tuple[int, int, int]] = []
        sign = 1
        while inner[number]:
            op, a, b = nodes[number]
            other = sign if op == ADD else -sign
            if product[a] and product[b]:
                return [(number, a, sign), (number, b, other), *reversed(chain)]
            if product[b]:
                chain.append((number, b, other))
                number = a
            elif product[a]:
                chain.append((number, a, sign))
                number, sign = b, other
            else:
                break
        return []

    begins: dict[int, tuple[int, list[tuple[int, int]]]] = {}
    follows: dict[int, tuple[int, int]] = {}
    same: dict[int, int] = {}
    taken: set[int] = set()
    for number in program.order:
        if nodes[number][0] not in (ADD, SUB):
            continue
        choices, (op, *operands) = [], nodes[number]
        for k in (0, 1):
            total, x = operands[k], operands[1 - k]
            chain = products(total) if inner[total] and not product[x] else []
            if chain and x < chain[0][0] and not any(node in taken for node, *_ in chain):
                choices.append((chain[0][0], k, chain))
        if not choices:
            continue
        first, k, chain = max(choices)
        sign = -1 if op == SUB and k == 1 else 1
        sign_x = -1 if op == SUB and k == 0 else 1
        start = [(term, sign * s) for _, term, s in chain[:2]]
        if sign_x < 0:
            start.sort(key=lambda each: -each[1])
            if start[0][1] < 0:
                continue  # minus x minus a b - c d: nothing to begin with
        begins[first] = (sign_x * operands[1 - k], start)
        for node, term, s in chain[2:]:
            follows[node] = (term, sign * s)
        taken.update(node for node, *_ in chain)
        taken.add(number)
        same[number] = operands[k]

    return _written(program, begins, follows, same)


def _written(
    program: Program,
    begins: dict[int, tuple[int, list[tuple[int, int]]]],
    follows: dict[int, tuple[int, int]],
    same: dict[int, int],
) -> Program:
    """The program with some sums rewritten.

    Args:
        program: as recorded.
        begins: nodes that become ± x + first + second product, as (signed x, [(product, sign), ...]).
        follows: nodes that become the sum so far and one product, as (product, sign).
        same: nodes whose value another then has.
    """
    nodes = program.nodes
    fresh: list[Node] = [nodes[0]]
    at = [0] * len(nodes)
    order: list[int] = []

    def put(number: int, node: Node) -> None:
        at[number] = len(fresh)
        order.append(len(fresh))
        fresh.append(node)

    for number, node in enumerate(nodes):
        if number and node[0] <= CONST:
            at[number] = len(fresh)
            fresh.append(node)
    changed = {*same, *begins, *follows}
    for number in program.order:
        node = nodes[number]
        if number not in changed:
            at[number] = len(fresh)
            order.append(len(fresh))
            if len(node) == 3:
                fresh.append((node[0], at[node[1]], at[node[2]]))
            else:
                fresh.append((node[0], *(at[operand] for operand in node[1:])))
        elif number in same:
            at[number] = at[same[number]]
        elif number in begins:
            x, ((first, sign), (second, other)) = begins[number]
            if x > 0:
                put(number, (ADD if sign > 0 else SUB, at[x], at[first]))
            else:
                put(number, (SUB, at[first], at[-x]))
            put(number, (ADD if other > 0 else SUB, at[number], at[second]))
        else:
            term, sign = follows[number]
            before = node[2] if node[1] == term else node[1]
            put(number, (ADD if sign > 0 else SUB, at[before], at[term]))
    results = [[at[r] if type(r) is int else r for r in row] for row in program.results]
    blocks = [block.numbered(at) for block in program.blocks]
    return replace(program, nodes=fresh, order=order, results=results, marks=[], blocks=blocks)


# -- Signs of outputs ------------------------------------------------------------------------------------
#
# Signs of outputs where their values are computed.
#
# A value whose minus is an output gets its sign when the function is over (trace/graph.py): all of them
# last, when the values are long out of the registers. Here such an operation comes right after the last of
# its operands. The mass matrix of Talos, one state, takes 0.93 of the time so.


def signs_early(program: Program) -> Program:
    """The same program in such an order; its nodes keep their numbers, which may then not ascend."""
    nodes = program.nodes
    signs = {n for n in _results(program) if nodes[n][0] in (NEG, SUB)}
    signs = signs.difference(program.operands(program.order))
    signs.difference_update(*(block.results for block in program.blocks))
    if not signs:
        return program
    place = {n: k for k, n in enumerate(program.order)}
    after: dict[int, list[int]] = {}
    for n in program.order:
        if n in signs:
            last = max((place.get(operand, -1) for operand in nodes[n][1:]), default=-1)
            if last >= 0:
                after.setdefault(program.order[last], []).append(n)
    moved = {n for several in after.values() for n in several}
    order: list[int] = []
    for n in program.order:
        if n not in moved:
            order.append(n)
            order += after.get(n, ())
    return replace(program, order=order)


# -- Fused multiply-adds ---------------------------------------------------------------------------------
#
# Chooses the products that are fused with a sum: a fused multiply-add has one rounding in place of two.
#
# The choice is made here and not by a compiler, so that code has the same bits however well it is compiled,
# and on whatever processor or card has the instruction.


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
        if nodes[n][0] in (ADD, SUB):
            for k in nodes[n][1:]:
                if k in products and inside.get(k) == inside.get(n) and (k in wide) == (n in wide):
                    found[n] = k
                    break
    return found


def last_reads(
    program: Program, chunk: Sequence[int], sums: Mapping[int, int], inside: Mapping[int, Path]
) -> dict[int, int]:
    """Where in a chunk each value is read last; a product is computed where its sum is.

    Args:
        program: the graph.
        chunk: nodes of one function, in order.
        sums: what :func:`contractions` found.
        inside: conditions around each node, which are read there, too.
    """
    nodes, last = program.nodes, dict[int, int]()
    for position, n in enumerate(chunk):
        for operand in nodes[n][1:]:
            last[operand] = position
        for condition in inside.get(n, ()) if inside else ():
            last[condition] = position
    for product in sums.values():
        for operand in nodes[product][1:]:
            last[operand] = max(last[operand], last[product])
    return last
