"""Other programs at work: their readers run in a child with bounded time and memory (:mod:`robokit.bounded`).

One child serves a whole run: importing Drake, MuJoCo or USD takes longer than reading a robot.
"""

from __future__ import annotations

import atexit
import importlib
import importlib.util
from dataclasses import dataclass
from typing import Any

from robokit.bounded import Child, OutOfBounds
from robokit.errors import MissingDependency, RobokitError
from robokit.parity import foreign_child
from robokit.parity.state import one_line

PLAIN = ("robokit.parity.sides.side", "robokit.model.geometry")
"""Modules with the classes that answers are made of."""


@dataclass(frozen=True)
class Program:
    """Another program: its name, the Python module that is imported, and the package that has it."""

    name: str
    module: str
    package: str


PROGRAMS = {
    "mujoco": Program("MuJoCo", "mujoco", "mujoco"),
    "drake": Program("Drake", "pydrake.multibody.parsing", "drake"),
    "pinocchio": Program("Pinocchio", "pinocchio", "pin"),
    "usd": Program("USD", "pxr.Usd", "usd-core"),
}

_child = Child(foreign_child.__file__, modules=PLAIN)
atexit.register(_child.close)


class NoAnswer(RobokitError):
    """A program gave none: it took too long, too much memory, or crashed."""


def call(module: str, function: str, *arguments: Any) -> Any:
    """What a function of robokit returns, called in the child.

    Args:
        module: the function's, which may import other programs.
        function: its name.
        arguments: what can be pickled.

    Raises:
        NoAnswer: there is none.
        MissingDependency, RobokitError: what the function raised.
    """
    try:
        kind, content = _child.ask((module, function, arguments))
    except OutOfBounds as problem:
        raise NoAnswer(f"{problem}; {problem.hint}" if problem.hint else str(problem)) from None
    if kind == "MissingDependency":
        raise MissingDependency(str(content))
    if kind != "done":
        raise RobokitError(str(content))
    return content


def require(key: str) -> None:
    """See that a program can be imported, in the child.

    Args:
        key: of ``PROGRAMS``.

    Raises:
        MissingDependency: it is not installed, or its installation is broken.
    """
    program = PROGRAMS[key]
    if importlib.util.find_spec(program.module.partition(".")[0]) is None:
        raise MissingDependency(f"{program.name} is needed and not installed; pip install {program.package}")
    try:
        broken = call(__name__, "import_problem", program.module)
    except NoAnswer as problem:
        broken = str(problem)
    if broken:
        raise MissingDependency(
            f"{program.name} is installed and cannot be imported, so no file was read: {broken}; "
            f"pip install --force-reinstall {program.package}"
        )


def import_problem(module: str) -> str:
    """Why a module cannot be imported; "" if it can."""
    try:
        importlib.import_module(module)
    except MemoryError:
        raise
    except Exception as problem:  # a broken installation raises anything
        return f"{type(problem).__name__}: {one_line(problem)}"
    return ""
