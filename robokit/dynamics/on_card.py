"""Kernels of robots on a card: of arrays that are there, and of NumPy's, which are copied there and back.

What is on a card is not looked at: NaN, and quaternions that are not of unit length, give NaN or nonsense, as
in other programs for cards. To look would be to wait.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from robokit import hooks
from robokit.arguments import real_array
from robokit.dynamics.build import Key, code_on_card, kernel, row_of
from robokit.engine import Bound, NotFinite
from robokit.engine.cuda import arrays, driver
from robokit.engine.cuda.arrays import Common
from robokit.engine.cuda.loops import LoopedOnCard
from robokit.engine.signature import Signature
from robokit.errors import DeviceError, ShapeError
from robokit.model.robot import Robot

# ---- functions of JAX: foreign functions of XLA, under ``jax.jit`` too ------------------------------------

Shapes = Sequence[tuple[str, tuple[int, ...]]]


def card_call(
    jax: Any, robot: Robot, key: Key, inputs: Shapes, outputs: Shapes, reproducible: bool | None = None
) -> Callable[..., Any]:
    """A kernel as a function of JAX's arrays with any leading axes, for the card on which these are.

    ``inputs`` and ``outputs``: (name, shape) of each.
    """
    numpy = jax.numpy
    targets: dict[str, str] = {}

    def foreign(dtype: str, B: int) -> Callable[..., Any]:
        if dtype not in targets:
            targets[dtype] = _registered(jax, robot, key, dtype, reproducible)
        shapes = [jax.ShapeDtypeStruct((math.prod(shape), B), dtype) for _, shape in outputs]
        made: Callable[..., Any] = jax.ffi.ffi_call(targets[dtype], shapes)
        return made

    @jax.custom_batching.custom_vmap  # type: ignore[untyped-decorator]
    def call(*arguments: Any) -> tuple[Any, ...]:
        leads = [x.shape[: x.ndim - len(shape)] for x, (_, shape) in zip(arguments, inputs, strict=True)]
        lead = numpy.broadcast_shapes(*leads)
        B, columns = math.prod(lead), []
        for x, own, (_, shape) in zip(arguments, leads, inputs, strict=True):
            n = math.prod(shape)
            if math.prod(own) == 1:  # one for all
                columns.append(x.reshape(1, n))
            else:
                columns.append(numpy.broadcast_to(x, (*lead, *shape)).reshape(B, n))
        results = foreign(str(arguments[0].dtype), B)(*columns)
        return tuple(x.T.reshape(*lead, *shape) for x, (_, shape) in zip(results, outputs, strict=True))

    @call.def_vmap  # type: ignore[untyped-decorator]
    def mapped(size: int, along: Sequence[bool], *arguments: Any) -> Any:
        """The mapped axis is the first of all leading axes."""
        each = zip(arguments, along, inputs, strict=True)
        own = [x.ndim - here - len(shape) for x, here, (_, shape) in each]
        moved = [
            x.reshape(size, *[1] * (max(own) - k), *x.shape[1:]) if here else x
            for x, k, here in zip(arguments, own, along, strict=True)
        ]
        return call(*moved), tuple(True for _ in outputs)

    found: Callable[..., Any] = call
    return found


def _registered(jax: Any, robot: Robot, key: Key, dtype: str, reproducible: bool | None) -> str:
    """The foreign function of a kernel."""
    own = kernel(robot, key, dtype, reproducible)
    last = own._last if isinstance(own, Bound) else ()
    several, cards = driver.count() > 1, {}
    usual = arrays.JAX.usual_number(jax)
    cards[usual] = _on_card(robot, own, last, usual, dtype)  # XLA may record the first launch in a graph

    def launch(arguments: Sequence[arrays.Given], results: Sequence[arrays.Given], stream: int) -> None:
        number = driver.current() if several else usual
        if number not in cards:
            cards[number] = _on_card(robot, own, last, number, dtype)
        code, constants = cards[number]
        B = results[0].shape[1]
        columns = [(x.pointer, 1, x.shape[1] if x.shape[0] > 1 else 0) for x in arguments]
        code([*columns, *constants, *((x.pointer, B, 1) for x in results)], B, stream)

    return arrays.register(jax, own.name, launch)


def _on_card(
    robot: Robot, own: Any, last: Sequence[np.ndarray], number: int, dtype: str
) -> tuple[Any, list[Any]]:
    """A kernel on a card, ready, and what a robot with inertias of its own gives to each of its calls."""
    code, columns = code_on_card(robot, own, driver.card(number)), []  # not while a graph is recorded
    for x in last:
        array = np.ascontiguousarray(x, dtype=dtype)
        pointer = code.card.allocate(array.nbytes)  # for good
        code.card.write(pointer, array)
        code.card.synchronize()
        columns.append((pointer, 1, array.shape[1] if array.ndim == 2 else 0))
    return code, columns


def _differentiable(jax: Any, robot: Robot, key: Key, plain: Callable[..., Any]) -> Callable[..., Any]:
    """The same with robokit's derivative, made when JAX first asks for it."""
    call = jax.custom_vjp(plain)
    pullback: list[Callable[..., Any]] = []

    def backward(x: tuple[Any, ...], w: tuple[Any, ...]) -> tuple[Any, ...]:
        if not pullback:
            pullback.append(hooks.call("pullback for JAX", robot, key))
        return tuple(pullback[0](*x, *w))

    call.defvjp(lambda *x: (plain(*x), x), backward)
    found: Callable[..., Any] = call
    return found


def run_jax(
    robot: Robot, key: Key, where: Common, reproducible: bool | None, arguments: Sequence[Any], out: Any
) -> Any:
    """Run a kernel on JAX's arrays on a card; arguments and errors as of :func:`run_on_card`.

    ShapeError also for an array to write to, which JAX does not have.
    """
    import jax

    if out is not None:
        raise ShapeError("out: arrays of JAX cannot be written to; leave it out")
    own = kernel(robot, key, where.dtype, reproducible)
    signature = own.signature
    count = len(signature.inputs) - (len(own._last) if isinstance(own, Bound) else 0)
    inputs = [(name, (size,)) for name, size in signature.inputs[:count]]
    if len(arguments) != count:
        signature.arrays(arguments)
    taken = []
    for (name, (size,)), x in zip(inputs, arguments, strict=True):
        fixed = isinstance(x, np.ndarray) and (x.size == 1 or not x.flags.writeable)
        if not fixed and hasattr(x, "shape") and x.shape and arrays.library_of(x) is None:
            raise DeviceError(f"{name}: expected a JAX array on a card, like the others, got one elsewhere")
        array = jax.numpy.asarray(x, where.dtype)
        array = array.reshape(1) if not array.ndim and size == 1 else array
        if array.ndim not in (1, 2) or array.shape[-1] != size:
            raise ShapeError(f"{name}: expected shape ({size},) or (B, {size}), got {array.shape}")
        taken.append(array)
    batches = [(name, len(x)) for (name, _), x in zip(inputs, taken, strict=True) if x.ndim == 2]
    for name, rows in batches:
        if rows != batches[0][1]:
            raise ShapeError(f"{name}: expected a batch of {batches[0][1]} like {batches[0][0]}, got {rows}")
    if batches and any(x.ndim == 1 for x in taken):
        rows = batches[0][1]  # so that gradients are sums where one serves all
        taken = [jax.numpy.broadcast_to(x, (rows, x.shape[-1])) for x in taken]
    made = robot.derived.get(
        ("JAX on a card", key, reproducible),
        lambda: _differentiable(
            jax, robot, key, card_call(jax, robot, key, inputs, signature.outputs, reproducible)
        ),
    )
    results = made(*taken)
    return results[0] if len(results) == 1 else tuple(results)


def run_on_card(
    robot: Robot,
    key: Key,
    out: Any,
    number: int | None,
    dtype: str | None,
    reproducible: bool | None,
    arguments: Sequence[Any],
) -> Any:
    """Run a kernel on a card; arguments and result as of the public functions, in the library of the arrays.

    ``number`` and ``dtype`` are of the card and numbers that are asked for; None for those of the arrays.
    Raises DeviceError for arrays of several libraries, on several cards, on another one than is asked for, or
    not on a card as the others are, and where there is no card or no code for it; ShapeError for a wrong
    shape or dtype.
    """
    torch = sys.modules.get("torch")
    if torch is not None and torch.compiler.is_dynamo_compiling():  # its program calls this, and goes on
        alone = torch.compiler.disable(run_on_card)
        return alone(robot, key, out, number, dtype, reproducible, arguments)
    if out is None and number is None and dtype is None and arguments:
        result = _quickly(robot, key, reproducible, arguments)
        if result is not None:
            return result
    names = row_of(key).inputs.split()
    names = [*names, *("a direction" for _ in range(len(arguments) - len(names)))]
    found = arrays.common(names[: len(arguments)], arguments, number, dtype)
    if found is not None and found.library is arrays.JAX:
        return run_jax(robot, key, found, reproducible, arguments, out)
    if found is not None and found.library is arrays.TORCH and _differentiated(arguments):
        # A step of autograd, whose derivative is robokit's.
        if out is not None:
            raise ShapeError(
                "out: expected None where a tensor requires a gradient; PyTorch cannot follow it"
            )
        outputs = hooks.call("autograd", robot, key, arguments)
        return tuple(outputs) if isinstance(outputs, tuple) else outputs
    real = dtype or (found.dtype if found else None) or _real(arguments)
    own = kernel(robot, key, real, reproducible)
    last = [_Fixed(x) for x in own._last] if isinstance(own, Bound) else []
    card = driver.card(found.number if found else number or 0)
    rows = max((len(x) for x in arguments if getattr(x, "ndim", 1) == 2), default=1)
    code = code_on_card(robot, own, card, rows)
    if found is None:
        return _copied(own.signature, card, code, (*arguments, *(x.array for x in last)), out)
    return launch(own.signature, found, code, (*arguments, *last), out)


def _quickly(robot: Robot, key: Key, reproducible: bool | None, arguments: Sequence[Any]) -> Any:
    """The usual call: tensors of one kind and one card, of a kernel that is there; else None."""
    library = arrays.library_of(arguments[0])
    described = None if library is None else library.quick(arguments)
    if library is None or described is None:
        return None
    number, dtype, seen = described
    place = "on a card", key, reproducible, dtype, number
    found = robot.kernels.get(place)
    if found is None:
        own = kernel(robot, key, dtype, reproducible)
        if isinstance(own, Bound):
            return None
        code = own.on_card(driver.card(number))
        if not code.loaded:
            return None
        sizes = [n for _, n in own.signature.inputs]
        shapes = [(shape, math.prod(shape)) for shape in own.signature.output_shapes]
        found = robot.kernels.setdefault(place, (code, sizes, shapes))
    code, sizes, shapes = found
    if len(sizes) != len(seen):
        return None
    rows, columns = 0, []
    for n, (pointer, shape, strides) in zip(sizes, seen, strict=True):
        if len(shape) == 2 and shape[1] == n and rows in (0, shape[0]) and shape[0]:
            rows = shape[0]
            columns.append((pointer, strides[1], strides[0] if rows > 1 else 0))
        elif len(shape) == 1 and shape[0] == n:
            columns.append((pointer, strides[0], 0))
        else:
            return None  # the slow way says why, or knows better
    results = []
    for shape, n in shapes:
        memory = library.empty((n, rows or 1), dtype, number)
        columns.append((memory.data_ptr(), rows or 1, 1))
        one = len(shape) == 1 and rows
        results.append(memory.t() if one else arrays.result(library, memory, shape, not rows))
    code(columns, rows or 1, library.stream(number))
    return results[0] if len(results) == 1 else tuple(results)


class _Fixed:
    """An array that never changes, which a robot passes to each call of a kernel."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array


def _differentiated(arguments: Sequence[Any]) -> bool:
    """Whether PyTorch follows what is computed from these: for derivatives, or for ``torch.func``."""
    import torch

    followed, forward = torch.is_grad_enabled(), torch.autograd.forward_ad.unpack_dual
    for x in arguments:
        if isinstance(x, torch.Tensor):
            if (followed and x.requires_grad) or forward(x).tangent is not None:
                return True
            if torch._C._functorch.is_functorch_wrapped_tensor(x):
                return True
    return False


def _real(arguments: Sequence[Any]) -> str:
    floats = [x for x in arguments if isinstance(x, np.ndarray) and x.dtype.kind == "f"]
    return "float32" if floats and all(x.itemsize == 4 for x in floats) else "float64"


# ---- arrays that are on the card ---------------------------------------------------------------------------


def launch(
    signature: Signature, where: Common, code: Callable[..., None], arguments: Sequence[Any], out: Any = None
) -> Any:
    """Run a kernel's code on arrays on a card, on the caller's stream.

    Args:
        where: what the arrays have in common.
        arguments: inputs, (n,) or (B, n); lists and numbers are constants.
        out: array, or sequence of arrays, to write to.
    """
    library, number, dtype = where
    stream = library.stream(number)
    taken, kept, rows, read = [], [], None, []
    if len(arguments) != len(signature.inputs):
        signature.arrays(arguments)  # raises the error that says so
    for (name, count), x in zip(signature.inputs, arguments, strict=True):
        array = _there(name, x, where)
        seen = library.seen(array)
        if not seen.shape and count == 1:
            seen = seen._replace(shape=(1,), strides=(1,))
        if len(seen.shape) not in (1, 2) or seen.shape[-1] != count:
            raise ShapeError(f"{name}: expected shape ({count},) or (B, {count}), got {seen.shape}")
        if len(seen.shape) == 2:
            if rows is not None and rows[1] != seen.shape[0]:
                raise ShapeError(f"{name}: expected a batch of {rows[1]} like {rows[0]}, got {seen.shape[0]}")
            rows = rows or (name, seen.shape[0])
        column = arrays.column(seen, len(seen.shape) - 1)
        assert column is not None  # an array of one axis always has it
        read.append(arrays.extent(seen))
        taken.append(column)
        kept.append(array)
    B = 1 if rows is None else rows[1]
    places, results, after, targets = [], [], [], _targets(signature, out)
    for shape, target in zip(signature.output_shapes, targets, strict=True):
        wanted = shape if rows is None else (B, *shape)
        column = None if target is None else _fitting(target, wanted, int(rows is not None), where, read)
        if column is None:
            memory = library.empty((math.prod(shape), B), dtype, number)
            column = library.seen(memory).pointer, B, 1
            made = arrays.result(library, memory, shape, rows is None)
            if target is not None:
                after.append((target[1], made))
            kept.append(memory)
            results.append(made if target is None else target[1])
        else:
            results.append(target and target[1])
        places.append(column)
    if len(targets) > 1 and out is not None:
        _check_apart(where, [target for target in targets if target is not None])
    code([*taken, *places], B, stream)
    for target, made in after:
        library.put(target, made)
    return results[0] if len(results) == 1 else tuple(results)


def _there(name: str, x: Any, where: Common) -> Any:
    """An argument as an array on the card; constants are copied once; DeviceError for an array elsewhere."""
    if arrays.library_of(x) is not None:
        return x
    if isinstance(x, _Fixed):
        return where.library.kept(x.array.astype(where.dtype, copy=False), where.number, id(x.array))
    fixed = isinstance(x, np.ndarray) and (x.size == 1 or not x.flags.writeable)
    if not fixed and hasattr(x, "shape") and x.shape:
        kind = "an array of NumPy" if isinstance(x, np.ndarray) else "one in the memory of the processor"
        raise DeviceError(
            f"{name}: expected {where.library.words} on cuda:{where.number} as the others are, got {kind}; "
            "copy it there first"
        )
    array = np.ascontiguousarray(real_array(name, x, "numbers", dtype=where.dtype))
    return where.library.kept(array, where.number)


def _targets(signature: Signature, out: Any) -> list[tuple[str, Any] | None]:
    """Name and array of each output that the caller gives."""
    count = len(signature.outputs)
    if out is None:
        return [None] * count
    arguments = signature.outs_of(out)
    if len(arguments) != count:
        raise ShapeError(f"out: {signature.name} has {count} outputs, got {len(arguments)} arrays")
    return [("out" if count == 1 else f"out[{k}]", x) for k, x in enumerate(arguments)]


def _check_apart(where: Common, targets: Sequence[tuple[str, Any]]) -> None:
    """Refuse arrays to write to that have memory in common; columns of one array may be several."""
    seen = [(name, where.library.seen(x)) for name, x in targets]
    for (i, a), (j, b) in combinations(seen, 2):
        (p, p_end), (q, q_end) = arrays.extent(a), arrays.extent(b)
        size = int(where.dtype[-2:]) // 8
        whole = all(math.prod(x.shape) * size == end - at for x, at, end in ((a, p, p_end), (b, q, q_end)))
        if p < q_end and q < p_end and (whole or p == q):
            raise ShapeError(f"{i} and {j} share memory; each output needs an array of its own")


def _fitting(
    target: tuple[str, Any], shape: tuple[int, ...], lead: int, where: Common, read: Sequence[tuple[int, int]]
) -> tuple[int, int, int] | None:
    """How a kernel writes to a caller's array; None where it cannot directly; ShapeError for a wrong one.

    It cannot where the array may have memory in common with one that the kernel reads: ``read``, where these
    begin and end.
    """
    name, x = target
    if arrays.library_of(x) is not where.library or where.library.number(x) != where.number:
        raise DeviceError(f"{name}: expected {where.library.words} on cuda:{where.number}, got another one")
    seen = where.library.seen(x)
    if seen.shape != shape or seen.dtype != where.dtype:
        raise ShapeError(f"{name}: expected {where.dtype} {shape}, got {seen.dtype} {seen.shape}")
    if math.prod(shape) > 1 and 0 in [s for s, n in zip(seen.strides, seen.shape, strict=True) if n > 1]:
        raise ShapeError(f"{name}: expected an array with separate elements, got a broadcast one")
    first, end = arrays.extent(seen)
    return None if any(first < b and a < end for a, b in read) else arrays.column(seen, lead)


def body_forces_on_card(robot: Robot, q: Any, f_ext: Any, engine: Any, reproducible: bool | None) -> Any:
    """As :func:`robokit.dynamics.run.body_forces`, of arrays on a card."""
    rows = robot.nbodies + 1
    if not isinstance(f_ext, Mapping):
        if not hasattr(f_ext, "shape") or tuple(f_ext.shape[-2:]) != (rows, 6) or f_ext.ndim not in (2, 3):
            raise ShapeError(
                f"f_ext: expected {{link: wrench (6,)}} or an array ({rows}, 6) or (B, {rows}, 6) in body "
                f"coordinates, got {getattr(f_ext, 'shape', f_ext)}"
            )
        return f_ext.reshape(*f_ext.shape[:-2], rows * 6)
    where = arrays.common(["q", *f_ext], [q, *f_ext.values()], getattr(engine, "number", None), None)
    assert where is not None
    wrenches = [(robot.link(link).body, _there(f"f_ext[{link!r}]", x, where)) for link, x in f_ext.items()]
    states = max([1, *(len(x) for _, x in wrenches if x.ndim == 2)])
    single = all(x.ndim == 1 for _, x in wrenches)
    world = [where.library.zeros((states, 6), where.dtype, where.number)] * rows
    for body, x in wrenches:
        world[body] = world[body] + x
    flat = where.library.joined(world)
    flat = flat[0] if single else flat
    local = run_on_card(robot, "wrenches_in_bodies", None, where.number, None, reproducible, (q, flat))
    return local.reshape(*local.shape[:-2], rows * 6)


# ---- NumPy's arrays ----------------------------------------------------------------------------------------


def _copied(
    signature: Signature, card: Any, code: Callable[..., None], arguments: Sequence[Any], out: Any
) -> Any:
    """Run a kernel on NumPy's arrays: checked, copied to the card and back."""
    inputs = signature.arrays(arguments)
    rows = signature.rows(inputs)
    signature.check_values(inputs)
    outs = signature.outs(out, rows)
    held, columns = [], []

    def place(array: np.ndarray, states: bool) -> int:
        held.append(card.allocate(array.nbytes))
        count = array.size // len(array) if states and len(array) else array.size
        columns.append((held[-1], 1, count if states else 0))
        return held[-1]

    try:
        for x in inputs:
            array = np.ascontiguousarray(x)
            card.write(place(array, array.ndim == 2), array)
        for x in outs:
            place(x, rows is not None)
        check = {"check": True} if isinstance(code, LoopedOnCard) else {}
        code(columns, 1 if rows is None else rows, **check)
        for x, pointer in zip(outs, held[len(inputs) :], strict=True):
            card.read(x, pointer)
    finally:
        for pointer in held:
            card.free(pointer)
    result = signature.answer(outs, out)
    if signature.finite and not all(np.isfinite(x).all() for x in outs):
        raise NotFinite(signature.name, result)
    return result
