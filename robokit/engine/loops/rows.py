"""Writes the functions that callers see: of one state, and of batches, whose rows go into lanes and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from robokit.engine.emit.ir import Lines, Real, vector
from robokit.engine.loops.emit import HEADER
from robokit.engine.loops.record import INTEGER, REAL


@dataclass(frozen=True)
class Body:
    """The function that a driver calls.

    Attributes:
        name: of the function.
        arrays: how many it takes.
        sizes: how many numbers it takes.
        fails: whether it takes the call's context, a block of its workspace, and where that is free.
    """

    name: str
    arrays: int
    sizes: int
    fails: bool

    def arguments(self, out: Lines) -> tuple[list[str], list[str]]:
        """Pointers of the arrays, and what else it takes."""
        pointers = [out(f"load ptr, ptr {out.pointer('%args', k, 'ptr')}") for k in range(self.arrays)]
        places = [out.pointer("%sizes", k, "i32") for k in range(self.sizes)]
        rest = [f"i32 {out(f'load i32, ptr {place}')}" for place in places]
        if self.fails:
            context = out(f"load ptr, ptr {out.pointer('%args', self.arrays, 'ptr')}")
            block = out(f"load ptr, ptr {out.pointer(context, 2, 'ptr')}")
            rest += [f"ptr {context}", f"ptr {block}", f"ptr {out.pointer(block, HEADER, 'i8')}"]
        return pointers, rest

    def call(self, pointers: Sequence[str], rest: Sequence[str]) -> str:
        """The call."""
        return f"call void @{self.name}({', '.join([*(f'ptr {p}' for p in pointers), *rest])})"


def single_driver(name: str, body: Body) -> str:
    """``void NAME_single(ptr arrays, ptr sizes)``: in the arrays themselves.

    After the arrays there is the call's context, if the body may fail: a status of 64 bits, 0 where all is
    well; the address of ``ptr more(ptr block, i64 bytes)``; and of the first block of the workspace.
    """
    out = Lines()
    out.do(body.call(*body.arguments(out)))
    return f"define void @{name}_single(ptr %args, ptr %sizes) #2 {{\n{out.text()}\n  ret void\n}}\n"


def batch_driver(
    name: str,
    body: Body,
    moves: Sequence[tuple[str, bool, bool]],
    of_state: Sequence[bool],
    lanes: int,
    real: Real,
) -> str:
    """``void NAME_batch(ptr arrays, ptr sizes, ptr lengths, ptr places, ptr moves, i64 start, i64 stop)``.

    Args:
        name: of the kernel.
        body: the function for the lanes.
        moves: of each array, the kind of its elements, whether it is read, and whether it is written.
        of_state: whether every state has an array of its own.
        lanes: states at once.
        real: of the numbers.
    """
    out = Lines(real)
    pointers, rest = body.arguments(out)
    lengths = [out(f"load i64, ptr {out.pointer('%lengths', k, 'i64')}") for k in range(len(moves))]
    places = [out(f"load ptr, ptr {out.pointer('%places', k, 'ptr')}") for k in range(len(moves))]

    functions = [out(f"load ptr, ptr {out.pointer('%moves', k, 'ptr')}") for k in range(len(MOVES))]

    def move(what: str, k: int) -> None:
        function = functions[MOVES.index((what, moves[k][0]))]
        where = f"ptr {pointers[k]}, ptr {places[k]}, i64 {lengths[k]}"
        out.do(f"call void {function}({where}, i64 %row, i64 %stop)")

    out.do("br label %tile")
    out.do("tile:")
    out.do(f"%row = phi i64 [%start, %entry], [%next, %{'fine' if body.fails else 'tile'}]")
    for k, (_, read, _) in enumerate(moves):
        if read:
            move("pack", k)
    own = [places[k] if of_state[k] else pointers[k] for k in range(len(moves))]
    out.do(body.call(own, rest))
    for k, (_, _, written) in enumerate(moves):
        if written:
            move("unpack", k)
    out.do(f"%next = add i64 %row, {lanes}")
    out.do("%more = icmp slt i64 %next, %stop")
    if body.fails:
        status = out(f"load i64, ptr {rest[-3].removeprefix('ptr ')}")
        out.do(f"br i1 {out(f'icmp eq i64 {status}, 0')}, label %fine, label %end")
        out.do("fine:")
    out.do("br i1 %more, label %tile, label %end")
    out.do("end:")
    parameters = "ptr %args, ptr %sizes, ptr %lengths, ptr %places, ptr %moves, i64 %start, i64 %stop"
    return f"define void @{name}_batch({parameters}) #2 {{\nentry:\n{out.text()}\n  ret void\n}}\n"


MOVES = (("pack", REAL), ("unpack", REAL), ("pack", INTEGER), ("unpack", INTEGER))
"""Functions that move rows to lanes and back. They are the same for all kernels, and compiled once."""


def moves_module(lanes: int, real: Real) -> str:
    """The functions ``move0``... of :data:`MOVES`."""
    return "".join(_moves(lanes, real.kind, real.bytes, 0) + _moves(lanes, "i32", 4, 2))


_MOVE = """define void @{name}(
    ptr noalias %rows, ptr noalias %lanes, i64 %n, i64 %row, i64 %stop) #2 {{
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
        f"  %m{k} = select i1 %b{k}, i64 %r{k}, i64 %last\n  %o{k} = mul i64 %m{k}, %n\n"
        f"  %p{k} = getelementptr {kind}, ptr %rows, i64 %o{k}"
        for k in range(lanes)
    )
    texts = []
    for number, reads in ((first, True), (first + 1, False)):
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
            _MOVE.format(name=f"move{number}", start=start, w=lanes, block=block.text(), t=t, one=one.text())
        )
    return texts
