"""The page: one HTML file that needs nothing else, from a trajectory, a robot or two runs of one robot."""

from __future__ import annotations

import html
import importlib.util
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from robokit.dynamics import center_of_mass
from robokit.errors import Diagnostic, MissingDependency, ShapeError, WrongType, warn
from robokit.files import output_path, write_text
from robokit.model.inertial_parameters import equivalent_box
from robokit.model.robot import Robot
from robokit.sim import Ground, simulate
from robokit.sim.trajectory import Trajectory
from robokit.stages import stage
from robokit.viewer.live_data import live_data
from robokit.viewer.motion_data import Curve, ForceHistory, Values, curve_data, kept, summary, ties
from robokit.viewer.payload import (
    check_follow,
    motionless_payload,
    one_configuration,
    one_robot,
    pose_payload,
    structure_payload,
    trajectory_payload,
)
from robokit.viewer.payload_keys import (
    CheckData,
    ComparedData,
    FindingData,
    FramesData,
    GhostData,
    InertiaData,
    Payload,
)
from robokit.viewer.scene import INERTIA_COLOUR

# ==== the page: one HTML file that needs nothing else, from a trajectory or a robot ===============
# The 3D view is meshcat's own JavaScript viewer, read from the installed meshcat package; the curves are
# uPlot, kept in ``assets/vendor``. Every name of the robot reaches the page as escaped text, never as markup
# or code.


ASSETS = Path(__file__).parent / "assets"

SCRIPTS = (
    "base/util.js", "base/theme.js", "base/selection.js", "base/panels.js", "base/branches.js",
    "base/shortcuts.js", "motion/kinematics.js", "motion/mass_matrix.js", "motion/link_motion.js",
    "motion/timeline.js", "motion/happenings.js", "motion/lane.js", "motion/tables.js", "motion/recorder.js",
    "scene/geometry.js", "scene/skin.js", "scene/framing.js", "scene/ground.js", "scene/stage.js",
    "scene/force_scale.js", "scene/labels.js", "scene/contact_frames.js", "scene/overlays.js",
    "scene/cameras.js", "scene/outline.js", "scene/picking.js", "scene/snapshot.js", "scene/ghost.js",
    "panels/header.js", "panels/time_window.js", "panels/plot_axes.js", "panels/plot_hand.js",
    "panels/summary.js", "panels/plots.js", "panels/graphs.js", "panels/joint_picker.js", "panels/curves.js",
    "panels/joints.js", "panels/tree.js", "panels/matrix.js", "panels/operations.js", "panels/structure.js",
    "panels/selected.js", "panels/findings.js", "panels/export.js", "panels/compare.js", "live/engine.js",
    "live/live_motion.js", "live/spring.js", "live/hand.js", "live/live_bar.js", "live/live_charts.js",
    "live/live_motors.js", "live/live_panel.js", "live/live_run.js", "walk/program.js", "walk/inputs.js",
    "walk/recording.js", "walk/numbers.js", "walk/text.js", "walk/tree.js", "walk/matrix.js",
    "walk/drawing.js", "walk/walk.js", "base/address.js", "base/opening.js", "page.js",
)  # fmt: skip
"""The page's own scripts, in the order in which they build on one another."""

INITIAL = "initial"  # name of the configuration in which a file has its robot
SHORT = 1e-3  # duration of a run that is made for its step alone [s]

WORKER = ("live/passive_step.js", "live/contact_step.js", "live/physics.js", "live/worker.js")
"""Runs beside the page, in pages that ask for physics; its text goes into the page's data."""

STYLES = (
    "vendor/uPlot.min.css", "styles/theme.css", "styles/header.css", "styles/view.css", "styles/panels.css",
    "styles/plots.css", "styles/joints.css", "styles/structure.css", "styles/matrix.css",
    "styles/selected.css", "styles/findings.css", "styles/summary.css", "styles/walk.css",
    "styles/timeline.css", "styles/lane.css", "styles/export.css", "styles/compare.css", "styles/live.css",
    "styles/shortcuts.css", "styles/narrow.css",
)  # fmt: skip
"""Its style sheets; later ones win."""


def write_page(
    source: Trajectory | Robot,
    path: str | Path,
    q: np.ndarray | None = None,
    max_triangles: int | None = None,
    max_fps: float = 60.0,
    walk: bool = True,
    live: bool = False,
    *,
    curves: Mapping[str, Curve | Values] | None = None,
    follow: bool | str | None = None,
) -> Path:
    """Write the page of a motion or of a single pose.

    Args:
        source: a Trajectory, or a Robot for a page with sliders to pose it.
        path: path of the page; ".html" is appended if it has no suffix.
        q: configuration of a Robot's page, (nq,); neutral by default.
        max_triangles: a mesh is simplified to about this many triangles; None shares a number that browsers
            draw smoothly among all meshes.
        max_fps: largest number of stored frames per second; the page interpolates between them.
        walk: whether the page can step through RNEA, CRBA, LTDL and ABA, with the values at the time shown.
            Adds at most 300 kB.
        live: whether the page can continue the simulation from any frame, while the robot is pulled and
            pushed; the step is included as WebAssembly. A Robot starts at rest in its pose, with the ground,
            the actuators and the springs of ``robot.scene``, or on a plane.
        curves: your own curves by name, in the tab "Curves" of a motion: arrays (T,) or (T, k) at its T
            recorded times, functions (t, q, v), or a :class:`robokit.viewer.Curve` with unit, labels and
            times.
        follow: name of a link that the camera follows, True for the centre of mass, False for neither; None
            lets the page choose: it follows a robot that travels far.

    Returns:
        The path of the file.

    Raises:
        MissingDependency: meshcat is not installed.
        WrongType: ``walk`` is neither True nor False, or an entry of ``curves`` is not a curve.
        ShapeError: a curve that does not fit its times, or has values that are not finite; says which one.
        UnknownName: ``follow`` is not a link of the robot.
        RobokitError: ``live`` with a motion that was loaded from a file, or whose step is too large to
            compile.
        WriteError: the file cannot be written.

    Example:
        >>> from robokit.viewer import write_page
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> write_page(robot, "pose.html", q=[0.5, 0.2], walk=False).name
        'pose.html'
    """
    path = output_path("path", path, ".html")
    write_text(path, page_html(source, q, max_triangles, max_fps, walk, live, curves=curves, follow=follow))
    return path


def write_pose_page(robot: Robot, path: str | Path, q: np.ndarray | None = None) -> Path:
    """Write the page of a robot with sliders to pose it.

    Args:
        robot: the Robot.
        path: path of the page.
        q: the configuration at the start, (nq,); neutral by default.

    Returns:
        The path of the file.

    Example:
        >>> from robokit.viewer import write_pose_page
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> write_pose_page(robot, "pose.html", q=[0.5, 0.2]).name
        'pose.html'
    """
    return write_page(robot, path, q)


def page_html(
    source: Trajectory | Robot,
    q: np.ndarray | None = None,
    max_triangles: int | None = None,
    max_fps: float = 60.0,
    walk: bool = True,
    live: bool = False,
    *,
    curves: Mapping[str, Curve | Values] | None = None,
    follow: bool | str | None = None,
) -> str:
    """The text of the page, as :func:`write_page` writes it.

    Args:
        source: a Trajectory or a Robot.
        q: configuration of a Robot's page, (nq,); neutral by default.
        max_triangles: a mesh is simplified to about this many triangles; None shares a number that browsers
            draw smoothly among all meshes.
        max_fps: largest number of stored frames per second.
        walk: whether the page walks through the algorithms.
        live: whether to include the step, so that the page can continue the motion.
        curves: your own curves by name, as in :func:`write_page`.
        follow: a link that the camera follows, True for the centre of mass, or False.

    Returns:
        A whole HTML document.

    Raises:
        MissingDependency: meshcat is not installed.
        WrongType, ShapeError, UnknownName: as :func:`write_page`.

    Example:
        >>> from robokit.viewer import page_html
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> page_html(robot, walk=False)[:15]
        '<!doctype html>'
    """
    if not isinstance(walk, bool):
        raise WrongType("walk", walk, "True or False", "the page has the numbers of every time")
    if not isinstance(live, bool):
        raise WrongType("live", live, "True or False")
    with stage("writing the page"):
        if isinstance(source, Trajectory):
            payload = trajectory_payload(source, max_triangles, max_fps, walk, curves, follow)
            return render(replace(payload, live=live_data(source, joined(WORKER))) if live else payload)
        if isinstance(source, Robot):
            if curves is not None:
                raise WrongType(
                    "curves", curves, "None for a Robot, which has no recorded times", "give a Trajectory"
                )
            if follow is not None and not live:
                raise WrongType(
                    "follow", follow, "None for a Robot that does not move", "give a Trajectory, or live=True"
                )
            check_follow(one_robot(source), follow)
            make = _live_pose if live else pose_payload
            return render(replace(make(source, q, max_triangles, walk), follow=follow))
    raise WrongType("source", source, "a Trajectory or a Robot")


def _live_pose(robot: Robot, q: np.ndarray | None, max_triangles: int | None, walk: bool) -> Payload:
    """The page of a pose from which physics goes on: in the robot's own scene, or on the page's plane.

    Raises ShapeError where it starts in the ground.
    """
    own = robot.scene
    if q is None and own is not None and INITIAL in own.configurations:
        q = robot.configuration(INITIAL)
    payload = pose_payload(robot, q, max_triangles, walk)
    q = one_configuration(robot, robot.neutral() if q is None else q)
    ground = Ground(height=payload.ground.height) if payload.ground is not None else Ground()
    if own is not None and own.ground is not None:
        ground = own.ground
        payload = replace(motionless_payload(robot, ground, q, max_triangles), walk=payload.walk)
    drives, springs = (own.actuators, own.springs) if own is not None else ((), ())
    bent = [each.name or "" for each in springs if each.force is not None]
    if bent:
        warn(f"the live page has no springs whose force is a function: {', '.join(bent)}", UserWarning)
    springs = tuple(each for each in springs if each.force is None)
    run = simulate(robot, q, duration=SHORT, ground=ground, actuators=drives, springs=springs)
    return replace(payload, live=live_data(run, joined(WORKER)), ties=ties(robot, run.springs))


def render(payload: Payload) -> str:
    """The page of a payload of :mod:`robokit.viewer.payload`: a whole HTML document."""
    return page_of(html.escape(payload.robot.name), json_for_html(payload), bool(payload.live))


def page_of(title: str, data: str, physics: bool) -> str:
    """The page with a title and its data, as text of HTML; whether there is physics in it."""
    parts = {
        "title": title,
        # A page without physics in it may start neither WebAssembly nor Workers.
        "physics": " 'wasm-unsafe-eval'; worker-src blob:" if physics else "",
        "styles": joined(STYLES),
        "meshcat": inline_script((meshcat_page() / "main.min.js").read_text(encoding="utf-8")),
        "uplot": inline_script((ASSETS / "vendor" / "uPlot.iife.min.js").read_text(encoding="utf-8")),
        "page": own_scripts(SCRIPTS),
        "data": data,
    }
    return filled("page.html", parts)


def filled(template: str, parts: Mapping[str, str]) -> str:
    """A file of ``assets`` with these parts, as they are, in the places that {{ key }} marks."""
    text = (ASSETS / template).read_text(encoding="utf-8")
    # One pass over the template: what is put in is never searched again.
    pieces = text.split("{{")
    result = [pieces[0]]
    for piece in pieces[1:]:
        key, rest = piece.split("}}", 1)
        result += [parts[key.strip()], rest]
    return "".join(result)


def joined(names: Sequence[str]) -> str:
    """The texts of these files of ``assets``, one after another, without indentation and lines of comment.

    No text of theirs within quotes goes over several lines but that of a shader, which needs neither.
    """
    texts = ((ASSETS / name).read_text(encoding="utf-8") for name in names)
    lines = (line.strip() for text in texts for line in text.split("\n"))
    return "\n".join(line for line in lines if line and not line.startswith("//"))


def json_for_html(value: Any) -> str:
    """JSON that may stand inside a script element: no character can end the element or start a comment.

    ``value`` is anything that ``json.dumps`` takes, and dataclasses, which become objects with their fields
    as keys; NaN and infinity are errors. The text is still valid JSON.
    """
    text = json.dumps(value, separators=(",", ":"), allow_nan=False, ensure_ascii=True, default=_fields)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _fields(value: Any) -> dict[str, Any]:
    """Keys and values of a dataclass."""
    if not is_dataclass(value):
        raise TypeError(f"{type(value).__name__} cannot be written as JSON")
    return vars(value)


def own_scripts(names: Sequence[str]) -> str:
    """These scripts of ``assets`` as one, in a scope of their own."""
    return inline_script("(() => {\n'use strict';\n" + joined(names) + "\n})();")


def inline_script(code: str) -> str:
    """A script's text for a script element; ``</script`` inside its strings is broken up."""
    return code.replace("</script", "<\\/script").replace("<!--", "<\\!--")


# ==== Where meshcat's own web page is: in the package meshcat, or copied into robokit's wheel =====

COPY = Path(__file__).parent / "assets" / "vendor" / "meshcat"
"""Where the build of the wheel puts the files; see ``hatch_build.py``."""


def meshcat_page() -> Path:
    """The folder with meshcat's ``index.html`` and ``main.min.js``, found without importing meshcat.

    The installed package comes first: its server and its page belong together. MissingDependency without
    either.
    """
    spec = importlib.util.find_spec("meshcat")
    folders = (spec and spec.submodule_search_locations) or ()
    for page in (*(Path(folder) / "viewer" / "dist" for folder in folders), COPY):
        if (page / "main.min.js").is_file():
            return page
    raise MissingDependency("robokit's pages need the files of meshcat's viewer: pip install 'robokit[live]'")


# ==== the page of a check =========================================================================
# The page of a check: the robot as glass, its equivalent inertia boxes inside, the findings beside it.

ODD = ("inertia-not-psd", "inertia-triangle", "inertia-implausible", "density-implausible", "com-outside")
"""Findings that make a link's box red."""

ODD_COLOUR = (0.88, 0.19, 0.19, 0.55)


def write_check_page(robot: Robot, diagnostics: Sequence[Diagnostic], path: str | Path) -> Path:
    """Write the page of a robot with its equivalent inertia boxes and the findings of the importer.

    Args:
        robot: the Robot.
        diagnostics: the findings, from :func:`robokit.urdf.check_urdf` or ``robot.diagnostics``.
        path: path of the file.

    Returns:
        The path of the file.

    Raises:
        MissingDependency: meshcat is not installed.

    Example:
        >>> from robokit.viewer import write_check_page
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> write_check_page(robot, robot.diagnostics, "check.html").name
        'check.html'
    """
    path = output_path("path", path, ".html")
    write_text(path, render(check_payload(robot, diagnostics)))
    return path


def check_payload(robot: Robot, diagnostics: Sequence[Diagnostic]) -> Payload:
    """The data of a robot's page with the findings, and with the boxes of doubtful inertias in red."""
    payload = pose_payload(robot, walk=False)
    # The findings, each with the link that its element belongs to.
    places: dict[str, tuple[str | None, int | None]] = {
        f"link {link.name!r}": (link.name, link.body) for link in robot.links
    }
    places.update({f"joint {joint.name!r}": (joint.child_link, joint.body) for joint in robot.joints})
    findings = []
    for d in diagnostics:
        # "link 'arm' inertial" belongs to "link 'arm'".
        owner = d.element if d.element in places else d.element.rpartition(" ")[0]
        place = places.get(owner, (None, None))
        findings.append(FindingData(d.severity, d.code, d.element, d.line, d.message, d.hint, *place))
    odd = {finding.link for finding in findings if finding.code in ODD}
    nodes = []
    for node in payload.nodes:
        size = payload.geometries[node.geometry].size
        if node.role == "inertia" and size is not None:
            *rgb, alpha = ODD_COLOUR if node.link in odd else INERTIA_COLOUR
            # A box much larger than the robot would hide it.
            alpha *= min(1.0, 0.4 * payload.robot.size / max(size))
            node = replace(node, rgba=[*rgb, round(max(0.05, alpha), 3)])
        nodes.append(node)
    inertias = []
    for link in robot.links:
        box = equivalent_box(link.mass, link.inertia)
        if box is not None:
            edges, moments = box.size.tolist(), box.moments.tolist()
            inertias.append(
                InertiaData(link.name, link.body, float(link.mass), edges, moments, link.name in odd)
            )
    return replace(payload, nodes=nodes, check=CheckData(findings, inertias))


# ==== several robots side by side =================================================================
# The page of several robots side by side: trees, patterns of H and of its factors, operation counts.

SIDE_BY_SIDE_SCRIPTS = (
    "base/util.js", "base/branches.js", "panels/tree.js", "panels/matrix.js", "panels/operations.js",
    "panels/structure.js", "side_by_side.js",
)  # fmt: skip
"""The page's scripts: those of the structure panel, and one that puts robots side by side."""

SIDE_BY_SIDE_STYLES = (
    "styles/theme.css", "styles/header.css", "styles/panels.css", "styles/plots.css", "styles/structure.css",
    "styles/matrix.css", "styles/side_by_side.css",
)  # fmt: skip


def write_sparsity_page(robots: Sequence[Robot], path: str | Path) -> Path:
    """Write a page that compares the structure of robots: tree, H and its factors, operation counts of each.

    Args:
        robots: the Robots, in the order in which they are shown; a robot may appear twice, with different
            bases.
        path: path of the page; ".html" is appended if it has no suffix.

    Returns:
        The path of the file.

    Raises:
        WrongType: robots is not a list of Robots.

    Example:
        >>> from robokit.viewer import write_sparsity_page
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> write_sparsity_page([robot, rk.load_urdf(rk.find_robot("arm"))], "two.html").name
        'two.html'
    """
    path = output_path("path", path, ".html")
    if isinstance(robots, (str, Robot)) or not isinstance(robots, Sequence) or not robots:
        raise WrongType("robots", robots, "a list of one Robot or more, as [robot]")
    payloads = [structure_payload(robot) for robot in robots]
    names = ", ".join(dict.fromkeys(robot.name for robot in robots))
    parts = {
        "title": html.escape(f"Sparsity: {names}"),
        "styles": joined(SIDE_BY_SIDE_STYLES),
        "page": own_scripts(SIDE_BY_SIDE_SCRIPTS),
        "data": json_for_html(payloads),
    }
    write_text(path, filled("side_by_side.html", parts))
    return path


# ==== two runs of one robot in one page: the second goes along as a ghost =========================
# robokit.viewer.compare(a, b, "compare.html", labels=("dt = 1 ms", "dt = 0.5 ms"))


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
        a: a Trajectory.
        b: a Trajectory of the same robot.
        path: path of the page; ".html" is appended if it has no suffix.
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
    """What a page about the first run needs of the second, of the same robot, whose frames are given."""
    moving = FramesData(frames.count, frames.sane, frames.t, frames.poses, frames.q, frames.com)
    times = [run.t - run.t[0] for run in (first, second)]
    t = times[0][times[0] <= times[1][-1] + 1e-9]
    both = list(zip(times, (first, second), strict=True))
    coms = [np.stack([np.interp(t, own, x) for x in _com(run).T], axis=1) for own, run in both]
    heights, distance = [com[:, 2] for com in coms], np.linalg.norm(coms[1] - coms[0], axis=1)
    energy = [np.interp(t, own, run.energy.mechanical) for own, run in both]
    rows = (
        ("com", "Height of the centre of mass", "m", heights, "Distance between the two", distance),
        ("energy", "Kinetic and potential energy", "J", energy, "Difference", energy[1] - energy[0]),
    )
    pairs, differences = [], []
    for key, title, unit, values, apart, difference in rows:
        keep = kept([*values, difference])
        lines = dict(zip(labels, (y[keep] for y in values), strict=True))
        pairs.append(curve_data(key, title, unit, t[keep], lines))
        lines = {f"{apart.lower()} [{unit}]": difference[keep]}
        differences.append(curve_data(key, apart, unit, t[keep], lines))
    sizes = [_force_sizes(run) for run in (first, second)]
    if any(np.any(size) for _, size in sizes):
        # At the steps of both, so that no peak of either is lost.
        t = np.union1d(*(own[own <= t[-1]] for own, _ in sizes))
        one, other = (np.interp(t, own, size) for own, size in sizes)
        keep = kept([one, other, other - one])
        lines = dict(zip(labels, (one[keep], other[keep]), strict=True))
        pairs.append(curve_data("force", "Contact force, size", "N", t[keep], lines))
        between = {"difference [N]": (other - one)[keep]}
        differences.append(curve_data("force", "Difference", "N", t[keep], between))
    return GhostData(labels, moving, pairs, differences, _figures(first, second), summary(second))


def check_same_robot(first: Trajectory, second: Trajectory) -> None:
    """Raise ShapeError unless two runs have robots with the same bodies and coordinates."""
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


def _force_sizes(run: Trajectory) -> tuple[np.ndarray, np.ndarray]:
    """Times [s] and sizes [N] of the contact force, of every step where that is known."""
    forces = ForceHistory(run, np.array([0]))
    return forces.t, np.linalg.norm(forces.total, axis=1)


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
