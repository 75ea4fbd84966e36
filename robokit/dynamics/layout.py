"""Flat arrays to what the algorithms take, and back: a row for each input and for each kind of result.

Arrays hold the coordinates of a state in one row. The algorithms take q, v, a and tau by joint, forces by
body, matrices by row, and return the same. What becomes of a result when mimic joints lose their
coordinates, v_full = G v, depends on its kind alone.

Source: RBDA section 3.3 for the couplings (tau = G^T tau_full, H = G^T H_full G, A = A_full G).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from robokit.algorithms.coupling import reduced_columns, reduced_force, reduced_matrix, reduced_rows
from robokit.model.constraints import ContactModel
from robokit.model.inertial_parameters import COUNT
from robokit.model.robot import Robot
from robokit.model.tree import Tree
from robokit.spatial import Force, Matrix3, Transform, Vector3

Scalars = Sequence[Any]

BASE_DOFS = 6
"""Velocities of a floating base, the first ones of v."""


@dataclass(frozen=True)
class Input:
    """An argument of algorithms."""

    size: Callable[[Robot], int]  # robot -> number of scalars of one state
    split: Callable[[Robot, Scalars], Any]  # robot, flat scalars -> what the texts take
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


@dataclass(frozen=True)
class Kind:
    """A kind of result."""

    # robot -> shape of each output, of one state; with ``of_choices``, robot, choices -> shapes
    shapes: Callable[..., list[tuple[int, ...]]]
    flat: Callable[[Robot, Any], list[Scalars]]  # robot, what the text returns -> flat scalars of each output
    # tree, what the text returns for all joints -> the same for the joints that keep their coordinates. None
    # where the kind has no rule: such a result is either the same for both, or (``own_text``) needs a text of
    # its own.
    reduced: Callable[[Tree, Any], Any] | None = None
    own_text: bool = False  # whether an algorithm of this kind must bring a text for coupled joints
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
    own_text=True,
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

POINT = Kind(lambda _: [(3,)], lambda _, p: [list(p)], meaning="x, y, z")
"""A point or vector of space, (3,)."""

NUMBER = Kind(lambda _: [()], lambda _, x: [[x]], meaning="a number")
"""A number."""

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
    own_text=True,
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

INVERSE = Kind(lambda robot: [(robot.nv, robot.nv)], lambda _, A: [_flat(A)], own_text=True, finite=True)
"""The inverse of a matrix of joint space, (nv, nv): no projection gives that of coupled joints."""

INVERSES = Kind(
    lambda robot: [(robot.nv, robot.nv)] * 3,
    lambda _, matrices: [_flat(A) for A in matrices],
    own_text=True,
    finite=True,
)
"""Three matrices, derivatives of accelerations: no projection gives those of coupled joints either."""

SETS_OF_COLUMNS = Kind(
    lambda robot: [(6, robot.nv)] * 4,
    lambda _, sets: [_flat(A) for A in sets],
    reduced=lambda tree, sets: [reduced_columns(tree, A) for A in sets],
)
"""Four matrices (6, nv), derivatives of a momentum and of its rate."""
