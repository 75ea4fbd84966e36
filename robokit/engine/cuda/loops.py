"""Kernels with loops on a card: memory of many states in tiles, and passes over all of them.

A state's numbers stay on the card from one call to the next. What others have, arrays of the host or of the
card, is copied to tiles and back (:meth:`Loops.take`, :meth:`Loops.give`).
"""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from robokit import disk_cache
from robokit.dataclass_tools import Recent
from robokit.engine.cuda.loop_code import (
    NOTES,
    TILE,
    CardWriter,
    Known,
    Layout,
    layout,
)
from robokit.engine.cuda.loop_modules import card_text, copies_text
from robokit.engine.cuda.memory import Memory
from robokit.engine.emit.ir import FLOAT32, FLOAT64, Real
from robokit.engine.loops.record import CHECK, ERRORS, INTEGER, told

if TYPE_CHECKING:
    from robokit.engine.loops.kernel import LoopKernel

BLOCK = 32
"""Threads of a block: one warp, so that few states are on all multiprocessors, and none waits for others."""

REGISTERS = 255
"""Registers of a thread. Fewer would let more threads run at once, but what does not fit goes to memory,
which steps with contacts wait for already (falls of G1 on an H200: with 128, and twice the threads, .8 times
as fast).
"""

BESIDE = 8
"""Numbers of a state that are side by side, to be read together: with 32, where each line of the cache
belongs to one state, falls of G1 on an H200 were .8 times as fast as with four; eight were not worse.
"""

RESIDENT = 4
"""Blocks of a multiprocessor at most: what four warps work with is still in its caches when it is needed
again (0.80 million steps a second of falls of G1 on an H200; six warps: 0.63, eight: 0.65).
"""

PART = 400_000
"""Characters of IR that are compiled together, about."""

HEAP = 4096
"""Numbers for arrays of zeros whose size is known only when they are made."""


class Code:
    """A kernel's code for given sizes.

    Args:
        kernel: the kernel.
        sizes: what its sizes are.
        real: of the numbers.
        where: of each of its arrays, "tile", "given", "work" or "shared" (loop_code.py).
        contents: of arrays of whole numbers that are compiled in, by name.
        finite: names of arrays: a state in which one is not finite goes no further.
        registers: of a thread at most.
        heap: see :data:`HEAP`.
        stop: name of an array: a pass after which its first number is not 0 does not count, and the state
            waits.
        unfinished: name of an array: a pass after which its first number is not 0 goes on in the next.
        beside: numbers of a state that are side by side (loop_code.py).

    Attributes:
        text: for assemble.py.
        layout: of memory.
    """

    def __init__(
        self,
        kernel: LoopKernel,
        sizes: Mapping[str, int],
        real: Real,
        where: Sequence[str],
        contents: Mapping[str, np.ndarray],
        finite: Sequence[str] = (),
        registers: int = REGISTERS,
        heap: int = HEAP,
        stop: str | None = None,
        unfinished: str | None = None,
        beside: int = BESIDE,
    ) -> None:
        graph, names = kernel.unlinked, [a.name for a in kernel.arrays]
        self.layout: Layout = layout(kernel.arrays, sizes, real, where, heap, beside)
        known = {names.index(name): x.ravel() for name, x in contents.items()}
        numbers = Known(graph, [sizes[n] for n in kernel.sizes], known)
        writer = CardWriter(numbers, kernel.name, real, self.layout, not kernel.reproducible)
        watched = [(k, math.prod(kernel.arrays[k].at(sizes))) for k in map(names.index, finite)]
        looks = [None if name is None else names.index(name) for name in (stop, unfinished)]
        self.text = card_text(writer, watched, PART, registers, *looks) + copies_text(real, beside)


KEPT = 16
"""Codes of a kernel, for other sizes and contents, that a process keeps on the card."""


@dataclass(frozen=True, eq=False)
class Loaded:
    """Code on a card."""

    layout: Layout  # of the memory that it works on
    module: Any  # driver.Module


_made: weakref.WeakKeyDictionary[LoopKernel, Recent[Loaded]] = weakref.WeakKeyDictionary()
_lock = threading.Lock()


def made(
    card: Any,
    kernel: LoopKernel,
    sizes: Mapping[str, int],
    real: Real,
    where: Sequence[str],
    contents: Mapping[str, np.ndarray],
    options: Mapping[str, Any],
) -> Loaded:
    """A kernel's code on a card; the last :data:`KEPT` of each kernel are kept."""
    held = tuple((name, x.shape, x.tobytes()) for name, x in contents.items())
    key = card, real, tuple(where), tuple(sizes.items()), repr(sorted(options.items())), held

    def make() -> Loaded:
        code = Code(kernel, sizes, real, where, contents, **options)
        return Loaded(code.layout, loaded(card, kernel.name, code.text))

    with _lock:  # one after the other: each is compiled on all processors
        return _made.setdefault(kernel, Recent(KEPT)).get(key, make)


def loaded(card: Any, name: str, text: str) -> Any:
    """Code of a text on a card, kept on disk under it."""
    place = disk_cache.digest("card", card.identity, text)
    found = disk_cache.load(place)
    if found is None:
        code = card.assemble(text)
        disk_cache.store(place, {"kernel": name, "part": card.arch}, code)
    return card.load(code if found is None else found[1])


class Loops:
    """A kernel with loops on a card, and the memory of its states.

    Nothing here waits but what says so, and nothing allocates after the start: calls can be part of a CUDA
    graph.

    Args:
        card: see driver.Card.
        kernel, sizes, where, contents, options: of :class:`Code`.
        dtype: of real numbers.
        shared: arrays that all states have in common, by name.
        rows: states.
        passes: of which there is place for inputs that change from one pass to the next.
        resident: blocks of a multiprocessor at most; 0 for as many as there is place for.
    """

    def __init__(
        self,
        card: Any,
        kernel: LoopKernel,
        sizes: Mapping[str, int],
        where: Sequence[str],
        dtype: str,
        shared: Mapping[str, np.ndarray],
        rows: int,
        contents: Mapping[str, np.ndarray] | None = None,
        passes: int = 1,
        resident: int = RESIDENT,
        **options: Any,
    ) -> None:
        self.card, self.kernel, self.sizes, self.rows = card, kernel, sizes, rows
        self.real = {"float64": FLOAT64, "float32": FLOAT32}[dtype]
        code = made(card, kernel, sizes, self.real, where, contents or {}, options)
        self.layout, module = code.layout, code.module
        self._run = module.function(kernel.name)
        self._copies = {
            (to, size): module.function(f"{to}{size}") for to in ("take", "give") for size in (4, 8)
        }
        self.places = {
            a.name: (a, base, place)
            for a, base, place in zip(kernel.arrays, where, self.layout.places, strict=True)
        }
        self.tiles = -(-rows // TILE)
        slot, n = self.real.bytes * TILE, self.layout.sizes
        work = n["work"] * slot * BLOCK // TILE
        place = card.memory()[0] // 2 // max(1, work)  # for so many blocks
        held = self._run.resident(BLOCK)
        each = min(resident or held, held)
        blocks = max(1, min(-(-rows // BLOCK), each * card.multiprocessors, place))
        self._grid = blocks, BLOCK
        self.jump = self.tiles * n["given"] * slot
        bytes_ = {
            "tile": self.tiles * n["tile"] * slot,
            "given": passes * self.jump,
            "work": blocks * work,
            "shared": max(16, n["shared"]),
        }
        self.memory = Memory(card, bytes_)
        with card.aside() as stream:
            card.fill(self.memory["tile"], bytes_["tile"], 0, stream)
            card.fill(self.memory["given"], bytes_["given"], 0, stream)
            card.fill(self.memory["work"], bytes_["work"], 0, stream)  # known.HeldArray.zero
            card.write(self.memory["shared"], self._shared(shared), stream)

    def _shared(self, shared: Mapping[str, np.ndarray]) -> np.ndarray:
        """The arrays that all states have in common, as they are on the card."""
        made = np.zeros(max(16, self.layout.sizes["shared"]), np.uint8)
        for name, (a, base, place) in self.places.items():
            if base == "shared":
                x = np.ascontiguousarray(shared[name], np.int32 if a.kind == INTEGER else self.real.dtype)
                made[place.offset : place.offset + x.nbytes] = x.ravel().view(np.uint8)
        return made

    def clear(self, stream: int = 0) -> None:
        """Set all numbers of the states to 0: none has failed, or taken a pass."""
        size = self.tiles * self.layout.sizes["tile"] * self.real.bytes * TILE
        with self.memory.on(stream):
            self.card.fill(self.memory["tile"], size, 0, stream)

    def run(self, passes: int, stream: int = 0, changing: bool = False, resumed: bool = False) -> None:
        """So many passes of all states, one after the other; of one that failed no more.

        Args:
            passes: how many.
            stream: on which.
            changing: whether each pass has inputs of its own.
            resumed: whether these are the passes of the last call, for states that stopped in it.
        """
        m = self.memory
        words = (
            m["tile"], m["given"], self.jump * changing, m["work"], m["shared"], self.rows, passes,
            int(resumed),
        )  # fmt: skip
        with self.memory.on(stream):
            self.card.launch(self._run, *self._grid, words, stream)

    # ---- what others have -----------------------------------------------------------------------------

    def take(
        self,
        name: str,
        column: tuple[int, int, int],
        stream: int = 0,
        at: int = 0,
        which: tuple[int, int] | None = None,
        part: tuple[int, int, int] | None = None,
    ) -> None:
        """Copy numbers from an array of the card to an array of the states.

        Args:
            name: of the array.
            column: (pointer, between, own): number j of row r is at pointer + (j between + r own) itemsize.
            stream: on which.
            at: the pass that it is an input of.
            which: the address of the states' numbers, and how many; all by default, a row each.
            part: (first, every, count) of its numbers; all by default.
        """
        self._copy("take", name, column, stream, at, which, part)

    def give(
        self,
        name: str,
        column: tuple[int, int, int],
        stream: int = 0,
        at: int = 0,
        which: tuple[int, int] | None = None,
        part: tuple[int, int, int] | None = None,
    ) -> None:
        """Copy numbers of the states to an array of the card; arguments as in :meth:`take`."""
        self._copy("give", name, column, stream, at, which, part)

    def _copy(
        self,
        way: str,
        name: str,
        column: tuple[int, int, int],
        stream: int,
        at: int,
        which: tuple[int, int] | None,
        part: tuple[int, int, int] | None,
    ) -> None:
        if name in NOTES:
            where, of_tile, first, length, size = self.memory["tile"], "tile", NOTES.index(name), 1, 4
        else:
            a, of_tile, place = self.places[name]
            size, length = 4 if a.kind == INTEGER else self.real.bytes, math.prod(a.at(self.sizes))
            where, first = self.memory[of_tile] + at * self.jump * (of_tile == "given"), place.offset
        numbers, rows = which or (0, self.rows)
        begin, every, count = part or (0, 1, length)
        words = where, self.layout.sizes[of_tile], first + begin, every, count, *column, rows, numbers
        blocks = max(1, min(-(-rows // BLOCK), 16 * self.card.multiprocessors))
        with self.memory.on(stream):
            self.card.launch(self._copies[way, size], blocks, BLOCK, words, stream)

    def write(
        self, name: str, x: np.ndarray, stream: int = 0, at: int = 0, which: np.ndarray | None = None
    ) -> None:
        """An array of the host, (rows, ...) or one for all states, (1, ...); waits.

        ``which``: numbers of the states that the rows are of; all by default.
        """
        own = np.ascontiguousarray(np.reshape(x, (len(x), -1)).T, self._dtype(name))
        rows = self.rows if which is None else len(which)
        places = [self._up(own, stream)]
        if which is not None:
            places.append(self._up(np.ascontiguousarray(which, np.int64), stream))
        column = (places[0], rows, 1) if len(x) > 1 else (places[0], 1, 0)
        self.take(name, column, stream, at, None if which is None else (places[1], rows))
        self.card.synchronize(stream)
        for place in places:
            self.card.free(place, stream)

    def _up(self, x: np.ndarray, stream: int) -> int:
        place: int = self.card.allocate(x.nbytes, stream)
        self.card.write(place, x, stream)
        return place

    def _dtype(self, name: str) -> Any:
        whole = name in NOTES or self.places[name][0].kind == INTEGER
        return np.int32 if whole else self.real.dtype

    def read(self, name: str, stream: int = 0) -> np.ndarray:
        """An array of the states, (rows, ...), or one of NOTES, (rows,), on the host; waits."""
        shape = () if name in NOTES else self.places[name][0].at(self.sizes)
        found = np.empty((math.prod(shape), self.rows), self._dtype(name))
        place = self.card.allocate(found.nbytes, stream)
        self.give(name, (place, self.rows, 1), stream)
        self.card.read(found, place, stream)
        self.card.free(place, stream)
        return np.ascontiguousarray(found.T).reshape(self.rows, *shape)

    def failed(self, status: int) -> Exception:
        """What the status of a state says."""
        graph, name = self.kernel.unlinked, self.kernel.name
        number, code = divmod(status, 2)
        node, line = graph.nodes[number], told("here", graph.lines[number])
        if node[0] == CHECK:
            return ERRORS[node[2]](f"{name}: {node[3]}{line}")
        if code:
            return MemoryError(f"{name}: no memory for zeros{line}")
        return ValueError(f"{name}: zeros: a size is below 0, or the array has 2^31 elements{line}")
