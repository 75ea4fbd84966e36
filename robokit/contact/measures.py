"""The measures of a rollout: what each is, the numbers that every step brings up to date, and their columns.

A measure is one class. From then on ``rk.rollout(measures=...)`` and sweeps know it by its name, and the step
of contact brings its numbers up to date in machine code (monitor.py). Steps count from 0, as of their middle;
NEVER stands for none. Where a step is taken in parts (step_control.py), a part is so much of it.

A column is an array (B,): of numbers, or of names (None where there is none). Times are those of events: the
middle of the step in which something happens. A time, or what depends on it, is NaN where it never happens.
In a row that failed all but ``failure`` and ``failure_time`` are NaN or None.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from robokit.contact.accounts import on_ground
from robokit.contact.constraints.adding import speed
from robokit.contact.constraints.limits import gap
from robokit.contact.vectors import inertia, motion, nothing, write
from robokit.errors import UnknownName
from robokit.spatial.control_flow import cond, for_range
from robokit.spatial.scalars import Scalar, added, floor, maximum, where

NEVER = -1.0
"""Number of a step that has not come."""

SHORTEST = 5e-3
"""Shortest interruption, slip, stop or saturation that counts [s]."""

IMPACT = 0.1
"""Speed of approach of an impact [m/s]; of one at a joint limit [rad/s | m/s]."""

REST = 1e-3
"""Speed of a robot at rest: the root of twice its kinetic energy over its mass [m/s]."""

CALM = 0.1
"""Shortest rest at the end of a run that is one [s]."""

Columns = dict[str, np.ndarray]


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
class Subjects:
    """Whom measures are about.

    Attributes:
        links: that can touch the ground.
        joints: with limits, and their bodies.
        heavy: bodies that have mass.
    """

    links: tuple[str, ...] = ()
    joints: tuple[tuple[str, int], ...] = ()
    heavy: tuple[int, ...] = ()


MEASURES: dict[str, StepMeasure] = {}
"""All that robokit knows, by name."""


class StepMeasure:
    """A measure that robokit knows.

    Attributes:
        name: by which it is asked for; "" of what is none itself.
        text: what it is.
        columns: that it makes: (name, unit, text) of each where it is defined, Columns from then on.
        reads: name of the measure whose numbers it reads; its own by default.
    """

    name, text, reads = "", "", ""
    columns: tuple[Any, ...] = ()

    def __init_subclass__(cls) -> None:
        if cls.name:
            cls.columns = tuple(Column(*row) for row in cls.columns)
            cls.reads = cls.__dict__.get("reads", cls.name)
            MEASURES[cls.name] = cls()

    def start(self, s: Subjects) -> Sequence[float]:
        """The numbers before the first step; none by default."""
        return ()

    def after(self, x: Any, at: Any, step: Scalar) -> None:
        """Bring the numbers ``x.measured[at:]`` up to date, at the middle of a step with contact."""

    def passive(self, numbers: Sequence[Scalar], now: Any) -> Sequence[Scalar]:
        """The same of a step of passive motion (sim/step/measured.py); as they were by default."""
        return numbers

    def read(self, numbers: np.ndarray, r: Any) -> Columns:
        """The columns of B rows: numbers (size, B), and what is known besides (sim/measuring/readings.py)."""
        raise NotImplementedError

    def named(self, *values: np.ndarray) -> Columns:
        """The columns by their names."""
        columns: Sequence[Any] = self.columns
        return dict(zip((column.name for column in columns), values, strict=True))

    def __str__(self) -> str:
        """The measure and its columns, in lines of 80 characters."""
        lines = textwrap.wrap(f"{self.name}: {self.text}", 78, subsequent_indent="  ")
        for column in self.columns:
            lines += textwrap.wrap(str(column), 78, initial_indent="    ", subsequent_indent="      ")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<measure {self.name}>"


def keep(x: Any, at: Any, value: Scalar, step: Scalar) -> None:
    """The largest value so far, and its step."""
    more = value > x.measured[at]
    write(x.measured, at, [where(more, value, x.measured[at]), where(more, step, x.measured[at + 1])])


def square_of_force(x: Any, k: Any) -> Scalar:
    """Of the ground on link k of those that can touch it; on all, on the last one."""
    return added((x.link_force[k, m] * x.link_force[k, m] for m in range(3)), 0.0)


# ---- forces of the ground ---------------------------------------------------------------------------------


class PeakForce(StepMeasure):
    """Numbers: of each link the square of the largest force [N^2] and its step."""

    name, text = "peak_force", "largest force of the ground on a link, friction included"
    columns = (
        ("peak_force", "N", "its size; 0 where nothing touches"),
        ("peak_force_link", "", "name of the link"),
        ("peak_force_time", "s", "when"),
    )

    def start(self, s: Subjects) -> Sequence[float]:
        """See StepMeasure."""
        return [0.0, NEVER] * len(s.links)

    def after(self, x: Any, at: Any, step: Scalar) -> None:
        """See StepMeasure."""
        for_range(x.n_link_sums - 1, lambda k: keep(x, at + 2 * k, square_of_force(x, k), step))

    def read(self, numbers: np.ndarray, r: Any) -> Columns:
        """See StepMeasure."""
        square, link, time = r.largest_of(numbers[0::2], numbers[1::2], r.subjects.links)
        return {"peak_force": np.sqrt(square), "peak_force_link": link, "peak_force_time": time}


class PeakForceByLink(StepMeasure):
    """Reads what peak_force keeps."""

    name, text, reads = "peak_force_by_link", "the same for each link that can touch the ground", "peak_force"
    columns = (
        ("peak_force/LINK", "N", "largest force of the ground on it; 0 where it never touches"),
        ("peak_force_time/LINK", "s", "when"),
    )

    def read(self, numbers: np.ndarray, r: Any) -> Columns:
        """See StepMeasure."""
        found: Columns = {}
        for name, square, step in zip(r.subjects.links, numbers[0::2], numbers[1::2], strict=True):
            found |= {f"peak_force/{name}": np.sqrt(square), f"peak_force_time/{name}": r.times(step)}
        return found


class PeakLoad(StepMeasure):
    """Numbers: square of the largest force on all links [N^2], and its step."""

    name, text = "peak_load", "largest force of the ground on all links together"
    columns = (
        ("peak_load", "N", "its size; 0 where nothing touches"),
        ("peak_load_time", "s", "when"),
    )

    def start(self, s: Subjects) -> Sequence[float]:
        """See StepMeasure."""
        return 0.0, NEVER

    def after(self, x: Any, at: Any, step: Scalar) -> None:
        """See StepMeasure."""
        keep(x, at, square_of_force(x, x.n_link_sums - 1), step)

    def read(self, numbers: np.ndarray, r: Any) -> Columns:
        """See StepMeasure."""
        return {"peak_load": np.sqrt(numbers[0]), "peak_load_time": r.times(numbers[1])}


class FirstContact(StepMeasure):
    """Numbers: of each link the first step with a force that presses."""

    name, text = "first_contact", "when the ground first presses a link"
    columns = (
        ("first_contact_time", "s", "when"),
        ("first_contact_link", "", "name of the link; the first of several at the same time"),
    )

    def start(self, s: Subjects) -> Sequence[float]:
        """See StepMeasure."""
        return [NEVER] * len(s.links)

    def after(self, x: Any, at: Any, step: Scalar) -> None:
        """See StepMeasure."""

        def link(k: Any) -> None:
            now = (x.link_force[k, 3] > 0.0) & (x.measured[at + k] < 0.0)
            x.measured[at + k] = where(now, step, x.measured[at + k])

        for_range(x.n_link_sums - 1, link)

    def read(self, numbers: np.ndarray, r: Any) -> Columns:
        """See StepMeasure."""
        time, link = r.first_of(numbers, r.subjects.links)
        return {"first_contact_time": time, "first_contact_link": link}


class FirstContactByLink(StepMeasure):
    """Reads what first_contact keeps."""

    name, reads = "first_contact_by_link", "first_contact"
    text = "the same for each link that can touch the ground"
    columns = (("first_contact_time/LINK", "s", "when the ground first presses it"),)

    def read(self, numbers: np.ndarray, r: Any) -> Columns:
        """See StepMeasure."""
        rows = zip(r.subjects.links, numbers, strict=True)
        return {f"first_contact_time/{name}": r.times(steps) for name, steps in rows}


class Penetration(StepMeasure):
    """Numbers: the deepest point in the ground [m], and its step."""

    name, text = "penetration", "deepest point in the ground"
    columns = (
        ("deepest_penetration", "m", "how deep"),
        ("deepest_penetration_time", "s", "when"),
    )

    def start(self, s: Subjects) -> Sequence[float]:
        """See StepMeasure."""
        return 0.0, NEVER

    def after(self, x: Any, at: Any, step: Scalar) -> None:
        """See StepMeasure."""

        def contact(i: Any, depth: Scalar) -> Scalar:
            return maximum(depth, cond(on_ground(x, i), lambda: -x.contact_gap[x.c_of[i]], lambda: 0.0))

        keep(x, at, for_range(x.n_of[0], contact, 0.0), step)

    def read(self, numbers: np.ndarray, r: Any) -> Columns:
        """See StepMeasure."""
        return {"deepest_penetration": numbers[0].copy(), "deepest_penetration_time": r.times(numbers[1])}


class Overlap(StepMeasure):
    """Of the ledger."""

    name, text = "overlap", "deepest overlap of two bodies of the robot"
    columns = (("deepest_overlap", "m", "how deep; 0 without self_collision"),)

    def read(self, numbers: np.ndarray, r: Any) -> Columns:
        """See StepMeasure."""
        return {"deepest_overlap": r.entry("overlap")}


# ---- joints -----------------------------------------------------------------------------------------------


class Limits(StepMeasure):
    """Joints that reach their limits.

    A stop counts once it has lasted SHORTEST or was reached faster than IMPACT; interruptions up to SHORTEST
    do not end it.

    Numbers: how often any does; of each joint the first step of the stop that presses now (NEVER if it has
    counted already), the step after the last in which a stop pressed (negative for the upper one; 0 for
    none), and the first step of the first stop that counts; then how far a joint is past a limit at most
    [rad | m], in which step, and number of the joint.
    """

    name, text = (
        "limits",
        "joints that reach their limits: fast, or for 5 ms, as the events of a run count them",
    )
    columns = (
        ("limit_hits", "", "how often any of them does"),
        ("limit_joint", "", "the joint that does first"),
        ("limit_time", "s", "when"),
        ("past_limit", "rad or m", "how far a joint is past a limit at most"),
        ("past_limit_joint", "", "which joint"),
        ("past_limit_time", "s", "when"),
    )

    def start(self, s: Subjects) -> Sequence[float]:
        """See StepMeasure."""
        return [0.0, *[NEVER, 0.0, NEVER] * len(s.joints), 0.0, NEVER, NEVER]

    def after(self, x: Any, at: Any, step: Scalar) -> None:
        """See StepMeasure."""
        share = x.step_share[0]
        few = maximum(1.0, -floor(0.5 - SHORTEST / x.dt[0])) * share

        def press(place: Any, force: Scalar, rate: Scalar) -> None:
            more, *new = stopped(force, rate, few, step, share, [x.measured[place + k] for k in range(3)])
            write(x.measured, place, new)
            x.measured[at] = x.measured[at] + more

        def stop(m: Any) -> None:
            k = x.joint_of_stop[m]
            force, place = x.stop_force[k], at + 1 + 3 * k
            presses = force * x.stop_side[m] > 0.0
            cond(presses, lambda: press(place, force, speed(x, x.stop_dof[m])), nothing)

        def past(m: Any, far: Scalar, which: Scalar) -> tuple[Scalar, Scalar]:
            before = gap(x, m) - 0.5 * x.dt[0] * x.stop_side[m] * speed(x, x.stop_dof[m])
            farther = -before > far
            return where(farther, -before, far), where(farther, 0.0 + x.joint_of_stop[m], which)

        for_range(x.n_stops, stop)
        most = at + 1 + 3 * x.n_limited
        far, which = for_range(x.n_stops, past, x.measured[most], x.measured[most + 2])
        keep(x, most, far, step)
        x.measured[most + 2] = which

    def passive(self, numbers: Sequence[Scalar], now: Any) -> Sequence[Scalar]:
        """See StepMeasure."""
        few, hits, out = maximum(1.0, -floor(0.5 - SHORTEST / now.dt)), numbers[0], list[Scalar]()
        far, when, which = numbers[-3:]
        for k, (force, rate, past) in enumerate(now.limits):
            old = list(numbers[3 * k + 1 : 3 * k + 4])

            def press(force: Any = force, rate: Any = rate, old: Any = old) -> list[Scalar]:
                return stopped(force, rate, few, now.step, 1.0, old)

            more, *new = cond((force > 0.0) | (force < 0.0), press, partial(list, (0.0, *old)))
            hits, out = hits + more, out + new
            farther = past > far
            far, which = where(farther, past, far), where(farther, float(k), which)
        return [hits, *out, far, where(far > numbers[-3], now.step, when), which]

    def read(self, numbers: np.ndarray, r: Any) -> Columns:
        """See StepMeasure."""
        names = [name for name, _ in r.subjects.joints]
        time, joint = r.first_of(numbers[3:-3:3], names)
        found = {"limit_hits": numbers[0].copy(), "limit_joint": joint, "limit_time": time}
        far, step, which = numbers[-3:]
        past = {"past_limit": far.copy(), "past_limit_joint": r.names(which, names)}
        return found | past | {"past_limit_time": r.times(step)}


def stopped(
    force: Scalar, rate: Scalar, few: Scalar, step: Scalar, share: Scalar, before: Sequence[Scalar]
) -> list[Scalar]:
    """Whether a stop that presses counts in this step (0 or 1), and the next numbers of its joint."""
    begun, last, first = before
    side = where(force > 0.0, 1.0, -1.0)
    goes_on = (last * side > 0.0) & (step - last * side < few + 0.5 * share)
    fast = where(goes_on, 0.0, abs(rate)) >= IMPACT
    begun = where(goes_on, begun, step)
    counts = (begun >= 0.0) & ((step + 1.5 * share - begun > few) | fast)
    first = where(counts & (first < 0.0), begun, first)
    return [where(counts, 1.0, 0.0), where(counts, NEVER, begun), side * (step + 1.0), first]


class LimitsByJoint(StepMeasure):
    """Reads what limits keeps."""

    name, text, reads = "limits_by_joint", "the same for each joint with limits", "limits"
    columns = (("limit_time/JOINT", "s", "when it first reaches a limit"),)

    def read(self, numbers: np.ndarray, r: Any) -> Columns:
        """See StepMeasure."""
        rows = zip(r.subjects.joints, numbers[3:-3:3], strict=True)
        return {f"limit_time/{name}": r.times(steps) for (name, _), steps in rows}


# ---- motion -----------------------------------------------------------------------------------------------


class Speed(StepMeasure):
    """Numbers: square of the largest speed of a body's centre of mass [m^2/s^2], its step, and the body."""

    name = "speed"
    text = "greatest speed of a body: of its centre of mass, as the forces of a step begin to act"
    columns = (
        ("greatest_speed", "m/s", "how fast"),
        ("greatest_speed_link", "", "name of the body's link"),
        ("greatest_speed_time", "s", "when"),
    )

    def start(self, s: Subjects) -> Sequence[float]:
        """See StepMeasure."""
        return 0.0, NEVER, NEVER

    def after(self, x: Any, at: Any, step: Scalar) -> None:
        """See StepMeasure."""

        def body(b: Any, most: Scalar, which: Scalar) -> tuple[Scalar, Scalar]:
            m = x.I[b, 0]
            u = (inertia(x.I, b) @ motion(x.V, b)).lin * where(m > 0.0, 1.0 / where(m > 0.0, m, 1.0), 0.0)
            faster = u.dot(u) > most
            return where(faster, u.dot(u), most), where(faster, 0.0 + b, which)

        most, which = for_range(x.n_bodies, body, x.measured[at], x.measured[at + 2])
        keep(x, at, most, step)
        x.measured[at + 2] = which

    def passive(self, numbers: Sequence[Scalar], now: Any) -> Sequence[Scalar]:
        """See StepMeasure."""
        I, most, which = now.p.tree.I, numbers[0], numbers[2]
        for i in now.subjects.heavy:
            u = (I[i] @ now.V[i]).lin * (1.0 / I[i].m)
            square = u.dot(u)
            faster = square > most
            most, which = where(faster, square, most), where(faster, float(i), which)
        return [most, where(most > numbers[0], now.step, numbers[1]), which]

    def read(self, numbers: np.ndarray, r: Any) -> Columns:
        """See StepMeasure."""
        square, step, body = numbers
        link = r.names(body, r.program.robot.tree.name)
        when = {"greatest_speed_time": r.times(step)}
        return {"greatest_speed": np.sqrt(square), "greatest_speed_link": link} | when


class Rest(StepMeasure):
    """Numbers: the last step in which the robot is not at rest.

    Its speed is the root of twice the kinetic energy over the mass.
    """

    name, text = "rest", "whether the robot lies still at the end: slower than 1 mm/s for 0.1 s or more"
    columns = (
        ("rest_time", "s", "since when"),
        ("resting_height", "m", "height of its centre of mass, over z = 0 of the world"),
        ("resting_base_height", "m", "height of the origin of its base, likewise"),
    )

    def start(self, s: Subjects) -> Sequence[float]:
        """See StepMeasure."""
        return [NEVER] if s.heavy else []

    def after(self, x: Any, at: Any, step: Scalar) -> None:
        """See StepMeasure."""

        def body(b: Any, energy: Scalar, mass: Scalar) -> tuple[Scalar, Scalar]:
            V = motion(x.V, b)
            return energy + V.dot(inertia(x.I, b) @ V), mass + x.I[b, 0]

        energy, mass = for_range(x.n_bodies, body, 0.0, 0.0)
        x.measured[at] = where(energy / mass < REST * REST, x.measured[at], step)

    def passive(self, numbers: Sequence[Scalar], now: Any) -> Sequence[Scalar]:
        """See StepMeasure."""
        tree, V = now.p.tree, now.V
        mass = added((tree.I[i].m for i in tree.outward()), 0.0)
        square = added((V[i].dot(tree.I[i] @ V[i]) for i in tree.outward()), 0.0) / mass
        return [where(square < REST * REST, numbers[0], now.step)]

    def read(self, numbers: np.ndarray, r: Any) -> Columns:
        """See StepMeasure."""
        if not len(numbers):
            return self.named(*[np.full(r.rows, np.nan) for _ in self.columns])
        since = np.where((r.steps - (numbers[0] + 1.0)) * r.dt >= CALM, numbers[0] + 1.0, np.nan)
        heights = [np.where(np.isfinite(since), height, np.nan) for height in r.heights()]
        return self.named(r.times(since), *heights)


class Height(StepMeasure):
    """Of the last state."""

    name, text = "height", "heights at the end, at rest or not"
    columns = (
        ("final_height", "m", "height of the centre of mass, over z = 0 of the world"),
        ("final_base_height", "m", "height of the origin of the base, likewise"),
    )

    def read(self, numbers: np.ndarray, r: Any) -> Columns:
        """See StepMeasure."""
        return self.named(*r.heights())


# ---- accounts ---------------------------------------------------------------------------------------------


class Energy(StepMeasure):
    """Of the ledger, and of the first and the last state."""

    name, text = "energy", "where the energy went"
    columns = (
        ("dissipated", "J", "by contact, friction and damping, limits and collisions together"),
        ("dissipated_by_contact", "J", "taken by the ground"),
        ("dissipated_by_friction", "J", "taken by friction and damping of the joints"),
        ("dissipated_by_stops", "J", "taken by joint limits"),
        ("dissipated_by_collision", "J", "taken by contacts between bodies of the robot"),
        ("work", "J", "given by joint forces, actuators, pushes and moving ground"),
        ("energy_balance", "J", "gained without a cause: mechanical + dissipated - work"),
    )

    def read(self, numbers: np.ndarray, r: Any) -> Columns:
        """See StepMeasure."""
        takers = "contact", "friction", "stops", "collision"
        found = {f"dissipated_by_{name}": r.entry(name) for name in takers}
        dissipated, work = added(found.values(), np.zeros(r.rows)), r.entry("work")
        balance = r.gained_energy() + dissipated - work
        return {"dissipated": dissipated, **found, "work": work, "energy_balance": balance}


class Momentum(StepMeasure):
    """Of the ledger, and of the first and the last state."""

    name = "momentum"
    text = "momentum gained without a cause: about the centre of mass, the largest of x, y and z"
    columns = (
        ("momentum_balance_linear", "N s", "of the linear momentum; NaN with a fixed base"),
        ("momentum_balance_angular", "N m s", "of the angular momentum; NaN with a fixed base"),
    )

    def read(self, numbers: np.ndarray, r: Any) -> Columns:
        """See StepMeasure."""
        size = np.abs(r.missing_momentum())
        return self.named(size[:, 3:].max(axis=1), size[:, :3].max(axis=1))


class Failure(StepMeasure):
    """Of the loop over the steps."""

    name, text = "failure", "rows that are no motion of the robot"
    columns = (
        ("failure", "", "why: not finite, or energy out of nothing; None of a row that is sound"),
        ("failure_time", "s", "from when on"),
    )

    def read(self, numbers: np.ndarray, r: Any) -> Columns:
        """See StepMeasure."""
        return {"failure": r.failures.reason, "failure_time": r.failures.time}


# ---- all of them ------------------------------------------------------------------------------------------

KEPT = tuple(each for each in MEASURES.values() if type(each).after is not StepMeasure.after)
"""Those that have numbers of their own, in the order of ``measured_at``."""


class Table(Mapping[str, StepMeasure]):
    """The measures by name; printed, all of them with their columns."""

    def __getitem__(self, name: str) -> StepMeasure:
        if name not in MEASURES:
            raise UnknownName("measure", name, list(MEASURES))
        return MEASURES[name]

    def __iter__(self) -> Iterator[str]:
        return iter(MEASURES)

    def __len__(self) -> int:
        return len(MEASURES)

    def __str__(self) -> str:
        return "\n".join(map(str, MEASURES.values()))

    def __repr__(self) -> str:
        return f"<measures {', '.join(MEASURES)}>"


measures: Mapping[str, StepMeasure] = Table()
"""The measures that ``rk.rollout(..., measures=[...])`` knows, by name: ``print(rk.measures)``."""

DEFAULT = tuple(name for name in measures if name not in ("first_contact_by_link", "limits_by_joint"))
"""What a sweep measures where nothing is asked for."""


def column_of(name: str) -> Column | None:
    """What a column of measures says, such as "peak_force/torso"; None of a measure of the user's."""
    known = {column.name: column for each in MEASURES.values() for column in each.columns}
    of, _, subject = name.partition("/")
    kinds = ("/LINK", "/JOINT") if subject else ("",)
    return next((known[of + kind] for kind in kinds if of + kind in known), None)
