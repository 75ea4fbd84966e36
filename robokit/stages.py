"""What robokit is doing: a line on standard error while it takes more than a second.

Long work is done in stages ("reading meshes", "compiling", "writing the page"), each of which is a
``with stage(...)`` block. From one second on, a terminal or notebook shows the stage that is under way; the
line goes away at the end. Nothing is shown where standard error is a file or a pipe, in processes of a pool,
and with the environment variable ``ROBOKIT_PROGRESS=0``.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

PATIENCE = 1.0  # seconds of work before the line appears
PERIOD = 0.2  # seconds between updates of the line
WIDTH = 79  # characters of the line, at most: a longer one would break on a narrow terminal and stay


def is_live() -> bool:
    """Whether a line can be overwritten: in a terminal and in a notebook."""
    shell: Any = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    notebook = shell is not None and hasattr(shell, "kernel")
    return notebook or (sys.stderr is not None and sys.stderr.isatty())


class _Line:
    """The stages that are under way, the last one innermost, and the line that shows it."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.under_way: list[tuple[str, float]] = []
        self.width = 0
        self.watcher: threading.Thread | None = None
        self.busy = threading.Event()

    def begin(self, text: str, earlier: float) -> tuple[str, float]:
        entry = text, time.monotonic() - earlier
        with self.lock:
            self.under_way.append(entry)
            self.busy.set()
            if self.watcher is None or not self.watcher.is_alive():
                self.watcher = threading.Thread(target=self._watch, name="robokit stages", daemon=True)
                self.watcher.start()
        return entry

    def end(self, entry: tuple[str, float]) -> None:
        with self.lock:
            self.under_way.remove(entry)
            if not self.under_way:
                self.busy.clear()
            self.clear()

    def clear(self) -> None:
        with self.lock:
            if self.width and sys.stderr is not None:
                sys.stderr.write(f"\r{'':<{self.width}}\r")
                sys.stderr.flush()
            self.width = 0

    def _watch(self) -> None:
        while True:
            self.busy.wait()
            time.sleep(PERIOD)
            with self.lock:
                # What is done in many short stages is long all the same: the first one says since when.
                if self.under_way and time.monotonic() - self.under_way[0][1] >= PATIENCE:
                    self._show(*self.under_way[-1])

    def _show(self, text: str, since: float) -> None:
        if not text or sys.stderr is None:
            self.clear()
            return
        shown = f"robokit: {text}"[: WIDTH - 8] + f": {time.monotonic() - since:.0f} s"
        with contextlib.suppress(OSError, ValueError):  # the terminal has gone
            sys.stderr.write(f"\r{shown:<{self.width}}")
            sys.stderr.flush()
        self.width = len(shown)


_line = _Line()


def _has_parent() -> bool:
    """Whether this process was started by another one's multiprocessing, which shows what is done."""
    # Imported with its sockets where there is a terminal alone: other commands need not wait for them.
    import multiprocessing

    return multiprocessing.parent_process() is not None


@contextlib.contextmanager
def stage(text: str, earlier: float = 0.0) -> Iterator[None]:
    """Show what is done inside, such as "reading meshes", if it takes long; nothing for "", as where a bar
    shows it.

    ``earlier``: how long it has been going on already [s].
    """
    if os.environ.get("ROBOKIT_PROGRESS") == "0" or not is_live() or _has_parent():
        yield
        return
    entry = _line.begin(text, earlier)
    try:
        yield
    finally:
        _line.end(entry)


def clear() -> None:
    """Take the line away before something else is written."""
    _line.clear()


if hasattr(os, "register_at_fork"):  # a child has no watcher, and perhaps a lock that nobody lets go
    os.register_at_fork(after_in_child=_line.__init__)  # type: ignore[misc]
