"""Launches inside compiled programs of JAX: handlers of XLA's foreign functions, by ctypes.

XLA calls a handler with the addresses of its arrays, on the stream of the program, under ``jax.jit`` too; its
arrays lie in the order of their axes. The handler queues a launch and returns. XLA may record it in a CUDA
graph, since it neither allocates nor waits.

Layout: ``xla/ffi/api/c_api.h``, version 0 of the interface, which XLA keeps compatible.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from robokit.engine.cuda import arrays

Pointer = ctypes.c_void_p

GRAPHS = 1
"""Trait of handlers that may be recorded in CUDA graphs."""

INTERNAL = 13
"""Code of an error."""


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

_kept: list[Any] = []  # XLA forgets no handler
_numbers = itertools.count()


class Given(NamedTuple):
    """An array of a call."""

    pointer: int  # its address on the card
    shape: tuple[int, ...]  # its own


Launch = Callable[[Sequence[Given], Sequence[Given], int], None]
"""(inputs, outputs, stream): queues a launch."""


def register(jax: Any, name: str, launch: Launch) -> str:
    """Make a launch a foreign function of XLA.

    Args:
        jax: the module.
        name: of what is launched, for messages.
        launch: the launch.

    Returns:
        the name that ``jax.ffi.ffi_call`` takes.
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
            return _error(frame, f"robokit: {name}: {error}")
        return None

    handler = _Handler(handle)
    known = f"robokit_{name}_{next(_numbers)}"
    platform = "CUDA" if arrays.PLATFORM == "cuda" else arrays.PLATFORM
    jax.ffi.register_ffi_target(known, jax.ffi.pycapsule(handler), platform=platform)
    _kept.append(handler)
    return known


def _arrays(items: Any) -> list[Given]:
    found = []
    for k in range(items.count):
        each = ctypes.cast(items.items[k], ctypes.POINTER(_Array)).contents
        found.append(Given(each.data or 0, tuple(each.dims[: each.rank])))
    return found


def _stream(frame: Any) -> int:
    """The stream of the program; 0 on the processor, which has none."""
    if arrays.PLATFORM != "cuda":
        return 0
    asked = _StreamOf(ctypes.sizeof(_StreamOf), None, frame.context, None)
    problem = _Function(frame.api.contents.stream)(ctypes.addressof(asked))
    if problem:
        raise RuntimeError("XLA has no stream for it")
    return asked.stream or 0


def _error(frame: Any, text: str) -> int | None:
    made = _Problem(ctypes.sizeof(_Problem), None, text.encode(), INTERNAL)
    found: int | None = _Function(frame.api.contents.create_error)(ctypes.addressof(made))
    return found
