"""Kernels on NVIDIA cards: one state a thread, numbers of all states side by side in memory.

driver         the CUDA driver by ctypes: cards, code, launches, memory; programs and their rollouts
assemble       from LLVM IR to code of a card: PTX, ptxas and nvlink, part by part at the same time
straight_code  a recorded program as LLVM IR for a card: one state a thread, or a team of warps for 32 states
loop_code      functions with loops as LLVM IR for a card
loops          such a kernel on a card, its modules, and the memory of its states
arrays         those of PyTorch, CuPy and JAX on a card, and memory of a card for these; launches in JAX
"""
