"""Compiles C with all warnings as errors, and calls it through ctypes."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

STRICT = ("-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "-fPIC")
"""GCC rounds each operation by itself with -std=c99."""


def compiled(folder: Path, sources: Sequence[Path], *flags: str) -> ctypes.CDLL:
    """A shared library of these files."""
    library = folder / f"{sources[0].stem}.so"  # a file of the same name would not be loaded again
    command = ["cc", *STRICT, *(flags or ("-O0",)), "-shared", *map(str, sources), "-lm", "-o", str(library)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:2000]
    return ctypes.CDLL(str(library))


def run_check(folder: Path, sources: Sequence[Path], *flags: str) -> subprocess.CompletedProcess:
    """The checking program, compiled and run."""
    program = folder / "check"
    command = ["cc", *STRICT, *(flags or ("-O0",)), *map(str, sources), "-lm", "-o", str(program)]
    subprocess.run(command, check=True)
    return subprocess.run([str(program)], capture_output=True, text=True)


def caller(library: ctypes.CDLL, name: str, dtype: str = "float64") -> Callable[..., list[np.ndarray]]:
    """The function of that name: arrays to read, shapes of those to fill -> the filled ones."""
    function = getattr(library, name)
    function.restype = None

    def call(given: Sequence[np.ndarray], shapes: Sequence[tuple[int, ...]]) -> list[np.ndarray]:
        # One more number on each side shows whether the function keeps within its arrays.
        fenced = [np.full(int(np.prod(shape)) + 2, 12345.0, dtype) for shape in shapes]
        arrays = [np.ascontiguousarray(x, dtype) for x in given]
        starts = [x.ctypes.data for x in arrays]
        starts += [x.ctypes.data + x.itemsize for x in fenced]
        function(*(ctypes.c_void_p(start) for start in starts))
        assert all(x[0] == x[-1] == 12345.0 for x in fenced)
        return [x[1:-1].reshape(shape) for x, shape in zip(fenced, shapes, strict=True)]

    return call
