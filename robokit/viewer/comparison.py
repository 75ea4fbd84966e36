"""Two runs of one robot in one page: the second goes along as a ghost.

robokit.viewer.compare(a, b, "compare.html", labels=("dt = 1 ms", "dt = 0.5 ms"))
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from robokit.dynamics import center_of_mass
from robokit.errors import ShapeError, WrongType
from robokit.files import output_path, write_text
from robokit.sim.trajectory import Trajectory
from robokit.viewer.curves import Curve, Values, kept, packed
from robokit.viewer.motion_data import ForceHistory, summary
from robokit.viewer.page import render
from robokit.viewer.payload import trajectory_payload
from robokit.viewer.payload_keys import ComparedData, CurveData, FramesData, GhostData, SeriesData


def compare(
    a: Trajectory,
    b: Trajectory,
    path: str | Path,
    labels: Sequence[str] = ("first", "second"),
    max_triangles: int | None = None,
    max_fps: float = 60.0,
    follow: bool | str | None = None,
    curves: Mapping[str, Curve | Values] | None = None,
) -> Path:
    """Write the page of a run with a second run beside it.

    The page is that of ``a``, with its time, curves and overlays. ``b`` is shown as a ghost at the same time,
    and the tab "Compare" has values, curves and differences of both: centre of mass, energy, contact force,
    any joint.

    Args:
        a: a Trajectory. b: a Trajectory of the same robot. path: path of the page; ".html" is appended if it
        has no suffix.
        labels: names of the two runs.
        max_triangles: a mesh is simplified to about this many triangles; None shares a number that browsers
            draw smoothly among all meshes.
        max_fps: largest number of stored frames per second; the page interpolates between them.
        follow: a link of ``a`` that the camera follows, as in :func:`robokit.viewer.write_page`.
        curves: your own curves of ``a`` by name, as in :func:`robokit.viewer.write_page`.

    Returns:
        The path of the file.

    Raises:
        WrongType: a or b is not a Trajectory.
        ShapeError: the trajectories have different robots, or labels are not two different texts.
        MissingDependency: meshcat is not installed.

    Example:
        >>> from robokit.viewer import compare
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> a, b = (rk.simulate(robot, [angle, 0.0], duration=0.02) for angle in (1.0, 1.1))
        >>> compare(a, b, "both.html", labels=("1.0 rad", "1.1 rad")).name
        'both.html'
    """
    for name, run in (("a", a), ("b", b)):
        if not isinstance(run, Trajectory):
            raise WrongType(name, run, "a Trajectory")
    names = tuple(labels) if not isinstance(labels, str) else (labels,)
    if len(names) != 2 or not all(isinstance(name, str) and name for name in names) or names[0] == names[1]:
        raise ShapeError(f"labels: expected two different texts, got {labels!r}")
    path = output_path("path", path, ".html")
    check_same_robot(a, b)
    payload = trajectory_payload(a, max_triangles, max_fps, own=curves, follow=follow)
    other = trajectory_payload(b, max_triangles, max_fps)
    low, high = (pick(payload.bounds[k], other.bounds[k]) for k, pick in enumerate((np.minimum, np.maximum)))
    payload = replace(
        payload,
        ghost=ghost_data(a, b, (names[0], names[1]), other.frames),
        bounds=[low.tolist(), high.tolist()],
    )
    write_text(path, render(payload))
    return path


# ---- the ghost, curves and differences of both runs ----------------------------------------------


def ghost_data(
    first: Trajectory, second: Trajectory, labels: tuple[str, str], frames: FramesData
) -> GhostData:
    """What a page needs of a second run.

    Args:
        first: the run that the page is about.
        second: the run beside it, of the same robot.
        labels: names of both.
        frames: of the second run.
    """
    moving = FramesData(frames.count, frames.sane, frames.t, frames.poses, frames.q, frames.com)
    pairs, differences = _curves(first, second, labels)
    return GhostData(labels, moving, pairs, differences, _figures(first, second), summary(second))


def check_same_robot(first: Trajectory, second: Trajectory) -> None:
    """See that two runs have the same bodies and coordinates.

    Raises:
        ShapeError: they have not, or a run lacks its robot.
    """
    robots = (first.robot, second.robot)
    for name, robot in zip("ab", robots, strict=True):
        if robot is None:
            raise ShapeError(
                f"{name}: expected a trajectory with its robot: Trajectory.load(path, robot=...)"
            )
    one, other = robots
    assert one is not None and other is not None
    bodies = [[r.body_name(i) for i in range(r.nbodies + 1)] for r in (one, other)]
    if bodies[0] != bodies[1] or one.tree.parent != other.tree.parent or one.nq != other.nq:
        raise ShapeError(
            f"b: expected a run of the same robot as a, {one.name!r} with {one.nbodies} bodies and nq = "
            f"{one.nq}, got {other.name!r} with {other.nbodies} bodies and nq = {other.nq}"
        )


def _com(run: Trajectory) -> np.ndarray:
    """Centre of mass at each state, (T, 3) [m]; zeros for a robot without mass."""
    assert run.robot is not None
    if not run.robot.total_mass > 0:
        return np.zeros((len(run.t), 3))
    return np.asarray(center_of_mass(run.robot, run.q)).reshape(-1, 3)


def _curves(
    first: Trajectory, second: Trajectory, labels: tuple[str, str]
) -> tuple[list[CurveData], list[CurveData]]:
    """Curves of both and of their difference, at the states of the first that the second has reached, too."""
    times = [run.t - run.t[0] for run in (first, second)]
    t = times[0][times[0] <= times[1][-1] + 1e-9]
    coms = [_at(t, own, _com(run)) for own, run in zip(times, (first, second), strict=True)]

    def both(values: list[np.ndarray]) -> list[np.ndarray]:
        return [_at(t, own, y[:, None])[:, 0] for own, y in zip(times, values, strict=True)]

    distance = np.linalg.norm(coms[1] - coms[0], axis=1)
    energy = both([run.energy.mechanical for run in (first, second)])
    rows: list[tuple[str, str, str, list[np.ndarray], str, np.ndarray]] = [
        (
            "com",
            "Height of the centre of mass",
            "m",
            [com[:, 2] for com in coms],
            "Distance between the two",
            distance,
        ),
        ("energy", "Kinetic and potential energy", "J", energy, "Difference", energy[1] - energy[0]),
    ]
    pairs, differences = [], []
    for key, title, unit, values, apart, difference in rows:
        keep = kept([*values, difference])
        pairs.append(
            _curve(key, title, unit, t[keep], dict(zip(labels, (y[keep] for y in values), strict=True)))
        )
        differences.append(_curve(key, apart, unit, t[keep], {f"{apart.lower()} [{unit}]": difference[keep]}))
    sizes = [_force_sizes(run) for run in (first, second)]
    if any(np.any(size) for _, size in sizes):
        # At the steps of both, so that no peak of either is lost.
        t = np.union1d(*(own[own <= t[-1]] for own, _ in sizes))
        one, other = (np.interp(t, own, size) for own, size in sizes)
        keep = kept([one, other, other - one])
        lines = dict(zip(labels, (one[keep], other[keep]), strict=True))
        pairs.append(_curve("force", "Contact force, size", "N", t[keep], lines))
        between = {"difference [N]": (other - one)[keep]}
        differences.append(_curve("force", "Difference", "N", t[keep], between))
    return pairs, differences


def _force_sizes(run: Trajectory) -> tuple[np.ndarray, np.ndarray]:
    """Times [s] and sizes [N] of the contact force, of every step where that is known."""
    forces = ForceHistory(run, np.array([0]))
    return forces.t, np.linalg.norm(forces.total, axis=1)


def _curve(key: str, title: str, unit: str, t: np.ndarray, lines: dict[str, np.ndarray]) -> CurveData:
    return CurveData(key, title, unit, packed(t), [SeriesData(name, packed(y)) for name, y in lines.items()])


def _at(t: np.ndarray, own: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Columns (T, n) interpolated linearly at other times."""
    return np.stack([np.interp(t, own, column) for column in values.T], axis=1)


def _figures(first: Trajectory, second: Trajectory) -> list[ComparedData]:
    """Figures of both runs, those that at least one has."""
    runs = (first, second)

    def row(label: str, unit: str, values: list[Any]) -> ComparedData:
        one, other = (
            float(x) if isinstance(x, (int, float, np.floating)) and math.isfinite(x) else None
            for x in values
        )
        return ComparedData(label, unit, one, other)

    def given(label: str, unit: str, key: str, scale: float = 1.0) -> ComparedData:
        values = [run.summary.get(key) for run in runs]
        return row(label, unit, [scale * x if isinstance(x, (int, float)) else None for x in values])

    rows = [
        given("time step", "ms", "dt", 1e3),
        given("speed", "steps/s", "steps_per_second"),
        given("energy balance", "J", "energy_balance"),
        given("momentum balance", "N s", "momentum_balance_linear"),
        row("dissipated", "J", [run.energy.dissipated[-1] for run in runs]),
    ]
    if any(np.any(run.contact_force) for run in runs):
        rows += [
            given("deepest contact", "mm", "deepest_penetration", 1e3),
            row("largest contact force", "N", [_force_sizes(run)[1].max() for run in runs]),
        ]
    return [row for row in rows if row.first is not None or row.second is not None]
