"""From LLVM IR to code of a card: LLVM writes PTX, ptxas makes object code of it, nvlink puts it together.

A text is one or more modules of IR, each after a line that begins with :data:`PART`. Parts are compiled side
by side, apart from each other: in one module ptxas would put every function into its caller, which takes
minutes for a long kernel. What a part calls of another is `declare`d in it and `define`d without `internal`.
The first line of the text may say how many registers a thread gets at most (:data:`REGISTERS`).
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from robokit.engine.backend import llvm
from robokit.errors import DeviceError

TRIPLE = "nvptx64-nvidia-cuda"

PART = "; part"  # what the first line of a module begins with, in a text of several
REGISTERS = "; registers "  # a text's first line begins so, if it limits the registers of a thread
WRITTEN_FOR = "sm_75"  # the architecture whose PTX LLVM writes: ptxas makes code for any later one of it

_ROUNDED = re.compile(r"\b(add|sub|mul)\.(f32|f64)\b")


@functools.cache
def architectures() -> list[tuple[int, int]]:
    """Compute capabilities for which ptxas makes code, ascending. Raises DeviceError: there is no ptxas."""
    said = _run([tool("ptxas"), "--help"])
    return sorted({(int(x), int(y)) for x, y in re.findall(r"\bsm_(\d+)(\d)\b", said)})


def architecture(major: int, minor: int) -> str:
    """The newest architecture for which code can be made and which a card of this capability runs.

    A card runs code of the same major number, and no larger minor one. Raises DeviceError: there is none, or
    no ptxas.
    """
    known = architectures()
    fitting = [each for each in known if each[0] == major and each[1] <= minor]
    if not fitting:
        words = ", ".join(f"{x}.{y}" for x, y in known)
        raise DeviceError(
            f'device="cuda": {release()} makes no code for a card of compute capability {major}.{minor}, '
            f"only for {words}; install a newer one for a newer card, an older one for an older card"
        )
    return f"sm_{fitting[-1][0]}{fitting[-1][1]}"


def shared_memory(arch: str) -> int:
    """Shared memory that a block may have [bytes] (NVIDIA's table of compute capabilities)."""
    kilobytes = {"sm_75": 64, "sm_80": 163, "sm_87": 163, "sm_90": 227, "sm_100": 227, "sm_103": 227}
    return kilobytes.get(arch, 99) << 10


@functools.cache
def tool(name: str) -> str:
    """Path of ptxas or nvlink: of the PyPI package, else of $CUDA_HOME, else of $PATH.

    Raises DeviceError: there is none.
    """
    file = f"{name}.exe" if sys.platform == "win32" else name
    places = [
        Path(each, "nvidia", kit, "bin", file)
        for each in sys.path
        for kit in ("cu13", "cuda_nvcc", "nvjitlink")
    ]
    places += [
        Path(os.environ[each], "bin", file) for each in ("CUDA_HOME", "CUDA_PATH") if each in os.environ
    ]
    for place in places:
        if place.is_file() and os.access(place, os.X_OK):
            return str(place)
    found = shutil.which(file)
    if found is None:
        raise DeviceError(
            f'device="cuda" needs {name} of NVIDIA\'s compiler, which is not in the Python environment, '
            "$CUDA_HOME or $PATH: pip install 'robokit[cuda]'"
        )
    return found


@functools.cache
def release() -> str:
    """Version of ptxas, for example "ptxas 13.5.92". Raises DeviceError: there is no ptxas."""
    text = _run([tool("ptxas"), "--version"])
    found = re.search(r"V(\d+(?:\.\d+)+)", text)
    return f"ptxas {found[1] if found else text.strip().splitlines()[-1]}"


def version() -> tuple[int, ...]:
    """Version of ptxas, as numbers."""
    return tuple(map(int, re.findall(r"\d+", release())))[:2]


def identity(arch: str) -> str:
    """What code depends on besides its IR."""
    return "|".join((llvm.release(), release(), arch))


def assemble(text: str, arch: str) -> bytes:
    """Code of a text.

    ``text``: modules of LLVM IR, as above; ``arch``: for example "sm_90". Raises DeviceError: ptxas or nvlink
    is missing, or refuses; CompilerMissing: there is no llvmlite, or it knows no NVIDIA cards.
    """
    tools = tool("ptxas"), tool("nvlink")
    parts = modules(text)
    first = text.partition("\n")[0]
    limit = int(first.removeprefix(REGISTERS)) if first.startswith(REGISTERS) else 0
    flags = [f"-arch={arch}", "-O3", *([f"-maxrregcount={limit}"] if limit else [])]
    flags += ["-c"] * (len(parts) > 1)
    with tempfile.TemporaryDirectory(prefix="robokit", ignore_cleanup_errors=True) as folder:

        def make(k: int) -> None:
            """Write the object file of a part."""
            place = Path(folder, f"{k}.ptx")
            place.write_text(ptx(parts[k]))
            _run([tools[0], *flags, str(place), "-o", str(place.with_suffix(".o"))])

        longest_first = sorted(range(len(parts)), key=lambda k: -len(parts[k]))
        llvm.elsewhere([functools.partial(make, k) for k in longest_first], llvm.processors())
        objects = [str(Path(folder, f"{k}.o")) for k in range(len(parts))]
        code = Path(objects[0])
        if len(parts) > 1:
            code = Path(folder, "code")
            _run([tools[1], f"-arch={arch}", *objects, "-o", str(code)])
        return code.read_bytes()


def modules(text: str) -> list[str]:
    """Split a text into its modules."""
    parts = re.split(rf"(?m)^{PART}.*\n", text)
    return parts[1:] if len(parts) > 1 else parts


def ptx(text: str) -> str:
    """PTX of a module of LLVM IR, the same for all architectures.

    LLVM has fused what may be fused; ptxas is kept from fusing more, which would change the last bits. Raises
    CompilerMissing: there is no llvmlite, or it knows no NVIDIA cards.
    """
    return _ROUNDED.sub(r"\1.rn.\2", llvm.cross_assembly(text, TRIPLE, WRITTEN_FOR))


def _run(command: Sequence[str]) -> str:
    """What a tool says. Raises DeviceError: it fails."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise DeviceError(f"{Path(command[0]).name} failed: {said[0] if said else done.returncode}")
    return done.stdout + done.stderr
