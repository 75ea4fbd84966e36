"""Timing side by side: interleaved repeats, minimum of each; a progress bar on terminals."""

from __future__ import annotations

import argparse
import io
import os
import platform
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TextIO

_bar: Any = None  # the progress bar that is shown


@contextmanager
def progress(total: int) -> Iterator[None]:
    """Show a bar of so many steps on stderr, where that is a terminal; what is printed goes above it."""
    global _bar
    if not sys.stderr.isatty():
        yield
        return
    from tqdm import tqdm

    with tqdm(total=total, unit="part", leave=False) as _bar:
        try:
            with redirect_stdout(_Above(sys.stdout)):
                yield
        finally:
            _bar = None


class _Above(io.TextIOBase):
    """A stream whose lines take the place of the bar, which is drawn again below them."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._begun = stream, ""

    def write(self, text: str) -> int:
        lines, newline, self._begun = (self._begun + text).rpartition("\n")
        if newline:
            _bar.clear()
            self._stream.write(lines + newline)
            self._stream.flush()
        return len(text)


@contextmanager
def step(name: str) -> Iterator[None]:
    """One step of the bar, by its name."""
    if _bar is not None:
        _bar.set_description(name)
    yield
    if _bar is not None:
        _bar.update()


ROOT = Path(__file__).resolve().parents[1]


def prepare_to_measure() -> None:
    """From now on first calls wait for optimised code, and the threads of peers' pools wait passively.

    For programs alone, as their first step: what is merely imported changes nothing.
    """
    from robokit.engine import maker

    maker.TIERED = False  # code that is there sooner is no measure of speed
    # Before a peer has threads: those that wait actively would slow down whoever is measured next.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")


def minima(
    contestants: Mapping[str, Callable[[], object]],
    seconds: float = 1.0,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """Least time of one call of each contestant [s], all measured in turns in the same stretch of time.

    Args:
        contestants: name -> function to call.
        seconds: how long to measure, all contestants together.
        clock: of the calls. ``time.thread_time`` leaves out what other processes take, and is only fair to
            calls that stay in this thread.
    """
    loops = {}
    for name, call in contestants.items():
        call()
        started = clock()
        call()
        # A block lasts about 2 ms, so that the clock's own cost does not count.
        loops[name] = max(1, int(2e-3 / max(clock() - started, 1e-9)))
    best = dict.fromkeys(contestants, float("inf"))
    end = time.perf_counter() + seconds
    rounds = 0
    while time.perf_counter() < end or rounds < 3:
        rounds += 1
        if _bar is not None:
            _bar.update(0)  # the clock goes on
        for name, call in contestants.items():
            n = loops[name]
            call()  # not counted: long calls would pay alone for what the others left in the caches
            started = clock()
            for _ in range(n):
                call()
            best[name] = min(best[name], (clock() - started) / n)
    return best


@contextmanager
def one_core(wanted: bool = True) -> Iterator[None]:
    """Keep this process on its last processor meanwhile, where the system lets it."""
    if not (wanted and hasattr(os, "sched_setaffinity")):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def arguments_of(
    description: str | None,
    seconds: float,
    *,
    robots: bool = True,
    more: Callable[[Any], object] | None = None,
) -> argparse.Namespace:
    """The command line that the comparisons of robots share.

    Args:
        description: what the benchmark says of itself.
        seconds: default of ``--seconds``.
        robots: whether it takes robots and ``--base``.
        more: adds arguments to the parser.
    """
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    if robots:
        parser.add_argument("robot", nargs="*", help="as on the command line of robokit")
        parser.add_argument("--base", choices=("fixed", "floating"), default="floating")
    parser.add_argument("--seconds", type=float, default=seconds, help="measuring time of a part")
    if more is not None:
        more(parser)
    return parser.parse_args()


def chosen(arguments: argparse.Namespace, default: Sequence[tuple[str, str]]) -> Sequence[tuple[str, str]]:
    """Robots of the command line with their base, or the default ones."""
    return [(name, arguments.base) for name in arguments.robot] or default


@contextmanager
def nothing_compiled() -> Iterator[None]:
    """An empty folder for compiled code, so that a first call compiles."""
    with tempfile.TemporaryDirectory() as empty:
        before = os.environ.get("ROBOKIT_CACHE_DIR")
        os.environ["ROBOKIT_CACHE_DIR"] = empty
        try:
            yield
        finally:
            os.environ.pop("ROBOKIT_CACHE_DIR")
            if before is not None:
                os.environ["ROBOKIT_CACHE_DIR"] = before


def without_avx512() -> None:
    """From now on code is made for a processor that has AVX2 and no more."""
    from robokit.engine.backend import llvm

    llvm.host, llvm.vector_width = lambda: ("x86-64-v3", ""), lambda: 4  # type: ignore[assignment]


def unpack(archive: bytes, folder: Path | str) -> None:
    """What ``git archive`` has packed, to a folder."""
    safe: Any = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # from Python 3.11.4 on
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(folder, **safe)


@cache
def commit() -> str:
    """The commit that is measured, with a + where files were changed before it was first asked for."""
    try:
        found = subprocess.run(
            ["git", "describe", "--always", "--dirty=+"], cwd=ROOT, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return "no commit"
    return found.stdout.strip()


def machine() -> str:
    """Processor, Python and the versions of whoever takes part, in one line."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = info.read_text().splitlines()
        cpu = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), cpu)
        flags = next((line for line in lines if line.startswith("flags")), "")
        cpu += " AVX-512" if "avx512f" in flags else " AVX2" if "avx2" in flags else ""
    parts = [cpu, f"Python {platform.python_version()}"]
    for package in ("numpy", "llvmlite", "lxml", "pin", "mujoco", "drake", "yourdfpy"):
        try:
            parts.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return ", ".join(parts)
