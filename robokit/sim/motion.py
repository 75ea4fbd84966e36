"""Momenta, velocity products, effective masses and energy accounting of a step of passive motion.

Sections: the implicit solve, configurations moved along velocities, the projection onto the known momentum,
effective masses, the sums of the energy accounting, and energies and momenta of single states.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from robokit.algorithms.aba import combine
from robokit.algorithms.centroidal import about
from robokit.algorithms.composites import composite_inertias
from robokit.algorithms.coupling import coupled_solve
from robokit.algorithms.crba import composite, crba
from robokit.algorithms.loop_dynamics import closed_loops
from robokit.algorithms.sparse_factors import ArticulatedFactor
from robokit.contact.accounts import ENTRIES
from robokit.contact.fields import MOTION, ROBOT, STATE
from robokit.contact.kinematics import (
    kinetic_energy,
    place_bodies,
    potential_energy,
    spatial_momentum,
    velocities,
    whole_mass,
)
from robokit.contact.materials import mobilities
from robokit.contact.robot_data import robot_data, sizes_of_matrices
from robokit.contact.vectors import vector
from robokit.dataclass_tools import Spare, frozen
from robokit.dynamics.singular import singular
from robokit.engine.loops.fields import kernel_of, real, sizes_told
from robokit.engine.loops.kernel import LoopKernel
from robokit.engine.maker import engine
from robokit.model.constraints import loop_models
from robokit.model.robot import Robot
from robokit.model.tree import Tree
from robokit.sim.kernel_rows import KernelRows
from robokit.spatial import Force, Motion, Transform, Vector3
from robokit.spatial.control_flow import for_range
from robokit.spatial.linear import ldl_solve
from robokit.spatial.rotation import quat_exp, quat_wxyz_to_rotation
from robokit.spatial.scalars import Scalar, maximum, sqrt, where

# ==== the solve of a time step ====================================================================
# The solve of a time step: velocities y of a tree with linearised forces.
#
#     (H + dt b) y = J^T T + dt tau
#
# b is what linearised joint forces add to the diagonal. One articulated-body sweep solves the system.
#
# Source: articulated-body algorithm, RBDA table 7.1 and seeds 002.
# Differs: no velocity products (they are in T); I^a S = 0 does not hold where a joint has a slope b.
# Cost: O(n).

ByJoint = Sequence[Sequence[Scalar]]


def body_velocities(tree: Tree, X: Sequence[Transform | None], qd: ByJoint) -> list[Motion]:
    """Spatial velocity of each body in its own coordinates."""
    V = [Motion.zero()]
    for i in tree.outward():
        V.append(X[i] @ V[tree.parent[i]] + tree.joint[i].S * qd[i])  # type: ignore[union-attr, operator]
    return V


class ImplicitSweep:
    """The matrix H + dt b, factorised: inward through the tree once, then a solve a right side."""

    def __init__(self, tree: Tree, X: Sequence[Transform | None], b: ByJoint, dt: Scalar) -> None:
        self.tree, self.X, self.dt = tree, X, dt
        self.H: list[list[Scalar]] | None = None
        self.factor = ArticulatedFactor.of(tree, X, b, dt) if tree.coupling is None else None
        if self.factor is not None:
            return
        self.H = H = composite(tree, X, [None, *(tree.I[i].articulated() for i in tree.outward())])
        for i in tree.outward():
            at = tree.v_slice[i].start
            for k, bk in enumerate(b[i]):
                H[at + k][at + k] = H[at + k][at + k] + dt * bk

    def solve(self, T: Sequence[Force], tau: ByJoint) -> tuple[list[list[Scalar]], list[Motion]]:
        """y by joint and by body, of momenta T of bodies 0..N (body coordinates) and joint forces tau."""
        tree, X, f = self.tree, self.X, list(T)
        if self.factor is None:
            right = [self.dt * t for row in tau for t in row]
            for i in tree.inward():
                p, at = tree.parent[i], tree.v_slice[i].start
                for k, force in enumerate(tree.joint[i].S.T @ f[i]):  # type: ignore[union-attr]
                    right[at + k] = right[at + k] + force
                if p != 0:
                    f[p] = f[p] + X[i].T @ f[i]  # type: ignore[union-attr]
            y = [list(row) for row in coupled_solve(tree, self.H or [], right)]
            return y, body_velocities(tree, X, y)
        U, D = self.factor.U, self.factor.D
        pA: list[Any] = [-f for f in T]
        u: list[Any] = [None] * (tree.n + 1)
        for i in tree.inward():
            p, S = tree.parent[i], tree.joint[i].S  # type: ignore[union-attr]
            u[i] = [self.dt * t - s for t, s in zip(tau[i], S.T @ pA[i], strict=True)]
            if p != 0:
                pA[p] = pA[p] + X[i].T @ (pA[i] + combine(U[i], ldl_solve(D[i], u[i])))  # type: ignore[union-attr]
        y, V = [[]], [Motion.zero()]
        for i in tree.outward():
            above = X[i] @ V[tree.parent[i]]  # type: ignore[operator]
            right = [ui - above.dot(column) for ui, column in zip(u[i], U[i], strict=True)]
            y.append(ldl_solve(D[i], right))
            V.append(above + tree.joint[i].S * y[i])  # type: ignore[union-attr]
        return y, V


# ==== configurations moved along velocities =======================================================
# A configuration moved along velocities, and what turns with it.
#
# A floating base turns during a step. A method that drifts along a velocity keeps the base's linear velocity
# in axes that do not turn: :func:`advance` gives the velocity as seen from the base's new axes.
# :func:`momenta_after` has the velocity products of an implicit solve.

Rows = list[Any]  # scalars by joint: one list for each body 0..N


def free_base(tree: Tree, i: int) -> bool:
    """Whether joint i is a free joint between world and body."""
    joint = tree.joint[i]
    return tree.parent[i] == 0 and joint is not None and joint.kind.name == "floating"


def advance(tree: Tree, q: Rows, v: Rows, dt: Scalar) -> tuple[Rows, Rows]:
    """q moved along v for dt, and v seen from the base's new axes."""
    q1: Rows = [[]]
    v1: Rows = [[]]
    for i in tree.outward():
        joint = tree.joint[i]
        assert joint is not None
        step = [s * dt for s in v[i]]
        if free_base(tree, i):
            shift = quat_wxyz_to_rotation(q[i][:4]) @ Vector3(*step[3:])
            turned = joint.integrate(q[i], [*step[:3], 0.0, 0.0, 0.0])
            q1.append([*turned[:4], *(x + y for x, y in zip(q[i][4:], shift, strict=True))])
            E = quat_wxyz_to_rotation(quat_exp(Vector3(*step[:3])))
            v1.append([*v[i][:3], *E.transpose_apply(Vector3(*v[i][3:]))])
        else:
            q1.append(joint.integrate(q[i], step))
            v1.append(list(v[i]))
    return q1, v1


def momenta_after(
    tree: Tree,
    X: Sequence[Transform | None],
    P: Sequence[Force],
    w: Rows,
    dt: Scalar,
) -> list[Force]:
    """Momenta of the bodies after dt [s] without joint forces, had their joints no acceleration.

        T_i = P_i - dt (I_i a_i + W_i x* I_i W_i),    a_i = X a_lambda + W_i x S w_i

    The velocity products are taken at w, by joint, where the bodies have the velocities W. They do no work
    where w is the mean of the velocities before and after. X is ^iX_lambda(i), P the momenta now, in body
    coordinates. Source: the bias force of the RNEA, RBDA table 5.1.
    """
    a: list[Motion] = [Motion(Vector3.zero(), tree.a0)]
    W = [Motion.zero()]
    T = [Force.zero()]
    for i in tree.outward():
        vJ = tree.joint[i].S * w[i]  # type: ignore[union-attr]
        W.append(X[i] @ W[tree.parent[i]] + vJ)  # type: ignore[operator]
        a_i = X[i] @ a[tree.parent[i]]  # type: ignore[operator]
        if free_base(tree, i):
            a_i = Motion(a_i.ang, a_i.lin - W[i].ang.cross(W[i].lin))
        else:
            a_i = a_i + W[i].cross(vJ)
        a.append(a_i)
        I = tree.I[i]
        T.append(P[i] - (I @ a_i + W[i].cross_force(I @ W[i])) * dt)
    return T


# ==== projection onto the known momentum ==========================================================
# Momentum of a floating robot, kept to rounding.
#
# Only gravity and the ground change the centroidal momentum of a floating robot. A time step misses that
# momentum by its truncation error. The base's velocity is then corrected by the rigid motion of the whole
# robot that adds what is missing:
#
#     omega = I_G^-1 (k wanted - k)        v_G = (l wanted - l) / M
#
# Source: centroidal momentum, dynamics notes eq. 20-22; projection methods, Hairer, Lubich and Wanner,
# "Geometric numerical integration", section IV.4.
# The ledger keeps the sum of what was missing (``corrected_...``), so that the correction is not hidden.
# Cost: O(n), about a tenth of a step.


def floats(tree: Tree) -> bool:
    """Whether the robot hangs on nothing: one free joint carries it all, and no loop ties it to the world."""
    return len(tree.children[0]) == 1 and hangs_on_nothing(tree)


def hangs_on_nothing(tree: Tree) -> bool:
    """Whether free joints carry it all, one robot or several, and no loop ties any of them to the world."""
    return bases_are_free(tree) and not any(0 in ends for ends in tree.loops)


def may_keep_energy(tree: Tree) -> bool:
    """Whether the energy can be corrected: not that of several robots of which one floats.

    To scale the velocities of them all would change the momentum of those that nothing holds.
    """
    alone = len(tree.children[0]) == 1
    return alone or not any(free_base(tree, i) for i in tree.children[0])


def bases_are_free(tree: Tree) -> bool:
    """Whether free joints carry it all, whatever loops hold it besides."""
    return bool(tree.children[0]) and all(free_base(tree, i) for i in tree.children[0])


def at_base(tree: Tree, X: Sequence[Any]) -> list[Any]:
    """The transforms of a robot that floats, seen from world axes at its base.

    Momenta about the centre of mass do not depend on where the robot is, but sums about a far origin round
    as the square of its distance.
    """
    return [X[0], Transform(X[1].E, Vector3.zero()), *X[2:]]


def centroidal_state(tree: Tree, X: Sequence[Any], V: Sequence[Motion]) -> tuple[Force, Any, Vector3]:
    """(h_G in world axes, the robot as one rigid inertia at the origin of X, p_G from there)."""
    f = [Force.zero(), *(tree.I[i] @ V[i] for i in tree.outward())]
    whole: Any = None
    for i, Ic in composite_inertias(tree, X, tree.I):
        p = tree.parent[i]
        f[p] = f[p] + X[i].T @ f[i]
        if p == 0:
            moved = X[i].T @ Ic @ X[i]
            whole = moved if whole is None else whole + moved
    p_G = whole.h * (1.0 / whole.m)
    return about(f[0], p_G), whole, p_G


def momentum_at_base(tree: Tree, q: list[Any], v: list[Any]) -> Force:
    """h_G of a robot that floats, as steps measure it: the same wherever the robot is."""
    X = tree.transforms(q)
    return centroidal_state(tree, at_base(tree, X), body_velocities(tree, X, v))[0]


# ==== effective masses of joints ==================================================================

LEAST = 1e-12  # mobility [1/kg | 1/(kg m^2)] that stands for none


def effective_inertias(robot: Robot, dofs: Sequence[tuple[int, int]]) -> list[Any]:
    """1 / (H^-1)_jj of the given (joint, dof of the joint) [kg m^2 | kg]; floats, or (B,) for samples.

    It is how heavy a joint is to a push in the neutral configuration, with all that hangs on it. Of a robot
    with links that only loops move it is that with the loops as heavy as the robot.
    """
    found = mobilities(robot).dof
    if loop_models(robot) and robot.samples is None and singular(robot) is not None:
        found = robot.derived.get("mobilities by loops", lambda: _with_loops(robot))
    each = (1.0 / np.maximum(found[..., robot.tree.v_slice[i].start + k], LEAST) for i, k in dofs)
    return [x if np.ndim(x) else float(x) for x in each]


def _with_loops(robot: Robot) -> np.ndarray:
    """The diagonal of (H + K^T K m)^-1 by dof of the tree, m the largest inertia of a joint by row of K."""
    tree = robot.tree
    q = robot.split_q(robot.neutral().tolist())
    H = np.array(crba(tree, q), dtype=float)
    loops = closed_loops(tree, loop_models(robot), tree.transforms(q))
    K = np.array([row for loop in loops for row in loop.jacobian()], dtype=float).reshape(-1, tree.nv)
    K = K / np.maximum(np.abs(K).max(axis=1, keepdims=True), LEAST)
    A = H + np.diag(H).max() * (K.T @ K)
    G = np.eye(tree.nv) if tree.coupling is None else np.asarray(tree.coupling.G)
    found: np.ndarray = np.diag(G @ np.linalg.pinv(G.T @ A @ G) @ G.T)
    return found


# ==== energy accounting ===========================================================================
# The ledger of a run, and what a step of passive motion hands to the next one besides q and v.
#
# The ledger has sums of energies and impulses, which each step takes and returns with the state. Handed on
# are
#
#     momentum    6 numbers of a robot that floats: the centroidal momentum that it ought to have, world axes
#     wound       1 number per dof with dry friction: how far its bristle is wound [rad | m]
#     energy      1 number of a method that keeps it: of a robot that floats about its centre of mass [J]
#
# All of these start at zero but the momentum and the energy.

SLOTS, OWN = ENTRIES[: ENTRIES.index("steps")], ENTRIES[ENTRIES.index("steps") :]
"""Entries of all steps, first in the ledger; and the last ones, those of steps of "contact" alone."""

DISSIPATED = ("contact", "friction", "stops", "collision")  # entries that add up to the dissipated energy

CONTROL = ("rejected", "shortest", "longest", "not_met")
"""What follows where these are divided to an accuracy (contact/step_control.py)."""

SIZE = len(SLOTS)
AT = {name: k for k, name in enumerate(SLOTS)}
IMPULSE = slice(AT["impulse_nx"], AT["impulse_fz"] + 1)


class Ledger:
    """The ledger in one step: its entries as they are now, those before the step to which the step adds."""

    def __init__(self, before: Sequence[Scalar]) -> None:
        self.entries = list(before)

    def add(self, name: str, amount: Scalar) -> None:
        """Add to a sum."""
        self.entries[AT[name]] = self.entries[AT[name]] + amount

    def add_more(self, k: int, amount: Scalar) -> None:
        """Add to the sum k of those that only this program has (joint_forces.py)."""
        self.entries[SIZE + k] = self.entries[SIZE + k] + amount


# ---- what a step hands on ---------------------------------------------------------------------------------


@frozen
class CarriedLayout:
    """Which of these a robot has."""

    momentum: bool = False  # whether it floats
    wound: tuple[tuple[int, int], ...] = ()  # (joint, dof of the joint) with a bristle
    energy: bool = False  # whether the method keeps the energy

    @property
    def size(self) -> int:
        """Numbers in all, at least 1: kernels have no empty inputs."""
        return max(1, 6 * self.momentum + len(self.wound) + self.energy)


class Carried:
    """The carried numbers in one step: those from before, and those for the next.

    ``momentum``: (h_G in world axes) or None; a step replaces it; ``wound``: {(joint, dof): angle or
    distance}; a step replaces them; ``energy``: the energy that the robot ought to have [J], or None; a step
    replaces it.
    """

    def __init__(self, layout: CarriedLayout, before: Sequence[Scalar]) -> None:
        rest = iter(before)
        self.momentum: Force | None = None
        if layout.momentum:
            self.momentum = Force(*(Vector3(next(rest), next(rest), next(rest)) for _ in range(2)))
        self.wound = {place: next(rest) for place in layout.wound}
        self.energy: Scalar | None = next(rest) if layout.energy else None

    def after(self) -> list[Scalar]:
        """All of them in the order of the layout."""
        out: list[Scalar] = [] if self.momentum is None else list(self.momentum)
        out += self.wound.values()
        if self.energy is not None:
            out.append(self.energy)
        return out or [0.0]


# ==== Energies and momentum of states, by the kinematics of the step: no time for few of them =====


def _facts(x: Any) -> None:
    place_bodies(x, x.q)
    velocities(x, x.v, x.V)
    h, (mass, moment) = spatial_momentum(x, x.V), whole_mass(x)
    ang = about(h, moment * (1.0 / (mass + 1e-300))).ang

    def faster(b: Any, most: Any, body: Any) -> tuple[Any, Any]:
        omega = vector(x.V, b)
        square = omega.dot(omega)
        return maximum(most, square), where(square > most, b, body)

    square, body = for_range(x.n_bodies, faster, 0.0, 0)
    energies = kinetic_energy(x, x.v, x.V), potential_energy(x)
    for k, fact in enumerate((*energies, *ang, *h.lin, sqrt(square), 1.0 * body)):
        x.facts[k] = fact


def _poses(x: Any) -> None:
    place_bodies(x, x.q)


@functools.cache
def _kernel(text: Callable[[Any], None]) -> LoopKernel:
    out = "R", "p", "seat", "origin"
    arrays = [replace(a, role="out") if a.name in out else a for a in (*ROBOT, *MOTION)]
    arrays += [*STATE, real("facts", 10, role="out")]
    return kernel_of(f"state{text.__name__}", text, arrays, by_source=True)


def _rows(robot: Robot, kernel: LoopKernel) -> KernelRows:
    """States on which a kernel runs, with what they share."""
    data = robot_data(robot)
    sizes = sizes_told(kernel.taken, data) | sizes_of_matrices(data) | {"nq": robot.nq, "nv": robot.nv}
    arrays = {
        a.name: np.ascontiguousarray(data[a.name]) if a.name in data else a.zeros(sizes) for a in kernel.taken
    }
    return KernelRows(kernel, sizes, arrays, ())


def _of_states(
    robot: Robot, text: Callable[[Any], None], found: Sequence[str], **states: np.ndarray
) -> list[np.ndarray]:
    """The arrays that are to be found, (T, ...), of states (T, ...) by name."""
    kernel, T = _kernel(text), len(states["q"])
    spare: Spare[KernelRows] = robot.derived.get("spare state kernels", lambda: Spare(4))
    key = text.__name__, engine(), kernel.version
    rows = spare.take(key, lambda: _rows(robot, kernel))
    own = {name: np.array(x, float)[None] for name, x in states.items()}
    own |= {name: np.zeros((1, T, *rows.arrays[name].shape)) for name in found}
    if T:
        kernel.counted(rows.run, "float64")(0, T, own, 1, np.zeros(T, np.int64))
    spare.give(key, rows)
    return [own[name][0] for name in found]


def facts_and_spins(robot: Robot, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Facts of states (T, ...), see state_facts; largest angular speed [rad/s], and its body: (T, 10)."""
    return _of_states(robot, _facts, ["facts"], q=q, v=v)[0]


def state_facts(robot: Robot, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """T, V [J] and momentum about the centre of mass, world axes [N m s; N s], of states (T, ...): (T, 8)."""
    return facts_and_spins(robot, q, v)[:, :8]


def state_poses(robot: Robot, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rotations (T, N + 1, 3, 3) to world axes and origins (T, N + 1, 3) of bodies 0..N [m]."""
    R, p, seat, origin = _of_states(robot, _poses, ["R", "p", "seat", "origin"], q=q)
    p += seat + origin[:, None]
    p[:, 0] = 0.0
    return R.reshape(*p.shape, 3), p
