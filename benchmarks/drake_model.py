"""Drake's plants of robokit's robots, and its numbers in robokit's coordinates.

              robokit                       Drake
base q        quat wxyz, position           the same
base v        [omega; v] in base axes       [omega; v] in world axes
joints        document order, depth first   found by name
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from lxml import etree

import robokit as rk
from robokit.conventions import FLOATING_BASE
from robokit.spatial.rotation import quat_wxyz_to_rotation

# What the dynamics that are compared do not know.
OTHERS = (
    *("visual", "collision", "dynamics", "mimic", "transmission"),
    *("safety_controller", "calibration", "gazebo", "mujoco"),
)


class Refused(ValueError):
    """Drake does not take the robot."""


def bare_urdf(path: Path) -> tuple[str, str]:
    """The file's links, joints and inertias alone, and the name of the root link.

    Drake would look for the meshes, and warn of elements that it does not know.
    """
    root = etree.parse(str(path), etree.XMLParser(remove_comments=True)).getroot()
    etree.strip_elements(root, *OTHERS)
    children = {child.get("link") for child in root.iterfind("joint/child")}
    (first,) = (name for name in (link.get("name") for link in root.iterfind("link")) if name not in children)
    return etree.tostring(root, encoding="unicode"), first


class Drake:
    """A plant of a robot in continuous time, its context, and the maps by joint name.

    Args:
        robot: read from a URDF file, on a fixed or a floating base.

    Raises:
        Refused: Drake does not take the file.
    """

    def __init__(self, robot: rk.Robot) -> None:
        from pydrake.multibody.parsing import Parser
        from pydrake.multibody.plant import MultibodyPlant

        self.plant = plant = MultibodyPlant(0.0)
        try:
            text, first = bare_urdf(Path(str(robot.source)))
            (model,) = Parser(plant).AddModelsFromString(text, "urdf")
            root = plant.GetBodyByName(first, model)
            if robot.base == "fixed":
                plant.WeldFrames(plant.world_frame(), root.body_frame())
            plant.mutable_gravity_field().set_gravity_vector(robot.gravity)
            plant.Finalize()
        except (RuntimeError, ValueError) as problem:
            raise Refused(str(problem).splitlines()[0]) from problem
        self.robot = robot
        self.q_order, self.v_order = np.empty(robot.nq, dtype=int), np.empty(robot.nv, dtype=int)
        self.base: slice | None = None
        for joint in robot.joints:
            if joint.name == FLOATING_BASE:
                q, v = root.floating_positions_start(), root.floating_velocities_start_in_v()
                self.base = joint.v_slice
            else:
                theirs = plant.GetJointByName(joint.name, model)
                q, v = theirs.position_start(), theirs.velocity_start()
            for order, place, start in ((self.q_order, joint.q_slice, q), (self.v_order, joint.v_slice, v)):
                order[place] = np.arange(start, start + place.stop - place.start)
        self.context = plant.CreateDefaultContext()
        self.bodies = [plant.GetBodyByName(name, model) for name in robot.link_names]

    def _T(self, q: np.ndarray) -> np.ndarray:
        """Orthogonal T(q) with Drake's v = T v."""
        T = np.zeros((self.robot.nv, self.robot.nv))
        T[self.v_order, np.arange(self.robot.nv)] = 1.0
        if self.base is not None:
            k = self.base.start
            R = np.array(quat_wxyz_to_rotation(list(q[:4])).rows)
            for at in (k, k + 3):
                T[np.ix_(self.v_order[at : at + 3], range(at, at + 3))] = R
        return T

    def state(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Drake's [q; v] of robokit's."""
        x = np.empty(self.robot.nq + self.robot.nv)
        x[self.q_order] = q
        x[self.robot.nq :] = self._T(q) @ v
        return x

    def a(self, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        """Drake's accelerations of robokit's: the base's become R alpha and R (a + omega x v)."""
        return self._T(q) @ (a + self._shift(v))

    def a_back(self, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        """robokit's accelerations of Drake's."""
        return self._T(q).T @ a - self._shift(v)

    def _shift(self, v: np.ndarray) -> np.ndarray:
        shift = np.zeros(self.robot.nv)
        if self.base is not None:
            k = self.base.start
            shift[k + 3 : k + 6] = np.cross(v[k : k + 3], v[k + 3 : k + 6])
        return shift

    def force(self, q: np.ndarray, tau: np.ndarray) -> np.ndarray:
        """Drake's generalised force of robokit's."""
        return self._T(q) @ tau

    def force_back(self, q: np.ndarray, tau: np.ndarray) -> np.ndarray:
        """robokit's generalised force of Drake's."""
        return self._T(q).T @ tau

    def matrix_back(self, q: np.ndarray, M: np.ndarray) -> np.ndarray:
        """robokit's H of Drake's mass matrix."""
        T = self._T(q)
        return T.T @ M @ T

    def calls(self) -> dict[str, Callable[..., Any]]:
        """Drake's functions as users call them: each sets the state that it needs, and computes.

        Returns:
            by row of benchmarks/dynamics.py, functions of Drake's x = [q; v] and, for rnea and aba, of its
            a or tau; forward_kinematics returns the pose of one body, which computes those of all.
        """
        from pydrake.multibody.tree import MultibodyForces

        plant, context, nq = self.plant, self.context, self.robot.nq
        forces = MultibodyForces(plant)
        applied = plant.get_applied_generalized_force_input_port()
        last = self.bodies[-1]

        def rnea(x: np.ndarray, a: np.ndarray) -> np.ndarray:
            plant.SetPositionsAndVelocities(context, x)
            plant.CalcForceElementsContribution(context, forces)  # gravity
            return plant.CalcInverseDynamics(context, a, forces)

        def aba(x: np.ndarray, tau: np.ndarray) -> np.ndarray:
            plant.SetPositionsAndVelocities(context, x)
            applied.FixValue(context, tau)
            return plant.EvalTimeDerivatives(context).CopyToVector()[nq:]

        def crba(x: np.ndarray) -> np.ndarray:
            plant.SetPositions(context, x[:nq])
            return plant.CalcMassMatrix(context)

        def gravity(x: np.ndarray) -> np.ndarray:
            plant.SetPositions(context, x[:nq])
            return -plant.CalcGravityGeneralizedForces(context)

        def energies(x: np.ndarray) -> tuple[float, float]:
            plant.SetPositionsAndVelocities(context, x)
            return plant.CalcKineticEnergy(context), plant.CalcPotentialEnergy(context)

        def kinematics(x: np.ndarray) -> Any:
            plant.SetPositions(context, x[:nq])
            return plant.EvalBodyPoseInWorld(context, last)

        def bias(x: np.ndarray) -> np.ndarray:
            return rnea(x, still)

        still = np.zeros(self.robot.nv)
        return {
            "forward_kinematics": kinematics,
            "rnea": rnea,
            "crba": crba,
            "aba": aba,
            "gravity": gravity,
            "bias": bias,
            "energies": energies,
        }
