"""The engine: records what an algorithm's text computes and runs it as machine code.

    trace      scalars that record           graph      the recorded operations
    schedule   chunks and their memory       chunks     straight lines as LLVM IR
    steps      repeated iterations, planned  step_code  and written
    single     one state: checks, iteration  tiles      batches of states
    rows       rows to lanes and back        entry      the builtin's machine code
    text       words of LLVM IR              sincos     sine and cosine
    fuse       products into sums            shares     one module as several
    compile    IR to machine code            link       objects to an image that runs
    processor  what it can do                cache      machine code on disk
    call       single states                 batch      many states, threads
    passes     many steps of many states     rollout    the same from Python: threads, records
    pour       long rows, past the caches
    arguments  checks that explain           make       the way from a text to its code
    kernel     all of it together

The engine knows no robots: it sees a text, the sizes of its inputs and outputs, and a key.
"""

from robokit.engine.kernel import Bound, Kernel, NotFinite
from robokit.engine.maker import ENGINES

__all__ = ["ENGINES", "Bound", "Kernel", "NotFinite"]
