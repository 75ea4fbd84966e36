"""Writes LLVM IR and machine code of first calls; WebAssembly in bytes.

ir             vocabulary that all emitters share, and their settings; sine and cosine
straight_line  straight lines of operations: chunks, calls, columns and pairs in lanes, loops over a table
machine_code   the same lines as machine code for x86-64: its instructions, functions
rows           rows of arrays become vectors of lanes, and back
single_module  the module of one state
batch_module   the module of many states, and of many steps of them
wasm           WebAssembly in bytes: instructions, functions, modules
"""
