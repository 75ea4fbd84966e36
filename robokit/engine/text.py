"""Words of LLVM IR that all the emitters share."""

from __future__ import annotations

import struct


def vector(lanes: int, kind: str = "double") -> str:
    """Type of a value: one plain element, or a vector of lanes."""
    return kind if lanes == 1 else f"<{lanes} x {kind}>"


def number(value: float) -> str:
    """A double, exactly: IR reads decimals only where they are exact, so the bits are given."""
    return "0x" + struct.pack(">d", value).hex().upper()


def constant(lanes: int, value: float) -> str:
    """The same double in every lane."""
    return number(value) if lanes == 1 else f"splat (double {number(value)})"


def suffix(lanes: int) -> str:
    """Ending of an intrinsic's name."""
    return "f64" if lanes == 1 else f"v{lanes}f64"
