"""Identification: inertial parameters, friction and motor inertia from measured motion.

estimate         identify(): from data to an estimate, and warnings where they do not go together
result           Identification: what was found, and its figure
consistent_fit   the most probable bodies that can exist, in matrices that are positive for real bodies
combinations     base parameters: which combinations forces depend on
measurements     checks, the equations of a motion in compressed form, names and places of the parameters
exciting_motion  motions that determine the parameters well
"""

from robokit.identification.combinations import BaseParameters, base_parameters
from robokit.identification.estimate import identify
from robokit.identification.exciting_motion import Excitation, excitation
from robokit.identification.result import Identification

__all__ = ["BaseParameters", "Excitation", "Identification", "base_parameters", "excitation", "identify"]
