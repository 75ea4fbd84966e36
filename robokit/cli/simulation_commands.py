"""The commands fall, simulate, sweep and replay."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import difflib
import math
import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from robokit.cli.common import (
    INTERRUPTED,
    SIMULATION_FAILED,
    Compiling,
    WrongUsage,
    file_stem,
    load,
    open_page,
    print_json,
    say,
    shows_progress,
    tell,
    tell_up_axes,
    writable,
)
from robokit.errors import RobokitError, counted, warn
from robokit.files import refuse_input, shell_word

MOST_STEPS = 100_000_000  # Largest number of steps: an hour of computing. More than that is a typing error.
STEEPEST_GROUND = 89.0  # tilt of the ground [degrees]
LONGEST_RUN = 100_000.0  # longest simulation without --dt [s]
NEAREST_TOLD = 5  # number of pairs without contact that are listed
START_TRIES = 20  # random configurations that are tried until the loops of a robot can be closed


def fall(arguments: argparse.Namespace) -> int:
    """Simulate a robot that falls on the ground, and open the page of its motion."""
    import robokit as rk

    if arguments.base == "fixed":
        raise WrongUsage(
            "a robot with a fixed base does not fall: leave out --base fixed, or take robokit simulate"
        )
    ground = _ground(arguments)
    robot = load(arguments.robot, arguments.base, arguments.mimic, arguments)
    tell_up_axes(robot, arguments)
    q0 = rk.standing_configuration(
        robot,
        height=arguments.height,
        tilt=math.radians(arguments.tilt),
        seed=arguments.seed,
        ground=ground,
        self_collision=arguments.self_collision,
    )
    return _simulate_and_show(arguments, robot, q0, ground)


def _ground(arguments: argparse.Namespace) -> Any:
    """The ground of a fall."""
    import robokit as rk

    if arguments.terrain is None:
        if not abs(arguments.ground_tilt) <= STEEPEST_GROUND:
            raise WrongUsage(
                f"--ground-tilt {arguments.ground_tilt:g}: take an angle from {-STEEPEST_GROUND:g} to "
                f"{STEEPEST_GROUND:g}"
            )
        return rk.Ground(tilt=math.radians(arguments.ground_tilt) or None)
    if arguments.ground_tilt:
        raise WrongUsage("--ground-tilt and --terrain: take one of them")
    longer, high = arguments.terrain_size, arguments.terrain_height
    try:
        return rk.Ground(terrain=rk.HeightField.from_picture(arguments.terrain, longer, high=high))
    except rk.ShapeError as error:
        raise WrongUsage(str(error).replace("path: ", "--terrain ", 1)) from error


def simulate(arguments: argparse.Namespace) -> int:
    """Simulate passive motion from a random, neutral or named configuration, or the scene of a file."""
    import robokit as rk

    robot = load(arguments.robot, arguments.base, arguments.mimic, arguments)
    tell_up_axes(robot, arguments)
    if arguments.scene and robot.scene is None:
        raise WrongUsage(f"--scene is for files that have one, such as MJCF; {robot.source} has none")
    start = arguments.start or ("initial" if arguments.scene else None)
    if start is not None:
        q0 = robot.configuration(start)
    else:
        q0 = robot.neutral() if arguments.neutral else _random_start(robot, arguments.seed)
    ground = None
    if arguments.scene:
        ground = robot.scene.ground
    elif arguments.ground:
        ground = rk.Ground(height=arguments.ground_height)
        if robot.base == "floating" and start is None:
            q0 = rk.standing_configuration(
                robot,
                seed=arguments.seed,
                q=q0,
                ground_height=arguments.ground_height,
                self_collision=arguments.self_collision,
            )
    own = robot.scene if arguments.scene else rk.Scene()
    return _simulate_and_show(arguments, robot, q0, ground, own.actuators, own.springs)


def collisions(arguments: argparse.Namespace) -> int:
    """List the pairs of links in contact at a configuration, and the nearest others."""
    import robokit as rk

    robot = load(arguments.robot, arguments.base, arguments.mimic, arguments)
    given_height, height = arguments.ground_height is not None, arguments.ground_height or 0.0
    ground = rk.Ground(height=height) if arguments.ground or given_height else None
    q = _configuration(robot, arguments, height)
    given: dict[str, Any] = {"ground": ground, "pairs": "all" if arguments.all_pairs else None}
    found = rk.collisions(robot, q, margin=arguments.margin, **given)
    if arguments.json:
        rows = [
            {"a": c.a, "b": c.b, "depth": c.depth, "point_a": c.point_a.tolist(),
             "point_b": c.point_b.tolist(), "normal": c.normal.tolist()}
            for c in found
        ]  # fmt: skip
        print_json({"robot": robot.name, "margin": arguments.margin, "collisions": rows})
        return 0
    all_pairs = rk.distance(robot, q, **given)
    nearer = f"nearer than {arguments.margin:g} m" if arguments.margin > 0.0 else "in contact"
    tell(f"{robot.name}: {len(found)} of {counted(len(all_pairs), 'pair')} of links {nearer}")
    for c in found:
        tell(f"  {_metres(-c.depth)}  {c.a}, {c.b}")
    beyond = [k for k in all_pairs.distance.argsort().tolist() if all_pairs.pairs[k] not in found.pairs]
    if beyond[:NEAREST_TOLD]:
        tell("the nearest others:" if found else "the nearest:")
    for k in beyond[:NEAREST_TOLD]:
        tell(f"  {_metres(all_pairs.distance[k])}  {', '.join(all_pairs.pairs[k])}")
    return 0


def _metres(distance: float) -> str:
    return f"{round(distance, 6) + 0.0:10.6f} m"


def _configuration(robot: Any, arguments: argparse.Namespace, height: float) -> np.ndarray:
    """The configuration of --at, with the joints of --joint."""
    import robokit as rk

    names = {} if robot.scene is None else robot.scene.configurations
    if arguments.at in names:
        q = robot.configuration(arguments.at)
    elif arguments.at == "stand":
        if robot.base == "fixed":
            raise WrongUsage("--at stand moves the base to the ground; add --base floating")
        q = rk.standing_configuration(robot, ground_height=height)
    elif arguments.at == "random":
        q = _random_start(robot, arguments.seed)
    elif arguments.at == "neutral":
        q = robot.neutral()
    else:
        raise rk.UnknownName("configuration", arguments.at, ["neutral", "stand", "random", *names])
    for name, value in arguments.joint:
        joint = robot.joint(name)
        low, high = robot.position_range(joint)
        if not low <= value <= high:
            unit = "m" if joint.kind == "prismatic" else "rad"
            warn(f"--joint {name}={value:g}: outside of its limits, {low:.4g} to {high:.4g} {unit}")
        q[joint.q_slice] = robot.configuration({name: value})[joint.q_slice]
    return q


def _random_start(robot: Any, seed: int) -> np.ndarray:
    """A random configuration from which the loops can be closed, found in a few tries."""
    import robokit as rk

    rng = np.random.default_rng(seed)
    for _ in range(START_TRIES):
        q = robot.random_configuration(rng)
        with contextlib.suppress(rk.ShapeError):
            return rk.close_loops(robot, q)
    return q


def _simulate_and_show(
    arguments: argparse.Namespace,
    robot: Any,
    q0: np.ndarray,
    ground: Any,
    actuators: Any = (),
    springs: Any = (),
) -> int:
    """Simulate, write the page whatever happens on the way, print the report; returns the exit status."""
    import robokit as rk

    # Pages of two robots have different names.
    own = f"{file_stem(robot)}_{arguments.command.__name__}.html"
    page = writable(own if arguments.output is None else arguments.output, ".html")
    data = None if arguments.save is None else writable(arguments.save, ".npz")
    films = wanted_films(arguments)
    for file in (page, data, *films):
        if file is not None:
            refuse_input(file, robot)
    _check_times(arguments)
    if arguments.follow is not None:
        robot.link(arguments.follow)
    options = {
        "duration": arguments.duration,
        "dt": arguments.dt,
        "ground": ground,
        "self_collision": arguments.self_collision,
        "actuators": actuators or None,
        "springs": springs or None,
        "progress": shows_progress(),
    }
    second = Second(q0, options, arguments.compare) if arguments.compare else None
    broke = ""
    try:
        trajectory = rk.simulate(robot, q0, **options)
    except rk.SimulationError as error:
        trajectory, broke = error.trajectory, str(error)
    except KeyboardInterrupt:
        say("interrupted before there was anything to write")
        return INTERRUPTED
    interrupted = bool(trajectory.summary.get("interrupted"))
    if broke:
        say(broke.partition(" The states before")[0].rstrip(" .").replace("try dt = ", "try --dt "))
    if interrupted:
        say(f"interrupted at t = {trajectory.t[-1]:.4g} s: writing what was computed until then")
    try:
        _write(trajectory, page, data, second, arguments.live and not broke, arguments.follow)
    except KeyboardInterrupt:
        if interrupted:
            raise
        interrupted = True
        say("interrupted when everything was computed: writing the results; another Ctrl-C discards them")
        _write(trajectory, page, data, None, follow=arguments.follow)
    first, *lines = trajectory.report()
    tell(first)
    tell(f"  robot         {robot.base} base, {counted(robot.nv, 'degree')} of freedom")
    tell("\n".join(lines))
    tell(f"  time          {_times(trajectory.summary, arguments.compiling)}")
    until = " until it broke down" if broke else ""
    tell(f"  page          {page} ({page.stat().st_size / 1e6:.2f} MB){until}")
    if second is not None and second.labels:
        tell(f"  compared      {second.labels[0]} beside {second.labels[1]}")
    if data is not None:
        tell(f"  trajectory    {data}")
    if not interrupted:
        write_films(arguments, page, films)
    open_page(page, arguments.no_open or bool(broke) or interrupted)
    return INTERRUPTED if interrupted else SIMULATION_FAILED if broke else 0


def _write(
    trajectory: Any,
    page: Path,
    data: Path | None,
    second: Second | None,
    live: bool = False,
    follow: str | None = None,
) -> None:
    """Write the page and, where a name is given, the trajectory."""
    if data is not None:
        trajectory.save(data)
    if second is None or trajectory.summary.get("interrupted"):
        trajectory.to_html(page, live=live and _can_be_live(trajectory), follow=follow)
    else:
        second.write(trajectory, page, follow)


def _can_be_live(trajectory: Any) -> bool:
    """Whether the page can take the steps of a run; says why where it cannot."""
    from robokit.viewer.live_data import check_live

    try:
        check_live(trajectory)
    except RobokitError as error:
        reason = str(error).partition("; ")[0].replace("live: ", "the page cannot continue the run: ", 1)
        pairs = trajectory.summary.get("self_collision_pairs")
        say(f"{reason}; --no-self-collision makes its step shorter" if pairs else reason)
        return False
    return True


def _check_times(arguments: argparse.Namespace) -> None:
    if arguments.dt is None:
        if arguments.duration > LONGEST_RUN:
            raise WrongUsage(
                f"--duration {arguments.duration:g}: take at most {LONGEST_RUN:,.0f} s, or choose the time "
                "step with --dt"
            )
        return
    steps = arguments.duration / arguments.dt
    if not 0.5 < steps <= MOST_STEPS:
        raise WrongUsage(
            f"--duration {arguments.duration:g} and --dt {arguments.dt:g} make {steps:.3g} steps; "
            f"take between 1 and {MOST_STEPS:,}"
        )


def _times(summary: dict[str, Any], compiling: Compiling) -> str:
    """Where the time went: compiling, the steps themselves, and all the rest of the command."""
    speed = summary.get("steps_per_second")
    stepping = summary["steps"] / speed if speed else 0.0
    rest = max(0.0, time.monotonic() - compiling.started - compiling.seconds - stepping)
    compiled = f"{compiling.seconds:.2f} s compiling, " if compiling.kernels else ""
    return f"{compiled}{stepping:.2f} s stepping, {rest:.2f} s everything else"


# ---- Films and pictures of a motion, which fall and simulate write beside the page ---------------


def wanted_films(arguments: argparse.Namespace) -> list[Path]:
    """The files that the options ask for, checked before any work.

    Raises RobokitError where one cannot be written, or what makes it is not installed; WrongUsage for a
    picture after the end.
    """
    if arguments.at is not None and arguments.at > arguments.duration:
        raise WrongUsage(f"--at {arguments.at:g}: the run takes {arguments.duration:g} s (--duration)")
    files = [
        writable(name, suffix)
        for suffix in (".mp4", ".gif", ".png")
        if (name := getattr(arguments, suffix[1:])) is not None
    ]
    if files:
        from robokit.viewer.film import check_browser, check_film

        check_browser()
        for file in files:
            if file.suffix.lower() != ".png":
                check_film(file)
    return files


def write_films(arguments: argparse.Namespace, page: Path, files: list[Path]) -> None:
    """Write the films and pictures of a page, with a progress bar on a terminal; say what was written."""
    from robokit.viewer.film import SIZE, write_film, write_picture

    for file in files:
        kind = file.suffix.lower()
        size = arguments.size or ((640, 360) if kind == ".gif" else SIZE)
        options: dict[str, Any] = {"size": size, "panels": arguments.whole_page, "look": arguments.look}
        if kind == ".png":
            write_picture(page, file, at=arguments.at, **options)
        else:
            fps = arguments.fps or (20.0 if kind == ".gif" else 30.0)
            write_film(page, file, fps=fps, progress=shows_progress(), **options)
        label = "picture" if kind == ".png" else "film"
        tell(f"  {label:<13} {file} ({file.stat().st_size / 1e6:.2f} MB)")


# ---- --compare KEY=VALUE: the same start once more, with one thing changed -----------------------

SIMULATE = ("dt", "integrator", "joint_damping", "self_collision")  # what of ``rk.simulate`` may differ

GROUND = ("friction", "restitution", "torsional", "rolling", "sink", "time", "spin", "shape_error")
"""Arguments of ``rk.Ground`` that the second run may change."""

WORDS = {"true": True, "on": True, "yes": True, "false": False, "off": False, "no": False, "none": None}


def changed_option(text: str) -> tuple[str, Any]:
    """The name and the value of ``--compare``; ArgumentTypeError for no NAME=VALUE, or no such name."""
    name, equals, given = text.partition("=")
    name = name.strip().replace("-", "_")
    known = (*SIMULATE, *GROUND)
    if not equals or not given.strip():
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, such as dt=0.0005, got {text!r}")
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise argparse.ArgumentTypeError(f"no option {name!r}{hint} There are {', '.join(known)}")
    return name, _value(name, given.strip())


def _value(name: str, text: str) -> Any:
    if name == "integrator":
        return text
    if text.lower() in WORDS:
        return WORDS[text.lower()]
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or name == "self_collision":
        kind = "on or off" if name == "self_collision" else "a number"
        raise argparse.ArgumentTypeError(f"{name}: expected {kind}, got {text!r}")
    return number


class Second:
    """The second run of a comparison, from q0, (nq,), with the ``options`` of ``rk.simulate`` but for a
    ``change``.

    ``labels`` are those of the two runs; none before :meth:`write`. Raises WrongUsage where there is no
    ground whose property could differ, the value is not accepted, or it is that of the first run.
    """

    def __init__(self, q0: Any, options: dict[str, Any], change: tuple[str, Any]) -> None:
        self.q0 = q0
        self.labels: tuple[str, str] | None = None
        self._first, self._name = options, change[0]
        name, value = change
        ground = options["ground"]
        if name not in GROUND:
            before, self._options = options.get(name), {**options, name: value}
            if name == "self_collision":
                before = ground is not None if before is None else before
        elif ground is None:
            raise WrongUsage(f"--compare {name}: there is no ground; add --ground")
        else:
            before = getattr(ground, name)
            self._options = {**options, "ground": dataclasses.replace(ground, **{name: value})}
        if before == value:
            self._refuse(_label(name, value))

    def write(self, first: Any, path: Path, follow: str | None = None) -> None:
        """Make the second run and write the page of both, in which the camera follows a link, if any."""
        import robokit as rk
        from robokit.viewer import compare

        try:
            second = rk.simulate(first.robot, self.q0, **self._options)
            broke = " (interrupted)" if second.summary.get("interrupted") else ""
        except rk.SimulationError as error:
            second, broke = error.trajectory, " (broke down)"
        one, other = self._named(first, self._first), self._named(second, self._options)
        if one == other:
            self._refuse(one)
        self.labels = (one, other + broke)
        compare(first, second, path, self.labels, follow=follow)

    def _named(self, run: Any, options: dict[str, Any]) -> str:
        name = self._name
        if name in GROUND:
            return _label(name, getattr(options["ground"], name))
        if name == "self_collision":
            return _label(name, run.summary["self_collision_pairs"] > 0)
        return _label(name, run.summary["dt"] if name == "dt" else options.get(name))

    def _refuse(self, label: str) -> None:
        raise WrongUsage(f"--compare {self._name}: the first run has {label}, too; give another value")


def _label(name: str, value: Any) -> str:
    name = name.replace("_", "-")
    if isinstance(value, bool):
        return f"{name} {'on' if value else 'off'}"
    if value is None:
        return f"{name} by default"
    if name == "dt":
        return f"dt = {1e3 * value:g} ms"
    return f"{name} = {value:g}" if isinstance(value, (int, float)) else f"{name} = {value}"


# ---- sweeps --------------------------------------------------------------------------------------


def sweep(arguments: argparse.Namespace) -> int:
    """Simulate many falls with different starts, masses, friction and robots, on all processors."""
    import robokit as rk

    if arguments.list:
        tell(f"Parameters (--set NAME=VALUES):\n{rk.sweep_parameters}")
        tell(f"\nMeasures (--measure NAME):\n{rk.measures}")
        return 0
    if arguments.report and not arguments.robots and not arguments.resume:
        return _write_report(arguments, _opened(arguments.report))
    if bool(arguments.robots) == bool(arguments.resume):
        raise WrongUsage(
            "sweep: give a robot, as in robokit sweep humanoid --count 1000 --tilt 0:20; or --resume FOLDER, "
            "or --report FOLDER, of an existing sweep"
        )
    shown = sys.stderr is not None
    try:
        if arguments.resume:
            how = {name: getattr(arguments, name) for name in ("scheduler", "workers", "device")}
            found = _opened(arguments.resume).resume(progress=shown, **how)
        else:
            found = _new(arguments, shown)
    except KeyboardInterrupt as stopped:
        say(str(stopped) or "interrupted")
        return INTERRUPTED
    tell("\n".join(_summary(found)))
    if arguments.report is not None:
        return _write_report(arguments, found)
    return 0


def _opened(folder: str) -> Any:
    """The sweep in a folder that an argument names; WrongUsage for none, RobokitError for a damaged one."""
    import robokit as rk

    try:
        return rk.open_sweep(folder)
    except RobokitError as error:
        if os.path.exists(os.path.join(folder, "sweep.json")):
            raise
        raise WrongUsage(str(error)) from error


def _new(arguments: argparse.Namespace, shown: bool) -> Any:
    import robokit as rk

    loaded = [load(name, arguments.base, arguments.mimic, arguments) for name in arguments.robots]
    own = [robot.name for robot in loaded]
    if len(set(own)) < len(own):
        own = list(arguments.robots)
    if len(set(own)) < len(own):
        raise WrongUsage("sweep: a robot is given twice")
    robots, given = dict(zip(own, loaded, strict=True)), parameters(arguments)
    if arguments.count is None and not any(isinstance(x, rk.Grid) for x in given.values()):
        raise WrongUsage(
            "--count N: how many rows? Only a grid (--grid N, --tilt grid:0:20:11) says so itself"
        )
    output = arguments.output or f"{file_stem(next(iter(robots.values())))}_sweep"
    return rk.sweep(
        robots,
        parameters=given,
        actuators=servos(given),
        duration=arguments.duration,
        ground=not arguments.no_ground,
        measures=arguments.measure,
        out=output,
        count=arguments.count,
        seed=arguments.seed,
        dt=arguments.dt,
        sobol=arguments.sobol,
        trajectories=arguments.trajectory,
        chunk=arguments.chunk,
        scheduler=arguments.scheduler,
        workers=arguments.workers,
        progress=shown,
        self_collision=arguments.self_collision,
        device=arguments.device,
    )


def _summary(found: Any) -> list[str]:
    """What a sweep came to, in lines of 80 characters."""
    from robokit.sweeps.distributions import distribution_text

    recipe, rows = found.recipe, found.rows(["row", "failure"])
    failed = rows.failures
    names = ", ".join(recipe.robots)
    lines = [f"sweep of {names}: {recipe.count:,} rows of {recipe.duration:g} s in {found.folder}"]
    scales = {name: (scale, unit) for _, name, unit, scale, _ in OPTIONS}
    wide = max(13, *map(len, recipe.parameters)) if recipe.parameters else 13
    for name, given in recipe.parameters.items():
        scale, unit = scales.get(name, (1.0, ""))
        unit = f" {unit.lower()}" if scale != 1.0 else ""
        lines.append(f"  {name:<{wide}} {distribution_text(given, scale)}{unit}")
    run = found.summary
    if run is not None and run.seconds > 0.0:
        rate = run.computed / run.seconds
        speed = f", {rate:,.{0 if rate >= 10.0 else 2}f} a second" if run.computed else ""
        lines.append(f"  computed      {counted(run.computed, 'row')} in {run.seconds:.1f} s{speed}")
    if failed:
        first, why = next((k, why) for k, why in zip(rows["row"], rows["failure"], strict=True) if why)
        lines.append(f"  failed        {counted(failed, 'row')}, the first: {why}")
    row = int(first) if failed else 0
    if "peak_force" in found.columns:
        worst = found.worst_rows("peak_force", 1)
        for each in worst.select(["row", "peak_force", "peak_force_link"]).to_pylist():
            if not each["peak_force"] > 0.0:
                continue
            row = each["row"]
            force = f"{each['peak_force']:,.0f} N on {each['peak_force_link']}"
            lines.append(f"  hardest       {force}, in row {row}")
    lines.append(f"  see a row     robokit replay {shell_word(found.folder)} {row}")
    return lines


def _write_report(arguments: argparse.Namespace, found: Any) -> int:
    """Write the page of a sweep."""
    inside = arguments.report and not arguments.robots and arguments.output
    page = writable(arguments.output, ".html") if inside else _own_page(Path(found.folder))
    found.report(page)
    tell(f"  page          {page} ({page.stat().st_size / 1e6:.2f} MB)")
    open_page(page, arguments.no_open)
    return 0


def _own_page(folder: Path) -> Path:
    """The page in a sweep's folder, which may come from anybody; RobokitError for no file, or a link,
    which could lead anywhere.
    """
    page = folder / "report.html"
    if page.is_symlink() or (page.exists() and not page.is_file()):
        raise RobokitError(f"{page} is {'a link' if page.is_symlink() else 'no file'}; give -o FILE")
    return page


def replay(arguments: argparse.Namespace) -> int:
    """Repeat one row of a sweep, to the last bit, and write its page."""
    found = _opened(arguments.folder)
    row = _row(found, arguments.row)
    page = writable(arguments.output or f"row_{row}.html", ".html")
    data = None if arguments.save is None else writable(arguments.save, ".npz")
    trajectory = found.replay(row)
    if data is not None:
        trajectory.save(data)
    trajectory.to_html(page)
    first, *lines = trajectory.report()
    tell(first)
    for name, value in found.recipe.rows(row, row + 1).items():
        scale, unit = next(((s, u.lower()) for _, n, u, s, _ in OPTIONS if n == name), (1.0, ""))
        shown = value[0] if isinstance(value[0], str) else f"{value[0] / scale:.6g}"
        tell(f"  {name:<13} {shown}" + (f" {unit}" if scale != 1.0 else ""))
    tell("\n".join(lines))
    same = trajectory.summary.get("same_bits")
    if same is not None:
        tell(f"  row           {row}: " + ("the bits of the sweep" if same else "other bits than the sweep"))
    tell(f"  page          {page} ({page.stat().st_size / 1e6:.2f} MB)")
    if data is not None:
        tell(f"  trajectory    {data}")
    open_page(page, arguments.no_open)
    return 0


def _row(found: Any, text: str) -> int:
    """The number of a row, as typed."""
    if text.isdecimal():
        return int(text)
    kind, _, measure = text.partition(":")
    if kind != "worst" or not measure:
        raise WrongUsage(f"ROW: expected the number of a row, or worst:MEASURE, got {text!r}")
    worst = found.worst_rows(measure, 1)
    if not worst.num_rows:
        raise RobokitError(f"ROW: no row has a finite {measure}")
    return int(worst["row"][0])


# ---- Options of the command sweep whose values differ from row to row, and the servos that they mean

DEGREE = math.pi / 180.0

OPTIONS: tuple[tuple[str, str, str, float, str], ...] = (
    ("--tilt", "tilt", "DEG", DEGREE, "angle by which the robot leans at the start"),
    ("--direction", "direction", "DEG", DEGREE, "direction of tilt and speed: 0 for +x, counterclockwise"),
    ("--yaw", "yaw", "DEG", DEGREE, "angle by which the robot is turned about the vertical"),
    ("--drop-height", "height", "M", 1.0, "gap under the robot's lowest point; default: 0.02"),
    ("--speed", "speed", "M/S", 1.0, "horizontal speed at the start, along the direction"),
    ("--spin", "spin", "DEG/S", DEGREE, "angular velocity about the vertical at the start"),
    (
        "--joint-noise",
        "joint_noise",
        "RAD|M",
        1.0,
        "standard deviation of random changes of each joint at the start",
    ),
    ("--mass", "mass", "FACTOR", 1.0, "factor of mass and inertia"),
    ("--friction", "friction", "MU", 1.0, "friction coefficient of the ground"),
    ("--restitution", "restitution", "SHARE", 1.0, "coefficient of restitution of the ground"),
    ("--ground-tilt", "ground_tilt", "DEG", DEGREE, "angle by which the ground descends towards +x"),
    ("--push", "push", "N*S", 1.0, "size of an impulse on the base"),
    ("--push-direction", "push_direction", "DEG", DEGREE, "horizontal direction of the impulse"),
    ("--push-time", "push_time", "S", 1.0, "time of the impulse"),
    ("--kp", "kp", "N*M/RAD", 1.0, "stiffness of servos that hold each joint at its start"),
    ("--kd", "kd", "N*M*S/RAD", 1.0, "damping of these servos; default: 0"),
    ("--effort", "effort", "FACTOR", 1.0, "factor of each servo's effort limit in the URDF"),
    (
        "--target-noise",
        "target_noise",
        "RAD|M",
        1.0,
        "standard deviation of a constant error of each servo's target",
    ),
)
"""(option, parameter, unit, radians or metres of that unit, help) of the commonest parameters."""


SERVOS = ("kp", "kd", "effort", "target", "target_noise")  # parameters, or their beginnings, that need servos


def parameters(arguments: argparse.Namespace) -> dict[str, Any]:
    """The parameters by name, as distributions; for a bad text WrongUsage, which names the option."""
    from robokit.sweeps.distributions import Grid, Uniform, read_distribution

    given: dict[str, tuple[str, str, float]] = {}
    for option, name, _, scale, _ in OPTIONS:
        text = getattr(arguments, f"sweep_{name}")
        if text is not None:
            given[name] = (option, text, scale)
    for text in arguments.others:
        name, equals, values = text.partition("=")
        if not equals:
            raise WrongUsage(f"--set {text}: expected NAME=VALUES, such as mass:torso=0.5:2")
        if name in given:
            raise WrongUsage(f"--set {text}: {name} is given by {given[name][0]} already")
        given[name] = (f"--set {name}", values, 1.0)
    found = {}
    for name, (option, text, scale) in given.items():
        try:
            found[name] = read_distribution(text, scale)
            if scale != 1.0 and isinstance((found[name].values() or [0.0])[0], str):
                raise WrongUsage(f"expected numbers of degrees, such as 10 or 0:20, got {text!r}")
        except RobokitError as error:
            raise WrongUsage(f"{option}: {error}") from None
        if arguments.grid and type(found[name]) is Uniform:
            found[name] = Grid(found[name].low, found[name].high, arguments.grid)  # type: ignore[attr-defined]
    return found


def servos(names: Iterable[str]) -> Any:
    """The servos of a sweep with these parameters; None for none.

    Their gains are 1, or 0 where the command has none: so the factors ``kp`` and ``kd`` are the gains. Raises
    WrongUsage for a parameter that changes what no servo has.
    """
    import robokit as rk

    given = list(names)
    driven = "kp" in given or "kd" in given
    for name in given:
        head, _, joint = name.partition(":")
        if head in SERVOS and not driven:
            raise WrongUsage(f"{name}: there are no servos; give stiffness and damping: --kp 100 --kd 5")
        if joint and head in ("kp", "kd") and head not in given:
            raise WrongUsage(f"{name}: this is a factor of --{head} on that joint; give --{head}, too")
    return rk.PD(kp=float("kp" in given), kd=float("kd" in given)) if driven else None
