"""What a kernel takes and returns, and the conversion of what a caller gives to it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from robokit import arguments
from robokit.arguments import ShapeError
from robokit.dataclass_tools import frozen
from robokit.engine.memory import result_array
from robokit.errors import WrongType

ROLES = ("in", "out", "inout", "work")

FlatFunction = Callable[..., Sequence[Sequence[Any]]]
"""Called with a sequence of scalars per input; returns a flat, row-major sequence of scalars per output."""

Pairs = Sequence[tuple[int, int]]
Bounds = Sequence[tuple[int, int, float]]


@frozen
class ArrayOf:
    """An array that a kernel takes.

    Raises UnknownName: there is no such role or kind; ShapeError: a size below 0, or one that is neither a
    number nor a name; WrongType: all states share it, and it is no input and no work.
    """

    name: str  # of the argument
    shape: tuple[int | str, ...]  # numbers, or names of sizes
    # "in", "out", "inout", or "work": memory that nobody else sees, whose content is nothing in particular at
    # the start. What a call returns in an "out" is 0 where nothing was written.
    role: str = "in"
    kind: str = "real"  # "real" or "integer"
    # whether all states have the same one; it is then an input, or work. What lanes write to such work is the
    # same for all of them; it is written where one of them runs.
    shared: bool = False
    # whether no result depends on what is in it: what is not finite there ends no run
    is_hint: bool = False

    def __post_init__(self) -> None:
        arguments.one_of("role", self.role, ROLES, f"(array {self.name!r})")
        arguments.one_of("kind", self.kind, ("real", "integer"), f"(array {self.name!r})")
        if self.shared and self.role not in ("in", "work"):
            raise WrongType(f"{self.name}: role", self.role, '"in" or "work", since all states share it')
        for n in self.shape:
            if not (isinstance(n, str) or (isinstance(n, int | np.integer) and n >= 0)):
                raise ShapeError(f"{self.name}: a size is a whole number of 0 or more, or a name, not {n!r}")

    def at(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """The shape for given sizes."""
        return tuple(sizes[n] if isinstance(n, str) else n for n in self.shape)

    def zeros(self, sizes: Mapping[str, int], dtype: Any = "float64") -> np.ndarray:
        """Such an array for given sizes."""
        return np.zeros(self.at(sizes), np.int32 if self.kind == "integer" else dtype)


@frozen
class Signature:
    """A kernel seen from outside."""

    name: str  # of the kernel
    inputs: list[tuple[str, int]]  # (name, number of scalars) of each input
    outputs: list[tuple[str, tuple[int, ...]]]  # (name, shape) of each output
    dtype: str  # of all arrays, "float64" or "float32"
    quaternions: list[tuple[int, int]]  # (input, offset) of each quaternion that must be of unit length
    feedback: list[tuple[int, int]]  # (output, input) where a repeated run copies
    finite: bool  # whether outputs that are not finite are an error
    bounds: Bounds = ()  # (input, offset, largest magnitude) of each scalar that has one
    # whether the outputs are the same bits on every target (engine/reproducible.py)
    reproducible: bool = False
    # (input, offset, other offset) of scalars that a left and a right limb are computed from
    superword_seeds: Sequence[tuple[int, int, int]] = ()

    def __post_init__(self) -> None:
        for o, i in self.feedback:
            if math.prod(self.outputs[o][1]) != self.inputs[i][1]:
                raise ValueError(f"output {self.outputs[o]} does not fit into input {self.inputs[i]}")

    @property
    def input_names(self) -> list[str]:
        """Names of the inputs."""
        return [name for name, _ in self.inputs]

    @property
    def output_shapes(self) -> list[tuple[int, ...]]:
        """Shape of each output of one state."""
        return [shape for _, shape in self.outputs]

    @property
    def scalars(self) -> int:
        """Numbers that go in and out for one state."""
        return sum(size for _, size in self.inputs) + sum(map(math.prod, self.output_shapes))

    def arrays(self, values: Sequence[Any]) -> list[np.ndarray]:
        """The arguments as arrays (n,) or (B, n).

        Raises TypeError: too many or too few; ShapeError: a wrong shape or dtype.
        """
        wanted = self.inputs
        if len(values) != len(wanted):
            names = ", ".join(name for name, _ in wanted)
            raise TypeError(f"{self.name} takes {len(wanted)} arguments ({names}), got {len(values)}")
        return [
            arguments.argument(name, a, size, self.dtype)
            for a, (name, size) in zip(values, wanted, strict=True)
        ]

    def rows(self, arrays: Sequence[np.ndarray]) -> int | None:
        """How many states the arguments are; None for one state that is no batch.

        Raises ShapeError: batches of different sizes.
        """
        return arguments.batch_size(self.input_names, arrays)

    def check_values(self, arrays: Sequence[np.ndarray]) -> None:
        """Explain what machine code only refuses.

        Raises InvalidValue: an argument holds NaN or infinity, a quaternion is not of unit length, or a
        scalar is beyond its bound.
        """
        inputs = arrays[: len(self.inputs)]
        arguments.check_values(self.input_names, inputs, self.quaternions, self.bounds)

    def outs(self, out: Any, rows: int | None) -> list[np.ndarray]:
        """Arrays for the outputs: the caller's, checked, or new ones where out is None.

        Raises ShapeError: out does not fit, or two of its arrays overlap.
        """
        shapes = [shape if rows is None else (rows, *shape) for shape in self.output_shapes]
        if out is None:
            return [result_array(shape, self.dtype) for shape in shapes]
        passed = self.outs_of(out)
        if len(passed) != len(shapes):
            raise ShapeError(f"out: {self.name} has {len(shapes)} outputs, got {len(passed)} arrays")
        names = ["out"] if len(passed) == 1 else [f"out[{k}]" for k in range(len(passed))]
        outs = [arguments.output(*each, self.dtype) for each in zip(names, passed, shapes, strict=True)]
        for (i, a), (j, b) in combinations(enumerate(outs), 2):
            if np.may_share_memory(a, b):  # both are contiguous, so that this is exact
                raise ShapeError(f"out[{i}] and out[{j}] share memory; each output needs an array of its own")
        return outs

    def outs_of(self, out: Any) -> Sequence[Any]:
        """One object for each output; where there is one output, a list is what was given for it."""
        return out if isinstance(out, (tuple, list)) and len(self.outputs) != 1 else (out,)

    @staticmethod
    def answer(outs: Sequence[np.ndarray], out: Any = None) -> Any:
        """What the caller gets: an output or a tuple of them, numbers as floats unless out was given."""
        results = tuple(o if o.ndim or out is not None else float(o) for o in outs)
        return results[0] if len(results) == 1 else results
