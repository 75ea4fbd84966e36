"""Joints whose motion is prescribed: q(t) and its rate are given, and the force that it takes is found.

The middle of the step has the joint at q(t + dt/2), the kick leaves it with the velocity v(t + dt), and the
step ends at q(t + dt): exactly, whatever else acts. As a row, with the impulse g of the step before, then of
the iteration before (solver.py),

    u = qd     R = 1e-3 W     aim = v(t + dt) + R g     set: all impulses

W is the mobility of the dof. So all else moves as it does with that joint's acceleration given.

Source: RBDA section 9.1, hybrid dynamics; R. T. Rockafellar (1976), proximal point iteration, as in loops.py.
Cost: O(prescribed joints).
"""

from __future__ import annotations

from typing import Any

from robokit.contact.constraints.adding import add_row, mobility
from robokit.contact.fields import END, PRESCRIBED, SPEED
from robokit.contact.vectors import nothing, of_all_forces, put
from robokit.spatial.control_flow import cond, for_range

SOFT = 1e-3
"""Compliance over the mobility: an iteration leaves this share of the force's error."""

ENDLESS = float("inf")


def collect(x: Any) -> None:
    """The rows of all prescribed joints, after the loops."""
    if not of_all_forces(x):
        return

    def joint(m: Any) -> None:
        j = x.motion_dof[m]
        R = SOFT * mobility(x, j)
        aim = x.motion_values[m, SPEED] + R * x.dt[0] * x.motion_force[m]
        add_row(x, PRESCRIBED, m, j, 1.0, R, aim, -ENDLESS, ENDLESS)

    for_range(x.n_motions, joint)
    x.n_of[3] = x.n_of[3] + x.n_motions


def remember(x: Any) -> None:
    """The forces that it takes."""
    if not of_all_forces(x):
        return

    def row(i: Any) -> None:
        keep = x.r_kind[i] == PRESCRIBED
        cond(keep, lambda: put(x.motion_force, x.r_of[i], x.r_g[i] / x.dt[0]), nothing)

    cond(x.n_motions > 0, lambda: for_range(x.n_of[1], row), nothing)


def place(x: Any, when: int) -> None:
    """Put prescribed joints where they are in the middle of the step, or at its end, with their velocity."""

    def joint(m: Any) -> None:
        j = x.motion_dof[m]
        x.q[x.coordinate_from[x.joint_coordinate[x.dof_body[j]]]] = x.motion_values[m, when]
        if when == END:
            x.v[x.dof_row[j]] = x.motion_values[m, SPEED]

    for_range(x.n_motions, joint)
