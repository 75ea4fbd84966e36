"""Spatial vector algebra over generic scalars; knows no tree.

scalars    sin, cos, sqrt, where, ... dispatched on the scalar's type; sines the same on every machine
elementary exp, log, tan, atan2, ... made of these
control_flow  for_range, while_loop, cond, call, vmap, zeros, whole, in_precision, solution, rounding
vectors    Vector3, Matrix3; Motion, Force, Transform (E, r); RigidInertia (m, h, Ī), ArticulatedInertia
rotation   coordinate rotations, quaternions wxyz, exponential and logarithm
linear     linear systems: small symmetric ones by LDL, dense ones by LU
"""

from robokit.spatial.vectors import (
    ArticulatedInertia,
    Force,
    Matrix3,
    Motion,
    RigidInertia,
    Symmetric3,
    Transform,
    Vector3,
)

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
