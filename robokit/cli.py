"""The command line: one function a command, errors in one line, exit status 0, 1 or 2.

robokit fall [ROBOT]       a robot falls; the page opens in the browser
robokit simulate ROBOT     passive motion
robokit view ROBOT         the robot in the browser
robokit info ROBOT         tree, masses, joints
robokit check FILE ...     what the importer finds
robokit parity ROBOT ...   robots in other engines, side by side
robokit mjcf ROBOT -o FILE the robot as a MuJoCo model
robokit sparsity ROBOT     the pattern of H as a picture
robokit cost ROBOT         operation counts of the algorithms
robokit cache              compiled code on disk
robokit robots             names that ROBOT may take
"""

from __future__ import annotations

import argparse
import difflib
import math
import os
import sys
import time
import warnings
import webbrowser
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from robokit.errors import RobokitError

ROBOT_HELP = "path of a URDF, the name of one of ours (robokit robots), or example-robot-data:NAME"

MOST_STEPS = 100_000_000
"""Steps of a simulation: an hour of computing. More is a slip of the keyboard."""

PICTURES = (".png", ".svg", ".pdf")

MOST_WARNINGS = 3
"""Warnings of the importer that a command shows before it gets to its work."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit status.

    0: done. 1: the command found errors in its subject, or could not do its work. 2: wrong usage, and in
    `check` a file that cannot be read.
    """
    parser = _parser()
    arguments = parser.parse_args(argv)
    warnings.showwarning = _show_warning
    try:
        return int(arguments.command(arguments) or 0)
    except RobokitError as error:
        return _fail(str(error))
    except BrokenPipeError:
        # The reader (head, less) has gone; say nothing and keep the interpreter from trying again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        return _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except KeyboardInterrupt:
        return _fail("interrupted")
    except Exception as error:  # a defect of ours: say so in a line, not in a traceback
        if os.environ.get("ROBOKIT_DEBUG"):
            raise
        what = f"{type(error).__name__}: {error}"
        return _fail(f"internal error: {what} (please report it; ROBOKIT_DEBUG=1 shows the traceback)")


def _fail(message: str) -> int:
    print(f"robokit: {message}", file=sys.stderr)
    return 1


def _show_warning(message: Any, *_: Any, **__: Any) -> None:
    print(f"robokit: warning: {message}", file=sys.stderr)


# ---- commands ----------------------------------------------------------------------------------


def fall(arguments: argparse.Namespace) -> int:
    """A robot with a floating base falls on the ground."""
    import robokit as rk

    robot = _load(arguments.robot, "floating", arguments.mimic)
    q0 = rk.standing_configuration(
        robot, height=arguments.height, tilt=math.radians(arguments.tilt), seed=arguments.seed
    )
    return _simulate_and_show(arguments, robot, q0, rk.Ground())


def simulate(arguments: argparse.Namespace) -> int:
    """Passive motion from a random or neutral configuration."""
    import robokit as rk

    robot = _load(arguments.robot, arguments.base, arguments.mimic)
    q0 = robot.neutral() if arguments.neutral else robot.random_configuration(arguments.seed)
    ground = None
    if arguments.ground:
        ground = rk.Ground(height=arguments.ground_height)
        if robot.base == "floating":
            q0 = rk.standing_configuration(
                robot, seed=arguments.seed, q=q0, ground_height=arguments.ground_height
            )
    return _simulate_and_show(arguments, robot, q0, ground)


def _simulate_and_show(arguments: argparse.Namespace, robot: Any, q0: np.ndarray, ground: Any) -> int:
    import robokit as rk

    page = _writable(arguments.output, ".html")
    data = None if arguments.save is None else _writable(arguments.save, ".npz")
    steps = arguments.duration / arguments.dt
    if not 0.5 < steps <= MOST_STEPS:
        raise RobokitError(
            f"--duration {arguments.duration:g} and --dt {arguments.dt:g} make {steps:.3g} steps; "
            f"take between 1 and {MOST_STEPS:,}"
        )
    failed = False
    started = time.perf_counter()
    try:
        trajectory = rk.simulate(
            robot,
            q0,
            duration=arguments.duration,
            dt=arguments.dt,
            ground=ground,
            progress=sys.stderr.isatty(),
        )
    except rk.SimulationError as error:
        # What was computed is worth a look: it shows how it came to this.
        trajectory, failed = error.trajectory, bool(_fail(str(error).partition(". The states")[0]))
    simulated = time.perf_counter()
    if trajectory.summary.get("interrupted"):
        print("robokit: interrupted; writing what was computed", file=sys.stderr)
    if data is not None:
        trajectory.save(data)
    trajectory.to_html(page)
    written = time.perf_counter()
    for line in trajectory.report():
        print(line)
    seconds = f"{simulated - started:.2f} s simulating, {written - simulated:.2f} s writing the page"
    print(f"  time          {seconds}")
    print(f"  page          {page} ({page.stat().st_size / 1e6:.2f} MB)")
    if data is not None:
        print(f"  trajectory    {data}")
    _open(page, arguments.no_open or failed)
    return 1 if failed else 0


def view(arguments: argparse.Namespace) -> int:
    """The robot in the browser: a page of its own, or meshcat's live view."""
    robot = _load(arguments.robot, arguments.base, arguments.mimic)
    if arguments.live:
        from robokit.viewer import Viewer

        with Viewer(robot) as viewer:
            viewer.show(open_browser=not arguments.no_open)
            viewer.display(robot.neutral())
            print(f"{robot.name} at {viewer.url}; Ctrl-C ends")
            try:
                while True:
                    time.sleep(0.5)
            except KeyboardInterrupt:
                return 0
    from robokit.viewer import write_pose_page

    page = _writable(arguments.output or f"{robot.name}.html".replace("/", "_"), ".html")
    write_pose_page(robot, page)
    print(f"{page} ({page.stat().st_size / 1e6:.2f} MB)")
    _open(page, arguments.no_open)
    return 0


def info(arguments: argparse.Namespace) -> int:
    """The numbered tree, the masses and the joints."""
    from robokit.report import describe

    for line in describe(_load(arguments.robot, arguments.base, arguments.mimic)):
        print(line)
    return 0


def check(arguments: argparse.Namespace) -> int:
    """What the importer finds in files and folders, for people and for CI."""
    import json

    from robokit.urdf.lint import as_json, check_files, exit_status
    from robokit.urdf.listing import Paint, listing, wants_colour

    files, problems = _urdf_files(arguments.files)
    if arguments.page is not None:
        page = _writable(arguments.page, ".html")
        if len(files) != 1:
            print(f"robokit: --page shows one file, {len(files)} were given", file=sys.stderr)
            return 2
    for problem in problems:
        _fail(problem)
    checked = check_files(
        files, arguments.base, arguments.package_dir, arguments.meshes, frozenset(arguments.ignore)
    )
    if arguments.json:
        table = as_json(checked, arguments.strict, arguments.inertias, problems)
        print(json.dumps(table, indent=2, ensure_ascii=False, default=str))
    else:
        paint = Paint(wants_colour(arguments.color, sys.stdout))
        for line in listing(checked, paint, arguments.inertias):
            print(line)
    status = 2 if problems else exit_status(checked, arguments.strict)
    if arguments.page is not None:
        _check_page(checked[0], arguments, page)
    return status


def _check_page(one: Any, arguments: argparse.Namespace, page: Path) -> None:
    if one.status():
        print("robokit: no page: a file with errors makes no robot", file=sys.stderr)
        return
    import robokit as rk
    from robokit.viewer import write_check_page

    base = "floating" if arguments.base == "floating" else "fixed"
    robot = rk.load_urdf(one.file, base, arguments.package_dir)
    write_check_page(robot, one.diagnostics, page)
    if not arguments.json:
        print(f"{page} ({page.stat().st_size / 1e6:.2f} MB)")
    _open(page, arguments.no_open)


def parity(arguments: argparse.Namespace) -> int:
    """Compare robots with what Pinocchio, MuJoCo and Drake make of their files."""
    import json
    from dataclasses import asdict

    from robokit.parity import compare, compare_files, files_table, installed, no_engine, table

    files, problems = _urdf_files(arguments.robots)
    if problems:
        raise RobokitError(problems[0])
    if not installed():
        raise no_engine()
    bases = ("fixed", "floating") if arguments.base == "both" else (arguments.base,)
    if len(files) == len(arguments.robots) == len(bases) == 1:
        robot = _load(str(files[0]), arguments.base, arguments.mimic)
        found = compare(files[0], robot, arguments.states)
        if arguments.json:
            rows = [asdict(c) | {"agrees": c.agrees} for c in found]
            print(json.dumps({"robot": robot.name, "base": robot.base, "engines": rows}, indent=2))
        else:
            print("\n".join(table(robot, found, arguments.states)))
        return 0 if all(c.agrees for c in found) else 1
    readings = compare_files(files, bases, arguments.states, arguments.mimic)
    done = list(readings) if arguments.json else []
    if arguments.json:
        print(json.dumps([asdict(r) | {"agrees": r.agrees} for r in done], indent=2, default=str))
    else:
        for line in files_table(_kept(readings, done), installed()):
            print(line, flush=True)
    return 0 if all(r.agrees for r in done) else 1


def _kept(items: Iterable[Any], into: list[Any]) -> Iterable[Any]:
    """The items as they come, kept in a list."""
    for item in items:
        into.append(item)
        yield item


def mjcf(arguments: argparse.Namespace) -> int:
    """The robot as a MuJoCo model (MJCF)."""
    from robokit.mjcf import to_mjcf

    robot = _load(arguments.robot, arguments.base)
    text = to_mjcf(robot, arguments.output, meshes=not arguments.no_meshes, visuals=not arguments.no_visuals)
    if arguments.output is None:
        print(text, end="")
    else:
        print(f"{robot.name}: {robot.nbodies} bodies, {robot.nv} degrees of freedom to {arguments.output}")
    return 0


def sparsity(arguments: argparse.Namespace) -> int:
    """The pattern of H and of its factors as a picture, with exact operation counts."""
    from robokit.report import sparsity_lines
    from robokit.viewer import draw_sparsity

    robot = _load(arguments.robot, arguments.base, arguments.mimic)
    output = _writable(arguments.output or f"{robot.name}_sparsity.png".replace("/", "_"), *PICTURES)
    draw_sparsity(robot, output)
    for line in sparsity_lines(robot):
        print(line)
    print(f"  picture       {output}")
    return 0


def cost(arguments: argparse.Namespace) -> int:
    """Exact operation counts of the algorithms on a robot."""
    counted = _load(arguments.robot, arguments.base, arguments.mimic).cost()
    if arguments.json:
        import json

        print(json.dumps(counted.as_dict(), indent=1))
    else:
        print(counted)
    return 0


def cache(arguments: argparse.Namespace) -> int:
    """The folder of compiled code: what is in it, or empty it."""
    from robokit.engine import cache as files
    from robokit.report import cache_lines, cache_room

    if arguments.clear:
        print(f"{files.folder()}: removed {cache_room(files.clear())}")
        return 0
    for line in cache_lines(files.folder(), files.entries()):
        print(line)
    return 0


def robots(_: argparse.Namespace) -> int:
    """Names that ROBOT may take."""
    from robokit.catalog import EXAMPLES, example_robots, own_robots
    from robokit.report import wrapped

    print("Robots of our own:")
    for line in wrapped(own_robots()):
        print(line)
    examples = example_robots()
    if examples:
        print(f"\nOf {EXAMPLES}, as {EXAMPLES}:NAME:")
        for line in wrapped(examples):
            print(line)
    else:
        print(f"\nMore after: pip install {EXAMPLES}")
    return 0


# ---- plumbing ----------------------------------------------------------------------------------


def _load(name: str, base: str, mimic: str | None = None) -> Any:
    import robokit as rk

    robot = rk.load_urdf(rk.find_robot(name), base=base, mimic=mimic)
    found = [d for d in robot.diagnostics if d.severity != "note"]
    for diagnostic in found[:MOST_WARNINGS]:
        print(diagnostic, file=sys.stderr)
    if len(found) > MOST_WARNINGS:
        print(f"... and {len(found) - MOST_WARNINGS} more: robokit check {name}", file=sys.stderr)
    return robot


def _urdf_files(names: Sequence[str]) -> tuple[list[Path], list[str]]:
    """Files that arguments mean, and a line for each that means none; EXAMPLES alone means all its robots."""
    from robokit.catalog import EXAMPLES, example_files, find_robot
    from robokit.urdf.lint import urdf_files

    all_names: list[str] = []
    for name in names:
        every = name == EXAMPLES and not Path(name).exists()
        all_names += map(str, example_files()) if every else [name]
    return urdf_files(all_names, find_robot)


def _writable(name: str, *suffixes: str) -> Path:
    """The file to write, looked at before any work; the first suffix is appended where there is none."""
    path = Path(name)
    if not name or path.is_dir():
        raise RobokitError(f"cannot write to {name!r}: give the name of a file")
    if not path.suffix:
        path = path.with_name(path.name + suffixes[0])
    if path.suffix.lower() not in suffixes:
        raise RobokitError(f"cannot write {path}: the name must end in {', '.join(suffixes)}")
    if not path.parent.is_dir():
        raise RobokitError(f"cannot write {path}: there is no folder {str(path.parent)!r}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise RobokitError(f"cannot write {path}: permission denied")
    return path


def _open(page: Path, no_open: bool) -> None:
    if not no_open and not webbrowser.open(page.resolve().as_uri()):
        print("  no browser found: open the page by hand", file=sys.stderr)


def _number(
    text: str, what: str = "a finite number", least: float = -math.inf, most: float = math.inf
) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and least <= value <= most):
        raise argparse.ArgumentTypeError(f"expected {what}, got {text!r}")
    return value


def _positive(text: str) -> float:
    return _number(text, "a positive number", sys.float_info.min)


def _height(text: str) -> float:
    return _number(text, "a height of 0 to 100 m", 0.0, 100.0)


def _seed(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a whole number of 0 or more, got {text!r}")
    return int(text)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number of 1 or more, got {text!r}")
    return int(text)


def _code(text: str) -> str:
    from robokit.urdf import CODES

    if text not in CODES:
        near = difflib.get_close_matches(text, CODES, n=2)
        hint = f": did you mean {' or '.join(near)}?" if near else ""
        raise argparse.ArgumentTypeError(f"there is no code {text!r}{hint}")
    return text


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="robokit",
        description="Load a URDF and understand how the robot moves.",
        epilog="example: robokit fall",
    )
    from robokit import __version__

    parser.add_argument("--version", action="version", version=f"robokit {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    def add(name: str, command: Callable[[argparse.Namespace], int], example: str) -> argparse.ArgumentParser:
        text = (command.__doc__ or "").strip()
        sub = commands.add_parser(
            name, help=text[:1].lower() + text[1:].rstrip("."), description=text, epilog=f"example: {example}"
        )
        sub.set_defaults(command=command)
        return sub

    def add_robot(sub: argparse.ArgumentParser, **options: Any) -> None:
        sub.add_argument("robot", metavar="ROBOT", help=ROBOT_HELP, **options)

    def add_base(sub: argparse.ArgumentParser, default: str) -> None:
        sub.add_argument(
            "--base",
            choices=("fixed", "floating"),
            default=default,
            help="the root link (default: %(default)s)",
        )

    def add_mimic(sub: argparse.ArgumentParser) -> None:
        sub.add_argument(
            "--mimic",
            choices=("independent", "couple"),
            help="mimic joints: let them follow (couple), or move on their own with a warning (independent); "
            "default: on their own",
        )

    def add_run(sub: argparse.ArgumentParser, duration: float, output: str) -> None:
        sub.add_argument(
            "--duration", type=_positive, default=duration, metavar="S", help="default: %(default)s s"
        )
        sub.add_argument(
            "--dt", type=_positive, default=1e-3, metavar="S", help="time step, default: %(default)s s"
        )
        sub.add_argument(
            "--seed", type=_seed, metavar="N", default=0, help="of the random start, default: %(default)s"
        )
        sub.add_argument("-o", "--output", default=output, metavar="FILE", help="page, default: %(default)s")
        sub.add_argument("--save", metavar="FILE", help="keep the trajectory too (.npz)")
        sub.add_argument("--no-open", action="store_true", help="only write the page")

    sub = add("fall", fall, "robokit fall example-robot-data:g1 --tilt 10 -o g1.html")
    add_robot(sub, nargs="?", default="humanoid")
    sub.add_argument(
        "--tilt", type=_number, default=4.0, metavar="DEG", help="of the base, default: %(default)s"
    )
    sub.add_argument(
        "--height",
        type=_height,
        default=0.02,
        metavar="M",
        help="of the lowest point, default: %(default)s m",
    )
    add_mimic(sub)
    add_run(sub, 4.0, "fall.html")

    sub = add("simulate", simulate, "robokit simulate double_pendulum --duration 10")
    add_robot(sub)
    add_base(sub, "fixed")
    add_mimic(sub)
    sub.add_argument("--ground", action="store_true", help="with a ground plane")
    sub.add_argument(
        "--ground-height",
        type=_number,
        default=0.0,
        metavar="M",
        help="of the ground, default: %(default)s m",
    )
    sub.add_argument(
        "--neutral", action="store_true", help="start at the neutral configuration, not a random one"
    )
    add_run(sub, 5.0, "simulate.html")

    sub = add("view", view, "robokit view arm")
    add_robot(sub)
    add_base(sub, "fixed")
    add_mimic(sub)
    sub.add_argument("--live", action="store_true", help="meshcat's live view instead of a page")
    sub.add_argument("-o", "--output", metavar="FILE", help="page, default: NAME.html")
    sub.add_argument("--no-open", action="store_true", help="do not open the browser")

    sub = add("info", info, "robokit info humanoid --base floating")
    add_robot(sub)
    add_base(sub, "fixed")
    add_mimic(sub)

    sub = add("check", check, "robokit check --strict robots/ 'extra/**/*.urdf'")
    sub.add_argument(
        "files",
        metavar="FILE",
        nargs="+",
        help="a file, a folder, a pattern, or a ROBOT of the other commands",
    )
    sub.add_argument("--strict", action="store_true", help="warnings count as errors")
    sub.add_argument("--json", action="store_true", help="findings as JSON")
    sub.add_argument(
        "--color", choices=("auto", "always", "never"), default="auto", help="default: %(default)s"
    )
    sub.add_argument(
        "--base",
        choices=("fixed", "floating", "either"),
        default="either",
        help="the root link (default: fixed, with a note on floating)",
    )
    sub.add_argument(
        "--package-dir", action="append", default=[], metavar="DIR", help="look for package:// there too"
    )
    sub.add_argument("--meshes", action="store_true", help="read meshes and judge masses by their size")
    sub.add_argument("--inertias", action="store_true", help="list masses, moments, equivalent boxes")
    sub.add_argument(
        "--ignore", type=_code, action="append", default=[], metavar="CODE", help="leave a code out"
    )
    sub.add_argument("--page", metavar="FILE", help="draw the inertias of one file on a page")
    sub.add_argument("--no-open", action="store_true", help="only write the page")

    sub = add("parity", parity, "robokit parity arm --base floating")
    sub.add_argument(
        "robots",
        metavar="ROBOT",
        nargs="+",
        help=ROBOT_HELP + "; several, a folder, a pattern or example-robot-data (all its robots) make a "
        "line each",
    )
    sub.add_argument(
        "--base", choices=("fixed", "floating", "both"), default="fixed", help="default: %(default)s"
    )
    add_mimic(sub)
    sub.add_argument(
        "--states", type=_count, default=3, metavar="N", help="random states, default: %(default)s"
    )
    sub.add_argument("--json", action="store_true", help="for machines")

    sub = add("mjcf", mjcf, "robokit mjcf arm -o arm.xml")
    add_robot(sub)
    add_base(sub, "fixed")
    sub.add_argument("-o", "--output", metavar="FILE", help="the model; standard output by default")
    sub.add_argument("--no-meshes", action="store_true", help="leave out shapes that are meshes")
    sub.add_argument("--no-visuals", action="store_true", help="leave out visual shapes")

    sub = add("sparsity", sparsity, "robokit sparsity humanoid -o h.svg")
    add_robot(sub)
    add_base(sub, "floating")
    add_mimic(sub)
    sub.add_argument("-o", "--output", metavar="FILE", help=".png, .svg or .pdf; default: NAME_sparsity.png")

    sub = add("cost", cost, "robokit cost humanoid --base floating")
    add_robot(sub)
    add_base(sub, "fixed")
    add_mimic(sub)
    sub.add_argument("--json", action="store_true", help="for programs")

    sub = add("cache", cache, "robokit cache --clear")
    sub.add_argument("--clear", action="store_true", help="remove the files; they are made again when needed")

    add("robots", robots, "robokit robots")
    return parser
