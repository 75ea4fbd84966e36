"""Python itself: no fork while another thread imports a module, and no search for cycles where none are made.

Python keeps a lock for each module while it is imported, and a forked child inherits the locks without the
threads that hold them: at its own import of the same module it would wait for ever. Packages import others
at their first use (lxml, numpy.random and the simulator are), so this meets whoever forks while a thread uses
robots for the first time.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

PATIENCE = 5.0  # longest wait for imports of other threads [s]; one may wait for the thread that forks
_PAUSE = 0.001  # [s]


def wait_for_imports(patience: float = PATIENCE) -> None:
    """Wait until no other thread imports a module, or until patience [s] is over."""
    until = time.monotonic() + patience
    while _others_import() and time.monotonic() < until:
        time.sleep(_PAUSE)


def _others_import() -> bool:
    """Whether another thread holds the lock of a module."""
    # Of CPython's import system, which offers no other way to see them.
    locks: dict[str, Any] = getattr(sys.modules.get("_frozen_importlib"), "_module_locks", {})
    me = threading.get_ident()
    for reference in list(locks.values()):
        lock = reference()
        if getattr(lock, "owner", None) not in (None, me):
            return True
    return False


def at_fork(**functions: Callable[[], Any]) -> None:
    """Register functions to be called at forks, where the system has forks, as ``os.register_at_fork`` does.

    ``before`` is called before the wait for imports, since what was registered later runs earlier.
    """
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(**functions)


at_fork(before=wait_for_imports)


# ---- Python's garbage collector, kept from work that makes many objects and no cycles ------------


@contextlib.contextmanager
def without_collector() -> Iterator[None]:
    """Pauses the collector: each of its searches would visit all objects that there are by then."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
