"""The public dynamics functions: NumPy arrays in and out, one state or a batch.

Every function takes one state, ``(nq,)`` and ``(nv,)``, or a batch, ``(B, nq)`` and ``(B, nv)``, and
returns the matching shape; a single state goes along with a batch. The algorithm's text runs as
machine code, compiled for the robot at the first call and kept on disk; with ``engine="python"`` it runs
as it stands, on Python's floats or NumPy's columns: slow, nothing is compiled, and the same numbers up to
rounding.

All raise ShapeError (a wrong shape or dtype, NaN, infinity or a quaternion that is not unit; the
message names the argument), WrongType where the robot is none, and, given names, an engine among them,
UnknownName.
"""

from robokit.dynamics.cost import cost
from robokit.dynamics.forward import aba, forward_dynamics
from robokit.dynamics.inverse import bias_forces, gravity_forces, rnea
from robokit.dynamics.link_kinematics import LinkPoses, forward_kinematics
from robokit.dynamics.mass_matrix import (
    LTDLFactor,
    crba,
    crba_nonzeros,
    inertia_entries,
    inertia_sparsity,
    ltdl,
)
from robokit.dynamics.momentum import (
    center_of_mass,
    centroidal_momentum,
    centroidal_momentum_bias,
    centroidal_momentum_matrix,
    kinetic_energy,
    potential_energy,
)

__all__ = [
    "LTDLFactor",
    "LinkPoses",
    "aba",
    "bias_forces",
    "center_of_mass",
    "centroidal_momentum",
    "centroidal_momentum_bias",
    "centroidal_momentum_matrix",
    "cost",
    "crba",
    "crba_nonzeros",
    "forward_dynamics",
    "forward_kinematics",
    "gravity_forces",
    "inertia_entries",
    "inertia_sparsity",
    "kinetic_energy",
    "ltdl",
    "potential_energy",
    "rnea",
]
