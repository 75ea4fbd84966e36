"""Pinocchio: velocities linear first, quaternions xyzw, continuous joints as cosine and sine."""

from __future__ import annotations

from typing import Any

import numpy as np

from robokit.conventions import FLOATING_BASE
from robokit.errors import ModelError, UnknownName
from robokit.interop.common import SWAP, checked_quaternion, uncoupled
from robokit.model.robot import Robot
from robokit.model.rotors import armature_by_dof


class PinocchioAdapter:
    """Converts between a robot and a ``pinocchio.Model`` of the same description.

    Args:
        robot: robokit's robot.
        model: pinocchio.Model; with a free-flyer root if the robot's base floats.

    Raises:
        UnknownName: a joint of the robot is not in the model.
        ModelError: a planar joint whose normal is not z; Pinocchio takes z for every planar joint.

    Example:
        >>> import pinocchio
        >>> from robokit.interop import PinocchioAdapter
        >>> path = rk.find_robot("quadruped")
        >>> model = pinocchio.buildModelFromUrdf(str(path), pinocchio.JointModelFreeFlyer())
        >>> robot = rk.load_urdf(path, base="floating")
        >>> theirs, q = PinocchioAdapter(robot, model), robot.random_configuration(0)
        >>> H = pinocchio.crba(model, model.createData(), theirs.q(q))
        >>> np.allclose(theirs.matrix_back(H), rk.crba(robot, q))
        True
    """

    def __init__(self, robot: Robot, model: Any) -> None:
        self.robot, self.model = uncoupled(robot), model
        names = list(model.names)
        self._q: list[tuple[slice, slice, str]] = []
        order = np.empty(robot.nv, dtype=int)
        for joint in robot.joints:
            if joint.name == FLOATING_BASE:
                theirs = model.joints[1]
            elif joint.name in names:
                theirs = model.joints[names.index(joint.name)]
            else:
                raise UnknownName("joint", joint.name, names, "in the Pinocchio model")
            kind = joint.kind if joint.kind in ("floating", "planar") else "plain"
            if theirs.nq == 2 and theirs.nv == 1:
                kind = "angle"
            if kind == "planar" and joint.axis.tolist() != [0.0, 0.0, 1.0]:
                shown = " ".join(f"{x:g}" for x in joint.axis)
                raise ModelError(
                    f"joint {joint.name!r} is planar with normal ({shown}); Pinocchio's planar joints "
                    "all have normal z"
                )
            self._q.append((joint.q_slice, slice(theirs.idx_q, theirs.idx_q + theirs.nq), kind))
            places = np.arange(theirs.idx_v, theirs.idx_v + theirs.nv)
            if kind == "floating":
                places = places[SWAP]
            elif kind == "planar":
                places = places[[2, 0, 1]]
            order[joint.v_slice] = places
        self._order = order

    def q(self, q: np.ndarray) -> np.ndarray:
        """robokit's q as Pinocchio's, (their nq,)."""
        out = np.empty(self.model.nq)
        for ours, theirs, kind in self._q:
            x = np.asarray(q)[ours]
            if kind == "floating":
                quat = checked_quaternion(x[:4], "wxyz")
                out[theirs] = [*x[4:], *quat[1:], quat[0]]
            elif kind == "planar":
                out[theirs] = [x[1], x[2], np.cos(x[0]), np.sin(x[0])]
            elif kind == "angle":
                out[theirs] = [np.cos(x[0]), np.sin(x[0])]
            else:
                out[theirs] = x
        return out

    def q_back(self, q: np.ndarray) -> np.ndarray:
        """Pinocchio's q as robokit's, (nq,)."""
        out = np.empty(self.robot.nq)
        for ours, theirs, kind in self._q:
            x = np.asarray(q)[theirs]
            if kind == "floating":
                quat = checked_quaternion(x[3:], "xyzw")
                out[ours] = [quat[3], *quat[:3], *x[:3]]
            elif kind == "planar":
                out[ours] = [np.arctan2(x[3], x[2]), x[0], x[1]]
            elif kind == "angle":
                out[ours] = np.arctan2(x[1], x[0])
            else:
                out[ours] = x
        return out

    def v(self, v: np.ndarray) -> np.ndarray:
        """robokit's v, a or tau in Pinocchio's order, (nv,)."""
        out = np.empty(self.robot.nv)
        out[self._order] = v
        return out

    def v_back(self, v: np.ndarray) -> np.ndarray:
        """Pinocchio's v, a or tau in robokit's order, (nv,)."""
        return np.asarray(v)[self._order]

    def armature(self) -> np.ndarray:
        """The rotor inertias of the robot's joints for ``model.armature``, (nv,) [kg m^2 | kg]."""
        return self.v(armature_by_dof(self.robot))

    def matrix_back(self, H: np.ndarray) -> np.ndarray:
        """Pinocchio's (nv, nv) matrix with rows and columns in robokit's order."""
        return np.asarray(H)[np.ix_(self._order, self._order)]

    def centroidal_back(self, A: np.ndarray) -> np.ndarray:
        """Pinocchio's data.Ag as robokit's A_G, rows [angular; linear], (6, nv)."""
        # Pinocchio gives a matrix of one column as a vector.
        return np.asarray(A).reshape(6, self.robot.nv)[SWAP][:, self._order]
