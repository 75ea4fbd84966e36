"""Dry friction of the joints: what holds them up to f, and takes f where they move.

    u = qd     R = 1e-2 W     aim = R dt f_last     set: [-f dt, f dt]

W is the mobility of the dof alone, f_last the friction of the last step: what is held at a constant load
does not creep, and a load that changes moves it by a hundredth of what it would move it by freely. This is a
bristle of Dahl's in implicit Euler's method; its energy, at most R/2 (f dt)^2, is not counted.

With aim = 0 the compliance would have to be 1e-6 W, and the slopes of several joints that begin to slide, a
million times H, keep Newton's method from settling.

Source: C. A. de Coulomb (1785); P. Dahl (1968); R. T. Rockafellar (1976), proximal point iteration.
Cost: O(dofs).
"""

from __future__ import annotations

from typing import Any

from robokit.contact.constraints.adding import add_row, mobility, moves
from robokit.contact.fields import DRY
from robokit.spatial.control_flow import cond, for_range

FIRM = 1e-2
"""Compliance over the mobility of the dof."""


def collect(x: Any) -> None:
    """The rows of all dofs with dry friction."""

    def dof(j: Any) -> None:
        most = x.dry_friction[j] * x.dt[0]

        def add() -> None:
            R = FIRM * mobility(x, j)
            add_row(x, DRY, j, j, 1.0, R, R * x.dt[0] * x.dry_force[j], -most, most)

        cond((most > 0.0) & moves(x, j), add, lambda: None)

    for_range(x.n_dofs, dof)


def remember(x: Any) -> None:
    """The friction of all dofs."""

    def row(i: Any) -> None:
        def keep() -> None:
            x.dry_force[x.r_of[i]] = x.r_g[i] / x.dt[0]

        cond(x.r_kind[i] == DRY, keep, lambda: None)

    for_range(x.n_of[1], row)
