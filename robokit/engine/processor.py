"""What the processor can do, without asking LLVM: loading its library takes longer than loading a kernel."""

from __future__ import annotations

import functools
import os

INFORMATION = "/proc/cpuinfo"

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


def processors() -> int:
    """CPUs that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
