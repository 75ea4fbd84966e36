"""The engine: records what an algorithm's text computes, and runs it as machine code.

trace/     records a text: the operations, the graph, the scalars that record
passes/    works on the graph: multiply-adds, chunks, calls, superwords, derivatives
emit/      writes the graph as LLVM IR: one state, batches, rollouts; C and WebAssembly
target/    what code is made for, and the way from IR to machine code in memory
run/       calls machine code from Python: the builtin function, one state, batches, rollouts

memory       aligned arrays, and a pool of buffers for large results
signature    what a kernel takes and returns
reproducible outputs that are the same bits on every target
maker        the way from a text to its code, by way of the cache on disk
kernel       all of it together: a text in every way to run it

The engine knows no robots: it sees a text, the sizes of its inputs and outputs, and a key. A text is a
function of scalars: it is called with a list of numbers for each input and returns a list for each output.
"""

from robokit.engine import memory as kept_memory  # noqa: F401  (set_limit is public under this name)
from robokit.engine.kernel import Bound, Kernel, NotFinite
from robokit.engine.maker import ENGINES

__all__ = ["ENGINES", "Bound", "Kernel", "NotFinite"]
