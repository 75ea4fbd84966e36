"""The commands that read logs of real robots: log and identify; and the live view of states of joints."""

from __future__ import annotations

import argparse
import contextlib
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from robokit.cli.common import (
    MOST_WARNINGS,
    add_reading,
    any_number,
    count_text,
    file_stem,
    load,
    open_page,
    positive,
    reading,
    say,
    tell,
    writable,
)
from robokit.errors import RobokitError
from robokit.files import refuse_input

FRAMES = 1.0 / 60.0
"""Seconds between two pictures of a live view."""


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
        tell("\n".join(torques.table()))
    elif not arguments.no_simulation:
        tell("  no efforts in the log: no torques are compared, and joints are led along the log")
    run = None
    if not arguments.no_simulation:
        ground = {None: None, "on": True, "off": False}[arguments.ground]
        try:
            run = simulate_log(read, ground, progress=_shows_progress())
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
        progress=_shows_progress(),
    )  # fmt: skip
    tell(f"  low-pass      {fit.cutoff:.3g} Hz, {count_text(fit.states, 'state')} fitted")
    tell(f"  excitation    {_wrapped(fit.excitation())}")
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


def _wrapped(text: str) -> str:
    import textwrap

    return ("\n" + 16 * " ").join(textwrap.wrap(text, 64))


def _shows_progress() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


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
            progress=_shows_progress(),
        )  # fmt: skip
    except RobokitError as error:
        # The function's words for its arguments are options here.
        text = str(error).replace("read_log(path, robot)", "--robot ROBOT")
        if text == str(error):
            raise
        raise RobokitError(text) from error


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
        say(f"/robot_description: and {count_text(len(found) - MOST_WARNINGS, 'warning')} more")
    return robot


def _describe(read: Any) -> None:
    """Say what a log holds."""
    s, robot = read.summary, read.robot
    joints = [j for j in s.get("measured", robot.joint_names) if j in robot.joint_names]
    rate = f"{1.0 / s['dt']:.4g} Hz" if s.get("dt") else ""
    tell(f"{robot.name}: {read.t[-1] - read.t[0]:.4g} s, {count_text(len(read.t), 'sample')} at {rate}")
    base = f"{robot.base} base"
    if s.get("base_topic"):
        base += f" from {s['base_topic']}"
    tell(f"  robot         {base}, {count_text(robot.nv, 'degree')} of freedom")
    counts = f"{len(joints)} measured, {len(s.get('velocities', ()))} with velocities"
    tell(f"  joints        {counts}, {len(s.get('efforts', ()))} with efforts")


def _differences(read: Any, run: Any) -> Iterator[str]:
    """How far the simulation is from the log, in lines of at most 80 columns."""
    from robokit.identification.estimate import shorten
    from robokit.logs.replay import differences

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
    """The file of ``--joint-states``, "-" for standard input; None for None.

    Raises:
        RobokitError: it cannot be opened.
    """
    if name is None:
        yield None
        return
    if name == "-":
        yield sys.stdin
        return
    try:
        file = open(name, encoding="utf-8", errors="replace")  # noqa: SIM115
    except OSError as problem:
        raise RobokitError(f"--joint-states {name}: {problem.strerror}") from None
    with file:
        yield file


def show_joint_states(viewer: Any, robot: Any, file: IO[str], warn: Any) -> str:
    """Show the states that lines of a file or of standard input say, until it ends or Ctrl-C.

    Returns:
        What was shown and skipped, in words.
    """
    from robokit.logs.joint_stream import JointStream

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
    skipped = f", {count_text(stream.skipped, 'bad line')} skipped" if stream.skipped else ""
    return f"{count_text(stream.states, 'state')} shown{skipped}"


# ---- arguments -----------------------------------------------------------------------------------


def _pair(text: str) -> tuple[str, str]:
    name, equals, other = text.partition("=")
    if not equals or not name or not other:
        raise argparse.ArgumentTypeError(f"expected NAME=NAME, got {text!r}")
    return name, other


def _position(text: str) -> tuple[str, float]:
    name, other = _pair(text)
    return name, any_number(other, "JOINT=NUMBER")


def add_log_options(sub: argparse.ArgumentParser, robot_help: str) -> None:
    """The options that say what is read of a log and for which robot."""
    sub.add_argument(
        "log", metavar="LOG", help=".csv, .npz, .npy, .bag, .db3 or .mcap file, or a ROS 2 bag's folder"
    )
    sub.add_argument("--robot", metavar="ROBOT", help=f"{robot_help}; default: /robot_description of the bag")
    sub.add_argument(
        "--base",
        choices=("fixed", "floating"),
        help="default: floating if the log has odometry, poses or columns of a base",
    )
    sub.add_argument(
        "--mimic", choices=("independent", "couple"), help="mimic joints, as in the other commands"
    )
    group = sub.add_argument_group("the log")
    group.add_argument(
        "--topic", action="append", metavar="TOPIC", help="topic of joint states in a bag; may be repeated"
    )
    group.add_argument("--base-topic", metavar="TOPIC", help="topic of odometry, poses or tf of the base")
    group.add_argument(
        "--start", type=any_number, metavar="S", help="start of the part to read, from the first sample"
    )
    group.add_argument(
        "--end", type=any_number, metavar="S", help="end of the part to read, from the first sample"
    )
    group.add_argument("--rate", type=positive, metavar="HZ", help="sampling rate of a table without times")
    group.add_argument("--time-unit", choices=("s", "ms", "us", "ns"), help="unit of the times in a table")
    group.add_argument("--degrees", action="store_true", help="angles in the log are in degrees")
    group.add_argument(
        "--rename",
        type=_pair,
        action="append",
        default=[],
        metavar="LOG=ROBOT",
        help="name of a joint in the log and in the robot",
    )
    group.add_argument(
        "--missing", type=_position, action="append", default=[], metavar="JOINT=POSITION",
        help="position of a joint that is not in the log; default: 0",
    )  # fmt: skip
    group.add_argument(
        "--cutoff",
        type=positive,
        metavar="HZ",
        help="cutoff of the low-pass filter; default: chosen from motion and noise",
    )


def add_log(sub: argparse.ArgumentParser, robot_help: str) -> None:
    """The arguments of the command log."""
    add_log_options(sub, robot_help)
    add_reading(sub)
    sub.add_argument("-o", "--output", metavar="FILE", help="page; default: NAME_log.html")
    sub.add_argument(
        "--contact",
        action="append",
        default=[],
        metavar="LINK",
        help="link that touches something, such as a foot; may be repeated",
    )
    sub.add_argument("--no-simulation", action="store_true", help="do not compare with a simulation")
    sub.add_argument(
        "--ground",
        choices=("on", "off"),
        help="height of the ground in the simulation; default: lowest point of a floating robot in the log",
    )
    sub.add_argument("--save", metavar="FILE", help="also write the log as a trajectory (.npz)")
    sub.add_argument("--no-open", action="store_true", help="only write the page")


def add_identify(sub: argparse.ArgumentParser, robot_help: str) -> None:
    """The arguments of the command identify."""
    add_log_options(sub, robot_help)
    add_reading(sub)
    sub.add_argument("-o", "--output", metavar="FILE", help="write the identified robot (.urdf)")
    sub.add_argument(
        "--validate",
        metavar="LOG",
        help="another log to validate the result; default: the last quarter of this log",
    )
    sub.add_argument(
        "--friction", action=argparse.BooleanOptionalAction, default=True, help="identify joint friction"
    )
    sub.add_argument("--armature", action="store_true", help="identify motor inertias")
    sub.add_argument(
        "--fixed",
        action="append",
        default=[],
        metavar="LINK",
        help="link whose parameters are known; may be repeated",
    )
    sub.add_argument(
        "--prior-deviation",
        type=positive,
        default=1.0,
        metavar="S",
        help="relative uncertainty of the description: 0.1 for about ten per cent; default: %(default)g, a "
        "guess",
    )
    sub.add_argument("--plot", metavar="FILE", help="write a figure (.png, .svg or .pdf)")
