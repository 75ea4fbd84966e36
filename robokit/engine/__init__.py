"""The engine: records what a function of numbers computes, and runs it as machine code. README.md shows it.

trace/     records a function: the operations, the graph, the scalars that record
passes/    works on the graph: multiply-adds, chunks, calls, superwords, derivatives
emit/      writes the graph as LLVM IR: one state, batches, rollouts
backend/   what code is made for, and the way from IR to machine code in memory
loops/     loops, conditions and arrays in recorded functions, whose sizes are known only at run time; what is
           recorded as C and WebAssembly
cuda/      kernels on NVIDIA cards: PTX, ptxas, the driver

memory       aligned arrays, and a pool of buffers for large results
signature    what a kernel takes and returns
single_calls one state: the builtin function that Python calls
batch_calls  many states, through many steps, on several threads
reproducible outputs that are the same bits on every target
maker        the way from a function to its code, by way of the cache on disk
kernel       all of it together: a function in every way to run it

The engine knows no robots: it sees a function of scalars (*function*), the sizes of its inputs and
outputs, and a key. The function is called with a list of numbers for each input and returns a list for each
output.
"""

from robokit.engine.kernel import Bound, Kernel, NotFinite
from robokit.engine.maker import ENGINES

__all__ = ["ENGINES", "Bound", "Kernel", "NotFinite"]
