"""What code is made for, and the way from LLVM IR to machine code that runs.

targets    what a target is, and those that run in this process
llvm       LLVM through llvmlite's binding: modules divided, compiled by threads, loaded
elf        object files to an image in memory
cpu        what the processor can do
wasm       WebAssembly: modules that a browser loads
"""
