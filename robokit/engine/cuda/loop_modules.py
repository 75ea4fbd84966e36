"""The modules of a kernel with loops for a card: its functions, what launches call, and copies of columns."""

from __future__ import annotations

from collections.abc import Sequence

from robokit.engine.backend.llvm import LONG, LOOPS
from robokit.engine.cuda.loop_code import NOT_FINITE, TILE, CardWriter
from robokit.engine.emit import sincos
from robokit.engine.emit.ir import FLOAT64, Real, number
from robokit.engine.trace.ops import INTRINSICS

ATTRIBUTES = "attributes #2 = { nounwind }\n!0 = !{}\n"

OF_TWO = ("minnum", "maxnum", "copysign")
"""Intrinsics that take two numbers."""

THREAD = """entry:
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %cta = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %ntid = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %ncta = call i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
  %block = mul i32 %cta, %ntid
  %me = add i32 %block, %tid
  %first = zext i32 %me to i64
  %threads = mul i32 %ncta, %ntid
  %step = zext i32 %threads to i64
"""
"""The number of a thread, and how many there are: states first, first + step, ..."""

READ = "".join(
    f"declare i32 @llvm.nvvm.read.ptx.sreg.{x}()\n" for x in ("tid.x", "ctaid.x", "ntid.x", "nctaid.x")
)

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
        unfinished: likewise: a pass after which its first is not 0 goes on in the next.
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
        t, end = each.kind, each.suffix
        lines += [f"declare {t} @llvm.{f}.{end}({', '.join([t] * (1 + (f in OF_TWO)))})" for f in INTRINSICS]
        lines.append(f"declare {t} @llvm.fma.{end}({t}, {t}, {t})")
        lines.append(f"declare i32 @llvm.fptosi.sat.i32.{end}({t})")
    if any("@sincos_1(" in text for text in texts):
        lines.append(sincos.function(1, real, "sincos_1", writer.contracts))
    return READ + ANY + "\n".join(lines)


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
    writer: CardWriter,
    body: str,
    finite: Sequence[tuple[int, int]],
    stop: int | None,
    unfinished: int | None,
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
