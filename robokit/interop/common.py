"""Shared by the adapters: checks, and the conversion of velocities that are expressed in other axes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from robokit.conventions import UNIT_QUATERNION_TOLERANCE
from robokit.errors import ModelError, ShapeError
from robokit.model.joints import plane_axes
from robokit.model.parts import Joint
from robokit.model.robot import Robot
from robokit.spatial import Vector3
from robokit.spatial.rotation import quat_wxyz_to_rotation

SWAP = [3, 4, 5, 0, 1, 2]
"""Index that turns [v; omega] into robokit's [omega; v], and back."""


def uncoupled(robot: Robot) -> Robot:
    """The robot; an error if its mimic joints are coupled and so have no coordinates of their own."""
    if robot.coupling is not None:
        raise ShapeError(
            f"robot {robot.name!r} has coupled mimic joints, which are coordinates in the other program: "
            "give the adapter the robot loaded without mimic='couple', and use robot.coupling.G"
        )
    return robot


def checked_quaternion(quat: np.ndarray, order: str) -> np.ndarray:
    """The quaternion, checked to be unit; ``order`` is named in the error."""
    norm2 = float(quat @ quat)
    if abs(norm2 - 1.0) > UNIT_QUATERNION_TOLERANCE:
        raise ShapeError(
            f"base quaternion ({order}) has norm {norm2**0.5:.6g}; it must be unit: check the order of q"
        )
    return quat


def at_the_root(robot: Robot, joint: Joint) -> bool:
    """Whether the coordinates of a floating joint are the pose of its body in the world."""
    X = robot.tree.XT[joint.body]
    R, r = np.array(X.E.rows, dtype=float), np.array([*X.r], dtype=float)
    return robot.tree.parent[joint.body] == 0 and not r.any() and np.array_equal(R, np.eye(3))


def not_at_the_root(joint: Joint, program: str) -> NoReturn:
    """Refuse a floating joint that is not at the root's frame."""
    raise ModelError(
        f"joint {joint.name!r} is floating and does not start at the root's frame; the coordinates of "
        f"{program}'s free joints are poses in the world"
    )


def in_plane(joint: Joint) -> np.ndarray:
    """Axes of a planar joint's x and y in its joint frame, (3, 2)."""
    return np.array([list(t) for t in plane_axes(Vector3(*joint.axis.tolist()))]).T


@dataclass(frozen=True)
class Place:
    """Where a joint's coordinates are in the other program's vectors.

    Attributes:
        joint: the robot's joint.
        q: indices of its coordinates in their q.
        v: indices of its velocities in their v.
        turned: of a floating joint, the starts (0, 3) of the 3-vectors of v that they express in the
            predecessor's axes.
        plane: of a planar joint, the (2, 2) matrix from our in-plane axes to theirs.
    """

    joint: Joint
    q: np.ndarray
    v: np.ndarray
    turned: tuple[int, ...] = ()
    plane: np.ndarray | None = None


class MappedAdapter:
    """v_theirs = T(q) v with an orthogonal T; forces use the same T, accelerations also its time derivative.

    Args:
        robot: robokit's robot.
        places: where each of its joints is in the other program.
        nq, nv: lengths of the other program's q and v.
    """

    def __init__(self, robot: Robot, places: list[Place], nq: int, nv: int) -> None:
        self.robot, self._places, self._nq, self._nv = robot, places, nq, nv
        # T of the joints that no axes turn.
        self._still = np.zeros((nv, robot.nv))
        for place in places:
            self._still[place.v, place.joint.v_slice] = np.eye(len(place.v))

    def q(self, q: np.ndarray) -> np.ndarray:
        """robokit's q as the other program's, (their nq,)."""
        out = np.zeros(self._nq)
        for place in self._places:
            x = np.array(np.asarray(q)[place.joint.q_slice], dtype=float)
            if place.joint.kind == "floating":
                checked_quaternion(x[:4], "wxyz")
            if place.plane is not None:
                x[1:] = place.plane @ x[1:]
            out[place.q] = x
        return out

    def q_back(self, q: np.ndarray) -> np.ndarray:
        """The other program's q as robokit's, (nq,)."""
        out = np.empty(self.robot.nq)
        for place in self._places:
            x = np.array(np.asarray(q)[place.q], dtype=float)
            if place.joint.kind == "floating":
                checked_quaternion(x[:4], "wxyz")
            if place.plane is not None:
                x[1:] = place.plane.T @ x[1:]
            out[place.joint.q_slice] = x
        return out

    def T(self, q: np.ndarray) -> np.ndarray:
        """The orthogonal matrix with v_theirs = T v, (their nv, nv)."""
        T = self._still.copy()
        for place in self._places:
            if not place.turned and place.plane is None:
                continue
            block, x = np.eye(len(place.v)), np.asarray(q)[place.joint.q_slice]
            for k in place.turned:
                block[k : k + 3, k : k + 3] = np.array(quat_wxyz_to_rotation(x[:4].tolist()).rows)
            if place.plane is not None:
                c, s = np.cos(x[0]), np.sin(x[0])
                block[1:, 1:] = place.plane @ np.array([[c, -s], [s, c]])
            T[place.v, place.joint.v_slice] = block
        return T

    def _drift(self, v: np.ndarray) -> np.ndarray:
        """The drift in a_theirs = T (a + drift): omega x v where they use the predecessor's axes."""
        out, v = np.zeros(self.robot.nv), np.asarray(v)
        for place in self._places:
            k = place.joint.v_slice.start
            if 3 in place.turned:
                out[k + 3 : k + 6] = np.cross(v[k : k + 3], v[k + 3 : k + 6])
            elif place.plane is not None:
                out[k + 1 : k + 3] = -v[k] * v[k + 2], v[k] * v[k + 1]
        return out

    def v(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """robokit's v as the other program's, (their nv,); q is robokit's here and below."""
        return self.T(q) @ v

    def v_back(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """The other program's v as robokit's, (nv,)."""
        return self.T(q).T @ v

    def a(self, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        """robokit's a as the other program's: that of a floating base becomes R (a + omega x v)."""
        return self.T(q) @ (a + self._drift(v))

    def a_back(self, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        """The other program's a as robokit's; v is robokit's."""
        return self.T(q).T @ a - self._drift(v)

    def force(self, q: np.ndarray, tau: np.ndarray) -> np.ndarray:
        """robokit's tau as the other program's generalised force."""
        return self.T(q) @ tau

    def force_back(self, q: np.ndarray, tau: np.ndarray) -> np.ndarray:
        """The other program's generalised force as robokit's tau."""
        return self.T(q).T @ tau

    def matrix_back(self, q: np.ndarray, M: np.ndarray) -> np.ndarray:
        """The other program's (nv, nv) inertia matrix as robokit's H."""
        T = self.T(q)
        return T.T @ M @ T

    def bias_back(self, q: np.ndarray, v: np.ndarray, bias: np.ndarray, M: np.ndarray) -> np.ndarray:
        """The other program's bias force as robokit's C; M is their inertia matrix."""
        T = self.T(q)
        return T.T @ bias + T.T @ M @ T @ self._drift(v)
