"""The arguments of the commands, and the values that they accept."""

from __future__ import annotations

import argparse
import difflib
import math
import os
import re
import sys
import textwrap
from collections.abc import Callable
from typing import Any, NoReturn

from robokit.cli import commands, simulation_commands
from robokit.errors import RobokitError, nearest_names

Sub = Any  # a command's parser, or a group of its options

ROBOT_HELP = (
    "path of a URDF, .xacro, MJCF, SDF or USD file, name of a robot (see robokit robots), "
    "example-robot-data:NAME or robot_descriptions:NAME"
)
SWITCH = {"action": argparse.BooleanOptionalAction}
REPEATED = {"action": "append", "default": []}
BASES = {"choices": ("fixed", "floating")}


# ---- values --------------------------------------------------------------------------------------


def any_number(
    text: str, what: str = "a finite number", least: float = -math.inf, most: float = math.inf
) -> float:
    """A number of the command line within bounds; else ArgumentTypeError, which says what was expected."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and least <= value <= most):
        raise argparse.ArgumentTypeError(f"expected {what}, got {text!r}")
    return value


def positive(text: str) -> float:
    """A number above zero."""
    return any_number(text, "a positive number", sys.float_info.min)


def seed_number(text: str, least: int = 0) -> int:
    """A whole number from 0, or from another least one."""
    if not text.isdecimal() or int(text) < least:
        raise argparse.ArgumentTypeError(f"expected a whole number of {least} or more, got {text!r}")
    return int(text)


def count_number(text: str) -> int:
    """A whole number from 1."""
    return seed_number(text, 1)


def _height(text: str) -> float:
    return any_number(text, "a height of 0 to 100 m", 0.0, 100.0)


def _time(text: str) -> float:
    return any_number(text, "a time of 0 s or more", 0.0)


def _tolerance(text: str) -> float:
    smallest, largest = math.nextafter(0.0, 1.0), math.nextafter(0.1, 0.0)
    return any_number(text, "a number above 0 and below 0.1", smallest, largest)


def _folder(text: str) -> str:
    if not os.path.isdir(os.path.expanduser(text)):
        raise argparse.ArgumentTypeError(f"there is no folder {text!r}")
    return text


def _code(text: str) -> str:
    from robokit.urdf import CODES

    if text not in CODES:
        near = difflib.get_close_matches(text, CODES, n=2)
        hint = f": did you mean {' or '.join(near)}?" if near else ""
        raise argparse.ArgumentTypeError(f"there is no code {text!r}{hint}")
    return text


def _pair(text: str) -> tuple[str, str]:
    name, equals, other = text.partition("=")
    if not equals or not name or not other:
        raise argparse.ArgumentTypeError(f"expected NAME=NAME, got {text!r}")
    return name, other


def _position(text: str) -> tuple[str, float]:
    name, other = _pair(text)
    return name, any_number(other, "JOINT=NUMBER")


def _joint_value(text: str) -> tuple[str, float]:
    name, mark, value = text.rpartition("=")
    if not (mark and name):
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, got {text!r}")
    return name, any_number(value)


def _size(text: str) -> tuple[int, int]:
    from robokit.viewer.film import size_of

    sides = text.lower().replace("×", "x").split("x")
    try:
        return size_of((int(sides[0]), int(sides[1])))
    except (ValueError, IndexError, RobokitError):
        raise argparse.ArgumentTypeError(
            f"expected WIDTHxHEIGHT of 16 to 4096 pixels, such as 1280x720, got {text!r}"
        ) from None


def _look(text: str) -> str:
    from robokit.viewer.film import angles_of

    try:
        angles_of(text)
    except RobokitError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


# ---- parsers -------------------------------------------------------------------------------------


class Parser(argparse.ArgumentParser):
    """A parser that says the nearest command, choice or option where there is none of that name."""

    def error(self, message: str) -> NoReturn:
        """As of argparse, without all the options: what is wrong would stand below them."""
        self.exit(2, f"{self.prog}: error: {message}\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            known = ", ".join(map(str, action.choices))
            near = nearest_names(str(value), map(str, action.choices))
            advice = f"did you mean {' or '.join(near)}?" if near else f"choose from {known}"
            raise argparse.ArgumentError(action, f"invalid choice: {value!r}; {advice}")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As of argparse; what a command does not take is an error of the command."""
        found, rest = super().parse_known_args(args, namespace)
        if rest:
            names = [text.partition("=")[0] for text in rest]
            unknown = [name for name in names if name.startswith("--") and len(name) > 2]
            known = [name[2:] for name in self._option_string_actions if name.startswith("--")]
            # Options end alike, as friction and duration do, which is no sign of a slip.
            near = nearest_names(unknown[0][2:], known, cutoff=0.7) if unknown else []
            advice = f"; did you mean {' or '.join(f'--{name}' for name in near)}?" if near else ""
            self.error(f"unrecognized arguments: {' '.join(rest)}{advice}")
        return found, rest


def options(sub: Sub, table: str, **more: Any) -> None:
    """Add options to a parser.

    Args:
        table: a line for each, as its help shows it: flags and name of the value, two blanks, what it does;
            lines that begin with blanks continue it. One without a value is false unless it is given.
        more: by the option's attribute, what else ``add_argument`` takes of it, or the type of its value.

    Raises:
        TypeError: ``more`` names an option that is not in the table.
    """
    for row in re.split(r"\n(?! )", textwrap.dedent(table).strip()):
        head, help_text = re.split(r"\s{2,}", row, maxsplit=1)
        flags = head.split()
        metavar = None if (len(flags) > 1 and flags[-1].startswith("-")) or len(flags) == 1 else flags.pop()
        given = more.pop(flags[-1].lstrip("-").replace("-", "_"), {})
        given = dict(given) if isinstance(given, dict) else {"type": given}
        if metavar is not None:
            given["metavar"] = metavar
        elif not given:
            given["action"] = "store_true"
        sub.add_argument(*flags, help=" ".join(help_text.split()), **given)
    if more:
        raise TypeError(f"no option in the table has the name {next(iter(more))!r}")


def make_parser(first: str | None = None) -> argparse.ArgumentParser:
    """The parser of the whole command line.

    ``first``: the first word that it will read. If that is a command, the others get no options, which would
    take nearly all of the time.
    """
    from robokit import __version__

    parser = Parser(
        prog="robokit",
        description="Load a robot and understand how it moves.",
        epilog="example: robokit fall",
    )
    parser.add_argument("--version", action="version", version=f"robokit {__version__}")
    parser.set_defaults(command=None)
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND")
    named = first in [command.__name__ for command, _, _ in COMMANDS]
    for command, add, example in COMMANDS:
        text = (command.__doc__ or "").strip()
        sub = subparsers.add_parser(
            command.__name__,
            help=text[:1].lower() + text[1:].rstrip("."),
            description=text,
            epilog=f"example: {example}",
        )
        sub.set_defaults(command=command)
        if not named or command.__name__ == first:
            add(sub)
    return parser


# ---- what several commands have ------------------------------------------------------------------


def _robot(sub: Sub, **more: Any) -> None:
    options(sub, f"robot ROBOT  {ROBOT_HELP}", robot=more)


def _base(sub: Sub, default: str) -> None:
    said = default if default == "floating" else "the base of the file, and fixed for a URDF"
    options(
        sub,
        f"--base  whether the root link is fixed to the world or free; default: {said}",
        base=BASES | {"default": None if default == "fixed" else default},
    )


def _mimic(sub: Sub) -> None:
    options(
        sub,
        """
        --mimic  mimic joints: couple makes each follow the joint that it mimics; independent gives each its
            own coordinate, with a warning; default: independent, without the warning
        """,
        mimic={"choices": ("independent", "couple")},
    )


def _reading(sub: Sub) -> None:
    """How a robot's file is read."""
    group = sub.add_argument_group("reading", "Arguments of a .xacro file follow its name as NAME:=VALUE.")
    options(
        group,
        """
        --package-dir DIR  folder searched first for package:// files and $(find ...); may be repeated
        --mesh-up-axis  up axis of COLLADA meshes: ignore it, as RViz does, or apply it; default: ignore
        --loops  close loops declared by <loop_joint> only, or also at frames closing_NAME_1 and
            closing_NAME_2 and at links with two parents; default: declared
        --root NAME  robot to read from an MJCF, SDF or USD file with several: the name of its root body or of
            its model
        """,
        package_dir=REPEATED | {"type": _folder},
        mesh_up_axis={"choices": ("ignore", "apply"), "default": "ignore"},
        loops={"choices": ("declared", "close"), "default": "declared"},
    )


def _robot_base_mimic(sub: Sub) -> None:
    """The robot with a fixed base by default, and how its file is read."""
    _robot(sub)
    _base(sub, "fixed")
    _mimic(sub)
    _reading(sub)


def _run(sub: Sub, duration: float, live: bool) -> None:
    name = sub.prog.rpartition(" ")[2]
    options(
        sub,
        f"""
        --duration S  default: %(default)g s
        --dt S  time step; default: chosen for the robot
        --seed N  seed of the random start; default: %(default)s
        --self-collision  let the bodies of the robot collide with each other; default: if there is a ground
        -o --output FILE  page; default: NAME_{name}.html
        --live  the page can continue the simulation from any frame; default: {"on" if live else "off"}
        --follow LINK  link that the camera follows; default: the centre of mass, if the robot travels far
        --save FILE  also write the trajectory (.npz)
        --no-open  only write the page
        --compare NAME=VALUE  run again with this change (dt=0.0005, friction=0.3, self_collision=on, ...)
            and show both runs in the page
        """,
        duration={"type": positive, "default": duration},
        dt=positive,
        seed={"type": seed_number, "default": 0},
        self_collision=SWITCH,
        live=SWITCH | {"default": live},
        compare=simulation_commands.changed_option,
    )
    group = sub.add_argument_group("films and images (these need Chromium and robokit[film])")
    options(
        group,
        """
        --mp4 FILE  write a film
        --gif FILE  write an animated GIF
        --png FILE  write an image of one instant
        --at S  time of --png; default: the middle
        --size WxH  size in pixels; default: 1280x720, GIF 640x360
        --fps N  frames per second; default: 30, GIF 20
        --look SIDE  view from the front, back, left, right, top or corner; default: across the motion
        --whole-page  include the panels, not only the view
        """,
        at=_time,
        size=_size,
        fps=positive,
        look=_look,
    )


# ---- commands that simulate ----------------------------------------------------------------------


def _fall(sub: Sub) -> None:
    _robot(sub, nargs="?", default="humanoid")
    options(
        sub,
        """
        --tilt DEG  initial tilt of the base; default: %(default)g
        --height M  initial height of the lowest point; default: %(default)s m
        --ground-tilt DEG  angle by which the ground descends towards +x
        --terrain FILE  image of a height field; white is high
        --terrain-size M  length of its longer side; default: %(default)g m
        --terrain-height M  height of white; default: %(default)g m
        """,
        tilt={"type": any_number, "default": 4.0},
        height={"type": _height, "default": 0.02},
        ground_tilt={"type": any_number, "default": 0.0},
        terrain_size={"type": positive, "default": 10.0},
        terrain_height={"type": positive, "default": 0.5},
    )
    _base(sub, "floating")
    _mimic(sub)
    _reading(sub)
    _run(sub, 4.0, live=True)


def _simulate(sub: Sub) -> None:
    _robot_base_mimic(sub)
    options(
        sub,
        """
        --ground  add a ground plane
        --ground-height M  height of the ground; default: %(default)g m
        --neutral  start in the neutral configuration instead of a random one
        --start NAME  start in a configuration of the file: initial, or a keyframe of an MJCF
        --scene  use the ground, springs and actuators of the file, which hold the start; default start:
            initial
        """,
        ground_height={"type": any_number, "default": 0.0},
    )
    _run(sub, 5.0, live=False)


def _collisions(sub: Sub) -> None:
    _robot_base_mimic(sub)
    options(
        sub,
        """
        --at WHERE  neutral, stand, random, or a configuration named in the file; default: %(default)s
        --seed  seed of --at random; default: %(default)s
        --joint NAME=VALUE  position of a joint, in rad or m; may be repeated
        --ground  add a ground plane at height 0
        --ground-height M  add a ground plane at this height
        --margin M  list pairs closer than this; default: %(default)g m, which lists overlaps
        --all-pairs  include pairs that are excluded in simulations: neighbours, and pairs that touch in the
            neutral configuration
        --json  print JSON
        """,
        at={"default": "neutral"},
        seed={"type": seed_number, "default": 0},
        joint=REPEATED | {"type": _joint_value},
        ground_height=any_number,
        margin={"type": any_number, "default": 0.0},
    )


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


def _sweep(sub: Sub) -> None:
    # Values such as -90:90 are no options.
    sub._negative_number_matcher = re.compile(r"-[\d.]")
    sub.formatter_class = argparse.RawDescriptionHelpFormatter
    sub.description = SWEEP_DESCRIPTION
    _base(sub, "floating")
    _mimic(sub)
    _reading(sub)
    options(
        sub,
        """
        robots ROBOT  robots, as in the other commands; used in turn
        -o --output FOLDER  new folder for the results; default: NAME_sweep
        --count N  number of rows; default: every combination of a grid
        """,
        robots={"nargs": "*"},
        count=count_number,
    )
    for option, name, unit, _, text in simulation_commands.OPTIONS:
        sub.add_argument(option, dest=f"sweep_{name}", metavar="VALUES", help=f"[{unit}] {text}")
    options(
        sub,
        """
        --set NAME=VALUES  any parameter of --list, in its unit: mass:torso=0.5:2, joint:left_knee=0:1
        --grid N  use N evenly spaced numbers for each range A:B
        --sobol  draw all ranges A:B from a Sobol sequence
        --seed N  seed of all random numbers; default: 0
        --duration S  duration of a row; default: 2 s
        --dt S  time step; default: chosen for the robot
        --no-ground  without a ground
        --self-collision  let the bodies of a robot collide with each other; default: if there is a ground
        --measure NAME  measure to record; may be repeated; default: most of them
        --trajectory ROW  also store the motion of this row
        --chunk N  number of rows per file
        --workers N  number of processes; 0 computes in this process, without Dask; default: one per processor
        --device DEVICE  cuda: on the graphics cards, one process each; cuda:1: on that one; same bits as cpu
        --scheduler ADDRESS  use the Dask cluster of this scheduler
        --resume FOLDER  continue this sweep; runs the code of its user-defined measures
        --report FOLDER  write the report of the sweep in this folder or, without a folder, of this sweep
        --no-open  only write the report
        --list  print all parameters and measures
        """,
        set=REPEATED | {"dest": "others"},
        grid=count_number,
        seed={"type": seed_number, "default": 0},
        duration={"type": positive, "default": 2.0},
        dt=positive,
        self_collision=SWITCH,
        measure={"action": "append"},
        trajectory=REPEATED | {"type": seed_number},
        chunk=count_number,
        workers=seed_number,
        report={"nargs": "?", "const": ""},
    )


def _replay(sub: Sub) -> None:
    options(
        sub,
        """
        folder FOLDER  folder written by robokit sweep
        row ROW  number of the row, or worst:MEASURE
        -o --output FILE  page; default: row_ROW.html
        --save FILE  also write the trajectory (.npz)
        --no-open  only write the page
        """,
    )


# ---- logs ----------------------------------------------------------------------------------------


def _of_log(sub: Sub) -> None:
    """What is read of a log, and for which robot."""
    options(
        sub,
        f"""
        log LOG  .csv, .npz, .npy, .bag, .db3 or .mcap file, or a ROS 2 bag's folder
        --robot ROBOT  {ROBOT_HELP}; default: /robot_description of the bag
        --base  default: floating if the log has odometry, poses or columns of a base
        --mimic  mimic joints, as in the other commands
        """,
        base=BASES,
        mimic={"choices": ("independent", "couple")},
    )
    group = sub.add_argument_group("the log")
    options(
        group,
        """
        --topic TOPIC  topic of joint states in a bag; may be repeated
        --base-topic TOPIC  topic of odometry, poses or tf of the base
        --start S  start of the part to read, from the first sample
        --end S  end of the part to read, from the first sample
        --rate HZ  sampling rate of a table without times
        --time-unit  unit of the times in a table
        --degrees  angles in the log are in degrees
        --rename LOG=ROBOT  name of a joint in the log and in the robot
        --missing JOINT=POSITION  position of a joint that is not in the log; default: 0
        --cutoff HZ  cutoff of the low-pass filter; default: chosen from motion and noise
        """,
        topic={"action": "append"},
        start=any_number,
        end=any_number,
        rate=positive,
        time_unit={"choices": ("s", "ms", "us", "ns")},
        rename=REPEATED | {"type": _pair},
        missing=REPEATED | {"type": _position},
        cutoff=positive,
    )
    _reading(sub)


def _log(sub: Sub) -> None:
    _of_log(sub)
    options(
        sub,
        """
        -o --output FILE  page; default: NAME_log.html
        --contact LINK  link that touches something, such as a foot; may be repeated
        --no-simulation  do not compare with a simulation
        --ground  height of the ground in the simulation; default: lowest point of a floating robot in the log
        --save FILE  also write the log as a trajectory (.npz)
        --no-open  only write the page
        """,
        contact=REPEATED,
        ground={"choices": ("on", "off")},
    )


def _identify(sub: Sub) -> None:
    _of_log(sub)
    options(
        sub,
        """
        -o --output FILE  write the identified robot (.urdf)
        --validate LOG  another log to validate the result; default: the last quarter of this log
        --friction  identify joint friction
        --armature  identify motor inertias
        --fixed LINK  link whose parameters are known; may be repeated
        --prior-deviation S  relative uncertainty of the description: 0.1 for about ten per cent; default:
            %(default)g, a guess
        --plot FILE  write a figure (.png, .svg or .pdf)
        """,
        friction=SWITCH | {"default": True},
        fixed=REPEATED,
        prior_deviation={"type": positive, "default": 1.0},
    )


# ---- commands about a robot ----------------------------------------------------------------------


def _view(sub: Sub) -> None:
    _robot_base_mimic(sub)
    options(
        sub,
        """
        --live  show the robot in meshcat instead of a page
        --joint-states FILE  with --live: show joint states from lines of JSON in a growing file, or from
            standard input (-)
        -o --output FILE  page; default: NAME.html
        --no-open  do not open the browser
        """,
    )


def _check(sub: Sub) -> None:
    options(
        sub,
        """
        files FILE  a file, a folder, a pattern, or the name of a robot
        --strict  treat warnings as errors
        """,
        files={"nargs": "+"},
    )
    form = sub.add_mutually_exclusive_group()
    options(form, "--json  print JSON\n--sarif  print SARIF, for GitHub's code scanning")
    options(
        sub,
        """
        --color  default: %(default)s
        --base  whether the root link is fixed to the world or free; default: fixed, with a note if a floating
            base would not work
        """,
        color={"choices": ("auto", "always", "never"), "default": "auto"},
        base={"choices": ("fixed", "floating", "either"), "default": "either"},
    )
    _mimic(sub)
    _reading(sub)
    options(
        sub,
        """
        --meshes  read meshes, to compare masses with their sizes
        --inertias  list masses, principal moments and equivalent boxes
        --ignore CODE  ignore findings with this code; may be repeated
        --page FILE  draw the inertias of one file on a page
        --no-open  only write the page
        """,
        ignore=REPEATED | {"type": _code},
    )


def _parity(sub: Sub) -> None:
    options(
        sub,
        f"""
        robots ROBOT  {ROBOT_HELP}; several robots, a folder, a pattern or example-robot-data (all its robots)
            give one line each; if a file follows a URDF, the two are compared
        --base  default: fixed; for two descriptions: the base of the first, if it has one
        """,
        robots={"nargs": "+"},
        base={"choices": ("fixed", "floating", "both")},
    )
    _mimic(sub)
    _reading(sub)
    options(
        sub,
        "--states N  number of random states; default: %(default)s\n--json  print JSON",
        states={"type": count_number, "default": 3},
    )
    group = sub.add_argument_group(
        "two descriptions",
        "With a second argument that is a file (URDF, xacro, MJCF, SDF or USD), the first is compared with "
        "it: one line for each difference, with its element and cause. Exit status 0: same, 1: different, "
        "2: error.",
    )
    options(
        group,
        """
        --tolerance X  relative differences up to this are ignored; default: %(default)s
        --through  program that reads the second file or, with only one URDF, reads it again; default:
            %(default)s
        --all  show all findings, not only the first of each cause
        --engines  compare each file with the installed engines, not with each other
        """,
        tolerance={"type": _tolerance, "default": 1e-6},
        through={"choices": ("robokit", "mujoco", "drake", "pinocchio"), "default": "robokit"},
    )


def _mjcf(sub: Sub) -> None:
    _robot(sub)
    _base(sub, "fixed")
    _reading(sub)
    options(
        sub,
        """
        -o --output FILE  file to write; default: standard output
        --no-meshes  leave out shapes that are meshes
        --no-visuals  leave out visual shapes
        """,
    )


def _convert(sub: Sub) -> None:
    from robokit.conversion import MESHES, TARGETS

    _robot(sub)
    options(
        sub,
        """
        -o --output FILE  file to write: .urdf, .xml (MJCF) or .sdf; an existing file is replaced
        --to  output format; default: by the extension of FILE
        """,
        output={"required": True},
        to={"choices": TARGETS},
    )
    _base(sub, "fixed")
    options(
        sub,
        """
        --meshes  how to refer to mesh files: keep the names if they are valid in FILE, absolute or relative
            paths, copy the files into a folder beside FILE, or none to leave out meshes; default: keep
        --no-visuals  leave out visual shapes
        --judge  compare FILE with the robot (needs MuJoCo or Drake to read FILE); exit status 1 if they
            differ
        """,
        meshes={"choices": MESHES, "default": "keep"},
    )
    _reading(sub)


def _sparsity(sub: Sub) -> None:
    options(sub, f"robots ROBOT  {ROBOT_HELP}; several with --html", robots={"nargs": "+"})
    _base(sub, "fixed")
    _mimic(sub)
    _reading(sub)
    options(
        sub,
        """
        -o --output FILE  .png, .svg or .pdf file; default: NAME_sparsity.png, none with --html
        --html FILE  write a page that compares the robots
        --no-open  only write the page
        """,
    )


def _cost(sub: Sub) -> None:
    _robot_base_mimic(sub)
    options(sub, "--json  print JSON")


def _codegen(sub: Sub) -> None:
    _robot_base_mimic(sub)
    options(
        sub,
        """
        --function NAME  aba, rnea, crba, ... as in Python; with the ending _f_ext, the version with external
            forces; or FILE.py:NAME, your own function made with rk.function
        --derivative INPUTS  write the derivatives of the function with respect to these inputs, such as q,v
        --language NAME  output language; only c is available
        --link NAME  the link, for functions about a link
        --choose NAME=VALUE  other choices of the function: axes=body, classical=yes,
            frames=left_hand,right_hand, constraints=left_foot:pose,right_foot:position,
            link=left_foot,right_foot for several links
        --dtype NAME  float64 or float32; default: %(default)s
        -o --output FOLDER  output folder; default: the current one
        """,
        function={"required": True},
        language={"default": "c"},
        choose=REPEATED | {"type": commands.choice},
        dtype={"default": "float64"},
        output={"default": "."},
    )


def _cache(sub: Sub) -> None:
    options(sub, "--clear  delete the files; code is compiled again when needed")


COMMANDS: tuple[tuple[Callable[[argparse.Namespace], int], Callable[[Sub], None], str], ...] = (
    (simulation_commands.fall, _fall, "robokit fall g1 --tilt 10 -o g1.html"),
    (simulation_commands.simulate, _simulate, "robokit simulate double_pendulum --duration 10"),
    (commands.view, _view, "robokit view arm"),
    (commands.log, _log, "robokit log run.mcap --robot arm"),
    (commands.identify, _identify, "robokit identify run.mcap --robot arm -o better.urdf"),
    (commands.info, _robot_base_mimic, "robokit info humanoid --base floating"),
    (commands.check, _check, "robokit check --strict robots/ 'extra/**/*.urdf'"),
    (commands.parity, _parity, "robokit parity arm --base floating"),
    (commands.mjcf, _mjcf, "robokit mjcf arm -o arm.xml"),
    (commands.convert, _convert, "robokit convert arm -o arm.sdf"),
    (commands.sparsity, _sparsity, "robokit sparsity arm humanoid quadruped --html robots.html"),
    (
        simulation_commands.collisions,
        _collisions,
        "robokit collisions humanoid --base floating --at stand --ground",
    ),
    (commands.cost, _cost, "robokit cost humanoid --base floating"),
    (commands.codegen, _codegen, "robokit codegen arm --function aba -o arm_c"),
    (simulation_commands.sweep, _sweep, "robokit sweep humanoid --count 1000 --tilt 0:20 -o falls"),
    (simulation_commands.replay, _replay, "robokit replay falls worst:peak_force -o worst.html"),
    (commands.cache, _cache, "robokit cache --clear"),
    (commands.robots, lambda _: None, "robokit robots"),
)
"""Every command, what adds its options, and an example."""
