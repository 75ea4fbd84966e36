"""Pinocchio's answers for a URDF."""

from __future__ import annotations

import numpy as np

from robokit.interop import PinocchioAdapter
from robokit.model.robot import Robot
from robokit.parity.state import Answering, Answers, State


def open_pinocchio(text: bytes, robot: Robot, changes: list[str]) -> Answering:
    """Load a URDF into Pinocchio; mimic joints are coordinates of their own."""
    import pinocchio as pin

    root = (pin.JointModelFreeFlyer(),) if robot.base == "floating" else ()
    model = pin.buildModelFromXML(_decoded(text), *root)
    to = PinocchioAdapter(robot, model)
    model.armature = to.armature()
    data = model.createData()
    frames = [model.getFrameId(name, pin.FrameType.BODY) for name in robot.link_names]

    def answers(x: State) -> Answers:
        q, v = to.q(x.q), to.v(x.v)
        pin.framesForwardKinematics(model, data, q)
        poses = [data.oMf[k] for k in frames]
        H = np.triu(pin.crba(model, data, q))
        out = {
            "mass": np.array(sum(model.inertias[k].mass for k in range(1, model.njoints))),
            "H": to.matrix_back(H + np.triu(H, 1).T),
            "C": to.v_back(pin.nonLinearEffects(model, data, q, v)),
            "tau": to.v_back(pin.rnea(model, data, q, v, to.v(x.a))),
            "rotation": np.array([M.rotation for M in poses]),
            "position": np.array([M.translation for M in poses]),
        }
        if x.tau is not None:
            out["qdd"] = to.v_back(pin.aba(model, data, q, v, to.v(x.tau)))
        if robot.total_mass > 0:
            out["CoM"] = np.array(pin.centerOfMass(model, data, q))
            out["A_G"] = to.centroidal_back(pin.computeCentroidalMap(model, data, q))
        return out

    return answers


def _decoded(text: bytes) -> str:
    """The XML as Pinocchio reads it: a string without a declaration of another encoding."""
    from lxml import etree

    root = etree.fromstring(text, etree.XMLParser(resolve_entities=False, no_network=True))
    return str(etree.tostring(root, encoding="unicode"))
