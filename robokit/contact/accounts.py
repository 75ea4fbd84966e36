"""What a step enters into the ledger: energies, impulses, depths, and what the solver took.

A constant force f over a step that changes the velocity of its point from u to u' does the work f (u + u')/2:
these sums are exact, whatever the step.

Source: the change of 1/2 v^T H v is dt f . (v + v')/2.
Cost: O(contacts + rows).
"""

from __future__ import annotations

from typing import Any

from robokit.contact.constraints.motors import limited
from robokit.contact.fields import FRICTION, LINE, MOTOR, PRESCRIBED, SPEED, SPIN, SPRING, STOP
from robokit.contact.linear import motion, sum_of
from robokit.contact.solver import relative
from robokit.contact.vectors import nothing, put
from robokit.spatial import Force, Vector3
from robokit.spatial.control_flow import cond, for_range
from robokit.spatial.scalars import Scalar, maximum, where

ENTRIES = (
    "contact",  # energy taken by the ground [J], that stored in its springs included
    "friction",  # energy taken by damping and friction of the joints [J]
    "stops",  # energy taken by joint limits [J]
    "work",  # energy given by joint forces, motors, pushes and belts [J]
    "impulse_nx",  # impulse of the ground about the centre of mass, world axes [N m s; N s]
    "impulse_ny",
    "impulse_nz",
    "impulse_fx",
    "impulse_fy",
    "impulse_fz",
    "depth",  # deepest point in the ground so far [m]
    "residual",  # largest residual of a solution so far, relative
    "residual_sum",  # sum of the residuals
    "corrected_k",  # sum of the angular momentum that steps missed and the projection gave back [N m s]
    "corrected_l",  # the same of the linear momentum [N s]
    "corrected_e",  # the same of the energy [J]
    "collision",  # energy taken by contacts between bodies [J]
    "overlap",  # deepest overlap of two bodies so far [m]
    "pressed",  # sum of the normal impulses on the ground [N s]
    "pulled",  # sum of the normal impulses that pull: 0 [N s]
    "outside",  # sum of the tangential impulses outside Coulomb's cone: 0 [N s]
    "steps",  # that were taken
    "iterations",  # of all these
    "most",  # of one step
    "missed",  # steps that did not settle
    "springs",  # energy taken by springs and dampers [J], that stored in them included; part of "work"
)
"""Entries of the ledger of a step."""

AT = {name: k for k, name in enumerate(ENTRIES)}

GIVEN, TOUCHED, IMPULSE = 0, 1, 2
"""Places in ``account``."""


def account(x: Any) -> None:
    """Enter a step, after the solve, at its middle.

    ``account`` holds the impulse of the forces from outside about the origin, and what conservation.py takes
    of the step afterwards.
    """
    outside = Force(*(Vector3(*(x.account[IMPULSE + 3 * h + k] for k in range(3))) for h in range(2)))
    for k in range(8):
        x.account[k] = 0.0
    m, h = x.composite[0, 0], Vector3(*(x.composite[0, 1 + k] for k in range(3)))
    com = h * where(m > 0.0, 1.0 / where(m > 0.0, m, 1.0), 0.0)
    _given(x, outside, com)
    for_range(x.n_of[0], lambda i: _constraint(x, i, com))
    for_range(x.n_of[1], lambda i: _row(x, i))
    _solution(x)


def add(x: Any, name: str, amount: Scalar) -> None:
    """Add to an entry."""
    x.ledger[AT[name]] = x.ledger[AT[name]] + amount


def largest(x: Any, name: str, value: Scalar) -> None:
    """Keep the largest value so far."""
    x.ledger[AT[name]] = maximum(x.ledger[AT[name]], value)


def _gives(x: Any, amount: Scalar) -> None:
    x.account[GIVEN] = x.account[GIVEN] + amount


def about(f: Force, com: Vector3) -> Force:
    """A force about the origin as one about the centre of mass."""
    return Force(f.ang - com.cross(f.lin), f.lin)


def _impulse(x: Any, f: Force, com: Vector3, entries: Any, first: int) -> None:
    """Enter an impulse about the origin, of what is not the robot."""
    for k, amount in enumerate([*about(f, com)]):
        x.account[IMPULSE + k] = x.account[IMPULSE + k] + amount
        entries[first + k] = entries[first + k] + amount


# ---- what is given ----------------------------------------------------------------------------------------


def _given(x: Any, outside: Force, com: Vector3) -> None:
    """Joint forces and pushes; ``outside`` is the impulse of those from outside about the origin."""
    dt = x.dt[0]
    work = for_range(x.nv, lambda j, W: W + x.tau[j] * (x.v0[j] + x.y[j]), 0.0) * (0.5 * dt)
    add(x, "work", work)
    _gives(x, work)
    _impulse(x, outside, com, x.outside_impulse, 0)


# ---- contacts ---------------------------------------------------------------------------------------------


def on_ground(x: Any, i: Any) -> Any:
    """Whether a constraint is a contact with the ground, no link; turning friction is none."""
    return cond(x.c_kind[i] == FRICTION, lambda: _of_ground(x, x.c_of[i]), lambda: False)


def _of_ground(x: Any, c: Any) -> Any:
    """Whether a contact is with the ground: a link that is fixed to the world is of body 0, too."""
    return x.pair_of_links[x.contact_pair[c]] == 0


def _constraint(x: Any, i: Any, com: Vector3) -> None:
    """A contact, its turning friction, or half of a loop."""
    before, g = relative(x, i, x.V), [x.c_g[i, k] for k in range(3)]
    given = sum_of(0.5 * (a + x.c_u[i, k]) * g[k] for k, a in enumerate(before))
    spins = x.c_kind[i] == SPIN

    def contact() -> None:
        _gives(x, given)
        x.account[TOUCHED] = x.account[TOUCHED] + where(spins, 0.0, maximum(g[2], 0.0))
        c = x.c_of[where(spins, x.c_of[i], i)]
        gap = where(spins, 0.0, x.contact_gap[c])
        cond(
            _of_ground(x, c),
            lambda: _ground(x, i, c, spins, given, gap, com),
            lambda: _met(x, i, given, gap, com),
        )

    def spring() -> None:
        _gives(x, given)
        add(x, "work", given)
        add(x, "springs", -given)
        to_world = x.c_bodies[i, 0] == 0
        cond(to_world, lambda: _impulse(x, impulse_of(x, i), com, x.outside_impulse, 0), nothing)

    def others() -> None:
        cond(x.c_kind[i] == SPRING, spring, contact)

    cond(x.c_kind[i] == LINE, lambda: _gives(x, given), others)


def _ground(x: Any, i: Any, c: Any, spins: Any, given: Scalar, gap: Scalar, com: Vector3) -> None:
    """A contact with the ground; the work of a belt is its force times the velocity of its surface."""
    g = [x.c_g[i, k] for k in range(3)]
    slides = g[0] * x.contact_surface[c, 0] + g[1] * x.contact_surface[c, 1]
    belt = where(spins, g[2] * x.contact_surface[c, 2], slides)
    add(x, "contact", belt - given)
    add(x, "work", belt)
    largest(x, "depth", -gap)
    add(x, "pressed", where(spins, 0.0, maximum(g[2], 0.0)))
    _impulse(x, impulse_of(x, i), com, x.ledger, AT["impulse_nx"])


def _met(x: Any, i: Any, given: Scalar, gap: Scalar, com: Vector3) -> None:
    """A contact of two links; one that is fixed to the world pushes from outside."""
    add(x, "collision", -given)
    largest(x, "overlap", -gap)
    fixed = x.c_bodies[i, 0] == 0
    cond(fixed, lambda: _impulse(x, impulse_of(x, i), com, x.outside_impulse, 0), nothing)


def impulse_of(x: Any, i: Any) -> Force:
    """That of a contact on its second body, about the origin."""
    E, g = [motion(x.c_E, i, 6 * k) for k in range(3)], [x.c_g[i, k] for k in range(3)]
    ang = sum_of(e.ang * s for e, s in zip(E, g, strict=True))
    return Force(ang, sum_of(e.lin * s for e, s in zip(E, g, strict=True)))


# ---- joints -----------------------------------------------------------------------------------------------


def _row(x: Any, i: Any) -> None:
    """A row of a joint: damping, friction, a stop or a motor."""
    j, g, kind = x.r_row[i], x.r_g[i], x.r_kind[i]
    given = 0.5 * x.r_gain[i] * (x.v0[j] + x.y[j]) * g
    _gives(x, given)

    def motor() -> None:
        add(x, "work", given)
        m = x.r_of[i]
        x.motor_sums[m, 0] = x.motor_sums[m, 0] + g
        x.motor_sums[m, 1] = x.motor_sums[m, 1] + x.dt[0] * limited(x, i)

    def stop() -> None:
        add(x, "stops", -given)
        x.account[TOUCHED] = x.account[TOUCHED] + abs(g)

    def rest() -> None:
        cond(kind == STOP, stop, lambda: add(x, "friction", -given))

    def not_driven() -> None:
        cond(kind == PRESCRIBED, lambda: add(x, "work", given), rest)

    cond(kind == MOTOR, motor, not_driven)


def enter_closing(x: Any) -> None:
    """What prescribed joints take at the end of a step, where velocities are put on the loops.

    The kick leaves the velocities of a loop off by terms of second order, which would leave its force off by
    one of first order.
    """

    def joint(m: Any) -> None:
        row, force = x.dof_row[x.motion_dof[m]], x.motion_push[m] / x.dt[0]
        x.motion_force[m] = x.motion_force[m] + force
        add(x, "work", x.motion_push[m] * x.motion_values[m, SPEED])

        def note() -> None:
            n = x.noted[0] - 1
            put(x.noted_joint, (n, row, 0), x.noted_joint[n, row, 0] + x.dof_gain[x.motion_dof[m]] * force)

        if hasattr(x, "noted"):
            cond(x.watched[0] > 1, note, nothing)

    cond(x.n_loops > 0, lambda: for_range(x.n_motions, joint), nothing)


# ---- the solver -------------------------------------------------------------------------------------------


def _solution(x: Any) -> None:
    iterations, residual = x.solved[0], x.solved[1]
    largest(x, "residual", residual)
    add(x, "residual_sum", residual)
    add(x, "steps", 1.0)
    add(x, "iterations", iterations)
    largest(x, "most", iterations)
    add(x, "missed", x.solved[2])
