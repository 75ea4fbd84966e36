"""A function as other libraries take it: of plain coordinates, on NumPy arrays, with its linear maps.

Such libraries know vectors of nq coordinates, no manifolds. So quaternions are made unit inside, and a
function has a derivative by each of their coordinates: none along the quaternion itself. Whoever follows the
gradient leaves the unit quaternions a little and may go on from there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from robokit.caching import cached_attribute
from robokit.dynamics.build import Key, kernel, row_of
from robokit.dynamics.differentiate import Derivation
from robokit.dynamics.run import accelerations, run
from robokit.engine import Bound
from robokit.errors import RobokitError, ShapeError
from robokit.model.robot import Robot, check_robot

Shapes = tuple[tuple[str, tuple[int, ...]], ...]


class HostFunction:
    """A function for one robot: arrays with any leading axes in, arrays with the same leading axes out.

    Attributes:
        inputs: (name, shape) of each input.
        outputs: (name, shape) of each output.
    """

    def __init__(self, robot: Robot, key: Key, inputs: Shapes, outputs: Shapes | None = None) -> None:
        """A function of the kernel with this key.

        Args:
            key: of a kernel whose inputs are plain.
            inputs: (name, shape) of each.
            outputs: the same; None for those of the kernel.
        """
        self.robot, self.key, self.inputs = robot, key, inputs
        self.outputs = outputs or tuple(kernel(robot, key).signature.outputs)

    def __repr__(self) -> str:
        return f"<{row_of(self.key).name}({', '.join(name for name, _ in self.inputs)}) of {self.robot.name}>"

    def __call__(self, *given: Any) -> tuple[np.ndarray, ...]:
        """The outputs, one array each.

        Raises:
            ShapeError: a wrong shape.
            InvalidValue: NaN or infinity.
        """
        arrays, leads = [], []
        for (name, shape), x in zip(self.inputs, given, strict=True):
            array = np.asarray(x, dtype=float)
            lead = array.shape[: array.ndim - len(shape)]
            if array.shape != (*lead, *shape):
                axes = ", ".join(map(str, ("...", *shape)))
                raise ShapeError(f"{name}: expected shape ({axes}), got {array.shape}")
            arrays.append(array)
            leads.append(lead)
        lead = self._lead(leads)
        flat = []
        for (_, shape), array, own in zip(self.inputs, arrays, leads, strict=True):
            if math.prod(own) == 1:  # one for all
                flat.append(np.ascontiguousarray(array.reshape(-1)))
            else:
                wide = np.broadcast_to(array, (*lead, *shape))
                flat.append(np.ascontiguousarray(wide.reshape(math.prod(lead), math.prod(shape))))
        if lead and all(x.ndim == 1 for x in flat) and flat:
            flat[0] = flat[0][None]
        return tuple(
            np.asarray(x).reshape((*lead, *shape))
            for x, (_, shape) in zip(self.rows(flat), self.outputs, strict=True)
        )

    def of_tensors(self, *given: Any) -> tuple[Any, ...]:
        """The outputs of PyTorch's tensors on a card, as :meth:`__call__`."""
        leads = []
        for (name, shape), x in zip(self.inputs, given, strict=True):
            lead = tuple(x.shape[: x.dim() - len(shape)])
            if tuple(x.shape) != (*lead, *shape):
                axes = ", ".join(map(str, ("...", *shape)))
                raise ShapeError(f"{name}: expected shape ({axes}), got {tuple(x.shape)}")
            leads.append(lead)
        lead, flat = self._lead(leads), []
        for (_, shape), x, own in zip(self.inputs, given, leads, strict=True):
            if math.prod(own) == 1:  # one for all
                flat.append(x.reshape(-1))
            else:
                flat.append(x.expand(*lead, *shape).reshape(math.prod(lead), math.prod(shape)))
        if lead and all(x.dim() == 1 for x in flat) and flat:
            flat[0] = flat[0][None]
        found = zip(self.rows(flat), self.outputs, strict=True)
        return tuple(x.reshape((*lead, *shape)) for x, (_, shape) in found)

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
            given = ", ".join(f"{name} {lead}" for (name, _), lead in zip(self.inputs, leads, strict=True))
            raise ShapeError(
                f"{given}: expected leading axes that go together, as in a batch of each or of one, got these"
            ) from None

    @cached_attribute
    def pullback(self) -> HostFunction:
        """Inputs and a weight for each output -> the gradient of the weighted sum by each input."""
        weights = tuple((f"w_{name}", shape) for name, shape in self.outputs)
        gradients = tuple((f"g_{name}", shape) for name, shape in self.inputs)
        return HostFunction(self.robot, derived(self.key, "pullback"), (*self.inputs, *weights), gradients)

    @cached_attribute
    def pushforward(self) -> HostFunction:
        """Inputs and a direction for each -> the derivative of each output along it."""
        directions = tuple((f"d{name}", shape) for name, shape in self.inputs)
        changes = tuple((f"d{name}", shape) for name, shape in self.outputs)
        return HostFunction(
            self.robot, derived(self.key, "pushforward"), (*self.inputs, *directions), changes
        )

    def bound(self, name: str, given: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
        """The inputs in order, given in order or by name.

        Raises:
            TypeError: too many or too few, or no input of such a name.
        """
        names = [each for each, _ in self.inputs]
        values = dict(zip(names, given, strict=False))
        if len(given) > len(names) or set(named) & set(values) or set(names) != {*values, *named}:
            by_name = f" and {', '.join(sorted(named))} by name" if named else ""
            raise TypeError(
                f"{name} takes {len(names)} inputs ({', '.join(names)}), got {len(given)}{by_name}"
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

    Args:
        key: of the function's kernel.
        shapes: of inputs that are no arrays (n,).

    Raises:
        RobokitError: the robot has samples of inertias.
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
