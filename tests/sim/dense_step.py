"""A second opinion on the step of falls: dense Jacobians of every contact point, and np.linalg.solve.

Written from the law alone, with z up and every point p a world position. At the pose of the step's middle
each sweep solves

    (H + sum J_p^T (w dt kd n n^T + c (1 - n n^T)) J_p + dt b) y
        = H v - dt (C + G) + sum J_p^T (-w dt k phi n - c r e) + dt tau
"""

from __future__ import annotations

import math

import numpy as np
from dense import Dense, skew
from scipy.spatial.transform import Rotation

import robokit as rk
from robokit.sim.joints.joint_law import JointLaw
from robokit.sim.shapes.contact_points import contact_points
from robokit.sim.step.settle import IMPOSSIBLE
from robokit.sim.touching.body_points import TANGENTIAL
from robokit.sim.touching.contact import CREEPING, FAINT, SHORTEST, SWINGING, WHOLE
from robokit.spatial import Vector3

UP = np.array([0.0, 0.0, 1.0])
ALONG = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])


def drift(q, v, dt: float) -> tuple[np.ndarray, np.ndarray]:
    """(q, v) of a floating robot moved along v, the base straight ahead while it turns."""
    q1, v1 = q.copy(), v.copy()
    x, y, z, w = q[1], q[2], q[3], q[0]
    R = Rotation.from_quat([x, y, z, w])
    turn = Rotation.from_rotvec(dt * v[:3])
    q1[7:] += dt * v[6:]
    q1[4:7] += dt * R.apply(v[3:6])
    x, y, z, w = (R * turn).as_quat()
    sign = math.copysign(1.0, np.dot([w, x, y, z], q[:4]))
    q1[:4] = sign * np.array([w, x, y, z])
    v1[3:6] = turn.inv().apply(v[3:6])
    return q1, v1


class DenseStep:
    """One step of a floating robot on the ground.

    Attributes:
        y: velocities after the kick.
        w_last: velocities at which the last sweep took the velocity products.
        force: of the points, (K, 3) in world axes [N].
        went_on: whether there was a sweep more.
        released: whether a point was let go in the last sweep.
    """

    def __init__(
        self,
        robot: rk.Robot,
        q,
        v,
        tau,
        dt: float,
        law: JointLaw,
        ground: rk.Ground,
        sweeps: int,
        mass,
        e,
        unforeseen,
        wound,
    ) -> None:
        self.robot, self.dt, self.law, self.ground, self.mass = robot, dt, law, ground, mass
        self.q, self.v = drift(q, v, 0.5 * dt)
        self.k, self.d = ground.gains(robot, 1.0)
        self.kt = TANGENTIAL * self.k
        self.kdt = self.kt * dt + self.d * math.sqrt(TANGENTIAL)
        links = contact_points(robot, ground.max_points).link
        self.mu = np.array([ground.coefficient(link) for link in links])
        self._points(self.v, e)
        self.unforeseen = unforeseen
        most = {j: f.most / f.k for _, j, _, f, _ in self._dofs() if f is not None}
        self.wound = {at: np.clip(x + dt * self.v[at], -most[at], most[at]) for at, x in wound.items()}
        ys = [self.v]
        self.released = False
        self.went_on = False
        for k in range(sweeps + 1):
            self.went_on = k == sweeps and k >= 3 and self._impossible(ys[-1]) > IMPOSSIBLE
            if k == sweeps and not self.went_on:
                break
            w = self.v if k == 0 else 0.5 * (self.v + np.mean(ys[1:][-2:], axis=0))
            dense = Dense(robot, self.q, w)
            b = dense.H @ self.v + dt * (tau - dense.C - dense.G)
            b += dt * dense.H[:, 3:6] @ np.cross(w[:3], w[3:6])  # as seen from axes that do not turn
            A = dense.H.copy()
            rules = {0: "foresee", sweeps - 1: "release", sweeps: "extrapolate"}
            rule = "foresee" if k == 0 else rules.get(k, "look again")
            self._contacts(A, b, ys[-1], rule)
            self._joints(A, b, ys[-1], rule)
            ys.append(np.linalg.solve(A, b))
        self.H, self.y, self.w_last = dense.H, ys[-1], w
        self._act()

    def _points(self, v, e) -> None:
        points = contact_points(self.robot, self.ground.max_points)
        dense = Dense(self.robot, self.q, v)
        self.at, self.J = np.zeros((len(points), 3)), np.zeros((len(points), 3, self.robot.nv))
        self.body = points.body
        for m, (name, shape) in enumerate(zip(points.link, points.shape, strict=True)):
            P, T = self.robot.link(name).placement, dense.T[name]
            p = np.array([*shape.at(Vector3(*(P.rotation @ T[2, :3])))])
            x = T[:3, :3] @ (P.rotation.T @ (p - P.position)) + T[:3, 3]
            self.at[m] = x
            self.J[m] = np.hstack([-skew(x), np.eye(3)]) @ dense.J[name]
        self.phi = self.at[:, 2] - self.ground.height
        u = self.J @ v
        N = np.maximum(0.0, -self.k * self.phi - self.d * np.maximum(0.0, u[:, 2]))
        e = e + self.dt * u @ ALONG.T
        length = np.linalg.norm(e, axis=1)
        self.e = e * np.minimum(1.0, self.mu * N / self.kt / np.maximum(length, 1e-15))[:, None]
        kd = self.k * self.dt + self.d
        self.reach = np.where(self.phi > 0.0, 2.0 * self.phi / self.dt, self.phi * self.k / kd)

    def _contacts(self, A, b, y, rule: str) -> None:
        dt, k, kd = self.dt, self.k, self.k * self.dt + self.d
        u = self.J @ y
        vn, x = u[:, 2], u @ ALONG.T + self.kt / self.kdt * self.e
        s = np.linalg.norm(x, axis=1)
        mass = np.array([self.mass[i] for i in self.body])
        if rule == "foresee":
            self.on0 = vn - 9.81 * dt + self.reach < 0.0
            self.w = self.on0.astype(float)
            # A point that arrives touches for the part of the step that is left, at the mean depth of that.
            start, approach = self.phi - 0.5 * dt * vn, np.minimum(vn - 0.5 * 9.81 * dt, -1e-9)
            left = np.clip(1.0 + start / (approach * dt), SHORTEST, 1.0)
            arrives = self.on0 & (left < WHOLE)
            self.left = np.where(arrives, left, 1.0)
            self.depth = np.where(arrives, 0.5 * dt * left * np.maximum(-vn, 0.0), -self.phi)
            # No harder than brings it to the surface, where gravity alone would bring it there.
            self.free = np.where(arrives, np.clip(2.0 * start / dt + vn, 0.0, 9.81 * dt), 0.0)
            braked = [(self.left * self.on0)[self.body == i].sum() for i in self.body]
            kept = mass / (mass + dt * kd * np.array(braked))
            N = self.left * (k * self.depth - kd * (np.maximum(kept * vn, vn) + self.free))
            N = np.maximum(0.0, N)
            N = self.on0 * np.maximum(0.0, self.on0 * N + self.unforeseen)
        else:
            pushes = self.left * (k * self.depth - kd * (vn + self.free))
            if rule == "extrapolate":
                self.w = self.w * (pushes > 0.0)
                step, change = self.w * pushes - self.N, self.N - self.N_before
                rate = np.clip(step * change / (change**2 + FAINT**2), SWINGING, CREEPING)
                N = np.maximum(0.0, self.N + step / (1.0 - rate))
            elif rule == "release":
                self.released = self.released or bool(np.any((self.w > 0.0) & (pushes <= 0.0)))
                self.w = self.w * (pushes > 0.0)
                N = self.w * pushes
            else:
                on1 = vn + np.where(self.on0, self.free - k / kd * self.depth, self.reach) < 0.0
                self.w = 0.5 * (self.w + on1)
                N = self.on0 * np.maximum(0.0, pushes)
            lacks = self.c * s - dt * self.mu * N
            ways = x / np.maximum(s, 1e-30)[:, None]
            whole = np.array([(lacks[:, None] * ways)[self.body == i].sum(axis=0) for i in self.body])
            s = s + np.maximum(np.maximum(lacks, 0.0), np.sum(whole * ways, axis=1)) / mass
        self.N_before, self.N = getattr(self, "N", N), N
        self.c = dt * np.minimum(self.left * self.kdt, self.mu * N / np.maximum(s, 1e-30))
        for m, J in enumerate(self.J):
            A += J.T @ np.diag([self.c[m], self.c[m], dt * self.w[m] * self.left[m] * kd]) @ J
            b -= J.T @ (self.c[m] * self.kt / self.kdt * self.e[m] @ ALONG)
            b += dt * self.w[m] * self.left[m] * (k * self.depth[m] - kd * self.free[m]) * J[2]

    def _dofs(self):
        """(number of the joint, of the dof, damping, friction, stop or None) of each dof."""
        for i, joint in enumerate(self.robot.joints, 1):
            for n, j in enumerate(range(joint.v_slice.start, joint.v_slice.stop)):
                yield i, j, self.law.damping[i][n], self.law.friction[i][n], self.law.stop[i]

    def _gaps(self, i: int):
        stop, angle = self.law.stop[i], self.q[self.robot.joints[i - 1].q_slice.start]
        return ((1.0, angle - stop.lower), (-1.0, stop.upper - angle))

    def _joints(self, A, b, y, rule: str) -> None:
        """Adds the linear law of the joints, and keeps it: tau = rest - slope qd."""
        dt, nv, first = self.dt, self.robot.nv, rule == "foresee"
        old = np.zeros(nv) if first else self.rub
        self.rub, self.slope, self.rest = np.zeros(nv), np.zeros(nv), np.zeros(nv)
        self.stops = {} if first else self.stops
        for i, j, damping, f, stop in self._dofs():
            self.slope[j] = damping
            if f is not None:
                kd = f.k * dt + f.d
                s = abs(y[j] + f.k / kd * self.wound[j])
                s += max(0.0, old[j] * s - f.most) * dt / f.inertia
                self.rub[j] = min(kd, f.most / s)
                self.rest[j] -= self.rub[j] * f.k / kd * self.wound[j]
            if stop is not None:
                kd = stop.k * dt + stop.d
                for side, gap in self._gaps(i):
                    reach = 2.0 * gap / dt if gap > 0.0 else gap * stop.k / kd
                    if first:
                        w = float(side * y[j] + reach < 0.0)
                        self.stops[i, side] = (w, w)
                    elif rule in ("release", "extrapolate"):
                        w, first_w = self.stops[i, side]
                        self.stops[i, side] = (w * (-stop.k * gap - kd * side * y[j] > 0.0), first_w)
                    else:
                        w, first_w = self.stops[i, side]
                        on = side * y[j] + (gap * stop.k / kd if first_w else reach) < 0.0
                        self.stops[i, side] = (0.5 * (w + on), first_w)
                    w = self.stops[i, side][0]
                    self.slope[j] += w * kd
                    self.rest[j] -= side * w * stop.k * gap
        A += dt * np.diag(self.slope + self.rub)
        b += dt * self.rest

    def _impossible(self, y) -> float:
        """Share of the impulse that pulls or lies outside the cone."""
        self.y = y
        self._act()
        N, T = self.force[:, 2], np.linalg.norm(self.force[:, :2], axis=1)
        pressed = np.maximum(N, 0.0)
        return (pressed - N + np.maximum(T - self.mu * pressed, 0.0)).sum() / max(pressed.sum(), 1e-300)

    def _act(self) -> None:
        dt, kd = self.dt, self.k * self.dt + self.d
        u = self.J @ self.y
        self.force = np.zeros((len(self.J), 3))
        self.force[:, :2] = -self.c[:, None] / dt * (u @ ALONG.T + self.kt / self.kdt * self.e)
        self.force[:, 2] = self.w * self.left * (self.k * self.depth - kd * u[:, 2])

    @property
    def q_next(self) -> np.ndarray:
        """q after the second drift."""
        return drift(self.q, self.y, 0.5 * self.dt)[0]
