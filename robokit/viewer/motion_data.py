"""A trajectory as a page shows it: frames for the eye, curves for the plots, figures of the run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from robokit.conventions import WORLD
from robokit.dynamics import center_of_mass
from robokit.model.robot import Robot
from robokit.sim.springs import SpringRecord
from robokit.sim.steppers import energies, momenta
from robokit.sim.trajectory import Trajectory
from robokit.viewer.curves import kept, packed, peaks_between, without_repeats
from robokit.viewer.payload_keys import (
    AttachmentData,
    CurveData,
    FigureData,
    FramesData,
    LinkForceData,
    PeaksData,
    SeriesData,
    StoppedData,
    TieData,
)

# ==== contact forces ==============================================================================
# Contact forces over time, of the whole robot and by link, with the peaks that single steps had.

MOST_WORK = 4_000_000
"""Bodies times steps up to which a page looks at every step: some ten seconds."""


class ForceHistory:
    """Force of the ground on each link: the impulse of single steps over the step.

    Attributes:
        t: (S,) ends of the steps, since the start [s].
        links: L names.
        force: on each link, world axes, (S, L, 3) [N].
        total: on the robot, (S, 3) [N].
        frames: which of the times are those of the page's frames.
        hold: duration of a step, through which each force holds until its time [s].
        left_out: whether there are steps that are not known, between the records.
    """

    def __init__(self, trajectory: Trajectory, chosen: np.ndarray) -> None:
        """The forces of every step, as far as they are known.

        Args:
            chosen: indices of the records that become frames, (T,).
        """
        t = trajectory.t - trajectory.t[0]
        steps = trajectory.step_forces if every_step(trajectory) else None
        self.hold = float(trajectory.summary.get("dt", 0.0))
        self.left_out = steps is None and trajectory.summary.get("steps", 0) >= len(t)
        if steps is not None:
            self.links = steps.links
            self.t = np.append(0.0, steps.t)
            self.force = np.concatenate([np.zeros((1, len(self.links), 3)), steps.force])
            self.total = self.force.sum(axis=1)
            self.frames = np.clip(np.searchsorted(self.t, t[chosen] - 1e-9), 0, len(self.t) - 1)
            return
        each = trajectory.contact_forces
        self.links, self.t, self.frames = tuple(each), t, chosen
        self.force = np.stack(list(each.values()), axis=1) if each else np.zeros((len(t), 0, 3))
        self.total = trajectory.contact_force


def every_step(trajectory: Trajectory) -> bool:
    """Whether a page looks at every step of the run: not at those of very long ones."""
    robot, steps = trajectory.robot, trajectory.summary.get("steps", 0)
    return robot is not None and steps * robot.nbodies <= MOST_WORK


def force_curve(forces: ForceHistory) -> CurveData:
    """The plot of the whole robot's contact force."""
    x, y, z = forces.total.T
    lines = {"size": np.linalg.norm(forces.total, axis=1), "x": x, "y": y, "z": z}
    keep = kept(list(lines.values()), forces.frames)
    title = "Contact force"
    if forces.left_out:
        title += ", only of the steps that were recorded"
    series = [SeriesData(name, packed(v[keep])) for name, v in lines.items()]
    return CurveData("force", title, "N", packed(forces.t[keep]), series, forces.hold)


def link_forces(forces: ForceHistory) -> list[LinkForceData]:
    """The size of the force on each link that ever touches the ground, the largest first."""
    sizes = np.linalg.norm(forces.force, axis=2)
    found = []
    for k in np.argsort(-sizes.max(axis=0, initial=0.0), kind="stable"):
        if not np.any(sizes[:, k]):
            break
        keep = kept([sizes[:, k]])
        t, y = without_repeats(forces.t[keep], sizes[keep, k])
        found.append(LinkForceData(forces.links[k], packed(t), packed(y), forces.hold))
    return found


# ==== The states of every step of a run: what curves show between its records =====================


@dataclass(frozen=True)
class StepStates:
    """States before each of S steps, and the last one."""

    robot: Robot  # the Robot
    t: np.ndarray  # times since the start, (S + 1,) [s]
    # q, v: the states, (S + 1, ...)
    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray | None  # the controller's joint forces, (S + 1, nv) [N m | N]; None without a controller
    records: np.ndarray  # which of them are the records of the run

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


# ==== motion ======================================================================================

LOSSES = {
    "contact": "ground",
    "friction": "joints",
    "stops": "limits",
    "collision": "collisions",
    "springs": "springs",
}
"""What dissipates energy: the name in the energy accounting -> the name on the page."""


def still_frame(robot: Robot, q: np.ndarray, poses: np.ndarray) -> FramesData:
    """The single frame of a pose.

    Args:
        q: configuration, (1, nq).
        poses: of its bodies, (1, nbodies + 1, 7).
    """
    return FramesData(1, 1, packed(np.zeros(1)), packed(poses[:, 1:]), packed(q), packed(_com(robot, q)))


def motion_frames(
    trajectory: Trajectory,
    robot: Robot,
    chosen: np.ndarray,
    poses: np.ndarray,
    sane: int,
    states: StepStates | None = None,
) -> FramesData:
    """The frames of a motion.

    Args:
        chosen: indices of the samples that become frames, (T,).
        poses: of the bodies at these samples, (T, nbodies + 1, 7).
        sane: frames at the start that can be trusted.
        states: of every step, if they are known.
    """

    def frames(values: np.ndarray | None) -> str | None:
        return None if values is None else packed(values[chosen])

    count, points, normals = touching(trajectory, chosen)
    met_count, met = meeting(trajectory, chosen)
    return FramesData(
        count=len(chosen),
        sane=sane,
        t=packed(trajectory.t[chosen] - trajectory.t[0]),
        poses=packed(poses[:, 1:]),
        q=packed(trajectory.q[chosen]),
        com=packed(_com(robot, trajectory.q[chosen])),
        v=frames(trajectory.v),
        tau=frames(joint_forces(trajectory)),
        momentum=frames(trajectory.momentum),
        force=frames(trajectory.contact_force) if np.any(trajectory.contact_force) else None,
        contact_count=count,
        contacts=points,
        contact_normals=normals,
        met_count=met_count,
        met=met,
        peaks=peaks(trajectory, chosen, states),
    )


def ties(robot: Robot, springs: Sequence[SpringRecord] = ()) -> list[TieData]:
    """Springs between points, then rods that close loops."""
    found = [TieData(True, [_tied(robot, *end) for end in each.ends]) for each in springs if each.ends]
    for joint in robot.loop_joints:
        if joint.kind == "distance":
            ends = (
                (joint.predecessor, joint.predecessor_placement),
                (joint.successor, joint.successor_placement),
            )
            found.append(TieData(False, [_tied(robot, link, at.position) for link, at in ends]))
    return found


def _tied(robot: Robot, link: str, at: Sequence[float] | np.ndarray) -> AttachmentData:
    """A point of a link as a point of its body."""
    if link == WORLD and link not in robot.link_index:
        return AttachmentData(0, np.asarray(at, float).tolist())
    body, placement = robot.frame(link)
    return AttachmentData(body, (placement.rotation @ np.asarray(at, float) + placement.position).tolist())


def touching(trajectory: Trajectory, chosen: np.ndarray) -> tuple[str | None, str | None, str | None]:
    """How many contact points touch at each frame, their positions and forces, and their normals.

    Most points of most frames touch nothing: they are left out. Without a ground all three are None; the
    normals are where all are that of the ground's plane.
    """
    contacts = trajectory.contacts
    if contacts is None:
        return None, None, None
    points, forces = contacts.points[chosen], contacts.forces[chosen]
    touch = np.any(forces != 0.0, axis=-1)
    normals = None
    if contacts.normals is not None and trajectory.ground is not None:
        own = contacts.normals[chosen][touch]
        level = trajectory.ground.plane and np.allclose(own, trajectory.ground.up, rtol=0.0, atol=1e-6)
        normals = None if level else packed(own)
    return packed(touch.sum(axis=1)), packed(np.concatenate([points[touch], forces[touch]], axis=1)), normals


def meeting(trajectory: Trajectory, chosen: np.ndarray) -> tuple[str | None, str | None]:
    """How many contacts between bodies there are at each frame, and their places, forces and normals."""
    contacts = trajectory.body_contacts
    if contacts is None or contacts.normals is None or not contacts.links:
        return None, None
    rows = np.concatenate([contacts.points, contacts.forces, contacts.normals], axis=2)[chosen]
    touch = np.any(rows[..., 3:6] != 0.0, axis=-1)
    return packed(touch.sum(axis=1)), packed(rows[touch])


def joint_forces(trajectory: Trajectory) -> np.ndarray | None:
    """The controller's forces and those of actuators, which hold them where they are, (T, nv); or None."""
    tau, driven = trajectory.tau, trajectory.actuator_force
    if driven is None:
        return tau
    return np.where(np.any(driven, axis=0), driven, 0.0 if tau is None else tau)


def peaks(trajectory: Trajectory, chosen: np.ndarray, states: StepStates | None) -> list[PeaksData]:
    """What coordinates, velocities and joint forces do between frames: at every step, if known.

    Forces of actuators are means between records.
    """
    t = trajectory.t - trajectory.t[0]
    lines = {"q": trajectory.q, "v": trajectory.v, "tau": joint_forces(trajectory)}
    known = {}
    if states is not None:
        known = {"q": states.q, "v": states.v}
        if trajectory.actuator_force is None and states.tau is not None:
            known["tau"] = states.tau
    found = []
    for line, recorded in lines.items():
        if recorded is None:
            continue
        times, values = (states.t, known[line]) if states is not None and line in known else (t, recorded)
        for index, (at, y) in enumerate(peaks_between(times, values, t[chosen])):
            if len(at):
                found.append(PeaksData(line, index, packed(at), packed(y)))
    return found


def curves(trajectory: Trajectory, forces: ForceHistory, states: StepStates | None = None) -> list[CurveData]:
    """The plots, thinned to a screen's width so that every peak stays.

    Args:
        forces: of the ground.
        states: of every step, if they are known.
    """
    t = trajectory.t - trajectory.t[0]

    def plot(
        key: str, title: str, unit: str, lines: dict[str, np.ndarray], every: StepStates | None = None
    ) -> CurveData:
        keep = kept(list(lines.values())) if every is None else every.shown(list(lines.values()))
        series = [SeriesData(name, packed(y[keep])) for name, y in lines.items()]
        return CurveData(key, title, unit, packed((t if every is None else every.t)[keep]), series)

    h = trajectory.momentum if states is None else states.momenta()
    plots = [plot("energy", "Energy", "J", energy_lines(trajectory, states), states)]
    if np.any(forces.total):
        plots.append(force_curve(forces))
    for key, title, unit, first in (
        ("linear", "Linear momentum", "N s", 3),
        ("angular", "Angular momentum about the CoM", "N m s", 0),
    ):
        plots.append(plot(key, title, unit, dict(zip("xyz", h[:, first : first + 3].T, strict=True)), states))
    springs = trajectory.springs
    if springs:
        at_joints = {each.points is None for each in springs}
        unit = "N" if at_joints == {False} else "N m | N"
        plots.append(plot("springs", "Tension of springs", unit, {each.name: each.force for each in springs}))
        unit = "m" if at_joints == {False} else "rad | m"
        plots.append(plot("lengths", "Length of springs", unit, {each.name: each.length for each in springs}))
    rates = powers(trajectory)
    if rates:
        plots.append(plot("power", "Power, mean since the sample before", "W", rates))
    drift = {"drift": trajectory.energy.total - trajectory.energy.total[0]}
    plots.append(plot("drift", "Energy balance: total minus its initial value", "J", drift))
    return plots


def energy_lines(trajectory: Trajectory, states: StepStates | None) -> dict[str, np.ndarray]:
    """Energies at every step, or at the records where the steps are not known [J].

    Between records work and total are on straight lines, and what is dissipated closes the balance.
    """
    energy, t = trajectory.energy, trajectory.t - trajectory.t[0]
    kinetic, potential, dissipated = energy.kinetic, energy.potential, energy.dissipated
    work, total, stored = energy.work, energy.total, energy.springs
    if states is not None:
        with np.errstate(all="ignore"):
            kinetic, potential = states.energies()
            work, total = np.interp(states.t, t, work), np.interp(states.t, t, total)
            if stored is not None:
                stored = np.interp(states.t, t, stored)
            dissipated = total + work - kinetic - potential - (0.0 if stored is None else stored)
    parts = {"kinetic": kinetic, "potential": potential, "dissipated": dissipated}
    if stored is not None:
        parts["springs"] = stored
    if np.any(energy.work):
        parts["work"] = work
    return parts | {"total": total}


def powers(trajectory: Trajectory) -> dict[str, np.ndarray]:
    """What gives energy to the robot, and what takes it, (T,) each [W]; those that are not zero all the time.

    Mean since the record before; 0 at the start.
    """
    energy = trajectory.energy
    sums = {"work": energy.work}
    for cause, lost in (trajectory.losses or {"dissipated": energy.dissipated}).items():
        sums[LOSSES.get(cause, cause)] = -lost
    found = {}
    for name, y in sums.items():
        with np.errstate(all="ignore"):
            rate = np.diff(y, prepend=y[:1]) / np.diff(trajectory.t, prepend=trajectory.t[0] - 1.0)
        if np.any(rate):
            found[name] = rate
    return found


def summary(trajectory: Trajectory) -> list[FigureData]:
    """Numbers and texts of the run's summary; the energy balance where the summary has none."""
    total = trajectory.energy.total
    given = {"energy_balance": float(np.abs(total - total[0]).max())} | trajectory.summary
    kept = []
    for key, value in given.items():
        if isinstance(value, str):
            kept.append(FigureData(key, value))
        elif isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
            kept.append(FigureData(key, float(value)))
    return kept


def stopped(trajectory: Trajectory) -> StoppedData | None:
    """When and why a run ended before its time, from ``summary["stopped"]``; None where it did not."""
    found = trajectory.summary.get("stopped")
    if not isinstance(found, Mapping):
        return None
    time = found.get("time")
    if not isinstance(time, (int, float)) or not math.isfinite(time):
        time = trajectory.t[-1]
    return StoppedData(float(time), str(found.get("reason", "")), str(found.get("remedy", "")))


def _com(robot: Robot, q: np.ndarray) -> np.ndarray:
    """Centre of mass at each configuration, (T, 3) [m]; NaN for a robot without mass."""
    if not robot.total_mass > 0:
        return np.full((len(q), 3), np.nan)
    return np.asarray(center_of_mass(robot, q)).reshape(len(q), 3)
