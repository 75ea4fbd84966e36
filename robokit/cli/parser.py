"""The arguments of the commands, and the values that they accept."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Callable
from typing import Any

from robokit.cli import commands, simulation_commands
from robokit.cli.commands import add_referee
from robokit.cli.common import add_reading, any_number, count_number, positive, seed_number
from robokit.cli.simulation_commands import add_films, changed_option
from robokit.errors import nearest_names

ROBOT_HELP = (
    "path of a URDF, .xacro, MJCF, SDF or USD file, name of a robot (see robokit robots), "
    "example-robot-data:NAME or robot_descriptions:NAME"
)


def _height(text: str) -> float:
    return any_number(text, "a height of 0 to 100 m", 0.0, 100.0)


def _code(text: str) -> str:
    from robokit.urdf import CODES

    if text not in CODES:
        near = difflib.get_close_matches(text, CODES, n=2)
        hint = f": did you mean {' or '.join(near)}?" if near else ""
        raise argparse.ArgumentTypeError(f"there is no code {text!r}{hint}")
    return text


class Parser(argparse.ArgumentParser):
    """A parser that says the nearest command, choice or option where there is none of that name."""

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            known = ", ".join(map(str, action.choices))
            near = nearest_names(str(value), map(str, action.choices))
            advice = f"did you mean {' or '.join(near)}?" if near else f"choose from {known}"
            raise argparse.ArgumentError(action, f"invalid choice: {value!r}; {advice}")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As of argparse; an option that a command does not have is an error of the command."""
        found, rest = super().parse_known_args(args, namespace)
        names = [text.partition("=")[0] for text in rest]
        unknown = [name for name in names if name.startswith("--") and len(name) > 2]
        if unknown:
            near = nearest_names(unknown[0], (n for n in self._option_string_actions if n.startswith("--")))
            advice = f"; did you mean {' or '.join(near)}?" if near else ""
            self.error(f"unrecognized arguments: {' '.join(rest)}{advice}")
        return found, rest


def make_parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    from robokit import __version__

    parser = Parser(
        prog="robokit",
        description="Load a robot and understand how it moves.",
        epilog="example: robokit fall",
    )
    parser.add_argument("--version", action="version", version=f"robokit {__version__}")
    parser.set_defaults(command=None)
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND")

    def add(name: str, command: Callable[[argparse.Namespace], int], example: str) -> argparse.ArgumentParser:
        text = (command.__doc__ or "").strip()
        sub = subparsers.add_parser(
            name, help=text[:1].lower() + text[1:].rstrip("."), description=text, epilog=f"example: {example}"
        )
        sub.set_defaults(command=command)
        return sub

    _add_fall(add("fall", simulation_commands.fall, "robokit fall g1 --tilt 10 -o g1.html"))
    _add_simulate(
        add("simulate", simulation_commands.simulate, "robokit simulate double_pendulum --duration 10")
    )
    _add_view(add("view", commands.view, "robokit view arm"))
    commands.add_log(add("log", commands.log, "robokit log run.mcap --robot arm"), ROBOT_HELP)
    commands.add_identify(
        add("identify", commands.identify, "robokit identify run.mcap --robot arm -o better.urdf"),
        ROBOT_HELP,
    )
    _add_robot_base_mimic(add("info", commands.info, "robokit info humanoid --base floating"))
    _add_check(add("check", commands.check, "robokit check --strict robots/ 'extra/**/*.urdf'"))
    _add_parity(add("parity", commands.parity, "robokit parity arm --base floating"))
    _add_mjcf(add("mjcf", commands.mjcf, "robokit mjcf arm -o arm.xml"))
    _add_convert(add("convert", commands.convert, "robokit convert arm -o arm.sdf"))
    _add_sparsity(
        add("sparsity", commands.sparsity, "robokit sparsity arm humanoid quadruped --html robots.html")
    )
    example = "robokit collisions humanoid --base floating --at stand --ground"
    sub = add("collisions", simulation_commands.collisions, example)
    _add_robot_base_mimic(sub)
    simulation_commands.add_collisions(sub)
    sub = add("cost", commands.cost, "robokit cost humanoid --base floating")
    _add_robot_base_mimic(sub)
    sub.add_argument("--json", action="store_true", help="print JSON")
    sub = add("codegen", commands.codegen, "robokit codegen arm --function aba -o arm_c")
    _add_robot_base_mimic(sub)
    commands.add_codegen(sub)
    sub = add("sweep", simulation_commands.sweep, "robokit sweep humanoid --count 1000 --tilt 0:20 -o falls")
    _add_base(sub, "floating")
    _add_mimic(sub)
    add_reading(sub)
    simulation_commands.add_sweep(sub)
    sub = add("replay", simulation_commands.replay, "robokit replay falls worst:peak_force -o worst.html")
    simulation_commands.add_replay(sub)
    sub = add("cache", commands.cache, "robokit cache --clear")
    sub.add_argument(
        "--clear", action="store_true", help="delete the files; code is compiled again when needed"
    )
    add("robots", commands.robots, "robokit robots")
    return parser


def _add_robot(sub: argparse.ArgumentParser, **options: Any) -> None:
    sub.add_argument("robot", metavar="ROBOT", help=ROBOT_HELP, **options)


def _add_base(sub: argparse.ArgumentParser, default: str) -> None:
    said = default if default == "floating" else "the base of the file, and fixed for a URDF"
    sub.add_argument(
        "--base",
        choices=("fixed", "floating"),
        default=None if default == "fixed" else default,
        help=f"whether the root link is fixed to the world or free; default: {said}",
    )


def _add_mimic(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "--mimic",
        choices=("independent", "couple"),
        help="mimic joints: couple makes each follow the joint that it mimics; independent gives each its "
        "own coordinate, with a warning; default: independent, without the warning",
    )


def _add_robot_base_mimic(sub: argparse.ArgumentParser) -> None:
    """The robot with a fixed base by default, and how its file is read."""
    _add_robot(sub)
    _add_base(sub, "fixed")
    _add_mimic(sub)
    add_reading(sub)


def _add_run(sub: argparse.ArgumentParser, duration: float, live: bool) -> None:
    sub.add_argument(
        "--duration", type=positive, default=duration, metavar="S", help="default: %(default)g s"
    )
    sub.add_argument("--dt", type=positive, metavar="S", help="time step; default: chosen for the robot")
    sub.add_argument(
        "--seed",
        type=seed_number,
        metavar="N",
        default=0,
        help="seed of the random start; default: %(default)s",
    )
    sub.add_argument(
        "--self-collision",
        action=argparse.BooleanOptionalAction,
        help="let the bodies of the robot collide with each other; default: if there is a ground",
    )
    name = sub.prog.rpartition(" ")[2]
    sub.add_argument("-o", "--output", metavar="FILE", help=f"page; default: NAME_{name}.html")
    sub.add_argument(
        "--live",
        action=argparse.BooleanOptionalAction,
        default=live,
        help=f"the page can continue the simulation from any frame; default: {'on' if live else 'off'}",
    )
    sub.add_argument(
        "--follow",
        metavar="LINK",
        help="link that the camera follows; default: the centre of mass, if the robot travels far",
    )
    sub.add_argument("--save", metavar="FILE", help="also write the trajectory (.npz)")
    sub.add_argument("--no-open", action="store_true", help="only write the page")
    sub.add_argument(
        "--compare",
        type=changed_option,
        metavar="NAME=VALUE",
        help="run again with this change (dt=0.0005, friction=0.3, self_collision=on, ...) and show both "
        "runs in the page",
    )
    add_films(sub)


def _add_fall(sub: argparse.ArgumentParser) -> None:
    _add_robot(sub, nargs="?", default="humanoid")
    sub.add_argument(
        "--tilt",
        type=any_number,
        default=4.0,
        metavar="DEG",
        help="initial tilt of the base; default: %(default)g",
    )
    sub.add_argument(
        "--height",
        type=_height,
        default=0.02,
        metavar="M",
        help="initial height of the lowest point; default: %(default)s m",
    )
    sub.add_argument(
        "--ground-tilt",
        type=any_number,
        default=0.0,
        metavar="DEG",
        help="angle by which the ground descends towards +x",
    )
    sub.add_argument("--terrain", metavar="FILE", help="image of a height field; white is high")
    sub.add_argument(
        "--terrain-size",
        type=positive,
        default=10.0,
        metavar="M",
        help="length of its longer side; default: %(default)g m",
    )
    sub.add_argument(
        "--terrain-height",
        type=positive,
        default=0.5,
        metavar="M",
        help="height of white; default: %(default)g m",
    )
    _add_base(sub, "floating")
    _add_mimic(sub)
    add_reading(sub)
    _add_run(sub, 4.0, live=True)


def _add_simulate(sub: argparse.ArgumentParser) -> None:
    _add_robot_base_mimic(sub)
    sub.add_argument("--ground", action="store_true", help="add a ground plane")
    sub.add_argument(
        "--ground-height",
        type=any_number,
        default=0.0,
        metavar="M",
        help="height of the ground; default: %(default)g m",
    )
    sub.add_argument(
        "--neutral", action="store_true", help="start in the neutral configuration instead of a random one"
    )
    sub.add_argument(
        "--start",
        metavar="NAME",
        help="start in a configuration of the file: initial, or a keyframe of an MJCF",
    )
    sub.add_argument(
        "--scene",
        action="store_true",
        help="use the ground, springs and actuators of the file, which hold the start; default start: "
        "initial",
    )
    _add_run(sub, 5.0, live=False)


def _add_view(sub: argparse.ArgumentParser) -> None:
    _add_robot_base_mimic(sub)
    sub.add_argument("--live", action="store_true", help="show the robot in meshcat instead of a page")
    sub.add_argument(
        "--joint-states",
        metavar="FILE",
        help="with --live: show joint states from lines of JSON in a growing file, or from standard input "
        "(-)",
    )
    sub.add_argument("-o", "--output", metavar="FILE", help="page; default: NAME.html")
    sub.add_argument("--no-open", action="store_true", help="do not open the browser")


def _add_check(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "files", metavar="FILE", nargs="+", help="a file, a folder, a pattern, or the name of a robot"
    )
    sub.add_argument("--strict", action="store_true", help="treat warnings as errors")
    form = sub.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--sarif", action="store_true", help="print SARIF, for GitHub's code scanning")
    sub.add_argument(
        "--color", choices=("auto", "always", "never"), default="auto", help="default: %(default)s"
    )
    sub.add_argument(
        "--base",
        choices=("fixed", "floating", "either"),
        default="either",
        help="whether the root link is fixed to the world or free; default: fixed, with a note if a "
        "floating base would not work",
    )
    _add_mimic(sub)
    add_reading(sub, package_dir=False)
    sub.add_argument(
        "--package-dir",
        action="append",
        default=[],
        metavar="DIR",
        help="folder searched for package:// files; may be repeated",
    )
    sub.add_argument("--meshes", action="store_true", help="read meshes, to compare masses with their sizes")
    sub.add_argument(
        "--inertias", action="store_true", help="list masses, principal moments and equivalent boxes"
    )
    sub.add_argument(
        "--ignore",
        type=_code,
        action="append",
        default=[],
        metavar="CODE",
        help="ignore findings with this code; may be repeated",
    )
    sub.add_argument("--page", metavar="FILE", help="draw the inertias of one file on a page")
    sub.add_argument("--no-open", action="store_true", help="only write the page")


def _add_parity(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "robots",
        metavar="ROBOT",
        nargs="+",
        help=ROBOT_HELP + "; several robots, a folder, a pattern or example-robot-data (all its robots) "
        "give one line each; if a file follows a URDF, the two are compared",
    )
    sub.add_argument(
        "--base",
        choices=("fixed", "floating", "both"),
        help="default: fixed; for two descriptions: the base of the first, if it has one",
    )
    _add_mimic(sub)
    add_reading(sub, package_dir=False)
    sub.add_argument(
        "--states",
        type=count_number,
        default=3,
        metavar="N",
        help="number of random states; default: %(default)s",
    )
    sub.add_argument("--json", action="store_true", help="print JSON")
    add_referee(sub)


def _add_mjcf(sub: argparse.ArgumentParser) -> None:
    _add_robot(sub)
    _add_base(sub, "fixed")
    add_reading(sub)
    sub.add_argument("-o", "--output", metavar="FILE", help="file to write; default: standard output")
    sub.add_argument("--no-meshes", action="store_true", help="leave out shapes that are meshes")
    sub.add_argument("--no-visuals", action="store_true", help="leave out visual shapes")


def _add_convert(sub: argparse.ArgumentParser) -> None:
    from robokit.conversion import MESHES, TARGETS

    _add_robot(sub)
    sub.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        required=True,
        help="file to write: .urdf, .xml (MJCF) or .sdf; an existing file is replaced",
    )
    sub.add_argument("--to", choices=TARGETS, help="output format; default: by the extension of FILE")
    sub.add_argument(
        "--base",
        choices=("fixed", "floating"),
        help="whether the root link is fixed to the world or free; default: the base of the file, and "
        "fixed for a URDF",
    )
    sub.add_argument(
        "--meshes",
        choices=MESHES,
        default="keep",
        help="how to refer to mesh files: keep the names if they are valid in FILE, absolute or relative "
        "paths, copy the files into a folder beside FILE, or none to leave out meshes; default: keep",
    )
    sub.add_argument("--no-visuals", action="store_true", help="leave out visual shapes")
    sub.add_argument(
        "--judge",
        action="store_true",
        help="compare FILE with the robot (needs MuJoCo or Drake to read FILE); exit status 1 if they differ",
    )
    add_reading(sub)


def _add_sparsity(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("robots", metavar="ROBOT", nargs="+", help=ROBOT_HELP + "; several with --html")
    _add_base(sub, "fixed")
    _add_mimic(sub)
    add_reading(sub)
    sub.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help=".png, .svg or .pdf file; default: NAME_sparsity.png, none with --html",
    )
    sub.add_argument("--html", metavar="FILE", help="write a page that compares the robots")
    sub.add_argument("--no-open", action="store_true", help="only write the page")
