"""One line about an object that holds arrays: their shapes, and what is small as it is."""

from __future__ import annotations

from typing import Any

import numpy as np

from robokit.errors import shown

SHORT = 6
"""Entries of an array or list that are shown."""


def short_repr(self: Any) -> str:
    """The repr of a dataclass or a named tuple, in its class: ``__repr__ = short_repr``."""
    names = getattr(self, "_fields", None) or [k for k, f in self.__dataclass_fields__.items() if f.repr]
    parts = (f"{name} {_brief(getattr(self, name))}" for name in names)
    return f"<{type(self).__name__}: {', '.join(parts)}>"


def _brief(value: Any) -> str:
    if isinstance(value, np.ndarray) and value.size > SHORT:
        return str(value.shape)
    if isinstance(value, (tuple, list, dict)) and len(value) > SHORT:
        return f"of {len(value)}"
    if isinstance(value, np.ndarray):
        return " ".join(np.array2string(value, precision=4, separator=", ").split())
    return shown(value)
