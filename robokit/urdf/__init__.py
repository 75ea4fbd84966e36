"""The importer: URDF text to description, diagnostics and robot.

source, numbers, reader   bytes to XML, text to numbers, elements to values
parse, shapes             elements to a description
description               what the file says
structure, physics        verdicts: the tree, the masses
extent, plausible         masses and inertias beside the shapes
resolve                   mesh and texture files
codes, report             the table of verdicts, and what was found
load                      load_urdf, loads_urdf, check_urdf, from_yourdfpy
xacro                     .xacro files, expanded
folders                   which files of a folder are robots
describe, write, dump     a robot to its description, to text
"""

from robokit.urdf.description import RobotDescription
from robokit.urdf.judge.codes import CODES, Code
from robokit.urdf.load import build, check_urdf, from_yourdfpy, load_urdf, loads_urdf
from robokit.urdf.read.xacro import expand_xacro
from robokit.urdf.write.dump import dump

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
