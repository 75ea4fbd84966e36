"""Dry friction of the joints: what holds them up to f, and takes f where they move.

    u = qd     R = 1e-6 W     aim = 0     set: [-f dt, f dt]

W is the mobility of the dof alone. What is held creeps by a millionth of the speed that the forces on it
would give it in a step. It stores nothing.

Source: C. A. de Coulomb (1785), regularised as a convex constraint.
Cost: O(dofs).
"""

from __future__ import annotations

from typing import Any

from robokit.contact.constraints.adding import add_row, mobility, moves
from robokit.contact.fields import DRY
from robokit.spatial.control_flow import cond, for_range

FIRM = 1e-6
"""Compliance over the mobility of the dof."""


def collect(x: Any) -> None:
    """The rows of all dofs with dry friction."""

    def dof(j: Any) -> None:
        most = x.dry_friction[j] * x.dt[0]

        def add() -> None:
            add_row(x, DRY, j, j, 1.0, FIRM * mobility(x, j), 0.0, -most, most)

        cond((most > 0.0) & moves(x, j), add, lambda: None)

    for_range(x.n_dofs, dof)
