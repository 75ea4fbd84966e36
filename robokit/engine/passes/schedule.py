"""Cuts a program's straight line into chunks and gives places in memory to what must outlive one.

One giant basic block compiles 10 to 30 times slower than functions of some hundred nodes and runs no
faster, so the line is cut where few values are alive. A value that crosses a cut gets a slot of the
workspace; slots are used again once their last reader's chunk is over.

Sines and cosines of consecutive inputs (the joint angles) are taken out of the line. A loop computes them
before the first chunk, with full vectors even in code of one state.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate

from robokit.engine.passes.order import Path, blocks, paths
from robokit.engine.trace.graph import LANES, Program
from robokit.engine.trace.ops import CALL, CONST, COS, INPUT, RESULT, SIN, TRUTHS
from robokit.engine.trace.record import called, lane, position

STORE = 2  # weight of an output's store in a chunk, in operations: LLVM's time grows faster than their number


@dataclass
class Angles:
    """A run of consecutive scalars of one input whose sine and cosine are needed."""

    input: int
    offset: int
    count: int
    sin_slot: int
    cos_slot: int


@dataclass
class Plan:
    """What runs, in which order, and where in memory values are.

    Its chunks are those of the program's own line, then those of each body.
    """

    lanes: int  # numbers per value: states that go together
    chunks: list[list[int]]  # node numbers of each chunk, in order
    slot: dict[int, int]  # workspace slot (of `lanes` numbers) of each node that lives in memory
    stored: set[int]  # nodes of chunks that are written to their slot
    angles: list[Angles]  # the sine and cosine runs
    constants: dict[float, int]  # slot of each constant that is an output (only with `bundled`)
    # slot of each input's scalars by (input, offset) (only with `bundled`)
    slot_of_input: dict[tuple[int, int], int]
    slots: int  # slots in all
    # conditions of the guards around each node, the outermost first; nothing where there are none
    inside: dict[int, Path] = field(default_factory=dict)
    # what runs: the number of a chunk, a call, or a range of the steps that share code (similarity.py)
    sequence: list[int | Called | range] = field(default_factory=list)
    # the chunk of each body that is called from within chunks, by block
    direct: dict[int, int] = field(default_factory=dict)
    block_of: dict[int, int] = field(default_factory=dict)  # the block of each chunk of a body
    # values of neighbouring lanes that are neighbouring outputs and nothing else, by the first of them, the
    # only one that is in a chunk
    copies: dict[int, Copy] = field(default_factory=dict)
    # arguments that are computed into the place of the parameter, by call and number
    placed: set[tuple[int, int]] = field(default_factory=set)
    frames: Frames = field(default_factory=lambda: Frames(set()))  # calls that have places of their own

    def reserve(self, lanes: int) -> int:
        """Reserve memory for so many values of :attr:`lanes`, aligned for a vector of them."""
        start = -(-self.slots // lanes) * lanes
        self.slots = start + lanes
        return start


def fixed_places(program: Program, lanes: int, bundled: bool, shortest_run: int) -> Plan:
    """What has its place before anything is cut: inputs, sines and cosines of inputs, constant outputs.

    ``program``, ``lanes``, ``bundled``, ``shortest_run``: as in :func:`call_plan`.
    """
    nodes = program.nodes
    plan = Plan(lanes, [], {}, set(), [], {}, {}, 0)
    by_place = program.input_nodes
    if bundled:
        places = [(k, offset) for k, (_, count) in enumerate(program.inputs) for offset in range(count)]
        plan.slot_of_input = {place: slot for slot, place in enumerate(places)}
        plan.slot = {by_place[place]: slot for slot, place in enumerate(places)}
        plan.slots = len(places)

    trig: dict[int, dict[int, int]] = {}
    codes = program.arrays.code
    for number in program.arrays.order[(codes == SIN) | (codes == COS)].tolist():
        op, angle = nodes[number]
        if nodes[angle][0] == INPUT:
            trig.setdefault(angle, {})[op] = number
    for run in _runs(sorted(nodes[k][1:] for k in trig)):
        if len(run) >= shortest_run:
            angles = Angles(*run[0], len(run), plan.slots, plan.slots + len(run))
            plan.angles.append(angles)
            for k, place in enumerate(run):
                for op, first in ((SIN, angles.sin_slot), (COS, angles.cos_slot)):
                    if op in trig[by_place[place]]:
                        plan.slot[trig[by_place[place]][op]] = first + k
            plan.slots += 2 * len(run)

    for r in (r for row in program.results for r in row if type(r) is not int) if bundled else ():
        if r not in plan.constants:
            plan.constants[r] = plan.slots
            plan.slots += 1
    return plan


def _runs(places: Iterable[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """Groups of consecutive places (input, offset)."""
    runs: list[list[tuple[int, int]]] = []
    for place in places:
        if runs and runs[-1][-1] == (place[0], place[1] - 1):
            runs[-1].append(place)
        else:
            runs.append([place])
    return runs


def cut(program: Program, order: list[int], weight: list[int], size: int) -> list[list[int]]:
    """Chunks of 0.6 to 1.2 times the size in weight, each cut at the position fewest values cross."""
    nodes = program.nodes
    last: dict[int, int] = {}  # by node: where in the line it is read last
    for p, n in enumerate(order):
        last[n] = p
        for operand in nodes[n][1:]:
            if operand in last:
                last[operand] = p
    change = [0] * (len(order) + 2)
    for p, end in enumerate(last.values()):
        change[p + 1] += 1
        change[end + 1] -= 1
    crossing, alive = [], 0
    for step in change:
        alive += step
        crossing.append(alive)
    reached = [0, *accumulate(weight)]
    chunks, start = [], 0
    while start < len(order):
        done = reached[start]
        if reached[-1] - done <= size * 5 // 4:
            stop = len(order)
        else:
            first = max(start + 1, bisect_left(reached, done + size * 3 // 5))
            end = max(first + 1, bisect_right(reached, done + size * 6 // 5))
            stop = min(range(first, end), key=crossing.__getitem__)
        chunks.append(order[start:stop])
        start = stop
    return chunks


def cut_at(order: list[int], size: int, ends: Collection[int]) -> list[list[int]]:
    """Chunks of at most the size, where there are cuts enough, each of which ends with one of these nodes."""
    chunks: list[list[int]] = []
    start = 0
    for p, n in enumerate(order):
        if n in ends or p == len(order) - 1:
            if chunks and len(chunks[-1]) + p + 1 - start <= size:
                chunks[-1] += order[start : p + 1]
            else:
                chunks.append(order[start : p + 1])
            start = p + 1
    return chunks


# -- One plan of what runs, with calls -------------------------------------------------------------------
#
# A program has a line of its own and a body for each shared function (trace/record.py). A call ends a
# chunk, which writes the arguments. The chunks of the body come next, then the chunk that reads the results
# where the body has left them. So a group of tiles goes through the chunks of a body as through any others.
# A call inside a guard is left out, in a tile, where the condition holds in no lane. A body that is one
# chunk is called where it is taken: the chunk goes on after it.
#
# Where arguments and results are:
#
# - All calls of a function share the places of its parameters and results.
# - Where most of what is returned lasts, each call has a *frame*: its arguments, then its results.
# - A body whose lanes are columns (``control_flow.vmap``) and that is called once has its memory to itself.


@dataclass
class Called:
    """A call of a body that consists of several chunks."""

    chunks: range  # of the body
    conditions: Path  # under which they run
    call: int  # its node


def call_plan(
    program: Program,
    lanes: int,
    bundled: bool,
    size: int,
    shortest_run: int,
    ends: Collection[int] | None = None,
) -> Plan:
    """Plan a program.

    Args:
        program: what to compute.
        lanes: numbers per value: states that go together.
        bundled: inputs and outputs live in the workspace (batches) instead of the caller's arrays.
        size: nodes per chunk, about.
        shortest_run: fewest consecutive angles that are worth the vector loop.
        ends: nodes after which alone a line is cut; None to cut where fewest values cross.
    """
    plan = fixed_places(program, lanes, bundled, shortest_run)
    fixed = dict(plan.slot)
    body, path = program.bodies(), paths(program)
    line, insides = program.lines()
    single = called_once(program)
    alone = once(program, insides, single)
    copies = {} if bundled else copied(program, line)
    left_out = {n for copy in copies.values() for n in copy.nodes[1:]} | alone.keys() - copies.keys()
    line = [n for n in line if n not in left_out]
    borrowed = borrowed_by(program, [line, *insides], body, path)
    inside: dict[int, Path] = {}
    orders = []
    for order in (line, *insides):
        order, within = blocks(program, order, borrowed, path)
        orders.append([n for n in order if n not in fixed])
        inside |= within
    with_frames = blocks_with_frames(program, line) if bundled else set[int]()
    results = Counter(program.returned())
    plan.inside, plan.copies = inside, copies
    apart = call_frames(program, orders[0], with_frames, plan.slots)
    plan.frames, plan.slots = apart, apart.slots
    orders[0] = [n for n in orders[0] if n not in apart.results]
    plan.slot |= apart.within | apart.slot
    for block in program.blocks:
        for parameter in block.parameters:
            if parameter not in apart.within:
                plan.slot[parameter] = plan.reserve(block.lanes)
    same, passed = passed_on(program, alone, line, single)
    plan.placed = in_lanes(program, line, plan.slot, single) | passed | apart.placed

    own, calls, bodies = _cut(program, plan, orders, size, {} if bundled else results, ends)
    kept = {n for read in borrowed for n in read}
    kept.update(n for call in calls for n in inside.get(call, ()))
    inner = {operand for order in orders[1:] for operand in program.operands(order)}
    inner.update(r for block in program.blocks for r in block.returned)
    before = {n: k for n, k in fixed.items() if n not in inner}
    _remember(program, plan, own, kept, set(results) if bundled else set(), borrowed, before)
    for block, chunks in zip(program.blocks, bodies, strict=True):
        ends = set(block.returned)
        _remember(program, plan, chunks, ends, ends, borrowed, {}, block.lanes)
    plan.slot |= {n: plan.slot[value] + lane for n, (value, lane) in alone.items()}
    plan.slot |= {parameter: plan.slot[value] for parameter, value in same.items()}
    return plan


def _cut(
    program: Program,
    plan: Plan,
    orders: list[list[int]],
    size: int,
    stores: Mapping[int, int],
    ends: Collection[int] | None,
) -> tuple[range, list[int], list[range]]:
    """Add the chunks and their sequence to a plan.

    Args:
        program: the graph.
        plan: to add them to.
        orders: nodes of the program's own line, then of each body.
        size: nodes per chunk, about.
        stores: how many outputs a node is written to.
        ends: as in :func:`call_plan`.

    Returns:
        the chunks of the program's own line, the calls of large bodies that follow them (0 for none), and the
        chunks of each body.
    """
    nodes, calls, bodies = program.nodes, list[int](), list[range]()
    large = {k for k, order in enumerate(orders[1:]) if len(order) > size}
    for piece in _pieces(program, orders[0], large):
        arguments = [len(nodes[n]) if nodes[n][0] == CALL else 1 for n in piece]
        weight = [a + STORE * stores.get(n, 0) for a, n in zip(arguments, piece, strict=True)]
        plan.chunks += cut(program, piece, weight, size) if ends is None else cut_at(piece, size, ends)
        calls += [0] * (len(plan.chunks) - len(calls))
        if nodes[piece[-1]][0] == CALL and called(program, piece[-1]) in large:
            calls[-1] = piece[-1]
    own = range(len(plan.chunks))
    for order in orders[1:]:
        first = len(plan.chunks)
        weight = [1] * len(order)
        plan.chunks += cut(program, order, weight, size) if ends is None else cut_at(order, size, ends)
        plan.block_of |= dict.fromkeys(range(first, len(plan.chunks)), len(bodies))
        bodies.append(range(first, len(plan.chunks)))
        if order and len(bodies) - 1 not in large:  # empty where all that is read are arguments
            plan.direct[len(bodies) - 1] = first
    for k, call in enumerate(calls):
        plan.sequence.append(k)
        if call:
            plan.sequence.append(Called(bodies[called(program, call)], plan.inside.get(call, ()), call))
    return own, calls, bodies


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
    plan: Plan,
    chunks: range,
    kept: set[int],
    forever: set[int],
    borrowed: list[set[int]],
    before: Mapping[int, int],
    lanes: int = 1,
) -> None:
    """Give places to what must outlive one of these chunks: places of no other line.

    Args:
        program: the graph.
        plan: to add them to.
        chunks: of one line.
        kept: what others read.
        forever: nodes whose place nothing else may have later.
        borrowed: what each body reads of the program around it.
        before: places of what is there before the first chunk and read by this line alone: inputs, sines and
            cosines of inputs. They are free once their value is read for good.
        lanes: columns that this line computes side by side.
    """
    nodes = program.nodes
    home = {n: k for k in chunks for n in plan.chunks[k]}
    last = home | dict.fromkeys(before, -1)
    for k in chunks:  # one after the other: a later reader is not in an earlier chunk
        reads = set(program.operands(plan.chunks[k]))
        for n in plan.chunks[k]:
            reads.update(plan.inside.get(n, ()))
            if nodes[n][0] == CALL:
                reads |= borrowed[called(program, n)]
        last |= dict.fromkeys(last.keys() & reads, k)
    stored = {n for n in home if last[n] > home[n] or n in kept or n in forever}
    stored -= {n for n in home if nodes[n][0] == CALL}  # has no value of its own
    stored |= home.keys() & plan.slot.keys()  # in the lanes of a block
    free: dict[bool, list[int]] = {False: [], True: []}
    ending: dict[int, list[int]] = {k: [] for k in range(chunks.start - 1, chunks.stop)}
    # A sine may be an output as it is.
    returned = set(program.returned())
    for n in before:
        if n not in returned:
            ending[last[n]].append(n)
    for k in chunks:
        for n in ending[k - 1]:
            free[n in program.wide].append(plan.slot[n])
        for n in plan.chunks[k]:
            if n in stored and n not in plan.slot:
                wide = n in program.wide
                plan.slot[n] = free[wide].pop() if free[wide] else plan.reserve(LANES if wide else lanes)
                if n not in forever:
                    ending[last[n]].append(n)
    plan.stored |= stored


def borrowed_by(
    program: Program, orders: list[list[int]], body: dict[int, int], inside: dict[int, Path]
) -> list[set[int]]:
    """What each body reads from the program around it, conditions included."""
    nodes = program.nodes
    found = []
    for k, line in enumerate(orders[1:]):
        read = set(program.blocks[k].returned)
        for number in line:
            read.update(nodes[number][1:])
            read.update(inside.get(number, ()))
        found.append({n for n in read if nodes[n][0] > CONST and n not in body})
    return found


# -- Call frames -----------------------------------------------------------------------------------------
#
# Calls whose arguments and results have places of their own, in code of batches. The derivatives of forward
# dynamics of a humanoid take 0.95 of the time so (128 states, AMD EPYC with AVX-512).
#
# What a function returns for each of many columns may be what the kernel returns. It would be copied from the
# place that all calls share to one that lasts. So each call has a *frame* of memory: its arguments, then its
# results. The body is told where the frame begins. Whoever computes an argument stores it there, and whoever
# needs a result reads it there.


LASTING = 0.5  # least part of a function's results that the kernel returns


@dataclass
class Frames:
    """Where arguments and results of such calls are."""

    blocks: set[int]  # whose calls have frames
    # place in the frame of each parameter and of each value that the body leaves there
    within: dict[int, int] = field(default_factory=dict)
    first: dict[int, int] = field(default_factory=dict)  # place where the frame of each call begins
    # (call, number) of each argument that is computed into its place
    placed: set[tuple[int, int]] = field(default_factory=set)
    slot: dict[int, int] = field(default_factory=dict)  # place of each such argument, and of each result
    # nodes (RESULT, ...) that are such places, and need no operation
    results: set[int] = field(default_factory=set)
    slots: int = 0  # places in all, those before included


def blocks_with_frames(program: Program, line: list[int]) -> set[int]:
    """Blocks that are called several times from the program's own line, and most of whose results last.

    ``line``: its own line, in order.
    """
    nodes = program.nodes
    lasting = set(program.returned())
    here = Counter(called(program, n) for n in line if nodes[n][0] == CALL)
    calls = Counter(called(program, n) for n in program.order if nodes[n][0] == CALL)
    results = [n for n in line if nodes[n][0] == RESULT]
    returned = Counter(called(program, nodes[n][1]) for n in results)
    kept = Counter(called(program, nodes[n][1]) for n in results if n in lasting)
    return {
        k
        for k, count in here.items()
        if count > 1
        and count == calls[k]
        and program.blocks[k].lanes == 1
        and kept[k] >= LASTING * returned[k] > 0
    }


def call_frames(program: Program, line: list[int], blocks: set[int], first: int) -> Frames:
    """Places for the calls of these blocks.

    ``line``: its own line, in order, without what has its place already; ``blocks``: as
    :func:`blocks_with_frames` found them; ``first``: place from which on there is room.
    """
    nodes, body, own = program.nodes, program.bodies(), set(line)
    found = Frames(blocks, slots=first)
    sizes = {}
    for k in blocks:
        block = program.blocks[k]
        mine = [r for r in block.returned if body.get(r) == k]
        places = {n: place for place, n in enumerate(dict.fromkeys([*block.parameters, *mine]))}
        found.within |= places
        sizes[k] = len(places)
    for n in line:
        node = nodes[n]
        if node[0] == CALL and called(program, n) in blocks:
            found.first[n] = found.slots
            found.slots += sizes[called(program, n)]
            for k, operand in enumerate(node[2:]):
                op = nodes[operand][0]
                made_here = operand in own and op > CONST and op not in (CALL, RESULT) and op not in TRUTHS
                if made_here and operand not in found.slot:
                    found.slot[operand] = found.first[n] + k
                    found.placed.add((n, k))
        elif node[0] == RESULT and node[1] in found.first:
            value = program.blocks[called(program, node[1])].results[position(program, n)]
            if value in found.within:
                found.slot[n] = found.first[node[1]] + found.within[int(value)]
                found.results.add(n)
    return found


# -- Columns in lanes ------------------------------------------------------------------------------------
#
# Where values of blocks with lanes are in memory, so that few are copied (``control_flow.vmap``). Of G1 on
# an Intel Xeon with AVX-512, the inverse of the mass matrix takes 0.67 of the time with columns in lanes, and
# the derivatives of forward dynamics 0.73.
#
# A block that is called once has the memory of its arguments and results to itself. What it returns stays
# where it is, and what it is given is stored in its lanes where it is computed.


@dataclass
class Copy:
    """Values of neighbouring lanes that are copied to neighbouring entries of an output."""

    nodes: list[int]  # of the values
    # output, position: where the first one goes
    output: int
    position: int


def once(program: Program, insides: list[list[int]], alone: set[int]) -> dict[int, tuple[int, int]]:
    """The results of blocks with lanes that are called once: (value of the body, lane) of each.

    ``insides``: the nodes of each body; ``alone``: as in :func:`called_once`.
    """
    own = {k: set(insides[k]) for k in alone}
    found = {}
    for n in program.order if alone else ():
        if program.nodes[n][0] == RESULT:
            block = called(program, program.nodes[n][1])
            value = program.blocks[block].results[position(program, n)]
            if block in alone and value in own[block]:
                found[n] = int(value), lane(program, n)
    return found


def in_lanes(
    program: Program, line: list[int], slot: dict[int, int], alone: set[int]
) -> set[tuple[int, int]]:
    """Give arguments of blocks that are called once their place among the lanes; (call, number) of each.

    ``line``: the program's own line; ``slot``: place of each node that has one; those of the arguments are
    added; ``alone``: as in :func:`called_once`.
    """
    own, found = set(line), set[tuple[int, int]]()
    for call in line if alone else ():
        node = program.nodes[call]
        if node[0] == CALL and called(program, call) in alone:
            parameters = program.blocks[called(program, call)].parameters
            for k, operand in enumerate(node[2:]):
                column, place = divmod(k, len(parameters))
                if operand in own and operand not in slot:
                    slot[operand] = slot[parameters[place]] + column
                    found.add((call, k))
    return found


def passed_on(
    program: Program, results: dict[int, tuple[int, int]], line: list[int], alone: set[int]
) -> tuple[dict[int, int], set[tuple[int, int]]]:
    """Arguments that are one value of another block, lane by lane: both are the same place in memory.

    ``results``: as :func:`once` found them; ``line``: the program's own line; ``alone``: as in
    :func:`called_once`. Returns the value of each such parameter, and (call, number) of what need not be
    copied.
    """
    body = program.bodies()
    same, found = dict[int, int](), set[tuple[int, int]]()
    for call in line if results else ():
        node = program.nodes[call]
        if node[0] != CALL or called(program, call) not in alone:
            continue
        block = program.blocks[called(program, call)]
        count = len(block.parameters)
        for k, parameter in enumerate(block.parameters):
            column = [results.get(n) for n in node[2 + k :: count]]
            used = len(column)
            while (
                used
                and column[used - 1] is None
                and program.nodes[node[2 + k + (used - 1) * count]][0] == CONST
            ):
                used -= 1  # lanes that nobody reads
            values = {each[0] if each and each[1] == at else 0 for at, each in enumerate(column[:used])}
            value = values.pop() if len(values) == 1 else 0
            if value and program.blocks[body[value]].lanes == block.lanes:
                same[parameter] = value
                found.update((call, k + at * count) for at in range(block.lanes))
    return same, found


def called_once(program: Program) -> set[int]:
    """Blocks with lanes that are called once."""
    calls = Counter(called(program, n) for n in program.order if program.nodes[n][0] == CALL)
    return {k for k, count in calls.items() if count == 1 and program.blocks[k].lanes > 1}


def copied(program: Program, line: list[int]) -> dict[int, Copy]:
    """Runs of results of one value that are outputs side by side, by their first node."""
    nodes = program.nodes
    read = set(program.operands(program.order))
    read.update(r for block in program.blocks for r in block.returned)
    goes: dict[int, list[tuple[int, int]]] = {}
    for k, row in enumerate(program.results):
        for p, r in enumerate(row):
            if type(r) is int and nodes[r][0] == RESULT:
                goes.setdefault(r, []).append((k, p))
    found: dict[int, Copy] = {}
    run, before = Copy([], 0, 0), None
    for n in filter(goes.__contains__, line):
        to = goes[n]
        if n in read or len(to) != 1:
            continue
        own = nodes[n][1], position(program, n), lane(program, n) - to[0][1], to[0][0]
        if own == before and to[0][1] == run.position + len(run.nodes):
            run.nodes.append(n)
        else:
            run, before = Copy([n], *to[0]), own
        if len(run.nodes) > 1:
            found[run.nodes[0]] = run
    return found
