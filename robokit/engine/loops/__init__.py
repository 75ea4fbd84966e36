"""Loops, conditions and arrays in what the engine records: functions of run-time sizes, compiled once.

record   the graph of a function with loops: regions of operations; integers, arrays
recorder what loops, conditions and calls do while it is recorded
uniform  which values are the same in all lanes
emit     writes the regions as LLVM IR, for one state or for lanes
linked   calls of other compiled kernels, through a table that is given when the code runs
rows     the functions that callers see: rows of batches to lanes and back
environment  what machine code works with: memory in lanes, workspace, the table of other kernels
code_on_disk  where machine code is kept: by its text, or by the source that the text is made from
runs     rows and steps of such a kernel, on several threads
live     what of a recording is needed, for what no optimizer comes after:
c_source the regions as C99
wasm     the regions as WebAssembly
counts   operations and workspace for given arguments
dual     derivatives: the same functions over pairs of a value and a derivative
kernel   such a function in every way to run it
known    kernels for given sizes and contents: what follows from these is a straight line
fields   kernels of many arrays: the function takes one namespace of them
recorded_once  functions of users, which run once, are played back: as a straight line, or with loops
flat_kernel  the machine code of a function of a user that has loops
"""
