"""The engines by name.

The opener of an engine is called with the XML, the robot as robokit read it, and a list, to which it adds
what it had to change for the engine. It returns a function that answers for a state, in robokit's order. It
raises whatever the engine raises over the file.
"""

from __future__ import annotations

from dataclasses import dataclass

from robokit.model.robot import Robot
from robokit.parity import foreign
from robokit.parity.state import Answering, Answers, Opener, State
from robokit.parity.with_drake import open_drake
from robokit.parity.with_mujoco import open_mujoco
from robokit.parity.with_pinocchio import open_pinocchio


@dataclass(frozen=True)
class Engine:
    """Another program: its Python module, package, base velocity, and the function that opens a file."""

    module: str
    package: str
    base_velocity: str
    open: Opener

    @property
    def program(self) -> str:
        """Its key in ``robokit.parity.foreign.PROGRAMS``, whose readers work in a child; "" for another."""
        programs = foreign.PROGRAMS.items()
        return next((key for key, each in programs if each.module.partition(".")[0] == self.module), "")


ENGINES = {
    "Pinocchio": Engine("pinocchio", "pin", "[v; omega] in base axes", open_pinocchio),
    "MuJoCo": Engine("mujoco", "mujoco", "v in world, omega in base axes", open_mujoco),
    "Drake": Engine("pydrake", "drake", "[omega; v] in world axes", open_drake),
}
"""Name of an engine -> the engine."""


def opened(name: str, text: bytes, robot: Robot, changes: list[str]) -> Answering:
    """A file that an engine has opened, in a child with bounded time and memory.

    Args:
        name: of the engine.
        text: the XML.
        robot: as robokit read it.
        changes: gets what the engine changed or refused.

    Raises:
        MissingDependency: the engine cannot be imported.
        RobokitError: it cannot load the file.
    """
    engine = ENGINES[name]
    if not engine.program:
        return engine.open(text, robot, changes)
    foreign.require(engine.program)
    number, changes[:] = foreign.call(__name__, "open_here", name, text, robot)

    def answers(x: State) -> Answers:
        found, changes[:] = foreign.call(__name__, "answer_here", number, x)
        return dict(found)

    return answers


MOST = 8
"""Files that the child keeps open: one is enough for each thread that compares."""

_open: dict[int, tuple[Answering, list[str]]] = {}


def open_here(name: str, text: bytes, robot: Robot) -> tuple[int, list[str]]:
    """Open a file in this process: the number that it is asked by, and what was changed."""
    changes: list[str] = []
    answering = ENGINES[name].open(text, robot, changes)
    number = max(_open, default=0) + 1
    if len(_open) == MOST:
        del _open[min(_open)]
    _open[number] = answering, changes
    return number, changes


def answer_here(number: int, x: State) -> tuple[Answers, list[str]]:
    """The answers for a state, and all that was changed until then."""
    answering, changes = _open[number]
    return answering(x), changes
