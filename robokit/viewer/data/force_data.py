"""Contact forces over time, of the whole robot and by link, with the peaks that single steps had."""

from __future__ import annotations

import numpy as np

from robokit.sim.trajectory import Trajectory
from robokit.viewer.data.packing import packed
from robokit.viewer.data.thin_curves import kept, without_repeats
from robokit.viewer.payload_keys import CurveData, LinkForceData, SeriesData

MOST_WORK = 4_000_000
"""Bodies times steps up to which a page looks at every step: about half a minute."""


class StepForces:
    """Force of the ground on each link at times of one's own.

    Attributes:
        t: (S,) since the start [s].
        links: L names.
        force: on each link, world axes, (S, L, 3) [N].
        total: on the robot, (S, 3) [N].
        frames: which of the times are those of the page's frames.
        hold: how long each force holds, from its time on [s]: a step; 0 where it is a mean until its time.
        averaged: time over which each force is the mean, where that is more than a step [s]; else None.
    """

    def __init__(self, trajectory: Trajectory, chosen: np.ndarray) -> None:
        """Of every step, as far as that is known.

        Args:
            trajectory: the Trajectory.
            chosen: indices of the records that become frames, (T,).
        """
        t = trajectory.t - trajectory.t[0]
        self.links = tuple(trajectory.contact_forces)
        self.averaged: float | None = None
        self.hold = 0.0
        last = [x[-1] for x in trajectory.contact_forces.values()]
        facts = trajectory.step_facts if self.links and every_step(trajectory) else None
        if facts is not None and len(facts.forces):
            S = len(facts.forces)
            self.hold = float(trajectory.summary["dt"])
            self.t = np.append(trajectory.summary["dt"] * np.arange(S), t[-1])
            self.force = np.concatenate([facts.forces, np.array(last)[None]])
            self.total = self.force.sum(axis=1)
            self.frames = np.clip(np.searchsorted(self.t, t[chosen] - 1e-9), 0, S)
            return
        self.t, self.frames = t, chosen
        self.total = trajectory.contact_force
        each = list(trajectory.contact_forces.values())
        self.force = np.stack(each, axis=1) if each else np.zeros((len(t), 0, 3))
        if len(t) > 1 and len(t) - 1 < trajectory.summary.get("steps", 0):
            self.averaged = float(t[1] - t[0])


def every_step(trajectory: Trajectory) -> bool:
    """Whether a page looks at every step of the run: not at those of very long ones."""
    robot, steps = trajectory.robot, trajectory.summary.get("steps", 0)
    return robot is not None and steps * robot.nbodies <= MOST_WORK


def force_curve(forces: StepForces) -> CurveData:
    """The plot of the whole robot's contact force."""
    x, y, z = forces.total.T
    lines = {"size": np.linalg.norm(forces.total, axis=1), "x": x, "y": y, "z": z}
    keep = kept(list(lines.values()), forces.frames)
    title = "Contact force"
    if forces.averaged is not None:
        title += f", mean over {1e3 * forces.averaged:.3g} ms"
    series = [SeriesData(name, packed(v[keep])) for name, v in lines.items()]
    return CurveData("force", title, "N", packed(forces.t[keep]), series, forces.hold)


def link_forces(forces: StepForces) -> list[LinkForceData]:
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
