"""Groups: sets of bodies that constraints connect in a step, whatever else there is in the world.

Decisions of a step that depend on sums or on the largest of many numbers are taken for each group alone: by
how much restitution is reduced (bounces.py), which impact is the first (impacts.py), whether a solution is
exact enough (solver.py). A group has the number of its first part. Numbers of groups are in ``by_group``.

Source: sets that are joined by their least members, as in B. Galler, M. Fischer, An improved equivalence
algorithm, Communications of the ACM 7 (1964).
Cost: O(constraints + rows + parts).
"""

from __future__ import annotations

from typing import Any

from robokit.contact.vectors import nothing, one_by_one, put
from robokit.spatial.control_flow import cond, for_range, while_loop
from robokit.spatial.scalars import maximum, minimum

BOUNCES, WORK, GAINED, GIVEN, SHARE, AT_SHARE, HIGH, AT_HIGH, NOW, CHANGE, WANTED, LANDS = range(12)
"""Places in a row of ``by_group``, of bounces that energy limits: whether the group has any; what they give
beyond all else [J], and what of that is gained and given to the step's end; the largest share of restitution
that is known to make no energy, and what that makes; the least that does make some, and what; the share that
the group is at, and its next change; and what is wanted of W. LANDS: 1 where something lands."""

ERROR = 12
"""The first of six numbers of the error of a solution: squares of what is left, is given, acts, of all of the
momentum and of rows of joints [J]; mass [kg]."""

HELD = ERROR
"""The first of four numbers of the energy of fixed trees that touch: T, T + |V|, what is missing [J]; and
whether any of them has a prescribed joint."""

RATE = NOW  # of derivatives: how the share changes with W, times what it is worth

FASTEST, MOST_OF_ALL, LEAST, HITS, FIRST, FOLLOWS, WHEN = range(7)
"""Of impacts that are passed on: the fastest approach, in this turn and in all; the least that bounces in
this one [m/s]; how many do, and did in the step before it; 1 where some follow from others; when the
first one of this turn arrives [s]."""


def connect(x: Any) -> None:
    """Set ``group`` of each part and ``row_group`` of each row of v, from the constraints of the step."""

    def first_of(p: Any) -> Any:
        return while_loop(lambda g: x.group[g] < g, lambda g: 1 * x.group[g], p)

    def join(i: Any) -> None:
        a, b = (x.body_part[x.c_bodies[i, k]] for k in range(2))

        def both() -> None:
            one, other = first_of(a), first_of(b)
            x.group[maximum(one, other)] = minimum(one, other)

        cond(minimum(a, b) < 0, nothing, both)

    def of_part(p: Any) -> None:
        x.group[p] = g = 1 * x.group[x.group[p]]
        for_range(x.part_rows[p, 1], lambda k: put(x.row_group, x.part_rows[p, 0] + k, g))

    def of_constraint(i: Any) -> None:
        x.c_group[i] = x.group[maximum(maximum(*(x.body_part[x.c_bodies[i, k]] for k in range(2))), 0)]

    for_range(x.n_parts, lambda p: put(x.group, p, p))
    one_by_one(x, lambda _: for_range(x.n_of[0], join))
    for_range(x.n_parts, of_part)
    for_range(x.n_of[0], of_constraint)


def group_of_body(x: Any, b: Any) -> Any:
    """The group of a body; for bodies that do not move, the first group."""
    return x.group[maximum(x.body_part[b], 0)]


def add_to(x: Any, group: Any, column: int, amount: Any) -> None:
    """Add to a number of a group."""
    x.by_group[group, column] = x.by_group[group, column] + amount


def each_group(x: Any, do: Any, *start: Any) -> Any:
    """Call do(p, ...) with the number of each group, and with those of all other parts."""
    return for_range(x.n_parts, do, *start)
