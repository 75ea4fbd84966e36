"""A difference between two descriptions, with its cause; and all of them together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Finding:
    """One difference.

    Attributes:
        cause: code of the cause, a key of ``robokit.parity.CAUSES``.
        kind: "link", "joint" or "robot".
        name: of the link or joint in A, or in B if A has none; the robot's for "robot".
        line: of A's file, 0 if it is not known.
        text: the verdict, one sentence without the element.
        also: causes that would make the same difference.
        a, b: the values that differ.
        instead: other elements that would explain the same difference as well.
    """

    cause: str
    kind: str
    name: str
    line: int
    text: str
    also: tuple[str, ...] = ()
    a: Any = None
    b: Any = None
    instead: tuple[str, ...] = ()

    def __str__(self) -> str:
        place = f" (line {self.line})" if self.line and f"line {self.line}" not in self.text else ""
        more = ", ..." if len(self.instead) > 2 else ""
        other = f" (or {', '.join(self.instead[:2])}{more})" if self.instead else ""
        return f"{self.name}{other}: {self.text}{place}"


@dataclass(frozen=True)
class Dynamics:
    """The largest relative differences of mass matrix, velocity forces and gravity at random states.

    Attributes:
        H, C, gravity: of mass matrix, velocity forces without gravity, and gravity forces. An entry H_ij is
            measured by sqrt(H_ii H_jj), a force by the largest that the same accelerations can make.
        where: the quantity and the joints that differ most.
        largest: the difference there.
        rounding: the difference that rounded numbers can make there.
        differs: whether any difference is larger than rounding can make it.
    """

    H: float
    C: float
    gravity: float
    where: str
    largest: float
    rounding: float
    differs: bool


@dataclass
class Verdict:
    """What the referee says.

    Attributes:
        a, b: files.
        a_format, b_format: what they are and which program read them.
        bodies, joints: numbers of links and movable joints of A that have a counterpart in B.
        findings: the differences, those of the whole robot first, then by line.
        notes: what is not compared, and differences that change no motion.
        tolerance: largest relative difference that counts as none.
        dynamics: how far mass matrix, velocity forces and gravity are apart; None if nothing moves.
    """

    a: str
    b: str
    a_format: str
    b_format: str
    bodies: int = 0
    joints: int = 0
    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    tolerance: float = 1e-6
    dynamics: Dynamics | None = None

    @property
    def same(self) -> bool:
        """Whether there is no difference, in the descriptions and in the dynamics that they make."""
        return not self.findings and not (self.dynamics is not None and self.dynamics.differs)
