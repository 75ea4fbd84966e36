"""Flat arrays to what functions of a robot take, and what they return as flat outputs."""

from __future__ import annotations

import contextlib
import functools
import linecache
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np

from robokit.algorithms.coupling import reduced_columns, reduced_force, reduced_matrix, reduced_rows
from robokit.arguments import one_of
from robokit.dataclass_tools import frozen
from robokit.engine.trace.graph import TraceTooLarge
from robokit.engine.trace.scalar import Truth
from robokit.errors import FunctionError, RobokitError, ShapeError, UnknownName, WrongType, shown
from robokit.model.constraints import ContactModel
from robokit.model.inertial_parameters import COUNT
from robokit.model.robot import Robot
from robokit.model.tree import Tree
from robokit.spatial import Force, Matrix3, Transform, Vector3
from robokit.spatial.control_flow import ENDLESS, recorder, zeros

# ==== inputs and results of the algorithms ========================================================
# Flat arrays to what the algorithms take, and back: a row for each input and for each kind of result.
#
# Arrays hold the coordinates of a state in one row. The algorithms take q, v, a and tau by joint, forces by
# body, matrices by row, and return the same. What becomes of a result when mimic joints lose their
# coordinates, v_full = G v, depends on its kind alone.
#
# Source: RBDA section 3.3 for the couplings (tau = G^T tau_full, H = G^T H_full G, A = A_full G).


Scalars = Sequence[Any]

BASE_DOFS = 6  # velocities of a floating base, the first ones of v


@frozen
class Input:
    """An argument of algorithms."""

    size: Callable[[Robot], int]  # robot -> number of scalars of one state
    split: Callable[[Robot, Scalars], Any]  # robot, flat scalars -> what the functions take
    meaning: str = ""  # in a few words, for code that leaves robokit
    # whether it is a configuration: derivatives are then taken along its nv velocities
    manifold: bool = False
    each_link: bool = False  # whether there is one for each of the links that the algorithm is about


def _square(robot: Robot, flat: Scalars) -> list[Scalars]:
    n = robot.nv
    return [flat[i * n : (i + 1) * n] for i in range(n)]


def _forces(_: Robot, flat: Scalars) -> list[Force]:
    return [Force(Vector3(*flat[k : k + 3]), Vector3(*flat[k + 3 : k + 6])) for k in range(0, len(flat), 6)]


def _as_it_is(_: Robot, flat: Scalars) -> Scalars:
    return flat


WRENCHES = "a force [n; f] for each body 0..N, in body axes about the body's origin [N m | N]"

INPUTS: dict[str, Input] = {
    "q": Input(lambda robot: robot.nq, Robot.split_q, "configuration", manifold=True),
    "v": Input(lambda robot: robot.nv, Robot.split_v, "velocity"),
    "a": Input(lambda robot: robot.nv, Robot.split_v, "acceleration"),
    "tau": Input(lambda robot: robot.nv, Robot.split_tau, "forces of the joints"),
    "f_ext": Input(lambda robot: 6 * (robot.nbodies + 1), _forces, WRENCHES),
    "at": Input(
        lambda robot: 3, lambda _, flat: Vector3(*flat), "point in link coordinates [m]", each_link=True
    ),
    "a_joints": Input(
        lambda robot: robot.nv - BASE_DOFS,
        lambda robot, flat: robot.split_v([*[0.0] * BASE_DOFS, *flat]),
        "acceleration of all joints but the floating base",
    ),
    "stabilisation": Input(lambda robot: 2, _as_it_is, "Baumgarte's gains kp, kd [1/s^2, 1/s]"),
    "proximal": Input(lambda robot: 1, _as_it_is, "share of the mobility that an iteration adds"),
    "restitution": Input(lambda robot: 1, _as_it_is, "0 for an inelastic impact, 1 for an elastic one"),
    "damping": Input(lambda robot: 1, _as_it_is, "share of the typical mobility"),
    "H": Input(lambda robot: robot.nv**2, _square, "mass matrix, both halves"),
    "L": Input(lambda robot: robot.nv**2, _square, "factor L of H = L^T D L"),
    "D": Input(lambda robot: robot.nv, _as_it_is, "factor D of H = L^T D L"),
    "b": Input(lambda robot: robot.nv, _as_it_is, "right side"),
}


def lower_entries(robot: Robot) -> np.ndarray:
    """(row, column) of the lower triangle's entries of H that the tree leaves nonzero, row by row."""
    return np.argwhere(np.tril(robot.inertia_pattern))


def parameter_pattern(robot: Robot) -> np.ndarray:
    """Which bodies each joint force depends on, (nv, N)."""
    tree, found = robot.tree, np.zeros((robot.nv, robot.nbodies), bool)
    kept = range(tree.nv) if tree.coupling is None else [k for k, _ in tree.coupling.v_from]
    for i in range(1, tree.n + 1):
        for k in kept[tree.v_slice[i]]:
            if k >= 0:
                found[k, i - 1 : tree.subtree[i].stop - 1] = True
    return found


def parameter_entries(robot: Robot) -> np.ndarray:
    """(row, column) of the entries of Y that the tree leaves nonzero, row by row."""
    return np.argwhere(np.repeat(parameter_pattern(robot), COUNT, axis=1))


def _flat(rows: Any) -> list[Any]:
    return list(chain.from_iterable(rows))


def _link_poses(robot: Robot, X0: Sequence[Transform]) -> list[Any]:
    poses: list[Any] = []
    for link in robot.links:
        R = Matrix3(link.placement.rotation.tolist())
        p = Vector3(*link.placement.position.tolist())
        X = X0[link.body]
        poses += _flat((*row, x) for row, x in zip((X.E.T @ R).rows, X.point(p), strict=True))
    return poses


@frozen
class Kind:
    """A kind of result."""

    # robot -> shape of each output, of one state; with ``of_choices``, robot, choices -> shapes
    shapes: Callable[..., list[tuple[int, ...]]]
    flat: Callable[[Robot, Any], list[Scalars]]  # robot, what the function returns -> scalars of each output
    # tree, what the function returns for all joints -> that for the joints that keep their coordinates. None
    # where the kind has no rule: such a result is either the same for both, or (``own_function``) needs a
    # function of its own.
    reduced: Callable[[Tree, Any], Any] | None = None
    own_function: bool = False  # whether an algorithm of this kind must bring a function for coupled joints
    # whether machine code checks the outputs too, for robots that are singular somewhere
    finite: bool = False
    of_choices: bool = False  # whether the shapes depend on what the algorithm is about
    meaning: str = ""  # of the first output, in a few words, for code that leaves robokit


FORCE = Kind(
    lambda robot: [(robot.nv,)],
    lambda robot, tau: [tau if robot.coupling else _flat(tau)],
    reduced=lambda tree, tau: reduced_force(tree, _flat(tau)),
    meaning="forces of the joints, in the order of v [N m | N]",
)
"""Forces by joint, (nv,): tau = G^T tau_full."""

MOTION = Kind(
    lambda robot: [(robot.nv,)],
    lambda robot, a: [robot.join_v(a)],
    own_function=True,
    finite=True,
    meaning="accelerations of the joints, in the order of v [rad/s^2 | m/s^2]",
)
"""Accelerations by joint, (nv,): no projection gives those of coupled joints."""

MATRIX = Kind(
    lambda robot: [(robot.nv, robot.nv)],
    lambda _, H: [_flat(H)],
    reduced=reduced_matrix,
    meaning="a row and a column for each entry of v",
)
"""A matrix of joint space, (nv, nv): H = G^T H_full G."""

ENTRIES = Kind(
    lambda robot: [(len(lower_entries(robot)),)],
    lambda robot, H: [[H[i][j] for i, j in lower_entries(robot).tolist()]],
    reduced=reduced_matrix,
    meaning="entries of the lower triangle that the tree leaves nonzero, row by row",
)
"""The entries of such a matrix that the tree leaves nonzero, of the lower triangle."""

COLUMNS = Kind(
    lambda robot: [(6, robot.nv)],
    lambda _, A: [_flat(A)],
    reduced=reduced_columns,
    meaning="a spatial vector, angular first, for each entry of v",
)
"""A spatial vector for each degree of freedom, (6, nv): A = A_full G."""

POINT_COLUMNS = Kind(
    lambda robot: [(3, robot.nv)],
    lambda _, A: [_flat(A)],
    reduced=reduced_columns,
    meaning="x, y, z for each entry of v",
)
"""The motion of a point for each degree of freedom, (3, nv): J = J_full G."""

REGRESSOR = Kind(
    lambda robot: [(robot.nv, COUNT * robot.nbodies)], lambda _, Y: [_flat(Y)], reduced=reduced_rows
)
"""Forces by joint for a unit of each inertial parameter, (nv, 10 N): Y = G^T Y_full."""


def _reduced_motors(tree: Tree, result: tuple[Any, list]) -> tuple[Any, list]:
    """Y of the joints that keep their coordinates, and the accelerations of these."""
    Y, a = result
    assert tree.coupling is not None
    kept = {k: a[at] for at, (k, factor) in enumerate(tree.coupling.v_from) if k >= 0 and factor == 1.0}
    return reduced_rows(tree, Y), [kept[k] for k in sorted(kept)]


def _with_motors(_: Robot, result: tuple[Any, list]) -> list[Any]:
    Y, a = result
    motors = ([0.0] * k + [x] + [0.0] * (len(a) - k - 1) for k, x in enumerate(a))
    return [_flat((*row, *more) for row, more in zip(Y, motors, strict=True))]


REGRESSOR_ARMATURE = Kind(
    lambda robot: [(robot.nv, COUNT * robot.nbodies + robot.nv)], _with_motors, reduced=_reduced_motors
)
"""Y with one more column for the armature of each entry of v, (nv, 10 N + nv)."""

REGRESSOR_ENTRIES = Kind(
    lambda robot: [(len(parameter_entries(robot)),)],
    lambda robot, Y: [[Y[k][column] for k, column in parameter_entries(robot).tolist()]],
    reduced=reduced_rows,
)
"""The entries of Y that the tree leaves nonzero."""

ENERGIES = Kind(lambda robot: [(2, COUNT * robot.nbodies)], lambda _, E: [_flat(E)])
"""Two energies for a unit of each inertial parameter, (2, 10 N)."""

MOMENTA = Kind(lambda robot: [(6, COUNT * robot.nbodies)], lambda _, M: [_flat(M)])
"""A spatial vector for a unit of each inertial parameter, (6, 10 N)."""

SPATIAL = Kind(lambda _: [(6,)], lambda _, f: [list(f)], meaning="a spatial vector, angular first")
"""A spatial vector, (6,)."""

POINT = Kind(lambda _: [(3,)], lambda _, p: [list(p)], meaning="x, y, z")  # a point or vector of space, (3,)
NUMBER = Kind(lambda _: [()], lambda _, x: [[x]], meaning="a number")  # a number

POSES = Kind(
    lambda robot: [(len(robot.links), 3, 4)],
    lambda robot, X0: [_link_poses(robot, X0)],
    meaning="for each link [R p], x_world = R x_link + p",
)
"""Of body transforms ^iX_0, the poses [R p] of all links, (links, 3, 4)."""

BODY_POSES = Kind(
    lambda robot: [(robot.nbodies + 1, 3, 4)],
    lambda _, X0: [_flat((*row, x) for X in X0 for row, x in zip(X.E.T.rows, X.r, strict=True))],
    meaning="for each body 0..N [R p], x_world = R x_body + p",
)
"""Of body transforms ^iX_0, the poses [R p] of bodies 0..N, (N + 1, 3, 4)."""

BODY_REACTIONS = Kind(
    lambda robot: [(robot.nbodies + 1, 6)] * 3,
    lambda _, found: [_flat(each) for each in found],
    meaning="for each body 0..N the force of its joint, in body axes about its origin",
)
"""A force, a velocity and an acceleration for each body 0..N, (N + 1, 6) each."""

BODY_FORCES = Kind(lambda robot: [(robot.nbodies + 1, 6)], lambda _, f: [_flat(f)], meaning=WRENCHES)
"""A force for each body 0..N, (N + 1, 6)."""

FACTORS = Kind(
    lambda robot: [(robot.nv, robot.nv), (robot.nv,)], lambda _, factors: [_flat(factors[0]), factors[1]]
)
"""L and D of a factorisation, (nv, nv) and (nv,)."""

SOLUTION = Kind(lambda robot: [(robot.nv,)], lambda _, x: [x])
"""The solution of a linear system in joint space, (nv,)."""


HYBRID = Kind(
    lambda robot: [(robot.nv,), (robot.nv,)],
    lambda robot, found: [robot.join_v(found[0]), robot.join_v(found[1])],
    own_function=True,
    finite=True,
    meaning="forces by joint",
)
"""Forces and accelerations by joint, (nv,) and (nv,)."""

BASE_AND_FORCES = Kind(
    lambda robot: [(BASE_DOFS,), (robot.nv - BASE_DOFS,)],
    lambda robot, found: [found[0], (found[1] if robot.coupling else [*chain(*found[1])])[BASE_DOFS:]],
    reduced=lambda tree, found: (found[0], reduced_force(tree, [*chain(*found[1])])),
    finite=True,
    meaning="the base's acceleration, angular first, in its axes",
)
"""The acceleration of a floating base, (6,), and the forces of all other joints, (nv - 6,)."""

HELD_MOTION = Kind(
    lambda robot, held: [(robot.nv,), (sum(c.rows for c in held),)],
    lambda robot, found: [robot.join_v(found[0]), found[1]],
    finite=True,
    of_choices=True,
    meaning="by joint",
)
"""Accelerations or velocities by joint, (nv,), and forces or impulses by row of the m constraints, (m,)."""


def _felt_shapes(robot: Robot, frames: Sequence[ContactModel]) -> list[tuple[int, ...]]:
    m = sum(frame.rows for frame in frames)
    return [(m, m), (m, m), (robot.nv, m)]


FELT = Kind(_felt_shapes, lambda _, found: [[*chain(*rows)] for rows in found], finite=True, of_choices=True)
"""Inertia and mobility of m coordinates of links, (m, m) each, and their inverse Jacobian, (nv, m)."""


MATRICES = Kind(
    lambda robot: [(robot.nv, robot.nv)] * 2,
    lambda _, matrices: [_flat(A) for A in matrices],
    reduced=lambda tree, matrices: [reduced_matrix(tree, A) for A in matrices],
)
"""Two matrices of joint space, derivatives of forces: A = G^T A_full G."""

INVERSE = Kind(lambda robot: [(robot.nv, robot.nv)], lambda _, A: [_flat(A)], own_function=True, finite=True)
"""The inverse of a matrix of joint space, (nv, nv): no projection gives that of coupled joints."""

INVERSES = Kind(
    lambda robot: [(robot.nv, robot.nv)] * 3,
    lambda _, matrices: [_flat(A) for A in matrices],
    own_function=True,
    finite=True,
)
"""Three matrices, derivatives of accelerations: no projection gives those of coupled joints either."""

SETS_OF_COLUMNS = Kind(
    lambda robot: [(6, robot.nv)] * 4,
    lambda _, sets: [_flat(A) for A in sets],
    reduced=lambda tree, sets: [reduced_columns(tree, A) for A in sets],
)
"""Four matrices (6, nv), derivatives of a momentum and of its rate."""


# ==== functions of the user's own: what they return as flat outputs, and their errors with their line =


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

OF_SHAPES = (
    " (an input of a shape is a flat list, row by row: np.array(x).reshape(2, 3) makes a matrix of one of "
    "shape (2, 3))"
)
"""Advice where the numbers of an input are used as a matrix."""

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
"""What a function returns for all joints of the tree: its shape, and what coupled joints make of it."""


def sized(shape: Shape, robot: Robot) -> tuple[int, ...]:
    """A shape in numbers."""
    return tuple(SIZES[n](robot) if isinstance(n, str) else n for n in shape)


def shape_of(argument: str, value: Any, spaces: Sequence[str]) -> Shape | str:
    """A shape or the name of one of ``spaces``, checked; ``argument``: what it is of, for messages.

    Raises UnknownName for another name, WrongType for neither, ShapeError for a negative size.
    """
    if isinstance(value, str):
        if value not in spaces:
            raise UnknownName(f"space of {argument}", value, spaces, "(or a shape, such as (3,))")
        return value
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        value = (int(value),)
    if not isinstance(value, tuple | list):
        raise WrongType(argument, value, f"a shape such as (3,) or ('nv', 3), or one of {', '.join(spaces)}")
    for n in value:
        if isinstance(n, str):
            if n not in SIZES:
                raise UnknownName(f"size of {argument}", n, SIZES)
        elif isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 0:
            raise ShapeError(f"{argument}: expected sizes >= 0 in a shape, got {shown(n)}")
    return tuple(n if isinstance(n, str) else int(n) for n in value)


class ByJoint(list[Any]):
    """Coordinates of each joint, ``q[i]`` or ``q["left_knee"]``; entry 0 belongs to the reference."""

    def __init__(self, rows: Sequence[Any], what: str, robot: Robot) -> None:
        """Coordinates from the rows of an array, of joint 1 on; ``what`` names the input in messages."""
        super().__init__(Numbers(row, f"{what}[{i}]") for i, row in enumerate(rows))
        self._what, self._robot = what, robot

    def _make(self, rows: Sequence[Any]) -> ByJoint:
        """Other coordinates in this form, as a loop carries them on and a called function gets them."""
        return ByJoint(rows, self._what, self._robot)

    def __getitem__(self, place: Any) -> Any:
        """Coordinates of the joint of a number or name; IndexError or UnknownName if there is none."""
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

    def _make(self, values: Sequence[Any]) -> Numbers:
        """Other scalars in this form, as :meth:`ByJoint._make`."""
        return Numbers(values, self._what)

    def __getitem__(self, place: Any) -> Any:
        """One of them, or a part; IndexError if there are not so many."""
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


def passed_values(values: Any, what: str) -> Any:
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
    """The input of a shape or space: by joint in a space, a number for (), else a flat list."""
    if isinstance(shape, str):
        space = INPUTS[shape]
        if shape == "f_ext":
            return space
        return replace(space, split=lambda robot, flat: ByJoint(space.split(robot, flat), name, robot))
    if shape == ():
        return Input(lambda robot: 1, lambda robot, flat: flat[0])
    return Input(lambda robot: math.prod(sized(shape, robot)), lambda robot, flat: Numbers(flat, name))


def kind_of(name: str, function: Callable[..., Any], outputs: Mapping[str, Shape | str]) -> Kind:
    """The kind of result of a user's function that returns these outputs: name -> shape or space of each."""
    shapes = {each: SPACES[value][0] if isinstance(value, str) else value for each, value in outputs.items()}

    def wrong(message: str) -> FunctionError:
        file, line = _beginning(function)
        return FunctionError(f"{name}: {message}\n  {file}, line {line}", file, line)

    def flat(robot: Robot, returned: Any) -> list[Sequence[Any]]:
        found: list[Sequence[Any]] = []
        for output, part in zip(outputs, _parts(list(outputs), returned, wrong), strict=True):
            space, shape = outputs[output], sized(shapes[output], robot)
            if part is None:
                raise wrong(f"output {output!r}: got None: does the function return it?")
            joined = part
            if isinstance(space, str):
                try:
                    joined = SPACES[space][1](robot, part)
                except (TypeError, IndexError, ValueError) as error:
                    raise wrong(
                        f"output {output!r}: {space!r} is a list of the numbers of each joint, first those "
                        f"of joint 0, which has none, such as [[], [x], [y, z]], got {shown(part)}; a flat "
                        f"list has the shape {SPACES[space][0]}"
                    ) from error
            try:
                row = leaves(joined, rows=False)
            except Exception as error:  # of a generator
                raise located(name, function, error) from error
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


def leaves(x: Any, rows: bool = True) -> list[Any]:
    """The scalars of nested sequences, vectors and matrices, in order.

    ``rows``: whether an array (B,) of numbers is one scalar, of a batch.
    """
    if isinstance(x, np.ndarray):
        if x.ndim == 0:
            return [x[()]]
        if rows and x.ndim == 1 and x.dtype != object:
            return [x]
    elif isinstance(x, str) or not (hasattr(x, "__iter__") or hasattr(x, "rows")):
        return [x]
    return [leaf for each in getattr(x, "rows", x) for leaf in leaves(each, rows)]


def _sizes(x: Any) -> list[int]:
    """Sizes of nested lists or of an array, without those that are 1; of a vector or a number none."""
    if isinstance(x, np.ndarray):  # a row of NumPy's may be one scalar of a batch
        return [n for n in x.shape if n > 1] if x.dtype == object or x.ndim > 1 else []
    if not isinstance(x, list | tuple):
        return []
    inner = [_sizes(each) for each in x]
    alike = inner[0] if inner and all(each == inner[0] for each in inner) else []
    return [len(x)] * (len(x) > 1) + alike


def watched(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A user's function whose errors say which line of it they come from."""

    @functools.wraps(function)
    def run(tree: Any, *arguments: Any, **named: Any) -> Any:
        try:
            return function(tree, *arguments, **named)
        except (FunctionError, TraceTooLarge):
            raise
        except Exception as error:
            numbers = any(isinstance(x, float) for x in leaves(arguments))
            if numbers and isinstance(error, ValueError | ArithmeticError):
                raise  # of plain numbers, where machine code answers NaN: the engine takes arrays instead
            raise located(name, function, error) from error

    return run


def one_by_one(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function on flat arrays that gets plain numbers only, state by state, and traced scalars as they are.

    Functions of robokit take a row of NumPy's for one scalar of a batch; those of users make arrays of their
    own. The numbers are NumPy's: a comparison of them has an opposite, and a quotient by 0 is infinite.
    """

    def run(*arguments: Sequence[Any]) -> Any:
        numbers = [x for row in arguments for x in row]
        if not all(isinstance(x, float | np.ndarray | np.floating) for x in numbers):
            return function(*arguments)
        rows = [len(x) for x in numbers if isinstance(x, np.ndarray)]
        with np.errstate(all="ignore"):
            if not rows:
                return _state(function, [list(map(np.float64, row)) for row in arguments])
            states = [
                _state(
                    function, [[x[k] if isinstance(x, np.ndarray) else x for x in row] for row in arguments]
                )
                for k in range(rows[0])
            ]
        if not states:
            return function(*arguments)
        return [[np.array(x) for x in zip(*output, strict=True)] for output in zip(*states, strict=True)]

    return run


def _state(function: Callable[..., Any], arguments: list[list[Any]]) -> Any:
    try:
        return function(*arguments)
    except (ValueError, ArithmeticError):  # math raises where the processor answers NaN
        found = function(*([np.array([x]) for x in row] for row in arguments))
        return [[np.ravel(x)[0] for x in output] for output in found]


def located(name: str, function: Callable[..., Any], error: Exception) -> FunctionError:
    """The error with the innermost line outside robokit and NumPy that it comes from; no frames before it."""
    frames = error.__traceback__
    own, raised_in = None, ""
    place = (*_beginning(function), name)
    while frames is not None:
        code = frames.tb_frame.f_code
        raised_in = code.co_filename
        if not code.co_filename.startswith(_INSIDE):
            own = own or frames
            place = (code.co_filename, frames.tb_lineno, code.co_name)
        frames = frames.tb_next
    error.__traceback__ = own
    file, line, caller = place
    source = linecache.getline(file, line).strip()
    where = f"{file}, line {line}, in {caller}" + (f": {source}" if source else "")
    hint = BY_JOINT if _of_lists(error, raised_in, file) else ""
    if isinstance(error, TypeError | IndexError) and _AS_MATRIX.search(str(error)):
        hint = OF_SHAPES
    if isinstance(error, RobokitError) and not isinstance(error, UnknownName):
        hint = OF_NUMBERS
    if str(error).startswith("only integers, slices"):
        hint = OF_ARRAYS
    if "Cannot cast ufunc" in str(error):  # the functions of np.linalg that LAPACK computes
        hint = OF_LAPACK
    if isinstance(error, RecursionError):
        hint = f" ({ENDLESS})"
    return FunctionError(f"{name}: {type(error).__name__}: {error}{hint}\n  {where}", file, line)


_AS_MATRIX = re.compile("for @|(Scalar|float)' object is not subscriptable|slices, not tuple|index to scalar")


def _of_lists(error: Exception, raised_in: str, place: str) -> bool:
    """Whether the error is that of a list that is too short, or of one used as a number.

    Args:
        error: raised somewhere in the user's function.
        raised_in: the file that raised it.
        place: the innermost file of the user's.
    """
    if isinstance(error, IndexError):
        return raised_in in (place, __file__)
    of_lists = any(f"'{kind.__name__}'" in str(error) for kind in (list, Numbers, ByJoint))
    return isinstance(error, TypeError) and of_lists


def _beginning(function: Callable[..., Any]) -> tuple[str, int]:
    code = getattr(function, "__code__", None)
    return (code.co_filename, code.co_firstlineno) if code else ("<unknown>", 0)


_INSIDE = (
    *(os.path.dirname(os.path.abspath(file)) + os.sep for file in (os.path.dirname(__file__), np.__file__)),
    contextlib.__file__,
)
