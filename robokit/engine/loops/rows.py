"""Writes the functions that callers see: of one state, and of batches, whose rows go into lanes and back."""

from __future__ import annotations

from collections.abc import Sequence

from robokit.engine.emit.ir import Lines, Real, number, vector
from robokit.engine.loops.emit import HEADER
from robokit.engine.loops.record import INTEGER, REAL
from robokit.engine.signature import ArrayOf

ENVIRONMENT = ("sizes", "lengths", "places", "links", "moves", "context")
"""What an environment points to (environment.py): the sizes; elements of each array, and its memory in lanes,
or that of work arrays; the table of other kernels; the functions of :data:`MOVES`; and where a call says that
it failed: a status of 64 bits, 0 where all is well, and what Context (environment.py) has beside it."""

BATCH = "ptr %args, ptr %strides, ptr %env, i64 %start, i64 %stop, i64 %passes, ptr %jumps"
"""Parameters of the functions of many rows."""


class Driver:
    """Writes the functions of a kernel that others call.

    Args:
        name: of the kernel.
        arrays: what it takes.
        sizes: how many.
        lanes: states at once.
        real: of the numbers.
        fails: whether the functions that do it take a context.
    """

    def __init__(
        self, name: str, arrays: Sequence[ArrayOf], sizes: int, lanes: int, real: Real, fails: bool
    ) -> None:
        self.fails = fails
        self.name, self.arrays, self.sizes, self.lanes, self.real = name, arrays, sizes, lanes, real
        self.taken = [k for k, a in enumerate(arrays) if a.role != "work"]

    def linked(self, body: str, masked: str = "") -> str:
        """``i64 NAME_linked(ptr args, ptr env, i64 mask)``: for callers in machine code; it tells a status.

        Args:
            body: name of the function for all lanes.
            masked: of the one for some.
        """
        out = self._begin()
        memory = self._work()
        for place, k in enumerate(self.taken):
            memory[k] = out(f"load ptr, ptr {out.pointer('%args', place, 'ptr')}")
        call = self._call(body, memory)
        if masked:
            n = self.lanes
            out.do("%all = icmp eq i64 %mask, -1")
            out.do("br i1 %all, label %whole, label %part")
            out.do("whole:")
            out.do(call)
            out.do(f"ret i64 {self._status()}")
            out.do("part:")
            mask = out(f"bitcast i{n} {out(f'trunc i64 %mask to i{n}')} to {vector(n, 'i1')}")
            call = self._call(masked, memory, f"{vector(n, 'i1')} {mask}")
        out.do(call)
        out.do(f"ret i64 {self._status()}")
        heading = f"define i64 @{self.name}_linked(ptr %args, ptr %env, i64 %mask) #2"
        return f"{heading} {{\nentry:\n{out.text()}\n}}\n"

    def once(self) -> str:
        """``i64 NAME_once(ptr args, ptr env)``: one state, in place; 1 where it may run again.

        It may not where a call fails, or an array that is read and written is no longer finite.
        """
        out = self._begin()
        status = out(f"call i64 @{self.name}_linked(ptr %args, ptr %env, i64 -1)")
        total, kind = number(0.0, self.real), self.real.kind
        for place, k in enumerate(self.taken):
            if self.arrays[k].role == "inout" and self.arrays[k].kind == REAL:
                pointer = out(f"load ptr, ptr {out.pointer('%args', place, 'ptr')}")
                total = out(f"call {kind} @no_times({kind} {total}, ptr {pointer}, i64 {self.lengths[k]})")
        well = out(f"fcmp ord {kind} {total}, {total}")
        if self.fails:
            well = out(f"and i1 {well}, {out(f'icmp eq i64 {status}, 0')}")
        out.do(f"%well = zext i1 {well} to i64")
        heading = f"define internal i64 @{self.name}_once(ptr %args, ptr %env) #2"
        return f"{heading} {{\nentry:\n{out.text()}\n  ret i64 %well\n}}\n"

    def single(self) -> str:
        """``i64 NAME_single(ptr args, ptr env, i64 passes)``: one state, in place, again and again.

        Its value is how often it ran: less than was asked for where it may not run again.
        """
        out = Lines(self.real)
        out.do("br label %pass")
        out.do("pass:")
        out.do("%k = phi i64 [0, %entry], [%next, %pass]")
        out.do(f"%ok = call i64 @{self.name}_once(ptr %args, ptr %env)")
        out.do("%next = add i64 %k, 1")
        more = out(f"and i1 {out('icmp slt i64 %next, %passes')}, {out('icmp ne i64 %ok, 0')}")
        out.do(f"br i1 {more}, label %pass, label %end")
        out.do("end:")
        heading = f"define i64 @{self.name}_single(ptr %args, ptr %env, i64 %passes) #2"
        return f"{heading} {{\nentry:\n{out.text()}\n  ret i64 %next\n}}\n"

    def rows(self) -> str:
        """``void NAME_rows``, with the arguments of ``batch`` and ``ptr done``.

        As ``single``, for rows start..stop, one after the other, each in place; done gets how often each ran.
        """
        out, n = self._begin(), len(self.taken)
        out.do(f"%own = alloca [{n} x ptr]")
        out.do("br label %row_head")
        out.do("row_head:")
        out.do("%row = phi i64 [%start, %entry], [%next_row, %row_done]")
        out.do(f"br i1 {out('icmp slt i64 %row, %stop')}, label %pass, label %end")
        out.do("pass:")
        out.do("%p = phi i64 [0, %row_head], [%next, %ran]")
        out.do("br label %place")
        out.do("place:")
        out.do("%k = phi i64 [0, %pass], [%next_k, %place]")
        given = out(f"load ptr, ptr {out.pointer('%args', '%k', 'ptr')}")
        words = [out(f"load i64, ptr {out.pointer(name, '%k', 'i64')}") for name in ("%strides", "%jumps")]
        away = [out(f"mul i64 {a}, {b}") for a, b in zip(words, ("%row", "%p"), strict=True)]
        there = out.pointer(given, out(f"add i64 {away[0]}, {away[1]}"), "i8")
        out.do(f"store ptr {there}, ptr {out.pointer('%own', '%k', 'ptr')}")
        out.do("%next_k = add i64 %k, 1")
        out.do(f"br i1 {out(f'icmp slt i64 %next_k, {n}')}, label %place, label %placed")
        out.do("placed:")
        out.do(f"%ok = call i64 @{self.name}_once(ptr %own, ptr %env)")
        out.do("br label %ran")
        out.do("ran:")
        out.do("%next = add i64 %p, 1")
        more = out(f"and i1 {out('icmp slt i64 %next, %passes')}, {out('icmp ne i64 %ok, 0')}")
        out.do(f"br i1 {more}, label %pass, label %row_done")
        out.do("row_done:")
        out.do(f"store i64 %next, ptr {out.pointer('%done', '%row', 'i64')}")
        out.do("%next_row = add i64 %row, 1")
        out.do("br label %row_head")
        out.do("end:")
        parameters = (
            "ptr %args, ptr %strides, ptr %env, i64 %start, i64 %stop, i64 %passes, ptr %jumps, ptr %done"
        )
        return f"define void @{self.name}_rows({parameters}) #2 {{\nentry:\n{out.text()}\n  ret void\n}}\n"

    def batch(self, body: str) -> str:
        """``i64 NAME_batch(ptr args, ptr strides, ptr env, i64 start, i64 stop, i64 passes, ptr jumps)``.

        Rows start..stop, so many passes of a tile before the next one begins; between two passes its numbers
        stay in vectors. strides are the bytes between the rows of each array, 0 to use one for all; jumps
        those by which its pointer moves from one pass to the next, 0 where it stays.
        """
        out = self._begin()
        functions = self._pointers("moves", len(MOVES))
        memory = self._work()
        words: dict[str, list[str]] = {"strides": [], "jumps": []}
        given = []
        for place in range(len(self.taken)):
            given.append(out(f"load ptr, ptr {out.pointer('%args', place, 'ptr')}"))
            for name, found in words.items():
                found.append(out(f"load i64, ptr {out.pointer(f'%{name}', place, 'i64')}"))

        def move(what: str, place: int, pointer: str) -> None:
            k = self.taken[place]
            function = functions[MOVES.index((what, self.arrays[k].kind))]
            rows = f"ptr {pointer}, i64 {words['strides'][place]}, i64 %row, i64 %stop"
            out.do(f"call void {function}({rows}, ptr {memory[k]}, i64 {self.lengths[k]})")

        out.do("br label %tile")
        out.do("tile:")
        out.do("%row = phi i64 [%start, %entry], [%nextrow, %done]")
        for k, a in enumerate(self.arrays):
            if a.role == "out":
                size = (4 if a.kind == INTEGER else self.real.bytes) * self.lanes
                count = out(f"mul i64 {self.lengths[k]}, {size}")
                out.do(f"call void @llvm.memset.p0.i64(ptr {memory[k]}, i8 0, i64 {count}, i1 false)")
        out.do("br label %pass")
        out.do("pass:")
        out.do("%p = phi i64 [0, %tile], [%nextpass, %ran]")
        first = out("icmp eq i64 %p, 0")
        here = list(memory)
        for place, k in enumerate(self.taken):
            a, jump = self.arrays[k], words["jumps"][place]
            pointer = out(f"getelementptr i8, ptr {given[place]}, i64 {out(f'mul i64 %p, {jump}')}")
            if a.shared:
                here[k] = pointer
            elif a.role != "out":
                wanted = out(f"or i1 {first}, {out(f'icmp ne i64 {jump}, 0')}")
                out.do(f"br i1 {wanted}, label %read{k}, label %have{k}")
                out.do(f"read{k}:")
                move("pack", place, pointer)
                out.do(f"br label %have{k}")
                out.do(f"have{k}:")
        out.do("br label %ran")
        out.do("ran:")
        out.do(self._call(body, here))
        out.do("%nextpass = add i64 %p, 1")
        more = out("icmp slt i64 %nextpass, %passes")
        well = "true"
        if self.fails:
            well = out(f"icmp eq i64 {self._status()}, 0")
            more = out(f"and i1 {more}, {well}")
        out.do(f"br i1 {more}, label %pass, label %done")
        out.do("done:")
        for place, k in enumerate(self.taken):
            if self.arrays[k].role != "in":
                move("unpack", place, given[place])
        out.do(f"%nextrow = add i64 %row, {self.lanes}")
        more = out("icmp slt i64 %nextrow, %stop")
        out.do(f"br i1 {out(f'and i1 {more}, {well}')}, label %tile, label %end")
        out.do("end:")
        return f"define i64 @{self.name}_batch({BATCH}) #2 {{\nentry:\n{out.text()}\n  ret i64 0\n}}\n"

    def _begin(self) -> Lines:
        """Load what all functions need of the environment."""
        out = self.out = Lines(self.real)
        self.values = self._loaded("sizes", "i32", self.sizes)
        self.lengths = self._loaded("lengths", "i64", len(self.arrays))
        self.links, self.context = (
            out(f"load ptr, ptr {out.pointer('%env', ENVIRONMENT.index(name), 'ptr')}")
            for name in ("links", "context")
        )
        return out

    def _status(self) -> str:
        return self.out(f"load i64, ptr {self.context}") if self.fails else "0"

    def _loaded(self, what: str, kind: str, count: int) -> list[str]:
        out = self.out
        base = out(f"load ptr, ptr {out.pointer('%env', ENVIRONMENT.index(what), 'ptr')}")
        return [out(f"load {kind}, ptr {out.pointer(base, k, kind)}") for k in range(count)]

    def _pointers(self, what: str, count: int) -> list[str]:
        return self._loaded(what, "ptr", count)

    def _work(self) -> list[str]:
        """Memory of each array in the environment."""
        return self._pointers("places", len(self.arrays))

    def _call(self, body: str, memory: Sequence[str], *more: str) -> str:
        given = [
            f"ptr {self.links}",
            *(f"ptr {p}" for p in memory),
            *(f"i32 {n}" for n in self.values),
            *more,
        ]
        if self.fails:
            block = self.out(f"load ptr, ptr {self.out.pointer(self.context, 2, 'ptr')}")
            given += [f"ptr {self.context}", f"ptr {block}", f"ptr {self.out.pointer(block, HEADER, 'i8')}"]
        return f"call void @{body}({', '.join(given)})"


_NO_TIMES = """define internal {t} @no_times({t} %before, ptr %x, i64 %n) noinline #2 {{
entry:
  br label %head
head:
  %i = phi i64 [0, %entry], [%next, %one]
  %sum = phi {t} [%before, %entry], [%new, %one]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %one, label %end
one:
  %place = getelementptr {t}, ptr %x, i64 %i
  %number = load {t}, ptr %place
  %nothing = fmul {t} %number, {zero}
  %new = fadd reassoc {t} %sum, %nothing
  %next = add i64 %i, 1
  br label %head
end:
  ret {t} %sum
}}
"""


def no_times(real: Real) -> str:
    """The function ``no_times(before, array, n)``: before, if all its numbers are finite, else NaN.

    It is a function, and no loop in its callers: a loop for each array takes 8 ms to compile.
    """
    return _NO_TIMES.format(t=real.kind, zero=number(0.0, real))


MOVES = (("pack", REAL), ("unpack", REAL), ("pack", INTEGER), ("unpack", INTEGER))
"""Functions that move rows to lanes and back. They are the same for all kernels, and compiled once."""


def moves_module(lanes: int, real: Real) -> str:
    """The functions ``move0``... of :data:`MOVES`."""
    return "".join(_moves(lanes, real.kind, real.bytes, 0) + _moves(lanes, "i32", 4, 2))


_MOVE = """define void @{name}(
    ptr noalias %rows, i64 %stride, i64 %row, i64 %stop, ptr noalias %lanes, i64 %n) #2 {{
entry:
  %last = sub i64 %stop, 1
{start}
  br label %head
head:
  %j = phi i64 [0, %entry], [%j1, %block]
  %j1 = add i64 %j, {w}
  %fits = icmp sle i64 %j1, %n
  br i1 %fits, label %block, label %rest
block:
{block}
  br label %head
rest:
  %s = phi i64 [%j, %head], [%s1, %one]
  %more = icmp slt i64 %s, %n
  br i1 %more, label %one, label %out
one:
  %there = getelementptr {t}, ptr %lanes, i64 %s
{one}
  %s1 = add i64 %s, 1
  br label %rest
out:
  ret void
}}
"""


def _moves(lanes: int, kind: str, size: int, first: int) -> list[str]:
    """Two functions: an array of some rows to lanes and back; lanes beyond the last row have it.

    They are written back first: the last row's own lane is the one that counts.
    """
    element, t = Real("", kind, size, "", 0.0), vector(lanes, kind)
    start = "\n".join(
        f"  %r{k} = add i64 %row, {k}\n  %b{k} = icmp slt i64 %r{k}, %stop\n"
        f"  %m{k} = select i1 %b{k}, i64 %r{k}, i64 %last\n  %o{k} = mul i64 %m{k}, %stride\n"
        f"  %p{k} = getelementptr i8, ptr %rows, i64 %o{k}"
        for k in range(lanes)
    )
    texts = []
    for which, reads in ((first, True), (first + 1, False)):
        block = Lines(element)
        in_rows = [block.pointer(f"%p{k}", "%j") for k in range(lanes)]
        in_lanes = [block.pointer("%lanes", block(f"add i64 %j, {k}"), t) for k in range(lanes)]
        source, target = (in_rows, in_lanes) if reads else (in_lanes, in_rows)
        aligned = (size, size * lanes) if reads else (size * lanes, size)
        loaded = [block(f"load {t}, ptr {place}, align {aligned[0]}") for place in source]
        turned = block.transposed(loaded)
        for k in reversed(range(lanes)):
            block.do(f"store {t} {turned[k]}, ptr {target[k]}, align {aligned[1]}")
        one = Lines(element)
        one.count = block.count
        for k in reversed(range(lanes)):
            places = one.pointer(f"%p{k}", "%s"), one.pointer("%there", k)
            source_place, target_place = places if reads else places[::-1]
            value = one(f"load {kind}, ptr {source_place}, align {size}")
            one.do(f"store {kind} {value}, ptr {target_place}, align {size}")
        texts.append(
            _MOVE.format(name=f"move{which}", start=start, w=lanes, block=block.text(), t=t, one=one.text())
        )
    return texts
