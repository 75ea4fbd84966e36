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
    """Another program: its Python module, package, base velocity, and the function that opens a file.

    ``key`` is its name in ``robokit.parity.foreign.PROGRAMS``.
    """

    key: str
    module: str
    package: str
    base_velocity: str
    open: Opener


ENGINES = {
    "Pinocchio": Engine("pinocchio", "pinocchio", "pin", "[v; omega] in base axes", open_pinocchio),
    "MuJoCo": Engine("mujoco", "mujoco", "mujoco", "v in world, omega in base axes", open_mujoco),
    "Drake": Engine("drake", "pydrake", "drake", "[omega; v] in world axes", open_drake),
}
"""Name of an engine -> the engine."""


class Opened:
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

    def __init__(self, name: str, text: bytes, robot: Robot, changes: list[str]) -> None:
        foreign.require(ENGINES[name].key)
        self._changes = changes
        self._number, changes[:] = foreign.call(__name__, "open_here", name, text, robot)

    def __call__(self, x: State) -> Answers:
        """What the engine answers for a state."""
        answers, self._changes[:] = foreign.call(__name__, "answer_here", self._number, x)
        return dict(answers)

    def close(self) -> None:
        """Let the child forget the file."""
        foreign.call(__name__, "forget_here", self._number)


_open: dict[int, tuple[Answering, list[str]]] = {}


def open_here(name: str, text: bytes, robot: Robot) -> tuple[int, list[str]]:
    """Open a file in this process: the number that it is asked by, and what was changed."""
    changes: list[str] = []
    answering = ENGINES[name].open(text, robot, changes)
    number = max(_open, default=0) + 1
    _open[number] = answering, changes
    return number, changes


def answer_here(number: int, x: State) -> tuple[Answers, list[str]]:
    """The answers for a state, and all that was changed until then."""
    answering, changes = _open[number]
    return answering(x), changes


def forget_here(number: int) -> None:
    """Forget a file that was opened."""
    _open.pop(number, None)
