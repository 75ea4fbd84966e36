"""Loops, conditions and arrays in what the engine records: functions of run-time sizes, compiled once.

record     records a function with loops: regions of operations, integers, arrays
arguments  the arrays that a kernel takes
uniform    which values are the same in all lanes
emit       writes the regions as LLVM IR, for one state or for lanes
rows       the functions that callers see: rows of batches to lanes and back
live       what of a recording is needed, for what no optimizer comes after:
c_source   the regions as C99
wasm       the regions as WebAssembly
counts     operations and workspace for given arguments
kernel     such a function in every way to run it
dual       derivatives: the same functions over pairs of a value and a derivative
played     a recording played back over other scalars
recorded_once  texts of users, which run once: as a straight line, or with loops
flat_kernel  the machine code of a text of a user that has loops
forward    its derivatives
"""
