"""Forces of single joints: damping, dry friction, limits, and joints whose motion is given."""

from __future__ import annotations

import math
from typing import Any

from robokit.contact.constraints.adding import add_row, mobility, moves, speed, value
from robokit.contact.fields import DAMPING, DRY, END, PRESCRIBED, SPEED, STOP
from robokit.contact.vectors import anywhere, in_lanes, nothing, of_all_forces, put
from robokit.spatial.control_flow import cond, for_range
from robokit.spatial.scalars import Scalar, where

# ==== damping =====================================================================================
# Damping of the joints: tau = -b qd, at the end of the step.
#
#     u = qd     R = 1/(dt b)     aim = 0     set: all impulses
#
# It stores nothing; it takes b qd times the mean of the speeds before and after.
#
# Cost: O(dofs).


ENDLESS = float("inf")


def collect_damping(x: Any) -> None:
    """The rows of all damped dofs."""

    def dof(j: Any) -> None:
        b = x.damping[j]

        def add() -> None:
            add_row(x, DAMPING, j, j, 1.0, 1.0 / (x.dt[0] * b), 0.0, -ENDLESS, ENDLESS)

        cond((b > 0.0) & moves(x, j), add, lambda: None)

    for_range(x.n_dofs, dof)


# ==== dry friction ================================================================================
# Dry friction of the joints: what holds them up to f, and takes f where they move.
#
#     u = qd     R = 1e-2 W     aim = R dt f_last     set: [-f dt, f dt]
#
# W is the mobility of the dof alone, f_last the friction of the last step: what is held at a constant load
# does not creep, and a load that changes moves it by a hundredth of what it would move it by freely. This is
# a bristle of Dahl's in implicit Euler's method; its energy, at most R/2 (f dt)^2, is not counted.
#
# With aim = 0 the compliance would have to be 1e-6 W, and the slopes of several joints that begin to slide, a
# million times H, keep Newton's method from settling.
#
# Source: C. A. de Coulomb (1785); P. Dahl (1968); R. T. Rockafellar (1976), proximal point iteration.
# Cost: O(dofs).


FIRM = 1e-2  # compliance over the mobility of the dof


def collect_dry_friction(x: Any) -> None:
    """The rows of all dofs with dry friction."""

    def dof(j: Any) -> None:
        most = x.dry_friction[j] * x.dt[0]

        def add() -> None:
            R = FIRM * mobility(x, j)
            add_row(x, DRY, j, j, 1.0, R, R * x.dt[0] * x.dry_force[j], -most, most)

        cond((most > 0.0) & moves(x, j), add, lambda: None)

    for_range(x.n_dofs, dof)


def remember_dry_friction(x: Any) -> None:
    """Store the friction impulses of all dofs."""

    def row(i: Any) -> None:
        def keep() -> None:
            x.dry_force[x.r_of[i]] = x.r_g[i] / x.dt[0]

        cond(x.r_kind[i] == DRY, keep, lambda: None)

    for_range(x.n_of[1], row)


# ==== limits ======================================================================================
# Limits of the joints: contacts in one dimension.
#
# With the distance phi that is left to a limit, and the speed u at which it grows,
#
#     N = max(0, -k (phi + dt u) - d u)
#     u = +-qd     R = 1/(dt (k dt + d))     aim = -phi k/(k dt + d) (phi < 0),  -phi/dt (phi >= 0)
#     set: impulses >= 0
#
# Cost: O(stops).


REACH = 0.02, 4.0
"""A stop takes part within this share of the joint's range, and this many times what it moves in the step.
What throws a joint farther in one step than that meets it one step later, that much deeper."""


def collect_limits(x: Any) -> None:
    """The rows of all joint limits that can be reached."""

    def stop(m: Any) -> None:
        j, side, dt = x.stop_dof[m], x.stop_side[m], x.dt[0]

        def add() -> None:
            k, kd = x.stop_gains[m, 0], x.stop_gains[m, 0] * dt + x.stop_gains[m, 1]
            phi = gap(x, m)
            aim = where(phi < 0.0, -phi * k / kd, -phi / dt)
            near = REACH[0] * x.stop_range[m] + REACH[1] * dt * abs(speed(x, j))

            def row() -> None:
                # In lanes where another one is near, it has no impulse.
                most = where(phi < near, math.inf, 0.0) if in_lanes(x) else math.inf
                add_row(x, STOP, m, j, side, 1.0 / (dt * kd), aim, 0.0, most)

            cond(anywhere(x, phi < near), row, lambda: None)

        cond(moves(x, j), add, lambda: None)

    for_range(x.n_stops, stop)


def gap(x: Any, m: Any) -> Scalar:
    """The distance to a limit, negative beyond it [rad | m]."""
    return x.stop_side[m] * (value(x, x.stop_dof[m]) - x.stop_bound[m])


# ==== joints whose motion is given ================================================================
# Joints whose motion is prescribed: q(t) and its rate are given, and the force that it takes is found.
#
# The middle of the step has the joint at q(t + dt/2), the kick leaves it with the velocity v(t + dt), and the
# step ends at q(t + dt): exactly, whatever else acts. As a row, with the impulse g of the step before, then
# of the iteration before (solver.py),
#
#     u = qd     R = 1e-3 W     aim = v(t + dt) + R g     set: all impulses
#
# W is the mobility of the dof. So all else moves as it does with that joint's acceleration given.
#
# Source: RBDA section 9.1, hybrid dynamics; R. T. Rockafellar (1976), proximal point iteration, as in
# loops.py. Cost: O(prescribed joints).


SOFT = 1e-3  # compliance over the mobility: an iteration leaves this share of the force's error


def collect_prescribed(x: Any) -> None:
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


def remember_prescribed(x: Any) -> None:
    """Store the forces of prescribed joints."""
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
