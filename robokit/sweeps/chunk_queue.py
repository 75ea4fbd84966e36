"""The chunks that are still to be computed: given to Dask a few at a time, and none of them lost."""

from __future__ import annotations

import contextlib
import itertools
import os
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from robokit.errors import RobokitError, one_line
from robokit.sweeps.chunks import ComputedChunk, Place, compute_chunk, compute_sent_chunk
from robokit.sweeps.cluster import Cluster, ClusterEnded, forget_recipe, quiet_dask, send_recipe

IN_FLIGHT = 3
"""Chunks for each thread of a worker that Dask holds at a time: one computed, the next one at hand."""

AT_HAND = 10_000
"""Chunks that are taken from those to come at a time: enough for 3,000 workers."""

LOOK_SECONDS = 0.5
"""Time between two looks at the cluster [s]."""

FETCH_SECONDS = 120.0
"""How long a result may take from a worker before its chunk is computed again [s]."""

FETCHERS = 32
"""Results that are fetched at once, so that a worker that is slow to answer does not hold up the others."""

MAX_ATTEMPTS = 2
"""How often a chunk is tried that raises an error or ends its worker; then the sweep goes on without it."""

MAX_FAILED = 8
"""Chunks that may fail, or lose their workers, before the sweep gives up: it is not the rows then."""


class ChunksFailed(Exception):
    """Too many chunks could not be computed."""


class ChunkQueue:
    """Chunks that are to be computed.

    Args:
        chunks: of each the first row and the row after its last.
        number: of these chunks.
        recipe: its text.
        reader: makes the recipe of the text.
        place: where the chunks belong.
        keep: is given each chunk that was computed.
        wait: is told what is waited for; "" for nothing.

    Attributes:
        number: of the chunks that were given.
        failed: chunks that could not be computed, and why.
        error: the first error of a chunk that was computed in this process, or None.
    """

    def __init__(
        self,
        chunks: Iterable[tuple[int, int]],
        number: int,
        recipe: str,
        reader: Callable[[str], Any],
        place: Place,
        keep: Callable[[ComputedChunk], None],
        wait: Callable[[str], None],
    ) -> None:
        self.failed: dict[tuple[int, int], str] = {}
        self.error: Exception | None = None
        self._recipe, self._reader, self._place, self._keep, self._wait = recipe, reader, place, keep, wait
        self.number, self._coming = number, iter(chunks)
        self._waiting: deque[tuple[int, int]] = deque()
        self._suspects: deque[tuple[int, int]] = deque()  # these failed: each is tried again alone
        self._sent: dict[int, int] = {}  # how often a chunk was given to Dask
        self._tried: dict[int, int] = {}  # and how often it failed
        self._token = os.urandom(8).hex()
        self._name = f"robokit-recipe-{self._token}"
        self._begun = False  # whether a chunk is done, and so all code is compiled

    def _any_waits(self) -> bool:
        """Whether a chunk waits; more are taken from those to come where few do."""
        if len(self._waiting) < AT_HAND:
            self._waiting.extend(itertools.islice(self._coming, AT_HAND))
        return bool(self._waiting)

    def compute_here(self) -> None:
        """Compute the chunks in this process.

        Raises:
            ChunksFailed: too many could not be computed.
        """
        while self._any_waits():
            chunk = self._waiting.popleft()
            try:
                done = compute_chunk(self._recipe, self._reader, *chunk, self._place)
            except Exception as error:
                self.error = self.error or error
                self._set_aside(chunk, _words(error), again=False)
            else:
                self._keep(done)

    def compute_on(self, cluster: Cluster) -> None:
        """Have the chunks computed by a cluster.

        Raises:
            ChunksFailed: too many could not be computed.
            ClusterEnded: the cluster has come to an end.
        """
        with quiet_dask():
            while not self._feed(cluster):
                self._wait("the scheduler has gone: trying to reach it again")
                if not cluster.again():
                    raise ClusterEnded("the scheduler has gone")

    def _feed(self, cluster: Cluster) -> bool:
        """Give Dask as many chunks as its workers need, take their results, look after the cluster.

        Returns:
            whether all is done; False if the scheduler was lost.
        """
        client = cluster.client
        ended: queue.SimpleQueue[Any] = queue.SimpleQueue()
        fetched: queue.SimpleQueue[Any] = queue.SimpleQueue()
        for _ in range(FETCHERS):
            threading.Thread(target=_fetch, args=(ended, fetched), daemon=True).start()
        flight: dict[Any, tuple[int, int]] = {}
        room, looked = 1, -LOOK_SECONDS
        try:
            send_recipe(client, self._name, self._recipe)
            while self._any_waits() or self._suspects or flight:
                if time.monotonic() - looked > LOOK_SECONDS:
                    threads = sum(client.nthreads().values())
                    self._wait(cluster.check(threads) or ("" if self._begun else "compiling"))
                    room, looked = max(1, IN_FLIGHT * threads), time.monotonic()
                if not (self._waiting or flight):
                    # Alone: Dask suspects all chunks that a worker held when it died.
                    self._waiting.append(self._suspects.popleft())
                if self._waiting and len(flight) <= room * (IN_FLIGHT - 1) // IN_FLIGHT:
                    for future, chunk in self._send(client, room - len(flight)):
                        flight[future.key] = chunk
                        future.add_done_callback(ended.put)
                with contextlib.suppress(queue.Empty):
                    future, outcome = fetched.get(timeout=LOOK_SECONDS)
                    self._take(flight.pop(future.key), outcome)
                    future.release()
                if client.status != "running":
                    return False
        except (RobokitError, ClusterEnded, ChunksFailed):
            raise
        except Exception:
            if client.status == "running":
                raise
            return False
        finally:
            for _ in range(FETCHERS):
                ended.put(None)
            forget_recipe(client, self._name)
            self._waiting.extendleft(flight.values())
        return True

    def _send(self, client: Any, count: int) -> Iterator[tuple[Any, tuple[int, int]]]:
        """Give chunks to Dask, many at once; returns the future of each.

        A message with a hundred chunks costs the scheduler little more than one with a single chunk.
        """
        chunks = [self._waiting.popleft() for _ in range(min(count, len(self._waiting)))]
        for first, _ in chunks:
            self._sent[first] = self._sent.get(first, 0) + 1
        futures = client.map(
            compute_sent_chunk,
            *zip(*chunks, strict=True),
            # Each time that a chunk is sent it has a key of its own.
            key=[(f"chunk-{self._token}", *chunk, self._sent[chunk[0]]) for chunk in chunks],
            pure=False,
            recipe=self._name,
            reader=self._reader,
            place=self._place,
        )
        return zip(futures, chunks, strict=True)

    def _take(self, chunk: tuple[int, int], outcome: Any) -> None:
        """A chunk has ended, one way or another: with what was computed, or with an error."""
        from distributed import CancelledError, KilledWorker

        if isinstance(outcome, CancelledError | TimeoutError):
            self._waiting.append(chunk)  # lost on the way, no fault of the rows
        elif isinstance(outcome, KilledWorker):
            self._set_aside(
                chunk, "their worker is killed again and again; is its memory too small?", again=True
            )
        elif isinstance(outcome, BaseException):
            self._set_aside(chunk, _words(outcome), again=not isinstance(outcome, RobokitError))
        else:
            self._begun = True
            self._keep(outcome)

    def _set_aside(self, chunk: tuple[int, int], why: str, again: bool) -> None:
        """A chunk failed: try it again at the end, alone, if that may help; then go on without it."""
        tried = self._tried[chunk[0]] = self._tried.get(chunk[0], 0) + 1
        if again and tried < MAX_ATTEMPTS:
            self._suspects.append(chunk)
        else:
            self.failed[chunk] = why
        if len(self.failed) + len(self._suspects) > MAX_FAILED:
            self.failed |= dict.fromkeys(self._suspects, why)
            raise ChunksFailed


def _fetch(ended: queue.SimpleQueue[Any], fetched: queue.SimpleQueue[Any]) -> None:
    """Fetch the results of futures that have ended, until None comes; an error is a result, too."""
    while (future := ended.get()) is not None:
        try:
            outcome = future.result(timeout=FETCH_SECONDS)
        except BaseException as error:
            outcome = error
        fetched.put((future, outcome))


def _words(error: BaseException) -> str:
    said = one_line(str(error), 300)
    return said if isinstance(error, RobokitError) else f"{type(error).__name__}: {said}"
