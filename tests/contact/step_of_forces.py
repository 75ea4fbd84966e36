"""A step of contact in NumPy that shares nothing with the kernels but the numbers: dense, slow, to rounding.

Masses and Jacobians are sums over bodies; the solution is that of the optimality conditions, by Newton's
method, its derivatives of laws by differences. The forces (collect and remember) are those under test.
"""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from robokit.collision.fields import CONTACTS, PAIRS, POSES, SHAPES
from robokit.collision.shapes import pair_arrays
from robokit.contact.constraints.collecting import collect, remember
from robokit.contact.constraints.loops import close, close_for_kick
from robokit.contact.fields import (
    CONSTRAINTS,
    FORCE_MEMORY,
    FORCES,
    FRICTION,
    LINE,
    MOTION,
    ROBOT,
    SOLVER,
    SPIN,
    STATE,
)
from robokit.contact.groups import connect
from robokit.contact.impacts import arrive
from robokit.contact.kinematics import advance as advance_in_place
from robokit.contact.kinematics import mass_matrix, place_bodies, velocities
from robokit.contact.landings import solve_landings
from robokit.contact.materials import body_numbers, joint_numbers, loop_numbers, motor_numbers
from robokit.contact.pattern import symbolic
from robokit.contact.robot_data import robot_data, sizes_of_matrices
from robokit.contact.solver import solve
from robokit.contact.vectors import put
from robokit.engine.loops.fields import kernel_of
from robokit.sim.force_elements import NO_SPRINGS
from robokit.sim.joint_forces import joint_law
from robokit.sim.motion import advance, momenta_after
from robokit.sim.steppers import prescribed_numbers
from robokit.spatial import Motion, Vector3
from robokit.spatial.control_flow import cond, for_range
from tests.contact.random_steps import in_blocks

UPDATES = 30

TABLES = (SHAPES, PAIRS, CONTACTS, POSES, ROBOT, MOTION, CONSTRAINTS, SOLVER, FORCES, FORCE_MEMORY, STATE)
ARRAYS = tuple({a.name: replace(a, role="inout") for table in TABLES for a in table}.values())
COLLECT, REMEMBER = kernel_of("collect", collect, ARRAYS), kernel_of("remember", remember, ARRAYS)


def begin(x: Any) -> None:
    """The first half of a step's motion, and the robot at its middle."""
    advance_in_place(x, x.q, x.v, x.v, 0.5 * x.dt[0])
    place_bodies(x, x.q)
    velocities(x, x.v, x.V)
    mass_matrix(x)
    close_for_kick(x)


def end(x: Any) -> None:
    """The kick, and the second half; what bounces has a way of its own there."""

    def before(j: Any) -> None:
        x.v0[j], x.guess[j] = x.v[j], x.v[j]

    def after(j: Any) -> None:
        x.v[j] = x.y[j]

    for_range(x.nv, before)

    def one() -> None:
        solve(x)
        for_range(x.nv, lambda j: put(x.ahead, j, x.y[j]))

    collect(x)
    symbolic(x)
    connect(x)
    arrive(x)
    cond(x.n_of[2] > 0, lambda: solve_landings(x), one)
    remember(x)
    for_range(x.nv, after)
    advance_in_place(x, x.q, x.v, x.ahead, 0.5 * x.dt[0])
    close(x)


BEGIN, END = kernel_of("begin", begin, ARRAYS), kernel_of("end", end, ARRAYS)


class ForcesStep:
    """Steps of one robot by the kernels, with contacts that a function finds.

    Attributes:
        x: the namespace of the arrays.
        find: writes CONTACTS, from the poses.
    """

    def __init__(self, robot: Any, dt: float, most_contacts: int = 8, **numbers: Any) -> None:
        self.robot = robot
        self.x, self.sizes = arrays_of(robot, dt, most_contacts, numbers)
        arrays = [getattr(self.x, a.name) for a in ARRAYS]
        self.begin, self.end = (kernel.single(self.sizes, arrays) for kernel in (BEGIN, END))
        self.find: Any = lambda x: None

    def step(
        self, q: np.ndarray, v: np.ndarray, tau: np.ndarray | float = 0.0
    ) -> tuple[np.ndarray, np.ndarray]:
        """One step."""
        x = self.x
        x.q[:], x.v[:], x.tau[:] = q, v, tau
        self.begin()
        self.find(x)
        self.end()
        assert x.n_of[0] <= x.n_constraints and x.n_of[1] <= x.n_rows and not x.solved[3]
        return x.q.copy(), x.v.copy()

    @property
    def iterations(self) -> int:
        """Of the last step."""
        return int(self.x.solved[0])


def arrays_of(
    robot: Any, dt: float, most_contacts: int, numbers: dict[str, Any]
) -> tuple[Any, dict[str, int]]:
    """The arrays of a step of a robot, and their sizes."""
    forces = {
        **robot_data(robot),
        **body_numbers(robot),
        **joint_numbers(robot, joint_law(robot)[0]),
        **motor_numbers(robot, []),
        **loop_numbers(robot),
        **NO_SPRINGS.numbers(robot),
        **prescribed_numbers(robot, ()),
        **three_shapes(),
        **numbers,
    }
    sizes = {"nv": robot.nv, "nq": robot.nq, "n_contacts": most_contacts}
    for a in (a for a in ARRAYS if a.name in forces):
        each = zip(a.shape, forces[a.name].shape, strict=True)
        sizes |= {name: count for name, count in each if isinstance(name, str)}
    sizes["n_constraints"] = 2 * most_contacts + 2 * sizes["n_loops"] + 1
    sizes |= sizes_of_matrices(forces)
    sizes["n_fill"] = sizes["n_blocks"] * (sizes["n_blocks"] + 1) // 2  # all of A: loops fill it, too
    sizes["n_rows"] = 2 * sizes["n_dofs"] + sizes["n_stops"] + sizes["n_motors"] + 1
    arrays = {}
    for a in ARRAYS:
        shape = [sizes.setdefault(s, 1) if isinstance(s, str) else s for s in a.shape]
        kind = np.int32 if a.kind == "integer" else float
        arrays[a.name] = np.array(np.broadcast_to(forces.get(a.name, 0), shape), dtype=kind)
    x = SimpleNamespace(**{**sizes, **arrays})
    x.bristle_pair[:] = -1
    x.dt[0], x.tolerance[0] = dt, 1e-6
    return x, sizes


class DenseStep:
    """The same, all but the forces by NumPy; arguments as of :class:`ForcesStep`, and the engine of these."""

    def __init__(
        self, robot: Any, dt: float, most_contacts: int = 8, engine: str | None = None, **numbers: Any
    ) -> None:
        self.robot, self.tree, self.engine = robot, robot.tree, engine
        coupling = robot.tree.coupling
        self.G = np.eye(self.tree.nv) if coupling is None else np.array(coupling.G, dtype=float)
        self.x, _ = arrays_of(robot, dt, most_contacts, numbers)
        self.find: Any = lambda x: None
        self.iterations = 0

    # ---- dynamics -----------------------------------------------------------------------------------------

    def place(self, q: np.ndarray) -> None:
        """Poses, Jacobians (of bodies in their own axes, and in world axes about the world's origin), H."""
        x, tree = self.x, self.tree
        self.shift = np.zeros(0)
        self.X = X = tree.transforms(self.robot.split_q(q.tolist()))
        R, p, B = [np.eye(3)], [np.zeros(3)], [np.zeros((6, tree.nv))]
        H = np.zeros((tree.nv, tree.nv))
        x.I = np.zeros((tree.n + 1, 10))
        for i in tree.outward():
            k, s = tree.parent[i], tree.v_slice[i]
            E, r = np.array(X[i].E.rows, dtype=float), np.array(list(X[i].r), dtype=float)
            R.append(R[k] @ E.T)
            p.append(p[k] + R[k] @ r)
            own = np.array([[*X[i] @ Motion(Vector3(*c[:3]), Vector3(*c[3:]))] for c in B[k].T]).T
            own = np.array(own, dtype=float)
            for m, column in enumerate(tree.joint[i].S.columns):
                own[:, s.start + m] += np.array(list(column), dtype=float)
            B.append(own)
            moved = [[*tree.I[i] @ Motion(Vector3(*c[:3]), Vector3(*c[3:]))] for c in own.T]
            H += own.T @ np.array(moved, dtype=float).T
            for m, rotor in enumerate(tree.armature[i] if tree.armature else ()):
                H[s.start + m, s.start + m] += rotor
            h = np.array(list(tree.I[i].h), dtype=float)
            x.I[i, :4] = [tree.I[i].m, *(R[i] @ h + tree.I[i].m * p[i])]
        self.B = [b @ self.G for b in B]
        self.J = []
        for i, b in enumerate(self.B):
            ang = R[i] @ b[:3]
            self.J.append(np.concatenate([ang, R[i] @ b[3:] + np.cross(p[i], ang, axisb=0).T]))
        x.R, x.p = np.array([r.ravel() for r in R]), np.array(p)
        x.coordinate = np.array([a for row in self.robot.split_q(q.tolist()) for a in row])
        self.H = self.G.T @ H @ self.G
        x.H = in_blocks(self.H, self.x.bands)

    def momentum(self, v: np.ndarray, w: np.ndarray) -> np.ndarray:
        """Along the joints, after a step without forces that began with v; velocity products at w."""
        tree = self.tree
        P = [
            tree.I[i] @ Motion(Vector3(*b[:3]), Vector3(*b[3:])) for i, b in enumerate(b @ v for b in self.B)
        ]
        T = momenta_after(tree, self.X, P, self.rows(w), self.x.dt[0])
        total = sum(b.T @ np.array([*f], dtype=float) for b, f in zip(self.B, T, strict=True))
        rotors = [a for row in (tree.armature or ()) for a in row] or [0.0] * tree.nv
        return np.asarray(total + self.G.T @ (np.array(rotors) * (self.G @ v)))

    def rows(self, v: np.ndarray) -> list[list[float]]:
        """Velocities by joint."""
        full = self.G @ v
        return [full[s].tolist() for s in self.tree.v_slice]

    # ---- step ---------------------------------------------------------------------------------------------

    def advance(self, q: np.ndarray, v: np.ndarray, h: float) -> tuple[np.ndarray, np.ndarray]:
        """Q moved along v."""
        q1, v1 = advance(self.tree, self.robot.split_q(q.tolist()), self.rows(v), h)
        flat_q = np.array([a for row in q1 for a in row], dtype=float)
        flat_v = np.array([a for row in v1 for a in row], dtype=float)
        coupling = self.tree.coupling
        if coupling is None:
            return flat_q, flat_v
        return flat_q[list(coupling.own_q)], flat_v[list(coupling.own_v)]

    def step(
        self, q: np.ndarray, v: np.ndarray, tau: np.ndarray | float = 0.0
    ) -> tuple[np.ndarray, np.ndarray]:
        """One step."""
        x, dt = self.x, self.x.dt[0]
        q, v = self.advance(q, v, 0.5 * dt)
        x.q, x.v = q, v
        self.place(q)
        x.V = np.array([J @ v for J in self.J])
        self.find(x)
        self.run(COLLECT)
        assert x.n_of[0] <= x.n_constraints and x.n_of[1] <= x.n_rows
        y = self.solve(v, np.broadcast_to(tau, v.shape))
        x.y[:] = y
        self.run(REMEMBER)
        return self.advance(q, y, 0.5 * dt)

    def run(self, kernel: Any) -> None:
        """A kernel on the arrays."""
        values = {a.name: np.asarray(getattr(self.x, a.name)) for a in ARRAYS}
        for name, found in kernel(engine=self.engine, **values).items():
            setattr(self.x, name, found)

    def solve(self, v: np.ndarray, tau: np.ndarray) -> np.ndarray:
        """The velocities that all laws agree on."""
        x, dt, nc, nr = self.x, self.x.dt[0], self.x.n_of[0], self.x.n_of[1]
        J = np.zeros((3 * nc + nr, len(v)))
        for i in range(nc):
            a, b = x.c_bodies[i]
            J[3 * i : 3 * i + 3] = x.c_E[i].reshape(3, 6) @ (self.J[b] - self.J[a])
        for r in range(nr):
            J[3 * nc + r, x.r_row[r]] = x.r_gain[r]
        y = v.copy()
        stiffest = max([*(1.0 / x.r_R[:nr]), *(1.0 / x.r_speed_R[:nr]), *(1.0 / x.c_R[:nc, 1]), 0.0])
        for turn in range(200):
            b = self.momentum(v, 0.5 * (v + y)) + dt * tau
            g, G = self.laws(J @ y, update=turn < UPDATES)
            r = self.H @ y - b - J.T @ g
            scale = np.abs(b - self.H @ v).max() + np.abs(J.T).dot(np.abs(g)).max() + 1e-14
            self.iterations = turn
            rounding = 4e-16 * stiffest * np.abs(y).max()
            if turn and np.abs(r).max() <= 1e-11 * scale + rounding:
                break
            d = np.linalg.solve(self.H + J.T @ G @ J, -r)
            y = y + self.share(J, y, d, b) * d
        else:
            raise AssertionError("no solution")
        self.laws(J @ y, False)
        return y

    def share(self, J: np.ndarray, y: np.ndarray, d: np.ndarray, b: np.ndarray) -> float:
        """That minimises the cost along d, by bisection of its slope."""

        def slope(s: float) -> float:
            return float(d @ (self.H @ (y + s * d) - b) - (J @ d) @ self.laws(J @ (y + s * d), False)[0])

        low, high, s = 0.0, 1.0, 1.0
        if slope(1.0) > 0.25 * abs(slope(0.0)):
            for _ in range(50):
                s = 0.5 * (low + high)
                low, high = (low, s) if slope(s) > 0.0 else (s, high)
        return s

    def laws(self, u: np.ndarray, update: bool) -> tuple[np.ndarray, np.ndarray]:
        """Impulses and their slopes."""
        x, nc, nr = self.x, self.x.n_of[0], self.x.n_of[1]
        g, G = np.zeros(len(u)), np.zeros((len(u), len(u)))
        self.shift = self.shift if len(self.shift) >= nc else np.zeros(nc)
        for i in range(nc):
            at = slice(3 * i, 3 * i + 3)
            x.c_u[i] = u[at]
            if update and x.c_kind[i] == FRICTION:
                z = u[at] - x.c_aim[i]
                N0 = max(0.0, -z[2] / x.c_R[i, 1])
                self.shift[i] = x.c_mu[i] * max(0.0, np.hypot(*z[:2]) - x.c_mu[i] * x.c_R[i, 0] * N0)
            elif update and x.c_kind[i] == SPIN:
                self.shift[i] = x.c_g[x.c_of[i], 2]
            g[at] = self.impulse(i, u[at])
            for k in range(3):
                if x.c_kind[i] == LINE:
                    G[3 * i + k, 3 * i + k] = 1.0 / x.c_R[i, 0]
                    continue
                h = 1e-7 * (np.abs(u[at]).max() + np.abs(x.c_aim[i]).max() + 1e-12)
                e = np.eye(3)[k] * h
                G[at, 3 * i + k] = -(self.impulse(i, u[at] + e) - self.impulse(i, u[at] - e)) / (2.0 * h)
            G[at, at] = 0.5 * (G[at, at] + G[at, at].T)
            x.c_g[i] = g[at]
        for r in range(nr):
            k = 3 * nc + r
            g[k], G[k, k] = self.row(r, u[k])
            x.r_g[r] = g[k]
        return g, G

    def impulse(self, i: int, u: np.ndarray) -> np.ndarray:
        """The nearest point of the set, by projection."""
        x = self.x
        R = np.array([x.c_R[i, 0], x.c_R[i, 0], x.c_R[i, 1]])
        f = (x.c_aim[i] - u) / R
        if x.c_kind[i] == LINE:
            return f
        if x.c_kind[i] == SPIN:
            N = max(0.0, self.shift[i])
            size = np.hypot(*f[:2])
            most = x.c_mu[i] * N
            f[:2] *= min(1.0, most / size) if size > 0.0 else 1.0
            f[2] = np.clip(f[2], -x.c_arm[i] * N, x.c_arm[i] * N)
            return f
        mu, f[2] = x.c_mu[i], f[2] - self.shift[i] / R[2]
        size = np.hypot(*f[:2])
        if size <= mu * f[2]:
            return f
        # In the metric R: minimise R_t (mu g - size)^2 + R_n (g - f_n)^2 over g >= 0.
        N = max(0.0, (R[0] * mu * size + R[2] * f[2]) / (R[0] * mu * mu + R[2]))
        way = f[:2] / size if size > 0.0 else f[:2]
        return np.array([*(way * mu * N), N])

    def row(self, r: int, u: float) -> tuple[float, float]:
        """Impulse and slope of a row."""
        x = self.x
        g = (x.r_aim[r] - u) / x.r_R[r]
        slope = 1.0 / x.r_R[r]
        if not x.r_low[r] < g < x.r_high[r]:
            g, slope = float(np.clip(g, x.r_low[r], x.r_high[r])), 0.0
        top = max(0.0, (x.r_speed[r] - np.sign(g) * u) / x.r_speed_R[r])
        if abs(g) > top:
            g, slope = np.sign(g) * top, 1.0 / x.r_speed_R[r] if top > 0.0 else 0.0
        return g, slope


def three_shapes() -> dict[str, np.ndarray]:
    """The ground, and shapes of two bodies: pairs 0 and 1 are the ground's, 2 is that of the bodies."""
    return {
        **pair_arrays(np.arange(3), 1, np.array([[1, 2, 3]])),
        **law(),
        "pair_stiffness": np.ones(1),
        "pair_damping": np.ones(1),
        "surface_velocity": np.zeros((3, 6)),
        "shape_body": np.arange(3),
        "shape_kind": np.zeros(3, int),
        "shape_placement": np.tile([*np.eye(3).ravel(), 0.0, 0.0, 0.0], (3, 1)),
        "shape_size": np.zeros((3, 3)),
        "shape_radius": np.zeros(3),
        "shape_bound": np.ones(3),
    }


def law(
    friction: float = 0.0, restitution: float = 0.0, torsion: float = 0.0, rolling: float = 0.0
) -> dict[str, np.ndarray]:
    """Of all contacts of three shapes; the arms are those of the ground."""
    return {
        "ground_shapes": np.ones(1, int),
        "shape_friction": np.array([-1.0, friction, friction]),
        "shape_restitution": np.array([0.0, restitution, restitution]),
        "ground_arms": np.array([torsion, rolling]),
        "between": np.array([friction, restitution]),
    }
