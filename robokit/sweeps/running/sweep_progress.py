"""How far a sweep is: rows, rows a second, failures, time left."""

from __future__ import annotations

import sys
import time
import warnings

from robokit.stages import is_live

LINE_SECONDS = 30.0
"""Time between two lines where standard error is a file [s]."""


class SweepProgress:
    """A bar in a terminal or notebook; a line now and then where standard error goes to a file.

    Args:
        total: rows of the sweep.
        there: rows that are there already.
        failures: of these, those that failed.
        wanted: False for one that shows nothing.
    """

    def __init__(self, total: int, there: int, failures: int = 0, wanted: bool = True) -> None:
        self.total, self.there, self.rows, self.failures, self.wanted = total, there, there, failures, wanted
        self.started = time.monotonic()
        self._said, self._waits, self._bar = self.started, "", None
        self._lines = wanted and not is_live()
        if wanted and not self._lines:
            from tqdm import TqdmWarning

            with warnings.catch_warnings():
                warnings.simplefilter("ignore", TqdmWarning)  # a notebook without widgets gets a line of text
                from tqdm.auto import tqdm

            self._bar = tqdm(
                total=total,
                initial=there,
                unit=" rows",
                unit_scale=True,
                smoothing=0.0,
                dynamic_ncols=True,
                leave=False,
            )
            self._show()

    @property
    def seconds(self) -> float:
        """Since the beginning [s]."""
        return time.monotonic() - self.started

    def add(self, rows: int, failures: int) -> None:
        """Rows were computed and kept."""
        self.rows += rows
        self.failures += failures
        self._waits = ""
        if self._bar is not None:
            self._show()
            self._bar.update(rows)
        elif self._lines and time.monotonic() - self._said > LINE_SECONDS:
            self._line()

    def wait(self, what: str) -> None:
        """Nothing moves, because of ``what``; "" when it does again. The clock goes on."""
        changed = what != self._waits
        self._waits = what
        if self._bar is not None:
            if changed:
                self._show()
            self._bar.refresh()
        elif self._lines and what and changed:
            print(f"robokit: {what}", file=sys.stderr, flush=True)

    def say(self, text: str) -> None:
        """A line of its own."""
        if self._bar is not None:
            self._bar.write(text, file=sys.stderr)
        elif self._lines:
            print(text, file=sys.stderr, flush=True)

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.close()

    def _show(self) -> None:
        failed = f"{self.failures:,} failed"
        assert self._bar is not None
        self._bar.set_postfix_str(f"{failed}, {self._waits}" if self._waits else failed, refresh=False)

    def _line(self) -> None:
        self._said = time.monotonic()
        new, seconds = self.rows - self.there, self.seconds
        rate = new / seconds
        left = seconds * (self.total - self.rows) / max(new, 1)
        print(
            f"robokit: {self.rows:,} of {self.total:,} rows, {rate:,.{0 if rate > 10 else 2}f} rows/s, "
            f"{self.failures:,} failed, {_clock(left)} left",
            file=sys.stderr,
            flush=True,
        )


def _clock(seconds: float) -> str:
    hours, rest = divmod(round(seconds), 3600)
    return f"{hours}:{rest // 60:02d}:{rest % 60:02d}"
