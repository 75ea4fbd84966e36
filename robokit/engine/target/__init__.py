"""From IR to code that runs on this processor.

llvm     LLVM through llvmlite's binding
workers  threads that enter LLVM
split    one module as several, compiled side by side
elf      object files to an image in memory
cpu      what the processor can do
"""
