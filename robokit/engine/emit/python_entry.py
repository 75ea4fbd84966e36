"""The body of every kernel's builtin function, as LLVM IR: from Python's objects to the kernel and back.

What it assumes: 64-bit little-endian CPython with the GIL, whose objects begin with their count of
references and their type; floats, bytes, instances of classes with two slots, and NumPy's arrays hold their
parts where :class:`Layout` says. The layout of arrays is part of NumPy's ABI and the same in NumPy 1.x and
2.x.

How that is checked: run/numpy_layout.py looks at live objects through the same offsets, and
run/single_calls.py calls the finished machine code on arrays with known answers. Both happen before the
first single call of a process.

What happens where it does not hold: single calls go through ctypes, some microseconds slower, with the same
results (``_slow_call`` in run/single_calls.py).

The code holds no address of its process: those come with the description of the kernel
(:data:`ADDRESSES`), so that the code can be kept on disk.
"""

from __future__ import annotations

from dataclasses import dataclass

from robokit.engine.emit.python_results import ALIGNED_FROM, ANSWER, DROP, MAKE
from robokit.engine.memory import LINE_BYTES

MOST_ARGUMENTS = 24
"""Inputs and outputs together."""

MOST_DIMENSIONS = 4
"""Of an argument."""

ROWS = -1
"""Stands for the number of states, the first dimension of all arguments of a batch."""

FIRST_WORDS = 7
"""Words of a description before the addresses."""

ADDRESSES = (
    "array",
    "float64",
    "float",
    "none",
    "new",
    "tuple",
    "set_item",
    "from_double",
    "incref",
    "decref",
    "alloc",
    "set_base",
)
"""Objects and functions of a process that the code finds in the description."""


@dataclass(frozen=True)
class Layout:
    """Where things lie in Python's objects.

    Attributes:
        type: of an object's type [bytes from the object], as all offsets.
        bytes: of the content of bytes.
        float: of the double in a float.
        slots: of the two slots of an object whose class has two.
        data, ndim, dims, descr, flags: of an array's fields.
        readable: flags of an array that can be read: C-contiguous and aligned.
        writeable: flags of one that can be written too.
    """

    type: int
    bytes: int
    float: int
    slots: tuple[int, int]
    data: int
    ndim: int
    dims: int
    descr: int
    flags: int
    readable: int
    writeable: int


# What the kernel is like, from its description; and how many arguments came: the inputs, or outputs too.
_READ = """
declare void @llvm.memcpy.inline.p0.p0.i64(ptr, ptr, i64, i1)
define ptr @entry(ptr %self, ptr %given, i64 %count) nounwind {{
entry:
  %spec = getelementptr i8, ptr %self, i64 {layout.bytes}
  %pointers = alloca [{most} x ptr]
  %objects = alloca [{most} x ptr]
  %numbers = alloca [{most} x double]
  %strides = alloca [{strides} x i64]
  %newdims = alloca [{dimensions} x i64]
  %blockdims = alloca i64
  %prows = alloca i64
  store i64 0, ptr %prows
  %kernel = load ptr, ptr %spec
  %pws = getelementptr i64, ptr %spec, i64 1
  %ws = load ptr, ptr %pws
  %pin = getelementptr i64, ptr %spec, i64 2
  %nin = load i64, ptr %pin
  %pout = getelementptr i64, ptr %spec, i64 3
  %nout = load i64, ptr %pout
  %pmost = getelementptr i64, ptr %spec, i64 4
  %most = load i64, ptr %pmost
  %pholder = getelementptr i64, ptr %spec, i64 5
  %holder = load ptr, ptr %pholder
  %pheld = getelementptr i64, ptr %spec, i64 6
  %owner = load ptr, ptr %pheld
{addresses}
  %all = add i64 %nin, %nout
  %fresh = icmp eq i64 %count, %nin
  %full = icmp eq i64 %count, %all
  %fits = or i1 %fresh, %full
  br i1 %fits, label %check, label %none
"""

# Each argument must be exactly an array of float64, C-contiguous, aligned (an output also writeable), of the
# shape that the description says; or a float where a single number is expected. Its address and the bytes of
# one of its rows are noted.
_CHECK = """
check:
  %k = phi i64 [0, %entry], [%k1, %next]
  %checked = icmp eq i64 %k, %count
  br i1 %checked, label %make, label %one
one:
  %w4 = mul i64 %k, {words}
  %w = add i64 %w4, {head}
  %pn = getelementptr i64, ptr %spec, i64 %w
  %n = load i64, ptr %pn
  %pob = getelementptr ptr, ptr %given, i64 %k
  %ob = load ptr, ptr %pob
  %pt = getelementptr i8, ptr %ob, i64 {layout.type}
  %type = load ptr, ptr %pt
  %is_array = icmp eq ptr %type, %at_array
  br i1 %is_array, label %array, label %other
array:
  %pd = getelementptr i8, ptr %ob, i64 {layout.descr}
  %descr = load ptr, ptr %pd
  %double = icmp eq ptr %descr, %at_float64
  %pf = getelementptr i8, ptr %ob, i64 {layout.flags}
  %flags = load i32, ptr %pf
  %is_in = icmp ult i64 %k, %nin
  %want = select i1 %is_in, i32 {layout.readable}, i32 {layout.writeable}
  %have = and i32 %flags, %want
  %usable = icmp eq i32 %have, %want
  %pnd = getelementptr i8, ptr %ob, i64 {layout.ndim}
  %nd32 = load i32, ptr %pnd
  %nd = zext i32 %nd32 to i64
  %same = icmp eq i64 %nd, %n
  %a1 = and i1 %double, %usable
  %a2 = and i1 %a1, %same
  br i1 %a2, label %shape, label %none
shape:
  %pdims = getelementptr i8, ptr %ob, i64 {layout.dims}
  %dims = load ptr, ptr %pdims
  br label %axis
axis:
  %d = phi i64 [0, %shape], [%d1, %axis_ok]
  %axes_done = icmp eq i64 %d, %n
  br i1 %axes_done, label %data, label %axis_one
axis_one:
  %pgot = getelementptr i64, ptr %dims, i64 %d
  %got = load i64, ptr %pgot
  %d1 = add i64 %d, 1
  %pwanted = getelementptr i64, ptr %pn, i64 %d1
  %wanted = load i64, ptr %pwanted
  %equal = icmp eq i64 %got, %wanted
  br i1 %equal, label %axis_ok, label %axis_rows
axis_rows:
  %is_rows = icmp eq i64 %wanted, {rows}
  br i1 %is_rows, label %axis_count, label %none
axis_count:
  %before = load i64, ptr %prows
  %first = icmp eq i64 %before, 0
  %agree = icmp eq i64 %before, %got
  %either = or i1 %first, %agree
  %less = sub i64 %got, 1
  %few = icmp ult i64 %less, %most
  %counted = and i1 %either, %few
  store i64 %got, ptr %prows
  br i1 %counted, label %axis_ok, label %none
axis_ok:
  br label %axis
data:
  %pdata = getelementptr i8, ptr %ob, i64 {layout.data}
  %from_array = load ptr, ptr %pdata
  br label %next
other:
  %is_float = icmp eq ptr %type, %at_float
  %o_in = icmp ult i64 %k, %nin
  %pd0 = getelementptr i64, ptr %pn, i64 1
  %d0 = load i64, ptr %pd0
  %single = icmp eq i64 %d0, 1
  %vector = icmp eq i64 %n, 1
  %o1 = and i1 %is_float, %o_in
  %o2 = and i1 %o1, %single
  %o3 = and i1 %o2, %vector
  %from_float = getelementptr i8, ptr %ob, i64 {layout.float}
  br i1 %o3, label %next, label %none
next:
  %address = phi ptr [%from_array, %data], [%from_float, %other]
  %pp = getelementptr ptr, ptr %pointers, i64 %k
  store ptr %address, ptr %pp
  %po = getelementptr ptr, ptr %objects, i64 %k
  store ptr %ob, ptr %po
  %prb = getelementptr i64, ptr %pn, i64 {row_bytes}
  %rb = load i64, ptr %prb
  %pst = getelementptr i64, ptr %strides, i64 %k
  store i64 %rb, ptr %pst
  %k1 = add i64 %k, 1
  br label %check
"""

# Given outputs must not overlap any input, for what is written early would be read later, nor each other.
_APART = """
make:
  br i1 %full, label %apart, label %make_next
apart:
  %given_rows = load i64, ptr %prows
  %some_rows = icmp ugt i64 %given_rows, 0
  %times = select i1 %some_rows, i64 %given_rows, i64 1
  br label %to_next
to_next:
  %to = phi i64 [%nin, %apart], [%to1, %to_done]
  %to_end = icmp eq i64 %to, %all
  br i1 %to_end, label %run, label %to_one
to_one:
  %pto = getelementptr i64, ptr %pointers, i64 %to
  %to_first = load i64, ptr %pto
  %ptor = getelementptr i64, ptr %strides, i64 %to
  %to_row = load i64, ptr %ptor
  %to_bytes = mul i64 %to_row, %times
  %to_last = add i64 %to_first, %to_bytes
  br label %from_next
from_next:
  %from = phi i64 [0, %to_one], [%from1, %from_done]
  %from_end = icmp eq i64 %from, %to
  br i1 %from_end, label %to_done, label %from_one
from_one:
  %pfrom = getelementptr i64, ptr %pointers, i64 %from
  %from_first = load i64, ptr %pfrom
  %pfromr = getelementptr i64, ptr %strides, i64 %from
  %from_row = load i64, ptr %pfromr
  %from_bytes = mul i64 %from_row, %times
  %from_last = add i64 %from_first, %from_bytes
  %begins = icmp ult i64 %from_first, %to_last
  %lasts = icmp ult i64 %to_first, %from_last
  %overlap = and i1 %begins, %lasts
  br i1 %overlap, label %none, label %from_done
from_done:
  %from1 = add i64 %from, 1
  br label %from_next
to_done:
  %to1 = add i64 %to, 1
  br label %to_next
"""

# The kernel itself: the driver of one state, or the batch driver with the strides of its rows.
_RUN = """
run:
  %rows = load i64, ptr %prows
  %is_batch = icmp ugt i64 %rows, 0
  br i1 %is_batch, label %run_batch, label %run_single
run_single:
  %status1 = call i64 %kernel(ptr %pointers, ptr %ws)
  br label %ran
run_batch:
  %past = getelementptr i64, ptr %strides, i64 %all
  store i64 0, ptr %past
  %status2 = call i64 %kernel(ptr %pointers, ptr %strides, ptr %ws, i64 0, i64 %rows)
  br label %ran
ran:
  %status = phi i64 [%status1, %run_single], [%status2, %run_batch]
  %good = icmp eq i64 %status, 0
  br i1 %good, label %answer, label %refused
refused:
  br i1 %full, label %none, label %drop_none
"""

# Kernels to try it all on: one swaps two numbers and refuses NaN, one says how many states it was given.
_PROBES = """
define i64 @probe(ptr %args, ptr %ws) nounwind {{
  %pi = load ptr, ptr %args
  %pa = getelementptr ptr, ptr %args, i64 1
  %po = load ptr, ptr %pa
  %pb = getelementptr double, ptr %pi, i64 1
  %a = load double, ptr %pi
  %b = load double, ptr %pb
  %pc = getelementptr double, ptr %po, i64 1
  store double %b, ptr %po
  store double %a, ptr %pc
  %nan = fcmp uno double %a, %b
  %status = zext i1 %nan to i64
  ret i64 %status
}}
define i64 @probe_rows(ptr %args, ptr %strides, ptr %ws, i64 %first, i64 %end) nounwind {{
  %pa = getelementptr ptr, ptr %args, i64 1
  %po = load ptr, ptr %pa
  %rows = sitofp i64 %end to double
  store double %rows, ptr %po
  ret i64 0
}}
"""


def text(layout: Layout) -> str:
    """The module with @entry, and two kernels to try it on; it is the same in every process."""
    loads = []
    for k, name in enumerate(ADDRESSES):
        loads.append(f"  %pat_{name} = getelementptr i64, ptr %spec, i64 {FIRST_WORDS + k}")
        loads.append(f"  %at_{name} = load ptr, ptr %pat_{name}")
    return "".join((_READ, _CHECK, _APART, MAKE, _RUN, ANSWER, DROP, _PROBES)).format(
        layout=layout,
        addresses="\n".join(loads),
        most=MOST_ARGUMENTS,
        strides=MOST_ARGUMENTS + 1,
        head=FIRST_WORDS + len(ADDRESSES),
        words=MOST_DIMENSIONS + 2,
        dimensions=MOST_DIMENSIONS,
        dimension_bytes=8 * MOST_DIMENSIONS,
        row_bytes=MOST_DIMENSIONS + 1,
        rows=ROWS,
        aligned_from=ALIGNED_FROM,
        line=LINE_BYTES,
        line_less=LINE_BYTES - 1,
    )
