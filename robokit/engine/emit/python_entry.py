"""The body of every kernel's builtin, as LLVM IR, and what it must know of Python's and NumPy's objects.

The layout of NumPy's arrays is part of its ABI and the same in NumPy 1.x and 2.x; it is tried on live
arrays all the same before it is trusted. The code holds no address of its process: those come with the
description of the kernel, so that the code can be kept on disk.
"""

from __future__ import annotations

import ctypes
import importlib
import sys
import sysconfig
from typing import Any

import numpy as np

MOST_ARGUMENTS = 24
MOST_DIMENSIONS = 4
FIRST_WORDS = 7
"""Words of a description before the addresses."""

ROWS = -1
"""Stands for the number of states, the first dimension of all arguments of a batch."""

# Offsets in PyObject and PyArrayObject of 64-bit CPython with the GIL.
_TYPE, _DATA, _NDIM, _DIMS, _DESCR, _FLAGS = 8, 16, 24, 32, 56, 64
_BYTES = 32
_FLOAT = 16
_SLOTS = (16, 24)
_READABLE, _WRITEABLE = 0x101, 0x501  # C contiguous, aligned; and writeable

_TEXT = """
declare void @llvm.memcpy.inline.p0.p0.i64(ptr, ptr, i64, i1)
define ptr @entry(ptr %self, ptr %given, i64 %count) nounwind {{
entry:
  %spec = getelementptr i8, ptr %self, i64 {BYTES}
  %pointers = alloca [{MOST} x ptr]
  %objects = alloca [{MOST} x ptr]
  %numbers = alloca [{MOST} x double]
  %strides = alloca [{STRIDES} x i64]
  %newdims = alloca [{DIMENSIONS} x i64]
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

check:
  %k = phi i64 [0, %entry], [%k1, %next]
  %checked = icmp eq i64 %k, %count
  br i1 %checked, label %make, label %one
one:
  %w4 = mul i64 %k, {WORDS}
  %w = add i64 %w4, {HEAD}
  %pn = getelementptr i64, ptr %spec, i64 %w
  %n = load i64, ptr %pn
  %pob = getelementptr ptr, ptr %given, i64 %k
  %ob = load ptr, ptr %pob
  %pt = getelementptr i8, ptr %ob, i64 {TYPE}
  %type = load ptr, ptr %pt
  %is_array = icmp eq ptr %type, %at_array
  br i1 %is_array, label %array, label %other
array:
  %pd = getelementptr i8, ptr %ob, i64 {DESCR}
  %descr = load ptr, ptr %pd
  %double = icmp eq ptr %descr, %at_float64
  %pf = getelementptr i8, ptr %ob, i64 {FLAGS}
  %flags = load i32, ptr %pf
  %is_in = icmp ult i64 %k, %nin
  %want = select i1 %is_in, i32 {READABLE}, i32 {WRITEABLE}
  %have = and i32 %flags, %want
  %usable = icmp eq i32 %have, %want
  %pnd = getelementptr i8, ptr %ob, i64 {NDIM}
  %nd32 = load i32, ptr %pnd
  %nd = zext i32 %nd32 to i64
  %same = icmp eq i64 %nd, %n
  %a1 = and i1 %double, %usable
  %a2 = and i1 %a1, %same
  br i1 %a2, label %shape, label %none
shape:
  %pdims = getelementptr i8, ptr %ob, i64 {DIMS}
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
  %is_rows = icmp eq i64 %wanted, {ROWS}
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
  %pdata = getelementptr i8, ptr %ob, i64 {DATA}
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
  %from_float = getelementptr i8, ptr %ob, i64 {FLOAT}
  br i1 %o3, label %next, label %none
next:
  %address = phi ptr [%from_array, %data], [%from_float, %other]
  %pp = getelementptr ptr, ptr %pointers, i64 %k
  store ptr %address, ptr %pp
  %po = getelementptr ptr, ptr %objects, i64 %k
  store ptr %ob, ptr %po
  %prb = getelementptr i64, ptr %pn, i64 {ROW_BYTES}
  %rb = load i64, ptr %prb
  %pst = getelementptr i64, ptr %strides, i64 %k
  store i64 %rb, ptr %pst
  %k1 = add i64 %k, 1
  br label %check

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
  %from_end = icmp eq i64 %from, %nin
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
make_next:
  %m = phi i64 [%nin, %make], [%m1, %made]
  %all_made = icmp eq i64 %m, %all
  br i1 %all_made, label %run, label %make_one
make_one:
  %mw4 = mul i64 %m, {WORDS}
  %mw = add i64 %mw4, {HEAD}
  %pmn = getelementptr i64, ptr %spec, i64 %mw
  %mn = load i64, ptr %pmn
  %pm = getelementptr ptr, ptr %pointers, i64 %m
  %pmo = getelementptr ptr, ptr %objects, i64 %m
  %mrows = load i64, ptr %prows
  %mprb = getelementptr i64, ptr %pmn, i64 {ROW_BYTES}
  %mrb = load i64, ptr %mprb
  %mpst = getelementptr i64, ptr %strides, i64 %m
  store i64 %mrb, ptr %mpst
  %is_number = icmp eq i64 %mn, 0
  br i1 %is_number, label %number, label %new
number:
  %px = getelementptr double, ptr %numbers, i64 %m
  store ptr %px, ptr %pm
  store ptr null, ptr %pmo
  br label %made
new:
  %asked = getelementptr i64, ptr %pmn, i64 1
  call void @llvm.memcpy.inline.p0.p0.i64(ptr %newdims, ptr %asked, i64 {DIMENSION_BYTES}, i1 false)
  %asked0 = load i64, ptr %asked
  %open = icmp eq i64 %asked0, {ROWS}
  %dim0 = select i1 %open, i64 %mrows, i64 %asked0
  store i64 %dim0, ptr %newdims
  %mn32 = trunc i64 %mn to i32
  %object = call ptr %at_new(ptr %at_array, i32 %mn32, ptr %newdims,
    i32 12, ptr null, ptr null, i32 0, i32 0, ptr null)
  store ptr %object, ptr %pmo
  %failed = icmp eq ptr %object, null
  br i1 %failed, label %drop_error, label %made_array
made_array:
  %pmdata = getelementptr i8, ptr %object, i64 {DATA}
  %mdata = load ptr, ptr %pmdata
  store ptr %mdata, ptr %pm
  br label %made
made:
  %m1 = add i64 %m, 1
  br label %make_next

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
  %pro = getelementptr ptr, ptr %objects, i64 %ri
  %ready = load ptr, ptr %pro
  %need_float = icmp eq ptr %ready, null
  br i1 %need_float, label %make_float, label %have_object
make_float:
  %pv = getelementptr double, ptr %numbers, i64 %ri
  %v = load double, ptr %pv
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
  %powner = getelementptr i8, ptr %held, i64 {FIRST}
  store ptr %owner, ptr %powner
  call void %at_incref(ptr %owner)
  %pvalue = getelementptr i8, ptr %held, i64 {SECOND}
  store ptr %value, ptr %pvalue
  ret ptr %held

drop_none:
  br label %drop
drop_error:
  %upto = phi i64 [%m, %new], [%all, %tuple_error]
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
  %pxo = getelementptr ptr, ptr %objects, i64 %x
  %xo = load ptr, ptr %pxo
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
"""


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
)
"""Objects and functions of this process that the code finds in its spec."""


def text() -> str:
    """The module with @entry, and with @probe, a kernel to try it on; it is the same in every process."""
    loads = []
    for k, name in enumerate(ADDRESSES):
        loads.append(f"  %pat_{name} = getelementptr i64, ptr %spec, i64 {FIRST_WORDS + k}")
        loads.append(f"  %at_{name} = load ptr, ptr %pat_{name}")
    return _TEXT.format(
        MOST=MOST_ARGUMENTS,
        STRIDES=MOST_ARGUMENTS + 1,
        HEAD=FIRST_WORDS + len(ADDRESSES),
        addresses="\n".join(loads),
        TYPE=_TYPE,
        DATA=_DATA,
        NDIM=_NDIM,
        DIMS=_DIMS,
        DESCR=_DESCR,
        FLAGS=_FLAGS,
        BYTES=_BYTES,
        FLOAT=_FLOAT,
        FIRST=_SLOTS[0],
        SECOND=_SLOTS[1],
        DIMENSIONS=MOST_DIMENSIONS,
        DIMENSION_BYTES=8 * MOST_DIMENSIONS,
        WORDS=MOST_DIMENSIONS + 2,
        ROW_BYTES=MOST_DIMENSIONS + 1,
        ROWS=ROWS,
        READABLE=_READABLE,
        WRITEABLE=_WRITEABLE,
    )


def addresses() -> list[int]:
    """Where :data:`ADDRESSES` are in this process.

    Raises:
        ImportError, AttributeError, ValueError: NumPy's functions are not where they should be.
    """
    api = ctypes.pythonapi
    functions = (
        api.PyTuple_New,
        api.PyTuple_SetItem,
        api.PyFloat_FromDouble,
        api.Py_IncRef,
        api.Py_DecRef,
        api.PyType_GenericAlloc,
    )
    objects = (np.ndarray, np.dtype(np.float64), float, None)
    found = [ctypes.cast(function, ctypes.c_void_p).value or 0 for function in functions]
    return [*map(id, objects), _numpy_api()[93], *found]


def layout_is_known() -> bool:
    """Look at live objects through the offsets that the machine code will use."""
    if (
        sys.implementation.name != "cpython"
        or sys.byteorder != "little"
        or ctypes.sizeof(ctypes.c_void_p) != 8
        or sysconfig.get_config_var("Py_GIL_DISABLED")
        or object.__basicsize__ != 16
        or bytes.__basicsize__ != _BYTES + 1
        or np.ndarray.__basicsize__ < _FLAGS + 8
    ):
        return False

    def word(ob: Any, offset: int, kind: Any = ctypes.c_int64) -> int:
        return kind.from_address(id(ob) + offset).value

    some = b"eight or more"
    if ctypes.string_at(id(some) + _BYTES, len(some)) != some:
        return False
    number = 1.25
    if word(number, _TYPE) != id(float) or ctypes.c_double.from_address(id(number) + _FLOAT).value != number:
        return False
    read_only = np.arange(5.0)
    read_only.flags.writeable = False
    for a in (np.zeros(7), np.zeros((3, 4)), np.zeros((3, 4, 5))[:, ::2], np.zeros((2, 3)).T, read_only):
        if (
            word(a, _TYPE) != id(np.ndarray)
            or word(a, _DATA) != a.__array_interface__["data"][0]
            or word(a, _NDIM, ctypes.c_int32) != a.ndim
            or word(a, _DESCR) != id(np.dtype(np.float64))
            or word(a, _FLAGS, ctypes.c_int32) & 0x501
            != a.flags.c_contiguous * 1 + a.flags.aligned * 0x100 + a.flags.writeable * 0x400
            or tuple((ctypes.c_int64 * a.ndim).from_address(word(a, _DIMS))) != a.shape
        ):
            return False
    return True


def can_hold(holder: type) -> bool:
    """Look whether the machine code may make objects of a class with two slots, and where it expects them."""
    slots = holder.__dict__.get("__slots__", ())
    if holder.__basicsize__ != _SLOTS[1] + 8 or len(slots) != 2:
        return False
    some: Any = object.__new__(holder)
    values = object(), object()
    for name, value in zip(slots, values, strict=True):
        setattr(some, name, value)
    return all(
        ctypes.c_int64.from_address(id(some) + place).value == id(value)
        for place, value in zip(_SLOTS, values, strict=True)
    )


def _numpy_api() -> Any:
    """NumPy's table of C functions.

    Raises:
        ImportError, AttributeError, ValueError: not there, or of an unknown ABI.
    """
    core = "numpy._core" if int(np.__version__.split(".")[0]) >= 2 else "numpy.core"
    capsule = importlib.import_module(f"{core}._multiarray_umath")._ARRAY_API
    get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    table = ctypes.cast(get(capsule, None), ctypes.POINTER(ctypes.c_size_t))
    if table[2] != id(np.ndarray):
        raise ValueError("unknown table")
    version = ctypes.CFUNCTYPE(ctypes.c_uint)(table[0])()
    if version >> 24 not in (1, 2):
        raise ValueError(f"unknown ABI {version:#x}")
    return table
