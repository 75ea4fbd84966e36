"""Where things lie in the objects of CPython and NumPy, and whether that is true of this process.

emit/python_entry.py writes machine code that reads and makes such objects, at the places that are named
here. They are those of 64-bit CPython with the GIL; nothing promises that they stay. So they are tried on
live objects first: where one of the functions below says no, that machine code is not used.
"""

from __future__ import annotations

import ctypes
import importlib
import sys
import sysconfig
from typing import Any

import numpy as np

from robokit.engine.emit.python_entry import ADDRESSES, Layout

LAYOUT = Layout(
    type=8,
    bytes=32,
    float=16,
    slots=(16, 24),
    data=16,
    ndim=24,
    dims=32,
    descr=56,
    flags=64,
    readable=0x101,
    writeable=0x501,
)

_PYARRAY_NEW, _PYARRAY_SET_BASE = 93, 282
"""Places of PyArray_New and PyArray_SetBaseObject in NumPy's table of C functions."""

_ABI_VERSIONS = (1, 2)
"""Of NumPy, whose arrays are alike."""


def layout_is_known() -> bool:
    """Look at live objects through the offsets that the machine code will use."""
    if (
        sys.implementation.name != "cpython"
        or sys.byteorder != "little"
        or ctypes.sizeof(ctypes.c_void_p) != 8
        or sysconfig.get_config_var("Py_GIL_DISABLED")
        or object.__basicsize__ != LAYOUT.type + 8
        or bytes.__basicsize__ != LAYOUT.bytes + 1
        or np.ndarray.__basicsize__ < LAYOUT.flags + 8
    ):
        return False
    some = b"eight or more"
    number = 1.25
    if (
        ctypes.string_at(id(some) + LAYOUT.bytes, len(some)) != some
        or _at(number, LAYOUT.type) != id(float)
        or ctypes.c_double.from_address(id(number) + LAYOUT.float).value != number
    ):
        return False
    read_only = np.arange(5.0)
    read_only.flags.writeable = False
    arrays = (np.zeros(7), np.zeros((3, 4)), np.zeros((3, 4, 5))[:, ::2], np.zeros((2, 3)).T, read_only)
    return all(map(_array_is_known, arrays))


def _at(some: Any, offset: int, kind: Any = ctypes.c_int64) -> int:
    """The whole number that lies in an object at an offset."""
    value: int = kind.from_address(id(some) + offset).value
    return value


def _array_is_known(a: np.ndarray) -> bool:
    flags = a.flags.c_contiguous * 0x1 + a.flags.aligned * 0x100 + a.flags.writeable * 0x400
    return (
        _at(a, LAYOUT.type) == id(np.ndarray)
        and _at(a, LAYOUT.data) == a.__array_interface__["data"][0]
        and _at(a, LAYOUT.ndim, ctypes.c_int32) == a.ndim
        and _at(a, LAYOUT.descr) == id(np.dtype(np.float64))
        and _at(a, LAYOUT.flags, ctypes.c_int32) & LAYOUT.writeable == flags
        and tuple((ctypes.c_int64 * a.ndim).from_address(_at(a, LAYOUT.dims))) == a.shape
    )


def can_hold(holder: type) -> bool:
    """Look whether the machine code may make objects of a class with two slots, and where it expects them."""
    slots = holder.__dict__.get("__slots__", ())
    if holder.__basicsize__ != LAYOUT.slots[1] + 8 or len(slots) != 2:
        return False
    some: Any = object.__new__(holder)
    values = object(), object()
    for name, value in zip(slots, values, strict=True):
        setattr(some, name, value)
    return all(_at(some, place) == id(value) for place, value in zip(LAYOUT.slots, values, strict=True))


def addresses() -> list[int]:
    """Where the machine code's :data:`ADDRESSES` are in this process.

    Raises:
        ImportError, AttributeError, ValueError: NumPy's functions are not where they should be.
    """
    api = ctypes.pythonapi
    functions = {
        "tuple": api.PyTuple_New,
        "set_item": api.PyTuple_SetItem,
        "from_double": api.PyFloat_FromDouble,
        "incref": api.Py_IncRef,
        "decref": api.Py_DecRef,
        "alloc": api.PyType_GenericAlloc,
    }
    found = {name: ctypes.cast(function, ctypes.c_void_p).value or 0 for name, function in functions.items()}
    objects = {"array": np.ndarray, "float64": np.dtype(np.float64), "float": float, "none": None}
    found |= {name: id(some) for name, some in objects.items()}
    table = _numpy_api()
    found |= {"new": table[_PYARRAY_NEW], "set_base": table[_PYARRAY_SET_BASE]}
    return [found[name] for name in ADDRESSES]


def _numpy_api() -> Any:
    """NumPy's table of C functions.

    Raises:
        ImportError, AttributeError, ValueError: not there, or of an unknown ABI.
    """
    core = "numpy._core" if int(np.__version__.split(".")[0]) >= 2 else "numpy.core"
    capsule = importlib.import_module(f"{core}._multiarray_umath")._ARRAY_API
    get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    table = ctypes.cast(get(capsule, None), ctypes.POINTER(ctypes.c_size_t))
    if table[2] != id(np.ndarray):
        raise ValueError("unknown table")
    version = ctypes.CFUNCTYPE(ctypes.c_uint)(table[0])()
    if version >> 24 not in _ABI_VERSIONS:
        raise ValueError(f"unknown ABI {version:#x}")
    return table
