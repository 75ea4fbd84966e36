"""robokit: load a URDF, understand how the robot moves.

    import robokit as rk
    robot = rk.load_urdf("humanoid.urdf", base="floating")
    H = rk.crba(robot, robot.neutral())

Angular first, quaternions wxyz, SI units; everything else in robokit.conventions.
"""

from typing import TYPE_CHECKING, Any

from robokit import hooks
from robokit.dynamics import (
    LinkPoses,
    LTDLFactor,
    aba,
    bias_forces,
    center_of_mass,
    centroidal_momentum,
    centroidal_momentum_bias,
    centroidal_momentum_matrix,
    cost,
    crba,
    crba_nonzeros,
    forward_dynamics,
    forward_kinematics,
    gravity_forces,
    inertia_entries,
    inertia_sparsity,
    kinetic_energy,
    ltdl,
    potential_energy,
    rnea,
)
from robokit.errors import (
    Diagnostic,
    MissingDependency,
    ModelError,
    RobokitError,
    ShapeError,
    SimulationError,
    SingularInertia,
    UnknownName,
    UrdfError,
    WrongType,
)
from robokit.model import Joint, Link, Mimic, ModelBuilder, Placement, Robot, Tree
from robokit.robot_names import find_robot
from robokit.urdf import from_yourdfpy, load_urdf, loads_urdf

if TYPE_CHECKING:
    from robokit.sim import (
        Ground,
        Rollout,
        Trajectory,
        rollout,
        simulate,
        standing_configuration,
        standing_height,
    )

__version__ = "0.1.0"

_SIM = (
    "Ground",
    "Rollout",
    "Trajectory",
    "rollout",
    "simulate",
    "standing_configuration",
    "standing_height",
)

__all__ = [
    "Diagnostic",
    "Ground",
    "Joint",
    "LTDLFactor",
    "Link",
    "LinkPoses",
    "Mimic",
    "MissingDependency",
    "ModelBuilder",
    "ModelError",
    "Placement",
    "RobokitError",
    "Robot",
    "Rollout",
    "ShapeError",
    "SimulationError",
    "SingularInertia",
    "Trajectory",
    "Tree",
    "UnknownName",
    "UrdfError",
    "WrongType",
    "aba",
    "bias_forces",
    "center_of_mass",
    "centroidal_momentum",
    "centroidal_momentum_bias",
    "centroidal_momentum_matrix",
    "cost",
    "crba",
    "crba_nonzeros",
    "find_robot",
    "forward_dynamics",
    "forward_kinematics",
    "from_yourdfpy",
    "gravity_forces",
    "inertia_entries",
    "inertia_sparsity",
    "kinetic_energy",
    "load_urdf",
    "loads_urdf",
    "ltdl",
    "potential_energy",
    "rnea",
    "rollout",
    "simulate",
    "standing_configuration",
    "standing_height",
]


def __getattr__(name: str) -> Any:
    """The simulator, imported at its first use: a sixth of the package's import."""
    if name not in _SIM:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from robokit import sim

    globals().update({public: getattr(sim, public) for public in _SIM})
    return globals()[name]


def _write_page(*arguments: Any, **options: Any) -> Any:
    from robokit.viewer import write_page

    return write_page(*arguments, **options)


hooks.provide("cost", cost)
hooks.provide("write_page", _write_page)
