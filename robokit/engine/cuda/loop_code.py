"""Kernels with loops as LLVM IR for cards: a state a thread, sizes and what is known of arrays compiled in.

Memory is in tiles of 32 states, those of a warp, k numbers of a state side by side: element e of the state in
lane t is at (e // k * 32 + t) * k + e % k, so that threads whose index is the same read neighbours, and a
thread whose index is another finds its own numbers beside each other. Arrays begin at multiples of k. All
numbers of a tile take as many bytes, whole ones too.

    tile     what each state has of its own, and hands on from one call to the next
    given    inputs that change from one pass to the next
    work     memory that each thread in flight works with
    shared   what all states have in common, as it is

What is known when code is written is not in it: sizes, whole numbers made of them, arrays whose content is
given, conditions on these and loops over nothing.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from robokit.dataclass_tools import frozen
from robokit.engine.emit.ir import Real
from robokit.engine.loops.analysis import Pattern
from robokit.engine.loops.emit import FunctionWriter, ModuleWriter
from robokit.engine.loops.record import LoopGraph, Region, calls, operands
from robokit.engine.signature import ArrayOf
from robokit.engine.trace import ops

TILE = 32  # states of a tile: the threads of a warp
SMALL = 512  # bytes of an array of zeros that each thread has for itself, where its size is known

NOTES = ("status", "taken", "goal")
"""Whole numbers at the start of a state's tile: 0 or what failed; passes that it took, and that it should."""

NOT_FINITE = -1  # the status of a state that is no longer finite

MOST_TURNS, MOST_LOADS = 4, 32
"""Of a loop whose turns are taken at once: turns, and numbers that are read before the first is used."""

FEW_KINDS = 16  # different whole numbers in an array, up to which comparisons with any of them are looked at

BASES = ("tile", "given", "work", "shared")


@frozen
class Place:
    """Where an array is."""

    base: str  # name of a pointer
    offset: int = 0  # of its first element: in elements of a tile, of shared memory in bytes
    space: int = 1  # of addresses, 1 for that of the card, 5 for that of a thread
    tiled: bool = True  # whether the elements of a tile's states are side by side

    @property
    def kind(self) -> tuple[int, bool]:
        """The properties of the place that a function with such an argument depends on."""
        return self.space, self.tiled


@frozen
class Layout:
    """Where the arrays of a kernel are."""

    places: list[Place]  # of each array
    sizes: dict[str, int]  # of tile, given and work in elements of a state, of shared memory in bytes
    heap: int  # elements of work memory for arrays of zeros whose size is known only when they are made
    beside: int = 1  # numbers of a state that are side by side, a power of 2

    def at(self, element: int) -> int:
        """Offset of an element of a tile from the beginning of its state."""
        return element // self.beside * TILE * self.beside + element % self.beside


def layout(
    arrays: Sequence[ArrayOf],
    sizes: Mapping[str, int],
    real: Real,
    where: Sequence[str],
    heap: int,
    beside: int = 1,
) -> Layout:
    """Places of arrays.

    Args:
        arrays: of the kernel.
        sizes: what its sizes are.
        real: of the numbers.
        where: of each array, one of tile, given, work and shared.
        heap: elements of work memory for arrays of zeros whose size is known only when they are made.
        beside: numbers of a state that are side by side, a power of 2.
    """
    ends, places = dict.fromkeys(BASES, 0), list[Place]()
    heap += -heap % beside
    ends["tile"], ends["work"] = len(NOTES) + -len(NOTES) % beside, heap
    for a, base in zip(arrays, where, strict=True):
        count = max(1, math.prod(a.at(sizes)))
        if base == "shared":
            size = 4 if a.kind == ops.INTEGER else real.bytes
            ends[base] += -ends[base] % 16
            places.append(Place("%shared", ends[base], 1, False))
            ends[base] += count * size
        else:
            places.append(Place(f"%{base}", ends[base]))
            ends[base] += count + -count % beside
    return Layout(places, ends, heap, beside)


@dataclass
class Known:
    """Facts about a kernel that are known when its code is written."""

    graph: LoopGraph  # its recording
    sizes: Sequence[int]  # the values of its sizes
    contents: Mapping[int, np.ndarray] = field(default_factory=dict)  # of arrays, by number
    same: dict[int, set[int]] = field(default_factory=dict)
    bound: dict[int, set[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        graph = self.graph
        for node in graph.nodes:
            if node[0] in (ops.APPLY, ops.VMAP):
                function = graph.functions[node[1]]
                for values in calls(graph, node):
                    for inside, outside in zip(function.region.parameters, values, strict=True):
                        self.same.setdefault(inside, set()).add(outside)
                for inside, outside in zip(function.arrays, node[2], strict=True):
                    self.bound.setdefault(inside, set()).add(outside)
        self.read = {node[1] for node in graph.nodes if node[0] == ops.LOAD}
        self._values: dict[int, Any] = {}
        self._choices: dict[int, frozenset[int] | None] = {}
        self._found: dict[int, frozenset[int] | None] = {}
        self._arrays: dict[int, int | None] = {}

    def array(self, number: int) -> int | None:
        """The array of the kernel that a function's array is in all calls."""
        if number not in self._arrays:
            outside = {self.array(k) for k in self.bound.get(number, ())}
            own = self.graph.functions[0].arrays
            self._arrays[number] = number if number in own else outside.pop() if len(outside) == 1 else None
        return self._arrays[number]

    @functools.cached_property
    def idle(self) -> set[int]:
        """Arrays of the kernel that nothing reads."""
        read = set(self.read)
        count = -1
        while len(read) > count:
            count = len(read)
            read |= {k for inside in list(read) for k in self.bound.get(inside, ())}
        return set(self.graph.functions[0].arrays) - read

    def value(self, number: int) -> Any:
        """The value of a whole number or truth value, or None if it is not known."""
        if number not in self._values:
            self._values[number] = None
            self._values[number] = self._of(number)
        return self._values[number]

    def _of(self, number: int) -> Any:
        node = self.graph.nodes[number]
        opcode = node[0]
        if opcode == ops.WHOLE:
            return int(node[1])
        if opcode == ops.GIVEN:
            if number in self.same:
                found = {self.value(k) for k in self.same[number]}
                return found.pop() if len(found) == 1 else None
            own = self.graph.functions[0].region.parameters
            return self.sizes[own.index(number)] if number in own else None
        if opcode == ops.LOAD and self.graph.kinds[number] == ops.INTEGER:
            array, index = self.array(node[1]), self.value(node[2])
            known = array in self.contents and index is not None
            return int(self.contents[array][index]) if known else None  # type: ignore[index]
        if opcode in COMPARISONS:
            sides, compared = [self.choices(k) for k in node[1:]], ops.OPERATIONS[opcode].value
            found = {compared(a, b) for a in sides[0] or () for b in sides[1] or ()}
            return found.pop() if len(found) == 1 else None
        return ops.folded(node, self.value)

    def choices(self, number: int) -> frozenset[int] | None:
        """What a whole number may be, if these are few: one of an array, whatever the index is."""
        if number not in self._choices:
            self._choices[number] = None
            self._choices[number] = self._of_few(number)
        return self._choices[number]

    def _of_few(self, number: int) -> frozenset[int] | None:
        value, node = self.value(number), self.graph.nodes[number]
        if value is not None:
            return frozenset([value])
        arguments: Sequence[int] = ()
        array = self.array(node[1]) if node[0] == ops.LOAD else None
        if array is not None and array in self.contents:
            if array not in self._found:
                kinds = np.unique(self.contents[array])
                self._found[array] = frozenset(kinds.tolist()) if len(kinds) <= FEW_KINDS else None
            return self._found[array]
        if node[0] == ops.GIVEN and number in self.same:
            arguments = list(self.same[number])
        elif node[0] == ops.WHOLE_SELECT:
            arguments = node[2:]
        found = [self.choices(k) for k in arguments]
        return frozenset().union(*found) if found and None not in found else None  # type: ignore[arg-type]


COMPARISONS = (ops.WHOLE_LT, ops.WHOLE_LE, ops.WHOLE_EQ)

_NOT_AT_ONCE = (
    ops.FOR, ops.WHILE, ops.COND, ops.APPLY, ops.VMAP, ops.ZEROS, ops.CHECK, ops.LINK, ops.VALUE,
)  # fmt: skip


class CardWriter(ModuleWriter):
    """Writes a kernel and the functions that it calls for a card.

    Args:
        known: the kernel and what is known of it.
        name: of its functions.
        real: of the numbers.
        places: of its arrays; what memory functions work with is added.
        fused: whether sums and products are one operation.
    """

    def __init__(self, known: Known, name: str, real: Real, places: Layout, fused: bool) -> None:
        super().__init__(known.graph, name, real, 1, fused)
        self.known, self.layout, self.heap = known, places, places.heap
        self.headings: dict[str, str] = {}
        self.by_name: dict[str, str] = {}
        self.calls_of: dict[str, set[str]] = {}

    def _written(self, name: str, pattern: Pattern) -> str:
        writer = CardFunction(self, pattern)
        text = writer.text(name)
        self.by_name[name], self.calls_of[name] = text, writer.called_names
        self.headings[name] = text[: text.index(" {\n")]
        return text

    def pattern(self, function: int, places: Sequence[Place]) -> Pattern:
        """The call pattern of a function for arrays at these places."""
        parameters = self.graph.functions[function].region.parameters
        return Pattern(function, 1, tuple(p.kind for p in places), (False,) * len(parameters))

    def takes_memory(self, function: int) -> bool:
        """Whether a function has arrays of zeros whose size is known only at run time."""
        graph = self.graph
        return any(
            (node[0] == ops.ZEROS and self.zeros_length(node) is None)
            or (node[0] in (ops.APPLY, ops.VMAP) and self.takes_memory(node[1]))
            for node in graph.operations(graph.functions[function].region)
        )

    def zeros_length(self, node: tuple) -> int | None:
        """Number of elements of an array of zeros, if it is known."""
        sizes = [self.known.value(k) for k in node[2:]]
        return None if None in sizes else max(1, math.prod(sizes))

    def fails(self, function: int) -> bool:
        """Whether a call of a function may fail."""
        return self.takes_memory(function) or self.has(function, ops.CHECK)


class CardFunction(FunctionWriter):
    """Writes one function for a card.

    A call that fails ends there only if indices are checked, too. With a way out of the middle of a branch
    the threads of a warp, once they have gone different ways, would come together at the function's end, and
    read memory one by one until then: steps with contacts take many times as long.
    """

    status = "i32", "ptr addrspace(1) %tile, align 4"

    def __init__(self, module: CardWriter, pattern: Pattern) -> None:
        super().__init__(module, pattern)
        self.ends = self.graph.checked
        self.cards, self.known = module, module.known
        self.places: dict[int, Place] = {}
        self.taken: list[int] = []
        self.called_names: set[str] = set()
        self.turn_of: dict[int, tuple[str, int]] = {}
        for k, kind in zip(self.called.arrays, pattern.own, strict=True):
            fixed = self.known.array(k)
            if fixed is not None:
                own = self.graph.functions[0].arrays
                self.places[k] = module.layout.places[own.index(fixed)]
            else:
                self.places[k] = Place(f"%a{k}", 0, *kind)
                self.taken.append(k)

    def text(self, name: str) -> str:
        """The function ``name(bases..., arrays..., values..., top)``: it returns a struct of its results."""
        parameters = [f"ptr addrspace(1) %{base}" for base in BASES]
        parameters += [f"ptr addrspace({self.places[k].space}) %a{k}" for k in self.taken]
        for k, number in enumerate(self.called.region.parameters):
            self.names[number] = f"%p{k}"
            if self.known.value(number) is None:
                parameters.append(f"{self._type_of(number)} %p{k}")
        self.memory = "", "%top"
        if self.cards.takes_memory(self.pattern.function):
            parameters.append("i32 %top")
        return self._written(name, parameters, self.cards.fails(self.pattern.function) and self.ends)

    # -- calls --------------------------------------------------------------------------------------

    def _call(self, number: int, node: tuple) -> None:
        results: list[str] = []
        for values in calls(self.graph, node):
            pattern = self.cards.pattern(node[1], [self.places[k] for k in node[2]])
            function = self.graph.functions[node[1]]
            arguments = [
                f"{self._type_of(k)} {self._value(k, False)}"
                for k, inside in zip(values, function.region.parameters, strict=True)
                if self.known.value(inside) is None
            ]
            results += self._called(node, pattern, arguments)
        self.control |= {(number, k): result for k, result in enumerate(results)}

    def _called(self, node: tuple, pattern: Pattern, arguments: list[str]) -> list[str]:
        function = self.graph.functions[node[1]]
        name = self.cards.function(pattern)
        self.called_names.add(name)
        bases = [f"ptr addrspace(1) %{base}" for base in BASES]
        arrays = [
            f"ptr addrspace({self.places[outside].space}) {self._pointer(outside)}"
            for inside, outside in zip(function.arrays, node[2], strict=True)
            if self.known.array(inside) is None
        ]
        arguments = [*bases, *arrays, *arguments]
        if self.cards.takes_memory(node[1]):
            arguments.append(f"i32 {self.memory[1]}")
        results = function.region.results
        t = self._returns(results, (False,) * len(results), 1)
        fails = self.cards.fails(node[1]) and self.ends
        return self._returned(f"call {t} @{name}({', '.join(arguments)})", t, len(results), fails)

    def _link(self, number: int, node: tuple) -> None:
        raise AssertionError  # recorded as functions

    # -- memory -------------------------------------------------------------------------------------

    def _pointer(self, array: int) -> str:
        """Where an array begins."""
        place, slot = self.places[array], f"i{8 * self.real.bytes}"
        if not place.offset:
            return place.base
        step, offset = slot, place.offset
        if place.tiled:
            offset = self.cards.layout.at(offset)
        elif place.space == 1:
            step = "i8"
        pointer = f"ptr addrspace({place.space})"
        return self.out(f"getelementptr inbounds {step}, {pointer} {place.base}, i64 {offset}")

    def _in_tile(self, base: str, index: str, known: int, multiple: int = 1) -> str:
        """The element ``index + known`` of a tile; the index may be "" for none.

        ``multiple``: a power of 2 that the index is a multiple of: what is known beyond it is added last, so
        that neighbours have most of their address in common.
        """
        out, layout, beside = self.out, self.cards.layout, self.cards.layout.beside
        step = f"getelementptr inbounds i{8 * self.real.bytes}, ptr addrspace(1)"
        if not index:
            return out(f"{step} {base}, i64 {layout.at(known)}")
        if multiple % beside == 0:
            wide = out(f"sext i32 {index} to i64")
            slots = f"getelementptr inbounds [{TILE} x i{8 * self.real.bytes}], ptr addrspace(1)"
            base = out(f"{slots} {base}, i64 {wide}")
            return out(f"{step} {base}, i64 {layout.at(known)}") if known else base
        last = known % multiple
        first = (known - last) % beside
        base = out(f"{step} {base}, i64 {layout.at(known - last - first)}")
        if first:
            index = out(f"add nsw i32 {index}, {first}")
        far = out(f"shl nsw i32 {out(f'and i32 {index}, {-beside}')}, {TILE.bit_length() - 1}")
        place = out(f"or disjoint i32 {far}, {out(f'and i32 {index}, {beside - 1}')}")
        base = out(f"{step} {base}, i64 {out(f'sext i32 {place} to i64')}")
        return out(f"{step} {base}, i64 {last}") if last else base

    def _scaled(self, index: int) -> tuple[dict[int | str, int], int]:
        """An index as a sum of nodes, or names of first turns, times known numbers, and a known number."""
        value = self.known.value(index)
        if value is not None:
            return {}, value
        if index in self.turn_of:
            first, turn = self.turn_of[index]
            return {first: 1}, turn
        opcode, *arguments = self.graph.nodes[index]
        if opcode == ops.TIMES:
            for one, other in (arguments, arguments[::-1]):
                factor = self.known.value(one)
                if factor is not None:
                    terms, known = self._scaled(other)
                    return {k: factor * f for k, f in terms.items()}, factor * known
        if opcode not in (ops.PLUS, ops.MINUS):
            return {index: 1}, 0
        (terms, known), (more, added) = map(self._scaled, arguments)
        sign = 1 if opcode == ops.PLUS else -1
        terms = dict(terms)
        for k, f in more.items():
            terms[k] = terms.get(k, 0) + sign * f
        return {k: f for k, f in terms.items() if f}, known + sign * added

    def _beside(self, array: int, index: int) -> tuple[str, int]:
        """The element of an array in a tile, and the numbers that its address is a multiple of."""
        place, out, beside = self.places[array], self.out, self.cards.layout.beside
        terms, known = self._scaled(index)
        steps = (f * (MOST_TURNS if isinstance(k, str) else 1) for k, f in terms.items())
        multiple = math.gcd(beside, *steps)
        known += place.offset
        if multiple == 1:
            each, known = self._terms(index)
            terms, known = dict.fromkeys(each, 1), known + place.offset
            if len(terms) < len(each):
                terms, known = {index: 1}, place.offset
        total = ""
        for term, factor in terms.items():
            value = term if isinstance(term, str) else self._value(term, False)
            value = value if factor == 1 else out(f"mul i32 {value}, {factor}")
            total = out(f"add i32 {total}, {value}") if total else value
        return self._in_tile(place.base, total, known, multiple), math.gcd(multiple, known)

    def _terms(self, index: int) -> tuple[list[int], int]:
        value = self.known.value(index)
        if value is not None:
            return [], value
        return super()._terms(index)

    def _address(self, array: int, index: int) -> str:
        return self._aligned(array, index)[0]

    def _aligned(self, array: int, index: int) -> tuple[str, int]:
        """Where an element is, and the numbers that its address is a multiple of."""
        place, out = self.places[array], self.out
        if place.tiled and self.cards.layout.beside > 1:
            return self._beside(array, index)
        terms, known = self._terms(index)
        total = ""
        for term in terms:
            value = self._value(term, False)
            total = out(f"add nsw i32 {total}, {value}") if total else value
        if place.tiled:
            return self._in_tile(place.base, total, known + place.offset), 1
        here = out(f"sext i32 {total} to i64") if total else "0"
        pointer, base, step = f"ptr addrspace({place.space})", place.base, f"i{8 * self.real.bytes}"
        if place.space == 1:  # shared
            step = "i32" if self.graph.arrays[array].kind == ops.INTEGER else self.real.kind
            base = self._pointer(array)
        else:
            known += place.offset
        if total:
            base = out(f"getelementptr inbounds {step}, {pointer} {base}, i64 {here}")
        if known or not total:
            base = out(f"getelementptr inbounds {step}, {pointer} {base}, i64 {known}")
        return base, 1

    def _load(self, array: int, index: int) -> str:
        kind, place = self.graph.arrays[array].kind, self.places[array]
        size = 4 if kind == ops.INTEGER else self.real.bytes
        shared = ", !invariant.load !0" if not place.tiled and place.space == 1 else ""
        address, numbers = self._aligned(array, index)
        where = f"ptr addrspace({place.space}) {address}, align {size * numbers}"
        return self.out(f"load {self._type(kind, False)}, {where}{shared}")

    def _store(self, array: int, index: int, value: int) -> None:
        kind, place = self.graph.arrays[array].kind, self.places[array]
        if place.base == "%work" and self.known.array(array) in self.known.idle:
            return
        size = 4 if kind == ops.INTEGER else self.real.bytes
        address, numbers = self._aligned(array, index)
        where = f"ptr addrspace({place.space}) {address}, align {size * numbers}"
        self.out.do(f"store {self._type(kind, False)} {self._value(value, False)}, {where}")

    def _zeros(self, number: int, node: tuple) -> None:
        """Memory for the rest of the region: the thread's, or from the top of what it works with."""
        out, array = self.out, node[1]
        slot = f"i{8 * self.real.bytes}"
        length = self.cards.zeros_length(node)
        if length is not None and length * self.real.bytes <= SMALL:
            place = self.places[array] = Place(f"%z{array}", 0, 5, False)
            self.stack.append(f"  %z{array}g = alloca [{length} x {slot}], align 16")
            self.stack.append(f"  %z{array} = addrspacecast ptr %z{array}g to ptr addrspace(5)")
            if length <= 16:
                for k in range(length):
                    where = out(f"getelementptr {slot}, ptr addrspace(5) {place.base}, i64 {k}")
                    out.do(f"store {slot} 0, ptr addrspace(5) {where}, align {self.real.bytes}")
                return
            self._fill(place, str(length))
            return
        if length is not None:  # a place of its own: no function calls itself
            sizes = self.cards.layout.sizes
            place = self.places[array] = Place("%work", sizes["work"])
            sizes["work"] += length + -length % self.cards.layout.beside
            self._fill(Place(self._pointer(array), 0, place.space, place.tiled), str(length))
            return
        count = self._count(number, node[2:])
        narrow = out(f"trunc i64 {count} to i32")
        top = self.memory[1]
        end = out(f"add i32 {top}, {narrow}")
        if (beside := self.cards.layout.beside) > 1:  # the next begins at a multiple
            end = out(f"and i32 {out(f'add i32 {end}, {beside - 1}')}, {-beside}")
        fits = out(f"icmp ule i32 {end}, {self.cards.heap}")
        self._fail_unless(fits, number, 1)
        narrow, top, end = (out(f"select i1 {fits}, i32 {x}, i32 0") for x in (narrow, top, end))
        place = self.places[array] = Place(self._in_tile("%work", top, 0))
        self.memory = "", end
        self._fill(place, narrow)

    def _fill(self, place: Place, count: str) -> None:
        """Write zeros to so many elements."""
        out, k, before = self.out, self._fresh(), self.label
        slot = f"i{8 * self.real.bytes}"
        pointer = f"ptr addrspace({place.space})"
        out.do(f"br label %fillhead{k}")
        self._block(f"fillhead{k}", same=True)
        out.do(f"%fill{k} = phi i32 [0, %{before}], [%fillnext{k}, %fillbody{k}]")
        out.do(f"br i1 {out(f'icmp slt i32 %fill{k}, {count}')}, label %fillbody{k}, label %filled{k}")
        self._block(f"fillbody{k}", same=True)
        if place.tiled:
            where = self._in_tile(place.base, f"%fill{k}", 0)
        else:
            wide = out(f"sext i32 %fill{k} to i64")
            where = out(f"getelementptr {slot}, {pointer} {place.base}, i64 {wide}")
        out.do(f"store {slot} 0, {pointer} {where}, align {self.real.bytes}")
        out.do(f"%fillnext{k} = add nsw i32 %fill{k}, 1")
        out.do(f"br label %fillhead{k}")
        self._block(f"filled{k}", same=True)

    # -- what is known ------------------------------------------------------------------------------

    def _value(self, number: int, wide: bool) -> str:
        value = self.known.value(number)
        if value is None:
            return super()._value(number, wide)
        return str(value).lower() if isinstance(value, bool) else str(value)

    def _write(self, number: int) -> None:
        if self.known.value(number) is None:
            super()._write(number)

    def _look(self, turns: str = "1") -> None:
        """Nothing: Ctrl-C does not reach a card."""

    def _for(self, number: int, node: tuple, *_: Any) -> None:
        count, region = self.known.value(node[2]), self.graph.regions[node[1]]
        turns = self._at_once(region)
        if count is None or count > 1:
            if turns > 1 and (count is None or count >= turns):
                self._for_several(number, node, turns)
            else:
                super()._for(number, node)
            return
        index, *carried = region.parameters
        starts = [self._value(k, False) for k in node[3:]]
        if count == 1:
            self.names |= dict(zip(carried, starts, strict=True))
            self.names[index] = "0"
            memory = self.memory
            self._region(region)
            self.memory = memory
            starts = [self._value(k, False) for k in region.results]
        self.control |= {(number, k): value for k, value in enumerate(starts)}

    def _ahead(self, region: Region) -> list[int]:
        """Operations of a loop's body that may be done before those of the turns before it."""
        nodes = self.graph.nodes
        written = {nodes[n][1] for n in region.nodes if self._is(n, ops.STORE)}
        waits = set(region.parameters[1:])
        for n in region.nodes:
            node = nodes[n]
            late = node[0] == ops.STORE or (node[0] == ops.LOAD and node[1] in written)
            if late or not waits.isdisjoint(operands(node)):
                waits.add(n)
        return [n for n in region.nodes if n not in waits]

    def _is(self, number: int, *opcodes: int) -> bool:
        return self.graph.nodes[number][0] in opcodes

    def _at_once(self, region: Region) -> int:
        """Turns of a loop whose numbers are read together: memory is far, and few threads wait for it."""
        if any(self._is(n, *_NOT_AT_ONCE) for n in region.nodes):
            return 1
        loads = sum(self._is(n, ops.LOAD) for n in self._ahead(region) if self.known.value(n) is None)
        return min(MOST_TURNS, MOST_LOADS // loads) if loads else 1

    def _for_several(self, number: int, node: tuple, turns: int) -> None:
        """A loop of so many turns at once, then of those that are left, one by one."""
        graph, out, k = self.graph, self.out, self._fresh()
        region, starts = graph.regions[node[1]], node[3:]
        index, *carried = region.parameters
        count, ahead = self._value(node[2], False), set(self._ahead(region))
        types = [self._type_of(parameter) for parameter in carried]
        firsts, before = [self._value(start, False) for start in starts], self.label
        last = out(f"sub nsw i32 {count}, {turns - 1}")
        out.do(f"br label %several{k}")
        self._block(f"several{k}")
        at = len(out.lines)
        out.do("")  # the phis
        out.do(f"br i1 {out(f'icmp slt i32 %i{k}, {last}')}, label %body{k}, label %rest{k}")
        self._block(f"body{k}")
        own: list[dict[int, str]] = []
        for turn in range(turns):
            self.names[index], self.sines = out(f"add nsw i32 %i{k}, {turn}"), {}
            if turns == MOST_TURNS:
                self.turn_of[index] = f"%i{k}", turn
            for n in region.nodes:
                if n in ahead:
                    self._write(n)
            own.append({n: self.names[n] for n in (index, *ahead) if n in self.names})
        names = values = [f"%several{k}x{p}" for p in range(len(carried))]
        for turn, each in enumerate(own):
            if turns == MOST_TURNS:
                self.turn_of[index] = f"%i{k}", turn
            self.names |= each | dict(zip(carried, values, strict=True))
            self.sines = {}
            for n in region.nodes:
                if n not in ahead:
                    self._write(n)
            values = [self._value(n, False) for n in region.results]
        self.turn_of.pop(index, None)
        out.do(f"%j{k} = add nsw i32 %i{k}, {turns}")
        out.do(f"br label %several{k}")
        out.lines[at : at + 1] = [
            f"%i{k} = phi i32 [0, %{before}], [%j{k}, %{self.label}]",
            *(
                f"{name} = phi {t} [{first}, %{before}], [{value}, %{self.label}]"
                for name, t, first, value in zip(names, types, firsts, values, strict=True)
            ),
        ]
        self._block(f"rest{k}")
        super()._for(number, node, f"%i{k}", names)

    def _cond(self, number: int, node: tuple) -> None:
        condition = self.known.value(node[1])
        if condition is None:
            super()._cond(number, node)
            return
        branch, memory = self.graph.regions[node[2 if condition else 3]], self.memory
        self._region(branch)
        self.memory = memory
        values = [self._value(k, False) for k in branch.results]
        self.control |= {(number, k): value for k, value in enumerate(values)}
