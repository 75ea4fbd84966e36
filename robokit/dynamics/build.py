"""Which algorithm becomes which kernel: one row a kernel, built for a robot at its first call.

A row says how the flat arrays of the public functions become the per-joint lists that the algorithms
take, and back. The engine sees only the resulting text; it knows no robots.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from robokit.algorithms.aba import aba
from robokit.algorithms.bias import bias_forces, gravity_forces
from robokit.algorithms.center_of_mass import center_of_mass
from robokit.algorithms.centroidal import (
    centroidal_momentum,
    centroidal_momentum_bias,
    centroidal_momentum_matrix,
)
from robokit.algorithms.coupling import (
    coupled_forward_dynamics,
    reduced_columns,
    reduced_force,
    reduced_matrix,
)
from robokit.algorithms.crba import crba
from robokit.algorithms.energy import kinetic_energy, potential_energy
from robokit.algorithms.forward_dynamics import forward_dynamics
from robokit.algorithms.kinematics import forward_kinematics
from robokit.algorithms.ltdl import ltdl, ltdl_solve
from robokit.algorithms.rnea import rnea
from robokit.dynamics.singular import check_inertia, check_mass
from robokit.engine import Bound, Kernel
from robokit.model.inertial_parameters import COUNT, inertias
from robokit.model.robot import Robot
from robokit.spatial import Force, Transform, Vector3
from robokit.spatial.vector3 import Matrix3

Lists = Sequence[Any]


@dataclass(frozen=True)
class Row:
    """A kernel as data.

    Attributes:
        inputs: names of the arguments; their sizes are in :data:`SIZES`.
        outputs: robot -> (name, shape) of each output.
        text: robot, flat arguments -> flat outputs.
        quaternions: whether the first input is a configuration with quaternions to check.
        finite: whether the outputs are checked too.
        inertial: whether the inertias matter.
        massive: whether there is no answer where nothing that moves has mass.
    """

    inputs: tuple[str, ...]
    outputs: Callable[[Robot], list[tuple[str, tuple[int, ...]]]]
    text: Callable[..., list[Lists]]
    quaternions: bool = True
    finite: bool = False
    inertial: bool = True
    massive: bool = False


SIZES: dict[str, Callable[[Robot], int]] = {
    "q": lambda r: r.nq,
    "v": lambda r: r.nv,
    "a": lambda r: r.nv,
    "tau": lambda r: r.nv,
    "f_ext": lambda r: 6 * (r.nbodies + 1),
    "H": lambda r: r.nv * r.nv,
    "L": lambda r: r.nv * r.nv,
    "D": lambda r: r.nv,
    "b": lambda r: r.nv,
}


def lower_entries(robot: Robot) -> list[tuple[int, int]]:
    """(row, column) of the lower triangle's entries of H that the tree leaves nonzero, row by row."""
    pattern = robot.inertia_pattern
    return [(i, j) for i in range(robot.nv) for j in range(i + 1) if pattern[i, j]]


def _flat(rows: Any) -> list[Any]:
    return list(chain.from_iterable(rows))


def _square(robot: Robot, flat: Lists) -> list[Lists]:
    n = robot.nv
    return [flat[i * n : (i + 1) * n] for i in range(n)]


def _forces(robot: Robot, flat: Lists) -> list[Force]:
    return [Force(Vector3(*flat[k : k + 3]), Vector3(*flat[k + 3 : k + 6])) for k in range(0, len(flat), 6)]


def _of_v(algorithm: Callable[..., Any], with_forces: bool = False) -> Callable[..., list[Lists]]:
    """Text of an algorithm whose first argument is q and whose others are by joint, like v."""

    def text(robot: Robot, q: Lists, *others: Lists) -> list[Lists]:
        tree = robot.tree
        by_joint: list[Any] = [robot.split_q(q)]
        if with_forces:
            *others, forces = others  # type: ignore[assignment]
        if robot.coupling is not None and algorithm in (aba, forward_dynamics):
            qd, tau = others
            f_ext = _forces(robot, forces) if with_forces else None
            a = coupled_forward_dynamics(tree, by_joint[0], robot.split_v(qd), robot.split_tau(tau), f_ext)
            return [robot.join_v(a)]
        by_joint += [robot.split_v(x) for x in others]
        if with_forces:
            by_joint.append(_forces(robot, forces))
        result = algorithm(tree, *by_joint)
        if robot.coupling is not None:
            if algorithm is crba:
                result = reduced_matrix(tree, result)
            elif algorithm is centroidal_momentum_matrix:
                result = reduced_columns(tree, result)
            else:
                return [reduced_force(tree, _flat(result))]
        return [_flat(result)]

    return text


def _spatial(algorithm: Callable[..., Any], scalar: bool = False) -> Callable[..., list[Lists]]:
    """Text of an algorithm that returns one vector, or one scalar (in a batch itself an array)."""

    def text(robot: Robot, q: Lists, *others: Lists) -> list[Lists]:
        tree = robot.tree
        value = algorithm(tree, robot.split_q(q), *(robot.split_v(x) for x in others))
        return [[value] if scalar else list(value)]

    return text


def _nonzeros(robot: Robot, q: Lists) -> list[Lists]:
    H = crba(robot.tree, robot.split_q(q))
    if robot.coupling is not None:
        H = reduced_matrix(robot.tree, H)
    return [[H[i][j] for i, j in lower_entries(robot)]]


def _factor(robot: Robot, H: Lists) -> list[Lists]:
    L, D = ltdl(robot.dof_parent, _square(robot, H))
    return [_flat(L), D]


def _solve(robot: Robot, L: Lists, D: Lists, b: Lists) -> list[Lists]:
    return [ltdl_solve(robot.dof_parent, _square(robot, L), D, b)]


def _link_poses(robot: Robot, q: Lists) -> list[Lists]:
    X0 = forward_kinematics(robot.tree, robot.split_q(q))
    poses: list[Any] = []
    for link in robot.links:
        R = Matrix3(link.placement.rotation.tolist())
        p = Vector3(*link.placement.position.tolist())
        X = X0[link.body]
        poses += _flat((*row, x) for row, x in zip((X.E.T @ R).rows, X.point(p), strict=True))
    return [poses]


def _wrenches_in_bodies(robot: Robot, q: Lists, f_ext: Lists) -> list[Lists]:
    """World wrenches about the world origin, one a body, in body coordinates."""
    X0: list[Transform] = forward_kinematics(robot.tree, robot.split_q(q))
    return [_flat(X.star(f) for X, f in zip(X0, _forces(robot, f_ext), strict=True))]


def _nv(name: str) -> Callable[[Robot], list[tuple[str, tuple[int, ...]]]]:
    return lambda r: [(name, (r.nv,))]


KERNELS: dict[str, Row] = {
    "forward_kinematics": Row(
        ("q",),
        lambda r: [("poses", (len(r.links), 3, 4))],
        _link_poses,
        inertial=False,
    ),
    "rnea": Row(("q", "v", "a"), _nv("tau"), _of_v(rnea)),
    "rnea_f_ext": Row(("q", "v", "a", "f_ext"), _nv("tau"), _of_v(rnea, True)),
    "bias_forces": Row(("q", "v"), _nv("C"), _of_v(bias_forces)),
    "bias_forces_f_ext": Row(("q", "v", "f_ext"), _nv("C"), _of_v(bias_forces, True)),
    "gravity_forces": Row(("q",), _nv("G"), _of_v(gravity_forces)),
    "crba": Row(("q",), lambda r: [("H", (r.nv, r.nv))], _of_v(crba)),
    "crba_nonzeros": Row(("q",), lambda r: [("H", (len(lower_entries(r)),))], _nonzeros),
    "ltdl": Row(("H",), lambda r: [("L", (r.nv, r.nv)), ("D", (r.nv,))], _factor, False, inertial=False),
    "ltdl_solve": Row(("L", "D", "b"), _nv("x"), _solve, False, inertial=False),
    "aba": Row(("q", "v", "tau"), _nv("a"), _of_v(aba), finite=True),
    "aba_f_ext": Row(("q", "v", "tau", "f_ext"), _nv("a"), _of_v(aba, True), finite=True),
    "forward_dynamics": Row(("q", "v", "tau"), _nv("a"), _of_v(forward_dynamics), finite=True),
    "forward_dynamics_f_ext": Row(
        ("q", "v", "tau", "f_ext"), _nv("a"), _of_v(forward_dynamics, True), finite=True
    ),
    "center_of_mass": Row(("q",), lambda r: [("p_G", (3,))], _spatial(center_of_mass), massive=True),
    "kinetic_energy": Row(("q", "v"), lambda r: [("T", ())], _spatial(kinetic_energy, True)),
    "potential_energy": Row(("q",), lambda r: [("V", ())], _spatial(potential_energy, True)),
    "centroidal_momentum_matrix": Row(
        ("q",), lambda r: [("A_G", (6, r.nv))], _of_v(centroidal_momentum_matrix), massive=True
    ),
    "centroidal_momentum": Row(
        ("q", "v"), lambda r: [("h_G", (6,))], _spatial(centroidal_momentum), massive=True
    ),
    "centroidal_momentum_bias": Row(
        ("q", "v"), lambda r: [("rate", (6,))], _spatial(centroidal_momentum_bias), massive=True
    ),
    "wrenches_in_bodies": Row(
        ("q", "f_ext"), lambda r: [("f", (r.nbodies + 1, 6))], _wrenches_in_bodies, inertial=False
    ),
}


def quaternion_offsets(robot: Robot) -> list[int]:
    """Where q holds unit quaternions."""
    return [
        joint.q_slice.start + offset
        for joint in robot.joints
        if (offset := robot.tree.joint[joint.body].kind.quaternion) is not None
    ]


def kernel(robot: Robot, name: str, dtype: str = "float64") -> Kernel | Bound:
    """The robot's kernel of that row, built at the first call."""
    place = name if dtype == "float64" else f"{name} {dtype}"
    found = robot.kernels.get(place)
    if found is None:
        row = KERNELS[name]
        if row.finite:
            check_inertia(robot)
        if row.massive:
            check_mass(robot)
        if robot.parameters is None:
            found = _build(name, row, robot, lambda *flat: row.text(robot, *flat), robot.fingerprint, dtype)
        else:
            found = _shared(name, row, robot, dtype)
            if row.inertial:
                given = robot.parameters.view(np.float64)  # not the dtype object of a pickled array
                found = found.bind(given.reshape(*given.shape[:-2], -1))
        found = robot.kernels.setdefault(place, found)  # another thread may have come first
    return found


def _shared(name: str, row: Row, robot: Robot, dtype: str) -> Kernel:
    """The kernel that serves all robots of this tree, whatever their inertias."""
    place = (name, robot.tree.gravity, dtype)
    found = robot.shared_kernels.get(place)
    if found is None:
        bare = without_inertias(robot)
        key = robot.fingerprint_without_inertias + b"inertial parameters"
        if row.inertial:

            def text(*flat: Lists) -> list[Lists]:
                *others, parameters = flat
                return row.text(replace(bare, tree=replace(bare.tree, I=inertias(parameters))), *others)

            found = _build(
                name, row, bare, text, key, dtype, [("inertial_parameters", COUNT * (bare.nbodies + 1))]
            )
        else:
            found = _build(name, row, bare, lambda *flat: row.text(bare, *flat), key, dtype)
        found = robot.shared_kernels.setdefault(place, found)
    return found


def without_inertias(robot: Robot) -> Robot:
    """What the text of a shared kernel keeps of a robot: not the samples, which it would keep alive."""
    links = [replace(link, mass=0.0, com=np.zeros(3), inertia=np.zeros((3, 3))) for link in robot.links]
    return replace(robot, tree=replace(robot.tree, I=()), links=tuple(links), parameters=None)


def _build(
    name: str,
    row: Row,
    robot: Robot,
    text: Callable[..., list[Lists]],
    key: bytes,
    dtype: str,
    more: Sequence[tuple[str, int]] = (),
) -> Kernel:
    return Kernel.build(
        name,
        inputs=[*((n, SIZES[n](robot)) for n in row.inputs), *more],
        outputs=row.outputs(robot),
        text=text,
        key=key,
        quaternions=[(0, k) for k in quaternion_offsets(robot)] if row.quaternions else [],
        finite=row.finite,
        dtype=dtype,
    )
