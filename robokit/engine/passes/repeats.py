"""Iterations of a loop over the tree that do the same share one function, which runs from a table.

A robot of hundreds of joints would make megabytes of straight line. Its text says where iterations begin
(``scalars.iterations``), and the recorded line is cut there. Pieces that are equal, apart from constants and
the places of operands, are of one *kind*. A kind is written once, as a function, and called with a row of a
table: the row holds the places and the constants of a piece. Pieces that are like no others, at roots,
leaves and forks, stay a straight line.

Values that a piece makes for the same readers lie side by side and are called a *bundle*; a row names where
its bundles begin. emit/repeat_code.py writes the functions and the table.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from robokit.engine.passes.chunks import Places, Schedule, cut, fixed_places
from robokit.engine.trace.ops import ADD, CONST, NEG, OPERATIONS, SUB
from robokit.engine.trace.program import Program

WORTH = 18_000
"""Nodes from which on shared code is looked for: a shorter line is faster as it is (7 % at this length)."""

PIECE = 350
"""Nodes per chunk of what is not shared: mostly loads and stores, of which long lines compile slowly."""

LEAST = 3
"""Pieces that must be equal to share a function."""

LONGEST = 4_000
"""Nodes of the longest shared function: LLVM's time grows faster than that of its pieces."""

_SIGNLESS = [ADD if each.number == SUB else each.number for each in OPERATIONS]
"""Opcode of each operation, that of a sum for a difference."""

END = -1
"""Stands among the readers of an output for the caller."""


@dataclass
class Kind:
    """A function for equal pieces.

    Attributes:
        nodes: of the first piece, which the function is written from.
        bundles: how many columns a row has.
        place: column and position within the bundle of each node of the first piece that is in memory.
        values: of each constant node of the first piece that differs among the pieces: its place in the
            piece's row of values.
    """

    nodes: list[int]
    bundles: int
    place: dict[int, tuple[int, int]]
    values: dict[int, int]


@dataclass
class Stepped(Schedule):
    """A schedule with shared pieces.

    Attributes:
        kinds: the functions.
        sequence: the order of the code: the number of a chunk, or a range of steps.
        steps: for each step its kind, its row (a slot for each bundle) and its values.
    """

    kinds: list[Kind] = field(default_factory=list)
    sequence: list[int | range] = field(default_factory=list)
    steps: list[tuple[int, list[int], list[float]]] = field(default_factory=list)

    @property
    def written(self) -> int:
        """Nodes that become code."""
        return sum(map(len, self.chunks)) + sum(len(kind.nodes) for kind in self.kinds)


def stepped(program: Program, size: int) -> Stepped | None:
    """Plan a program with shared pieces, all of whose inputs and outputs live in the workspace.

    Args:
        program: what to compute; its marks say where iterations begin.
        size: nodes per chunk of what is not shared, about.

    Returns:
        the plan, for any number of lanes, or None where it would not save half of the code.
    """
    if len(program.order) < WORTH or not program.marks or program.tables:
        return None
    places = fixed_places(program, bundled=True, shortest_run=1)
    order = [n for n in program.order if n not in places.slot]
    whole = _pieces(order, program.marks)
    shared, least = _alike(program, whole)
    if least >= len(order) // 2:
        return None  # most lines end here: the plan takes ten times as long
    pieces: list[list[int]] = []
    line: list[int] = []
    for piece, kind in [*zip(whole, shared, strict=True), ([], True)]:
        if not kind:
            line += piece
            continue
        if line:
            pieces += cut(program, line, [1] * len(line), size)
            line = []
        if piece:
            pieces.append(piece)
    plan = _plan(program, places, pieces)
    return plan if plan.written < len(order) // 2 else None


def _pieces(order: list[int], marks: Iterable[int]) -> list[list[int]]:
    """The line cut where iterations begin; empty pieces are dropped."""
    pieces: list[list[int]] = [[]]
    ends = iter([*marks, order[-1] + 1])
    end = next(ends)
    for n in order:
        while n >= end:
            end = next(ends)
            if pieces[-1]:
                pieces.append([])
        pieces[-1].append(n)
    return pieces


@dataclass
class _Memory:
    """What lives between pieces: the bundle and the position in it of each node, and the bundles."""

    place: dict[int, tuple[int, int]]
    members: dict[int, list[int]]
    made: list[list[int]]  # bundles by piece
    last: dict[int, int]  # piece that reads a bundle last; END: it is an output


def _memory(program: Program, places: Places, pieces: list[list[int]]) -> _Memory:
    home = {n: k for k, piece in enumerate(pieces) for n in piece}
    readers: defaultdict[int, set[int]] = defaultdict(set)
    for k, piece in enumerate(pieces):
        for n in piece:
            for operand in program.nodes[n][1:]:
                if home.get(operand, k) != k:
                    readers[operand].add(k)
    for n in places.kept:
        if n in home:
            readers[n].add(END)
    # What has a fixed slot is a bundle of its own, with a negative name.
    memory = _Memory({n: (-1 - slot, 0) for n, slot in places.slot.items()}, {}, [], {})
    for piece in pieces:
        bundles: dict[frozenset[int], int] = {}
        for n in piece:
            if n in readers:
                who = frozenset(readers[n])
                bundle = bundles.setdefault(who, len(memory.members))
                members = memory.members.setdefault(bundle, [])
                memory.place[n] = bundle, len(members)
                members.append(n)
                memory.last[bundle] = END if END in who else max(who)
        memory.made.append(list(bundles.values()))
    return memory


def _signature(
    program: Program, memory: _Memory, piece: list[int]
) -> tuple[tuple[Any, ...], list[int], dict[float, int]]:
    """What a piece does, without its places and constants; its bundles and constants in order of use."""
    nodes, place = program.nodes, memory.place
    local = {n: k for k, n in enumerate(piece)}
    bundles: dict[int, int] = {}
    values: dict[float, int] = {}
    signature: list[Any] = []
    for n in piece:
        node = nodes[n]
        signature.append(node[0])
        for operand in node[1:]:
            inside = local.get(operand)
            if inside is not None:
                signature.append(inside)
            elif nodes[operand][0] == CONST:
                signature.append((values.setdefault(nodes[operand][1], len(values)),))
            else:
                bundle, position = place[operand]
                signature.append((bundles.setdefault(bundle, len(bundles)), position))
        if n in place:
            bundle, position = place[n]
            signature.append((bundles.setdefault(bundle, len(bundles)), position, None))
    return tuple(signature), list(bundles), values


def _alike(program: Program, pieces: list[list[int]], signs: bool = True) -> tuple[list[bool], int]:
    """Which pieces have enough others of the same operations: a guess, before places are known.

    Args:
        program: the graph.
        pieces: of its line.
        signs: whether a sum and a difference are two operations.

    Returns:
        that, and the fewest nodes that can be left to write.
    """
    nodes = program.nodes
    if signs:
        found = [hash(tuple([nodes[n][0] for n in piece])) for piece in pieces]
    else:
        found = [
            hash(tuple([_SIGNLESS[nodes[n][0]] for n in piece if nodes[n][0] != NEG])) for piece in pieces
        ]
    count = Counter(found)
    alike = [count[one] >= LEAST and len(piece) <= LONGEST for one, piece in zip(found, pieces, strict=True)]
    once = {one: len(piece) for one, piece, each in zip(found, pieces, alike, strict=True) if each}
    rest = sum(len(piece) for piece, each in zip(pieces, alike, strict=True) if not each)
    return alike, rest + sum(once.values())


def alike_but_for_signs(program: Program) -> bool:
    """Whether iterations would be alike, nearly all, if constants kept their signs (``Graph.signed``)."""
    _, least = _alike(program, _pieces(program.order, program.marks), signs=False)
    return least < 0.6 * len(program.order)


def _plan(program: Program, places: Places, pieces: list[list[int]]) -> Stepped:
    memory = _memory(program, places, pieces)
    start, slots = _allocate(memory, places.slots)
    slot = dict(places.slot)
    for bundle, members in memory.members.items():
        for position, n in enumerate(members):
            slot[n] = start[bundle] + position
    plan = Stepped(
        0, [], slot, set(memory.place) - set(places.slot), places.angles, places.constants, {}, slots
    )
    plan.slot_of_input = places.inputs(program)

    found = [_signature(program, memory, piece) for piece in pieces]
    groups: defaultdict[tuple[Any, ...], list[int]] = defaultdict(list)
    for k, (signature, _, _) in enumerate(found):
        groups[signature].append(k)
    kind_of: dict[int, int] = {}
    varying: list[list[int]] = []
    for group in groups.values():
        if len(group) >= LEAST and len(pieces[group[0]]) <= LONGEST:
            rows = [list(found[k][2]) for k in group]
            differ = [c for c, column in enumerate(zip(*rows, strict=True)) if len(set(column)) > 1]
            kind_of |= dict.fromkeys(group, len(plan.kinds))
            plan.kinds.append(_kind(program, memory, pieces[group[0]], found[group[0]], differ))
            varying.append(differ)
    for k, piece in enumerate(pieces):
        kind = kind_of.get(k)
        if kind is None:
            plan.sequence.append(len(plan.chunks))
            plan.chunks.append(piece)
            continue
        _, bundles, values = found[k]
        row = [start[b] if b >= 0 else -1 - b for b in bundles]
        constants = list(values)
        here = len(plan.steps)
        plan.steps.append((kind, row, [constants[c] for c in varying[kind]]))
        before = plan.sequence[-1] if plan.sequence else 0
        if isinstance(before, range):
            plan.sequence[-1] = range(before.start, here + 1)
        else:
            plan.sequence.append(range(here, here + 1))
    return plan


def _kind(program: Program, memory: _Memory, piece: list[int], found: Any, differ: list[int]) -> Kind:
    _, bundles, values = found
    column = {bundle: k for k, bundle in enumerate(bundles)}
    used = {operand for n in piece for operand in program.nodes[n][1:]} | set(piece)
    place = {n: (column[memory.place[n][0]], memory.place[n][1]) for n in used if n in memory.place}
    row = {c: k for k, c in enumerate(differ)}
    constants = {
        n: row[values[program.nodes[n][1]]]
        for n in used
        if program.nodes[n][0] == CONST and values[program.nodes[n][1]] in row
    }
    return Kind(piece, len(bundles), place, constants)


def _allocate(memory: _Memory, slots: int) -> tuple[dict[int, int], int]:
    """First slot of each bundle, and slots in all; those whose readers are done are used again."""
    start: dict[int, int] = {}
    free: defaultdict[int, list[int]] = defaultdict(list)
    ending: defaultdict[int, list[int]] = defaultdict(list)
    for k, made in enumerate(memory.made):
        for bundle in ending.pop(k - 1, ()):
            free[len(memory.members[bundle])].append(start[bundle])
        for bundle in made:
            size = len(memory.members[bundle])
            if free[size]:
                start[bundle] = free[size].pop()
            else:
                start[bundle] = slots
                slots += size
            ending[memory.last[bundle]].append(bundle)
    return start, slots
