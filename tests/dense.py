"""A second opinion: the equations of motion from dense Jacobians, link by link.

Written from the robot's names, placements and links (not from its numbered tree), with 4 x 4 poses and dense
6 x 6 matrices in world axes at the world origin, angular part first:

    v_l = J_l v     H = sum J^T I J     C_m = sum J^T (I Jd + v x* I J)     G = -sum J^T I [0; a_g]

C_m v is the gravity-free bias and C_m + C_m^T = dH/dt exactly.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

from robokit.model import Robot


def skew(r) -> np.ndarray:
    x, y, z = r
    return np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]], dtype=np.result_type(x, y, z, float))


def cross_motion(v) -> np.ndarray:
    """v x as a 6 x 6 matrix (RBDA eq. 2.31)."""
    w, u = skew(v[:3]), skew(v[3:])
    return np.block([[w, np.zeros((3, 3))], [u, w]])


def cross_force(v) -> np.ndarray:
    """v x* = -(v x)^T (RBDA eq. 2.33)."""
    return -cross_motion(v).T


def pose(R, p) -> np.ndarray:
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = R, p
    return T


def motion_to_outside(T) -> np.ndarray:
    """6 x 6 that takes motions from a body's coordinates to those outside, at the outside origin."""
    R, p = T[:3, :3], T[:3, 3]
    return np.block([[R, np.zeros((3, 3))], [skew(p) @ R, R]])


def dense_inertia(mass, com, about_com) -> np.ndarray:
    """6 x 6 spatial inertia at the origin (RBDA eq. 2.63)."""
    c = skew(com)
    return np.block([[about_com + mass * c @ c.T, mass * c], [mass * c.T, mass * np.eye(3)]])


def plane(n) -> tuple[np.ndarray, np.ndarray]:
    """The in-plane axes as documented: the axis after the dominant one, made perpendicular to n."""
    k = int(np.argmax(np.abs(n)))
    e = np.eye(3)[(k + 1) % 3]
    t1 = e - n * (n @ e)
    t1 /= np.linalg.norm(t1)
    return t1, np.cross(n, t1)


def joint_pose(kind: str, axis, pitch: float, q) -> np.ndarray:
    """Pose of the moved body in the joint frame; screws by the matrix exponential."""
    u = np.asarray(axis, dtype=float)
    turn = np.zeros((4, 4))
    turn[:3, :3] = skew(u)
    if kind in ("revolute", "continuous"):
        return expm(turn * q[0])
    if kind == "prismatic":
        return pose(np.eye(3), u * q[0])
    if kind == "helical":
        turn[:3, 3] = u * pitch
        return expm(turn * q[0])
    if kind == "cylindrical":
        return pose(np.eye(3), u * q[1]) @ expm(turn * q[0])
    if kind == "planar":
        t1, t2 = plane(u)
        return pose(np.eye(3), t1 * q[1] + t2 * q[2]) @ expm(turn * q[0])
    if kind in ("spherical", "floating"):
        w, x, y, z = q[:4]
        return pose(
            Rotation.from_quat([x, y, z, w]).as_matrix(), q[4:7] if kind == "floating" else np.zeros(3)
        )
    assert kind == "fixed"
    return np.eye(4)


def joint_subspace(kind: str, axis, pitch: float) -> np.ndarray:
    """S, 6 x nv, in coordinates of the moved body (RBDA table 4.1)."""
    u, o = np.asarray(axis, dtype=float), np.zeros(3)
    spin, slide = np.r_[u, o], np.r_[o, u]
    if kind in ("revolute", "continuous"):
        return spin[:, None]
    if kind == "prismatic":
        return slide[:, None]
    if kind == "helical":
        return (spin + pitch * slide)[:, None]
    if kind == "cylindrical":
        return np.stack([spin, slide], axis=1)
    if kind == "planar":
        return np.stack([spin, *(np.r_[o, t] for t in plane(u))], axis=1)
    return {"spherical": np.eye(6)[:, :3], "floating": np.eye(6), "fixed": np.zeros((6, 0))}[kind]


class Dense:
    """Every quantity of one state, computed the long way."""

    def __init__(self, robot: Robot, q, v) -> None:
        self.robot, nv = robot, robot.nv
        v = np.asarray(v, dtype=float)
        incoming = {j.child_link: j for j in (*robot.joints, *robot.fixed_joints)}
        self.T: dict[str, np.ndarray] = {"world": np.eye(4)}
        self.J: dict[str, np.ndarray] = {"world": np.zeros((6, nv))}
        self.Jd: dict[str, np.ndarray] = {"world": np.zeros((6, nv))}
        self.H, self.C_matrix = np.zeros((nv, nv)), np.zeros((nv, nv))
        self.G, self.gravity_free = np.zeros(nv), np.zeros(nv)
        self.mass, self.first, self.momentum, self.momentum_rate = 0.0, np.zeros(3), np.zeros(6), np.zeros(6)
        self.A_O, self.Ad_O, self.T_kin = np.zeros((6, nv)), np.zeros((6, nv)), 0.0
        for name in self._outward(incoming):
            self._pose(name, incoming.get(name), q, v)
            self._add(robot.link(name), v)
        self.com = self.first / self.mass
        to_G = np.block([[np.eye(3), -skew(self.com)], [np.zeros((3, 3)), np.eye(3)]])
        self.A_G, self.h_G = to_G @ self.A_O, to_G @ self.A_O @ v
        # The moment about the moving G changes by v_G x l too, which is null.
        self.bias_G = to_G @ self.Ad_O @ v
        self.C = self.C_matrix @ v
        self.V = -self.mass * float(robot.gravity @ self.com)

    def _outward(self, incoming):
        names, left = [], list(self.robot.link_names)
        while left:
            ready = [n for n in left if n not in incoming or incoming[n].parent_link in {"world", *names}]
            assert ready
            names += ready
            left = [n for n in left if n not in ready]
        return names

    def _pose(self, name, joint, q, v) -> None:
        if joint is None:
            self.T[name], self.J[name], self.Jd[name] = np.eye(4), self.J["world"], self.Jd["world"]
            return
        origin = pose(joint.origin.rotation, joint.origin.position)
        parent = joint.parent_link
        T = (
            self.T[parent]
            @ origin
            @ joint_pose(joint.kind, joint.axis, joint.pitch, np.asarray(q)[joint.q_slice])
        )
        s = motion_to_outside(T) @ joint_subspace(joint.kind, joint.axis, joint.pitch)
        J, Jd = self.J[parent].copy(), self.Jd[parent].copy()
        J[:, joint.v_slice] = s
        Jd[:, joint.v_slice] = cross_motion(J @ v) @ s
        self.T[name], self.J[name], self.Jd[name] = T, J, Jd

    def _add(self, link, v) -> None:
        T, J, Jd = self.T[link.name], self.J[link.name], self.Jd[link.name]
        if link.body == 0:
            return
        R, p = T[:3, :3], T[:3, 3]
        c = R @ link.com + p
        I = dense_inertia(link.mass, c, R @ link.inertia @ R.T)
        self.H += J.T @ I @ J
        self.C_matrix += J.T @ (I @ Jd + cross_force(J @ v) @ I @ J)
        self.G -= J.T @ I @ np.r_[np.zeros(3), self.robot.gravity]
        self.mass += link.mass
        self.first += link.mass * c
        self.A_O += I @ J
        self.Ad_O += I @ Jd + cross_force(J @ v) @ I @ J
        self.T_kin += 0.5 * float(v @ J.T @ I @ J @ v)

    def tau(self, a) -> np.ndarray:
        return self.H @ a + self.C + self.G
