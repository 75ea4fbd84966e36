"""Keyword arguments that do not exist: the TypeError says which one was meant.

Python refuses them before a function begins, so the functions have nothing to do with this. Each public
function, and each public method and constructor with optional arguments, is called through :func:`guarded`,
which looks at the error if there is one. The functions of single states (``rk.rnea`` and the like) take about
a microsecond, of which that call would be a tenth: they are left as they are.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
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
        if name == "__init__" and hasattr(method, "around"):  # is made later: dataclass_tools.frozen
            method.around = (guarded,)
        inner = getattr(method, "__func__", method)  # of a classmethod or staticmethod
        if not isinstance(inner, FunctionType) or (name.startswith("_") and name != "__init__"):
            continue
        optional = inner.__defaults__ or inner.__kwdefaults__ or name == "__init__"
        if optional and MARK not in inner.__dict__:
            found = guarded(inner)
            setattr(owner, name, found if inner is method else type(method)(found))


# ---- What other libraries and textbooks call what robokit has: for the message where a name does not exist

_ELSEWHERE = {
    "Robot": "model",
    "Robot.difference": "difference",
    "Robot.integrate": "integrate",
    "Robot.joints": "effortlimit effortlimits jntrange jointlimits limits lower lowerlimits "
    "lowerpositionlimit njnt njoints numjoints positionlimits qlim qmax qmin upper upperlimits "
    "upperpositionlimit velocitylimit velocitylimits",
    "Robot.links": "bodies bodyid frameid frames",
    "Robot.nbodies": "nbody numbodies",
    "Robot.neutral": "home neutral qzero zero",
    "Robot.nq": "numpositions",
    "Robot.nv": "dof dofs ndof ndofs nu numdof numdofs numvelocities",
    "Robot.random_configuration": "randomconfiguration",
    "Robot.total_mass": "mass totalmass",
    "aba": "fd",
    "bias_forces": "nle nonlineareffects",
    "center_of_mass": "com",
    "center_of_mass_jacobian": "comjacobian jacobiancenterofmass",
    "centroidal_momentum": "centroidaldynamics",
    "centroidal_momentum_bias": "dccrba",
    "centroidal_momentum_matrix": "ccrba",
    "constrained_dynamics": "constraintdynamics",
    "coriolis_matrix": "coriolis",
    "crba": "crb inertiamatrix massmatrix",
    "forward_kinematics": "fk fkine framesforwardkinematics frameskinematics",
    "functions": "symbolic tocasadi tojax totorch",
    "gravity_forces": "generalizedgravity gravity gravitycompensation",
    "impact": "impulsedynamics",
    "inverse_kinematics": "ik ikine",
    "inverse_mass_matrix": "inverseinertiamatrix minverse",
    "link_jacobian": "bodyjacobian framejacobian jacob0 jacobian jointjacobian jointjacobians",
    "load": "loadmjcf loadmodel loadrobot loadsdf loadusd",
    "load_urdf": "buildmodelfromurdf load parseurdf",
    "loads_urdf": "buildmodelfromxml",
    "operational_space_inertia": "mobility operationalspaceinertiamatrix",
    "regressor": "jointtorqueregressor",
    "rnea": "id inversedynamics rne",
    "step_derivatives": "linearise linearize lqr mjdtransitionfd",
    "viewer": "animate display plot show view visualize",
}
"""Ours: names in small letters, without underscores and without "compute", "calc" or "get" before them."""

ELSEWHERE = {theirs: ours for ours, names in _ELSEWHERE.items() for theirs in names.split()}

OF_A_ROBOT = {
    theirs: ours.removeprefix("Robot.") if ours.startswith("Robot.") else f"robokit.{ours}"
    for theirs, ours in {**{ours.replace("_", ""): ours for ours in _ELSEWHERE}, **ELSEWHERE}.items()
}
"""The same for attributes of a robot, where functions of robokit are looked for, too: robot.mass_matrix."""

_OF_A_RUN = {
    "q": "configurations jointpositions position positions qpos qs states",
    "t": "time times ts",
    "tau": "torque torques",
    "to_dataframe": "dataframe pandas",
    "to_html": "animate display page play plot show view visualize",
    "v": "dq qd qvel velocities velocity",
}
"""Attributes of trajectories and rollouts: names in small letters and without underscores."""

OF_A_RUN = {theirs: ours for ours, names in _OF_A_RUN.items() for theirs in names.split()}

VERBS = ("compute", "calc", "get")


def advice(name: str, known: Collection[str], elsewhere: Mapping[str, str] = ELSEWHERE) -> str:
    """What may have been meant by a name that does not exist: "; did you mean 'crba'?", or nothing.

    Args:
        name: that was asked for.
        known: the names that exist.
        elsewhere: names of other libraries -> ours.
    """
    word = name.lower().replace("_", "")
    for verb in VERBS:
        word = word.removeprefix(verb)
    same = {each.lower().replace("_", ""): each for each in known} | dict(elsewhere)
    near = [same[word]] if word in same else nearest_names(name, known, cutoff=0.7)
    return f"; did you mean {' or '.join(map(repr, near))}?" if near else ""


def no_attribute(owner: Any, name: str, elsewhere: Mapping[str, str]) -> AttributeError:
    """The error for an attribute that an object does not have, with what may have been meant.

    Where it is a property that raised an AttributeError of its own, that one is raised.

    Args:
        owner: the object.
        name: that was asked for.
        elsewhere: names of other libraries -> what the object has.
    """
    kind = type(owner).__name__
    if hasattr(type(owner), name):
        object.__getattribute__(owner, name)
    meant = ""
    if not name.startswith("_"):
        known = [each for each in {*dir(type(owner)), *vars(owner)} if not each.startswith("_")]
        there = {theirs: ours for theirs, ours in elsewhere.items() if "." in ours or ours in known}
        meant = advice(name, known, there)
    return AttributeError(f"{kind!r} object has no attribute {name!r}{meant}")


_KEYWORDS = {
    "a": "acc acceleration accelerations ddq qacc qdd qddot",
    "axes": "referenceframe",
    "base": "basetype fixedbase floatingbase freeflyer root rootjoint usefixedbase",
    "controller tau": "control",
    "tau actuators": "controller policy",
    "count rng": "size",
    "count samples starts": "number",
    "count samples steps": "n",
    "dt": "delta deltat h samplingtime step stepsize timestep",
    "dtype": "precision",
    "duration": "endtime simtime tend tf tfinal time tmax totaltime tspan",
    "duration time": "t",
    "f_ext pushes": "externalforces fext",
    "friction": "mu",
    "gravity": "g",
    "ground": "floor",
    "iterations": "maxiter maxiterations",
    "joints": "dofs",
    "kd": "d",
    "kd joint_damping": "damping",
    "kp": "gain p stiffness",
    "link": "body frame framename",
    "link targets": "endeffector",
    "method integrator": "solver",
    "package_dirs": "meshdir packagepath",
    "path": "urdfpath",
    "path folder out": "file filename",
    "path text robot": "urdf",
    "progress": "verbose",
    "q placement": "pose",
    "q q0": "jointpositions qpos",
    "q q0 target": "positions",
    "q q0 target at": "position",
    "q0": "initialguess qinit x0",
    "record_every": "saveevery",
    "reproducible": "deterministic",
    "samples count": "numsamples",
    "self_collision": "collisions",
    "steps duration": "numsteps",
    "targets target": "goal",
    "tau controller actuators": "tau torques u",
    "tau controller effort": "torque",
    "tau f_ext pushes": "forces",
    "threads": "numthreads",
    "tolerance": "tol",
    "v v0": "dq qd qdot qvel velocity",
    "v v0 velocity": "vel velocities",
    "workers threads": "jobs njobs",
    "wrench tau": "force",
}
"""Ours, the first that a function has: keywords of other programs, in small letters without underscores."""

KEYWORDS = {theirs: tuple(ours.split()) for ours, names in _KEYWORDS.items() for theirs in names.split()}


def keyword_advice(name: str, known: Sequence[str]) -> str:
    """What may have been meant by a keyword argument that a function does not have, or what it takes."""
    word = name.lower().replace("_", "")
    same = {each.lower().replace("_", ""): each for each in known}
    near = [same[word]] if word in same else [each for each in KEYWORDS.get(word, ()) if each in known]
    near = near or nearest_names(name, known, cutoff=0.6)
    # "gravity_vector" is gravity, "friction_coefficient" friction.
    near = near or [each for each in known if len(each) > 2 and each in name.lower()]
    if near:
        return f"; did you mean {' or '.join(repr(each) for each in near[:2])}?"
    return f"; it takes {', '.join(known)}" if known else "; it takes no arguments"
