"""Events of a run, what they answer, and the run in a few lines of text.

Each kind of event is in contact/measures.py.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from robokit.contact.measures import MONITORS, SUBJECTS, Answer, Event, RunEvents
from robokit.model.robot import Robot
from robokit.sim.ground import Ground
from robokit.sim.joint_forces import assumed_damping
from robokit.sim.record.step_facts import StepFacts, Subjects
from robokit.sim.springs import SpringRecord
from robokit.sim.step_kernel import Program

__all__ = ["Answer", "Event", "answers", "events_of", "from_rows", "report"]


# ---- events ------------------------------------------------------------------------------------------------


def events_of(program: Program, facts: StepFacts, summary: Mapping[str, Any]) -> list[Event]:
    """The events of a run in the order of time.

    Args:
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


# ---- a run in a few lines ----------------------------------------------------------------------------------


WIDTH = 80
"""Columns of a report's lines."""

LABEL = 13
"""Columns of the first word of a line."""

CORRECTED = {
    "energy_corrected": "J",
    "momentum_corrected_linear": "N s",
    "momentum_corrected_angular": "N m s",
}
"""Figures of the summary that say what the steps missed and was corrected, with their units."""


class Run(Protocol):
    """What of a trajectory is reported; see there."""

    t: np.ndarray
    energy: Any
    contact_force: np.ndarray
    robot: Robot | None
    ground: Ground | None
    summary: dict[str, Any]

    @property
    def springs(self) -> tuple[SpringRecord, ...]:
        """See there."""

    def sampling(self) -> str:
        """How often states were recorded, in words."""


def report(trajectory: Run) -> list[str]:
    """The lines; the answers are among them once ``events`` are computed."""
    s = trajectory.summary
    name = trajectory.robot.name if trajectory.robot is not None else s.get("robot", "?")
    first = f"{name}: {trajectory.t[-1]:g} s in {s.get('steps', 0):,} steps of {1e3 * s.get('dt', 0.0):g} ms"
    if s.get("interrupted"):
        first += " (interrupted)"
    elif "stopped" in s:
        first += " (stopped)"
    lines = [first]
    for label, text in _entries(trajectory):
        line, indent = f"  {label:<{LABEL}} {text}", (LABEL + 3) * " "
        lines += textwrap.wrap(line, WIDTH, subsequent_indent=indent, break_on_hyphens=False)
    return lines


def _entries(trajectory: Run) -> Iterator[tuple[str, str]]:
    """(label, text) of each line but the first."""
    s, e = trajectory.summary, trajectory.energy
    if s.get("dt_chosen"):
        yield "time step", f"{1e3 * s['dt']:g} ms, chosen for the robot"
    if "accuracy" in s:
        parts = f"{s['parts_taken']:,} of {1e3 * s['shortest_part']:.3g} to {1e3 * s['longest_part']:.3g} ms"
        missed = f"; {s['parts_not_met']} shortest ones missed it" if s["parts_not_met"] else ""
        yield "parts", f"{parts} to an accuracy of {s['accuracy']:g}{missed}"
    if s.get("steps_per_second"):
        yield "speed", f"{s['steps_per_second']:,.0f} steps/s ({s.get('integrator', '?')})"
    ends = f"{e.mechanical[0]:.4g} J at the start, {e.mechanical[-1]:.4g} J at the end"
    yield "energy", f"{ends}, {e.dissipated[-1]:.4g} J dissipated"
    yield "balance", f"energy {s.get('energy_balance', math.nan):.2e} J{_momentum(trajectory)}"
    corrected = ", ".join(f"{s[k]:.2e} {unit}" for k, unit in CORRECTED.items() if k in s)
    if corrected:
        yield "corrected", f"{corrected}, summed over the steps"
    if "loop_gap" in s:
        yield "loops", f"closed to {s['loop_gap']:.2g} m"
    if trajectory.springs:
        most = max(trajectory.springs, key=lambda each: float(np.abs(each.force).max(initial=0.0)))
        unit = "N m" if most.points is None else "N"
        held = "" if e.springs is None else f"; {e.springs[-1]:.4g} J stored at the end"
        largest = f"{np.abs(most.force).max():.4g} {unit} in {most.name!r}"
        yield "springs", f"{len(trajectory.springs)}, at most {largest}{held}"
    yield from _contact(trajectory)
    yield from _answers(trajectory)
    if s.get("saturated"):
        shares = [f"{name} {100 * share:.3g} %" for name, share in list(s["saturated"].items())[:2]]
        more = f" and {len(s['saturated']) - 2} more" if len(s["saturated"]) > 2 else ""
        yield "saturated", f"{', '.join(shares)}{more} of the time"
    if s.get("estimate"):
        yield "estimate", s["estimate"]["words"]
    if s.get("default_damping"):
        joints = f"{s.get('default_damping_joints', 0)} joints that have none"
        yield "damping", f"{assumed_damping(s['default_damping'])} assumed in {joints}"


def _momentum(trajectory: Run) -> str:
    s = trajectory.summary
    if "momentum_balance_linear" not in s:
        return ""
    linear, angular = (s[f"momentum_balance_{k}"] for k in ("linear", "angular"))
    return f", momentum {linear:.2e} N s and {angular:.2e} N m s"


def _contact(trajectory: Run) -> Iterator[tuple[str, str]]:
    s, robot = trajectory.summary, trajectory.robot
    if trajectory.ground is not None:
        fz, deepest = trajectory.contact_force[-1, 2], 1e3 * s.get("deepest_penetration", math.nan)
        yield "contact", f"{fz:.4g} N upward at the end, deepest penetration {deepest:.2g} mm"
        if s.get("shape_error"):
            yield "shapes", f"meshes touch within {1e3 * s['shape_error']:.2g} mm of their hulls"
    if s.get("self_collision_pairs"):
        pairs = s["self_collision_pairs"]
        yield "bodies", f"{pairs} pair{'s' if pairs > 1 else ''} that can collide"
    elif trajectory.ground is not None and robot is not None and robot.nbodies > 1:
        yield "bodies", "of the robot pass through each other (self-collision is off)"


def _answers(trajectory: Run) -> Iterator[tuple[str, str]]:
    known = trajectory.__dict__.get("events", trajectory.__dict__.get("sampled_events"))
    if known is None:
        return
    for answer in answers(known, float(trajectory.t[-1]), trajectory.ground is not None):
        yield answer.label, str(answer)
    if "events" not in trajectory.__dict__:
        yield "events", f"from the recorded states, {trajectory.sampling()}, and peaks"
