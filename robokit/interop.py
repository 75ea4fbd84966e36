"""Adapters to Pinocchio, MuJoCo and Drake: q, v, a, tau and H converted by joint name, both ways.

Measured on a floating base with an off-centre centre of mass (Pinocchio 4.1, MuJoCo 4.0, Drake 1.51):

                  robokit                 Pinocchio              MuJoCo                 Drake
    base q        quat wxyz, position     position, quat xyzw    position, quat wxyz    quat wxyz, position
    base v        [omega; v]              [v; omega]             [v; omega]             [omega; v]
      in          base, base axes         base, base axes        world, base axes       world, world axes
    planar q      angle, x, y             x, y, cos, sin         x, y, angle            x, y, angle
    planar v      omega; body axes        body axes; omega       parent's axes; omega   parent's axes; omega
    joints        document order,         sorted by name         document order,        its own order
                  depth first                                    depth first
    continuous    one angle               cos, sin               one angle              one angle

A quaternion in another program's order raises no error there and gives wildly wrong numbers. The adapters
therefore match coordinates by joint name and refuse quaternions that are not unit.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from robokit.conventions import FLOATING_BASE, UNIT_QUATERNION_TOLERANCE
from robokit.dataclass_tools import frozen
from robokit.errors import ModelError, ShapeError, UnknownName
from robokit.model.edit import armature_by_dof
from robokit.model.joints import plane_axes
from robokit.model.parts import Joint
from robokit.model.robot import Robot
from robokit.spatial import Vector3
from robokit.spatial.rotation import quat_wxyz_to_rotation

# ---- Shared by the adapters: checks, and the conversion of velocities that are expressed in other axes

SWAP = [3, 4, 5, 0, 1, 2]  # index that turns [v; omega] into robokit's [omega; v], and back


def check_uncoupled(robot: Robot) -> Robot:
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
            f"quaternion ({order}) has norm {norm2**0.5:.6g}; it must be unit: check the order of q"
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


def check_sizes(joint: Joint, nq: int, nv: int, expected_nq: int) -> None:
    """Raise ModelError for a joint that is of another kind in the other program.

    It has ``nq`` coordinates and ``nv`` velocities there; such a joint has ``expected_nq``.
    """
    ours = expected_nq, joint.v_slice.stop - joint.v_slice.start
    if (nq, nv) != ours:
        raise ModelError(
            f"joint {joint.name!r}: expected a {joint.kind} joint with {ours[0]} coordinates and {ours[1]} "
            f"velocities in the other program, got one with {nq} and {nv}, for which there is no conversion"
        )


def in_plane(joint: Joint) -> np.ndarray:
    """Axes of a planar joint's x and y in its joint frame, (3, 2)."""
    return np.array([list(t) for t in plane_axes(Vector3(*joint.axis.tolist()))]).T


@frozen
class Place:
    """Where a joint's coordinates are in the other program's vectors."""

    joint: Joint  # the robot's joint
    q: np.ndarray  # indices of its coordinates in their q
    v: np.ndarray  # indices of its velocities in their v
    # of a floating joint, the starts (0, 3) of the 3-vectors of v that they express in the predecessor's axes
    turned: tuple[int, ...] = ()
    plane: np.ndarray | None = None  # of a planar joint, the (2, 2) matrix from our in-plane axes to theirs


class MappedAdapter:
    """v_theirs = T(q) v with an orthogonal T; forces use the same T, accelerations also its time derivative.

    ``places``: where each of the robot's joints is in the other program, whose q and v have nq and nv
    numbers.
    """

    def __init__(self, robot: Robot, places: list[Place], nq: int, nv: int) -> None:
        self.robot, self._places, self._nq = robot, places, nq
        # T of the joints that no axes turn.
        self._still = np.zeros((nv, robot.nv))
        for place in places:
            joint = place.joint
            check_sizes(joint, len(place.q), len(place.v), joint.q_slice.stop - joint.q_slice.start)
            self._still[place.v, place.joint.v_slice] = np.eye(len(place.v))

    def q(self, q: np.ndarray) -> np.ndarray:
        """robokit's q as the other program's, (their nq,)."""
        out = np.zeros(self._nq)
        for place in self._places:
            x = np.array(np.asarray(q)[place.joint.q_slice], dtype=float)
            if place.joint.kind in ("floating", "spherical"):
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
            if place.joint.kind in ("floating", "spherical"):
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


# ---- Pinocchio: velocities linear first, quaternions xyzw, continuous joints as cosine and sine --


class PinocchioAdapter:
    """Converts between a robot and a ``pinocchio.Model`` of the same description.

    Args:
        robot: robokit's robot.
        model: pinocchio.Model; with a free-flyer root if the robot's base floats.

    Raises:
        UnknownName: a joint of the robot is not in the model.
        ModelError: a joint that is of another kind in the model, or a planar joint whose normal is not z;
            Pinocchio takes z for every planar joint.

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
        self.robot, self.model = check_uncoupled(robot), model
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
            kind = joint.kind if joint.kind in ("floating", "planar", "spherical") else "plain"
            if theirs.nq == 2 and theirs.nv == 1:
                kind = "angle"
            if kind == "planar" and joint.axis.tolist() != [0.0, 0.0, 1.0]:
                shown = " ".join(f"{x:g}" for x in joint.axis)
                raise ModelError(
                    f"joint {joint.name!r} is planar with normal ({shown}); Pinocchio's planar joints "
                    "all have normal z"
                )
            nq = joint.q_slice.stop - joint.q_slice.start
            check_sizes(joint, theirs.nq, theirs.nv, nq + (kind in ("angle", "planar")))
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
            elif kind == "spherical":
                out[theirs] = np.roll(checked_quaternion(x, "wxyz"), -1)
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
            elif kind == "spherical":
                out[ours] = np.roll(checked_quaternion(x, "xyzw"), 1)
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


# ---- MuJoCo: free joints with velocities in world axes; several joints for one of several degrees of freedom

MUJOCO_PARTS = {
    "cylindrical": ("_R", "_T"),
    "planar": ("_TX", "_TY", "_RZ"),
    "floating": ("_TX", "_TY", "_TZ", "_R"),
}
"""Joint kind -> suffixes of the MuJoCo joints that stand for it, in MuJoCo's order.

MuJoCo's joints have one degree of freedom, or are balls or free. MuJoCo's own URDF reader gives the joints of
a planar joint these suffixes; :mod:`robokit.mjcf` writes all of them.
"""


class MujocoAdapter(MappedAdapter):
    """Converts between a robot and a ``mujoco.MjModel`` of the same description.

    Cylindrical and planar joints, and floating joints inside the tree, are several MuJoCo joints of one body:
    ``NAME_R NAME_T``, ``NAME_TX NAME_TY NAME_RZ``, ``NAME_TX NAME_TY NAME_TZ NAME_R``.

    Args:
        robot: robokit's robot.
        model: mujoco.MjModel; its root body on a free joint if the robot's base floats.

    Raises:
        UnknownName: a joint of the robot is not in the model.
        ModelError: a joint that is of another kind in the model, or a floating joint that is not at the
            root's frame and a free joint in the model.

    Example:
        >>> import mujoco
        >>> from robokit.interop import MujocoAdapter
        >>> from robokit.mjcf import to_mjcf
        >>> robot = rk.load_urdf(rk.find_robot("quadruped"), base="floating")
        >>> model = mujoco.MjModel.from_xml_string(to_mjcf(robot))
        >>> theirs, q = MujocoAdapter(robot, model), robot.random_configuration(0)
        >>> v = np.random.default_rng(0).normal(size=robot.nv)
        >>> data = mujoco.MjData(model)
        >>> data.qpos, data.qvel = theirs.q(q), theirs.v(q, v)
        >>> mujoco.mj_forward(model, data)
        >>> M = np.zeros((robot.nv, robot.nv))
        >>> mujoco.mj_fullM(model, data, M)  # up to MuJoCo 3: (model, M, data.qM)
        >>> bias = theirs.bias_back(q, v, data.qfrc_bias, M)
        >>> np.allclose(bias, rk.bias_forces(robot, q, v))
        True
    """

    def __init__(self, robot: Robot, model: Any) -> None:
        self.model = model
        by_name = {model.joint(k).name: model.joint(k) for k in range(model.njnt)}
        places = [self._place(check_uncoupled(robot), joint, by_name) for joint in robot.joints]
        super().__init__(robot, places, model.nq, model.nv)

    def _place(self, robot: Robot, joint: Joint, by_name: dict[str, Any]) -> Place:
        names: tuple[str, ...] = (joint.name,)
        if joint.name == FLOATING_BASE:
            parts = [self.model.joint(0)]
        else:
            if joint.name not in by_name and joint.kind in MUJOCO_PARTS:
                names = tuple(joint.name + end for end in MUJOCO_PARTS[joint.kind])
            for name in names:
                if name not in by_name:
                    raise UnknownName("joint", joint.name, by_name, "in the MuJoCo model")
            parts = [by_name[name] for name in names]
        q = np.concatenate([np.arange(p.qposadr[0], p.qposadr[0] + len(p.qpos0)) for p in parts])
        v = np.concatenate([np.arange(p.dofadr[0], p.dofadr[0] + len(p.damping)) for p in parts])
        if joint.kind == "floating":
            if len(parts) == 1 and not at_the_root(robot, joint):
                not_at_the_root(joint, "MuJoCo")
            return Place(joint, q[[3, 4, 5, 6, 0, 1, 2]], v[SWAP], turned=(3,))
        if joint.kind == "planar":
            theirs = np.array([p.axis for p in parts[:2]])
            return Place(joint, q[[2, 0, 1]], v[[2, 0, 1]], plane=theirs @ in_plane(joint))
        return Place(joint, q, v)


# ---- Drake: free bodies with velocities in world axes; planar joints in a frame with z along their normal


class DrakeAdapter(MappedAdapter):
    """Converts between a robot and a ``MultibodyPlant`` of the same description.

    Args:
        robot: robokit's robot.
        plant: a finalized ``pydrake.multibody.plant.MultibodyPlant``. Its root body is welded to the world if
            the robot's base is fixed, and free if it floats.

    Raises:
        UnknownName: a joint of the robot is not in the plant.
        ModelError: a joint that is of another kind in the plant, such as a ball joint, for which Drake has
            three angles; or a floating joint is not at the root's frame: Drake's free bodies are posed in the
            world.

    Example:
        >>> from pydrake.multibody.parsing import Parser
        >>> from pydrake.multibody.plant import MultibodyPlant
        >>> from robokit.interop import DrakeAdapter
        >>> plant = MultibodyPlant(0.0)
        >>> bodies = Parser(plant).AddModels(str(rk.find_robot("quadruped")))
        >>> plant.Finalize()
        >>> robot = rk.load_urdf(rk.find_robot("quadruped"), base="floating")
        >>> theirs, q = DrakeAdapter(robot, plant), robot.random_configuration(0)
        >>> context = plant.CreateDefaultContext()
        >>> plant.SetPositions(context, theirs.q(q))
        >>> np.allclose(theirs.matrix_back(q, plant.CalcMassMatrix(context)), rk.crba(robot, q))
        True
    """

    def __init__(self, robot: Robot, plant: Any) -> None:
        self.plant = plant
        by_name = {plant.get_joint(k).name(): plant.get_joint(k) for k in plant.GetJointIndices()}
        free = [plant.get_body(k) for k in plant.GetFloatingBaseBodies()]
        by_body = {body.name(): body for body in free}
        places = []
        for joint in check_uncoupled(robot).joints:
            if joint.kind == "floating":
                if not at_the_root(robot, joint):
                    not_at_the_root(joint, "Drake")
                # A root link named "world" has another name there.
                body = (
                    free[0]
                    if joint.name == FLOATING_BASE and len(free) == 1
                    else by_body.get(joint.child_link)
                )
                if body is None:
                    raise UnknownName("link", joint.child_link, by_body, "among the plant's free bodies")
                q, v = body.floating_positions_start(), body.floating_velocities_start_in_v()
                places.append(Place(joint, np.arange(q, q + 7), np.arange(v, v + 6), turned=(0, 3)))
            elif joint.name in by_name:
                places.append(_place(joint, by_name[joint.name]))
            else:
                raise UnknownName("joint", joint.name, by_name, "in the Drake plant")
        super().__init__(robot, places, plant.num_positions(), plant.num_velocities())


def _place(joint: Joint, theirs: Any) -> Place:
    q, v = theirs.position_start(), theirs.velocity_start()
    if joint.kind != "planar":
        return Place(
            joint, np.arange(q, q + theirs.num_positions()), np.arange(v, v + theirs.num_velocities())
        )
    turned = joint.origin.rotation.T @ theirs.frame_on_parent().GetFixedPoseInBodyFrame().rotation().matrix()
    order = np.array([2, 0, 1])
    return Place(joint, q + order, v + order, plane=turned[:, :2].T @ in_plane(joint))


__all__ = ["DrakeAdapter", "MujocoAdapter", "PinocchioAdapter"]
