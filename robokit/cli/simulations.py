"""The commands that simulate: fall and simulate."""

from __future__ import annotations

import argparse
import contextlib
import math
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from robokit.cli.comparisons import Second
from robokit.cli.compiling import Compiling
from robokit.cli.films import wanted_films, write_films
from robokit.cli.output_files import refuse_input, writable
from robokit.cli.plumbing import (
    BROKE_DOWN,
    INTERRUPTED,
    WrongUsage,
    counted,
    file_stem,
    load,
    open_page,
    say,
    tell,
    tell_up_axes,
)
from robokit.errors import RobokitError

MOST_STEPS = 100_000_000
"""Largest number of steps: an hour of computing. More than that is a typing error."""

STEEPEST = 89.0
"""Tilt of the ground [degrees]."""

LONGEST = 100_000.0
"""Longest simulation without --dt [s]."""

TRIES = 20
"""Random configurations that are tried, where a robot has loops to close."""


def fall(arguments: argparse.Namespace) -> int:
    """A robot with a floating base falls on the ground."""
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
        if not abs(arguments.ground_tilt) <= STEEPEST:
            raise WrongUsage(
                f"--ground-tilt {arguments.ground_tilt:g}: take an angle from {-STEEPEST:g} to {STEEPEST:g}"
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
    """Passive motion from a random or neutral configuration."""
    import robokit as rk

    robot = load(arguments.robot, arguments.base, arguments.mimic, arguments)
    tell_up_axes(robot, arguments)
    q0 = robot.neutral() if arguments.neutral else _random_start(robot, arguments.seed)
    ground = None
    if arguments.ground:
        ground = rk.Ground(height=arguments.ground_height)
        if robot.base == "floating":
            q0 = rk.standing_configuration(
                robot,
                seed=arguments.seed,
                q=q0,
                ground_height=arguments.ground_height,
                self_collision=arguments.self_collision,
            )
    return _simulate_and_show(arguments, robot, q0, ground)


def _random_start(robot: Any, seed: int) -> np.ndarray:
    """A random configuration from which the loops can be closed, found in a few tries."""
    import robokit as rk

    rng = np.random.default_rng(seed)
    for _ in range(TRIES):
        q = robot.random_configuration(rng)
        with contextlib.suppress(rk.ShapeError):
            return rk.close_loops(robot, q)
    return q


def _simulate_and_show(arguments: argparse.Namespace, robot: Any, q0: np.ndarray, ground: Any) -> int:
    """Simulate, write the page whatever happens on the way, print the report; returns the exit status."""
    import robokit as rk

    # Falls of two robots are two pages.
    own = f"{file_stem(robot)}_{arguments.command.__name__}.html"
    page = writable(own if arguments.output is None else arguments.output, ".html")
    data = None if arguments.save is None else writable(arguments.save, ".npz")
    films = wanted_films(arguments)
    for file in (page, data, *films):
        if file is not None:
            refuse_input(file, robot)
    _check_times(arguments)
    options = {
        "duration": arguments.duration,
        "dt": arguments.dt,
        "ground": ground,
        "self_collision": arguments.self_collision,
        "progress": sys.stderr is not None and sys.stderr.isatty(),
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
        _write(trajectory, page, data, second, arguments.live and not broke)
    except KeyboardInterrupt:
        if interrupted:
            raise
        interrupted = True
        say("interrupted when all was computed: writing it; once more Ctrl-C leaves it unwritten")
        _write(trajectory, page, data, None)
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
    return INTERRUPTED if interrupted else BROKE_DOWN if broke else 0


def _write(trajectory: Any, page: Path, data: Path | None, second: Second | None, live: bool = False) -> None:
    """Write the page and, where a name is given, the trajectory."""
    if data is not None:
        trajectory.save(data)
    if second is None or trajectory.summary.get("interrupted"):
        trajectory.to_html(page, live=live and _can_be_live(trajectory))
    else:
        second.write(trajectory, page)


def _can_be_live(trajectory: Any) -> bool:
    """Whether the page can take the steps of a run; says why where it cannot."""
    from robokit.viewer.data.live_data import check_live

    try:
        check_live(trajectory)
    except RobokitError as error:
        reason = str(error).partition("; ")[0].replace("live: ", "the page cannot go on with the run: ", 1)
        pairs = trajectory.summary.get("self_collision_pairs")
        say(f"{reason}; --no-self-collision makes its step shorter" if pairs else reason)
        return False
    return True


def _check_times(arguments: argparse.Namespace) -> None:
    if arguments.dt is None:
        if arguments.duration > LONGEST:
            raise WrongUsage(
                f"--duration {arguments.duration:g}: take at most {LONGEST:,.0f} s, or choose the time step "
                "with --dt"
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
