"""Kernels with loops on a card: memory of many states in tiles, and passes over all of them.

A state's numbers stay on the card from one call to the next. What others have, arrays of the host or of the
card, is copied to tiles and back (:meth:`Loops.take`, :meth:`Loops.give`).
"""

from __future__ import annotations

import functools
import math
import threading
import weakref
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from robokit import disk_cache
from robokit.dataclass_tools import Recent, frozen
from robokit.engine.backend.llvm import LONG, LOOPS
from robokit.engine.cuda.driver import Column, Memory
from robokit.engine.cuda.loop_code import NOT_FINITE, NOTES, TILE, CardWriter, Known, Layout, layout
from robokit.engine.cuda.straight_code import READ, THREAD
from robokit.engine.emit import ir
from robokit.engine.emit.ir import FLOAT32, FLOAT64, Real, number
from robokit.engine.loops.record import failure
from robokit.engine.trace.ops import INTEGER, INTRINSICS
from robokit.errors import ShapeError

if TYPE_CHECKING:
    from robokit.engine.loops.kernel import LoopKernel
    from robokit.engine.loops.recorded_once import FlatKernel


# -- Modules ---------------------------------------------------------------------------------------------
#
# The modules of a kernel with loops for a card: its functions, what launches call, and copies of columns.

ATTRIBUTES = "attributes #2 = { nounwind }\n!0 = !{}\n"

ANY = "declare i1 @llvm.nvvm.vote.any.sync(i32, i1)\n"
"""Whether something holds in a thread of a warp, all of which come here."""


def card_text(
    writer: CardWriter,
    finite: Sequence[tuple[int, int]],
    part: int,
    registers: int = 0,
    stop: int | None = None,
    unfinished: int | None = None,
) -> str:
    """The modules of a kernel, for assemble.py.

    Args:
        writer: of the kernel.
        finite: numbers of arrays, and their lengths: a state in which one is not finite goes no further.
        part: characters of a module, about.
        registers: of a thread at most; 0 for as many as there are.
        stop: number of an array of whole numbers: a pass after which its first is not 0 does not count, and
            the state waits.
        unfinished: number of an array of whole numbers: a pass after which its first is not 0 goes on in the
            next.
    """
    body = writer.function(writer.pattern(0, writer.layout.places))
    entry = _entry(writer, body, finite, stop, unfinished)
    groups = _groups(writer, part)
    home = {name: k for k, group in enumerate(groups) for name in group}
    outside = {n for name, called in writer.calls_of.items() for n in called if home[n] != home[name]}
    texts = [f"; registers {registers}\n"] if registers else []
    for k, group in enumerate(groups):
        called = {n for name in group for n in writer.calls_of[name] if home[n] != k}
        heads = [writer.headings[n].replace("define internal", "declare", 1) for n in sorted(called)]
        defined = [
            writer.by_name[n].replace("define internal", "define", 1) if n in outside else writer.by_name[n]
            for n in group
        ]
        defined += [entry] if home[body] == k else []
        texts.append(
            "\n".join([f"; part {k}\n{LOOPS}{LONG}", _shared(defined, writer), *heads, *defined, ATTRIBUTES])
        )
    return "".join(texts)


def _groups(writer: CardWriter, part: int) -> list[list[str]]:
    """Functions that are compiled together: callers with what they call, which may be put into them."""
    groups, sizes = list[list[str]](), list[int]()
    for name, text in reversed(writer.by_name.items()):
        k = next((k for k, size in enumerate(sizes) if size + len(text) <= part), len(groups))
        if k == len(groups):
            groups.append([])
            sizes.append(0)
        groups[k].append(name)
        sizes[k] += len(text)
    return groups


def _shared(texts: Sequence[str], writer: CardWriter) -> str:
    """What the functions of a module need of LLVM, and sines."""
    lines, real = [], writer.real
    for each in dict.fromkeys((FLOAT64, real)):
        lines += [ir.declared(f, 1, each) for f in (*INTRINSICS, "fma")]
        lines.append(f"declare i32 @llvm.fptosi.sat.i32.{each.suffix}({each.kind})\n")
    if any("@sincos_1(" in text for text in texts):
        lines.append(ir.sincos(1, real, "sincos_1", writer.contracts))
    return "".join([READ, ANY, *lines])


def _in_tile(name: str, base: str, row: str, size: int, bytes_: int, beside: int) -> str:
    """A pointer to the first element of a state, in tiles of so many elements."""
    return f"""  %{name}tile = lshr i64 {row}, 5
  %{name}state = and i64 {row}, 31
  %{name}lane = mul i64 %{name}state, {beside}
  %{name}far = mul i64 %{name}tile, {size * TILE}
  %{name}place = add i64 %{name}far, %{name}lane
  %{name}bytes = mul i64 %{name}place, {bytes_}
  %{name} = getelementptr i8, ptr addrspace(1) {base}, i64 %{name}bytes
"""


def _entry(
    writer: CardWriter, body: str, finite: Sequence[tuple[int, int]], stop: int | None, unfinished: int | None
) -> str:
    """``NAME(tiles, givens, jump, works, shared, rows, passes, resumed)``: passes of all states.

    tiles, givens and works are of all tiles; jump: the bytes from the given arrays of a pass to those of the
    next. Where ``resumed`` is 1 these are the passes of the last launch, for states that stopped in it.
    """
    sizes, bytes_, beside = writer.layout.sizes, writer.real.bytes, writer.layout.beside
    words = {
        "work": _in_tile("work", "%works", "%first", sizes["work"], bytes_, beside),
        "tile": _in_tile("tile2", "%tiles", "%next", sizes["tile"], bytes_, beside),
        "given": _in_tile("given2", "%givens", "%next", sizes["given"], bytes_, beside),
        "taken": writer.layout.at(1) * bytes_,
        "wanted": writer.layout.at(2) * bytes_,
        "bad": NOT_FINITE,
        "name": writer.name,
        "call": f"call void @{body}(ptr addrspace(1) %tile, ptr addrspace(1) %given, "
        f"ptr addrspace(1) %work, ptr addrspace(1) %shared{', i32 0' * writer.takes_memory(0)})",
        "looks": _looks(writer, stop, unfinished),
        "finite": _finite(writer, finite),
        "thread": THREAD,
    }
    return _ENTRY.format(**words)


_ENTRY = """define ptx_kernel void @{name}(ptr addrspace(1) %tiles, ptr addrspace(1) %givens, i64 %jump, \
ptr addrspace(1) %works, ptr addrspace(1) %shared, i64 %rows, i64 %passes, i64 %resumed) #2 {{
{thread}{work}  %before = sub i64 %first, %step
  %many = trunc i64 %passes to i32
  %again = icmp ne i64 %resumed, 0
  br label %pass
pass:
  %t0 = phi i64 [%before, %entry], [%t, %after]
  %tile0 = phi ptr addrspace(1) [%tiles, %entry], [%tile, %after]
  %given0 = phi ptr addrspace(1) [%givens, %entry], [%given1, %after]
  %goal0 = phi i32 [0, %entry], [%goal, %after]
  %holds0 = phi i1 [false, %entry], [%holds2, %after]
  br label %seek
seek:
  %t = phi i64 [%t0, %pass], [%next, %take]
  %tile = phi ptr addrspace(1) [%tile0, %pass], [%tile2, %take]
  %given1 = phi ptr addrspace(1) [%given0, %pass], [%given2, %take]
  %goal = phi i32 [%goal0, %pass], [%goal2, %take]
  %holds = phi i1 [%holds0, %pass], [true, %take]
  %taken = getelementptr i8, ptr addrspace(1) %tile, i64 {taken}
  %status = load i32, ptr addrspace(1) %tile, align 4
  %count = load i32, ptr addrspace(1) %taken, align 4
  %fine = icmp eq i32 %status, 0
  %more = icmp slt i32 %count, %goal
  %ready = and i1 %fine, %more
  %go = and i1 %ready, %holds
  br i1 %go, label %found, label %another
another:
  %next = add i64 %t, %step
  %some = icmp slt i64 %next, %rows
  br i1 %some, label %take, label %found
take:
{tile}{given}  %wanted = getelementptr i8, ptr addrspace(1) %tile2, i64 {wanted}
  %goal3 = load i32, ptr addrspace(1) %wanted, align 4
  %goal4 = add i32 %goal3, %many
  %goal2 = select i1 %again, i32 %goal3, i32 %goal4
  store i32 %goal2, ptr addrspace(1) %wanted, align 4
  br label %seek
found:
  %alive = phi i1 [true, %seek], [false, %another]
  %any = call i1 @llvm.nvvm.vote.any.sync(i32 -1, i1 %alive)
  br i1 %any, label %meet, label %end
meet:
  br i1 %alive, label %run, label %stop
run:
  %since = sub i32 %goal, %many
  %p0 = sub i32 %count, %since
  %late = icmp slt i32 %p0, 0
  %p1 = select i1 %late, i32 0, i32 %p0
  %p = zext i32 %p1 to i64
  %away = mul i64 %p, %jump
  %given = getelementptr i8, ptr addrspace(1) %given1, i64 %away
  {call}
{looks}  %count2 = add i32 %count, 1
  store i32 %count2, ptr addrspace(1) %taken, align 4
{finite}  br i1 %finite, label %go_on, label %bad
bad:
  store i32 {bad}, ptr addrspace(1) %tile, align 4
  br label %stop
stop:
  br label %after
go_on:
  br label %after
after:
  %holds2 = phi i1 [false, %stop], [true, %go_on]
  br label %pass
end:
  ret void
}}
"""
"""Each thread takes its next state as soon as it is done with one, whatever its neighbours do: if it waited
for them, the slowest of 32 would decide. All threads meet before each pass."""


def _looks(writer: CardWriter, stop: int | None, unfinished: int | None) -> str:
    """Where a state goes after a pass that failed, that had no place, or that is not over."""
    slot, found = f"i{8 * writer.real.bytes}", ""
    places = {"failed": (0, "stop")} if writer.fails(0) else {}
    for name, array, to in (("stopped", stop, "stop"), ("unfinished", unfinished, "go_on")):
        if array is not None:
            places[name] = writer.layout.at(writer.layout.places[array].offset), to
    for name, (place, to) in places.items():
        found += f"""  %{name}at = getelementptr {slot}, ptr addrspace(1) %tile, i64 {place}
  %{name} = load i32, ptr addrspace(1) %{name}at, align 4
  %{name}not = icmp eq i32 %{name}, 0
  br i1 %{name}not, label %{name}over, label %{to}
{name}over:
"""
    return found


def _finite(writer: CardWriter, finite: Sequence[tuple[int, int]]) -> str:
    """Whether all numbers of these arrays are finite: their sum without them is 0 then."""
    real, total, lines = writer.real, number(0.0, writer.real), list[str]()
    at, offsets = writer.layout.at, [writer.layout.places[array].offset for array, _ in finite]
    lengths = [length for _, length in finite]
    places = [at(k + e) for k, length in zip(offsets, lengths, strict=True) for e in range(length)]
    for k, place in enumerate(places):
        lines += [
            f"%f{k} = getelementptr i{8 * real.bytes}, ptr addrspace(1) %tile, i64 {place}",
            f"%g{k} = load {real.kind}, ptr addrspace(1) %f{k}, align {real.bytes}",
            f"%h{k} = fsub {real.kind} %g{k}, %g{k}",
            f"%s{k} = fadd {real.kind} {total}, %h{k}",
        ]
        total = f"%s{k}"
    return "".join(f"  {line}\n" for line in [*lines, f"%finite = fcmp ord {real.kind} {total}, {total}"])


def copies_text(real: Real, beside: int = 1) -> str:
    """``take4``, ``give4``, ``take8``, ``give8``: numbers of so many bytes from elsewhere to tiles, and back.

        take(tiles, elements of a tile, first, every, count, pointer, between, own, rows, which)

    Number j of row r, element first + j every of a tile, is elsewhere at pointer + (j between + r own)
    itemsize. It belongs to state r, or to that of which ``which``, whole numbers of 64 bits, has the number
    at r; that is 0, no address, for all.
    """
    found = f"; part copies\n{LOOPS}{LONG}{READ}"
    for size in (4, 8):
        for way, source, to in (("take", "there", "here"), ("give", "here", "there")):
            words = {"size": size, "way": way, "source": source, "to": to, "bits": 8 * size}
            found += _COPY.format(**words, beside=beside, tile=TILE, slot=real.bytes, thread=THREAD)
    return found + ATTRIBUTES


_COPY = """define ptx_kernel void @{way}{size}(ptr addrspace(1) %tiles, i64 %size, i64 %begin, i64 %every, \
i64 %count, ptr addrspace(1) %pointer, i64 %between, i64 %own, i64 %rows, ptr addrspace(1) %which) #2 {{
{thread}  br label %head
head:
  %r = phi i64 [%first, %entry], [%next, %over]
  %some = icmp slt i64 %r, %rows
  br i1 %some, label %row, label %end
row:
  %all = icmp eq ptr addrspace(1) %which, null
  br i1 %all, label %state, label %listed
listed:
  %place_r = getelementptr i64, ptr addrspace(1) %which, i64 %r
  %own_t = load i64, ptr addrspace(1) %place_r, align 8
  br label %state
state:
  %t = phi i64 [%r, %row], [%own_t, %listed]
  %number = lshr i64 %t, 5
  %lane0 = and i64 %t, 31
  %lane = mul i64 %lane0, {beside}
  %elements = mul i64 %number, %size
  %start = add i64 %elements, %begin
  %mine = mul i64 %r, %own
  br label %each
each:
  %j = phi i64 [0, %state], [%k, %one]
  %more = icmp slt i64 %j, %count
  br i1 %more, label %one, label %over
one:
  %e0 = mul i64 %j, %every
  %e = add i64 %start, %e0
  %low = urem i64 %e, {beside}
  %high = sub i64 %e, %low
  %wide = mul i64 %high, {tile}
  %near = add i64 %low, %lane
  %place = add i64 %wide, %near
  %in = mul i64 %place, {slot}
  %here = getelementptr i8, ptr addrspace(1) %tiles, i64 %in
  %far = mul i64 %j, %between
  %where = add i64 %far, %mine
  %away = mul i64 %where, {size}
  %there = getelementptr i8, ptr addrspace(1) %pointer, i64 %away
  %x = load i{bits}, ptr addrspace(1) %{source}, align {size}
  store i{bits} %x, ptr addrspace(1) %{to}, align {size}
  %k = add i64 %j, 1
  br label %each
over:
  %next = add i64 %r, %step
  br label %head
end:
  ret void
}}
"""


# -- Memory and passes -----------------------------------------------------------------------------------

BLOCK = 32  # threads: one warp, so that few states are on all multiprocessors, and none waits for others

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

PART = 400_000  # characters of IR that are compiled together, about
HEAP = 4096  # numbers for arrays of zeros whose size is known only when they are made


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


KEPT = 16  # codes of a kernel, for other sizes and contents, that a process keeps on the card


@frozen(eq=False)
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
            card.fill(self.memory["work"], bytes_["work"], 0, stream)  # fields.HeldArray.zero
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

        ``passes``: how many; ``stream``: on which; ``changing``: whether each pass has inputs of its own;
        ``resumed``: whether these are the passes of the last call, for states that stopped in it.
        """
        m = self.memory
        words = (
            m["tile"], m["given"], self.jump * changing, m["work"], m["shared"], self.rows, passes,
            int(resumed),
        )  # fmt: skip
        with self.memory.on(stream):
            self.card.launch(self._run, *self._grid, words, stream)

    # ---- what others have -----------------------------------------------------------------------------

    def _copy(
        self,
        way: str,
        name: str,
        column: tuple[int, int, int],
        stream: int = 0,
        at: int = 0,
        which: tuple[int, int] | None = None,
        part: tuple[int, int, int] | None = None,
    ) -> None:
        """Copy numbers from an array of the card to an array of the states ("take"), or back ("give").

        Args:
            way: one of these.
            name: of the array.
            column: (pointer, between, own): number j of row r is at pointer + (j between + r own) itemsize.
            stream: on which.
            at: the pass that it is an input of.
            which: the address of the states' numbers, and how many; all by default, a row each.
            part: (first, every, count) of its numbers; all by default.
        """
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

    take = functools.partialmethod(_copy, "take")
    give = functools.partialmethod(_copy, "give")

    def write(self, name: str, x: np.ndarray, stream: int = 0, at: int = 0) -> None:
        """An array of the host, (rows, ...) or one for all states, (1, ...); waits."""
        own = np.ascontiguousarray(np.reshape(x, (len(x), -1)).T, self._dtype(name))
        place = self.card.allocate(own.nbytes, stream)
        self.card.write(place, own, stream)
        self.take(name, (place, self.rows, 1) if len(x) > 1 else (place, 1, 0), stream, at)
        self.card.synchronize(stream)
        self.card.free(place, stream)

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
        return failure(self.kernel.unlinked, self.kernel.name, status)


# -- Functions with loops --------------------------------------------------------------------------------
#
# A function with loops on a card, called with pointers: as driver.py calls a straight line.

SIZES = 8  # batches of so many sizes have memory of their own at a time


class LoopedOnCard:
    """A function with loops on a card, with the methods of OnCard.

    ``name``: of the kernel, for messages; ``loaded``: whether a call finds all that it needs.
    """

    loaded = True

    def __init__(self, card: Any, kernel: FlatKernel) -> None:
        """A function of arrays of numbers without sizes."""
        self.card, self.kernel, self.name = card, kernel, kernel.signature.name
        self._made: dict[int, Loops] = {}
        self._recorded: dict[tuple[int, int], Loops] = {}
        self._lock = threading.Lock()

    def ready(self, rows: int | None = None) -> None:
        """Make, or find on disk, its code, which is the same for any number of states.

        Raises DeviceError: it cannot be made; CompilerMissing: there is no llvmlite.
        """
        if not self._made:
            self._of(1, 0)

    def _of(self, rows: int, graph: int) -> Loops:
        """The kernel with memory of so many states, made at the first call of each number.

        A CUDA graph has memory of its own, since it may be replayed at any time; it stays for good, since
        nobody says when the graph is gone.
        """
        with self._lock:
            found = self._recorded.get((graph, rows)) if graph else self._made.get(rows)
            if found is None:
                where, dtype = ["tile"] * len(self.kernel.arrays), self.kernel.signature.dtype
                found = Loops(self.card, self.kernel, {}, where, dtype, {}, rows)
                if graph:
                    self._recorded[graph, rows] = found
                else:
                    self._made[rows] = found
                    if len(self._made) > SIZES:
                        del self._made[next(iter(self._made))]
            return found

    def __call__(self, arrays: Sequence[Column], rows: int, stream: int = 0, check: bool = False) -> None:
        """Queue it for all states; arguments as of OnCard.

        ``arrays``, ``rows``, ``stream``: as there; ``check``: whether to raise what the function raised
        for one of the states; waits.
        """
        if len(arrays) != len(self.kernel.arrays):
            raise ShapeError(f"{self.name} takes {len(self.kernel.arrays)} arrays, got {len(arrays)}")
        if rows <= 0:
            return
        pairs = list(zip(self.kernel.arrays, arrays, strict=True))
        loops = self._of(rows, self.card.capturing(stream))
        with loops.memory.on(stream):  # calls of other threads, and on other streams, have the same
            loops.clear(stream)
            for a, column in pairs:
                if a.role == "in":
                    loops.take(a.name, column, stream)
            loops.run(1, stream)
            for a, column in pairs:
                if a.role == "out":
                    loops.give(a.name, column, stream)
            if check:
                for status in set(loops.read("status", stream).tolist()) - {0}:
                    raise loops.failed(status)
