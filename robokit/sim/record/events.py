"""Events of a run, and what they answer; each kind is in contact/measures.py, with its measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from robokit.contact.measures import MONITORS, SUBJECTS, Answer, Event, RunEvents
from robokit.sim.record.step_facts import StepFacts, Subjects
from robokit.sim.step.step_kernel import Program

__all__ = ["Answer", "Event", "answers", "events_of", "from_rows"]


def events_of(program: Program, facts: StepFacts, summary: Mapping[str, Any]) -> list[Event]:
    """The events of a run in the order of time.

    Args:
        program: the step.
        facts: of every step.
        summary: of the run.
    """
    robot = program.robot.name
    names = {**Subjects.of(program).names, "robot": (robot,)}
    found = [
        event
        for about in SUBJECTS
        for k, name in enumerate(names[about])
        for monitor in MONITORS
        if monitor.subject == about
        for event in monitor.events(facts, k, name)
    ]
    found.sort(key=lambda event: event.time)
    if "stopped" in summary:
        stop = summary["stopped"]
        found.append(Event(stop["time"], "failure", robot, 0.0, "", stop["reason"].rstrip(".")))
    return found


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


def answers(events: Sequence[Event], end: float, ground: bool = True) -> list[Answer]:
    """The questions that everyone has after a run, answered from its events, for the report and the page.

    A peak is that of a step, however few were recorded.

    Args:
        events: of the run, in the order of time.
        end: of the run [s].
        ground: whether there was something to fall on.
    """
    run = RunEvents(events, end, ground)
    return [answer for monitor in MONITORS for answer in monitor.answers(run)]
