"""The order of operations: guarded ones in blocks, sums that fuse, signs where values are computed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from itertools import chain, groupby, pairwise
from typing import Any

from robokit.engine.trace import ops
from robokit.engine.trace.graph import Node, Program, needed
from robokit.engine.trace.record import called

# -- Guards ----------------------------------------------------------------------------------------------
#
# Guarded blocks: what is only needed where a condition holds runs only if it holds in some lane.
#
# A guard is recorded as choices between a value and what stands for it (``control_flow.cond``), so that every
# lane gets the same number whether the block ran for it or for its neighbour. All that nothing but the values
# of such choices depends on is *inside* the guard: this is found here, from the graph. What is also used
# elsewhere is outside. A value that goes from one block to a later one with the same condition is inside too.
# So a choice decides what is right, and a branch only what is skipped: any node may be computed where it need
# not be.
#
# emit/straight_line.py writes the branches.

Path = tuple[int, ...]  # the conditions of the guards that a node is inside of, the outermost first
Common = Callable[[Path, Path], Path]  # what two paths have in common

CHOICES = (ops.GUARD, ops.SELECT)

LEAST = 8  # fewest nodes that a branch pays for


def paths(program: Program) -> dict[int, Path]:
    """The path of each node inside a guard: the conditions around it; other nodes are missing."""
    found = _paths(program, _shared)
    return found if _nested_alike(set(found.values())) else _paths(program, _beginning)


def _nested_alike(found: set[Path]) -> bool:
    """Whether no guard is inside another one here and around it there: then no blocks wait for each other."""
    inside: defaultdict[int, set[int]] = defaultdict(set)
    for path in found:
        for outer, inner in pairwise(path):
            inside[inner].add(outer)
    try:
        TopologicalSorter(inside).prepare()
    except CycleError:
        return False
    return True


def _paths(program: Program, common: Common) -> dict[int, Path]:
    """The same, where what is read under several paths is inside what they have in common."""
    nodes, arrays = program.nodes, program.arrays
    conditions = set(arrays.word[arrays.begin[:-1][arrays.code == ops.GUARD] + 1].tolist())
    if not conditions:
        return {}
    found: list[Any] = [None] * len(nodes)  # None: nothing has read it so far
    for r in program.returned():
        found[r] = ()
    inner: dict[tuple[Path, int], Path] = {}
    for number in reversed(program.order):
        here = found[number]
        node = nodes[number]
        op = node[0]
        if op in CHOICES and node[1] in conditions and whole(nodes, node[1]) not in here:
            condition = whole(nodes, node[1])
            within = inner.setdefault((here, condition), (*here, condition))
            _narrow(found, node[2], within, common)
            for operand in (node[1], node[3]):
                _narrow(found, operand, here, common)
        elif not here:
            for operand in node[1:]:
                found[operand] = here
        else:
            for operand in node[1:]:
                before = found[operand]
                if before is None:
                    found[operand] = here
                elif before is not here:
                    found[operand] = common(before, here)
        if op == ops.CALL:  # all calls come after their body: its path is what theirs have in common
            for r in program.blocks[called(program, number)].returned:
                _narrow(found, r, here, common)
    for number in program.order if program.blocks else ():
        if nodes[number][0] == ops.RESULT:  # read at once: the next call writes it anew
            found[number] = found[nodes[number][1]]
    body = program.bodies()
    around = _around_bodies(program, found, common)
    for number in program.order if body else ():
        path = found[number]
        if number in body:  # a call is skipped as a whole: inside it there are only the guards of the body
            found[number] = path[around[body[number]] :]
        else:  # what a body needs under a condition of its own is computed before
            known = next((k for k, condition in enumerate(path) if condition in body), len(path))
            found[number] = path[:known]
    return {n: found[n] for n in program.order if found[n]}


def whole(nodes: Sequence[Node], condition: int) -> int:
    """The condition of a branch; for one lane of a vector condition, the vector, on which other branches
    depend, too.
    """
    return nodes[condition][1] if nodes[condition][0] in (ops.FIRST, ops.SECOND) else condition


def _around_bodies(program: Program, found: list[Any], common: Common) -> dict[int, int]:
    """How many guards are around all calls of each block: the first of the paths of its nodes."""
    around: dict[int, Path] = {}
    for number in program.order if program.blocks else ():
        if program.nodes[number][0] == ops.CALL:
            block = called(program, number)
            around[block] = common(around.get(block, found[number]), found[number])
    return {block: len(path) for block, path in around.items()}


def _narrow(found: list[Any], number: int, path: Path, common: Common) -> None:
    """A node is read under these conditions, too."""
    before = found[number]
    found[number] = path if before is None else common(before, path)


def _shared(a: Path, b: Path) -> Path:
    """The guards that two paths share, in the order of the first."""
    return a if a == b else tuple(condition for condition in a if condition in b)


def _beginning(a: Path, b: Path) -> Path:
    """The guards that two paths share from the outermost on."""
    if a == b:
        return a
    length = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        length += 1
    return a[:length]


def opened(program: Program) -> Program:
    """The same program without redundant choices: inside a guard on its own condition, a choice has only one
    outcome.
    """
    inside = paths(program)
    if not inside:
        return program
    nodes, same = list(program.nodes), dict[int, int]()
    for number in program.order:
        node = nodes[number]
        if not same.keys().isdisjoint(node[1:]):
            nodes[number] = (node[0], *(same.get(operand, operand) for operand in node[1:]))
        if node[0] in CHOICES and node[1] in inside.get(number, ()):
            same[number] = nodes[number][2]
    if not same:
        return program
    wanted = {*program.returned(), *(same.get(r, r) for block in program.blocks for r in block.returned)}
    order = needed(nodes, program.order, wanted)
    blocks = [
        replace(block, results=[same.get(r, r) if type(r) is int else r for r in block.results])
        for block in program.blocks
    ]
    made = replace(program, nodes=nodes, order=order, blocks=blocks)
    made.counts = made.counted(order)
    return made


def guarded(program: Program) -> dict[str, int]:
    """Operations inside guards, counted by kind."""
    return program.counted(paths(program))


def blocks(
    program: Program,
    order: list[int] | None = None,
    reads: Sequence[set[int]] = (),
    path: dict[int, Path] | None = None,
) -> tuple[list[int], dict[int, Path]]:
    """An order of evaluation in which guarded blocks are in one piece, and the path of each node.

    A node inside a guard waits until the first choice that needs a value of the block, or the first call. The
    choice itself waits until it is read, so that the block's values are used where they are at hand.
    ``order``: some of its nodes; None for all; ``reads``: what the body of each shared function reads from
    the program around it; ``path``: as in :func:`paths`, where it is known.
    """
    order = program.order if order is None else order
    path = paths(program) if path is None else path
    if not path:
        return order, {}
    nodes = program.nodes
    waiting: defaultdict[Path, list[int]] = defaultdict(list)
    line: list[int] = []
    placed: set[int] = set()

    def walk(numbers: list[int], here: Path) -> None:
        for number in numbers:
            own = path.get(number, ())
            if own != here:
                waiting[own[: len(here) + 1]].append(number)
                continue
            node = nodes[number]
            if node[0] in CHOICES and nodes[node[2]][0] > ops.CONST and node[2] not in placed:
                enter((*here, whole(nodes, node[1])))
            if node[0] == ops.CALL:
                flush(here, reads[called(program, number)])
            line.append(number)
            placed.add(number)

    def enter(block: Path) -> None:
        numbers = waiting.pop(block, [])
        # What the block needs where more holds than in another block waits there.
        flush(block[:-1], {operand for number in numbers for operand in nodes[number][1:]})
        walk(numbers, block)

    def flush(here: Path, wanted: set[int]) -> None:
        for block in [b for b in waiting if b[:-1] == here and not wanted.isdisjoint(waiting[b])]:
            if block in waiting:
                enter(block)
                flush(block, wanted)

    walk(_sunk(program, order, reads, path), ())
    return line, _worth(program, line, path)


def _sunk(program: Program, order: list[int], reads: Sequence[set[int]], path: dict[int, Path]) -> list[int]:
    """The order with each choice of a guard before the first node that reads it; see :func:`blocks`."""
    nodes, conditions = program.nodes, {c for own in path.values() for c in own}
    line: list[int] = []
    later: set[int] = set()

    def need(wanted: Iterable[int]) -> None:
        for number in sorted(later.intersection(wanted)):
            if number in later:
                later.remove(number)
                need(nodes[number][1:])
                line.append(number)

    for number in order:
        if nodes[number][0] == ops.GUARD and number not in conditions:
            later.add(number)
            continue
        need(nodes[number][1:])
        if nodes[number][0] == ops.CALL:
            need(reads[called(program, number)])
        line.append(number)
    need(list(later))
    return line


def _worth(program: Program, line: list[int], path: dict[int, Path]) -> dict[int, Path]:
    """The paths without the guards of blocks that are too short for a branch of their own."""
    kept: dict[int, Path] = {}
    for own, group in groupby(line, lambda n: path.get(n, ())):
        run = list(group)
        opcodes = {program.nodes[n][0] for n in run}
        dear = any(op == ops.CALL or ops.OPERATIONS[op].paired for op in opcodes)
        if own and len(run) < LEAST and not dear:
            own = own[:-1]
        if own:
            kept |= dict.fromkeys(run, own)
    return kept


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
    return chain(program.returned(), *(block.returned for block in program.blocks))


def fused(program: Program) -> Program:
    """The same program with its sums of products in the order that fuses best; nodes are renumbered."""
    nodes, uses = program.nodes, Counter(program.operands(program.order))
    uses.update(_results(program))
    product, inner = bytearray(len(nodes)), bytearray(len(nodes))  # used once: products, sums
    for number in program.order:
        if uses[number] == 1:
            op = nodes[number][0]
            product[number] = op == ops.MUL
            inner[number] = op in (ops.ADD, ops.SUB)

    def products(number: int) -> list[tuple[int, int, int]]:
        """A sum of products and nothing else, from its first: (node, product, sign of it), else []."""
        chain: list[tuple[int, int, int]] = []
        sign = 1
        while inner[number]:
            op, a, b = nodes[number]
            other = sign if op == ops.ADD else -sign
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
        if nodes[number][0] not in (ops.ADD, ops.SUB):
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
        sign = -1 if op == ops.SUB and k == 1 else 1
        sign_x = -1 if op == ops.SUB and k == 0 else 1
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

    ``program``: as recorded; ``begins``: nodes that become ± x + first + second product, as (signed x,
    [(product, sign), ...]); ``follows``: nodes that become the sum so far and one product, as (product,
    sign); ``same``: nodes whose value another then has.
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
        if number and node[0] <= ops.CONST:
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
                put(number, (ops.ADD if sign > 0 else ops.SUB, at[x], at[first]))
            else:
                put(number, (ops.SUB, at[first], at[-x]))
            put(number, (ops.ADD if other > 0 else ops.SUB, at[number], at[second]))
        else:
            term, sign = follows[number]
            before = node[2] if node[1] == term else node[1]
            put(number, (ops.ADD if sign > 0 else ops.SUB, at[before], at[term]))
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
    """The same program with negations and differences that only outputs need right after their operands.

    Nodes keep their numbers, which may then not ascend.
    """
    nodes = program.nodes
    signs = {n for n in _results(program) if nodes[n][0] in (ops.NEG, ops.SUB)}
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

    ``chunk``: nodes of one function, in order; ``kept``: nodes that others read, from memory; ``inside``:
    conditions around each node; both must be under the same ones.
    """
    nodes, wide = program.nodes, program.wide
    uses = Counter(program.operands(chunk))
    products = {n for n in chunk if nodes[n][0] == ops.MUL and uses[n] == 1 and n not in kept}
    found = {}
    for n in chunk:
        if nodes[n][0] in (ops.ADD, ops.SUB):
            for k in nodes[n][1:]:
                if k in products and inside.get(k) == inside.get(n) and (k in wide) == (n in wide):
                    found[n] = k
                    break
    return found


def last_reads(
    program: Program, chunk: Sequence[int], sums: Mapping[int, int], inside: Mapping[int, Path]
) -> dict[int, int]:
    """Where in a chunk each value is read last; a product is computed where its sum is.

    ``chunk``: nodes of one function, in order; ``sums``: what :func:`contractions` found; ``inside``:
    conditions around each node, which are read there, too.
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
