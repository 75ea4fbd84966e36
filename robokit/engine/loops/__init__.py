"""Loops, conditions and arrays in what the engine records: functions of run-time sizes, compiled once.

record   the graph of a function with loops: regions of operations, integers, arrays; how it is recorded
analysis what is needed of a recording, and what is the same in all lanes
interpret  a recording done again, on other arrays; what it takes for given arguments
emit     writes the regions as LLVM IR, for one state or for lanes, and the functions that callers see
environment  what machine code works with: memory in lanes, workspace, other kernels and their calls
straight a straight line as regions: what C and WebAssembly are written from
c_source the regions as C99
wasm     the regions as WebAssembly, and straight lines for a browser
dual     derivatives: the same functions over pairs of a value and a derivative
kernel   such a function in every way to run it: one state, rows, steps; its code on disk
fields   kernels of many arrays, as one namespace; kernels for given sizes and contents
recorded_once  functions of users, which run once, are replayed: as straight lines or loops
"""
