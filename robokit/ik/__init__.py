"""Inverse kinematics: configurations that put links where they are wanted.

ik_solve    the function
ik_search   from one start, from random ones, single or batch
ik_targets  what a caller asks for, as arrays
ik_result   what was found
ik_kernel   the step as a kernel of a robot and of what is asked
ik_problem  what is asked, its errors and their derivatives, as a text
lm_step     a Levenberg-Marquardt step, as a text
"""

from robokit.ik.ik_result import InverseKinematicsResult
from robokit.ik.ik_solve import inverse_kinematics

__all__ = ["InverseKinematicsResult", "inverse_kinematics"]
