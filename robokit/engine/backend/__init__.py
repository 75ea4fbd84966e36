"""What code is made for, and the way from LLVM IR to machine code that runs.

targets    what a target is: this process, a browser
llvm       LLVM through llvmlite's binding: modules divided, compiled by threads, kept on disk, loaded
"""
