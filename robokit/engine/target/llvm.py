"""From LLVM IR to machine code, through llvmlite's binding only.

Code is made and loaded in two steps, so that the first can be skipped when the cache has the bytes; if elf.py
can load them, LLVM is not even imported. LLVM's mid-level passes are not run: they gain nothing on straight
lines that were already folded. The code refers to no symbol outside its own module.

LLVM is entered by the threads of workers.py alone.
"""

from __future__ import annotations

import _thread
import contextlib
import ctypes
import functools
import os
import platform
import sys
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from robokit.engine.target import cpu, elf
from robokit.engine.target.split import HURRY, LOOPS, divided, sines_apart
from robokit.engine.target.workers import elsewhere

OLDEST = (0, 45)
"""First llvmlite whose IR has `ptr` and `splat` (LLVM 20)."""

OPTIMISATION = 2
"""Of code generation."""

WITHOUT = (
    ("-enable-misched=false", "-enable-misched=true"),
    ("-disable-post-ra=true", "-disable-post-ra=false"),
)
"""LLVM's options that leave out its later schedulers of instructions, and those that put them back: before
registers are given out and, for some processors (AMD's), after. The recorded order is as good: without them
code is generated in five sixths of the time, for AMD's processors in two thirds, and is equally fast."""


class CompilerMissing(ImportError):
    """llvmlite is not there, too old, or knows no code for this processor."""


@functools.cache
def release() -> str:
    """Version of llvmlite, and the size of its library: the same version may be built with another LLVM."""
    try:
        import llvmlite
        from llvmlite.utils import get_library_name
    except ImportError as error:
        raise CompilerMissing(f"llvmlite cannot be imported: {error}") from error
    version = tuple(int(part) for part in llvmlite.__version__.split(".")[:2])
    if version < OLDEST:
        raise CompilerMissing(f"llvmlite {llvmlite.__version__} is older than {OLDEST[0]}.{OLDEST[1]}")
    library = os.path.join(os.path.dirname(llvmlite.__file__), "binding", get_library_name())
    return f"{llvmlite.__version__} ({os.path.getsize(library) if os.path.exists(library) else ''})"


@functools.cache
def _binding() -> Any:
    release()
    try:
        import llvmlite.binding as llvm
    except (ImportError, OSError) as error:
        raise CompilerMissing(f"llvmlite cannot be imported: {error}") from error
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


@functools.cache
def host() -> tuple[str, str]:
    """Name and features of this processor, in LLVM's words."""
    return elsewhere([_host])[0]


def _host() -> tuple[str, str]:
    llvm = _binding()
    try:
        features = llvm.get_host_cpu_features().flatten()
    except RuntimeError:  # LLVM cannot ask every system
        features = ""
    return llvm.get_host_cpu_name(), features


@functools.cache
def identity() -> str:
    """What machine code depends on besides its IR."""
    kind = cpu.described() or "|".join(host())
    return "|".join((release(), sys.platform, platform.machine(), kind, str(OPTIMISATION)))


@functools.cache
def vector_width() -> int:
    """Doubles in one vector register of this processor."""
    features = cpu.flags() or {f[1:] for f in host()[1].split(",") if f.startswith("+")}
    return 8 if "avx512f" in features else 4 if "avx2" in features else 2


@functools.cache
def has_fused_multiply_add() -> bool:
    """Whether this processor has an instruction for a product and a sum with one rounding."""
    features = cpu.flags() or {f[1:] for f in host()[1].split(",") if f.startswith("+")}
    return "fma" in features or platform.machine().lower() in ("aarch64", "arm64")


def _target_machine(level: int = OPTIMISATION) -> Any:
    name, features = host()
    target = _binding().Target.from_default_triple()
    return target.create_target_machine(
        cpu=name, features=features, opt=level, reloc="pic", codemodel="small", jit=True
    )


def assemble(text: str) -> bytes:
    """Machine code of a module's text: an image if elf.py can make one, else an object file."""
    if elf.possible():
        try:
            return elf.image(_divided_objects(text))
        except elf.NotLinked:
            pass
    return _objects([text])[0]


_sines: dict[tuple[object, ...], bytes] = {}  # by processor and text; b"" after the first module with them


def _divided_objects(text: str) -> list[bytes]:
    """Object files of a module's parts.

    From the second module on that this process compiles, the sines of all joints are a part of its own, which
    is compiled once. For the first it would only be one more module.
    """
    rest, sines = sines_apart(text)
    key = host(), OPTIMISATION, sines
    if not sines or key not in _sines:
        if sines:
            _sines[key] = b""
        return _objects(divided(text, cpu.processors()))
    parts = divided(rest, cpu.processors())
    if _sines[key]:
        return [*_objects(parts), _sines[key]]
    made = _objects([*parts, sines])
    _sines[key] = made[-1]
    return made


def _objects(texts: list[str]) -> list[bytes]:
    """Object files of modules, compiled side by side."""
    return elsewhere([functools.partial(_object, text) for text in texts], cpu.processors())


_GENERATING = _thread.allocate_lock()
_generators = 0


@contextlib.contextmanager
def _unscheduled() -> Iterator[None]:
    """While code is generated here, LLVM leaves out passes that cost more than they gain.

    Its options belong to the process, others who use LLVM included, so it is put back at the end. What others
    compile in the meantime is the same code in another order.
    """
    global _generators
    with _GENERATING:
        if not _generators:
            for without, _ in WITHOUT:
                _binding().set_option("robokit", without)
        _generators += 1
    try:
        yield
    finally:
        with _GENERATING:
            _generators -= 1
            if not _generators:
                for _, again in WITHOUT:
                    _binding().set_option("robokit", again)


def _object(text: str) -> bytes:
    """Object file of a module's text.

    llvmlite lets one thread at a time into LLVM. Code generation, nine tenths of the time, is called past
    that lock: the module, its context and the target machine are this call's own.
    """
    llvm = _binding()
    context = llvm.create_context()  # of its own: the global one would keep every module's constants
    module = llvm.parse_assembly(text, context=context)
    machine = _target_machine(0 if text.startswith(HURRY) else OPTIMISATION)
    if text.startswith(LOOPS):
        _optimise(llvm, module, machine)
    library = llvm.ffi.lib
    generate = getattr(library.LLVMPY_TargetMachineEmitToMemory, "_cfn", None)
    if generate is None:  # another llvmlite
        return machine.emit_object(module)
    with llvm.ffi.OutputString() as problem:
        with _unscheduled():
            buffer = generate(machine, module, 1, problem)
        if not buffer:
            raise RuntimeError(str(problem))
    try:
        return ctypes.string_at(library.LLVMPY_GetBufferStart(buffer), library.LLVMPY_GetBufferSize(buffer))
    finally:
        library.LLVMPY_DisposeMemoryBuffer(buffer)


def _optimise(llvm: Any, module: Any, machine: Any) -> None:
    """LLVM's passes over a module: loops leave out what does not change, and go through vectors."""
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization, options.loop_interleaving, options.loop_unrolling = True, True, True
    options.slp_vectorization = True
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)


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
    return elsewhere([lambda: _cross(text, triple, cpu, features)])[0]


def _cross(text: str, triple: str, cpu: str, features: str) -> tuple[str, bytes]:
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
    """Machine code in memory; keep it alive as long as its addresses are in use."""

    def __init__(self, code: bytes) -> None:
        """Load what :func:`assemble` made.

        Raises:
            CompilerMissing: the system lets this process run no new code.
        """
        if code.startswith(elf.MAGIC):
            try:
                self.address: Callable[[str], int] = elf.Image(code).address
            except OSError as error:
                raise CompilerMissing(str(error)) from error
            return
        (engine,) = elsewhere([lambda: _engine(code)])
        self.address = lambda symbol: elsewhere([lambda: engine.get_function_address(symbol)])[0]
        weakref.finalize(self, elsewhere, [engine.close]).atexit = False


def _engine(code: bytes) -> Any:
    """LLVM's own loader with an object file in it."""
    llvm = _binding()
    module = llvm.parse_assembly("", context=_loading_context())
    engine = llvm.create_mcjit_compiler(module, _target_machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine
