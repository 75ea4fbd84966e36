"""The commands that do not simulate, one function each; their docstrings are the help."""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import runpy
import shutil
import sys
import textwrap
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from robokit.cli.common import (
    MOST_WARNINGS,
    WrongUsage,
    cache_folder,
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
    shows_progress,
    tell,
    tell_up_axes,
    writable,
)
from robokit.disk_cache import Entry
from robokit.dynamics.choices import CHOICES
from robokit.errors import RobokitError, UnknownName, counted
from robokit.files import refuse_input
from robokit.model.constraints import HELD
from robokit.model.parts import Joint
from robokit.model.robot import Robot
from robokit.model.tree import ltdl_counts

# ---- logs of real robots -------------------------------------------------------------------------

FRAMES = 1.0 / 60.0  # seconds between two pictures of a live view


def log(arguments: argparse.Namespace) -> int:
    """Show the log of a real robot as a page, with the torques that the model cannot explain."""
    from robokit.logs import simulate_log, unexplained_torques, write_log_page

    read = _read(arguments, arguments.log)
    robot = read.robot
    page = writable(arguments.output or f"{file_stem(robot)}_log.html", ".html")
    refuse_input(page, robot)
    data = None if arguments.save is None else writable(arguments.save, ".npz")
    _describe(read)
    torques = None
    if read.tau is not None:
        torques = unexplained_torques(read, arguments.cutoff, contacts=arguments.contact)
    if torques is not None:
        how = "as given" if arguments.cutoff else "chosen from motion and noise"
        tell(f"  low-pass      {torques.motion.cutoff:.3g} Hz, {how}")
        tell("\nTorque that the model cannot explain, root mean square [N m | N]")
        tell(str(torques))
    elif not arguments.no_simulation:
        tell("  no efforts in the log: no torques are compared, and joints follow the log")
    run = None
    if not arguments.no_simulation:
        ground = {None: None, "on": True, "off": False}[arguments.ground]
        try:
            run = simulate_log(read, ground, progress=shows_progress())
        except RobokitError as error:  # the log may start where no simulation can
            say(f"no simulation beside the log: {error}")
        else:
            tell("")
            tell("\n".join(_differences(read, run)))
    write_log_page(read, page, torques, run)
    if data is not None:
        read.save(data)
    beside = ", with the simulation beside it" if run is not None else ""
    tell(f"\n  page          {page} ({page.stat().st_size / 1e6:.2f} MB){beside}")
    if data is not None:
        tell(f"  trajectory    {data}")
    open_page(page, arguments.no_open)
    return 0


def identify(arguments: argparse.Namespace) -> int:
    """Identify masses, centres of mass, inertias and friction from a log."""
    from robokit.logs import identify_log

    output = None if arguments.output is None else writable(arguments.output, ".urdf")
    plot = None if arguments.plot is None else writable(arguments.plot, ".png", ".svg", ".pdf")
    read = _read(arguments, arguments.log)
    robot = read.robot
    if output is not None:
        refuse_input(output, robot)
    validation = None if arguments.validate is None else _read(arguments, arguments.validate, robot)
    _describe(read)
    fit = identify_log(
        read, friction=arguments.friction, armature=arguments.armature, validation=validation,
        cutoff=arguments.cutoff, prior_deviation=arguments.prior_deviation, fixed=arguments.fixed,
        progress=shows_progress(),
    )  # fmt: skip
    tell(f"  low-pass      {fit.cutoff:.3g} Hz, {counted(fit.states, 'state')} fitted")
    excitation = ("\n" + 16 * " ").join(textwrap.wrap(fit.excitation(), 64))
    tell(f"  excitation    {excitation}")
    tell(f"\nResiduals of {fit.judged_by}, root mean square [N m | N]")
    tell("\n".join(fit.table()))
    tell("")
    tell("\n".join(fit.found.summary().splitlines()[1:]))
    if output is not None:
        from robokit.urdf import dump

        dump(fit.robot, output)
        tell(f"\n  robot         {output}")
    if plot is not None:
        fit.found.plot(plot)
        tell(f"  figure        {plot}")
    return 0


def _read(arguments: argparse.Namespace, path: str, robot: Any = None) -> Any:
    """The log at that path as a trajectory of the robot that the arguments name, or that it describes."""
    from robokit.logs import read_log
    from robokit.logs.read import base_of

    if robot is None and arguments.robot is not None:
        base = arguments.base or base_of(Path(path))
        robot = load(arguments.robot, base, arguments.mimic, arguments)
    try:
        robot = robot or _described(arguments, Path(path))
        return read_log(
            path, robot, topic=arguments.topic or None, base=arguments.base, base_topic=arguments.base_topic,
            start=arguments.start, end=arguments.end, rate=arguments.rate, time_unit=arguments.time_unit,
            degrees=arguments.degrees, rename=dict(arguments.rename), missing=dict(arguments.missing),
            progress=shows_progress(),
        )  # fmt: skip
    except RobokitError as error:
        # The function's words for its arguments are options here.
        text = str(error).replace("read_log(path, robot)", "--robot ROBOT")
        if text == str(error):
            raise
        raise WrongUsage(text) from error


def _described(arguments: argparse.Namespace, path: Path) -> Any:
    """The robot of a bag's /robot_description; None for files that have none."""
    from robokit.logs.read import base_of, is_bag
    from robokit.logs.recording import robot_description, robot_of_description

    if not is_bag(path):
        return None
    options = {name: x for name, x in reading(arguments).items() if name not in ("xacro_args", "root")}
    base = arguments.base or base_of(path)
    text = robot_description(path)
    robot = robot_of_description(text, str(path), base=base, mimic=arguments.mimic, **options)
    found = [d for d in robot.diagnostics if d.severity != "note"]
    for diagnostic in found[:MOST_WARNINGS]:
        say(f"/robot_description: {diagnostic}")
    if len(found) > MOST_WARNINGS:
        say(f"/robot_description: and {counted(len(found) - MOST_WARNINGS, 'warning')} more")
    return robot


def _describe(read: Any) -> None:
    """Say what a log holds."""
    s, robot = read.summary, read.robot
    joints = [j for j in s.get("measured", robot.joint_names) if j in robot.joint_names]
    rate = f"{1.0 / s['dt']:.4g} Hz" if s.get("dt") else ""
    tell(f"{robot.name}: {read.t[-1] - read.t[0]:.4g} s, {counted(len(read.t), 'sample')} at {rate}")
    base = f"{robot.base} base"
    if s.get("base_topic"):
        base += f" from {s['base_topic']}"
    tell(f"  robot         {base}, {counted(robot.nv, 'degree')} of freedom")
    counts = f"{len(joints)} measured, {len(s.get('velocities', ()))} with velocities"
    tell(f"  joints        {counts}, {len(s.get('efforts', ()))} with efforts")


def _differences(read: Any, run: Any) -> Iterator[str]:
    """How far the simulation is from the log, in lines of at most 80 columns."""
    from robokit.identification.estimate import shorten
    from robokit.logs.comparison import differences

    reached = run.t[-1] - run.t[0]
    yield "Simulation from the same start with the log's torques, less the log [rad | m]"
    if reached < read.t[-1] - read.t[0] - 2 * run.summary.get("dt", 0.0):
        yield f"The simulation broke down at {reached:.3g} s."
    yield f"{'joint':<40}{'rms':>16}{'at the end':>16}"
    for name, (rms, end) in differences(read, run).items():
        yield f"{shorten(name, 39):<40}{rms:16.4g}{end:16.4g}"


# ---- states of joints, live ----------------------------------------------------------------------


@contextlib.contextmanager
def opened_states(name: str | None) -> Iterator[IO[str] | None]:
    """The file of ``--joint-states``, "-" for standard input, None for None; else RobokitError."""
    if name is None:
        yield None
        return
    if name == "-":
        yield sys.stdin
        return
    try:
        file = open(name, encoding="utf-8", errors="replace")  # noqa: SIM115
    except OSError as problem:
        raise WrongUsage(f"--joint-states {name}: {problem.strerror}") from None
    with file:
        yield file


def show_joint_states(viewer: Any, robot: Any, file: IO[str], warn: Any) -> str:
    """Show the states that lines of a file or of standard input say, until it ends or Ctrl-C.

    Returns in words what was shown and skipped.
    """
    from robokit.logs.recording import JointStream

    stream = JointStream(robot, warn)
    ended, problems = threading.Event(), list[BaseException]()

    def read() -> None:
        try:
            for _ in stream.follow(file, ended.is_set):
                pass
        except BaseException as problem:
            problems.append(problem)
        ended.set()

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    shown = None
    try:
        while not ended.wait(FRAMES):
            if stream.q is not shown:
                shown = stream.q
                viewer.display(shown)
        if stream.q is not shown:
            viewer.display(stream.q)
    except KeyboardInterrupt:
        ended.set()
    if problems:
        raise problems[0]
    skipped = f", {counted(stream.skipped, 'bad line')} skipped" if stream.skipped else ""
    return f"{counted(stream.states, 'state')} shown{skipped}"


# ---- one robot -----------------------------------------------------------------------------------

PICTURES = (".png", ".svg", ".pdf")


def view(arguments: argparse.Namespace) -> int:
    """Show a robot in the browser and pose it."""
    robot = load(arguments.robot, arguments.base, arguments.mimic, arguments)
    tell_up_axes(robot, arguments)
    if arguments.joint_states is not None and not arguments.live:
        raise WrongUsage("--joint-states drives the live view; add --live")
    if arguments.live:
        from robokit.viewer import Viewer

        with opened_states(arguments.joint_states) as states, Viewer(robot) as viewer:
            viewer.show(open_browser=not arguments.no_open)
            viewer.display(robot.neutral())
            tell(f"{robot.name}, {robot.base} base, at {viewer.url}; Ctrl-C ends", flush=True)
            if states is not None:
                tell(show_joint_states(viewer, robot, states, say))
                return 0
            viewer.wait()
            return 0
    from robokit.viewer import write_pose_page

    page = writable(arguments.output or f"{file_stem(robot)}.html", ".html")
    refuse_input(page, robot)
    write_pose_page(robot, page)
    tell(f"{robot.name}, {robot.base} base: {page} ({page.stat().st_size / 1e6:.2f} MB)")
    open_page(page, arguments.no_open)
    return 0


def info(arguments: argparse.Namespace) -> int:
    """Print the numbered tree, the masses and the joints of a robot."""
    for line in describe(load(arguments.robot, arguments.base, arguments.mimic, arguments)):
        tell(line)
    return 0


def check(arguments: argparse.Namespace) -> int:
    """Check robot files and folders, and print the findings."""
    from robokit import __version__
    from robokit.formats.load import check_other
    from robokit.urdf.lint import Paint, as_json, as_sarif, check_files, exit_status, listing, wants_colour

    files, problems = named_files(arguments.files)
    see_xacro(files, arguments.xacro)
    for problem in problems:
        fail(problem)
    if arguments.page is not None:
        page = writable(arguments.page, ".html")
        if len(files) != 1:
            say(f"--page shows one file; {len(files)} were given")
            return 2
    ignore = frozenset(arguments.ignore)
    checked = check_files(
        files,
        arguments.base,
        meshes=arguments.meshes,
        ignore=ignore,
        mimic=arguments.mimic,
        others=check_other,
        **reading(arguments),
    )
    if arguments.json:
        print_json(as_json(checked, arguments.strict, arguments.inertias, problems))
    elif arguments.sarif:
        print_json(as_sarif(checked, __version__, arguments.strict, problems))
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
        say("no page: the file has errors, so there is no robot to show")
        return
    from robokit.viewer import write_check_page

    base = None if arguments.base == "either" else arguments.base
    robot = load(one.file, base, None, arguments)
    write_check_page(robot, one.diagnostics, page)
    if not (arguments.json or arguments.sarif):
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
        robot = load(str(files[0]), arguments.base, arguments.mimic, arguments)
        found = compare(
            files[0], robot, arguments.states, xacro_args=arguments.xacro, package_dirs=arguments.package_dir
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
        for line in files_table(_keep(readings, done), installed(), files):
            tell(line, flush=True)
    return 0 if all(r.agrees for r in done) else 1


def _keep(items: Iterable[Any], into: list[Any]) -> Iterable[Any]:
    """The items one by one; each is appended to a list on the way."""
    for item in items:
        into.append(item)
        yield item


def mjcf(arguments: argparse.Namespace) -> int:
    """Write a robot as a MuJoCo model (MJCF), as convert --to mjcf does, or print it."""
    if arguments.output is not None:
        arguments.to, arguments.judge = "mjcf", False
        arguments.meshes = "none" if arguments.no_meshes else "keep"
        return convert(arguments)
    from robokit.mjcf import to_mjcf

    robot = load(arguments.robot, arguments.base, None, arguments)
    print_xml(to_mjcf(robot, meshes=not arguments.no_meshes, visuals=not arguments.no_visuals, links=True))
    return 0


def convert(arguments: argparse.Namespace) -> int:
    """Write a robot as a URDF, MJCF or SDF file, with its meshes."""
    import robokit as rk
    from robokit.conversion import format_to_write

    output = writable(arguments.output)
    try:
        format_to_write(output, arguments.to)
    except RobokitError as error:
        raise WrongUsage(str(error)) from error
    robot = load(arguments.robot, arguments.base, None, arguments)
    refuse_input(output, robot)
    done = rk.convert(
        robot,
        output,
        to=arguments.to,
        meshes=arguments.meshes,
        visuals=not arguments.no_visuals,
        judge=arguments.judge,
    )
    sizes = f"{counted(robot.nbodies, 'body')}, {counted(robot.nv, 'degree')} of freedom"
    more = f", {counted(len(done.copied), 'file')} beside it" if done.copied else ""
    tell(f"{robot.name}, {robot.base} base: {sizes} to {output} ({done.format.upper()}){more}")
    if done.verdict is None:
        return 0
    from robokit.parity.verdict import verdict_lines

    tell("\n".join(verdict_lines(done.verdict, None)))
    return 0 if done.verdict.same else 1


def sparsity(arguments: argparse.Namespace) -> int:
    """Draw the sparsity pattern of the mass matrix H, as a picture or a page."""
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
    """Count the exact operations of the algorithms for a robot."""
    counts = load(arguments.robot, arguments.base, arguments.mimic, arguments).cost()
    if arguments.json:
        print_json(counts.as_dict(), indent=1)
    else:
        tell(counts)
    return 0


def cache(arguments: argparse.Namespace) -> int:
    """Show or empty the folder of compiled code."""
    from robokit import disk_cache as files

    folder = cache_folder()
    if arguments.clear:
        tell(f"{folder}: removed {cache_room(files.clear())}")
        return 0
    for line in cache_lines(folder, files.entries()):
        tell(line)
    return 0


def robots(_: argparse.Namespace) -> int:
    """List the names that ROBOT may take."""
    from robokit.robot_names import DESCRIPTIONS, EXAMPLES, described_robots, example_robots, own_robots

    print("Robots that come with robokit:")
    for line in wrap_names(own_robots()):
        print(line)
    examples = example_robots()
    if examples:
        print(f"\nRobots of the package {EXAMPLES}, as NAME or {EXAMPLES}:NAME:")
        for line in wrap_names(examples):
            print(line)
    else:
        print(f"\nMore after: pip install {EXAMPLES}")
    described = described_robots()
    if described:
        print(f"\nRobots that the package {DESCRIPTIONS} fetches, as {DESCRIPTIONS}:NAME:")
        for line in wrap_names(described):
            print(line)
    return 0


# ---- What the commands print about a robot: plain lines of at most 80 columns --------------------

WIDTH = 80


def wrap_names(words: Iterable[str]) -> Iterator[str]:
    """Words separated by two blanks, in lines of at most 80 columns."""
    line = "  "
    for word in words:
        if len(line) + len(word) > WIDTH and line.strip():
            yield line.rstrip()
            line = "  "
        line += word + "  "
    if line.strip():
        yield line.rstrip()


def describe(robot: Robot) -> Iterator[str]:
    """A robot in words: sizes, mass, the numbered tree with lambda, mu and nu, joints and limits."""
    tree = robot.tree
    title = f"{robot.name}  ({robot.source})"
    if len(title) <= WIDTH:
        yield title
    else:
        yield from _sentence(robot.name, "")
        path = robot.source if len(robot.source) <= WIDTH - 2 else "..." + robot.source[5 - WIDTH :]
        yield f"  {path}"  # its end tells it from others
    sizes = f"{counted(robot.nbodies, 'moving body')}, {counted(len(robot.links), 'link')}"
    yield f"  {robot.base} base, {sizes}, nq {robot.nq}, nv {robot.nv}"
    fixed = sum(link.mass for link in robot.links if link.body == 0)
    parts = f": {robot.total_mass:.4g} kg move, {fixed:.4g} kg are fixed to the world" if fixed else ""
    yield f"  mass {robot.total_mass + fixed:.4g} kg{parts}"
    yield ""
    yield "Tree: body i has parent lambda(i), children mu(i) and subtree nu(i)"
    rows = [
        (
            str(i),
            "-" if i == 0 else str(tree.parent[i]),
            _shorten(", ".join(map(str, tree.children[i])) or "-", 12),
            _span(tree.subtree[i]),
            f"{tree.I[i].m:.4g}" if i or robot.base == "fixed" else "-",
            _shorten(robot.body_name(i), 32),
        )
        for i in range(tree.n + 1)
    ]
    yield from _table(("i", "lambda", "mu", "nu", "kg", "body"), rows, "rrllrl")
    yield ""
    yield "Joints (radians, metres; - means no limit)"
    rows = [
        (
            str(joint.body),
            joint.kind,
            _interval(joint),
            _limit(joint.effort),
            _limit(joint.velocity),
            _shorten(joint.name, 34),
        )
        for joint in robot.joints
    ]
    yield from _table(("i", "kind", "range", "effort", "speed", "joint"), rows, "rllrrl")
    yield from _joint_notes(robot)
    findings = [d for d in robot.diagnostics if d.severity != "note"]
    if findings:
        yield f"  {counted(len(findings), 'warning')}: robokit check lists them"


def _joint_notes(robot: Robot) -> Iterator[str]:
    """Loops, mimic laws, damping and rotors, in a sentence each."""
    tree = robot.tree
    for loop in robot.loop_joints:
        yield from _sentence(
            f"loop joint {loop.number}: {loop.name}, {loop.kind}, p = {tree.predecessor[loop.number]} "
            f"({loop.predecessor}), s = {tree.successor[loop.number]} ({loop.successor})"
        )
    for joint in robot.body_joints:
        m = joint.mimic
        if m is None:
            continue
        law = f"{m.multiplier:g} * q + {m.offset:g}"
        own = "coupled" if joint in robot.mimic_joints else "a coordinate of its own"
        yield from _sentence(f"{joint.name} mimics {m.joint}: {law} ({own})")
    damped = [j for j in robot.joints if j.damping or j.friction]
    if damped:
        yield f"  {counted(len(damped), 'joint')} with damping or friction, which act in simulations"
    geared = [j for j in robot.body_joints if j.armature]
    if geared:
        count = counted(len(geared), "joint")
        yield f"  {count} with the inertia of a motor's rotor, in H and all dynamics"


def sparsity_lines(robot: Robot) -> Iterator[str]:
    """Zeros of H and exact operation counts of its factorisation and solve."""
    counts = ltdl_counts(robot.dof_parent)
    pattern = robot.inertia_pattern
    n = robot.nv
    head = f"{robot.name}, {robot.base} base"
    yield f"{head}: H is {n} x {n}, {np.mean(~pattern):.0%} zeros" if n else f"{head}: nothing moves"
    if n:
        yield "  factorisation " + _saving(counts["factorise_dense"], counts["factorise"])
        yield "  solve         " + _saving(counts["solve_dense"], counts["solve"])


def cache_room(entries: Sequence[Entry]) -> str:
    """The number of files and their size together."""
    size = sum(entry.size for entry in entries) / 1e6
    return f"{counted(len(entries), 'file')}, {size:.2f} MB"


def cache_lines(where: Path, entries: Sequence[Entry]) -> Iterator[str]:
    """The folder of compiled code: number and size of its files, and the kernels in them."""
    yield str(where)
    yield "  " + cache_room(entries)
    if not entries:
        return
    yield ""
    files, sizes = Counter[tuple[str, str]](), Counter[str]()
    for entry in entries:
        name = entry.kernel or "(unknown)"
        files[name, entry.part] += 1
        sizes[name] += entry.size
    rows = [
        (name, str(files[name, "single"] or "-"), str(files[name, "batch"] or "-"), f"{size / 1e6:.2f}")
        for name, size in sizes.most_common()
    ]
    yield from _table(("kernel", "single", "batch", "MB"), rows, "lrrr")


def _saving(dense: float, sparse: float) -> str:
    ratio = f"{dense / sparse:.1f}x" if sparse else "nothing to do"
    return f"{dense} multiply-adds dense, {sparse} in the tree's sparsity: {ratio}"


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]], align: str) -> Iterator[str]:
    widths = [max(len(row[k]) for row in [head, *rows]) for k in range(len(head))]
    for row in [head, *rows]:
        cells = (
            cell.rjust(w) if a == "r" else cell.ljust(w)
            for cell, w, a in zip(row, widths, align, strict=True)
        )
        line = ("  " + "  ".join(cells)).rstrip()
        yield line if len(line) <= WIDTH else line[: WIDTH - 3] + "..."


def _sentence(text: str, indent: str = "  ") -> list[str]:
    """Text in lines of at most 80 columns; a name is broken only if it alone is longer."""
    return textwrap.wrap(text, WIDTH, initial_indent=indent, subsequent_indent="    ", break_on_hyphens=False)


def _span(nu: range) -> str:
    return str(nu.start) if len(nu) == 1 else f"{nu.start}..{nu.stop - 1}"


def _shorten(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."


def _limit(value: float) -> str:
    return f"{value:.4g}" if math.isfinite(value) else "-"


def _interval(joint: Joint) -> str:
    if not (math.isfinite(joint.lower) or math.isfinite(joint.upper)):
        return "-"
    return f"{joint.lower:.3g} .. {joint.upper:.3g}"


# ---- robokit parity A B: two descriptions of one robot, what differs and why ---------------------

DIFFERENT, ERROR = 1, 2  # exit status

DESCRIPTION_ENDINGS = (
    *(".urdf", ".xacro", ".xml", ".mjcf", ".sdf", ".world"),
    *(".usd", ".usda", ".usdc", ".usdz"),
)
"""Endings of descriptions."""


def is_pair(arguments: argparse.Namespace) -> bool:
    """Whether the arguments are two descriptions: two of them, of which the second is a file.

    With ``--through`` one is both: what it says, and what that program makes of it.
    """
    alone = len(arguments.robots) == 1 and arguments.through != "robokit"
    if not (alone or len(arguments.robots) == 2) or arguments.engines:
        return False
    if alone:
        return not Path(arguments.robots[0]).is_dir()
    second = Path(arguments.robots[1])
    pattern = any(sign in second.name for sign in "*?[")
    return second.is_file() or (second.suffix.lower() in DESCRIPTION_ENDINGS and not pattern)


def referee_command(arguments: argparse.Namespace) -> int:
    """Compare two descriptions; 0 if they are the same, 1 if not, 2 if one cannot be read."""
    from robokit.parity import referee
    from robokit.parity.verdict import verdict_lines, verdict_table
    from robokit.robot_names import find_robot

    try:
        if arguments.base == "both":
            raise WrongUsage("--base both is for the comparison with other engines; give fixed or floating")
        a = find_robot(arguments.robots[0])
        b = arguments.robots[1] if len(arguments.robots) == 2 else a
        see_xacro([a, b], arguments.xacro)
        verdict = referee(
            a,
            b,
            base=arguments.base,
            tolerance=arguments.tolerance,
            through=arguments.through,
            package_dirs=arguments.package_dir,
            xacro_args=arguments.xacro,
            loops=arguments.loops,
        )
    except RobokitError as error:
        say(str(error))
        return ERROR
    if arguments.json:
        print_json(verdict_table(verdict))
    else:
        wraps = sys.stdout.isatty() or "COLUMNS" in os.environ
        width = shutil.get_terminal_size().columns if wraps else None
        most = {"most": None} if arguments.all else {}
        tell("\n".join(verdict_lines(verdict, width, **most)))
    return 0 if verdict.same else DIFFERENT


# ---- The command that writes a function of a robot in another language ---------------------------

TRUTH_VALUES = {"yes": True, "true": True, "on": True, "no": False, "false": False, "off": False}

FILE_PURPOSES = ("declares and explains it", "is the code", "checks it on one state")
"""What each written file is for."""


def codegen(arguments: argparse.Namespace) -> int:
    """Write a function of a robot as C code without dependencies."""
    from robokit.dynamics.codegen import check_folder, code_files, write_code

    folder = Path(arguments.output)
    check_folder(folder)
    robot = load(arguments.robot, arguments.base, arguments.mimic, arguments)
    choices = dict(arguments.choose)
    if arguments.link is not None:
        choices["link"] = arguments.link
    function = code_function(robot, arguments.function, arguments.derivative, choices)
    texts = code_files(robot, function, arguments.language, arguments.dtype, choices)
    for name in texts:
        refuse_input(folder / name, robot)
    paths = write_code(folder, texts)
    tell(f"{robot.name}, {robot.base} base: {getattr(function, 'name', function)} in C99")
    for path, text, what in zip(paths, texts.values(), FILE_PURPOSES, strict=True):
        tell(f"  {path}  {what}, {len(text) / 1e3:.1f} kB")
    return 0


def code_function(robot: Any, given: str, derivative: str | None, choices: dict[str, Any]) -> Any:
    """What is to be written: a name of the table, or a function of a file, or a derivative of one of them."""
    from robokit.dynamics.codegen import function_key
    from robokit.dynamics.function_objects import functions

    file, _, name = given.rpartition(":")
    if file:
        if choices:
            raise WrongUsage(f"{name} has no choice {next(iter(choices))!r}: it is a function of {file}")
        function = own_function(Path(file), name)
    elif derivative is None:
        return given
    else:
        function_key(robot, given, choices)  # says what is missing
        function = functions[given]
    return function.derivative(*(x.strip() for x in derivative.split(","))) if derivative else function


def own_function(file: Path, name: str) -> Any:
    """The function of that name that a file of Python makes with ``rk.function``.

    Raises WrongUsage where there is no such file, RobokitError where it raises an error, UnknownName where it
    has no such function.
    """
    from robokit.dynamics.function_objects import Function

    if not file.is_file():
        raise WrongUsage(
            f"no file {str(file)!r}; give --function FILE.py:NAME, or a name that rk.functions has"
        )
    try:
        found = runpy.run_path(str(file))
    except Exception as error:
        raise RobokitError(f"{file}: {type(error).__name__}: {error}") from error
    known = {key: value for key, value in found.items() if isinstance(value, Function)}
    if name not in known:
        raise UnknownName(f"function in {file}", name, known)
    return known[name]


def choice(text: str) -> tuple[str, Any]:
    """The name and the value of ``--choose``."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip() or not value.strip():
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, such as axes=body, got {text!r}")
    name, value = name.strip(), value.strip()
    if name in CHOICES and CHOICES[name].several:
        return name, [constraint_name(each.strip()) for each in value.split(",")]
    if name == "link" and "," in value:  # a name that has a comma is for --link
        return name, [each.strip() for each in value.split(",")]
    return name, TRUTH_VALUES.get(value.lower(), value)


def constraint_name(text: str) -> Any:
    """A name, or with the ending ``:pose`` or ``:position`` a link whose frame or origin is meant."""
    link, colon, kind = text.rpartition(":")
    return (link, (0.0, 0.0, 0.0), kind) if colon and kind in HELD else text
