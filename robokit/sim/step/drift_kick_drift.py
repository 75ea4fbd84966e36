"""The step of falls: drift half a step, kick, drift half a step.

    (q, v) <- advance(q, v, dt/2)      y <- settle(q, v)      (q, v) <- advance(q, y, dt/2)

All forces act at the pose of the middle, as in the leapfrog method (Störmer and Verlet): free motion is
second order, and what is stiff (contacts, limits, friction, damping) is implicit, so that it cannot make the
step unstable. Momentum is kept to rounding; so is energy while nothing touches, and steps with contacts
make none (energy_momentum.py).
"""

from __future__ import annotations

from typing import Any

from robokit.sim.joints.loop_impulses import project
from robokit.sim.motion.carried import Carried
from robokit.sim.motion.ledger import Ledger
from robokit.sim.motion.moving_axes import Rows, advance
from robokit.sim.step.books import (
    enter_contacts,
    enter_joint_work,
    enter_meetings,
    enter_outside,
    half_way,
    keep,
    total,
)
from robokit.sim.step.energy_momentum import conserve
from robokit.sim.step.problem import Problem
from robokit.sim.step.settle import Settled, settle
from robokit.spatial.scalars import Scalar, is_zero, where

ROUNDING = 1e-12
"""Impulse between bodies up to which they do not touch [N s]: what is taken back leaves its rounding."""


def kick(p: Problem, q: Rows, v: Rows, tau: Rows, dt: Scalar, carried: Carried) -> tuple[Rows, Settled]:
    """(the configuration of the step's middle, what happens there)."""
    qm, vm = advance(p.tree, q, v, 0.5 * dt)
    return qm, settle(p, qm, vm, tau, dt, carried)


def drift_kick_drift(
    p: Problem, q: Rows, v: Rows, tau: Rows, dt: Scalar, ledger: Ledger, carried: Carried
) -> tuple[Rows, Rows]:
    """One step."""
    qm, done = kick(p, q, v, tau, dt, carried)
    return finish_step(p, q, qm, done, dt, ledger, carried)


def finish_step(
    p: Problem, q: Rows, qm: Rows, done: Settled, dt: Scalar, ledger: Ledger, carried: Carried
) -> tuple[Rows, Rows]:
    """The rest of a step from q, whose kick at qm is done: books, and the second drift."""
    ledger.done = done
    rub, stops = (list(rows) for rows in zip(*done.joint_force, strict=True))
    enter_joint_work(ledger, half_way(done.before, done.y, dt), done.given, rub, stops)
    p.given.enter_drives(ledger, done.given, done.limited, dt)
    impulse = total(enter_contacts(ledger, p.tree, done), enter_outside(p, ledger, done, dt))
    impulse = total(impulse, enter_meetings(p, ledger, done))
    q1, v1 = advance(p.tree, qm, done.y, 0.5 * dt)
    if p.loops is not None and done.loops is not None:
        q1, v1 = project(p.loops, p.tree, done.loops.factor, q1, v1)
    if carried.energy is None:
        return keep(ledger, p.tree, q1, v1, dt, carried, impulse)
    return conserve(
        p.tree, q, q1, v1, dt, ledger.gained, ledger, carried, impulse, touched=touched(done)
    )  # fmt: skip


def touched(done: Settled) -> Any:
    """Whether anything touches: the ground, another body, a joint's limit."""
    pressed: Scalar = 0.0
    for acting in done.contacts:
        pressed = pressed + acting.pressed
    for _, stops in done.joint_force:
        for f in stops:
            pressed = pressed + f * f
    if done.met is not None:
        for f in done.met.impulse.values():
            square = f.lin.dot(f.lin)
            pressed = pressed + where(square > ROUNDING * ROUNDING, square, 0.0)
    return False if is_zero(pressed) else pressed > 0.0
