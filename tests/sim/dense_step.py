"""A second opinion on the implicit time step: dense Jacobians of every contact point, and np.linalg.solve.

Written from the law alone, with z up and every point p a world position. Each of the iterations solves

    (H + dt sum J_p^T (dt w kd n n^T + c (1 - n n^T)) J_p + dt b) y = H v* + dt (sum J_p^T (-w k phi n) + tau)
"""

from __future__ import annotations

import math

import numpy as np
from dense import Dense, skew
from scipy.spatial.transform import Rotation

import robokit as rk
from robokit.sim.contact_points import contact_points
from robokit.sim.step.joint_forces import FADE, JointLaw

UP = np.array([0.0, 0.0, 1.0])


class DenseStep:
    """One step of a floating robot on the ground."""

    def __init__(
        self, robot: rk.Robot, q, v, tau, dt: float, law: JointLaw, ground: rk.Ground, iterations: int
    ) -> None:
        self.robot, self.q, self.v, self.dt, self.law = robot, q, v, dt, law
        dense = Dense(robot, q, v)
        self.H = dense.H
        a = np.linalg.solve(dense.H, tau - dense.C - dense.G)
        a[3:6] += np.cross(v[:3], v[3:6])  # as seen from axes that do not turn
        self.v_star = v + dt * a
        self._points(dense, ground)
        k, d = ground.gains(robot)
        mu = np.array([ground.coefficient(link) for link in contact_points(robot, ground.max_points).link])
        y, weights, stops = v, None, None
        for _ in range(iterations):
            A, b = self.H.copy(), self.H @ self.v_star
            weights = self._contacts(A, b, y, weights, k, k * dt + d, mu, ground.slip)
            stops = self._joints(A, b, y, stops)
            y = np.linalg.solve(A, b)
        self.y, self.w, self.stops_used = y, weights, any(stops.values())
        self.R, self.p = dense.T[robot.joints[0].child_link][:3, :3], q[4:7]

    def _points(self, dense: Dense, ground: rk.Ground) -> None:
        points = contact_points(self.robot, ground.max_points)
        self.at, self.J = np.zeros((len(points), 3)), np.zeros((len(points), 3, self.robot.nv))
        for m, (name, p, r) in enumerate(zip(points.link, points.position, points.radius, strict=True)):
            P, T = self.robot.link(name).placement, dense.T[name]
            x = T[:3, :3] @ (P.rotation.T @ (p - P.position)) + T[:3, 3] - r * UP
            self.at[m] = x
            self.J[m] = np.hstack([-skew(x), np.eye(3)]) @ dense.J[name]
        self.phi = self.at[:, 2] - ground.height
        self.falling = self.phi + self.dt * (self.J @ self.v_star)[:, 2] < 0.0

    def _contacts(self, A, b, y, old, k, kd, mu, slip):
        u = self.J @ y
        N = -(k * self.phi + kd * u[:, 2])
        on = ((self.falling | (self.phi + self.dt * u[:, 2] < 0.0)) & (N > 0.0)).astype(float)
        w = on if old is None else 0.5 * (old + on)
        c = mu * on * N / np.sqrt(u[:, 0] ** 2 + u[:, 1] ** 2 + slip**2)
        for m, J in enumerate(self.J):
            A += self.dt * J.T @ np.diag([c[m], c[m], w[m] * kd]) @ J
            b -= self.dt * w[m] * k * self.phi[m] * J[2]
        return w

    def _joints(self, A, b, y, old):
        stops = {}
        for i, joint in enumerate(self.robot.joints, 1):
            for j, B, f in zip(
                range(joint.v_slice.start, joint.v_slice.stop),
                self.law.damping[i],
                self.law.friction[i],
                strict=True,
            ):
                A[j, j] += self.dt * (B + f / math.hypot(y[j], FADE))
            stop = self.law.stop[i]
            if stop is None:
                continue
            j = joint.v_slice.start
            angle = self.q[joint.q_slice.start]
            for side, gap in ((1.0, angle - stop.lower), (-1.0, stop.upper - angle)):
                kd = stop.k * self.dt + stop.d
                reaches = min(side * y[j], side * self.v_star[j]) * self.dt + gap < 0.0
                on = float(reaches and stop.k * gap + kd * side * y[j] < 0.0)
                w = on if old is None else 0.5 * (old[i, side] + on)
                stops[i, side] = w
                A[j, j] += self.dt * w * kd
                b[j] -= self.dt * side * w * stop.k * gap
        return stops

    @property
    def q_next(self) -> np.ndarray:
        """q moved along y for dt, the base straight ahead while it turns."""
        q, y, dt = self.q.copy(), self.y, self.dt
        q[7:] += dt * y[6:]
        q[4:7] = self.p + dt * self.R @ y[3:6]
        x, y_, z, w = (Rotation.from_matrix(self.R) * Rotation.from_rotvec(dt * y[:3])).as_quat()
        sign = math.copysign(1.0, np.dot([w, x, y_, z], q[:4]))
        q[:4] = sign * np.array([w, x, y_, z])
        return q
