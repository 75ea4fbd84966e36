"""Inverse kinematics: configurations that put links where they are wanted.

solver   the function: targets as arrays, the step as a kernel, the search from one start or many, the result
step     what is asked, its errors and their derivatives, and a Levenberg-Marquardt step
"""

from robokit.ik.solver import InverseKinematicsResult, inverse_kinematics

__all__ = ["InverseKinematicsResult", "inverse_kinematics"]
