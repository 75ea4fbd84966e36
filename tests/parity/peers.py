"""The same quantities from Pinocchio and from MuJoCo, in robokit's order by robokit's own adapters."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import mujoco
import numpy as np
import pinocchio as pin
from lxml import etree

from robokit.interop import MujocoAdapter, PinocchioAdapter
from robokit.model import Robot
from robokit.parity import plain_text

SWAP = [3, 4, 5, 0, 1, 2]


def example(relative: str) -> Path:
    """A file of the wheel example-robot-data, which holds data and no Python module."""
    for file in importlib.metadata.files("example-robot-data") or ():
        if str(file).endswith(f"example-robot-data/robots/{relative}"):
            return Path(str(file.locate())).resolve()
    raise FileNotFoundError(f"example-robot-data has no robots/{relative}")


def with_inertia(path: Path, least: float = 1e-6) -> str:
    """The URDF with ``least`` [kg m^2] added to every link's moments of inertia.

    iCub's file has point masses on moving links: robokit and Pinocchio take them as they are, MuJoCo refuses.
    """
    root = etree.parse(str(path)).getroot()
    for matrix in root.iter("inertia"):
        for key in ("ixx", "iyy", "izz"):
            matrix.set(key, repr(float(matrix.get(key)) + least))
    return etree.tostring(root, encoding="unicode")


class PinocchioPeer:
    """One robot in Pinocchio."""

    def __init__(self, robot: Robot, path: Path) -> None:
        root = (pin.JointModelFreeFlyer(),) if robot.base == "floating" else ()
        self.model = pin.buildModelFromUrdf(str(path), *root)
        self.data = self.model.createData()
        self.robot, self.adapter = robot, PinocchioAdapter(robot, self.model)

    def quantities(self, q, v, a, tau, f_ext) -> dict[str, np.ndarray]:
        model, data, to = self.model, self.data, self.adapter
        pq, pv, pa, ptau = to.q(q), to.v(v), to.v(a), to.v(tau)
        pin.framesForwardKinematics(model, data, pq)
        poses = [data.oMf[model.getFrameId(name, pin.FrameType.BODY)] for name in self.robot.link_names]
        forces = self._forces(f_ext)
        H = np.array(pin.crba(model, data, pq))
        out = {
            "H": to.matrix_back(np.triu(H) + np.triu(H, 1).T),
            "C": to.v_back(pin.nonLinearEffects(model, data, pq, pv)),
            "G": to.v_back(pin.computeGeneralizedGravity(model, data, pq)),
            "tau": to.v_back(pin.rnea(model, data, pq, pv, pa)),
            "qdd": to.v_back(pin.aba(model, data, pq, pv, ptau)),
            "tau_f_ext": to.v_back(pin.rnea(model, data, pq, pv, pa, forces)),
            "qdd_f_ext": to.v_back(pin.aba(model, data, pq, pv, ptau, forces)),
            "com": np.array(pin.centerOfMass(model, data, pq)),
            "T": np.array(pin.computeKineticEnergy(model, data, pq, pv)),
            "V": np.array(pin.computePotentialEnergy(model, data, pq)),
            "rotation": np.array([M.rotation for M in poses]),
            "position": np.array([M.translation for M in poses]),
            "A_G": to.centroidal_back(pin.computeCentroidalMap(model, data, pq)),
            "h_G": np.array(pin.computeCentroidalMomentum(model, data, pq, pv))[SWAP],
        }
        pin.computeCentroidalMapTimeVariation(model, data, pq, pv)
        out["bias"] = (np.array(data.dAg) @ pv)[SWAP]
        return out

    def _forces(self, f_ext):
        model, data = self.model, self.data
        forces = [pin.Force.Zero() for _ in range(model.njoints)]
        for link, wrench in f_ext.items():
            joint = model.frames[model.getFrameId(link, pin.FrameType.BODY)].parentJoint
            forces[joint] += data.oMi[joint].actInv(pin.Force(wrench[3:], wrench[:3]))
        return forces


class MujocoPeer:
    """One robot in MuJoCo; contacts, limits and passive forces are left out."""

    def __init__(self, robot: Robot, path: Path, text: str | None = None) -> None:
        urdf = path.read_bytes() if text is None else text.encode()
        spec = mujoco.MjSpec.from_string(plain_text(urdf))
        root = spec.body(robot.link_names[_root(robot)])
        if robot.base == "floating":
            root.add_freejoint()
        self.model = spec.compile()
        self.model.opt.gravity[:] = robot.gravity
        self.model.dof_damping[:] = self.model.dof_frictionloss[:] = self.model.dof_armature[:] = 0.0
        self.model.jnt_stiffness[:] = 0.0
        self.model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
        self.data = mujoco.MjData(self.model)
        self.robot, self.adapter = robot, MujocoAdapter(robot, self.model)
        self.bodies = [self.model.body(name).id for name in robot.link_names]
        self.root = self.model.body(root.name).id

    def quantities(self, q, v, a, tau, f_ext) -> dict[str, np.ndarray]:
        model, data, to = self.model, self.data, self.adapter
        mujoco.mj_resetData(model, data)
        data.qpos[:], data.qvel[:] = to.q(q), to.v(q, v)
        data.qfrc_applied[:] = to.force(q, tau)
        self._push(f_ext if f_ext else {})
        mujoco.mj_forward(model, data)
        M = np.zeros((model.nv, model.nv))
        if hasattr(data, "qM"):
            mujoco.mj_fullM(model, M, data.qM)  # up to MuJoCo 3
        else:
            mujoco.mj_fullM(model, data, M)
        mujoco.mj_subtreeVel(model, data)
        mujoco.mj_energyPos(model, data)
        mujoco.mj_energyVel(model, data)
        out = {
            "H": to.matrix_back(q, M),
            "C": to.bias_back(q, v, data.qfrc_bias, M),
            "qdd_f_ext": to.a_back(q, v, data.qacc),
            "com": self._moving(data.subtree_com),
            "T": np.array(data.energy[1]),
            "rotation": data.xmat[self.bodies].reshape(-1, 3, 3).copy(),
            "position": data.xpos[self.bodies].copy(),
            "h_G": np.r_[
                data.subtree_angmom[self.root], data.subtree_linvel[self.root] * self.robot.total_mass
            ],
        }
        if self.robot.base == "fixed":
            # The root's own mass counts in MuJoCo's subtree, but not in robokit's momentum.
            del out["h_G"]
            out["V"] = np.array(-self.robot.total_mass * out["com"] @ self.robot.gravity)
        else:
            out["V"] = np.array(data.energy[0])
        data.xfrc_applied[:] = 0.0
        mujoco.mj_forward(model, data)
        out["qdd"] = to.a_back(q, v, data.qacc)
        data.qacc[:] = to.a(q, v, a)
        data.qfrc_applied[:] = 0.0
        mujoco.mj_inverse(model, data)
        out["tau"] = to.force_back(q, data.qfrc_inverse)
        data.qvel[:] = 0.0
        mujoco.mj_forward(model, data)
        out["G"] = to.bias_back(q, 0.0 * v, data.qfrc_bias, M)
        return out

    def _push(self, f_ext) -> None:
        """World wrenches about the origin as MuJoCo's forces and torques at the bodies' centres of mass."""
        self.data.xfrc_applied[:] = 0.0
        mujoco.mj_kinematics(self.model, self.data)
        for link, wrench in f_ext.items():
            body = self.model.body(link).id
            at = self.data.xipos[body]
            self.data.xfrc_applied[body] += np.r_[wrench[3:], wrench[:3] - np.cross(at, wrench[3:])]

    def _moving(self, subtree_com) -> np.ndarray:
        """Centre of mass of the links on moving bodies."""
        moving = [self.model.body(link.name).id for link in self.robot.links if link.body > 0]
        return self.model.body_mass[moving] @ self.data.xipos[moving] / self.model.body_mass[moving].sum()


def _root(robot: Robot) -> int:
    children = {j.child_link for j in (*robot.joints, *robot.fixed_joints) if j.kind != "floating"}
    return next(k for k, name in enumerate(robot.link_names) if name not in children)
