"""Names and places of the parameters of a fit: of bodies first, then of friction and motors by joint."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robokit.conventions import FLOATING_BASE
from robokit.model.inertial_parameters import COUNT
from robokit.model.robot import Robot
from robokit.model.rotors import armature_by_dof

SYMBOLS = ("m", "m c_x", "m c_y", "m c_z", "I_xx", "I_xy", "I_yy", "I_xz", "I_yz", "I_zz")
"""Of a body's ten parameters, in their order."""

FRICTION = ("viscous", "coulomb")
"""Kinds of friction: a force of so much a velocity, and one of constant size against the velocity."""

MOTOR = "armature"
"""Inertia of a motor as its joint feels it."""


def inertial_names(robot: Robot) -> list[str]:
    """Of the bodies 1..N, 10 N of them: "link m", "link m c_x", ...; a body has the name of its link."""
    return [f"{robot.body_name(i)} {s}" for i in range(1, robot.nbodies + 1) for s in SYMBOLS]


def dof_names(robot: Robot) -> list[str]:
    """Of each degree of freedom: its joint's name, with [k] where the joint has several."""
    names = [""] * robot.nv
    for joint in robot.joints:
        k0, k1 = joint.v_slice.start, joint.v_slice.stop
        for k in range(k0, k1):
            names[k] = joint.name if k1 - k0 == 1 else f"{joint.name}[{k - k0}]"
    return names


@dataclass(frozen=True)
class Columns:
    """Which parameters a fit has.

    Attributes:
        robot: the robot.
        kinds: of "viscous", "coulomb", "armature", those that are fitted.
    """

    robot: Robot
    kinds: tuple[str, ...] = ()

    @property
    def inertial(self) -> int:
        """10 N."""
        return COUNT * self.robot.nbodies

    @property
    def dofs(self) -> np.ndarray:
        """Degrees of freedom that have friction and motors: all but a floating base's."""
        base = [
            range(*j.v_slice.indices(self.robot.nv)) for j in self.robot.joints if j.name == FLOATING_BASE
        ]
        return np.setdiff1d(np.arange(self.robot.nv), [k for r in base for k in r]).astype(int)

    @property
    def size(self) -> int:
        """Number of parameters."""
        return self.inertial + len(self.kinds) * len(self.dofs)

    def places(self, kind: str) -> slice:
        """Where the parameters of a kind stand."""
        n = len(self.dofs)
        start = self.inertial + self.kinds.index(kind) * n
        return slice(start, start + n)

    def names(self) -> list[str]:
        """Of all parameters."""
        joints = dof_names(self.robot)
        return inertial_names(self.robot) + [f"{joints[k]} {kind}" for kind in self.kinds for k in self.dofs]

    def by_dof(self, x: np.ndarray, kind: str) -> np.ndarray:
        """The parameters of a kind by degree of freedom, (nv,); zero where there are none."""
        out = np.zeros(self.robot.nv)
        if kind in self.kinds:
            out[self.dofs] = x[self.places(kind)]
        return out

    @property
    def known_motors(self) -> np.ndarray:
        """Motor inertias that are taken from the robot, (nv,); zero where they are fitted."""
        return np.zeros(self.robot.nv) if MOTOR in self.kinds else armature_by_dof(self.robot)

    def joint_rates(self, kind: str, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        """What a kind's force is proportional to, (B, nv)."""
        return {"viscous": v, "coulomb": np.sign(v), MOTOR: a}[kind]
