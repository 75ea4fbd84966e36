"""Arrays of PyTorch, CuPy and JAX in the memory of a card: where and how they lie, results of their kind.

Nothing here copies through the host, waits, or allocates but by the library whose array it is: so it may run
on any stream, and inside CUDA graphs. Kernels take a batch (B, n) as it lies, state by state or number by
number, as the transposed of an array (n, B) does: then the threads of a warp read neighbours. Results lie
number by number.
"""

from __future__ import annotations

import ctypes
import itertools
import math
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from robokit.engine.cuda import driver
from robokit.errors import DeviceError, ShapeError

PLATFORM = "cuda"  # what PyTorch calls the memory that is meant


def platform() -> str:
    """JAX's name for the kind of device."""
    return PLATFORM


KEPT = 256  # lists and numbers among arrays on a card that are kept there, so that they are copied once

_kept: OrderedDict[tuple[Any, ...], Any] = OrderedDict()
_recorded: list[Any] = []  # those whose addresses CUDA graphs have
_lock = threading.RLock()

GIVE = 'give arrays of PyTorch, CuPy or JAX, or NumPy\'s with device="cuda"'


class Seen(NamedTuple):
    """An array on a card."""

    pointer: int  # address of its first number
    shape: tuple[int, ...]  # its own
    strides: tuple[int, ...]  # from one number to the next along each axis [numbers]
    dtype: str  # "float64", "float32", or another one


class Library:
    """Arrays of one library; those of PyTorch and CuPy have methods for all that kernels need.

    ``name``: of its module; ``kind``: of its arrays, in the module; ``words``: what it calls an array.
    """

    name, kind, words = "", "ndarray", ""

    def __contains__(self, x: Any) -> bool:
        """Whether it is one of the library's arrays."""
        kind = getattr(sys.modules.get(self.name), self.kind, None)
        return kind is not None and isinstance(x, kind)

    @property
    def module(self) -> Any:
        """The library's module."""
        return sys.modules[self.name]

    def number(self, x: Any) -> int | None:
        """Number of the card that holds an array; None for other memory."""
        raise NotImplementedError

    def seen(self, x: Any) -> Seen:
        """Description of an array on a card."""
        raise NotImplementedError

    def empty(self, shape: tuple[int, ...], dtype: str, number: int) -> Any:
        """A new array on a card, contiguous."""
        raise NotImplementedError

    def zeros(self, shape: tuple[int, ...], dtype: str, number: int) -> Any:
        """A new array of zeros on a card, contiguous."""
        made = self.empty(shape, dtype, number)
        made[...] = 0.0
        return made

    def joined(self, x: Sequence[Any]) -> Any:
        """Concatenate arrays (B, n): the columns of one after those of the other."""
        return self.module.concatenate(x, 1)

    def stream(self, number: int) -> int:
        """The current stream of a card in this thread."""
        raise NotImplementedError

    def constant(self, x: Any, number: int) -> Any:
        """A copy of a NumPy array on a card."""
        raise NotImplementedError

    def last_first(self, x: Any) -> Any:
        """The same memory with the last axis moved to the front."""
        raise NotImplementedError

    def quick(self, arguments: Sequence[Any]) -> tuple[int, str, list[Any]] | None:
        """Number of the card, dtype, and (address, shape, strides) of each array.

        None if that does not describe the arrays completely, for example if they require a gradient.
        """
        return None

    def put(self, out: Any, x: Any) -> None:
        """Copy the numbers of one array into another one."""
        out[...] = x

    def clip(self, x: Any, least: Any, most: Any) -> Any:
        """The array's numbers, limited from below by one array and from above by another."""
        return self.module.clip(x, least, most)

    def picked(self, x: Any, places: np.ndarray, number: int) -> Any:
        """The numbers at some indices of the last axis."""
        return x[..., self.kept(places, number)]

    def kept(self, x: np.ndarray, number: int, key: Any = None) -> Any:
        """A NumPy array copied to a card, where it stays for later calls, on any stream.

        ``number``: of the card; ``key``: that stands for its content, if it never changes while it is there.
        """
        place = self.name, number, x.dtype.str, x.shape, key or x.tobytes()
        card, stream = driver.card(number), self.stream(number)
        with _lock:
            found = _kept.get(place)
            if found is None:
                found = _kept[place] = self.constant(np.ascontiguousarray(x), number), x
                card.synchronize(stream)
                while len(_kept) > KEPT:
                    _kept.popitem(last=False)
            elif card.capturing(stream) and not any(found is each for each in _recorded):
                _recorded.append(found)
            _kept.move_to_end(place)
        return found[0]


class _Torch(Library):
    name, kind, words = "torch", "Tensor", "a tensor of PyTorch"

    def number(self, x: Any) -> int | None:
        return (x.device.index or 0) if x.device.type == PLATFORM else None

    def seen(self, x: Any) -> Seen:
        dtype = str(x.dtype).removeprefix("torch.")
        try:
            return Seen(x.data_ptr(), tuple(x.shape), tuple(x.stride()), dtype)
        except RuntimeError as error:
            raise DeviceError(
                f"expected tensors with memory of their own, got one of layout {x.layout}; sparse tensors "
                "need .to_dense()"
            ) from error

    def empty(self, shape: tuple[int, ...], dtype: str, number: int) -> Any:
        torch = self.module
        where = torch.device(PLATFORM, number)
        return torch.empty(shape, dtype=getattr(torch, dtype), device=where)

    def stream(self, number: int) -> int:
        return int(self.module.cuda.current_stream(number).cuda_stream) if PLATFORM == "cuda" else 0

    def constant(self, x: Any, number: int) -> Any:
        return self.module.tensor(x, device=self.module.device(PLATFORM, number))

    def last_first(self, x: Any) -> Any:
        return x.movedim(-1, 0)

    def quick(self, arguments: Sequence[Any]) -> tuple[int, str, list[Any]] | None:
        torch, first = self.module, arguments[0]
        kind, device, dtype = torch.Tensor, first.device, first.dtype
        name = "float32" if dtype is torch.float32 else "float64" if dtype is torch.float64 else ""
        if device.type != PLATFORM or not name:
            return None
        followed, forward, seen = torch.is_grad_enabled(), torch.autograd.forward_ad.unpack_dual, []
        for x in arguments:
            if x.__class__ is not kind or x.dtype is not dtype or x.device != device:
                return None
            if (followed and x.requires_grad) or forward(x).tangent is not None:
                return None
            try:
                seen.append((x.data_ptr(), x.shape, x.stride()))
            except RuntimeError:  # of torch.func, or sparse
                return None
        return device.index or 0, name, seen

    def picked(self, x: Any, places: np.ndarray, number: int) -> Any:
        return x.index_select(-1, self.kept(places.astype(np.int64), number))

    def put(self, out: Any, x: Any) -> None:
        out.detach().copy_(x)


class _Cupy(Library):
    name, kind, words = "cupy", "ndarray", "an array of CuPy"

    def number(self, x: Any) -> int | None:
        return int(x.device.id)

    def seen(self, x: Any) -> Seen:
        if any(s % x.itemsize for s in x.strides):  # a field of records
            raise DeviceError(
                f"expected strides of whole numbers of {x.itemsize} bytes, got {x.strides}; give "
                "cupy.ascontiguousarray(x)"
            )
        return Seen(int(x.data.ptr), x.shape, tuple(s // x.itemsize for s in x.strides), x.dtype.name)

    def empty(self, shape: tuple[int, ...], dtype: str, number: int) -> Any:
        with self.module.cuda.Device(number):
            return self.module.empty(shape, dtype)

    def stream(self, number: int) -> int:
        with self.module.cuda.Device(number):  # each card has a current stream
            return int(self.module.cuda.get_current_stream().ptr)

    def constant(self, x: Any, number: int) -> Any:
        with self.module.cuda.Device(number):
            return self.module.asarray(x)

    def last_first(self, x: Any) -> Any:
        return self.module.moveaxis(x, -1, 0)


class _Jax(Library):
    name, kind, words = "jax", "Array", "an array of JAX"

    def seen(self, x: Any) -> Seen:
        x.block_until_ready()  # its stream is nobody's
        strides = tuple(math.prod(x.shape[k + 1 :]) for k in range(x.ndim))
        return Seen(x.unsafe_buffer_pointer(), x.shape, strides, x.dtype.name)

    def stream(self, number: int) -> int:
        return 0

    def zeros(self, shape: tuple[int, ...], dtype: str, number: int) -> Any:
        return self.module.numpy.zeros(shape, dtype)

    def joined(self, x: Sequence[Any]) -> Any:
        return self.module.numpy.concatenate(x, 1)

    def kept(self, x: np.ndarray, number: int, key: Any = None) -> Any:
        with self.module.ensure_compile_time_eval():  # while a program is traced too
            return super().kept(x, number, key)

    def clip(self, x: Any, least: Any, most: Any) -> Any:
        return self.module.numpy.clip(x, least, most)

    def has_card(self, jax: Any) -> bool:
        """Whether JAX computes on a card where nothing else is said."""
        return jax.default_backend() == ("gpu" if PLATFORM == "cuda" else PLATFORM)

    def usual_number(self, jax: Any) -> int:
        """Of the card on which JAX computes where nothing else is said."""
        device = jax.config.jax_default_device
        chosen = device if hasattr(device, "local_hardware_id") else jax.local_devices()[0]
        return int(chosen.local_hardware_id or 0)

    def number(self, x: Any) -> int | None:
        jax = self.module
        if isinstance(x, jax.core.Tracer):
            return self.usual_number(jax) if self.has_card(jax) else None
        device = next(iter(x.devices()))
        wanted = "gpu" if PLATFORM == "cuda" else PLATFORM
        return int(device.local_hardware_id or 0) if device.platform == wanted else None

    def constant(self, x: Any, number: int) -> Any:
        return self.module.numpy.asarray(x)


TORCH, CUPY, JAX = _Torch(), _Cupy(), _Jax()
LIBRARIES: tuple[Library, ...] = (TORCH, CUPY, JAX)


def library_of(x: Any) -> Library | None:
    """The library of an array on a card; None for anything else.

    Raises DeviceError: an array on a card of a library that is not known here.
    """
    root = type(x).__module__.partition(".")[0]
    if root in ("numpy", "builtins", "robokit"):
        return None
    for library in LIBRARIES:
        if x in library:
            return library if library.number(x) is not None else None
    if hasattr(x, "__cuda_array_interface__"):
        raise DeviceError(
            f"an array of {root} on a card: {GIVE}; torch.as_tensor(x, device='cuda') and cupy.asarray(x) "
            "are the same memory"
        )
    return None


class Common(NamedTuple):
    """Common properties of the arrays of one call."""

    library: Library  # theirs
    number: int  # of the card that has them
    dtype: str  # of their numbers


def common(
    names: Sequence[str], arguments: Sequence[Any], wanted: int | None, dtype: str | None
) -> Common | None:
    """What the arrays on cards among some arguments have in common; None where there are none.

    ``names``: of the arguments; ``arguments``: arrays, and what is no array; ``wanted``: number of the card
    that was asked for, None for that of the arrays; ``dtype``: that was asked for, None for that of the
    arrays. Raises DeviceError: they are of several libraries, on several cards, or on another one than was
    asked for; ShapeError: they are of several dtypes.
    """
    first, found = "", None
    for name, x in zip(names, arguments, strict=True):
        library = library_of(x)
        if library is None:
            continue
        number, own = int(library.number(x) or 0), str(x.dtype).removeprefix("torch.")
        if own not in ("float32", "float64"):
            raise ShapeError(f"{name}: expected float32 or float64 on a card, got {own}; convert it first")
        if found is None:
            first, found = name, Common(library, number, own)
            if wanted is not None and number != wanted:
                raise DeviceError(f'{name}: it is on cuda:{number}, and device="cuda:{wanted}" is asked for')
            if dtype is not None and own != dtype:
                raise ShapeError(
                    f'{name}: expected {dtype}, got {own}; convert it, or compute with dtype="{own}"'
                )
        elif library is not found.library:
            raise DeviceError(f"{name}: expected {found.library.words} as {first} is, got {library.words}")
        elif number != found.number:
            raise DeviceError(
                f"{name}: expected an array on cuda:{found.number} as {first} is, got one on cuda:{number}"
            )
        elif own != found.dtype:
            raise ShapeError(f"{name}: expected {found.dtype} as {first} is, got {own}; convert one of them")
    return found


def number_of(device: Any) -> int | None:
    """The number of a card that is asked for by name; None for "cpu" and None.

    ``device``: "cuda", "cuda:1", "cpu", None, or an object whose str is one of these (a torch.device). Raises
    DeviceError: no such device.
    """
    text = "cpu" if device is None else str(device)
    kind, _, number = text.partition(":")
    if text in ("cpu", "cpu:0"):
        return None
    if kind != "cuda" or not (number.isdecimal() or text == "cuda"):
        raise DeviceError(f'device: expected "cpu", "cuda" or "cuda:1", got {device!r}')
    return driver.card(int(number or 0)).number


def column(seen: Seen, lead: int) -> tuple[int, int, int] | None:
    """How a kernel finds the numbers of an array: address, strides from number to number and state to state.

    ``seen``: an array (n, ...) of one state, or (B, n, ...); ``lead``: axes before those of one state, 0 or
    1. Returns None where the numbers of a state are not evenly spaced.
    """
    shape, strides = seen.shape[lead:], seen.strides[lead:]
    between, expected = 1, None
    for n, stride in zip(reversed(shape), reversed(strides), strict=True):
        if n == 1:
            continue
        if expected is None:
            between = expected = stride
        if stride != expected:
            return None
        expected *= n
    return seen.pointer, between, seen.strides[0] if lead and seen.shape[0] > 1 else 0


def extent(seen: Seen) -> tuple[int, int]:
    """Address of the first byte of an array, and that after its last one."""
    if 0 in seen.shape:
        return seen.pointer, seen.pointer
    jumps = [(n - 1) * s for n, s in zip(seen.shape, seen.strides, strict=True)]
    size = 4 if seen.dtype == "float32" else 8
    first, last = sum(j for j in jumps if j < 0), sum(j for j in jumps if j > 0)
    return seen.pointer + first * size, seen.pointer + (last + 1) * size


def result(library: Library, memory: Any, shape: tuple[int, ...], single: bool) -> Any:
    """View memory of numbers side by side, (n, B), as an array of states, (B, ...) or (...)."""
    if single:
        return memory.reshape(shape)
    return library.last_first(memory.reshape((*shape, memory.shape[-1])))


# -- Views -----------------------------------------------------------------------------------------------
#
# Memory of a card as an array that other libraries take without a copy.

CPU, CUDA = 1, 2  # kinds of devices in DLPack
FLOATING = 2  # kind of numbers in DLPack


class View:
    """Numbers of many states on a card, (B, n) or (B, n, ...), side by side number by number.

    ``torch.as_tensor(view, device="cuda")``, ``cupy.asarray(view)`` and ``jax.dlpack.from_dlpack(view)`` are
    the same memory, ``numpy.asarray(view)`` a copy on the host. ``pointer``: address on the card; ``shape``:
    (B, n) or (B, n, ...); ``dtype``: of the numbers.
    """

    def __init__(self, card: Any, pointer: int, shape: tuple[int, ...], dtype: Any, owner: Any) -> None:
        """Memory that ``owner`` holds."""
        self.card, self.pointer, self.shape, self.dtype = card, pointer, shape, np.dtype(dtype)
        self._owner = owner

    def __repr__(self) -> str:
        return f"<view of {self.shape} {self.dtype} on cuda:{self.card.number}>"

    @property
    def strides(self) -> tuple[int, ...]:
        """Distance between neighbours along each axis [numbers]."""
        states, *numbers = self.shape
        return 1, *(states * math.prod(numbers[k + 1 :]) for k in range(len(numbers)))

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """How other libraries find it."""
        size = self.dtype.itemsize
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.pointer, False),
            "strides": tuple(size * k for k in self.strides),
            "version": 3,
            "stream": None,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        """Kind and number of its device."""
        return (CUDA if PLATFORM == "cuda" else CPU), self.card.number

    def __dlpack__(self, **_: Any) -> Any:
        """A capsule for :func:`jax.dlpack.from_dlpack` and the like.

        Who takes it frees the description, without Python, which may have ended by then; the memory itself
        stays until the process ends, since nobody would say when it is no longer looked at. It waits for what
        was queued on the card's default stream, since others may be on any.
        """
        self.card.synchronize()
        size, axes = ctypes.sizeof(_Managed), len(self.shape)
        words = ctypes.c_int64 * (2 * axes)
        place = _allocate(size + ctypes.sizeof(words))
        made, numbers = _Managed.from_address(place), words.from_address(place + size)
        numbers[:] = [*self.shape, *self.strides]
        tensor = made.tensor
        tensor.data, tensor.ndim, tensor.offset = self.pointer, axes, 0
        tensor.device_type, tensor.device = self.__dlpack_device__()
        tensor.code, tensor.bits, tensor.lanes = FLOATING, 8 * self.dtype.itemsize, 1
        tensor.shape, tensor.strides = place + size, place + size + ctypes.sizeof(words) // 2
        made.context, made.deleter = None, ctypes.cast(ctypes.pythonapi.PyMem_RawFree, ctypes.c_void_p)
        _lent[self.pointer] = self._owner
        return _capsule(place, b"dltensor", None)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """A copy on the host; waits for all that was queued on the card's default stream."""
        if copy is False:
            raise ValueError("an array on a card is copied to the host")
        found = np.empty((*self.shape[1:], self.shape[0]), self.dtype)
        if found.size:
            self.card.read(found, self.pointer)
        return np.ascontiguousarray(np.moveaxis(found, -1, 0), dtype)


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("offset", ctypes.c_uint64),
    )


class _Managed(ctypes.Structure):
    _fields_ = (("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


_lent: dict[int, Any] = {}  # memory that capsules were made of, by address

_allocate = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t)(("PyMem_RawMalloc", ctypes.pythonapi))
_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)


def seen_by(library: Library | None, view: View) -> Any:
    """A view as an array of a library, without a copy; itself where there is none, and for JAX."""
    if library is TORCH:
        torch = library.module
        if PLATFORM != "cuda":
            return torch.from_dlpack(view)
        return torch.as_tensor(view, device=torch.device("cuda", view.card.number))
    if library is CUPY:
        return library.module.asarray(view)
    return view


# -- Launches inside compiled programs of JAX ------------------------------------------------------------
#
# Launches inside compiled programs of JAX: handlers of XLA's foreign functions, by ctypes.
#
# XLA calls a handler with the addresses of its arrays, on the stream of the program, under ``jax.jit`` too;
# its arrays lie in the order of their axes. The handler queues a launch and returns. XLA may record it in a
# CUDA graph, since it neither allocates nor waits.
#
# Layout: ``xla/ffi/api/c_api.h``, version 0 of the interface, which XLA keeps compatible.

Pointer = ctypes.c_void_p

GRAPHS = 1  # trait of handlers that may be recorded in CUDA graphs
INTERNAL = 13  # code of an error


def _structure(name: str, *fields: tuple[str, Any]) -> Any:
    head = [("size", ctypes.c_size_t), ("extension", Pointer)]
    return type(name, (ctypes.Structure,), {"_fields_": [*head, *fields]})


_Version = _structure("_Version", ("major", ctypes.c_int), ("minor", ctypes.c_int))
_List = _structure("_List", ("count", ctypes.c_int64), ("types", Pointer), ("items", ctypes.POINTER(Pointer)))
_Attributes = _structure(
    "_Attributes", ("count", ctypes.c_int64), ("types", Pointer), ("names", Pointer), ("items", Pointer)
)
_Array = _structure(
    "_Array", ("dtype", ctypes.c_int), ("data", Pointer), ("rank", ctypes.c_int64),
    ("dims", ctypes.POINTER(ctypes.c_int64)),
)  # fmt: skip
_Api = _structure(
    "_Api", ("version", _Version), ("internal", Pointer), ("create_error", Pointer),
    ("message", Pointer), ("destroy_error", Pointer), ("register", Pointer), ("stream", Pointer),
)  # fmt: skip
_Frame = _structure(
    "_Frame", ("api", ctypes.POINTER(_Api)), ("context", Pointer), ("stage", ctypes.c_int),
    ("inputs", _List), ("outputs", _List), ("attributes", _Attributes),
)  # fmt: skip
_StreamOf = _structure("_StreamOf", ("context", Pointer), ("stream", Pointer))
_Problem = _structure("_Problem", ("message", ctypes.c_char_p), ("code", ctypes.c_int))


class _Metadata(ctypes.Structure):
    _fields_ = (("size", ctypes.c_size_t), ("version", _Version), ("traits", ctypes.c_uint32))


class _Asked(ctypes.Structure):
    """The extension of a frame that asks what a handler is like."""

    _fields_ = (
        ("size", ctypes.c_size_t),
        ("type", ctypes.c_int),
        ("next", Pointer),
        ("metadata", ctypes.POINTER(_Metadata)),
    )


_Handler = ctypes.CFUNCTYPE(Pointer, ctypes.POINTER(_Frame))
_Function = ctypes.CFUNCTYPE(Pointer, Pointer)

_handlers: list[Any] = []  # XLA forgets no handler
_numbers = itertools.count()


class Given(NamedTuple):
    """An array that was passed in a call."""

    pointer: int  # its address on the card
    shape: tuple[int, ...]  # its own


Launch = Callable[[Sequence[Given], Sequence[Given], int], None]  # (inputs, outputs, stream): queues a launch


def register(jax: Any, name: str, launch: Launch) -> str:
    """Make a launch a foreign function of XLA.

    ``jax``: the module; ``name``: of what is launched, for messages; ``launch``: the launch. Returns the name
    that ``jax.ffi.ffi_call`` takes.
    """

    def handle(place: Any) -> int | None:
        frame = place.contents
        if frame.extension:  # XLA asks, and calls nothing
            metadata = ctypes.cast(frame.extension, ctypes.POINTER(_Asked)).contents.metadata.contents
            known = frame.api.contents.version
            metadata.version.major, metadata.version.minor = known.major, known.minor
            metadata.traits = GRAPHS
            return None
        try:
            launch(_arrays(frame.inputs), _arrays(frame.outputs), _stream(frame))
        except Exception as error:
            made = _Problem(ctypes.sizeof(_Problem), None, f"robokit: {name}: {error}".encode(), INTERNAL)
            found: int | None = _Function(frame.api.contents.create_error)(ctypes.addressof(made))
            return found
        return None

    handler = _Handler(handle)
    known = f"robokit_{name}_{next(_numbers)}"
    platform = "CUDA" if PLATFORM == "cuda" else PLATFORM
    jax.ffi.register_ffi_target(known, jax.ffi.pycapsule(handler), platform=platform)
    _handlers.append(handler)
    return known


def _arrays(items: Any) -> list[Given]:
    found = []
    for k in range(items.count):
        each = ctypes.cast(items.items[k], ctypes.POINTER(_Array)).contents
        found.append(Given(each.data or 0, tuple(each.dims[: each.rank])))
    return found


def _stream(frame: Any) -> int:
    """The stream of the program; 0 on the processor, which has none."""
    if PLATFORM != "cuda":
        return 0
    asked = _StreamOf(ctypes.sizeof(_StreamOf), None, frame.context, None)
    problem = _Function(frame.api.contents.stream)(ctypes.addressof(asked))
    if problem:
        raise RuntimeError("XLA has no stream for it")
    return asked.stream or 0
