"""How a kernel is written for a card and assembled; the maker keeps the code on disk as it keeps all code."""

from __future__ import annotations

import json
import re
from typing import Any

from robokit.engine.backend.targets import Planned, Target
from robokit.engine.cuda import assemble
from robokit.engine.cuda.driver import Card
from robokit.engine.cuda.launch import TEAM, Team
from robokit.engine.emit.ir import Real
from robokit.engine.trace.graph import TraceTooLarge

MOST = 200_000
"""Operations of a kernel: ptxas takes half a second of a processor for 1,000, so minutes for so many."""


class CardTarget(Target):
    """A value is one number of one state, which a thread computes.

    Function: SYMBOL (flat_code.py).
    """

    name = "cuda"
    lanes = 1

    def __init__(self, real: Real, card: Card | str) -> None:
        """For a card, or for an architecture that need not be here, "sm_90"."""
        self.real, self.card = real, card

    @property
    def arch(self) -> str:
        """The architecture."""
        return self.card if isinstance(self.card, str) else self.card.arch

    @property
    def bits(self) -> int:
        """Of a register for one number."""
        return 8 * self.real.bytes

    @property
    def features(self) -> str:
        """The compilers and the architecture."""
        return assemble.identity(self.card) if isinstance(self.card, str) else self.card.identity

    def write(self, kernel: Planned) -> tuple[str, int]:
        """The text: a team of warps for the states of a tile where that pays, else one state a thread.

        Raises:
            TraceTooLarge: the kernel has too many operations.
        """
        from robokit.engine.cuda.flat_code import flat_code

        count = len(kernel.program.order)
        if count > MOST:
            raise TraceTooLarge(f"{count:,} operations, more than {MOST:,} to compile for a card")
        return flat_code(kernel.program, kernel.symbol, self.real, kernel.signature.reproducible), 0

    def assemble(self, text: str) -> bytes:
        """Code of a text, after a line that says how it is launched."""
        code = assemble.assemble(text, self.card) if isinstance(self.card, str) else self.card.assemble(text)
        found = re.search(rf"(?m)^{TEAM}(\d+) (\d+) (\d+)$", text)
        return json.dumps([int(x) for x in found.groups()] if found else None).encode() + b"\n" + code

    def load(self, code: bytes) -> Any:
        """Code on the card, and the team that it is for, if it is for one."""
        assert not isinstance(self.card, str)
        head, _, rest = code.partition(b"\n")
        team = json.loads(head)
        return self.card.load(rest), Team(*team) if team else None
