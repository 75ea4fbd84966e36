"""Kinds of results where some motion is given: hybrid dynamics, floating bases, constraints, frames."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from robokit.algorithms.coupling import reduced_force
from robokit.dynamics.layout import BASE_DOFS, Kind
from robokit.model.constraints import ContactModel
from robokit.model.robot import Robot

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
