"""Dataclasses: frozen ones that are quick to make, and the repr of those that hold arrays."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any, TypeVar

import numpy as np

from robokit.errors import shown

T = TypeVar("T")


def quickly_made(cls: type[T]) -> type[T]:
    """The class, a frozen dataclass, with an ``__init__`` that takes a third of the time.

    The one that dataclasses write calls ``object.__setattr__`` once for each field, because a frozen class
    forbids assignment. This one stores the fields in the object's ``__dict__``. It takes the same arguments;
    everything else (what is forbidden, equality, ``repr``, ``replace``) is as dataclasses make it.
    """
    known: dict[str, Any] = {"MISSING": MISSING}
    arguments, lines = ["self"], ["own = self.__dict__"]
    for field in fields(cls):  # type: ignore[arg-type]
        name = field.name
        if field.default is not MISSING:
            known[f"default_{name}"] = field.default
            arguments.append(f"{name}=default_{name}")
        elif field.default_factory is not MISSING:
            known[f"make_{name}"] = field.default_factory
            arguments.append(f"{name}=MISSING")
            lines.append(f"if {name} is MISSING: {name} = make_{name}()")
        else:
            arguments.append(name)
        lines.append(f"own[{name!r}] = {name}")
    exec(f"def __init__({', '.join(arguments)}):\n " + "\n ".join(lines), known)  # as dataclasses do
    made, written = known["__init__"], cls.__init__
    made.__qualname__, made.__module__ = written.__qualname__, cls.__module__
    made.__annotations__ = written.__annotations__
    cls.__init__ = made  # type: ignore[method-assign]
    return cls


# One line about an object that holds arrays: their shapes, and what is small as it is
# ------------------------------------------------------------------------------------

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
