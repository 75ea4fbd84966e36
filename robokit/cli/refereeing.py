"""robokit parity A B: two descriptions of one robot, what differs and why."""

from __future__ import annotations

import argparse
import math
import os
import shutil
import sys
from pathlib import Path

from robokit.cli.plumbing import print_json, say, see_xacro, tell
from robokit.errors import RobokitError

DIFFERENT, ERROR = 1, 2
"""Exit status."""

DESCRIPTIONS = (".urdf", ".xacro", ".xml", ".mjcf", ".sdf", ".world", ".usd", ".usda", ".usdc", ".usdz")
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
    return second.is_file() or (second.suffix.lower() in DESCRIPTIONS and not pattern)


def referee_command(arguments: argparse.Namespace) -> int:
    """Compare two descriptions; 0 if they are the same, 1 if not, 2 if one cannot be read."""
    from robokit.parity import referee
    from robokit.parity.verdict import verdict_lines, verdict_table
    from robokit.robot_names import find_robot

    try:
        if arguments.base == "both":
            raise RobokitError("--base both is for the comparison with other engines; give fixed or floating")
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


def add_referee(sub: argparse.ArgumentParser) -> None:
    """The arguments that only the comparison of two descriptions has."""
    group = sub.add_argument_group(
        "two descriptions",
        "With a second argument that is a file (URDF, xacro, MJCF, SDF or USD), the first is compared with "
        "it: one line for each difference, with its element and cause. Exit status 0: same, 1: different, "
        "2: error.",
    )
    group.add_argument(
        "--tolerance",
        type=_tolerance,
        default=1e-6,
        metavar="X",
        help="largest relative difference that counts as none; default: %(default)s",
    )
    group.add_argument(
        "--through",
        choices=("robokit", "mujoco", "drake", "pinocchio"),
        default="robokit",
        help="the program that reads the second file, or the only one once more, if it is a URDF; "
        "default: %(default)s",
    )
    group.add_argument(
        "--package-dir",
        action="append",
        default=[],
        metavar="DIR",
        help="folder searched first for package:// files; may be repeated",
    )
    group.add_argument("--all", action="store_true", help="show every finding, not the first of each cause")
    group.add_argument(
        "--engines", action="store_true", help="compare each file with the installed engines instead"
    )


def _tolerance(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0.0 < value < 0.1:
        raise argparse.ArgumentTypeError(f"expected a number above 0 and below 0.1, got {text!r}")
    return value
