"""What the processor can do, without asking LLVM: loading its library takes longer than loading a kernel."""

from __future__ import annotations

import functools
import os
import platform

INFORMATION = "/proc/cpuinfo"

LAST_CACHE = "/sys/devices/system/cpu/cpu0/cache/index3/size"

_NAMING = ("vendor_id", "cpu family", "model", "model name", "stepping", "flags", "Features", "CPU ")
"""Lines about what a processor is, not about how it is doing."""


@functools.cache
def described() -> str:
    """All that the system says of the first processor's kind; "" where it says nothing."""
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


def flags() -> frozenset[str]:
    """Its features in the system's words; none where it says nothing."""
    for line in described().splitlines():
        if line.startswith(("flags", "Features")):
            return frozenset(line.partition(":")[2].split())
    return frozenset()


def name() -> str:
    """What the processor is called, such as "Intel(R) Xeon(R) Gold 6348 CPU @ 2.60GHz"; else its kind."""
    for line in described().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


@functools.cache
def last_cache() -> int:
    """Bytes of the last cache before memory."""
    try:
        with open(LAST_CACHE) as file:
            return int(file.read().strip().removesuffix("K")) * 1024
    except (OSError, ValueError):
        return 32 * 2**20


def processors() -> int:
    """CPUs that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
