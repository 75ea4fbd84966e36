"""Threads that enter LLVM, so that the main thread never does.

Ctrl-C raises KeyboardInterrupt in the main thread between any two of its instructions: also after those
that take llvmlite's lock and before those that give it back. The next compilation would wait for that lock
for ever. The threads made here are never interrupted. The main thread only waits for them and hears Ctrl-C
at once; they finish what they have begun and leave the rest.

Waiting uses the interpreter's own locks. Those of ``threading`` and ``concurrent.futures`` are written in
Python, and an interrupt could leave them locked in the same way.

A fork waits for what has begun, because the child would find LLVM's locks taken by threads that it does not
have. So does the end of the program, which destroys what LLVM works with.
"""

from __future__ import annotations

import _thread
import atexit
import contextlib
import queue
import time
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from robokit.forks import at_fork

T = TypeVar("T")

WAIT_SECONDS = 0.5
"""Between two looks for Ctrl-C on systems where waiting is not interrupted (Windows)."""

_GATE = _thread.allocate_lock()
"""Held while a thread begins: a fork holds it and so finds none that begins."""

_BUSY: set[int] = set()
"""Threads that are at work."""


def elsewhere(jobs: Sequence[Callable[[], T]], count: int = 1) -> list[T]:
    """Results of the jobs, each done by one of at most ``count`` threads made for them.

    Where no thread can be had, and inside a job, the caller does them.

    Raises:
        BaseException: what the first job that failed raised; jobs that were not begun are left out.
    """
    if _thread.get_ident() in _BUSY:
        return [job() for job in jobs]
    todo = deque(enumerate(jobs))
    done: queue.SimpleQueue[tuple[int, Any, BaseException | None]] = queue.SimpleQueue()

    def work() -> None:
        me = _thread.get_ident()
        with _GATE:
            _BUSY.add(me)
        try:
            while todo:
                with contextlib.suppress(IndexError):  # another thread was faster
                    k, job = todo.popleft()
                    result, error = _done(job)
                    if error is not None:
                        todo.clear()
                    done.put((k, result, error))
        finally:
            _BUSY.discard(me)

    try:
        try:
            for _ in range(min(count, len(jobs))):
                _thread.start_new_thread(work, ())
        except RuntimeError:  # a limit is reached, or the program is ending
            work()
        results: list[Any] = [None] * len(jobs)
        for _ in jobs:
            k, results[k], error = _next(done)
            if error is not None:
                raise error
        return results
    finally:
        todo.clear()


def _done(job: Callable[[], T]) -> tuple[T | None, BaseException | None]:
    """What a job returns, and what it raises."""
    try:
        return job(), None
    except BaseException as error:
        traceback.clear_frames(error.__traceback__)  # what is LLVM's goes here, not where this is caught
        return None, error


def _next(done: queue.SimpleQueue[Any]) -> Any:
    while True:
        with contextlib.suppress(queue.Empty):
            return done.get(timeout=WAIT_SECONDS)


def _wait() -> None:
    """Wait until no other thread is at work."""
    me = {_thread.get_ident()}
    while _BUSY - me:
        with contextlib.suppress(KeyboardInterrupt):  # the jobs are short
            time.sleep(0.002)


def _before_fork() -> None:
    _GATE.acquire()
    _wait()


atexit.register(_wait)
at_fork(before=_before_fork, after_in_parent=_GATE.release, after_in_child=_GATE.release)
