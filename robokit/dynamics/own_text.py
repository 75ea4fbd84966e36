"""Texts of the user's own: what they return as flat outputs, and their errors with their line."""

from __future__ import annotations

import functools
import linecache
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from robokit.algorithms.coupling import reduced_columns, reduced_force, reduced_matrix
from robokit.arguments import one_of
from robokit.dynamics.layout import INPUTS, Input, Kind
from robokit.engine.trace.graph import TraceTooLarge
from robokit.engine.trace.scalar import Truth
from robokit.errors import FunctionError, RobokitError, ShapeError, UnknownName, WrongType, shown
from robokit.model.robot import Robot
from robokit.spatial.control_flow import recorder, zeros

Shape = tuple[int | str, ...]

SIZES: dict[str, Callable[[Robot], int]] = {
    "nq": lambda robot: robot.nq,
    "nv": lambda robot: robot.nv,
    "nbodies": lambda robot: robot.nbodies,
}
"""Sizes of a robot that may stand in a shape."""

OF_NUMBERS = (
    "; inside a function of your own, call the algorithms of robokit.algorithms or other such functions "
    "with the tree, f(tree, q, ...): those that take the robot, f(robot, q, ...), compute with numbers only"
)
"""Advice where a function of robokit refuses an argument of the user's function."""

BY_JOINT = " (q[i] is the list of the coordinates of joint i, from joint 1 on, and q[i][0] a number)"
"""Advice where a list stands in the place of a number, and where a list is too short."""

OF_ARRAYS = (
    " (NumPy's arrays take no index that is known only when the function runs: copy them to "
    "zeros(n) of robokit.spatial.control_flow, entry by entry, before the loop)"
)
"""Advice where NumPy refuses an index."""

OF_LAPACK = (
    " (np.linalg solves no systems of scalars that are known only later: robokit.spatial.linear has "
    "ldl_solve(ldl(A), b) for symmetric positive A)"
)
"""Advice where NumPy cannot convert traced scalars to numbers."""

SPACES: dict[str, tuple[Shape, Callable[[Robot, Any], Any]]] = {
    "q": (("nq",), lambda robot, q: robot.join_q(q)),
    "v": (("nv",), lambda robot, v: robot.join_v(v)),
    "a": (("nv",), lambda robot, a: robot.join_v(a)),
    "tau": (("nv",), lambda robot, tau: reduced_force(robot.tree, [x for row in tau for x in row])),
    "H": (("nv", "nv"), lambda robot, H: H if robot.coupling is None else reduced_matrix(robot.tree, H)),
    "J": ((6, "nv"), lambda robot, J: J if robot.coupling is None else reduced_columns(robot.tree, J)),
}
"""What a text returns for all joints of the tree: its shape, and what coupled joints make of it."""


def sized(shape: Shape, robot: Robot) -> tuple[int, ...]:
    """A shape in numbers."""
    return tuple(SIZES[n](robot) if isinstance(n, str) else n for n in shape)


def shape_of(argument: str, given: Any, spaces: Sequence[str]) -> Shape | str:
    """A shape or the name of a space, checked.

    Args:
        argument: what it is of, for messages.
        given: by the user.
        spaces: names that are accepted.

    Raises:
        UnknownName: another name.
        WrongType: neither a name nor a tuple of sizes.
        ShapeError: a negative size.
    """
    if isinstance(given, str):
        if given not in spaces:
            raise UnknownName(f"space of {argument}", given, spaces, "(or a shape, such as (3,))")
        return given
    if isinstance(given, int | np.integer) and not isinstance(given, bool):
        given = (int(given),)
    if not isinstance(given, tuple | list):
        raise WrongType(argument, given, f"a shape such as (3,) or ('nv', 3), or one of {', '.join(spaces)}")
    for n in given:
        if isinstance(n, str):
            if n not in SIZES:
                raise UnknownName(f"size of {argument}", n, SIZES)
        elif isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 0:
            raise ShapeError(f"{argument}: expected sizes >= 0 in a shape, got {shown(n)}")
    return tuple(n if isinstance(n, str) else int(n) for n in given)


class ByJoint(list[Any]):
    """Coordinates of each joint, ``q[i]`` or ``q["left_knee"]``; entry 0 belongs to the reference."""

    def __init__(self, rows: Sequence[Any], what: str, robot: Robot) -> None:
        """Coordinates from the rows of an array, for a robot.

        Args:
            rows: of the joints, from 1 on, after that of the reference.
            what: name of the input, for messages.
            robot: whose joints they are.
        """
        super().__init__(Numbers(row, f"{what}[{i}]") for i, row in enumerate(rows))
        self._what, self._robot = what, robot

    def __getitem__(self, place: Any) -> Any:
        """Coordinates of the joint of a number or name.

        Raises:
            UnknownName: no joint of that name.
            IndexError: no joint of that number.
        """
        if isinstance(place, str):
            names = {joint.name: joint.body for joint in self._robot.body_joints}
            place = names[one_of(f"joint of {self._what}", place, names)]
        if not isinstance(place, int | slice | np.integer):
            raise TypeError(
                f"{self._what}[{place!r}]: joints differ in kind and number of coordinates, so their number "
                "is an int that is known now, or a name: loop over them with for, in Python"
            )
        try:
            return super().__getitem__(place)
        except IndexError:
            last, what = len(self) - 1, self._what
            raise IndexError(
                f"{what}[{place}]: {what} has the length {last + 1}, for the joints 1 to {last} of robot "
                f"{self._robot.name!r}"
            ) from None


class Numbers(list[Any]):
    """Scalars of an input, which say how many they are where one more is asked for.

    An index may be a whole number that is known only when the function runs.
    """

    def __init__(self, values: Sequence[Any], what: str) -> None:
        """Scalars from values; ``what`` is the input's name, for messages."""
        super().__init__(values)
        self._what = what
        self._array = getattr(values, "array", None)

    def __getitem__(self, place: Any) -> Any:
        """One of them, or a part.

        Raises:
            IndexError: there are not so many.
        """
        if not isinstance(place, int | slice | np.integer):
            if isinstance(place, float):
                raise TypeError(f"{self._what}[{place}]: an index is a whole number: whole(x) makes one")
            return self._later(place)
        try:
            return super().__getitem__(place)
        except IndexError:
            count = f"{len(self)} number{'s' * (len(self) != 1)}"
            raise IndexError(f"{self._what}[{place}]: {self._what} has {count}, counted from 0") from None

    def _later(self, place: Any) -> Any:
        """The scalar at an index that is known only when the function runs."""
        if self._array is not None:
            return self._array[place]
        look = getattr(getattr(recorder, "now", None), "look", None)
        if look is not None:
            look(place)
        return super().__getitem__(place)


def given_by_text(values: Any, what: str) -> Any:
    """Numbers that the source of one function gives to another, which may index them as its own inputs.

    Where the index is known only later they are in memory.
    """
    if isinstance(values, Numbers) or not isinstance(values, list | tuple):
        return values
    made, now = Numbers(list(values), what), getattr(recorder, "now", None)
    if now is not None and not hasattr(now, "look") and not any(hasattr(x, "__len__") for x in made):
        made._array = zeros(len(made))
        for k, x in enumerate(made):
            made._array[k] = 1.0 * x
    return made


def input_of(name: str, shape: Shape | str) -> Input:
    """The input of a shape or space: by joint in a space, a number for (), else a flat list.

    Args:
        name: of the input, for messages.
        shape: of it.
    """
    if isinstance(shape, str):
        space = INPUTS[shape]
        if shape == "f_ext":
            return space
        return replace(space, split=lambda robot, flat: ByJoint(space.split(robot, flat), name, robot))
    if shape == ():
        return Input(lambda robot: 1, lambda robot, flat: flat[0])
    return Input(lambda robot: math.prod(sized(shape, robot)), lambda robot, flat: Numbers(flat, name))


def kind_of(name: str, text: Callable[..., Any], outputs: Mapping[str, Shape | str]) -> Kind:
    """The kind of result of a text that returns these outputs.

    Args:
        name: of the function, for messages.
        text: the user's.
        outputs: name -> shape or space of each.
    """
    shapes = {each: SPACES[given][0] if isinstance(given, str) else given for each, given in outputs.items()}

    def wrong(message: str) -> FunctionError:
        file, line = _beginning(text)
        return FunctionError(f"{name}: {message}\n  {file}, line {line}", file, line)

    def flat(robot: Robot, returned: Any) -> list[Sequence[Any]]:
        found: list[Sequence[Any]] = []
        for output, part in zip(outputs, _parts(list(outputs), returned, wrong), strict=True):
            space, shape = outputs[output], sized(shapes[output], robot)
            try:
                row = leaves(
                    SPACES[space][1](robot, part) if isinstance(space, str) else part, math.prod(shape)
                )
            except (TypeError, IndexError, ValueError) as error:
                raise wrong(f"output {output!r}: expected {space!r} by joint, got {shown(part)}") from error
            if len(row) != (count := math.prod(shape)):
                raise wrong(
                    f"output {output!r}: expected {count} number{'s' * (count != 1)} for shape {shape}, got "
                    f"{len(row)}: {shown(part)}" + BY_JOINT * (shape == () and isinstance(part, list | tuple))
                )
            table, wanted = [] if isinstance(space, str) else _sizes(part), [n for n in shape if n > 1]
            if len(table) == len(wanted) and table != wanted:
                raise wrong(f"output {output!r}: expected shape {shape}, got {' by '.join(map(str, table))}")
            for x in row:
                if not hasattr(x, "__mul__") or isinstance(x, str | Truth | complex):
                    raise wrong(f"output {output!r}: expected numbers, got {shown(x)}")
            found.append(row)
        return found

    return Kind(lambda robot: [sized(shape, robot) for shape in shapes.values()], flat)


def _parts(names: list[str], returned: Any, wrong: Callable[[str], FunctionError]) -> list[Any]:
    """The part of the returned value that belongs to each output."""
    words = ", ".join(names)
    if isinstance(returned, Mapping):
        if set(returned) != set(names):
            raise wrong(f"expected a dict of the outputs {words}, got one of {', '.join(map(str, returned))}")
        return [returned[each] for each in names]
    if len(names) == 1:
        return [returned]
    if not isinstance(returned, tuple | list) or len(returned) != len(names):
        raise wrong(f"expected a dict or a list of the outputs {words}, got {shown(returned)}")
    return list(returned)


def leaves(x: Any, count: int = -1) -> list[Any]:
    """The scalars of nested sequences, vectors and matrices, in order.

    Args:
        x: a scalar or a sequence. A row of NumPy's is one scalar of a batch,
        count: unless there are so many only where it is not.
    """
    found = _leaves(x, False)
    return found if len(found) == count or count < 0 else _leaves(x, True)


def _sizes(x: Any) -> list[int]:
    """Sizes of nested lists or of an array, without those that are 1; of a vector or a number none."""
    if isinstance(x, np.ndarray):  # a row of NumPy's may be one scalar of a batch
        return [n for n in x.shape if n > 1] if x.dtype == object or x.ndim > 1 else []
    if not isinstance(x, list | tuple):
        return []
    inner = [_sizes(each) for each in x]
    alike = inner[0] if inner and all(each == inner[0] for each in inner) else []
    return [len(x)] * (len(x) > 1) + alike


def _leaves(x: Any, opened: bool) -> list[Any]:
    if isinstance(x, np.ndarray):
        if x.ndim == 0 or (x.ndim == 1 and x.dtype != object and not opened):
            return [x]
    elif isinstance(x, str) or not (hasattr(x, "__iter__") or hasattr(x, "rows")):
        return [x]
    found = []
    for each in getattr(x, "rows", x):
        found += _leaves(each, opened)
    return found


def watched(name: str, text: Callable[..., Any]) -> Callable[..., Any]:
    """A text whose errors say which line of it they come from.

    Args:
        name: of the function, for messages.
        text: the user's.
    """

    @functools.wraps(text)
    def run(tree: Any, *arguments: Any, **named: Any) -> Any:
        try:
            return text(tree, *arguments, **named)
        except (FunctionError, TraceTooLarge):
            raise
        except Exception as error:
            numbers = any(isinstance(x, float) for x in leaves(arguments))
            if numbers and isinstance(error, ValueError | ArithmeticError):
                raise  # of plain numbers, where machine code answers NaN: the engine takes arrays instead
            raise located(name, text, error) from error

    return run


def one_by_one(text: Callable[..., Any]) -> Callable[..., Any]:
    """A text on flat arrays that meets plain numbers only, state by state, and traced scalars as they are.

    Texts of robokit take a row of NumPy's for one scalar of a batch. Those of users make arrays of their own.
    The numbers are NumPy's: a comparison of them has an opposite, and a quotient by 0 is infinite.
    """

    def run(*given: Sequence[Any]) -> Any:
        numbers = [x for row in given for x in row]
        if not all(isinstance(x, float | np.ndarray | np.floating) for x in numbers):
            return text(*given)
        rows = [len(x) for x in numbers if isinstance(x, np.ndarray)]
        with np.errstate(all="ignore"):
            if not rows:
                return _state(text, [list(map(np.float64, row)) for row in given])
            states = [
                _state(text, [[x[k] if isinstance(x, np.ndarray) else x for x in row] for row in given])
                for k in range(rows[0])
            ]
        if not states:
            return text(*given)
        return [[np.array(x) for x in zip(*output, strict=True)] for output in zip(*states, strict=True)]

    return run


def _state(text: Callable[..., Any], given: list[list[Any]]) -> Any:
    try:
        return text(*given)
    except (ValueError, ArithmeticError):  # math raises where the processor answers NaN
        found = text(*([np.array([x]) for x in row] for row in given))
        return [[np.ravel(x)[0] for x in output] for output in found]


def located(name: str, text: Callable[..., Any], error: Exception) -> FunctionError:
    """The error with the innermost line outside robokit and NumPy that it comes from; no frames before it."""
    frames = error.__traceback__
    own = None
    place = (*_beginning(text), name)
    while frames is not None:
        code = frames.tb_frame.f_code
        if not code.co_filename.startswith(_INSIDE):
            own = own or frames
            place = (code.co_filename, frames.tb_lineno, code.co_name)
        frames = frames.tb_next
    error.__traceback__ = own
    file, line, function = place
    source = linecache.getline(file, line).strip()
    where = f"{file}, line {line}, in {function}" + (f": {source}" if source else "")
    hint = BY_JOINT if _of_lists(error) else ""
    if isinstance(error, RobokitError) and not isinstance(error, UnknownName):
        hint = OF_NUMBERS
    if str(error).startswith("only integers, slices"):
        hint = OF_ARRAYS
    if "Cannot cast ufunc" in str(error):  # the functions of np.linalg that LAPACK computes
        hint = OF_LAPACK
    return FunctionError(f"{name}: {type(error).__name__}: {error}{hint}\n  {where}", file, line)


def _of_lists(error: Exception) -> bool:
    """Whether the error is that of a list that is too short, or of one used as a number."""
    of_lists = any(f"'{kind.__name__}'" in str(error) for kind in (list, Numbers, ByJoint))
    return isinstance(error, IndexError) or (isinstance(error, TypeError) and of_lists)


def _beginning(text: Callable[..., Any]) -> tuple[str, int]:
    code = getattr(text, "__code__", None)
    return (code.co_filename, code.co_firstlineno) if code else ("<unknown>", 0)


_INSIDE = tuple(
    os.path.dirname(os.path.abspath(file)) + os.sep for file in (os.path.dirname(__file__), np.__file__)
)
