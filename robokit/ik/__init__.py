"""Inverse kinematics: configurations that put links where they are wanted.

solver   targets as arrays, a Levenberg-Marquardt step as a kernel, the search, the result
"""

from robokit.ik.solver import InverseKinematicsResult, inverse_kinematics

__all__ = ["InverseKinematicsResult", "inverse_kinematics"]
