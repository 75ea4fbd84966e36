"""Functions for CasADi, JAX and PyTorch.

CasADi gets the operations, and differentiates them itself. JAX and PyTorch get a call of the machine code,
and robokit's derivative of it as theirs: the transposed one (J^T w), which is again such a function, so that
there are second derivatives too.
"""

from __future__ import annotations

import math
from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from robokit.arguments import one_of
from robokit.dataclass_tools import cached_attribute
from robokit.dynamics.build import Key, kernel, row_of
from robokit.dynamics.choices import on_card
from robokit.dynamics.differentiate import Derivation, Flat
from robokit.dynamics.run import accelerations, run
from robokit.engine import Bound
from robokit.engine.passes.replay import node_values
from robokit.engine.trace.graph import Program
from robokit.errors import DeviceError, RobokitError, ShapeError, library
from robokit.model.robot import Robot, check_robot

# ---- results with several outputs -------------------------------------------------------------------------


@cache
def result_class(function: str, names: tuple[str, ...]) -> Any:
    """The named tuple of a function's outputs; invalid names become ``_0``, ``_1``, ...

    No module has it by name, so that each result says how it is made again: it can be pickled and copied.
    """

    def again(result: tuple[Any, ...]) -> tuple[Any, ...]:
        return _result, (function, names, tuple(result))

    made = namedtuple(f"{function}_result", names, rename=True)  # type: ignore[misc]
    setattr(made, "__reduce__", again)  # noqa: B010 - a method of its own, to the type checker
    return made


def _result(function: str, names: tuple[str, ...], values: tuple[Any, ...]) -> Any:
    return result_class(function, names)(*values)


# ---- a function as other libraries take it: of plain coordinates, on NumPy arrays, with its linear maps ---
#
# Such libraries know vectors of nq coordinates, no manifolds. So quaternions are made unit inside, and a
# function has a derivative by each of their coordinates: none along the quaternion itself. Whoever follows
# the gradient leaves the unit quaternions a little and may go on from there.

Shapes = tuple[tuple[str, tuple[int, ...]], ...]


def derived_shapes(how: str, inputs: Shapes, outputs: Shapes) -> tuple[Shapes, Shapes]:
    """Inputs and outputs of a function, of its "pullback" or its "pushforward"."""
    if how == "pullback":
        return (*inputs, *_named("w_", outputs)), _named("g_", inputs)
    if how == "pushforward":
        return (*inputs, *_named("d", inputs)), _named("d", outputs)
    return inputs, outputs


def _named(prefix: str, shapes: Shapes) -> Shapes:
    return tuple((prefix + name, shape) for name, shape in shapes)


class HostFunction:
    """A function for one robot: arrays with any leading axes in, arrays with the same leading axes out.

    ``inputs`` and ``outputs`` are (name, shape) of each.
    """

    def __init__(self, robot: Robot, key: Key, inputs: Shapes, outputs: Shapes | None = None) -> None:
        """A function of a kernel whose inputs are plain, with (name, shape) of each input and output."""
        self.robot, self.key, self.inputs = robot, key, inputs
        self.outputs = outputs or tuple(kernel(robot, key).signature.outputs)

    def __repr__(self) -> str:
        return f"<{row_of(self.key).name}({', '.join(name for name, _ in self.inputs)}) of {self.robot.name}>"

    def __call__(self, *arguments: Any) -> tuple[np.ndarray, ...]:
        """The outputs, one array each; ShapeError for a wrong shape, InvalidValue for NaN or infinity."""
        arrays = [np.asarray(x, dtype=float, order="C") for x in arguments]
        return self._outputs(arrays, lambda x, shape: np.array(np.broadcast_to(x, shape), order="C"))

    def of_tensors(self, *arguments: Any) -> tuple[Any, ...]:
        """The outputs of PyTorch's tensors on a card, as :meth:`__call__`."""
        return self._outputs(arguments, lambda x, shape: x.expand(*shape))

    def _outputs(self, arguments: Sequence[Any], wide: Callable[[Any, Any], Any]) -> tuple[Any, ...]:
        """The outputs of arrays that ``wide`` makes arrays of larger shapes."""
        leads, flat = [], []
        for (name, shape), x in zip(self.inputs, arguments, strict=True):
            lead = tuple(x.shape[: x.ndim - len(shape)])
            if tuple(x.shape) != (*lead, *shape):
                axes = ", ".join(map(str, ("...", *shape)))
                raise ShapeError(f"{name}: expected shape ({axes}), got {tuple(x.shape)}")
            leads.append(lead)
        lead = self._lead(leads)
        for (_, shape), x, own in zip(self.inputs, arguments, leads, strict=True):
            if math.prod(own) == 1:  # one for all
                flat.append(x.reshape(-1))
            else:
                flat.append(wide(x, (*lead, *shape)).reshape(math.prod(lead), math.prod(shape)))
        if lead and all(x.ndim == 1 for x in flat) and flat:
            flat[0] = flat[0][None]
        found = (np.float64(x) if x.__class__ is float else x for x in self.rows(flat))
        return tuple(x.reshape((*lead, *shape)) for x, (_, shape) in zip(found, self.outputs, strict=True))

    def rows(self, flat: list[np.ndarray]) -> tuple[np.ndarray, ...]:
        """The outputs of rows of inputs, (B, n) or for all of them (n,), without their shapes."""
        way = accelerations if row_of(self.key).result.finite else run
        result = way(self.robot, self.key, None, None, None, None, *flat)
        return result if isinstance(result, tuple) else (result,)

    def _lead(self, leads: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        """The leading axes of all inputs together."""
        try:
            return np.broadcast_shapes(*leads)
        except ValueError:
            shapes = ", ".join(f"{name} {lead}" for (name, _), lead in zip(self.inputs, leads, strict=True))
            raise ShapeError(
                f"{shapes}: expected leading axes that go together, a batch of each or of one, got these"
            ) from None

    @cached_attribute
    def pullback(self) -> HostFunction:
        """Inputs and a weight for each output -> the gradient of the weighted sum by each input."""
        return self._derived("pullback")

    @cached_attribute
    def pushforward(self) -> HostFunction:
        """Inputs and a direction for each -> the derivative of each output along it."""
        return self._derived("pushforward")

    def _derived(self, how: str) -> HostFunction:
        shapes = derived_shapes(how, self.inputs, self.outputs)
        return HostFunction(self.robot, derived(self.key, how), *shapes)

    def bound(self, name: str, arguments: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
        """The inputs in order, given in order or by name; TypeError for too many, too few or others."""
        names = [each for each, _ in self.inputs]
        values = dict(zip(names, arguments, strict=False))
        if len(arguments) > len(names) or set(named) & set(values) or set(names) != {*values, *named}:
            by_name = f" and {', '.join(sorted(named))} by name" if named else ""
            raise TypeError(
                f"{name} takes {len(names)} inputs ({', '.join(names)}), got {len(arguments)}{by_name}"
            )
        values |= named
        return [values[each] for each in names]


def derived(key: Key, how: str) -> Key:
    """The key of a function that is derived from a kernel."""
    row = row_of(key)
    name = row.name if how == "normalized" else f"{row.name}_{how}"
    made = replace(row, name=name, growth="", derived=(*row.derived, Derivation(how, ())))
    return (made, *key[1:]) if isinstance(key, tuple) else made


def host_function(robot: Robot, key: Key, shapes: Mapping[str, tuple[int, ...]]) -> HostFunction:
    """A function of plain coordinates; always the same for the same robot and key.

    ``shapes`` are those of inputs that are no arrays (n,). Raises RobokitError for a robot with samples.
    """
    check_robot(robot)
    check_one_sample(robot)

    def made() -> HostFunction:
        plain = derived(key, "normalized")
        built = kernel(robot, plain)
        inputs = built.signature.inputs[: -1 if isinstance(built, Bound) else None]
        return HostFunction(robot, plain, tuple((n, shapes.get(n, (size,))) for n, size in inputs))

    found: HostFunction = robot.derived.get(("host function", key), made)
    return found


def check_one_sample(robot: Robot) -> None:
    """Raise RobokitError for a robot with samples of inertias: other libraries take one."""
    if robot.samples is not None:
        raise RobokitError(
            f"robot {robot.name!r} has {robot.samples} samples of inertias; take one, robot.sample(k)"
        )


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
    """A ``casadi.Function`` of the operations of a program that was recorded of a flat function.

    ``constants``: what the program takes as one more input, if there are any.
    """
    ca = library("casadi", "casadi")
    arguments, flat_arguments = [], []
    for (input_name, _), shape in zip(flat.sizes, shapes, strict=True):
        symbol = ca.SX.sym(input_name, *_matrix(shape))
        arguments.append(symbol)
        flat_arguments.append([symbol[i, j] for i in range(symbol.shape[0]) for j in range(symbol.shape[1])])
    flat_arguments.append([ca.SX(x) for x in constants])
    value = node_values(program, flat_arguments)
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


# ---- JAX ----------------------------------------------------------------------------------------------


def jax_function(name: str, host: HostFunction, mode: str) -> Callable[..., Any]:
    """A function of JAX arrays that calls ``host``, with the derivative of a mode, "reverse" or "forward"."""
    jax = library("jax", "jax")
    one_of("mode", mode, MODES)
    reverse = mode == "reverse"
    call, answer = (
        (_jax_reverse if reverse else _jax_forward)(jax, host),
        results(name, [n for n, _ in host.outputs]),
    )

    def function(*arguments: Any, **named: Any) -> Any:
        bound = host.bound(name, arguments, named)
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
                "jax.jacfwd use to_jax(mode='forward')"
            ) from error

    function.__name__ = function.__qualname__ = name
    return function


def _jax_real(jax: Any, arguments: Sequence[Any]) -> Any:
    """Dtype of a call: float64, or on a card that of its arrays; None where JAX has no float64."""
    from robokit.engine.cuda.arrays import JAX  # `import robokit` stays light

    double = jax.config.jax_enable_x64
    if not JAX.has_card(jax):
        return np.float64 if double else None
    single = not double or all(str(getattr(x, "dtype", "float32")) == "float32" for x in arguments)
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
    from robokit.dynamics.on_card import card_call

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
    """A function of PyTorch tensors that calls ``host``."""
    torch = library("torch", "torch")
    answer = results(name, [n for n, _ in host.outputs])

    class Call(torch.autograd.Function):  # type: ignore[misc, name-defined]
        """A host function; its derivative is another one."""

        @staticmethod
        def forward(host: HostFunction, *arguments: Any) -> Any:
            if on_card(*arguments):
                return host.of_tensors(*arguments)
            found = host(*(x.detach().cpu().numpy() for x in arguments))
            return tuple(torch.from_numpy(x).to(arguments[0].device) for x in found)

        @staticmethod
        def setup_context(context: Any, inputs: tuple[Any, ...], output: Any) -> None:
            context.host, *arguments = inputs
            context.save_for_backward(*arguments)
            context.save_for_forward(*arguments)

        @staticmethod
        def backward(context: Any, *weights: Any) -> Any:
            arguments = context.saved_tensors
            gradients = Call.apply(context.host.pullback, *arguments, *weights)
            # One state for many: its gradient is the sum of theirs.
            return (None, *(g.sum_to_size(x.shape) for g, x in zip(gradients, arguments, strict=True)))

        @staticmethod
        def jvp(context: Any, _: Any, *changes: Any) -> Any:
            arguments = context.saved_tensors
            still = (torch.zeros_like(x) if d is None else d for x, d in zip(arguments, changes, strict=True))
            return Call.apply(context.host.pushforward, *arguments, *still)

        @staticmethod
        def vmap(info: Any, axes: tuple[Any, ...], host: HostFunction, *arguments: Any) -> Any:
            """The mapped axis becomes the first of all leading axes."""
            moved = [
                x if axis is None else x.movedim(axis, 0) for x, axis in zip(arguments, axes[1:], strict=True)
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

    def function(*arguments: Any, **named: Any) -> Any:
        return answer(Call.apply(host, *_tensors(torch, host, host.bound(name, arguments, named))))

    function.__name__ = function.__qualname__ = name
    return function


def _tensors(torch: Any, host: HostFunction, bound: Sequence[Any]) -> list[Any]:
    """The inputs as tensors: of float64, else ShapeError; or of one dtype on one card, else DeviceError."""
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
