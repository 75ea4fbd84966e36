"""Identification: inertial parameters, friction and motor inertia from measured motion.

estimate         identify(): from data to an Identification, with its figure and warnings; the most probable
                 bodies that can exist, in matrices that are positive for real bodies
measurements     checks, the equations of a motion in compressed form, base parameters
exciting_motion  motions that determine the parameters well
"""

from robokit.identification.estimate import Identification, identify
from robokit.identification.exciting_motion import Excitation, excitation
from robokit.identification.measurements import BaseParameters, base_parameters

__all__ = ["BaseParameters", "Excitation", "Identification", "base_parameters", "excitation", "identify"]
