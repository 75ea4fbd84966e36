"""The engines by name.

The opener of an engine is called with the XML, the robot as robokit read it, and a list, to which it adds
what it had to change for the engine. It returns a function that answers for a state, in robokit's order. It
raises whatever the engine raises over the file.
"""

from __future__ import annotations

from dataclasses import dataclass

from robokit.parity.state import Opener
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


ENGINES = {
    "Pinocchio": Engine("pinocchio", "pin", "[v; omega] in base axes", open_pinocchio),
    "MuJoCo": Engine("mujoco", "mujoco", "v in world, omega in base axes", open_mujoco),
    "Drake": Engine("pydrake", "drake", "[omega; v] in world axes", open_drake),
}
"""Name of an engine -> the engine."""
