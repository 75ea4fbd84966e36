"""Two runs of one robot in one page: the second goes along as a ghost.

robokit.viewer.compare(a, b, "compare.html", labels=("dt = 1 ms", "dt = 0.5 ms"))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from robokit.errors import ShapeError, WrongType
from robokit.files import output_path, write_text
from robokit.sim.record import Trajectory
from robokit.viewer.data.comparison_data import check_same_robot, ghost_data
from robokit.viewer.data.own_curves import Curve, Values
from robokit.viewer.page import render
from robokit.viewer.payload import trajectory_payload


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
    """Write the page of a run with another one beside it.

    The page is that of ``a``, with its time, curves and overlays. ``b`` is shown as a ghost at the same time,
    and the tab "Compare" has values, curves and differences of both: centre of mass, energy, contact force,
    any joint.

    Args:
        a: a Trajectory.
        b: a Trajectory of the same robot.
        path: where to; ".html" is appended where there is no suffix.
        labels: names of the two runs.
        max_triangles: a mesh is simplified to about this many triangles; None shares out what a page shows
            well.
        max_fps: stored frames per second at most; the page interpolates between them.
        follow: a link of ``a`` that the camera follows, as of :func:`robokit.viewer.write_page`.
        curves: plots of your own of ``a``, by name, as of :func:`robokit.viewer.write_page`.

    Returns:
        The path of the file.

    Raises:
        WrongType: a or b is no Trajectory.
        ShapeError: they are of different robots, or labels are not two different texts.
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
