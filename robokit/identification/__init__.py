"""Identification: inertial parameters, friction and motor inertia from measured motion.

estimate         identify(): the way from data to an estimate
identified       Identification: what was found
consistent_fit   the most probable bodies that can exist
pseudo_inertia   inertial parameters as matrices that are positive for real bodies
combinations     base parameters: which combinations forces depend on
measurements     checks, and the equations of a motion in compressed form
parameter_names  names and places of the parameters
exciting_motion  motions that determine the parameters well
fit_figure       the figure of an identification
doubts           warnings: where forces and estimate do not go together
blas_threads     one thread for the linear algebra of small matrices
"""

from robokit.identification.combinations import BaseParameters, base_parameters
from robokit.identification.estimate import identify
from robokit.identification.exciting_motion import Excitation, excitation
from robokit.identification.identified import Identification

__all__ = ["BaseParameters", "Excitation", "Identification", "base_parameters", "excitation", "identify"]
