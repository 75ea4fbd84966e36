"""Kernels on NVIDIA cards: one state a thread, numbers of all states side by side in memory.

driver      the CUDA driver by ctypes: cards, memory, code, launches
assemble    from LLVM IR to code of a card: PTX, ptxas and nvlink, part by part at the same time
flat_code   a recorded program as LLVM IR for a card: one state a thread
team_code   a long one for small batches: a team of warps for 32 states
target      how kernels are written, assembled and kept on disk for a card
launch      a kernel on one card, called with pointers
memory      arrays that streams use one after the other
loop_code   functions with loops as LLVM IR for a card
loop_modules  modules of these: what launches call, copies of columns
loops       such a kernel on a card, and the memory of its states
looped      a function with loops, called likewise
arrays      those of PyTorch, CuPy and JAX on a card
views       memory of a card as an array that these take
rollout     many steps of a recorded kernel, whose states stay on the card
xla         launches inside compiled programs of JAX
"""
