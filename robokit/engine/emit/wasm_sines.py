"""Sine and cosine together, in the text of emit/wasm_module.py: the computation of emit/sincos.py.

sines(x) -> sine, cosine
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from robokit.spatial.sines import COS, FAR, NEAR, SIN, TWO_OVER_PI


def _number(value: float) -> str:
    return f"number {struct.pack('<d', value).hex()}"


def _reduced(parts: Sequence[float]) -> list[str]:
    """x less k times each part, on the stack."""
    lines = ["get x"]
    for part in parts:
        lines += ["get k", _number(part), "f64.mul", "f64.sub"]
    return lines


def _polynomial(a: Sequence[float]) -> list[str]:
    """(a0 + a1 z) + z^2 ((a2 + a3 z) + z^2 (a4 + a5 z)) of z = r^2, on the stack."""
    pairs = [[_number(a[j]), "get rr", _number(a[j + 1]), "f64.mul", "f64.add"] for j in range(0, len(a), 2)]
    lines: list[str] = []
    for pair in pairs[:-1]:
        lines += [*pair, "get rrrr"]
    lines += pairs[-1]
    return lines + ["f64.mul", "f64.add"] * (len(pairs) - 1)


def _signed(other: str, own: str, quadrant: Sequence[str]) -> list[str]:
    """One of two values, by whether the quadrant is odd, with its sign."""
    lines = [f"get {other}", f"get {own}", "get oddt", "select", "i64.reinterpret_f64"]
    return [*lines, *quadrant, "i64.const 63", "i64.shl", "i64.xor", "f64.reinterpret_i64"]


_HALF = ["get bitsl", "i64.const 1", "i64.shr_u"]

SINES = [
    "func sines x : 2",
    # k, a whole number, and its low bits; what is left of x after k quarters of a turn
    *[_number(NEAR[1]), "get x", _number(TWO_OVER_PI), "f64.mul", "f64.add", "tee m"],
    *["i64.reinterpret_f64", "set bitsl", "get m", _number(NEAR[1]), "f64.sub", "set k"],
    *[*_reduced(NEAR[2]), "set r"],
    *["get x", "f64.abs", _number(NEAR[0]), "f64.le", "i32.eqz", "if"],
    *[*_reduced(FAR[2]), _number(float("nan"))],
    *["get x", "f64.abs", _number(FAR[0]), "f64.le", "select", "set r", "end"],
    # both of what is left
    *["get r", "get r", "f64.mul", "tee rr", "get rr", "f64.mul", "set rrrr"],
    *["get r", "get r", "get rr", "f64.mul", *_polynomial(SIN), "f64.mul", "f64.add", "set s"],
    *[_number(1.0), "get rr", _number(0.5), "f64.mul", "f64.sub"],
    *["get rrrr", *_polynomial(COS), "f64.mul", "f64.add", "set c"],
    # the quadrant swaps them and sets their signs
    *["get bitsl", "i64.const 1", "i64.and", "i32.wrap_i64", "set oddt"],
    *_signed("c", "s", _HALF),
    *_signed("s", "c", [*_HALF, "get bitsl", "i64.xor"]),
]
