"""The targets that run in this process: one state after the other, or as many at once as a vector holds."""

from __future__ import annotations

from robokit.engine.emit.ir import FLOAT64, Real
from robokit.engine.target import llvm
from robokit.engine.target.target import Planned, Target


class Host(Target):
    """The processor of this machine, through LLVM."""

    @property
    def bits(self) -> int:
        """Of a vector register of this processor."""
        return 8 * FLOAT64.bytes * llvm.vector_width()

    @property
    def features(self) -> str:
        """The compiler's release, the system and the processor."""
        return llvm.identity()

    def assemble(self, text: str) -> bytes:
        """Machine code of a module."""
        return llvm.assemble(text)

    def load(self, code: bytes) -> llvm.Loaded:
        """Machine code in memory."""
        return llvm.Loaded(code)


class OneState(Host):
    """A value is one number of one state; vectors only check the arguments and compute sines.

    Functions: SYMBOL_single and, with feedback, SYMBOL_iterate (emit/single_module.py).
    """

    name = "single"
    real = FLOAT64
    lanes = 1

    @property
    def columns(self) -> int:
        """As many as a vector register holds (``scalars.side_by_side``)."""
        return self.width

    def write(self, kernel: Planned) -> tuple[str, int]:
        """The module of one state."""
        from robokit.engine.emit.single_module import single_module  # a warm start writes nothing
        from robokit.engine.passes.paired import paired

        return single_module(
            paired(kernel.program, kernel.twins) if kernel.shared is None else kernel.program,
            self.width,
            kernel.symbol,
            kernel.quaternions,
            kernel.feedback,
            kernel.finite,
            kernel.shared,
            bounds=kernel.bounds,
        )


class ManyStates(Host):
    """A value is a vector: one number of each of so many states.

    Functions: SYMBOL_batch (emit/batch_module.py) and SYMBOL_passes (emit/rollout_driver.py).
    """

    name = "batch"

    def __init__(self, real: Real) -> None:
        self.real = real

    @property
    def lanes(self) -> int:
        """As many as a vector register holds."""
        return self.width

    def write(self, kernel: Planned) -> tuple[str, int]:
        """The module of batches."""
        from robokit.engine.emit.batch_module import batch_module

        return batch_module(
            kernel.program,
            self.lanes,
            kernel.symbol,
            kernel.quaternions,
            kernel.finite,
            self.real,
            kernel.shared,
            bounds=kernel.bounds,
            feedback=kernel.feedback,
        )
