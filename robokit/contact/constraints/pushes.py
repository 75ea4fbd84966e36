"""Given forces: pushes on bodies, and those of the joints of free bases.

They do not depend on the velocity of the step. They act at its middle, and their work is that along the
body's motion in the entire step.

Cost: O(bodies + pushes).
"""

from __future__ import annotations

from typing import Any

from robokit.contact.constraints.adding import act_on, axes_of, place_on, vector
from robokit.contact.robot_data import FLOATING
from robokit.contact.vectors import nothing
from robokit.spatial.control_flow import cond, for_range
from robokit.spatial.scalars import where


def act(x: Any) -> None:
    """Add the pushes to the forces on bodies."""

    def on_base(m: Any) -> None:
        b = m + 1

        def push() -> None:
            row, R = x.dof_row[x.body_dofs[b, 0]], axes_of(x, b)
            moment, force = (R @ vector(x.joint_forces, row + k) for k in (0, 3))
            act_on(x, b, moment, force, vector(x.p, b, 0))

        cond(is_base(x, b), push, nothing)

    def pushed(k: Any) -> None:
        b = x.push_body[k]
        moment, force = (vector(x.push_wrench, k, h) for h in (0, 3))
        point = place_on(x, b, vector(x.push_point, k, 0))
        world = where(x.push_in_world[k] > 0, 1.0, 0.0)
        seat = vector(x.origin, 0) + vector(x.seat, b, 0)
        act_on(x, b, moment, force, point * (1.0 - world) - seat * world)

    for_range(x.n_bodies - 1, on_base)
    for_range(x.n_pushes, pushed)


def is_base(x: Any, b: Any) -> Any:
    """Whether body b floats freely."""
    return (x.parent[b] == 0) & (x.joint_kind[b] == FLOATING)
