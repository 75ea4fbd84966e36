"""The commands that do not simulate, one function each. Their docstrings are the help of the command line."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from robokit.cli.output_files import refuse_input, writable
from robokit.cli.plumbing import (
    WrongUsage,
    cache_folder,
    counted,
    fail,
    file_stem,
    load,
    named_files,
    open_page,
    print_json,
    print_xml,
    reading,
    say,
    see_xacro,
    tell,
    tell_up_axes,
)
from robokit.cli.refereeing import is_pair, referee_command
from robokit.written_files import write_text

PICTURES = (".png", ".svg", ".pdf")


def view(arguments: argparse.Namespace) -> int:
    """The robot in the browser, to look at and to pose."""
    robot = load(arguments.robot, arguments.base, arguments.mimic, arguments)
    tell_up_axes(robot, arguments)
    if arguments.live:
        from robokit.viewer import Viewer

        with Viewer(robot) as viewer:
            viewer.show(open_browser=not arguments.no_open)
            viewer.display(robot.neutral())
            tell(f"{robot.name}, {robot.base} base, at {viewer.url}; Ctrl-C ends", flush=True)
            try:
                while True:
                    time.sleep(0.5)
            except KeyboardInterrupt:
                return 0
    from robokit.viewer import write_pose_page

    page = writable(arguments.output or f"{file_stem(robot)}.html", ".html")
    refuse_input(page, robot)
    write_pose_page(robot, page)
    tell(f"{robot.name}, {robot.base} base: {page} ({page.stat().st_size / 1e6:.2f} MB)")
    open_page(page, arguments.no_open)
    return 0


def info(arguments: argparse.Namespace) -> int:
    """The numbered tree, the masses and the joints."""
    from robokit.cli.robot_report import describe

    for line in describe(load(arguments.robot, arguments.base, arguments.mimic, arguments)):
        tell(line)
    return 0


def check(arguments: argparse.Namespace) -> int:
    """What the importer finds in files and folders."""
    from robokit.urdf.lint import Paint, as_json, check_files, exit_status, listing, wants_colour

    files, problems = named_files(arguments.files)
    see_xacro(files, arguments.xacro)
    if arguments.page is not None:
        page = writable(arguments.page, ".html")
        if len(files) != 1:
            say(f"--page shows one file; {len(files)} were given")
            return 2
    for problem in problems:
        fail(problem)
    ignore = frozenset(arguments.ignore)
    checked = check_files(
        files,
        arguments.base,
        meshes=arguments.meshes,
        ignore=ignore,
        mimic=arguments.mimic,
        **reading(arguments),
    )
    if arguments.json:
        print_json(as_json(checked, arguments.strict, arguments.inertias, problems))
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
        say("no page: a file with errors makes no robot")
        return
    from robokit.viewer import write_check_page

    base = "floating" if arguments.base == "floating" else "fixed"
    robot = load(one.file, base, None, arguments)
    write_check_page(robot, one.diagnostics, page)
    if not arguments.json:
        tell(f"{page} ({page.stat().st_size / 1e6:.2f} MB)")
    open_page(page, arguments.no_open)


def parity(arguments: argparse.Namespace) -> int:
    """Compare robots in robokit, Pinocchio, MuJoCo and Drake, or two descriptions of one robot."""
    if is_pair(arguments):
        return referee_command(arguments)
    from dataclasses import asdict

    from robokit.parity import compare, compare_files, files_table, installed, no_engine, table

    files, problems = named_files(arguments.robots)
    if problems:
        raise WrongUsage(problems[0])
    see_xacro(files, arguments.xacro)
    if arguments.through != "robokit":
        raise WrongUsage(
            "--through is for two descriptions, or for what that program makes of one; give one file"
        )
    if not installed():
        raise no_engine()
    base = arguments.base or "fixed"
    bases = ("fixed", "floating") if base == "both" else (base,)
    if len(files) == len(arguments.robots) == len(bases) == 1:
        robot = load(str(files[0]), base, arguments.mimic, arguments)
        found = compare(
            files[0],
            robot,
            arguments.states,
            xacro_args=arguments.xacro,
            package_dirs=arguments.package_dir,
        )
        if arguments.json:
            rows = [asdict(c) | {"agrees": c.agrees} for c in found]
            print_json({"robot": robot.name, "base": robot.base, "engines": rows})
        else:
            tell("\n".join(table(robot, found, arguments.states)))
        return 0 if all(c.agrees for c in found) else 1
    readings = compare_files(
        files,
        bases,
        arguments.states,
        arguments.mimic,
        xacro_args=arguments.xacro,
        package_dirs=arguments.package_dir,
        loops=arguments.loops,
    )
    done = list(readings) if arguments.json else []
    if arguments.json:
        print_json([asdict(r) | {"agrees": r.agrees} for r in done])
    else:
        for line in files_table(_kept(readings, done), installed(), files):
            tell(line, flush=True)
    return 0 if all(r.agrees for r in done) else 1


def _kept(items: Iterable[Any], into: list[Any]) -> Iterable[Any]:
    """The items one by one; each is appended to a list on the way."""
    for item in items:
        into.append(item)
        yield item


def mjcf(arguments: argparse.Namespace) -> int:
    """The robot as a MuJoCo model (MJCF)."""
    from robokit.mjcf import to_mjcf

    output = None if arguments.output is None else writable(arguments.output)
    robot = load(arguments.robot, arguments.base, None, arguments)
    if output is not None:
        refuse_input(output, robot)
    text = to_mjcf(robot, meshes=not arguments.no_meshes, visuals=not arguments.no_visuals)
    if output is None:
        print_xml(text)
        return 0
    write_text(output, text)
    sizes = f"{counted(robot.nbodies, 'body')}, {counted(robot.nv, 'degree')} of freedom"
    tell(f"{robot.name}, {robot.base} base: {sizes} to {output}")
    return 0


def sparsity(arguments: argparse.Namespace) -> int:
    """The pattern of the mass matrix H, as a picture or a page."""
    from robokit.cli.robot_report import sparsity_lines
    from robokit.viewer import draw_sparsity, write_sparsity_page

    names = arguments.robots
    if len(names) > 1 and arguments.html is None:
        say(f"one picture shows one robot, {len(names)} were given; --html FILE shows them side by side")
        return 2
    if len(names) > 1 and arguments.output is not None:
        say(f"--output is the picture of one robot, {len(names)} were given; leave it out")
        return 2
    robots = [load(name, arguments.base, arguments.mimic, arguments) for name in names]
    page = writable(arguments.html, ".html") if arguments.html is not None else None
    picture = arguments.output if page else arguments.output or f"{file_stem(robots[0])}_sparsity.png"
    output = writable(picture, *PICTURES) if picture is not None else None
    for path, robot in ((path, robot) for path in (page, output) if path for robot in robots):
        refuse_input(path, robot)
    if output is not None:
        draw_sparsity(robots[0], output)
    if page is not None:
        write_sparsity_page(robots, page)
    for robot in robots:
        for line in sparsity_lines(robot):
            tell(line)
    if output is not None:
        tell(f"  picture       {output}")
    if page is not None:
        tell(f"  page          {page} ({page.stat().st_size / 1e6:.2f} MB)")
        open_page(page, arguments.no_open)
    return 0


def cost(arguments: argparse.Namespace) -> int:
    """Exact operation counts of the algorithms on a robot."""
    counts = load(arguments.robot, arguments.base, arguments.mimic, arguments).cost()
    if arguments.json:
        print_json(counts.as_dict(), indent=1)
    else:
        tell(counts)
    return 0


def cache(arguments: argparse.Namespace) -> int:
    """The folder of compiled code: show what is in it, or empty it."""
    from robokit import disk_cache as files
    from robokit.cli.robot_report import cache_lines, cache_room

    folder = cache_folder()
    if arguments.clear:
        tell(f"{folder}: removed {cache_room(files.clear())}")
        return 0
    for line in cache_lines(folder, files.entries()):
        tell(line)
    return 0


def robots(_: argparse.Namespace) -> int:
    """Names that ROBOT may take."""
    from robokit.cli.robot_report import wrapped
    from robokit.robot_names import DESCRIPTIONS, EXAMPLES, described_robots, example_robots, own_robots

    print("Robots that come with robokit:")
    for line in wrapped(own_robots()):
        print(line)
    examples = example_robots()
    if examples:
        print(f"\nRobots of the package {EXAMPLES}, as NAME or {EXAMPLES}:NAME:")
        for line in wrapped(examples):
            print(line)
    else:
        print(f"\nMore after: pip install {EXAMPLES}")
    described = described_robots()
    if described:
        print(f"\nRobots of the package {DESCRIPTIONS}, as {DESCRIPTIONS}:NAME, where it has fetched them:")
        for line in wrapped(described):
            print(line)
    return 0
