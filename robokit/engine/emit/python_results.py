"""What the builtin function returns, as LLVM IR: new arrays, answers, and the ways out where there is none.

These are parts of the function that python_entry.py writes, in the same terms.
"""

from __future__ import annotations

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
  %mw4 = mul i64 %m, {words}
  %mw = add i64 %mw4, {head}
  %pmn = getelementptr i64, ptr %spec, i64 %mw
  %mn = load i64, ptr %pmn
  %pm = getelementptr ptr, ptr %pointers, i64 %m
  %pmo = getelementptr ptr, ptr %objects, i64 %m
  %mrows = load i64, ptr %prows
  %mprb = getelementptr i64, ptr %pmn, i64 {row_bytes}
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
  %pbdata = getelementptr i8, ptr %block, i64 {layout.data}
  %bdata = load i64, ptr %pbdata
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
  %pmdata = getelementptr i8, ptr %object, i64 {layout.data}
  %mdata = load ptr, ptr %pmdata
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
  %powner = getelementptr i8, ptr %held, i64 {layout.slots[0]}
  store ptr %owner, ptr %powner
  call void %at_incref(ptr %owner)
  %pvalue = getelementptr i8, ptr %held, i64 {layout.slots[1]}
  store ptr %value, ptr %pvalue
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
"""
