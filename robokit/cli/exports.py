"""The command that writes a function of a robot in another language."""

from __future__ import annotations

import argparse
from typing import Any

from robokit.cli.plumbing import load, tell

WORDS = {"yes": True, "true": True, "on": True, "no": False, "false": False, "off": False}


def codegen(arguments: argparse.Namespace) -> int:
    """A function of the robot as C code that needs nothing else."""
    from robokit.dynamics.codegen import codegen as write

    robot = load(arguments.robot, arguments.base, arguments.mimic)
    choices = dict(arguments.choose)
    if arguments.link is not None:
        choices["link"] = arguments.link
    files = write(
        robot,
        arguments.function,
        arguments.output,
        language=arguments.language,
        dtype=arguments.dtype,
        **choices,
    )
    tell(f"{robot.name}, {robot.base} base: {arguments.function} in C99")
    for path, what in zip(files, ("the declaration and what it says", "the code", "its check"), strict=True):
        tell(f"  {path}  {what} ({path.stat().st_size / 1e3:.1f} kB)")
    return 0


def choice(text: str) -> tuple[str, Any]:
    """The name and the value of ``--choose``."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip() or not value.strip():
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, such as axes=body, got {text!r}")
    return name.strip(), WORDS.get(value.strip().lower(), value.strip())


def add_codegen(sub: argparse.ArgumentParser) -> None:
    """The options of the command that are its own."""
    sub.add_argument(
        "--function",
        required=True,
        metavar="NAME",
        help="aba, rnea, crba, ... as in Python; with the ending _f_ext it takes external forces too",
    )
    sub.add_argument("--language", default="c", metavar="NAME", help="c, the default, is the only one so far")
    sub.add_argument("--link", metavar="NAME", help="of functions about a link")
    sub.add_argument(
        "--choose",
        type=choice,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="what else the function is about: axes=body, classical=yes",
    )
    sub.add_argument(
        "--dtype", default="float64", metavar="NAME", help="float64 or float32; default: %(default)s"
    )
    sub.add_argument(
        "-o", "--output", default=".", metavar="FOLDER", help="where the files go; default: this folder"
    )
