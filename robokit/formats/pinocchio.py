"""A URDF as Pinocchio reads it, for the referee: links behind fixed joints are merged, and stay as frames."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np

from robokit.errors import RobokitError
from robokit.formats.description import WORLD, DescribedBody, DescribedJoint, Description
from robokit.formats.other_programs import one_line
from robokit.model.geometry import Placement

KINDS = {
    "JointModelR": "revolute",
    "JointModelP": "prismatic",
    "JointModelFreeFlyer": "floating",
    "JointModelSpherical": "spherical",
    "JointModelPlanar": "planar",
}
"""Beginnings of the names of Pinocchio's joints."""


def read_pinocchio(path: str | os.PathLike[str]) -> Description:
    """Read a URDF through Pinocchio; RobokitError where it refuses the file."""
    import pinocchio as pin

    try:
        model = pin.buildModelFromUrdf(os.fspath(path))
    except Exception as refusal:  # of any type: it is another program's
        raise RobokitError(f"{path}: Pinocchio cannot load it: {one_line(refusal)}") from None
    data = model.createData()
    q = pin.neutral(model)
    pin.framesForwardKinematics(model, data, q)
    bodies: dict[str, DescribedBody] = {}
    joints = []
    for k in range(model.njoints):
        own = [f for f in model.frames if f.parentJoint == k and f.type == pin.FrameType.BODY]
        pose = _placement(data.oMi[k])
        name = WORLD if k == 0 else _main(own, model.names[k])
        body = DescribedBody(name, pose, static=k == 0)
        inertia = model.inertias[k]
        body.mass, body.com = float(inertia.mass), np.array(inertia.lever)
        body.inertia = np.array(inertia.inertia)
        body.frames = {f.name: _placement(f.placement) for f in own}
        bodies[name] = body
        if k:
            joints.append(_joint(model, k, bodies, list(bodies)))
    side = Description("URDF through Pinocchio", os.fspath(path), model.name, bodies, joints, shapes="none")
    side.gravity = None  # a URDF says none
    return side


def _main(frames: list[Any], name: str) -> str:
    here = [f.name for f in frames if np.allclose(f.placement.homogeneous, np.eye(4), atol=1e-14)]
    return here[0] if here else name


def _joint(model: Any, k: int, bodies: dict[str, DescribedBody], names: list[str]) -> DescribedJoint:
    joint, child = model.joints[k], bodies[names[k]]
    kind = next((kind for start, kind in KINDS.items() if joint.shortname().startswith(start)), "other")
    axis = child.pose.rotation @ _axis(joint, kind)
    v, n = joint.idx_v, joint.nv
    out = DescribedJoint(
        model.names[k], kind, names[int(model.parents[k])], child.name, axis, child.pose.position, None, None
    )
    out.laws = None
    if n == 1 and joint.nq in (1, 2):
        if joint.nq == 1:
            lower, upper = (
                float(model.lowerPositionLimit[joint.idx_q]),
                float(model.upperPositionLimit[joint.idx_q]),
            )
            out.lower, out.upper = lower, upper
        else:
            out.lower, out.upper = -math.inf, math.inf
        effort, velocity = (float(x[v]) for x in (model.upperEffortLimit, model.upperVelocityLimit))
        out.effort, out.velocity = effort, velocity
        out.damping, out.friction = float(model.damping[v]), float(model.upperDryFrictionLimit[v])
        out.armature = float(model.armature[v])
    return out


def _axis(joint: Any, kind: str) -> np.ndarray:
    """Direction of the joint in its own frame, from its motion subspace at zero."""
    if kind not in ("revolute", "prismatic"):
        return np.zeros(3)
    data = joint.createData()
    q = np.zeros(joint.nq)
    if joint.nq == 2:
        q[0] = 1.0
    joint.calc(data, q)
    S = np.array(data.S).reshape(6, -1)[:, 0]
    part = S[3:] if kind == "revolute" else S[:3]
    return np.asarray(part / (np.linalg.norm(part) or 1.0))


def _placement(M: Any) -> Placement:
    return Placement(np.array(M.rotation), np.array(M.translation))
