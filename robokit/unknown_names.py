"""Keyword arguments that do not exist: the TypeError says which one was meant.

Python refuses them before a function begins, so the functions have nothing to do with this. Each public
function, and each public method and constructor with optional arguments, is called through :func:`guarded`,
which looks at the error if there is one. The functions of single states (``rk.rnea`` and the like) take about
a microsecond, of which that call would be a tenth: they are left as they are.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Iterable, Sequence
from types import FunctionType
from typing import Any

from robokit.errors import nearest_names

UNSEEN = "<robokit.unknown_names, passed over like importlib._bootstrap>"
"""File of the code of the call between. ``warnings`` does not count frames of such files, so that a warning
names the line of the caller."""

MARK = "__robokit_guarded__"


def guarded(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, whose TypeErrors over unknown keyword arguments say which ones there are."""

    def call(*arguments: Any, **options: Any) -> Any:
        try:
            return function(*arguments, **options)
        except TypeError as error:
            advice = advised(function, options)
            if not advice:
                raise
            said = str(error).partition(". Did you mean")[0]  # as Python 3.13 does on its own
            message = f"{said}{advice}"
        raise TypeError(message)

    call.__code__ = call.__code__.replace(co_filename=UNSEEN)
    found: Any = functools.update_wrapper(call, function)
    found.__dict__[MARK] = True
    return found


def advised(function: Callable[..., Any], options: Iterable[str]) -> str:
    """Advice for the first keyword that the function does not have; nothing where it has them all."""
    known = inspect.signature(function).parameters
    if any(each.kind is each.VAR_KEYWORD for each in known.values()):
        return ""
    unknown = [name for name in options if name not in known]
    return keyword_advice(unknown[0], [name for name in known if name != "self"]) if unknown else ""


def guard(thing: Any) -> Any:
    """The same for a public function, or for the constructor and the methods of a class, in their places."""
    if isinstance(thing, type):
        for owner in thing.__mro__:
            if owner.__module__.startswith("robokit."):
                _guard_methods(owner)
        return thing
    return guarded(thing) if isinstance(thing, FunctionType) and MARK not in thing.__dict__ else thing


def _guard_methods(owner: type) -> None:
    for name, method in list(vars(owner).items()):
        inner = getattr(method, "__func__", method)  # of a classmethod or staticmethod
        if not isinstance(inner, FunctionType) or (name.startswith("_") and name != "__init__"):
            continue
        optional = inner.__defaults__ or inner.__kwdefaults__ or name == "__init__"
        if optional and MARK not in inner.__dict__:
            found = guarded(inner)
            setattr(owner, name, found if inner is method else type(method)(found))


# ---- What other libraries and textbooks call what robokit has: for the message where a name does not exist

ELSEWHERE = {
    "bodyjacobian": "link_jacobian",
    "buildmodelfromurdf": "load_urdf",
    "buildmodelfromxml": "loads_urdf",
    "ccrba": "centroidal_momentum_matrix",
    "centroidaldynamics": "centroidal_momentum",
    "com": "center_of_mass",
    "comjacobian": "center_of_mass_jacobian",
    "constraintdynamics": "constrained_dynamics",
    "coriolis": "coriolis_matrix",
    "crb": "crba",
    "dccrba": "centroidal_momentum_bias",
    "difference": "Robot.difference",
    "fd": "aba",
    "fk": "forward_kinematics",
    "framejacobian": "link_jacobian",
    "frameskinematics": "forward_kinematics",
    "framesforwardkinematics": "forward_kinematics",
    "generalizedgravity": "gravity_forces",
    "gravity": "gravity_forces",
    "id": "rnea",
    "ik": "inverse_kinematics",
    "impulsedynamics": "impact",
    "inertiamatrix": "crba",
    "integrate": "Robot.integrate",
    "inversedynamics": "rnea",
    "inverseinertiamatrix": "inverse_mass_matrix",
    "jacobian": "link_jacobian",
    "jacobiancenterofmass": "center_of_mass_jacobian",
    "jointjacobian": "link_jacobian",
    "jointjacobians": "link_jacobian",
    "jointtorqueregressor": "regressor",
    "load": "load_urdf",
    "massmatrix": "crba",
    "minverse": "inverse_mass_matrix",
    "mobility": "operational_space_inertia",
    "model": "Robot",
    "neutral": "Robot.neutral",
    "nle": "bias_forces",
    "nonlineareffects": "bias_forces",
    "operationalspaceinertiamatrix": "operational_space_inertia",
    "parseurdf": "load_urdf",
    "randomconfiguration": "Robot.random_configuration",
    "symbolic": "functions",
}
"""A name in small letters, without underscores and without "compute", "calc" or "get" before it: ours."""

VERBS = ("compute", "calc", "get")


def advice(name: str, known: Collection[str]) -> str:
    """What may have been meant by a name that does not exist: "; did you mean 'crba'?", or nothing.

    Args:
        name: that was asked for.
        known: the names that exist.
    """
    word = name.lower().replace("_", "")
    for verb in VERBS:
        word = word.removeprefix(verb)
    same = {each.lower().replace("_", ""): each for each in known} | ELSEWHERE
    near = [same[word]] if word in same else nearest_names(name, known, cutoff=0.7)
    return f"; did you mean {' or '.join(map(repr, near))}?" if near else ""


KEYWORDS = {
    "acc": ("a",),
    "acceleration": ("a",),
    "accelerations": ("a",),
    "basetype": ("base",),
    "body": ("link",),
    "collisions": ("self_collision",),
    "control": ("controller", "tau"),
    "d": ("kd",),
    "damping": ("kd", "joint_damping"),
    "ddq": ("a",),
    "delta": ("dt",),
    "deltat": ("dt",),
    "deterministic": ("reproducible",),
    "dofs": ("joints",),
    "dq": ("v", "v0"),
    "endeffector": ("link", "targets"),
    "endtime": ("duration",),
    "externalforces": ("f_ext", "pushes"),
    "fext": ("f_ext", "pushes"),
    "file": ("path", "folder", "out"),
    "filename": ("path", "folder", "out"),
    "fixedbase": ("base",),
    "floatingbase": ("base",),
    "floor": ("ground",),
    "force": ("wrench", "tau"),
    "forces": ("tau", "f_ext", "pushes"),
    "frame": ("link",),
    "framename": ("link",),
    "freeflyer": ("base",),
    "g": ("gravity",),
    "gain": ("kp",),
    "goal": ("targets", "target"),
    "h": ("dt",),
    "initialguess": ("q0",),
    "jointpositions": ("q", "q0"),
    "jobs": ("workers", "threads"),
    "maxiter": ("iterations",),
    "maxiterations": ("iterations",),
    "meshdir": ("package_dirs",),
    "mu": ("friction",),
    "n": ("count", "samples", "steps"),
    "njobs": ("workers", "threads"),
    "number": ("count", "samples", "starts"),
    "numsamples": ("samples", "count"),
    "numsteps": ("steps", "duration"),
    "numthreads": ("threads",),
    "p": ("kp",),
    "packagepath": ("package_dirs",),
    "pose": ("q", "placement"),
    "position": ("q", "q0", "target", "at"),
    "positions": ("q", "q0", "target"),
    "precision": ("dtype",),
    "qacc": ("a",),
    "qd": ("v", "v0"),
    "qdd": ("a",),
    "qddot": ("a",),
    "qdot": ("v", "v0"),
    "qinit": ("q0",),
    "qpos": ("q", "q0"),
    "qvel": ("v", "v0"),
    "referenceframe": ("axes",),
    "root": ("base",),
    "rootjoint": ("base",),
    "samplingtime": ("dt",),
    "saveevery": ("record_every",),
    "simtime": ("duration",),
    "size": ("count", "rng"),
    "solver": ("method", "integrator"),
    "step": ("dt",),
    "stepsize": ("dt",),
    "stiffness": ("kp",),
    "t": ("duration", "time"),
    "tend": ("duration",),
    "tf": ("duration",),
    "tfinal": ("duration",),
    "time": ("duration",),
    "timestep": ("dt",),
    "tol": ("tolerance",),
    "torque": ("tau", "effort"),
    "torques": ("tau",),
    "totaltime": ("duration",),
    "tspan": ("duration",),
    "tmax": ("duration",),
    "u": ("tau",),
    "urdf": ("path", "text", "robot"),
    "urdfpath": ("path",),
    "usefixedbase": ("base",),
    "vel": ("v", "v0", "velocity"),
    "velocities": ("v", "v0", "velocity"),
    "velocity": ("v", "v0"),
    "verbose": ("progress",),
    "x0": ("q0",),
}
"""A keyword of other programs, in small letters without underscores: ours, where a function has them."""


def keyword_advice(name: str, known: Sequence[str]) -> str:
    """What may have been meant by a keyword argument that a function does not have, or what it takes.

    Args:
        name: of the argument that was given.
        known: the arguments that the function has.
    """
    word = name.lower().replace("_", "")
    same = {each.lower().replace("_", ""): each for each in known}
    near = [same[word]] if word in same else [each for each in KEYWORDS.get(word, ()) if each in known]
    near = near or nearest_names(name, known, cutoff=0.6)
    # "gravity_vector" is gravity, "friction_coefficient" friction.
    near = near or [each for each in known if len(each) > 2 and each in name.lower()]
    if near:
        return f"; did you mean {' or '.join(repr(each) for each in near[:2])}?"
    return f"; it takes {', '.join(known)}" if known else "; it takes no arguments"
