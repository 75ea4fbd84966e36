"""A step of a robot with contacts: drift half a step, kick, drift half a step.

    q <- advance(q, v, dt/2)      y <- solve(q, v)      q <- advance(q, y, dt/2)

All forces act at the pose of the middle, as in the leapfrog method (Störmer and Verlet): free motion is of
second order. Stiff forces (contacts, limits, friction, motors, loops) are implicit in the velocity y, which
solves the balance of momentum and Coulomb's law together (solver.py). Where something lands, the second half
of the drift has a velocity of its own (landings.py). One kernel serves every robot and every ground: these
are data.

If an array is too small for what a step finds, the step leaves the state unchanged and reports the size it
needs; no further step does anything until the array is large enough.

Source: README.md here.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

from robokit.collision.detect import detect, remembered
from robokit.collision.fields import CANDIDATES, CONTACTS, MEMORY, PAIRS, SHAPES
from robokit.contact.accounts import NOTHING, account, begin, conserve, enter_closing, open_account
from robokit.contact.articulated import couple
from robokit.contact.bounces import solve_bounces
from robokit.contact.constraints import joints
from robokit.contact.constraints.collecting import act, collect, remember
from robokit.contact.constraints.loops import close, close_for_kick
from robokit.contact.constraints.pushes import is_base
from robokit.contact.fields import (
    CONSTRAINTS,
    END,
    FORCE_MEMORY,
    FORCES,
    MIDDLE,
    MOTION,
    ROBOT,
    SOLVER,
    STATE,
    STEP,
)
from robokit.contact.groups import connect
from robokit.contact.impacts import arrive, hold
from robokit.contact.kinematics import advance, generalized, mass_matrix, place_bodies, velocities
from robokit.contact.monitor import MONITOR, NOTES, monitor, notes
from robokit.contact.vectors import nothing, one_by_one, put, write_row
from robokit.engine.loops.fields import kernel_of, once
from robokit.engine.loops.kernel import LoopKernel
from robokit.engine.signature import ArrayOf
from robokit.spatial.control_flow import cond, for_range
from robokit.spatial.scalars import where

ARRAYS: tuple[ArrayOf, ...] = (
    *ROBOT,
    *SHAPES,
    *PAIRS,
    *FORCES,
    *STATE,
    *SOLVER,
    *STEP,
    *CANDIDATES,
    *MEMORY,
    *FORCE_MEMORY,
    *MOTION,
    *(replace(a, role="work") for a in CONTACTS),
    *CONSTRAINTS,
    *MONITOR,
    *NOTES,
)
"""All that a step takes; each has one name in all parts of it."""

ADDED = (
    "n_contacts",
    "n_near",
    "n_candidates",
    "n_constraints",
    "n_rows",
    "n_fill",
    "n_noted",
    "n_noted_contacts",
)
"""Sizes of arrays that have to be large enough, in the order of ``needed``."""


def step_kernel(reproducible: bool = False, springs: tuple[Any, ...] = ()) -> LoopKernel:
    """The kernel of a step, of all robots; tensions of springs that are functions have one of their own."""
    return _step_kernel(reproducible, springs)


@functools.cache
def _step_kernel(reproducible: bool, springs: tuple[Any, ...]) -> LoopKernel:
    if not springs:
        text = step_by_matrix if reproducible else step
        return kernel_of("contact_step", text, ARRAYS, by_source=True, reproducible=reproducible)

    def with_springs(x: Any) -> None:
        x.spring_functions, x.by_matrix = springs, reproducible
        step(x)

    return kernel_of("contact_step_of_springs", with_springs, ARRAYS, reproducible=reproducible)


def step_by_matrix(x: Any) -> None:
    """The same with the matrix also for deep trees (articulated.py), for pages and reproducible runs."""
    x.by_matrix = True
    step(x)


def step(x: Any) -> None:
    """One step, if the previous one had enough memory."""
    cond(x.needed[0] > 0, nothing, lambda: _step(x))


def _step(x: Any) -> None:
    to_middle(x)
    cond(fits(x), lambda: _kick(x), lambda: go_back(x))


def to_middle(x: Any) -> None:
    """Half a step of drift, and the forces at the middle."""
    half = 0.5 * x.dt[0]
    begin(x)
    note_state(x)
    once(x, advance, x.q, x.v, x.v, half)
    joints.place(x, MIDDLE)
    once(x, place_bodies, x.q)
    once(x, velocities, x.v, x.V)
    once(x, mass_matrix)
    close_for_kick(x)
    once(x, detect)
    collect(x)
    couple(x)


def _kick(x: Any) -> None:
    give(x)
    solve_bounces(x)
    from_middle(x)


def from_middle(x: Any) -> None:
    """Enter the solution into the accounts, and drift for the other half of the step."""
    half = 0.5 * x.dt[0]
    remember(x)
    account(x)
    monitor(x)
    # Derivatives are taken of what stops here.
    cond(x.keeps[0] < NOTHING, nothing, lambda: finish(x, half))


def finish(x: Any, half: Any) -> None:
    """The second half of the drift, and the state that the next step needs."""
    set_velocity(x)
    once(x, advance, x.q, x.v, x.ahead, half)
    joints.place(x, END)
    close(x)
    joints.place(x, END)
    enter_closing(x)
    conserve(x)


# ---- what is given and what comes out ---------------------------------------------------------------------


def give(x: Any) -> None:
    """Set the velocity before the kick, the given forces, and the initial guess of the iteration."""
    for k in range(3):
        x.middle[k] = x.origin[k]
    once(x, act)
    connect(x)
    once(x, generalized, x.f, x.tau)
    open_account(x)

    def dof(j: Any) -> None:
        x.v0[j] = x.v[j]
        x.guess[j] = x.v[j] + x.change[j]

    def body(m: Any) -> None:
        b = m + 1
        first = x.body_dofs[b, 0]

        def own(k: Any) -> None:
            j = x.dof_row[first + k]
            x.tau[j] = x.tau[j] + x.joint_forces[j]

        drives = where(is_base(x, b), 0, x.joint_leads[b])
        cond(drives > 0, lambda: for_range(x.body_dofs[b, 1], own), nothing)

    for_range(x.nv, dof)
    for_range(x.n_bodies - 1, body)
    arrive(x)
    hold(x)


def set_velocity(x: Any) -> None:
    """Set v to the velocity of the solution, after the solve."""

    def dof(j: Any) -> None:
        x.change[j] = x.y[j] - x.v0[j]
        x.v[j] = x.y[j]

    for_range(x.nv, dof)


# ---- places -----------------------------------------------------------------------------------------------


def note_state(x: Any) -> None:
    """Store the state that :func:`go_back` restores."""
    for_range(x.nq, lambda k: put(x.q_before, k, x.q[k]))
    for_range(x.nv, lambda k: put(x.v_before, k, x.v[k]))
    _copy_near(x, "", "_before")


def fits(x: Any) -> Any:
    """Whether the arrays were large enough; ``needed`` has the sizes that are needed."""
    needs = [x.counts[0], x.counts[1], x.counts[3], x.n_of[0], x.n_of[1], x.filled[0]]
    of_pairs = [x.n_near, x.n_candidates] if _remembers(x) else [0, 0]
    sizes = [x.n_contacts, *of_pairs, x.n_constraints, x.n_rows, x.n_fill]
    if notes(x):
        notes_it = x.watched[0] > 1
        needs += [where(notes_it, x.noted[0] + 1, 0), where(notes_it, x.noted[1] + x.n_of[0], 0)]
        sizes += [x.n_noted, x.n_noted_contacts]
    for k, need in enumerate(needs):
        x.needed[1 + k] = need
    fits = needs[0] <= sizes[0]
    for need, size in zip(needs[1:], sizes[1:], strict=True):
        fits = fits & (need <= size)
    return fits


def _remembers(x: Any) -> bool:
    """Whether collision detection keeps data for the next step."""
    return hasattr(x, "n_near")


def go_back(x: Any) -> None:
    """Restore the state before the step."""
    x.needed[0] = 1
    for_range(x.nq, lambda k: put(x.q, k, x.q_before[k]))
    for_range(x.nv, lambda k: put(x.v, k, x.v_before[k]))
    _copy_near(x, "_before", "")


def _copy_near(x: Any, source: str, to: str) -> None:
    """Copy the memory of collision detection between arrays whose names have these two endings."""

    def array(name: str, ending: str) -> Any:
        return getattr(x, name + ending)

    def one(k: Any) -> None:
        for a in MEMORY[1:]:
            old, new = array(a.name, source), array(a.name, to)
            write_row(new, k, [old[k, c] for c in range(int(a.shape[1]))])

    def copy(_: Any) -> None:
        old, new = array(MEMORY[0].name, source), array(MEMORY[0].name, to)
        for_range(x.n_near, lambda k: put(new, k, old[k]))
        for_range(remembered(old, x.n_near), one)

    if _remembers(x):
        one_by_one(x, copy)
