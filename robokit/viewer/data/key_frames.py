"""Frames for steps that a page must show as they were, though nobody recorded them: the hardest contacts."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from robokit.sim.record import Trajectory
from robokit.sim.stepping.energies import momenta
from robokit.viewer.data.force_data import every_step

MOST = {"first contact": 10, "peak load": 1, "peak force": 12, "impact": 12}
"""Events of each kind that get a frame: the largest ones."""


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
    facts, forces = trajectory.step_facts, trajectory.step_forces
    assert trajectory.robot is not None and facts is not None and forces is not None
    after, marks = np.array(steps) + 1, np.array(trajectory.marks)
    rows = np.searchsorted(facts.edges, after)
    q, v = (np.concatenate(x)[rows] for x in ((facts.q, trajectory.q[-1:]), (facts.v, trajectory.v[-1:])))
    places = np.searchsorted(marks, after)

    def among(old: np.ndarray, new: np.ndarray) -> np.ndarray:
        return np.insert(old, places, new, axis=0)

    def next_record(old: np.ndarray | None) -> np.ndarray | None:
        return None if old is None else among(old, old[places])

    found = replace(
        trajectory,
        t=among(trajectory.t, trajectory.summary["dt"] * after),
        q=among(trajectory.q, q),
        v=among(trajectory.v, v),
        momentum=among(trajectory.momentum, momenta(trajectory.robot, q, v)),
        contact_force=among(trajectory.contact_force, forces.total[steps]),
        marks=among(marks, after).tolist(),
        tau=next_record(trajectory.tau),
        actuator_force=next_record(trajectory.actuator_force),
    )
    known = ("step_facts", "step_forces", "events")
    found.__dict__.update({name: vars(trajectory)[name] for name in known if name in vars(trajectory)})
    new = places + np.arange(len(places))
    moved = chosen + np.searchsorted(places, chosen, side="right")
    return found, np.union1d(moved, new)


def key_steps(trajectory: Trajectory) -> list[int]:
    """Numbers of the hardest steps between the records, ascending."""
    if trajectory.program is None or trajectory.program.ground is None or not every_step(trajectory):
        return []
    if trajectory.inputs is None:
        return []
    dt, marks, found = trajectory.summary["dt"], set(trajectory.marks), set()
    for kind, most in MOST.items():
        events = sorted((e for e in trajectory.events if e.kind == kind), key=lambda event: -event.size)
        # An event's time is the middle of its step, or of a part of it.
        found |= {math.floor(event.time / dt) for event in events[:most]}
    last = trajectory.marks[-1]
    return sorted(step for step in found if 0 <= step < last and step + 1 not in marks)
