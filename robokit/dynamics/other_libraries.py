"""Functions for CasADi, JAX and PyTorch.

CasADi gets the operations, and differentiates them itself. JAX and PyTorch get a call of the machine code,
and robokit's derivative of it as theirs: the transposed one (J^T w), which is again such a function, so that
there are second derivatives too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from robokit.arguments import one_of
from robokit.dynamics.build import row_of
from robokit.dynamics.devices import on_card
from robokit.dynamics.differentiate import Flat
from robokit.dynamics.host_functions import HostFunction, host_function
from robokit.dynamics.named_results import result_class
from robokit.engine.passes.replay import replayed
from robokit.engine.trace.program import Program
from robokit.errors import DeviceError, ShapeError, library
from robokit.model.robot import Robot

MODES = ("reverse", "forward")


def results(name: str, names: Sequence[str]) -> Callable[[Sequence[Any]], Any]:
    """A function from the outputs to the result: the only output, or a named tuple of all."""
    if len(names) == 1:
        return lambda outputs: outputs[0]
    made = result_class(name, tuple(names))
    return lambda outputs: made(*outputs)


# ---- CasADi -------------------------------------------------------------------------------------------


def casadi_function(
    name: str,
    flat: Flat,
    program: Program,
    shapes: Sequence[tuple[int, ...]],
    constants: Sequence[float] = (),
) -> Any:
    """A ``casadi.Function`` of the operations of a program.

    Args:
        name: of the function.
        flat: what the program was recorded of.
        program: the recorded graph.
        shapes: of the inputs.
        constants: what the program takes as one more input, if there are any.
    """
    ca = library("casadi", "casadi")
    arguments, flat_arguments = [], []
    for (given, _), shape in zip(flat.sizes, shapes, strict=True):
        symbol = ca.SX.sym(given, *_matrix(shape))
        arguments.append(symbol)
        flat_arguments.append(_rows(symbol))
    flat_arguments.append([ca.SX(x) for x in constants])
    value = replayed(program, flat_arguments)
    outputs = []
    for row, (_, shape) in zip(program.results, flat.outputs, strict=True):
        scalars = [value[r] if type(r) is int else ca.SX(r) for r in row]
        m, n = _matrix(shape)
        outputs.append(ca.reshape(ca.vertcat(*scalars), n, m).T if scalars else ca.SX(m, n))
    names = [given for given, _ in flat.sizes]
    taken = set(names)
    symbols = [s if s not in taken else f"{s}_out" for s, _ in flat.outputs]
    return ca.Function(name, arguments, outputs, names, symbols)


def _matrix(shape: tuple[int, ...]) -> tuple[int, int]:
    """The shape of an array as rows and columns: CasADi has matrices only."""
    return (math.prod(shape[:-1]), shape[-1]) if len(shape) > 1 else (math.prod(shape), 1)


def _rows(symbol: Any) -> list[Any]:
    """The scalars row by row."""
    return [symbol[i, j] for i in range(symbol.shape[0]) for j in range(symbol.shape[1])]


# ---- JAX ----------------------------------------------------------------------------------------------


def jax_function(name: str, host: HostFunction, mode: str) -> Callable[..., Any]:
    """A function of JAX arrays.

    Args:
        name: of the function.
        host: what it calls.
        mode: "reverse" or "forward": which derivative it has.
    """
    jax = library("jax", "jax")
    one_of("mode", mode, MODES)
    reverse = mode == "reverse"
    call, answer = (
        (_jax_reverse if reverse else _jax_forward)(jax, host),
        results(name, [n for n, _ in host.outputs]),
    )

    def function(*given: Any, **named: Any) -> Any:
        bound = host.bound(name, given, named)
        real = _jax_real(jax, bound)
        if real is None:
            raise ShapeError(
                f"{name}: robokit computes in double precision, and JAX's is off; call "
                'jax.config.update("jax_enable_x64", True) before any array is made'
            )
        arrays = [jax.numpy.asarray(x, real) for x in bound]
        for (each, shape), array in zip(host.inputs, arrays, strict=True):
            if array.shape != shape:
                raise ShapeError(f"{each}: expected shape {shape}, got {array.shape}; jax.vmap makes batches")
        try:
            return answer(call(*arrays))
        except TypeError as error:
            if not reverse or "forward-mode" not in str(error):
                raise
            raise TypeError(
                f"{name}: to_jax(mode='reverse') is for jax.grad, jax.vjp and jax.jacrev; for jax.jvp and "
                "jax.jacfwd make it by to_jax(mode='forward')"
            ) from error

    function.__name__ = function.__qualname__ = name
    return function


def _jax_real(jax: Any, given: Sequence[Any]) -> Any:
    """Dtype of a call: float64, or on a card that of its arrays; None where JAX has no float64."""
    from robokit.engine.cuda.arrays import JAX  # `import robokit` stays light

    double = jax.config.jax_enable_x64
    if not JAX.has_card(jax):
        return np.float64 if double else None
    single = not double or all(str(getattr(x, "dtype", "float32")) == "float32" for x in given)
    return np.float32 if single else np.float64


def _jax_call(jax: Any, host: HostFunction) -> Callable[..., tuple[Any, ...]]:
    def here(*x: Any) -> tuple[Any, ...]:
        real = x[0].dtype
        leads = [a.shape[: a.ndim - len(shape)] for a, (_, shape) in zip(x, host.inputs, strict=True)]
        lead = np.broadcast_shapes(*leads)
        kinds = tuple(jax.ShapeDtypeStruct((*lead, *shape), real) for _, shape in host.outputs)

        def call(*x: Any) -> tuple[Any, ...]:
            return tuple(np.asarray(found, real) for found in host(*x))

        return tuple(jax.pure_callback(call, kinds, *x, vmap_method="expand_dims"))

    from robokit.engine.cuda.arrays import JAX, platform

    if not JAX.has_card(jax):
        return here
    from robokit.dynamics.jax_calls import card_call

    there = card_call(jax, host.robot, host.key, host.inputs, host.outputs)
    return lambda *x: jax.lax.platform_dependent(*x, default=here, **{platform(): there})


def _jax_reverse(jax: Any, host: HostFunction) -> Callable[..., tuple[Any, ...]]:
    """The function with its transposed derivative, made when it is first needed."""
    call = jax.custom_vjp(_jax_call(jax, host))
    transposed: list[Callable[..., Any]] = []

    def backward(x: tuple[Any, ...], w: tuple[Any, ...]) -> tuple[Any, ...]:
        if not transposed:
            transposed.append(_jax_reverse(jax, host.pullback))
        return tuple(transposed[0](*x, *w))

    call.defvjp(lambda *x: (call(*x), x), backward)
    return call  # type: ignore[no-any-return]


def _jax_forward(jax: Any, host: HostFunction) -> Callable[..., tuple[Any, ...]]:
    """The function with its derivative along a direction."""
    call = jax.custom_jvp(_jax_call(jax, host))
    along: list[Callable[..., Any]] = []

    @call.defjvp
    def forward(x: tuple[Any, ...], dx: tuple[Any, ...]) -> tuple[Any, Any]:
        if not along:
            along.append(_jax_forward(jax, host.pushforward))
        return call(*x), tuple(along[0](*x, *dx))

    return call  # type: ignore[no-any-return]


# ---- PyTorch ------------------------------------------------------------------------------------------


def torch_function(name: str, host: HostFunction) -> Callable[..., Any]:
    """A function of PyTorch tensors.

    Args:
        name: of the function.
        host: what it calls.
    """
    torch = library("torch", "torch")
    answer = results(name, [n for n, _ in host.outputs])

    class Call(torch.autograd.Function):  # type: ignore[misc, name-defined]
        """A host function; its derivative is another one."""

        @staticmethod
        def forward(host: HostFunction, *given: Any) -> Any:
            if on_card(*given):
                return host.of_tensors(*given)
            found = host(*(x.detach().cpu().numpy() for x in given))
            return tuple(torch.from_numpy(x).to(given[0].device) for x in found)

        @staticmethod
        def setup_context(context: Any, inputs: tuple[Any, ...], output: Any) -> None:
            context.host, *given = inputs
            context.save_for_backward(*given)
            context.save_for_forward(*given)

        @staticmethod
        def backward(context: Any, *weights: Any) -> Any:
            given = context.saved_tensors
            gradients = Call.apply(context.host.pullback, *given, *weights)
            # One state for many: its gradient is the sum of theirs.
            return (None, *(g.sum_to_size(x.shape) for g, x in zip(gradients, given, strict=True)))

        @staticmethod
        def jvp(context: Any, _: Any, *changes: Any) -> Any:
            given = context.saved_tensors
            still = (torch.zeros_like(x) if d is None else d for x, d in zip(given, changes, strict=True))
            return Call.apply(context.host.pushforward, *given, *still)

        @staticmethod
        def vmap(info: Any, axes: tuple[Any, ...], host: HostFunction, *given: Any) -> Any:
            """The mapped axis becomes the first of all leading axes."""
            moved = [
                x if axis is None else x.movedim(axis, 0) for x, axis in zip(given, axes[1:], strict=True)
            ]
            own = [
                x.dim() - (axis is not None) - len(shape)
                for x, axis, (_, shape) in zip(moved, axes[1:], host.inputs, strict=True)
            ]
            for k, axis in enumerate(axes[1:]):
                if axis is not None:
                    size, *rest = moved[k].shape
                    moved[k] = moved[k].reshape(size, *[1] * (max(own) - own[k]), *rest)
            return Call.apply(host, *moved), (0,) * len(host.outputs)

    def function(*given: Any, **named: Any) -> Any:
        return answer(Call.apply(host, *_tensors(torch, host, host.bound(name, given, named))))

    function.__name__ = function.__qualname__ = name
    return function


def _tensors(torch: Any, host: HostFunction, bound: Sequence[Any]) -> list[Any]:
    """The inputs as tensors: of float64, or on a card all of one dtype.

    Raises:
        ShapeError: of another dtype.
        DeviceError: not all on one card.
    """
    like = next((x for x in bound if on_card(x)), None)
    if like is None:
        tensors = [torch.as_tensor(x) for x in bound]
    else:  # lists and numbers go along
        how = {"dtype": like.dtype, "device": like.device}
        tensors = [x if isinstance(x, torch.Tensor) else torch.as_tensor(x, **how) for x in bound]
        from robokit.engine.cuda.arrays import common

        common([each for each, _ in host.inputs], tensors, None, None)
    for (each, _), tensor in zip(host.inputs, tensors, strict=True):
        if like is not None and tensor.device != like.device:
            raise DeviceError(
                f"{each}: expected a tensor on {like.device} as the others are, got one on "
                f"{tensor.device}; move it there with .to({str(like.device)!r})"
            )
        if like is None and tensor.dtype != torch.float64:
            raise ShapeError(
                f"{each}: expected a tensor of float64, got {tensor.dtype}; use tensor.double(), or "
                "torch.set_default_dtype(torch.float64) before tensors are made"
            )
    return tensors


def jax_pullback(robot: Robot, key: Any) -> Callable[..., tuple[Any, ...]]:
    """The transposed derivative of a kernel: JAX's arrays, and a weight for each output -> gradients."""
    return _jax_reverse(library("jax", "jax"), host_function(robot, key, {}).pullback)


def autograd_call(robot: Robot, key: Any, arguments: Sequence[Any]) -> Any:
    """A kernel of tensors on a card as a step of autograd."""
    return torch_function(row_of(key).name, host_function(robot, key, {}))(*arguments)
