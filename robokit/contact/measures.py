"""What runs are monitored for: one class a quantity, with its events in one run and its columns of many.

A measure is known to ``rk.rollout(measures=...)`` and sweeps by its name, and the step of contact
brings its numbers up to date in machine code (monitor.py). Steps count from 0, as of their middle; NEVER
stands for none. Where a step is taken in parts (step_control.py), a part is so much of it.

A column is an array (B,): of numbers, or of names (None where there is none). Times are those of events: the
middle of the step in which something happens. A time, or what depends on it, is NaN where it never happens.
In a row that failed all but ``failure`` and ``failure_time`` are NaN or None.

Events are found in every step of a run, whatever was recorded. Interruptions shorter than SHORTEST do not
count, nor do shorter slips, saturations, stops and later contacts without an impact: a heel that rattles on
the ground for a moment is in contact.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from robokit.contact.accounts import on_ground
from robokit.contact.constraints.adding import speed
from robokit.contact.constraints.joints import gap
from robokit.contact.vectors import inertia, motion, nothing, write
from robokit.dataclass_tools import frozen
from robokit.errors import UnknownName
from robokit.spatial.control_flow import cond, for_range
from robokit.spatial.scalars import Scalar, added, floor, maximum, where

NEVER = -1.0  # number of a step that has not come
SHORTEST = 5e-3  # shortest interruption, slip, stop or saturation that counts [s]
IMPACT = 0.1  # speed of approach of an impact [m/s]; of one at a joint limit [rad/s | m/s]
REST = 1e-3  # speed of a robot at rest: the root of twice its kinetic energy over its mass [m/s]
CALM = 0.1  # shortest rest at the end of a run that is one [s]
BLOW = 0.01  # time after the last arrival of a point over which an impact's impulse is summed [s]
SOFT = 1e-2  # speed of approach up to which a link that touches at first stood on the ground [m/s]
MOST_NAMES = 3  # links that an answer lists by name

Columns = dict[str, np.ndarray]


@frozen
class Column:
    """A column of a measure."""

    # its key in ``rollout.measures``; with "/LINK" or "/JOINT" there is one for each link that can touch the
    # ground, or each joint with limits
    name: str
    unit: str  # of its numbers; "" for names and counts
    text: str  # what it says

    def __str__(self) -> str:
        """The column in a line."""
        unit = f" [{self.unit}]" if self.unit else ""
        return f"{self.name}{unit}: {self.text}"


@frozen
class Subjects:
    """Whom measures and events are about."""

    links: tuple[str, ...] = ()  # that can touch the ground
    joints: tuple[tuple[str, int], ...] = ()  # with limits, and their bodies
    heavy: tuple[int, ...] = ()  # bodies that have mass
    # actuators with limits: names of their joints, their bodies, and places among the drives
    driven: tuple[tuple[str, int, int], ...] = ()
    meeting: tuple[tuple[str, int], ...] = ()  # bodies that can meet others: names of their links, and bodies

    def names(self, robot: str) -> dict[str, tuple[str, ...]]:
        """Of all of them by SUBJECTS, in their order, in a robot of that name."""
        firsts = (tuple(name for name, *_ in each) for each in (self.joints, self.driven, self.meeting))
        return dict(zip(SUBJECTS, (self.links, *firsts, (robot,)), strict=True))


# ---- events and answers ---------------------------------------------------------------------------------


@frozen
class EventKind:
    """A kind of event."""

    name: str  # such as "first contact"
    family: str  # kinds that a page draws and filters alike
    rank: int  # 0 of the most important kind; each kind has its own
    size: str  # what its size is, with its unit
    # whether it occurs once a subject and side at most. There are few of these, and answers rest on them:
    # none is left out of a page.
    once: bool = False
    subject: str = "link"  # whom it is about, one of SUBJECTS


@frozen
class Event:
    """An event of a run.

    Attributes:
        time: middle of the event's step, where the step's forces act [s].
        kind: name of the kind; ``robokit.contact.measures.KINDS`` has all of them.
        subject: name of the link, joint or robot.
        size: size of the event, such as a speed or a force.
        unit: unit of the size.
        text: the event in words.
    """

    time: float
    kind: str
    subject: str
    size: float
    unit: str
    text: str

    def __str__(self) -> str:
        """One line."""
        return f"{self.time:9.4f} s  {self.kind:<15} {self.subject}: {self.text}"


@frozen
class Answer:
    """A question that everyone has after a run, and its answer."""

    label: str  # the question in a word or two, at most 13 characters
    value: str  # the answer: a time, a size with its unit, a count
    note: str  # what belongs to it: who, when, how fast; may be empty
    event: Event | None = None  # that it is about, or None

    def __str__(self) -> str:
        """The answer in one line, without the question."""
        return f"{self.value}: {self.note}" if self.note else self.value


@frozen
class RunEvents:
    """The events of a run, in the order of time, as answers ask for them."""

    events: Sequence[Event]  # all of them
    end: float  # of the run [s]
    ground: bool  # whether there was something to fall on; what it did not touch cannot push it

    def of(self, kind: str) -> list[Event]:
        """Those of a kind."""
        return [event for event in self.events if event.kind == kind]

    def largest(self, kind: str) -> Event | None:
        """The first of the largest of a kind; None where there are none."""
        return max(self.of(kind), key=lambda event: event.size, default=None)

    @property
    def touched(self) -> bool:
        """Whether anything touched the ground."""
        return self.ground and bool(self.of("first contact"))


MONITORS: list[Monitor] = []  # all that runs are monitored for, in the order of a report
MEASURES: dict[str, Monitor] = {}  # those that are measures, by name
KINDS: dict[str, EventKind] = {}  # all kinds of events, by name


SUBJECTS = "link", "joint", "drive", "body", "robot"
"""Whom events are about: links that can touch the ground, joints with limits, actuators with limits, bodies
that can meet others, and the robot."""


class Monitor:
    """What runs are monitored for: the events of one run, the columns of many, or both.

    One that has a name is a measure: its numbers are brought up to date in every step of a row, and reduced
    to columns at the end. One that has kinds finds events in the facts of all steps of a run.

    Attributes:
        name: by which a measure is asked for; "" of what is none.
        text: what it is.
        columns: that it makes: (name, unit, text) of each where it is defined, Columns from then on.
        law: what of a single run says the same; a measure cannot be defined without one.
        reads: name of the measure whose numbers it reads; its own by default.
        subject: whom its events are about, one of SUBJECTS.
        kinds: of its events.
    """

    name, text, law, reads, subject = "", "", "", "", ""
    columns: tuple[Any, ...] = ()
    kinds: tuple[EventKind, ...] = ()

    def __init_subclass__(cls) -> None:
        if cls.name and not cls.law:
            raise TypeError(f"{cls.__name__}: a measure needs a law: what of a single run says the same")
        cls.columns = tuple(Column(*row) for row in cls.columns)
        cls.reads = cls.__dict__.get("reads", cls.name)
        own = cls()
        MONITORS.append(own)
        if cls.name:
            MEASURES[cls.name] = own
        for kind in cls.kinds:
            KINDS[kind.name] = replace(kind, subject=cls.subject)

    def start(self, s: Subjects) -> Sequence[float]:
        """The numbers before the first step; none by default."""
        return ()

    def after(self, x: Any, at: Any, step: Scalar) -> None:
        """Bring the numbers ``x.measured[at:]`` up to date, at the middle of a step with contact."""

    def passive(self, numbers: Sequence[Scalar], now: Any) -> Sequence[Scalar]:
        """The same of a step of passive motion (sim/step_kernel.py); as they were by default."""
        return numbers

    def read(self, numbers: np.ndarray, r: Any) -> Columns:
        """The columns of B rows: numbers (size, B), and what is known besides (sim/rollout_measures.py)."""
        raise NotImplementedError

    def events(self, f: Any, k: int, subject: str) -> Iterator[Event]:
        """The events of a subject, of its number, in the facts of a run (sim/events.py)."""
        return iter(())

    def answers(self, r: RunEvents) -> Iterator[Answer]:
        """What the events of a run answer, for its report and its page; nothing by default."""
        return iter(())

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


# ---- words ----------------------------------------------------------------------------------------------


def three(size: float) -> str:
    """A number with three figures, without a power of ten between 1e-3 and 1e6."""
    return f"{size:.3g}" if abs(size) < 999.5 or abs(size) >= 1e6 else f"{float(f'{size:.3g}'):.0f}"


def newtons(force: float) -> str:
    """A force with three figures, in kN from 1,000 N on."""
    size, unit = (force, "N") if abs(force) < 999.5 else (force / 1e3, "kN")
    return f"{size:#.3g}".rstrip(".") + f" {unit}"


def length(way: float) -> str:
    """A length with three figures, in mm below 0.1 m."""
    return f"{way:.3g} m" if way >= 0.1 else f"{1e3 * way:.3g} mm"


def clock(time: float) -> str:
    """A time as a list of events has it."""
    return f"{time:.4f} s"


def side_of(event: Event) -> str:
    """The side of an event at a joint limit."""
    return "upper" if " upper limit" in event.text else "lower"


def _names(names: list[str]) -> str:
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + more


def _first(events: list[Event]) -> str:
    return f"{events[0].subject} first, at {clock(events[0].time)}"


def _counted(r: RunEvents, label: str, kind: str, none: str = "") -> Iterator[Answer]:
    """How many impulses of a kind, and the largest."""
    if most := r.largest(kind):
        note = f"the largest {three(most.size)} N s, {most.subject} at {clock(most.time)}"
        yield Answer(label, str(len(r.of(kind))), note, most)
    elif none:
        yield Answer(label, none, "")


def _peak(values: np.ndarray) -> tuple[int, float]:
    """(step, value) of the largest finite one; (0, 0.0) where there is none."""
    finite = np.where(np.isfinite(values), values, 0.0)
    step = int(finite.argmax()) if len(finite) else 0
    return step, float(finite[step]) if len(finite) else 0.0


# ---- forces of the ground ----------------------------------------------------------------------------------


class Failure(Monitor):
    """Of the loop over the steps."""

    name, text = "failure", "rows without a valid motion"
    columns = (
        (
            "failure",
            "",
            "the reason: a state that is not finite, or energy without a cause; None for a sound row",
        ),
        ("failure_time", "s", "from when on"),
    )
    law = "rows with a start or forces that are not finite"
    subject = "robot"
    kinds = (EventKind("failure", "Failure", 0, "0; the text says why the run stopped", True),)

    def read(self, numbers: np.ndarray, r: Any) -> Columns:
        return {"failure": r.failure, "failure_time": r.failure_time}

    def answers(self, r: RunEvents) -> Iterator[Answer]:
        for stop in r.of("failure")[:1]:
            yield Answer("stopped", f"at {clock(stop.time)}", stop.text, stop)


class FirstContact(Monitor):
    """Numbers: of each link the first step with a force that presses."""

    name, text = "first_contact", "time of the first ground contact of a link"
    columns = (
        ("first_contact_time", "s", "when"),
        ("first_contact_link", "", "name of the link; the first of several at the same time"),
    )
    law = "the first event 'first contact' of a run"
    subject = "link"
    kinds = (
        EventKind(
            "first contact", "Contacts", 2, "speed of approach [m/s], of the first contact of the link", True
        ),
        EventKind("contact", "Contacts", 11, "the same, of later ones"),
        EventKind("release", "Contacts", 12, "how long it had been in contact [s]"),
    )

    def start(self, s: Subjects) -> Sequence[float]:
        return [NEVER] * len(s.links)

    def after(self, x: Any, at: Any, step: Scalar) -> None:
        def link(k: Any) -> None:
            now = (x.link_force[k, 3] > 0.0) & (x.measured[at + k] < 0.0)
            x.measured[at + k] = where(now, step, x.measured[at + k])

        for_range(x.n_link_sums - 1, link)

    def read(self, numbers: np.ndarray, r: Any) -> Columns:
        time, link = r.first_of(numbers, r.subjects.links)
        return {"first_contact_time": time, "first_contact_link": link}

    def events(self, f: Any, k: int, subject: str) -> Iterator[Event]:
        normal, closing, few = f.normal[:, k], f.closing[:, k], f.count(SHORTEST)
        for number, (first, end) in enumerate(f.spans(normal > 0.0, few)):
            speed = max(0.0, float(closing[first]))
            if number and f.long(first, end) < few and speed < IMPACT:
                continue
            kind, again = ("contact", " again") if number else ("first contact", "")
            text = f"touches the ground{again} at {speed:.3g} m/s"
            yield Event(f.middle(first), kind, subject, speed, "m/s", text)
            if end < len(f):
                long = f.long(first, end) * f.dt
                yield Event(
                    f.middle(end), "release", subject, long, "s", f"leaves the ground after {long:.3g} s"
                )

    def answers(self, r: RunEvents) -> Iterator[Answer]:
        first = r.of("first contact")
        if not r.ground:
            return
        if not first:
            yield Answer("first contact", "none", "nothing touched the ground")
            return
        stood = [event for event in first if event.time == first[0].time and event.size < SOFT]
        if stood and first[0] is r.events[0]:
            yield Answer("first contact", "from the start", _names([x.subject for x in stood]), stood[0])
            first = [event for event in first if event not in stood]
        if first:
            same = [event for event in first if event.time == first[0].time]
            label = "next contact" if stood else "first contact"
            note = f"{_names([x.subject for x in same])} at {same[0].size:.3g} m/s"
            yield Answer(label, clock(same[0].time), note, same[0])


class FirstContactByLink(Monitor):
    """Reads what first_contact keeps."""

    name, reads = "first_contact_by_link", "first_contact"
    text = "the same for each link that can touch the ground"
    columns = (("first_contact_time/LINK", "s", "time of its first ground contact"),)
    law = "the event 'first contact' of each link"

    def read(self, numbers: np.ndarray, r: Any) -> Columns:
        rows = zip(r.subjects.links, numbers, strict=True)
        return {f"first_contact_time/{name}": r.times(steps) for name, steps in rows}


class PeakForce(Monitor):
    """Numbers: of each link the square of the largest force [N^2] and its step."""

    name, text = "peak_force", "largest force of the ground on a link, friction included"
    columns = (
        ("peak_force", "N", "its size; 0 without contact"),
        ("peak_force_link", "", "name of the link"),
        ("peak_force_time", "s", "when"),
    )
    law = "the largest event 'peak force' of a run"
    subject = "link"
    kinds = (
        EventKind(
            "peak force", "Forces", 3, "largest force of the ground on the link, friction included [N]", True
        ),
    )

    def start(self, s: Subjects) -> Sequence[float]:
        return [0.0, NEVER] * len(s.links)

    def after(self, x: Any, at: Any, step: Scalar) -> None:
        for_range(x.n_link_sums - 1, lambda k: keep(x, at + 2 * k, square_of_force(x, k), step))

    def read(self, numbers: np.ndarray, r: Any) -> Columns:
        square, link, time = r.largest_of(numbers[0::2], numbers[1::2], r.subjects.links)
        return {"peak_force": np.sqrt(square), "peak_force_link": link, "peak_force_time": time}

    def events(self, f: Any, k: int, subject: str) -> Iterator[Event]:
        step, most = _peak(np.linalg.norm(f.force[:, k], axis=-1))
        if most > 0.0:
            text = f"feels the largest force of the ground on it, {newtons(most)}"
            yield Event(f.middle(step), "peak force", subject, most, "N", text)

    def answers(self, r: RunEvents) -> Iterator[Answer]:
        if r.touched and (most := r.largest("peak force")):
            yield Answer("largest force", newtons(most.size), f"{most.subject} at {clock(most.time)}", most)


class PeakForceByLink(Monitor):
    """Reads what peak_force keeps."""

    name, text, reads = "peak_force_by_link", "the same for each link that can touch the ground", "peak_force"
    columns = (
        ("peak_force/LINK", "N", "largest force of the ground on it; 0 without contact"),
        ("peak_force_time/LINK", "s", "when"),
    )
    law = "the event 'peak force' of each link"

    def read(self, numbers: np.ndarray, r: Any) -> Columns:
        found: Columns = {}
        for name, square, step in zip(r.subjects.links, numbers[0::2], numbers[1::2], strict=True):
            found |= {f"peak_force/{name}": np.sqrt(square), f"peak_force_time/{name}": r.times(step)}
        return found


class PeakLoad(Monitor):
    """Numbers: square of the largest force on all links [N^2], and its step."""

    name, text = "peak_load", "largest force of the ground on all links together"
    columns = (
        ("peak_load", "N", "its size; 0 without contact"),
        ("peak_load_time", "s", "when"),
    )
    law = "the event 'peak load' of a run"
    subject = "robot"
    kinds = (
        EventKind("peak load", "Forces", 1, "largest force of the ground on all links together [N]", True),
    )

    def start(self, s: Subjects) -> Sequence[float]:
        return 0.0, NEVER

    def after(self, x: Any, at: Any, step: Scalar) -> None:
        keep(x, at, square_of_force(x, x.n_link_sums - 1), step)

    def read(self, numbers: np.ndarray, r: Any) -> Columns:
        return {"peak_load": np.sqrt(numbers[0]), "peak_load_time": r.times(numbers[1])}

    def events(self, f: Any, k: int, subject: str) -> Iterator[Event]:
        step, load = _peak(f.load)
        if load > 0.0:
            text = f"feels the largest force of the ground on all its links together, {newtons(load)}"
            yield Event(f.middle(step), "peak load", subject, load, "N", text)

    def answers(self, r: RunEvents) -> Iterator[Answer]:
        if r.touched and len(r.of("peak force")) > 1:
            for load in r.of("peak load"):
                yield Answer("on all links", newtons(load.size), f"at {clock(load.time)}", load)


class Impact(Monitor):
    """Points that arrive faster than IMPACT; the impulse is summed for BLOW after the last arrival."""

    subject = "link"
    kinds = (EventKind("impact", "Forces", 6, "impulse along the normal [N s]"),)

    def events(self, f: Any, k: int, subject: str) -> Iterator[Event]:
        normal, closing, blow = f.normal[:, k], f.closing[:, k], f.count(BLOW)
        for first, end in f.spans(closing > IMPACT, blow):
            speed = float(closing[first:end].max())
            impulse = f.integral(normal, first, min(f.step_after(end, blow), len(f)))
            text = f"hits the ground at {speed:.3g} m/s with {three(impulse)} N s"
            yield Event(f.middle(first), "impact", subject, impulse, "N s", text)

    def answers(self, r: RunEvents) -> Iterator[Answer]:
        if r.touched:
            yield from _counted(r, "impacts", "impact", none="none")


class Penetration(Monitor):
    """Numbers: the deepest point in the ground [m], and its step."""

    name, text = "penetration", "deepest point in the ground"
    columns = (
        ("deepest_penetration", "m", "how deep"),
        ("deepest_penetration_time", "s", "when"),
    )
    law = "a run that ends with that step is as deep, one that ends before it is not"

    def start(self, s: Subjects) -> Sequence[float]:
        return 0.0, NEVER

    def after(self, x: Any, at: Any, step: Scalar) -> None:
        def contact(i: Any, depth: Scalar) -> Scalar:
            return maximum(depth, cond(on_ground(x, i), lambda: -x.contact_gap[x.c_of[i]], lambda: 0.0))

        keep(x, at, for_range(x.n_of[0], contact, 0.0), step)

    def read(self, numbers: np.ndarray, r: Any) -> Columns:
        return {"deepest_penetration": numbers[0].copy(), "deepest_penetration_time": r.times(numbers[1])}


class Overlap(Monitor):
    """Of the ledger."""

    name, text = "overlap", "deepest overlap of two bodies of the robot"
    columns = (("deepest_overlap", "m", "its depth; 0 without self_collision"),)
    law = "by the places of two balls that meet"

    def read(self, numbers: np.ndarray, r: Any) -> Columns:
        return {"deepest_overlap": r.entry("overlap")}


# ---- joints and links --------------------------------------------------------------------------------------


class Limits(Monitor):
    """Joints that reach their limits.

    A stop counts once it has lasted SHORTEST or was reached faster than IMPACT; interruptions up to SHORTEST
    do not end it.

    Numbers: how often any does; of each joint the first step of the stop that presses now (NEVER if it has
    counted already), the step after the last in which a stop pressed (negative for the upper one; 0 for
    none), and the first step of the first stop that counts; then largest distance of a joint past a limit
    [rad | m], in which step, and number of the joint.
    """

    name, text = (
        "limits",
        "joints that reach their limits: fast, or for 5 ms, as the events of a run count them",
    )
    columns = (
        ("limit_hits", "", "how often this happens, in all joints"),
        ("limit_joint", "", "the joint that first reaches a limit"),
        ("limit_time", "s", "when"),
        ("past_limit", "rad or m", "largest distance of a joint past a limit"),
        ("past_limit_joint", "", "which joint"),
        ("past_limit_time", "s", "when"),
    )
    law = "the events 'limit' and 'past limit' of a run"
    subject = "joint"
    kinds = (
        EventKind("limit", "Limits", 8, "speed at which it reaches its limit [rad/s | m/s]"),
        EventKind("limit left", "Limits", 13, "largest force of the stop [N m | N]"),
        EventKind("past limit", "Limits", 5, "largest distance past a limit, on each side [rad | m]", True),
    )

    def start(self, s: Subjects) -> Sequence[float]:
        return [0.0, *[NEVER, 0.0, NEVER] * len(s.joints), 0.0, NEVER, NEVER]

    def after(self, x: Any, at: Any, step: Scalar) -> None:
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
        names = [name for name, _ in r.subjects.joints]
        time, joint = r.first_of(numbers[3:-3:3], names)
        found = {"limit_hits": numbers[0].copy(), "limit_joint": joint, "limit_time": time}
        far, step, which = numbers[-3:]
        past = {"past_limit": far.copy(), "past_limit_joint": r.names(which, names)}
        return found | past | {"past_limit_time": r.times(step)}

    def events(self, f: Any, k: int, subject: str) -> Iterator[Event]:
        force, rate, few, (speeds, forces, places) = (
            f.stop[:, k],
            f.rate[:, k],
            f.count(SHORTEST),
            f.units(subject),
        )
        for sign, side in ((-1.0, "upper"), (1.0, "lower")):
            for first, end in f.spans(sign * force > 0.0, few):
                speed, most = abs(float(rate[first])), float(np.abs(force[first:end]).max())
                if f.long(first, end) < few and speed < IMPACT:
                    continue
                text = f"reaches its {side} limit at {speed:.3g} {speeds}"
                yield Event(f.middle(first), "limit", subject, speed, speeds, text)
                if end < len(f):
                    text = f"leaves its {side} limit, which gave at most {three(most)} {forces}"
                    yield Event(f.middle(end), "limit left", subject, most, forces, text)
            step, far = _peak(-sign * f.past[:, k])
            if far > 0.0:
                text = f"is furthest past its {side} limit: {far:.3g} {places}"
                yield Event(f.middle(step), "past limit", subject, far, places, text)

    def answers(self, r: RunEvents) -> Iterator[Answer]:
        reached, far = r.of("limit"), r.largest("past limit")
        joints = dict.fromkeys(event.subject for event in reached)
        value = f"{len(joints)} joint" + ("s" if len(joints) > 1 else "")
        if not joints:
            yield Answer("joint limits", "none reached", "")
        elif far:
            side = f"past its {side_of(far)} one at {clock(far.time)}"
            note = f"{far.subject} furthest, {far.size:.3g} {far.unit} {side}"
            yield Answer("joint limits", value, note, far)
        else:
            yield Answer("joint limits", value, _first(reached), reached[0])


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


class LimitsByJoint(Monitor):
    """Reads what limits keeps."""

    name, text, reads = "limits_by_joint", "the same for each joint with limits", "limits"
    columns = (("limit_time/JOINT", "s", "when it first reaches a limit"),)
    law = "the first event 'limit' of each joint"

    def read(self, numbers: np.ndarray, r: Any) -> Columns:
        rows = zip(r.subjects.joints, numbers[3:-3:3], strict=True)
        return {f"limit_time/{name}": r.times(steps) for (name, _), steps in rows}


class Slip(Monitor):
    """Links of which more than half of the normal force slides, for SHORTEST or longer."""

    subject = "link"
    kinds = (
        EventKind("slip", "Slips", 10, "speed over the ground [m/s]"),
        EventKind("stick", "Slips", 15, "distance slid [m]"),
    )

    def events(self, f: Any, k: int, subject: str) -> Iterator[Event]:
        normal, few = f.normal[:, k], f.count(SHORTEST)
        for first, end in f.spans(2.0 * f.sliding[:, k] > normal, few, few):
            speed, way = float(f.speed[first, k]), f.integral(f.speed[:, k], first, end)
            yield Event(f.middle(first), "slip", subject, speed, "m/s", f"slides at {speed:.3g} m/s")
            if end < len(f) and normal[end] > 0.0:
                yield Event(f.middle(end), "stick", subject, way, "m", f"sticks after sliding {way:.3g} m")

    def answers(self, r: RunEvents) -> Iterator[Answer]:
        slips, most = r.of("slip"), r.largest("stick")
        if not r.touched:
            return
        if not slips:
            yield Answer("slips", "none", "")
        elif most:
            begin = [x for x in slips if x.subject == most.subject and x.time < most.time][-1:]
            event = begin[0] if begin else most
            note = f"the longest {length(most.size)}, {most.subject} from {clock(event.time)}"
            yield Answer("slips", str(len(slips)), note, event)
        else:
            yield Answer(
                "slips", str(len(slips)), f"{slips[0].subject} from {clock(slips[0].time)}", slips[0]
            )


class Collision(Monitor):
    """Contacts with other links of the robot.

    The impulse is that of the first BLOW: of links that lie on each other it grows for as long as they lie.
    """

    subject = "body"
    kinds = (EventKind("collision", "Collisions", 7, "impulse of other links in the blow [N s]"),)

    def events(self, f: Any, k: int, subject: str) -> Iterator[Event]:
        impulse = f.met[:, k]
        for first, end in f.spans(impulse > 0.0, f.count(SHORTEST)):
            size = float(impulse[first : min(end, f.step_after(first, f.count(BLOW)))].sum())
            long, blow = f.long(first, end) * f.dt, three(size)
            text = f"touches another link of the robot for {long:.3g} s, at first with {blow} N s"
            yield Event(f.middle(first), "collision", subject, size, "N s", text)

    def answers(self, r: RunEvents) -> Iterator[Answer]:
        yield from _counted(r, "collisions", "collision")


class Saturation(Monitor):
    """Actuators at a limit of effort or speed, for SHORTEST or longer."""

    subject = "drive"
    kinds = (
        EventKind("saturation", "Actuators", 9, "force of the actuator [N m | N]"),
        EventKind("saturation ends", "Actuators", 14, "how long it lasted [s]"),
    )

    def events(self, f: Any, k: int, subject: str) -> Iterator[Event]:
        few, (_, unit, _) = f.count(SHORTEST), f.units(subject)
        for first, end in f.spans(f.limited[:, k] > 0.5, few, few):
            force, long = float(f.drive[first, k]), f.long(first, end) * f.dt
            text = f"its actuator is at a limit, with {three(force)} {unit}"
            yield Event(f.middle(first), "saturation", subject, force, unit, text)
            if end < len(f):
                text = f"its actuator was at a limit for {long:.3g} s"
                yield Event(f.middle(end), "saturation ends", subject, long, "s", text)

    def answers(self, r: RunEvents) -> Iterator[Answer]:
        if full := r.of("saturation"):
            joints = dict.fromkeys(event.subject for event in full)
            value = f"{len(joints)} actuator" + ("s" if len(joints) > 1 else "")
            yield Answer("saturation", value, _first(full), full[0])


# ---- motion ------------------------------------------------------------------------------------------------


class Speed(Monitor):
    """Numbers: square of the largest speed of a body's centre of mass [m^2/s^2], its step, and the body."""

    name = "speed"
    text = "greatest speed of a body: of its centre of mass, as the forces of a step begin to act"
    columns = (
        ("greatest_speed", "m/s", "how fast"),
        ("greatest_speed_link", "", "name of the body's link"),
        ("greatest_speed_time", "s", "when"),
    )
    law = "differences of the places of the centres of mass"

    def start(self, s: Subjects) -> Sequence[float]:
        return 0.0, NEVER, NEVER

    def after(self, x: Any, at: Any, step: Scalar) -> None:
        def body(b: Any, most: Scalar, which: Scalar) -> tuple[Scalar, Scalar]:
            m = x.I[b, 0]
            u = (inertia(x.I, b) @ motion(x.V, b)).lin * where(m > 0.0, 1.0 / where(m > 0.0, m, 1.0), 0.0)
            faster = u.dot(u) > most
            return where(faster, u.dot(u), most), where(faster, 0.0 + b, which)

        most, which = for_range(x.n_bodies, body, x.measured[at], x.measured[at + 2])
        keep(x, at, most, step)
        x.measured[at + 2] = which

    def passive(self, numbers: Sequence[Scalar], now: Any) -> Sequence[Scalar]:
        I, most, which = now.p.tree.I, numbers[0], numbers[2]
        for i in now.subjects.heavy:
            u = (I[i] @ now.V[i]).lin * (1.0 / I[i].m)
            square = u.dot(u)
            faster = square > most
            most, which = where(faster, square, most), where(faster, float(i), which)
        return [most, where(most > numbers[0], now.step, numbers[1]), which]

    def read(self, numbers: np.ndarray, r: Any) -> Columns:
        square, step, body = numbers
        link = r.names(body, r.program.robot.tree.name)
        when = {"greatest_speed_time": r.times(step)}
        return {"greatest_speed": np.sqrt(square), "greatest_speed_link": link} | when


class Rest(Monitor):
    """Numbers: the last step in which the robot is not at rest.

    Its speed is the root of twice the kinetic energy over the mass.
    """

    name, text = "rest", "whether the robot lies still at the end: slower than 1 mm/s for 0.1 s or more"
    columns = (
        ("rest_time", "s", "since when"),
        ("resting_height", "m", "height of its centre of mass, over z = 0 of the world"),
        ("resting_base_height", "m", "height of the origin of its base, likewise"),
    )
    law = "the event 'rest' of a run, and its last state"
    subject = "robot"
    kinds = (EventKind("rest", "Rest", 4, "largest speed from then on [m/s]", True),)

    def start(self, s: Subjects) -> Sequence[float]:
        return [NEVER] if s.heavy else []

    def after(self, x: Any, at: Any, step: Scalar) -> None:
        def body(b: Any, energy: Scalar, mass: Scalar) -> tuple[Scalar, Scalar]:
            V = motion(x.V, b)
            return energy + V.dot(inertia(x.I, b) @ V), mass + x.I[b, 0]

        energy, mass = for_range(x.n_bodies, body, 0.0, 0.0)
        x.measured[at] = where(energy / mass < REST * REST, x.measured[at], step)

    def passive(self, numbers: Sequence[Scalar], now: Any) -> Sequence[Scalar]:
        tree, V = now.p.tree, now.V
        mass = added((tree.I[i].m for i in tree.outward()), 0.0)
        square = added((V[i].dot(tree.I[i] @ V[i]) for i in tree.outward()), 0.0) / mass
        return [where(square < REST * REST, numbers[0], now.step)]

    def read(self, numbers: np.ndarray, r: Any) -> Columns:
        if not len(numbers):
            return self.named(*[np.full(r.rows, np.nan) for _ in self.columns])
        since = np.where((r.steps - (numbers[0] + 1.0)) * r.dt >= CALM, numbers[0] + 1.0, np.nan)
        heights = [np.where(np.isfinite(since), height, np.nan) for height in r.heights()]
        return self.named(r.times(since), *heights)

    def events(self, f: Any, k: int, subject: str) -> Iterator[Event]:
        fast = np.flatnonzero(~(f.moving < REST))
        first = int(fast[-1]) + 1 if len(fast) else 0
        if f.long(first, len(f)) * f.dt >= CALM:
            most = float(f.moving[first:].max())
            text = f"is at rest: at most {1e3 * most:.2g} mm/s from here on"
            yield Event(f.middle(first), "rest", subject, most, "m/s", text)

    def answers(self, r: RunEvents) -> Iterator[Answer]:
        if r.of("failure"):
            return
        if rests := r.of("rest"):
            note = rests[0].text.partition("rest: ")[2] or rests[0].text
            yield Answer("rest", f"since {clock(rests[0].time)}", note, rests[0])
        else:
            yield Answer("rest", "not reached", f"still moving at {r.end:.4g} s")


class Height(Monitor):
    """Of the last state."""

    name, text = "height", "heights at the end, at rest or not"
    columns = (
        ("final_height", "m", "height of the centre of mass, over z = 0 of the world"),
        ("final_base_height", "m", "height of the origin of the base, likewise"),
    )
    law = "the last state of a run"

    def read(self, numbers: np.ndarray, r: Any) -> Columns:
        return self.named(*r.heights())


# ---- accounts ----------------------------------------------------------------------------------------------


class Energy(Monitor):
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
    law = "energies and losses of a run at its end"

    def read(self, numbers: np.ndarray, r: Any) -> Columns:
        takers = "contact", "friction", "stops", "collision"
        found = {f"dissipated_by_{name}": r.entry(name) for name in takers}
        dissipated, work = added(found.values(), np.zeros(r.rows)), r.entry("work")
        balance = r.gained_energy() + dissipated - work
        return {"dissipated": dissipated, **found, "work": work, "energy_balance": balance}


class Momentum(Monitor):
    """Of the ledger, and of the first and the last state."""

    name = "momentum"
    text = "momentum gained without a cause: about the centre of mass, the largest of x, y and z"
    columns = (
        ("momentum_balance_linear", "N s", "of the linear momentum; NaN with a fixed base"),
        ("momentum_balance_angular", "N m s", "of the angular momentum; NaN with a fixed base"),
    )
    law = "momentum, impulse and weight of a run at its end"

    def read(self, numbers: np.ndarray, r: Any) -> Columns:
        size = np.abs(r.missing_momentum())
        return self.named(size[:, 3:].max(axis=1), size[:, :3].max(axis=1))


# ---- all of them ----------------------------------------------------------------------------------------

KEPT = tuple(each for each in MEASURES.values() if type(each).after is not Monitor.after)
"""Those that have numbers of their own, in the order of ``measured_at``."""


class Table(Mapping[str, Monitor]):
    """The measures by name; ``print(rk.measures)`` lists them with their columns."""

    def __getitem__(self, name: str) -> Monitor:
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


measures: Mapping[str, Monitor] = Table()
"""The measures that ``rk.rollout(..., measures=[...])`` knows, by name: ``print(rk.measures)``."""

DEFAULT = tuple(name for name in measures if name not in ("first_contact_by_link", "limits_by_joint"))
"""What a sweep measures where nothing is asked for."""


def column_of(name: str) -> Column | None:
    """What a column of measures says, such as "peak_force/torso"; None of a measure of the user's."""
    known = {column.name: column for each in MEASURES.values() for column in each.columns}
    of, _, subject = name.partition("/")
    kinds = ("/LINK", "/JOINT") if subject else ("",)
    return next((known[of + kind] for kind in kinds if of + kind in known), None)
