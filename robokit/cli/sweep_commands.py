"""The commands sweep and replay, and the options whose values differ from row to row."""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from robokit.cli.common import (
    INTERRUPTED,
    count_number,
    count_text,
    file_stem,
    load,
    open_page,
    positive,
    say,
    seed_number,
    tell,
    writable,
)
from robokit.errors import RobokitError
from robokit.files import shell_word

SWEEP_DESCRIPTION = """Simulate many falls, each with its own start, masses, friction and pushes.

VALUES of an option are a number or a distribution over the rows:
  0.5                the same number in every row
  0:20               uniform between two numbers
  normal:1:0.1       mean, standard deviation; normal:1:0.1:0.8:1.2 is truncated
  choice:a,b,c       one of these
  grid:0:20:11       eleven evenly spaced numbers in turn; also grid:1,2,5
  sobol:0:20         as 0:20, from a Sobol sequence

--report and replay execute no code from the folder of a sweep. --resume
executes the code of its user-defined measures (rk.Measure): resume only
folders that you trust.
"""


def add_sweep(sub: argparse.ArgumentParser) -> None:
    """The arguments of the command sweep."""
    # Values such as -90:90 are no options.
    sub._negative_number_matcher = re.compile(r"-[\d.]")  # type: ignore[attr-defined]
    sub.formatter_class = argparse.RawDescriptionHelpFormatter
    sub.description = SWEEP_DESCRIPTION
    sub.add_argument(
        "robots", metavar="ROBOT", nargs="*", help="robots, as in the other commands; used in turn"
    )
    sub.add_argument(
        "-o", "--output", metavar="FOLDER", help="new folder for the results; default: NAME_sweep"
    )
    sub.add_argument(
        "--count", type=count_number, metavar="N", help="number of rows; default: every combination of a grid"
    )
    for option, name, unit, _, text in OPTIONS:
        sub.add_argument(option, dest=f"sweep_{name}", metavar="VALUES", help=f"[{unit}] {text}")
    sub.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUES", dest="others",
        help="any parameter of --list, in its unit: mass:torso=0.5:2, joint:left_knee=0:1",
    )  # fmt: skip
    sub.add_argument(
        "--grid", type=count_number, metavar="N", help="use N evenly spaced numbers for each range A:B"
    )
    sub.add_argument("--sobol", action="store_true", help="draw all ranges A:B from a Sobol sequence")
    sub.add_argument(
        "--seed", type=seed_number, default=0, metavar="N", help="seed of all random numbers; default: 0"
    )
    sub.add_argument(
        "--duration", type=positive, default=2.0, metavar="S", help="duration of a row; default: 2 s"
    )
    sub.add_argument("--dt", type=positive, metavar="S", help="time step; default: chosen for the robot")
    sub.add_argument("--no-ground", action="store_true", help="without a ground")
    sub.add_argument(
        "--self-collision", action=argparse.BooleanOptionalAction,
        help="let the bodies of a robot collide with each other; default: if there is a ground",
    )  # fmt: skip
    sub.add_argument(
        "--measure", action="append", metavar="NAME",
        help="measure to record; may be repeated; default: most of them",
    )  # fmt: skip
    sub.add_argument(
        "--trajectory", action="append", default=[], type=seed_number, metavar="ROW",
        help="also store the motion of this row",
    )  # fmt: skip
    _add_machines(sub)
    sub.add_argument(
        "--resume", metavar="FOLDER", help="continue this sweep; runs the code of its user-defined measures"
    )
    sub.add_argument(
        "--report", nargs="?", const="", metavar="FOLDER",
        help="write the report of the sweep in this folder or, without a folder, of this sweep",
    )  # fmt: skip
    sub.add_argument("--no-open", action="store_true", help="only write the report")
    sub.add_argument("--list", action="store_true", help="print all parameters and measures")


def _add_machines(sub: argparse.ArgumentParser) -> None:
    """The arguments that say what computes."""
    sub.add_argument("--chunk", type=count_number, metavar="N", help="number of rows per file")
    sub.add_argument(
        "--workers", type=seed_number, metavar="N",
        help="number of processes; 0 computes in this process, without Dask; default: one per processor",
    )  # fmt: skip
    sub.add_argument(
        "--device", metavar="DEVICE",
        help="cuda: on the graphics cards, one process each; cuda:1: on that one; same bits as cpu",
    )  # fmt: skip
    sub.add_argument("--scheduler", metavar="ADDRESS", help="use the Dask cluster of this scheduler")


def add_replay(sub: argparse.ArgumentParser) -> None:
    """The arguments of the command replay."""
    sub.add_argument("folder", metavar="FOLDER", help="folder written by robokit sweep")
    sub.add_argument("row", metavar="ROW", help="number of the row, or worst:MEASURE")
    sub.add_argument("-o", "--output", metavar="FILE", help="page; default: row_ROW.html")
    sub.add_argument("--save", metavar="FILE", help="also write the trajectory (.npz)")
    sub.add_argument("--no-open", action="store_true", help="only write the page")


def sweep(arguments: argparse.Namespace) -> int:
    """Simulate many falls with different starts, masses, friction and robots, on all processors."""
    import robokit as rk

    if arguments.list:
        tell(f"Parameters (--set NAME=VALUES):\n{rk.sweep_parameters}")
        tell(f"\nMeasures (--measure NAME):\n{rk.measures}")
        return 0
    if arguments.report and not arguments.robots and not arguments.resume:
        return _write_report(arguments, rk.open_sweep(arguments.report))
    if bool(arguments.robots) == bool(arguments.resume):
        raise RobokitError(
            "sweep: give a robot, as in robokit sweep humanoid --count 1000 --tilt 0:20; or --resume FOLDER, "
            "or --report FOLDER, of a sweep that was begun"
        )
    shown = sys.stderr is not None
    try:
        found = _resumed(arguments, shown) if arguments.resume else _new(arguments, shown)
    except KeyboardInterrupt as stopped:
        say(str(stopped) or "interrupted")
        return INTERRUPTED
    tell("\n".join(_summary(found)))
    if arguments.report is not None:
        return _write_report(arguments, found)
    return 0


def _resumed(arguments: argparse.Namespace, shown: bool) -> Any:
    import robokit as rk

    return rk.open_sweep(arguments.resume).resume(
        scheduler=arguments.scheduler, workers=arguments.workers, progress=shown, device=arguments.device
    )


def _new(arguments: argparse.Namespace, shown: bool) -> Any:
    import robokit as rk

    robots, given = _robots(arguments), parameters(arguments)
    if arguments.count is None and not any(isinstance(x, rk.Grid) for x in given.values()):
        raise RobokitError(
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


def _robots(arguments: argparse.Namespace) -> dict[str, Any]:
    """The robots by their names, or by what was typed where two have one name."""
    robots = [load(name, arguments.base, arguments.mimic, arguments) for name in arguments.robots]
    own = [robot.name for robot in robots]
    if len(set(own)) < len(own):
        own = list(arguments.robots)
    if len(set(own)) < len(own):
        raise RobokitError("sweep: a robot is given twice")
    return dict(zip(own, robots, strict=True))


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
        lines.append(f"  computed      {count_text(run.computed, 'row')} in {run.seconds:.1f} s{speed}")
    if failed:
        first, why = next((k, why) for k, why in zip(rows["row"], rows["failure"], strict=True) if why)
        lines.append(f"  failed        {count_text(failed, 'row')}, the first: {why}")
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
    """The page in a sweep's folder, which may come from anybody.

    Raises:
        RobokitError: it is a link, which could lead anywhere, or no file.
    """
    page = folder / "report.html"
    if page.is_symlink() or (page.exists() and not page.is_file()):
        raise RobokitError(f"{page} is {'a link' if page.is_symlink() else 'no file'}; give -o FILE")
    return page


def replay(arguments: argparse.Namespace) -> int:
    """Repeat one row of a sweep, to the last bit, and write its page."""
    import robokit as rk

    found = rk.open_sweep(arguments.folder)
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
        raise RobokitError(f"ROW: expected the number of a row, or worst:MEASURE, got {text!r}")
    worst = found.worst_rows(measure, 1)
    if not worst.num_rows:
        raise RobokitError(f"ROW: no row has a finite {measure}")
    return int(worst["row"][0])


# Options of the command sweep whose values differ from row to row, and the servos that they mean
# -----------------------------------------------------------------------------------------------

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


SERVOS = ("kp", "kd", "effort", "target", "target_noise")
"""Parameters, or beginnings of them, that need servos."""


def parameters(arguments: argparse.Namespace) -> dict[str, Any]:
    """The parameters by name, as distributions.

    Raises:
        RobokitError: a text is none; names the option.
    """
    from robokit.sweeps.distributions import Grid, Uniform, read_distribution

    given: dict[str, tuple[str, str, float]] = {}
    for option, name, _, scale, _ in OPTIONS:
        text = getattr(arguments, f"sweep_{name}")
        if text is not None:
            given[name] = (option, text, scale)
    for text in arguments.others:
        name, equals, values = text.partition("=")
        if not equals:
            raise RobokitError(f"--set {text}: expected NAME=VALUES, such as mass:torso=0.5:2")
        if name in given:
            raise RobokitError(f"--set {text}: {name} is given by {given[name][0]} already")
        given[name] = (f"--set {name}", values, 1.0)
    found = {}
    for name, (option, text, scale) in given.items():
        try:
            found[name] = read_distribution(text, scale)
            if scale != 1.0 and isinstance((found[name].values() or [0.0])[0], str):
                raise RobokitError(f"expected numbers of degrees, such as 10 or 0:20, got {text!r}")
        except RobokitError as error:
            raise RobokitError(f"{option}: {error}") from None
        if arguments.grid and type(found[name]) is Uniform:
            found[name] = Grid(found[name].low, found[name].high, arguments.grid)  # type: ignore[attr-defined]
    return found


def servos(names: Iterable[str]) -> Any:
    """The servos of a sweep with these parameters; None for none.

    Their gains are 1, or 0 where the command has none: so the factors ``kp`` and ``kd`` are the gains.

    Raises:
        RobokitError: a parameter changes what no servo has.
    """
    import robokit as rk

    given = list(names)
    driven = "kp" in given or "kd" in given
    for name in given:
        head, _, joint = name.partition(":")
        if head in SERVOS and not driven:
            raise RobokitError(f"{name}: there are no servos; give stiffness and damping: --kp 100 --kd 5")
        if joint and head in ("kp", "kd") and head not in given:
            raise RobokitError(f"{name}: this is a factor of --{head} on that joint; give --{head}, too")
    return rk.PD(kp=float("kp" in given), kd=float("kd" in given)) if driven else None
