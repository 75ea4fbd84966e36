"""robokit: load a URDF, understand how the robot moves.

    import robokit as rk
    robot = rk.load_urdf("humanoid.urdf", base="floating")
    H = rk.crba(robot, robot.neutral())

Angular first, quaternions wxyz, SI units; everything else in robokit.conventions.
"""

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from robokit import dynamics, hooks, rotations, unknown_names
from robokit.dynamics import *
from robokit.dynamics.codegen import codegen
from robokit.dynamics.cost import cost
from robokit.dynamics.own_functions import functions
from robokit.errors import (
    Diagnostic,
    FunctionError,
    InvalidValue,
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
from robokit.ik import InverseKinematicsResult, inverse_kinematics
from robokit.model import Contact, Joint, Link, Mimic, ModelBuilder, Placement, Robot, Tree, together
from robokit.robot_names import find_robot
from robokit.urdf import from_yourdfpy, load_urdf, loads_urdf

if TYPE_CHECKING:
    from robokit.identification import (
        BaseParameters,
        Excitation,
        Identification,
        base_parameters,
        excitation,
        identify,
    )
    from robokit.sim import (
        PD,
        CollisionPairs,
        Ground,
        HeightField,
        JointSpring,
        Keyframes,
        Measure,
        PrescribedMotion,
        Push,
        Rollout,
        Simulation,
        SimulationState,
        Solid,
        Spring,
        StepDerivatives,
        StepGradient,
        Torque,
        Trajectory,
        Velocity,
        close_loops,
        collision_pairs,
        measures,
        rollout,
        simulate,
        standing_configuration,
        standing_height,
        step_derivatives,
        step_function,
        step_vjp,
    )
    from robokit.sweeps import (
        Choice,
        Grid,
        Normal,
        Recipe,
        Sobol,
        Sweep,
        Uniform,
        open_sweep,
        sweep,
        sweep_parameters,
    )

__version__ = "0.2.0"

_SIM = (
    "PD",
    "CollisionPairs",
    "Ground",
    "HeightField",
    "JointSpring",
    "Keyframes",
    "Measure",
    "PrescribedMotion",
    "Push",
    "Rollout",
    "Simulation",
    "SimulationState",
    "Solid",
    "Spring",
    "StepDerivatives",
    "StepGradient",
    "Torque",
    "Trajectory",
    "Velocity",
    "close_loops",
    "collision_pairs",
    "measures",
    "rollout",
    "simulate",
    "standing_configuration",
    "standing_height",
    "step_derivatives",
    "step_function",
    "step_vjp",
)

_SWEEPS = (
    "Choice",
    "Grid",
    "Normal",
    "Recipe",
    "Sobol",
    "Sweep",
    "Uniform",
    "open_sweep",
    "sweep",
    "sweep_parameters",
)

_IDENTIFICATION = (
    "BaseParameters",
    "Excitation",
    "Identification",
    "base_parameters",
    "excitation",
    "identify",
)

__all__ = [
    "PD",
    "BaseParameters",
    "Choice",
    "CollisionPairs",
    "Contact",
    "Diagnostic",
    "Excitation",
    "FunctionError",
    "Grid",
    "Ground",
    "HeightField",
    "Identification",
    "InvalidValue",
    "InverseKinematicsResult",
    "Joint",
    "JointSpring",
    "Keyframes",
    "Link",
    "Measure",
    "Mimic",
    "MissingDependency",
    "ModelBuilder",
    "ModelError",
    "Normal",
    "Placement",
    "PrescribedMotion",
    "Push",
    "Recipe",
    "RobokitError",
    "Robot",
    "Rollout",
    "ShapeError",
    "Simulation",
    "SimulationError",
    "SimulationState",
    "SimulationWarning",
    "SingularInertia",
    "Sobol",
    "Solid",
    "Spring",
    "StepDerivatives",
    "StepGradient",
    "Sweep",
    "Torque",
    "Trajectory",
    "Tree",
    "Uniform",
    "UnknownName",
    "UrdfError",
    "Velocity",
    "WriteError",
    "WrongType",
    "base_parameters",
    "close_loops",
    "codegen",
    "collision_pairs",
    "cost",
    "excitation",
    "find_robot",
    "from_yourdfpy",
    "functions",
    "identify",
    "inverse_kinematics",
    "load_urdf",
    "loads_urdf",
    "measures",
    "open_sweep",
    "rollout",
    "rotations",
    "simulate",
    "standing_configuration",
    "standing_height",
    "step_derivatives",
    "step_function",
    "step_vjp",
    "sweep",
    "sweep_parameters",
    "together",
]
__all__ += dynamics.__all__


def __getattr__(name: str) -> Any:
    """The simulator, identification and sweeps, imported at their first use: a sixth of the import."""
    source: Any
    if name in _SIM:
        from robokit import sim as source
    elif name in _IDENTIFICATION:
        from robokit import identification as source
    elif name in _SWEEPS:
        from robokit import sweeps as source
    else:
        from robokit.unknown_names import advice

        meant = "" if name.startswith("_") else advice(name, __all__)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{meant}")
    names = next(names for names in (_SIM, _IDENTIFICATION, _SWEEPS) if name in names)
    _publish(source, names)
    return globals()[name]


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


hooks.provide("cost", cost)
hooks.provide("notebook_html", _notebook_html)
hooks.provide("write_page", _write_page)

_publish(sys.modules[__name__], set(__all__) & set(globals()) - set(dynamics.__all__))
