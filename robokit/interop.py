"""Adapters to Pinocchio and MuJoCo: q, v, a, tau and H by joint name, both ways.

Measured on a floating base with an off-centre centre of mass (Pinocchio 4.1, MuJoCo 4.0):

                  robokit                     Pinocchio                 MuJoCo
    base q        quat wxyz, position         position, quat xyzw       position, quat wxyz
    base v        [omega; v] in base axes     [v; omega] in base axes   [v in world axes; omega in base axes]
    joints        document order, depth first sorted by name            document order
    continuous    one angle                   cos, sin                  one angle

Feeding one program's quaternion to another raises nothing and is wrong by orders of magnitude, so
these adapters go by names and refuse quaternions that are not unit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from robokit.conventions import FLOATING_BASE, UNIT_QUATERNION_TOLERANCE
from robokit.errors import ModelError, ShapeError, UnknownName
from robokit.model.parts import Joint
from robokit.model.robot import Robot
from robokit.spatial.rotation import quat_wxyz_to_rotation

# Base velocity: robokit's [omega; v] from the others' [v; omega], and back.
_SWAP = [3, 4, 5, 0, 1, 2]


def _uncoupled(robot: Robot) -> Robot:
    if robot.coupling is not None:
        raise ShapeError(
            f"robot {robot.name!r} has coupled mimic joints, which the other program keeps as "
            "coordinates: give the adapter the robot of mimic='independent', and use robot.coupling.G"
        )
    return robot


def _checked_quaternion(quat: np.ndarray, order: str) -> np.ndarray:
    norm2 = float(quat @ quat)
    if abs(norm2 - 1.0) > UNIT_QUATERNION_TOLERANCE:
        raise ShapeError(
            f"base quaternion ({order}) has norm {norm2**0.5:.6g}; it must be unit: check the order of q"
        )
    return quat


class PinocchioAdapter:
    """Converts between a robot and a ``pinocchio.Model`` of the same description.

    Args:
        robot: robokit's robot.
        model: pinocchio.Model; with a free-flyer root if the robot's base floats.

    Raises:
        UnknownName: a joint of the robot is not in the model.
    """

    def __init__(self, robot: Robot, model: Any) -> None:
        self.robot, self.model = _uncoupled(robot), model
        names = list(model.names)
        self._q: list[tuple[slice, slice, str]] = []
        order = np.empty(robot.nv, dtype=int)
        for joint in robot.joints:
            if joint.name == FLOATING_BASE:
                theirs, kind = model.joints[1], "free"
            else:
                if joint.name not in names:
                    raise UnknownName("joint", joint.name, names, "in the Pinocchio model")
                theirs = model.joints[names.index(joint.name)]
                kind = "angle" if theirs.nq == 2 and theirs.nv == 1 else "plain"
                kind = "free" if joint.kind == "floating" else kind
            self._q.append((joint.q_slice, slice(theirs.idx_q, theirs.idx_q + theirs.nq), kind))
            places = np.arange(theirs.idx_v, theirs.idx_v + theirs.nv)
            order[joint.v_slice] = places[_SWAP] if kind == "free" else places
        self._order = order

    def q(self, q: np.ndarray) -> np.ndarray:
        """Pinocchio's configuration of robokit's q, (nq,)."""
        out = np.empty(self.model.nq)
        for ours, theirs, kind in self._q:
            x = np.asarray(q)[ours]
            if kind == "free":
                quat = _checked_quaternion(x[:4], "wxyz")
                out[theirs] = [*x[4:], *quat[1:], quat[0]]
            elif kind == "angle":
                out[theirs] = [np.cos(x[0]), np.sin(x[0])]
            else:
                out[theirs] = x
        return out

    def q_back(self, q: np.ndarray) -> np.ndarray:
        """robokit's configuration of Pinocchio's q."""
        out = np.empty(self.robot.nq)
        for ours, theirs, kind in self._q:
            x = np.asarray(q)[theirs]
            if kind == "free":
                quat = _checked_quaternion(x[3:], "xyzw")
                out[ours] = [quat[3], *quat[:3], *x[:3]]
            elif kind == "angle":
                out[ours] = np.arctan2(x[1], x[0])
            else:
                out[ours] = x
        return out

    def v(self, v: np.ndarray) -> np.ndarray:
        """Pinocchio's order of v, a or tau, (nv,)."""
        out = np.empty(self.robot.nv)
        out[self._order] = v
        return out

    def v_back(self, v: np.ndarray) -> np.ndarray:
        """robokit's order of Pinocchio's v, a or tau."""
        return np.asarray(v)[self._order]

    def matrix_back(self, H: np.ndarray) -> np.ndarray:
        """robokit's order of rows and columns of a Pinocchio (nv, nv) matrix."""
        return np.asarray(H)[np.ix_(self._order, self._order)]

    def centroidal_back(self, A: np.ndarray) -> np.ndarray:
        """robokit's A_G, rows [angular; linear], of Pinocchio's data.Ag."""
        return np.asarray(A)[_SWAP][:, self._order]


class MujocoAdapter:
    """Converts between a robot and a ``mujoco.MjModel`` of the same description.

    Args:
        robot: robokit's robot.
        model: mujoco.MjModel; its root body on a free joint if the robot's base floats.

    Raises:
        UnknownName: a joint of the robot is not in the model.
        ModelError: a floating joint that is not at the root's frame, where MuJoCo's free joints start.
    """

    def __init__(self, robot: Robot, model: Any) -> None:
        self.robot, self.model = _uncoupled(robot), model
        by_name = {model.joint(k).name: model.joint(k) for k in range(model.njnt)}
        self._q: list[tuple[slice, slice, bool]] = []
        self._free: list[tuple[int, int]] = []  # where its q and v begin
        order = np.empty(robot.nv, dtype=int)
        for joint in robot.joints:
            free = joint.kind == "floating"
            if free:
                _at_the_root(robot, joint)
            if joint.name == FLOATING_BASE:
                theirs = model.joint(0)
            elif joint.name in by_name:
                theirs = by_name[joint.name]
            else:
                raise UnknownName("joint", joint.name, by_name, "in the MuJoCo model")
            nq, nv = joint.q_slice.stop - joint.q_slice.start, joint.v_slice.stop - joint.v_slice.start
            q0, v0 = int(theirs.qposadr[0]), int(theirs.dofadr[0])
            self._q.append((joint.q_slice, slice(q0, q0 + nq), free))
            places = np.arange(v0, v0 + nv)
            order[joint.v_slice] = places[_SWAP] if free else places
            if free:
                self._free.append((joint.q_slice.start, joint.v_slice.start))
        self._order = order

    def q(self, q: np.ndarray) -> np.ndarray:
        """MuJoCo's qpos of robokit's q, (nq,)."""
        out = np.empty(self.model.nq)
        for ours, theirs, free in self._q:
            x = np.asarray(q)[ours]
            out[theirs] = [*x[4:], *_checked_quaternion(x[:4], "wxyz")] if free else x
        return out

    def q_back(self, qpos: np.ndarray) -> np.ndarray:
        """robokit's configuration of MuJoCo's qpos."""
        out = np.empty(self.robot.nq)
        for ours, theirs, free in self._q:
            x = np.asarray(qpos)[theirs]
            out[ours] = [*_checked_quaternion(x[3:], "wxyz"), *x[:3]] if free else x
        return out

    def _T(self, q: np.ndarray) -> np.ndarray:
        """Orthogonal T(q) with v_mujoco = T v."""
        T = np.zeros((self.robot.nv, self.robot.nv))
        T[self._order, np.arange(self.robot.nv)] = 1.0
        for at, k in self._free:
            R = np.array(quat_wxyz_to_rotation(list(np.asarray(q)[at : at + 4])).rows)
            T[self._order[k + 3 : k + 6], k + 3 : k + 6] = R
        return T

    def v(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """MuJoCo's qvel of robokit's v, (nv,)."""
        return self._T(q) @ v

    def v_back(self, q: np.ndarray, qvel: np.ndarray) -> np.ndarray:
        """robokit's v of MuJoCo's qvel (q is robokit's)."""
        return self._T(q).T @ qvel

    def a(self, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        """MuJoCo's qacc of robokit's a: the base's becomes R (a + omega x v)."""
        a = np.array(a, dtype=float)
        for _, k in self._free:
            a[k + 3 : k + 6] += np.cross(v[k : k + 3], v[k + 3 : k + 6])
        return self._T(q) @ a

    def a_back(self, q: np.ndarray, v: np.ndarray, qacc: np.ndarray) -> np.ndarray:
        """robokit's a of MuJoCo's qacc (q, v are robokit's)."""
        a = self._T(q).T @ qacc
        for _, k in self._free:
            a[k + 3 : k + 6] -= np.cross(v[k : k + 3], v[k + 3 : k + 6])
        return a

    def force_back(self, q: np.ndarray, tau: np.ndarray) -> np.ndarray:
        """robokit's tau of MuJoCo's generalised force."""
        return self._T(q).T @ tau

    def matrix_back(self, q: np.ndarray, M: np.ndarray) -> np.ndarray:
        """robokit's H of MuJoCo's full (nv, nv) inertia matrix."""
        T = self._T(q)
        return T.T @ M @ T

    def bias_back(self, q: np.ndarray, v: np.ndarray, qfrc_bias: np.ndarray, M: np.ndarray) -> np.ndarray:
        """robokit's C of MuJoCo's qfrc_bias: the base acceleration's omega x v term is moved over."""
        T = self._T(q)
        shift = np.zeros(self.robot.nv)
        for _, k in self._free:
            shift[k + 3 : k + 6] = np.cross(v[k : k + 3], v[k + 3 : k + 6])
        return T.T @ qfrc_bias + T.T @ M @ T @ shift


def _at_the_root(robot: Robot, joint: Joint) -> None:
    """Refuse a floating joint whose coordinates are not the pose in the world, as MuJoCo's are."""
    X = robot.tree.XT[joint.body]
    R, r = np.array(X.E.rows, dtype=float), np.array([*X.r], dtype=float)
    if robot.tree.parent[joint.body] != 0 or r.any() or not np.array_equal(R, np.eye(3)):
        raise ModelError(
            f"joint {joint.name!r} is floating and does not start at the root's frame; the coordinates of "
            "MuJoCo's free joints are poses in the world"
        )
