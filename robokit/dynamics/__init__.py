"""The dynamics functions: NumPy arrays in and out, one state or a batch.

Every function takes one state, ``(nq,)`` and ``(nv,)``, or a batch, ``(B, nq)`` and ``(B, nv)``, and
returns the matching shape. A single state may stand beside a batch. The algorithm runs as machine code: it
is compiled for the robot at the first call and kept on disk. With ``engine="python"`` the Python function
runs as it stands, on Python's floats or on NumPy's columns. That is slow, compiles nothing, and gives the
same numbers up to rounding.

All functions raise

- ShapeError for a wrong shape or dtype, and InvalidValue for NaN, infinity, or a quaternion of another
  length than 1; the message names the argument, and the joint;
- WrongType for a first argument that is not a Robot;
- UnknownName for the name of a link, engine, method or dtype that does not exist.

table            the algorithms: one row each
layout           arrays to what their functions take, and back; kinds of results; what a user's function
                 returns, and its errors
choices          devices; the links, joints and contacts that a call is about
build            their kernels for a robot, and the trees that the functions are given
on_card          kernels on a card, of arrays that are there and of NumPy's, and inside programs of JAX
run              the way in of the public functions
link_kinematics  poses, Jacobians and motions of links; centre of mass, energies, centroidal momentum
equations_of_motion  H, its factors, its inverse; RNEA, ABA and what lies between; derivatives; regressors
constrained      contacts and loop joints, impacts, operational space; what each joint passes on
function_objects functions as objects, the table's and the user's own, and their derivatives
differentiate    derivatives of the functions of a robot
singular         which joint makes H singular
long_robots      matrices of robots of hundreds of joints, by loops over the robot as data
cost             operation counts
codegen          functions as code in other languages: files in C
other_libraries  CasADi, JAX, PyTorch
"""

from robokit.dynamics import constrained, equations_of_motion, function_objects, link_kinematics
from robokit.dynamics.constrained import *
from robokit.dynamics.equations_of_motion import *
from robokit.dynamics.function_objects import *
from robokit.dynamics.link_kinematics import *

__all__: list[str] = []
__all__ += constrained.__all__
__all__ += equations_of_motion.__all__
__all__ += function_objects.__all__
__all__ += link_kinematics.__all__
