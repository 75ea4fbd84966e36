"""One process does a piece of work, and others that come to it wait: a lock that the system keeps on a file.

The system lets go of a lock when its process ends in whatever way. Nothing depends on it: where there are no
locks (Windows, some network file systems), or the other process takes too long, each does the work.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

PATIENCE = 600.0
"""Longest wait for another process [s]."""

_PAUSE = 0.02  # [s]


@contextlib.contextmanager
def alone(path: Path, patience: float = PATIENCE) -> Iterator[bool]:
    """Hold the lock of a file, which is made for that and removed again.

    Args:
        path: of the file, in a folder that is there.
        patience: longest wait [s].

    Yields:
        whether another process held it meanwhile, and may have done the work.
    """
    waited, until = False, time.monotonic() + patience
    descriptor = None
    with contextlib.suppress(ImportError, OSError):
        while descriptor is None and time.monotonic() < until:
            descriptor = _taken(path)
            if descriptor is None:
                waited = True
                time.sleep(_PAUSE)
    try:
        yield waited
    finally:
        if descriptor is not None:
            with contextlib.suppress(OSError):
                path.unlink()
            os.close(descriptor)


def _taken(path: Path) -> int | None:
    """An open descriptor of the file with its lock; None if another process has it.

    Raises:
        OSError: there are no locks here.
        ImportError: as in Windows.
    """
    import fcntl

    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor
