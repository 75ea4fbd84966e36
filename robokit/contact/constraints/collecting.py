"""The kinds of forces, one row each: what adds its constraints to a step, and what it keeps for the next.

A new force is one file beside this one and one row of the table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from robokit.contact.constraints import contacts, damping, dry_friction, limits, loops, motors

Part = Callable[[Any], None]

KINDS: tuple[tuple[Part, Part | None], ...] = (
    (contacts.collect, contacts.remember),
    (damping.collect, None),
    (dry_friction.collect, dry_friction.remember),
    (limits.collect, None),
    (motors.collect, None),
    (loops.collect, loops.remember),
)
"""(collect, remember) of each."""


def collect(x: Any) -> None:
    """The constraints of all forces at the middle of the step.

    It reads the state, POSES and V, H and CONTACTS, and writes what CONSTRAINTS says. ``n_of`` are the
    numbers of constraints and rows that are needed, and of contacts that bounce; with more than there is
    place for, a step is not solved. The last is the number of loops.
    """
    for k in range(4):
        x.n_of[k] = 0
    for add, _ in KINDS:
        add(x)


def remember(x: Any) -> None:
    """After the solve: what bristles and loops hand to the next step."""
    for _, keep in KINDS:
        if keep is not None:
            keep(x)
