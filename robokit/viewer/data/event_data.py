"""The events of a run as a page shows them: the important ones, and tables by link and by joint."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence

from robokit.contact.measures import KINDS, Answer, Event, EventKind, length, newtons, side_of, three
from robokit.errors import RobokitError
from robokit.model.robot import Robot
from robokit.sim.events import answers as answers_of
from robokit.sim.joint_forces import assumed_damping
from robokit.sim.run_inputs import LARGEST_CONTACT_STEP
from robokit.sim.run_results import UNBALANCED
from robokit.sim.starts import DEEP
from robokit.sim.trajectory import Trajectory
from robokit.viewer.data.force_data import every_step
from robokit.viewer.payload_keys import (
    AnswerData,
    EventKindData,
    EventsData,
    HappeningData,
    ReachedData,
    TouchedData,
)

MOST_EVENTS = 500
"""Events of a page: as many as a reader scrolls through."""

UNKNOWN = EventKind("", "Contacts", len(KINDS), "")
"""Stands for kinds in files of other versions."""


def events(trajectory: Trajectory) -> EventsData | None:
    """The events of a run, its answers and tables.

    None of a trajectory whose file has no events. The first limit of each joint and side is always there,
    and the events that the answers are about. Of very long runs it is the recorded states that count.

    Args:
        trajectory: with its robot.
    """
    robot = trajectory.robot
    assert robot is not None
    whole = "events" in vars(trajectory) or every_step(trajectory)
    try:
        found = trajectory.events if whole else trajectory.sampled_events
    except RobokitError:
        return None
    answers = answers_of(found, float(trajectory.t[-1]), trajectory.ground is not None)
    needed = [answer.event for answer in answers if answer.event is not None]
    kept = important(found, needed, MOST_EVENTS)
    bodies = _bodies(robot)
    return EventsData(
        happenings=[_happening(event, robot, bodies) for event in kept],
        left_out=len(found) - len(kept),
        answers=answer_rows(answers, kept),
        sampled="" if whole else trajectory.sampling(),
        touched=_touched(found, kept),
        reached=_reached(found, kept),
        assumed=assumed(trajectory),
        books=books(trajectory),
    )


def important(events: Sequence[Event], needed: Sequence[Event], most: int) -> list[Event]:
    """At most so many events and those that must not miss, in the order of time.

    Each kind keeps its largest; no kind crowds out another.
    """
    if len(events) <= most:
        return list(events)
    must, seen = {id(event) for event in needed}, set()
    for event in events:
        side = (event.subject, side_of(event)) if event.kind == "limit" else None
        if kind_of(event).once or (side is not None and side not in seen):
            must.add(id(event))
        seen.add(side)
    kinds = defaultdict(list)
    for event in events:
        kinds[event.kind].append(event)
    rank = {}
    for same in kinds.values():
        for k, event in enumerate(sorted(same, key=lambda event: -abs(event.size))):
            rank[id(event)] = k
    rest = sorted((event for event in events if id(event) not in must), key=lambda event: rank[id(event)])
    must |= {id(event) for event in rest[: max(0, most - len(must))]}
    return [event for event in events if id(event) in must]


def kind_of(event: Event) -> EventKind:
    """What is known of its kind."""
    return KINDS.get(event.kind, UNKNOWN)


def event_kinds() -> list[EventKindData]:
    """All kinds, the most important first."""
    return [EventKindData(x.name, x.family) for x in sorted(KINDS.values(), key=lambda kind: kind.rank)]


def _bodies(robot: Robot) -> dict[str, tuple[int, str]]:
    """Body and link that are selected with a name of a joint or link; links come first."""
    joints = {joint.name: (joint.body, joint.child_link) for joint in robot.body_joints}
    names = {robot.body_name(i): (i, robot.body_name(i)) for i in range(robot.nbodies + 1)}
    return joints | names | {link.name: (link.body, link.name) for link in robot.links}


def _happening(event: Event, robot: Robot, bodies: dict[str, tuple[int, str]]) -> HappeningData:
    """An event with the body that it happened to."""
    body: int | None = None
    link: str | None = None
    about = kind_of(event).subject
    if about in ("joint", "drive"):
        joint = next((one for one in robot.body_joints if one.name == event.subject), None)
        if joint is not None:
            body, link = joint.body, joint.child_link
    elif about != "robot":
        body, link = bodies.get(event.subject, (None, None))
    return HappeningData(event.time, event.kind, event.subject, body, link, event.text, _size(event))


def _size(event: Event) -> str:
    """The size of an event in words."""
    if not event.unit or not math.isfinite(event.size):
        return ""
    if event.unit == "N":
        return newtons(event.size)
    return length(event.size) if event.unit == "m" else f"{three(event.size)} {event.unit}"


def _touched(events: Sequence[Event], kept: Sequence[Event]) -> list[TouchedData]:
    """Links that touched the ground, in the order of their first contact."""
    impacts = Counter(event.subject for event in events if event.kind == "impact")
    slid: dict[str, float] = defaultdict(float)
    for event in events:
        if event.kind == "stick":
            slid[event.subject] += event.size
    peaks = {event.subject: k for k, event in enumerate(kept) if event.kind == "peak force"}
    return [
        TouchedData(
            event.subject,
            k,
            peaks.get(event.subject),
            impacts[event.subject],
            length(slid[event.subject]) if slid[event.subject] else "",
        )
        for k, event in enumerate(kept)
        if event.kind == "first contact"
    ]


def _reached(events: Sequence[Event], kept: Sequence[Event]) -> list[ReachedData]:
    """Limits that joints reached, the one that is furthest past it first."""
    times: Counter[tuple[str, str]] = Counter()
    forces: dict[tuple[str, str], Event] = {}
    for event in events:
        key = event.subject, side_of(event)
        if event.kind == "limit":
            times[key] += 1
        if event.kind == "limit left" and (key not in forces or event.size > forces[key].size):
            forces[key] = event
    first: dict[tuple[str, str], int] = {}
    past: dict[tuple[str, str], int] = {}
    for k, event in enumerate(kept):
        if event.kind in ("limit", "past limit"):
            (first if event.kind == "limit" else past).setdefault((event.subject, side_of(event)), k)
    rows = [
        ReachedData(
            joint,
            side,
            k,
            past.get((joint, side)),
            times[joint, side],
            _size(forces[joint, side]) if (joint, side) in forces else "",
        )
        for (joint, side), k in first.items()
    ]
    return sorted(rows, key=lambda row: -kept[row.past].size if row.past is not None else 0.0)


# ---- answers, assumptions, energy and momentum accounting ----------------------------------------


def answer_rows(answers: Sequence[Answer], kept: Sequence[Event]) -> list[AnswerData]:
    """The answers, with the places of their events among those of the page.

    Args:
        answers: of the run.
        kept: the page's events; those of the answers are among them.
    """
    places = {id(event): k for k, event in enumerate(kept)}
    return [
        AnswerData(x.label, x.value, x.note, None if x.event is None else places[id(x.event)], False)
        for x in answers
    ]


def assumed(trajectory: Trajectory) -> list[AnswerData]:
    """The assumptions of the run, in words; doubtful ones are marked."""
    s, rows = trajectory.summary, []

    def say(label: str, value: str, note: str = "", doubtful: bool = False) -> None:
        rows.append(AnswerData(label, value, note, None, doubtful))

    if "dt" in s:
        note = "chosen for the robot" if s.get("dt_chosen") else "as given"
        long = trajectory.ground is not None and s["dt"] > LARGEST_CONTACT_STEP
        if long:
            note = f"long for contact: take {1e3 * LARGEST_CONTACT_STEP:g} ms or less"
        say("time step", f"{1e3 * s['dt']:g} ms", note, long)
    if s.get("interrupted"):
        say("ended", f"at {trajectory.t[-1]:.4g} s", "interrupted early", True)
    if "integrator" in s:
        say("method", str(s["integrator"]))
    robot = trajectory.robot
    pairs = s.get("self_collision_pairs", 0)
    if pairs:
        say("self-collision", "on", f"{pairs} pair{'s' if pairs > 1 else ''} of bodies")
    elif robot is not None and robot.nbodies > 1:
        say("self-collision", "off", "links of the robot pass through each other")
    if s.get("default_damping"):
        words = assumed_damping(s["default_damping"])
        joints = s.get("default_damping_joints", 0)
        say("damping", words, f"assumed in {joints} joint{'' if joints == 1 else 's'} that have none")
    if trajectory.ground is not None:
        mu = trajectory.ground.friction
        say("friction", f"{mu:.3g}" if isinstance(mu, (int, float)) else "by link", "of the ground")
    if s.get("shape_error"):
        say("shapes", f"within {1e3 * s['shape_error']:.2g} mm", "of the convex hulls of meshes")
    return rows


def books(trajectory: Trajectory) -> list[AnswerData]:
    """Errors of the energy and momentum balance, and the depth of contacts."""
    s, rows = trajectory.summary, []

    def say(label: str, value: str, note: str = "", doubtful: bool = False) -> None:
        rows.append(AnswerData(label, value, note, None, doubtful))

    if "energy_balance" in s:
        error, moved = s["energy_balance"], s.get("energy_exchanged", 0.0)
        share = f"{100 * error / moved:.2g} % of the energy that moved" if moved > 0.0 else ""
        say("energy", f"{error:.3g} J", share, moved > 0.0 and error > UNBALANCED * moved)
    if "momentum_balance_linear" in s:
        say("momentum", f"{s['momentum_balance_linear']:.3g} N s", "largest error")
        say("angular", f"{s['momentum_balance_angular']:.3g} N m s", "largest error of the angular momentum")
    for key, unit, what in CORRECTED:
        if s.get(key):
            say("corrected", f"{s[key]:.3g} {unit}", f"{what}, summed over the steps")
    for key, what in TAKEN:
        if s.get(key):
            say(what, f"{s[key]:.4g} J", "dissipated")
    if "deepest_penetration" in s:
        deep = s["deepest_penetration"]
        say("deepest point", f"{1e3 * deep:.2g} mm", "up to 10 mm is fine", deep > DEEP)
    if "residual_largest" in s:
        say("residual", f"{s['residual_largest']:.2g}", "largest, relative to the impulses of a step")
    if s.get("steps_not_settled"):
        say("unconverged", f"{s['steps_not_settled']}", "steps that did not converge", True)
    if "loop_gap" in s:
        say("loops", f"{s['loop_gap']:.2g} m", "largest gap")
    return rows


CORRECTED = (
    ("energy_corrected", "J", "energy"),
    ("momentum_corrected_linear", "N s", "momentum"),
    ("momentum_corrected_angular", "N m s", "angular momentum"),
)
"""Entries of the summary, their units, and what was corrected."""

TAKEN = (
    ("dissipated_by_contact", "in contacts"),
    ("dissipated_by_friction", "in joints"),
    ("dissipated_by_stops", "at stops"),
    ("dissipated_by_collision", "between links"),
)
"""Entries of the summary [J], and where that energy went."""
