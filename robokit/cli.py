"""The command line: one function a command, errors in one line, exit status 0, 1 or 2.

robokit fall [ROBOT]       a robot falls; the page opens in the browser
robokit simulate ROBOT     passive motion
robokit view ROBOT         the robot in the browser
robokit info ROBOT         tree, masses, joints
robokit check FILE ...     what the importer finds
robokit sparsity ROBOT     the pattern of H as a picture
robokit robots             names that ROBOT may take
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
import warnings
import webbrowser
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from robokit.errors import RobokitError

ROBOT_HELP = "path of a URDF, the name of one of ours (robokit robots), or example-robot-data:NAME"

MOST_WARNINGS = 3
"""Warnings of the importer that a command shows before it gets to its work."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit status.

    0: done. 1: the command found errors in its subject, or could not do its work. 2: wrong usage.
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


def _fail(message: str) -> int:
    print(f"robokit: {message}", file=sys.stderr)
    return 1


def _show_warning(message: Any, *_: Any, **__: Any) -> None:
    print(f"robokit: warning: {message}", file=sys.stderr)


# ---- commands ----------------------------------------------------------------------------------


def fall(arguments: argparse.Namespace) -> int:
    """A robot with a floating base falls on the ground."""
    import robokit as rk

    robot = _load(arguments.robot, "floating")
    q0 = rk.standing_configuration(
        robot, height=arguments.height, tilt=math.radians(arguments.tilt), seed=arguments.seed
    )
    return _simulate_and_show(arguments, robot, q0, rk.Ground())


def simulate(arguments: argparse.Namespace) -> int:
    """Passive motion from a random or neutral configuration."""
    import robokit as rk

    robot = _load(arguments.robot, arguments.base)
    q0 = robot.neutral() if arguments.neutral else robot.random_configuration(arguments.seed)
    ground = None
    if arguments.ground:
        ground = rk.Ground()
        if robot.base == "floating":
            q0 = rk.standing_configuration(robot, seed=arguments.seed, q=q0)
    return _simulate_and_show(arguments, robot, q0, ground)


def _simulate_and_show(arguments: argparse.Namespace, robot: Any, q0: np.ndarray, ground: Any) -> int:
    import robokit as rk

    started = time.perf_counter()
    trajectory = rk.simulate(
        robot, q0, duration=arguments.duration, dt=arguments.dt, ground=ground, progress=sys.stderr.isatty()
    )
    simulated = time.perf_counter()
    page = Path(arguments.output)
    trajectory.to_html(page)
    written = time.perf_counter()
    for line in trajectory.report():
        print(line)
    seconds = f"{simulated - started:.2f} s simulating, {written - simulated:.2f} s writing the page"
    print(f"  time          {seconds}")
    print(f"  page          {page} ({page.stat().st_size / 1e6:.2f} MB)")
    if arguments.save:
        trajectory.save(arguments.save)
        print(f"  trajectory    {arguments.save}")
    _open(page, arguments.no_open)
    return 0


def view(arguments: argparse.Namespace) -> int:
    """The robot in the browser: a page of its own, or meshcat's live view."""
    robot = _load(arguments.robot, arguments.base)
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

    page = Path(arguments.output or f"{robot.name}.html".replace("/", "_"))
    write_pose_page(robot, page)
    print(f"{page} ({page.stat().st_size / 1e6:.2f} MB)")
    _open(page, arguments.no_open)
    return 0


def info(arguments: argparse.Namespace) -> int:
    """The numbered tree, the masses and the joints."""
    from robokit.report import describe

    for line in describe(_load(arguments.robot, arguments.base)):
        print(line)
    return 0


def check(arguments: argparse.Namespace) -> int:
    """What the importer finds, file by file; exit status 1 on errors."""
    from robokit.catalog import find_robot
    from robokit.urdf import check_urdf

    failed = False
    for name in arguments.files:
        path = find_robot(name)
        _, found = check_urdf(path)
        for diagnostic in found:
            print(diagnostic)
        counts = {s: sum(d.severity == s for d in found) for s in ("error", "warning", "note")}
        failed = failed or counts["error"] > 0 or (arguments.strict and counts["warning"] > 0)
        said = ", ".join(f"{n} {s}{'s' * (n != 1)}" for s, n in counts.items() if n) or "nothing to report"
        print(f"{path}: {said}")
    return 1 if failed else 0


def sparsity(arguments: argparse.Namespace) -> int:
    """The pattern of H and of its factors as a picture, with exact operation counts."""
    from robokit.report import sparsity_lines
    from robokit.viewer import draw_sparsity

    robot = _load(arguments.robot, arguments.base)
    output = Path(arguments.output or f"{robot.name}_sparsity.png".replace("/", "_"))
    draw_sparsity(robot, output)
    for line in sparsity_lines(robot):
        print(line)
    print(f"  picture       {output}")
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


def _load(name: str, base: str) -> Any:
    import robokit as rk

    robot = rk.load_urdf(rk.find_robot(name), base=base)
    found = [d for d in robot.diagnostics if d.severity != "note"]
    for diagnostic in found[:MOST_WARNINGS]:
        print(diagnostic, file=sys.stderr)
    if len(found) > MOST_WARNINGS:
        print(f"... and {len(found) - MOST_WARNINGS} more: robokit check {name}", file=sys.stderr)
    return robot


def _open(page: Path, no_open: bool) -> None:
    if not no_open and not webbrowser.open(page.resolve().as_uri()):
        print("  no browser found: open the page by hand", file=sys.stderr)


def _positive(text: str) -> float:
    value = float(text)
    if not (math.isfinite(value) and value > 0):
        raise argparse.ArgumentTypeError(f"expected a positive number, got {text}")
    return value


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"expected a finite number, got {text}")
    return value


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

    def add_run(sub: argparse.ArgumentParser, duration: float, output: str) -> None:
        sub.add_argument(
            "--duration", type=_positive, default=duration, metavar="S", help="default: %(default)s s"
        )
        sub.add_argument(
            "--dt", type=_positive, default=1e-3, metavar="S", help="time step, default: %(default)s s"
        )
        sub.add_argument("--seed", type=int, default=0, help="of the random start, default: %(default)s")
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
        type=_number,
        default=0.02,
        metavar="M",
        help="of the lowest point, default: %(default)s m",
    )
    add_run(sub, 4.0, "fall.html")

    sub = add("simulate", simulate, "robokit simulate double_pendulum --duration 10")
    add_robot(sub)
    add_base(sub, "fixed")
    sub.add_argument("--ground", action="store_true", help="with a ground plane at z = 0")
    sub.add_argument(
        "--neutral", action="store_true", help="start at the neutral configuration, not a random one"
    )
    add_run(sub, 5.0, "simulate.html")

    sub = add("view", view, "robokit view arm")
    add_robot(sub)
    add_base(sub, "fixed")
    sub.add_argument("--live", action="store_true", help="meshcat's live view instead of a page")
    sub.add_argument("-o", "--output", metavar="FILE", help="page, default: NAME.html")
    sub.add_argument("--no-open", action="store_true", help="do not open the browser")

    sub = add("info", info, "robokit info humanoid --base floating")
    add_robot(sub)
    add_base(sub, "fixed")

    sub = add("check", check, "robokit check my_robot.urdf")
    sub.add_argument("files", metavar="FILE", nargs="+", help=ROBOT_HELP)
    sub.add_argument("--strict", action="store_true", help="warnings count as errors")

    sub = add("sparsity", sparsity, "robokit sparsity humanoid -o h.svg")
    add_robot(sub)
    add_base(sub, "floating")
    sub.add_argument("-o", "--output", metavar="FILE", help=".png, .svg or .pdf; default: NAME_sparsity.png")

    add("robots", robots, "robokit robots")
    return parser
