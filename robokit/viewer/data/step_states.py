"""The states of every step of a run: what curves show between its records."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from robokit.model.robot import Robot
from robokit.sim.steppers import energies, momenta
from robokit.sim.trajectory import Trajectory
from robokit.viewer.data.force_data import every_step
from robokit.viewer.data.thin_curves import kept, peaks_between


@dataclass(frozen=True)
class StepStates:
    """States before each of S steps, and the last one.

    Attributes:
        robot: the Robot.
        t: times since the start, (S + 1,) [s].
        q, v: the states, (S + 1, ...).
        tau: the controller's joint forces, (S + 1, nv) [N m | N]; None without a controller.
        records: which of them are the records of the run.
    """

    robot: Robot
    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray | None
    records: np.ndarray

    def energies(self) -> tuple[np.ndarray, np.ndarray]:
        """Kinetic and potential energy, (S + 1,) each [J]."""
        first, counts = self._different()
        kinetic, potential = energies(self.robot, self.q[first], self.v[first])
        return np.repeat(kinetic, counts), np.repeat(potential, counts)

    def momenta(self) -> np.ndarray:
        """Centroidal momentum [angular; linear], world axes, (S + 1, 6) [N m s; N s]."""
        first, counts = self._different()
        return np.repeat(momenta(self.robot, self.q[first], self.v[first]), counts, axis=0)

    def shown(self, lines: Sequence[np.ndarray]) -> np.ndarray:
        """Indices that a plot of several lines keeps: records, and the peaks between them.

        Args:
            lines: (S + 1,) each.
        """
        keep = self.records[kept([y[self.records] for y in lines])]
        peaks = peaks_between(self.t, np.stack(lines, axis=1), self.t[keep])
        return np.unique(np.concatenate([keep, *(np.searchsorted(self.t, times) for times, _ in peaks)]))

    def _different(self) -> tuple[np.ndarray, np.ndarray]:
        """Indices of states unlike the one before, and for how many each stands: a robot at rest has few."""
        rows = np.concatenate([self.q, self.v], axis=1)
        first = np.flatnonzero(np.append(True, np.any(rows[1:] != rows[:-1], axis=1)))
        return first, np.diff(np.append(first, len(rows)))


def step_states(trajectory: Trajectory) -> StepStates | None:
    """The states of a run of which a page looks at every step; None of others."""
    facts = trajectory.step_facts if every_step(trajectory) else None
    if facts is None or trajectory.robot is None or not len(facts.v):
        return None
    t = trajectory.t - trajectory.t[0]
    times = np.append(trajectory.summary["dt"] * facts.edges[:-1], t[-1])
    tau = None if trajectory.tau is None else np.concatenate([facts.tau, trajectory.tau[-1:]])
    return StepStates(
        trajectory.robot,
        times,
        np.concatenate([facts.q, trajectory.q[-1:]]),
        np.concatenate([facts.v, trajectory.v[-1:]]),
        tau,
        np.unique(np.clip(np.searchsorted(times, t - 1e-9), 0, len(facts.v))),
    )


# ---- frames of the hardest contacts --------------------------------------------------------------


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
