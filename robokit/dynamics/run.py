"""How the public functions run their kernels: a fast path for single states, checks, errors that say why."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from robokit.arguments import batch_size, check_finite, is_single_precision, not_a_robot, one_of, real_array
from robokit.dynamics.build import Key, kernel
from robokit.dynamics.choices import Device, card_asked_for, on_card
from robokit.dynamics.singular import refuse, singular_joint
from robokit.dynamics.table import WITH_FORCES
from robokit.engine import ENGINES, Bound, Kernel
from robokit.engine.reproducible import wanted
from robokit.errors import InvalidValue, ShapeError, SingularInertia
from robokit.model.robot import Robot, check_robot, of_joint

FExt = Mapping[str, Any] | np.ndarray | None
"""External forces: by link in world axes, or an array in body coordinates; see :func:`body_forces`."""

LOOKS = 32  # states whose accelerations are not finite that are searched for a joint to blame
MACHINE_CODE: Any = type(len)  # type of the compiled functions of single states, which take output arrays

DTYPES = ("float64", "float32")


def run(
    robot: Robot,
    key: Key,
    out: Any,
    engine: str | None,
    dtype: Any,
    reproducible: bool | None,
    *arguments: Any,
) -> Any:
    """Run a kernel; single states go straight to its machine code if they can."""
    if engine is None and dtype is None:
        try:
            found = robot.kernels[key if reproducible is None else (key, reproducible)]
            fast = found.fast  # a name of its own: twice as quick to call as an attribute
        except KeyError:
            pass
        except (AttributeError, TypeError):
            wanted(reproducible)
            raise not_a_robot(robot) from None
        else:
            if out is None:
                result = fast(*arguments)
            elif type(fast) is not MACHINE_CODE:
                result = None
            elif out.__class__ is np.ndarray:
                result = fast(*arguments, out)
            else:
                several = out.__class__ in (tuple, list) and len(out) > 1
                result = fast(*arguments, *out) if several else None
            if result is None:
                result = _few(found, arguments, out)
            if result is not None:
                return result
    check_robot(robot)
    try:
        if card_asked_for(engine, arguments):
            from robokit.dynamics.on_card import run_on_card  # `import robokit` stays light

            wanted_dtype = None if dtype is None else dtype_name(dtype)
            number = getattr(engine, "number", None)
            return run_on_card(robot, key, out, number, wanted_dtype, reproducible, arguments)
        from robokit.dynamics.long_robots import long_way

        engine = engine.engine if engine.__class__ is Device else engine
        dtype = dtype_name(dtype_of(dtype, out, *arguments))
        if engine is not None and one_of("engine", engine, ENGINES) == "python":
            return kernel(robot, key, dtype, reproducible).python(*arguments, out=out)
        way = None if wanted(reproducible) else long_way(robot, key, dtype)
        slow = way or kernel(robot, key, dtype, reproducible)
        return slow(*arguments, out=out)
    except InvalidValue as error:
        raise of_joint(robot, error) from None


def _few(found: Kernel | Bound, arguments: tuple[Any, ...], out: Any) -> Any:
    """The machine code of small batches, where there is any and it takes these arguments; else None."""
    if out is None:
        return found.few(*arguments)
    if type(found.few) is not MACHINE_CODE:
        return None
    if out.__class__ is np.ndarray:
        return found.few(*arguments, out)
    several = out.__class__ in (tuple, list) and len(out) > 1
    return found.few(*arguments, *out) if several else None


def dtype_of(dtype: Any, out: Any, *arguments: Any) -> Any:
    """The dtype of a computation: the one asked for, else NumPy's result type of the arrays of floats.

    Arrays to write to may raise it, not lower it: an array of float32 for a result of float64 is refused.
    ``arguments`` are arguments such as q, v, a and f_ext. None stands for float64.
    """
    if dtype is not None:
        return dtype
    if on_card(*arguments):
        return next((str(x.dtype).removeprefix("torch.") for x in arguments if on_card(x)), None)
    if not is_single_precision(arguments):
        return None
    outs = tuple(out) if isinstance(out, (tuple, list)) else (out,)
    return "float32" if out is None or is_single_precision(outs) else None


def dtype_name(arguments: Any) -> str:
    """The name "float64" or "float32" of a dtype of NumPy or PyTorch, or of None; UnknownName for others."""
    if arguments is None:
        return "float64"
    try:
        name = str(arguments).removeprefix("torch.")
        name = name if name in DTYPES else np.dtype(arguments).name
    except (TypeError, ValueError):  # ValueError: text that is no text
        name = arguments
    return one_of("dtype", name, DTYPES)


def body_forces(
    robot: Robot,
    q: Any,
    f_ext: Mapping[str, Any] | np.ndarray,
    engine: str | None,
    reproducible: bool | None = None,
) -> np.ndarray:
    """f_ext as the kernels take it: 6 (N + 1) numbers in body coordinates, single or batch."""
    check_robot(robot)
    rows = robot.nbodies + 1
    if on_card(q, f_ext, *(f_ext.values() if isinstance(f_ext, Mapping) else ())):
        from robokit.dynamics.on_card import body_forces_on_card

        return body_forces_on_card(robot, q, f_ext, engine, reproducible)
    if not isinstance(f_ext, Mapping):
        accepted = f"({rows}, 6) or (B, {rows}, 6), or {{link: wrench (6,)}}"
        array = np.ascontiguousarray(real_array("f_ext", f_ext, accepted))
        if array.ndim not in (2, 3) or array.shape[-2:] != (rows, 6):
            raise ShapeError(
                f"f_ext: expected {{link: wrench (6,)}} or an array ({rows}, 6) or (B, {rows}, 6) in body "
                f"coordinates (row 0 is the reference body), got shape {np.shape(f_ext)}"
            )
        # One sum is quicker than a look at each number; the kernel would name the place in all 6 (N + 1).
        if not math.isfinite(array.sum()):
            check_finite("f_ext", array)
        return array.reshape(*array.shape[:-2], rows * 6)
    wrenches = {}
    for link, wrench in f_ext.items():
        body = robot.link(link).body
        value = real_array(f"f_ext[{link!r}]", wrench, "(6,) or (B, 6)")
        if value.ndim not in (1, 2) or value.shape[-1] != 6:
            raise ShapeError(
                f"f_ext[{link!r}]: expected [n; f] of shape (6,) or (B, 6) in world axes about the world "
                f"origin, got shape {np.shape(wrench)}"
            )
        check_finite(f"f_ext[{link!r}]", value)
        wrenches[link] = (body, value)
    batch_size([f"f_ext[{link!r}]" for link in wrenches], [value for _, value in wrenches.values()])
    batch = np.broadcast_shapes(*(value.shape[:-1] for _, value in wrenches.values()))
    world = np.zeros((*batch, rows, 6))
    for body, value in wrenches.values():
        world[..., body, :] += value
    flat = world.reshape(*batch, rows * 6)
    local = run(robot, "wrenches_in_bodies", None, engine, None, reproducible, q, flat)
    return local.reshape(*local.shape[:-2], rows * 6)


def with_forces(
    name: str, robot: Robot, q: Any, f_ext: FExt, engine: str | None, reproducible: bool | None
) -> tuple[str, tuple[np.ndarray, ...]]:
    """Name of the kernel with or without external forces, and what it takes for them."""
    if f_ext is None:
        return name, ()
    return name + WITH_FORCES, (body_forces(robot, q, f_ext, engine, reproducible),)


def accelerations(
    robot: Robot,
    key: Key,
    out: Any,
    engine: str | None,
    dtype: Any,
    reproducible: bool | None,
    q: Any,
    *others: Any,
    refusal: tuple[str, str] = ("accelerations", "v, tau or f_ext are too large"),
) -> Any:
    """Run a kernel of forward dynamics, or of its derivatives; where H is singular, raise SingularInertia.

    A robot whose H is singular in every configuration was refused when its kernel was built. Here a single
    configuration may be: its accelerations are not finite. The error names the joint.
    """
    if out is None and engine is None and dtype is None and reproducible is None:
        try:  # the short way of run, without the call
            result = robot.kernels[key].fast(q, *others)
        except (KeyError, AttributeError, TypeError):
            pass
        else:
            if result is not None:
                return result
    try:
        return run(robot, key, out, engine, dtype, reproducible, q, *others)
    except ArithmeticError as error:
        if isinstance(error, SingularInertia):
            raise
        states = np.atleast_2d(np.asarray(q, dtype=float))
        rows = max(len(np.atleast_2d(np.asarray(each))) for each in (q, *others))
        bad = _not_finite(getattr(error, "result", None), rows)
        # A look takes milliseconds: not at every state of a large batch.
        for k in bad[:LOOKS]:
            each = robot if robot.samples is None else robot.sample(int(k))
            joint = singular_joint(each, states[k % len(states)])
            if joint is not None:
                refuse(robot, joint, "it moves no inertia of its own in this configuration")
        where = f" of state {bad[0]} (and {len(bad) - 1} more)" if len(states) > 1 else ""
        what, why = refusal
        raise ShapeError(f"the {what}{where} are not finite: {why}") from error


def _not_finite(result: Any, rows: int) -> np.ndarray:
    """Numbers of the states whose results, an array or a tuple of them, are not finite."""
    each = result if isinstance(result, tuple) else (result,)
    if result is None:
        return np.arange(rows)
    return np.flatnonzero(~np.all([np.isfinite(x).reshape(rows, -1).all(axis=1) for x in each], axis=0))


def check_mass_matrix(robot: Robot, H: np.ndarray) -> None:
    """Raise ShapeError for a matrix that the factorisation would misread.

    It reads one triangle, and only the entries of the tree's pattern.
    """
    scale = 1e-9 * float(np.abs(H).max(initial=0.0))
    if np.abs(H - np.swapaxes(H, -1, -2)).max(initial=0.0) > scale:
        raise ShapeError("H: expected a symmetric matrix, with both halves filled as rk.crba returns it")
    outside = np.abs(H[..., ~robot.inertia_pattern]).max(initial=0.0)
    if outside > scale:
        raise ShapeError(
            f"H: an entry of {outside:.3g} stands where the tree of robot {robot.name!r} has no path between "
            "two joints (see rk.inertia_sparsity); a matrix of another form needs a dense solver"
        )
