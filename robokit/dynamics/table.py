"""The algorithms that robokit runs: one row each, from which everything else about them is derived.

A row gives an algorithm its kernels (layout.py says how arrays become what its function takes, and back;
build.py makes them), its behaviour on coupled joints and on samples of inertias, its place in
``robokit cost``, and the tests that every public function must pass. The public function itself stands in
the chapter that it belongs to: link_kinematics.py, equations_of_motion.py, constrained.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import Any

from robokit.algorithms.aba import aba
from robokit.algorithms.aba_derivatives import aba_derivatives, aba_derivatives_world
from robokit.algorithms.bias import bias_forces, gravity_forces
from robokit.algorithms.center_of_mass import center_of_mass
from robokit.algorithms.center_of_mass_motion import (
    center_of_mass_acceleration,
    center_of_mass_jacobian,
    center_of_mass_velocity,
)
from robokit.algorithms.centroidal import (
    centroidal_momentum,
    centroidal_momentum_bias,
    centroidal_momentum_matrix,
)
from robokit.algorithms.centroidal_derivatives import centroidal_momentum_derivatives
from robokit.algorithms.constrained_dynamics import constrained_dynamics, impact
from robokit.algorithms.coriolis_matrix import coriolis_matrix
from robokit.algorithms.coupling import coupled_forward_dynamics
from robokit.algorithms.crba import crba
from robokit.algorithms.energy import kinetic_energy, potential_energy
from robokit.algorithms.energy_regressor import energy_regressor
from robokit.algorithms.floating_base import floating_base_forces, floating_base_inverse_dynamics
from robokit.algorithms.forward_dynamics import forward_dynamics
from robokit.algorithms.hybrid_dynamics import coupled_hybrid_dynamics, hybrid_dynamics
from robokit.algorithms.inverse_mass_matrix import inverse_mass_matrix
from robokit.algorithms.joint_reactions import joint_reactions
from robokit.algorithms.kinematics import forward_kinematics
from robokit.algorithms.link_jacobian import link_jacobian
from robokit.algorithms.link_motion import link_acceleration, link_velocity
from robokit.algorithms.ltdl import ltdl, ltdl_solve
from robokit.algorithms.momentum_regressor import momentum_regressor
from robokit.algorithms.operational_space import operational_space_inertia
from robokit.algorithms.regressor import regressor, regressor_armature
from robokit.algorithms.rnea import rnea
from robokit.algorithms.rnea_derivatives import rnea_derivatives, rnea_derivatives_world
from robokit.dataclass_tools import frozen
from robokit.dynamics.choices import CHOICES
from robokit.dynamics.differentiate import Derivation
from robokit.dynamics.layout import (
    BASE_AND_FORCES,
    BODY_FORCES,
    BODY_POSES,
    BODY_REACTIONS,
    COLUMNS,
    ENERGIES,
    ENTRIES,
    FACTORS,
    FELT,
    FORCE,
    HELD_MOTION,
    HYBRID,
    INPUTS,
    INVERSE,
    INVERSES,
    MATRICES,
    MATRIX,
    MOMENTA,
    MOTION,
    NUMBER,
    POINT,
    POINT_COLUMNS,
    POSES,
    REGRESSOR,
    REGRESSOR_ARMATURE,
    REGRESSOR_ENTRIES,
    SETS_OF_COLUMNS,
    SOLUTION,
    SPATIAL,
    Input,
    Kind,
)
from robokit.model.tree import Tree


@frozen(eq=False)
class Algorithm:
    """A row, or (function_objects.py) a user's own function. It is its own key among a robot's kernels."""

    # the algorithm: tree, then the inputs by joint, then the choices -> result. With ``of_dofs`` its first
    # argument is the tree's lambda on degrees of freedom instead.
    function: Callable[..., Any]
    inputs: str  # names of :data:`~robokit.dynamics.layout.INPUTS`, separated by spaces
    result: Kind  # the kind of result, which gives its shapes and what a coupling makes of it
    symbols: str  # of the outputs, separated by spaces
    # with n bodies (n degrees of freedom where H is factorised) and depth d, as the source states it; ""
    # keeps it out of ``robokit cost``
    growth: str = ""
    forces: bool = False  # whether it takes f_ext as its last input, where one is given
    # the function for forces that are held fixed in the world, where that makes a difference
    world: Callable[..., Any] | None = None
    # the function for robots with coupled joints, where the result's kind asks for one
    coupled: Callable[..., Any] | None = None
    # names of :data:`~robokit.dynamics.choices.CHOICES`, separated by spaces: each choice has a kernel of its
    # own
    about: str = ""
    inertial: bool = True  # whether the inertias matter
    # what of them matters, where single bodies do not: "joints", what the joints feel (joint forces,
    # accelerations and H of all together), or "whole", the mass, momentum and energy of the whole too. Such
    # a function is given inertias of fewer numbers and, without f_ext and choices, other origins of the
    # bodies on their joints' axes (``tree_for`` in build.py). "" for all others.
    sums: str = ""
    massive: bool = False  # whether there is no answer where nothing that moves has mass
    own_check: bool = False  # whether the public function itself refuses robots on which there is no answer
    floating: bool = False  # whether it is about robots on a floating base only
    of_dofs: bool = False  # see ``function``
    name: str = ""  # of the public function; ``function``'s by default
    own: Mapping[str, Input] = field(default_factory=dict)  # inputs that are no rows of INPUTS, by name
    users: bool = False  # whether the function is a user's: what it records is part of its kernels' key
    derived: tuple[Derivation, ...] = ()  # what is made of the function: derivatives, one after the other

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", self.function.__name__)
        if self.result.own_function and self.coupled is None:
            raise ValueError(
                f"{self.name}: no projection gives this result for coupled joints; "
                "give the row a function for them"
            )
        unknown = {*self.inputs.split()} - {*INPUTS} - {*self.own} | {*self.about.split()} - {*CHOICES}
        if unknown:
            raise ValueError(f"{self.name}: layout.py has no row for {', '.join(sorted(unknown))}")

    def input(self, name: str) -> Input:
        """The input of that name."""
        return self.own[name] if name in self.own else INPUTS[name]


def wrenches_in_bodies(tree: Tree, q, forces) -> list:
    """Forces on the bodies 0..N, from world axes about the world origin to body coordinates."""
    return [X.star(f) for X, f in zip(forward_kinematics(tree, q), forces, strict=True)]


ALGORITHMS = (
    Algorithm(forward_kinematics, "q", POSES, "poses", "O(n)", inertial=False),
    Algorithm(forward_kinematics, "q", BODY_POSES, "poses", inertial=False, name="body_poses"),
    Algorithm(link_jacobian, "q at", COLUMNS, "J", "O(d)", about="link axes", inertial=False),
    Algorithm(link_velocity, "q v at", SPATIAL, "v", "O(d)", about="link axes", inertial=False),
    Algorithm(
        link_acceleration, "q v a at", SPATIAL, "a", "O(d)", about="link axes classical", inertial=False
    ),
    Algorithm(rnea, "q v a", FORCE, "tau", "O(n)", forces=True, sums="joints"),
    Algorithm(joint_reactions, "q v a", BODY_REACTIONS, "f v a", forces=True, name="body_reactions"),
    Algorithm(bias_forces, "q v", FORCE, "C", "O(n)", forces=True, sums="joints"),
    Algorithm(gravity_forces, "q", FORCE, "G", "O(n)", sums="joints"),
    Algorithm(crba, "q", MATRIX, "H", "O(n d)", sums="joints"),
    Algorithm(crba, "q", ENTRIES, "H", sums="joints", name="crba_nonzeros"),
    Algorithm(ltdl, "H", FACTORS, "L D", "O(n d^2)", of_dofs=True, inertial=False),
    Algorithm(ltdl_solve, "L D b", SOLUTION, "x", "O(n d)", of_dofs=True, inertial=False),
    Algorithm(
        aba, "q v tau", MOTION, "a", "O(n)", forces=True, coupled=coupled_forward_dynamics, sums="joints"
    ),
    Algorithm(
        forward_dynamics,
        "q v tau",
        MOTION,
        "a",
        "O(n d^2)",
        forces=True,
        coupled=coupled_forward_dynamics,
        sums="joints",
    ),
    Algorithm(
        inverse_mass_matrix, "q", INVERSE, "inverse", "O(n^2 d)", coupled=inverse_mass_matrix, sums="joints"
    ),
    Algorithm(coriolis_matrix, "q v", MATRIX, "C", "O(n d)", sums="joints"),
    Algorithm(
        rnea_derivatives,
        "q v a",
        MATRICES,
        "dq dv",
        "O(n d)",
        forces=True,
        world=rnea_derivatives_world,
        sums="joints",
    ),
    Algorithm(
        aba_derivatives,
        "q v tau",
        INVERSES,
        "dq dv dtau",
        "O(n^2 d)",
        forces=True,
        world=aba_derivatives_world,
        coupled=aba_derivatives,
        sums="joints",
    ),
    Algorithm(
        centroidal_momentum_derivatives,
        "q v a",
        SETS_OF_COLUMNS,
        "dh_dq drate_dq drate_dv drate_da",
        "O(n)",
        massive=True,
        sums="whole",
    ),
    Algorithm(
        hybrid_dynamics,
        "q v tau a",
        HYBRID,
        "tau a",
        "O(n)",
        forces=True,
        about="prescribed",
        own_check=True,
        coupled=coupled_hybrid_dynamics,
        sums="joints",
    ),
    Algorithm(
        floating_base_inverse_dynamics,
        "q v a_joints",
        BASE_AND_FORCES,
        "a_base tau",
        "O(n)",
        floating=True,
        sums="joints",
    ),
    Algorithm(floating_base_forces, "q v a", SPATIAL, "f", "O(n)", floating=True, sums="joints"),
    Algorithm(
        operational_space_inertia,
        "q damping",
        FELT,
        "Lambda mobility Jbar",
        "O(n d^2)",
        about="frames",
        sums="joints",
    ),
    Algorithm(
        constrained_dynamics,
        "q v tau stabilisation proximal",
        HELD_MOTION,
        "a lambda",
        "O(n)",
        forces=True,
        about="constraints",
        sums="joints",
    ),
    Algorithm(
        impact,
        "q v restitution proximal",
        HELD_MOTION,
        "v impulses",
        "O(n)",
        about="constraints",
        sums="joints",
    ),
    Algorithm(center_of_mass, "q", POINT, "p_G", "O(n)", massive=True, sums="whole"),
    Algorithm(center_of_mass_jacobian, "q", POINT_COLUMNS, "J_G", "O(n)", massive=True, sums="whole"),
    Algorithm(center_of_mass_velocity, "q v", POINT, "v_G", "O(n)", massive=True, sums="whole"),
    Algorithm(center_of_mass_acceleration, "q v a", POINT, "a_G", "O(n)", massive=True, sums="whole"),
    Algorithm(kinetic_energy, "q v", NUMBER, "T", "O(n)", sums="joints"),
    Algorithm(potential_energy, "q", NUMBER, "V", "O(n)", sums="whole"),
    Algorithm(centroidal_momentum_matrix, "q", COLUMNS, "A_G", "O(n)", massive=True, sums="whole"),
    Algorithm(centroidal_momentum, "q v", SPATIAL, "h_G", "O(n)", massive=True, sums="whole"),
    Algorithm(centroidal_momentum_bias, "q v", SPATIAL, "rate", "O(n)", massive=True, sums="whole"),
    Algorithm(regressor, "q v a", REGRESSOR, "Y", "O(n d)", inertial=False),
    Algorithm(regressor, "q v a", REGRESSOR_ENTRIES, "Y", inertial=False, name="regressor_nonzeros"),
    Algorithm(regressor_armature, "q v a", REGRESSOR_ARMATURE, "Y", inertial=False),
    Algorithm(energy_regressor, "q v", ENERGIES, "E", "O(n)", inertial=False),
    Algorithm(momentum_regressor, "q v", MOMENTA, "M", "O(n)", inertial=False),
    Algorithm(wrenches_in_bodies, "q f_ext", BODY_FORCES, "f", inertial=False),
)

WITH_FORCES = "_f_ext"  # ending of the name of the kernel that takes external forces too
WITH_WORLD_FORCES = "_world_forces"  # ending of kernels for external forces fixed in the world


def _kernels() -> dict[str, Algorithm]:
    rows: dict[str, Algorithm] = {}
    for row in ALGORITHMS:
        rows[row.name] = row
        if row.forces:
            name = row.name + WITH_FORCES
            rows[name] = replace(row, name=name, inputs=f"{row.inputs} f_ext", growth="")
        if row.world is not None:
            name = row.name + WITH_WORLD_FORCES
            coupled = row.world if row.coupled else None
            rows[name] = replace(rows[row.name + WITH_FORCES], name=name, function=row.world, coupled=coupled)
    return rows


KERNELS: dict[str, Algorithm] = _kernels()
"""Every kernel by its name: the algorithms, and those that take forces once more with them."""
