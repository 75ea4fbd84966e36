"""Damping of the joints: tau = -b qd, at the end of the step.

    u = qd     R = 1/(dt b)     aim = 0     set: all impulses

It stores nothing; it takes b qd times the mean of the speeds before and after.

Cost: O(dofs).
"""

from __future__ import annotations

from typing import Any

from robokit.contact.constraints.adding import add_row, moves
from robokit.contact.fields import DAMPING
from robokit.spatial.control_flow import cond, for_range

ENDLESS = float("inf")


def collect(x: Any) -> None:
    """The rows of all damped dofs."""

    def dof(j: Any) -> None:
        b = x.damping[j]

        def add() -> None:
            add_row(x, DAMPING, j, j, 1.0, 1.0 / (x.dt[0] * b), 0.0, -ENDLESS, ENDLESS)

        cond((b > 0.0) & moves(x, j), add, lambda: None)

    for_range(x.n_dofs, dof)
