"""robokit: load a URDF, understand how the robot moves.

    import robokit as rk
    robot = rk.load_urdf("humanoid.urdf", base="floating")
    H = rk.crba(robot, robot.neutral())

Angular first, quaternions wxyz, SI units; everything else in robokit.conventions.
"""

import importlib
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from robokit import dynamics, hooks, rotations, unknown_names
from robokit.dynamics import *
from robokit.dynamics.codegen import codegen
from robokit.dynamics.cost import cost
from robokit.dynamics.function_objects import functions
from robokit.dynamics.other_libraries import autograd_call as _autograd_call
from robokit.dynamics.other_libraries import jax_pullback as _jax_pullback
from robokit.errors import (
    DeviceError,
    Diagnostic,
    FunctionError,
    InvalidValue,
    LoadError,
    MissingDependency,
    ModelError,
    RobokitError,
    ShapeError,
    SimulationError,
    SimulationWarning,
    SingularInertia,
    UnknownName,
    UrdfError,
    WriteError,
    WrongType,
)
from robokit.formats.load import load
from robokit.ik import InverseKinematicsResult, inverse_kinematics
from robokit.model import Contact, Joint, Link, Mimic, ModelBuilder, Placement, Robot, Scene, Tree, together
from robokit.robot_names import find_robot
from robokit.urdf import from_yourdfpy, load_urdf, loads_urdf

if TYPE_CHECKING:
    from robokit.conversion import *

    # Once more, chapter by chapter: type checkers read lists of names, but do not add them up.
    from robokit.dynamics.constrained import *
    from robokit.dynamics.equations_of_motion import *
    from robokit.dynamics.function_objects import *
    from robokit.dynamics.link_kinematics import *
    from robokit.identification import *
    from robokit.logs import *
    from robokit.momentum_observer import *
    from robokit.sim import *
    from robokit.sweeps import *

__version__ = "0.2.0"

_PARTS = {
    "sim": """
        PD Collision CollisionPairs Collisions Distances Ground HeightField JointSpring Keyframes Measure
        PrescribedMotion Push Rollout Simulation SimulationState Solid Spring StepDerivatives StepGradient
        Torque Trajectory Velocity close_loops collision_pairs collisions distance distance_function measures
        rollout simulate standing_configuration standing_height step_derivatives step_function step_vjp
    """,
    "sweeps": "Choice Grid Normal Recipe Sobol Sweep Uniform open_sweep sweep sweep_parameters",
    "identification": "BaseParameters Excitation Identification base_parameters excitation identify",
    "logs": """
        LogIdentification TorqueComparison identify_log read_log simulate_log unexplained_torques
        write_log_page
    """,
    "momentum_observer": "MomentumObserver external_force external_torques",
    "conversion": "Conversion convert",
}
"""Parts with public names, which are imported at their first use: a sixth of the import."""

_LATER = {part: names.split() for part, names in _PARTS.items()}

__all__ = [
    "Contact",
    "DeviceError",
    "Diagnostic",
    "FunctionError",
    "InvalidValue",
    "InverseKinematicsResult",
    "Joint",
    "Link",
    "LoadError",
    "Mimic",
    "MissingDependency",
    "ModelBuilder",
    "ModelError",
    "Placement",
    "RobokitError",
    "Robot",
    "Scene",
    "ShapeError",
    "SimulationError",
    "SimulationWarning",
    "SingularInertia",
    "Tree",
    "UnknownName",
    "UrdfError",
    "WriteError",
    "WrongType",
    "codegen",
    "cost",
    "find_robot",
    "from_yourdfpy",
    "functions",
    "inverse_kinematics",
    "load",
    "load_urdf",
    "loads_urdf",
    "rotations",
    "together",
]
__all__ += dynamics.__all__
__all__ += (name for names in _LATER.values() for name in names)


_MODULES = ("algorithms", "interop", "mjcf", "sdf", "spatial", "viewer")
"""Modules of which users take names besides."""


def __getattr__(name: str) -> Any:
    """The names of parts that are imported at their first use."""
    for part, names in _LATER.items():
        if name in names:
            _publish(importlib.import_module(f"robokit.{part}"), names)
            return globals()[name]
    if name in _MODULES:  # which binds the name itself
        return importlib.import_module(f"robokit.{name}")
    from robokit.unknown_names import advice

    meant = "" if name.startswith("_") else advice(name, __all__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{meant}")


def _publish(source: Any, names: Iterable[str]) -> None:
    """Make names of a part of robokit names of robokit, with advice for wrong keyword arguments."""
    for name in names:
        found = unknown_names.guard(getattr(source, name))
        home = sys.modules.get(getattr(found, "__module__", ""))
        for module in (source, home):
            # Whoever asks a module for it gets the same one: pickle compares.
            if module is not None and hasattr(module, name):
                setattr(module, name, found)
        globals()[name] = found


def __dir__() -> list[str]:
    """The public names, also those that are imported at their first use."""
    return list(__all__)


def _write_page(*arguments: Any, **options: Any) -> Any:
    from robokit.viewer import write_page

    return write_page(*arguments, **options)


def _notebook_html(source: Any) -> Any:
    from robokit.viewer.notebook import notebook_html

    return notebook_html(source)


hooks.provide("autograd", _autograd_call)
hooks.provide("pullback for JAX", _jax_pullback)
hooks.provide("cost", cost)
hooks.provide("notebook_html", _notebook_html)
hooks.provide("write_page", _write_page)

_publish(sys.modules[__name__], set(__all__) & set(globals()) - set(dynamics.__all__))
