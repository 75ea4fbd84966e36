"""Frozen dataclasses that are quick to make: loading a robot makes hundreds of them."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any, TypeVar

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
