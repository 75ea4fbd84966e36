"""Spatial vector algebra over generic scalars; knows no tree.

sines      sine and cosine that are the same on every machine
scalars    sin, cos, sqrt, where, ... dispatched on the scalar's type
elementary exp, log, tan, atan2, ... made of these
control_flow  for_range, while_loop, cond, call, vmap, zeros, whole, in_precision, solution
precision  bounds of rounding, in double and in single precision
vector3    Vector3, Matrix3, Symmetric3
rotation   coordinate rotations, quaternions wxyz, exponential and logarithm
plucker    Motion, Force, Transform (E, r)
inertia    RigidInertia (m, h, Ī), ArticulatedInertia (symmetric 6 x 6), CoriolisInertia
linear     small symmetric systems
dense_lu   LU factors of dense matrices
"""

from robokit.spatial.inertia import ArticulatedInertia, RigidInertia
from robokit.spatial.plucker import Force, Motion, Transform
from robokit.spatial.vector3 import Matrix3, Symmetric3, Vector3

__all__ = [
    "ArticulatedInertia",
    "Force",
    "Matrix3",
    "Motion",
    "RigidInertia",
    "Symmetric3",
    "Transform",
    "Vector3",
]
