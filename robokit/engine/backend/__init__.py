"""What code is made for, and the way from LLVM IR to machine code that runs.

targets    what a target is, and those that run in this process
llvm       LLVM through llvmlite's binding: modules divided, compiled by threads, kept on disk, loaded
wasm       WebAssembly: modules that a browser loads
"""
