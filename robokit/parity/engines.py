"""Pinocchio, MuJoCo and Drake: each reads a robot's file and answers for a state, in robokit's order.

An opener takes the XML, the robot as robokit read it, and a list, to which it adds what was changed for the engine; it raises
whatever the engine raises over the file.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from robokit.interop import DrakeAdapter, MujocoAdapter, PinocchioAdapter
from robokit.mjcf import to_mjcf
from robokit.model.drafts import is_base
from robokit.model.robot import Robot
from robokit.parity.reading import THEIR_WORLD, plain_text

Answers = dict[str, np.ndarray]


@dataclass(frozen=True)
class State:
    """q, v, a, tau [robokit's units and order], (nq,) and (nv,); no tau where accelerations are not asked."""

    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    tau: np.ndarray | None


Answering = Callable[[State], Answers]
Opener = Callable[[bytes, Robot, list[str]], Answering]


def _pinocchio(text: bytes, robot: Robot, changes: list[str]) -> Answering:
    import pinocchio as pin

    root = (pin.JointModelFreeFlyer(),) if robot.base == "floating" else ()
    model = pin.buildModelFromXML(_decoded(text), *root)
    data, to = model.createData(), PinocchioAdapter(robot, model)
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


def _mujoco(text: bytes, robot: Robot, changes: list[str]) -> Answering:
    import mujoco

    try:
        model = _mujoco_urdf(text, robot)
    except Exception as refusal:  # whatever its type: our own export may still do
        try:
            model = mujoco.MjModel.from_xml_string(_quiet_mjcf(robot))
        except Exception as second:
            both = _one_line(refusal), _one_line(second)
            raise ValueError(both[0] if both[0] == both[1] else "; as robokit's MJCF: ".join(both)) from None
        changes.append(f"it refuses the URDF ({_one_line(refusal)}); compared is robokit's own MJCF of it")
    model.opt.gravity[:] = robot.gravity
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    model.dof_armature[:] = model.dof_damping[:] = model.dof_frictionloss[:] = 0.0
    data, to = mujoco.MjData(model), MujocoAdapter(robot, model)
    moving = model.body_weldid != 0
    sites = {model.site(k).name: k for k in range(model.nsite)}
    names = _names(robot)

    def poses() -> tuple[list[np.ndarray], list[np.ndarray]]:
        found = [
            (data.site_xmat[sites[link]], data.site_xpos[sites[link]])
            if link in sites
            else (data.body(names[link]).xmat, data.body(names[link]).xpos)
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
        # Its centre of mass is that of all bodies, the fixed ones included.
        return np.r_[data.subtree_angmom[0] + np.cross(data.subtree_com[0] - center, linear), linear]

    return answers


def _mujoco_urdf(text: bytes, robot: Robot) -> Any:
    import mujoco

    spec = mujoco.MjSpec.from_string(plain_text(text, _names(robot).get(THEIR_WORLD, THEIR_WORLD)))
    if robot.base == "floating":
        spec.body(_names(robot)[_root(robot)]).add_freejoint()
    return spec.compile()


def _quiet_mjcf(robot: Robot) -> str:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is not written is not compared
        return to_mjcf(robot, meshes=False)


def _drake(text: bytes, robot: Robot, changes: list[str]) -> Answering:
    from pydrake.multibody.parsing import Parser
    from pydrake.multibody.plant import MultibodyPlant

    names, plant = _names(robot), MultibodyPlant(0.0)
    log = logging.getLogger("drake")
    level = log.level
    log.setLevel(logging.ERROR)  # its warnings on inertias are in robot.diagnostics
    try:
        (instance,) = Parser(plant).AddModelsFromString(
            plain_text(text, names.get(THEIR_WORLD, THEIR_WORLD)), "urdf"
        )
    finally:
        log.setLevel(level)
    if robot.base == "fixed":
        root = plant.GetBodyByName(names[_root(robot)], instance)
        plant.WeldFrames(plant.world_frame(), root.body_frame())
    plant.mutable_gravity_field().set_gravity_vector(robot.gravity)
    plant.Finalize()
    context, to = plant.CreateDefaultContext(), DrakeAdapter(robot, plant)
    bodies = [plant.GetBodyByName(names[link], instance) for link in robot.link_names]
    moving = [b for b, link in zip(bodies, robot.links, strict=True) if link.body > 0]
    _inertias_as_written(robot, bodies, context, changes)

    def answers(x: State) -> Answers:
        from pydrake.multibody.tree import MultibodyForces

        plant.SetPositions(context, to.q(x.q))
        plant.SetVelocities(context, to.v(x.q, x.v))
        M, none = plant.CalcMassMatrix(context), MultibodyForces(plant)
        gravity = plant.CalcGravityGeneralizedForces(context)
        forces = plant.CalcInverseDynamics(context, to.a(x.q, x.v, x.a), none) - gravity
        poses = [plant.EvalBodyPoseInWorld(context, body) for body in bodies]
        mass = np.array([body.get_mass(context) for body in moving])
        out = {
            "mass": np.array(mass.sum()),
            "H": to.matrix_back(x.q, M),
            "C": to.bias_back(x.q, x.v, plant.CalcBiasTerm(context) - gravity, M),
            "tau": to.force_back(x.q, forces),
            "rotation": np.array([X.rotation().matrix() for X in poses]),
            "position": np.array([X.translation() for X in poses]),
        }
        if x.tau is not None:
            plant.get_applied_generalized_force_input_port().FixValue(context, to.force(x.q, x.tau))
            try:
                rates = plant.EvalTimeDerivatives(context).get_generalized_velocity().CopyToVector()
                out["qdd"] = to.a_back(x.q, x.v, rates)
            except RuntimeError as refusal:
                said = f"it refuses to compute accelerations: {_one_line(refusal)}"
                changes += [] if said in changes else [said]
        if robot.total_mass > 0:
            at = [
                plant.EvalBodyPoseInWorld(context, b).multiply(b.CalcCenterOfMassInBodyFrame(context))
                for b in moving
            ]
            out["CoM"] = mass @ np.array(at) / mass.sum()
            out["A_G"] = np.array([momentum(v, out["CoM"]) for v in to.T(x.q).T]).T
        return out

    def momentum(v: np.ndarray, center: np.ndarray) -> np.ndarray:
        plant.SetVelocities(context, v)
        L = plant.CalcSpatialMomentumInWorldAboutPoint(context, center)
        return np.r_[L.rotational(), L.translational()]

    return answers


def _inertias_as_written(robot: Robot, bodies: list[Any], context: Any, changes: list[str]) -> None:
    """Undo what Drake's reader does to inertias that no body has: a ball of water of the same mass."""
    from pydrake.multibody.tree import RotationalInertia, SpatialInertia, UnitInertia

    undone, kept = [], []
    for body, link in zip(bodies, robot.links, strict=True):
        m, c = float(link.mass), link.com
        I = link.inertia + m * (c @ c * np.eye(3) - np.outer(c, c))
        theirs = body.CalcSpatialInertiaInBodyFrame(context)
        its = theirs.CalcRotationalInertia().CopyToFullMatrix3()
        if abs(theirs.get_mass() - m) <= 1e-9 * m and np.abs(its - I).max() <= 1e-9 * np.abs(I).max():
            continue
        if m == 0.0:
            kept.append(link.name)
            continue
        undone.append(link.name)
        six = [I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]]
        unit = UnitInertia(RotationalInertia(*(float(x) / m for x in six)))
        body.SetSpatialInertiaInBodyFrame(context, SpatialInertia(m, c, unit, skip_validity_check=True))
    if undone:
        changes.append(
            f"it takes a ball of water for inertias that no body has, of {_some(undone)}; they were set back "
            "to what the file says"
        )
    if kept:
        changes.append(
            f"it gives {_some(kept)}, with inertia and no mass, a ball of 1 kg: masses and forces differ"
        )


def _some(links: list[str]) -> str:
    shown = ", ".join(map(repr, links[:3])) + (", ..." if len(links) > 3 else "")
    return f"{len(links)} link{'s' if len(links) > 1 else ''} ({shown})"


@dataclass(frozen=True)
class Engine:
    """Another program: its Python module, its package, its base velocity, and what opens a file with it."""

    module: str
    package: str
    base_velocity: str
    open: Opener


ENGINES = {
    "Pinocchio": Engine("pinocchio", "pin", "[v; omega] in base axes", _pinocchio),
    "MuJoCo": Engine("mujoco", "mujoco", "v in world, omega in base axes", _mujoco),
    "Drake": Engine("pydrake", "drake", "[omega; v] in world axes", _drake),
}
"""Name -> engine."""


def _root(robot: Robot) -> str:
    """The link that no joint carries."""
    joints = (*robot.body_joints, *robot.fixed_joints)
    carried = {joint.child_link for joint in joints if not is_base(robot, joint)}
    return next(name for name in robot.link_names if name not in carried)


def _names(robot: Robot) -> dict[str, str]:
    """Link -> its name in the text; "world" is taken."""
    names = {name: name for name in robot.link_names}
    if THEIR_WORLD in names:
        free = THEIR_WORLD + "_link"
        while free in names:
            free += "_"
        names[THEIR_WORLD] = free
    return names


def _one_line(refusal: BaseException) -> str:
    return " ".join(str(refusal).split()) or type(refusal).__name__


def _decoded(text: bytes) -> str:
    """The XML as Pinocchio takes it: decoded, without a declaration of another encoding."""
    from lxml import etree

    root = etree.fromstring(text, etree.XMLParser(resolve_entities=False, no_network=True))
    return str(etree.tostring(root, encoding="unicode"))
