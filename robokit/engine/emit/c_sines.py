"""Sine and cosine in C: the computation of emit/sincos.py, whose bits do not depend on the C library."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from robokit.engine.emit.c_source import function, number
from robokit.engine.emit.ir import FLOAT32, FLOAT64, Real
from robokit.spatial.sines import (
    COS,
    COS_FLOAT32,
    FAR,
    NEAR,
    NEAR_FLOAT32,
    SIN,
    SIN_FLOAT32,
    TWO_OVER_PI,
    Way,
)


def sines(name: str, real: Real) -> str:
    """``static TYPE NAME(TYPE x, int quarters)``: the sine of x and so many quarters of a turn; 0 or 1.

    One line is one operation, as in emit/c_source.py.
    """
    t, f = ("float", "f") if real is FLOAT32 else ("double", "")
    way, sine, cosine = (NEAR_FLOAT32, SIN_FLOAT32, COS_FLOAT32) if f else (NEAR, SIN, COS)
    lines = [
        f"{t} r = x, z, zz, y, p;",
        "double wide = (double)x, m, part;",
        f"if (!(fabs{f}(x) <= {number(FAR[0], real)})) return NAN;",
        f"if (fabs{f}(x) <= {number(way[0], real)}) {{",
        *[f"    {line}" for line in _reduced("r", "y", "p", way, real)],
        "} else {",
        *[f"    {line}" for line in _reduced("wide", "m", "part", FAR, FLOAT64)],
        f"    r = ({t})wide;",
        "}",
        "z = r * r;",
        "zz = z * z;",
        "if (quarters & 1) {",
        *[f"    {line}" for line in _polynomial(cosine, real)],
        f"    z = z * {number(0.5, real)};",
        f"    z = {number(1.0, real)} - z;",
        "    p = zz * p;",
        "    y = z + p;",
        "} else {",
        *[f"    {line}" for line in _polynomial(sine, real)],
        "    z = r * z;",
        "    p = z * p;",
        "    y = r + p;",
        "}",
        "return quarters & 2 ? -y : y;",
    ]
    return "/* The sine of x and so many quarters of a turn. */\n" + function(
        f"static {t} {name}({t} x, int quarters)", lines
    )


def _reduced(r: str, k: str, part: str, way: Way, real: Real) -> Iterator[str]:
    """Lines for what is left of a number after whole quarters of a turn, which are counted."""
    _, magic, parts = way
    yield f"{k} = {r} * {number(TWO_OVER_PI, real)};"
    yield f"{k} = {number(magic, real)} + {k};"
    yield f"{k} = {k} - {number(magic, real)};"
    for value in parts:
        yield f"{part} = {k} * {number(value, real)};"
        yield f"{r} = {r} - {part};"
    yield f"quarters += (int){k};"


def _polynomial(a: Sequence[float], real: Real) -> Iterator[str]:
    """Lines for p = (a0 + a1 z) + zz ((a2 + a3 z) + zz (a4 + a5 z))."""
    pairs = [a[j : j + 2] for j in range(0, len(a), 2)]
    yield from _pair("p", pairs[-1], real)
    for pair in reversed(pairs[:-1]):
        yield "p = zz * p;"
        yield from _pair("y", pair, real)
        yield "p = y + p;"


def _pair(name: str, pair: Sequence[float], real: Real) -> Iterator[str]:
    numbers = [number(value, real) for value in pair]
    yield f"{name} = {f'z * {numbers[1]}' if numbers[1:] else numbers[0]};"
    if numbers[1:]:
        yield f"{name} = {numbers[0]} + {name};"
