"""Single calls from Python in a third of a microsecond: a builtin function made of machine code.

A kernel of 1 us must not wait for ctypes. One small function, written as LLVM IR in python_entry.py and
compiled once, is the body of every kernel's builtin (METH_FASTCALL). It looks into the NumPy arrays that it
is given, makes the output arrays, runs the kernel and returns them. For arguments that it does not take it
computes nothing and returns None; the caller then goes the slow way, which converts, checks and explains.

    fast(in0, in1, ...)               -> new output, or tuple of new outputs, or None
    fast(in0, ..., out0, ...)         -> the same, written to the given arrays

The builtin's `self` is a bytes object that describes the kernel, in words of 64 bits:

    kernel, workspace, number of inputs, of outputs, most rows, class that holds the answer (or 0), its owner,
    python_entry.ADDRESSES, then for each argument: ndim, four dimensions, bytes of a row

A batch of few states goes the same way: the first dimension of its arguments is python_entry.ROWS, which
stands for the same number in all of them.

Where objects are not laid out as that code expects (python_entry.py), calls go through ctypes instead. All
calls of one builtin share one workspace: the GIL is held from first to last.
"""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from robokit import disk_cache
from robokit.engine.backend.llvm import CompilerMissing, Loaded, assemble, identity
from robokit.engine.memory import LINE_BYTES, address, aligned
from robokit.engine.run import python_entry
from robokit.engine.run.python_entry import ALIGNED_FROM

Shapes = Sequence[tuple[int, ...]]


class _MethodDef(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def fast_call(
    kernel: int,
    workspace: int,
    inputs: Sequence[int],
    outputs: Shapes,
    keep: Any,
    rows: int = 0,
    held: tuple[type, Any] | None = None,
) -> Callable[..., Any]:
    """A function that runs a kernel on NumPy arrays, or returns None.

    Args:
        kernel: address of its single driver.
        workspace: address of its workspace.
        inputs: scalars of each input.
        outputs: shape of each output.
        keep: object that owns the code and the workspace.
        rows: 0 for a single driver; else the kernel is a batch driver, and takes at most so many states.
        held: a class with two slots and an object: the only output is returned in a new instance, in the
            second slot, with the object in the first; what cannot be done so is declined.
    """
    states = (python_entry.ROWS,) if rows else ()
    shapes = [(*states, size) for size in inputs] + [(*states, *shape) for shape in outputs]
    if held and not (len(outputs) == 1 and python_entry.can_hold(held[0])):
        return declined
    if (
        len(shapes) <= python_entry.MOST_ARGUMENTS
        and all(len(s) <= python_entry.MOST_DIMENSIONS for s in shapes)
        and outputs
    ):
        make = _shim()
        if make is not None:
            return make(kernel, workspace, shapes[: len(inputs)], shapes[len(inputs) :], keep, rows, held)
    if held:
        return declined
    return _slow_call(kernel, inputs, outputs, keep) if not rows else declined


def declined(*arguments: Any) -> None:
    """Stands for a fast call where there is none."""


def _slow_call(kernel: int, inputs: Sequence[int], outputs: Shapes, keep: Any) -> Callable[..., Any]:
    """The same through ctypes: some microseconds a call."""
    run = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)(kernel)
    shapes = [(size,) for size in inputs] + list(outputs)
    size = keep.workspace

    def call(*arguments: Any) -> Any:
        made = len(arguments) == len(inputs)
        if made:
            arguments = (*arguments, *map(np.empty, outputs))
        if len(arguments) != len(shapes):
            return None
        for k, (a, shape) in enumerate(zip(arguments, shapes, strict=True)):
            if type(a) is not np.ndarray or a.dtype != np.float64 or a.shape != shape:
                return None
            if not (a.flags.c_contiguous and a.flags.aligned and (k < len(inputs) or a.flags.writeable)):
                return None
            if k >= len(inputs) and not made and any(np.may_share_memory(a, b) for b in arguments[:k]):
                return None
        addresses = (ctypes.c_void_p * len(shapes))(*map(address, arguments))
        memory = aligned(size)  # of its own: here no GIL need be held
        if run(ctypes.addressof(addresses), address(memory)):
            return None
        results = tuple(float(a) if made and not a.ndim else a for a in arguments[len(inputs) :])
        return results[0] if len(results) == 1 else results

    call.keep = keep  # type: ignore[attr-defined]
    return call


def iterate(driver: int, workspace: int, arrays: Sequence[np.ndarray], steps: int, block: int) -> int:
    """Run one state again and again, each time with its fed-back outputs as inputs.

    Args:
        driver: address of the iterate driver.
        workspace: size of the workspace that it needs [doubles].
        arrays: inputs and outputs; the fed-back inputs are overwritten.
        steps: how many runs.
        block: most runs in one call of machine code.

    Returns:
        the runs done: fewer where the state is not finite any more.
    """
    run = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(driver)
    addresses = (ctypes.c_void_p * len(arrays))(*map(address, arrays))
    memory, done = aligned(workspace), 0
    while done < steps:
        wanted = min(block, steps - done)
        made = run(ctypes.addressof(addresses), address(memory), wanted)
        done += made
        if made < wanted:
            break
    return done


def _kept(text: str) -> bytes:
    """Object code of a text, from the cache or made now."""
    name = disk_cache.digest(identity(), text)
    found = disk_cache.load(name)
    if found is not None:
        return found[1]
    code = assemble(text)
    disk_cache.store(name, {"kernel": "call from Python"}, code)
    return code


class _Module(str):
    """The name of a builtin's module, its ``__module__``; it keeps alive what the builtin needs."""

    def __new__(cls, name: str, needs: Any) -> _Module:
        made = super().__new__(cls, name)
        made.needs = needs
        return made

    needs: Any


@functools.cache
def _shim() -> Callable[..., Any] | None:
    """The maker of builtins, or None where objects are not laid out as the machine code expects."""
    if not python_entry.layout_is_known():
        return None
    try:
        text, addresses = python_entry.text(python_entry.LAYOUT), python_entry.addresses()
        code = Loaded(_kept(text))
    except (CompilerMissing, AttributeError, ImportError, ValueError):
        return None
    api = ctypes.pythonapi
    method = _MethodDef(b"kernel", code.address("entry"), 0x80, None)
    new_function = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.py_object)(
        ("PyCFunction_NewEx", api)
    )
    # At interpreter exit builtins may outlive this module, and they read both: never freed, on purpose.
    for kept in (method, code):
        api.Py_IncRef(ctypes.py_object(kept))

    def make(
        kernel: int,
        workspace: int,
        inputs: Shapes,
        outputs: Shapes,
        keep: Any,
        rows: int,
        held: tuple[type, Any] | None = None,
    ) -> Callable[..., Any]:
        holder = map(id, held) if held else (0, 0)
        words = [kernel, workspace, len(inputs), len(outputs), rows, *holder, *addresses]
        for shape in (*inputs, *outputs):
            row = 8 * math.prod(shape[1:] if rows else shape)
            words += [len(shape), *shape, *[0] * (python_entry.MOST_DIMENSIONS - len(shape)), row]
        spec = np.array(words, dtype=np.int64).tobytes()
        return new_function(ctypes.addressof(method), spec, _Module(__name__, (keep, held)))

    for_one = make(code.address("probe"), 0, [(2,)], [(2,)], code, 0)
    rows = (python_entry.ROWS,)
    for_rows = make(code.address("probe_rows"), 0, [rows], [(*rows, ALIGNED_FROM // 8)], code, 2)
    return make if _works(for_one) and _works_for_rows(for_rows) else None


def _works(swap: Callable[..., Any]) -> bool:
    """Try the machine code: it swaps two numbers and refuses NaN."""
    given = np.array([3.0, 4.0])
    out = np.zeros(2)
    fresh = swap(given)
    return (
        isinstance(fresh, np.ndarray)
        and fresh.dtype == np.float64
        and fresh.tolist() == [4.0, 3.0]
        and fresh.flags.owndata
        and swap(given, out) is out
        and out.tolist() == [4.0, 3.0]
        and swap(np.array([math.nan, 1.0])) is None
        and swap([3.0, 4.0]) is None
        and swap(np.zeros(3)) is None
        and swap(np.zeros(2, np.float32)) is None
        and swap(np.zeros(4)[::2]) is None
        and swap() is None
    )


def _works_for_rows(count: Callable[..., Any]) -> bool:
    """Try it on a batch, whose result is long enough to be aligned: a view of a block that it keeps alive."""
    fresh = count(np.zeros(2))
    return (
        isinstance(fresh, np.ndarray)
        and fresh.shape == (2, ALIGNED_FROM // 8)
        and fresh.flags.carray
        and address(fresh) % LINE_BYTES == 0
        and type(fresh.base) is np.ndarray
        and fresh.base.flags.owndata
        and fresh[0, 0] == 2
        and count(np.zeros(3)) is None
    )
