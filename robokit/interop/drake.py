"""Drake: free bodies with velocities in world axes; planar joints in a frame with z along their normal."""

from __future__ import annotations

from typing import Any

import numpy as np

from robokit.conventions import FLOATING_BASE
from robokit.errors import UnknownName
from robokit.interop.common import MappedAdapter, Place, at_the_root, in_plane, not_at_the_root, uncoupled
from robokit.model.parts import Joint
from robokit.model.robot import Robot


class DrakeAdapter(MappedAdapter):
    """Converts between a robot and a ``MultibodyPlant`` of the same description.

    Args:
        robot: robokit's robot.
        plant: a finalized ``pydrake.multibody.plant.MultibodyPlant``. Its root body is welded to the world if
            the robot's base is fixed, and free if it floats.

    Raises:
        UnknownName: a joint of the robot is not in the plant.
        ModelError: a floating joint is not at the root's frame; Drake's free bodies are posed in the world.

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
        for joint in uncoupled(robot).joints:
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
