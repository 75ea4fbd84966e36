"""Classes of values: frozen dataclasses, created quickly, and attributes computed once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import MISSING, fields
from typing import Any, Generic, TypeVar, overload
from weakref import WeakValueDictionary

import numpy as np

from robokit.errors import shown

# ==== Dataclasses: frozen ones that are quick to make, and the repr of those that hold arrays =====

T = TypeVar("T")


def quickly_made(cls: type[T]) -> type[T]:
    """The class, a frozen dataclass, with an ``__init__`` that takes a third of the time.

    The one that dataclasses write calls ``object.__setattr__`` once for each field, because a frozen class
    forbids assignment. This one stores the fields in the object's ``__dict__``. It takes the same arguments;
    everything else (what is forbidden, equality, ``repr``, ``replace``) is as dataclasses make it.
    """
    written: Any = cls.__init__
    names = [field.name for field in fields(cls)]  # type: ignore[arg-type]
    own = written.__defaults__ or ()  # a factory's is "<factory>", which signatures show
    known: dict[str, Any] = {f"default_{n}": x for n, x in zip(reversed(names), reversed(own), strict=False)}
    arguments, lines = ["self"], ["own = self.__dict__"]
    for field in fields(cls):  # type: ignore[arg-type]
        name = field.name
        arguments.append(f"{name}=default_{name}" if f"default_{name}" in known else name)
        if field.default_factory is not MISSING:
            known[f"make_{name}"] = field.default_factory
            lines.append(f"if {name} is default_{name}: {name} = make_{name}()")
        lines.append(f"own[{name!r}] = {name}")
    exec(f"def __init__({', '.join(arguments)}):\n " + "\n ".join(lines), known)  # as dataclasses do
    made = known["__init__"]
    made.__qualname__, made.__module__ = written.__qualname__, cls.__module__
    made.__annotations__ = written.__annotations__
    cls.__init__ = made  # type: ignore[method-assign]
    return cls


# ---- One line about an object that holds arrays: their shapes, and what is small as it is --------

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


# ==== caching =====================================================================================
# What is computed from an object and kept with it: attributes, what other modules add, and variants.
#
# ``functools.cached_property`` of Python 3.11 would not do: it holds one lock for all objects of a class
# while it computes. A process that is forked meanwhile, by another thread, never sees that lock released, and
# hangs at its first use of the attribute. Nothing here takes a lock. Two threads that come first at the same
# time both compute, and both get what was stored first.


class cached_attribute(Generic[T]):  # noqa: N801  written as a decorator, as property is
    """A method as an attribute, computed at its first use; kept in the object's ``__dict__`` by its name."""

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute, self._name = compute, compute.__name__
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> cached_attribute[T]: ...

    @overload
    def __get__(self, instance: object, owner: type) -> T: ...

    def __get__(self, instance: object | None, owner: type) -> Any:
        # Not a data descriptor: from the second time on, Python finds the value in __dict__ by itself.
        if instance is None:
            return self
        return instance.__dict__.setdefault(self._name, self._compute(instance))


class Derived:
    """Values that modules compute once from an object that does not change, by key.

    A key begins with the name of what it holds, so that modules do not meet: ("joint law", 0.1).
    """

    __slots__ = ("_values",)

    def __init__(self) -> None:
        self._values: dict[Hashable, Any] = {}

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value of a key, made at the first call; nothing is kept where ``make`` raises."""
        try:
            return self._values[key]
        except KeyError:
            pass
        return self._values.setdefault(key, make())


class Recent(Generic[T]):
    """Values by key that can be made again: the last few are kept, others as long as somebody has them."""

    __slots__ = ("_alive", "_last")

    def __init__(self, most: int) -> None:
        """An empty store.

        Args:
            most: so many values are kept, those that were asked for last.
        """
        self._alive: WeakValueDictionary[Hashable, T] = WeakValueDictionary()
        self._last: deque[T] = deque(maxlen=most)

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value of a key, made where it is not there (any more)."""
        found = self._alive.get(key)
        if found is None:
            found = self._alive.setdefault(key, make())
        if not (self._last and self._last[-1] is found):
            self._last.append(found)
        return found


class Spare(Generic[T]):
    """Objects that one caller has at a time, such as memory to work in, by key; the last few are kept."""

    __slots__ = ("_kept",)

    def __init__(self, most: int) -> None:
        """An empty store.

        Args:
            most: so many are kept.
        """
        self._kept: deque[tuple[Hashable, T]] = deque(maxlen=most)

    def take(self, key: Hashable, make: Callable[[], T]) -> T:
        """One of a key, made where there is none to spare."""
        for _ in range(len(self._kept)):
            try:
                found = self._kept.popleft()  # atomic: no two threads get the same
            except IndexError:
                break
            if found[0] == key:
                return found[1]
            self._kept.append(found)
        return make()

    def give(self, key: Hashable, one: T) -> None:
        """Give it back: nobody uses it any more."""
        self._kept.append((key, one))
