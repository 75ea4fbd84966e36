"""The time that a command spends on compiling."""

from __future__ import annotations

import logging
import time
from types import TracebackType


class Compiling(logging.Handler):
    """Watches the engine's log while a command runs.

    Attributes:
        seconds: spent on compiling so far [s].
        kernels: number of pieces of code that were compiled.
        started: when the command started, on ``time.monotonic()`` [s].
    """

    def __init__(self) -> None:
        super().__init__()
        self.seconds, self.kernels, self.started = 0.0, 0, time.monotonic()
        self._log = logging.getLogger("robokit.engine.maker")

    def __enter__(self) -> Compiling:
        self._level, self._propagate = self._log.level, self._log.propagate
        self._log.addHandler(self)
        self._log.setLevel(logging.INFO)
        self._log.propagate = False
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._log.removeHandler(self)
        self._log.setLevel(self._level)
        self._log.propagate = self._propagate

    def emit(self, record: logging.LogRecord) -> None:
        """A compilation begins, or ends with the seconds that it took."""
        seconds = getattr(record, "seconds", None)
        if seconds is not None:
            self.seconds += seconds
            self.kernels += 1
