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

from robokit.engine.text import constant, vector

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


def body(lanes: int, x: str) -> list[str]:
    """Instructions that compute %sin and %cos of x; names start with %z."""
    t, i = vector(lanes), vector(lanes, "i64")

    def c(value: float) -> str:
        return constant(lanes, value)

    def n(value: int) -> str:
        return str(value) if lanes == 1 else f"splat (i64 {value})"

    nan = c(float("nan"))
    suffix = "f64" if lanes == 1 else f"v{lanes}f64"
    lines = [
        f"%zabs = call {t} @llvm.fabs.{suffix}({t} {x})",
        f"%zok = fcmp ole {t} %zabs, {c(LIMIT)}",
        f"%zt = fmul contract {t} {x}, {c(TWO_OVER_PI)}",
        f"%zm = fadd contract {t} %zt, {c(MAGIC)}",
        f"%zk = fsub {t} %zm, {c(MAGIC)}",
    ]
    rest = x
    for j, part in enumerate(HALF_PI):
        lines.append(f"%zp{j} = fmul contract {t} %zk, {c(part)}")
        lines.append(f"%zq{j} = fsub contract {t} {rest}, %zp{j}")
        rest = f"%zq{j}"
    add = lines.append
    add(f"%zz = fmul contract {t} {rest}, {rest}")
    add(f"%zz2 = fmul contract {t} %zz, %zz")
    for name, k in (("s", SIN), ("c", COS)):
        # Estrin's order: (k0 + k1 z) + z^2 ((k2 + k3 z) + z^2 (k4 + k5 z)), half as deep as Horner's.
        for j in (0, 2, 4):
            add(f"%z{name}m{j} = fmul contract {t} %zz, {c(k[j + 1])}")
            add(f"%z{name}p{j} = fadd contract {t} %z{name}m{j}, {c(k[j])}")
        add(f"%z{name}m6 = fmul contract {t} %z{name}p4, %zz2")
        add(f"%z{name}p6 = fadd contract {t} %z{name}p2, %z{name}m6")
        add(f"%z{name}m7 = fmul contract {t} %z{name}p6, %zz2")
        add(f"%z{name}p7 = fadd contract {t} %z{name}p0, %z{name}m7")
    lines += [
        # NaN enters here for what is out of range: off the chain that everything waits for.
        f"%zunit = select {vector(lanes, 'i1')} %zok, {t} {c(1.0)}, {t} {nan}",
        f"%zr1 = fmul contract {t} {rest}, %zunit",
        f"%zrz = fmul contract {t} {rest}, %zz",
        f"%zs1 = fmul contract {t} %zrz, %zsp7",
        f"%zs = fadd contract {t} %zr1, %zs1",
        f"%zh = fmul contract {t} %zz, {c(0.5)}",
        f"%zw = fsub contract {t} %zunit, %zh",
        f"%zc1 = fmul contract {t} %zz2, %zcp7",
        f"%zc = fadd contract {t} %zw, %zc1",
        f"%zb = bitcast {t} %zm to {i}",
        f"%zodd = shl {i} %zb, {n(63)}",
        f"%zhalf = shl {i} %zb, {n(62)}",
        f"%zboth = xor {i} %zodd, %zhalf",
        f"%zswap = icmp slt {i} %zodd, {n(0)}",
        f"%zsing = and {i} %zhalf, {n(-(2**63))}",
        f"%zcosg = and {i} %zboth, {n(-(2**63))}",
    ]
    for name, first, second in (("sin", "%zc", "%zs"), ("cos", "%zs", "%zc")):
        lines += [
            f"%z{name}v = select {vector(lanes, 'i1')} %zswap, {t} {first}, {t} {second}",
            f"%z{name}i = bitcast {t} %z{name}v to {i}",
            f"%z{name}x = xor {i} %z{name}i, %z{name}g",
            f"%{name} = bitcast {i} %z{name}x to {t}",
        ]
    return lines


def function(lanes: int) -> str:
    """@sincos: both of one value, for angles that are computed inside a chunk."""
    t = vector(lanes)
    lines = "\n  ".join(body(lanes, "%x"))
    return f"""define internal {{{t}, {t}}} @sincos({t} %x) #0 {{
  {lines}
  %a = insertvalue {{{t}, {t}}} undef, {t} %sin, 0
  %b = insertvalue {{{t}, {t}}} %a, {t} %cos, 1
  ret {{{t}, {t}}} %b
}}
"""


def run_function(lanes: int) -> str:
    """@sincos_run: of n >= lanes consecutive doubles; the last vector may overlap the one before."""
    t = vector(lanes)
    lines = "\n  ".join(body(lanes, "%x"))
    return f"""define internal void @sincos_run(ptr %from, ptr %sins, ptr %coss, i64 %n) #0 {{
entry:
  %last = sub i64 %n, {lanes}
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%j, %loop]
  %px = getelementptr double, ptr %from, i64 %i
  %x = load {t}, ptr %px, align 8
  {lines}
  %ps = getelementptr double, ptr %sins, i64 %i
  store {t} %sin, ptr %ps, align 8
  %pc = getelementptr double, ptr %coss, i64 %i
  store {t} %cos, ptr %pc, align 8
  %step = add i64 %i, {lanes}
  %over = icmp ugt i64 %step, %last
  %j = select i1 %over, i64 %last, i64 %step
  %more = icmp ult i64 %i, %last
  br i1 %more, label %loop, label %done
done:
  ret void
}}
"""
