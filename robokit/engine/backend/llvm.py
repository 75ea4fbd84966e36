"""LLVM: from IR to machine code in memory, through llvmlite's binding only.

Code is made and loaded in two steps, so that the first can be skipped when the cache has the bytes; if they
are an image, LLVM is not even imported. LLVM's mid-level passes are run on loops only: they gain nothing on
straight lines that were already folded. The code refers to no symbol outside its own module. A long module is
divided into several, which threads compile side by side.
"""

from __future__ import annotations

import _thread
import atexit
import contextlib
import ctypes
import functools
import json
import mmap
import os
import platform
import queue
import re
import struct
import sys
import threading
import time
import traceback
import weakref
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, TypeVar

from robokit import disk_cache
from robokit.interpreter import at_fork

# -- What the processor can do ---------------------------------------------------------------------------
#
# LLVM is not asked: loading its library takes longer than loading a kernel.

INFORMATION = "/proc/cpuinfo"

LAST_CACHE = "/sys/devices/system/cpu/cpu0/cache/index3/size"

_NAMING = ("vendor_id", "cpu family", "model", "model name", "stepping", "flags", "Features", "CPU ")
"""Lines about what a processor is, not about how it is doing."""


@functools.cache
def processor_description() -> str:
    """Everything that the system says about the first processor's kind; "" if it says nothing."""
    try:
        with open(INFORMATION) as file:
            lines = []
            for line in file:
                if not line.strip():
                    break
                if line.startswith(_NAMING):
                    lines.append(line.strip())
            return "\n".join(lines)
    except OSError:
        return ""


def processor_flags() -> frozenset[str]:
    """The processor's features in the system's words; none if the system does not tell."""
    for line in processor_description().splitlines():
        if line.startswith(("flags", "Features")):
            return frozenset(line.partition(":")[2].split())
    return frozenset()


def processor_name() -> str:
    """Name of the processor, such as "Intel(R) Xeon(R) Gold 6348 CPU @ 2.60GHz"; otherwise its kind."""
    for line in processor_description().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


@functools.cache
def last_cache() -> int:
    """Size of the last-level cache [bytes]."""
    try:
        with open(LAST_CACHE) as file:
            return int(file.read().strip().removesuffix("K")) * 1024
    except (OSError, ValueError):
        return 32 * 2**20


def processors() -> int:
    """Number of CPUs that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


# -- Images ----------------------------------------------------------------------------------------------
#
# Object files become one image of code that is copied into memory and run: for Linux on x86-64. LLVM's own
# loader would do, but it comes with LLVM's whole library, whose import takes ten times as long as loading a
# kernel from the cache; and the parts of a large module that were compiled side by side must be put together
# somehow. The modules are simple: position-independent code and constants, no variables, and no symbol from
# outside. Whatever else an object file may hold is refused, and LLVM loads it.
#
# An image is MAGIC, the length of its head, the head (JSON) and the bytes, in which only the head's
# "absolute" words depend on where they lie.


MAGIC = b"robokit image 1\n"

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QIIq")
_X86_64, _RELOCATABLE = 62, 1
_PROGBITS, _SYMBOLS, _RELOCATIONS, _NOBITS = 1, 2, 4, 8
_ALLOCATED = 2
_UNWINDING = 0x70000001
_ABSOLUTE, _RELATIVE, _CALL = 1, 2, 4  # relocations: 64-bit address; 32-bit distance to data, to functions


class NotLinked(Exception):
    """An object file holds what this linker does not know."""


@functools.cache
def images_possible() -> bool:
    """Whether images can be run here."""
    return (
        sys.platform == "linux"
        and platform.machine() == "x86_64"
        and ctypes.sizeof(ctypes.c_void_p) == 8
        and sys.implementation.name == "cpython"
    )


class _Object:
    """The sections and symbols of one object file, and where its sections are placed in the image."""

    def __init__(self, content: bytes) -> None:
        header = _HEADER.unpack_from(content)
        identity, kind, machine, first, count = header[0], header[1], header[2], header[6], header[12]
        if identity[:6] != b"\x7fELF\x02\x01" or (kind, machine) != (_RELOCATABLE, _X86_64):
            raise NotLinked("no relocatable object of x86-64")
        self.content = content
        self.sections = [_SECTION.unpack_from(content, first + k * _SECTION.size) for k in range(count)]
        self.places: dict[int, int] = {}
        self.symbols: list[tuple[str, int, int, int]] = []
        for section in self.sections:
            if section[1] == _SYMBOLS:
                names = self.sections[section[6]][4]
                for at in range(section[4], section[4] + section[5], _SYMBOL.size):
                    name, info, _, index, value, _ = _SYMBOL.unpack_from(content, at)
                    start = names + name
                    text = content[start : content.index(b"\0", start)].decode()
                    self.symbols.append((text, info >> 4, index, value))

    def place(self, image: bytearray) -> None:
        """Append the sections that are needed to run."""
        for number, (_, kind, flags, _, offset, size, _, _, align, _) in enumerate(self.sections):
            if not flags & _ALLOCATED or not size or kind == _UNWINDING:
                continue  # nothing is ever thrown through this code
            if kind == _NOBITS:
                raise NotLinked("variables")
            if kind != _PROGBITS:
                continue  # notes
            image.extend(bytes(-len(image) % max(align, 1)))
            self.places[number] = len(image)
            image.extend(self.content[offset : offset + size])

    def defined(self) -> dict[str, int]:
        """Where its global symbols are in the image."""
        return {
            name: self.places[index] + value
            for name, binding, index, value in self.symbols
            if binding and index in self.places
        }

    def connect(self, image: bytearray, known: dict[str, int]) -> list[int]:
        """Fill in the distances; places of words that need the image's own address."""
        absolute = []
        for section in self.sections:
            base = self.places.get(section[7])
            if section[1] != _RELOCATIONS or base is None:
                continue
            for at in range(section[4], section[4] + section[5], _RELOCATION.size):
                offset, kind, symbol, addend = _RELOCATION.unpack_from(self.content, at)
                place, target = base + offset, self._target(symbol, known) + addend
                if kind in (_RELATIVE, _CALL):
                    struct.pack_into("<i", image, place, target - place)
                elif kind == _ABSOLUTE:
                    struct.pack_into("<Q", image, place, target)
                    absolute.append(place)
                else:
                    raise NotLinked(f"relocation {kind}")
        return absolute

    def _target(self, number: int, known: dict[str, int]) -> int:
        name, _, index, value = self.symbols[number]
        if index in self.places:
            return self.places[index] + value
        if name not in known:
            raise NotLinked(f"symbol {name!r} from outside")
        return known[name]


def image(objects: Sequence[bytes]) -> bytes:
    """Put object files together.

    ``objects``: their contents; a symbol that one leaves open is another's. Raises NotLinked: one of them
    holds what an image cannot.
    """
    parts = [_Object(content) for content in objects]
    code = bytearray()
    for part in parts:
        part.place(code)
    known: dict[str, int] = {}
    for part in parts:
        for name, place in part.defined().items():
            if name in known:
                raise NotLinked(f"symbol {name!r} twice")
            known[name] = place
    absolute = [place for part in parts for place in part.connect(code, known)]
    head = json.dumps({"symbols": known, "absolute": absolute}).encode()
    return MAGIC + len(head).to_bytes(8, "little") + head + code


class Image:
    """An image in memory, which can be executed and no longer be written."""

    def __init__(self, content: bytes) -> None:
        """Copy it there. Raises OSError: the system lets this process run no new code."""
        start = len(MAGIC) + 8
        end = start + int.from_bytes(content[len(MAGIC) : start], "little")
        head: dict[str, Any] = json.loads(content[start:end])
        code = memoryview(content)[end:]
        self._symbols: dict[str, int] = head["symbols"]
        self._memory = mmap.mmap(-1, max(len(code), 1))
        self._memory[: len(code)] = code
        self._base = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        for place in head["absolute"]:
            (word,) = struct.unpack_from("<Q", self._memory, place)
            struct.pack_into("<Q", self._memory, place, word + self._base)
        if _mprotect()(self._base, len(self._memory), mmap.PROT_READ | mmap.PROT_EXEC):
            raise OSError(ctypes.get_errno(), "memory cannot be made executable")

    def address(self, symbol: str) -> int:
        """Address of a function."""
        return self._base + self._symbols[symbol]


@functools.cache
def _mprotect() -> Any:
    function = ctypes.CDLL(None, use_errno=True).mprotect
    function.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return function


OLDEST = (0, 45)  # first llvmlite whose IR has `ptr` and `splat` (LLVM 20)
OPTIMISATION = 2  # of code generation

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
    kind = processor_description() or "|".join(host())
    return "|".join((release(), sys.platform, platform.machine(), kind, str(OPTIMISATION)))


def _features() -> Collection[str]:
    return processor_flags() or {f[1:] for f in host()[1].split(",") if f.startswith("+")}


@functools.cache
def vector_width() -> int:
    """Doubles in one vector register of this processor."""
    features = _features()
    return 8 if "avx512f" in features else 4 if "avx2" in features else 2


@functools.cache
def has_fused_multiply_add() -> bool:
    """Whether this processor has a fused multiply-add: a product and a sum with one rounding."""
    return "fma" in _features() or platform.machine().lower() in ("aarch64", "arm64")


INSTRUCTIONS = {
    "avx512": ("x86-64", "+avx2,+fma,+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl"),
    "avx2": ("x86-64", "+avx2,+fma"),
}
"""Sets of instructions that code is made with for others, the fastest first, each as :func:`host` says it."""


def runs(instructions: str) -> bool:
    """Whether this process runs code of one of these sets of instructions."""
    wanted = {feature[1:] for feature in INSTRUCTIONS[instructions][1].split(",")}
    return images_possible() and wanted <= processor_flags()


def runs_machine_code() -> bool:
    """Whether this process runs the code that emit/machine_code.py writes."""
    return runs("avx2")


def _target_machine(
    level: int = OPTIMISATION, loops: bool = False, processor: tuple[str, str] | None = None
) -> Any:
    name, features = processor or host()
    if loops and platform.machine().lower() in ("x86_64", "amd64"):
        features += NO_GATHERS
    target = _binding().Target.from_default_triple()
    return target.create_target_machine(
        cpu=name, features=features, opt=level, reloc="pic", codemodel="small", jit=True
    )


def assemble(text: str, processor: tuple[str, str] | None = None) -> bytes:
    """Machine code of a module's text: an image if one can be made, else an object file.

    ``text``: of the module; ``processor``: name and features of the one that runs it, this one if not given.
    """
    if not images_possible():
        return _objects([text], processor)[0]
    made = _divided_objects(text, processor)
    try:
        return image(made)
    except NotLinked:
        return made[0] if len(made) == 1 else _objects([text], processor)[0]


_sines: dict[tuple[object, ...], bytes] = {}  # by processor and text; b"" after the first module with them


def _divided_objects(text: str, processor: tuple[str, str] | None) -> list[bytes]:
    """Object files of a module's parts.

    From the second module on that this process compiles, the sines of all joints are a part of its own, which
    is compiled once. For the first it would only be one more module.
    """
    if text.startswith(LOOPS) and len(text) > LONG_FROM:
        return _objects(called_apart(text), processor)
    mark = BASELINE if text.startswith(BASELINE) else ""
    rest, sines = sines_apart(text.removeprefix(mark))
    key = processor or host(), OPTIMISATION, sines
    if not sines or key not in _sines:
        if sines:
            _sines[key] = b""
        return _objects([mark + part for part in divided(text.removeprefix(mark), processors())], processor)
    parts = [mark + part for part in divided(rest, processors())]
    if _sines[key]:
        return [*_objects(parts, processor), _sines[key]]
    made = _objects([*parts, sines], processor)
    _sines[key] = made[-1]
    return made


def _objects(texts: list[str], processor: tuple[str, str] | None) -> list[bytes]:
    """Object files of modules, compiled side by side."""
    return elsewhere([functools.partial(_object, text, processor) for text in texts], processors())


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


def _object(text: str, processor: tuple[str, str] | None = None) -> bytes:
    """Object file of a module's text.

    llvmlite lets one thread at a time into LLVM. Code generation, nine tenths of the time, is called past
    that lock: the module, its context and the target machine are this call's own.
    """
    llvm = _binding()
    context = llvm.create_context()  # of its own: the global one would keep every module's constants
    module = llvm.parse_assembly(text, context=context)
    loops = text.startswith(LOOPS)
    soon = text.startswith((BASELINE, LOOPS + SOON))
    level = int(text.startswith(LOOPS + SOON + LONG)) if soon else OPTIMISATION
    machine = _target_machine(level, loops, processor)
    if loops and not soon:
        long, vectors = text.startswith(LOOPS + LONG), not text.startswith(LOOPS + LONG + ONCE)
        _optimise(llvm, module, machine, long, vectors)
    with contextlib.nullcontext() if loops else _unscheduled():
        return _generated(llvm, machine, module, OBJECT)


ASSEMBLY, OBJECT = 0, 1  # LLVM's numbers of what it generates


def _generated(llvm: Any, machine: Any, module: Any, what: int) -> bytes:
    """Assembly or object file of a module, past llvmlite's lock."""
    library = llvm.ffi.lib
    generate = getattr(library.LLVMPY_TargetMachineEmitToMemory, "_cfn", None)
    if generate is None:  # another llvmlite
        return machine.emit_object(module) if what == OBJECT else machine.emit_assembly(module).encode()
    with llvm.ffi.OutputString() as problem:
        buffer = generate(machine, module, what, problem)
        if not buffer:
            raise RuntimeError(str(problem))
    try:
        return ctypes.string_at(library.LLVMPY_GetBufferStart(buffer), library.LLVMPY_GetBufferSize(buffer))
    finally:
        library.LLVMPY_DisposeMemoryBuffer(buffer)


def _optimise(llvm: Any, module: Any, machine: Any, long: bool, vectors: bool) -> None:
    """LLVM's passes over a module: loops leave out what does not change, and go through vectors."""
    options = llvm.create_pipeline_tuning_options(speed_level=1 if long else 3)
    options.loop_vectorization = options.slp_vectorization = vectors
    options.loop_interleaving = options.loop_unrolling = not long
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)


def cross(text: str, triple: str, cpu: str = "") -> tuple[str, bytes]:
    """Assembly and object code of a module for another processor: to be looked at, not to be run.

    ``text``: of the module; ``triple``: of the target, for example "aarch64-linux-gnu"; ``cpu``: the
    processor's name in LLVM's words; its baseline if empty. Raises CompilerMissing: this llvmlite was built
    without that target.
    """

    def made() -> tuple[str, bytes]:
        machine, module = _for(text, triple, cpu)
        return machine.emit_assembly(module), machine.emit_object(module)

    return elsewhere([made])[0]


def cross_assembly(text: str, triple: str, cpu: str = "") -> str:
    """Assembly alone of a module for another processor: not all of them have object code of LLVM's.

    Takes and raises what :func:`cross` does.
    """
    machine, module = _for(text, triple, cpu)
    return _generated(_binding(), machine, module, ASSEMBLY).decode()


def _for(text: str, triple: str, cpu: str) -> tuple[Any, Any]:
    """What generates code for another processor, and the module."""
    llvm = _binding()
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    try:
        target = llvm.Target.from_triple(triple)
    except RuntimeError as error:
        raise CompilerMissing(f"llvmlite has no code for {triple}: {error}") from error
    machine = target.create_target_machine(cpu=cpu, opt=OPTIMISATION, reloc="pic", codemodel="small")
    context = llvm.create_context()
    module = llvm.parse_assembly(text, context=context)
    module.triple, module.data_layout = triple, str(machine.target_data)
    if text.startswith(LOOPS):
        _optimise(llvm, module, machine, text.startswith(LOOPS + LONG), False)
    return machine, module


@functools.cache
def _loading_context() -> Any:
    """Context of the empty modules that loaders need: it must outlive them, whatever is collected first."""
    return _binding().create_context()


class Loaded:
    """Machine code in memory; keep it alive as long as its addresses are in use.

    ``size``: of it [bytes]; ``address``: where a function is, by its name.
    """

    def __init__(self, code: bytes) -> None:
        """Load what :func:`assemble` made.

        Raises CompilerMissing: the system lets this process run no new code.
        """
        self.size = len(code)
        if code.startswith(MAGIC):
            try:
                self.address: Callable[[str], int] = Image(code).address
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


# -- Code on disk ----------------------------------------------------------------------------------------


def name_of(text: str) -> str:
    """The name under which the code of a module is stored on disk."""
    return disk_cache.digest(identity(), text)


def code_of(text: str, about: dict[str, Any], making: Any = None) -> Loaded:
    """Code of a module, kept on disk under its text.

    ``text``: the module; ``about``: what the disk says of it; ``making``: a context in which it is compiled,
    if it is not there.
    """
    place = name_of(text)
    found = disk_cache.load(place)
    if found is not None:
        return Loaded(found[1])
    with making or contextlib.nullcontext():
        content = assemble(text)
    disk_cache.store(place, about, content)
    return Loaded(content)


# -- One module as several -------------------------------------------------------------------------------
#
# One module of IR as several of about the same size, so that processors can compile them side by side.
#
# The straight lines that other functions only call, which are nearly all of the code, move to other
# modules under hidden names; some call others. What they need of the rest, sines and intrinsics, each module
# has for itself.


LEAST = 200_000
"""Characters from which on a second module pays: starting a thread is quick, but every module has its own
tables and sines."""

MOST = 1_500_000
"""Characters of a module, about: a third of a second of compilation, which Ctrl-C does not cut short.

In modules of 500,000 a text of two million takes a tenth more of the processor.
"""

BASELINE = "; baseline\n"
"""First line of a module of straight lines that a process waits for. LLVM's quick selection of instructions
generates code in a third of the time, which takes a sixth to two thirds longer; sines are as good as any."""

LOOPS = "; loops, scheduled\n"
"""First line of a module with loops, which LLVM's passes over loops gain much for; scheduling 3 to 7 %."""

NO_GATHERS = ",+prefer-no-gather,+prefer-no-scatter"
"""Features of processors for modules with loops: gathers and scatters of AMD's take longer than one load or
store after the other, so loops over indices are slower as vectors (a step with contacts of G1 by 5 %)."""

LONG = "; long\n"
"""Second line of a module with loops that is a whole program.

Without loops unrolled or interleaved it is faster by 2 to 4 %. With level 1 of LLVM's passes a step with
contacts takes a seventh less time than with level 3, and is slower by 1 to 2 %. Without vectors of loops or
of straight lines it takes a fifth less each, and is slower by 6 to 10 % each.
"""

ONCE = "; once a call\n"
"""Third line of a long module with kernels' own functions alone, which take no vectors. Of a step with
contacts they are nearly half of the code and a tenth of the time: it takes 2.8 s of the processor so, and
not 3.5, in two threads, and is as fast. Without any passes over them it takes 2.3 s, and is slower by 4 to
6 %.
"""

SOON = "; soon\n"
"""Second line of a module with loops that a process waits for. Without LLVM's passes, and with its quick
selection of instructions, it takes a twelfth of the time or less; the code is half as fast. For what loops of
a long one call, selection is not the quick one: a step with contacts takes a second more, once a machine, and
every run of it is faster (Talos falls in 0.9 s and not in 1.3)."""

LONG_FROM = 500_000  # characters of such a module

_CALLED = re.compile(r"define internal ([^@\n]*@\w+_function[1-9]\d*\([^\n]*\) #2) \{")
_OWN = re.compile(r"define (?!internal)|define internal [^@\n]*@\w+_(?:function0|once)\(")
_MOVABLE = re.compile(r"define internal void @((?:chunk|step|write)[0-9x]+)\(([^)]*)\)")
_CALLS = re.compile(r"call void @((?:chunk|step|write)[0-9x]+)\(")
_NEEDED = re.compile(r"define internal [^@]*@sincos(?:_\d+)?\(")
_SHARED = ("declare ", "attributes ")
_SINES = "define internal void @sincos_run("
_INTRINSIC = re.compile(r"@llvm[.\w]+")


def _parts(text: str) -> Iterator[str]:
    """The functions of a module, and the lines between them."""
    for piece in text.split("\n}\n"):
        start = 0
        while start < len(piece) and not piece.startswith("define ", start):
            end = piece.find("\n", start) + 1 or len(piece)
            yield piece[start:end]
            start = end
        if start < len(piece):
            yield piece[start:] + "\n}\n"


def sines_apart(text: str) -> tuple[str, str]:
    """A module without the function for the sines of all joints, and a module with that function alone.

    It is the same in all modules of a processor, and longer than a small robot's code. Where there is none:
    the text, and "".
    """
    start = text.find(_SINES)
    if start < 0 or text.startswith(LOOPS):
        return text, ""
    end = text.index("\n}\n", start) + 3
    function = text[start:end].replace("define internal", "define hidden", 1)
    called = set(_INTRINSIC.findall(function))
    declared = text[: text.index("define ")].splitlines()
    needed = [line for line in declared if called.intersection(_INTRINSIC.findall(line))]
    attributes = text.rindex("attributes #0 ")
    needed.append(text[attributes : text.index("\n", attributes)])
    heading = text[start : text.index(" {", start)]
    declaration = heading.replace("define internal", "declare hidden", 1)
    return f"{text[:start]}{declaration}\n{text[end:]}", "\n".join([*needed, function])


def called_apart(text: str) -> list[str]:
    """A module with loops as several: its kernels' own functions, each of which runs once a call, and others.

    The first is compiled in less time than the others, if it is not there soon anyway. These are about as
    long as a module that is left whole: LLVM works at one without a break, which a fork and the end of the
    program wait for.
    """
    mark = LOOPS + (LONG if text.startswith(LOOPS + LONG) else SOON)
    own, called, shared = list[str](), dict[str, str](), list[str]()
    for part in _parts(text.removeprefix(mark)):
        found = _CALLED.match(part)
        if found:
            called[f"declare hidden {found[1]}\n"] = part.replace("define internal", "define hidden", 1)
        else:
            (own if _OWN.match(part) else shared).append(part)
    if not called:
        return [text]
    memset = [part for part in own if "@memset(" in part[: part.find("\n")]]
    marks = (mark + ONCE, mark) if mark == LOOPS + LONG else (mark, mark + LONG)
    sizes = [0] * min(len(called), sum(map(len, called.values())) // LONG_FROM + 1)
    home = dict[str, int]()
    for name in sorted(called, key=lambda each: -len(called[each])):
        home[name] = sizes.index(min(sizes))
        sizes[home[name]] += len(called[name])
    parts = [[*called, *(part for part in own if part not in memset)]]
    parts += [[part if home[name] == k else name for name, part in called.items()] for k in range(len(sizes))]
    parts[1] += memset  # loops call it in all of them
    return ["".join([marks[k > 0], *shared, *part]) for k, part in enumerate(parts)]


def soon(text: str) -> str:
    """A module with loops, changed so that it compiles sooner, with the same results."""
    return LOOPS + SOON + text.removeprefix(LOOPS).removeprefix(LONG)


def divided(text: str, count: int) -> list[str]:
    """Modules that together are the given one; the first holds the drivers.

    ``text``: a module as the emitters write it. ``count``: processors that will compile. There is at most one
    module for each, or, of a long text, the same number for each, of about :data:`MOST` characters at most.
    """
    if _number(len(text), count) < 2:
        return [text]
    shared, moved, kept = [], [], []
    for part in _parts(text):
        heading = _MOVABLE.match(part)
        if heading:
            moved.append((heading, part))
        elif part.startswith(_SHARED) or _NEEDED.match(part):
            shared.append(part)
        else:
            kept.append(part)
    if len(moved) < 2:
        return [text]
    shares: list[list[str]] = [[*shared, *kept]]
    shares += ([*shared] for _ in range(_number(len(text), count) - 1))
    sizes = [sum(map(len, share)) for share in shares]
    called = [set(_CALLS.findall(part)) if "call void" in part else set[str]() for _, part in moved]
    wanted: set[str] = set().union(*called)  # a straight line may call another one, in any module
    homes, declared = dict[str, int](), dict[str, str]()
    calls: list[set[str]] = [set() for _ in shares]
    for (heading, part), names in sorted(zip(moved, called, strict=True), key=lambda each: -len(each[0][1])):
        name, parameters = heading.groups()
        k = min(range(len(shares)), key=sizes.__getitem__)
        sizes[k] += len(part)
        homes[name] = k
        declared[name] = f"declare hidden void @{name}({parameters}) #0\n"
        calls[k] |= names
        if k or name in wanted:
            part = part.replace("define internal", "define hidden", 1)
        shares[k].append(part)
    calls[0] |= {name for name, k in homes.items() if k}
    for k, (share, names) in enumerate(zip(shares, calls, strict=True)):
        share += [declared[name] for name in sorted(names) if homes[name] != k]
    return ["".join(share) for share in shares]


def _number(characters: int, count: int) -> int:
    """Modules for so many characters, and so many processors."""
    rounds = -(-characters // (count * MOST))
    return rounds * count if rounds > 1 else min(count, characters // LEAST + 1)


# -- Threads that enter LLVM -----------------------------------------------------------------------------
#
# Threads that enter LLVM, so that the main thread never does.
#
# Ctrl-C raises KeyboardInterrupt in the main thread between any two of its instructions: also after those
# that take llvmlite's lock and before those that give it back. The next compilation would wait for that lock
# for ever. The threads made here are never interrupted. The main thread only waits for them and hears Ctrl-C
# at once; they finish what they have begun and leave the rest.
#
# Waiting uses the interpreter's own locks. Those of ``threading`` and ``concurrent.futures`` are written in
# Python, and an interrupt could leave them locked in the same way.
#
# A fork waits for jobs that have begun, because the child would find LLVM's locks taken by threads that it
# does not have. So does the end of the program, which destroys what LLVM works with.


T = TypeVar("T")

WAIT_SECONDS = 0.5  # between two looks for Ctrl-C on systems where waiting is not interrupted (Windows)
_GATE = _thread.allocate_lock()  # held while a job begins: a fork holds it and so finds none that begins
_BUSY: set[int] = set()  # threads that are at work
_ending = threading.Event()  # set when the program ends


def elsewhere(jobs: Sequence[Callable[[], T]], count: int = 1) -> list[T]:
    """Results of the jobs, each done by one of at most ``count`` threads made for them.

    Where no thread can be had, and inside a job, the caller does them. When the program ends, jobs of other
    threads than the main one are not begun any more. Raises BaseException: what the first job that failed
    raised; jobs that were not begun are left out.
    """
    if _thread.get_ident() in _BUSY:
        return [job() for job in jobs]
    todo = deque(enumerate(jobs))
    done: queue.SimpleQueue[tuple[int, Any, BaseException | None]] = queue.SimpleQueue()
    awaited = _thread.get_ident() == threading.main_thread().ident

    def work() -> None:
        me = _thread.get_ident()
        while todo:
            with _GATE:
                if _ending.is_set() and not awaited:
                    return
                _BUSY.add(me)
            try:
                with contextlib.suppress(IndexError):  # another thread was faster
                    k, job = todo.popleft()
                    result, error = _done(job)
                    if error is not None:
                        todo.clear()
                    done.put((k, result, error))
            finally:
                _BUSY.discard(me)

    try:
        try:
            for _ in range(min(count, len(jobs))):
                _thread.start_new_thread(work, ())
        except RuntimeError:  # a limit is reached, or the program is ending
            work()
        results: list[Any] = [None] * len(jobs)
        for _ in jobs:
            k, results[k], error = _next(done)
            if error is not None:
                raise error
        return results
    finally:
        todo.clear()


def _done(job: Callable[[], T]) -> tuple[T | None, BaseException | None]:
    """What a job returns, and what it raises."""
    try:
        return job(), None
    except BaseException as error:
        traceback.clear_frames(error.__traceback__)  # what is LLVM's goes here, not where this is caught
        return None, error


def _next(done: queue.SimpleQueue[Any]) -> Any:
    while True:
        with contextlib.suppress(queue.Empty):
            return done.get(timeout=WAIT_SECONDS)


def _wait() -> None:
    """Wait until no other thread is at work."""
    me = {_thread.get_ident()}
    while _BUSY - me:
        with contextlib.suppress(KeyboardInterrupt):  # the jobs are short
            time.sleep(0.002)


def _before_fork() -> None:
    _GATE.acquire()
    _wait()


def _end() -> None:
    with _GATE:
        _ending.set()
    _wait()


atexit.register(_end)
at_fork(before=_before_fork, after_in_parent=_GATE.release, after_in_child=_GATE.release)
