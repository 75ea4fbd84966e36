"""Checks of array arguments: the errors name the argument, what was given and what is accepted.

NumPy turns text into numbers, drops imaginary parts with a warning and ignores masks without one. Here each
of them is an error. The machine code of a kernel checks contiguous float64 arrays of the right shape itself;
these functions see all other arguments, and those that the machine code has refused.
"""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from numbers import Number, Real
from pathlib import Path
from typing import Any

import numpy as np

from robokit.conventions import UNIT_QUATERNION_TOLERANCE
from robokit.errors import InvalidValue, ShapeError, UnknownName, WrongType, shown

_KINDS = {"c": "complex numbers", "O": "objects", "b": "booleans", "U": "text", "S": "bytes"}

_SYMBOLIC = {
    "casadi": "a symbol of CasADi; rk.functions[NAME].to_casadi(robot) is a function of symbols",
    "jax": "a traced value of JAX; rk.functions[NAME].to_jax(robot) is a function that JAX traces",
    "torch": "a tensor that requires a gradient, which calls on the processor do not follow; "
    "give it .detach(), or differentiate a function's rk.functions[NAME].to_torch(robot)",
}
"""By package: what of it cannot become an array of numbers, and what to do."""


def _symbol(value: Any) -> str | None:
    """What a symbol of another library is, also one in a list; None for anything else."""
    if isinstance(value, list | tuple):
        return next(filter(None, map(_symbol, value)), None)
    if not getattr(value, "requires_grad", True):  # a tensor that has no numbers in the processor's memory
        return None
    return _SYMBOLIC.get(type(value).__module__.partition(".")[0].removesuffix("lib"))  # jaxlib is JAX, too


_BY_NAME = {
    **dict.fromkeys(("q", "q0"), "; robot.configuration(joints={...}) makes one from names"),
    **dict.fromkeys(("v", "v0", "a", "tau"), "; robot.joint(name).v_slice is where a joint's numbers are"),
}
"""Advice where a mapping from names is given as an argument of that name."""


def real_array(
    name: str,
    value: Any,
    accepted: str | tuple[int, ...],
    error: type[Exception] = ShapeError,
    dtype: str = "float64",
) -> np.ndarray:
    """An array of any shape, without a copy where none is needed.

    ``accepted`` are the shapes that the caller takes, for messages: "(7,) or (B, 7)". Raises ShapeError, or
    the class given: not real numbers, masked, or a ragged sequence.
    """
    if isinstance(value, np.ndarray) and hasattr(value, "mask") and hasattr(value, "filled"):
        raise error(
            f"{name}: expected real numbers of shape {accepted}, got a masked array; "
            "fill it first, for example with .filled(0.0)"
        )
    try:
        array = np.asarray(value)
    except ValueError as problem:
        raise error(f"{name}: expected {accepted}, got a ragged sequence ({problem})") from None
    except (NotImplementedError, TypeError, RuntimeError) as problem:  # of CasADi, of JAX, of PyTorch
        got = _symbol(value) or f"no array ({' '.join(str(problem).split())})"
        raise error(f"{name}: expected real numbers of shape {accepted}, got {got}") from None
    if array.dtype.kind not in "fiu":
        got = "None" if value is None else _KINDS.get(array.dtype.kind, str(array.dtype))
        symbol = _symbol(array.tolist()) if array.dtype.kind == "O" else None
        if symbol:
            got = symbol
        elif array.dtype.kind in "USO" and array.ndim == 0 and value is not None:
            got = f"{got}: {shown(value)}"
            if isinstance(value, Mapping):
                got += _BY_NAME.get(name, "")
        elif array.dtype.kind == "O" and array.size and isinstance(array.flat[0], Number):
            got = f"objects ({type(array.flat[0]).__name__}); convert them, for example with .astype(float)"
        raise error(f"{name}: expected real numbers of shape {accepted}, got {got}")
    if array.dtype == dtype:
        return array
    with np.errstate(over="ignore"):  # too large for single precision is infinite, and refused as such
        return array.astype(dtype, copy=False)


def argument(name: str, value: Any, size: int, dtype: str = "float64") -> np.ndarray:
    """An array (size,) or (B, size) with contiguous rows, of a number too where size is 1; ShapeError for
    others.
    """
    accepted = f"({size},) or (B, {size})"
    array = real_array(name, value, accepted, dtype=dtype)
    if array.ndim == 0 and size == 1:
        array = array.reshape(1)
    if array.ndim not in (1, 2) or array.shape[-1] != size:
        raise ShapeError(f"{name}: expected shape {accepted}, got {array.shape}")
    # Rows may be far apart (a slice of a wider array) or the same (broadcast); their scalars may not.
    apart = array.strides[-1] != array.itemsize
    if apart or not array.flags.aligned or (array.ndim == 2 and array.strides[0] < 0):
        array = array.copy()
    return array


def is_single_precision(given: Sequence[Any]) -> bool:
    """Whether NumPy's result type of the arrays of floats among some arguments is float32.

    Lists, whole numbers and numbers without an array do not count, of a mapping its values do. There is no
    arithmetic in float16: alone it counts as float64.
    """
    single = False
    for value in chain.from_iterable(_arrays_in(x) for x in given):
        if isinstance(value, np.ndarray) and value.dtype.kind == "f":
            if value.itemsize > 4:
                return False
            single = single or value.itemsize == 4
    return single


def _arrays_in(value: Any) -> Iterable[Any]:
    return value.values() if value.__class__ is not np.ndarray and isinstance(value, Mapping) else (value,)


def is_single(value: Any) -> bool:
    """Whether a value is at most one state. :func:`argument` refuses what is not an array at all."""
    try:
        return np.ndim(value) <= 1 and (value.__class__ is np.ndarray or not _elsewhere(value))
    except ValueError:
        return False


def _elsewhere(value: Any) -> bool:
    """Whether a value may be an array on a card: of PyTorch, CuPy or JAX."""
    return type(value).__module__.partition(".")[0] in ("torch", "cupy", "jax", "jaxlib")


def plain(array: np.ndarray) -> np.ndarray:
    """The same memory as a plain ndarray of NumPy's own float64: the classes that machine code looks for."""
    return np.asarray(array).view(np.float64)


def batch_size(names: Sequence[str], arrays: Sequence[np.ndarray]) -> int | None:
    """Common batch size B, None if every argument is a single state; ShapeError where two have different
    B.
    """
    found: tuple[str, int] | None = None
    for name, array in zip(names, arrays, strict=True):
        if array.ndim == 2:
            if found is not None and found[1] != len(array):
                raise ShapeError(f"{name}: expected a batch of {found[1]} like {found[0]}, got {len(array)}")
            found = name, len(array)
    return None if found is None else found[1]


def is_finite(array: np.ndarray) -> bool:
    """Whether an array has neither NaN nor infinity."""
    # A sum of squares that is finite tells it in one call; vdot says nothing of an overflow.
    return math.isfinite(np.vdot(array, array)) or np.count_nonzero(np.isfinite(array)) == array.size


def check_finite(name: str, array: np.ndarray) -> None:
    """Raise InvalidValue for an array with NaN or infinity, naming the first place of them."""
    if is_finite(array):
        return
    bad = np.argwhere(~np.isfinite(array))
    where = tuple(int(k) for k in bad[0])
    more = f" and {len(bad) - 1} more" if len(bad) > 1 else ""
    at = f" at {name}[{', '.join(map(str, where))}]" if where else ""
    message = f"{name}: expected finite numbers, got {array[where]}{at}{more}"
    raise InvalidValue(message, name, where)


def check_quaternion(name: str, array: np.ndarray, offset: int) -> None:
    """Raise InvalidValue for a quaternion that is not of unit length; one with NaN passes.

    It begins at an offset in the n numbers of an array (n,) or (B, n).
    """
    part = array[..., offset : offset + 4]
    if part.ndim == 1 and not abs(np.vdot(part, part) - 1.0) > UNIT_QUATERNION_TOLERANCE:
        return
    square = np.einsum("...i,...i", part, part)  # which does not warn where squares are beyond all numbers
    off = np.abs(square - 1.0) > UNIT_QUATERNION_TOLERANCE
    if not np.count_nonzero(off):
        return
    row = tuple(int(i) for i in np.argwhere(off)[0])
    place = "".join(f"{i}, " for i in row) + f"{offset}:{offset + 4}"
    todo = "divide it by its norm" if square[row] > 0.0 else "robot.neutral() has [1, 0, 0, 0], no rotation"
    raise InvalidValue(
        f"{name}: expected a unit quaternion (quat_wxyz) at {name}[{place}], "
        f"got {np.array2string(part[row], precision=6)} of norm {float(np.sqrt(square[row])):.6g}; {todo}",
        name,
        (*row, offset),
    )


def check_values(
    names: Sequence[str],
    arrays: Sequence[np.ndarray],
    quaternions: Sequence[tuple[int, int]],
    bounds: Sequence[tuple[int, int, float]] = (),
) -> None:
    """Find the invalid value that made a kernel refuse, and raise the InvalidValue that names it.

    NaN or infinity in an array as :func:`argument` makes them; a quaternion, (argument, offset), that is not
    of unit length; or an angle, (argument, offset, largest magnitude [rad]), that is too large.
    """
    for name, array in zip(names, arrays, strict=True):
        check_finite(name, array)
    for k, offset in quaternions:
        check_quaternion(names[k], arrays[k], offset)
    for k, offset, most in bounds:
        bad = np.argwhere(np.abs(arrays[k][..., offset]) > most)
        if len(bad):
            row = tuple(int(i) for i in bad[0])
            place = ", ".join(map(str, (*row, offset)))
            raise InvalidValue(
                f"{names[k]}: expected an angle of at most {most:.10g} rad, beyond which too few digits are "
                f"left for its sine, got {arrays[k][(*row, offset)]:.6g} at {names[k]}[{place}]; "
                "take it modulo 2 pi",
                names[k],
                (*row, offset),
            )


def output(name: str, out: Any, shape: tuple[int, ...], dtype: str = "float64") -> np.ndarray:
    """Check an array that was passed as ``out``: ShapeError unless writable, contiguous, of that shape and
    type.
    """
    if not isinstance(out, np.ndarray):
        raise ShapeError(f"{name}: expected a {dtype} array of shape {shape}, got {type(out).__name__}")
    if hasattr(out, "mask") and hasattr(out, "filled"):
        raise ShapeError(f"{name}: expected a {dtype} array, got a masked array; write to its .data")
    if out.shape != shape or out.dtype != dtype:
        raise ShapeError(f"{name}: expected {dtype} of shape {shape}, got {out.dtype} of shape {out.shape}")
    if not (out.flags.c_contiguous and out.flags.aligned and out.flags.writeable):
        raise ShapeError(f"{name}: expected a writable C-contiguous array to write to")
    return out


def one_of(what: str, given: Any, known: Collection[str], hint: str = "") -> str:
    """One of the known names that stand for a choice, such as "engine"; UnknownName, with the hint, for
    others.
    """
    if not isinstance(given, str) or given not in known:
        raise UnknownName(what, given, known, hint)
    return given


def check_call(name: str, function: Any, arguments: Sequence[str], gives: str) -> None:
    """Raise ShapeError for a function that cannot be called with so many arguments.

    ``arguments`` are their names and ``gives`` what the function gives, for the message.
    """
    try:
        taken = inspect.signature(function)
    except (TypeError, ValueError):  # some functions of C do not say
        return
    try:
        taken.bind(*arguments)
    except TypeError:
        words = f"a function ({', '.join(arguments)}) -> {gives}"
        raise ShapeError(f"{name}: expected {words}, got one that takes {taken}") from None


def path_argument(name: str, value: Any, what: str = "a path, a string or a pathlib.Path") -> Path:
    """A path; numbers, which would be open files of the process, are none: WrongType for what is no text."""
    if not isinstance(value, (str, os.PathLike)) or not isinstance(os.fspath(value), str):
        raise WrongType(name, value, what)
    return Path(value)


def random_generator(name: str, value: Any) -> np.random.Generator:
    """NumPy's generator of random numbers, itself or of a seed, a whole number from 0 or None; else
    ShapeError.
    """
    try:
        return np.random.default_rng(value)
    except (TypeError, ValueError):
        accepted = "a whole number >= 0, a generator of NumPy or None"
        raise ShapeError(f"{name}: expected {accepted}, got {shown(value)}") from None


def real_number(name: str, value: Any, least: float = -math.inf, above: float = -math.inf) -> float:
    """One finite real number, no boolean, as a float; also in an array of shape ().

    Raises ShapeError for others, for smaller ones than ``least``, and for those that are not larger than
    ``above``.
    """
    value = _unwrapped(value)
    good = isinstance(value, Real) and not isinstance(value, bool)
    try:
        number = float(value) if good else math.nan
    except OverflowError:  # an int of more than 308 digits
        number = math.inf
    if math.isfinite(number) and number >= least and number > above:
        return number
    bound = f" > {above:g}" if above > -math.inf else f" >= {least:g}" if least > -math.inf else ""
    raise ShapeError(f"{name}: expected a finite number{bound}, got {shown(value)}")


def _unwrapped(value: Any) -> Any:
    """What is in an array without axes, also of JAX and PyTorch; any other value as it is."""
    if getattr(value, "shape", None) != () or hasattr(value, "mask"):
        return value
    with suppress(TypeError, RuntimeError):  # a symbol, or a tensor with a gradient
        return np.asarray(value)[()]
    return value


def whole_number(name: str, value: Any, least: int, most: int | None = None) -> int:
    """One whole number as an int; ShapeError for others, a boolean, or one outside the range."""
    value = _unwrapped(value)
    good = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if good and least <= value and (most is None or value <= most):
        return int(value)
    bound = f">= {least}" if most is None else f"from {least} to {most}"
    raise ShapeError(f"{name}: expected a whole number {bound}, got {shown(value)}")


def not_a_robot(given: Any, argument: str = "robot") -> WrongType:
    """The error for an argument that is not a Robot."""
    hint = ""
    if isinstance(given, (str, Path)):
        hint = f"load it first: rk.load({shown(str(given), 500)})"
    return WrongType(argument, given, "a Robot, as rk.load or ModelBuilder.build returns it", hint)


def several(name: str, given: Any, kinds: tuple[type, ...], accepted: str) -> tuple[Any, ...]:
    """A value of some classes, or a sequence of them, as a tuple; () of None.

    Raises WrongType for something else; of a sequence the error names the place.
    """
    found = () if given is None else (given,) if isinstance(given, kinds) else given
    if not isinstance(found, Sequence) or isinstance(found, str):
        raise WrongType(name, given, accepted)
    for k, each in enumerate(found):
        if not isinstance(each, kinds):
            raise WrongType(f"{name}[{k}]", each, accepted)
    return tuple(found)
