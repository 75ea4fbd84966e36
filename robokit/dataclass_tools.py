"""Classes of values: frozen dataclasses, created quickly, and attributes computed once."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from functools import cache
from reprlib import recursive_repr
from typing import Any, Generic, TypeVar, dataclass_transform, overload
from weakref import WeakValueDictionary

import numpy as np

from robokit.errors import shown

# ==== Dataclasses: frozen ones that are quick to make, and the repr of those that hold arrays =====

T = TypeVar("T")


class _Factory:
    """The default of an argument whose value is made for each object."""

    def __repr__(self) -> str:
        return "<factory>"


_MADE = _Factory()


@overload
def frozen(cls: type[T], /) -> type[T]: ...


@overload
def frozen(*, eq: bool = True) -> Callable[[type[T]], type[T]]: ...


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T] | None = None, /, *, eq: bool = True) -> type[T] | Callable[[type[T]], type[T]]:
    """As ``dataclass(frozen=True)``, for classes and objects that are made in a quarter of the time.

    dataclasses look at a class and compile six methods for it, which took a tenth of the time of a short
    command. Here they look at it when it is first used, one method is compiled then, and the others are the
    same for all. The ``__init__`` of dataclasses calls ``object.__setattr__`` once for each field; this one
    stores the fields in the object's ``__dict__``. What is allowed, ``fields``, ``replace``, hash and repr
    are as dataclasses have them, and so is equality, also of fields that are arrays; ``InitVar`` and the
    arguments ``init`` and ``hash`` of ``field`` are not known.

    Args:
        cls: the class.
        eq: whether objects with equal fields are equal; else each is equal to itself alone.
    """
    if cls is None:
        return lambda each: _frozen(each, eq)
    return _frozen(cls, eq)


def _frozen(cls: type[T], eq: bool) -> type[T]:
    under = any(hasattr(each, "__dataclass_fields__") for each in cls.__mro__[1:])
    own = dict(vars(cls))
    methods: dict[str, Any] = {"__repr__": _repr, "__setattr__": _assign, "__delattr__": _delete}
    methods |= {"__init__": _Later(cls, "__init__", _set_init)} | (
        {"__eq__": equal, "__hash__": _hash} if eq else {}
    )
    # What changes attributes of the class: those of a frozen dataclass, defaults, the sentence about it.
    if under or not cls.__doc__ or any(isinstance(each, Field) for each in own.values()):
        _look_at(cls, under)
    else:
        methods |= {name: _Later(cls, name, _look_at) for name in TOLD}
    for name, method in methods.items():
        if own.get(name) is None:  # Python has set __hash__ to None where there is an __eq__
            setattr(cls, name, method)
    return cls


TOLD = "__dataclass_fields__", "__dataclass_params__", "__match_args__"  # what dataclasses tell of a class


class _Later:
    """An attribute of a class that is made at its first use; two threads that come at once make the same.

    ``around``: what goes around a method when it is made, one after the other (``unknown_names``).
    """

    def __init__(self, cls: type, name: str, make: Callable[..., None]) -> None:
        self._cls, self._name, self._make = cls, name, make
        self.around: tuple[Callable[[Any], Any], ...] = ()

    def __get__(self, instance: Any, owner: type) -> Any:
        self._make(self._cls, *self.around)
        made = vars(self._cls)[self._name]  # not the owner's: its own __init__ may be what asks for this one
        return made.__get__(instance, owner) if callable(made) else made


def _look_at(cls: type, under: bool = False) -> None:
    """Have dataclasses look at a class; one under a frozen one must be frozen, too."""
    if isinstance(vars(cls).get("__match_args__"), _Later):
        with suppress(AttributeError):  # another thread was first
            del cls.__match_args__  # type: ignore[attr-defined]
    dataclass(init=False, repr=False, eq=False, frozen=under)(cls)
    cls.__dataclass_params__.frozen = True  # type: ignore[attr-defined]  # for classes of dataclasses under it


def _set_init(cls: type, *around: Callable[[Any], Any]) -> None:
    made = _init_of(cls)
    for each in around:
        made = each(made)
    cls.__init__ = made  # type: ignore[misc]


def _init_of(cls: type) -> Callable[..., None]:
    known: dict[str, Any] = {"MADE": _MADE}
    arguments, keywords, lines = ["self"], list[str](), list[str]()
    for each in fields(cls):
        name, argument = each.name, each.name
        if each.default is not MISSING:
            known[f"default_{name}"] = each.default
            argument = f"{name}=default_{name}"
        elif each.default_factory is not MISSING:
            known[f"make_{name}"] = each.default_factory
            argument = f"{name}=MADE"
            lines.append(f"if {name} is MADE: {name} = make_{name}()")
        (keywords if each.kw_only else arguments).append(argument)
    lines.append(f"self.__dict__.update({', '.join(f'{each.name}={each.name}' for each in fields(cls))})")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    taken = ", ".join([*arguments, *(["*", *keywords] if keywords else [])])
    # As dataclasses do: its globals are the module's, where typing.get_type_hints finds the types.
    text = (
        f"def make({', '.join(known)}):\n def __init__({taken}):\n  "
        + "\n  ".join(lines)
        + "\n return __init__"
    )
    found: dict[str, Any] = {}
    exec(text, vars(sys.modules[cls.__module__]), found)
    made: Callable[..., None] = found["make"](**known)
    made.__qualname__, made.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
    made.__annotations__ = {each.name: each.type for each in fields(cls)} | {"return": None}
    return made


@cache
def _compared(cls: type) -> list[str]:
    return [each.name for each in fields(cls) if each.compare]


def _hash(self: Any) -> int:
    return hash(tuple([getattr(self, name) for name in _compared(self.__class__)]))


def equal(self: Any, other: Any) -> bool:
    """Whether two objects of one dataclass have equal fields, which may be arrays: ``__eq__ = equal``."""
    if other.__class__ is not self.__class__:
        return NotImplemented
    names = _compared(self.__class__)
    return all(same(getattr(self, name), getattr(other, name)) for name in names)


def same(a: Any, b: Any) -> bool:
    """Equality as Python's, by which an object equals itself; of arrays that of shapes and all entries."""
    if a is b:
        return True
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return type(a) is type(b) and np.array_equal(a, b)
    if isinstance(a, tuple | list) and type(a) is type(b):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and type(a) is type(b):
        return a.keys() == b.keys() and all(same(value, b[key]) for key, value in a.items())
    return bool(a == b)


@recursive_repr()
def _repr(self: Any) -> str:
    shows = (f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr)
    return f"{self.__class__.__qualname__}({', '.join(shows)})"


def _assign(self: Any, name: str, value: Any) -> None:
    _refuse(self, "assign to", name)
    object.__setattr__(self, name, value)


def _delete(self: Any, name: str) -> None:
    _refuse(self, "delete", name)
    object.__delattr__(self, name)


def _refuse(self: Any, what: str, name: str) -> None:
    if "__dataclass_fields__" in vars(type(self)) or name in self.__dataclass_fields__:
        raise FrozenInstanceError(f"cannot {what} field {name!r}")


# ---- One line about an object that holds arrays: their shapes, and what is small as it is --------

SHORT = 6  # entries of an array or list that are shown


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
        """An empty store. ``most``: so many values are kept, those that were asked for last."""
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
        """An empty store. ``most``: so many are kept."""
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
