"""Writes LLVM IR, as text, and C.

ir              vocabulary that all emitters share, and their settings
straight_line   chunks: straight lines of operations
call_code       the same with calls of shared texts, also for columns in the lanes of vectors
pair_code       the same where some values have two lanes
chunk_code      a program's chunks, by one of these
repeat_code     repeated iterations and their table
sincos          sine and cosine
single_module   the module of one state
batch_module    the module of many states
wasm_code       WebAssembly in bytes: instructions, functions, modules
wasm_module     a program as its functions
wasm_sines      sine and cosine in it
c_source        functions in C
c_sines         sine and cosine in them
tile            what the stages of a batch share
read_rows       rows of arrays become vectors of lanes
write_rows      vectors of lanes become rows of arrays
aligned_stores  long outputs, in aligned vectors and past the caches
paired_rows     the loop over their columns that takes fewest shuffles
next_pass       what a step of a rollout hands to the next one
rollout_driver  many steps of many states
tape_module     the interpreter of listed programs
python_entry    the builtin function that Python calls
python_results  the new arrays that it returns
"""
