"""MuJoCo: free joints with velocities in world axes; several joints for one of several degrees of freedom."""

from __future__ import annotations

from typing import Any

import numpy as np

from robokit.conventions import FLOATING_BASE
from robokit.errors import UnknownName
from robokit.interop.common import (
    SWAP,
    MappedAdapter,
    Place,
    at_the_root,
    in_plane,
    not_at_the_root,
    uncoupled,
)
from robokit.model.parts import Joint
from robokit.model.robot import Robot

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
        ModelError: a floating joint that is not at the root's frame is a free joint in the model.

    Example:
        >>> import mujoco
        >>> from robokit.interop import MujocoAdapter
        >>> from robokit.mjcf import to_mjcf
        >>> robot = rk.load_urdf(rk.find_robot("quadruped"), base="floating")
        >>> model = mujoco.MjModel.from_xml_string(to_mjcf(robot))
        >>> theirs, q, v = MujocoAdapter(robot, model), robot.random_configuration(0), np.ones(robot.nv)
        >>> data = mujoco.MjData(model)
        >>> data.qpos, data.qvel = theirs.q(q), theirs.v(q, v)
        >>> mujoco.mj_forward(model, data)
        >>> bias = theirs.bias_back(q, v, data.qfrc_bias, rk.crba(robot, q))
        >>> np.allclose(bias, rk.bias_forces(robot, q, v))
        True
    """

    def __init__(self, robot: Robot, model: Any) -> None:
        self.model = model
        by_name = {model.joint(k).name: model.joint(k) for k in range(model.njnt)}
        places = [self._place(uncoupled(robot), joint, by_name) for joint in robot.joints]
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
