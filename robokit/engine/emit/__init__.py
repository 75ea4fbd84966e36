"""LLVM IR, as text.

ir              words that all emitters share
straight_line   chunks
repeat_code     repeated iterations and their table
sincos          sine and cosine
single_module   one state
batch_module    many states
lanes           rows become vectors of lanes, and back
aligned_stores  long outputs, past the caches
rollout_driver  many steps of many states
python_entry    the builtin function that Python calls
"""
