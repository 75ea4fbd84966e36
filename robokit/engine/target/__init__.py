"""What code is made for, and the way from LLVM IR to machine code that runs.

target     what a target is: how a kernel is written, compiled and loaded
host       the targets that run in this process
wasm       WebAssembly: modules that a browser loads
llvm       LLVM through llvmlite's binding
workers    threads that enter LLVM
split      one module as several, compiled side by side
elf        object files to an image in memory
cpu        what the processor can do
"""
