"""The arrays that a kernel with loops takes."""

from __future__ import annotations

from dataclasses import dataclass

from robokit.engine.loops.record import REAL


@dataclass(frozen=True)
class ArrayOf:
    """An array that a kernel takes.

    Attributes:
        name: of the argument.
        shape: numbers, or names of sizes.
        role: "in", "out", "inout", or "work": memory that nobody else sees, whose content is nothing in
            particular at the start, as that of "out".
        kind: "real" or "integer".
        shared: whether all states have the same one; it is then an input.
    """

    name: str
    shape: tuple[int | str, ...]
    role: str = "in"
    kind: str = REAL
    shared: bool = False
