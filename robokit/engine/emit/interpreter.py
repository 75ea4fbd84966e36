"""Writes the interpreter of bytecode (passes/bytecode.py): one module for all robots.

    i64 tape_values(ptr code, ptr numbers, ptr tables, ptr sizes, ptr tape)
    void tape_slopes(ptr tape, i64 entries, ptr rows, ptr flags)

The first runs a list and returns the number of entries of the tape that it leaves, the second computes
tangents along WIDTH directions. Numbers are doubles by place, also truths: 1 and 0. tables and sizes are
those of a kernel: pointers, and numbers of entries. An entry of the tape is (i32 place, x, y, z; double
c, e, f): the tangent at the place is that at z times f plus those at x and y times c and e. A row is the
tangents at one place. Its flag is 0 where they are all 0, and then neither it nor its factor counts,
which may be infinite. The place 0 has a row of zeros and the flag 0.

Operations are done one by one and nothing is fused, so results are the same bits everywhere.
"""

from __future__ import annotations

from robokit.engine.emit import ir, sincos
from robokit.engine.passes.bytecode import COPY, ENTER, FIELDS, FROM, LEAVE, MINUS, PLUS, SKIP, STOP
from robokit.engine.trace.ops import (
    ABS,
    ADD,
    COS,
    DIV,
    FLOOR,
    GUARD,
    LOOKUP,
    MUL,
    NEG,
    NOT,
    OPERATIONS,
    SELECT,
    SIN,
    SQRT,
    SUB,
    TRUTHS,
)

WIDTH = 32
"""Directions that are carried along at once: some vectors of each row, so that an entry of the tape is worth
reading, and rows of a humanoid's step that fit in the second-level cache."""

ENTRY = 40
"""Bytes of an entry of the tape."""

_WORDS = {"t": "double", "truth": "i1", "true": "true", "suffix": "f64"}
_NAMES = ("op", "to", "a", "b", "c", "d", "x", "y", "z")
"""Of the fields of an instruction."""


def interpreter_module() -> str:
    """The module's text."""
    return ir.module([sincos.function(1), _values(), _slopes()], {1}).replace(" contract ", " ")


def _case(op: int) -> tuple[list[str], str, str, str]:
    """Instructions of an operation; its value and the factors of the tangents of both operands."""
    zero, one, minus = (ir.number(x) for x in (0.0, 1.0, -1.0))
    k = f"%k{op}"
    line = OPERATIONS[op].llvm.format(**_WORDS) if op < COPY else ""
    if op == COPY:
        return [], "%va", one, zero
    if op in (PLUS, MINUS, FROM):
        terms = f"%vc, {k}p" if op != FROM else f"{k}p, %vc"
        lines = [f"{k}p = fmul double %va, %vb", f"{k} = f{'add' if op == PLUS else 'sub'} double {terms}"]
        if op != MINUS:
            return lines, k, "%vb", "%va"
        return [*lines, f"{k}a = fneg double %va", f"{k}b = fneg double %vb"], k, f"{k}b", f"{k}a"
    if op in (SIN, COS):
        pair = [
            f"{k} = call {{double, double}} @sincos(double %va)",
            f"{k}s = extractvalue {{double, double}} {k}, 0",
            f"{k}c = extractvalue {{double, double}} {k}, 1",
            f"{k}n = fneg double {k}s",
        ]
        return (pair, f"{k}s", f"{k}c", zero) if op == SIN else (pair, f"{k}c", f"{k}n", zero)
    if op in (SELECT, GUARD):
        return [f"{k} = select i1 %vt, double %va, double %vb"], k, one, zero
    if op in TRUTHS:
        both = ("%az", "%bz") if "i1" in line else ("%va", "%vb")
        return (
            [f"{k}t = {line % (both[0] if op == NOT else both)}", f"{k} = uitofp i1 {k}t to double"],
            k,
            zero,
            zero,
        )
    if op == LOOKUP:
        lines = [
            "%tp = getelementptr ptr, ptr %tables, i64 %b_l",
            "%tq = load ptr, ptr %tp, align 8",
            "%sp = getelementptr i64, ptr %sizes, i64 %b_l",
            "%sq = load i64, ptr %sp, align 8",
            "%sl = sub i64 %sq, 1",
            "%sd = sitofp i64 %sl to double",
            f"%la = fcmp ogt double %va, {zero}",  # false where it is NaN: the first entry
            f"%lb = select i1 %la, double %va, double {zero}",
            "%lc = fcmp olt double %lb, %sd",
            "%ld = select i1 %lc, double %lb, double %sd",
            "%le = fptosi double %ld to i64",
            "%lf = getelementptr double, ptr %tq, i64 %le",
            f"{k} = load double, ptr %lf, align 8",
        ]
        return lines, k, zero, zero
    lines = [f"{k} = {line % (('%va', '%vb') if OPERATIONS[op].operands == 2 else '%va')}"]
    if op == MUL:
        return lines, k, "%vb", "%va"
    if op in (ADD, SUB):
        return lines, k, one, one if op == ADD else minus
    if op == NEG:
        return lines, k, minus, zero
    if op == FLOOR:
        return lines, k, zero, zero
    if op == DIV:
        more = [
            f"{k}i = fdiv double {one}, %vb",
            f"{k}p = fmul double {k}i, {k}",
            f"{k}n = fneg double {k}p",
        ]
        return lines + more, k, f"{k}i", f"{k}n"
    if op == SQRT:
        return [*lines, f"{k}h = fdiv double {ir.number(0.5)}, {k}"], k, f"{k}h", zero
    assert op == ABS
    more = [
        f"{k}l = fcmp olt double %va, {zero}",
        f"{k}s = select i1 {k}l, double {minus}, double {one}",
    ]
    return lines + more, k, f"{k}s", zero


def _values() -> str:
    """The interpreter."""
    ops = [op.number for op in OPERATIONS if op.slopes or op.truth]
    ops += [COPY, PLUS, MINUS, FROM]
    cases: list[str] = []
    blocks: list[str] = []
    ways: list[list[str]] = []
    for op in ops:
        lines, value, first, second = _case(op)
        cases.append(f"i32 {op}, label %op{op}")
        blocks.append("\n  ".join([f"op{op}:", *lines, "br label %note"]))
        x, y = ("%taken", "0") if op in (SELECT, GUARD) else ("%x", "%y")
        z = "%z" if op in (PLUS, MINUS, FROM) else "0"
        third = ir.number(-1.0 if op == FROM else 1.0)
        ways.append([f"[{each}, %op{op}]" for each in (value, first, second, third, x, y, z)])
    names = ("value", "first", "second", "third", "one", "two", "three")
    phis = "".join(
        f"  %{name} = phi {'double' if k < 4 else 'i32'} {', '.join(row)}\n"
        for k, (name, row) in enumerate(zip(names, zip(*ways, strict=True), strict=True))
    )
    stores = "".join(
        f"""  %out{name[1:]} = getelementptr i8, ptr %out, i64 {at}
  store {kind} {name}, ptr %out{name[1:]}, align {align}
"""
        for kind, name, at, align in (
            ("i32", "%d", 0, 8), ("i32", "%one", 4, 4), ("i32", "%two", 8, 8), ("i32", "%three", 12, 4),
            ("double", "%first", 16, 8), ("double", "%second", 24, 8), ("double", "%third", 32, 8),
        )
    )  # fmt: skip
    cases += [f"i32 {op}, label %op{op}" for op in (SKIP, ENTER, LEAVE)]
    fields = "".join(
        f"""  %p{name} = getelementptr i32, ptr %at, i64 {k}
  %{name} = load i32, ptr %p{name}, align 4
  %{name}_l = zext i32 %{name} to i64
"""
        for k, name in enumerate(_NAMES)
    )
    operands = "".join(
        f"""  %n{name} = getelementptr double, ptr %numbers, i64 %{name}_l
  %v{name} = load double, ptr %n{name}, align 8
  %{name}z = fcmp une double %v{name}, {ir.number(0.0)}
"""
        for name in "abc"
    ).replace("%cz", "%vt")
    body = "\n".join(blocks)
    return f"""define i64 @tape_values(ptr noalias %code, ptr noalias %numbers, ptr %tables, ptr %sizes,
    ptr noalias %tape) #0 {{
entry:
  br label %loop
loop:
  %k = phi i64 [0, %entry], [%after, %note], [%gone, %op{SKIP}], [%to_l, %op{ENTER}], [%back, %op{LEAVE}]
  %back = phi i64 [0, %entry], [%back, %note], [%back, %op{SKIP}], [%after, %op{ENTER}], [%back, %op{LEAVE}]
  %out = phi ptr [%tape, %entry], [%more, %note], [%out, %op{SKIP}], [%out, %op{ENTER}], [%out, %op{LEAVE}]
  %place = mul i64 %k, {FIELDS}
  %at = getelementptr i32, ptr %code, i64 %place
  %after = add i64 %k, 1
{fields}{operands}  %taken = select i1 %vt, i32 %x, i32 %y
  switch i32 %op, label %op{STOP} [ {" ".join(cases)} ]
{body}
note:
{phis}  %where = getelementptr double, ptr %numbers, i64 %to_l
  store double %value, ptr %where, align 8
{stores}  %moves = icmp ne i32 %d, 0
  %step = select i1 %moves, i64 {ENTRY}, i64 0
  %more = getelementptr i8, ptr %out, i64 %step
  br label %loop
op{SKIP}:
  %gone = select i1 %vt, i64 %after, i64 %to_l
  br label %loop
op{ENTER}:
  br label %loop
op{LEAVE}:
  br label %loop
op{STOP}:
  %end = ptrtoint ptr %out to i64
  %begin = ptrtoint ptr %tape to i64
  %bytes = sub i64 %end, %begin
  %count = udiv i64 %bytes, {ENTRY}
  ret i64 %count
}}
"""


def _slopes() -> str:
    """The tangents of all entries of a tape."""
    t = ir.vector(WIDTH)
    lines = ir.Lines()
    row, zero = f"getelementptr {t}, ptr %rows, i64", ir.number(0.0)
    for name, k in (("x", 1), ("y", 2), ("z", 3)):
        place = lines(f"load i32, ptr {lines(f'getelementptr i32, ptr %at, i64 {k}')}, align 4")
        place = lines(f"zext i32 {place} to i64")
        flag = lines(f"load i8, ptr {lines(f'getelementptr i8, ptr %flags, i64 {place}')}, align 1")
        lines.do(f"%{name}set = icmp ne i8 {flag}, 0")
        lines.do(f"%{name} = select i1 %{name}set, i64 {place}, i64 0")
    lines.do("%two = or i1 %xset, %yset")
    lines.do("%any = or i1 %two, %zset")
    lines.do("%byte = zext i1 %any to i8")
    lines.do("store i8 %byte, ptr %flag, align 1")
    lines.do("br i1 %any, label %some, label %next")
    lines.do("some:")
    terms = []
    for name, k in (("x", 2), ("y", 3), ("z", 4)):
        factor = lines(f"load double, ptr {lines(f'getelementptr double, ptr %at, i64 {k}')}, align 8")
        factor = lines(f"select i1 %{name}set, double {factor}, double {zero}")
        one = lines(f"insertelement {t} poison, double {factor}, i32 0")
        all_ = lines(f"shufflevector {t} {one}, {t} poison, <{WIDTH} x i32> zeroinitializer")
        given = lines(f"load {t}, ptr {lines(f'{row} %{name}')}, align 64")
        terms.append(lines(f"fmul {t} {given}, {all_}"))
    total = lines(f"fadd {t} {terms[0]}, {terms[1]}")
    total = lines(f"fadd {t} {terms[2]}, {total}")
    lines.do(f"store {t} {total}, ptr {lines(f'{row} %to')}, align 64")
    return f"""define void @tape_slopes(ptr noalias %tape, i64 %count, ptr noalias %rows,
    ptr noalias %flags) #0 {{
entry:
  %none = icmp eq i64 %count, 0
  br i1 %none, label %done, label %loop
loop:
  %k = phi i64 [0, %entry], [%after, %next]
  %byte_of = mul i64 %k, {ENTRY}
  %at = getelementptr i8, ptr %tape, i64 %byte_of
  %d = load i32, ptr %at, align 8
  %to = zext i32 %d to i64
  %flag = getelementptr i8, ptr %flags, i64 %to
{lines.text()}
  br label %next
next:
  %after = add i64 %k, 1
  %go = icmp ult i64 %after, %count
  br i1 %go, label %loop, label %done
done:
  ret void
}}
"""
