"""Drake's answers for a URDF, with the inertias of the file."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np

from robokit.interop import DrakeAdapter
from robokit.model.parts import Link
from robokit.model.robot import Robot
from robokit.parity.reading import THEIR_WORLD, plain_text
from robokit.parity.state import Answering, Answers, State, names_there, one_line, root_link, some


def open_drake(text: bytes, robot: Robot, changes: list[str]) -> Answering:
    """Load a URDF without meshes; inertias that Drake's reader replaces are set back."""
    from pydrake.multibody.parsing import Parser
    from pydrake.multibody.plant import MultibodyPlant

    names, plant = names_there(robot), MultibodyPlant(0.0)
    log = logging.getLogger("drake")
    level = log.level
    log.setLevel(logging.ERROR)  # robot.diagnostics has its warnings about inertias
    try:
        (instance,) = Parser(plant).AddModelsFromString(
            plain_text(text, names.get(THEIR_WORLD, THEIR_WORLD)), "urdf"
        )
    finally:
        log.setLevel(level)
    if robot.base == "fixed":
        root = plant.GetBodyByName(names[root_link(robot)], instance)
        plant.WeldFrames(plant.world_frame(), root.body_frame())
    plant.mutable_gravity_field().set_gravity_vector(robot.gravity)
    for joint in robot.joints:
        if joint.armature:
            rotor = plant.AddJointActuator(f"{joint.name} rotor", plant.GetJointByName(joint.name, instance))
            rotor.set_default_rotor_inertia(joint.armature)
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
                said = f"it cannot compute accelerations: {one_line(refusal)}"
                changes.extend([] if said in changes else [said])
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
    """Set the inertias of the file where Drake's reader has replaced them.

    Drake's reader replaces an inertia that no body can have by that of a ball of water: of the link's mass,
    or of 1 kg if the link has none. Drake has no inertia without mass; such a link's inertia is moved to a
    link with mass that it is fixed to. It acts in the same way there, because it only resists rotation.
    """
    inertias = [np.array(link.inertia, dtype=float) for link in robot.links]
    changed, moved, kept = [], [], []
    for k, (body, link) in enumerate(zip(bodies, robot.links, strict=True)):
        theirs = body.CalcSpatialInertiaInBodyFrame(context)
        its = theirs.CalcRotationalInertia().CopyToFullMatrix3()
        I = _about_origin(link, inertias[k])
        if abs(theirs.get_mass() - link.mass) <= 1e-9 * link.mass and _near(its, I):
            continue
        if link.mass > 0.0:
            changed.append(k)
            continue
        onto = next((n for n, x in enumerate(robot.links) if x.body == link.body and x.mass > 0.0), None)
        if onto is None:
            kept.append(link.name)
            continue
        R = robot.links[onto].placement.rotation.T @ link.placement.rotation
        inertias[onto] = inertias[onto] + R @ link.inertia @ R.T
        moved.append((k, onto))
    for k in {*changed, *(onto for _, onto in moved)}:
        _set(bodies[k], context, robot.links[k], inertias[k])
    for k, _ in moved:
        _set(bodies[k], context, robot.links[k], np.zeros((3, 3)))
    balls = sorted({*changed, *(k for k, _ in moved)})
    if balls:
        named = some([robot.links[k].name for k in balls])
        changes.append(
            f"it puts a ball of water in the place of inertias that no body can have, for {named}; set back "
            "to those of the file"
        )
    if kept:
        changes.append(
            f"it makes {some(kept)}, with inertia but no mass, a ball of 1 kg: masses and forces differ"
        )


def _about_origin(link: Link, inertia: np.ndarray) -> np.ndarray:
    c = link.com
    return np.asarray(inertia + link.mass * (c @ c * np.eye(3) - np.outer(c, c)))


def _near(a: np.ndarray, b: np.ndarray) -> bool:
    return bool(np.abs(a - b).max() <= 1e-9 * np.abs(b).max())


def _set(body: Any, context: Any, link: Link, inertia: np.ndarray) -> None:
    """Set a link's mass and inertia without Drake's validity check."""
    from pydrake.multibody.tree import RotationalInertia, SpatialInertia, UnitInertia

    m, I = float(link.mass), _about_origin(link, inertia)
    if m == 0.0:
        body.SetSpatialInertiaInBodyFrame(context, SpatialInertia.Zero())
        return
    six = (float(I[i, j]) / m for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)))
    unit = UnitInertia(RotationalInertia(*six))
    body.SetSpatialInertiaInBodyFrame(
        context, SpatialInertia(m, np.asarray(link.com), unit, skip_validity_check=True)
    )
