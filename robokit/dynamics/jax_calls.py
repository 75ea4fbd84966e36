"""Kernels on a card as functions of JAX: foreign functions of XLA, under ``jax.jit`` too."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from robokit import hooks
from robokit.dynamics.build import Key, code_on_card, kernel
from robokit.engine import Bound
from robokit.engine.cuda import arrays, driver, xla
from robokit.engine.cuda.arrays import Common
from robokit.errors import DeviceError, ShapeError
from robokit.model.robot import Robot

Shapes = Sequence[tuple[str, tuple[int, ...]]]


def card_call(
    jax: Any, robot: Robot, key: Key, inputs: Shapes, outputs: Shapes, reproducible: bool | None = None
) -> Callable[..., Any]:
    """A kernel as a function of JAX's arrays with any leading axes, for the card on which these are.

    Args:
        jax: the module.
        robot, key, reproducible: of the kernel.
        inputs, outputs: (name, shape) of each.
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
    def call(*given: Any) -> tuple[Any, ...]:
        leads = [x.shape[: x.ndim - len(shape)] for x, (_, shape) in zip(given, inputs, strict=True)]
        lead = numpy.broadcast_shapes(*leads)
        B, columns = math.prod(lead), []
        for x, own, (_, shape) in zip(given, leads, inputs, strict=True):
            n = math.prod(shape)
            if math.prod(own) == 1:  # one for all
                columns.append(x.reshape(1, n))
            else:
                columns.append(numpy.broadcast_to(x, (*lead, *shape)).reshape(B, n))
        results = foreign(str(given[0].dtype), B)(*columns)
        return tuple(x.T.reshape(*lead, *shape) for x, (_, shape) in zip(results, outputs, strict=True))

    @call.def_vmap  # type: ignore[untyped-decorator]
    def mapped(size: int, along: Sequence[bool], *given: Any) -> Any:
        """The mapped axis is the first of all leading axes."""
        own = [x.ndim - here - len(shape) for x, here, (_, shape) in zip(given, along, inputs, strict=True)]
        moved = [
            x.reshape(size, *[1] * (max(own) - k), *x.shape[1:]) if here else x
            for x, k, here in zip(given, own, along, strict=True)
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

    def launch(given: Sequence[xla.Given], results: Sequence[xla.Given], stream: int) -> None:
        number = driver.current() if several else usual
        if number not in cards:
            cards[number] = _on_card(robot, own, last, number, dtype)
        code, constants = cards[number]
        B = results[0].shape[1]
        columns = [(x.pointer, 1, x.shape[1] if x.shape[0] > 1 else 0) for x in given]
        code([*columns, *constants, *((x.pointer, B, 1) for x in results)], B, stream)

    return xla.register(jax, own.name, launch)


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
    robot: Robot, key: Key, where: Common, reproducible: bool | None, given: Sequence[Any], out: Any
) -> Any:
    """Run a kernel on JAX's arrays on a card; arguments as of :func:`robokit.dynamics.on_card.run_on_card`.

    Raises:
        DeviceError: an array that is not on the card.
        ShapeError: a wrong shape, or an array to write to, which JAX does not have.
    """
    import jax

    if out is not None:
        raise ShapeError("out: arrays of JAX cannot be written to; leave it out")
    own = kernel(robot, key, where.dtype, reproducible)
    signature = own.signature
    count = len(signature.arguments) - (len(own._last) if isinstance(own, Bound) else 0)
    inputs = [(name, (size,)) for name, size in signature.arguments[:count]]
    if len(given) != count:
        signature.arrays(given)
    taken = []
    for (name, (size,)), x in zip(inputs, given, strict=True):
        fixed = isinstance(x, np.ndarray) and (x.size == 1 or not x.flags.writeable)
        if not fixed and hasattr(x, "shape") and x.shape and arrays.library_of(x) is None:
            raise DeviceError(f"{name}: expected an array of JAX on a card as the others are, got another")
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
