"""The commands: one function each."""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from robokit.cli.plumbing import fail, load, named_files, open_page, writable
from robokit.errors import RobokitError

MOST_STEPS = 100_000_000
"""Steps of a simulation: an hour of computing. More is a slip of the keyboard."""

PICTURES = (".png", ".svg", ".pdf")


def fall(arguments: argparse.Namespace) -> int:
    """A robot with a floating base falls on the ground."""
    import robokit as rk

    robot = load(arguments.robot, "floating", arguments.mimic)
    q0 = rk.standing_configuration(
        robot, height=arguments.height, tilt=math.radians(arguments.tilt), seed=arguments.seed
    )
    return _simulate_and_show(arguments, robot, q0, rk.Ground())


def simulate(arguments: argparse.Namespace) -> int:
    """Passive motion from a random or neutral configuration."""
    import robokit as rk

    robot = load(arguments.robot, arguments.base, arguments.mimic)
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

    page = writable(arguments.output, ".html")
    data = None if arguments.save is None else writable(arguments.save, ".npz")
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
        trajectory, failed = error.trajectory, bool(fail(str(error).partition(". The states")[0]))
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
    open_page(page, arguments.no_open or failed)
    return 1 if failed else 0


def view(arguments: argparse.Namespace) -> int:
    """The robot in the browser: a page of its own, or meshcat's live view."""
    robot = load(arguments.robot, arguments.base, arguments.mimic)
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

    page = writable(arguments.output or f"{robot.name}.html".replace("/", "_"), ".html")
    write_pose_page(robot, page)
    print(f"{page} ({page.stat().st_size / 1e6:.2f} MB)")
    open_page(page, arguments.no_open)
    return 0


def info(arguments: argparse.Namespace) -> int:
    """The numbered tree, the masses and the joints."""
    from robokit.cli.robot_report import describe

    for line in describe(load(arguments.robot, arguments.base, arguments.mimic)):
        print(line)
    return 0


def check(arguments: argparse.Namespace) -> int:
    """What the importer finds in files and folders, for people and for CI."""
    import json

    from robokit.urdf.lint.files import as_json, check_files, exit_status
    from robokit.urdf.lint.lines import Paint, listing, wants_colour

    files, problems = named_files(arguments.files)
    if arguments.page is not None:
        page = writable(arguments.page, ".html")
        if len(files) != 1:
            print(f"robokit: --page shows one file, {len(files)} were given", file=sys.stderr)
            return 2
    for problem in problems:
        fail(problem)
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
    open_page(page, arguments.no_open)


def parity(arguments: argparse.Namespace) -> int:
    """Compare robots with what Pinocchio, MuJoCo and Drake make of their files."""
    import json
    from dataclasses import asdict

    from robokit.parity import compare, compare_files, files_table, installed, no_engine, table

    files, problems = named_files(arguments.robots)
    if problems:
        raise RobokitError(problems[0])
    if not installed():
        raise no_engine()
    bases = ("fixed", "floating") if arguments.base == "both" else (arguments.base,)
    if len(files) == len(arguments.robots) == len(bases) == 1:
        robot = load(str(files[0]), arguments.base, arguments.mimic)
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

    robot = load(arguments.robot, arguments.base)
    text = to_mjcf(robot, arguments.output, meshes=not arguments.no_meshes, visuals=not arguments.no_visuals)
    if arguments.output is None:
        print(text, end="")
    else:
        print(f"{robot.name}: {robot.nbodies} bodies, {robot.nv} degrees of freedom to {arguments.output}")
    return 0


def sparsity(arguments: argparse.Namespace) -> int:
    """The pattern of H and of its factors as a picture, with exact operation counts."""
    from robokit.cli.robot_report import sparsity_lines
    from robokit.viewer import draw_sparsity

    robot = load(arguments.robot, arguments.base, arguments.mimic)
    output = writable(arguments.output or f"{robot.name}_sparsity.png".replace("/", "_"), *PICTURES)
    draw_sparsity(robot, output)
    for line in sparsity_lines(robot):
        print(line)
    print(f"  picture       {output}")
    return 0


def cost(arguments: argparse.Namespace) -> int:
    """Exact operation counts of the algorithms on a robot."""
    counted = load(arguments.robot, arguments.base, arguments.mimic).cost()
    if arguments.json:
        import json

        print(json.dumps(counted.as_dict(), indent=1))
    else:
        print(counted)
    return 0


def cache(arguments: argparse.Namespace) -> int:
    """The folder of compiled code: what is in it, or empty it."""
    from robokit import disk_cache as files
    from robokit.cli.robot_report import cache_lines, cache_room

    if arguments.clear:
        print(f"{files.folder()}: removed {cache_room(files.clear())}")
        return 0
    for line in cache_lines(files.folder(), files.entries()):
        print(line)
    return 0


def robots(_: argparse.Namespace) -> int:
    """Names that ROBOT may take."""
    from robokit.cli.robot_report import wrapped
    from robokit.robot_names import EXAMPLES, example_robots, own_robots

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
