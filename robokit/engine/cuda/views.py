"""Memory of a card as an array that other libraries take without a copy."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from robokit.engine.cuda import arrays

CPU, CUDA = 1, 2
"""Kinds of devices in DLPack."""

FLOATING = 2
"""Kind of numbers in DLPack."""


class View:
    """Numbers of many states on a card, (B, n), side by side number by number.

    ``torch.as_tensor(view, device="cuda")``, ``cupy.asarray(view)`` and ``jax.dlpack.from_dlpack(view)`` are
    the same memory, ``numpy.asarray(view)`` a copy on the host.

    Attributes:
        pointer: address on the card.
        shape: (B, n).
        dtype: of the numbers.
        card: the card.
    """

    def __init__(self, card: Any, pointer: int, shape: tuple[int, int], dtype: Any, owner: Any) -> None:
        """Memory that ``owner`` holds."""
        self.card, self.pointer, self.shape, self.dtype = card, pointer, shape, np.dtype(dtype)
        self._owner = owner

    def __repr__(self) -> str:
        return f"<view of {self.shape} {self.dtype} on cuda:{self.card.number}>"

    @property
    def strides(self) -> tuple[int, int]:
        """From one number to the next along each axis [numbers]."""
        return 1, self.shape[0]

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
        return (CUDA if arrays.PLATFORM == "cuda" else CPU), self.card.number

    def __dlpack__(self, **_: Any) -> Any:
        """A capsule for :func:`jax.dlpack.from_dlpack` and the like.

        Who takes it frees the description, without Python, which may have ended by then; the memory itself
        stays until the process ends, since nobody would say when it is no longer looked at. It waits for what
        was queued on the card's default stream, since others may be on any.
        """
        self.card.synchronize()
        size = ctypes.sizeof(_Managed)
        place = _allocate(size + 4 * ctypes.sizeof(ctypes.c_int64))
        made, numbers = _Managed.from_address(place), (ctypes.c_int64 * 4).from_address(place + size)
        numbers[:] = [*self.shape, *self.strides]
        tensor = made.tensor
        tensor.data, tensor.ndim, tensor.offset = self.pointer, 2, 0
        tensor.device_type, tensor.device = self.__dlpack_device__()
        tensor.code, tensor.bits, tensor.lanes = FLOATING, 8 * self.dtype.itemsize, 1
        tensor.shape, tensor.strides = place + size, place + size + 2 * ctypes.sizeof(ctypes.c_int64)
        made.context, made.deleter = None, ctypes.cast(ctypes.pythonapi.PyMem_RawFree, ctypes.c_void_p)
        _lent[self.pointer] = self._owner
        return _capsule(place, b"dltensor", None)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """A copy on the host; waits for all that was queued on the card's default stream."""
        if copy is False:
            raise ValueError("an array on a card is copied to the host")
        found = np.empty(self.shape[::-1], self.dtype)
        if found.size:
            self.card.read(found, self.pointer)
        return np.ascontiguousarray(found.T) if dtype is None else np.ascontiguousarray(found.T, dtype)


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


def seen_by(library: arrays.Library | None, view: View) -> Any:
    """A view as an array of a library, without a copy; itself where there is none, and for JAX."""
    if library is arrays.TORCH:
        torch = library.module
        if arrays.PLATFORM != "cuda":
            return torch.from_dlpack(view)
        return torch.as_tensor(view, device=torch.device("cuda", view.card.number))
    if library is arrays.CUPY:
        return library.module.asarray(view)
    return view
