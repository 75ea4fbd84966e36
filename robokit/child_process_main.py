"""The program of a child of :mod:`robokit.child_process`: it answers within bounds of time and memory.

It imports nothing but the standard library and starts in a few hundredths of a second. What answers, a
function ``answer`` of a file, is named by the first message. Messages are pickles, each after its length.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pickle
import struct
import sys
import sysconfig
from typing import IO, Any

LENGTH = struct.Struct("<Q")

Message = tuple[str, Any]  # ("answer", what was asked for), ("memory", "") or ("error", text)


def read(stream: IO[bytes], most: int | None = None) -> bytes:
    """The next message.

    Raises:
        EOFError: the other process has ended.
        ValueError: it is longer than ``most`` bytes.
    """
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        raise EOFError
    (size,) = LENGTH.unpack(head)
    if most is not None and size > most:
        raise ValueError(f"an answer of {size} bytes; at most {most} are read")
    data = stream.read(size)
    if len(data) < size:
        raise EOFError
    return data


def write(stream: IO[bytes], data: bytes) -> None:
    """Send a message."""
    stream.write(LENGTH.pack(len(data)) + data)
    stream.flush()


def bound(seconds: float, memory: int) -> None:
    """No more processor time and memory than this beside what is used, where the system has such limits."""
    try:
        import resource
    except ImportError:  # Windows: the parent watches the time
        return
    used = resource.getrusage(resource.RUSAGE_SELF)
    spent = int(used.ru_utime + used.ru_stime) + 1
    for limit, most in (
        (resource.RLIMIT_CPU, spent + int(seconds) + 2),
        (resource.RLIMIT_AS, _mapped() + memory),
        (resource.RLIMIT_CORE, 0),
    ):
        with contextlib.suppress(ValueError, OSError):  # the user's own limit may be lower
            resource.setrlimit(limit, (most, resource.getrlimit(limit)[1]))


def _mapped() -> int:
    """Address space of this process [bytes]: the programs themselves take some hundred MB of it."""
    with contextlib.suppress(OSError, ValueError, AttributeError), open("/proc/self/statm", "rb") as stream:
        return int(stream.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def _search_path(given: list[str]) -> list[str]:
    """Search path of the parent, after the standard library, which no file of its folder then hides."""
    library = {os.path.normcase(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")}
    inside = [os.path.normcase(path) for path in sys.path]
    own = [p for p, q in zip(sys.path, inside, strict=True) if q in library or os.path.dirname(q) in library]
    return [*(p for p in own if not p.endswith(("site-packages", "dist-packages"))), *given]


def _answered(answer: Any, question: Any) -> bytes:
    try:
        return pickle.dumps(("answer", answer(question)))
    except MemoryError:
        return pickle.dumps(("memory", ""))
    except Exception as problem:  # of any type: another program raised it
        said = str(problem)
        if not said or isinstance(problem, LookupError | TypeError | AttributeError):  # they say little
            said = f"{type(problem).__name__}: {said}"
        return pickle.dumps(("error", said))


def main() -> None:
    """Answer questions until standard input ends."""
    source = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(2, 1)  # what a reader prints is no answer
    start = pickle.loads(read(source))
    sys.path[:] = _search_path(start["sys_path"])
    spec = importlib.util.spec_from_file_location("robokit_answers", start["file"])
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    answer = module.answer
    with contextlib.suppress(EOFError):
        while True:
            question = pickle.loads(read(source))
            bound(start["seconds"], start["memory"])
            write(answers, _answered(answer, question))


if __name__ == "__main__":
    main()
