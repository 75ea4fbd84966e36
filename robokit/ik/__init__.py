"""Inverse kinematics: configurations that put links where they are wanted.

solve    the function, and what it returns
targets  what a caller asks for, as arrays
solver   the step as a kernel; the search from one start, from random ones, single or batch
step     what is asked, its errors and their derivatives, and a Levenberg-Marquardt step
"""

from robokit.ik.solve import InverseKinematicsResult, inverse_kinematics

__all__ = ["InverseKinematicsResult", "inverse_kinematics"]
