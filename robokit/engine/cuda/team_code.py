"""Writes a long recorded program as LLVM IR for a card: a team of warps computes the states of one tile.

What a thread alone would keep of a long program goes through memory: 5 kB for the derivatives of a humanoid's
dynamics, more than caches hold for all threads in flight. A team shares one workspace in the multiprocessor's
own memory. Each warp is a function of its own (passes/teams.py shares the operations out); between two rounds
they wait for each other. The lanes of each warp are the states.
"""

from __future__ import annotations

from collections.abc import Sequence

from robokit.engine.cuda.assemble import PART, REGISTERS
from robokit.engine.cuda.flat_code import LONG, CardWriter, declaration, fused_products, module
from robokit.engine.cuda.launch import TEAM
from robokit.engine.emit.ir import FLOAT32, FLOAT64, Real
from robokit.engine.passes.calls import CallPlan
from robokit.engine.passes.teams import Shared, expanded, shared
from robokit.engine.trace.graph import Program
from robokit.engine.trace.ops import GUARD

WARPS = {FLOAT32: 16, FLOAT64: 8}
"""Of a team: faster than half or twice as many on an H200, for derivatives of dynamics. A multiprocessor has
registers for these and no more."""

LEAST = 8
"""States that a team has at least: fewer leave most lanes idle."""

WORTH = 24
"""Operations of a warp in a round, on average, from which on a barrier pays."""

HELD = {FLOAT32: 32, FLOAT64: 96}
"""Values that a warp keeps in registers from one round to the next, at most."""

WINDOW = {FLOAT32: 128, FLOAT64: 256}
"""Operations that a round is taken from, for each warp."""

FILE = 65536
"""Registers of a multiprocessor."""

BARRIER = "call void @llvm.nvvm.barrier0()"


class TeamWriter(CardWriter):
    """Writes what each warp does.

    Attributes:
        team: what is done by which warp and when.
        states: of a team.
    """

    def __init__(self, program: Program, team: Shared, real: Real, products: set[int], states: int) -> None:
        plan = CallPlan(1, [], team.slot, set(team.slot), [], {}, {}, team.slots)
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
                for array, position in self.targets.get(n, ()):
                    self._output(array, position, name)
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

    "" where its workspace is too large, its rounds are too short, or it has conditional blocks or tables.

    Args:
        program: what to compute.
        name: of the kernel.
        real: its numbers.
        in_one_order: as in :func:`~robokit.engine.cuda.flat_code.flat_code`.
        room: shared memory of a block [bytes].
    """
    if len(program.order) <= LONG or program.tables:
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
    parts.append(module([_kernel(writer, name, warps)], real, declared, not in_one_order))
    head = f"{REGISTERS}{min(255, FILE // (32 * warps))}\n"
    head += f"{TEAM}{warps} {states} {states * team.slots * real.bytes}\n"
    return head + "".join(f"{PART}\n{part}" for part in parts)


def _kernel(writer: TeamWriter, name: str, warps: int) -> str:
    """The function that is launched: a block of the team's warps for each tile of states.

    Lanes past the last state repeat it: they compute and store the same numbers.
    """
    given = writer.parameters.replace(" noalias", "")
    cases = " ".join(f"i32 {w}, label %warp{w}" for w in range(1, warps))
    calls = "\n".join(f"warp{w}:\n  call void @chunk{w}({given})\n  br label %done" for w in range(warps))
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
