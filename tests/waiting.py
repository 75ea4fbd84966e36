"""Waiting on a machine that may be busy with other work: no test passes or fails by the clock on the wall.

What must happen is waited for as long as it takes; PATIENCE ends only a run in which it never happens. What
must be quick is measured in processor time, which other programs do not lengthen.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

PATIENCE = 300.0  # seconds after which what has not happened never will: a hang, not slowness


def until(condition: Callable[[], Any], what: object = "", pause: float = 0.01) -> Any:
    """Wait until a condition holds.

    Args:
        condition: asked again and again.
        what: what is waited for, for the message.
        pause: between two questions [s].

    Returns:
        what the condition gave at last.

    Raises:
        AssertionError: it never held.
    """
    end = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < end, f"waited for {PATIENCE:g} s in vain: {what or condition}"
        time.sleep(pause)
    return found


def after(seconds: float, act: Callable[[], Any]) -> threading.Thread:
    """Act in a thread once this process has worked for that long: so much processor time [s] from now on."""
    begun = time.process_time()

    def work() -> None:
        while time.process_time() < begun + seconds:
            time.sleep(1e-3)
        act()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread
