"""Kernels of many arrays: the function takes one argument, whose attributes they are."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from robokit.engine.loops.kernel import LoopKernel
from robokit.engine.loops.record import Array, Recorder
from robokit.engine.signature import ArrayOf
from robokit.engine.trace.ops import INTEGER
from robokit.spatial import control_flow
from robokit.spatial.control_flow import call

# -- Kernels of which something is known when they are recorded: sizes, contents of arrays ----------------
#
# Loops over what is known unroll where that is asked for (:func:`unrolled`); numbers that are read from known
# arrays are constants, and what is multiplied by 0 vanishes, as in straight lines. What a straight line has
# written to an array it does not read again.


class KnownArray(Array):
    """An array whose content is known.

    ``content``: its numbers, or what is known of them: None where a number is not.
    """

    __slots__ = ("content",)

    def __init__(self, array: Array, content: Sequence[Any]) -> None:
        super().__init__(array.graph, array.number, array.kind, array.shape, array.writable, array.offset)
        self.content = content

    def __getitem__(self, index: Any) -> Any:
        offset, shape = self._at(index)
        found = self.content[offset] if not shape and isinstance(offset, int) else None
        return super().__getitem__(index) if found is None else found


class HeldArray(Array):
    """An array of which a straight line knows what it has written or read.

    ``zero``: which of its numbers are 0 whatever is written to them.
    """

    __slots__ = ("zero",)

    def __init__(self, array: Array, zero: frozenset[int] = frozenset()) -> None:
        super().__init__(array.graph, array.number, array.kind, array.shape, array.writable, array.offset)
        self.zero = zero

    def _held(self) -> dict[int, Any]:
        """What is known of it here, by offset: nothing where others may have written since."""
        graph = self.graph
        number = graph.array_here(self.number)
        version, found = graph.held.get(number, (-1, {}))
        if version != graph.versions[number]:
            found = {}
        graph.held[number] = graph.versions[number], found
        return found

    def __getitem__(self, index: Any) -> Any:
        offset, shape = self._at(index)
        if shape:
            return HeldArray(super().__getitem__(index), self.zero)
        if not isinstance(offset, int):
            control_flow.recorder.now.write_held()
            return super().__getitem__(index)
        if offset in self.zero:
            return 0 if self.kind == INTEGER else 0.0
        held = self._held()
        if offset not in held:
            held[offset] = super().__getitem__(index)
        return held[offset]

    def __setitem__(self, index: Any, value: Any) -> None:
        offset, _ = self._at(index)
        now = control_flow.recorder.now
        if not isinstance(offset, int):
            now.write_held()
            super().__setitem__(index, value)
        elif offset not in self.zero:
            self._held()[offset] = float(value) if self.kind != INTEGER and isinstance(value, int) else value
            now.waiting[self.graph.array_here(self.number), offset] = self, index, value
            if not now.unrolls:  # arrays that are arguments are not held: they may be the same
                now.write_held()

    def write(self, index: Any, value: Any) -> None:
        """Write a number that is held."""
        graph, held = self.graph, self._held()
        super().__setitem__(index, value)
        number = graph.array_here(self.number)
        graph.held[number] = graph.versions[number], held


class KnownRecorder(Recorder):
    """Records; where it unrolls, loops whose turns are known are as many turns, one after the other.

    What a straight line writes to an array is written where the line ends, once.
    """

    unrolls = False

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.waiting: dict[tuple[int, int], tuple[HeldArray, Any, Any]] = {}

    def write_held(self) -> None:
        """Write the entries that are held back."""
        waiting, self.waiting = self.waiting, {}
        for array, index, value in waiting.values():
            array.write(index, value)

    def _ended(self, body: Callable[..., Any]) -> Callable[..., Any]:
        """A body at whose end what waits is written."""

        def ended(*arguments: Any) -> Any:
            found = body(*arguments)
            self.write_held()
            return found

        return ended

    def cond(self, condition: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
        """As :func:`robokit.spatial.control_flow.cond`."""
        self.write_held()
        return super().cond(condition, self._ended(then), self._ended(otherwise))

    def call(self, function: Any, arguments: tuple[Any, ...]) -> Any:
        """As :func:`robokit.spatial.control_flow.call`."""
        self.write_held()
        return super().call(function, arguments)

    def for_range(self, count: Any, body: Callable[..., Any], start: tuple[Any, ...]) -> tuple[Any, ...]:
        """As :func:`robokit.spatial.control_flow.for_range`."""
        if not (self.unrolls and isinstance(count, int)):
            self.write_held()
            return super().for_range(count, self._ended(body), start)
        for k in range(count):
            start = control_flow.carried_on(body(k, *start), start)
        return start

    def while_loop(
        self, test: Callable[..., Any], body: Callable[..., Any], start: tuple[Any, ...], most: int | None
    ) -> tuple[Any, ...]:
        """As :func:`robokit.spatial.control_flow.while_loop`."""
        if not (self.unrolls and isinstance(test(*start), (bool, np.bool_))):
            self.write_held()
            return super().while_loop(test, self._ended(body), start, most)
        while test(*start):
            start = control_flow.carried_on(body(*start), start)
        return start


@contextlib.contextmanager
def _unrolling(on: bool) -> Iterator[None]:
    now = control_flow.recorder.now
    before, now.unrolls = now.unrolls, on
    try:
        yield
    finally:
        now.unrolls = before


def unrolled(x: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a namespace as it is recorded: its loops unroll if ``x.unrolls`` has it.

    ``x``: the namespace of a kernel of this kind; ``function``: of it, and of numbers and arrays.
    """

    def recorded(*arguments: Any) -> Any:
        on = function in x.unrolls
        with _unrolling(on):
            own = (HeldArray(a) if on and isinstance(a, Array) else a for a in arguments)
            found = x.instead.get(function, function)(x, *own)
            control_flow.recorder.now.write_held()
            return found

    return recorded


class KnownKernel(LoopKernel):
    """A kernel for given sizes, and given contents of arrays.

    What of a function that is known is not computed: ``instead`` has others for some of those that
    :func:`robokit.engine.loops.fields.once` calls.

    Args:
        name: of its code.
        function: of a namespace of sizes and arrays.
        arrays: what it takes.
        sizes: the values of their sizes.
        contents: of inputs, by name.
        unrolls: functions that :func:`once` calls, whose loops unroll.
        zeros: of work arrays, by name, the offsets of what is always 0.
        instead: functions in place of others.
        reproducible: see LoopKernel.
    """

    recorder: type[Recorder] = KnownRecorder

    def __init__(
        self,
        name: str,
        function: Callable[[Any], None],
        arrays: Sequence[ArrayOf],
        sizes: Mapping[str, int],
        contents: Mapping[str, np.ndarray],
        unrolls: Sequence[Callable[..., Any]],
        zeros: Mapping[str, frozenset[int]],
        instead: Mapping[Callable[..., Any], Callable[..., Any]],
        reproducible: bool = False,
    ) -> None:
        names, self.contents = [a.name for a in arrays], contents

        def of(name: str, array: Array) -> Array:
            if name in contents:
                return KnownArray(array, np.ravel(contents[name]).tolist())
            return HeldArray(array, zeros.get(name, frozenset())) if array.writable else array

        def run(*arguments: Any) -> None:
            known = {name: of(name, array) for name, array in zip(names, arguments, strict=True)}
            x = SimpleNamespace(**sizes, **known)
            x.unrolls, x.instead = set(unrolls), instead
            function(x)

        fixed = [replace(a, shape=a.at(sizes)) for a in arrays]
        super().__init__(name, run, [], fixed, reproducible)


def real(name: str, *shape: int | str, role: str = "in", is_hint: bool = False) -> ArrayOf:
    """Declare an array of real numbers."""
    return ArrayOf(name, shape, role, is_hint=is_hint)


def whole(name: str, *shape: int | str, role: str = "in") -> ArrayOf:
    """Declare an array of integers."""
    return ArrayOf(name, shape, role, "integer")


def constant(array: Array, value: int) -> Any:
    """A whole number as a constant of a recording, where a branch on it is still a branch.

    So the same sums are fused with products (emit.py) as in a kernel that knows the number only as it runs,
    and bits are the same. On a number of Python there is no branch: what one would leave may be a product.

    ``array``: one of the recording.
    """
    graph = array.graph
    return graph.wrapped(graph.node(value))


def sizes_of(arrays: Iterable[ArrayOf]) -> list[str]:
    """The names of all sizes, in the order in which they are met."""
    return list(dict.fromkeys(n for a in arrays for n in a.shape if isinstance(n, str)))


def sizes_told(arrays: Sequence[ArrayOf], arguments: Mapping[str, np.ndarray]) -> dict[str, int]:
    """Sizes by name that the shapes of given arrays tell."""
    known = (zip(a.shape, np.shape(arguments[a.name]), strict=True) for a in arrays if a.name in arguments)
    return {name: size for pairs in known for name, size in pairs if isinstance(name, str)}


def kernel_of(
    name: str,
    function: Callable[[Any], None],
    arrays: Sequence[ArrayOf],
    by_source: bool = False,
    sizes: Sequence[str] = (),
    **options: Any,
) -> LoopKernel:
    """A kernel whose function takes one namespace of sizes and arrays; it fuses all sums with products.

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

    source = function if by_source else None
    return LoopKernel(name, run, sizes, arrays, from_source=source, fuses_all=True, **options)


def once(x: Any, function: Callable[..., Any], *arguments: Any) -> Any:
    """``function(x, *arguments)``, whose code a kernel has once, wherever it is called by this.

    ``x``: the namespace of a kernel; ``function``: of it, and of numbers and arrays; ``arguments``: these.
    """
    known = vars(x).setdefault("once", {})
    if function not in known:
        plain = lambda *values: function(x, *values)  # noqa: E731
        known[function] = unrolled(x, function) if hasattr(x, "unrolls") else plain
    return call(known[function], *arguments)


def by_lane(x: Any, function: Callable[[Any], Any]) -> None:
    """``function(x)``; states in lanes run it one after the other, with branches and loops of their own.

    ``x``: the namespace of a kernel; ``function``: of it.
    """
    known = vars(x).setdefault("once", {})
    if (function, "by lane") not in known:

        def alone() -> None:
            function(x)

        alone.by_lane = True  # type: ignore[attr-defined]
        known[function, "by lane"] = alone
    call(known[function, "by lane"])
