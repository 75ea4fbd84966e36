"""The kinds of forces, one row each: how each takes part in a step, and what it keeps for the next.

A new force is one file beside this one and one row of the table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from robokit.contact.constraints import contacts, joints, loops, motors, pushes, springs
from robokit.contact.vectors import write_row
from robokit.spatial.control_flow import for_range

Part = Callable[[Any], None]


def _nothing(x: Any) -> None:
    """Of a kind that has no such part."""


class Kind(NamedTuple):
    """A kind of force: what it does in a step."""

    collect: Part = _nothing
    """Adds its constraints: what depends on the velocity at the end of the step."""
    remember: Part = _nothing
    """Keeps something for the next step, after the solve."""
    act: Part = _nothing
    """Adds what no velocity changes to the forces on bodies."""


KINDS = (
    Kind(springs.collect),
    Kind(contacts.collect, contacts.remember),
    Kind(joints.collect_damping),
    Kind(joints.collect_dry_friction, joints.remember_dry_friction),
    Kind(joints.collect_limits),
    Kind(motors.collect),
    Kind(loops.collect, loops.remember),
    Kind(joints.collect_prescribed, joints.remember_prescribed),
    Kind(act=pushes.act),
)


def collect(x: Any) -> None:
    """The constraints of all forces at the middle of the step.

    It reads the state, POSES and V, H and CONTACTS, and writes what CONSTRAINTS says. ``n_of`` are the
    numbers of constraints and rows that are needed, and of contacts that bounce; with more than there is
    place for, a step is not solved. The next is the number of loops and prescribed joints; the last is
    the solver's.
    """
    x.span[0] = x.dt[0]
    for k in range(5):
        x.n_of[k] = 0
    x.held[0] = 1.0
    for kind in KINDS:
        kind.collect(x)


def act(x: Any) -> None:
    """f: the forces on bodies that are known before the solve, about the step's origin."""
    for_range(x.n_bodies, lambda b: write_row(x.f, b, [0.0] * 6))
    for kind in KINDS:
        kind.act(x)


def remember(x: Any) -> None:
    """After the solve: what bristles and loops hand to the next step."""
    for kind in KINDS:
        kind.remember(x)
