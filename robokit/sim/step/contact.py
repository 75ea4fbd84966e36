"""One time step's solve for contacts, joint limits, joint damping and dry friction together.

    (H + dt K + dt b) y = H v* + dt (J^T e + tau)

y is the velocity at the step's end, v* the one without these forces; H v* is J^T times the momenta
I_i V*_i. Contacts with the resting ground, linearised, add a spatial matrix K_i to the inertia of the
body they touch and nothing else, and joint forces add to D: the system keeps H's branch-induced
sparsity, and one articulated-body sweep solves it.

Normal force N = max(0, -k phi - (k dt + d) n . u), friction of at most mu N by iterated re-weighting,
both linearised at the last iterate. Every iteration solves afresh from v*, so nothing accumulates.

Source: articulated-body algorithm, RBDA table 7.1 and seeds 002, with implicit external forces.
Differs: no velocity-product terms (they are in v*); I^a S = 0 does not hold where a joint has damping.
Cost: O(n) an iteration, and about 75 operations a contact point.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from robokit.algorithms.aba import combine, without_joint
from robokit.algorithms.coupling import coupled_solve
from robokit.algorithms.crba import composite
from robokit.model.tree import Tree
from robokit.sim.step.joint_forces import JointLaw, JointState
from robokit.sim.step.point_moments import Moments, along, isotropic, push
from robokit.spatial import ArticulatedInertia, Force, Motion, Transform, Vector3
from robokit.spatial.linear import ldl, ldl_solve
from robokit.spatial.scalars import Scalar, is_zero, maximum, sqrt, where

BodyPoint = tuple[tuple[float, float, float], float]
"""Position in body coordinates [m] and radius [m]."""


@dataclass(frozen=True)
class GroundLaw:
    """Constants of the contact law as scalars: plain numbers or inputs of a kernel."""

    height: Scalar
    k: Scalar
    d: Scalar
    slip: Scalar
    mu: Sequence[Scalar]


class Settled:
    """Outcome of :func:`settle`.

    Attributes:
        y: new velocities by joint.
        V: velocities of the bodies at y, body coordinates.
        impulse: ground's force on body i at y times dt, body coordinates; None where it has no points.
        joint_force: (damping and friction, limits) of each joint, by dof.
        contacts: BodyContact of each touching body.
        residual: largest change of a touching body's velocity in the last iteration [m/s].
    """

    __slots__ = ("V", "contacts", "impulse", "joint_force", "residual", "y")
    y: list[list[Scalar]]
    V: list[Motion]
    impulse: list[Force | None]
    joint_force: list[tuple[list[Scalar], list[Scalar]]]
    contacts: list[BodyContact]
    residual: Scalar


class BodyContact:
    """The points of one body in one step: geometry fixed, forces linearised again and again."""

    def __init__(
        self,
        i: int,
        points: Sequence[BodyPoint],
        n: Vector3,
        z: Scalar,
        mu: Scalar,
        law: GroundLaw,
        dt: Scalar,
    ) -> None:
        self.i, self.n, self.z, self.mu, self.law, self.dt = i, n, z, mu, law, dt
        self.kd = law.k * dt + law.d
        # The point of a sphere that would touch first lies under its centre.
        self.p = [Vector3(*p) - n * r if r else Vector3(*p) for p, r in points]
        self.phi = [n.dot(Vector3(*p)) + (z - r) for p, r in points]
        self.w: list[Scalar] | None = None
        self.c: list[Scalar] = []
        self.falling: list[Any] = []

    def speeds(self, V: Motion) -> tuple[list[Vector3], list[Scalar]]:
        """u and n . u of every point."""
        u = [V.lin + V.ang.cross(p) for p in self.p]
        return u, [self.n.dot(x) for x in u]

    def expect(self, V_star: Motion) -> None:
        """Note which points would be below the surface after a step at V*."""
        _, vn = self.speeds(V_star)
        self.falling = [phi + self.dt * s < 0.0 for phi, s in zip(self.phi, vn, strict=True)]

    def linearise(self, V: Motion) -> tuple[ArticulatedInertia, Force]:
        """dt K_i and the impulse dt e_i at V = 0, from the iterate V."""
        law, mu = self.law, self.dt * self.mu
        u, vn = self.speeds(V)
        first = self.w is None
        w: list[Scalar] = []
        self.c = []
        W, C = Moments(), Moments()
        for m, (p, phi) in enumerate(zip(self.p, self.phi, strict=True)):
            N = -(law.k * phi + self.kd * vn[m])
            gate = self.falling[m] | (phi + self.dt * vn[m] < 0.0)
            on = where(gate & (N > 0.0), 1.0, 0.0)
            # Half of the old set stays: a set that is re-evaluated sharply flips in 2-cycles.
            w.append(on if first else 0.5 * (self.w[m] + on))  # type: ignore[index]
            sliding = sqrt(maximum(u[m].dot(u[m]) - vn[m] * vn[m], 0.0) + law.slip * law.slip)
            c = mu * on * N / sliding
            self.c.append(c)
            W = W + Moments.of(w[m], p)
            C = C + Moments.of(c, p)
        self.w = w
        K = isotropic(C) + along(W * (self.dt * self.kd) - C, self.n)
        return K, push(W, self.n, self.z) * (self.dt * law.k)

    def point_forces(self, V: Motion) -> list[Vector3]:
        """Force at every point at the velocity V, body coordinates [N]."""
        assert self.w is not None
        u, vn = self.speeds(V)
        forces = []
        for m, phi in enumerate(self.phi):
            N = -self.w[m] * (self.law.k * phi + self.kd * vn[m])
            c = self.c[m] / self.dt
            forces.append(self.n * (N + c * vn[m]) - u[m] * c)
        return forces


def verticals(
    tree: Tree, X: Sequence[Transform | None], height: Scalar
) -> tuple[list[Vector3], list[Scalar]]:
    """World z axis in each body's axes, and the height of each body's origin over the ground."""
    n, z = [Vector3(0.0, 0.0, 1.0)], [-height]
    for i in tree.outward():
        Xi, p = X[i], tree.parent[i]
        assert Xi is not None
        n.append(Xi.E @ n[p])
        z.append(z[p] + n[p].dot(Xi.r))
    return n, z


def body_velocities(
    tree: Tree, X: Sequence[Transform | None], qd: Sequence[Sequence[Scalar]]
) -> list[Motion]:
    """Spatial velocity of each body in its own coordinates."""
    V = [Motion.zero()]
    for i in tree.outward():
        V.append(X[i] @ V[tree.parent[i]] + tree.joint[i].S * qd[i])  # type: ignore[union-attr, operator]
    return V


def settle(
    tree: Tree,
    X: Sequence[Transform | None],
    q: Sequence[Sequence[Scalar]],
    start: Sequence[Sequence[Scalar]],
    v_star: Sequence[Sequence[Scalar]],
    dt: Scalar,
    joints: JointLaw,
    points: Sequence[Sequence[BodyPoint]],
    ground: GroundLaw | None,
    iterations: int,
) -> Settled:
    """Velocities at the step's end.

    Args:
        tree: the tree.
        X: ^iX_lambda(i) at the step's start.
        q: configuration by joint.
        start: first iterate by joint: the velocities at the step's start.
        v_star: velocities by joint without contact, limits, damping and friction.
        dt: step [s].
        joints: damping, friction and limits.
        points: contact points of each body 0..N.
        ground: the contact law, or None.
        iterations: solves.
    """
    V_star = body_velocities(tree, X, v_star)
    x, V = start, body_velocities(tree, X, start)
    contacts: list[BodyContact] = []
    if ground is not None:
        n, z = verticals(tree, X, ground.height)
        touching = [i for i in tree.outward() if points[i]]
        contacts = [
            BodyContact(i, points[i], n[i], z[i], mu, ground, dt)
            for i, mu in zip(touching, ground.mu, strict=True)
        ]
        for body in contacts:
            body.expect(V_star[body.i])
    momentum = [tree.I[i] @ V_star[i] for i in range(tree.n + 1)]
    state = JointState(tree, joints, q, v_star, dt)
    before = V
    for _ in range(iterations):
        before = V
        K: list[ArticulatedInertia | None] = [None] * (tree.n + 1)
        e: list[Force | None] = [None] * (tree.n + 1)
        total = list(momentum)
        for body in contacts:
            i = body.i
            Ki, ei = body.linearise(V[i])
            K[i], e[i], total[i] = Ki, ei, momentum[i] + ei
        b, tau = state.linearise(x)
        x, V = sweep(tree, X, K, total, b, tau, dt)

    done = Settled()
    done.y, done.V, done.contacts = [list(row) for row in x], V, contacts
    done.impulse = [None if A is None or f is None else f - A @ v for A, f, v in zip(K, e, V, strict=True)]
    done.joint_force = state.forces(x)
    done.residual = 0.0
    for body in contacts:
        change = (V[body.i] - before[body.i]).lin
        done.residual = maximum(done.residual, change.dot(change))
    done.residual = sqrt(done.residual)
    return done


def sweep(
    tree: Tree,
    X: Sequence[Transform | None],
    K: Sequence[ArticulatedInertia | None],
    momentum: Sequence[Force],
    b: Sequence[Sequence[Scalar]],
    tau: Sequence[Sequence[Scalar]],
    dt: Scalar,
) -> tuple[list[list[Scalar]], list[Motion]]:
    """The velocities y that solve (H + J^T K J + dt b) y = J^T momentum + dt tau, by joint and by body."""
    N = tree.n + 1
    IA: list[Any] = [None] * N
    pA: list[Any] = [-f for f in momentum]
    U: list[Any] = [None] * N
    D: list[Any] = [None] * N
    u: list[Any] = [None] * N
    for i in tree.outward():
        IA[i] = tree.I[i].articulated()
        Ki = K[i]
        if Ki is not None:
            IA[i] = IA[i] + Ki
    if tree.coupling is not None:
        return coupled_sweep(tree, X, IA, momentum, b, tau, dt)

    for i in tree.inward():
        p, S = tree.parent[i], tree.joint[i].S  # type: ignore[union-attr]
        U[i] = S.of(IA[i])
        rows = [S.T @ column for column in U[i]]
        for k, bk in enumerate(b[i]):
            rows[k][k] = rows[k][k] + dt * bk
        D[i] = ldl(rows)
        u[i] = [dt * t - s for t, s in zip(tau[i], S.T @ pA[i], strict=True)]
        if p != 0:
            Xi: Any = X[i]
            Ia = without_joint(IA[i], U[i], D[i])
            if all(is_zero(bk) for bk in b[i]):
                Ia = Ia.without(S.axes)
            IA[p] = IA[p] + Xi.T @ Ia @ Xi
            pA[p] = pA[p] + Xi.T @ (pA[i] + combine(U[i], ldl_solve(D[i], u[i])))

    y: list[list[Scalar]] = [[]]
    V = [Motion.zero()]
    for i in tree.outward():
        above = X[i] @ V[tree.parent[i]]  # type: ignore[operator]
        right = [ui - above.dot(column) for ui, column in zip(u[i], U[i], strict=True)]
        y.append(ldl_solve(D[i], right))
        V.append(above + tree.joint[i].S * y[i])  # type: ignore[union-attr]
    return y, V


def coupled_sweep(
    tree: Tree,
    X: Sequence[Transform | None],
    IA: Sequence[Any],
    momentum: Sequence[Force],
    b: Sequence[Sequence[Scalar]],
    tau: Sequence[Sequence[Scalar]],
    dt: Scalar,
) -> tuple[list[list[Scalar]], list[Motion]]:
    """The same solve for v_full = G y, by the composite matrix of the inertias IA = I + K."""
    H = composite(tree, X, [None, *IA[1:]])
    f, right = list(momentum), [dt * t for row in tau for t in row]
    for i in tree.inward():
        p, at = tree.parent[i], tree.v_slice[i].start
        for k, force in enumerate(tree.joint[i].S.T @ f[i]):
            H[at + k][at + k] = H[at + k][at + k] + dt * b[i][k]
            right[at + k] = right[at + k] + force
        if p != 0:
            f[p] = f[p] + X[i].T @ f[i]  # type: ignore[union-attr]
    y = [list(row) for row in coupled_solve(tree, H, right)]
    return y, body_velocities(tree, X, y)
