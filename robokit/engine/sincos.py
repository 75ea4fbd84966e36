"""Sine and cosine together, as LLVM IR for any number of lanes.

A call to libm would take each lane apart and would leave a symbol that neither the object cache nor
WebAssembly can resolve, so the engine brings its own:

1. k = round(x 2/pi) by adding and subtracting 1.5 * 2^52; the low bits of the sum are k modulo 4.
2. r = x - k P1 - k P2 - k P3 with pi/2 = P1 + P2 + P3 (Cody and Waite). P1 and P2 have 23 bits, so their
   products with |k| < 2^30 are exact even where the processor has no fused multiply-add.
3. sin r = r + r^3 S(r^2) and cos r = 1 - r^2/2 + r^4 C(r^2) for |r| <= pi/4. S and C are the minimax
   polynomials of degree 5 found by Remez exchange in 60 digits (tests/engine/test_sincos.py finds them
   again); their errors, 3.4e-18 relative and 4.7e-20 absolute, are far below rounding.
4. The quadrant k swaps the two and sets the signs.

Error measured against 50 digits: 1.6e-16 absolute for |x| <= 2^30. Beyond that, and for NaN and
infinities, the answer is NaN: an angle of 10^9 rad is a mistake, and a wrong number would hide it.
"""

from __future__ import annotations

from collections.abc import Sequence

from robokit.engine.text import constant, suffix, vector

LIMIT = float(2**30)
MAGIC = 1.5 * 2.0**52
TWO_OVER_PI = 0.6366197723675814
HALF_PI = (1.570796251296997, 7.549789415861596e-08, 5.390302858158119e-15)
SIN = (
    -0.16666666666666632,
    0.008333333333322413,
    -0.00019841269829807737,
    2.7557313691900135e-06,
    -2.505075811311583e-08,
    1.5896795552841927e-10,
)
COS = (
    0.0416666666666666,
    -0.0013888888888874125,
    2.4801587289482242e-05,
    -2.755731435234916e-07,
    2.087572327532008e-09,
    -1.135964790296927e-11,
)


def body(lanes: int, x: str, z: str = "z") -> list[str]:
    """Instructions that compute sine and cosine of x.

    Args:
        lanes: doubles in x.
        x: a value's name.
        z: what the new names start with; the results are %{z}sin and %{z}cos.
    """
    t, i, truth = vector(lanes), vector(lanes, "i64"), vector(lanes, "i1")

    def c(value: float) -> str:
        return constant(lanes, value)

    def n(value: int) -> str:
        return str(value) if lanes == 1 else f"splat (i64 {value})"

    lines = []

    def let(name: str, instruction: str) -> str:
        lines.append(f"%{z}{name} = {instruction}")
        return f"%{z}{name}"

    def mul(name: str, a: str, b: str) -> str:
        return let(name, f"fmul contract {t} {a}, {b}")

    def fma(name: str, a: str, b: str, sum_: str, sign: str = "fadd") -> str:
        """sum_ + a b, or sum_ - a b with the sign fsub."""
        product = mul(name + "p", a, b)
        return let(name, f"{sign} contract {t} {sum_}, {product}")

    size = let("abs", f"call {t} @llvm.fabs.{suffix(lanes)}({t} {x})")
    small = let("ok", f"fcmp ole {t} {size}, {c(LIMIT)}")
    r = let("in", f"select {truth} {small}, {t} {x}, {t} {c(float('nan'))}")
    m = fma("m", x, c(TWO_OVER_PI), c(MAGIC))
    k = let("k", f"fsub {t} {m}, {c(MAGIC)}")
    for j, part in enumerate(HALF_PI):
        r = fma(f"r{j}", k, c(part), r, "fsub")
    r2 = mul("rr", r, r)
    r4 = mul("rrrr", r2, r2)

    def polynomial(name: str, a: Sequence[float]) -> str:
        # Estrin's order: (a0 + a1 z) + z^2 ((a2 + a3 z) + z^2 (a4 + a5 z)), half as deep as Horner's.
        pairs = [fma(f"{name}{j}", r2, c(a[j + 1]), c(a[j])) for j in (0, 2, 4)]
        return fma(f"{name}q", r4, fma(f"{name}h", r4, pairs[2], pairs[1]), pairs[0])

    sine = fma("s", mul("rrr", r, r2), polynomial("S", SIN), r)
    cosine = fma("c", r4, polynomial("C", COS), fma("w", r2, c(0.5), c(1.0), "fsub"))
    bits = let("bits", f"bitcast {t} {m} to {i}")
    odd = let("odd", f"shl {i} {bits}, {n(63)}")
    half = let("half", f"shl {i} {bits}, {n(62)}")
    both = let("both", f"xor {i} {odd}, {half}")
    swap = let("swap", f"icmp slt {i} {odd}, {n(0)}")
    for name, quadrant, first, second in (("sin", half, cosine, sine), ("cos", both, sine, cosine)):
        sign = let(f"{name}g", f"and {i} {quadrant}, {n(-(2**63))}")
        value = let(f"{name}v", f"select {truth} {swap}, {t} {first}, {t} {second}")
        signed = let(f"{name}x", f"xor {i} {let(f'{name}i', f'bitcast {t} {value} to {i}')}, {sign}")
        let(name, f"bitcast {i} {signed} to {t}")
    return lines


def function(lanes: int) -> str:
    """@sincos: both of one value, for angles that are computed inside a chunk."""
    t = vector(lanes)
    lines = "\n  ".join(body(lanes, "%x"))
    return f"""define internal {{{t}, {t}}} @sincos({t} %x) #0 {{
  {lines}
  %a = insertvalue {{{t}, {t}}} undef, {t} %zsin, 0
  %b = insertvalue {{{t}, {t}}} %a, {t} %zcos, 1
  ret {{{t}, {t}}} %b
}}
"""


def run_function(lanes: int) -> str:
    """@sincos_run: of n >= lanes consecutive doubles; the last vectors may overlap those before.

    Two vectors a round: they share the loads of the constants, and each fills the other's waits.
    """
    t = vector(lanes)
    rounds = []
    for letter in "yz":
        lines = "\n  ".join(body(lanes, f"%{letter}", letter))
        rounds.append(f"""%{letter}p = getelementptr double, ptr %from, i64 %{letter}i
  %{letter} = load {t}, ptr %{letter}p, align 8
  {lines}
  %{letter}ps = getelementptr double, ptr %sins, i64 %{letter}i
  store {t} %{letter}sin, ptr %{letter}ps, align 8
  %{letter}pc = getelementptr double, ptr %coss, i64 %{letter}i
  store {t} %{letter}cos, ptr %{letter}pc, align 8""")
    both = "\n  ".join(rounds)
    return f"""define internal void @sincos_run(ptr %from, ptr %sins, ptr %coss, i64 %n) #0 {{
entry:
  %end = sub i64 %n, {lanes}
  %one = icmp ult i64 %end, {lanes}
  %apart = select i1 %one, i64 0, i64 {lanes}
  %last = sub i64 %end, %apart
  br label %loop
loop:
  %yi = phi i64 [0, %entry], [%next, %loop]
  %zi = add i64 %yi, %apart
  {both}
  %step = add i64 %yi, {2 * lanes}
  %over = icmp ugt i64 %step, %last
  %next = select i1 %over, i64 %last, i64 %step
  %more = icmp ult i64 %yi, %last
  br i1 %more, label %loop, label %done
done:
  ret void
}}
"""
