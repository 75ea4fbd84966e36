"""Writes a recorded program as LLVM IR for a card: one state a thread.

    SYMBOL(ptr a0, i64 between0, i64 own0, ..., i64 rows)     for inputs, then outputs

Number j of state t of an array is at ``a + (j between + t own) bytes``. With the states side by side
(own = 1) the 32 threads of a warp read and write neighbours. A thread takes state after state, as many apart
as there are threads.

The functions are the engine's own chunks (emit/straight_line.py) with another beginning. A program of up to
:data:`LONG` operations is one function, in one part. A longer one is cut into functions of :data:`PIECE`
operations, in parts of their own; values that cross a cut are in memory of the thread's own, which the
hardware lays side by side between threads.

The same products are fused with the same sums as in code of batches for a processor with fused multiply-adds
(passes/order.py): no cut is made that the processor's code has not. So the card computes the same bits.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from robokit.engine.backend.targets import Planned, Target
from robokit.engine.cuda import assemble
from robokit.engine.cuda.assemble import PART, REGISTERS, TRIPLE
from robokit.engine.cuda.driver import TEAM, Card, Team
from robokit.engine.emit import ir
from robokit.engine.emit.ir import FLOAT32, FLOAT64, Real, constant
from robokit.engine.emit.straight_line import ChunkWriter, in_turn
from robokit.engine.passes.order import contractions
from robokit.engine.passes.schedule import Plan, call_plan
from robokit.engine.trace.graph import Node, Program, TraceTooLarge, needed
from robokit.engine.trace.ops import ADD, CALL, COS, GUARD, INPUT, INTRINSICS, RESULT, SIN, SUB
from robokit.engine.trace.record import called, position

LONG = 12_000  # operations from which on a program is cut into pieces
PIECE = 2_000  # operations of a piece, about

LIMITS = {FLOAT32: 128, FLOAT64: 255}
"""Registers of a thread in code of several pieces. In single precision 128, so that 16 warps share a
multiprocessor; in double precision what does not fit into 128 takes longer (derivatives of ABA of G1 on an
H200: 26 million a second, 33 with 255).
"""

ONE_FUNCTION = 10**9

THREAD = """entry:
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %cta = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %ntid = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %ncta = call i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
  %block = mul i32 %cta, %ntid
  %me = add i32 %block, %tid
  %first = zext i32 %me to i64
  %threads = mul i32 %ncta, %ntid
  %step = zext i32 %threads to i64
"""
"""The number of a thread, and how many there are: states first, first + step, ..."""

READ = "".join(
    f"declare i32 @llvm.nvvm.read.ptx.sreg.{x}()\n" for x in ("tid.x", "ctaid.x", "ntid.x", "nctaid.x")
)


def fused_products(program: Program) -> tuple[set[int], set[int]]:
    """The products that code of batches fuses with a sum, and the nodes that its chunks end with."""
    plan = call_plan(program, 1, True, int(ir.LONGER * ir.CHUNK), 1)
    found = set[int]()
    for chunk in plan.chunks:
        found |= set(contractions(program, chunk, plan.stored, plan.inside).values())
    return found, {chunk[-1] for chunk in plan.chunks if chunk}


class CardWriter(ChunkWriter):
    """Writes chunks of code whose arguments are columns in the memory of a card."""

    def __init__(self, program: Program, plan: Plan, real: Real, products: set[int]) -> None:
        super().__init__(program, plan, True, real)
        self.products = products  # that are fused with a sum
        self.arrays = program.first_output + len(program.outputs)
        self.fixed = [
            (k, position + j, value, 1) for k, position, value, count in self.fixed for j in range(count)
        ]

    @property
    def parameters(self) -> str:
        """Parameters of each function: the thread's memory, and each array's own state and stride between
        numbers.
        """
        arrays = (f"ptr addrspace(1) %g{k}, i32 %b{k}" for k in range(self.arrays))
        return ", ".join(["ptr addrspace(5) noalias %ws5", *arrays])

    @property
    def taken(self) -> str:
        """Parameters of the kernel: each array's address, stride between numbers and stride between
        states.
        """
        return "".join(f"ptr addrspace(1) %a{k}, i64 %n{k}, i64 %o{k}, " for k in range(self.arrays))

    @property
    def between(self) -> str:
        """Instructions of the kernel that convert the strides between numbers to the functions' type."""
        return "\n  ".join(f"%b{k} = trunc i64 %n{k} to i32" for k in range(self.arrays))

    @property
    def own_state(self) -> str:
        """Instructions of the kernel that compute where state %t of each array begins."""
        return "\n  ".join(
            f"%w{k} = mul i64 %t, %o{k}\n  %g{k} = getelementptr {self.t}, ptr addrspace(1) %a{k}, i64 %w{k}"
            for k in range(self.arrays)
        )

    def _entry(self, pointers: Sequence[int] = ()) -> list[str]:
        # LLVM follows these casts and gives each load and store its state space.
        entry = ["entry:", "%ws = addrspacecast ptr addrspace(5) %ws5 to ptr"]
        return [*entry, *(f"%p{k} = addrspacecast ptr addrspace(1) %g{k} to ptr" for k in pointers)]

    def _forget(self, position: int, last: object) -> None:
        """Nothing: ptxas decides what is in registers."""

    def _column(self, array: int, position: int) -> str:
        """Name of the address of a number of this thread's state."""
        self.pointers.add(array)
        far, offset, name = self.fresh(), self.fresh(), self.fresh()
        self.lines += [
            f"{far} = sext i32 %b{array} to i64",
            f"{offset} = mul i64 {far}, {position}",
            f"{name} = getelementptr {self.real.kind}, ptr %p{array}, i64 {offset}",
        ]
        return name

    def _value(self, number: int) -> str:
        node = self.program.nodes[number]
        if node[0] != INPUT or number in self.known:
            return super()._value(number)
        place, name = self._column(node[1], node[2]), self.fresh()
        self.lines.append(f"{name} = load {self.t}, ptr {place}, align {self.align}, !invariant.load !0")
        self.known[number] = name
        return name

    def _place(self, k: int, position: int) -> str:
        return self._column(self.program.first_output + k, position)

    def _output(self, k: int, position: int, value: str) -> None:
        place = self._place(k, position)
        self.lines.append(f"store {self.t} {value}, ptr {place}, align {self.align}")

    def _fixed_output(self, k: int, position: int, value: float, count: int) -> None:
        self._output(k, position, constant(1, value, self.real))

    def _contractions(self, chunk: Sequence[int]) -> dict[int, int]:
        found = {}
        for n in chunk:
            op, *operands = self.program.nodes[n]
            product = next((k for k in operands if k in self.products), None) if op in (ADD, SUB) else None
            if product is not None:
                found[n] = product
        return found


def flat_code(program: Program, name: str, real: Real, in_one_order: bool = False) -> str:
    """The text of a program for a card, as assemble.py takes it.

    ``name``: of the kernel; ``real``: its numbers; ``in_one_order``: whether no product is fused with a sum
    (engine/reproducible.py).
    """
    products, ends = fused_products(program)
    if in_one_order:
        products = set()
    long = len(program.order) > LONG
    plan = call_plan(program, 1, False, PIECE if long else ONE_FUNCTION, ONE_FUNCTION, ends)
    writer = CardWriter(program, plan, real, products)
    texts, stages = in_turn(writer, writer.parameters)
    kernel = _kernel(writer, name, stages)
    if not long:
        return module([*texts, kernel], real, fused=not in_one_order)
    own = [t for t in texts if t.startswith("define internal void @when")]
    pieces = [t.replace("define internal", "define", 1) for t in texts if t not in own]
    declared = {t[t.index("@") + 1 : t.index("(")]: declaration(t) for t in pieces}
    parts = [module([t], real, declared, not in_one_order) for t in pieces]
    parts.append(module([*own, kernel], real, declared, not in_one_order))
    return f"{REGISTERS}{LIMITS[real]}\n" + "".join(f"{PART}\n{part}" for part in parts)


def declaration(function: str) -> str:
    """Of a function that is defined in another part."""
    heading = function[: function.index(" {")]
    return heading.replace("define", "declare", 1).removesuffix(" #0") + "\n"


def module(
    functions: Sequence[str], real: Real, declared: dict[str, str] | None = None, fused: bool = True
) -> str:
    """A module of some functions; those that they call and that are not among them are declared.

    With ``fused``, products in sines are fused with sums.
    """
    body = "\n".join(functions)
    head = [f'target triple = "{TRIPLE}"\n']
    head += [
        ir.declared(f, 1, real)
        for f in (*INTRINSICS, "fma")
        if f"@llvm.{f}." in body or f == "fabs" or (f == "fma" and "@sincos(" in body)
    ]
    head += ["declare void @llvm.nvvm.barrier0()\n"] if "@llvm.nvvm.barrier0(" in body else []
    head += [READ] if "@llvm.nvvm.read.ptx.sreg." in body else []
    head += [
        text
        for callee, text in (declared or {}).items()
        if f"call void @{callee}(" in body and f"void @{callee}(" not in _headings(functions)
    ]
    if "@sincos(" in body:
        head.append(_sincos(real, fused))
    return "".join([*head, body, "\nattributes #0 = { noinline nounwind }\n!0 = !{}\n"])


def _headings(functions: Sequence[str]) -> str:
    return "\n".join(each[: each.index("\n")] for each in functions)


def _sincos(real: Real, fused: bool) -> str:
    """@sincos, with a branch: nearly all angles are near, and far ones cost as much again."""
    t = real.kind
    near = "\n  ".join(ir.sincos_body(1, "%x", "n", real, True, fused))
    far = "\n  ".join(ir.sincos_body(1, "%x", "f", real, False, fused))
    return f"""define internal {{{t}, {t}}} @sincos({t} %x) #0 {{
entry:
  %size = call {t} @llvm.fabs.{real.suffix}({t} %x)
  %isfar = fcmp ugt {t} %size, {constant(1, ir.NEAR[real][0], real)}
  br i1 %isfar, label %far, label %near
near:
  {near}
  br label %done
far:
  {far}
  br label %done
done:
  %s = phi {t} [%nsin, %near], [%fsin, %far]
  %c = phi {t} [%ncos, %near], [%fcos, %far]
  %a = insertvalue {{{t}, {t}}} undef, {t} %s, 0
  %b = insertvalue {{{t}, {t}}} %a, {t} %c, 1
  ret {{{t}, {t}}} %b
}}
"""


def _kernel(writer: CardWriter, name: str, stages: Sequence[str]) -> str:
    """The function that is launched."""
    arguments = writer.parameters.replace(" noalias", "")
    calls = "\n  ".join(f"call void @{stage}({arguments})" for stage in stages)
    return f"""define ptx_kernel void @{name}({writer.taken}i64 %rows) {{
{THREAD}  %room = alloca [{max(1, writer.plan.slots)} x {writer.t}], align 16
  %ws5 = addrspacecast ptr %room to ptr addrspace(5)
  {writer.between}
  %any = icmp slt i64 %first, %rows
  br i1 %any, label %state, label %done
state:
  %t = phi i64 [%first, %entry], [%next, %state]
  {writer.own_state}
  {calls}
  %next = add i64 %t, %step
  %more = icmp slt i64 %next, %rows
  br i1 %more, label %state, label %done
done:
  ret void
}}
"""


# -- Rounds of a team ------------------------------------------------------------------------------------
#
# Shares a program's straight line among workers that go on together: what each does between two meetings.
#
# A *round* is what the workers do between two meetings. It is taken from the next operations of the line, as
# recorded: so few values are alive at a time. Of these, operations that depend on each other go to the same
# worker; how deep a round goes into the window is chosen so that no worker is left with most of it. What a
# round gives to a later one has a place in memory that all share.

UNEVEN = 1.5  # how many times its share of a round a worker may have, where operations depend on each other
SLACK = 1.15  # how many times its share of a round a worker may have in order to read less from others
TREE = 24  # operations at most of values that are read once and so stay with what reads them


@dataclass
class Shared:
    """A line of operations shared among the warps of a team."""

    rounds: list[list[list[int]]]  # for each round, and in it for each worker, its operations in order
    slot: dict[int, int]  # place of each value that a later round reads
    slots: int  # places in all


def expanded(program: Program, marked: Collection[int]) -> tuple[Program, set[int]]:
    """The program without calls: the body of each stands where it is called.

    ``marked``: some of its nodes. Returns the program, and these nodes and their copies.
    """
    if not program.blocks:
        return program, set(marked)
    nodes: list[Node] = list(program.nodes)
    line, bodies = program.lines()
    at, order, found = dict[int, int](), list[int](), set(marked)
    values: dict[int, dict[int, int]] = {}

    def put(number: int, moved: Mapping[int, int]) -> int:
        node = nodes[number]
        operands = [moved.get(n, at.get(n, n)) for n in node[1:]]
        if operands == list(node[1:]) and moved is at:
            order.append(number)
            return number
        nodes.append((node[0], *operands))
        order.append(len(nodes) - 1)
        if number in found:
            found.add(order[-1])
        return order[-1]

    for number in line:
        node = nodes[number]
        if node[0] == CALL:
            block = called(program, number)
            operands = [at.get(n, n) for n in node[2:]]
            moved = dict(zip(program.blocks[block].parameters, operands, strict=True))
            for n in bodies[block]:
                moved[n] = put(n, moved)
            values[number] = moved
        elif node[0] == RESULT:
            result = program.blocks[called(program, node[1])].results[position(program, number)]
            assert type(result) is int
            at[number] = values[node[1]].get(result, at.get(result, result))
        else:
            made = put(number, at)
            if made != number:
                at[number] = made
    results = [[at.get(r, r) if type(r) is int else r for r in row] for row in program.results]
    kept = needed(nodes, order, {r for row in results for r in row if type(r) is int})
    return replace(program, nodes=nodes, order=kept, results=results, blocks=[]), found


def shared(program: Program, workers: int, fused: Collection[int], window: int) -> Shared:
    """Share a program without calls and guards among workers.

    ``workers``: how many; ``fused``: products that are fused with the sum that alone reads them; ``window``:
    operations that a round is taken from, for each worker.
    """
    nodes = program.nodes
    units = _units(program, fused)
    reads = {
        n: list(dict.fromkeys(o for m in unit for o in nodes[m][1:] if o in units and o != n))
        for n, unit in units.items()
    }
    todo, made, rounds = list(units), dict[int, int](), list[list[list[int]]]()
    while todo:
        ahead, total = list[int](), 0
        for n in todo:
            ahead.append(n)
            total += len(units[n])
            if total >= window * workers:
                break
        taken = _shares(program, units, reads, ahead, made, workers)
        for w, share in enumerate(taken):
            made.update(dict.fromkeys(share, w))
        rounds.append(taken)
        todo = [n for n in ahead if n not in made] + todo[len(ahead) :]
    slot, slots = _places(reads, rounds)
    whole = [[[m for n in share for m in units[n]] for share in shares] for shares in rounds]
    return Shared(whole, slot, slots)


def _units(program: Program, fused: Collection[int]) -> dict[int, list[int]]:
    """Operations that stay together, by the last of each: what one of them alone reads goes with it."""
    nodes = program.nodes
    uses = Counter(program.returned())
    for n in program.order:
        uses.update(nodes[n][1:])
    units: dict[int, list[int]] = {}
    for n in program.order:
        unit = [n]
        for o in dict.fromkeys(nodes[n][1:]):
            if o in units and (o in fused or (uses[o] == 1 and len(units[o]) + len(unit) <= TREE)):
                unit = units.pop(o) + unit
        units[n] = unit
    return units


def _shares(
    program: Program,
    units: Mapping[int, list[int]],
    reads: Mapping[int, list[int]],
    ahead: list[int],
    made: Mapping[int, int],
    workers: int,
) -> list[list[int]]:
    """The units of a round for each worker, from those ahead."""
    depth, levels = dict[int, int](), list[list[int]]()
    for n in ahead:
        depth[n] = level = 1 + max((depth[o] for o in reads[n] if o in depth), default=-1)
        if level == len(levels):
            levels.append([])
        levels[level].append(n)
    parts = Parts(program, units, reads)
    best = total = 0
    for level, line in enumerate(levels):
        for n in line:
            parts.add(n)
        total += sum(len(units[n]) for n in line)
        if parts.largest * workers <= UNEVEN * total:
            best = level
    parts = Parts(program, units, reads)
    taken = [n for n in ahead if depth[n] <= best]
    for n in taken:
        parts.add(n)
    members: dict[int, list[int]] = {}
    for n in taken:
        members.setdefault(parts.root(n), []).append(n)
    fair = SLACK * sum(len(units[n]) for n in taken) / workers
    loads, shares = [0] * workers, [set[int]() for _ in range(workers)]
    for root, part in sorted(members.items(), key=lambda each: -parts.size[each[0]]):
        known = Counter(made[o] for n in part for o in reads[n] if o in made)
        size = parts.size[root]
        w = min(range(workers), key=lambda w: (loads[w] + size > fair, -known[w], loads[w]))
        loads[w] += size
        shares[w].update(part)
    return [[n for n in taken if n in share] for share in shares]


class Parts:
    """Units of which no two that depend on each other are apart.

    Attributes:
        size: operations of each part, by its root.
        largest: of these.
    """

    def __init__(
        self, program: Program, units: Mapping[int, list[int]], reads: Mapping[int, list[int]]
    ) -> None:
        self._nodes, self._units, self._reads = program.nodes, units, reads
        self._parent, self._angle = dict[int, int](), dict[int, int]()
        self.size, self.largest = dict[int, int](), 0

    def root(self, n: int) -> int:
        """The part of a unit."""
        parent = self._parent
        while parent[n] != n:
            parent[n] = n = parent[parent[n]]
        return n

    def add(self, n: int) -> None:
        """Add a unit after those that it depends on."""
        self._parent[n], self.size[n] = n, len(self._units[n])
        others = [o for o in self._reads[n] if o in self._parent]
        if self._nodes[n][0] in (SIN, COS):  # are computed together
            others.append(self._angle.setdefault(self._nodes[n][1], n))
        for o in others:
            a, b = self.root(n), self.root(o)
            if a != b:
                self._parent[b] = a
                self.size[a] += self.size.pop(b)
        self.largest = max(self.largest, self.size[self.root(n)])


def _places(reads: Mapping[int, list[int]], rounds: list[list[list[int]]]) -> tuple[dict[int, int], int]:
    """Place of each value that a later round reads, and how many places there are."""
    home = {n: k for k, shares in enumerate(rounds) for share in shares for n in share}
    last = dict[int, int]()
    for n, k in home.items():
        for o in reads[n]:
            if home[o] < k:
                last[o] = max(last.get(o, 0), k)
    slot, free, ending, count = dict[int, int](), list[int](), dict[int, list[int]](), 0
    for k, shares in enumerate(rounds):
        free += ending.pop(k - 1, [])
        for share in shares:
            for n in share:
                if n in last:
                    if not free:
                        free.append(count)
                        count += 1
                    slot[n] = free.pop()
                    ending.setdefault(last[n], []).append(slot[n])
    return slot, count


# -- Teams of warps --------------------------------------------------------------------------------------
#
# For a long program, a team of warps computes the states of one tile.
#
# What a thread alone would keep of a long program goes through memory: 5 kB for the derivatives of a
# humanoid's dynamics, more than caches hold for all threads in flight. A team shares one workspace in the
# multiprocessor's own memory. Each warp is a function of its own; between two rounds they wait for each
# other. The lanes of each warp are the states.

WARPS = {FLOAT32: 16, FLOAT64: 8}
"""Of a team: faster than half or twice as many on an H200, for derivatives of dynamics. A multiprocessor has
registers for these and no more."""

LEAST = 8  # states that a team has at least: fewer leave most lanes idle
WORTH = 24  # operations of a warp in a round, on average, from which on a barrier pays
HELD = {FLOAT32: 32, FLOAT64: 96}  # values that a warp keeps in registers from one round to the next, at most
WINDOW = {FLOAT32: 128, FLOAT64: 256}  # operations that a round is taken from, for each warp
FILE = 65536  # registers of a multiprocessor

BARRIER = "call void @llvm.nvvm.barrier0()"


class TeamWriter(CardWriter):
    """Writes what each warp does. ``team``: what is done by which warp and when; ``states``: of a team."""

    def __init__(self, program: Program, team: Shared, real: Real, products: set[int], states: int) -> None:
        plan = Plan(1, [], team.slot, set(team.slot), [], {}, {}, team.slots)
        super().__init__(program, plan, real, products)
        self.team, self.states = team, states

    @property
    def parameters(self) -> str:
        """Of each function: the state's places in shared memory, and the arrays."""
        return super().parameters.replace("ptr addrspace(5) noalias %ws5", "ptr addrspace(3) %ws3")

    def _entry(self, pointers: Sequence[int] = ()) -> list[str]:
        entry = super()._entry(pointers)
        return ["%ws = addrspacecast ptr addrspace(3) %ws3 to ptr" if "%ws5" in x else x for x in entry]

    def _address(self, number: int, name: str) -> None:
        place = self.plan.slot[number] * self.states
        self.lines.append(f"{name} = getelementptr {self.t}, ptr %ws, i64 {place}")

    def warp(self, w: int, last: bool) -> str:
        """The function of a warp; the last one writes what no operation computes."""
        self._line(())
        read: dict[int, int] = {}
        sums = self._contractions([n for shares in self.team.rounds for n in shares[w]])
        products = set(sums.values())
        for k, shares in enumerate(self.team.rounds):
            for n in shares[w]:
                for o in self.program.nodes[n][1:]:
                    read[o] = k
        for k, shares in enumerate(self.team.rounds):
            if k:
                self.lines.append(BARRIER)
            for n in shares[w]:
                if n in products:
                    continue
                if n in sums:
                    name = self._contracted(n, sums[n])
                else:
                    self._compute(n)
                    name = f"%v{n}"
                self.known[n] = name
                if n in self.plan.slot:
                    self._store(n, name)
                for array, place in self.targets.get(n, ()):
                    self._output(array, place, name)
            self.labels += 1  # sines of the next round are computed anew
            self.pairs.clear()
            kept = [n for n in self.known if read.get(n, -1) > k]
            self.known = {n: self.known[n] for n in kept[max(0, len(kept) - HELD[self.real]) :]}
        if last:
            for n in self.targets.keys() - set(self.program.order):  # inputs that are passed on
                for array, position in self.targets[n]:
                    self._output(array, position, self._value(n))
            for each in self.fixed:
                self._fixed_output(*each)
        return self._wrapped(w, sorted(self.pointers), self.lines)


def team_code(program: Program, name: str, real: Real, in_one_order: bool, room: int) -> str:
    """The text of a program for a card, as assemble.py takes it.

    "" where its workspace is too large, its rounds are too short, or it has conditional blocks. ``name``: of
    the kernel; ``real``: its numbers; ``in_one_order``: as in :func:`flat_code`; ``room``: shared memory of a
    block [bytes].
    """
    if len(program.order) <= LONG:
        return ""
    if any(program.nodes[n][0] == GUARD for n in program.order):
        return ""
    program, products = expanded(program, set() if in_one_order else fused_products(program)[0])
    warps, states = WARPS[real], 32
    team = shared(program, warps, products, WINDOW[real])
    while states * team.slots * real.bytes > room:
        states //= 2
    if states < LEAST or len(program.order) < WORTH * warps * len(team.rounds):
        return ""
    writer = TeamWriter(program, team, real, products, states)
    pieces = [writer.warp(w, w == warps - 1).replace("internal ", "", 1) for w in range(warps)]
    declared = {f"chunk{w}": declaration(t) for w, t in enumerate(pieces)}
    parts = [module([t], real, fused=not in_one_order) for t in pieces]
    parts.append(module([_team_kernel(writer, name, warps)], real, declared, not in_one_order))
    head = f"{REGISTERS}{min(255, FILE // (32 * warps))}\n"
    head += f"{TEAM}{warps} {states} {states * team.slots * real.bytes}\n"
    return head + "".join(f"{PART}\n{part}" for part in parts)


def _team_kernel(writer: TeamWriter, name: str, warps: int) -> str:
    """The function that is launched: a block of the team's warps for each tile of states.

    Lanes past the last state repeat it: they compute and store the same numbers.
    """
    arguments = writer.parameters.replace(" noalias", "")
    cases = " ".join(f"i32 {w}, label %warp{w}" for w in range(1, warps))
    calls = "\n".join(f"warp{w}:\n  call void @chunk{w}({arguments})\n  br label %done" for w in range(warps))
    return f"""@room = external addrspace(3) global [0 x {writer.t}], align 16
define ptx_kernel void @{name}({writer.taken}i64 %rows) {{
entry:
  {writer.between}
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %lane = and i32 %tid, {writer.states - 1}
  %warp = lshr i32 %tid, 5
  %before = mul i32 %block, {writer.states}
  %row = add i32 %before, %lane
  %row64 = zext i32 %row to i64
  %last = sub i64 %rows, 1
  %past = icmp sgt i64 %row64, %last
  %t = select i1 %past, i64 %last, i64 %row64
  %ws3 = getelementptr {writer.t}, ptr addrspace(3) @room, i32 %lane
  {writer.own_state}
  switch i32 %warp, label %warp0 [ {cases} ]
{calls}
done:
  ret void
}}
"""


# -- The target ------------------------------------------------------------------------------------------
#
# How a kernel is written for a card and assembled; the maker keeps the code on disk as it keeps all code.

MOST = 200_000  # operations of a kernel: ptxas takes half a second for 1,000, so minutes for so many


class CardTarget(Target):
    """A value is one number of one state, which a thread computes.

    Function: SYMBOL of one thread, or of a team.
    """

    lanes = 1

    def __init__(self, real: Real, card: Card | str, team: bool = False) -> None:
        """For a card, or for an architecture that need not be here, "sm_90".

        ``real``: the numbers; ``card``: the card or the architecture; ``team``: whether a team of warps has
        the states of a tile.
        """
        self.real, self.card, self.team = real, card, team
        self.name = "cuda, teams" if team else "cuda"

    @property
    def arch(self) -> str:
        """The architecture, for example "sm_90"."""
        return self.card if isinstance(self.card, str) else self.card.arch

    @property
    def bits(self) -> int:
        """Bits of a register for one number."""
        return 8 * self.real.bytes

    @property
    def features(self) -> str:
        """The compilers and the architecture, on which the code depends."""
        return assemble.identity(self.card) if isinstance(self.card, str) else self.card.identity

    def write(self, kernel: Planned) -> tuple[str, int]:
        """The text; it has its own workspace. "" where there is none for teams.

        Raises TraceTooLarge: the kernel has too many operations.
        """
        count, one_order = len(kernel.program.order), kernel.signature.reproducible
        if count > MOST:
            raise TraceTooLarge(f"{count:,} operations, more than {MOST:,} to compile for a card")
        what = kernel.program, kernel.symbol, self.real, one_order
        return team_code(*what, assemble.shared_memory(self.arch)) if self.team else flat_code(*what), 0

    def assemble(self, text: str) -> bytes:
        """Code of a text, after a line that says how it is launched."""
        if not text:
            return b""
        code = assemble.assemble(text, self.card) if isinstance(self.card, str) else self.card.assemble(text)
        found = re.search(rf"(?m)^{TEAM}(\d+) (\d+) (\d+)$", text)
        return json.dumps([int(x) for x in found.groups()] if found else None).encode() + b"\n" + code

    def load(self, code: bytes) -> Any:
        """Code on the card, and the team that it is for, if it is for one; None where there is no code."""
        assert not isinstance(self.card, str)
        if not code:
            return None
        head, _, rest = code.partition(b"\n")
        team = json.loads(head)
        return self.card.load(rest), Team(*team) if team else None
