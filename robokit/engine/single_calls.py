"""Single calls from Python in a third of a microsecond: a builtin function made of machine code.

A kernel of 1 us must not wait for ctypes. One small function, written here as LLVM IR and compiled once, is
the body of every kernel's builtin (METH_FASTCALL). It looks into the NumPy arrays that it is given, makes the
output arrays, runs the kernel and returns them. For arguments that it does not take it computes nothing and
returns None; the caller then goes the slow way, which converts, checks and explains.

    fast(in0, in1, ...)               -> new output, or tuple of new outputs, or None
    fast(in0, ..., out0, ...)         -> the same, written to the given arrays

The builtin's `self` is a bytes object that describes the kernel, in words of 64 bits:

    kernel, workspace, number of inputs, of outputs, most rows, class that holds the answer (or 0), its owner,
    ADDRESSES, then for each argument: ndim, four dimensions, bytes of a row

A batch of few states goes the same way: the first dimension of its arguments is ROWS, which stands for the
same number in all of them. All calls of one builtin share one workspace: the GIL is held from first to last.

What it assumes: 64-bit little-endian CPython with the GIL, whose objects begin with their count of references
and their type; floats, bytes, instances of classes with two slots, and NumPy's arrays hold their parts where
:data:`LAYOUT` says. The layout of arrays is part of NumPy's ABI and the same in NumPy 1.x and 2.x.

How that is checked: :func:`layout_is_known` looks at live objects through the same offsets, and the finished
machine code is called on arrays with known answers. Both happen before the first single call of a process.

What happens where it does not hold: single calls go through ctypes, some microseconds slower, with the same
results (``_slow_call``).

The code holds no address of its process: those come with the description of the kernel
(:data:`ADDRESSES`), so that the code can be kept on disk.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import math
import re
import sys
import sysconfig
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from robokit.dataclass_tools import frozen
from robokit.engine.backend.llvm import CompilerMissing, code_of
from robokit.engine.memory import ARRAY_DATA, LINE_BYTES, address, aligned

MOST_ARGUMENTS = 24  # inputs and outputs together
MOST_DIMENSIONS = 4  # of an argument
ROWS = -1  # stands for the number of states, the first dimension of all arguments of a batch

ADDRESSES = (
    "array", "float64", "float", "none", "new", "tuple", "set_item", "from_double", "incref", "decref",
    "alloc", "set_base",
)  # fmt: skip
"""Objects and functions of a process that the code finds in the description."""

WORDS = {
    "kernel": "ptr", "ws": "ptr", "nin": "i64", "nout": "i64", "most": "i64", "holder": "ptr", "owner": "ptr",
    **{f"at_{name}": "ptr" for name in ADDRESSES},
}  # fmt: skip
"""What a description begins with: what the code calls each word, and its type."""


@frozen
class Layout:
    """Where things lie in Python's objects."""

    type: int  # of an object's type [bytes from the object], as all offsets
    bytes: int  # of the content of bytes
    float: int  # of the double in a float
    slots: tuple[int, int]  # of the two slots of an object whose class has two
    # data, ndim, dims, descr, flags: of an array's fields
    data: int
    ndim: int
    dims: int
    descr: int
    flags: int
    readable: int  # flags of an array that can be read: C-contiguous and aligned
    writeable: int  # flags of one that can be written too


# In the texts below an address may be written as an element: ``ptr %a[i64 %k]`` is that of number %k at %a.
_ELEMENT = re.compile(r"ptr (%\w+)\[(\w+) ([^\]]+)\]")

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
{words}
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
  %w4 = mul i64 %k, {each}
  %w = add i64 %w4, {head}
  %pn = getelementptr i64, ptr %spec, i64 %w
  %n = load i64, ptr %pn
  %ob = load ptr, ptr %given[ptr %k]
  %type = load ptr, ptr %ob[i8 {layout.type}]
  %is_array = icmp eq ptr %type, %at_array
  br i1 %is_array, label %array, label %other
array:
  %descr = load ptr, ptr %ob[i8 {layout.descr}]
  %double = icmp eq ptr %descr, %at_float64
  %flags = load i32, ptr %ob[i8 {layout.flags}]
  %is_in = icmp ult i64 %k, %nin
  %want = select i1 %is_in, i32 {layout.readable}, i32 {layout.writeable}
  %have = and i32 %flags, %want
  %usable = icmp eq i32 %have, %want
  %nd32 = load i32, ptr %ob[i8 {layout.ndim}]
  %nd = zext i32 %nd32 to i64
  %same = icmp eq i64 %nd, %n
  %a1 = and i1 %double, %usable
  %a2 = and i1 %a1, %same
  br i1 %a2, label %shape, label %none
shape:
  %dims = load ptr, ptr %ob[i8 {layout.dims}]
  br label %axis
axis:
  %d = phi i64 [0, %shape], [%d1, %axis_ok]
  %axes_done = icmp eq i64 %d, %n
  br i1 %axes_done, label %data, label %axis_one
axis_one:
  %got = load i64, ptr %dims[i64 %d]
  %d1 = add i64 %d, 1
  %wanted = load i64, ptr %pn[i64 %d1]
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
  %from_array = load ptr, ptr %ob[i8 {layout.data}]
  br label %next
other:
  %is_float = icmp eq ptr %type, %at_float
  %o_in = icmp ult i64 %k, %nin
  %d0 = load i64, ptr %pn[i64 1]
  %single = icmp eq i64 %d0, 1
  %vector = icmp eq i64 %n, 1
  %o1 = and i1 %is_float, %o_in
  %o2 = and i1 %o1, %single
  %o3 = and i1 %o2, %vector
  %from_float = getelementptr i8, ptr %ob, i64 {layout.float}
  br i1 %o3, label %next, label %none
next:
  %address = phi ptr [%from_array, %data], [%from_float, %other]
  store ptr %address, ptr %pointers[ptr %k]
  store ptr %ob, ptr %objects[ptr %k]
  %rb = load i64, ptr %pn[i64 {row_bytes}]
  store i64 %rb, ptr %strides[i64 %k]
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
  %to_first = load i64, ptr %pointers[i64 %to]
  %to_row = load i64, ptr %strides[i64 %to]
  %to_bytes = mul i64 %to_row, %times
  %to_last = add i64 %to_first, %to_bytes
  br label %from_next
from_next:
  %from = phi i64 [0, %to_one], [%from1, %from_done]
  %from_end = icmp eq i64 %from, %to
  br i1 %from_end, label %to_done, label %from_one
from_one:
  %from_first = load i64, ptr %pointers[i64 %from]
  %from_row = load i64, ptr %strides[i64 %from]
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
  store i64 0, ptr %strides[i64 %all]
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
  %po = load ptr, ptr %args[ptr 1]
  %a = load double, ptr %pi
  %b = load double, ptr %pi[double 1]
  store double %b, ptr %po
  store double %a, ptr %po[double 1]
  %nan = fcmp uno double %a, %b
  %status = zext i1 %nan to i64
  ret i64 %status
}}
define i64 @probe_rows(ptr %args, ptr %strides, ptr %ws, i64 %first, i64 %end) nounwind {{
  %po = load ptr, ptr %args[ptr 1]
  %rows = sitofp i64 %end to double
  store double %rows, ptr %po
  ret i64 0
}}
"""


def entry_source(layout: Layout) -> str:
    """The module with @entry, and two kernels to try it on; it is the same in every process."""
    words = (
        f"  %{name} = load {kind}, ptr %spec{f'[i64 {k}]' if k else ''}"  # LLVM makes more code of element 0
        for k, (name, kind) in enumerate(WORDS.items())
    )
    text = "".join((_READ, _CHECK, _APART, MAKE, _RUN, ANSWER, DROP, _PROBES)).format(
        layout=layout,
        words="\n".join(words),
        most=MOST_ARGUMENTS,
        strides=MOST_ARGUMENTS + 1,
        head=len(WORDS),
        each=MOST_DIMENSIONS + 2,
        dimensions=MOST_DIMENSIONS,
        dimension_bytes=8 * MOST_DIMENSIONS,
        row_bytes=MOST_DIMENSIONS + 1,
        rows=ROWS,
        aligned_from=ALIGNED_FROM,
        line=LINE_BYTES,
        line_less=LINE_BYTES - 1,
    )
    lines = list[str]()
    for line in text.splitlines():
        found = _ELEMENT.search(line)
        if found:
            place = f"%place{len(lines)}"
            lines.append(f"  {place} = getelementptr {found[2]}, ptr {found[1]}, i64 {found[3]}")
            line = f"{line[: found.start()]}ptr {place}{line[found.end() :]}"
        lines.append(line)
    return "\n".join(lines) + "\n"


# -- What it returns -------------------------------------------------------------------------------------
#
# New arrays, answers, and the ways out where there is none.


ALIGNED_FROM = 1 << 17
"""Bytes from which on a new result of a batch begins at a cache line.

For a smaller one the second object that this takes costs more than it saves.
"""

# New arrays for outputs that were not given; a number is written to the stack and boxed later. A long
# result of a batch is a view of a block that is somewhat longer: rows are stored in aligned vectors then.
MAKE = """\
make_next:
  %m = phi i64 [%nin, %make], [%m1, %made]
  %all_made = icmp eq i64 %m, %all
  br i1 %all_made, label %run, label %make_one
make_one:
  %mw4 = mul i64 %m, {each}
  %mw = add i64 %mw4, {head}
  %pmn = getelementptr i64, ptr %spec, i64 %mw
  %mn = load i64, ptr %pmn
  %pm = getelementptr ptr, ptr %pointers, i64 %m
  %pmo = getelementptr ptr, ptr %objects, i64 %m
  %mrows = load i64, ptr %prows
  %mrb = load i64, ptr %pmn[i64 {row_bytes}]
  store i64 %mrb, ptr %strides[i64 %m]
  %is_number = icmp eq i64 %mn, 0
  br i1 %is_number, label %number, label %new
number:
  store ptr %numbers[double %m], ptr %pm
  store ptr null, ptr %pmo
  br label %made
new:
  %asked = getelementptr i64, ptr %pmn, i64 1
  call void @llvm.memcpy.inline.p0.p0.i64(ptr %newdims, ptr %asked, i64 {dimension_bytes}, i1 false)
  %asked0 = load i64, ptr %asked
  %open = icmp eq i64 %asked0, {rows}
  %dim0 = select i1 %open, i64 %mrows, i64 %asked0
  store i64 %dim0, ptr %newdims
  %mn32 = trunc i64 %mn to i32
  %mbytes = mul i64 %mrb, %mrows
  %is_long = icmp uge i64 %mbytes, {aligned_from}
  br i1 %is_long, label %new_block, label %new_short
new_block:
  %room = add i64 %mbytes, {line}
  %doubles = udiv i64 %room, 8
  store i64 %doubles, ptr %blockdims
  %block = call ptr %at_new(ptr %at_array, i32 1, ptr %blockdims,
    i32 12, ptr null, ptr null, i32 0, i32 0, ptr null)
  %no_block = icmp eq ptr %block, null
  br i1 %no_block, label %drop_error, label %new_view
new_view:
  %bdata = load i64, ptr %block[i8 {layout.data}]
  %over = add i64 %bdata, {line_less}
  %begin = and i64 %over, -{line}
  %vdata = inttoptr i64 %begin to ptr
  %view = call ptr %at_new(ptr %at_array, i32 %mn32, ptr %newdims,
    i32 12, ptr null, ptr %vdata, i32 0, i32 {layout.writeable}, ptr null)
  %no_view = icmp eq ptr %view, null
  br i1 %no_view, label %drop_block, label %hand_over
drop_block:
  call void %at_decref(ptr %block)
  br label %drop_error
hand_over:
  %unowned = call i32 %at_set_base(ptr %view, ptr %block)
  %is_owned = icmp eq i32 %unowned, 0
  br i1 %is_owned, label %new_made, label %drop_view
drop_view:
  call void %at_decref(ptr %view)
  br label %drop_error
new_short:
  %short = call ptr %at_new(ptr %at_array, i32 %mn32, ptr %newdims,
    i32 12, ptr null, ptr null, i32 0, i32 0, ptr null)
  br label %new_made
new_made:
  %object = phi ptr [%short, %new_short], [%view, %hand_over]
  store ptr %object, ptr %pmo
  %failed = icmp eq ptr %object, null
  br i1 %failed, label %drop_error, label %made_array
made_array:
  %mdata = load ptr, ptr %object[i8 {layout.data}]
  store ptr %mdata, ptr %pm
  br label %made
made:
  %m1 = add i64 %m, 1
  br label %make_next
"""

# The outputs as Python objects: one, a tuple, or one in a new object of the class that holds answers. Arrays
# that the caller gave get a reference more; new ones are handed over.
ANSWER = """
answer:
  %one_out = icmp eq i64 %nout, 1
  br i1 %one_out, label %wrap, label %tuple
tuple:
  %result = call ptr %at_tuple(i64 %nout)
  %no_tuple = icmp eq ptr %result, null
  br i1 %no_tuple, label %tuple_error, label %wrap
tuple_error:
  br i1 %full, label %null, label %drop_error
wrap:
  %filled = phi ptr [null, %answer], [%result, %tuple]
  br label %wrap_next
wrap_next:
  %r = phi i64 [0, %wrap], [%r1, %put]
  %ri = add i64 %nin, %r
  %ready = load ptr, ptr %objects[ptr %ri]
  %need_float = icmp eq ptr %ready, null
  br i1 %need_float, label %make_float, label %have_object
make_float:
  %v = load double, ptr %numbers[double %ri]
  %fob = call ptr %at_from_double(double %v)
  br label %item
have_object:
  br i1 %full, label %borrowed, label %item
borrowed:
  call void %at_incref(ptr %ready)
  br label %item
item:
  %value = phi ptr [%fob, %make_float], [%ready, %have_object], [%ready, %borrowed]
  br i1 %one_out, label %only, label %put
put:
  %ignored = call i32 %at_set_item(ptr %filled, i64 %r, ptr %value)
  %r1 = add i64 %r, 1
  %wrapped = icmp eq i64 %r1, %nout
  br i1 %wrapped, label %give, label %wrap_next
give:
  ret ptr %filled
only:
  %holds = icmp ne ptr %holder, null
  br i1 %holds, label %hold, label %bare
bare:
  ret ptr %value
hold:
  %held = call ptr %at_alloc(ptr %holder, i64 0)
  %no_held = icmp eq ptr %held, null
  br i1 %no_held, label %not_held, label %keep
not_held:
  call void %at_decref(ptr %value)
  ret ptr null
keep:
  store ptr %owner, ptr %held[i8 {layout.slots[0]}]
  call void %at_incref(ptr %owner)
  store ptr %value, ptr %held[i8 {layout.slots[1]}]
  ret ptr %held
"""

# Ways out. New arrays are released. None says that the call goes the slow way, NULL that Python has an error
# set.
DROP = """
drop_none:
  br label %drop
drop_error:
  %upto = phi i64 [%m, %new_made], [%m, %new_block], [%m, %drop_block], [%m, %drop_view], [%all, %tuple_error]
  br label %drop
drop:
  %error = phi i1 [false, %drop_none], [true, %drop_error]
  %end = phi i64 [%all, %drop_none], [%upto, %drop_error]
  br label %drop_next
drop_next:
  %x = phi i64 [%nin, %drop], [%x1, %dropped]
  %all_dropped = icmp eq i64 %x, %end
  br i1 %all_dropped, label %gone, label %drop_one
drop_one:
  %xo = load ptr, ptr %objects[ptr %x]
  call void %at_decref(ptr %xo)
  br label %dropped
dropped:
  %x1 = add i64 %x, 1
  br label %drop_next
gone:
  br i1 %error, label %null, label %none
null:
  ret ptr null
none:
  call void %at_incref(ptr %at_none)
  ret ptr %at_none
}}
"""


# -- Where things lie ------------------------------------------------------------------------------------
#
# Where things lie in the objects of CPython and NumPy, and whether that is true of this process.
#
# The code above reads and makes such objects at the places that are named here. They are those of 64-bit
# CPython with the GIL; nothing promises that they stay. So they are tried on live objects first: where one of
# the functions below says no, that machine code is not used.


LAYOUT = Layout(
    type=8,
    bytes=32,
    float=16,
    slots=(16, 24),
    data=ARRAY_DATA,
    ndim=24,
    dims=32,
    descr=56,
    flags=64,
    readable=0x101,
    writeable=0x501,
)

_PYARRAY_NEW, _PYARRAY_SET_BASE = 93, 282  # their places in NumPy's table of C functions
_ABI_VERSIONS = (1, 2)  # of NumPy, whose arrays are alike


def layout_is_known() -> bool:
    """Look at live objects through the offsets that the machine code will use."""
    if (
        sys.implementation.name != "cpython"
        or sys.byteorder != "little"
        or ctypes.sizeof(ctypes.c_void_p) != 8
        or sysconfig.get_config_var("Py_GIL_DISABLED")
        or object.__basicsize__ != LAYOUT.type + 8
        or bytes.__basicsize__ != LAYOUT.bytes + 1
        or np.ndarray.__basicsize__ < LAYOUT.flags + 8
    ):
        return False
    some = b"eight or more"
    number = 1.25
    if (
        ctypes.string_at(id(some) + LAYOUT.bytes, len(some)) != some
        or _at(number, LAYOUT.type) != id(float)
        or ctypes.c_double.from_address(id(number) + LAYOUT.float).value != number
    ):
        return False
    read_only = np.arange(5.0)
    read_only.flags.writeable = False
    arrays = (np.zeros(7), np.zeros((3, 4)), np.zeros((3, 4, 5))[:, ::2], np.zeros((2, 3)).T, read_only)
    return all(map(_array_is_known, arrays))


def _at(some: Any, offset: int, kind: Any = ctypes.c_int64) -> int:
    """The whole number that lies in an object at an offset."""
    value: int = kind.from_address(id(some) + offset).value
    return value


def _array_is_known(a: np.ndarray) -> bool:
    flags = a.flags.c_contiguous * 0x1 + a.flags.aligned * 0x100 + a.flags.writeable * 0x400
    return (
        _at(a, LAYOUT.type) == id(np.ndarray)
        and _at(a, LAYOUT.data) == a.__array_interface__["data"][0]
        and _at(a, LAYOUT.ndim, ctypes.c_int32) == a.ndim
        and _at(a, LAYOUT.descr) == id(np.dtype(np.float64))
        and _at(a, LAYOUT.flags, ctypes.c_int32) & LAYOUT.writeable == flags
        and tuple((ctypes.c_int64 * a.ndim).from_address(_at(a, LAYOUT.dims))) == a.shape
    )


def can_hold(holder: type) -> bool:
    """Look whether the machine code may make objects of a class with two slots, and where it expects them."""
    slots = holder.__dict__.get("__slots__", ())
    if holder.__basicsize__ != LAYOUT.slots[1] + 8 or len(slots) != 2:
        return False
    some: Any = object.__new__(holder)
    values = object(), object()
    for name, value in zip(slots, values, strict=True):
        setattr(some, name, value)
    return all(_at(some, place) == id(value) for place, value in zip(LAYOUT.slots, values, strict=True))


def python_addresses() -> list[int]:
    """Where the machine code's :data:`ADDRESSES` are in this process.

    Raises ImportError, AttributeError, ValueError: NumPy's functions are not where they should be.
    """
    api = ctypes.pythonapi
    functions = {
        "tuple": api.PyTuple_New,
        "set_item": api.PyTuple_SetItem,
        "from_double": api.PyFloat_FromDouble,
        "incref": api.Py_IncRef,
        "decref": api.Py_DecRef,
        "alloc": api.PyType_GenericAlloc,
    }
    found = {name: ctypes.cast(function, ctypes.c_void_p).value or 0 for name, function in functions.items()}
    objects = {"array": np.ndarray, "float64": np.dtype(np.float64), "float": float, "none": None}
    found |= {name: id(some) for name, some in objects.items()}
    core = "numpy._core" if int(np.__version__.split(".")[0]) >= 2 else "numpy.core"
    capsule = importlib.import_module(f"{core}._multiarray_umath")._ARRAY_API
    get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    table = ctypes.cast(get(capsule, None), ctypes.POINTER(ctypes.c_size_t))
    if table[2] != id(np.ndarray):
        raise ValueError("unknown table")
    version = ctypes.CFUNCTYPE(ctypes.c_uint)(table[0])()
    if version >> 24 not in _ABI_VERSIONS:
        raise ValueError(f"unknown ABI {version:#x}")
    found |= {"new": table[_PYARRAY_NEW], "set_base": table[_PYARRAY_SET_BASE]}
    return [found[name] for name in ADDRESSES]


# -- Builtins -------------------------------------------------------------------------------------------

Shapes = Sequence[tuple[int, ...]]
Held = tuple[type, Any] | None  # a class, and what its first slot holds


class _MethodDef(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def fast_call(
    kernel: int,
    workspace: int,
    inputs: Sequence[int],
    outputs: Shapes,
    keep: Any,
    rows: int = 0,
    held: Held = None,
) -> Callable[..., Any]:
    """A function that runs a kernel on NumPy arrays, or returns None.

    Args:
        kernel: address of its single driver.
        workspace: address of its workspace.
        inputs: scalars of each input.
        outputs: shape of each output.
        keep: object that owns the code and the workspace.
        rows: 0 for a single driver; else the kernel is a batch driver, and takes at most so many states.
        held: a class with two slots and an object: the only output is returned in a new instance, in the
            second slot, with the object in the first; what cannot be done so is declined.
    """
    states = (ROWS,) if rows else ()
    shapes = [(*states, size) for size in inputs] + [(*states, *shape) for shape in outputs]
    if held and not (len(outputs) == 1 and can_hold(held[0])):
        return declined
    if len(shapes) <= MOST_ARGUMENTS and all(len(s) <= MOST_DIMENSIONS for s in shapes) and outputs:
        make = _shim()
        if make is not None:
            return make(kernel, workspace, len(inputs), shapes, keep, rows, held)
    return declined if held or rows else _slow_call(kernel, inputs, outputs, keep)


def declined(*arguments: Any) -> None:
    """Stands for a fast call where there is none."""


def _slow_call(kernel: int, inputs: Sequence[int], outputs: Shapes, keep: Any) -> Callable[..., Any]:
    """The same through ctypes: some microseconds a call."""
    run = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)(kernel)
    shapes = [(size,) for size in inputs] + list(outputs)
    size = keep.workspace

    def call(*arguments: Any) -> Any:
        made = len(arguments) == len(inputs)
        if made:
            arguments = (*arguments, *map(np.empty, outputs))
        if len(arguments) != len(shapes):
            return None
        for k, (a, shape) in enumerate(zip(arguments, shapes, strict=True)):
            if type(a) is not np.ndarray or a.dtype != np.float64 or a.shape != shape:
                return None
            if not (a.flags.c_contiguous and a.flags.aligned and (k < len(inputs) or a.flags.writeable)):
                return None
            if k >= len(inputs) and not made and any(np.may_share_memory(a, b) for b in arguments[:k]):
                return None
        addresses = (ctypes.c_void_p * len(shapes))(*map(address, arguments))
        memory = aligned(size)  # of its own: here no GIL need be held
        if run(ctypes.addressof(addresses), address(memory)):
            return None
        results = tuple(float(a) if made and not a.ndim else a for a in arguments[len(inputs) :])
        return results[0] if len(results) == 1 else results

    call.keep = keep  # type: ignore[attr-defined]
    return call


class _Module(str):
    """The name of a builtin's module, its ``__module__``; it keeps alive what the builtin needs."""

    def __new__(cls, name: str, needs: Any) -> _Module:
        made = super().__new__(cls, name)
        made.needs = needs
        return made

    needs: Any


@functools.cache
def _shim() -> Callable[..., Any] | None:
    """The maker of builtins, or None where objects are not laid out as the machine code expects."""
    if not layout_is_known():
        return None
    try:
        text, addresses = entry_source(LAYOUT), python_addresses()
        code = code_of(text, {"kernel": "call from Python"})
    except (CompilerMissing, AttributeError, ImportError, ValueError):
        return None
    api = ctypes.pythonapi
    method = _MethodDef(b"kernel", code.address("entry"), 0x80, None)
    new_function = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.py_object)(
        ("PyCFunction_NewEx", api)
    )
    # At interpreter exit builtins may outlive this module, and they read both: never freed, on purpose.
    for kept in (method, code):
        api.Py_IncRef(ctypes.py_object(kept))

    def make(kernel: int, memory: int, inputs: int, shapes: Shapes, keep: Any, rows: int, held: Held) -> Any:
        holder = map(id, held) if held else (0, 0)
        words = [kernel, memory, inputs, len(shapes) - inputs, rows, *holder, *addresses]
        for shape in shapes:
            row = 8 * math.prod(shape[1:] if rows else shape)
            words += [len(shape), *shape, *[0] * (MOST_DIMENSIONS - len(shape)), row]
        spec = np.array(words, dtype=np.int64).tobytes()
        return new_function(ctypes.addressof(method), spec, _Module(__name__, (keep, held)))

    for_one = make(code.address("probe"), 0, 1, [(2,), (2,)], code, 0, None)
    for_rows = make(code.address("probe_rows"), 0, 1, [(ROWS,), (ROWS, ALIGNED_FROM // 8)], code, 2, None)
    return make if _works(for_one) and _works_for_rows(for_rows) else None


def _works(swap: Callable[..., Any]) -> bool:
    """Try the machine code: it swaps two numbers and refuses NaN."""
    array = np.array([3.0, 4.0])
    out = np.zeros(2)
    fresh = swap(array)
    return (
        isinstance(fresh, np.ndarray)
        and fresh.dtype == np.float64
        and fresh.tolist() == [4.0, 3.0]
        and fresh.flags.owndata
        and swap(array, out) is out
        and out.tolist() == [4.0, 3.0]
        and swap(np.array([math.nan, 1.0])) is None
        and swap([3.0, 4.0]) is None
        and swap(np.zeros(3)) is None
        and swap(np.zeros(2, np.float32)) is None
        and swap(np.zeros(4)[::2]) is None
        and swap() is None
    )


def _works_for_rows(count: Callable[..., Any]) -> bool:
    """Try it on a batch, whose result is long enough to be aligned: a view of a block that it keeps alive."""
    fresh = count(np.zeros(2))
    return (
        isinstance(fresh, np.ndarray)
        and fresh.shape == (2, ALIGNED_FROM // 8)
        and fresh.flags.carray
        and address(fresh) % LINE_BYTES == 0
        and type(fresh.base) is np.ndarray
        and fresh.base.flags.owndata
        and fresh[0, 0] == 2
        and count(np.zeros(3)) is None
    )
