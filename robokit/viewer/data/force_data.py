"""Contact forces over time, of the whole robot and by link, with the peaks that single steps had."""

from __future__ import annotations

import numpy as np

from robokit.sim.trajectory import Trajectory
from robokit.viewer.data.packing import packed
from robokit.viewer.data.thin_curves import kept, without_repeats
from robokit.viewer.payload_keys import CurveData, LinkForceData, SeriesData

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
