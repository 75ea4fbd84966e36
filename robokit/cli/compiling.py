"""A status line while code is compiled, and the time that it took."""

from __future__ import annotations

import logging
import sys
import threading
import time
from types import TracebackType

PATIENCE = 0.3
"""Seconds before the status line appears."""

PERIOD = 0.2
"""Seconds between updates of the status line."""


class Compiling(logging.Handler):
    """Watches the engine's log while a command runs.

    A terminal shows what is being compiled and for how long; where standard error is no terminal, nothing is
    shown.

    Attributes:
        seconds: spent on compiling so far [s].
        kernels: number of pieces of code that were compiled.
        started: when the command started, on ``time.monotonic()`` [s].
    """

    def __init__(self) -> None:
        super().__init__()
        self.seconds, self.kernels, self.started = 0.0, 0, time.monotonic()
        self._log = logging.getLogger("robokit.engine.maker")
        self._what = ""
        self._since = 0.0
        self._width = 0
        self._ended = threading.Event()

    def __enter__(self) -> Compiling:
        self._level, self._propagate = self._log.level, self._log.propagate
        self._log.addHandler(self)
        self._log.setLevel(logging.INFO)
        self._log.propagate = False
        if sys.stderr is not None and sys.stderr.isatty():
            threading.Thread(target=self._show, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._log.removeHandler(self)
        self._log.setLevel(self._level)
        self._log.propagate = self._propagate

    def emit(self, record: logging.LogRecord) -> None:
        """A compilation begins ("compiling NAME (PART)") or ends (with the seconds that it took)."""
        seconds = getattr(record, "seconds", None)
        if seconds is None:
            self._what, self._since = record.getMessage(), time.monotonic()
            return
        self._what = ""
        self.seconds += seconds
        self.kernels += 1
        self._clear()

    def _show(self) -> None:
        while not self._ended.wait(PERIOD):
            self.acquire()  # as emit does: no line is written after it was cleared
            try:
                waited = time.monotonic() - self._since
                if self._what and waited > PATIENCE:
                    text = f"{self._what}: {waited:.0f} s"[:79]
                    self._width = max(self._width, len(text))
                    sys.stderr.write(f"\r{text:<{self._width}}")
                    sys.stderr.flush()
            finally:
                self.release()

    def _clear(self) -> None:
        if self._width:
            sys.stderr.write(f"\r{'':<{self._width}}\r")
            sys.stderr.flush()
            self._width = 0
