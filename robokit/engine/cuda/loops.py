"""Kernels with loops on a card: memory of many states in tiles, and passes over all of them.

A state's numbers stay on the card from one call to the next. What others have, arrays of the host or of the
card, is copied to tiles and back (:meth:`Loops.take`, :meth:`Loops.give`).
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from robokit import disk_cache
from robokit.engine.cuda import assemble
from robokit.engine.cuda.loop_code import (
    NOT_FINITE,
    TILE,
    CardWriter,
    Known,
    Layout,
    card_text,
    copies_text,
    layout,
)
from robokit.engine.emit.ir import FLOAT32, FLOAT64, Real
from robokit.engine.loops.record import CHECK, ERRORS, INTEGER, told
from robokit.engine.reproducible import in_one_order
from robokit.engine.signature import ArrayOf

if TYPE_CHECKING:
    from robokit.engine.loops.kernel import LoopKernel

BLOCK = 128
"""Threads of a block."""

PART = 400_000
"""Characters of IR that are compiled together, about."""

HEAP = 4096
"""Numbers for arrays of zeros whose size is known only when they are made, at first; twice as many where these
are too few."""


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
        own_work: whether work arrays are in memory of the threads.
        heap: see :data:`HEAP`.

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
        registers: int = 128,
        own_work: bool = False,
        heap: int = HEAP,
    ) -> None:
        graph, names = kernel._alone, [a.name for a in kernel.arrays]
        self.layout: Layout = layout(kernel.arrays, sizes, real, where, own_work, heap)
        known = {names.index(name): x.ravel() for name, x in contents.items()}
        numbers = Known(graph, [sizes[n] for n in kernel.sizes], known)
        writer = CardWriter(numbers, kernel.name, real, self.layout, not kernel.reproducible)
        watched = [(k, math.prod(kernel.arrays[k].at(sizes))) for k in map(names.index, finite)]
        text = card_text(writer, watched, PART, registers) + copies_text(real)
        self.text = in_one_order(text) if kernel.reproducible else text


def loaded(card: Any, name: str, text: str) -> Any:
    """Code of a text on a card, kept on disk under it."""
    place = disk_cache.digest("card", assemble.identity(card.arch), text)
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
        stream: on which the memory is prepared.
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
        stream: int = 0,
        **options: Any,
    ) -> None:
        self.card, self.kernel, self.sizes, self.rows = card, kernel, sizes, rows
        self.real = {"float64": FLOAT64, "float32": FLOAT32}[dtype]
        code = Code(kernel, sizes, self.real, where, contents or {}, **options)
        self.layout = code.layout
        module = loaded(card, kernel.name, code.text)
        self._run = module.function(kernel.name)
        self._copies = {
            (to, size): module.function(f"{to}{size}") for to in ("take", "give") for size in (4, 8)
        }
        self.places = {
            a.name: (a, base, place)
            for a, base, place in zip(kernel.arrays, where, code.layout.places, strict=True)
        }
        threads = BLOCK
        blocks = max(1, min(-(-rows // threads), self._run.resident(threads) * card.multiprocessors))
        self._grid = blocks, threads
        self.tiles = -(-rows // TILE)
        slot, n = self.real.bytes * TILE, code.layout.sizes
        resident = 0 if code.layout.own_work else -(-blocks * threads // TILE)
        self.jump = self.tiles * n["given"] * slot
        bytes_ = {
            "tile": self.tiles * n["tile"] * slot,
            "given": passes * self.jump,
            "work": resident * n["work"] * slot,
            "shared": n["shared"],
        }
        self.memory = {name: card.allocate(size, stream) for name, size in bytes_.items()}
        weakref.finalize(self, _free, card, list(self.memory.values())).atexit = False
        card.fill(self.memory["tile"], bytes_["tile"], 0, stream)
        card.fill(self.memory["given"], bytes_["given"], 0, stream)
        card.write(self.memory["shared"], self._shared(shared), stream)
        card.synchronize(stream)

    def _shared(self, shared: Mapping[str, np.ndarray]) -> np.ndarray:
        """The arrays that all states have in common, as they are on the card."""
        made = np.zeros(max(16, self.layout.sizes["shared"]), np.uint8)
        for name, (a, base, place) in self.places.items():
            if base == "shared":
                x = np.ascontiguousarray(shared[name], np.int32 if a.kind == INTEGER else self.real.dtype)
                made[place.offset : place.offset + x.nbytes] = x.ravel().view(np.uint8)
        return made

    def change(self, name: str, x: np.ndarray, stream: int = 0) -> None:
        """Other numbers in an array that all states have in common; waits."""
        a, _, place = self.places[name]
        own = np.ascontiguousarray(x, np.int32 if a.kind == INTEGER else self.real.dtype)
        self.card.write(self.memory["shared"] + place.offset, own, stream)
        self.card.synchronize(stream)

    def run(self, passes: int, stream: int = 0, changing: bool = False) -> None:
        """So many passes of all states, one after the other; of one that failed no more.

        Args:
            passes: how many.
            stream: on which.
            changing: whether each pass has inputs of its own.
        """
        m = self.memory
        words = m["tile"], m["given"], self.jump * changing, m["work"], m["shared"], self.rows, passes
        self.card.launch(self._run, *self._grid, words, stream)

    # ---- what others have ------------------------------------------------------------------------------------

    def take(
        self, name: str, column: tuple[int, int, int], stream: int = 0, at: int = 0, count: int | None = None
    ) -> None:
        """Copy numbers from an array of the card to an array of the states.

        Args:
            name: of the array.
            column: (pointer, between, own): number j of state t is at pointer + (j between + t own) itemsize.
            stream: on which.
            at: the pass that it is an input of, where these change; or, else, the first of its numbers.
            count: how many; as many as it has by default.
        """
        self._copy("take", name, column, stream, at, count)

    def give(
        self, name: str, column: tuple[int, int, int], stream: int = 0, at: int = 0, count: int | None = None
    ) -> None:
        """Copy numbers of the states to an array of the card; arguments as of :meth:`take`."""
        self._copy("give", name, column, stream, at, count)

    def _copy(
        self, way: str, name: str, column: tuple[int, int, int], stream: int, at: int, count: int | None
    ) -> None:
        a, base, place = self.places[name]
        size = 4 if a.kind == INTEGER else self.real.bytes
        length = math.prod(a.at(self.sizes))
        where, offset = self.memory[base], place.offset
        if base == "given":
            where += at * self.jump
        else:
            offset, length = offset + at, length - at
        pointer, between, own = column
        of_tile = self.layout.sizes[base]
        words = where, of_tile, offset, length if count is None else count, pointer, between, own, self.rows
        blocks = max(1, min(-(-self.rows // BLOCK), 16 * self.card.multiprocessors))
        self.card.launch(self._copies[way, size], blocks, BLOCK, words, stream)

    def write(self, name: str, x: np.ndarray, stream: int = 0, at: int = 0) -> None:
        """An array of the host, (rows, ...) or one for all states, (1, ...); waits."""
        a = self.places[name][0]
        own = np.ascontiguousarray(x, np.int32 if a.kind == INTEGER else self.real.dtype)
        numbers = math.prod(a.at(self.sizes))
        own = np.ascontiguousarray(own.reshape(-1, numbers).T) if len(own) > 1 else own
        place = self.card.allocate(own.nbytes, stream)
        self.card.write(place, own, stream)
        column = (place, self.rows, 1) if len(x) > 1 else (place, 1, 0)
        self.take(name, column, stream, at)
        self.card.synchronize(stream)
        self.card.free(place, stream)

    def read(self, name: str, stream: int = 0) -> np.ndarray:
        """An array of the states, (rows, ...), on the host; waits."""
        a = self.places[name][0]
        shape = a.at(self.sizes)
        found = np.empty((math.prod(shape), self.rows), np.int32 if a.kind == INTEGER else self.real.dtype)
        place = self.card.allocate(found.nbytes, stream)
        self.give(name, (place, self.rows, 1), stream)
        self.card.read(found, place, stream)
        self.card.free(place, stream)
        return np.ascontiguousarray(found.T).reshape(self.rows, *shape)

    def notes(self, stream: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Of each state its status and the passes that it took; waits.

        A status is 0, NOT_FINITE of a state that is no longer finite, or what :meth:`failed` explains.
        """
        found = np.empty((2, self.rows), np.int32)
        place = self.card.allocate(found.nbytes, stream)
        words = self.memory["tile"], self.layout.sizes["tile"], 0, 2, place, self.rows, 1, self.rows
        blocks = max(1, min(-(-self.rows // BLOCK), 16 * self.card.multiprocessors))
        self.card.launch(self._copies["give", 4], blocks, BLOCK, words, stream)
        self.card.read(found, place, stream)
        self.card.free(place, stream)
        return found[0], found[1]

    def failed(self, status: int) -> Exception:
        """What the status of a state says."""
        graph, name = self.kernel._alone, self.kernel.name
        number, code = divmod(status, 2)
        node, line = graph.nodes[number], told("here", graph.lines[number])
        if node[0] == CHECK:
            return ERRORS[node[2]](f"{name}: {node[3]}{line}")
        if code:
            return MemoryError(f"{name}: no memory for zeros{line}")
        return ValueError(f"{name}: zeros: a size is below 0, or the array has 2^31 elements{line}")


def _free(card: Any, pointers: list[int]) -> None:
    for pointer in pointers:
        card.free(pointer)
