"""Frames for steps that a page must show as they were, though nobody recorded them: the hardest contacts."""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from robokit.sim.record import Trajectory
from robokit.sim.record.recorded import even, momenta
from robokit.sim.record.replay import Replay
from robokit.sim.stepping.contact_steps import stepper
from robokit.viewer.data.force_data import every_step

MOST = {"first contact": 10, "peak load": 1, "peak force": 12, "impact": 12}
"""Events of each kind that get a frame: the largest ones."""

LONGEST_GAP = 2048
"""Steps between two records, at most, that are taken once more to reach one of them."""


def with_key_frames(trajectory: Trajectory, chosen: np.ndarray) -> tuple[Trajectory, np.ndarray]:
    """The trajectory with the states after its hardest steps among the records.

    Energies and what needs them stay those of the records as they were: only what frames show is there.

    Args:
        trajectory: with its robot.
        chosen: indices of the records that become frames, (T,).

    Returns:
        It, and the indices of the frames, (T + new,), those of the new records among them. Its joint forces
        at a new record are those of the record after it.
    """
    steps = key_steps(trajectory)
    if not steps:
        return trajectory, chosen
    assert trajectory.program is not None and trajectory.robot is not None
    assert trajectory.carried is not None and trajectory.inputs is not None
    dt, marks = trajectory.summary["dt"], trajectory.marks
    records = trajectory.q, trajectory.v, None, trajectory.carried
    states, last_steps, places = [], [], []
    kernel = stepper(trajectory.program)
    for step in steps:
        k = bisect.bisect_right(marks, step) - 1
        part = slice(k, k + 2)
        start = trajectory.q[part], trajectory.v[part], trajectory.carried[part]
        replay = Replay(trajectory.program, dt, marks[part], *start, trajectory.inputs, kernel=kernel)
        rows = [joined(x) for x in zip(*(block for _, block in replay.blocks()), strict=True)]
        at = min(step - marks[k], len(rows[0]) - 1)  # where nothing moves one row stands for all
        last_steps.append([x[at] for x in rows])
        whole = at + 1 == len(rows[0])
        after = zip(records, rows[:4], strict=True)
        states.append([x[k + 1] if whole else row[at + 1] for x, row in after if x is not None])
        places.append(k + 1)
    q, v, carried = (even(x) for x in zip(*states, strict=True))

    def among(old: np.ndarray, new: np.ndarray) -> np.ndarray:
        if old.ndim == 1 or old.shape[1] == new.shape[1]:
            return np.insert(old, places, new, axis=0)
        rows = even([*old, *new])
        return np.insert(rows[: len(old)], places, rows[len(old) :], axis=0)

    def next_record(old: np.ndarray | None) -> np.ndarray | None:
        return None if old is None else among(old, old[places])

    forces = trajectory.step_forces
    assert forces is not None
    found = replace(
        trajectory,
        t=among(trajectory.t, dt * (np.array(steps) + 1)),
        q=among(trajectory.q, q),
        v=among(trajectory.v, v),
        momentum=among(trajectory.momentum, momenta(trajectory.robot, q, v)),
        contact_force=among(trajectory.contact_force, forces.total[steps]),
        marks=among(np.array(marks), np.array(steps) + 1).tolist(),
        carried=among(trajectory.carried, carried),
        given=[among(x, x[places]) for x in trajectory.given],
        tau=next_record(trajectory.tau),
        actuator_force=next_record(trajectory.actuator_force),
        last_steps=[
            among(old, even(new))
            for old, new in zip(trajectory.last_steps, zip(*last_steps, strict=True), strict=True)
        ],
    )
    known = ("step_facts", "step_forces", "events")
    found.__dict__.update({name: vars(trajectory)[name] for name in known if name in vars(trajectory)})
    new = np.array(places) + np.arange(len(places))
    moved = chosen + np.searchsorted(places, chosen, side="right")
    return found, np.union1d(moved, new)


def joined(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Rows of several arrays, of as many numbers as the longest has."""
    return even([row for part in parts for row in part])


def key_steps(trajectory: Trajectory) -> list[int]:
    """Numbers of the hardest steps between the records, ascending."""
    if trajectory.program is None or trajectory.program.ground is None or not every_step(trajectory):
        return []
    if trajectory.inputs is None or np.diff(trajectory.marks).max(initial=0) > LONGEST_GAP:
        return []
    dt, marks, found = trajectory.summary["dt"], set(trajectory.marks), set()
    for kind, most in MOST.items():
        events = sorted((e for e in trajectory.events if e.kind == kind), key=lambda event: -event.size)
        # An event's time is the middle of its step, or of a part of it.
        found |= {math.floor(event.time / dt) for event in events[:most]}
    last = trajectory.marks[-1]
    return sorted(step for step in found if 0 <= step < last and step + 1 not in marks)
