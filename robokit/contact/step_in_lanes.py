"""A step of several rows at once, in the lanes of vectors.

It consists of the parts of step.py and has their bits. What all rows share has the same index in all lanes:
the blocks of A (those that any lane needs, with zeros in the others) and the rows of joints (a limit that one
lane is near has no impulse in the others). Work that differs between lanes, such as pairs of bodies and the
forces on bodies, is done for one lane after the other. Lanes whose iteration has ended wait for the others,
and all are checked together (:func:`robokit.contact.solver.attempt`). If one lane needs more memory or is no
longer finite, all lanes stop: ``needed`` reports it, and the steps that were not taken are taken later.

Most steps have only contacts with friction; then the kinds and numbers of constraints are known. Kinds are
constants of the recording rather than Python numbers, so that what depends on them is fused with the same
sums as in step.py.

Cost: 0.7 to 0.8 of step.py by row, half of it in single precision.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from robokit.collision.detect import detect_on_planes, look_among, place_balls
from robokit.collision.fields import CANDIDATES, MEMORY, PAIRS, PLANE, SHAPES
from robokit.contact import step
from robokit.contact.accounts import account, begin, conserve
from robokit.contact.bounces import solve_bounces
from robokit.contact.constraints import joints
from robokit.contact.constraints.collecting import collect, remember
from robokit.contact.constraints.loops import close_for_kick
from robokit.contact.fields import FORCES, FRICTION, MIDDLE, ROBOT
from robokit.contact.kinematics import advance, mass_matrix, place_bodies, velocities
from robokit.contact.landings import solve_landings
from robokit.contact.monitor import MONITOR, NOTES, monitor
from robokit.contact.pattern import symbolic
from robokit.contact.robot_data import FEW, deep
from robokit.contact.vectors import anywhere, nothing, of_all_forces, one_by_one
from robokit.engine.loops.fields import constant, kernel_of, once, whole
from robokit.engine.loops.kernel import LoopKernel
from robokit.engine.signature import ArrayOf
from robokit.spatial.control_flow import cond, for_range
from robokit.spatial.scalars import where

LANES = {"float64": 4, "float32": 8}
"""Rows at once. Eight doubles in the registers of AVX-512 are no faster on an AMD EPYC, which has them in two
halves, and wait for the slowest of eight; on an Intel Xeon they take 0.99 of the time. The slowest of four
takes 1.5 times the iterations of the mean: README.md here says what lanes that do not wait would gain."""

OF_ROWS = (
    "inertia",
    "body_mobility",
    "dof_mobility",
    "shape_placement",
    "pair_stiffness",
    "pair_damping",
    "pair_impact",
    "shape_friction",
    "shape_restitution",
    "stop_gains",
    "motor_gains",
    "motor_inertia",
    "motor_limits",
    "motor_command",
    "motion_values",
)
"""Inputs in which rows may differ, beside the forces of the step."""

WORK = (
    "r_kind",
    "r_of",
    "r_row",
    "r_gain",
    "pattern",
    "pattern_first",
    "pattern_length",
    "filled",
    "A_row",
    "depth",
    "pair_dofs",
    "pair_signs",
    "pair_blocks",
)
"""Work arrays that lanes share: what rows of joints are, and which entries A has."""


def _in_lanes(a: ArrayOf) -> ArrayOf:
    numbers = {each.name for each in (*ROBOT, *SHAPES, *PAIRS, *FORCES, *MONITOR)}
    numbers |= {"dt", "tolerance", "orders", "keeps", "push_body", "push_point", "push_in_world"}
    given = a.role == "in" and a.name in numbers.difference(OF_ROWS)
    return replace(a, shared=True) if given or a.name in WORK else a


OWN = (
    whole("somewhere", 1, role="work"),  # see vectors.anywhere
    whole("row_count", 1, role="work"),  # n_of[1]
    whole("marks", "n_blocks", "n_blocks", role="work"),  # 1 where A has a block, while the pattern is made
    whole("lowest", "n_blocks", role="work"),  # first marked column of a row
    whole("entry_row", "n_columns", role="work"),  # an entry of A, of a row and a column, is at their sum,
    whole("entry_column", "n_columns", role="work"),  # counted by entries
)
"""Arrays of lanes alone, which they share."""

ARRAYS = (*map(_in_lanes, step.ARRAYS), *(replace(a, shared=True) for a in OWN))
"""What it takes: as :data:`robokit.contact.step.ARRAYS`."""

REMEMBERED = {a.name + end for a in (*MEMORY, *CANDIDATES) for end in ("", "_before")}
"""What detection needs for more than planes."""


PLANES, FRICTION_ALONE, ALL = "planes", "friction", "all"
"""Kinds of steps in lanes: nothing touches but the plane of the world; contacts have friction alone, and
nothing acts on bodies but they; all forces."""


@functools.cache
def lanes_kernel(kind: str, reproducible: bool = False, lanes: int = LANES["float64"]) -> LoopKernel:
    """The kernel of a step of several rows.

    ``kind``: PLANES, FRICTION_ALONE or ALL; ``reproducible``: whether its results have the same bits on all
    processors; ``lanes``: rows at once.
    """
    arrays = [a for a in ARRAYS if a not in NOTES and not (kind == PLANES and a.name in REMEMBERED)]
    name, function = {
        PLANES: ("contact_on_planes", step_on_planes),
        FRICTION_ALONE: ("contact_in_lanes", step_in_lanes),
        ALL: ("contact_of_all_forces_in_lanes", step_of_all_forces),
    }[kind]
    return kernel_of(name, function, arrays, by_source=True, reproducible=reproducible, lanes=lanes)


def may_go_in_lanes(
    x: Mapping[str, np.ndarray], rows: Mapping[str, np.ndarray], reproducible: bool = False
) -> bool:
    """Whether the steps of a program can be taken in lanes.

    ``rows``: those in which rows differ, (rows, ...) each; ``reproducible``: as in :func:`lanes_kernel`.
    """
    differ = {name for name, each in rows.items() if (each != each[:1]).any()}
    by_bodies = deep(x) and not reproducible
    if by_bodies or len(x["part_rows"]) > FEW:  # lanes have A by rows, in their order
        return False
    if (x["spring_law"] >= 0).any():  # tensions that are functions have a kernel of their own
        return False
    return differ.isdisjoint(a.name for a in ARRAYS if a.shared)


def kind_of_lanes(x: Mapping[str, np.ndarray]) -> str:
    """PLANES, FRICTION_ALONE or ALL; ``x``: arrays of the step, those of rows among them."""
    if any(each.any() for each in (x["shape_restitution"], x["between"][..., 1], x["ground_arms"])):
        return ALL
    if any(len(x[name]) for name in ("loop_bodies", "spring_bodies", "motion_dof")):
        return ALL
    ground = x["ground_shapes"].any() and x["shape_kind"][0] == PLANE
    alone = not x["shape_runs"][1:, 1].any() and (x["shape_kind"][1:] != PLANE).all()
    return PLANES if ground and alone else FRICTION_ALONE


class Known:
    """An array some of whose entries are known during recording, or stand in another array.

    Writing to a known entry does nothing.
    """

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
    """One step of all lanes, if the previous one had enough memory in each of them."""
    _begin(x)
    _contacts_alone(x)
    cond(anywhere(x, x.needed[0] > 0), nothing, lambda: _step(x, lambda: _detect(x)))


def step_on_planes(x: Any) -> None:
    """The same for robots that touch only the plane of the world, which is the first shape."""
    _begin(x)
    _contacts_alone(x)

    world = constant(x.q, 0)

    def world_first(at: Any) -> Any:
        return world if isinstance(at[1], int) and at[1] == 0 else None

    x.c_bodies, x.contact_shapes = Known(x.c_bodies, world_first), Known(x.contact_shapes, world_first)
    x.ground_shapes = Known(x.ground_shapes, lambda k: constant(x.q, 1))
    cond(anywhere(x, x.needed[0] > 0), nothing, lambda: _step(x, lambda: detect_on_planes(x)))


def step_of_all_forces(x: Any) -> None:
    """The same with restitution, torsional and rolling friction, loops, springs and prescribed motions."""
    _begin(x)
    x.all_forces = True
    cond(anywhere(x, x.needed[0] > 0), nothing, lambda: _step(x, lambda: _detect(x)))


def _detect(x: Any) -> None:
    """Contacts, as :func:`robokit.collision.detect.detect` finds them."""
    balls = place_balls(x)
    one_by_one(x, lambda _: look_among(x, *balls))


def _begin(x: Any) -> None:
    """Set the entries that are known during recording."""
    count = x.row_count
    x.n_of = Known(x.n_of, lambda k: (count, 0) if isinstance(k, int) and k == 1 else None)


def _contacts_alone(x: Any) -> None:
    """All constraints are contacts; each has the number of its contact, as none has torsional friction."""
    x.c_kind = Known(x.c_kind, lambda c: constant(x.q, FRICTION))
    x.c_of, x.contact_constraint = Known(x.c_of, lambda c: c), Known(x.contact_constraint, lambda c: c)


def _step(x: Any, find: Callable[[], None]) -> None:
    half = 0.5 * x.dt[0]
    begin(x)
    step.note_state(x)
    once(x, advance, x.q, x.v, x.v, half)
    if of_all_forces(x):
        joints.place(x, MIDDLE)
    once(x, place_bodies, x.q)
    once(x, velocities, x.v, x.V)
    once(x, mass_matrix)
    if of_all_forces(x):
        close_for_kick(x)
    find()
    collect(x)
    once(x, symbolic)
    cond(anywhere(x, ~step.fits(x)), lambda: step.go_back(x), lambda: _kick(x, half))


def _kick(x: Any, half: Any) -> None:
    step.give(x)
    if of_all_forces(x):
        solve_bounces(x)
    else:
        solve_landings(x)
    remember(x)
    account(x)
    monitor(x)
    if of_all_forces(x):
        step.finish(x, half)
    else:
        step.set_velocity(x)
        once(x, advance, x.q, x.v, x.ahead, half)
        conserve(x)
    # Not a number where something is not finite.
    zero = for_range(x.nq, lambda k, total: total + 0.0 * x.q[k], 0.0)
    zero = for_range(x.nv, lambda k, total: total + 0.0 * x.v[k], zero)
    x.needed[0] = where(zero < math.inf, 0, 1)
