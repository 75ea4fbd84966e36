"""The CUDA driver, by ctypes: cards, their memory, their code and launches.

A card works in its *primary context*, the one that PyTorch, CuPy and JAX use, so that their memory and their
streams are ours too. A stream is the driver's number of it, 0 for the default one. What is queued on a stream
runs in order; nothing here waits but where it says so.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from robokit.dataclass_tools import frozen
from robokit.engine.batch_calls import from_record_to_record
from robokit.engine.cuda import assemble
from robokit.errors import DeviceError, ShapeError
from robokit.interpreter import at_fork

LIBRARIES = ("nvcuda.dll",) if sys.platform == "win32" else ("libcuda.so.1", "libcuda.so")

OUT_OF_MEMORY, NOT_INITIALIZED, NO_DEVICE, NO_CODE, OLD_DRIVER = 2, 3, 100, 209, 222
"""Numbers of errors that are explained here; the driver has a sentence for all of them."""

CAPTURE = range(900, 908)  # those of what cannot be recorded in a CUDA graph

FORKED = (
    "a forked process cannot use the card that its parent uses; start it with "
    'multiprocessing.get_context("spawn")'
)

RELAXED, APART = 2, 1
"""While other threads record graphs, this one may do what cannot be part of one; a stream that waits for no
other."""

KEPT = 64  # one part in so many of a card's memory stays with this process, though nobody needs it now

_RELEASE_THRESHOLD = 4
_MULTIPROCESSORS, _MAJOR, _MINOR = 16, 75, 76
_LOCAL_BYTES, _REGISTERS, _SHARED_BYTES, _SHARED_PERCENT = 3, 4, 8, 9

_cards: dict[int, Card] = {}
_lock = threading.RLock()


@functools.cache
def _cuda() -> Any:
    """The driver's library, ready. Raises DeviceError: there is none, or it finds no card."""
    for name in LIBRARIES:
        with contextlib.suppress(OSError):
            library = ctypes.CDLL(name)
            break
    else:
        raise DeviceError(
            f'device="cuda" needs the NVIDIA driver, whose library {LIBRARIES[0]} is not on this machine; '
            'use device="cpu"'
        )
    status = library.cuInit(0)
    if status == NO_DEVICE:
        raise DeviceError('device="cuda": the NVIDIA driver finds no card on this machine; use device="cpu"')
    if status:
        raise DeviceError(f'device="cuda": the NVIDIA driver does not start: {_sentence(library, status)}')
    return library


def _sentence(library: Any, status: int) -> str:
    """What the driver says of an error."""
    text = ctypes.c_char_p()
    if library.cuGetErrorString(status, ctypes.byref(text)) or not text.value:
        return f"error {status}"
    return f"{text.value.decode(errors='replace')} (error {status})"


def driver_version() -> tuple[int, int]:
    """The newest CUDA version that the driver supports, e.g. (13, 0).

    Raises DeviceError: there is no driver, or no card.
    """
    number = ctypes.c_int()
    _cuda().cuDriverGetVersion(ctypes.byref(number))
    return number.value // 1000, number.value % 1000 // 10


def count() -> int:
    """Number of cards. Raises DeviceError: there is no driver, or no card."""
    number, library = ctypes.c_int(), _cuda()
    status = library.cuDeviceGetCount(ctypes.byref(number))
    if status:
        why = FORKED if status == NOT_INITIALIZED else _sentence(library, status)
        raise DeviceError(f'device="cuda": {why}')
    return number.value


def current() -> int:
    """Number of the card whose context is current in this thread."""
    number = ctypes.c_int()
    _cuda().cuCtxGetDevice(ctypes.byref(number))
    return number.value


def card(number: int = 0) -> Card:
    """The card of a number, the same object each time.

    Raises DeviceError: there is no such card, or no driver.
    """
    with _lock:
        if number not in _cards:
            if not 0 <= number < count():
                last = f"cuda:0 to cuda:{count() - 1}" if count() > 1 else "cuda:0 alone"
                raise DeviceError(f'device="cuda:{number}": there is no such card; this machine has {last}')
            _cards[number] = Card(number)
        return _cards[number]


class Card:
    """One card.

    Attributes:
        number: as in "cuda:0".
        name: for example "NVIDIA H200".
        capability: of its architecture, for example (9, 0).
        multiprocessors: how many it has.
        size: of its memory [bytes].
        side: a stream that nobody else uses; it waits for no other, nor others for it.
    """

    def __init__(self, number: int) -> None:
        """Take the card's primary context; :func:`card` keeps one object a card."""
        self._library = _cuda()
        self.number = number
        self._device, self._context = ctypes.c_int(), ctypes.c_void_p()
        self._call("cuDeviceGet", ctypes.byref(self._device), number)
        name, size = ctypes.create_string_buffer(256), ctypes.c_size_t()
        self._call("cuDeviceGetName", name, 256, self._device)
        self._call("cuDeviceTotalMem_v2", ctypes.byref(size), self._device)
        self.name, self.size = name.value.decode(errors="replace"), size.value
        self.capability = self._attribute(_MAJOR), self._attribute(_MINOR)
        self.multiprocessors = self._attribute(_MULTIPROCESSORS)
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), self._device)
        # Memory that is given back stays at hand, up to a share of the card: else each wait hands it to the
        # system, from which it takes some milliseconds to have it again.
        pool, kept = ctypes.c_void_p(), ctypes.c_uint64(self.size // KEPT)
        self._call("cuDeviceGetDefaultMemPool", ctypes.byref(pool), self._device)
        self._call("cuMemPoolSetAttribute", pool, _RELEASE_THRESHOLD, ctypes.byref(kept))
        stream = ctypes.c_void_p()
        self.call("cuStreamCreate", ctypes.byref(stream), APART)
        self.side = stream.value or 0

    @functools.cached_property
    def arch(self) -> str:
        """Its architecture as the compilers write it, for example "sm_90".

        Raises DeviceError: there is no ptxas, or it makes no code for this card.
        """
        return assemble.architecture(*self.capability)

    @property
    def identity(self) -> str:
        """What code for this card depends on besides its IR."""
        return assemble.identity(self.arch)

    def __repr__(self) -> str:
        major, minor = self.capability
        return f"<{self.name}, cuda:{self.number}, compute capability {major}.{minor}>"

    def _call(self, function: str, *arguments: Any, asked: int = 0) -> None:
        """Call the driver. Raises DeviceError: it refuses."""
        status = getattr(self._library, function)(*arguments)
        if not status:
            return
        where = f'device="cuda:{self.number}"'
        if status == OUT_OF_MEMORY:
            free, total = self.memory()
            wanted = f"{asked / 2**20:,.0f} MiB were asked for, " if asked else ""
            raise DeviceError(
                f"{where}: the card has too little memory: {wanted}{free / 2**20:,.0f} of "
                f"{total / 2**20:,.0f} MiB are free; take fewer states at once, or float32"
            )
        if status == NOT_INITIALIZED:
            raise DeviceError(f"{where}: {FORKED}")
        if status in CAPTURE:
            raise DeviceError(
                f"{where}: {function} while a CUDA graph is recorded ({_sentence(self._library, status)}); "
                "make the same call once, with arrays of the same shapes, before recording"
            )
        if status in (NO_CODE, OLD_DRIVER):
            known = driver_version()
            raise DeviceError(
                f"{where}: {self.name} ({self.arch}) with a driver for CUDA {known[0]}.{known[1]} "
                f"does not run what {assemble.release()} makes; update the NVIDIA driver"
            )
        raise DeviceError(f"{where}: {function}: {_sentence(self._library, status)}")

    def call(self, function: str, *arguments: Any, asked: int = 0) -> None:
        """Call the driver in the card's context. Raises DeviceError: it refuses."""
        with self.current():
            self._call(function, *arguments, asked=asked)

    def _attribute(self, which: int) -> int:
        value = ctypes.c_int()
        self._call("cuDeviceGetAttribute", ctypes.byref(value), which, self._device)
        return value.value

    @contextlib.contextmanager
    def current(self) -> Iterator[None]:
        """Make this card's primary context current in this thread, and restore the previous one
        afterwards.
        """
        before = ctypes.c_void_p()
        self._call("cuCtxGetCurrent", ctypes.byref(before))
        if before.value == self._context.value:
            yield
            return
        self._call("cuCtxPushCurrent_v2", self._context)
        try:
            yield
        finally:
            self._call("cuCtxPopCurrent_v2", ctypes.byref(before))

    # -- code ------------------------------------------------------------------------------------

    def assemble(self, text: str) -> bytes:
        """Code for this card of modules of LLVM IR; see :func:`robokit.engine.cuda.assemble.assemble`."""
        return assemble.assemble(text, self.arch)

    def load(self, code: bytes) -> Module:
        """Copy code to the card.

        Raises DeviceError: the driver is too old for it, or the card has too little memory.
        """
        needed, known = assemble.version(), driver_version()
        if needed and needed[0] > known[0]:
            raise DeviceError(
                f'device="cuda:{self.number}": the NVIDIA driver knows CUDA {known[0]}.{known[1]}, and '
                f"{assemble.release()} makes code for CUDA {needed[0]}: update the driver, or "
                f"pip install 'nvidia-cuda-nvcc<{known[0] + 1}'"
            )
        return Module(self, code)

    def launch(
        self,
        function: Function,
        blocks: int,
        threads: int,
        arguments: Sequence[Any],
        stream: int = 0,
        shared: int = 0,
    ) -> None:
        """Queue a launch.

        Args:
            function: of code that was loaded to this card.
            blocks, threads: number of blocks, and of threads in each.
            arguments: pointers and whole numbers, of 64 bits each.
            stream: on which.
            shared: bytes of memory that a block shares (:meth:`Function.give_shared` before).
        """
        count = len(arguments)  # the words, then where each of them is
        words = (ctypes.c_uint64 * (2 * count))(*arguments)
        first = ctypes.addressof(words)
        words[count:] = list(range(first, first + 8 * count, 8))
        there = function.handle, blocks, 1, 1, threads, 1, 1, shared, ctypes.c_void_p(stream)
        parameters = (*there, ctypes.c_void_p(first + 8 * count), None)
        context = ctypes.c_void_p()
        self._library.cuCtxGetCurrent(ctypes.byref(context))
        if context.value == self._context.value:  # the usual case, without the time of a context manager
            self._call("cuLaunchKernel", *parameters)
            return
        self.call("cuLaunchKernel", *parameters)

    # -- memory ----------------------------------------------------------------------------------

    def memory(self) -> tuple[int, int]:
        """Free and total memory [bytes]."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value, total.value

    def allocate(self, size: int, stream: int = 0) -> int:
        """Memory of so many bytes, from the moment that the stream gets there; its address.

        Raises DeviceError: there is not so much.
        """
        pointer = ctypes.c_uint64()
        self.call(
            "cuMemAllocAsync", ctypes.byref(pointer), ctypes.c_size_t(max(size, 1)),
            ctypes.c_void_p(stream), asked=size,
        )  # fmt: skip
        return pointer.value

    def free(self, pointer: int, stream: int = 0) -> None:
        """Free memory when the stream gets there."""
        self.call("cuMemFreeAsync", ctypes.c_uint64(pointer), ctypes.c_void_p(stream))

    def write(self, pointer: int, array: np.ndarray, stream: int = 0) -> None:
        """Copy a contiguous array to the card; it may be changed again at once."""
        self.call(
            "cuMemcpyHtoDAsync_v2", ctypes.c_uint64(pointer), ctypes.c_void_p(array.ctypes.data),
            ctypes.c_size_t(array.nbytes), ctypes.c_void_p(stream),
        )  # fmt: skip

    def read(self, array: np.ndarray, pointer: int, stream: int = 0) -> None:
        """Copy from the card into a contiguous array, and wait until it is there."""
        self.call(
            "cuMemcpyDtoHAsync_v2", ctypes.c_void_p(array.ctypes.data), ctypes.c_uint64(pointer),
            ctypes.c_size_t(array.nbytes), ctypes.c_void_p(stream),
        )  # fmt: skip
        self.synchronize(stream)

    def copy(self, to: int, source: int, size: int, stream: int = 0) -> None:
        """Copy bytes from one place on the card to another."""
        self.call(
            "cuMemcpyDtoDAsync_v2", ctypes.c_uint64(to), ctypes.c_uint64(source), ctypes.c_size_t(size),
            ctypes.c_void_p(stream),
        )  # fmt: skip

    def fill(self, pointer: int, size: int, byte: int = 0, stream: int = 0) -> None:
        """Set all bytes to one value."""
        self.call(
            "cuMemsetD8Async", ctypes.c_uint64(pointer), ctypes.c_ubyte(byte), ctypes.c_size_t(size),
            ctypes.c_void_p(stream),
        )  # fmt: skip

    # -- time ------------------------------------------------------------------------------------

    def synchronize(self, stream: int = 0) -> None:
        """Wait until a stream has done its queued work. Raises DeviceError: some of it failed."""
        self.call("cuStreamSynchronize", ctypes.c_void_p(stream))

    @contextlib.contextmanager
    def relaxed(self) -> Iterator[None]:
        """What is done inside on streams that record nothing is allowed while others record CUDA graphs."""
        mode = ctypes.c_int(RELAXED)
        with self.current():
            self._call("cuThreadExchangeStreamCaptureMode", ctypes.byref(mode))
            try:
                yield
            finally:
                self._call("cuThreadExchangeStreamCaptureMode", ctypes.byref(mode))

    @contextlib.contextmanager
    def aside(self) -> Iterator[int]:
        """A stream on which memory is prepared, also while a CUDA graph is recorded; waits at the end."""
        with self.relaxed():
            yield self.side
            self.synchronize(self.side)

    def capturing(self, stream: int = 0) -> int:
        """The number of the CUDA graph that a stream records, in which nothing may wait; 0 for none."""
        status, number = ctypes.c_int(), ctypes.c_uint64()
        with self.current():
            failed = self._library.cuStreamGetCaptureInfo(
                ctypes.c_void_p(stream), ctypes.byref(status), ctypes.byref(number)
            )
        return number.value if not failed and status.value == 1 else 0

    def event(self, stream: int = 0) -> Event:
        """An event that occurs when everything that is queued on a stream now is done."""
        return Event(self, stream)


class Module:
    """Code on a card."""

    def __init__(self, card: Card, code: bytes) -> None:
        self.card = card
        self._handle = ctypes.c_void_p()
        card.call("cuModuleLoadData", ctypes.byref(self._handle), code)
        weakref.finalize(self, _end, card, "cuModuleUnload", self._handle).atexit = False

    def function(self, name: str) -> Function:
        """The kernel of that name in the code."""
        return Function(self, name)


def _end(card: Card, function: str, handle: Any) -> None:
    with contextlib.suppress(DeviceError), card.current():
        getattr(card._library, function)(handle)


class Function:
    """A kernel in code on a card.

    ``module``: the code; ``registers``: that a thread has; ``local``: bytes of memory that a thread has for
    itself.
    """

    def __init__(self, module: Module, name: str) -> None:
        self.module, self.handle = module, ctypes.c_void_p()
        card = module.card
        card.call("cuModuleGetFunction", ctypes.byref(self.handle), module._handle, name.encode())
        self.registers, self.local = self._attribute(_REGISTERS), self._attribute(_LOCAL_BYTES)

    def _attribute(self, which: int) -> int:
        value = ctypes.c_int()
        self.module.card.call("cuFuncGetAttribute", ctypes.byref(value), which, self.handle)
        return value.value

    def give_shared(self, size: int) -> None:
        """Have blocks share up to so many bytes of a multiprocessor's own memory."""
        card = self.module.card
        card.call("cuFuncSetAttribute", self.handle, _SHARED_BYTES, size)
        card.call("cuFuncSetAttribute", self.handle, _SHARED_PERCENT, 100)

    def resident(self, threads: int) -> int:
        """Number of blocks of so many threads that one multiprocessor holds."""
        value = ctypes.c_int()
        self.module.card.call(
            "cuOccupancyMaxActiveBlocksPerMultiprocessor", ctypes.byref(value), self.handle, threads,
            ctypes.c_size_t(0),
        )  # fmt: skip
        return value.value


class Event:
    """An event on a stream of a card: a point in its queue of work."""

    def __init__(self, card: Card, stream: int = 0) -> None:
        self._card, self._handle = card, ctypes.c_void_p()
        card.call("cuEventCreate", ctypes.byref(self._handle), 0)
        weakref.finalize(self, _end, card, "cuEventDestroy_v2", self._handle).atexit = False
        self.record(stream)

    def record(self, stream: int) -> None:
        """Move the event to the present end of a stream's queue."""
        self._card.call("cuEventRecord", self._handle, ctypes.c_void_p(stream))

    def before(self, stream: int) -> None:
        """Make work queued on a stream from now on wait for the event."""
        self._card.call("cuStreamWaitEvent", ctypes.c_void_p(stream), self._handle, 0)

    def since(self, earlier: Event) -> float:
        """Seconds since an earlier one; waits for both."""
        milliseconds = ctypes.c_float()
        self._card.call("cuEventSynchronize", self._handle)
        self._card.call("cuEventElapsedTime", ctypes.byref(milliseconds), earlier._handle, self._handle)
        return milliseconds.value * 1e-3


at_fork(after_in_child=_cards.clear)


# -- Memory that streams use -----------------------------------------------------------------------------
#
# Memory of a card that streams use one after the other, and that is given back once the last is done.


class Memory:
    """Arrays on a card, by name.

    :meth:`on` orders what several threads and streams do with them. When nobody has the object any more, the
    arrays are given back after all of that, on a stream of the package's own: a stream that used them may be
    gone by then, and the garbage collector may run while a CUDA graph is recorded. ``others``: each gives the
    stream on which those who have the arrays without :meth:`on` work, and is asked when nobody has them any
    more.
    """

    def __init__(self, card: Any, sizes: Mapping[str, int]) -> None:
        """Allocate.

        ``card``: driver.Card; ``sizes``: of each array [bytes]. Raises DeviceError: the card has too little
        memory.
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
        """Allocate more arrays, or replace those of the same names; arguments and errors as above."""
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
        """Within this context, work queued on a stream runs after the earlier work of other streams."""
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


# -- Launches --------------------------------------------------------------------------------------------
#
# A kernel on one card, called with pointers: nothing is converted, checked, allocated or waited for.

Column = tuple[int, int, int]
"""Where an array is: (pointer, between, own). Number j of state t is at ``between j + own t``."""

LARGEST = 2**31 - 1  # most numbers between two numbers of a state
BLOCK, WARP = 128, 32  # threads of a block, in large and small batches: these reach more multiprocessors

WAVES = 2
"""Blocks that follow each other on a multiprocessor at most where numbers do not fit into registers: more of
them leave it partly idle in the end (ABA of G1 on an H200: 582 million a second, 542 with a block for each
128 states; the quadruped's CRBA in double precision loses a tenth).
"""

ROUNDS = 4  # blocks of a multiprocessor from which on a batch is large


TILES = 4  # tiles of 32 states for each multiprocessor up to which a batch is small (measured on an H200)
TEAM = "; team "  # before the numbers of a team, in the second line of a text


@frozen
class Team:
    """How code is launched in which the warps of a block work on the same states."""

    warps: int  # of a block
    states: int  # of a block
    shared: int  # bytes that they share


class OnCard:
    """A kernel on a card.

    In large batches a thread has a state of its own. In small ones, whose states do not fill the card, a team
    of warps has 32 of them where there is code for that. The results are the same bits. ``name``: of the
    kernel, for messages; ``count``: arrays that it takes: inputs, then outputs; ``small``: most states of a
    small batch.
    """

    def __init__(
        self, card: Card, name: str, count: int, load: Callable[[bool], tuple[Function, Team | None] | None]
    ) -> None:
        """A kernel whose code is loaded when it is first needed.

        ``card``, ``name``, ``count``: as above; ``load``: the code, or that for teams, which there may not
        be.
        """
        self.card, self.name, self.count = card, name, count
        self.small = TILES * WARP * card.multiprocessors
        self._load, self._lock = load, threading.Lock()
        self._codes: dict[bool, tuple[Function, Team | None] | None] = {}

    @property
    def loaded(self) -> bool:
        """Whether code of it is on the card."""
        return bool(self._codes)

    def ready(self, rows: int | None = None) -> Function:
        """The function for so many states; its code is made, or found on disk, at the first call.

        ``rows``: number of states; None for many. Raises DeviceError: it cannot be made or loaded;
        TraceTooLarge: it is too long; CompilerMissing: there is no llvmlite.
        """
        return self._chosen(self.small + 1 if rows is None else rows)[0]

    def _chosen(self, rows: int, stream: int = 0) -> tuple[Function, Team | None]:
        """The code for so many states. None is made while a graph is recorded: what is there does as well."""
        team = rows <= self.small
        if team not in self._codes and self._codes and self.card.capturing(stream):
            team = not team
        found = self._code(team) or self._code(False)
        assert found is not None
        return found

    def _code(self, team: bool) -> tuple[Function, Team | None] | None:
        if team not in self._codes:
            with self._lock:
                if team not in self._codes:
                    self._codes[team] = self._load(team)
        return self._codes[team]

    def __call__(self, arrays: Sequence[Column], rows: int, stream: int = 0) -> None:
        """Queue the kernel for all states.

        ``arrays``: where the inputs, then the outputs are. States side by side, (n, B): (pointer, B, 1).
        State after state, (B, n): (pointer, 1, n). One state for all: (pointer, 1, 0). ``rows``: number of
        states; ``stream``: on which. Raises ShapeError: too many or too few arrays, or numbers too far apart;
        DeviceError: as :meth:`ready`.
        """
        if len(arrays) != self.count:
            raise ShapeError(f"{self.name} takes {self.count} arrays on the card, got {len(arrays)}")
        words = [word for array in arrays for word in array]
        if not -LARGEST <= min(words[1::3]) <= max(words[1::3]) <= LARGEST:
            raise ShapeError(f"{self.name}: numbers of a state more than {LARGEST} numbers apart")
        if rows <= 0:
            return
        function, team = self._chosen(rows, stream)
        if team is not None:
            blocks = -(-rows // team.states)
            self.card.launch(function, blocks, WARP * team.warps, (*words, rows), stream, team.shared)
            return
        threads = BLOCK if rows >= ROUNDS * BLOCK * self.card.multiprocessors else WARP
        blocks = -(-rows // threads)
        if function.local and threads == BLOCK:
            blocks = min(blocks, WAVES * function.resident(threads) * self.card.multiprocessors)
        self.card.launch(function, blocks, threads, (*words, rows), stream)


# -- Many steps of a recorded kernel ---------------------------------------------------------------------
#
# Many steps of a recorded kernel on a card: the states stay there from one step to the next.

HELD_BYTES = 1 << 30  # of inputs that change with the steps, on the card at once


class RolloutOnCard:
    """Takes a kernel whose every output is fed back through many steps, with RolloutRunner's methods.

    What is fed back is on the card twice: a step reads the one and writes the other. Nothing waits, and
    nothing is allocated, between :meth:`begin` and :meth:`look`, but in :meth:`put` of other arrays.
    ``columns``: where the present states are, one Column for each input of the kernel; ``memory``: of the
    states and the inputs.
    """

    def __init__(self, kernel: Any, card: Any) -> None:
        """Make or find the code of an engine.Kernel. Raises ValueError: an output is not fed back."""
        signature = kernel.signature
        if len(signature.feedback) != len(signature.outputs):
            raise ValueError(f"{kernel.name}: every output must be fed back")
        self.card, self.feedback = card, sorted(signature.feedback)
        self.sizes, self.dtype = [n for _, n in signature.inputs], np.dtype(signature.dtype)
        self.names = [name for name, _ in signature.inputs]
        self._kernel = kernel.on_card(card)
        self._kernel.ready()
        self.columns: list[Column] = []
        self.memory, self._sizes = Memory(card, {}), dict[str, int]()

    def _room(self, k: int, numbers: int) -> int:
        """Memory of input k, or, below 0, of the next numbers of output -k - 1."""
        name, size = str(k), numbers * self.dtype.itemsize
        if self._sizes.get(name, -1) < size:
            self.memory.allocate({name: size})
            self._sizes[name] = size
        return self.memory[name]

    # ---- inputs --------------------------------------------------------------------------------

    def begin(self, arrays: Sequence[np.ndarray], rows: int, stream: int = 0) -> None:
        """Copy the states and what does not change to the card.

        ``arrays``: the inputs, (steps or 1, rows or 1, n) each; ``rows``: how many; ``stream``: on which.
        """
        self.rows, self.columns = rows, [(0, 1, 0)] * len(self.sizes)
        with self.memory.on(stream):
            for k, x in enumerate(arrays):
                if len(x) == 1:
                    self.put(k, x[0], stream)
            self.next = [self._room(-1 - o, self.sizes[k] * rows) for o, k in self.feedback]

    def put(self, k: int, x: np.ndarray, stream: int = 0) -> None:
        """Copy input k of all following steps to the card, (rows, n), or (1, n) for all rows."""
        own = np.broadcast_to(x, (self.rows, x.shape[1])) if self._fed_back(k) else x
        with self.memory.on(stream):
            pointer = self.columns[k][0] if self._fed_back(k) else 0
            pointer = pointer or self._room(k, self.sizes[k] * len(own))
            if own.size:
                self.card.write(pointer, np.ascontiguousarray(own.T, self.dtype), stream)
        alone = len(own) == 1
        self.columns[k] = (pointer, 1, 0) if alone and self.rows > 1 else (pointer, len(own), 1)

    def _fed_back(self, k: int) -> bool:
        return any(k == i for _, i in self.feedback)

    # ---- steps ---------------------------------------------------------------------------------

    def steps(self, count: int, changing: dict[int, list[Column]] | None = None, stream: int = 0) -> None:
        """Queue so many steps of all rows.

        ``count``: how many; ``changing``: inputs that change from step to step, one Column a step;
        ``stream``: on which.
        """
        with self.memory.on(stream):
            for step in range(count):
                for k, each in (changing or {}).items():
                    self.columns[k] = each[step]
                after = [(pointer, self.rows, 1) for pointer in self.next]
                self._kernel([*self.columns, *after], self.rows, stream)
                for o, (_, k) in enumerate(self.feedback):
                    self.next[o], self.columns[k] = self.columns[k][0], after[o]
            if count % 2:  # back to where they were: the same steps may be repeated by a CUDA graph
                for o, (_, k) in enumerate(self.feedback):
                    here, there = self.columns[k][0], self.next[o]
                    self.card.copy(there, here, self.sizes[k] * self.rows * self.dtype.itemsize, stream)
                    self.next[o], self.columns[k] = here, (there, self.rows, 1)

    def look(self, arrays: Sequence[np.ndarray], which: Sequence[int] | None = None, stream: int = 0) -> None:
        """Copy the states from the card into the arrays of the host, (1, rows, n); waits."""
        with self.memory.on(stream):
            for _, k in self.feedback:
                if self.sizes[k] and (which is None or k in which):
                    found = np.empty((self.sizes[k], self.rows), self.dtype)
                    self.card.read(found, self.columns[k][0], stream)
                    arrays[k][0] = found.T

    def roll(
        self,
        arrays: Sequence[np.ndarray],
        rows: int,
        marks: Sequence[int],
        record: Callable[[int, int, int], Any],
        threads: int | None = None,
        progress: Callable[[int], Any] | None = None,
    ) -> tuple[int, bool]:
        """Take all rows through the steps; arguments and result as of RolloutRunner.roll."""
        self.begin(arrays, rows)

        def take(_: int, first: int, last: int) -> bool:
            self._between(arrays, first, last)
            self.look(arrays)
            return True

        def recorded(k: int, first: int, last: int) -> None:
            before = [arrays[i].copy() for _, i in self.feedback]
            record(k, first, last)
            for (_, i), old in zip(self.feedback, before, strict=True):  # sums begin anew, rows fail
                if not np.array_equal(old, arrays[i], equal_nan=True):
                    self.put(i, arrays[i][0])

        return from_record_to_record([range(rows)], marks, take, recorded, progress, threading.Event())

    def _between(self, arrays: Sequence[np.ndarray], first: int, last: int) -> None:
        """The steps from one record to the next."""
        tables = {k: x for k, x in enumerate(arrays) if len(x) > 1}
        width = sum(x.shape[1] * x.shape[2] for x in tables.values()) * self.dtype.itemsize
        most = max(1, HELD_BYTES // width) if width else last - first
        for at in range(first, last, most):
            count, changing = min(most, last - at), {}
            with self.memory.on(0):
                for k, x in tables.items():
                    part = np.ascontiguousarray(np.moveaxis(x[at : at + count], 1, 2), self.dtype)
                    pointer, (_, n, B) = self._room(k, part.size), part.shape
                    self.card.write(pointer, part)
                    jump = n * B * self.dtype.itemsize
                    changing[k] = [
                        (pointer + j * jump, *((1, 0) if B == 1 and self.rows > 1 else (B, 1)))
                        for j in range(count)
                    ]
            self.steps(count, changing)
