"""MuJoCo's answers for a URDF; if MuJoCo cannot load it, for the MJCF that robokit writes of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from robokit.interop import MujocoAdapter
from robokit.mjcf import to_mjcf
from robokit.model.robot import Robot
from robokit.model.rotors import armature_by_dof
from robokit.parity.reading import THEIR_WORLD, plain_text
from robokit.parity.state import Answering, Answers, State, names_there, one_line, root_link


def open_mujoco(text: bytes, robot: Robot, changes: list[str]) -> Answering:
    """Load a URDF into MuJoCo, with contacts, limits and passive forces switched off."""
    import mujoco

    try:
        model = _mujoco_urdf(text, robot)
    except Exception as refusal:  # of any type; robokit's MJCF may still load
        try:
            model = mujoco.MjModel.from_xml_string(_quiet_mjcf(robot))
        except Exception as second:
            both = one_line(refusal), one_line(second)
            raise ValueError(both[0] if both[0] == both[1] else "; as robokit's MJCF: ".join(both)) from None
        changes.append(f"it cannot load the URDF ({one_line(refusal)}); robokit's own MJCF of it is compared")
    return answering(model, robot)


def answering(model: Any, robot: Robot) -> Answering:
    """The function that answers for a robot with a MuJoCo model of it; joints and links go by name."""
    import mujoco

    model.opt.gravity[:] = robot.gravity
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    model.dof_damping[:] = model.dof_frictionloss[:] = 0.0
    to = MujocoAdapter(robot, model)
    model.dof_armature[:] = to.T(robot.neutral()) ** 2 @ armature_by_dof(robot)
    data = mujoco.MjData(model)
    moving = model.body_weldid != 0
    sites = {model.site(k).name: k for k in range(model.nsite)}
    name = names_there(robot)

    def poses() -> tuple[list[np.ndarray], list[np.ndarray]]:
        found = [
            (data.site_xmat[sites[link]], data.site_xpos[sites[link]])
            if link in sites
            else (data.body(name[link]).xmat, data.body(name[link]).xpos)
            for link in robot.link_names
        ]
        return [R.reshape(3, 3).copy() for R, _ in found], [p.copy() for _, p in found]

    def answers(x: State) -> Answers:
        data.qpos[:], data.qvel[:] = to.q(x.q), to.v(x.q, x.v)
        data.qfrc_applied[:] = 0.0 if x.tau is None else to.force(x.q, x.tau)
        mujoco.mj_forward(model, data)
        M = np.zeros((model.nv, model.nv))
        if hasattr(data, "qM"):
            mujoco.mj_fullM(model, M, data.qM)  # up to MuJoCo 3
        else:
            mujoco.mj_fullM(model, data, M)
        mass, (rotation, position) = model.body_mass[moving], poses()
        out = {
            "mass": np.array(mass.sum()),
            "H": to.matrix_back(x.q, M),
            "C": to.bias_back(x.q, x.v, data.qfrc_bias, M),
            "rotation": np.array(rotation),
            "position": np.array(position),
        }
        if x.tau is not None:
            out["qdd"] = to.a_back(x.q, x.v, data.qacc)
        data.qacc[:], data.qfrc_applied[:] = to.a(x.q, x.v, x.a), 0.0
        mujoco.mj_inverse(model, data)
        out["tau"] = to.force_back(x.q, data.qfrc_inverse)
        if robot.total_mass > 0:
            out["CoM"] = mass @ data.xipos[moving] / mass.sum()
            out["A_G"] = np.array([momentum(v, out["CoM"]) for v in to.T(x.q).T]).T
        return out

    def momentum(v: np.ndarray, center: np.ndarray) -> np.ndarray:
        data.qvel[:] = v
        mujoco.mj_comVel(model, data)
        mujoco.mj_subtreeVel(model, data)
        linear = data.subtree_linvel[0] * model.body_subtreemass[0]
        # MuJoCo's centre of mass is that of all bodies, including the fixed ones.
        return np.r_[data.subtree_angmom[0] + np.cross(data.subtree_com[0] - center, linear), linear]

    return answers


def _mujoco_urdf(text: bytes, robot: Robot) -> Any:
    import mujoco

    names = names_there(robot)
    spec = mujoco.MjSpec.from_string(plain_text(text, names.get(THEIR_WORLD, THEIR_WORLD)))
    if robot.base == "floating":
        spec.body(names[root_link(robot)]).add_freejoint()
    return spec.compile()


def _quiet_mjcf(robot: Robot) -> str:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what cannot be written is not compared either
        return to_mjcf(robot, meshes=False, visuals=False)
