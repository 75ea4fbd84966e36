"""The instants of a motion whose algorithms the page shows, and their arguments there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robokit.dynamics.run import body_forces
from robokit.model.robot import Robot
from robokit.sim.trajectory import Trajectory


@dataclass(frozen=True)
class Instant:
    """A state, with what acts on it.

    Attributes:
        t: since the start of the motion [s].
        why: what is special about it, or "".
        q, v, tau: configuration, velocity, joint forces, (nq,) and (nv,).
        f_ext: of the ground on the bodies 0..N in their coordinates, 6 (N + 1) numbers [N m; N]; or None.
    """

    t: float
    why: str
    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray
    f_ext: np.ndarray | None = None


def rest(robot: Robot, q: np.ndarray) -> list[Instant]:
    """The single instant of a pose: nothing moves, no joint is driven."""
    zero = np.zeros(robot.nv)
    return [Instant(0.0, "at rest", np.asarray(q, dtype=float), zero, zero)]


def instants(
    trajectory: Trajectory, robot: Robot, chosen: np.ndarray, times: Sequence[float] | None = None
) -> list[Instant]:
    """Some instants of a motion, in order of time.

    Args:
        trajectory: the Trajectory.
        robot: its robot.
        chosen: indices of its samples that the page shows, (T,).
        times: wanted times since the start [s]; by default the start, the largest force of the ground
            (without one, the middle) and the end.
    """
    sane = np.isfinite(trajectory.q[chosen]).all(axis=1) & np.isfinite(trajectory.v[chosen]).all(axis=1)
    chosen = np.asarray(chosen)[sane]
    if len(chosen) == 0:
        return []
    since = trajectory.t[chosen] - trajectory.t[0]
    reasons: dict[int, str] = {}
    if times is not None:
        reasons = {int(np.abs(since - time).argmin()): "" for time in times}
    else:
        force = _ground_force(trajectory)[chosen]
        touched = force.max(initial=0.0) > 0.0
        special = int(force.argmax()) if touched else len(chosen) // 2
        reasons[special] = "largest force of the ground" if touched else "middle"
        for k, why in ((0, "start"), (len(chosen) - 1, "end")):
            reasons.setdefault(k, why)
    pushed = _wrenches(trajectory, robot, [int(chosen[k]) for k in reasons])
    zero = np.zeros(robot.nv)
    found = []
    for (k, why), f_ext in zip(reasons.items(), pushed, strict=True):
        at = int(chosen[k])
        tau = zero if trajectory.tau is None else trajectory.tau[at]
        found.append(Instant(float(since[k]), why, trajectory.q[at], trajectory.v[at], tau, f_ext))
    return sorted(found, key=lambda instant: instant.t)


def _ground_force(trajectory: Trajectory) -> np.ndarray:
    """Size of the force of the ground at each sample, (T,) [N]."""
    contacts = trajectory.contacts
    force = trajectory.contact_force if contacts is None else contacts.forces.sum(axis=1)
    return np.nan_to_num(np.linalg.norm(force, axis=1))


def _wrenches(trajectory: Trajectory, robot: Robot, at: Sequence[int]) -> list[np.ndarray | None]:
    """Forces of the ground on the bodies at some samples; None for all where it never pushes."""
    contacts = trajectory.contacts
    if contacts is None or not np.any(contacts.forces[list(at)]):
        return [None] * len(at)
    found: list[np.ndarray | None] = []
    for k in at:
        points, forces = contacts.points[k], contacts.forces[k]
        about_origin = np.concatenate([np.cross(points, forces), forces], axis=1)
        wrenches: dict[str, np.ndarray] = {}
        for link, wrench in zip(contacts.links, about_origin, strict=True):
            if link in robot.link_names:
                wrenches[link] = wrenches.get(link, np.zeros(6)) + wrench
        found.append(np.asarray(body_forces(robot, trajectory.q[k], wrenches, "python")).reshape(-1))
    return found
