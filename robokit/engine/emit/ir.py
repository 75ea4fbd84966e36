"""Vocabulary of LLVM IR that all emitters share, and the settings that they agree on."""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Iterable
from dataclasses import dataclass

from robokit.engine.trace.ops import INTRINSICS

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

FITS = 5_500
"""Most nodes of a kernel whose code is taken to fit in that cache: its tiles go through it one by one."""


@dataclass(frozen=True)
class Real:
    """The numbers of a kernel."""

    dtype: str  # NumPy's name
    kind: str  # LLVM's name
    bytes: int  # of one
    suffix: str  # ending of the names of LLVM's intrinsics
    largest: float  # the largest finite one

    def scale(self, bound: float) -> float:
        """A factor that makes infinite what is beyond a bound, and nothing else."""
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


def rounded(value: float, real: Real) -> float:
    """The number of that kind which is nearest."""
    # Infinity where it is too large, unlike struct.
    return ctypes.c_float(value).value if real is FLOAT32 else value


def constant(lanes: int, value: float, real: Real = FLOAT64) -> str:
    """The same number in every lane."""
    return number(value, real) if lanes == 1 else f"splat ({real.kind} {number(value, real)})"


def suffix(lanes: int, real: Real = FLOAT64) -> str:
    """Ending of an intrinsic's name."""
    return real.suffix if lanes == 1 else f"v{lanes}{real.suffix}"


def module(parts: Iterable[str], lanes: Iterable[int]) -> str:
    """Text of a module.

    Args:
        parts: function definitions and tables.
        lanes: numbers of lanes that intrinsics are needed for.
    """
    declared = "".join(
        f"declare {vector(n, real.kind)} @llvm.{f}.{suffix(n, real)}({vector(n, real.kind)})\n"
        for real in (FLOAT64, FLOAT32)
        for n in sorted({1, *lanes})
        for f in INTRINSICS
    )
    declared += "".join(
        f"declare {vector(n, r.kind)} @llvm.fma.{suffix(n, r)}({', '.join([vector(n, r.kind)] * 3)})\n"
        for r in (FLOAT64, FLOAT32)
        for n in sorted({1, *lanes})
    )
    # 512-bit registers are used where the CPU has them, also on those whose tuning prefers 256.
    widths = '"prefer-vector-width"="512" "min-legal-vector-width"="512"'
    attributes = f"attributes #0 = {{ noinline nounwind {widths} }}\n"
    return "\n".join([declared, *parts, attributes])


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
