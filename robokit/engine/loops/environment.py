"""What a kernel with loops works with when it runs: memory in lanes, and the table of other kernels."""

from __future__ import annotations

import ctypes
import functools
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from robokit.dataclass_tools import frozen
from robokit.engine.loops.emit import ENDED, ENVIRONMENT, HEADER, TURNS
from robokit.engine.loops.record import Array, Integer, LoopGraph, Node, told, users_line
from robokit.engine.memory import address, aligned
from robokit.engine.signature import ArrayOf
from robokit.engine.trace import ops
from robokit.errors import ShapeError, WrongType
from robokit.spatial import control_flow

# -- Calls of other kernels: no Python between them, none of their code in the caller ---------------------
#
#     (LINK, entry, arrays, offsets...)      calls function number `entry` of a table on parts of arrays
#
# The table comes when the kernel runs: for each entry the address of a function and of what it works with,
# its workspace or its own :class:`Environment`. Every kernel has such a function:
#
#     void linked(ptr args, ptr data, i64 mask)
#
# args are pointers to the arrays, laid out as those of a kernel with loops; outputs are written in the lanes
# that the mask has. So the caller's code is the same whatever it calls, and is compiled once for all robots.

Size = int | Integer


class Callee(Protocol):
    """A kernel as its callers see it: with loops (kernel.py) or straight (engine/kernel.py)."""

    @property
    def name(self) -> str:
        """Name of the kernel."""

    @property
    def sizes(self) -> Sequence[str]:
        """Names of its sizes."""

    @property
    def arrays(self) -> Sequence[ArrayOf]:
        """The arrays that the kernel takes."""

    @property
    def reproducible(self) -> bool:
        """Whether its results have the same bits on all processors."""

    def on_memory(self, *arguments: Any) -> None:
        """The kernel's function on arrays of one state."""

    def opened(self, *arguments: Any) -> tuple[Callable[..., None], tuple[Any, ...]]:
        """A function that does the same, and its arguments, for a caller that records them as its own."""

    def linked(self, lanes: int, dtype: str, sizes: Mapping[str, int]) -> tuple[int, int, Any] | None:
        """Addresses of the function and of what it works with, and what must live as long as these."""


@frozen
class Link:
    """An entry of the table.

    Attributes:
        kernel: that is called.
        sizes: its own, in terms of the caller's.
    """

    kernel: Callee
    sizes: tuple[Size, ...]


@frozen
class Claim:
    """A condition on the sizes of a call: two shapes that must agree."""

    what: str  # kernel and array
    # wanted, actual: the shapes
    wanted: tuple[Size, ...]
    actual: tuple[Size, ...]

    def check(self, value: Callable[[Size], int]) -> None:
        """Raise ShapeError where it does not; arrays of a fixed size may have any shape."""
        wanted, actual = tuple(map(value, self.wanted)), tuple(map(value, self.actual))
        fixed = all(isinstance(n, int) for n in self.wanted)
        if (math.prod(wanted) != math.prod(actual)) if fixed else wanted != actual:
            raise ShapeError(f"{self.what}: expected shape {wanted}, got {actual}")


def taken(kernel: Callee) -> list[ArrayOf]:
    """The arrays that callers give."""
    return [a for a in kernel.arrays if a.role != "work"]


def matched(kernel: Callee, arguments: Sequence[Any]) -> tuple[dict[str, Any], Sequence[Any], list[Claim]]:
    """Sizes and arrays of a call, and what must hold for them.

    Raises TypeError: too many or too few arguments; ShapeError: an array of another number of dimensions;
    WrongType: a size that no array tells is not given.
    """
    wanted = taken(kernel)
    first = _first(kernel, arguments)
    sizes: dict[str, Any] = dict(zip(kernel.sizes, arguments[:first], strict=False))
    arrays, claims = arguments[first:], []
    for a, x in zip(wanted, arrays, strict=True):
        what = f"{a.name} of {kernel.name}"
        named = any(isinstance(n, str) for n in a.shape)
        if named and len(x.shape) != len(a.shape):
            raise ShapeError(f"{what}: expected an array {a.shape}, got shape {x.shape}")
        for n, size in zip(a.shape, x.shape if named else (), strict=False):
            if isinstance(n, str):
                sizes.setdefault(n, size)
        claims.append((what, a.shape, x.shape))
    for name in kernel.sizes:
        if name not in sizes:
            raise WrongType(f"{name} of {kernel.name}", None, "a whole number in front: no array tells it")
    found = [
        Claim(what, tuple(sizes[n] if isinstance(n, str) else n for n in shape), tuple(actual))
        for what, shape, actual in claims
    ]
    return sizes, arrays, found


def _first(kernel: Callee, arguments: Sequence[Any]) -> int:
    """Where the arrays among the arguments begin."""
    wanted = taken(kernel)
    first = len(arguments) - len(wanted)
    if first not in (0, len(kernel.sizes)):
        names = ", ".join(a.name for a in wanted)
        raise TypeError(f"{kernel.name} takes {len(wanted)} arrays ({names}), got {len(arguments)}")
    return first


# -- recording --------------------------------------------------------------------------------------


def record_call(graph: LoopGraph, kernel: Callee, arguments: Sequence[Any]) -> None:
    """Record that a kernel is called on parts of arrays.

    Raises TypeError, ShapeError, WrongType: these cannot be its arguments.
    """
    where = told("called", users_line())
    for a, x in zip(taken(kernel), arguments[_first(kernel, arguments) :], strict=True):
        what = f"{a.name} of {kernel.name}"
        if not isinstance(x, Array):
            raise WrongType(what, x, "an array of the calling kernel, or a part of one")
        if x.kind != a.kind:
            raise TypeError(f"{what}: expected an array of {a.kind}s, got one of {x.kind}s{where}")
        if a.role != "in" and not x.writable:
            raise TypeError(f"{what} is written, but the array given is an input{where}")
        number = graph.array_here(x.number)  # of the outermost function
        for frame in reversed(graph.frames[1:]):
            number = next(outer for outer, own in frame.captured.items() if own == number)
        if a.shared != (number in graph.common):
            words = "all states share", "every state has one of its own"
            raise TypeError(f"{what}: {words[not a.shared]}, of the array given {words[a.shared]}{where}")
    sizes, arrays, claims = matched(kernel, arguments)
    for size in sizes.values():
        Values(graph, None)(size)  # whether it can be known
    note_claims(claims)
    _apart(kernel, arrays, where)
    here = [graph.array_here(x.number) for x in arrays]
    link = Link(kernel, tuple(sizes[n] for n in kernel.sizes))
    entry = next((k for k, old in enumerate(graph.links) if _same(old, link)), len(graph.links))
    if entry == len(graph.links):
        graph.links.append(link)
    graph.effect((ops.LINK, entry, tuple(here), *(graph.node(x.offset) for x in arrays)))
    graph.written([k for a, k in zip(taken(kernel), here, strict=True) if a.role != "in"])


def record_opened(graph: LoopGraph, kernel: Callee, arguments: Sequence[Any]) -> None:
    """Record that a kernel's function is called, in place of the kernel."""
    function, own = kernel.opened(*arguments)
    control_flow.call(function, *own)


def note_claims(claims: Sequence[Claim]) -> None:
    """Check what must hold, where it is known now; the rest is checked when the calling kernel runs.

    Raises ShapeError: it does not hold; TypeError: it does not follow from the sizes of the calling kernel.
    """
    for claim in claims:
        unknown = [n for n in (*claim.wanted, *claim.actual) if not isinstance(n, int)]
        if not unknown:
            claim.check(int)
            continue
        graph = unknown[0].graph
        for size in unknown:
            Values(graph, None)(size)
        graph.claims.append(claim)


def _same(a: Link, b: Link) -> bool:
    numbers = [[n if isinstance(n, int) else ("number", n.number) for n in link.sizes] for link in (a, b)]
    return a.kernel is b.kernel and numbers[0] == numbers[1]


def _apart(kernel: Callee, arrays: Sequence[Array], where: str) -> None:
    """Refuse a call that may write to what it reads, or twice to the same."""
    for k, (a, x) in enumerate(zip(taken(kernel), arrays, strict=True)):
        for j, (b, y) in enumerate(zip(taken(kernel), arrays, strict=True)):
            if a.role == "in" or j == k or x.number != y.number:
                continue
            ends = [(part.offset, *part.shape) for part in (x, y)]
            if all(isinstance(n, int) for end in ends for n in end):
                (first, *shape), (second, *other) = ends
                if first + math.prod(shape) <= second or second + math.prod(other) <= first:
                    continue
            raise TypeError(
                f"{kernel.name} writes {a.name}, and {b.name} may be in the same memory: give it an array of "
                f"its own{where}"
            )


class Values:
    """What whole numbers are, where they follow from a kernel's sizes."""

    def __init__(self, graph: LoopGraph, sizes: Sequence[int] | None) -> None:
        """Without sizes, :meth:`__call__` only looks whether they would tell."""
        self.graph, self.sizes = graph, sizes
        self.outside = {own: outer for f in graph.functions for outer, own in f.values.items()}

    def __call__(self, x: Size) -> int:
        """The number. Raises TypeError: it does not follow from sizes."""
        return x if isinstance(x, int) else self._of(x.number)

    def _of(self, number: int) -> int:
        number = self.outside.get(number, number)
        node: Node = self.graph.nodes[number]
        opcode = node[0]
        if opcode == ops.WHOLE:
            return int(node[1])
        if opcode == ops.GIVEN and node[1] == 0:
            return self.sizes[node[2]] if self.sizes is not None else 0
        if opcode not in (ops.PLUS, ops.MINUS, ops.TIMES):
            raise TypeError(
                "the sizes of arrays that a kernel is called on must follow from those of the calling kernel"
                f"{told('computed', self.graph.lines[number])}: give it another dimension, and index it"
            )
        a, b = map(self._of, node[1:])
        return int(ops.OPERATIONS[opcode].value(a, b))


Blocks = list[tuple[int, np.ndarray]]  # address and memory of each block of a workspace


class NoMachineCode(Exception):
    """A kernel that is called has none."""


class Context:
    """What a call of machine code works with: where it says that it failed, and its workspace.

    The workspace is a list of blocks. A block begins with the address of the next one and of its own end;
    memory is taken from its start to its end, then from the next one, and given back in the opposite order.
    ``address``: of the status, the function that makes blocks, the first block, the turns of loops until the
    next look at the clock, the second of the last look, and the functions for time and for Ctrl-C.
    """

    def __init__(self) -> None:
        self._blocks: Blocks = []
        self._numbers = (ctypes.c_int64 * 7)()
        self._numbers[3], self._numbers[4] = TURNS, int(time.time())
        self._numbers[5:7] = [_clock(), ctypes.c_void_p.from_buffer(_callback()).value or 0]
        # No method and no cast, which are cycles of references: large memory must not wait for the collector.
        more = functools.partial(_add, self._blocks)
        self._more = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(more)
        self._numbers[1] = ctypes.c_void_p.from_buffer(self._more).value or 0
        self._numbers[2] = _add(self._blocks, None, FIRST_BLOCK) or 0
        self.address = ctypes.addressof(self._numbers)

    def used(self) -> int:
        """Whether the call that is over failed; the next one finds all of its memory in one block."""
        if len(self._blocks) > 1:
            size = sum(block.nbytes for _, block in self._blocks)
            self._blocks.clear()
            self._numbers[2] = _add(self._blocks, None, size) or 0
        return self._numbers[0]

    def end(self) -> None:
        """Let the call that another thread is in end soon."""
        self._numbers[0] = ENDED

    def status(self) -> int:
        """What failed; the next call begins anew."""
        found, self._numbers[0] = self._numbers[0], 0
        return found


@functools.cache
def _clock() -> int:
    """Address of the C library's function for the time in seconds."""
    library = ctypes.CDLL("ucrtbase" if os.name == "nt" else None)
    return ctypes.c_void_p.from_buffer(library["_time64" if os.name == "nt" else "time"]).value or 0


@functools.cache
def _callback() -> Any:
    """A C function that says whether Ctrl-C was pressed, to the main thread."""
    # No Python runs in it, so nothing handles the signal before the call is over.
    return ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.pythonapi.PyOS_InterruptOccurred)


def _add(blocks: Blocks, after: int | None, size: int) -> int | None:
    """A new block after one, as large as all before it together; those that came after it are gone."""
    while blocks and blocks[-1][0] != after:
        blocks.pop()
    size = max(size, sum(block.nbytes for _, block in blocks)) + HEADER
    try:
        block = aligned(size + HEADER, "uint8")  # the first element is read, even where there is none
    except MemoryError:
        return None
    place = address(block)
    block[:16].view(np.int64)[:] = 0, place + size
    if blocks:
        blocks[-1][1][:8].view(np.int64)[0] = place
    blocks.append((place, block))
    return place


FIRST_BLOCK = 1 << 14  # bytes of the workspace that a call begins with


class Environment:
    """Memory of one kernel for one thread; its address is what machine code is given.

    Args:
        arrays: what the kernel takes.
        sizes: what its sizes are.
        lanes: states at once.
        dtype: of real numbers.
        links: kernels that it calls, and their sizes.
        moves: addresses of the functions between rows and lanes.
        whole: whether its arrays come in rows, and are moved to memory in lanes; else only work arrays have
            memory here.
        fails: whether a call may fail.
        keep: what must live as long.

    Attributes:
        context: where a call says that it failed, or None.
        links: environments of the kernels that it calls, and workspaces of straight ones.
        memory: of each array; None where it comes with the call.

    Raises:
        NoMachineCode: one of these has none.
    """

    def __init__(
        self,
        arrays: Sequence[ArrayOf],
        sizes: Mapping[str, int],
        lanes: int,
        dtype: str,
        links: Sequence[tuple[Link, Mapping[str, int]]],
        moves: Sequence[int] | np.ndarray = (),
        whole: bool = False,
        fails: bool = False,
        keep: Any = None,
    ) -> None:
        lengths = [math.prod(a.at(sizes)) for a in arrays]
        # Lanes that do not run read and write the first element of an array, or of an empty part at its end.
        memory = [
            aligned((n + 1) * lanes, "int32" if a.kind == "integer" else dtype)
            if a.role == "work" or (whole and not a.shared)
            else None
            for a, n in zip(arrays, lengths, strict=True)
        ]
        table = list[int]()
        self._keep: list[Any] = [keep]
        self.memory = memory
        self.links: list[Any] = []
        self.context = Context() if fails else None
        for link, own in links:
            found = link.kernel.linked(lanes, dtype, own)
            if found is None:
                raise NoMachineCode(link.kernel.name)
            table += found[:2]
            self.links.append(found[2])
        parts = {
            "sizes": np.array(list(sizes.values()), np.int32),
            "lengths": np.array(lengths, np.int64),
            "places": np.array([0 if x is None else address(x) for x in memory], np.uint64),
            "links": np.array(table, np.uint64),
            "moves": np.array(moves, np.uint64),
        }
        self._keep.append(parts)
        words = {name: address(part) for name, part in parts.items()}
        words["context"] = self.context.address if self.context else 0
        of_words = np.array([words[name] for name in ENVIRONMENT], np.uint64)
        self._keep.append(of_words)
        # What machine code reads; looked up once, since that takes longer than a small batch does.
        self.__array_interface__ = of_words.__array_interface__

    @property
    def contexts(self) -> Iterator[Context]:
        """Its own, and those of the kernels that it calls."""
        if self.context:
            yield self.context
        for link in self.links:
            if isinstance(link, Environment):
                yield from link.contexts
