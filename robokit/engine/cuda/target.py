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

    Function: SYMBOL (flat_code.py, team_code.py).
    """

    lanes = 1

    def __init__(self, real: Real, card: Card | str, team: bool = False) -> None:
        """For a card, or for an architecture that need not be here, "sm_90".

        Args:
            real: the numbers.
            card: the card or the architecture.
            team: whether a team of warps has the states of a tile.
        """
        self.real, self.card, self.team = real, card, team
        self.name = "cuda, teams" if team else "cuda"

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
        """The text; it has its own workspace. "" where there is none for teams.

        Raises:
            TraceTooLarge: the kernel has too many operations.
        """
        from robokit.engine.cuda.flat_code import flat_code
        from robokit.engine.cuda.team_code import team_code

        count, one_order = len(kernel.program.order), kernel.signature.reproducible
        if count > MOST:
            raise TraceTooLarge(f"{count:,} operations, more than {MOST:,} to compile for a card")
        given = kernel.program, kernel.symbol, self.real, one_order
        return (team_code(*given, assemble.shared_memory(self.arch)) if self.team else flat_code(*given)), 0

    def assemble(self, text: str) -> bytes:
        """Code of a text, after a line that says how it is launched."""
        if not text:
            return b""
        code = assemble.assemble(text, self.card) if isinstance(self.card, str) else self.card.assemble(text)
        found = re.search(rf"(?m)^{TEAM}(\d+) (\d+) (\d+)$", text)
        return json.dumps([int(x) for x in found.groups()] if found else None).encode() + b"\n" + code

    def load(self, code: bytes) -> Any:
        """Code on the card, and the team that it is for, if it is for one; None where there is no code."""
        assert not isinstance(self.card, str)
        if not code:
            return None
        head, _, rest = code.partition(b"\n")
        team = json.loads(head)
        return self.card.load(rest), Team(*team) if team else None
