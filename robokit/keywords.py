"""Keyword arguments that do not exist: the TypeError says which one was meant.

Python refuses them before a function begins, so the functions have nothing to do with this. Each public
function, and each public method and constructor with optional arguments, is called through :func:`guarded`,
which looks at the error if there is one. The functions of single states (``rk.rnea`` and the like) take about
a microsecond, of which that call would be a tenth: they are left as they are.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any

from robokit.names_elsewhere import keyword_advice

UNSEEN = "<robokit.keywords, passed over like importlib._bootstrap>"
"""File of the code of the call between. ``warnings`` does not count frames of such files, so that a warning
names the line of the caller."""

MARK = "__robokit_guarded__"


def guarded(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, whose TypeErrors over unknown keyword arguments say which ones there are."""

    def call(*arguments: Any, **options: Any) -> Any:
        try:
            return function(*arguments, **options)
        except TypeError as error:
            advice = advised(function, options)
            if not advice:
                raise
            message = f"{error}{advice}"
        raise TypeError(message)

    call.__code__ = call.__code__.replace(co_filename=UNSEEN)
    found: Any = functools.update_wrapper(call, function)
    found.__dict__[MARK] = True
    return found


def advised(function: Callable[..., Any], options: Iterable[str]) -> str:
    """Advice for the first keyword that the function does not have; nothing where it has them all."""
    known = inspect.signature(function).parameters
    if any(each.kind is each.VAR_KEYWORD for each in known.values()):
        return ""
    unknown = [name for name in options if name not in known]
    return keyword_advice(unknown[0], [name for name in known if name != "self"]) if unknown else ""


def guard(thing: Any) -> Any:
    """The same for a public function, or for the constructor and the methods of a class, in their places."""
    if isinstance(thing, type):
        for owner in thing.__mro__:
            if owner.__module__.startswith("robokit."):
                _guard_methods(owner)
        return thing
    return guarded(thing) if isinstance(thing, FunctionType) and MARK not in thing.__dict__ else thing


def _guard_methods(owner: type) -> None:
    for name, method in list(vars(owner).items()):
        inner = getattr(method, "__func__", method)  # of a classmethod or staticmethod
        if not isinstance(inner, FunctionType) or (name.startswith("_") and name != "__init__"):
            continue
        optional = inner.__defaults__ or inner.__kwdefaults__ or name == "__init__"
        if optional and MARK not in inner.__dict__:
            found = guarded(inner)
            setattr(owner, name, found if inner is method else type(method)(found))
