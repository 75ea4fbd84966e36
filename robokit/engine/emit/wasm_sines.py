"""Sine and cosine together in WebAssembly: the computation of emit/sincos.py.

sines(x) -> sine, cosine
"""

from __future__ import annotations

from collections.abc import Sequence

from robokit.engine.emit.wasm_code import (
    F64,
    GET,
    I32,
    I64,
    SET,
    TEE,
    Code,
    Function,
    Variable,
    number,
    plain,
)
from robokit.spatial.scalars import COS, FAR, NEAR, SIN, TWO_OVER_PI

NAME = "sines"


def sines() -> Function:
    """The function."""
    x, k, r, rr, rrrr, s, c = variables = [Variable() for _ in range(7)]
    bits, odd = Variable(I64), Variable(I32)
    one, sixty_three = b"\x42\x01", b"\x42\x3f"

    def get(*these: Variable) -> list[Code]:
        return [(GET, v) for v in these]

    def reduced(parts: Sequence[float]) -> list[Code]:
        """x less k times each part."""
        code = get(x)
        for part in parts:
            code += [*get(k), number(part), *plain("f64.mul f64.sub")]
        return code

    def polynomial(a: Sequence[float]) -> list[Code]:
        """(a0 + a1 z) + z^2 ((a2 + a3 z) + z^2 (a4 + a5 z)) of z = r^2."""
        pairs = [
            [number(a[j]), *get(rr), number(a[j + 1]), *plain("f64.mul f64.add")] for j in range(0, len(a), 2)
        ]
        code: list[Code] = []
        for pair in pairs[:-1]:
            code += [*pair, *get(rrrr)]
        return [*code, *pairs[-1], *plain("f64.mul f64.add") * (len(pairs) - 1)]

    def signed(other: Variable, own: Variable, quadrant: Sequence[Code]) -> list[Code]:
        """One of two values, by whether the quadrant is odd, with its sign."""
        code = [*get(other, own, odd), *plain("select i64.reinterpret_f64")]
        return [*code, *quadrant, sixty_three, *plain("i64.shl i64.xor f64.reinterpret_i64")]

    def within(bound: float) -> list[Code]:
        return [*get(x), *plain("f64.abs"), number(bound), *plain("f64.le")]

    m, half = Variable(), [*get(bits), one, *plain("i64.shr_u")]
    code = [
        # k, a whole number, and its low bits; what is left of x after k quarters of a turn
        *[number(NEAR[1]), *get(x), number(TWO_OVER_PI), *plain("f64.mul f64.add"), (TEE, m)],
        *[*plain("i64.reinterpret_f64"), (SET, bits), *get(m), number(NEAR[1]), *plain("f64.sub"), (SET, k)],
        *[*reduced(NEAR[2]), (SET, r)],
        *[*within(NEAR[0]), *plain("i32.eqz if"), *reduced(FAR[2]), number(float("nan"))],
        *[*within(FAR[0]), *plain("select"), (SET, r), *plain("end")],
        # both of what is left
        *[*get(r, r), *plain("f64.mul"), (TEE, rr), *get(rr), *plain("f64.mul"), (SET, rrrr)],
        *[*get(r, r, rr), *plain("f64.mul"), *polynomial(SIN), *plain("f64.mul f64.add"), (SET, s)],
        *[number(1.0), *get(rr), number(0.5), *plain("f64.mul f64.sub")],
        *[*get(rrrr), *polynomial(COS), *plain("f64.mul f64.add"), (SET, c)],
        # the quadrant swaps them and sets their signs
        *[*get(bits), one, *plain("i64.and i32.wrap_i64"), (SET, odd)],
        *signed(c, s, half),
        *signed(s, c, [*half, *get(bits), *plain("i64.xor")]),
    ]
    return Function(NAME, variables[:1], [F64, F64], code)
