"""Loaded by the process that watches over the workers of this machine: it ends when the command has ended.

Its standard input is a pipe that the command holds open and never writes to. However the command ends, kill
-9 included, the system closes the pipe; this process ends then, and Dask's workers end with it, since they
watch their parent in the same way.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import Any

_watching: list[threading.Thread] = []


def dask_setup(_: Any) -> None:
    """Begin to watch; Dask calls this once for each worker."""
    if not _watching:
        _watching.append(threading.Thread(target=_watch, name="command watch", daemon=True))
        _watching[0].start()


def _watch() -> None:
    while os.read(sys.stdin.fileno(), 1):
        pass
    os._exit(1)
