"""What happened in a run: contacts, impacts, sliding, limits, rest, each with its time and size.

Every step is looked at, whatever was recorded. The time of an event is the middle of its step, where the
step's forces act. Interruptions shorter than SHORTEST do not count, nor do shorter slips, saturations, stops
and later contacts without an impact: a heel that rattles on the ground for a moment is in contact.

    kind            subject  size
    first contact   link     speed of approach [m/s], of the first contact of the link
    contact         link     the same, of later ones
    impact          link     impulse along the normal [N s], of points that arrive faster than IMPACT
    release         link     how long it had been in contact [s]
    slip            link     speed over the ground [m/s]; more than half of its normal force slides
    stick           link     the way that it has slid since [m]
    limit           joint    speed at which it reaches its limit [rad/s | m/s]
    limit left      joint    largest force of the stop [N m | N]
    saturation      joint    force of its actuator, which is at a limit of effort or speed [N m | N]
    saturation ends joint    how long it lasted [s]
    collision       link     impulse of other links of the robot in the first BLOW of their contact [N s]
    peak force      link     largest force of the ground on the link in the run, friction included [N]
    peak load       robot    largest force of the ground on all links together [N]
    past limit      joint    how far it was past a limit at most, one for each side [rad | m]
    rest            robot    its largest speed from then on [m/s]: below REST
    failure         robot    0; the text says why the run stopped
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from robokit.contact.measures import CALM, IMPACT, REST, SHORTEST
from robokit.sim.record.step_facts import StepFacts, Subjects
from robokit.sim.step.step_kernel import Program

BLOW = 0.01
"""Time after the last arrival of a point over which an impact's impulse is summed [s]."""


@dataclass(frozen=True)
class Event:
    """An event of a run.

    Attributes:
        time: when [s].
        kind: kind of event; see robokit.sim.record.events.
        subject: name of the link, joint or robot.
        size: how much, in the unit.
        unit: of the size.
        text: the same in words.
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


def events_of(program: Program, facts: StepFacts, summary: Mapping[str, Any]) -> list[Event]:
    """The events of a run in the order of time.

    Args:
        program: the step.
        facts: of every step.
        summary: of the run.
    """
    name, subjects, units = program.robot.name, Subjects.of(program), {}
    for one in program.robot.body_joints:
        units[one.name] = ("m/s", "N", "m") if one.kind == "prismatic" else ("rad/s", "N m", "rad")
    find = _Finder(facts, summary["dt"])
    found: list[Event] = []
    for k, link in enumerate(subjects.links):
        found += find.of_link(k, link)
    for k, (joint, _) in enumerate(subjects.joints):
        found += find.of_stop(k, joint, *units[joint])
    for k, (joint, *_) in enumerate(subjects.driven):
        found += find.of_drive(k, joint, units[joint][1])
    for k, (link, _) in enumerate(subjects.meeting):
        found += find.of_meeting(k, link)
    found += find.of_robot(name)
    found.sort(key=lambda event: event.time)
    if "stopped" in summary:
        stop = summary["stopped"]
        found.append(Event(stop["time"], "failure", name, 0.0, "", stop["reason"].rstrip(".")))
    return found


def spans(
    on: np.ndarray, gap: float = 0, least: float = 0, times: np.ndarray | None = None
) -> list[tuple[int, int]]:
    """(first, last + 1) of the steps in which something holds.

    Args:
        on: (S,) whether it does.
        gap: interruptions up to so long do not count.
        least: shorter spans do not count.
        times: when the steps begin, and the last one ends, (S + 1,); their numbers if it is not given.
    """
    t = np.arange(len(on) + 1) if times is None else times
    edges = np.flatnonzero(np.diff(np.concatenate(([0], on.astype(np.int8), [0]))))
    joined: list[list[int]] = []
    for first, end in edges.reshape(-1, 2).tolist():
        if joined and t[first] - t[joined[-1][1]] <= gap:
            joined[-1][1] = end
        else:
            joined.append([first, end])
    return [(first, end) for first, end in joined if t[end] - t[first] >= least]


def three(size: float) -> str:
    """A number with three figures, without a power of ten between 1e-3 and 1e6."""
    return f"{size:.3g}" if abs(size) < 999.5 or abs(size) >= 1e6 else f"{float(f'{size:.3g}'):.0f}"


def newtons(force: float) -> str:
    """A force with three figures, in kN from 1,000 N on."""
    size, unit = (force, "N") if abs(force) < 999.5 else (force / 1e3, "kN")
    return f"{size:#.3g}".rstrip(".") + f" {unit}"


def from_rows(rows: Any) -> list[Event]:
    """The events of a file.

    Raises:
        TypeError, ValueError: they are none.
    """
    found = []
    for time, kind, subject, size, unit, text in rows:
        words = [str(x) for x in (kind, subject, unit, text)]
        found.append(Event(float(time), words[0], words[1], float(size), words[2], words[3]))
    return found


class _Finder:
    """Events of single subjects."""

    def __init__(self, facts: StepFacts, dt: float) -> None:
        self.facts, self.dt, self.steps = facts, dt, len(facts.moving)
        self.edges = facts.edges
        self.few, self.blow = (
            x / dt if facts.lengths is not None else max(1, round(x / dt)) for x in (SHORTEST, BLOW)
        )

    def _at(self, step: int) -> float:
        """The middle of a step [s]."""
        ends = self.edges[step], self.edges[min(step + 1, self.steps)]
        return 0.5 * float(ends[0] + ends[1]) * self.dt

    def _long(self, first: int, end: int) -> float:
        """How long some steps are, in steps."""
        return float(self.edges[end] - self.edges[first])

    def _until(self, first: int, long: float) -> int:
        """The step that begins so long after another one, or a little later."""
        return int(np.searchsorted(self.edges, self.edges[first] + long))

    def _sum(self, values: np.ndarray, first: int, end: int) -> float:
        """The integral over some steps."""
        return self.dt * float((values[first:end] * np.diff(self.edges[first : end + 1])).sum())

    def _spans(self, on: np.ndarray, gap: float = 0, least: float = 0) -> list[tuple[int, int]]:
        return spans(on, gap, least, self.edges)

    def of_link(self, k: int, link: str) -> Iterator[Event]:
        """What a link does on the ground."""
        facts = self.facts
        normal, closing = facts.normal[:, k], facts.closing[:, k]
        for number, (first, end) in enumerate(self._spans(normal > 0.0, self.few)):
            speed = max(0.0, float(closing[first]))
            if number and self._long(first, end) < self.few and speed < IMPACT:
                continue
            kind, again = ("contact", " again") if number else ("first contact", "")
            text = f"touches the ground{again} at {speed:.3g} m/s"
            yield Event(self._at(first), kind, link, speed, "m/s", text)
            if end < self.steps:
                long = self._long(first, end) * self.dt
                yield Event(
                    self._at(end), "release", link, long, "s", f"leaves the ground after {long:.3g} s"
                )
        for first, end in self._spans(closing > IMPACT, self.blow):
            speed = float(closing[first:end].max())
            impulse = self._sum(normal, first, min(self._until(end, self.blow), self.steps))
            text = f"hits the ground at {speed:.3g} m/s with {three(impulse)} N s"
            yield Event(self._at(first), "impact", link, impulse, "N s", text)
        step, most = _peak(np.linalg.norm(facts.force[:, k], axis=-1))
        if most > 0.0:
            text = f"feels the largest force of the ground on it, {newtons(most)}"
            yield Event(self._at(step), "peak force", link, most, "N", text)
        slides = 2.0 * facts.sliding[:, k] > normal
        for first, end in self._spans(slides, self.few, self.few):
            speed, way = float(facts.speed[first, k]), self._sum(facts.speed[:, k], first, end)
            yield Event(self._at(first), "slip", link, speed, "m/s", f"slides at {speed:.3g} m/s")
            if end < self.steps and normal[end] > 0.0:
                yield Event(self._at(end), "stick", link, way, "m", f"sticks after sliding {way:.3g} m")

    def of_stop(self, k: int, joint: str, speed_unit: str, force_unit: str, unit: str) -> Iterator[Event]:
        """What a joint does at its limits."""
        force, rate = self.facts.stop[:, k], self.facts.rate[:, k]
        for sign, side in ((-1.0, "upper"), (1.0, "lower")):
            for first, end in self._spans(sign * force > 0.0, self.few):
                speed, most = abs(float(rate[first])), float(np.abs(force[first:end]).max())
                if self._long(first, end) < self.few and speed < IMPACT:
                    continue
                text = f"reaches its {side} limit at {speed:.3g} {speed_unit}"
                yield Event(self._at(first), "limit", joint, speed, speed_unit, text)
                if end < self.steps:
                    text = f"leaves its {side} limit, which gave at most {three(most)} {force_unit}"
                    yield Event(self._at(end), "limit left", joint, most, force_unit, text)
            step, far = _peak(-sign * self.facts.past[:, k])
            if far > 0.0:
                text = f"is furthest past its {side} limit: {far:.3g} {unit}"
                yield Event(self._at(step), "past limit", joint, far, unit, text)

    def of_drive(self, k: int, joint: str, unit: str) -> Iterator[Event]:
        """When an actuator is at a limit."""
        for first, end in self._spans(self.facts.limited[:, k] > 0.5, self.few, self.few):
            force, long = float(self.facts.drive[first, k]), self._long(first, end) * self.dt
            text = f"its actuator is at a limit, with {three(force)} {unit}"
            yield Event(self._at(first), "saturation", joint, force, unit, text)
            if end < self.steps:
                text = f"its actuator was at a limit for {long:.3g} s"
                yield Event(self._at(end), "saturation ends", joint, long, "s", text)

    def of_meeting(self, k: int, link: str) -> Iterator[Event]:
        """When a link meets other links."""
        impulse = self.facts.met[:, k]
        for first, end in self._spans(impulse > 0.0, self.few):
            # That of the blow: of links that lie on each other the impulse grows for as long as they lie.
            size = float(impulse[first : min(end, self._until(first, self.blow))].sum())
            long, blow = self._long(first, end) * self.dt, three(size)
            text = f"touches another link of the robot for {long:.3g} s, at first with {blow} N s"
            yield Event(self._at(first), "collision", link, size, "N s", text)

    def of_robot(self, name: str) -> Iterator[Event]:
        """When the robot comes to rest."""
        fast = np.flatnonzero(~(self.facts.moving < REST))
        first = int(fast[-1]) + 1 if len(fast) else 0
        if self._long(first, self.steps) * self.dt >= CALM:
            most = float(self.facts.moving[first:].max())
            text = f"is at rest: at most {1e3 * most:.2g} mm/s from here on"
            yield Event(self._at(first), "rest", name, most, "m/s", text)
        step, load = _peak(self.facts.load)
        if load > 0.0:
            text = f"feels the largest force of the ground on all its links together, {newtons(load)}"
            yield Event(self._at(step), "peak load", name, load, "N", text)


def _peak(values: np.ndarray) -> tuple[int, float]:
    """(step, value) of the largest finite one; (0, 0.0) where there is none."""
    finite = np.where(np.isfinite(values), values, 0.0)
    step = int(finite.argmax()) if len(finite) else 0
    return step, float(finite[step]) if len(finite) else 0.0
