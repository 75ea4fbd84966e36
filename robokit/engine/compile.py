"""From LLVM IR to machine code, through llvmlite's binding only.

Object code is made and loaded in two steps, so that the first can be skipped when the cache has the
bytes. LLVM's mid-level passes are not run: they gain nothing on straight lines that were already folded.
The code refers to no symbol outside its own module.
"""

from __future__ import annotations

import functools
import platform
import sys
from typing import Any

OLDEST = (0, 45)
"""First llvmlite whose IR has `ptr` and `splat` (LLVM 20)."""

OPTIMISATION = 2
"""Of code generation."""


class CompilerMissing(ImportError):
    """llvmlite is not there, too old, or knows no code for this processor."""


@functools.cache
def _binding() -> Any:
    try:
        import llvmlite
        import llvmlite.binding as llvm
    except ImportError as error:
        raise CompilerMissing(f"llvmlite cannot be imported: {error}") from error
    version = tuple(int(part) for part in llvmlite.__version__.split(".")[:2])
    if version < OLDEST:
        raise CompilerMissing(f"llvmlite {llvmlite.__version__} is older than {OLDEST[0]}.{OLDEST[1]}")
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


@functools.cache
def host() -> tuple[str, str]:
    """Name and features of this processor, in LLVM's words."""
    llvm = _binding()
    try:
        features = llvm.get_host_cpu_features().flatten()
    except RuntimeError:  # LLVM cannot ask every system
        features = ""
    return llvm.get_host_cpu_name(), features


@functools.cache
def identity() -> str:
    """What machine code depends on besides its IR."""
    _binding()  # says that llvmlite is missing in the words that callers wait for
    import llvmlite

    versions = f"{llvmlite.__version__}, LLVM {_binding().llvm_version_info}"
    return "|".join((versions, sys.platform, platform.machine(), *host(), str(OPTIMISATION)))


@functools.cache
def vector_width() -> int:
    """Doubles in one vector register of this processor."""
    features = host()[1].split(",")
    return 8 if "+avx512f" in features else 4 if "+avx2" in features else 2


def _target_machine() -> Any:
    cpu, features = host()
    target = _binding().Target.from_default_triple()
    return target.create_target_machine(
        cpu=cpu, features=features, opt=OPTIMISATION, reloc="pic", codemodel="small", jit=True
    )


def assemble(text: str) -> bytes:
    """Object code of a module's text."""
    llvm = _binding()
    context = llvm.create_context()  # of its own: the global one would keep every module's constants
    module = llvm.parse_assembly(text, context=context)
    return _target_machine().emit_object(module)


def cross(text: str, triple: str, cpu: str = "", features: str = "") -> tuple[str, bytes]:
    """Assembly and object code of a module's text for another processor: to be looked at, not to be run.

    Args:
        text: of the module.
        triple: of the target, for example "aarch64-linux-gnu".
        cpu: the processor's name in LLVM's words; its baseline if empty.
        features: of the processor, "+name,-name".

    Raises:
        CompilerMissing: this llvmlite was built without that target.
    """
    llvm = _binding()
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    try:
        target = llvm.Target.from_triple(triple)
    except RuntimeError as error:
        raise CompilerMissing(f"llvmlite has no code for {triple}: {error}") from error
    machine = target.create_target_machine(
        cpu=cpu, features=features, opt=OPTIMISATION, reloc="pic", codemodel="small"
    )
    context = llvm.create_context()
    module = llvm.parse_assembly(text, context=context)
    module.triple, module.data_layout = triple, str(machine.target_data)
    return machine.emit_assembly(module), machine.emit_object(module)


@functools.cache
def _loading_context() -> Any:
    """Context of the empty modules that loaders need: it must outlive them, whatever is collected first."""
    return _binding().create_context()


class Loaded:
    """Object code in memory; keep it alive as long as its addresses are in use."""

    def __init__(self, code: bytes) -> None:
        llvm = _binding()
        module = llvm.parse_assembly("", context=_loading_context())
        self._engine = llvm.create_mcjit_compiler(module, _target_machine())
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        self._engine.finalize_object()

    def address(self, symbol: str) -> int:
        """Address of a function of the module."""
        return self._engine.get_function_address(symbol)
