"""The measures by name: what each says about a row of a rollout, in which columns and units.

A column is an array (B,): of numbers, or of names (None where there is none). Times are those of events: the
middle of the step in which something happens. A time, or what depends on it, is NaN where it never happens.
In a row that failed all but ``failure`` and ``failure_time`` are NaN or None.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from robokit.errors import UnknownName


@dataclass(frozen=True)
class Column:
    """A column of a measure.

    Attributes:
        name: its key in ``rollout.measures``; with "/LINK" or "/JOINT" there is one for each link that can
            touch the ground, or each joint with limits.
        unit: of its numbers; "" for names and counts.
        text: what it says.
    """

    name: str
    unit: str
    text: str

    def __str__(self) -> str:
        """The column in a line."""
        unit = f" [{self.unit}]" if self.unit else ""
        return f"{self.name}{unit}: {self.text}"


@dataclass(frozen=True)
class BuiltIn:
    """A measure that robokit knows.

    Attributes:
        name: by which it is asked for.
        text: what it is.
        columns: that it makes.
    """

    name: str
    text: str
    columns: tuple[Column, ...]

    def __str__(self) -> str:
        """The measure and its columns, in lines of 80 characters."""
        lines = textwrap.wrap(f"{self.name}: {self.text}", 78, subsequent_indent="  ")
        for column in self.columns:
            lines += textwrap.wrap(str(column), 78, initial_indent="    ", subsequent_indent="      ")
        return "\n".join(lines)


_ROWS = (
    BuiltIn(
        "peak_force",
        "largest force of the ground on a link, friction included",
        (
            Column("peak_force", "N", "its size; 0 where nothing touches"),
            Column("peak_force_link", "", "name of the link"),
            Column("peak_force_time", "s", "when"),
        ),
    ),
    BuiltIn(
        "peak_force_by_link",
        "the same for each link that can touch the ground",
        (
            Column("peak_force/LINK", "N", "largest force of the ground on it; 0 where it never touches"),
            Column("peak_force_time/LINK", "s", "when"),
        ),
    ),
    BuiltIn(
        "peak_load",
        "largest force of the ground on all links together",
        (
            Column("peak_load", "N", "its size; 0 where nothing touches"),
            Column("peak_load_time", "s", "when"),
        ),
    ),
    BuiltIn(
        "first_contact",
        "when the ground first presses a link",
        (
            Column("first_contact_time", "s", "when"),
            Column("first_contact_link", "", "name of the link; the first of several at the same time"),
        ),
    ),
    BuiltIn(
        "first_contact_by_link",
        "the same for each link that can touch the ground",
        (Column("first_contact_time/LINK", "s", "when the ground first presses it"),),
    ),
    BuiltIn(
        "penetration",
        "deepest point in the ground",
        (
            Column("deepest_penetration", "m", "how deep"),
            Column("deepest_penetration_time", "s", "when"),
        ),
    ),
    BuiltIn(
        "overlap",
        "deepest overlap of two bodies of the robot",
        (Column("deepest_overlap", "m", "how deep; 0 without self_collision"),),
    ),
    BuiltIn(
        "limits",
        "joints that reach their limits: fast, or for 5 ms, as the events of a run count them",
        (
            Column("limit_hits", "", "how often any of them does"),
            Column("limit_joint", "", "the joint that does first"),
            Column("limit_time", "s", "when"),
            Column("past_limit", "rad or m", "how far a joint is past a limit at most"),
            Column("past_limit_joint", "", "which joint"),
            Column("past_limit_time", "s", "when"),
        ),
    ),
    BuiltIn(
        "limits_by_joint",
        "the same for each joint with limits",
        (Column("limit_time/JOINT", "s", "when it first reaches a limit"),),
    ),
    BuiltIn(
        "speed",
        "greatest speed of a body: of its centre of mass, as the forces of a step begin to act",
        (
            Column("greatest_speed", "m/s", "how fast"),
            Column("greatest_speed_link", "", "name of the body's link"),
            Column("greatest_speed_time", "s", "when"),
        ),
    ),
    BuiltIn(
        "rest",
        "whether the robot lies still at the end: slower than 1 mm/s for 0.1 s or more",
        (
            Column("rest_time", "s", "since when"),
            Column("resting_height", "m", "height of its centre of mass, over z = 0 of the world"),
            Column("resting_base_height", "m", "height of the origin of its base, likewise"),
        ),
    ),
    BuiltIn(
        "height",
        "heights at the end, at rest or not",
        (
            Column("final_height", "m", "height of the centre of mass, over z = 0 of the world"),
            Column("final_base_height", "m", "height of the origin of the base, likewise"),
        ),
    ),
    BuiltIn(
        "energy",
        "where the energy went",
        (
            Column("dissipated", "J", "by contact, friction and damping, limits and collisions together"),
            Column("dissipated_by_contact", "J", "taken by the ground"),
            Column("dissipated_by_friction", "J", "taken by friction and damping of the joints"),
            Column("dissipated_by_stops", "J", "taken by joint limits"),
            Column("dissipated_by_collision", "J", "taken by contacts between bodies of the robot"),
            Column("work", "J", "given by joint forces, actuators, pushes and moving ground"),
            Column("energy_balance", "J", "gained without a cause: mechanical + dissipated - work"),
        ),
    ),
    BuiltIn(
        "momentum",
        "momentum gained without a cause: about the centre of mass, the largest of x, y and z",
        (
            Column("momentum_balance_linear", "N s", "of the linear momentum; NaN with a fixed base"),
            Column("momentum_balance_angular", "N m s", "of the angular momentum; NaN with a fixed base"),
        ),
    ),
    BuiltIn(
        "failure",
        "rows that are no motion of the robot",
        (
            Column("failure", "", "why: not finite, or energy out of nothing; None of a row that is sound"),
            Column("failure_time", "s", "from when on"),
        ),
    ),
)


class _Table(Mapping[str, BuiltIn]):
    """The measures by name; printed, all of them with their columns."""

    def __init__(self, rows: tuple[BuiltIn, ...]) -> None:
        self._rows = {row.name: row for row in rows}

    def __getitem__(self, name: str) -> BuiltIn:
        if name not in self._rows:
            raise UnknownName("measure", name, list(self._rows))
        return self._rows[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __str__(self) -> str:
        return "\n".join(map(str, self._rows.values()))

    def __repr__(self) -> str:
        return f"<measures {', '.join(self._rows)}>"


measures: Mapping[str, BuiltIn] = _Table(_ROWS)
"""The measures that ``rk.rollout(..., measures=[...])`` knows, by name: ``print(rk.measures)``."""

DEFAULT = tuple(name for name in measures if name not in ("first_contact_by_link", "limits_by_joint"))
"""What a sweep measures where nothing is asked for."""

_COLUMNS = {column.name: column for row in _ROWS for column in row.columns}


def column_of(name: str) -> Column | None:
    """What a column of measures says, such as "peak_force/torso"; None of a measure of the user's."""
    of, _, subject = name.partition("/")
    kinds = ("/LINK", "/JOINT") if subject else ("",)
    return next((_COLUMNS[of + kind] for kind in kinds if of + kind in _COLUMNS), None)
