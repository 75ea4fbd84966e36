"""Whether a process uses what it compiles for some seconds only, as a command that simulates once.

Code that is optimised less is there sooner then. On disk it has a place of its own: others do not find it,
and what is there in full is taken.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

_on = 0


def is_on() -> bool:
    """Whether there is haste."""
    return _on > 0


@contextlib.contextmanager
def haste(wanted: bool = True) -> Iterator[None]:
    """Compile in haste meanwhile, if that is wanted."""
    global _on
    _on += wanted
    try:
        yield
    finally:
        _on -= wanted
