"""What other libraries and textbooks call what robokit has: for the message where a name does not exist."""

from __future__ import annotations

from collections.abc import Collection

from robokit.errors import nearest_names

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
