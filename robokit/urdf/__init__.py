"""The importer: URDF text to description, findings and robot; and back to text.

description  what a file says, element by element
codes        the table of everything that can be found
findings     collects what was found
to_robot     from a description that is free of errors to a robot
load         load_urdf, loads_urdf, check_urdf, from_yourdfpy

read/        text to description
judge/       what is wrong with a description
write/       robot to description, to text
lint/        many files at once: ``robokit check``
"""

from typing import TYPE_CHECKING, Any

from robokit.urdf.codes import CODES, Code
from robokit.urdf.description import RobotDescription
from robokit.urdf.load import check_urdf, from_yourdfpy, load_urdf, loads_urdf
from robokit.urdf.to_robot import build
from robokit.urdf.xacro import expand_xacro

if TYPE_CHECKING:
    from robokit.urdf.write import dump

__all__ = [
    "CODES",
    "Code",
    "RobotDescription",
    "build",
    "check_urdf",
    "dump",
    "expand_xacro",
    "from_yourdfpy",
    "load_urdf",
    "loads_urdf",
]


def __getattr__(name: str) -> Any:
    """The writer, imported at its first use."""
    if name != "dump":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from robokit.urdf.write import dump

    globals()["dump"] = dump
    return dump
