"""Derivatives of the functions of a robot: a function on flat arrays becomes another one.

A configuration has nq coordinates but nv directions. Derivatives with respect to it are taken along
``robot.integrate(q, eps e_k)``: the function is composed with that motion, and differentiated where eps is 0.
Up to the second order the motion is a polynomial (``JointKind.near``), which is all that it takes.

All other inputs are differentiated by their scalars.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from robokit.dataclass_tools import frozen
from robokit.dynamics.layout import one_by_one
from robokit.engine.loops.dual import along_with_loops, jacobian_by_loop, jacobian_with_loops
from robokit.engine.loops.recorded_once import recorded_with_loops
from robokit.engine.passes.derivative import along, gradient, jacobian, pullback
from robokit.engine.trace.record import UNROLLED
from robokit.errors import ShapeError
from robokit.model.robot import Robot, quaternion_offsets
from robokit.spatial.control_flow import recorder
from robokit.spatial.rotation import quat_normalized
from robokit.spatial.scalars import added

FlatFunction = Callable[..., Any]


@frozen
class Argument:
    """An input of a function."""

    name: str  # of the input
    size: int  # scalars of one state
    manifold: bool = False  # whether it is a configuration

    def directions(self, robot: Robot) -> int:
        """Number of directions in which it can change."""
        return robot.nv if self.manifold else self.size


@frozen
class Flat:
    """What is run for a robot."""

    function: FlatFunction  # one sequence of scalars for each input -> one flat sequence for each output
    inputs: tuple[Argument, ...]  # of the function
    outputs: tuple[tuple[str, tuple[int, ...]], ...]  # (name, shape) of each output
    constants: int = 0  # how many of the inputs, the last ones, are given once and for all
    # tells whether the function has loops whose length is known only when it runs; None for no
    looped: Callable[[], bool] | None = None

    @property
    def has_loops(self) -> bool:
        """Whether the function has loops whose length is known only when it runs."""
        return self.looped is not None and self.looped()

    @property
    def sizes(self) -> list[tuple[str, int]]:
        """(name, number of scalars) of each input."""
        return [(each.name, each.size) for each in self.inputs]


@frozen
class Derivation:
    """A way to derive a function from another one."""

    how: str  # a name of :data:`WAYS`
    of: tuple[str, ...]  # names of the inputs with respect to which

    def __call__(self, robot: Robot, name: str, flat: Flat) -> Flat:
        """The derived function of a function; ShapeError for the gradient of what is no number."""
        names = [each.name for each in flat.inputs]
        return WAYS[self.how](robot, name, flat, [names.index(each) for each in self.of])


def _moved(robot: Robot, flat: Flat, of: Sequence[int]) -> tuple[FlatFunction, list[tuple[str, int]]]:
    """The function of the same inputs and a small change of each of some, and the sizes of its inputs."""
    count = len(flat.inputs)

    def function(*values: Sequence[Any]) -> Any:
        arguments = list(values[:count])
        for k, change in zip(of, values[count:], strict=True):
            arguments[k] = _changed(robot, flat.inputs[k], arguments[k], change)
        return flat.function(*arguments)

    changes = [(f"d{flat.inputs[k].name}", flat.inputs[k].directions(robot)) for k in of]
    return function, [*flat.sizes, *changes]


def _changed(robot: Robot, kind: Argument, x: Sequence[Any], change: Sequence[Any]) -> list[Any]:
    if kind.manifold:
        return near(robot, x, change)
    return [a + b for a, b in zip(x, change, strict=True)]


def near(robot: Robot, q: Sequence[Any], dv: Sequence[Any]) -> list[Any]:
    """``robot.integrate(q, dv)`` up to terms of third order in dv, for scalars of any kind."""
    moved: list[Any] = []
    for joint in robot.joints:
        moved += robot.tree.joint[joint.body].near(q[joint.q_slice], dv[joint.v_slice])
    return moved


def velocity(robot: Robot, q: Sequence[Any], rate: Sequence[Any]) -> list[Any]:
    """The v along which the coordinates q change at a rate, for scalars of any kind."""
    found: list[Any] = []
    for joint in robot.joints:
        model = robot.tree.joint[joint.body]
        found += model.kind.velocity(q[joint.q_slice], rate[joint.q_slice], model.axis)
    return found


def _derivative(robot: Robot, name: str, flat: Flat, of: Sequence[int]) -> Flat:
    return _first(robot, flat, of, jacobian)


def _gradient(robot: Robot, name: str, flat: Flat, of: Sequence[int]) -> Flat:
    _check_numbers(name, "gradient", flat)
    return _first(robot, flat, of, gradient)


def _first(robot: Robot, flat: Flat, of: Sequence[int], mode: Callable[..., FlatFunction]) -> Flat:
    """First derivatives of all outputs with respect to some inputs."""
    moved, inputs = _moved(robot, flat, of)
    changes = range(len(flat.inputs), len(inputs))
    derived = mode(moved, inputs, flat.outputs, changes)
    still = [[0.0] * size for _, size in inputs[len(flat.inputs) :]]

    columns = _by_columns(moved, inputs, flat.outputs, changes)

    def function(*arguments: Sequence[Any]) -> Any:
        return (columns if flat.has_loops else derived)(*arguments, *still)

    outputs = tuple(
        (f"d{symbol}_d{flat.inputs[k].name}", (*shape, flat.inputs[k].directions(robot)))
        for symbol, shape in flat.outputs
        for k in of
    )
    return Flat(function, flat.inputs, outputs, flat.constants, flat.looped)


def _by_columns(
    function: FlatFunction,
    inputs: Sequence[tuple[str, int]],
    outputs: Sequence[tuple[str, tuple[int, ...]]],
    of: Sequence[int],
) -> Callable[..., Any]:
    """The derivatives of a function with loops of run-time length, by columns: loops go forward only."""

    def derived(*arguments: Sequence[Any]) -> Any:
        now = getattr(recorder, "now", None)
        if now is not None and not hasattr(now, "look"):  # it is recorded with loops
            length = len(recorded_with_loops(function, inputs, outputs).nodes)
            if length * sum(inputs[k][1] for k in of) > UNROLLED:
                return jacobian_by_loop(function, arguments, of, [math.prod(shape) for _, shape in outputs])
        return one_by_one(lambda *each: jacobian_with_loops(function, each, of))(*arguments)

    return derived


def _hessian_vector(robot: Robot, name: str, flat: Flat, of: Sequence[int]) -> Flat:
    """Forward over reverse: the derivative of the gradient along a direction, which is one more input.

    With loops forward over forward: the gradient, by columns, of the derivative along the direction.
    """
    _check_numbers(name, "hessian_vector", flat)
    (k,) = of
    count, last = len(flat.inputs), len(flat.inputs) - flat.constants
    size = flat.inputs[k].directions(robot)
    moved, inputs = _moved(robot, flat, of)
    slopes = [(f"d{symbol}", (size,)) for symbol, _ in flat.outputs]
    derived = along(gradient(moved, inputs, flat.outputs, [count]), inputs, slopes, [count])
    still = [0.0] * size

    def rate(change: Sequence[Any], direction: Sequence[Any], *others: Sequence[Any]) -> Any:
        return along_with_loops(lambda x, *rest: moved(*rest, x), (change, *others), [direction])

    columns = _by_columns(rate, [inputs[-1], ("direction", size), *flat.sizes], flat.outputs, [0])

    def function(*arguments: Sequence[Any]) -> Any:
        direction, others = arguments[last], (*arguments[:last], *arguments[last + 1 :])
        if flat.has_loops:
            return columns(still, direction, *others)
        return derived(*others, still, direction)[1]

    wrt = flat.inputs[k].name
    own = (*flat.inputs[:last], Argument(f"d{wrt}", size), *flat.inputs[last:])
    outputs = tuple((f"d{symbol}_d{wrt}_d{wrt}", (size,)) for symbol, _ in flat.outputs)
    return Flat(function, own, outputs, flat.constants, flat.looped)


def _check_numbers(name: str, what: str, flat: Flat) -> None:
    for symbol, shape in flat.outputs:
        if shape != ():
            raise ShapeError(
                f"{name}: {what} expects outputs that are numbers, got {symbol!r} of shape {shape}; "
                "use derivative for all others"
            )


def _normalized(robot: Robot, name: str, flat: Flat, of: Sequence[int]) -> Flat:
    """The function with quaternions of any length but 0: its configurations are made unit first."""

    def unit(kind: Argument, x: Sequence[Any]) -> Sequence[Any]:
        if not kind.manifold:
            return x
        q = list(x)
        for k in quaternion_offsets(robot):
            q[k : k + 4] = quat_normalized(q[k : k + 4])
        return q

    def function(*arguments: Sequence[Any]) -> Any:
        return flat.function(*(unit(kind, x) for kind, x in zip(flat.inputs, arguments, strict=True)))

    return Flat(
        function,
        tuple(replace(each, manifold=False) for each in flat.inputs),
        flat.outputs,
        flat.constants,
        flat.looped,
    )


def _pushforward(robot: Robot, name: str, flat: Flat, of: Sequence[int]) -> Flat:
    """J dx: a direction for each input, outputs as they were."""
    count = len(flat.inputs) - flat.constants
    derived = along(flat.function, flat.sizes, flat.outputs, range(count))

    def function(*values: Sequence[Any]) -> Any:
        arguments, directions = (*values[:count], *values[2 * count :]), values[count : 2 * count]
        if not flat.has_loops:
            return derived(*arguments, *directions)[1]

        def one(*each: Sequence[Any]) -> Any:
            arguments = (*each[:count], *each[2 * count :])
            return along_with_loops(flat.function, arguments, each[count : 2 * count])

        return one_by_one(one)(*values)

    directions = (replace(each, name=f"d{each.name}", manifold=False) for each in flat.inputs[:count])
    own = (*flat.inputs[:count], *directions, *flat.inputs[count:])
    outputs = tuple((f"d{symbol}", shape) for symbol, shape in flat.outputs)
    return Flat(function, own, outputs, flat.constants, flat.looped)


def _pullback(robot: Robot, name: str, flat: Flat, of: Sequence[int]) -> Flat:
    """J^T w: a weight for each scalar of the outputs, outputs as the inputs were; loops by columns of J."""
    count = len(flat.inputs) - flat.constants
    derived = pullback(flat.function, flat.sizes, flat.outputs, count)
    columns = _by_columns(flat.function, flat.sizes, flat.outputs, range(count))
    last = count + len(flat.outputs)

    def function(*arguments: Sequence[Any]) -> Any:
        if not flat.has_loops:
            return derived(*arguments)
        matrices = iter(columns(*arguments[:count], *arguments[last:]))
        found = [[0.0] * each.size for each in flat.inputs[:count]]
        for w in arguments[count:last]:
            for row, matrix in zip(found, matrices, strict=False):
                for j in range(len(row)):
                    row[j] = added((x * y for x, y in zip(w, matrix[j :: len(row)], strict=True)), row[j])
        return found

    weights = (Argument(f"w_{symbol}", math.prod(shape)) for symbol, shape in flat.outputs)
    own = (*flat.inputs[:count], *weights, *flat.inputs[count:])
    outputs = tuple((f"g_{each.name}", (each.size,)) for each in flat.inputs[:count])
    return Flat(function, own, outputs, flat.constants, flat.looped)


WAYS: dict[str, Callable[[Robot, str, Flat, Sequence[int]], Flat]] = {
    "derivative": _derivative,
    "gradient": _gradient,
    "hessian_vector": _hessian_vector,
    "normalized": _normalized,
    "pushforward": _pushforward,
    "pullback": _pullback,
}
"""Each way to derive a function, by its name."""
