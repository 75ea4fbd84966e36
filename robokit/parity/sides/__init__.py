"""Descriptions of a robot in one form, whatever they are written in: the two sides that the referee compares.

side              bodies, joints and shapes
urdf_side         a URDF or xacro, as robokit reads it
mujoco_side       MJCF, or a URDF, as MuJoCo reads it
mujoco_couplings  its equality constraints and tendons
mujoco_efforts    the ranges of effort of its actuators
drake_side        SDF, or a URDF, as Drake reads it
sdf_files         an SDF and what it includes, without what Drake refuses
pinocchio_side    a URDF, as Pinocchio reads it
usd_side          USD with the UsdPhysics schema
usd_shapes        poses and collision shapes of its prims
open_side         the reader that a file needs
"""
