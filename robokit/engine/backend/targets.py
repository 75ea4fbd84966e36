"""What code is made for: a target says how a kernel is written, compiled and loaded.

The maker (maker.py) knows nothing else of the place where code will run. A new one is a subclass. Here are
those that run in this process; loops/wasm.py has browsers, cuda/straight_code.py NVIDIA's cards. C is no
target: loops/c_source.py writes a program's source, and it is compiled elsewhere.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from robokit.dataclass_tools import frozen
from robokit.engine.backend import llvm
from robokit.engine.emit.ir import FLOAT64, Real
from robokit.engine.passes.similarity import Rerolled
from robokit.engine.signature import Signature
from robokit.engine.trace.graph import Program


@frozen
class Planned:
    """A kernel that is ready to be written."""

    symbol: str  # what the names of its functions begin with
    program: Program  # what to compute
    shared: Rerolled | None  # the plan of its repeated iterations, if it has any that share code
    signature: Signature  # what it takes and returns
    # whether code is wanted that is there sooner and may take longer to run, where there is such
    baseline: bool = False

    @property
    def fused(self) -> bool:
        """Whether code for this processor fuses products with sums."""
        return not self.signature.reproducible and llvm.has_fused_multiply_add()

    @property
    def superword_seeds(self) -> Sequence[tuple[int, int, int]]:
        """Superword seeds of the signature; none if the bits are the same on every target."""
        return () if self.signature.reproducible else self.signature.superword_seeds


class Loaded(Protocol):
    """Code in memory; keep it alive as long as its addresses are in use."""

    @property
    def address(self) -> Callable[[str], int]:
        """Address of a function by its name."""


class Target(ABC):
    """A place where kernels run, and the form that they have there.

    ``name``: in the cache and in messages; no other target of the same real has it; ``real``: the numbers of
    the code; ``shares``: whether large functions that are taken several times (``call`` and ``vmap``) and
    repeated iterations are written once; ``columns``: most columns of a function that go side by side through
    code of one state (``control_flow.vmap``).
    """

    name: str
    real: Real
    shares = True

    @property
    def columns(self) -> int:
        """Most columns of a function that go side by side through code of one state."""
        return 1

    @property
    def width(self) -> int:
        """Numbers in a vector register."""
        return self.bits // (8 * self.real.bytes)

    @property
    @abstractmethod
    def lanes(self) -> int:
        """States in one value of the code: 1, or as many as a vector register holds."""

    @property
    @abstractmethod
    def bits(self) -> int:
        """Bits of a vector register of the processor."""

    @property
    @abstractmethod
    def features(self) -> str:
        """Everything besides the source that the code depends on: the compiler, and the processor's features.

        Raises CompilerMissing: there is no compiler for this target.
        """

    @abstractmethod
    def write(self, kernel: Planned) -> tuple[Any, int]:
        """The kernel as text or bytes for :meth:`assemble`, and its functions' workspace [doubles]."""

    @abstractmethod
    def assemble(self, text: Any) -> bytes:
        """Machine code of the result of :meth:`write`. Raises CompilerMissing: there is no compiler for this
        target.
        """

    @abstractmethod
    def load(self, code: bytes) -> Loaded:
        """Make code callable in this process. Raises CompilerMissing: it cannot run here."""


# -- This process ----------------------------------------------------------------------------------------
#
# The targets that run in this process: one state after the other, or as many at once as a vector holds.


class Host(Target):
    """The processor of this machine, through LLVM."""

    @property
    def bits(self) -> int:
        """Bits of a vector register of this processor."""
        return 8 * FLOAT64.bytes * llvm.vector_width()

    @property
    def features(self) -> str:
        """The compiler's release, the system and the processor."""
        return llvm.identity()

    def assemble(self, text: str) -> bytes:
        """Machine code of a module."""
        return llvm.assemble(text)

    def _marked(self, kernel: Planned, module: tuple[str, int]) -> tuple[str, int]:
        """A module with its workspace; of baseline code, LLVM selects instructions quickly."""
        return (llvm.BASELINE if kernel.baseline else "") + module[0], module[1]

    def load(self, code: bytes) -> llvm.Loaded:
        """Machine code in memory."""
        return llvm.Loaded(code)


class OneState(Host):
    """A value is one number of one state; vectors only check the arguments and compute sines.

    Function: SYMBOL_single (emit/single_module.py).
    """

    name = "single"
    real = FLOAT64
    lanes = 1

    @property
    def columns(self) -> int:
        """As many columns as a vector register holds (``control_flow.vmap``)."""
        return self.width

    def write(self, kernel: Planned) -> tuple[str, int]:
        """The module of one state."""
        from robokit.engine.emit.single_module import single_module  # a warm start writes nothing
        from robokit.engine.passes.superword import packed

        module = single_module(
            packed(kernel.program, kernel.superword_seeds) if kernel.shared is None else kernel.program,
            self.width,
            kernel.symbol,
            kernel.signature.quaternions,
            kernel.signature.finite,
            kernel.shared,
            bounds=kernel.signature.bounds,
            fused=kernel.fused,
            machine_code=kernel.baseline and llvm.runs_machine_code(),
        )
        return self._marked(kernel, module)


class ManyStates(Host):
    """A value is a vector: one number of each of several states.

    Functions: SYMBOL_batch and SYMBOL_passes, or for callers in machine code SYMBOL_linked alone
    (emit/batch_module.py).
    """

    def __init__(self, real: Real, linked: bool = False) -> None:
        self.real, self.linked = real, linked
        self.name = "linked" if linked else "batch"

    @property
    def lanes(self) -> int:
        """As many states as a vector register holds."""
        return self.width

    def write(self, kernel: Planned) -> tuple[str, int]:
        """The module of batches."""
        from robokit.engine.emit.batch_module import batch_module

        module = batch_module(
            kernel.program,
            self.lanes,
            kernel.symbol,
            kernel.signature.quaternions,
            kernel.signature.finite,
            self.real,
            kernel.shared,
            bounds=kernel.signature.bounds,
            feedback=kernel.signature.feedback,
            linked=self.linked,
            fused=kernel.fused,
            machine_code=kernel.baseline and llvm.runs_machine_code(),
        )
        return self._marked(kernel, module)
