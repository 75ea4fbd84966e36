"""Kernels of many arrays: the function takes one argument, whose attributes they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from types import SimpleNamespace
from typing import Any

from robokit.engine.loops.kernel import LoopKernel
from robokit.engine.loops.known import unrolled
from robokit.engine.signature import ArrayOf
from robokit.spatial.control_flow import call


def real(name: str, *shape: int | str, role: str = "in") -> ArrayOf:
    """An array of real numbers."""
    return ArrayOf(name, shape, role)


def whole(name: str, *shape: int | str, role: str = "in") -> ArrayOf:
    """An array of whole numbers."""
    return ArrayOf(name, shape, role, "integer")


def sizes_of(arrays: Iterable[ArrayOf]) -> list[str]:
    """The names of all sizes, in the order in which they are met."""
    return list(dict.fromkeys(n for a in arrays for n in a.shape if isinstance(n, str)))


def kernel_of(
    name: str,
    function: Callable[[Any], None],
    arrays: Sequence[ArrayOf],
    by_source: bool = False,
    sizes: Sequence[str] = (),
    **options: Any,
) -> LoopKernel:
    """A kernel whose function takes one namespace of sizes and arrays.

    Args:
        name: of the kernel.
        function: of the namespace.
        arrays: what it takes.
        by_source: whether the function reads nothing else that may change (``from_source`` of the kernel).
        sizes: that it takes besides those of its arrays.
        options: of :class:`LoopKernel`.
    """
    sizes = list(dict.fromkeys([*sizes, *sizes_of(arrays)]))
    names = [*sizes, *(a.name for a in arrays)]

    def run(*values: Any) -> None:
        function(SimpleNamespace(**dict(zip(names, values, strict=True))))

    return LoopKernel(name, run, sizes, arrays, from_source=function if by_source else None, **options)


def once(x: Any, function: Callable[..., Any], *arguments: Any) -> Any:
    """``function(x, *arguments)``, whose code a kernel has once, wherever it is called by this.

    Args:
        x: the namespace of a kernel.
        function: of it, and of numbers and arrays.
        arguments: these.
    """
    known = vars(x).setdefault("once", {})
    if function not in known:
        plain = lambda *given: function(x, *given)  # noqa: E731
        known[function] = unrolled(x, function) if hasattr(x, "unrolls") else plain
    return call(known[function], *arguments)


def by_lane(x: Any, function: Callable[[Any], Any]) -> None:
    """``function(x)``; states in lanes run it one after the other, with branches and loops of their own.

    Args:
        x: the namespace of a kernel.
        function: of it.
    """
    known = vars(x).setdefault("once", {})
    if (function, "by lane") not in known:

        def alone() -> None:
            function(x)

        alone.by_lane = True  # type: ignore[attr-defined]
        known[function, "by lane"] = alone
    call(known[function, "by lane"])
