"""A trajectory as a page shows it: frames for the eye, curves for the plots, figures of the run."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from robokit.dynamics import center_of_mass
from robokit.model.robot import Robot
from robokit.sim.trajectory import Trajectory
from robokit.viewer.data.packing import packed
from robokit.viewer.payload_keys import CurveData, FigureData, FramesData, SeriesData, StoppedData

MAX_CURVE_POINTS = 1600
"""Points of a curve: as many as a screen has columns."""


def still_frame(robot: Robot, q: np.ndarray, poses: np.ndarray) -> FramesData:
    """The single frame of a pose.

    Args:
        robot: the Robot.
        q: configuration, (1, nq).
        poses: of its bodies, (1, nbodies + 1, 7).
    """
    return FramesData(1, 1, packed(np.zeros(1)), packed(poses[:, 1:]), packed(q), packed(_com(robot, q)))


def motion_frames(
    trajectory: Trajectory, robot: Robot, chosen: np.ndarray, poses: np.ndarray, sane: int
) -> FramesData:
    """The frames of a motion.

    Args:
        trajectory: the Trajectory.
        robot: its robot.
        chosen: indices of the samples that become frames, (T,).
        poses: of the bodies at these samples, (T, nbodies + 1, 7).
        sane: frames at the start that can be trusted.
    """

    def frames(values: np.ndarray | None) -> str | None:
        return None if values is None else packed(values[chosen])

    count, points = touching(trajectory, chosen)
    return FramesData(
        count=len(chosen),
        sane=sane,
        t=packed(trajectory.t[chosen] - trajectory.t[0]),
        poses=packed(poses[:, 1:]),
        q=packed(trajectory.q[chosen]),
        com=packed(_com(robot, trajectory.q[chosen])),
        v=frames(trajectory.v),
        tau=frames(trajectory.tau),
        momentum=frames(trajectory.momentum),
        force=frames(trajectory.contact_force) if np.any(trajectory.contact_force) else None,
        contact_count=count,
        contacts=points,
    )


def touching(trajectory: Trajectory, chosen: np.ndarray) -> tuple[str | None, str | None]:
    """How many contact points touch at each frame, and their positions and forces; None without a ground.

    Most points of most frames touch nothing: they are left out.
    """
    contacts = trajectory.contacts
    if contacts is None:
        return None, None
    points, forces = contacts.points[chosen], contacts.forces[chosen]
    touch = np.any(forces != 0.0, axis=-1)
    return packed(touch.sum(axis=1)), packed(np.concatenate([points[touch], forces[touch]], axis=1))


def curves(trajectory: Trajectory) -> list[CurveData]:
    """The plots, thinned to a screen's width."""
    t = trajectory.t
    keep = np.unique(np.linspace(0, len(t) - 1, min(len(t), MAX_CURVE_POINTS)).round().astype(int))
    time = packed(t[keep] - t[0])

    def plot(key: str, title: str, unit: str, **series: np.ndarray) -> CurveData:
        return CurveData(
            key, title, unit, time, [SeriesData(name, packed(y[keep])) for name, y in series.items()]
        )

    energy, force, h = trajectory.energy, trajectory.contact_force, trajectory.momentum
    parts = {"kinetic": energy.kinetic, "potential": energy.potential, "dissipated": energy.dissipated}
    if np.any(energy.work):
        parts["work"] = energy.work
    plots = [plot("energy", "Energy", "J", **parts, total=energy.total)]
    if np.any(force):
        plots.append(plot("force", "Contact force", "N", x=force[:, 0], y=force[:, 1], z=force[:, 2]))
    plots.append(plot("linear", "Linear momentum", "N s", x=h[:, 3], y=h[:, 4], z=h[:, 5]))
    plots.append(plot("angular", "Angular momentum about the CoM", "N m s", x=h[:, 0], y=h[:, 1], z=h[:, 2]))
    drift = energy.total - energy.total[0]
    plots.append(plot("drift", "Energy balance: total minus its initial value", "J", drift=drift))
    return plots


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
