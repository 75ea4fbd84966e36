"""Values by joint that may change with time: targets of actuators as they are given, made into tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from robokit.arguments import check_call, check_finite, real_array
from robokit.errors import ShapeError, UnknownName
from robokit.sim.driving.keyframes import Keyframes


@dataclass(frozen=True)
class Layout:
    """Where the values of n joints are, and how many steps and rows a run has.

    Attributes:
        joints: their names.
        columns: their places in an array of all joints.
        size: of such an array: nv, or nq for positions.
        steps: of the run.
        rows: of a rollout, 1 in a simulation; None where nothing else says how many there are.
    """

    joints: tuple[str, ...]
    columns: Sequence[int]
    size: int
    steps: int
    rows: int | None

    @property
    def accepted(self) -> str:
        """The shapes that are taken, in words."""
        n, T = len(self.joints), self.steps
        B: Any = self.rows
        several = f", ({B}, {n})" if B is not None and B > 1 else ""
        B = "B" if B is None else B
        full = f" (or {self.size} for {n})" if self.size != n else ""
        return f"(), ({n},){several}, ({T}, {n}) or ({T}, {B}, {n}){full}"


class Signal:
    """The values of some joints at each step.

    Attributes:
        table: (T or 1, B or 1, n); None where they come from keyframes or a function.
        keyframes: with the columns that the joints have in them, or None.
        function: (t, q, v) -> values, or None.
    """

    def __init__(self, name: str, value: Any, layout: Layout, default: np.ndarray) -> None:
        """Take what was given.

        Args:
            name: of the argument, for messages.
            value: what was given; None for the default.
            layout: of the joints.
            default: (1, B or 1, n), of joints that are not named.

        Raises:
            ShapeError: a wrong shape or content.
            UnknownName: a joint that is not one of these.
        """
        self.name, self.layout, self.default = name, layout, default
        self.table: np.ndarray | None = None
        self.keyframes: Keyframes | None = None
        self.function = None
        if isinstance(value, Keyframes):
            for joint in value.joints:
                if joint not in layout.joints:
                    raise UnknownName("driven joint", joint, layout.joints, f"({name})")
            self.keyframes = value
            self.columns = [layout.joints.index(joint) for joint in value.joints]
        elif callable(value):
            check_call(name, value, ("t", "q", "v"), "values of the driven joints")
            self.function = value
        else:
            self.table = default if value is None else self._rows(value, several=True)

    @property
    def rows(self) -> int | None:
        """B where there is one set of values a row, else None."""
        return None if self.table is None or self.table.shape[1] == 1 else self.table.shape[1]

    def last(self, dt: float) -> int:
        """The step from which the values stay the same."""
        if self.function is not None:
            return self.layout.steps
        if self.keyframes is not None:
            return int(np.ceil(self.keyframes.time[-1] / dt)) + 1
        assert self.table is not None
        return 0 if len(self.table) == 1 else self.layout.steps

    def at(self, steps: np.ndarray, dt: float, q: Any = None, v: Any = None) -> np.ndarray:
        """The values in the middle of steps (T,): (T or 1, B or 1, n)."""
        if self.keyframes is not None:
            return self._curves((steps + 0.5) * dt)[0]
        if self.function is not None:
            return self._rows(self.function((steps[0] + 0.5) * dt, q.copy(), v.copy()), several=False)
        assert self.table is not None
        return self.table if len(self.table) == 1 else self.table[np.minimum(steps, len(self.table) - 1)]

    def rates(self, steps: np.ndarray, dt: float) -> np.ndarray | None:
        """Rates of change in the middle of the steps; None for what is not keyframes."""
        return None if self.keyframes is None else self._curves((steps + 0.5) * dt)[1]

    def _curves(self, t: np.ndarray) -> list[np.ndarray]:
        assert self.keyframes is not None
        out = []
        for base, curve in zip((self.default, 0.0 * self.default), self.keyframes.at(t), strict=True):
            whole = np.repeat(base, len(t), axis=0)
            whole[:, :, self.columns] = curve[:, None]
            out.append(whole)
        return out

    def _rows(self, value: Any, several: bool) -> np.ndarray:
        """(T or 1, B or 1, n) of a number, a mapping or an array; only one row if not several."""
        layout, n = self.layout, len(self.layout.joints)
        if isinstance(value, Mapping):
            out = self.default.copy()
            for joint, number in value.items():
                if joint not in layout.joints:
                    raise UnknownName("driven joint", joint, layout.joints, f"({self.name})")
                given = real_array(f"{self.name}, joint {joint!r}", number, "()")
                if given.ndim:
                    raise ShapeError(f"{self.name}, joint {joint!r}: expected one number, got {given.shape}")
                out[..., layout.joints.index(joint)] = given
            return self._finite(out)
        accepted = layout.accepted if several else f"() or ({n},)"
        array = real_array(self.name, value, accepted)
        shape = array.shape
        if array.ndim == 0:
            return self._finite(np.full((1, 1, n), float(array)))
        if shape[-1] == n:
            pass
        elif shape[-1] == layout.size:
            array = array[..., list(layout.columns)]
        else:
            raise ShapeError(f"{self.name}: expected shape {accepted}, got {shape}")
        T, B = layout.steps, layout.rows
        if array.ndim == 1:
            return self._finite(array[None, None])
        if several and array.ndim == 2:
            if B is not None and len(array) == T == B and B > 1:
                raise ShapeError(
                    f"{self.name}: {shape} could be one row a state or one a step; give ({T}, 1, {n}) or "
                    f"(1, {B}, {n})"
                )
            if len(array) in (T, B):
                return self._finite(array[:, None] if len(array) == T else array[None])
        if several and array.ndim == 3 and len(array) in (1, T) and (B is None or array.shape[1] in (1, B)):
            return self._finite(array)
        raise ShapeError(f"{self.name}: expected shape {accepted}, got {shape}")

    def _finite(self, array: np.ndarray) -> np.ndarray:
        check_finite(self.name, array)
        return array
