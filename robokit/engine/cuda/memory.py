"""Memory of a card that streams use one after the other, and that is given back once the last is done."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any


class Memory:
    """Arrays on a card, by name.

    :meth:`on` orders what several threads and streams do with them. When nobody has the object any more, the
    arrays are given back after all of that, on a stream of the package's own: a stream that used them may be
    gone by then, and the garbage collector may run while a CUDA graph is recorded.

    Attributes:
        card: the card.
        others: each gives the stream on which those who have the arrays without :meth:`on` work, and is asked
            when nobody has them any more.
    """

    def __init__(self, card: Any, sizes: Mapping[str, int]) -> None:
        """Allocate.

        Args:
            card: driver.Card.
            sizes: of each array [bytes].

        Raises:
            DeviceError: the card has too little memory.
        """
        self.card, self.others = card, list[Callable[[], int]]()
        self._places: dict[str, int] = {}
        self._moments: dict[int, tuple[int, Any]] = {}  # stream and end of the last use, by graph
        self._stream: int | None = None
        self._lock = threading.RLock()
        ending = weakref.finalize(self, _give_back, card, self._places, self._moments, self.others)
        ending.atexit = False
        self.allocate(sizes)

    def allocate(self, sizes: Mapping[str, int]) -> None:
        """More arrays, or others in the place of those of the same names; arguments and errors as above."""
        with self.card.aside() as side:
            stream = side if self._stream is None else self._stream
            for name, size in sizes.items():
                if name in self._places:
                    self.card.free(self._places.pop(name), stream)
                self._places[name] = self.card.allocate(size, stream)

    def __getitem__(self, name: str) -> int:
        """The address of an array."""
        return self._places[name]

    @contextlib.contextmanager
    def on(self, stream: int) -> Iterator[None]:
        """What is queued on a stream inside comes after what other streams were given before."""
        with self._lock:
            before = self._stream
            if before == stream:
                yield
                return
            if before is not None:
                self._done(before)
            self._await(stream)
            self._stream = stream
            try:
                yield
            finally:
                self._stream = before
                self._done(stream)
                if before is not None:
                    self._await(before)

    def _await(self, stream: int) -> None:
        """Have a stream wait for the last use. In a graph only for one that is recorded in it, too: whoever
        replays it sees to the rest.
        """
        if all(last == stream for last, _ in self._moments.values()):  # whatever is recorded
            return
        last, moment = self._moments.get(self.card.capturing(stream), (stream, None))
        if last != stream:
            moment.before(stream)

    def _done(self, stream: int) -> None:
        graph = self.card.capturing(stream)
        _, moment = self._moments.get(graph, (0, None))
        if moment is None:
            moment = self.card.event(stream)
        else:
            moment.record(stream)
        for other in self._moments.keys() - {0, graph}:  # graphs that were recorded before
            del self._moments[other]
        self._moments[graph] = stream, moment


def _give_back(
    card: Any,
    places: Mapping[str, int],
    moments: Mapping[int, tuple[int, Any]],
    others: Sequence[Callable[[], int]],
) -> None:
    streams = [each() for each in others]
    if any(map(card.capturing, streams)):
        return  # the graph may have the addresses, and be replayed at any time
    ends = [moment for graph, (_, moment) in moments.items() if not graph]
    with card.relaxed():
        for each in (*ends, *map(card.event, streams)):
            each.before(card.side)
        for place in places.values():
            card.free(place, card.side)
