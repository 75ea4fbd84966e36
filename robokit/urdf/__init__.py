"""The importer: URDF text to description, findings and robot; and back to text.

description  what a file says, element by element
findings     the table of everything that can be found, and the collector of what was found

source       a file or a text to an XML tree, safely; attributes, numbers and children of its elements
xacro        .xacro files, expanded first
xacro_child  expands one file in a process of its own
mesh_files   where mesh and texture files are: package://, model://, file:// and relative names
structure    checks of the tree of links, of mimic and loop joints, and of mesh and texture files;
             descriptions rewritten on request: own floating base, loops, up axes of meshes
checks       what is wrong with a description: every check in one call; inertias, limits, masses and shapes
load         load_urdf, loads_urdf, check_urdf, from_yourdfpy, build: parse, check, build a robot

write        the writer: robot to description to text
lint         many files at once: ``robokit check``
"""

from typing import TYPE_CHECKING, Any

from robokit.urdf.description import RobotDescription
from robokit.urdf.findings import CODES, Code
from robokit.urdf.load import build, check_urdf, from_yourdfpy, load_urdf, loads_urdf
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
