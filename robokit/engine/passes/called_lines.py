"""Plans a program with shared texts for this process: chunks of its own line and of each body, one memory.

A call ends a chunk, which writes the arguments. The chunks of the body come next, then the chunk that reads
the results where the body has left them. So a group of tiles goes through the chunks of a body as through
any others. A call inside a guard is left out, in a tile, where the condition holds in no lane.

A body that is one chunk is called where it is taken: the chunk goes on after it.

The plan for WebAssembly, which calls from anywhere, is in regions.py.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from robokit.engine.passes.chunks import STORE, Places, Schedule, cut, fixed_places
from robokit.engine.passes.guards import Path, blocks, paths
from robokit.engine.passes.in_place import in_place
from robokit.engine.passes.regions import borrowed_by
from robokit.engine.passes.side_by_side import Copy, copied, in_lanes, once, passed_on, written_at_once
from robokit.engine.passes.windows import Windows, blocks_with_windows, windows
from robokit.engine.trace.blocks import called
from robokit.engine.trace.ops import CALL
from robokit.engine.trace.program import LANES, Program


@dataclass
class Called:
    """A call of a body of several chunks.

    Attributes:
        chunks: of the body.
        conditions: under which they run.
        call: its node.
    """

    chunks: range
    conditions: Path
    call: int


@dataclass
class CalledLines(Schedule):
    """A schedule whose chunks are those of the program's own line, then those of each body.

    Attributes:
        sequence: what runs: the number of a chunk, or a call.
        direct: the chunk of each body that is called from within chunks, by block.
        block_of: the block of each chunk of a body.
        copies: values of neighbouring lanes that are neighbouring outputs and nothing else, by the first of
            them, the only one that is in a chunk.
        written: those that a body writes itself, by its node.
        placed: arguments that are computed into the place of the parameter, by call and number.
        windows: calls that have places of their own.
    """

    sequence: list[int | Called] = field(default_factory=list)
    direct: dict[int, int] = field(default_factory=dict)
    block_of: dict[int, int] = field(default_factory=dict)
    copies: dict[int, Copy] = field(default_factory=dict)
    placed: set[tuple[int, int]] = field(default_factory=set)
    written: dict[int, Copy] = field(default_factory=dict)
    windows: Windows = field(default_factory=lambda: Windows(set()))

    def reserve(self, lanes: int) -> int:
        """A new place for so many values of :attr:`lanes`, where a vector of them may begin."""
        start = -(-self.slots // lanes) * lanes
        self.slots = start + lanes
        return start


def called_lines(program: Program, lanes: int, bundled: bool, size: int, shortest_run: int) -> CalledLines:
    """Plan a program; arguments as of :func:`robokit.engine.passes.chunks.schedule`."""
    places = fixed_places(program, bundled, shortest_run)
    body, path = program.bodies(), paths(program)
    line, insides = program.lines()
    alone = once(program, insides)
    copies = {} if bundled else copied(program, line)
    direct = written_at_once(program, alone, copies)
    for copy in direct.values():
        del copies[copy.nodes[0]]
    left_out = {n for copy in copies.values() for n in copy.nodes[1:]} | alone.keys() - copies.keys()
    line = [n for n in line if n not in left_out]
    borrowed = borrowed_by(program, [line, *insides], body, path)
    inside: dict[int, Path] = {}
    orders = []
    for order in (line, *insides):
        order, within = blocks(program, order, borrowed, path)
        orders.append([n for n in order if n not in places.slot])
        inside |= within
    own_places = blocks_with_windows(program, line) if bundled else set[int]()
    arguments, stay = in_place(program, orders[0], inside, borrowed, own_places)
    orders[0] = [n for n in orders[0] if n not in stay]
    results = Counter(r for row in program.results for r in row if type(r) is int)
    plan = CalledLines(
        lanes, [], dict(places.slot), set(), places.angles, places.constants, places.inputs(program),
        places.slots, inside, copies=copies, written=direct,
    )  # fmt: skip
    apart = windows(program, orders[0], own_places, plan.slots, arguments.keys())
    plan.windows, plan.slots = apart, apart.slots
    orders[0] = [n for n in orders[0] if n not in apart.results]
    plan.slot |= apart.within | apart.slot
    for block in program.blocks:
        for parameter in block.parameters:
            if parameter not in apart.within:
                plan.slot[parameter] = plan.reserve(LANES if parameter in program.wide else block.lanes)
    same, passed = passed_on(program, alone, line)
    plan.placed = in_lanes(program, line, plan.slot) | passed | set(arguments.values()) | apart.placed
    for n, (call, k) in arguments.items():
        plan.slot[n] = plan.slot[program.blocks[called(program, call)].parameters[k]]

    calls: list[int] = []
    nodes = program.nodes
    large = {k for k, order in enumerate(orders[1:]) if len(order) > size}
    for piece in _pieces(program, orders[0], large):
        stores = [0 if bundled else results[n] for n in piece]
        given = [len(nodes[n]) if nodes[n][0] == CALL else 1 for n in piece]
        plan.chunks += cut(program, piece, [a + STORE * b for a, b in zip(given, stores, strict=True)], size)
        calls += [0] * (len(plan.chunks) - len(calls))
        if nodes[piece[-1]][0] == CALL and called(program, piece[-1]) in large:
            calls[-1] = piece[-1]
    own = len(plan.chunks)
    bodies: list[range] = []
    for order in orders[1:]:
        first = len(plan.chunks)
        plan.chunks += cut(program, order, [1] * len(order), size)
        plan.block_of |= dict.fromkeys(range(first, len(plan.chunks)), len(bodies))
        bodies.append(range(first, len(plan.chunks)))
        if order and len(bodies) - 1 not in large:  # empty where all that is read are arguments
            plan.direct[len(bodies) - 1] = first
    for k, call in enumerate(calls):
        plan.sequence.append(k)
        if call:
            plan.sequence.append(Called(bodies[called(program, call)], inside.get(call, ()), call))

    kept = {n for read in borrowed for n in read}
    kept.update(n for call in calls for n in inside.get(call, ()))
    _remember(program, plan, range(own), kept, places.kept, places, borrowed)
    for block, chunks in zip(program.blocks, bodies, strict=True):
        ends = {r for r in block.results if type(r) is int and r not in direct}
        _remember(program, plan, chunks, ends, ends, places, borrowed, block.lanes)
    plan.slot |= {n: plan.slot[value] + lane for n, (value, lane) in alone.items() if value not in direct}
    plan.slot |= {parameter: plan.slot[value] for parameter, value in same.items()}
    plan.slot |= {n: plan.slot[value] for n, value in stay.items()}
    return plan


def _pieces(program: Program, order: list[int], large: set[int]) -> list[list[int]]:
    """A line cut after each call of a large body."""
    pieces: list[list[int]] = [[]]
    for n in order:
        pieces[-1].append(n)
        if program.nodes[n][0] == CALL and called(program, n) in large:
            pieces.append([])
    return [piece for piece in pieces if piece]


def _remember(
    program: Program,
    plan: CalledLines,
    chunks: range,
    kept: set[int],
    forever: set[int],
    places: Places,
    borrowed: list[set[int]],
    lanes: int = 1,
) -> None:
    """Give places to what must outlive one of these chunks: places of no other line.

    Args:
        program: the graph.
        plan: to add them to.
        chunks: of one line.
        kept: what others read.
        forever: nodes whose place nothing else may have later.
        places: what has its place already.
        borrowed: what each body reads of the program around it.
        lanes: columns that this line computes side by side.
    """
    nodes = program.nodes
    home = {n: k for k in chunks for n in plan.chunks[k]}
    last = dict(home)
    for n, k in home.items():
        reads = [*nodes[n][1:], *plan.inside.get(n, ())]
        if nodes[n][0] == CALL:
            reads += borrowed[called(program, n)]
        for operand in reads:
            if operand in home:
                last[operand] = k
    stored = {n for n in home if last[n] > home[n] or n in kept or n in forever}
    stored -= {n for n in home if nodes[n][0] == CALL}  # has no value of its own
    stored |= home.keys() & plan.slot.keys()  # in the lanes of a block
    free: dict[bool, list[int]] = {False: [], True: []}
    ending: dict[int, list[int]] = {k: [] for k in chunks}
    for k in chunks:
        for n in ending.get(k - 1, ()):
            free[n in program.wide].append(plan.slot[n])
        for n in plan.chunks[k]:
            if n in stored and n not in plan.slot:
                wide = n in program.wide
                plan.slot[n] = free[wide].pop() if free[wide] else plan.reserve(LANES if wide else lanes)
                if n not in forever:
                    ending[last[n]].append(n)
    plan.stored |= stored
