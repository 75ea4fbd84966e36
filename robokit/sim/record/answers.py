"""The questions that everyone has after a run, answered from its events, for the report and the page alike.

    first contact   when and which link; of links that touch from the start, which, and then the next contact
    largest force   of the ground on a link, and on all links together
    impacts         how many, and the largest
    joint limits    how many joints reach one, and which goes furthest past it
    slips           how many, and the longest
    collisions      of links with each other: how many, and the largest
    saturation      how many actuators are at a limit, and which first
    rest            since when; of a run that failed, when and why it stopped, as the first answer

A peak is that of a step, however few were recorded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from robokit.sim.record.events import Event, newtons, three

SOFT = 1e-2
"""Speed of approach up to which a link that touches in the first instant stood on the ground [m/s]."""

MOST_NAMES = 3
"""Links that an answer lists by name."""


@dataclass(frozen=True)
class Answer:
    """A question and its answer.

    Attributes:
        label: the question in a word or two, at most 13 characters.
        value: the answer: a time, a size with its unit, a count.
        note: what belongs to it: who, when, how fast; may be empty.
        event: that it is about, or None.
    """

    label: str
    value: str
    note: str
    event: Event | None = None

    def __str__(self) -> str:
        """The answer in one line, without the question."""
        return f"{self.value}: {self.note}" if self.note else self.value


def answers(events: Sequence[Event], end: float, ground: bool = True) -> list[Answer]:
    """The answers that a list of events gives.

    Args:
        events: of the run, in the order of time.
        end: of the run [s].
        ground: whether there was something to fall on; what it did not touch cannot push it.
    """
    by: dict[str, list[Event]] = {}
    for event in events:
        by.setdefault(event.kind, []).append(event)
    found: list[Answer] = []
    if ground:
        found += _contact(by.get("first contact", []), events)
    touched = ground and "first contact" in by
    if touched:
        found += _forces(by)
    found += _limits(by)
    if touched:
        found += _slips(by)
    found += _collisions(by.get("collision", []))
    found += _saturation(by.get("saturation", []))
    rest = by.get("rest", [])
    if "failure" in by:
        stop = by["failure"][0]
        found.insert(0, Answer("stopped", f"at {at(stop.time)}", stop.text, stop))
    elif rest:
        found.append(Answer("rest", f"since {at(rest[0].time)}", _after(rest[0].text, "rest: "), rest[0]))
    else:
        found.append(Answer("rest", "not reached", f"still moving at {end:.4g} s"))
    return found


def at(time: float) -> str:
    """A time as a list of events has it."""
    return f"{time:.4f} s"


def _contact(first: list[Event], events: Sequence[Event]) -> Iterator[Answer]:
    if not first:
        yield Answer("first contact", "none", "nothing touched the ground")
        return
    stood = [event for event in first if event.time == first[0].time and event.size < SOFT]
    if stood and first[0] is events[0]:
        yield Answer("first contact", "from the start", _names([x.subject for x in stood]), stood[0])
        first = [event for event in first if event not in stood]
    if first:
        same = [event for event in first if event.time == first[0].time]
        label = "next contact" if stood else "first contact"
        note = f"{_names([x.subject for x in same])} at {same[0].size:.3g} m/s"
        yield Answer(label, at(same[0].time), note, same[0])


def _forces(by: dict[str, list[Event]]) -> Iterator[Answer]:
    forces, loads, impacts = (by.get(kind, []) for kind in ("peak force", "peak load", "impact"))
    if forces:
        most = _largest(forces)
        yield Answer("largest force", newtons(most.size), f"{most.subject} at {at(most.time)}", most)
    if len(forces) > 1:
        for load in loads:
            yield Answer("on all links", newtons(load.size), f"at {at(load.time)}", load)
    if impacts:
        most = _largest(impacts)
        note = f"the largest {three(most.size)} N s, {most.subject} at {at(most.time)}"
        yield Answer("impacts", str(len(impacts)), note, most)
    else:
        yield Answer("impacts", "none", "")


def _limits(by: dict[str, list[Event]]) -> Iterator[Answer]:
    reached, past = by.get("limit", []), by.get("past limit", [])
    joints = dict.fromkeys(event.subject for event in reached)
    if not joints:
        yield Answer("joint limits", "none reached", "")
        return
    value = f"{len(joints)} joint" + ("s" if len(joints) > 1 else "")
    if past:
        far = _largest(past)
        side = "upper" if "upper" in far.text else "lower"
        note = f"{far.subject} furthest, {far.size:.3g} {far.unit} past its {side} one at {at(far.time)}"
        yield Answer("joint limits", value, note, far)
    else:
        yield Answer(
            "joint limits", value, f"{reached[0].subject} first, at {at(reached[0].time)}", reached[0]
        )


def _slips(by: dict[str, list[Event]]) -> Iterator[Answer]:
    slips, sticks = by.get("slip", []), by.get("stick", [])
    if not slips:
        yield Answer("slips", "none", "")
    elif sticks:
        most = _largest(sticks)
        begin = [x for x in slips if x.subject == most.subject and x.time < most.time][-1:]
        event = begin[0] if begin else most
        note = f"the longest {length(most.size)}, {most.subject} from {at(event.time)}"
        yield Answer("slips", str(len(slips)), note, event)
    else:
        yield Answer("slips", str(len(slips)), f"{slips[0].subject} from {at(slips[0].time)}", slips[0])


def length(way: float) -> str:
    """A length with three figures, in mm below 0.1 m."""
    return f"{way:.3g} m" if way >= 0.1 else f"{1e3 * way:.3g} mm"


def _collisions(met: list[Event]) -> Iterator[Answer]:
    if met:
        most = _largest(met)
        note = f"the largest {three(most.size)} N s, {most.subject} at {at(most.time)}"
        yield Answer("collisions", str(len(met)), note, most)


def _saturation(full: list[Event]) -> Iterator[Answer]:
    if full:
        joints = dict.fromkeys(event.subject for event in full)
        value = f"{len(joints)} actuator" + ("s" if len(joints) > 1 else "")
        yield Answer("saturation", value, f"{full[0].subject} first, at {at(full[0].time)}", full[0])


def _largest(events: list[Event]) -> Event:
    """The first of the largest."""
    return max(events, key=lambda event: event.size)


def _names(names: list[str]) -> str:
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + more


def _after(text: str, mark: str) -> str:
    return text.partition(mark)[2] or text
