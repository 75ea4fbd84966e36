"""How a kernel is written for a card and assembled; the maker keeps the code on disk as it keeps all code."""

from __future__ import annotations

from robokit.engine.backend.targets import Planned, Target
from robokit.engine.cuda import assemble
from robokit.engine.cuda.driver import Card
from robokit.engine.emit.ir import Real


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
    def bits(self) -> int:
        """Of a register for one number."""
        return 8 * self.real.bytes

    @property
    def features(self) -> str:
        """The compilers and the architecture."""
        return assemble.identity(self.card) if isinstance(self.card, str) else self.card.identity

    def write(self, kernel: Planned) -> tuple[str, int]:
        """The text of one state a thread; it has its own workspace."""
        from robokit.engine.cuda.flat_code import flat_code

        return flat_code(kernel.program, kernel.symbol, self.real), 0

    def assemble(self, text: str) -> bytes:
        """Code of a text."""
        return assemble.assemble(text, self.card) if isinstance(self.card, str) else self.card.assemble(text)

    def load(self, code: bytes) -> None:  # type: ignore[override]
        """Nothing: a function on a card has no address here (launch.py)."""
