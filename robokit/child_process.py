"""Work on files from elsewhere, done in a process of its own whose time and memory are bounded.

A program that reads a robot can run on for ever, take all memory or crash over one hostile line, and nothing
inside a process stops that. So it works in a child (:mod:`robokit.child_process_main`). What comes back is
data: builtin types, arrays, and the classes that the caller names. Nothing that a child sends can run code
here.
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Collection
from typing import Any

from robokit import child_process_main
from robokit.errors import RobokitError

MOST_SECONDS = 30.0  # longest time for one answer [s]
MOST_MEMORY = 2 << 30  # most memory for one answer [bytes], where the system can limit a process
LONGEST_ANSWER = 256 << 20  # longest answer [bytes]


class OutOfBounds(RobokitError):
    """There is no answer: the child took too long, took too much memory, or crashed; ``hint`` says what to
    do.
    """

    def __init__(self, problem: str, hint: str) -> None:
        super().__init__(problem)
        self.hint = hint


def search_path() -> list[str]:
    """Where a child looks for modules: where this process does, but for the current folder."""
    return [str(folder) for folder in sys.path if folder]


def _surroundings() -> tuple[Any, ...]:
    """Search path, variables and folder that a child takes over: names mean the same in both processes."""
    try:
        folder = os.getcwd()
    except OSError:  # it is gone
        folder = ""
    return list(sys.path), dict(os.environ), folder


class Child:
    """A process that answers questions about files, one after the other.

    Args:
        file: the Python file whose function ``answer`` takes a question and gives the answer.
        seconds, memory: bounds of one answer [s], [bytes].
        modules: the modules whose classes an answer may be made of.
        work: what the process does with a file, as messages say it.

    Example:
        >>> from robokit.child_process import Child
        >>> size = open("double.py", "w").write("def answer(x): return 2 * x")
        >>> with Child("double.py") as child:
        ...     child.ask(21)
        42
    """

    def __init__(
        self,
        file: str,
        seconds: float | None = None,
        memory: int | None = None,
        modules: Collection[str] = (),
        work: str = "reads",
    ) -> None:
        self.file, self.modules, self.work = file, modules, work
        self.seconds = MOST_SECONDS if seconds is None else seconds
        self.memory = MOST_MEMORY if memory is None else memory
        self._process: subprocess.Popen[bytes] | None = None
        self._surroundings: tuple[Any, ...] = ()
        self._owner = os.getpid()
        self._lock = threading.Lock()

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def runs(self) -> bool:
        """Whether the process runs and is a child of this one."""
        return self._process is not None and self._owner == os.getpid() and self._process.poll() is None

    def ask(self, question: Any) -> Any:
        """Ask a question; OutOfBounds says why there is no answer.

        A process is started if none runs in this folder and environment.
        """
        with self._lock:
            if not self.runs or self._surroundings != _surroundings():
                self._start()
            try:
                kind, content = self._exchange(pickle.dumps(question))
            except BaseException:  # also on an interrupt: the next answer would belong to this question
                self.close()
                raise
        if kind == "memory":
            self.close()
            raise OutOfBounds(f"it needs more than {_gib(self.memory)} of memory", _LOOK)
        if kind == "error":
            raise OutOfBounds(str(content), "")
        return content

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is None or self._owner != os.getpid():
            return
        process.kill()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):  # the child has not read all that was written to it
                    stream.close()
        process.wait()

    def _start(self) -> None:
        self.close()
        self._owner = os.getpid()
        command = [sys.executable or "python", "-P", child_process_main.__file__]
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                # Each thread of a library of linear algebra would take address space of its own.
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
            )
        except OSError as problem:
            raise OutOfBounds(f"{command[0]} cannot be started: {problem.strerror}", "") from None
        self._surroundings = _surroundings()
        start = {"file": self.file, "sys_path": search_path(), "seconds": self.seconds, "memory": self.memory}
        self._send(pickle.dumps(start))

    def _send(self, data: bytes) -> None:
        assert self._process is not None and self._process.stdin is not None
        with contextlib.suppress(OSError):  # the child has ended: reading its answer says how
            child_process_main.write(self._process.stdin, data)

    def _exchange(self, question: bytes) -> child_process_main.Message:
        process = self._process
        assert process is not None and process.stdout is not None
        late = threading.Event()

        def stop() -> None:
            late.set()
            process.kill()

        watch = threading.Timer(self.seconds, stop)
        watch.daemon = True
        watch.start()
        try:
            self._send(question)
            data = child_process_main.read(process.stdout, LONGEST_ANSWER)
        except EOFError:
            raise self._ended(process, late.is_set()) from None
        except ValueError as problem:
            raise OutOfBounds(str(problem), _LOOK) from None
        finally:
            watch.cancel()
        try:
            kind, content = _Reader(io.BytesIO(data), self.modules).load()
        except Exception as problem:  # a child that a hostile file has taken over may send anything
            raise OutOfBounds(f"its answer cannot be read: {problem}", "") from None
        return str(kind), content

    def _ended(self, process: subprocess.Popen[bytes], late: bool) -> OutOfBounds:
        status = process.wait()
        if late or status == -getattr(signal, "SIGXCPU", 0):
            return OutOfBounds(f"it was stopped after {self.seconds:g} s", _LOOK)
        if status >= 0:
            how = f"status {status}"
        else:
            known = {number.value: f" ({number.name})" for number in signal.Signals}
            how = f"signal {-status}{known.get(-status, '')}"
        bounds = f"it may use {_gib(self.memory)} of memory and {self.seconds:g} s"
        return OutOfBounds(f"the process that {self.work} it ended with {how}; {bounds}", _LOOK)


_LOOK = "look for what never ends: a file that includes itself, a huge count, a mesh that is a pipe"


def _gib(memory: int) -> str:
    return f"{memory / (1 << 30):g} GiB"


class _Reader(pickle.Unpickler):
    """Unpickles data only: arrays, and classes of the named modules. Nothing else can be called."""

    def __init__(self, stream: io.BytesIO, modules: Collection[str]) -> None:
        super().__init__(stream)
        self._modules = modules

    def find_class(self, module: str, name: str) -> Any:
        numpy_parts = {"_reconstruct", "scalar", "_frombuffer", "ndarray", "dtype"}
        if module.partition(".")[0] == "numpy" and name in numpy_parts:
            return super().find_class(module, name)
        if module in self._modules and "." not in name:
            found = super().find_class(module, name)
            if isinstance(found, type) and found.__module__ == module:
                return found
        raise pickle.UnpicklingError(f"an answer holds no {module}.{name}")
