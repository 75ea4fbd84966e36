"""Writes a recorded program as LLVM IR for a card: one state a thread.

    SYMBOL(ptr a0, i64 between0, i64 own0, ..., i64 rows)     for inputs, tables and outputs

Number j of state t of an array is at ``a + (j between + t own) bytes``. With the states side by side
(own = 1) the 32 threads of a warp read and write neighbours. A thread takes state after state, as many apart
as there are threads.

The functions are the engine's own chunks (emit/straight_line.py) with another beginning. A program of up to
:data:`LONG` operations is one function, in one part. A longer one is cut into functions of :data:`PIECE`
operations, in parts of their own; values that cross a cut are in memory of the thread's own, which the
hardware lays side by side between threads.

The same products are fused with the same sums as in code of batches for a processor with fused multiply-adds
(passes/contraction.py): no cut is made that the processor's code has not. So the card computes the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence

from robokit.engine.cuda.assemble import PART, REGISTERS, TRIPLE
from robokit.engine.emit import ir, sincos
from robokit.engine.emit.ir import FLOAT32, FLOAT64, Real, constant, suffix
from robokit.engine.emit.straight_line import CallWriter, in_turn
from robokit.engine.passes.calls import CallPlan, call_plan
from robokit.engine.passes.contraction import contractions
from robokit.engine.trace.graph import Program
from robokit.engine.trace.ops import ADD, INPUT, INTRINSICS, SUB

LONG = 12_000
"""Operations from which on a program is cut into pieces."""

PIECE = 2_000
"""Operations of a piece, about."""

LIMITS = {FLOAT32: 128, FLOAT64: 255}
"""Registers of a thread in code of several pieces. In single precision 128, so that 16 warps share a
multiprocessor; in double precision what does not fit into 128 takes longer (derivatives of ABA of G1 on an
H200: 26 million a second, 33 with 255).
"""

ONE_FUNCTION = 10**9

_WORDS = ("tid.x", "ctaid.x", "ntid.x", "nctaid.x")


def fused_products(program: Program) -> tuple[set[int], set[int]]:
    """The products that code of batches fuses with a sum, and the nodes that its chunks end with."""
    plan = call_plan(program, 1, True, int(ir.LONGER * ir.CHUNK), 1)
    found = set[int]()
    for chunk in plan.chunks:
        found |= set(contractions(program, chunk, plan.stored, plan.inside).values())
    return found, {chunk[-1] for chunk in plan.chunks if chunk}


class CardWriter(CallWriter):
    """Writes chunks whose arguments are columns in the card's memory."""

    def __init__(self, program: Program, plan: CallPlan, real: Real, products: set[int]) -> None:
        super().__init__(program, plan, True, real)
        self.products = products  # that are fused with a sum
        self.arrays = program.first_output + len(program.outputs)
        self.fixed = [
            (k, position + j, value, 1) for k, position, value, count in self.fixed for j in range(count)
        ]

    @property
    def parameters(self) -> str:
        """Of each function: the thread's memory, and for each array its own state and what is between."""
        arrays = (f"ptr addrspace(1) %g{k}, i32 %b{k}" for k in range(self.arrays))
        return ", ".join(["ptr addrspace(5) noalias %ws5", *arrays])

    @property
    def taken(self) -> str:
        """Parameters of the kernel: of each array where it is, and the numbers between and of its own."""
        return "".join(f"ptr addrspace(1) %a{k}, i64 %n{k}, i64 %o{k}, " for k in range(self.arrays))

    @property
    def between(self) -> str:
        """Instructions of the kernel: what is between, as the functions take it."""
        return "\n  ".join(f"%b{k} = trunc i64 %n{k} to i32" for k in range(self.arrays))

    @property
    def own_state(self) -> str:
        """Instructions of the kernel: where the arrays have state %t."""
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

    Args:
        program: what to compute.
        name: of the kernel.
        real: its numbers.
        in_one_order: whether no product is fused with a sum (engine/reproducible.py).
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
    t, ending = real.kind, suffix(1, real)
    head = [f'target triple = "{TRIPLE}"\n']
    head += [
        f"declare {t} @llvm.{f}.{ending}({', '.join([t] * (3 if f == 'fma' else 1))})\n"
        for f in (*INTRINSICS, "fma")
        if f"@llvm.{f}." in body or f == "fabs" or (f == "fma" and "@sincos(" in body)
    ]
    head += ["declare void @llvm.nvvm.barrier0()\n"] if "@llvm.nvvm.barrier0(" in body else []
    head += [f"declare i32 @llvm.nvvm.read.ptx.sreg.{word}()\n" for word in _WORDS if f".{word}(" in body]
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
    near = "\n  ".join(sincos.body(1, "%x", "n", real, True, fused))
    far = "\n  ".join(sincos.body(1, "%x", "f", real, False, fused))
    return f"""define internal {{{t}, {t}}} @sincos({t} %x) #0 {{
entry:
  %size = call {t} @llvm.fabs.{real.suffix}({t} %x)
  %isfar = fcmp ugt {t} %size, {constant(1, sincos.NEAR[real][0], real)}
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
    given = writer.parameters.replace(" noalias", "")
    calls = "\n  ".join(f"call void @{stage}({given})" for stage in stages)
    return f"""define ptx_kernel void @{name}({writer.taken}i64 %rows) {{
entry:
  %room = alloca [{max(1, writer.plan.slots)} x {writer.t}], align 16
  %ws5 = addrspacecast ptr %room to ptr addrspace(5)
  {writer.between}
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %threads = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %blocks = call i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
  %before = mul i32 %block, %threads
  %first = add i32 %before, %tid
  %all = mul i32 %blocks, %threads
  %t0 = zext i32 %first to i64
  %step = zext i32 %all to i64
  %any = icmp slt i64 %t0, %rows
  br i1 %any, label %state, label %done
state:
  %t = phi i64 [%t0, %entry], [%next, %state]
  {writer.own_state}
  {calls}
  %next = add i64 %t, %step
  %more = icmp slt i64 %next, %rows
  br i1 %more, label %state, label %done
done:
  ret void
}}
"""
