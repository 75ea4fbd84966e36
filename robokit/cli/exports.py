"""The command that writes a function of a robot in another language."""

from __future__ import annotations

import argparse
import runpy
from pathlib import Path
from typing import Any

from robokit.cli.output_files import refuse_input
from robokit.cli.plumbing import load, tell
from robokit.dynamics.choices import CHOICES
from robokit.errors import RobokitError, UnknownName
from robokit.model.constraints import HELD

WORDS = {"yes": True, "true": True, "on": True, "no": False, "false": False, "off": False}

WHAT = ("declares and explains it", "is the code", "checks it on one state")
"""Of the files."""


def codegen(arguments: argparse.Namespace) -> int:
    """A function of the robot as C code that needs nothing else."""
    from robokit.dynamics.codegen import check_folder, code_files, write_code

    folder = Path(arguments.output)
    check_folder(folder)
    robot = load(arguments.robot, arguments.base, arguments.mimic, arguments)
    choices = dict(arguments.choose)
    if arguments.link is not None:
        choices["link"] = arguments.link
    function = wanted(robot, arguments.function, arguments.derivative, choices)
    texts = code_files(robot, function, arguments.language, arguments.dtype, choices)
    for name in texts:
        refuse_input(folder / name, robot)
    paths = write_code(folder, texts)
    tell(f"{robot.name}, {robot.base} base: {getattr(function, 'name', function)} in C99")
    for path, text, what in zip(paths, texts.values(), WHAT, strict=True):
        tell(f"  {path}  {what}, {len(text) / 1e3:.1f} kB")
    return 0


def wanted(robot: Any, given: str, derivative: str | None, choices: dict[str, Any]) -> Any:
    """What is to be written: a name of the table, or a function of a file, or a derivative of one of them."""
    from robokit.dynamics.codegen import function_key
    from robokit.dynamics.own_functions import functions

    file, _, name = given.rpartition(":")
    if file:
        if choices:
            raise RobokitError(f"{name} has no choice {next(iter(choices))!r}: it is a function of {file}")
        function = own_function(Path(file), name)
    elif derivative is None:
        return given
    else:
        function_key(robot, given, choices)  # says what is missing
        function = functions[given]
    return function.derivative(*(x.strip() for x in derivative.split(","))) if derivative else function


def own_function(file: Path, name: str) -> Any:
    """The function of that name that a file of Python makes with ``rk.function``.

    Raises:
        RobokitError: there is no such file, or it raises an error.
        UnknownName: it has no such function.
    """
    from robokit.dynamics.function_objects import Function

    if not file.is_file():
        raise RobokitError(
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
        return name, [held(each.strip()) for each in value.split(",")]
    if name == "link" and "," in value:  # a name that has a comma is for --link
        return name, [each.strip() for each in value.split(",")]
    return name, WORDS.get(value.lower(), value)


def held(text: str) -> Any:
    """A name, or with the ending ``:pose`` or ``:position`` a link whose frame or origin is meant."""
    link, colon, kind = text.rpartition(":")
    return (link, (0.0, 0.0, 0.0), kind) if colon and kind in HELD else text


def add_codegen(sub: argparse.ArgumentParser) -> None:
    """The options of the command that are its own."""
    sub.add_argument(
        "--function",
        required=True,
        metavar="NAME",
        help="aba, rnea, crba, ... as in Python; with the ending _f_ext it takes external forces too; or "
        "FILE.py:NAME, a function that the file makes with rk.function",
    )
    sub.add_argument(
        "--derivative",
        metavar="INPUTS",
        help="the function's derivatives instead, with respect to these inputs: q,v",
    )
    sub.add_argument("--language", default="c", metavar="NAME", help="c, the default, is the only one so far")
    sub.add_argument("--link", metavar="NAME", help="of functions about a link")
    sub.add_argument(
        "--choose",
        type=choice,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="what else the function is about: axes=body, classical=yes, frames=left_hand,right_hand, "
        "constraints=left_foot:pose,right_foot:position, link=left_foot,right_foot for several links",
    )
    sub.add_argument(
        "--dtype", default="float64", metavar="NAME", help="float64 or float32; default: %(default)s"
    )
    sub.add_argument(
        "-o", "--output", default=".", metavar="FOLDER", help="where the files go; default: this folder"
    )
