"""Vocabulary of LLVM IR that all emitters share, and the settings that they agree on."""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Iterable, Sequence

import numpy as np

from robokit.conventions import LARGEST_ANGLE
from robokit.dataclass_tools import frozen
from robokit.engine.trace.ops import INTRINSICS, OPERATIONS
from robokit.spatial import scalars
from robokit.spatial.scalars import COS, COS_FLOAT32, FAR, SIN, SIN_FLOAT32, TWO_OVER_PI, Way

NOT_FINITE, NOT_UNIT, NOT_FINITE_OUTPUT = 1, 2, 4
"""Bits of a driver's status: an input is not finite, a quaternion is not unit, an output is not finite."""

CHUNK = 450
"""Nodes per chunk: longer ones spill more with 16 registers, shorter ones load and store more.

At 350 a humanoid's ABA is 4 % slower, at 500 its A_G is 5 % slower.
"""

LONGER = 4 / 3
"""How much longer chunks are in code of batches: on an AMD EPYC derivatives of a humanoid are 1 to 7 % faster
so, its simulation 2 %, and nothing is slower; the CRBA of one state would be a tenth slower.
"""

GROUP = 4
"""Tiles that go through a chunk of a long kernel before the next chunk's code is fetched.

1 is 12 % slower for a humanoid's ABA, whose code does not fit in the processor's cache of decoded
instructions, and 6 % faster for kernels that do fit.
"""

HELD = 100 * 2**10
"""Bytes of the workspaces of a group, about: fewer tiles go together where one is large.

A chunk finds in the caches what the one before it left there. Four tiles of a humanoid's derivatives of
forward dynamics are 1 MB, and take a third longer than one after the other. With 160 kB a batch of its H^-1
takes 5 to 8 % longer, its ABA 2 % (AMD EPYC); with 64 kB the derivatives take up to 7 % longer for AVX2.
"""

FITS = 5_500  # most nodes of a kernel that is taken to fit in that cache: its tiles pass one by one


@frozen
class Real:
    """The floating-point type of a kernel."""

    dtype: str  # NumPy's name
    kind: str  # LLVM's name
    bytes: int  # of one
    suffix: str  # ending of the names of LLVM's intrinsics
    largest: float  # the largest finite one

    def scale(self, bound: float) -> float:
        """A factor that makes numbers beyond a bound infinite, and changes no others."""
        return self.largest / max(bound, 1.0)


FLOAT64 = Real("float64", "double", 8, "f64", sys.float_info.max)
FLOAT32 = Real("float32", "float", 4, "f32", 2.0**128 * (1.0 - 2.0**-24))


def vector(lanes: int, kind: str = "double") -> str:
    """Type of a value: one plain element, or a vector of lanes."""
    return kind if lanes == 1 else f"<{lanes} x {kind}>"


def number(value: float, real: Real = FLOAT64) -> str:
    """A number, exactly: IR reads decimals only where they are exact, so the bits are given.

    A single-precision number too is written with the bits of the double of the same value.
    """
    return "0x" + struct.pack(">d", rounded(value, real)).hex().upper()


def table(name: str, numbers: Sequence[float], dtype: str = "int32") -> str:
    """A constant array; its bytes are a string, which LLVM reads some times as fast as numbers."""
    with np.errstate(over="ignore"):  # infinity where one is too large
        content = np.array(numbers, dtype)
    escaped = "\\" + content.tobytes().hex("\\")
    return f'@{name} = internal constant [{content.nbytes} x i8] c"{escaped}", align {content.itemsize}\n'


def rounded(value: float, real: Real) -> float:
    """The nearest number of that floating-point type."""
    # Infinity where it is too large, unlike struct.
    return ctypes.c_float(value).value if real is FLOAT32 else value


def constant(lanes: int, value: float, real: Real = FLOAT64) -> str:
    """A constant that is the same in every lane."""
    return number(value, real) if lanes == 1 else f"splat ({real.kind} {number(value, real)})"


def suffix(lanes: int, real: Real = FLOAT64) -> str:
    """The suffix of an intrinsic's name."""
    return real.suffix if lanes == 1 else f"v{lanes}{real.suffix}"


def instructions(lanes: int, real: Real) -> list[str]:
    """The instruction of each operation (trace/ops.py) for so many lanes, with `%s` for each operand."""
    words = {
        "t": vector(lanes, real.kind),
        "truth": vector(lanes, "i1"),
        "true": "true" if lanes == 1 else "splat (i1 true)",
        "suffix": suffix(lanes, real),
        "i": vector(lanes, "i32"),
    }
    return [operation.llvm.format(**words) for operation in OPERATIONS]


def multiply_add(lanes: int, real: Real) -> str:
    """The instruction for a fused multiply-add, with `%s` for each operand."""
    t = vector(lanes, real.kind)
    return f"call {t} @llvm.fma.{suffix(lanes, real)}({t} %s, {t} %s, {t} %s)"


def declared(intrinsic: str, lanes: int, real: Real) -> str:
    """The declaration of one of LLVM's own functions of numbers."""
    t = vector(lanes, real.kind)
    operands = ", ".join([t] * (3 if intrinsic == "fma" else 1))
    return f"declare {t} @llvm.{intrinsic}.{suffix(lanes, real)}({operands})\n"


def module(parts: Iterable[str], lanes: Iterable[int]) -> str:
    """Text of a module.

    Args:
        parts: function definitions and tables.
        lanes: numbers of lanes that intrinsics are needed for.
    """
    kinds = [(n, real) for real in (FLOAT64, FLOAT32) for n in sorted({1, *lanes})]
    head = [declared(f, *kind) for kind in kinds for f in INTRINSICS] + [declared("fma", *k) for k in kinds]
    # 512-bit registers are used where the CPU has them, also on those whose tuning prefers 256.
    widths = '"prefer-vector-width"="512" "min-legal-vector-width"="512"'
    attributes = f"attributes #0 = {{ noinline nounwind {widths} }}\n"
    return "\n".join(["".join(head), *parts, attributes])


class Lines:
    """Instructions under construction; values get fresh names."""

    def __init__(self, real: Real = FLOAT64) -> None:
        self.real = real
        self.lines: list[str] = []
        self.count = 0

    def __call__(self, instruction: str) -> str:
        """Append an instruction that has a value; its name."""
        self.count += 1
        self.lines.append(f"%x{self.count} = {instruction}")
        return f"%x{self.count}"

    def do(self, instruction: str) -> None:
        """Append an instruction without a value, or a label."""
        self.lines.append(instruction)

    def pointer(self, base: str, index: int | str, kind: str = "") -> str:
        """Address of an element: a number, if no kind is given."""
        return self(f"getelementptr {kind or self.real.kind}, ptr {base}, i64 {index}")

    def argument(self, index: int) -> str:
        """Address of an argument's data."""
        return self(f"load ptr, ptr {self.pointer('%args', index, 'ptr')}, align 8")

    def any(self, lanes: int, mask: str) -> str:
        """Whether any lane of a mask is set."""
        if lanes == 1:
            return mask
        return self(f"icmp ne i{lanes} {self(f'bitcast <{lanes} x i1> {mask} to i{lanes}')}, 0")

    def text(self) -> str:
        """All instructions, a line each."""
        return "\n".join(line if line.endswith(":") else "  " + line for line in self.lines)

    def norm_error(self, lanes: int, parts: list[str]) -> str:
        """How far the squared length of a vector is from 1."""
        real = self.real
        t = vector(lanes, real.kind)
        total = self(f"fmul {t} {parts[0]}, {parts[0]}")
        for part in parts[1:]:
            total = self(f"fadd {t} {total}, {self(f'fmul {t} {part}, {part}')}")
        error = self(f"fsub {t} {total}, {constant(lanes, 1.0, real)}")
        return self(f"call {t} @llvm.fabs.{suffix(lanes, real)}({t} {error})")

    def transposed(self, rows: list[str]) -> list[str]:
        """The transpose of a square of vectors, by halving: rounds of two-vector shuffles."""
        w, rows, step = len(rows), list(rows), 1
        t = vector(w, self.real.kind)
        while step < w:
            low = [lane if not lane & step else lane - step + w for lane in range(w)]
            high = [lane + step if not lane & step else lane + w for lane in range(w)]
            for k in range(w):
                if not k & step:
                    a, b = rows[k], rows[k + step]
                    for target, order in ((k, low), (k + step, high)):
                        mask = ", ".join(f"i32 {x}" for x in order)
                        rows[target] = self(f"shufflevector {t} {a}, {t} {b}, <{w} x i32> <{mask}>")
            step *= 2
        return rows


# -- Sine and cosine together ----------------------------------------------------------------------------
#
# Sine and cosine together, as LLVM IR for any number of lanes.
#
# A call to libm would take each lane apart and would leave a symbol that neither the object cache nor
# WebAssembly can resolve, so the engine brings its own:
#
# 1. k = round(x 2/pi) by adding and subtracting 1.5 * 2^52; the low bits of the sum are k modulo 4.
# 2. r = x - k P1 - k P2 with pi/2 = P1 + P2 (Cody and Waite). P1 has 33 bits, so that its product with k is
#    exact up to 2^20 radians even where the processor has no fused multiply-add. Beyond that there are three
#    parts, of 23, 23 and 53 bits. Only rounds with such an angle look at each number by itself, and what a
#    number gives never depends on those beside it.
# 3. sin r = r + r^3 S(r^2) and cos r = 1 - r^2/2 + r^4 C(r^2) for |r| <= pi/4. S and C are the minimax
#    polynomials of degree 5 found by Remez exchange in 60 digits (test_engine_sincos.py finds them
#    again); their errors, 3.4e-18 relative and 4.7e-20 absolute, are far below rounding.
# 4. The quadrant k swaps the two and sets the signs.
#
# In single precision the polynomials are of degree 2, with errors of 3.6e-9 and 9.6e-11. Up to 8192 radians
# there are parts of 11, 11 and 24 bits; beyond that steps 1 and 2 are done in doubles: 24 bits lose the
# remainder.
#
# Error measured against 50 digits: 1.6e-16 absolute for |x| <= 2^30, 1e-7 in single precision. Beyond that,
# and for NaN and infinities, the answer is NaN: an angle of 10^9 rad is a mistake, and a wrong number would
# hide it. Kernels refuse such angles among their arguments (Signature.bounds).

LIMIT = LARGEST_ANGLE
NEAR: dict[Real, Way] = {FLOAT64: scalars.NEAR, FLOAT32: scalars.NEAR_FLOAT32}


def sincos_body(
    lanes: int, x: str, z: str = "z", real: Real = FLOAT64, near: bool = False, fused: bool = False
) -> list[str]:
    """Instructions that compute sine and cosine of x.

    Args:
        lanes: numbers in x.
        x: a value's name.
        z: what the new names start with; the results are %{z}sin and %{z}cos.
        real: of x and the results.
        near: whether no number is NaN or larger than NEAR says.
        fused: whether products are fused with sums.
    """
    t, i = vector(lanes, real.kind), vector(lanes, f"i{8 * real.bytes}")
    truth = vector(lanes, "i1")

    def n(value: int) -> str:
        return str(value) if lanes == 1 else f"splat (i{8 * real.bytes} {value})"

    lines = []

    def let(name: str, instruction: str) -> str:
        lines.append(f"%{z}{name} = {instruction}")
        return f"%{z}{name}"

    def mul(name: str, a: str, b: str) -> str:
        return let(name, f"fmul {t} {a}, {b}")

    def fma(name: str, a: str, b: str, sum_: str, sign: str = "fadd", kind: str = t) -> str:
        """sum_ + a b, or sum_ - a b with the sign fsub."""
        if not fused:
            return let(name, f"{sign} {kind} {sum_}, {let(name + 'p', f'fmul {kind} {a}, {b}')}")
        if sign == "fsub":
            a = let(name + "n", f"fneg {kind} {a}")
        ending = suffix(lanes, FLOAT64 if "double" in kind else FLOAT32)
        return let(name, f"call {kind} @llvm.fma.{ending}({kind} {a}, {kind} {b}, {kind} {sum_})")

    def reduced(name: str, kind: Real, way: Way) -> tuple[str, str]:
        """r and the low bits of k, computed in the given kind of numbers."""
        (_, magic, parts), w = way, vector(lanes, kind.kind)
        r = x if kind is real else let(f"{name}x", f"fpext {t} {x} to {w}")
        shift = constant(lanes, magic, kind)
        m = fma(f"{name}m", r, constant(lanes, TWO_OVER_PI, kind), shift, kind=w)
        k = let(f"{name}k", f"fsub {w} {m}, {shift}")
        for j, part in enumerate(parts):
            r = fma(f"{name}r{j}", k, constant(lanes, part, kind), r, "fsub", w)
        whole = vector(lanes, f"i{8 * kind.bytes}")
        bits = let(f"{name}bits", f"bitcast {w} {m} to {whole}")
        if kind is real:
            return r, bits
        return (
            let(f"{name}short", f"fptrunc {w} {r} to {t}"),
            let(f"{name}low", f"trunc {whole} {bits} to {i}"),
        )

    r, bits = reduced("n", real, NEAR[real])
    if not near:
        # Each number as if it stood alone: what it gives must not depend on those beside it.
        far, far_bits = reduced("f", FLOAT64, FAR)
        size = let("abs", f"call {t} @llvm.fabs.{suffix(lanes, real)}({t} {x})")
        is_near = let("isnear", f"fcmp ole {t} {size}, {constant(lanes, NEAR[real][0], real)}")
        is_far = let("isfar", f"fcmp ole {t} {size}, {constant(lanes, LIMIT, real)}")
        nan = constant(lanes, float("nan"), real)
        far = let("far", f"select {truth} {is_far}, {t} {far}, {t} {nan}")
        r = let("r", f"select {truth} {is_near}, {t} {r}, {t} {far}")
        bits = let("bits", f"select {truth} {is_near}, {i} {bits}, {i} {far_bits}")
    r2 = mul("rr", r, r)
    r4 = mul("rrrr", r2, r2)

    def polynomial(name: str, a: Sequence[float]) -> str:
        # Estrin's order: (a0 + a1 z) + z^2 ((a2 + a3 z) + z^2 (a4 + a5 z)), half as deep as Horner's.
        c = [constant(lanes, value, real) for value in a]
        pairs = [fma(f"{name}{j}", r2, c[j + 1], c[j]) for j in range(0, len(c) - 1, 2)]
        pairs += c[len(c) // 2 * 2 :]
        sum_ = pairs.pop()
        while pairs:
            sum_ = fma(f"{name}q{len(pairs)}", r4, sum_, pairs.pop())
        return sum_

    scalars, cosines = (SIN_FLOAT32, COS_FLOAT32) if real is FLOAT32 else (SIN, COS)
    half, one = constant(lanes, 0.5, real), constant(lanes, 1.0, real)
    sine = fma("s", mul("rrr", r, r2), polynomial("S", scalars), r)
    cosine = fma("c", r4, polynomial("C", cosines), fma("w", r2, half, one, "fsub"))
    top = 8 * real.bytes - 1
    first = let("odd", f"shl {i} {bits}, {n(top)}")
    second = let("half", f"shl {i} {bits}, {n(top - 1)}")
    both = let("both", f"xor {i} {first}, {second}")
    swap = let("swap", f"icmp slt {i} {first}, {n(0)}")
    for name, quadrant, other, own in (("sin", second, cosine, sine), ("cos", both, sine, cosine)):
        sign = let(f"{name}g", f"and {i} {quadrant}, {n(-(2**top))}")
        value = let(f"{name}v", f"select {truth} {swap}, {t} {other}, {t} {own}")
        signed = let(f"{name}x", f"xor {i} {let(f'{name}i', f'bitcast {t} {value} to {i}')}, {sign}")
        let(name, f"bitcast {i} {signed} to {t}")
    return lines


def sincos(lanes: int, real: Real = FLOAT64, name: str = "sincos", fused: bool = False) -> str:
    """@sincos: both of one value, for angles that are computed inside a chunk."""
    t = vector(lanes, real.kind)
    lines = "\n  ".join(sincos_body(lanes, "%x", real=real, fused=fused))
    return f"""define internal {{{t}, {t}}} @{name}({t} %x) #0 {{
  {lines}
  %a = insertvalue {{{t}, {t}}} undef, {t} %zsin, 0
  %b = insertvalue {{{t}, {t}}} %a, {t} %zcos, 1
  ret {{{t}, {t}}} %b
}}
"""


def sincos_of_run(lanes: int, real: Real = FLOAT64, fused: bool = False) -> str:
    """@sincos_run: of n >= lanes consecutive numbers; the last vectors may overlap those before.

    Two vectors a round: they share the loads of the constants, and each fills the other's waits.
    """
    t = vector(lanes, real.kind)

    def both(name: str, near: bool = False) -> str:
        lines = [f"{name}:"]
        for z in "yz":
            values = name[0] + z
            lines += sincos_body(lanes, f"%{z}", values, real, near, fused)
            for result, to in (("sin", "sins"), ("cos", "coss")):
                lines.append(f"%{values}{to} = getelementptr {real.kind}, ptr %{to}, i64 %{z}i")
                lines.append(f"store {t} %{values}{result}, ptr %{values}{to}, align {real.bytes}")
        return "\n  ".join([*lines, "br label %done"])

    out, far = Lines(real), []
    for z in "yz":
        size = out(f"call {t} @llvm.fabs.{suffix(lanes, real)}({t} %{z})")
        far.append(out(f"fcmp ugt {t} {size}, {constant(lanes, NEAR[real][0], real)}"))
    any_far = out.any(lanes, out(f"or {vector(lanes, 'i1')} {far[0]}, {far[1]}"))
    out.do(f"br i1 {any_far}, label %wide, label %near")
    text = "\n".join([out.text(), both("wide"), both("near", near=True)])
    return f"""define internal void @sincos_run(ptr %from, ptr %sins, ptr %coss, i64 %n) #0 {{
entry:
  %rest = sub i64 %n, {lanes}
  %one = icmp ult i64 %rest, {lanes}
  %apart = select i1 %one, i64 0, i64 {lanes}
  %last = sub i64 %rest, %apart
  br label %loop
loop:
  %yi = phi i64 [0, %entry], [%next, %done]
  %zi = add i64 %yi, %apart
  %yp = getelementptr {real.kind}, ptr %from, i64 %yi
  %y = load {t}, ptr %yp, align {real.bytes}
  %zp = getelementptr {real.kind}, ptr %from, i64 %zi
  %z = load {t}, ptr %zp, align {real.bytes}
{text}
done:
  %step = add i64 %yi, {2 * lanes}
  %over = icmp ugt i64 %step, %last
  %next = select i1 %over, i64 %last, i64 %step
  %more = icmp ult i64 %yi, %last
  br i1 %more, label %loop, label %end
end:
  ret void
}}
"""
