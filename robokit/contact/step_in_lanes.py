"""A step of several rows at once, in the lanes of vectors: of robots that touch planes of the world alone.

It is made of the parts of step.py and has their bits. What all rows share, no lane reads for itself: which
entries A has (those of H, since no pair of bodies touches), which rows of joints there are (a limit that one
lane is near has no impulse in the others), that contacts are with the world and with friction. Lanes whose
iteration is over wait for the others. Where a lane needs more place, or is no longer finite, its neighbours
stop too: ``needed`` tells, and steps that were not taken are taken later.

Cost: a third to a half of step.py, by row.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from robokit.collision.fields import CANDIDATES, MEMORY, PAIRS, PLANE, SHAPES
from robokit.collision.on_plane import detect_on_planes
from robokit.contact import step
from robokit.contact.accounts import account
from robokit.contact.conservation import begin, conserve
from robokit.contact.constraints.collecting import collect, remember
from robokit.contact.fields import FORCES, FRICTION, ROBOT
from robokit.contact.kinematics import advance, mass_matrix, place_bodies, velocities
from robokit.contact.monitor import MONITOR, monitor
from robokit.contact.solver import solve
from robokit.contact.vectors import anywhere, put
from robokit.engine.loops.fields import kernel_of, once, whole
from robokit.engine.loops.kernel import LoopKernel
from robokit.engine.signature import ArrayOf
from robokit.spatial.control_flow import cond, for_range
from robokit.spatial.scalars import where

LANES = 4
"""Rows at once. Eight in the registers of AVX-512 are no faster on an AMD EPYC, which has them in two halves,
and wait for the slowest of eight."""

OF_ROWS = (
    "inertia",
    "body_mobility",
    "shape_placement",
    "pair_stiffness",
    "pair_damping",
    "pair_impact",
    "pair_friction",
    "pair_restitution",
    "pair_torsion",
    "pair_rolling",
    "motor_gains",
    "motor_inertia",
    "motor_limits",
    "motor_command",
)
"""Inputs in which rows may differ, beside the forces of the step."""

PATTERN = ("pattern", "pattern_length")

ROWS = ("r_kind", "r_of", "r_row", "r_gain")
"""What rows of joints are: the same in all lanes."""


def _in_lanes(a: ArrayOf) -> ArrayOf:
    numbers = {a.name for a in (*ROBOT, *SHAPES, *PAIRS, *FORCES, *MONITOR)}
    numbers |= {"dt", "tolerance", "keeps", "push_body", "push_point", "push_in_world"}
    if a.name in PATTERN:
        return replace(a, role="in", shared=True)
    given = a.role == "in" and a.name in numbers.difference(OF_ROWS)
    return replace(a, shared=True) if given or a.name in ROWS else a


def _is_remembered(a: ArrayOf) -> bool:
    """Whether detection needs it for more than planes."""
    return a.name.removesuffix("_before") in {b.name for b in (*MEMORY, *CANDIDATES)}


ARRAYS = (
    *(_in_lanes(a) for a in step.ARRAYS if not _is_remembered(a)),
    replace(whole("somewhere", 1, role="work"), shared=True),  # see vectors.anywhere
    replace(whole("row_count", 1, role="work"), shared=True),  # n_of[1]
)
"""What it takes: as :data:`robokit.contact.step.ARRAYS`, and the pattern of H."""


@functools.cache
def lanes_kernel(reproducible: bool = False) -> LoopKernel:
    """The kernel."""
    return kernel_of(
        "contact_lanes", step_in_lanes, ARRAYS, by_source=True, reproducible=reproducible, lanes=LANES
    )


def may_go_in_lanes(x: Mapping[str, np.ndarray], rows: Mapping[str, np.ndarray]) -> bool:
    """Whether the steps of a program can be taken in lanes.

    Args:
        x: arrays of the step.
        rows: those in which rows differ, (rows, ...) each.
    """
    first, second = x["shape_kind"][x["pair_shapes"]].reshape(-1, 2).T
    planes = bool((first == PLANE).all() and (second != PLANE).all())
    numbers = {**x, **rows}
    simple = not any(numbers[f"pair_{name}"].any() for name in ("restitution", "torsion", "rolling"))
    differ = {name for name, each in rows.items() if (each != each[:1]).any()}
    return (
        planes
        and simple
        and not len(x["loop_bodies"])
        and differ.isdisjoint(a.name for a in ARRAYS if a.shared)
    )


def pattern(x: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """That of H and its factors: columns of the entries of each row, descending."""
    rows = [set(x["row_columns"][at : at + n].tolist()) for at, n in x["row_path"].tolist()]
    for row in reversed(rows):
        if row:
            rows[max(row)] |= row - {max(row)}
    columns = np.zeros((len(rows), len(rows)), np.int32)
    for k, row in enumerate(rows):
        columns[k, : len(row)] = sorted(row, reverse=True)
    return {"pattern": columns, "pattern_length": np.array([len(row) for row in rows], np.int32)}


class Known:
    """An array of which some entries are known while it is recorded, or stand in another array."""

    def __init__(self, array: Any, known: Callable[[Any], Any]) -> None:
        self.array, self.known = array, known

    def __getitem__(self, index: Any) -> Any:
        found = self.known(index)
        if found is None:
            return self.array[index]
        return found[0][found[1]] if isinstance(found, tuple) else found

    def __setitem__(self, index: Any, value: Any) -> None:
        found = self.known(index)
        if found is None:
            self.array[index] = value
        elif isinstance(found, tuple):
            found[0][found[1]] = value


def step_in_lanes(x: Any) -> None:
    """One step of all lanes, if there was place for the one before in each of them."""
    count = x.row_count
    x.n_of = Known(x.n_of, lambda k: (count, 0) if isinstance(k, int) and k == 1 else None)
    x.c_kind = Known(x.c_kind, lambda c: FRICTION)
    x.c_bodies = Known(x.c_bodies, lambda at: 0 if isinstance(at[1], int) and at[1] == 0 else None)
    # Contact and constraint have the same number, as none turns.
    x.c_of, x.contact_constraint = Known(x.c_of, lambda c: c), Known(x.contact_constraint, lambda c: c)
    cond(anywhere(x, x.needed[0] > 0), _nothing, lambda: _step(x))


def _step(x: Any) -> None:
    half = 0.5 * x.dt[0]
    begin(x)
    for_range(x.nq, lambda k: put(x.q_before, k, x.q[k]))
    for_range(x.nv, lambda k: put(x.v_before, k, x.v[k]))
    once(x, advance, x.q, x.v, half)
    once(x, place_bodies, x.q)
    once(x, velocities, x.v, x.V)
    once(x, mass_matrix)
    detect_on_planes(x)
    collect(x)
    missing = (x.counts[0] > x.n_contacts) | (x.n_of[0] > x.n_constraints)
    cond(anywhere(x, missing), lambda: _go_back(x), lambda: _kick(x, half))


def _go_back(x: Any) -> None:
    x.needed[0], x.needed[1], x.needed[3] = 1, x.counts[0], x.n_of[0]
    for_range(x.nq, lambda k: put(x.q, k, x.q_before[k]))
    for_range(x.nv, lambda k: put(x.v, k, x.v_before[k]))


def _kick(x: Any, half: Any) -> None:
    step.give(x)
    once(x, solve)
    remember(x)
    account(x)
    monitor(x)
    step.set_velocity(x)
    once(x, advance, x.q, x.v, half)
    conserve(x)
    zero = for_range(x.nq, lambda k, total: total + 0.0 * x.q[k], 0.0)
    zero = for_range(x.nv, lambda k, total: total + 0.0 * x.v[k], zero)
    x.needed[0] = where(zero < math.inf, 0, 1)


def _nothing() -> None:
    """The other branch of what is only done sometimes."""
